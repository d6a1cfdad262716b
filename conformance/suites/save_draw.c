/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save: drawing cases. An engine, a few requests that share prefixes, steps that a core could make, and a store
 * that holds some of the keys and refuses others. */
#include "conformance/suites/core_draw.h"
#include "conformance/suites/engine_draw.h"
#include "conformance/suites/save.h"
#include "conformance/suites/save_run.h"

#include <stdio.h>

enum { STEPS_MAX = 14, TOKENS_MAX = 420, KEYS_MAX = 4096, HASH_BYTES = 16 };

/* Drawing under way. The keys are those that the case asks for when the store is empty. */
struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given;
    struct moon_save_observer observer; /* of the run that finds the keys */
    struct moon_json *keys;             /* an array */
};

/* ---- engine and options ---- */

static void set_bool(const struct drawing *drawing, struct moon_json *object, const char *name, bool value) {
    moon_json_set(drawing->arena, object, name, moon_json_bool(drawing->arena, value));
}

/* An engine whose store is shared between TP sizes, or is asked to be: one full attention group, and few or many heads.
 */
static void draw_shared(const struct drawing *drawing) {
    static const int64_t tps[] = {1, 2, 2, 4}, heads[] = {1, 4, 8, 8, 16, 6}, blocks[] = {16, 16, 8, 32};
    struct moon_arena *arena = drawing->arena;
    struct moon_json *topology = moon_json_set(arena, drawing->given, "topology", moon_json_object(arena));
    int64_t tp = tps[moon_random_below(drawing->random, sizeof tps / sizeof tps[0])],
            size = tp << moon_random_below(drawing->random, 3);
    moon_json_set(arena, topology, "tp", moon_json_int(arena, tp));
    moon_json_set(arena, topology, "pp", moon_json_int(arena, 1 + moon_random_chance(drawing->random, 1, 4)));
    moon_json_set(arena, drawing->given, "total_kv_heads",
                  moon_json_int(arena, heads[moon_random_below(drawing->random, sizeof heads / sizeof heads[0])]));
    struct moon_json *groups = moon_json_set(arena, drawing->given, "groups", moon_json_array(arena));
    struct moon_json *group = moon_json_push(groups, moon_json_object(arena));
    moon_json_set(arena, group, "kind", moon_json_string(arena, "full"));
    moon_json_set(arena, group, "block_size",
                  moon_json_int(arena, blocks[moon_random_below(drawing->random, sizeof blocks / sizeof blocks[0])]));
    if (moon_random_chance(drawing->random, 1, 4))
        set_bool(drawing, drawing->given, "speculative", true);
    struct moon_json *extra = moon_json_set(arena, drawing->given, "extra_config", moon_json_object(arena));
    if (moon_random_chance(drawing->random, 1, 2)) {
        moon_json_set(arena, extra, "store_tp_size", moon_json_int(arena, size));
    } else {
        struct moon_json *sizes = moon_json_set(arena, extra, "prefill_tp_sizes", moon_json_array(arena));
        set_bool(drawing, extra, "enable_store_tp_lcm", true);
        moon_json_push(sizes, moon_json_int(arena, tp));
        moon_json_push(sizes, moon_json_int(arena, size));
    }
    moon_json_set(arena, drawing->given, "kv_cache_layout",
                  moon_json_string(arena, moon_random_chance(drawing->random, 1, 2) ? "LBNHC" : "LBHNC"));
    moon_json_set(arena, drawing->given, "model", moon_json_string(arena, "org/model-x"));
    moon_json_set(arena, drawing->given, "num_gpu_blocks", moon_json_int(arena, 4096));
}

static void draw_engine(const struct drawing *drawing) {
    const struct moon_engine_limits limits = {.world_max = moon_random_chance(drawing->random, 1, 6) ? 8 : 4,
                                              .groups_max = 3};
    if (drawing->profile->store_namespace && moon_random_chance(drawing->random, 1, 6))
        draw_shared(drawing);
    else
        moon_engine_draw(drawing->arena, drawing->random, drawing->profile, &limits, drawing->given);
}

