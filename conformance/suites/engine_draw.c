/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing engines: parallel sizes first, as they decide which groups a release takes. */
#include "conformance/suites/engine_draw.h"

enum { GROUPS_MAX = 6 };

enum kind { FULL, MLA, UNIFORM, FULL_WINDOW, WINDOW, MLA_WINDOW, MAMBA, LOCAL };

/* Drawing under way. All groups have blocks of `block` tokens a rank, or (mixed) `block` times 1, 2 or 4. */
struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    const struct moon_engine_limits *limits;
    struct moon_json *given;
    uint64_t tp, pcp, dcp, heads, block;
    uint64_t groups, first_block; /* of the first group */
    bool mixed, drafts, local;
};

static uint64_t below(const struct drawing *drawing, uint64_t bound) {
    return moon_random_below(drawing->random, bound);
}

/* True once in `times`. */
static bool once(const struct drawing *drawing, uint64_t times) {
    return below(drawing, times) == 0;
}

#define PICK(drawing, list) (list)[below(drawing, sizeof(list) / sizeof((list)[0]))]

static void set_int(const struct drawing *drawing, struct moon_json *object, const char *name, uint64_t value) {
    moon_json_set(drawing->arena, object, name, moon_json_uint(drawing->arena, value));
}

static void set_text(const struct drawing *drawing, struct moon_json *object, const char *name, const char *value) {
    moon_json_set(drawing->arena, object, name, moon_json_string(drawing->arena, value));
}

static void set_true(const struct drawing *drawing, struct moon_json *object, const char *name) {
    moon_json_set(drawing->arena, object, name, moon_json_bool(drawing->arena, true));
}

/* ---- parallel sizes ---- */

static uint64_t draw_size(const struct drawing *drawing, const uint64_t *sizes, size_t count, uint64_t max) {
    uint64_t size = sizes[below(drawing, count)];
    return size <= max ? size : 1;
}

static void draw_topology(struct drawing *drawing) {
    static const uint64_t tps[] = {1, 1, 1, 2, 2, 2, 4, 4, 3, 6, 8}, pps[] = {1, 1, 1, 2, 3}, pcps[] = {1, 1, 1, 1, 2};
    static const uint64_t heads[] = {1, 1, 2, 3, 4, 6, 8, 8, 16};
    struct moon_json *topology =
        moon_json_set(drawing->arena, drawing->given, "topology", moon_json_object(drawing->arena));
    uint64_t world = drawing->limits->world_max;
    drawing->tp = draw_size(drawing, tps, sizeof tps / sizeof tps[0], world);
    drawing->pcp = draw_size(drawing, pcps, sizeof pcps / sizeof pcps[0], world / drawing->tp);
    uint64_t pp = draw_size(drawing, pps, sizeof pps / sizeof pps[0], world / drawing->tp / drawing->pcp);
    drawing->dcp = drawing->tp % 2 == 0 && once(drawing, 5) ? 2 : 1;
    if (drawing->dcp == 2 && drawing->tp % 4 == 0 && once(drawing, 2))
        drawing->dcp = 4;
    drawing->heads = PICK(drawing, heads);
    set_int(drawing, topology, "tp", drawing->tp);
    set_int(drawing, topology, "pp", pp);
    set_int(drawing, topology, "pcp", drawing->pcp);
    set_int(drawing, topology, "dcp", drawing->dcp);
    set_int(drawing, drawing->given, "total_kv_heads", drawing->heads);
    if (once(drawing, 6))
        set_true(drawing, drawing->given, "use_mla");
}

/* ---- groups ---- */

static struct moon_json *draw_inner(const struct drawing *drawing) {
    struct moon_json *inner = moon_json_array(drawing->arena);
    bool all_mla = once(drawing, 2);
    for (int i = 0; i < 2; i++) {
        struct moon_json *layer = moon_json_push(inner, moon_json_object(drawing->arena));
        set_text(drawing, layer, "kind", all_mla || i == 1 ? "mla" : "full");
        if (i == 1 && once(drawing, 2))
            set_int(drawing, layer, "head_size", 16);
    }
    return inner;
}

/* Chunked local attention wants one block size and no drafter; context parallelism takes no window, and before it was
 * allowed for several groups no Mamba. */
static enum kind draw_kind(const struct drawing *drawing) {
    static const enum kind all[] = {FULL,   FULL,   FULL,       MLA,   UNIFORM, WINDOW,
                                    WINDOW, WINDOW, MLA_WINDOW, MAMBA, MAMBA,   FULL_WINDOW};
    static const enum kind old[] = {FULL, FULL, MLA, WINDOW, WINDOW, MAMBA};
    if (drawing->dcp > 1)
        return drawing->groups > 1 && once(drawing, 2) ? MAMBA : once(drawing, 4) ? MLA : FULL;
    if (drawing->local && once(drawing, 2))
        return LOCAL;
    return drawing->profile->chunk_end_hash ? PICK(drawing, all) : PICK(drawing, old);
}

/* Windows near multiples of a block, where one token decides. */
static uint64_t draw_window(const struct drawing *drawing, uint64_t block) {
    static const int64_t around[] = {-1, 0, 1, 1, 2};
    if (once(drawing, 8))
        return 1 + below(drawing, 200);
    int64_t window = (int64_t)(block * (1 + below(drawing, 6))) + PICK(drawing, around);
    return window > 0 ? (uint64_t)window : 1;
}

