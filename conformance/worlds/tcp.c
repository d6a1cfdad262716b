/* SPDX-License-Identifier: Apache-2.0 */
/* World tcp: one real process a node, on the loopback. Clients speak the adapter protocol, so that foreign ones can
 * take their place; our own tell their history by a file each, and are held at anchors by their control channel. */
#include "conformance/io.h"
#include "conformance/worlds/agent.h"
#include "conformance/worlds/outside.h"
#include "conformance/worlds/world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GRACE_MS = 3000,
    START_TIMEOUT_S = 60,
    CLOSE_TIMEOUT_S = 10,
    FILES_MAX = 256,
    ADDRESS_BYTES = 128,
    PATH_BYTES = 480
};

/* A call under way. */
struct asked {
    struct asked *next;
    struct moon_world_call *call;
    uint64_t seq;
};

/* One run of one node: its history's file. killed_ns: when, 0 if it was not. */
struct boot_file {
    size_t node;
    uint32_t boot;
    uint64_t killed_ns;
};

/* address: where it can be reached, of the master. ready: it has said so. introduced: its answer to "start" is here. */
struct tcp_node {
    struct moon_agent agent;
    uint32_t boots;
    bool ready, introduced, stopped;
    char address[ADDRESS_BYTES];
    struct asked *asked;
};

struct alarm {
    moon_ns time_ns;
    size_t token;
};

struct tcp_world {
    struct moon_world world; /* first */
    struct tcp_node nodes[MOON_SCENARIO_NODES_MAX];
    struct boot_file files[FILES_MAX];
    size_t file_count;
    struct alarm *alarms;
    size_t alarm_count, alarm_capacity;
    struct moon_outside outside;
    uint64_t seq;
    size_t closing; /* clients that have not answered "close" */
    bool own_folder, ending;
    char folder[PATH_BYTES];
};

static struct tcp_world *of(struct moon_world *world) {
    return (struct tcp_world *)world;
}

static const char *name_of(const struct tcp_world *self, size_t node) {
    return self->world.scenario->nodes[node].name;
}

static bool is_foreign(const struct moon_world_setting *setting, size_t node) {
    return node == 0 ? setting->master != NULL : setting->client != NULL;
}

/* Fails with what the process said last. */
static int fail_node(struct tcp_world *self, size_t node, const char *what, struct moon_error *error) {
    struct moon_arena arena;
    moon_arena_open(&arena, self->world.setting.memory);
    int status = moon_fail(error, MOON_ERR_IO, NULL, "%s %s: %s", name_of(self, node), what,
                           moon_agent_obituary(&self->nodes[node].agent, &arena));
    moon_arena_close(&arena);
    return status;
}

/* ---- what it cannot do ---- */

static const char *cannot_act(const struct moon_world_setting *setting, const struct moon_scenario_action *action,
                              struct moon_arena *arena) {
    if (action->what == MOON_ACT_PARTITION || action->what == MOON_ACT_HEAL || action->what == MOON_ACT_DROP)
        return moon_arena_format(arena, "world tcp has no \"%s\" (action %s)", moon_scenario_act_name(action->what),
                                 action->id);
    if (action->what != MOON_ACT_EXPIRE && action->node == 0 && setting->master)
        return moon_arena_format(arena, "the master is not this program's: it cannot be killed or stopped (action %s)",
                                 action->id);
    return NULL;
}

/* Of a foreign client the harness records what it asks and gets; of a foreign master nothing. */
static const char *cannot_see(const struct moon_world_setting *setting, const struct moon_anchor *anchor,
                              struct moon_arena *arena) {
    bool outside = anchor->kind >= MOON_RECORD_INVOKE && anchor->kind <= MOON_RECORD_INFO && !anchor->before;
    if (is_foreign(setting, anchor->node) && (anchor->node == 0 || !outside))
        return moon_arena_format(arena, "only our own %s %s the record \"%s\"", anchor->node == 0 ? "master" : "client",
                                 anchor->before ? "can be held at" : "tells", anchor->what);
    return NULL;
}

