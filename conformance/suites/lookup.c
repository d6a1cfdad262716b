/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup: what the scheduler side tells the core of a request, and what rank 0 asks the store for it. */
#include "conformance/suites/lookup.h"

#include "conformance/suites/refusal.h"
#include "ref/hash/digest.h"

enum { QUERIED_KEYS_MAX = 24 };

/* Everything that one function of the suite passes to the next.
 *   queried  keys of the call, each with a line feed before it; the first without */
struct call {
    struct moon_arena *arena;
    const struct moon_lookup_case *its;
    struct moon_text queried;
    size_t queried_count;
    struct moon_json *keys;
};

/* The store of the case: remembers what is asked, and answers. */
static int exist(void *context, const struct moon_store_call *asked, int64_t values[]) {
    struct call *call = context;
    for (size_t i = 0; i < asked->count; i++) {
        if (call->queried_count++ > 0)
            moon_text_char(&call->queried, '\n');
        size_t offset = call->queried.length;
        moon_key_list_write(asked->keys, asked->first + i, &call->queried);
        if (call->queried.failed)
            return MOON_ERR_MEMORY;
        const struct moon_key_text key = {call->queried.data + offset, call->queried.length - offset};
        values[i] = moon_lookup_case_answer(call->its, key);
        if (asked->count <= QUERIED_KEYS_MAX)
            moon_json_push(call->keys, moon_json_bytes(call->arena, key.bytes, key.length));
    }
    return call->its->raises ? MOON_ERR_IO : 0;
}

static struct moon_json *boundaries(const struct call *call, const struct moon_match *match) {
    struct moon_json *list = moon_json_array(call->arena);
    for (size_t group = 0; group < match->boundary_count; group++) {
        struct moon_json *pair = moon_json_push(list, moon_json_array(call->arena));
        moon_json_push(pair, moon_json_uint(call->arena, group));
        moon_json_push(pair, moon_json_int(call->arena, match->tail_boundaries[group]));
    }
    return list;
}

static struct moon_json *build(const struct call *call, const struct moon_match *match) {
    struct moon_arena *arena = call->arena;
    const struct moon_layout_model *model = &call->its->its.engine.model;
    struct moon_json *object = moon_json_object(arena);
    bool loads = match->tokens > 0;
    uint8_t digest[MOON_SHA256_BYTES];
    moon_sha256_of(moon_text_value(&call->queried), call->queried.length, digest);
    moon_json_set(arena, object, "scheduler_block_size", moon_json_int(arena, model->scheduler_block_tokens));
    moon_json_set(arena, object, "hash_block_size", moon_json_int(arena, model->hash_block_tokens));
    moon_json_set(arena, object, "new_matched_tokens", moon_json_int(arena, match->tokens));
    moon_json_set(arena, object, "load_async", moon_json_bool(arena, match->load_async));
    moon_json_set(arena, object, "hit_tokens", loads ? moon_json_int(arena, match->hit_tokens) : moon_json_null(arena));
    moon_json_set(arena, object, "queried_count", moon_json_uint(arena, call->queried_count));
    moon_json_set(arena, object, "queried_sha256", moon_json_hex(arena, digest, sizeof digest));
    if (call->queried_count <= QUERIED_KEYS_MAX)
        moon_json_set(arena, object, "queried_keys", call->keys);
    if (loads && call->its->its.connector.profile->lookup_rpc >= MOON_RPC_TAILS)
        moon_json_set(arena, object, "tail_key_boundaries", boundaries(call, match));
    return object;
}

static int ask(struct call *call, struct moon_json **built, struct moon_error *error) {
    struct moon_lookup_direct direct;
    struct moon_match match;
    int status = moon_lookup_case_ask(call->its, &direct, exist, call, call->arena->memory, &match, error);
    if (!status)
        *built = build(call, &match);
    moon_lookup_direct_close(&direct);
    return status;
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    struct moon_lookup_case its;
    struct moon_error failure;
    struct moon_json *built = NULL;
    int status = moon_lookup_case_read(arena, profile, source, given, &its, &failure);
    if (!status) {
        its.its.connector.notes = world ? world->notes : NULL;
        struct call call = {.arena = arena, .its = &its, .keys = moon_json_array(arena)};
        moon_text_open(&call.queried, arena->memory);
        status = ask(&call, &built, &failure);
        moon_text_close(&call.queried);
    }
    return moon_suite_end(arena, status, built, &failure, result, error);
}

static int explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    (void)world; /* as in answer */
    return moon_lookup_explain(arena, profile, source, given, out, error);
}

const struct moon_suite moon_suite_lookup = {"lookup", answer, explain, moon_lookup_draw, NULL};
