/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios read from JSON: the schema's form first, then what its names and numbers mean. */
#include "conformance/worlds/scenario.h"

#include "conformance/io.h"
#include "conformance/schema.h"
#include "ref/base/suggest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const do_names[] = {"put",        "get",       "exist",     "size",  "remove",
                                       "remove_all", "batch_put", "batch_get", "setup", NULL};
static const char *const act_names[] = {"kill", "stop",   "continue", "restart", "partition",
                                        "heal", "expire", "drop",     NULL};

const char *moon_scenario_do_name(enum moon_scenario_do what) {
    return do_names[what];
}

const char *moon_scenario_act_name(enum moon_scenario_act what) {
    return act_names[what];
}

/* What is read, into what. `status` is the first failure; functions do nothing after it. */
struct reader {
    struct moon_arena *arena;
    struct moon_scenario *scenario;
    const char *source;
    const struct moon_json *operations, *schedule; /* lists; NULL: none */
    int status;
    struct moon_error *error;
};

#define FAIL(reader, code, place, ...)                                                                                 \
    ((reader)->status = moon_json_fail((reader)->error, (code), (reader)->source, (place), __VA_ARGS__))

static void *array(struct reader *reader, size_t count, size_t bytes) {
    void *memory = reader->status == 0 ? moon_arena_array(reader->arena, count, bytes) : NULL;
    if (!memory && reader->status == 0)
        reader->status = moon_fail(reader->error, MOON_ERR_MEMORY, reader->source, "out of memory");
    return memory;
}

static int64_t integer(struct reader *reader, const struct moon_json *object, const char *name, int64_t fallback,
                       int64_t min, int64_t max) {
    int64_t number = fallback;
    if (reader->status == 0)
        reader->status = moon_json_get_int(reader->source, object, name, false, min, max, &number, reader->error);
    return number;
}

static const char *text(const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    return value ? value->bytes : NULL;
}

static size_t find(const char *const names[], const char *name) {
    size_t i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        i++;
    return i;
}

/* ---- nodes ---- */

static size_t find_node(const struct moon_scenario *scenario, const char *name) {
    size_t i = 0;
    while (i < scenario->node_count && strcmp(scenario->nodes[i].name, name) != 0)
        i++;
    return i;
}

/* The node that `value` names. clients: not the master. */
static size_t node_of(struct reader *reader, const struct moon_json *value, bool clients) {
    const struct moon_scenario *scenario = reader->scenario;
    if (reader->status != 0)
        return 0;
    size_t node = find_node(scenario, value->bytes);
    if (node < scenario->node_count && (node > 0 || !clients))
        return node;
    char list[512] = "";
    for (size_t i = clients; i < scenario->node_count; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", scenario->nodes[i].name);
    }
    FAIL(reader, MOON_ERR_SCHEMA, value, "\"%.40s\" is none of the %s: %s", value->bytes, clients ? "clients" : "nodes",
         list);
    return 0;
}

static void add_node(struct reader *reader, const struct moon_json *place, const char *name, int64_t memory_bytes) {
    struct moon_scenario *scenario = reader->scenario;
    if (reader->status != 0)
        return;
    if (find_node(scenario, name) < scenario->node_count)
        FAIL(reader, MOON_ERR_SCHEMA, place, "a node \"%.40s\" is there already%s", name,
             strcmp(name, "master") == 0 ? ": every scenario has it" : "");
    else if (scenario->node_count == MOON_SCENARIO_NODES_MAX)
        FAIL(reader, MOON_ERR_LIMIT, place, "over %d nodes", MOON_SCENARIO_NODES_MAX);
    else
        scenario->nodes[scenario->node_count++] = (struct moon_scenario_node){name, (uint64_t)memory_bytes};
}

static void read_nodes(struct reader *reader, const struct moon_json *root) {
    add_node(reader, root, "master", 0);
    for (const struct moon_json *one = moon_json_member(root, "owners")->first; one; one = one->next)
        add_node(reader, moon_json_member(one, "name"), text(one, "name"),
                 integer(reader, one, "memory_bytes", 0, 4096, MOON_SCENARIO_BYTES_MAX));
    for (const struct moon_json *one = moon_json_member(root, "requesters")->first; one; one = one->next)
        add_node(reader, moon_json_member(one, "name"), text(one, "name"), 0);
}

