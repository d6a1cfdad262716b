/* SPDX-License-Identifier: Apache-2.0 */
/* Draws cases of the suite segments: caches of any axis order, padding and sharing, and requests that hit every rule.
 */
#include "conformance/suites/segments_case.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS_MAX = 3, LAYERS_MAX = 4, AXES_MAX = 7 };

struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given;
    bool sharing;   /* a store TP is asked for */
    bool refused;   /* ... in a way that leaves the rank-local layout */
    bool tp_shared; /* the TP-sharded layout is chosen */
    bool heads_outside;
    int64_t tp, rank, store_tp, heads, num_blocks;
    size_t group_count, layer_count;
    int64_t unit_tokens;              /* divides all blocks */
    int64_t block_tokens[GROUPS_MAX]; /* with context parallelism */
};

/* ---- small helpers ---- */

static int64_t below(const struct drawing *d, uint64_t bound) {
    return (int64_t)moon_random_below(d->random, bound);
}

static bool chance(const struct drawing *d, uint64_t denominator) {
    return moon_random_chance(d->random, 1, denominator);
}

static int64_t pick(const struct drawing *d, const int64_t *of, size_t count) {
    return of[moon_random_below(d->random, count)];
}
#define PICK(d, ...) pick(d, (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void set_int(const struct drawing *d, struct moon_json *object, const char *name, int64_t value) {
    moon_json_set(d->arena, object, name, moon_json_int(d->arena, value));
}

static void set_text(const struct drawing *d, struct moon_json *object, const char *name, const char *value) {
    moon_json_set(d->arena, object, name, moon_json_string(d->arena, value));
}

static struct moon_json *set_array(const struct drawing *d, struct moon_json *object, const char *name) {
    return moon_json_set(d->arena, object, name, moon_json_array(d->arena));
}

static struct moon_json *layer_name(const struct drawing *d, size_t layer) {
    char name[32];
    snprintf(name, sizeof name, "l%zu", layer);
    return moon_json_string(d->arena, name);
}

static void push_int(const struct drawing *d, struct moon_json *array, int64_t value) {
    moon_json_push(array, moon_json_int(d->arena, value));
}

/* ---- engine ---- */

static void draw_topology(struct drawing *d) {
    bool one_group = d->group_count == 1;
    int64_t pp = chance(d, 6) ? 2 : 1, pcp = one_group && chance(d, 12) ? 2 : 1, dcp = 1;
    d->tp = PICK(d, 1, 1, 2, 2, 4, 8);
    if (d->tp > 1 && (one_group || d->profile->groups_dcp) && chance(d, 10))
        dcp = 2;
    d->rank = below(d, (uint64_t)(d->tp * pp * pcp));
    for (size_t g = 0; g < d->group_count; g++)
        d->block_tokens[g] *= dcp * (d->profile->pcp_multiplies_block ? pcp : 1);
    struct moon_json *topology = moon_json_set(d->arena, d->given, "topology", moon_json_object(d->arena));
    d->refused = !one_group || pcp > 1 || dcp > 1;
    set_int(d, topology, "tp", d->tp);
    set_int(d, topology, "pp", pp);
    set_int(d, topology, "pcp", pcp);
    set_int(d, topology, "dcp", dcp);
}

/* Store TP as a size or as a list whose least common multiple it is; sometimes one that cannot be used. */
static void draw_sharing(struct drawing *d) {
    struct moon_json *extra = moon_json_set(d->arena, d->given, "extra_config", moon_json_object(d->arena));
    d->store_tp = d->tp * PICK(d, 1, 2, 2, 4);
    d->heads = d->store_tp * PICK(d, 1, 1, 2, 3);
    if (!d->sharing) {
        d->heads = PICK(d, 1, 2, 4, 8);
        return;
    }
    if (chance(d, 10))
        d->heads = PICK(d, 1, 3, 6);
    if (chance(d, 4)) {
        moon_json_set(d->arena, extra, "enable_store_tp_lcm", moon_json_bool(d->arena, true));
        struct moon_json *sizes = set_array(d, extra, "prefill_tp_sizes");
        push_int(d, sizes, d->store_tp);
        push_int(d, sizes, d->tp);
    } else if (chance(d, 12)) {
        set_text(d, extra, "store_tp_size", "4");
        d->refused = true;
    } else {
        set_int(d, extra, "store_tp_size", d->store_tp);
    }
    if (chance(d, 16)) {
        moon_json_set(d->arena, extra, "enable_cross_layers_blocks", moon_json_bool(d->arena, true));
        d->refused = true;
    }
}

