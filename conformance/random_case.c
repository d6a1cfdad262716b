/* SPDX-License-Identifier: Apache-2.0 */
/* Cases whose hashes are drawn anew by every process: what can still be required of two answers. */
#include "conformance/random_case.h"

#include "conformance/suites/hash.h"
#include "conformance/suites/world.h"

bool moon_random_case(const struct moon_json *expect) {
    const struct moon_json *random = moon_json_member(expect, "random");
    return moon_json_is(random, MOON_JSON_BOOL) && random->boolean;
}

const struct moon_json *moon_random_expect(struct moon_arena *arena, const struct moon_json *answer) {
    struct moon_json *expect = moon_json_object(arena);
    moon_json_set(arena, expect, "random", moon_json_bool(arena, true));
    moon_json_set(arena, expect, "none_hash_len", moon_json_clone(arena, moon_json_member(answer, "none_hash_len")));
    return moon_json_broken(expect) ? NULL : expect;
}

static int differ(struct moon_difference *difference, const char *expected, const char *seen, const char *hint) {
    if (!expected || !seen || !hint)
        return MOON_ERR_MEMORY;
    *difference = (struct moon_difference){expected, seen, hint};
    return 1;
}

static const struct moon_json *none_hash_of(const struct moon_json *answer) {
    const struct moon_json *hash = moon_json_member(answer, "none_hash");
    return moon_json_is(hash, MOON_JSON_STRING) ? hash : NULL;
}

static int check_length(struct moon_arena *arena, const struct moon_json *expect, const struct moon_json *hash,
                        struct moon_difference *difference) {
    int64_t bytes = 0;
    struct moon_error ignored;
    if (moon_json_get_int("", expect, "none_hash_len", true, 1, 64, &bytes, &ignored) != 0 ||
        hash->length == (size_t)bytes * 2)
        return 0;
    return differ(difference, moon_arena_format(arena, "$.none_hash: %lld bytes", (long long)bytes),
                  moon_arena_format(arena, "$.none_hash: %zu bytes", hash->length / 2), "NONE_HASH has another length");
}

/* Hashes of a case from a NONE_HASH that someone else drew. *hashes gets *count digests, in `arena`. */
static int follow(struct moon_arena *arena, const struct moon_profile *profile, const struct moon_hash_case *one,
                  const uint8_t *none_hash, size_t none_hash_bytes, uint8_t **hashes, size_t *count,
                  struct moon_error *error) {
    struct moon_hasher hasher;
    struct moon_chain chain;
    const struct moon_chain_options options = {.profile = profile,
                                               .block_tokens = one->block_tokens,
                                               .lookahead_tokens = one->lookahead_tokens,
                                               .none_hash = none_hash,
                                               .none_hash_bytes = none_hash_bytes,
                                               .identity = &one->identity};
    size_t bytes = moon_hash_algorithm_bytes(one->algorithm);
    *hashes = moon_arena_array(arena, one->tokens / one->block_tokens + 1, bytes);
    if (!*hashes)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    moon_hasher_open(&hasher, one->algorithm, arena->memory);
    moon_chain_open(&chain, &hasher, &options, arena->memory);
    int status = 0;
    for (size_t i = 0; i < one->append_count && status == 0; i++)
        status = moon_chain_append(&chain, one->appends[i].tokens, one->appends[i].count,
                                   *hashes + chain.blocks * bytes, error);
    *count = (size_t)chain.blocks;
    moon_chain_close(&chain);
    moon_hasher_close(&hasher);
    return status;
}