static bool has_defaults(const struct moon_master_settings *settings) {
    struct moon_master_settings standard = moon_master_defaults();
    return settings->lease_ttl_ns == standard.lease_ttl_ns && settings->client_ttl_ns == standard.client_ttl_ns &&
           settings->put_start_discard_ns == standard.put_start_discard_ns &&
           settings->put_start_release_ns == standard.put_start_release_ns &&
           settings->eviction_millionths == standard.eviction_millionths &&
           settings->watermark_millionths == standard.watermark_millionths;
}

static const char *cannot(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                          struct moon_arena *arena) {
    const char *why = NULL;
    for (size_t i = 0; i < scenario->action_count && !why; i++)
        why = cannot_act(setting, &scenario->actions[i], arena);
    for (size_t i = 0; i < scenario->anchor_count && !why; i++)
        why = cannot_see(setting, &scenario->anchors[i], arena);
    if (!why && setting->master && !has_defaults(&scenario->master))
        why = "the scenario sets flags of the master, which runs already";
    return why;
}

/* ---- messages of nodes ---- */

/* Wanted members of a message; NULL when one is missing. */
static const struct moon_json *string_of(const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_is(object, MOON_JSON_OBJECT) ? moon_json_member(object, name) : NULL;
    return moon_json_is(value, MOON_JSON_STRING) ? value : NULL;
}

static int stepped(struct tcp_world *self, size_t node, struct moon_arena *arena, const struct moon_json *step,
                   struct moon_error *error) {
    struct moon_world *world = &self->world;
    const struct moon_json *id = moon_json_member(step, "id"), *record = moon_json_member(step, "record");
    struct moon_record told;
    struct moon_text line;
    if (!moon_json_is(id, MOON_JSON_INTEGER) || id->integer < 0 ||
        (size_t)id->integer >= world->scenario->anchor_count || !record)
        return fail_node(self, node, "tells a step that was not armed", error);
    size_t anchor = (size_t)id->integer;
    struct moon_world_event event = {.kind = MOON_WORLD_STEP, .anchor = anchor, .lease_left_ns = MOON_NS_NEVER};
    moon_text_open(&line, arena->memory);
    moon_json_write(record, MOON_JSON_COMPACT, &line);
    int status = moon_record_read_json(arena, moon_text_value(&line), line.length, &told, error);
    moon_text_close(&line);
    if (status == 0 && (told.has & MOON_RECORD_HAS_LEASE))
        event.lease_left_ns = told.lease_ns - told.time_ns;
    world->reached[anchor] = true;
    if (status == 0)
        moon_world_tell(world, &event);
    return status;
}

static int take_control(struct tcp_world *self, size_t index, struct moon_arena *arena, const struct moon_json *message,
                        struct moon_error *error) {
    struct tcp_node *node = &self->nodes[index];
    const struct moon_json *ready = moon_json_member(message, "ready"), *step = moon_json_member(message, "step");
    const struct moon_json *address = string_of(ready, "address");
    if (step && step->type == MOON_JSON_OBJECT)
        return stepped(self, index, arena, step, error);
    if (!ready)
        return fail_node(self, index, "says on its control channel what is not understood", error);
    node->ready = true;
    if (address && address->length < sizeof node->address)
        memcpy(node->address, address->bytes, address->length + 1);
    return 0;
}

/* Anchors at the harness's own records of foreign clients. */
static void tell_reached(struct tcp_world *self) {
    struct moon_world_event event = {.kind = MOON_WORLD_STEP, .lease_left_ns = MOON_NS_NEVER};
    while (moon_outside_reached(&self->outside, &self->world, &event.anchor))
        moon_world_tell(&self->world, &event);
}

