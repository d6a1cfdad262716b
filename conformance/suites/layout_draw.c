/* SPDX-License-Identifier: Apache-2.0 */
/* Suite layout: random engines that the release runs, with a preference for options at which the decision turns. */
#include "conformance/suites/layout.h"

#include <assert.h>

enum { GROUPS_MAX = 3 };

struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given;
    uint64_t tp, pcp, dcp, heads;
    uint64_t block[GROUPS_MAX]; /* tokens of each group's block a rank */
    uint64_t groups;
    uint64_t scheduler_block, hash_block; /* of the groups together */
};

static uint64_t below(const struct drawing *drawing, uint64_t bound) {
    return moon_random_below(drawing->random, bound);
}

#define PICK(drawing, list) (list)[below(drawing, sizeof(list) / sizeof((list)[0]))]

static void set_int(const struct drawing *drawing, struct moon_json *object, const char *name, uint64_t value) {
    moon_json_set(drawing->arena, object, name, moon_json_uint(drawing->arena, value));
}

static void set_text(const struct drawing *drawing, struct moon_json *object, const char *name, const char *value) {
    moon_json_set(drawing->arena, object, name, moon_json_string(drawing->arena, value));
}

static void draw_topology(struct drawing *drawing) {
    static const uint64_t sizes[] = {1, 1, 2, 2, 2, 3, 4, 4, 6, 8, 16};
    struct moon_json *topology =
        moon_json_set(drawing->arena, drawing->given, "topology", moon_json_object(drawing->arena));
    static const uint64_t heads[] = {1, 1, 2, 3, 4, 6, 8, 8, 12, 16};
    bool smallest = below(drawing, 16) == 0; /* one head on one rank is no MQA */
    drawing->heads = smallest ? 1 : PICK(drawing, heads);
    drawing->tp = smallest ? 1 : PICK(drawing, sizes);
    set_int(drawing, drawing->given, "total_kv_heads", drawing->heads);
    drawing->pcp = below(drawing, 6) == 0 ? 2 : 1;
    drawing->dcp = 1;
    if (below(drawing, 5) == 0)
        drawing->dcp = drawing->tp % 4 == 0 && below(drawing, 2) ? 4 : drawing->tp % 2 == 0 ? 2 : 1;
    set_int(drawing, topology, "tp", drawing->tp);
    set_int(drawing, topology, "pp", below(drawing, 4) == 0 ? 2 + below(drawing, 3) : 1);
    set_int(drawing, topology, "pcp", drawing->pcp);
    set_int(drawing, topology, "dcp", drawing->dcp);
}

/* A store TP by which the heads divide: the one case that is sharded. */
static struct moon_json *draw_divisor(const struct drawing *drawing) {
    uint64_t size = 1 + below(drawing, drawing->heads);
    while (drawing->heads % size != 0)
        size--;
    return moon_json_uint(drawing->arena, size);
}

/* An integer, or a value that looks like one. */
static struct moon_json *draw_size(const struct drawing *drawing) {
    static const int64_t sizes[] = {0, -1, 1, 2, 3, 4, 4, 6, 8, 8, 16, 1000003};
    static const char *const texts[] = {"4", "8", "", "x"};
    switch (below(drawing, 12)) {
    case 0:
        return moon_json_string(drawing->arena, PICK(drawing, texts));
    case 1:
        return moon_json_bool(drawing->arena, below(drawing, 2));
    case 2:
        return below(drawing, 2) ? moon_json_null(drawing->arena) : moon_json_array(drawing->arena);
    case 3:
        return moon_json_real(drawing->arena, below(drawing, 2) ? 8.0 : 2.5);
    case 4:
        return moon_json_number(drawing->arena, "18446744073709551616", 20);
    default:
        return moon_json_int(drawing->arena, PICK(drawing, sizes));
    }
}

/* A prefill list that is mostly good. */
static struct moon_json *draw_list(const struct drawing *drawing) {
    static const int64_t sizes[] = {1, 2, 2, 3, 4, 4, 8, 8, 16};
    if (below(drawing, 8) == 0)
        return draw_size(drawing);
    struct moon_json *list = moon_json_array(drawing->arena);
    for (uint64_t count = below(drawing, 4); count > 0; count--)
        moon_json_push(list, below(drawing, 12) == 0 ? draw_size(drawing)
                             : below(drawing, 2)     ? draw_divisor(drawing)
                                                     : moon_json_int(drawing->arena, PICK(drawing, sizes)));
    return list;
}