/* Up to 0.29 a Mamba block must be the configured one, which is that of the first group here. */
static void draw_group(struct drawing *drawing, struct moon_json *list) {
    static const char *const names[] = {
        "full", "mla", "uniform", "full_with_window", "sliding_window", "sliding_window_mla", "mamba", "chunked_local"};
    struct moon_json *group = moon_json_push(list, moon_json_object(drawing->arena));
    enum kind kind = draw_kind(drawing);
    uint64_t block = drawing->mixed ? drawing->block << below(drawing, 3) : drawing->block;
    if (kind == MAMBA && !drawing->profile->mamba_mode_checked && list->count > 1)
        block = drawing->first_block;
    if (list->count == 1)
        drawing->first_block = block;
    bool alone = kind == FULL || kind == FULL_WINDOW || kind == WINDOW;
    set_text(drawing, group, "kind", names[kind]);
    set_int(drawing, group, "block_size", block);
    if (alone && once(drawing, 3))
        set_int(drawing, group, "num_kv_heads", 1 + below(drawing, 2));
    if (kind == UNIFORM)
        moon_json_set(drawing->arena, group, "inner", draw_inner(drawing));
    if (kind == FULL_WINDOW || kind == WINDOW || kind == MLA_WINDOW)
        set_int(drawing, group, "sliding_window", draw_window(drawing, block));
    if ((kind == WINDOW || kind == MLA_WINDOW) && drawing->profile->window_retains && once(drawing, 4))
        set_int(drawing, group, "extra_retained_tokens", 1 + below(drawing, block + 2));
    if (kind == LOCAL)
        set_int(drawing, group, "attention_chunk_size", draw_window(drawing, block));
    if (drawing->drafts && once(drawing, 3))
        set_true(drawing, group, "is_eagle");
}

/* Copies a group, so that groups of equal specs are not rare; the copy may be the drafter's. */
static void repeat_group(const struct drawing *drawing, struct moon_json *list) {
    const struct moon_json *of = moon_json_at(list, below(drawing, list->count));
    struct moon_json *copy = moon_json_push(list, moon_json_clone(drawing->arena, of));
    if (drawing->drafts && !moon_json_member(copy, "is_eagle") && once(drawing, 2))
        set_true(drawing, copy, "is_eagle");
}

static void draw_groups(struct drawing *drawing) {
    static const uint64_t blocks[] = {16, 16, 16, 8, 4, 32, 48};
    const struct moon_profile *profile = drawing->profile;
    bool several = profile->group_numbering != MOON_GROUP_NONE && drawing->pcp == 1 &&
                   (drawing->dcp == 1 || profile->groups_dcp) && drawing->limits->groups_max > 1 && !once(drawing, 4);
    struct moon_json *list = moon_json_set(drawing->arena, drawing->given, "groups", moon_json_array(drawing->arena));
    drawing->groups = several ? 2 + below(drawing, drawing->limits->groups_max - 1) : 1;
    drawing->drafts = profile->coordinator && once(drawing, 3);
    drawing->local = profile->coordinator && drawing->dcp == 1 && once(drawing, drawing->drafts ? 40 : 6);
    drawing->mixed = several && once(drawing, drawing->local ? 40 : 2);
    drawing->block = PICK(drawing, blocks);
    for (uint64_t i = 0; i < drawing->groups && list; i++) {
        if (list->count > 0 && once(drawing, 4))
            repeat_group(drawing, list);
        else
            draw_group(drawing, list);
    }
    if (drawing->drafts && !once(drawing, 30))
        set_true(drawing, drawing->given, "speculative");
    if (several && once(drawing, 5) && drawing->block % 4 == 0)
        set_int(drawing, drawing->given, "prefix_match_unit", drawing->block >> below(drawing, 3));
}

/* ---- options ---- */

static void draw_store_tp(const struct drawing *drawing) {
    static const uint64_t sizes[] = {1, 2, 2, 4, 4, 8};
    struct moon_json *extra =
        moon_json_set(drawing->arena, drawing->given, "extra_config", moon_json_object(drawing->arena));
    if (drawing->profile->cache_prefix && once(drawing, 6))
        set_text(drawing, extra, "cache_prefix", "a@b");
    if (!drawing->profile->store_namespace || !once(drawing, 3))
        return;
    if (once(drawing, 3)) {
        struct moon_json *list = moon_json_array(drawing->arena);
        set_true(drawing, extra, "enable_store_tp_lcm");
        for (uint64_t i = 1 + below(drawing, 3); i > 0; i--)
            moon_json_push(list, moon_json_uint(drawing->arena, PICK(drawing, sizes)));
        moon_json_set(drawing->arena, extra, "prefill_tp_sizes", list);
    } else {
        set_int(drawing, extra, "store_tp_size", PICK(drawing, sizes));
    }
}

void moon_engine_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                      const struct moon_engine_limits *limits, struct moon_json *given) {
    static const char *const models[] = {"org/model-x", "m", "x@tp_rank:0", "/models/x-1.0/"};
    struct drawing drawing = {.arena = arena, .random = random, .profile = profile, .limits = limits, .given = given};
    draw_topology(&drawing);
    draw_groups(&drawing);
    draw_store_tp(&drawing);
    set_text(&drawing, given, "kv_cache_layout", once(&drawing, 4) ? "LBNHC" : once(&drawing, 6) ? "BLHNC" : "LBHNC");
    set_text(&drawing, given, "model", PICK(&drawing, models));
    set_int(&drawing, given, "num_gpu_blocks", 4096);
}

void moon_engine_draw_options(struct moon_arena *arena, struct moon_random *random, uint64_t times,
                              struct moon_json *given) {
    static const char *const names[] = {"load_async", "lookup_async", "enable_lookup", "save_decode_cache"};
    struct moon_json *extra = moon_json_member(given, "extra_config");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (moon_random_chance(random, 1, times))
            moon_json_set(arena, extra, names[i], moon_json_bool(arena, moon_random_chance(random, 1, 2)));
}