static int take_answer(struct tcp_world *self, size_t index, const struct moon_json *message,
                       struct moon_error *error) {
    struct tcp_node *node = &self->nodes[index];
    const struct moon_json *seq = moon_json_member(message, "seq");
    if (!node->introduced) {
        const struct moon_json *ok = moon_json_member(message, "ok");
        const struct moon_json *store = moon_json_is(ok, MOON_JSON_OBJECT) ? moon_json_member(ok, "store") : NULL;
        node->introduced = true;
        return store && store->type == MOON_JSON_BOOL && store->boolean
                   ? 0
                   : fail_node(self, index, "does not offer a store in its answer to \"start\"", error);
    }
    struct asked **place = &node->asked;
    while (*place && !(moon_json_is(seq, MOON_JSON_INTEGER) && (uint64_t)seq->integer == (*place)->seq))
        place = &(*place)->next;
    struct asked *asked = *place;
    self->closing -= !asked && self->closing > 0;
    if (!asked)
        return self->ending ? 0 : fail_node(self, index, "answers what was not asked", error);
    const char *why = NULL;
    if (!moon_outside_read(asked->call, message, &why))
        return fail_node(self, index, why, error);
    *place = asked->next;
    if (is_foreign(&self->world.setting, index))
        moon_outside_ended(&self->outside, node->boots - 1, asked->seq, asked->call);
    moon_world_tell(&self->world, &(struct moon_world_event){.kind = MOON_WORLD_ENDED, .call = asked->call});
    tell_reached(self);
    self->world.setting.memory->resize(self->world.setting.memory, asked, sizeof *asked, 0);
    return 0;
}

/* Takes all that a node has said. dead: it may have ended; else that is an error. */
static int take_all(struct tcp_world *self, size_t index, bool dead, struct moon_error *error) {
    struct tcp_node *node = &self->nodes[index];
    enum moon_agent_event event = MOON_AGENT_ANSWER;
    int status = 0;
    while (status == 0 && node->agent.alive && (event == MOON_AGENT_ANSWER || event == MOON_AGENT_CONTROL)) {
        struct moon_arena arena;
        struct moon_json *message = NULL;
        moon_arena_open(&arena, self->world.setting.memory);
        status = moon_agent_take(&node->agent, &arena, &event, &message, error);
        if (status != 0 && dead) /* it died in the middle of a line */
            status = 0;
        else if (status == 0 && event == MOON_AGENT_CONTROL)
            status = take_control(self, index, &arena, message, error);
        else if (status == 0 && event == MOON_AGENT_ANSWER && message)
            status = take_answer(self, index, message, error);
        moon_arena_close(&arena);
    }
    if (event != MOON_AGENT_DEAD || dead || status != 0)
        return status;
    moon_agent_end(&node->agent, GRACE_MS);
    return fail_node(self, index, "ended by itself", error);
}

static int take_round(struct tcp_world *self, uint64_t deadline_ns, struct moon_error *error) {
    struct moon_agent *agents[MOON_SCENARIO_NODES_MAX] = {NULL};
    size_t count = self->world.scenario->node_count;
    int status = 0;
    for (size_t i = 0; i < count; i++)
        agents[i] = &self->nodes[i].agent;
    moon_agents_wait(agents, count, deadline_ns);
    for (size_t i = 0; i < count && status == 0; i++)
        status = take_all(self, i, false, error);
    return status;
}

/* ---- starting ---- */

static const char *master_command(const struct tcp_world *self, struct moon_arena *arena, const char *common) {
    const struct moon_master_settings *settings = &self->world.scenario->master;
    const char *port = self->nodes[0].address[0] ? strrchr(self->nodes[0].address, ':') + 1 : "0";
    return moon_arena_format(
        arena,
        "'%s/mooncheck-master' --rpc_address 127.0.0.1 --port %s --default_kv_lease_ttl %lldms "
        "--client_ttl %llds --put_start_discard_timeout_sec %llds --put_start_release_timeout_sec %llds "
        "--eviction_ratio %lld.%06lld --eviction_high_watermark_ratio %lld.%06lld %s",
        self->world.setting.programs, port, (long long)(settings->lease_ttl_ns / MOON_NS_PER_MS),
        (long long)(settings->client_ttl_ns / MOON_NS_PER_S),
        (long long)(settings->put_start_discard_ns / MOON_NS_PER_S),
        (long long)(settings->put_start_release_ns / MOON_NS_PER_S), (long long)settings->eviction_millionths / 1000000,
        (long long)settings->eviction_millionths % 1000000, (long long)settings->watermark_millionths / 1000000,
        (long long)settings->watermark_millionths % 1000000, common);
}