/* ---- the store ---- */

static int64_t millionths(struct reader *reader, const struct moon_json *flags, const char *name, int64_t fallback) {
    const struct moon_json *value = moon_json_member(flags, name);
    if (!value || reader->status != 0)
        return fallback;
    if (!(value->real >= 0 && value->real <= 1))
        FAIL(reader, MOON_ERR_RANGE, value, "must be 0 to 1");
    return reader->status == 0 ? (int64_t)(value->real * 1e6 + 0.5) : fallback;
}

static void read_store(struct reader *reader, const struct moon_json *root) {
    enum { SECONDS_MAX = 86400, MILLISECONDS_MAX = 86400 * 1000 };
    const struct moon_json *store = moon_json_member(root, "store"), *flags = moon_json_member(store, "flags");
    struct moon_master_settings *master = &reader->scenario->master;
    *master = moon_master_defaults();
    const struct moon_json *release = moon_json_member(store, "release");
    reader->scenario->release = moon_wire_release_find(release->bytes + strlen("mooncake-"));
    if (!reader->scenario->release && reader->status == 0) {
        char list[256] = "";
        for (size_t i = 0; moon_wire_releases[i]; i++) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof list - used, "%smooncake-%s", used > 0 ? ", " : "",
                     moon_wire_releases[i]->name);
        }
        FAIL(reader, MOON_ERR_SCHEMA, release, "\"%.40s\" is none of: %s", release->bytes, list);
    }
    reader->scenario->strict = moon_json_is_string(moon_json_member(store, "mode"), "strict");
    struct {
        const char *name;
        moon_ns *into, unit;
        int64_t min, max;
    } times[] = {
        {"default_kv_lease_ttl", &master->lease_ttl_ns, MOON_NS_PER_MS, 0, MILLISECONDS_MAX},
        {"client_ttl", &master->client_ttl_ns, MOON_NS_PER_S, 1, SECONDS_MAX},
        {"put_start_discard_timeout_sec", &master->put_start_discard_ns, MOON_NS_PER_S, 1, SECONDS_MAX},
        {"put_start_release_timeout_sec", &master->put_start_release_ns, MOON_NS_PER_S, 1, SECONDS_MAX},
    };
    for (size_t i = 0; flags && i < sizeof times / sizeof *times; i++)
        *times[i].into =
            integer(reader, flags, times[i].name, *times[i].into / times[i].unit, times[i].min, times[i].max) *
            times[i].unit;
    master->eviction_millionths = millionths(reader, flags, "eviction_ratio", master->eviction_millionths);
    master->watermark_millionths =
        millionths(reader, flags, "eviction_high_watermark_ratio", master->watermark_millionths);
    if (reader->status == 0 && master->put_start_release_ns <= master->put_start_discard_ns)
        FAIL(reader, MOON_ERR_RANGE, flags ? flags : store,
             "put_start_release_timeout_sec must be more than put_start_discard_timeout_sec (defaults: 600, 30)");
}

/* ---- conditions ---- */

/* Place in a list of objects of the one with that id; the list's length if there is none. */
static size_t find_id(const struct moon_json *list, const char *id) {
    size_t i = 0;
    for (const struct moon_json *one = list ? list->first : NULL; one; one = one->next, i++)
        if (strcmp(text(one, "id"), id) == 0)
            return i;
    return i;
}

static size_t add_anchor(struct reader *reader, const struct moon_json *place, bool before) {
    struct moon_scenario *scenario = reader->scenario;
    const char *kind = text(place, "kind");
    struct moon_anchor anchor = {
        .node = node_of(reader, moon_json_member(place, "node"), false),
        .before = before,
        .kind = kind ? moon_record_kind_find(kind, strlen(kind)) : -1,
        .what = text(place, "what"),
        .key = text(place, "key"),
        .occurrence = integer(reader, place, "occurrence", 1, 1, 1000000000),
    };
    if (reader->status != 0)
        return 0;
    scenario->anchors[scenario->anchor_count] = anchor;
    return scenario->anchor_count++;
}