static void draw_group(const struct drawing *d, struct moon_json *groups, size_t number, int64_t block_size) {
    static const char *const first[] = {"full", "full", "full", "full_with_window", "mla", "sliding_window"};
    const char *kind = first[below(d, d->sharing ? 4 : 6)];
    if (number > 0)
        kind = chance(d, 3) ? "full" : "sliding_window";
    struct moon_json *group = moon_json_push(groups, moon_json_object(d->arena));
    set_text(d, group, "kind", kind);
    set_int(d, group, "block_size", block_size);
    set_int(d, group, "num_kv_heads", strcmp(kind, "mla") == 0 || d->heads < d->tp ? 1 : d->heads / d->tp);
    if (strstr(kind, "window"))
        set_int(d, group, "sliding_window", block_size * (1 + below(d, 4)));
    struct moon_json *names = set_array(d, group, "layer_names");
    for (size_t layer = number; layer < d->layer_count; layer += d->group_count)
        moon_json_push(names, layer_name(d, layer));
}

static void draw_layout(struct drawing *d) {
    static const char *const layouts[] = {"LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"};
    size_t layout = (size_t)below(d, d->sharing && !chance(d, 10) ? 2 : 6);
    d->heads_outside = layout == 0;
    d->tp_shared = d->sharing && !d->refused && layout < 2 && d->heads % d->store_tp == 0;
    set_text(d, d->given, "kv_cache_layout", layouts[layout]);
}

static void draw_engine(struct drawing *d) {
    int64_t block_size[GROUPS_MAX];
    d->sharing = d->profile->store_namespace && !chance(d, 3);
    d->group_count =
        d->profile->group_numbering == MOON_GROUP_NONE || !chance(d, d->sharing ? 12 : 3) ? 1 : 2 + (size_t)below(d, 2);
    d->layer_count = d->group_count + (size_t)below(d, LAYERS_MAX - d->group_count + 1);
    d->unit_tokens = PICK(d, 1, 2, 3, 4, 16);
    for (size_t g = 0; g < d->group_count; g++)
        block_size[g] = d->block_tokens[g] = d->unit_tokens * PICK(d, 1, 1, 2, 4);
    draw_topology(d);
    set_int(d, d->given, "rank", d->rank);
    draw_sharing(d);
    set_int(d, d->given, "total_kv_heads", d->heads);
    struct moon_json *groups = set_array(d, d->given, "groups");
    for (size_t g = 0; g < d->group_count; g++)
        draw_group(d, groups, g, block_size[g]);
    draw_layout(d);
    d->num_blocks = 1 + below(d, 9);
    set_int(d, d->given, "num_gpu_blocks", d->num_blocks);
}

/* ---- caches ---- */

/* Axes of a cache in logical order, and the order in which they lie in memory, outermost first. Axis `count` - 1 may be
 * the layers of a shared storage, which is no dimension of the cache. */
struct axes {
    size_t count;
    int64_t size[AXES_MAX];
    size_t order[AXES_MAX];
    int64_t stride[AXES_MAX]; /* filled by lay_out */
    bool layers_last;
};

static void swap_order(struct axes *axes, size_t a, size_t b) {
    size_t kept = axes->order[a];
    axes->order[a] = axes->order[b];
    axes->order[b] = kept;
}

static void add_axis(struct axes *axes, int64_t size) {
    axes->size[axes->count] = size;
    axes->order[axes->count] = axes->count;
    axes->count++;
}

/* (2, blocks, page), as back ends had it up to 0.28; later releases refuse it. */
static void add_outer_kv_axes(const struct drawing *d, struct axes *axes, int64_t page) {
    if (d->profile->segment_rule != MOON_SEGMENTS_PER_REGION || chance(d, 6))
        add_axis(axes, 2);
    add_axis(axes, d->num_blocks);
    add_axis(axes, page);
}

static void draw_rank_local_axes(const struct drawing *d, struct axes *axes) {
    int64_t blocks = d->num_blocks, content = 1 + below(d, 8);
    switch (below(d, 8)) {
    case 0: /* pages */
        add_axis(axes, blocks);
        add_axis(axes, 4 * content);
        return;
    case 1:
        add_outer_kv_axes(d, axes, 4 * content);
        return;
    case 2: /* several rows a block; now and then not divisible */
        add_axis(axes, blocks * (2 + below(d, 3)) + chance(d, 8));
        add_axis(axes, 4 * content);
        return;
    case 3: /* K and V after the blocks */
        add_axis(axes, blocks);
        add_axis(axes, 2);
        break;
    default: /* blocks, heads, tokens, content */
        add_axis(axes, blocks * (chance(d, 8) ? 2 : 1));
        break;
    }
    add_axis(axes, 1 + below(d, 4));
    add_axis(axes, 1 + below(d, 4));
    add_axis(axes, content);
}