static const char *command_of(const struct tcp_world *self, size_t index, struct moon_arena *arena) {
    const struct moon_world_setting *setting = &self->world.setting;
    const char *name = name_of(self, index);
    uint32_t boot = self->nodes[index].boots;
    if (is_foreign(setting, index))
        return moon_arena_format(arena, "%s", setting->client);
    const char *common =
        moon_arena_format(arena, "--release %s --history '%s/%s.%u.jsonl' --node %s --boot %u --seed %llu",
                          self->world.scenario->release->name, self->folder, name, boot, name, boot,
                          (unsigned long long)(setting->seed * MOON_SCENARIO_NODES_MAX + index) * FILES_MAX + boot);
    if (!common)
        return NULL;
    return index == 0 ? master_command(self, arena, common)
                      : moon_arena_format(arena, "'%s/mooncheck-client' agent %s", setting->programs, common);
}

static struct moon_json *text_or_null(struct moon_arena *arena, const char *text) {
    return text ? moon_json_string(arena, text) : moon_json_null(arena);
}

/* Tells a process which records it is to stop at. */
static int arm(struct tcp_world *self, size_t index, struct moon_arena *arena, struct moon_error *error) {
    const struct moon_scenario *scenario = self->world.scenario;
    struct moon_json *message = moon_json_object(arena),
                     *rows = moon_json_set(arena, message, "arm", moon_json_array(arena));
    for (size_t i = 0; i < scenario->anchor_count; i++) {
        const struct moon_anchor *anchor = &scenario->anchors[i];
        if (anchor->node != index || self->world.reached[i])
            continue;
        struct moon_json *row = moon_json_push(rows, moon_json_object(arena));
        const char *kind = anchor->kind < 0 ? NULL : moon_record_kind_name((enum moon_record_kind)anchor->kind);
        moon_json_set(arena, row, "id", moon_json_uint(arena, i));
        moon_json_set(arena, row, "point", moon_json_string(arena, anchor->before ? "before" : "after"));
        moon_json_set(arena, row, "kind", text_or_null(arena, kind));
        moon_json_set(arena, row, "what", moon_json_string(arena, anchor->what));
        moon_json_set(arena, row, "key", text_or_null(arena, anchor->key));
        moon_json_set(arena, row, "occurrence", moon_json_int(arena, anchor->occurrence));
    }
    return moon_json_broken(message) ? moon_no_memory(error)
                                     : moon_agent_control(&self->nodes[index].agent, message, error);
}

static int introduce(struct tcp_world *self, size_t index, struct moon_arena *arena, struct moon_error *error) {
    struct moon_json *message = moon_json_object(arena);
    moon_json_set(arena, message, "do", moon_json_string(arena, "start"));
    moon_json_set(arena, message, "protocol", moon_json_int(arena, 1));
    moon_json_set(arena, message, "folder", moon_json_string(arena, self->folder));
    if (moon_json_broken(message))
        return moon_no_memory(error);
    moon_agent_say(&self->nodes[index].agent, message);
    return 0;
}

static int wait_until_ready(struct tcp_world *self, size_t index, struct moon_error *error) {
    struct tcp_node *node = &self->nodes[index];
    uint64_t deadline_ns = moon_now_ns() + (uint64_t)START_TIMEOUT_S * (uint64_t)MOON_NS_PER_S;
    int status = 0;
    while (status == 0 && !(node->ready && node->introduced)) {
        if (moon_now_ns() >= deadline_ns)
            return fail_node(self, index, "does not become ready", error);
        status = take_round(self, deadline_ns, error);
    }
    return status;
}