static struct moon_condition condition_of(struct reader *reader, const struct moon_json *place) {
    if (place->type == MOON_JSON_OBJECT)
        return (struct moon_condition){MOON_CONDITION_ANCHOR, add_anchor(reader, place, false)};
    size_t operation = find_id(reader->operations, place->bytes), action = find_id(reader->schedule, place->bytes);
    if (reader->operations && operation < reader->operations->count)
        return (struct moon_condition){MOON_CONDITION_OPERATION, operation};
    if (!reader->schedule || action == reader->schedule->count)
        FAIL(reader, MOON_ERR_SCHEMA, place, "\"%.60s\" is no operation and no action of this scenario", place->bytes);
    return (struct moon_condition){MOON_CONDITION_ACTION, action};
}

/* The conditions of an operation or action. */
static const struct moon_condition *conditions_of(struct reader *reader, const struct moon_json *object,
                                                  size_t *count) {
    const struct moon_json *list = moon_json_member(object, "after");
    *count = list ? list->count : 0;
    struct moon_condition *conditions = array(reader, *count, sizeof *conditions);
    size_t i = 0;
    for (const struct moon_json *one = list ? list->first : NULL; one && reader->status == 0; one = one->next)
        conditions[i++] = condition_of(reader, one);
    return conditions;
}

/* Ids of operations and actions are one space of names. */
static void check_ids(struct reader *reader) {
    const struct moon_json *lists[] = {reader->operations, reader->schedule};
    for (size_t l = 0; l < 2; l++) {
        size_t i = 0;
        for (const struct moon_json *one = lists[l] ? lists[l]->first : NULL; one && reader->status == 0;
             one = one->next, i++) {
            const struct moon_json *id = moon_json_member(one, "id");
            if (find_id(lists[l], id->bytes) != i ||
                (l == 1 && lists[0] && find_id(lists[0], id->bytes) < lists[0]->count))
                FAIL(reader, MOON_ERR_SCHEMA, id, "\"%.60s\" is there already", id->bytes);
        }
    }
}

static size_t count_anchors(const struct moon_json *list) {
    size_t count = 0;
    for (const struct moon_json *one = list ? list->first : NULL; one; one = one->next) {
        const struct moon_json *after = moon_json_member(one, "after");
        for (const struct moon_json *condition = after ? after->first : NULL; condition; condition = condition->next)
            count += condition->type == MOON_JSON_OBJECT;
        count += moon_json_member(one, "before") != NULL;
    }
    return count;
}

/* ---- operations ---- */

static bool is_batch(enum moon_scenario_do what) {
    return what == MOON_DO_BATCH_PUT || what == MOON_DO_BATCH_GET;
}
static bool is_put(enum moon_scenario_do what) {
    return what == MOON_DO_PUT || what == MOON_DO_BATCH_PUT;
}
static bool is_get(enum moon_scenario_do what) {
    return what == MOON_DO_GET || what == MOON_DO_BATCH_GET;
}
static bool is_removal(enum moon_scenario_do what) {
    return what == MOON_DO_REMOVE || what == MOON_DO_REMOVE_ALL;
}

/* A member that goes with some kinds of operation only. */
static void check_member(struct reader *reader, const struct moon_json *one, const char *name, bool wanted,
                         bool allowed) {
    const struct moon_json *member = moon_json_member(one, name);
    if (reader->status != 0)
        return;
    if (wanted && !member)
        FAIL(reader, MOON_ERR_SCHEMA, one, "\"%s\" needs \"%s\"", text(one, "do"), name);
    else if (member && !allowed)
        FAIL(reader, MOON_ERR_SCHEMA, member, "\"%s\" does not go with \"%s\"", name, text(one, "do"));
}

static void read_keys(struct reader *reader, const struct moon_json *one, struct moon_scenario_operation *operation) {
    const struct moon_json *list = moon_json_member(one, "keys"), *single = moon_json_member(one, "key");
    size_t count = list ? list->count : single ? 1 : 0;
    if (reader->status == 0 && list && (count == 0 || count > MOON_SCENARIO_KEYS_MAX))
        FAIL(reader, MOON_ERR_RANGE, list, "must hold 1 to %d keys", MOON_SCENARIO_KEYS_MAX);
    const char **keys = array(reader, count, sizeof *keys);
    if (!keys)
        return;
    size_t i = 0;
    for (const struct moon_json *key = list ? list->first : single; key && i < count; key = key->next)
        keys[i++] = key->bytes;
    operation->keys = keys;
    operation->key_count = count;
}

