/* SPDX-License-Identifier: Apache-2.0 */
/* Draws cases for the suite hash: block and token edges, every kind of extra key, appends, equal strings. */
#include "conformance/suites/hash.h"

#include "ref/base/utf8.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* What the drawing functions share. */
struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given;
    int64_t block;
    int64_t prompt; /* tokens */
};

static bool one_in(const struct drawing *drawing, uint64_t n) {
    return moon_random_chance(drawing->random, 1, n);
}

static int64_t between(const struct drawing *drawing, int64_t low, int64_t high) {
    return moon_random_between(drawing->random, low, high);
}

static void set(const struct drawing *drawing, const char *name, struct moon_json *value) {
    moon_json_set(drawing->arena, drawing->given, name, value);
}

/* A string of the kinds that matter to the serialisations: singletons, length classes, all widths of UTF-8, a few equal
 * ones. */
static struct moon_json *draw_string(const struct drawing *drawing) {
    static const char *const common[] = {"same", "same", "a",        "\xc3\xa9", "x",         "",
                                         "mm",   "lora", "tenant-a", "image-0",  "cache_salt"};
    static const size_t lengths[] = {1, 2, 3, 23, 24, 32, 64, 127, 128, 255, 256, 257, 1000};
    static const uint32_t points[] = {'a', 0xff, 0x100, 0x7ff, 0x800, 0xffff, 0x10000, 0x1f9c2, 0};
    if (one_in(drawing, 2))
        return moon_json_string(drawing->arena, common[moon_random_below(drawing->random, COUNT(common))]);
    size_t length = lengths[moon_random_below(drawing->random, COUNT(lengths))];
    if (one_in(drawing, 60))
        length = (size_t)between(drawing, 65530, 65540); /* around the size that leaves the frame */
    uint32_t point = points[moon_random_below(drawing->random, COUNT(points))];
    if (one_in(drawing, 40))
        point = 0xd800 + (uint32_t)moon_random_below(drawing->random, 0x800);
    char *bytes = moon_arena_alloc(drawing->arena, length + MOON_UTF8_BYTES_MAX);
    size_t used = 0;
    while (bytes && used < length) {
        used += moon_utf8_encode(point, bytes + used);
        point = one_in(drawing, 8) ? 'b' : point;
    }
    return bytes ? moon_json_bytes(drawing->arena, bytes, used) : NULL;
}

static int64_t draw_token(const struct drawing *drawing) {
    static const int64_t edges[] = {
        0,     1,        23,         24,         127,        128,           255,        256,   65535,
        65536, 16777216, 2147483646, 2147483647, 2147483648, 1099511627779, 4294967295, 32767, 32768};
    if (one_in(drawing, 4))
        return edges[moon_random_below(drawing->random, one_in(drawing, 10) ? COUNT(edges) : 13)];
    return between(drawing, 0, 151935);
}

static struct moon_json *draw_tokens(const struct drawing *drawing, int64_t count) {
    struct moon_json *list = moon_json_array(drawing->arena);
    for (int64_t i = 0; i < count; i++)
        moon_json_push(list, moon_json_int(drawing->arena, draw_token(drawing)));
    return list;
}

static struct moon_json *draw_token_rule(const struct drawing *drawing, int64_t count) {
    struct moon_json *rule = moon_json_object(drawing->arena);
    moon_json_set(drawing->arena, rule, "start", moon_json_int(drawing->arena, between(drawing, 0, 70000)));
    moon_json_set(drawing->arena, rule, "step", moon_json_int(drawing->arena, between(drawing, 0, 100000)));
    moon_json_set(drawing->arena, rule, "mod", moon_json_int(drawing->arena, one_in(drawing, 2) ? 151936 : 2147483647));
    moon_json_set(drawing->arena, rule, "count", moon_json_int(drawing->arena, count));
    return rule;
}

static void draw_algorithm_and_seed(const struct drawing *drawing) {
    static const char *const seeds[] = {"0", "42", "random", "", "007", "7", "4294967295"};
    enum moon_hash_algorithm algorithm =
        (enum moon_hash_algorithm)moon_random_below(drawing->random, MOON_HASH_ALGORITHMS);
    bool fixed = drawing->profile->none_hash == MOON_NONE_HASH_FIXED_SEED && moon_hash_algorithm_is_sha256(algorithm);
    set(drawing, "algo", moon_json_string(drawing->arena, moon_hash_algorithm_name(algorithm)));
    set(drawing, "python_hash_seed",
        fixed && one_in(drawing, 3)
            ? moon_json_null(drawing->arena)
            : moon_json_string(drawing->arena, seeds[moon_random_below(drawing->random, COUNT(seeds))]));
}

static void draw_sizes(struct drawing *drawing) {
    static const int64_t blocks[] = {1, 2, 3, 4, 5, 8, 16, 16, 16, 23, 24, 32, 64, 128, 255, 256, 257};
    drawing->block = blocks[moon_random_below(drawing->random, COUNT(blocks))];
    drawing->prompt = drawing->block * between(drawing, 0, 5) + between(drawing, 0, 2) - 1;
    if (one_in(drawing, 3))
        drawing->prompt = between(drawing, 0, 5 * drawing->block);
    if (one_in(drawing, 100)) { /* near the end of a pickle frame, and chains that are told by samples */
        drawing->block = one_in(drawing, 2) ? between(drawing, 13090, 13120) : 4;
        drawing->prompt = 13120;
    }
    drawing->prompt = drawing->prompt < 0 ? 0 : drawing->prompt;
    set(drawing, "block_size", moon_json_int(drawing->arena, drawing->block));
}