static void draw_options(const struct drawing *drawing) {
    static const char *const roles[] = {"kv_both", "kv_both", "kv_both", "kv_producer", "kv_consumer"};
    static const char *const truths[] = {"true", " True ", "false", "1"};
    const struct moon_profile *profile = drawing->profile;
    struct moon_json *extra = moon_json_member(drawing->given, "extra_config");
    const char *role = roles[moon_random_below(drawing->random, sizeof roles / sizeof roles[0])];
    moon_json_set(drawing->arena, drawing->given, "kv_role", moon_json_string(drawing->arena, role));
    if (profile->option_save_decode &&
        (role[3] == 'c' ? !moon_random_chance(drawing->random, 1, 8) : moon_random_chance(drawing->random, 1, 3)))
        set_bool(drawing, extra, "save_decode_cache", !moon_random_chance(drawing->random, 1, 8));
    if (profile->option_enable_lookup && moon_random_chance(drawing->random, 1, 12))
        set_bool(drawing, extra, "enable_lookup", false);
    if (profile->mooncake_group_id && moon_random_chance(drawing->random, 1, 6))
        moon_json_set(drawing->arena, extra, "enable_group_semantics",
                      moon_json_string(drawing->arena,
                                       truths[moon_random_below(drawing->random, sizeof truths / sizeof truths[0])]));
    if (profile->option_discard && moon_random_chance(drawing->random, 1, 3))
        set_bool(drawing, extra, "discard_partial_chunks", !moon_random_chance(drawing->random, 1, 3));
}

/* 0.29 on: a retention interval is a multiple of the scheduler block. */
static void draw_retention(const struct drawing *drawing, const struct moon_layout_model *model) {
    if (drawing->profile->windows_sparse && moon_random_chance(drawing->random, 1, 3))
        moon_json_set(drawing->arena, drawing->given, "retention_interval",
                      moon_json_int(drawing->arena,
                                    (int64_t)moon_random_below(drawing->random, 4) * model->scheduler_block_tokens));
}

/* ---- requests and steps ---- */

/* Length of a prompt: near multiples of a block, where one token decides. */
static int64_t draw_prompt(const struct drawing *drawing, const struct moon_layout_model *model) {
    int64_t unit = moon_random_chance(drawing->random, 1, 2) ? model->scheduler_block_tokens : model->hash_block_tokens;
    int64_t most = TOKENS_MAX / unit > 0 ? TOKENS_MAX / unit : 1;
    int64_t tokens = (int64_t)moon_random_below(drawing->random, (uint64_t)(most < 8 ? most : 8) + 1) * unit;
    if (moon_random_chance(drawing->random, 1, 3))
        tokens += (int64_t)moon_random_below(drawing->random, (uint64_t)unit);
    else
        tokens += (int64_t)moon_random_below(drawing->random, 3) - 1;
    return tokens > 0 ? tokens : 1;
}

static void draw_core(const struct drawing *drawing, const struct moon_connector *connector,
                      struct moon_drawn_core *core) {
    static const int64_t drafts[] = {0, 0, 0, 1, 3, 3, 9, 20};
    *core = (struct moon_drawn_core){
        .arena = drawing->arena, .random = drawing->random, .connector = connector, .next_block = 1};
    core->request_count =
        1 + (size_t)moon_random_below(drawing->random,
                                      moon_random_chance(drawing->random, 1, 3) ? MOON_CORE_REQUESTS_MAX : 2);
    for (size_t i = 0; i < core->request_count; i++) {
        struct moon_drawn_request *request = &core->requests[i];
        snprintf(request->name, sizeof request->name, "r%zu", i);
        request->prompt_tokens = request->known_tokens = draw_prompt(drawing, connector->model);
        request->draft_tokens = drafts[moon_random_below(drawing->random, sizeof drafts / sizeof drafts[0])];
    }
}

/* Hashes of all that a request ever knows; a part of the first request's, or none, come first. */
static void add_request(const struct drawing *drawing, struct moon_json *requests, const struct moon_drawn_request *its,
                        int64_t hash_tokens) {
    const struct moon_json *first = requests ? requests->first : NULL;
    const struct moon_json *shared = first ? moon_json_member(first, "block_hashes")->first : NULL;
    struct moon_json *request = moon_json_set(drawing->arena, requests, its->name, moon_json_object(drawing->arena));
    moon_json_set(drawing->arena, request, "prompt_len", moon_json_int(drawing->arena, its->prompt_tokens));
    struct moon_json *hashes = moon_json_set(drawing->arena, request, "block_hashes", moon_json_array(drawing->arena));
    for (int64_t i = its->known_tokens / hash_tokens; i > 0; i--) {
        uint8_t bytes[HASH_BYTES];
        shared = moon_random_chance(drawing->random, 1, 6) ? NULL : shared;
        if (shared) {
            moon_json_push(hashes, moon_json_clone(drawing->arena, shared));
            shared = shared->next;
            continue;
        }
        moon_random_fill(drawing->random, bytes, sizeof bytes);
        moon_json_push(hashes, moon_json_hex(drawing->arena, bytes, sizeof bytes));
    }
}