static int boot(struct moon_world *world, size_t index, struct moon_error *error) {
    struct tcp_world *self = of(world);
    struct tcp_node *node = &self->nodes[index];
    struct moon_arena arena;
    char base[PATH_BYTES + 160];
    bool foreign = is_foreign(&world->setting, index);
    if (index == 0 && foreign)
        return 0;
    if (self->file_count == FILES_MAX)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "over %d starts of processes", FILES_MAX);
    moon_arena_open(&arena, world->setting.memory);
    moon_world_count_anew(world, index);
    const char *command = command_of(self, index, &arena);
    snprintf(base, sizeof base, "%s/%s.%u", self->folder, name_of(self, index), node->boots);
    int status = command ? moon_agent_start(&node->agent, name_of(self, index), base, command, !foreign, error)
                         : moon_no_memory(error);
    if (!foreign)
        self->files[self->file_count++] = (struct boot_file){.node = index, .boot = node->boots};
    node->boots++;
    node->agent.silent = index == 0;
    node->stopped = false;
    node->ready = foreign;
    node->introduced = index == 0;
    if (status == 0 && !foreign)
        status = arm(self, index, &arena, error);
    if (status == 0 && index > 0)
        status = introduce(self, index, &arena, error);
    if (status == 0)
        status = wait_until_ready(self, index, error);
    moon_arena_close(&arena);
    return status;
}

/* ---- calls ---- */

static int submit(struct moon_world *world, struct moon_world_call *call, struct moon_error *error) {
    struct tcp_world *self = of(world);
    struct tcp_node *node = &self->nodes[call->node];
    bool foreign = is_foreign(&world->setting, call->node);
    struct moon_arena arena;
    struct asked *asked = world->setting.memory->resize(world->setting.memory, NULL, 0, sizeof *asked);
    if (!asked)
        return moon_no_memory(error);
    *asked = (struct asked){node->asked, call, ++self->seq};
    node->asked = asked;
    moon_arena_open(&arena, world->setting.memory);
    struct moon_json *message = NULL;
    int status = moon_outside_message(&arena, world->scenario, call, asked->seq, self->nodes[0].address,
                                      foreign ? self->folder : NULL, &message, error);
    if (status == 0 && foreign)
        moon_outside_invoked(&self->outside, node->boots - 1, asked->seq, call);
    tell_reached(self);
    if (status == 0)
        moon_agent_say(&node->agent, message);
    moon_arena_close(&arena);
    return status;
}

/* ---- actions ---- */

static void lose_calls(struct tcp_world *self, size_t index) {
    struct tcp_node *node = &self->nodes[index];
    struct moon_memory *memory = self->world.setting.memory;
    while (node->asked) {
        struct asked *asked = node->asked;
        node->asked = asked->next;
        asked->call->lost = true;
        if (!self->ending)
            moon_world_tell(&self->world, &(struct moon_world_event){.kind = MOON_WORLD_ENDED, .call = asked->call});
        memory->resize(memory, asked, sizeof *asked, 0);
    }
}

static int kill_node(struct tcp_world *self, size_t index, struct moon_error *error) {
    struct tcp_node *node = &self->nodes[index];
    kill(-node->agent.process.pid, SIGKILL);
    for (size_t i = 0; i < self->file_count; i++)
        if (self->files[i].node == index && self->files[i].boot == node->boots - 1)
            self->files[i].killed_ns = moon_now_ns();
    int status = take_all(self, index, true, error); /* what it said before */
    moon_agent_end(&node->agent, 0);
    node->stopped = false;
    lose_calls(self, index);
    return status;
}