static void draw_embeds(const struct drawing *drawing) {
    static const char *const types[] = {"float32", "float16", "bfloat16"};
    size_t type = (size_t)moon_random_below(drawing->random, COUNT(types));
    int64_t hidden = between(drawing, 1, 4);
    size_t bytes = (size_t)(drawing->prompt * hidden) * (type == 0 ? 4 : 2);
    uint8_t *rows = moon_arena_alloc(drawing->arena, bytes);
    struct moon_json *embeds = moon_json_object(drawing->arena);
    if (rows)
        moon_random_fill(drawing->random, rows, bytes);
    moon_json_set(drawing->arena, embeds, "dtype", moon_json_string(drawing->arena, types[type]));
    moon_json_set(drawing->arena, embeds, "num_tokens", moon_json_int(drawing->arena, drawing->prompt));
    moon_json_set(drawing->arena, embeds, "hidden_size", moon_json_int(drawing->arena, hidden));
    moon_json_set(drawing->arena, embeds, "data_hex", rows ? moon_json_hex(drawing->arena, rows, bytes) : NULL);
    set(drawing, "prompt_embeds", embeds);
}

static void draw_mask(const struct drawing *drawing) {
    struct moon_json *mask = moon_json_array(drawing->arena);
    for (int64_t i = 0; i < drawing->prompt; i++)
        moon_json_push(mask, moon_json_bool(drawing->arena, one_in(drawing, 2)));
    set(drawing, "prompt_is_token_ids", mask);
}

static void draw_prompt(const struct drawing *drawing) {
    bool embeds = drawing->prompt < 1000 && one_in(drawing, 6), tokens = !embeds || one_in(drawing, 2);
    if (!tokens)
        set(drawing, "prompt_token_ids", moon_json_null(drawing->arena));
    else if (drawing->prompt > 2000 || one_in(drawing, 10))
        set(drawing, "prompt_token_ids", draw_token_rule(drawing, drawing->prompt));
    else
        set(drawing, "prompt_token_ids", draw_tokens(drawing, drawing->prompt));
    if (embeds)
        draw_embeds(drawing);
    else
        set(drawing, "prompt_embeds", moon_json_null(drawing->arena));
    if (embeds && tokens)
        draw_mask(drawing);
    else
        set(drawing, "prompt_is_token_ids", moon_json_null(drawing->arena));
}

static void draw_appends(const struct drawing *drawing) {
    struct moon_json *appends = moon_json_array(drawing->arena);
    int64_t count = one_in(drawing, 2) ? between(drawing, 1, 6) : 0;
    for (int64_t i = 0; i < count; i++)
        moon_json_push(appends, draw_tokens(drawing, between(drawing, 0, one_in(drawing, 4) ? 3 * drawing->block : 4)));
    set(drawing, "append_token_ids", appends);
}

static void draw_lora_and_salt(const struct drawing *drawing) {
    struct moon_json *lora = moon_json_null(drawing->arena);
    if (one_in(drawing, 3)) {
        lora = moon_json_object(drawing->arena);
        moon_json_set(drawing->arena, lora, "name", draw_string(drawing));
        moon_json_set(drawing->arena, lora, "path", draw_string(drawing));
    }
    set(drawing, "lora", lora);
    set(drawing, "cache_salt", one_in(drawing, 3) ? draw_string(drawing) : moon_json_null(drawing->arena));
}

/* Items one behind the other, as the releases expect them. */
static void draw_mm(const struct drawing *drawing) {
    struct moon_json *features = moon_json_array(drawing->arena);
    int64_t count = one_in(drawing, 2) ? between(drawing, 1, 6) : 0, at = 0;
    for (int64_t i = 0; i < count && at <= drawing->prompt; i++) {
        struct moon_json *item = moon_json_object(drawing->arena);
        int64_t length = between(drawing, 1, one_in(drawing, 3) ? 3 * drawing->block : 4);
        at += between(drawing, 0, one_in(drawing, 3) ? 2 * drawing->block : 3);
        moon_json_set(drawing->arena, item, "identifier", draw_string(drawing));
        moon_json_set(drawing->arena, item, "offset", moon_json_int(drawing->arena, at));
        moon_json_set(drawing->arena, item, "length", moon_json_int(drawing->arena, length));
        moon_json_push(features, item);
        at += length;
    }
    set(drawing, "mm_features", features);
}

int moon_hash_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given) {
    struct drawing drawing = {.arena = arena, .random = random, .profile = profile, .given = moon_json_object(arena)};
    draw_algorithm_and_seed(&drawing);
    draw_sizes(&drawing);
    draw_prompt(&drawing);
    draw_appends(&drawing);
    draw_lora_and_salt(&drawing);
    draw_mm(&drawing);
    set(&drawing, "hash_lookahead_tokens",
        moon_json_int(arena, profile->hash_lookahead && one_in(&drawing, 6) ? between(&drawing, 1, 5) : 0));
    set(&drawing, "share_equal_strings", moon_json_bool(arena, one_in(&drawing, 3)));
    *given = drawing.given;
    return moon_json_broken(drawing.given) ? MOON_ERR_MEMORY : 0;
}