/* All hashes of the chain against the list or the digest that was answered. */
static int compare_hashes(struct moon_arena *arena, const struct moon_json *answer, const uint8_t *hashes, size_t count,
                          size_t bytes, struct moon_difference *difference) {
    const struct moon_json *list = moon_json_member(answer, "block_hashes");
    const struct moon_json *digest = moon_json_member(answer, "block_hashes_sha256");
    uint8_t all[MOON_SHA256_BYTES];
    if (moon_json_is(digest, MOON_JSON_STRING)) {
        moon_sha256_of(hashes, count * bytes, all);
        const struct moon_json *own = moon_json_hex(arena, all, sizeof all);
        if (moon_json_equal(own, digest))
            return 0;
        return differ(difference, "$.block_hashes_sha256: that of the chain over the NONE_HASH that was answered",
                      moon_arena_format(arena, "$.block_hashes_sha256: %s", digest->bytes), "");
    }
    if (!moon_json_is(list, MOON_JSON_ARRAY) || list->count != count)
        return differ(difference, moon_arena_format(arena, "$.block_hashes: %zu hashes", count),
                      moon_arena_format(arena, "$.block_hashes: %s", moon_json_type_name(list)),
                      "the chain over the NONE_HASH that was answered has another length");
    size_t i = 0;
    for (const struct moon_json *one = list->first; one; one = one->next, i++) {
        const struct moon_json *own = moon_json_hex(arena, hashes + i * bytes, bytes);
        if (!own)
            return MOON_ERR_MEMORY;
        if (!moon_json_equal(own, one))
            return differ(difference, moon_arena_format(arena, "$.block_hashes[%zu]: %s", i, own->bytes),
                          moon_arena_format(arena, "$.block_hashes[%zu]: %s", i, one->bytes),
                          "the chain does not follow from the NONE_HASH that was answered");
    }
    return 0;
}

static int check_chain(struct moon_arena *arena, const struct moon_profile *profile, const struct moon_json *given,
                       const struct moon_json *answer, struct moon_difference *difference) {
    struct moon_hash_case one;
    struct moon_error error = {0};
    uint8_t none_hash[MOON_DIGEST_BYTES_MAX], *hashes = NULL;
    size_t count = 0;
    const struct moon_json *hex = none_hash_of(answer);
    if (hex->length > 2 * sizeof none_hash || moon_hex_decode(hex->bytes, hex->length, none_hash) != 0)
        return differ(difference, "$.none_hash: bytes in hex",
                      moon_arena_format(arena, "$.none_hash: %.100s", hex->bytes), "");
    int status = moon_hash_case_read(moon_suite_world_system(), arena, profile, "given", given, &one, &error);
    if (status == 0)
        status = follow(arena, profile, &one, none_hash, hex->length / 2, &hashes, &count, &error);
    if (status == MOON_ERR_MEMORY)
        return status;
    if (status != 0)
        return differ(difference, "hashes that follow from the NONE_HASH that was answered",
                      moon_arena_format(arena, "%s: %s", error.where, error.message),
                      "the reference cannot follow this answer");
    return compare_hashes(arena, answer, hashes, count, moon_hash_algorithm_bytes(one.algorithm), difference);
}

int moon_random_compare(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
                        const struct moon_json *given, const struct moon_json *expect, const struct moon_json *first,
                        const struct moon_json *second, struct moon_difference *difference) {
    const struct moon_json *answers[] = {first, second};
    for (int i = 0; i < 2; i++) {
        int status = moon_compare(arena, suite, given, expect, answers[i], difference);
        if (status == 0 && !none_hash_of(answers[i]))
            status = differ(difference, "$.none_hash: the value that this process drew", "$.none_hash: null",
                            "a random NONE_HASH is not secret: it must be told, so that the chain can be checked");
        if (status == 0)
            status = check_length(arena, expect, none_hash_of(answers[i]), difference);
        if (status == 0)
            status = check_chain(arena, profile, given, answers[i], difference);
        if (status != 0)
            return status;
    }
    if (!moon_json_equal(none_hash_of(first), none_hash_of(second)))
        return 0;
    return differ(difference, "$.none_hash: another value in each process",
                  moon_arena_format(arena, "$.none_hash: %s in two processes", none_hash_of(first)->bytes),
                  "NONE_HASH must be drawn anew when an engine starts: here it is fixed");
}
