/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: random loads, with a preference for lengths and sizes at which a get ends, and for keys that fail. */
#include "conformance/suites/engine_draw.h"
#include "conformance/suites/load_case.h"
#include "ref/config/environment.h"

#include <stdio.h>

enum { TRIES = 16, HASH_BYTES = 16, UNITS_MAX = 24, KEYS_MAX = 512, BLOCKS = 4096 };

/* Drawing under way. The keys are those that the ranks of the case read when nothing fails.
 *   cost  staging bytes of one of them;  most  keys of one rank */
struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given;
    struct moon_connector_case its;
    struct moon_json *keys;
    struct moon_text key; /* scratch */
    uint64_t bytes, cost, most;
    int64_t tokens, hit;
};

#define PICK(drawing, list) (list)[moon_random_below((drawing)->random, sizeof(list) / sizeof((list)[0]))]

static void set(const struct drawing *drawing, const char *name, struct moon_json *value) {
    moon_json_set(drawing->arena, drawing->given, name, value);
}

static void set_int(const struct drawing *drawing, const char *name, int64_t value) {
    set(drawing, name, moon_json_int(drawing->arena, value));
}

/* ---- the engine ---- */

static void draw_options(const struct drawing *drawing) {
    static const char *const roles[] = {"kv_both", "kv_both", "kv_producer", "kv_consumer"};
    set(drawing, "kv_role", moon_json_string(drawing->arena, PICK(drawing, roles)));
    moon_engine_draw_options(drawing->arena, drawing->random, 24, drawing->given);
}

/* Gives some groups several layers. False if two groups would have layers of the same name. */
static bool draw_layers(const struct drawing *drawing) {
    const struct moon_json *groups = moon_json_member(drawing->given, "groups");
    size_t uniform = 0;
    for (struct moon_json *group = groups ? groups->first : NULL; group; group = group->next) {
        if (moon_json_member(group, "inner"))
            uniform++;
        else if (moon_random_chance(drawing->random, 1, 4))
            moon_json_set(drawing->arena, group, "num_layers",
                          moon_json_uint(drawing->arena, 2 + moon_random_below(drawing->random, 2)));
    }
    return uniform < 2;
}

/* An engine whose store is TP-sharded, or has one KV head for all. */
static void draw_shared_engine(const struct drawing *drawing) {
    static const char *const layouts[] = {"LBHNC", "LBHNC", "LBNHC"};
    uint64_t tp = UINT64_C(1) << moon_random_below(drawing->random, 3),
             per_rank = UINT64_C(1) << moon_random_below(drawing->random, 3);
    uint64_t store_tp = tp * per_rank, heads = moon_random_chance(drawing->random, 1, 4)
                                                   ? 1
                                                   : store_tp * (1 + moon_random_below(drawing->random, 2));
    struct moon_json *topology = moon_json_object(drawing->arena), *group = moon_json_object(drawing->arena),
                     *groups = moon_json_array(drawing->arena), *extra = moon_json_object(drawing->arena);
    moon_json_set(drawing->arena, topology, "tp", moon_json_uint(drawing->arena, tp));
    moon_json_set(drawing->arena, topology, "pp",
                  moon_json_uint(drawing->arena, moon_random_chance(drawing->random, 1, 4) ? 2 : 1));
    moon_json_set(drawing->arena, group, "kind", moon_json_string(drawing->arena, "full"));
    moon_json_set(drawing->arena, group, "block_size",
                  moon_json_uint(drawing->arena, moon_random_chance(drawing->random, 1, 3) ? 8 : 16));
    moon_json_push(groups, group);
    moon_json_set(drawing->arena, extra, "store_tp_size", moon_json_uint(drawing->arena, store_tp));
    set(drawing, "topology", topology);
    set(drawing, "total_kv_heads", moon_json_uint(drawing->arena, heads));
    set(drawing, "groups", groups);
    set(drawing, "extra_config", extra);
    set(drawing, "kv_cache_layout", moon_json_string(drawing->arena, PICK(drawing, layouts)));
    set(drawing, "model", moon_json_string(drawing->arena, "m"));
}