/* What the TP-sharded layout wants, in one case of six with a fault. */
static void draw_sharded_axes(const struct drawing *d, struct axes *axes) {
    int64_t fault = chance(d, 6) ? below(d, 6) : -1;
    add_axis(axes, d->num_blocks * (fault == 0 ? 2 : 1));
    add_axis(axes, d->heads / d->tp + (fault == 1));
    add_axis(axes, d->block_tokens[0] + (fault == 2));
    add_axis(axes, 1 + below(d, 8));
    if (d->heads_outside == (fault == 3))
        swap_order(axes, 1, 2);
    if (fault == 4)
        add_axis(axes, 2);
    if (fault == 5)
        swap_order(axes, 2, 3);
}

static void shuffle_order(const struct drawing *d, struct axes *axes) {
    for (size_t i = axes->count; i > 1; i--)
        swap_order(axes, i - 1, (size_t)below(d, i));
}

/* Strides from the inside out, now and then with a gap: mostly between blocks. Returns the elements of the whole
 * storage. */
static int64_t lay_out(const struct drawing *d, struct axes *axes) {
    int64_t step = 1;
    for (size_t i = axes->count; i-- > 0;) {
        bool between_blocks = i > 0 && axes->order[i - 1] == 0;
        axes->stride[axes->order[i]] = step;
        step *= axes->size[axes->order[i]];
        if (chance(d, between_blocks ? 6 : d->tp_shared ? 80 : 30))
            step += 1 + below(d, 9);
    }
    return step;
}

/* Puts the axis of the layers somewhere: outermost makes layers follow one another, inside interleaves them. */
static void insert_layers(const struct drawing *d, struct axes *axes) {
    add_axis(axes, (int64_t)d->layer_count);
    axes->layers_last = true;
    size_t place = (size_t)below(d, d->tp_shared ? 2 : axes->count);
    for (size_t i = axes->count - 1; i > place; i--)
        swap_order(axes, i, i - 1);
}

static void draw_axes(const struct drawing *d, struct axes *axes) {
    *axes = (struct axes){0};
    if (d->tp_shared && !chance(d, 12)) {
        draw_sharded_axes(d, axes);
        return;
    }
    draw_rank_local_axes(d, axes);
    if (chance(d, 6))
        shuffle_order(d, axes);
    else if (axes->count >= 3 && chance(d, 2)) {
        size_t outer = (size_t)below(d, 2); /* heads outside the blocks, or tokens before heads */
        swap_order(axes, outer, outer + 1);
    }
}

static void push_cache(const struct drawing *d, struct moon_json *layers, size_t layer, const struct axes *axes,
                       size_t storage, int64_t offset, int64_t item_bytes) {
    struct moon_json *object = moon_json_push(layers, moon_json_object(d->arena));
    moon_json_set(d->arena, object, "name", layer_name(d, layer));
    set_int(d, object, "storage", (int64_t)storage);
    set_int(d, object, "byte_offset", offset * item_bytes);
    struct moon_json *shape = set_array(d, object, "shape"), *strides = set_array(d, object, "strides");
    for (size_t axis = 0; axis < axes->count - axes->layers_last; axis++) {
        push_int(d, shape, axes->size[axis]);
        /* the stride of a dimension of size 1 is never walked: any will do */
        push_int(d, strides, axes->size[axis] == 1 && chance(d, 6) ? below(d, 2000) : axes->stride[axis]);
    }
    set_int(d, object, "itemsize", item_bytes);
}

static size_t push_storage(const struct drawing *d, struct moon_json *storages, int64_t bytes) {
    struct moon_json *object = moon_json_push(storages, moon_json_object(d->arena));
    set_int(d, object, "nbytes", bytes);
    return storages ? storages->count - 1 : 0;
}

/* All caches in one storage. */
static void draw_shared_storage(const struct drawing *d, struct moon_json *storages, struct moon_json *layers) {
    struct axes axes;
    int64_t item_bytes = PICK(d, 1, 2, 4), before = chance(d, 6) ? below(d, 40) : 0,
            after = chance(d, 6) ? below(d, 40) : 0;
    draw_axes(d, &axes);
    insert_layers(d, &axes);
    int64_t elements = lay_out(d, &axes);
    size_t storage = push_storage(d, storages, (before + elements + after) * item_bytes);
    for (size_t layer = 0; layer < d->layer_count; layer++)
        push_cache(d, layers, layer, &axes, storage, before + (int64_t)layer * axes.stride[axes.count - 1], item_bytes);
}

/* A storage for each cache, but sometimes two that are the same. Up to 0.21 all caches have the form of the first:
 * another number of dimensions ends in an error of the tensor library. */
