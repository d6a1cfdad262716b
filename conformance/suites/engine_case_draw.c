/* SPDX-License-Identifier: Apache-2.0 */
/* Random engines that are run step by step, and what their store holds before. */
#include "conformance/suites/engine_case_draw.h"

#include "ref/layout/lookup.h"

#include <assert.h>

#define PICK(drawing, list) (list)[moon_draw_below(drawing, sizeof(list) / sizeof((list)[0]))]

uint64_t moon_draw_below(const struct moon_engine_drawing *drawing, uint64_t bound) {
    return moon_random_below(drawing->random, bound);
}

bool moon_draw_chance(const struct moon_engine_drawing *drawing, uint64_t percent) {
    return moon_random_below(drawing->random, 100) < percent;
}

void moon_draw_int(const struct moon_engine_drawing *drawing, struct moon_json *object, const char *name,
                   uint64_t value) {
    moon_json_set(drawing->arena, object, name, moon_json_uint(drawing->arena, value));
}

void moon_draw_text(const struct moon_engine_drawing *drawing, struct moon_json *object, const char *name,
                    const char *value) {
    moon_json_set(drawing->arena, object, name, moon_json_string(drawing->arena, value));
}

void moon_draw_bool(const struct moon_engine_drawing *drawing, struct moon_json *object, const char *name, bool value) {
    moon_json_set(drawing->arena, object, name, moon_json_bool(drawing->arena, value));
}

void moon_draw_prompt(const struct moon_engine_drawing *drawing, struct moon_json *object, uint64_t family,
                      uint64_t count) {
    static const uint64_t starts[] = {0, 3, 5, 400};
    struct moon_json *prompt = moon_json_set(drawing->arena, object, "prompt", moon_json_object(drawing->arena));
    moon_draw_int(drawing, prompt, "start", starts[family % 4]);
    moon_draw_int(drawing, prompt, "step", 7);
    moon_draw_int(drawing, prompt, "mod", 1000);
    moon_draw_int(drawing, prompt, "count", count);
}

/* ---- the engine ---- */

/* A store TP that is mostly one that works for this engine. */
static uint64_t draw_store_tp(const struct moon_engine_drawing *drawing, uint64_t tp, uint64_t heads) {
    static const uint64_t any[] = {1, 2, 3, 4, 6, 8, 12, 16};
    uint64_t size = tp * (1 + moon_draw_below(drawing, 4));
    return heads % size == 0 || moon_draw_chance(drawing, 30) ? size : PICK(drawing, any);
}

static void draw_list(const struct moon_engine_drawing *drawing, uint64_t tp, uint64_t heads) {
    if (moon_draw_chance(drawing, 8)) { /* malformed */
        moon_draw_text(drawing, drawing->extra, "prefill_tp_sizes", "4");
        return;
    }
    struct moon_json *list =
        moon_json_set(drawing->arena, drawing->extra, "prefill_tp_sizes", moon_json_array(drawing->arena));
    for (uint64_t left = moon_draw_below(drawing, 4); left > 0; left--)
        moon_json_push(list, moon_json_uint(drawing->arena, draw_store_tp(drawing, tp, heads)));
}

static void draw_shared(const struct moon_engine_drawing *drawing, uint64_t tp, uint64_t heads) {
    bool list = moon_draw_chance(drawing, 50);
    if (list) {
        moon_draw_bool(drawing, drawing->extra, "enable_store_tp_lcm", moon_draw_chance(drawing, 90));
        draw_list(drawing, tp, heads);
    }
    if (!list || moon_draw_chance(drawing, 30))
        moon_draw_int(drawing, drawing->extra, "store_tp_size", draw_store_tp(drawing, tp, heads));
}