static void read_operation(struct reader *reader, const struct moon_json *one,
                           struct moon_scenario_operation *operation) {
    enum moon_scenario_do what = (enum moon_scenario_do)find(do_names, text(one, "do"));
    operation->id = text(one, "id");
    operation->what = what;
    operation->node = node_of(reader, moon_json_member(one, "node"), true);
    check_member(reader, one, "keys", is_batch(what), is_batch(what));
    check_member(reader, one, "key", !is_batch(what) && what != MOON_DO_REMOVE_ALL,
                 !is_batch(what) && what != MOON_DO_REMOVE_ALL);
    check_member(reader, one, "bytes", is_put(what) || is_get(what), is_put(what) || is_get(what));
    check_member(reader, one, "fill", is_put(what), is_put(what));
    check_member(reader, one, "force", false, is_removal(what));
    read_keys(reader, one, operation);
    operation->bytes = (size_t)integer(reader, one, "bytes", 0, 1, MOON_SCENARIO_BYTES_MAX);
    operation->fill = (uint64_t)integer(reader, one, "fill", 0, 0, INT64_MAX / 2);
    operation->repeat = integer(reader, one, "repeat", 1, 1, MOON_SCENARIO_REPEAT_MAX);
    if (reader->status == 0)
        reader->status = moon_json_get_bool(reader->source, one, "force", false, &operation->force, reader->error);
    operation->after = conditions_of(reader, one, &operation->after_count);
}

static void read_operations(struct reader *reader) {
    struct moon_scenario *scenario = reader->scenario;
    size_t count = reader->operations ? reader->operations->count : 0;
    if (reader->status == 0 && count > MOON_SCENARIO_OPERATIONS_MAX)
        FAIL(reader, MOON_ERR_LIMIT, reader->operations, "over %d operations", MOON_SCENARIO_OPERATIONS_MAX);
    scenario->operations = array(reader, count, sizeof *scenario->operations);
    scenario->operation_count = count;
    size_t i = 0;
    for (const struct moon_json *one = reader->operations ? reader->operations->first : NULL;
         one && reader->status == 0; one = one->next)
        read_operation(reader, one, &scenario->operations[i++]);
}

/* ---- the schedule ---- */

/* How long the flag says that "of" names. */
static moon_ns time_of(const struct moon_scenario *scenario, const char *of) {
    const struct moon_master_settings *master = &scenario->master;
    if (!of || strcmp(of, "lease") == 0)
        return MOON_NS_NEVER;
    return strcmp(of, "default_kv_lease_ttl") == 0            ? master->lease_ttl_ns
           : strcmp(of, "client_ttl") == 0                    ? master->client_ttl_ns
           : strcmp(of, "put_start_discard_timeout_sec") == 0 ? master->put_start_discard_ns
                                                              : master->put_start_release_ns;
}

static void read_action(struct reader *reader, const struct moon_json *one, struct moon_scenario_action *action) {
    enum moon_scenario_act what = (enum moon_scenario_act)find(act_names, text(one, "do"));
    const struct moon_json *before = moon_json_member(one, "before");
    bool pair = what == MOON_ACT_PARTITION || what == MOON_ACT_HEAL || what == MOON_ACT_DROP;
    action->id = text(one, "id");
    action->what = what;
    action->before = MOON_SCENARIO_NONE;
    check_member(reader, one, "node", what != MOON_ACT_EXPIRE, what != MOON_ACT_EXPIRE);
    check_member(reader, one, "other", pair, pair);
    check_member(reader, one, "of", false, what == MOON_ACT_EXPIRE);
    action->of_ns = time_of(reader->scenario, text(one, "of"));
    if (reader->status == 0 && !before == !moon_json_member(one, "after"))
        FAIL(reader, MOON_ERR_SCHEMA, one, "needs one of \"before\" and \"after\"");
    if (moon_json_member(one, "node"))
        action->node = node_of(reader, moon_json_member(one, "node"), false);
    if (pair)
        action->other = node_of(reader, moon_json_member(one, "other"), false);
    if (reader->status == 0 && pair && action->node == action->other)
        FAIL(reader, MOON_ERR_SCHEMA, moon_json_member(one, "other"), "must be another node than \"node\"");
    if (before)
        action->before = add_anchor(reader, before, true);
    action->after = conditions_of(reader, one, &action->after_count);
    bool anchored = before != NULL;
    for (size_t i = 0; i < action->after_count && reader->status == 0; i++)
        anchored |= action->after[i].kind == MOON_CONDITION_ANCHOR;
    if (reader->status == 0 && what == MOON_ACT_EXPIRE && action->of_ns == MOON_NS_NEVER && !anchored)
        FAIL(reader, MOON_ERR_SCHEMA, one,
             "\"expire\" needs an anchor, whose record tells the lease, or \"of\" with a flag of the store");
}