static int act(struct moon_world *world, enum moon_scenario_act what, size_t index, size_t other,
               struct moon_error *error) {
    struct tcp_world *self = of(world);
    struct tcp_node *node = &self->nodes[index];
    (void)other;
    if (!node->agent.alive)
        return 0;
    if (what == MOON_ACT_KILL)
        return kill_node(self, index, error);
    bool stop = what == MOON_ACT_STOP;
    if (stop == node->stopped)
        return 0;
    if (kill(-node->agent.process.pid, stop ? SIGSTOP : SIGCONT) != 0)
        return fail_node(self, index, "takes no signal", error);
    node->stopped = stop;
    moon_outside_fault(&self->outside, stop ? "stop" : "continue", name_of(self, index));
    return 0;
}

static int go(struct moon_world *world, size_t anchor, struct moon_error *error) {
    struct tcp_world *self = of(world);
    size_t index = world->scenario->anchors[anchor].node;
    struct moon_arena arena;
    if (is_foreign(&world->setting, index) || !self->nodes[index].agent.alive)
        return 0;
    moon_arena_open(&arena, world->setting.memory);
    struct moon_json *message = moon_json_object(&arena);
    moon_json_set(&arena, message, "go", moon_json_uint(&arena, anchor));
    int status = moon_json_broken(message) ? moon_no_memory(error)
                                           : moon_agent_control(&self->nodes[index].agent, message, error);
    moon_arena_close(&arena);
    return status;
}

static int wake(struct moon_world *world, moon_ns delay_ns, size_t token, struct moon_error *error) {
    struct tcp_world *self = of(world);
    struct alarm *grown = moon_memory_grow(world->setting.memory, self->alarms, &self->alarm_capacity,
                                           self->alarm_count + 1, sizeof *grown, 16);
    if (!grown)
        return moon_no_memory(error);
    self->alarms = grown;
    grown[self->alarm_count++] = (struct alarm){(moon_ns)moon_now_ns() + delay_ns, token};
    return 0;
}

/* Tells the alarms that are due; returns when the next one is. */
static moon_ns ring(struct tcp_world *self) {
    moon_ns now_ns = (moon_ns)moon_now_ns(), next_ns = MOON_NS_NEVER;
    size_t kept = 0;
    for (size_t i = 0; i < self->alarm_count; i++) {
        struct alarm alarm = self->alarms[i];
        if (alarm.time_ns <= now_ns) {
            moon_world_tell(&self->world, &(struct moon_world_event){.kind = MOON_WORLD_WOKE, .token = alarm.token});
            continue;
        }
        self->alarms[kept++] = alarm;
        next_ns = alarm.time_ns < next_ns ? alarm.time_ns : next_ns;
    }
    self->alarm_count = kept;
    return next_ns;
}

static int advance(struct moon_world *world, struct moon_world_event *event, struct moon_error *error) {
    struct tcp_world *self = of(world);
    moon_ns quiet_ns = (moon_ns)moon_now_ns() + MOON_WORLD_QUIET_REAL_NS;
    while (!moon_world_take(world, event)) {
        moon_ns next_ns = ring(self);
        if (world->failed)
            return moon_no_memory(error);
        if (world->event_count > 0)
            continue;
        if ((moon_ns)moon_now_ns() >= quiet_ns && next_ns == MOON_NS_NEVER) {
            *event = (struct moon_world_event){.kind = MOON_WORLD_QUIET};
            return 0;
        }
        moon_ns until_ns = next_ns < quiet_ns ? next_ns : quiet_ns;
        if (next_ns != MOON_NS_NEVER && until_ns == quiet_ns)
            until_ns = next_ns;
        int status = take_round(self, (uint64_t)until_ns, error);
        if (status != 0)
            return status;
    }
    return 0;
}

/* ---- the end ---- */

