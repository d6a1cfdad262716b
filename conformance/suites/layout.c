/* SPDX-License-Identifier: Apache-2.0 */
/* Suite layout: which store layout an engine chooses, what each rank puts, and what a lookup asks for. */
#include "conformance/suites/layout.h"

#include "conformance/suites/refusal.h"
#include "ref/layout/lookup.h"
#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <string.h>

/* Everything that one function of the suite passes to the next. */
struct call {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const struct moon_layout_case *its;
    struct moon_text *key; /* scratch */
    struct moon_error *error;
};

/* Appends the key that was built in the scratch text to a list. */
static void push_key(const struct call *call, struct moon_json *list) {
    moon_json_push(
        list, call->key->failed ? NULL : moon_json_bytes(call->arena, moon_text_value(call->key), call->key->length));
    moon_text_clear(call->key);
}

/* ---- the whole engine ---- */

static struct moon_json *selected(const struct call *call) {
    const struct moon_store_selection *selection = &call->its->selection;
    struct moon_json *object = moon_json_object(call->arena);
    const char *layout = selection->space.format == MOON_STORE_SHARDED_LBHNC   ? "tp_shared_lbhnc"
                         : selection->space.format == MOON_STORE_SHARDED_LBNHC ? "tp_shared_lbnhc"
                                                                               : "rank_local";
    moon_json_set(call->arena, object, "layout", moon_json_string(call->arena, layout));
    moon_json_set(call->arena, object, "store_tp_size",
                  moon_store_sharded(selection) ? moon_json_int(call->arena, selection->space.store_tp)
                                                : moon_json_null(call->arena));
    moon_json_set(call->arena, object, "store_namespace", moon_json_string(call->arena, selection->text));
    return object;
}

static struct moon_json *prefixes(const struct call *call) {
    const struct moon_layout_model *model = &call->its->engine.model;
    struct moon_json *groups = moon_json_array(call->arena);
    for (size_t group = 0; group < model->group_count; group++) {
        struct moon_json *list = moon_json_push(groups, moon_json_array(call->arena));
        struct moon_namespaces walk;
        struct moon_pool_key key;
        moon_namespaces_open(&walk, call->profile, model, &call->its->selection, group);
        while (moon_namespaces_next(&walk, &key)) {
            moon_key_prefix(call->profile, &key, call->key);
            push_key(call, list);
        }
    }
    return groups;
}

/* Keys that rank 0 asks for when a request of one scheduler block and one token is looked up. */
static struct moon_json *first_block_keys(const struct call *call, int *status) {
    const struct moon_layout_case *its = call->its;
    const struct moon_layout_model *model = &its->engine.model;
    struct moon_json *keys = moon_json_array(call->arena);
    struct moon_key_list list;
    int64_t tokens = model->scheduler_block_tokens + 1;
    int64_t align = moon_fine_grained(call->profile, model) ? model->hash_block_tokens : model->scheduler_block_tokens;
    moon_key_list_open(&list, call->arena->memory);
    moon_lookup_keys(call->profile, model, &its->selection, &its->hashes, tokens / align * align, &list);
    call->key->failed |= list.failed;
    for (size_t i = 0; i < list.count && !list.failed; i++) {
        moon_key_list_write(&list, i, call->key);
        push_key(call, keys);
    }
    moon_key_list_close(&list);
    *status = moon_fine_check(call->profile, model, call->error);
    return call->key->failed ? NULL : keys;
}

/* ---- one rank ---- */

static struct moon_json *rank_puts(const struct call *call, const struct moon_rank *rank) {
    const struct moon_layout_case *its = call->its;
    struct moon_json *list = moon_json_array(call->arena);
    struct moon_puts walk;
    struct moon_put put;
    struct moon_error raised; /* the release logs it and puts nothing */
    if (strcmp(its->engine.kv_role, "kv_consumer") == 0 ||
        moon_puts_open(&walk, call->profile, &its->engine.model, &its->selection, rank, &its->save, &raised))
        return list;
    while (moon_puts_next(&walk, &put)) {
        const struct moon_pool_key key =
            moon_rank_key(call->profile, &its->engine.model, &its->selection, rank, put.group, put.shard);
        moon_chunk_key(call->profile, &key, &its->hashes, &put.chunk, call->key);
        push_key(call, list);
    }
    return list;
}