/* Draws until the release runs the engine; at last the engine without any member. */
static int draw_engine(struct drawing *drawing) {
    const struct moon_engine_limits limits = {.world_max = moon_random_chance(drawing->random, 1, 4) ? 8 : 4,
                                              .groups_max = 3};
    struct moon_error error = {0};
    for (int i = 0; i < TRIES; i++) {
        drawing->given = moon_json_object(drawing->arena);
        if (drawing->profile->store_namespace && moon_random_chance(drawing->random, 1, 6))
            draw_shared_engine(drawing);
        else
            moon_engine_draw(drawing->arena, drawing->random, drawing->profile, &limits, drawing->given);
        draw_options(drawing);
        bool fits = draw_layers(drawing);
        if (moon_json_broken(drawing->given))
            return MOON_ERR_MEMORY;
        int status =
            moon_connector_case_read(drawing->arena, drawing->profile, "drawn", drawing->given, &drawing->its, &error);
        if (status == MOON_ERR_MEMORY || (status == 0 && fits))
            return status;
    }
    drawing->given = moon_json_object(drawing->arena);
    return drawing->given ? moon_connector_case_read(drawing->arena, drawing->profile, "drawn", drawing->given,
                                                     &drawing->its, &error)
                          : MOON_ERR_MEMORY;
}

/* ---- the request ---- */

/* A prefix in the store, a prompt that goes on after it or ends with it, and a shorter prefix in the engine. */
static void draw_lengths(struct drawing *drawing) {
    const struct moon_layout_model *model = &drawing->its.engine.model;
    int64_t unit = model->hash_block_tokens, block = model->scheduler_block_tokens;
    int64_t chunks = UNITS_MAX / (block / unit);
    int64_t stored = (int64_t)(1 + moon_random_below(drawing->random, (uint64_t)(chunks > 1 ? chunks : 1))) * block;
    if (moon_random_chance(drawing->random, 1, 3))
        stored -= (int64_t)moon_random_below(drawing->random, (uint64_t)block);
    drawing->hit = stored;
    drawing->tokens = stored + (int64_t)moon_random_below(drawing->random, (uint64_t)block + 1);
    if (moon_random_chance(drawing->random, 1, 3))
        drawing->tokens = stored + PICK(drawing, ((const int64_t[]){0, 0, 1, -1, unit, block}));
    drawing->tokens = drawing->tokens > 0 ? drawing->tokens : 1;
    set_int(drawing, "hit_tokens_in_store", stored);
    set_int(drawing, "num_tokens", drawing->tokens);
    int64_t computed = 0;
    if (moon_random_chance(drawing->random, 1, 2))
        computed = (int64_t)moon_random_below(drawing->random, (uint64_t)(stored / block) + 1) * block;
    if (moon_random_chance(drawing->random, 1, 4)) /* the engine's own fine-grained hits */
        computed = (int64_t)moon_random_below(drawing->random, (uint64_t)(stored / unit) + 1) * unit;
    set_int(drawing, "num_computed_tokens", computed < drawing->tokens ? computed : 0);
}

static void draw_hashes(const struct drawing *drawing) {
    struct moon_json *list = moon_json_array(drawing->arena);
    for (int64_t i = 0; i < drawing->tokens / drawing->its.engine.model.hash_block_tokens; i++) {
        uint8_t bytes[HASH_BYTES];
        moon_random_fill(drawing->random, bytes, sizeof bytes);
        moon_json_push(list, moon_json_hex(drawing->arena, bytes, sizeof bytes));
    }
    set(drawing, "block_hashes", list);
}

/* Tables for the whole prompt: a block is anywhere, and windows have let go of their first ones. */
static void draw_tables(const struct drawing *drawing) {
    const struct moon_layout_model *model = &drawing->its.engine.model;
    struct moon_json *lists = moon_json_array(drawing->arena);
    for (size_t group = 0; group < model->group_count; group++) {
        struct moon_json *list = moon_json_push(lists, moon_json_array(drawing->arena));
        const struct moon_layout_group *its = &model->groups[group];
        int64_t gone = 0;
        if (moon_spec_is_window(&its->spec))
            gone = (drawing->hit - its->spec.window_tokens) / its->block_tokens;
        for (int64_t i = 0; i < moon_ceil_divide(drawing->tokens, its->block_tokens); i++)
            moon_json_push(list, moon_json_uint(drawing->arena,
                                                i < gone ? 0 : 1 + moon_random_below(drawing->random, BLOCKS - 1)));
    }
    set(drawing, "block_ids", lists);
}