void moon_draw_engine(struct moon_engine_drawing *drawing, uint64_t shared_percent) {
    static const uint64_t tps[] = {1, 1, 2, 2, 4}, multiples[] = {1, 2, 2, 3, 4}, blocks[] = {16, 16, 16, 8, 32};
    static const char *const roles[] = {"kv_both", "kv_both", "kv_consumer", "kv_consumer", "kv_producer"};
    struct moon_arena *arena = drawing->arena;
    struct moon_json *given = drawing->given;
    uint64_t tp = PICK(drawing, tps), heads = tp * PICK(drawing, multiples);
    assert(tp > 0); /* of the list */
    if (moon_draw_chance(drawing, 15))
        heads = tp > 2 && moon_draw_chance(drawing, 50) ? 2 : 1; /* several ranks hold the same head */
    struct moon_json *topology = moon_json_set(arena, given, "topology", moon_json_object(arena));
    moon_draw_int(drawing, topology, "tp", tp);
    moon_draw_int(drawing, topology, "pp", 1);
    moon_draw_int(drawing, topology, "pcp", 1);
    moon_draw_int(drawing, topology, "dcp", 1);
    moon_draw_int(drawing, given, "total_kv_heads", heads);
    struct moon_json *groups = moon_json_set(arena, given, "groups", moon_json_array(arena));
    struct moon_json *group = moon_json_push(groups, moon_json_object(arena));
    moon_draw_text(drawing, group, "kind", "full");
    moon_draw_int(drawing, group, "block_size", PICK(drawing, blocks));
    moon_draw_int(drawing, group, "num_kv_heads", heads > tp ? heads / tp : 1);
    moon_draw_int(drawing, group, "num_layers", 1 + moon_draw_below(drawing, 2));
    drawing->extra = moon_json_set(arena, given, "extra_config", moon_json_object(arena));
    if (moon_draw_chance(drawing, shared_percent))
        draw_shared(drawing, tp, heads);
    if (moon_draw_chance(drawing, 10))
        moon_draw_text(drawing, drawing->extra, "cache_prefix", "team");
    moon_draw_text(drawing, given, "kv_role", PICK(drawing, roles));
    moon_draw_text(drawing, given, "kv_cache_layout", moon_draw_chance(drawing, 30) ? "LBNHC" : "LBHNC");
    moon_draw_text(drawing, given, "model", "org/m");
}

/* ---- the store ---- */

enum pattern { PATTERN_NONE, PATTERN_PREFIX, PATTERN_HOLE, PATTERN_KEYS, PATTERN_ALL, PATTERNS };

void moon_draw_stored(const struct moon_engine_drawing *drawing, const struct moon_connector *connector,
                      const struct moon_hashes *hashes, struct moon_json *stored) {
    const enum pattern pattern = (enum pattern)moon_draw_below(drawing, PATTERNS);
    const int64_t length = (int64_t)moon_draw_below(drawing, hashes->count + 1);
    const int64_t hole = (int64_t)moon_draw_below(drawing, hashes->count + 1);
    struct moon_text text;
    moon_text_open(&text, drawing->arena->memory);
    for (int64_t i = 0; i < (int64_t)hashes->count && pattern != PATTERN_NONE; i++) {
        const struct moon_chunk chunk = {.id = i, .first_hash = i, .hash_count = 1};
        struct moon_namespaces walk;
        struct moon_pool_key key;
        moon_namespaces_open(&walk, connector->profile, connector->model, &connector->selection, 0);
        while (moon_namespaces_next(&walk, &key)) {
            if ((pattern == PATTERN_PREFIX && i >= length) || (pattern == PATTERN_HOLE && i == hole) ||
                (pattern == PATTERN_KEYS && moon_draw_chance(drawing, 30)))
                continue;
            moon_text_clear(&text);
            moon_chunk_key(connector->profile, &key, hashes, &chunk, &text);
            moon_json_push(stored,
                           text.failed ? NULL : moon_json_bytes(drawing->arena, moon_text_value(&text), text.length));
        }
    }
    moon_text_close(&text);
}
