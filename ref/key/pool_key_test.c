/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of building keys: the text of each release, names copied as they are, and different identities giving different
 * keys. */
#include "ref/key/pool_key.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"

#include <stdlib.h>

static const struct moon_profile *release(const char *name) {
    return moon_profile_find(name, NULL);
}

static const char digest[] = "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798";

/* The key as a C string; the caller closes `out`. */
static const char *build(struct moon_text *out, const char *profile, const struct moon_pool_key *key) {
    moon_text_open(out, moon_memory_heap());
    moon_key_build(release(profile), key, moon_key_text(digest), out);
    return moon_text_value(out);
}

static struct moon_pool_key full_key(void) {
    return (struct moon_pool_key){
        .cache_prefix = moon_key_text("teamA"),
        .model_name = moon_key_text("Llama"),
        .store_namespace = moon_key_text("@store_tp:4@store_pp:2@store_format:tp_shared_lbhnc"),
        .tp_rank = 3,
        .pcp_rank = 1,
        .dcp_rank = 2,
        .pp_rank = 10,
        .group_id = 5,
    };
}

static void each_release_writes_its_parts(void) {
    static const struct {
        const char *profile, *before_hash;
    } rows[] = {
        {"0.21", "Llama@tp_rank:3@pcp1@dcp2@pp_rank:10@"},
        {"0.22", "Llama@tp_rank:3@pcp1@dcp2@pp_rank:10@group:5@"},
        {"0.23", "Llama@tp_rank:3@pcp1@dcp2@pp_rank:10@group:5@"},
        {"0.24", "teamA@Llama@tp_rank:3@pcp1@dcp2@pp_rank:10@group:5@"},
        {"0.29", "teamA@Llama@tp_rank:3@pcp1@dcp2@pp_rank:10@group:5@"},
        {"0.30", "teamA@Llama@store_tp:4@store_pp:2@store_format:tp_shared_lbhnc"
                 "@tp_rank:3@pcp1@dcp2@pp_rank:10@group:5@"},
        {"0.33", "teamA@Llama@store_tp:4@store_pp:2@store_format:tp_shared_lbhnc"
                 "@tp_rank:3@pcp1@dcp2@pp_rank:10@group:5@"},
    };
    const struct moon_pool_key key = full_key();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_text out;
        char expected[512];
        snprintf(expected, sizeof expected, "%s%s", rows[i].before_hash, digest);
        MOON_CHECK_TEXT(build(&out, rows[i].profile, &key), expected);
        moon_text_close(&out);
    }
}

static void the_measured_key_is_124_bytes(void) {
    struct moon_text out;
    const struct moon_pool_key key = {.model_name = moon_key_text("Llama-3.1-8B-Instruct")};
    MOON_CHECK_TEXT(build(&out, "0.33", &key), "Llama-3.1-8B-Instruct@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@"
                                               "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798");
    MOON_CHECK_INT(out.length, 124);
    moon_text_close(&out);
}