/* Bytes of a page: small, or so that the keys come near the staging limits. A TP-sharded page is cut into cells. */
static void draw_page(const struct drawing *drawing, uint64_t layers) {
    static const uint64_t small[] = {512, 1024, 1024, 4096, 4095, 4097, 1000, 12288};
    static const int64_t around[] = {-4096, -1, 0, 0, 1, 4096};
    const struct moon_layout_model *model = &drawing->its.engine.model;
    uint64_t page = PICK(drawing, small), limit = MOON_DISK_STAGING_BYTES;
    if (moon_random_chance(drawing->random, 1, 3)) {
        limit = moon_random_chance(drawing->random, 1, 2) ? limit : limit / 10 * 9;
        limit /= moon_random_chance(drawing->random, 1, 2) ? 1 + moon_random_below(drawing->random, 4)
                                                           : 1; /* several of them fit */
        page = (uint64_t)((int64_t)(limit - 8192) + PICK(drawing, around)) / layers;
    }
    uint64_t cells = (uint64_t)(model->total_kv_heads * model->groups[0].block_tokens);
    if (moon_store_sharded(&drawing->its.connector.selection))
        page = (page / cells ? page / cells : 1) * cells;
    else if (drawing->profile->segment_rule == MOON_SEGMENTS_PER_LAYER)
        page = page / (uint64_t)model->groups[0].block_tokens * (uint64_t)model->groups[0].block_tokens;
    set_int(drawing, "page_bytes", (int64_t)(page ? page : cells));
}

/* ---- what is read, and what becomes of it ---- */

static void collect(void *context, const struct moon_store_call *call, const int64_t *results) {
    struct drawing *drawing = context;
    (void)results;
    const struct moon_staging_keys keys = {call->buffers, call->buffers_per_key, call->count};
    drawing->bytes = moon_staging_data_bytes(&keys, 0);
    drawing->cost = moon_staging_cost_bytes(&keys, 0);
    drawing->most = call->count > drawing->most ? call->count : drawing->most;
    for (size_t i = 0; i < call->count && drawing->keys->count < KEYS_MAX; i++) {
        moon_text_clear(&drawing->key);
        moon_key_list_write(call->keys, call->first + i, &drawing->key);
        moon_json_push(drawing->keys, drawing->key.failed
                                          ? NULL
                                          : moon_json_bytes(drawing->arena, drawing->key.data, drawing->key.length));
    }
}

/* Runs the case as it is so far: without offloading a rank makes one get of everything. */
static int find_keys(struct drawing *drawing) {
    struct moon_load_case its = {0};
    struct moon_error error = {0};
    const struct moon_load_watch watch = {.context = drawing, .called = collect};
    drawing->keys = moon_json_array(drawing->arena);
    if (!drawing->keys || moon_json_broken(drawing->given))
        return MOON_ERR_MEMORY;
    int status = moon_load_case_read(drawing->arena, drawing->profile, "drawn", drawing->given, &its, &error);
    if (!status)
        status = moon_load_run(drawing->arena, "drawn", drawing->given, &its, &watch, &error);
    return status == MOON_ERR_REFUSED ? 0 : status;
}

/* A ratio that lets some keys of a get fit, or just not. */
static const char *draw_ratio(const struct drawing *drawing) {
    static const char *const texts[] = {"0.9", "1", "0.5", "1e-9", "0", "2", " 0.25 "};
    static const int64_t around[] = {-4096, -1, 0, 0, 1, 4095};
    if (moon_random_chance(drawing->random, 1, 4) || drawing->cost == 0)
        return PICK(drawing, texts);
    int64_t bytes =
        (int64_t)(drawing->cost * (1 + moon_random_below(drawing->random, drawing->most + 1))) + PICK(drawing, around);
    return moon_arena_format(drawing->arena, "%.17g", (double)bytes / MOON_DISK_STAGING_BYTES);
}