/* A truth value, or what people take for one. */
static struct moon_json *draw_flag(const struct drawing *drawing) {
    static const char *const texts[] = {"true", "True", "TRUE", "false", "yes", "1"};
    switch (below(drawing, 6)) {
    case 0:
        return moon_json_string(drawing->arena, PICK(drawing, texts));
    case 1:
        return moon_json_int(drawing->arena, (int64_t)below(drawing, 2));
    case 2:
        return moon_json_null(drawing->arena);
    default:
        return moon_json_bool(drawing->arena, below(drawing, 3) != 0);
    }
}

static void draw_options(const struct drawing *drawing) {
    struct moon_json *extra =
        moon_json_set(drawing->arena, drawing->given, "extra_config", moon_json_object(drawing->arena));
    if (drawing->profile->cache_prefix && below(drawing, 4) == 0)
        moon_json_set(drawing->arena, extra, "cache_prefix",
                      below(drawing, 2) ? moon_json_string(drawing->arena, "a@b") : draw_size(drawing));
    if (!drawing->profile->store_namespace)
        return;
    if (below(drawing, 3))
        moon_json_set(drawing->arena, extra, "store_tp_size",
                      below(drawing, 2) ? draw_divisor(drawing) : draw_size(drawing));
    if (below(drawing, 3) == 0) {
        moon_json_set(drawing->arena, extra, "enable_store_tp_lcm", draw_flag(drawing));
        if (below(drawing, 8))
            moon_json_set(drawing->arena, extra, "prefill_tp_sizes", draw_list(drawing));
    }
    if (below(drawing, 6) == 0)
        moon_json_set(drawing->arena, extra, "enable_cross_layers_blocks", draw_flag(drawing));
}

/* Layers of a uniform group. */
static struct moon_json *draw_inner(const struct drawing *drawing) {
    struct moon_json *inner = moon_json_array(drawing->arena);
    bool all_mla = below(drawing, 2);
    for (int i = 0; i < 2; i++) {
        struct moon_json *layer = moon_json_push(inner, moon_json_object(drawing->arena));
        set_text(drawing, layer, "kind", all_mla || i == 1 ? "mla" : "full");
        if (i == 1)
            set_int(drawing, layer, "head_size", 16);
    }
    return inner;
}

enum kind { FULL, MLA, WINDOW, FULL_WINDOW, MLA_WINDOW, UNIFORM, MAMBA, KINDS };

/* Kinds that the recorded vectors of a release know with such parallel sizes. */
static enum kind draw_kind(const struct drawing *drawing, bool several) {
    if (drawing->dcp > 1 || below(drawing, 2))
        return below(drawing, 3) ? FULL : MLA;
    if (!drawing->profile->chunk_end_hash)
        return WINDOW;
    return (enum kind)below(drawing, several ? KINDS : MAMBA);
}

