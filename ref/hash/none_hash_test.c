/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of NONE_HASH by release, algorithm and seed; values are those of CPython 3.11, cbor2 6.3.0 and xxhash 4.1.0. */
#include "ref/hash/none_hash.h"

#include "ref/base/text.h"
#include "ref/base/unit.h"

static int fill_with_ab(void *context, void *bytes, size_t length) {
    size_t *asked = context;
    *asked += length;
    memset(bytes, 0xab, length);
    return 0;
}

static int no_entropy(void *context, void *bytes, size_t length) {
    (void)context;
    (void)bytes;
    (void)length;
    return MOON_ERR_IO;
}

static void collect(void *context, const void *bytes, size_t length) {
    moon_text_hex(context, bytes, length);
}

struct outcome {
    struct moon_none_hash_value value;
    size_t entropy_bytes;
    char hex[2 * MOON_DIGEST_BYTES_MAX + 1];
    char preimage[256];
};

static struct outcome run(const char *profile, enum moon_hash_algorithm algorithm, const char *seed) {
    static struct moon_hasher hasher;
    struct outcome outcome = {.entropy_bytes = 0};
    struct moon_error error;
    struct moon_text text;
    struct moon_string string = {.bytes = seed, .length = seed ? strlen(seed) : 0};
    const struct moon_entropy entropy = {fill_with_ab, &outcome.entropy_bytes};
    moon_text_open(&text, moon_memory_heap());
    const struct moon_sink tap = {collect, &text};
    moon_hasher_open(&hasher, algorithm, moon_memory_heap());
    MOON_CHECK_INT(moon_none_hash(&hasher, moon_profile_find(profile, &error), seed ? &string : NULL, &entropy, &tap,
                                  &outcome.value, &error),
                   0);
    moon_hasher_close(&hasher);
    snprintf(outcome.preimage, sizeof outcome.preimage, "%s", moon_text_value(&text));
    moon_text_clear(&text);
    moon_text_hex(&text, outcome.value.bytes, outcome.value.length);
    snprintf(outcome.hex, sizeof outcome.hex, "%s", moon_text_value(&text));
    moon_text_close(&text);
    return outcome;
}

static void set_seeds(void) {
    static const char *const releases[] = {"vllm-0.21", "vllm-0.28", "vllm-0.29", "vllm-0.33"};
    static const struct {
        enum moon_hash_algorithm algorithm;
        const char *seed, *expected;
    } rows[] = {
        {MOON_SHA256, "0", "1973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c"},
        {MOON_SHA256, "42", "c0bc02c9fc92a4944335649961b9e55cc41b194bece4801e8c6ef0f0f3f5884a"},
        {MOON_SHA256, "", "3279c4b947f331d055c47442171c9ea17712596bd7fe094c31d4a5d432b42d68"},
        {MOON_SHA256_CBOR, "0", "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e"},
        {MOON_XXHASH, "0", "6fb31cc38bba6066183f7f2104b9c051"},
        {MOON_XXHASH_CBOR, "", "902bbcf97174df1ea0a482954fa7b32a"},
    };
    for (size_t r = 0; r < sizeof releases / sizeof *releases; r++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct outcome outcome = run(releases[r], rows[i].algorithm, rows[i].seed);
            MOON_CHECK_TEXT(outcome.hex, rows[i].expected);
            CU_ASSERT(!outcome.value.random);
            MOON_CHECK_INT(outcome.entropy_bytes, 0);
        }
}

static void seeds_are_text(void) {
    CU_ASSERT(strcmp(run("0.33", MOON_SHA256, "7").hex, run("0.33", MOON_SHA256, "007").hex) != 0);
    MOON_CHECK_TEXT(run("0.33", MOON_SHA256, "random").preimage, "8005950a000000000000008c0672616e646f6d942e");
    MOON_CHECK_TEXT(run("0.33", MOON_SHA256_CBOR, "007").preimage, "63303037");
}

