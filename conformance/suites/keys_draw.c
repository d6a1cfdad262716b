/* SPDX-License-Identifier: Apache-2.0 */
/* Suite keys: random cases, with a preference for names and sizes at which keys go wrong. */
#include "conformance/suites/keys.h"

#include <stdio.h>
#include <string.h>

struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
};

static uint64_t below(const struct drawing *drawing, uint64_t bound) {
    return moon_random_below(drawing->random, bound);
}

static void set_int(const struct drawing *drawing, struct moon_json *object, const char *name, uint64_t value) {
    moon_json_set(drawing->arena, object, name, moon_json_uint(drawing->arena, value));
}

#define PICK(drawing, list) (list)[below(drawing, sizeof(list) / sizeof((list)[0]))]

/* A name of up to four pieces, most of which are what a key is made of. */
static struct moon_json *draw_name(const struct drawing *drawing) {
    static const char *const pieces[] = {
        "llama", "Qwen2.5-7B", "@",      "@tp_rank:0", "@pp_rank:1",       "tp_rank:0", "@pcp0", "/",  ":",
        "模型",  "m",          "модель", " ",          "\xf0\x9f\xa6\x99", "@group:0",  "a",     "-1", "\\",
    };
    char name[128] = ""; /* four pieces of at most 12 bytes fit */
    size_t length = 0;
    for (uint64_t count = below(drawing, 5); count > 0; count--)
        length += (size_t)snprintf(name + length, sizeof name - length, "%s", PICK(drawing, pieces));
    return moon_json_string(drawing->arena, name);
}

static uint64_t draw_rank(const struct drawing *drawing) {
    static const uint64_t edges[] = {0, 1, 9, 10, 63, 127, 1000, 4294967296u};
    return below(drawing, 2) ? PICK(drawing, edges) : below(drawing, 64);
}

static void draw_ranks(const struct drawing *drawing, struct moon_json *object, bool all) {
    static const char *const names[] = {"tp_rank", "pcp_rank", "dcp_rank", "pp_rank"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (all || below(drawing, 2))
            set_int(drawing, object, names[i], draw_rank(drawing));
}

static struct moon_json *draw_metadata(const struct drawing *drawing) {
    static const char *const spaces[] = {
        "",
        "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc",
        "@store_tp:2@store_pp:2@store_format:tp_shared_lbnhc",
        "@store_pp:1@store_format:tp_shared_mqa",
        "@store_pp:4@store_format:rank_local_tp2_layout_BLHNC",
    };
    struct moon_json *metadata = moon_json_object(drawing->arena);
    moon_json_set(drawing->arena, metadata, "model_name", draw_name(drawing));
    draw_ranks(drawing, metadata, true);
    if (drawing->profile->group_numbering != MOON_GROUP_NONE)
        set_int(drawing, metadata, "group_id", draw_rank(drawing));
    if (drawing->profile->cache_prefix)
        moon_json_set(drawing->arena, metadata, "cache_prefix",
                      below(drawing, 2) ? draw_name(drawing) : moon_json_string(drawing->arena, ""));
    if (drawing->profile->store_namespace)
        moon_json_set(drawing->arena, metadata, "store_namespace",
                      moon_json_string(drawing->arena, PICK(drawing, spaces)));
    return metadata;
}

static struct moon_json *draw_hash(const struct drawing *drawing, size_t length) {
    uint8_t bytes[128];
    moon_random_fill(drawing->random, bytes, length);
    return moon_json_hex(drawing->arena, bytes, length);
}

static void draw_one_key(const struct drawing *drawing, struct moon_json *given, bool overrides) {
    static const size_t lengths[] = {16, 32, 16, 32, 64, 0, 1, 128};
    moon_json_set(drawing->arena, given, "chunk_hash", draw_hash(drawing, PICK(drawing, lengths)));
    if (!overrides)
        return;
    struct moon_json *override =
        moon_json_set(drawing->arena, given, "override_ranks", moon_json_object(drawing->arena));
    draw_ranks(drawing, override, false);
}

/* A mask of random length, or null. */
static struct moon_json *draw_mask(const struct drawing *drawing, uint64_t chunks) {
    if (below(drawing, 3) == 0)
        return moon_json_null(drawing->arena);
    struct moon_json *mask = moon_json_array(drawing->arena);
    for (uint64_t count = below(drawing, chunks + 2); count > 0; count--)
        moon_json_push(mask, moon_json_bool(drawing->arena, below(drawing, 3) != 0));
    return mask;
}

static void draw_chunks(const struct drawing *drawing, struct moon_json *given) {
    static const uint64_t hash_blocks[] = {1, 4, 16, 16, 128};
    static const uint64_t ratios[] = {1, 1, 1, 2, 3, 16};
    bool one_size = drawing->profile->chunk_hash == MOON_CHUNK_HASH_ONLY;
    uint64_t hash_block = PICK(drawing, hash_blocks), ratio = one_size ? 1 : PICK(drawing, ratios);
    uint64_t block = hash_block * ratio + (!one_size && below(drawing, 20) == 0 ? 1 : 0);
    uint64_t chunks = below(drawing, 9), hashes = chunks * ratio + below(drawing, ratio + 1);
    uint64_t tokens = hashes * hash_block;
    if (below(drawing, 3) == 0)
        tokens = below(drawing, tokens + 2 * block + 1);
    struct moon_json *list = moon_json_array(drawing->arena);
    size_t digest = below(drawing, 2) ? 16 : 32;
    for (uint64_t i = 0; i < hashes; i++)
        moon_json_push(list, draw_hash(drawing, digest));
    set_int(drawing, given, "block_size", block);
    set_int(drawing, given, "hash_block_size", hash_block);
    set_int(drawing, given, "token_len", tokens);
    moon_json_set(drawing->arena, given, "block_hashes", list);
    set_int(drawing, given, "mask_num", below(drawing, 2) ? 0 : below(drawing, tokens + block + 1));
    if (!drawing->profile->chunk_mask || below(drawing, 2))
        return;
    uint64_t step = below(drawing, 8) + 1;
    moon_json_set(drawing->arena, given, "chunk_mask", draw_mask(drawing, chunks));
    set_int(drawing, given, "put_step", step);
    set_int(drawing, given, "put_step_rank", below(drawing, step));
}

int moon_keys_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given) {
    static const char *const ops[] = {"pool_key", "chunk_keys", "chunk_keys", "mooncake_group_id"};
    struct drawing drawing = {arena, random, profile};
    uint64_t op = below(&drawing, profile->mooncake_group_id ? 4 : 3);
    struct moon_json *drawn = moon_json_object(arena);
    moon_json_set(arena, drawn, "op", moon_json_string(arena, ops[op]));
    moon_json_set(arena, drawn, "metadata", draw_metadata(&drawing));
    if (strcmp(ops[op], "chunk_keys") == 0)
        draw_chunks(&drawing, drawn);
    else
        draw_one_key(&drawing, drawn, op == 0 && profile->prefix_overrides);
    if (moon_json_broken(drawn))
        return MOON_ERR_MEMORY;
    *given = drawn;
    return 0;
}