/* A master that goes on is left without segments of ours: clients take them back. */
static int close_clients(struct tcp_world *self, struct moon_error *error) {
    uint64_t deadline_ns = moon_now_ns() + (uint64_t)CLOSE_TIMEOUT_S * (uint64_t)MOON_NS_PER_S;
    int status = 0;
    for (size_t i = 1; i < self->world.scenario->node_count; i++) {
        struct moon_arena arena;
        if (!self->nodes[i].agent.alive || self->nodes[i].stopped)
            continue;
        moon_arena_open(&arena, self->world.setting.memory);
        struct moon_json *message = moon_json_object(&arena);
        moon_json_set(&arena, message, "do", moon_json_string(&arena, "store"));
        moon_json_set(&arena, message, "seq", moon_json_uint(&arena, ++self->seq));
        moon_json_set(&arena, message, "client", moon_json_string(&arena, name_of(self, i)));
        moon_json_set(&arena, message, "call", moon_json_string(&arena, "close"));
        moon_json_set(&arena, message, "args", moon_json_object(&arena));
        if (!moon_json_broken(message)) {
            moon_agent_say(&self->nodes[i].agent, message);
            self->closing++;
        }
        moon_arena_close(&arena);
    }
    while (status == 0 && self->closing > 0 && moon_now_ns() < deadline_ns)
        status = take_round(self, deadline_ns, error);
    return status;
}

/* In order: a program of ours that does not end well has failed. */
static int end_node(struct tcp_world *self, size_t index, struct moon_error *error) {
    struct tcp_node *node = &self->nodes[index];
    struct moon_arena arena;
    if (!node->agent.alive)
        return 0;
    bool stopped = node->stopped;
    moon_arena_open(&arena, self->world.setting.memory);
    if (stopped)
        kill(-node->agent.process.pid, SIGCONT);
    struct moon_json *message = moon_json_object(&arena);
    moon_json_set(&arena, message, "do", moon_json_string(&arena, "stop"));
    if (index == 0)
        kill(node->agent.process.pid, SIGTERM);
    else if (!moon_json_broken(message))
        moon_agent_say(&node->agent, message);
    if (index > 0)
        moon_process_send_end(&node->agent.process);
    moon_agent_end(&node->agent, GRACE_MS);
    moon_arena_close(&arena);
    if (is_foreign(&self->world.setting, index) || strcmp(node->agent.process.fate, "exit status 0") == 0)
        return 0;
    return fail_node(self, index, "did not end well", error);
}

static int read_file(struct tcp_world *self, const struct boot_file *file, struct moon_history *history,
                     struct moon_error *error) {
    struct moon_text content;
    char path[PATH_BYTES + 160];
    size_t before = history->count;
    moon_text_open(&content, self->world.setting.memory);
    snprintf(path, sizeof path, "%s/%s.%u.jsonl", self->folder, name_of(self, file->node), file->boot);
    int status = moon_io_read(path, MOON_JSON_INPUT_BYTES_MAX, &content, error);
    if (status == 0)
        status = moon_history_read(history, path, moon_text_value(&content), content.length, error);
    moon_text_close(&content);
    if (status == 0 && file->killed_ns > 0) {
        struct moon_bytes name = moon_bytes_of(name_of(self, file->node));
        struct moon_record fault = {.node = name,
                                    .clock = name,
                                    .boot = file->boot,
                                    .kind = MOON_RECORD_FAULT,
                                    .what = "kill",
                                    .time_ns = (moon_ns)file->killed_ns};
        if (history->count > before)
            fault.n = history->records[history->count - 1].n + 1;
        moon_history_add(history, &fault);
    }
    return status;
}

static int history(struct moon_world *world, struct moon_history *history, struct moon_error *error) {
    struct tcp_world *self = of(world);
    self->ending = true;
    int status = world->setting.master ? close_clients(self, error) : 0;
    for (size_t i = world->scenario->node_count; i > 0; i--) { /* the master last */
        int ended = end_node(self, i - 1, status == 0 ? error : &(struct moon_error){0});
        status = status == 0 ? ended : status;
    }
    for (size_t i = 0; i < self->file_count && status == 0; i++)
        status = read_file(self, &self->files[i], history, error);
    moon_outside_add(&self->outside, history);
    if (status == 0 && (history->failed || self->outside.records.failed))
        return moon_no_memory(error);
    return status == 0 ? moon_history_merge(history, error) : status;
}