static struct moon_json *rank_group(const struct call *call, const struct moon_rank *rank, size_t group) {
    static const char sample_hash[] = "abababababababababababababababab";
    const struct moon_layout_case *its = call->its;
    const struct moon_layout_model *model = &its->engine.model;
    struct moon_json *object = moon_json_object(call->arena);
    struct moon_json *ids = moon_json_set(call->arena, object, "local_shard_ids", moon_json_array(call->arena));
    moon_json_set(call->arena, object, "replication_factor",
                  moon_json_int(call->arena, moon_replication_factor(call->profile, model, group)));
    struct moon_json *samples = moon_json_set(call->arena, object, "sample_keys", moon_json_array(call->arena));
    struct moon_shard_range shards = moon_local_shards(model, &its->selection, rank->tp);
    for (int64_t shard = shards.first; shard < shards.first + shards.count; shard++) {
        const struct moon_pool_key key = moon_rank_key(call->profile, model, &its->selection, rank, group, shard);
        moon_json_push(ids, moon_json_int(call->arena, shard));
        moon_key_build(call->profile, &key, moon_key_text(sample_hash), call->key);
        push_key(call, samples);
    }
    return object;
}

static struct moon_json *rank_answer(const struct call *call, int64_t number) {
    const struct moon_layout_model *model = &call->its->engine.model;
    struct moon_rank rank = moon_rank_at(model, number);
    struct moon_json *object = moon_json_object(call->arena);
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"rank", rank.rank},
                   {"tp_rank", rank.tp},
                   {"pcp_rank", rank.pcp},
                   {"dcp_rank", rank.dcp},
                   {"key_pp_rank", moon_rank_key(call->profile, model, &call->its->selection, &rank, 0, 0).pp_rank}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        moon_json_set(call->arena, object, numbers[i].name, moon_json_int(call->arena, numbers[i].value));
    moon_json_set(call->arena, object, "puts", rank_puts(call, &rank));
    if (!call->profile->store_namespace)
        return object;
    struct moon_json *groups = moon_json_set(call->arena, object, "groups", moon_json_array(call->arena));
    for (size_t group = 0; group < model->group_count; group++)
        moon_json_push(groups, rank_group(call, &rank, group));
    return object;
}

/* ---- the suite ---- */

static int build(const struct call *call, struct moon_json **result) {
    const struct moon_layout_model *model = &call->its->engine.model;
    struct moon_json *object = moon_json_object(call->arena);
    int status = 0;
    moon_json_set(call->arena, object, "scheduler_block_size",
                  moon_json_int(call->arena, model->scheduler_block_tokens));
    moon_json_set(call->arena, object, "hash_block_size", moon_json_int(call->arena, model->hash_block_tokens));
    if (call->profile->store_namespace) {
        moon_json_set(call->arena, object, "selected", selected(call));
        moon_json_set(call->arena, object, "lookup_key_prefixes", prefixes(call));
    }
    moon_json_set(call->arena, object, "lookup_keys_first_block", first_block_keys(call, &status));
    struct moon_json *ranks = moon_json_set(call->arena, object, "ranks", moon_json_array(call->arena));
    int64_t numbers[MOON_LAYOUT_RANKS_MAX];
    size_t count = moon_layout_ranks(model, numbers);
    for (size_t i = 0; i < count && !status; i++)
        moon_json_push(ranks, rank_answer(call, numbers[i]));
    *result = object;
    return status;
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    (void)world; /* a layout depends on nothing outside the case */
    struct moon_layout_case its;
    struct moon_error failure;
    struct moon_json *built = NULL;
    int status = moon_layout_case_read(arena, profile, source, given, &its, &failure);
    if (!status) {
        struct moon_text key;
        moon_text_open(&key, arena->memory);
        const struct call call = {arena, profile, &its, &key, &failure};
        status = build(&call, &built);
        moon_text_close(&key);
    }
    return moon_suite_end(arena, status, built, &failure, result, error);
}

static int explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    (void)world; /* as in answer */
    const struct moon_layout_view view = {.rank = -1, .content_bytes = 1};
    return moon_layout_explain(arena, profile, source, given, &view, out, error);
}

const struct moon_suite moon_suite_layout = {"layout", answer, explain, moon_layout_draw, NULL};
