/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the digests: our SHA-256 blocks against libcrypto, pieces against wholes, known values. */
#include "ref/hash/digest.h"

#include "ref/hash/cpu.h"

#include "ref/base/random.h"
#include "ref/base/text.h"
#include "ref/base/unit.h"

enum { LENGTH_MAX = 400 };

static void names(void) {
    enum moon_hash_algorithm algorithm = MOON_SHA256;
    struct moon_error error;
    static const size_t bytes[] = {32, 32, 16, 16};
    for (int i = 0; i < MOON_HASH_ALGORITHMS; i++) {
        const char *name = moon_hash_algorithm_name((enum moon_hash_algorithm)i);
        MOON_CHECK_INT(moon_hash_algorithm_find(name, &algorithm, &error), 0);
        MOON_CHECK_INT(algorithm, i);
        MOON_CHECK_INT(moon_hash_algorithm_bytes(algorithm), bytes[i]);
        MOON_CHECK_INT(moon_hash_algorithm_serialisation(algorithm), i % 2 == 0 ? MOON_PICKLE : MOON_CBOR);
    }
    MOON_CHECK_INT(moon_hash_algorithm_find("sha512", &algorithm, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "ValueError");
    MOON_CHECK_TEXT(error.message, "Unsupported hash function: sha512");
}

static void check_hex(const uint8_t *bytes, size_t length, const char *expected) {
    struct moon_text hex;
    moon_text_open(&hex, moon_memory_heap());
    moon_text_hex(&hex, bytes, length);
    MOON_CHECK_TEXT(moon_text_value(&hex), expected);
    moon_text_close(&hex);
}

static void known_values(void) {
    uint8_t digest[MOON_DIGEST_BYTES_MAX];
    moon_sha256_of("abc", 3, digest);
    check_hex(digest, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    moon_sha256_of(NULL, 0, digest);
    check_hex(digest, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    moon_xxh3_of("", 0, digest);
    check_hex(digest, 16, "99aa06d3014798d86001c324468d497f");
}

/* By padding and blocks, with or without the CPU's instructions. */
static void by_blocks(uint8_t *message, size_t length, bool extensions, uint8_t digest[MOON_SHA256_BYTES]) {
    struct moon_sha256 state;
    moon_sha256_start(&state);
    moon_sha256_blocks(&state, message, moon_sha256_pad(message, length), extensions);
    moon_sha256_digest(&state, digest);
}

static void own_blocks(void) {
    uint8_t message[LENGTH_MAX + 72], ours[MOON_SHA256_BYTES], theirs[MOON_SHA256_BYTES];
    struct moon_random random;
    moon_random_seed(&random, 1);
    for (size_t length = 0; length < LENGTH_MAX; length++)
        for (int extensions = 0; extensions < (moon_cpu_detect().sha ? 2 : 1); extensions++) {
            moon_random_fill(&random, message, length);
            moon_sha256_of(message, length, theirs);
            by_blocks(message, length, extensions, ours);
            CU_ASSERT(memcmp(ours, theirs, sizeof ours) == 0);
        }
}

static void own_pairs(void) {
    uint8_t a[LENGTH_MAX + 72], b[LENGTH_MAX + 72], ours[2][MOON_SHA256_BYTES], theirs[2][MOON_SHA256_BYTES];
    struct moon_random random;
    struct moon_sha256 state_a, state_b;
    moon_random_seed(&random, 2);
    for (size_t length = 0; length < LENGTH_MAX; length++)
        for (int extensions = 0; extensions < (moon_cpu_detect().sha ? 2 : 1); extensions++) {
            moon_random_fill(&random, a, length);
            moon_random_fill(&random, b, length);
            moon_sha256_of(a, length, theirs[0]);
            moon_sha256_of(b, length, theirs[1]);
            size_t blocks = moon_sha256_pad(a, length);
            MOON_CHECK_INT(moon_sha256_pad(b, length), blocks);
            moon_sha256_start(&state_a);
            moon_sha256_start(&state_b);
            moon_sha256_pair(&state_a, a, &state_b, b, blocks, extensions);
            moon_sha256_digest(&state_a, ours[0]);
            moon_sha256_digest(&state_b, ours[1]);
            CU_ASSERT(memcmp(ours, theirs, sizeof ours) == 0);
        }
}

static void pieces(void) {
    static struct moon_digest digest;
    uint8_t message[LENGTH_MAX], whole[MOON_DIGEST_BYTES_MAX], parts[MOON_DIGEST_BYTES_MAX];
    struct moon_random random;
    moon_random_seed(&random, 3);
    moon_random_fill(&random, message, sizeof message);
    for (int i = 0; i < MOON_HASH_ALGORITHMS; i++) {
        enum moon_hash_algorithm algorithm = (enum moon_hash_algorithm)i;
        if (moon_hash_algorithm_is_sha256(algorithm))
            moon_sha256_of(message, sizeof message, whole);
        else
            moon_xxh3_of(message, sizeof message, whole);
        moon_digest_start(&digest, algorithm);
        for (size_t at = 0; at < sizeof message;) {
            size_t step = 1 + (size_t)moon_random_below(&random, 70);
            step = step < sizeof message - at ? step : sizeof message - at;
            moon_digest_add(&digest, message + at, step);
            at += step;
        }
        moon_digest_end(&digest, parts);
        CU_ASSERT(memcmp(whole, parts, moon_hash_algorithm_bytes(algorithm)) == 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"algorithms have their names, sizes and serialisations (HASH-001, HASH-002)", names},
        {"digests have their published values", known_values},
        {"our padding and blocks give what libcrypto gives, with and without extensions", own_blocks},
        {"two interleaved messages do not disturb each other", own_pairs},
        {"a digest in pieces equals that of the whole", pieces},
        {NULL, NULL}};
    return moon_unit_main("digest", cases, argc, argv);
}