static struct moon_json *draw_group(const struct drawing *drawing, enum kind kind, uint64_t block) {
    static const char *const names[KINDS] = {
        "full", "mla", "sliding_window", "full_with_window", "sliding_window_mla", "uniform", "mamba"};
    static const uint64_t windows[] = {2, 16, 17, 32, 33, 48, 64, 65, 128};
    struct moon_json *group = moon_json_object(drawing->arena);
    set_text(drawing, group, "kind", names[kind]);
    set_int(drawing, group, "block_size", block);
    if (kind == WINDOW || kind == FULL_WINDOW || kind == MLA_WINDOW)
        set_int(drawing, group, "sliding_window", PICK(drawing, windows));
    if (kind == FULL || kind == WINDOW || kind == FULL_WINDOW)
        set_int(drawing, group, "num_kv_heads", 1 + below(drawing, 4));
    if (kind == UNIFORM)
        moon_json_set(drawing->arena, group, "inner", draw_inner(drawing));
    return group;
}

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b) {
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One group, or some without context parallelism. Up to 0.29 an engine with a Mamba block of its own size may not run.
 */
static void draw_groups(struct drawing *drawing) {
    static const uint64_t blocks[] = {16, 32, 48, 64, 96};
    struct moon_json *list = moon_json_set(drawing->arena, drawing->given, "groups", moon_json_array(drawing->arena));
    bool parallel = drawing->pcp > 1 || drawing->dcp > 1;
    bool several = drawing->profile->group_numbering != MOON_GROUP_NONE && !parallel && below(drawing, 3) == 0;
    bool mixed = several && below(drawing, 3) == 0;
    uint64_t block = PICK(drawing, blocks);
    drawing->groups = several ? 2 + below(drawing, GROUPS_MAX - 1) : 1;
    drawing->scheduler_block = 1;
    for (uint64_t i = 0; i < drawing->groups; i++) {
        uint64_t own = drawing->block[i] = mixed ? PICK(drawing, blocks) : block;
        drawing->scheduler_block *= own / greatest_common_divisor(drawing->scheduler_block, own);
        drawing->hash_block = greatest_common_divisor(own, drawing->hash_block);
        enum kind kind = draw_kind(drawing, several);
        bool raises = mixed && kind == MAMBA && drawing->profile->fine_windows_refused;
        moon_json_push(list, draw_group(drawing, raises ? FULL : kind, own));
    }
}

static void draw_prompt(const struct drawing *drawing) {
    uint64_t chunks = 1 + below(drawing, 9), next = 1;
    struct moon_json *hashes = moon_json_array(drawing->arena), *tables = moon_json_array(drawing->arena);
    assert(drawing->hash_block > 0); /* there is a group */
    for (uint64_t i = 0; i < chunks * (drawing->scheduler_block / drawing->hash_block); i++) {
        uint8_t bytes[16];
        moon_random_fill(drawing->random, bytes, sizeof bytes);
        moon_json_push(hashes, moon_json_hex(drawing->arena, bytes, sizeof bytes));
    }
    for (uint64_t group = 0; group < drawing->groups; group++) {
        struct moon_json *table = moon_json_push(tables, moon_json_array(drawing->arena));
        for (uint64_t i = 0; i < chunks * (drawing->scheduler_block / drawing->block[group]); i++)
            moon_json_push(table, moon_json_uint(drawing->arena, next++));
    }
    set_int(drawing, drawing->given, "num_chunks", chunks);
    moon_json_set(drawing->arena, drawing->given, "block_hashes", hashes);
    moon_json_set(drawing->arena, drawing->given, "block_ids", tables);
    if (drawing->profile->store_mask == MOON_STORE_MASK_REACH && below(drawing, 6) == 0)
        moon_json_set(drawing->arena, drawing->given, "speculative", moon_json_bool(drawing->arena, true));
    if (!drawing->profile->mamba_by_position && below(drawing, 4) == 0)
        set_int(drawing, drawing->given, "retention_interval", below(drawing, 4) * drawing->scheduler_block);
}

int moon_layout_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                     struct moon_json **given) {
    static const char *const models[] = {"org/model-x", "m", "a/b/c//", "/", "", "x@tp_rank:0", "/models/x-1.0/"};
    struct drawing drawing = {.arena = arena, .random = random, .profile = profile, .given = moon_json_object(arena)};
    draw_topology(&drawing);
    moon_json_set(arena, drawing.given, "use_mla", moon_json_bool(arena, below(&drawing, 5) == 0));
    draw_groups(&drawing);
    draw_options(&drawing);
    set_text(&drawing, drawing.given, "kv_role", "kv_both");
    set_text(&drawing, drawing.given, "kv_cache_layout",
             moon_kv_layout_name(below(&drawing, 3) ? MOON_KV_LBHNC
                                                    : (enum moon_kv_layout)below(&drawing, MOON_KV_LAYOUT_COUNT)));
    set_text(&drawing, drawing.given, "model", PICK(&drawing, models));
    set_int(&drawing, drawing.given, "num_gpu_blocks", 512);
    draw_prompt(&drawing);
    if (moon_json_broken(drawing.given))
        return MOON_ERR_MEMORY;
    *given = drawing.given;
    return 0;
}
