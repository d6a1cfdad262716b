/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of strict profiles in hashing: each fault of a release is there, and is right in strict. */
#include "ref/hash/chain.h"
#include "ref/hash/none_hash.h"
#include "ref/key/deviation.h"

#include "ref/base/unit.h"

enum { DIGEST = 32, BLOCK = 4, BLOCKS = 3 };

/* Hashes of three blocks of four tokens, the last two appended in a step of their own. */
static void hash_of(const struct moon_profile *profile, const struct moon_identity *identity,
                    uint8_t out[BLOCKS * DIGEST]) {
    static struct moon_hasher hasher;
    static const uint8_t none_hash[DIGEST] = {7};
    static const int64_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct moon_chain chain;
    struct moon_error error;
    const struct moon_chain_options options = {.profile = profile,
                                               .block_tokens = BLOCK,
                                               .none_hash = none_hash,
                                               .none_hash_bytes = DIGEST,
                                               .identity = identity};
    moon_hasher_open(&hasher, MOON_SHA256, moon_memory_heap());
    moon_chain_open(&chain, &hasher, &options, moon_memory_heap());
    MOON_CHECK_INT(moon_chain_append(&chain, tokens, BLOCK, out, &error), 0);
    MOON_CHECK_INT(moon_chain_append(&chain, tokens + BLOCK, (size_t)2 * BLOCK, out + DIGEST, &error), 0);
    moon_chain_close(&chain);
    moon_hasher_close(&hasher);
}

/* True if two profiles give equal hashes from block `first` on. */
static bool same_from(int first, const struct moon_profile *a, const struct moon_profile *b,
                      const struct moon_identity *one, const struct moon_identity *other) {
    uint8_t left[BLOCKS * DIGEST], right[BLOCKS * DIGEST];
    hash_of(a, one, left);
    hash_of(b, other, right);
    return memcmp(left + first * DIGEST, right + first * DIGEST, (size_t)(BLOCKS - first) * DIGEST) == 0;
}

static void extra_keys_of_different_kinds_differ(void) {
    const struct moon_profile *real = moon_profile_find("0.30", NULL);
    const struct moon_string x = {.bytes = "x", .length = 1}, path = {.bytes = "/a", .length = 2},
                             other_path = {.bytes = "/b", .length = 2};
    const struct moon_identity lora = {.lora_name = &x, .lora_path = &path},
                               moved = {.lora_name = &x, .lora_path = &other_path}, salt = {.cache_salt = &x};
    uint8_t of_lora[BLOCKS * DIGEST], of_salt[BLOCKS * DIGEST];
    struct moon_profile strict;
    moon_profile_strict(real, &strict);
    hash_of(real, &lora, of_lora);
    hash_of(real, &salt, of_salt);
    CU_ASSERT(memcmp(of_lora, of_salt, DIGEST) == 0);
    hash_of(&strict, &lora, of_lora);
    hash_of(&strict, &salt, of_salt);
    CU_ASSERT(memcmp(of_lora, of_salt, DIGEST) != 0);
    CU_ASSERT_TRUE(same_from(0, real, real, &lora, &moved));
    CU_ASSERT_FALSE(same_from(0, &strict, &strict, &lora, &moved));
    CU_ASSERT_TRUE(same_from(0, &strict, moon_profile_find("0.31", NULL), &lora, &lora));
}

static void items_before_the_last_count_after_a_resume(void) {
    const struct moon_profile *real = moon_profile_find("0.30", NULL);
    const struct moon_mm_item items[] = {{{.bytes = "a", .length = 1}, 4, 2}, {{.bytes = "b", .length = 1}, 9, 2}},
                              others[] = {{{.bytes = "c", .length = 1}, 4, 2}, {{.bytes = "b", .length = 1}, 9, 2}};
    const struct moon_identity one = {.mm = items, .mm_count = 2}, other = {.mm = others, .mm_count = 2};
    struct moon_profile strict;
    moon_profile_strict(real, &strict);
    CU_ASSERT_TRUE(same_from(1, real, real, &one, &other)); /* a and c are both forgotten */
    CU_ASSERT_FALSE(same_from(1, &strict, &strict, &one, &other));
}

static void embeddings_of_a_mixed_prompt_count_as_token_0(void) {
    static const bool mask[] = {true, false, true};
    int64_t real[] = {5, 6, 7}, right[] = {5, 6, 7};
    struct moon_profile strict;
    moon_profile_strict(moon_profile_find("0.28", NULL), &strict);
    moon_prompt_mask(moon_profile_find("0.28", NULL), real, 3, mask);
    moon_prompt_mask(&strict, right, 3, mask);
    MOON_CHECK_INT(real[1], 6);
    MOON_CHECK_INT(right[1], 0);
    MOON_CHECK_INT(right[2], 7);
}

static int fill_once(void *context, void *bytes, size_t length) {
    int *draws = context;
    memset(bytes, ++*draws, length);
    return 0;
}

static void check_none_hash(const struct moon_profile *profile, enum moon_hash_algorithm algorithm, bool random,
                            size_t length) {
    static struct moon_hasher hasher;
    struct moon_none_hash_value value;
    struct moon_error error;
    int draws = 0;
    const struct moon_entropy entropy = {fill_once, &draws};
    moon_hasher_open(&hasher, algorithm, moon_memory_heap());
    MOON_CHECK_INT(moon_none_hash(&hasher, profile, NULL, &entropy, NULL, &value, &error), 0);
    MOON_CHECK_INT(value.random, random);
    MOON_CHECK_INT(value.length, length);
    moon_hasher_close(&hasher);
}

static void none_hash_without_a_seed_is_fixed(void) {
    struct moon_profile strict;
    const struct moon_profile *real = moon_profile_find("0.28", NULL);
    moon_profile_strict(real, &strict);
    check_none_hash(real, MOON_SHA256, true, 32);
    check_none_hash(&strict, MOON_SHA256, false, 32);
    check_none_hash(real, MOON_XXHASH, true, 32);
    check_none_hash(&strict, MOON_XXHASH, true, 16); /* it can be made to collide, so it stays random */
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"strict: extra keys of different kinds hash differently", extra_keys_of_different_kinds_differ},
        {"strict: items before the last count after a resume", items_before_the_last_count_after_a_resume},
        {"strict: embeddings of a mixed prompt count as token 0", embeddings_of_a_mixed_prompt_count_as_token_0},
        {"strict: NONE_HASH without a seed is fixed", none_hash_without_a_seed_is_fixed},
        {NULL, NULL}};
    return moon_unit_main("strict hashing", cases, argc, argv);
}