static void old_releases_draw(void) {
    for (int i = 0; i < MOON_HASH_ALGORITHMS; i++) {
        struct outcome outcome = run("0.28", (enum moon_hash_algorithm)i, NULL);
        CU_ASSERT(outcome.value.random);
        MOON_CHECK_INT(outcome.entropy_bytes, 32);
        MOON_CHECK_TEXT(outcome.hex, "abababababababababababababababababababababababababababababababab");
        MOON_CHECK_TEXT(outcome.preimage, "");
    }
}

static void new_releases_have_a_fixed_seed(void) {
    struct outcome outcome = run("0.29", MOON_SHA256, NULL);
    MOON_CHECK_TEXT(outcome.hex, "066b1e8987e027138e98701c46128929378935f9b6cd1549105ae6b4f0d71198");
    CU_ASSERT(!outcome.value.random);
    MOON_CHECK_INT(outcome.entropy_bytes, 0);
    MOON_CHECK_TEXT(run("0.33", MOON_SHA256_CBOR, NULL).hex,
                    "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0");
}

static void new_releases_draw_a_text(void) {
    struct outcome outcome = run("0.29", MOON_XXHASH_CBOR, NULL);
    CU_ASSERT(outcome.value.random);
    MOON_CHECK_INT(outcome.value.length, 16);
    MOON_CHECK_INT(outcome.entropy_bytes, 32);
    CU_ASSERT(strncmp(outcome.preimage, "784061626162", 12) == 0); /* string of 64: "abab..." */
    MOON_CHECK_INT(strlen(outcome.preimage), 2 * (2 + 64));
}

static void entropy_fails(void) {
    static struct moon_hasher hasher;
    struct moon_none_hash_value value;
    struct moon_error error;
    const struct moon_entropy entropy = {no_entropy, NULL};
    moon_hasher_open(&hasher, MOON_XXHASH, moon_memory_heap());
    MOON_CHECK_INT(moon_none_hash(&hasher, moon_profile_find("0.28", &error), NULL, &entropy, NULL, &value, &error),
                   MOON_ERR_IO);
    MOON_CHECK_INT(moon_none_hash(&hasher, moon_profile_find("0.29", &error), NULL, &entropy, NULL, &value, &error),
                   MOON_ERR_IO);
    MOON_CHECK_TEXT(error.message, "no random bytes for NONE_HASH");
    moon_hasher_close(&hasher);
}

static void refusals(void) {
    static struct moon_hasher hasher;
    struct moon_none_hash_value value;
    struct moon_error error;
    const struct moon_entropy entropy = {no_entropy, NULL};
    const struct moon_string surrogate = {.bytes = "\xed\xa0\x80", .length = 3}, plain = {.bytes = "0", .length = 1};
    moon_hasher_open(&hasher, MOON_SHA256_CBOR, moon_memory_heap());
    MOON_CHECK_INT(
        moon_none_hash(&hasher, moon_profile_find("0.33", &error), &surrogate, &entropy, NULL, &value, &error),
        MOON_ERR_REFUSED);
    moon_hasher_close(&hasher);
    struct moon_memory_failing failing;
    moon_memory_failing_init(&failing, moon_memory_heap(), 1);
    moon_hasher_open(&hasher, MOON_SHA256, &failing.memory);
    MOON_CHECK_INT(moon_none_hash(&hasher, moon_profile_find("0.33", &error), &plain, &entropy, NULL, &value, &error),
                   MOON_ERR_MEMORY);
    moon_hasher_close(&hasher);
    MOON_CHECK_INT(failing.held_bytes, 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a set seed gives the digest of its text in every release (HASH-010)", set_seeds},
        {"seeds are text: 7 is not 007, random is a word (HASH-011)", seeds_are_text},
        {"without seed, releases up to 0.28 draw 32 bytes for every algorithm (HASH-012)", old_releases_draw},
        {"without seed, SHA-256 has a fixed seed from 0.29 on (HASH-013)", new_releases_have_a_fixed_seed},
        {"without seed, xxHash hashes 64 random hex digits from 0.29 on (HASH-014)", new_releases_draw_a_text},
        {"missing entropy is an error, never zeros", entropy_fails},
        {"unusable seeds and refused memory are errors", refusals},
        {NULL, NULL}};
    return moon_unit_main("none_hash", cases, argc, argv);
}
