/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: which gets each rank makes for the hit of one request, and what it reports of failed ones. */
#include "conformance/suites/load_case.h"

#include "conformance/suites/refusal.h"

/* The answer while it is built. */
struct building {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    struct moon_json *answer, *ranks;
    struct moon_json *calls; /* of the present rank */
    struct moon_text key;    /* scratch */
};

static void set_int(const struct building *building, struct moon_json *object, const char *name, int64_t value) {
    moon_json_set(building->arena, object, name, moon_json_int(building->arena, value));
}

static void matched(void *context, const struct moon_match *match) {
    const struct building *building = context;
    set_int(building, building->answer, "new_matched_tokens", match->tokens);
    moon_json_set(building->arena, building->answer, "load_async", moon_json_bool(building->arena, match->load_async));
}

static void begins(void *context, const struct moon_rank *rank, const struct moon_segments *segments,
                   const struct moon_job *job) {
    struct building *building = context;
    struct moon_json *object = moon_json_push(building->ranks, moon_json_object(building->arena));
    (void)segments;
    (void)job; /* a rank has one */
    set_int(building, object, "rank", rank->rank);
    building->calls = moon_json_set(building->arena, object, "get_calls", moon_json_array(building->arena));
}

/* [tensor, offset, size] for each segment of a key. */
static struct moon_json *key_buffers(const struct building *building, const struct moon_store_call *call, size_t key) {
    struct moon_json *list = moon_json_array(building->arena);
    for (size_t i = key * call->buffers_per_key; i < (key + 1) * call->buffers_per_key; i++) {
        struct moon_json *buffer = moon_json_push(list, moon_json_array(building->arena));
        moon_json_push(buffer, moon_json_uint(building->arena, call->buffers[i].storage));
        moon_json_push(buffer, moon_json_uint(building->arena, call->buffers[i].offset_bytes));
        moon_json_push(buffer, moon_json_uint(building->arena, call->buffers[i].size_bytes));
    }
    return list;
}

static void called(void *context, const struct moon_store_call *call, const int64_t *results) {
    struct building *building = context;
    struct moon_arena *arena = building->arena;
    if (call->kind != MOON_CALL_GET)
        return;
    struct moon_json *object = moon_json_push(building->calls, moon_json_object(arena));
    struct moon_json *keys = moon_json_set(arena, object, "keys", moon_json_array(arena));
    struct moon_json *buffers = moon_json_set(arena, object, "buffers", moon_json_array(arena));
    struct moon_json *values =
        moon_json_set(arena, object, "results", results ? moon_json_array(arena) : moon_json_null(arena));
    for (size_t i = 0; i < call->count; i++) {
        moon_text_clear(&building->key);
        moon_key_list_write(call->keys, call->first + i, &building->key);
        moon_json_push(keys, building->key.failed
                                 ? NULL
                                 : moon_json_bytes(arena, moon_text_value(&building->key), building->key.length));
        moon_json_push(buffers, key_buffers(building, call, i));
        if (results)
            moon_json_push(values, moon_json_int(arena, results[i]));
    }
}

/* Adds a list of reports. A release that cannot be asked for them has none, and only strict mode makes some. */
static void set_reports(const struct building *building, const char *name, bool asked, struct moon_json *list) {
    if (asked || !list || list->count > 0)
        moon_json_set(building->arena, building->ranks ? building->ranks->last : NULL, name, list);
}

/* What get_finished and its relatives tell. */
static void ended(void *context, const struct moon_rank *rank, struct moon_receiver *receiver) {
    const struct building *building = context;
    struct moon_arena *arena = building->arena;
    struct moon_json *blocks = moon_json_array(arena), *requests = moon_json_array(arena);
    uint64_t block;
    uint32_t slot;
    (void)rank;
    while (moon_receiver_take_failed_block(receiver, &block))
        moon_json_push(blocks, moon_json_uint(arena, block));
    while (moon_receiver_take_failed_request(receiver, &slot))
        moon_json_push(requests, moon_json_string(arena, "r")); /* the one request of a case */
    set_reports(building, "invalid_block_ids", building->profile->block_errors_asked, blocks);
    set_reports(building, "failed_requests", building->profile->request_errors_asked, requests);
}

static int build(struct building *building, const char *source, const struct moon_json *given,
                 struct moon_load_case *its, struct moon_error *error) {
    const struct moon_layout_model *model = &its->connector.engine.model;
    const struct moon_load_watch watch = {building, matched, begins, called, ended};
    set_int(building, building->answer, "scheduler_block_size", model->scheduler_block_tokens);
    set_int(building, building->answer, "hash_block_size", model->hash_block_tokens);
    building->ranks = moon_json_array(building->arena);
    int status = moon_load_run(building->arena, source, given, its, &watch, error);
    moon_json_set(building->arena, building->answer, "ranks", building->ranks);
    struct moon_json *tensors =
        moon_json_set(building->arena, building->answer, "tensors", moon_json_array(building->arena));
    for (size_t i = 0; i < its->storage_count; i++)
        moon_json_push(tensors, moon_json_string(building->arena, its->tensors[i]));
    return status;
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    struct moon_load_case its = {0};
    struct moon_error failure = {0};
    struct building building = {.arena = arena, .profile = profile, .answer = moon_json_object(arena)};
    int status = moon_load_case_read(arena, profile, source, given, &its, &failure);
    moon_text_open(&building.key, arena->memory);
    if (!status) {
        its.connector.connector.notes = world ? world->notes : NULL;
        status = build(&building, source, given, &its, &failure);
    }
    moon_text_close(&building.key);
    return moon_suite_end(arena, status, building.answer, &failure, result, error);
}

const struct moon_suite moon_suite_load = {"load", answer, moon_load_explain, moon_load_draw, NULL};