static void model_names_are_cut_at_the_last_slash(void) {
    static const char *const rows[][2] = {
        {"m", "m"},         {"org/m", "m"},   {"/x/m//", "m"},
        {"a/b/c//", "c"},   {"/", ""},        {"", ""},
        {"///", ""},        {"a\\b", "a\\b"}, {"/models/x-1.0/", "x-1.0"},
        {"a@b/c@d", "c@d"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[32];
        struct moon_key_text cut = moon_model_name(moon_key_text(rows[i][0]));
        snprintf(name, sizeof name, "%.*s", (int)cut.length, cut.bytes);
        MOON_CHECK_TEXT(name, rows[i][1]);
    }
}

static void names_are_never_escaped(void) {
    struct moon_text out;
    const struct moon_pool_key key = {.cache_prefix = moon_key_text("p@q:/ "),
                                      .model_name = moon_key_text("模型@tp_rank:7")};
    MOON_CHECK_TEXT(build(&out, "0.33", &key), "p@q:/ @模型@tp_rank:7@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@"
                                               "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798");
    moon_text_close(&out);
}

static void names_may_hold_nul_bytes(void) {
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    const struct moon_pool_key key = {.model_name = {"a\0b", 3}};
    moon_key_prefix(release("0.21"), &key, &out);
    MOON_CHECK_INT(memcmp(out.data, "a\0b@tp_rank:0", 13), 0);
    moon_text_close(&out);
}

static void the_lifecycle_group_names_no_rank(void) {
    const struct moon_pool_key key = full_key();
    static const char *const rows[][2] = {
        {"0.28", "vllm-mooncake-store:teamA@Llama@beef"},
        {"0.30", "vllm-mooncake-store:teamA@Llama@store_tp:4@store_pp:2@store_format:tp_shared_lbhnc@beef"}};
    for (size_t i = 0; i < 2; i++) {
        struct moon_text out;
        moon_text_open(&out, moon_memory_heap());
        moon_key_lifecycle_group(release(rows[i][0]), &key, moon_key_text("beef"), &out);
        MOON_CHECK_TEXT(moon_text_value(&out), rows[i][1]);
        moon_text_close(&out);
    }
}

static void the_known_alias_gives_equal_keys(void) {
    static const char *const aliases[][2] = {{"a", "b@c"}, {"a@b", "c"}, {"", "a@b@c"}};
    struct moon_text keys[3];
    for (size_t i = 0; i < 3; i++) {
        const struct moon_pool_key key = {.cache_prefix = moon_key_text(aliases[i][0]),
                                          .model_name = moon_key_text(aliases[i][1])};
        build(&keys[i], "0.33", &key);
    }
    MOON_CHECK_TEXT(keys[1].data, keys[0].data);
    MOON_CHECK_TEXT(keys[2].data, keys[0].data);
    for (size_t i = 0; i < 3; i++)
        moon_text_close(&keys[i]);
}

/* Names without '@', as operators use them. */
static struct moon_key_text draw_name(struct moon_random *random, bool empty) {
    static const char *const names[] = {"m",       "m1", "llama", "tp_rank:0", "a:b",
                                        "group:1", "0",  "x y",   "pcp0",      "модель"};
    return moon_key_text(empty && moon_random_chance(random, 1, 3) ? "" : names[moon_random_below(random, 10)]);
}

static struct moon_pool_key draw_key(struct moon_random *random) {
    static const char *const spaces[] = {"", "@store_pp:1@store_format:tp_shared_mqa",
                                         "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc"};
    struct moon_pool_key key = {draw_name(random, true),
                                draw_name(random, false),
                                moon_key_text(spaces[moon_random_below(random, 3)]),
                                moon_random_between(random, 0, 12),
                                moon_random_between(random, 0, 2),
                                moon_random_between(random, 0, 12),
                                moon_random_between(random, 0, 2),
                                moon_random_between(random, 0, 12)};
    return key;
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Keys of distinct identities must be distinct: as many different keys as different identities. An identity is written
 * down in a form that cannot alias. */
static void different_identities_have_different_keys(void) {
    enum { COUNT = 4000 };
    static const char *keys[COUNT], *identities[COUNT];
    struct moon_arena arena;
    struct moon_random random;
    struct moon_text out;
    moon_arena_open(&arena, moon_memory_heap());
    moon_random_seed(&random, 4);
    for (size_t i = 0; i < COUNT; i++) {
        struct moon_pool_key key = draw_key(&random);
        keys[i] = moon_arena_format(&arena, "%s", build(&out, "0.33", &key));
        identities[i] = moon_arena_format(&arena, "%s\n%s\n%s\n%lld %lld %lld %lld %lld", key.cache_prefix.bytes,
                                          key.model_name.bytes, key.store_namespace.bytes, (long long)key.tp_rank,
                                          (long long)key.pcp_rank, (long long)key.dcp_rank, (long long)key.pp_rank,
                                          (long long)key.group_id);
        moon_text_close(&out);
    }
    qsort(keys, COUNT, sizeof keys[0], compare_texts);
    qsort(identities, COUNT, sizeof identities[0], compare_texts);
    size_t distinct_keys = 1, distinct_identities = 1;
    for (size_t i = 1; i < COUNT; i++) {
        distinct_keys += strcmp(keys[i], keys[i - 1]) != 0;
        distinct_identities += strcmp(identities[i], identities[i - 1]) != 0;
    }
    MOON_CHECK_INT(distinct_keys, distinct_identities);
    CU_ASSERT(distinct_keys > COUNT / 2);
    moon_arena_close(&arena);
}

static int build_with(struct moon_memory *memory, const void *key) {
    struct moon_text out;
    moon_text_open(&out, memory);
    moon_key_build(release("0.33"), key, moon_key_text(digest), &out);
    bool failed = out.failed;
    moon_text_close(&out);
    return failed ? MOON_ERR_MEMORY : 0;
}

static void refused_memory_is_remembered(void) {
    const struct moon_pool_key key = full_key();
    moon_unit_refuse_memory(build_with, &key);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each release writes its own parts in order", each_release_writes_its_parts},
        {"the measured example key has 124 bytes", the_measured_key_is_124_bytes},
        {"a model path is cut at its last slash", model_names_are_cut_at_the_last_slash},
        {"names are copied without escaping", names_are_never_escaped},
        {"a name may hold a NUL byte", names_may_hold_nul_bytes},
        {"a lifecycle group names no rank and no KV cache group", the_lifecycle_group_names_no_rank},
        {"prefix and model that share an '@' give equal keys", the_known_alias_gives_equal_keys},
        {"different identities have different keys when no name holds '@'", different_identities_have_different_keys},
        {"memory refused at any request is remembered and leaks nothing", refused_memory_is_remembered},
        {NULL, NULL}};
    return moon_unit_main("pool_key", cases, argc, argv);
}