static void read_schedule(struct reader *reader) {
    struct moon_scenario *scenario = reader->scenario;
    size_t count = reader->schedule ? reader->schedule->count : 0;
    if (reader->status == 0 && count > MOON_SCENARIO_ACTIONS_MAX)
        FAIL(reader, MOON_ERR_LIMIT, reader->schedule, "over %d actions", MOON_SCENARIO_ACTIONS_MAX);
    scenario->actions = array(reader, count, sizeof *scenario->actions);
    scenario->action_count = count;
    size_t i = 0;
    for (const struct moon_json *one = reader->schedule ? reader->schedule->first : NULL; one && reader->status == 0;
         one = one->next)
        read_action(reader, one, &scenario->actions[i++]);
}

static bool is_done(const bool *operations, const bool *actions, const struct moon_condition *after, size_t count) {
    for (size_t i = 0; i < count; i++)
        if ((after[i].kind == MOON_CONDITION_OPERATION && !operations[after[i].index]) ||
            (after[i].kind == MOON_CONDITION_ACTION && !actions[after[i].index]))
            return false;
    return true;
}

/* Plays it through in thought: each round does all whose conditions are met. What is left waits for itself. */
static void check_circles(struct reader *reader) {
    const struct moon_scenario *scenario = reader->scenario;
    bool *operations = array(reader, scenario->operation_count, 1), *actions = array(reader, scenario->action_count, 1);
    size_t left = scenario->operation_count + scenario->action_count;
    for (size_t before = left + 1; reader->status == 0 && left > 0 && left < before;) {
        before = left;
        for (size_t i = 0; i < scenario->operation_count; i++)
            if (!operations[i] &&
                is_done(operations, actions, scenario->operations[i].after, scenario->operations[i].after_count)) {
                operations[i] = true;
                left--;
            }
        for (size_t i = 0; i < scenario->action_count; i++)
            if (!actions[i] &&
                is_done(operations, actions, scenario->actions[i].after, scenario->actions[i].after_count)) {
                actions[i] = true;
                left--;
            }
    }
    if (reader->status != 0 || left == 0)
        return;
    for (size_t i = 0; i < scenario->operation_count; i++)
        if (!operations[i]) {
            FAIL(reader, MOON_ERR_SCHEMA, moon_json_member(moon_json_at(reader->operations, i), "after"),
                 "waits, by way of others, for itself");
            return;
        }
    FAIL(reader, MOON_ERR_SCHEMA, reader->schedule, "these actions wait for each other");
}

/* ---- mix and faults ---- */

static const size_t *nodes_of(struct reader *reader, const struct moon_json *list, bool clients, size_t *count) {
    *count = list ? list->count : 0;
    size_t *nodes = array(reader, *count, sizeof *nodes);
    size_t i = 0;
    for (const struct moon_json *one = list ? list->first : NULL; one && reader->status == 0; one = one->next)
        nodes[i++] = node_of(reader, one, clients);
    return nodes;
}

static void read_mix(struct reader *reader, const struct moon_json *mix) {
    struct moon_scenario_mix *out = &reader->scenario->mix;
    int64_t rates = 0;
    if (!mix)
        return;
    const struct moon_json *clients = moon_json_member(mix, "clients"), *sizes = moon_json_member(mix, "sizes"),
                           *rate = moon_json_member(mix, "rates");
    if (reader->status == 0 && (clients->count == 0 || sizes->count == 0))
        FAIL(reader, MOON_ERR_RANGE, clients->count == 0 ? clients : sizes, "must not be empty");
    out->clients = nodes_of(reader, clients, true, &out->client_count);
    out->keys = integer(reader, mix, "keys", 1, 1, 100000);
    out->operations = integer(reader, mix, "operations", 1, 1, MOON_SCENARIO_OPERATIONS_MAX);
    out->pause_max_ns = integer(reader, mix, "pause_ms_max", 0, 0, 3600000) * MOON_NS_PER_MS;
    for (int i = 0; i < MOON_DO_COUNT; i++) {
        out->rates[i] = integer(reader, rate, do_names[i], 0, 0, 1000);
        rates += out->rates[i];
    }
    if (reader->status == 0 && rates == 0)
        FAIL(reader, MOON_ERR_RANGE, rate, "one of the rates must be above 0");
    size_t *list = array(reader, sizes->count, sizeof *list);
    for (const struct moon_json *one = sizes->first; one && reader->status == 0; one = one->next) {
        if (!one->fits || one->integer < 1 || one->integer > MOON_SCENARIO_BYTES_MAX)
            FAIL(reader, MOON_ERR_RANGE, one, "must be 1 to %d", MOON_SCENARIO_BYTES_MAX);
        list[out->size_count++] = (size_t)one->integer;
    }
    out->sizes = list;
}