static void draw_own_storages(const struct drawing *d, struct moon_json *storages, struct moon_json *layers) {
    struct axes axes;
    int64_t item_bytes = PICK(d, 1, 2, 4);
    for (size_t layer = 0; layer < d->layer_count; layer++) {
        int64_t before = chance(d, 6) ? below(d, 40) : 0, after = chance(d, 6) ? below(d, 40) : 0;
        if (layer == 0 || (chance(d, 5) && d->profile->segment_rule != MOON_SEGMENTS_PER_LAYER))
            draw_axes(d, &axes);
        else if (chance(d, 4) && !d->tp_shared)
            axes.size[axes.count - 1] += 1 + below(d, 4);
        int64_t elements = lay_out(d, &axes);
        size_t storage = push_storage(d, storages, (before + elements + after) * item_bytes);
        push_cache(d, layers, layer, &axes, storage, before, item_bytes);
        if (layer + 1 < d->layer_count && chance(d, 8))
            push_cache(d, layers, ++layer, &axes, storage, before, item_bytes);
    }
}

/* A cache of no group: 0.30 and later pass it over. */
static void draw_stray(const struct drawing *d, struct moon_json *storages, struct moon_json *layers) {
    struct axes axes = {0};
    add_axis(&axes, d->num_blocks);
    add_axis(&axes, 8);
    size_t storage = push_storage(d, storages, lay_out(d, &axes));
    push_cache(d, layers, LAYERS_MAX, &axes, storage, 0, 1);
}

static void draw_caches(const struct drawing *d) {
    struct moon_json *storages = set_array(d, d->given, "storages"), *layers = set_array(d, d->given, "layers");
    if (d->layer_count > 1 && chance(d, 2))
        draw_shared_storage(d, storages, layers);
    else
        draw_own_storages(d, storages, layers);
    if (d->profile->segment_rule != MOON_SEGMENTS_PER_LAYER && chance(d, 12))
        draw_stray(d, storages, layers);
}

/* ---- requests ---- */

static int64_t draw_length(const struct drawing *d, int64_t block) {
    if (!chance(d, 4))
        return block;
    switch (below(d, 5)) {
    case 0:
        return block * (2 + below(d, 2));
    case 1:
        return below(d, (uint64_t)block + 1);
    case 2:
        return block + 1;
    default:
        return d->unit_tokens * (1 + below(d, 4));
    }
}

static int64_t draw_shard(const struct drawing *d) {
    if (!d->tp_shared)
        return chance(d, 30) ? PICK(d, 1, -1) : 0;
    int64_t owned = d->store_tp / d->tp, first = d->rank % d->tp * owned;
    return chance(d, 12) ? PICK(d, -1, 0, first - 1, first + owned) : first + below(d, (uint64_t)owned);
}

static void draw_request(const struct drawing *d, struct moon_json *requests) {
    struct moon_json *request = moon_json_push(requests, moon_json_object(d->arena));
    size_t group = (size_t)below(d, d->group_count), chunk_count = (size_t)below(d, 5);
    int64_t block = d->block_tokens[group], table = chance(d, 12) ? below(d, 3) : 4;
    bool plain = chance(d, 2); /* every chunk a block */
    set_int(d, request, "group", (int64_t)group);
    struct moon_json *chunks = set_array(d, request, "chunks"), *blocks = set_array(d, request, "block_ids");
    struct moon_json *shards = set_array(d, request, "shard_ids");
    for (size_t i = 0; i < chunk_count; i++) {
        struct moon_json *chunk = moon_json_push(chunks, moon_json_array(d->arena));
        int64_t start = block * below(d, 4) + (plain || !chance(d, 10) ? 0 : below(d, (uint64_t)block));
        push_int(d, chunk, start);
        push_int(d, chunk, start + (plain ? block : draw_length(d, block)));
        if (!chance(d, 40))
            push_int(d, shards, draw_shard(d));
    }
    for (int64_t i = 0; i < table; i++)
        push_int(d, blocks, below(d, (uint64_t)d->num_blocks));
}

int moon_segments_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                       struct moon_json **given) {
    struct drawing d = {.arena = arena, .random = random, .profile = profile, .given = moon_json_object(arena)};
    draw_engine(&d);
    moon_json_set(arena, d.given, "use_mla", moon_json_bool(arena, false));
    set_text(&d, d.given, "kv_role", "kv_both");
    set_text(&d, d.given, "model", "m");
    draw_caches(&d);
    struct moon_json *requests = set_array(&d, d.given, "requests");
    for (int64_t n = 1 + below(&d, 4); n > 0; n--)
        draw_request(&d, requests);
    struct moon_json *single = set_array(&d, d.given, "single_blocks");
    for (int64_t n = d.sharing ? 0 : below(&d, 3); n > 0; n--)
        push_int(&d, single, below(&d, (uint64_t)d.num_blocks));
    *given = d.given;
    return moon_json_broken(d.given) ? moon_fail(NULL, MOON_ERR_MEMORY, NULL, "no memory for a drawn case") : MOON_OK;
}