static void draw_store(const struct drawing *drawing) {
    struct moon_json *config = moon_json_object(drawing->arena), *env = moon_json_object(drawing->arena);
    moon_json_set(drawing->arena, config, "metadata_server", moon_json_string(drawing->arena, "P2PHANDSHAKE"));
    moon_json_set(drawing->arena, config, "master_server_address", moon_json_string(drawing->arena, "127.0.0.1:1"));
    moon_json_set(drawing->arena, config, "protocol", moon_json_string(drawing->arena, "tcp"));
    if (drawing->profile->config_mode && !moon_random_chance(drawing->random, 1, 3)) {
        struct moon_json *value = moon_random_chance(drawing->random, 1, 12) ? moon_json_string(drawing->arena, "false")
                                  : moon_random_chance(drawing->random, 1, 12)
                                      ? moon_json_int(drawing->arena, (int64_t)moon_random_below(drawing->random, 2))
                                      : moon_json_bool(drawing->arena, true);
        moon_json_set(drawing->arena, config, "enable_offload", value);
    }
    if (drawing->profile->batches_split && !moon_random_chance(drawing->random, 1, 3))
        moon_json_set(drawing->arena, env, "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO",
                      moon_json_string(drawing->arena, draw_ratio(drawing)));
    set(drawing, "store_config", config);
    set(drawing, "env", env);
}

static int64_t draw_result(const struct drawing *drawing) {
    static const int64_t codes[] = {-1, -1, -704, -800, -5, -200, INT32_MIN, 0, 1};
    if (!moon_random_chance(drawing->random, 1, 4))
        return PICK(drawing, codes);
    return (int64_t)drawing->bytes + PICK(drawing, ((const int64_t[]){-1, 0, 1, 4096}));
}

static void draw_failures(const struct drawing *drawing) {
    struct moon_json *results = moon_json_object(drawing->arena);
    const struct moon_json *keys = drawing->keys;
    uint64_t count = moon_random_chance(drawing->random, 1, 3)   ? 0
                     : moon_random_chance(drawing->random, 1, 8) ? keys->count
                                                                 : 1 + moon_random_below(drawing->random, 3);
    for (uint64_t i = 0; i < count && keys->count > 0; i++) {
        const struct moon_json *key = moon_json_at(keys, moon_random_below(drawing->random, keys->count));
        if (moon_json_member(results, key->bytes) == NULL)
            moon_json_set(drawing->arena, results, key->bytes, moon_json_int(drawing->arena, draw_result(drawing)));
    }
    set(drawing, "get_results", results);
    set(drawing, "get_raises_on_call",
        moon_random_chance(drawing->random, 1, 5)
            ? moon_json_uint(drawing->arena, moon_random_below(drawing->random, 4))
            : moon_json_null(drawing->arena));
}

static uint64_t count_layers(const struct drawing *drawing) {
    const struct moon_json *groups = moon_json_member(drawing->given, "groups");
    uint64_t layers = 0;
    for (const struct moon_json *group = groups ? groups->first : NULL; group; group = group->next) {
        const struct moon_json *inner = moon_json_member(group, "inner"),
                               *count = moon_json_member(group, "num_layers");
        layers += inner ? inner->count : count ? (uint64_t)count->integer : 1;
    }
    return layers ? layers : 1;
}

int moon_load_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given) {
    struct drawing drawing = {.arena = arena, .random = random, .profile = profile};
    int status = draw_engine(&drawing);
    if (status)
        return status;
    if (!moon_json_member(drawing.given, "num_gpu_blocks"))
        set_int(&drawing, "num_gpu_blocks", BLOCKS);
    draw_lengths(&drawing);
    draw_hashes(&drawing);
    draw_tables(&drawing);
    draw_page(&drawing, count_layers(&drawing));
    moon_text_open(&drawing.key, arena->memory);
    status = find_keys(&drawing);
    moon_text_close(&drawing.key);
    if (status)
        return status;
    draw_store(&drawing);
    draw_failures(&drawing);
    if (moon_json_broken(drawing.given) || moon_json_broken(drawing.keys))
        return MOON_ERR_MEMORY;
    *given = drawing.given;
    return 0;
}