static void read_faults(struct reader *reader, const struct moon_json *faults) {
    struct moon_scenario_faults *out = &reader->scenario->faults;
    if (!faults)
        return;
    out->there = true;
    out->crash = integer(reader, faults, "crash", 0, 0, 1000);
    out->stop = integer(reader, faults, "stop", 0, 0, 1000);
    out->partition = integer(reader, faults, "partition", 0, 0, 1000);
    out->drop = integer(reader, faults, "drop", 0, 0, 1000);
    out->length_max_ns = integer(reader, faults, "length_ms_max", 1, 1, 3600000) * MOON_NS_PER_MS;
    out->nodes = nodes_of(reader, moon_json_member(faults, "nodes"), false, &out->node_count);
    if (reader->status == 0 && out->node_count == 0 && out->crash + out->stop > 0)
        FAIL(reader, MOON_ERR_SCHEMA, faults, "\"crash\" and \"stop\" need \"nodes\" that they may hit");
}

/* ---- expect ---- */

static size_t operation_named(struct reader *reader, const struct moon_json *place) {
    size_t operation = find_id(reader->operations, place->name);
    if (reader->status == 0 && (!reader->operations || operation == reader->operations->count))
        FAIL(reader, MOON_ERR_SCHEMA, place, "\"%.60s\" is no operation of this scenario", place->name);
    return operation;
}

static int64_t code_of(struct reader *reader, const struct moon_json *place) {
    if (place->type == MOON_JSON_INTEGER && place->fits && place->integer < MOON_CODE_LOST)
        return place->integer;
    if (!moon_json_is_string(place, "lost") && reader->status == 0)
        FAIL(reader, MOON_ERR_SCHEMA, place, "must be a number, or \"lost\" where the node dies during the operation");
    return MOON_CODE_LOST;
}

static void read_codes(struct reader *reader, const struct moon_json *place, struct moon_scenario_codes *codes) {
    codes->operation = operation_named(reader, place);
    const struct moon_json *list = place;
    if (place->type == MOON_JSON_OBJECT) {
        const struct moon_json *any = moon_json_member(place, "any"), *each = moon_json_member(place, "each");
        if (!any == !each && reader->status == 0)
            FAIL(reader, MOON_ERR_SCHEMA, place, "needs one of \"any\" and \"each\"");
        list = any ? any : each;
        codes->each = each != NULL;
        if (reader->status == 0)
            reader->status = moon_json_get_bool(reader->source, place, "rising", false, &codes->rising, reader->error);
    }
    bool is_list = list && list->type == MOON_JSON_ARRAY;
    if (reader->status == 0 && is_list && list->count == 0)
        FAIL(reader, MOON_ERR_SCHEMA, list, "must not be empty");
    codes->allowed_count = is_list ? list->count : 1;
    int64_t *allowed = array(reader, codes->allowed_count, sizeof *allowed);
    size_t i = 0;
    for (const struct moon_json *one = is_list ? list->first : list; one && reader->status == 0;
         one = is_list ? one->next : NULL)
        allowed[i++] = code_of(reader, one);
    codes->allowed = allowed;
}