static void draw_steps(const struct drawing *drawing, const struct moon_connector *connector) {
    struct moon_json *requests =
        moon_json_set(drawing->arena, drawing->given, "requests", moon_json_object(drawing->arena));
    struct moon_json *steps = moon_json_set(drawing->arena, drawing->given, "steps", moon_json_array(drawing->arena));
    struct moon_drawn_core core;
    draw_core(drawing, connector, &core);
    for (uint64_t i = 2 + moon_random_below(drawing->random, STEPS_MAX - 1); i > 0; i--)
        moon_drawn_core_step(&core, steps);
    for (size_t i = 0; i < core.request_count; i++)
        add_request(drawing, requests, &core.requests[i], connector->model->hash_block_tokens);
}

/* ---- the store ---- */

static void find_keys(struct moon_save_observer *self, int64_t rank, const struct moon_store_call *call,
                      const int64_t *results) {
    struct drawing *drawing = (struct drawing *)((char *)self - offsetof(struct drawing, observer));
    (void)rank;
    (void)results;
    for (size_t i = 0; call->kind == MOON_CALL_PUT && i < call->count && drawing->keys; i++) {
        struct moon_text key;
        moon_text_open(&key, drawing->arena->memory);
        moon_key_list_write(call->keys, call->first + i, &key);
        if (drawing->keys->count < KEYS_MAX)
            moon_json_push(drawing->keys, moon_json_string(drawing->arena, key.failed ? NULL : moon_text_value(&key)));
        moon_text_close(&key);
    }
}

/* Holes in what is there, and codes of puts that fail: no room, other errors, and a success that is not 0. */
static void draw_store(struct drawing *drawing) {
    static const int64_t codes[] = {-200, -200, -200, -1, -600, -800, 7};
    struct moon_json *existing =
        moon_json_set(drawing->arena, drawing->given, "existing_keys", moon_json_array(drawing->arena));
    struct moon_json *results =
        moon_json_set(drawing->arena, drawing->given, "put_results", moon_json_object(drawing->arena));
    uint64_t share = moon_random_chance(drawing->random, 1, 2) ? 0 : 1 + moon_random_below(drawing->random, 4),
             failing = moon_random_chance(drawing->random, 1, 2) ? 0 : 1 + moon_random_below(drawing->random, 3);
    uint64_t count = drawing->keys ? drawing->keys->count : 0;
    for (const struct moon_json *key = count ? drawing->keys->first : NULL; key; key = key->next) {
        if (share && moon_random_below(drawing->random, 5) < share)
            moon_json_push(existing, moon_json_clone(drawing->arena, key));
        else if (failing && moon_random_below(drawing->random, count) < failing &&
                 !moon_json_member(results, key->bytes))
            moon_json_set(drawing->arena, results, key->bytes,
                          moon_json_int(drawing->arena,
                                        codes[moon_random_below(drawing->random, sizeof codes / sizeof codes[0])]));
    }
}

/* Reads the engine, and if the release takes it, draws what depends on it. */
static int draw_rest(struct drawing *drawing) {
    struct moon_connector_case its;
    struct moon_save_case *save = moon_arena_alloc(drawing->arena, sizeof *save);
    struct moon_save_outcome outcome;
    struct moon_error error;
    int status = save ? 0 : MOON_ERR_MEMORY;
    if (!status)
        status = moon_connector_case_read(drawing->arena, drawing->profile, "drawn", drawing->given, &its, &error);
    if (status)
        return status;
    draw_retention(drawing, its.connector.model);
    draw_steps(drawing, &its.connector);
    if (moon_json_broken(drawing->given))
        return MOON_ERR_MEMORY;
    status = moon_save_case_read(drawing->arena, drawing->profile, "drawn", drawing->given, save, &error);
    if (!status)
        status = moon_save_run(drawing->arena, save, &drawing->observer, &outcome, &error);
    if (!status)
        draw_store(drawing);
    return status;
}

int moon_save_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given) {
    struct drawing drawing = {.arena = arena,
                              .random = random,
                              .profile = profile,
                              .given = moon_json_object(arena),
                              .observer = {.called = find_keys},
                              .keys = moon_json_array(arena)};
    draw_engine(&drawing);
    draw_options(&drawing);
    if (moon_json_broken(drawing.given))
        return MOON_ERR_MEMORY;
    /* What a release refuses is a case, too. */
    if (draw_rest(&drawing) == MOON_ERR_MEMORY || moon_json_broken(drawing.given) || moon_json_broken(drawing.keys))
        return MOON_ERR_MEMORY;
    *given = drawing.given;
    return 0;
}