static void remove_folder(struct tcp_world *self) {
    struct moon_arena arena;
    const char *const *paths = NULL;
    size_t count = 0;
    struct moon_error ignored;
    moon_arena_open(&arena, self->world.setting.memory);
    if (moon_io_list(&arena, self->folder, &paths, &count, &ignored) == 0)
        for (size_t i = 0; i < count; i++)
            unlink(paths[i]);
    rmdir(self->folder);
    moon_process_folder(self->folder, NULL);
    moon_arena_close(&arena);
}

static void close_world(struct moon_world *world) {
    struct tcp_world *self = of(world);
    struct moon_memory *memory = world->setting.memory;
    self->ending = true;
    for (size_t i = 0; i < world->scenario->node_count; i++) {
        moon_agent_end(&self->nodes[i].agent, 0);
        lose_calls(self, i);
    }
    if (self->own_folder)
        remove_folder(self);
    if (self->alarms)
        memory->resize(memory, self->alarms, self->alarm_capacity * sizeof *self->alarms, 0);
    moon_outside_close(&self->outside);
    moon_world_close(world);
    memory->resize(memory, self, sizeof *self, 0);
}

static int prepare_folder(struct tcp_world *self, struct moon_error *error) {
    const char *base = getenv("TMPDIR");
    if (self->world.setting.folder) {
        size_t length = strlen(self->world.setting.folder);
        if (length >= sizeof self->folder || strchr(self->world.setting.folder, '\''))
            return moon_fail(error, MOON_ERR_IO, self->world.setting.folder, "this is no usable folder name");
        memcpy(self->folder, self->world.setting.folder, length + 1);
        return 0;
    }
    snprintf(self->folder, sizeof self->folder, "%s/mooncheck-XXXXXX", base && strlen(base) < 200 ? base : "/tmp");
    if (!mkdtemp(self->folder))
        return moon_fail(error, MOON_ERR_IO, self->folder, "cannot make a temporary folder: %s", strerror(errno));
    self->own_folder = true;
    moon_process_folder(NULL, self->folder);
    return 0;
}

static int check_programs(const struct moon_world_setting *setting, struct moon_error *error) {
    static const char *const names[] = {"mooncheck-master", "mooncheck-client"};
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_BYTES];
        if (is_foreign(setting, i))
            continue;
        snprintf(path, sizeof path, "%s/%s", setting->programs, names[i]);
        if (!moon_io_is_program(path) || strchr(path, '\''))
            return moon_fail(error, MOON_ERR_IO, path, "this program is not there; --programs names its folder");
    }
    return 0;
}

static int open_world(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                      struct moon_world **world, struct moon_error *error) {
    struct moon_memory *memory = setting->memory;
    struct tcp_world *self = memory->resize(memory, NULL, 0, sizeof *self);
    *world = NULL;
    if (!self)
        return moon_no_memory(error);
    *self = (struct tcp_world){.file_count = 0};
    moon_outside_open(&self->outside, scenario, memory);
    int status = moon_world_open(&self->world, &moon_world_tcp, setting, scenario, error);
    if (status == 0)
        status = check_programs(setting, error);
    if (status == 0)
        status = prepare_folder(self, error);
    for (size_t i = 0; i < MOON_SCENARIO_NODES_MAX; i++)
        self->nodes[i].agent.control = -1;
    if (setting->master)
        snprintf(self->nodes[0].address, ADDRESS_BYTES, "%s", setting->master);
    *world = &self->world;
    if (status != 0) {
        close_world(*world);
        *world = NULL;
    }
    return status;
}

const struct moon_world_kind moon_world_tcp = {
    .name = "tcp",
    .virtual_time = false,
    .cannot = cannot,
    .open = open_world,
    .close = close_world,
    .boot = boot,
    .submit = submit,
    .act = act,
    .go = go,
    .wake = wake,
    .advance = advance,
    .history = history,
};