static void read_digests(struct reader *reader, const struct moon_json *place, struct moon_scenario_digests *digests) {
    bool is_list = place->type == MOON_JSON_ARRAY;
    digests->operation = operation_named(reader, place);
    if (reader->status == 0 && !is_get(reader->scenario->operations[digests->operation].what))
        FAIL(reader, MOON_ERR_SCHEMA, place, "only get and batch_get have digests");
    digests->fill_count = is_list ? place->count : 1;
    uint64_t *fills = array(reader, digests->fill_count, sizeof *fills);
    size_t i = 0;
    for (const struct moon_json *one = is_list ? place->first : place; one && reader->status == 0;
         one = is_list ? one->next : NULL) {
        if (!one->fits || one->integer < 0)
            FAIL(reader, MOON_ERR_RANGE, one, "must be the number of a fill, 0 or more");
        fills[i++] = (uint64_t)one->integer;
    }
    digests->fills = fills;
}

static size_t count_of(const struct moon_json *list) {
    return list ? list->count : 0;
}

static const char *const *texts(struct reader *reader, const struct moon_json *list, size_t *count) {
    *count = count_of(list);
    const char **out = array(reader, *count, sizeof *out);
    size_t i = 0;
    for (const struct moon_json *one = list ? list->first : NULL; one && out; one = one->next)
        out[i++] = one->bytes;
    return out;
}

static void read_expect(struct reader *reader, const struct moon_json *expect) {
    struct moon_scenario *scenario = reader->scenario;
    const struct moon_json *codes = moon_json_member(expect, "codes"), *digests = moon_json_member(expect, "digests");
    scenario->codes = array(reader, count_of(codes), sizeof *scenario->codes);
    scenario->digests = array(reader, count_of(digests), sizeof *scenario->digests);
    for (const struct moon_json *one = codes ? codes->first : NULL; one && reader->status == 0; one = one->next)
        read_codes(reader, one, &scenario->codes[scenario->code_count++]);
    for (const struct moon_json *one = digests ? digests->first : NULL; one && reader->status == 0; one = one->next)
        read_digests(reader, one, &scenario->digests[scenario->digest_count++]);
    scenario->deviations = texts(reader, moon_json_member(expect, "deviations"), &scenario->deviation_count);
}

/* ---- all of it ---- */

static void read_root(struct reader *reader, const struct moon_json *root) {
    struct moon_scenario *scenario = reader->scenario;
    reader->operations = moon_json_member(root, "operations");
    reader->schedule = moon_json_member(root, "schedule");
    scenario->id = text(root, "id");
    scenario->title = text(root, "title");
    scenario->guide = texts(reader, moon_json_member(root, "guide"), &scenario->guide_count);
    read_nodes(reader, root);
    read_store(reader, root);
    scenario->anchors =
        array(reader, count_anchors(reader->operations) + count_anchors(reader->schedule), sizeof *scenario->anchors);
    check_ids(reader);
    read_operations(reader);
    read_schedule(reader);
    check_circles(reader);
    read_mix(reader, moon_json_member(root, "mix"));
    read_faults(reader, moon_json_member(root, "faults"));
    read_expect(reader, moon_json_member(root, "expect"));
    if (reader->status == 0 && scenario->operation_count == 0 && scenario->mix.client_count == 0)
        FAIL(reader, MOON_ERR_SCHEMA, root, "needs \"operations\" or \"mix\"");
}

int moon_scenario_read(struct moon_arena *arena, const char *source, const char *input, size_t length,
                       struct moon_scenario *scenario, struct moon_error *error) {
    struct moon_json *root = NULL;
    struct moon_schema schema;
    *scenario = (struct moon_scenario){.source = source};
    struct reader reader = {.arena = arena, .scenario = scenario, .source = source, .error = error};
    reader.status = moon_json_read(arena, source, input, length, MOON_JSON_STRICT, &root, error);
    if (reader.status != 0)
        return reader.status;
    reader.status = moon_schema_open(&schema, arena, "scenario", error);
    if (reader.status == 0)
        reader.status = moon_schema_check(&schema, NULL, source, root, error);
    moon_schema_close(&schema);
    if (reader.status == 0)
        read_root(&reader, root);
    return reader.status;
}

int moon_scenario_load(struct moon_arena *arena, const char *path, struct moon_scenario *scenario,
                       struct moon_error *error) {
    struct moon_text content;
    moon_text_open(&content, arena->memory);
    int status = moon_io_read(path, MOON_JSON_INPUT_BYTES_MAX, &content, error);
    if (status == 0)
        status =
            moon_scenario_read(arena, moon_io_source(path), moon_text_value(&content), content.length, scenario, error);
    moon_text_close(&content);
    return status;
}
