/* SPDX-License-Identifier: Apache-2.0 */
/* The compression function of SHA-256 on ready-made blocks: one message or two interleaved ones. */
/* The low-level calls need no heap, and cost half of what EVP does on messages as short as these. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "ref/hash/sha256.h"

#include <openssl/sha.h>
#include <string.h>

void moon_sha256_start(struct moon_sha256 *state) {
    static const struct moon_sha256 start = {
        {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
    *state = start;
}

static void write_be32(uint8_t *out, uint32_t value) {
    value = __builtin_bswap32(value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(out, &value, sizeof value);
}

size_t moon_sha256_pad(uint8_t *message, size_t length) {
    size_t blocks = (length + 1 + 8 + MOON_SHA256_BLOCK_BYTES - 1) / MOON_SHA256_BLOCK_BYTES;
    size_t end = blocks * MOON_SHA256_BLOCK_BYTES;
    memset(message + length, 0, MOON_SHA256_PADDING_BYTES); /* of constant size, so that it is no call */
    message[length] = 0x80;
    write_be32(message + end - 8, (uint32_t)((uint64_t)length >> 29));
    write_be32(message + end - 4, (uint32_t)((uint64_t)length << 3 & 0xffffffff));
    return blocks;
}

static void blocks_by_libcrypto(struct moon_sha256 *state, const uint8_t *blocks, size_t count) {
    SHA256_CTX context;
    memset(&context, 0, sizeof context);
    memcpy(context.h, state->words, sizeof state->words);
    for (size_t i = 0; i < count; i++)
        SHA256_Transform(&context, blocks + i * MOON_SHA256_BLOCK_BYTES);
    memcpy(state->words, context.h, sizeof state->words);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Sixteen bytes at a time: a digest is soon read back in such pieces, and the CPU forwards a store only as a whole. */
static void write_half(uint8_t *out, const uint32_t *words) {
    __m128i half = _mm_loadu_si128((const __m128i *)(const void *)words);
    half = _mm_shufflehi_epi16(_mm_shufflelo_epi16(half, 0xb1), 0xb1);
    half = _mm_or_si128(_mm_slli_epi16(half, 8), _mm_srli_epi16(half, 8));
    _mm_storeu_si128((__m128i *)(void *)out, half);
}

#define WITH_EXTENSIONS __attribute__((target("sha,sse4.1,ssse3")))

static const uint32_t round_constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* The CPU wants the words in the order of the rounds: ABEF and CDGH, each from high to low. */
struct halves {
    __m128i abef, cdgh;
};

WITH_EXTENSIONS static inline struct halves halves_load(const struct moon_sha256 *state) {
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)&state->words[0]);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)&state->words[4]);
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    return (struct halves){.abef = _mm_alignr_epi8(cdab, efgh, 8), .cdgh = _mm_blend_epi16(efgh, cdab, 0xf0)};
}

WITH_EXTENSIONS static inline void halves_store(struct moon_sha256 *state, struct halves halves) {
    __m128i feba = _mm_shuffle_epi32(halves.abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(halves.cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)&state->words[0], _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)&state->words[4], _mm_alignr_epi8(dchg, feba, 8));
}

/* Four message words, big endian in memory. */
WITH_EXTENSIONS static inline __m128i words_load(const uint8_t *block, size_t quarter) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * quarter)), swap);
}

/* Four rounds with the words w and the constants of `group` (0 to 15). */
WITH_EXTENSIONS static inline void four_rounds(struct halves *state, __m128i w, size_t group) {
    const __m128i k = _mm_load_si128((const __m128i *)(const void *)&round_constants[4 * group]);
    __m128i sum = _mm_add_epi32(w, k);
    state->cdgh = _mm_sha256rnds2_epu32(state->cdgh, state->abef, sum);
    state->abef = _mm_sha256rnds2_epu32(state->abef, state->cdgh, _mm_shuffle_epi32(sum, 0x0e));
}

/* The next four words from the last sixteen, oldest first. */
WITH_EXTENSIONS static inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3) {
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
    return _mm_sha256msg2_epu32(sum, w3);
}

/* A step of the schedule: rounds with the words *w0, then their place takes the words sixteen rounds on. */
WITH_EXTENSIONS static inline void step(struct halves *state, __m128i *w0, __m128i w1, __m128i w2, __m128i w3,
                                        size_t group) {
    four_rounds(state, *w0, group);
    *w0 = next_words(*w0, w1, w2, w3);
}

WITH_EXTENSIONS static void blocks_by_extensions(struct moon_sha256 *state, const uint8_t *blocks, size_t count) {
    struct halves now = halves_load(state);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *block = blocks + i * MOON_SHA256_BLOCK_BYTES;
        struct halves before = now;
        __m128i w0 = words_load(block, 0), w1 = words_load(block, 1);
        __m128i w2 = words_load(block, 2), w3 = words_load(block, 3);
        for (size_t group = 0; group < 12; group += 4) {
            step(&now, &w0, w1, w2, w3, group);
            step(&now, &w1, w2, w3, w0, group + 1);
            step(&now, &w2, w3, w0, w1, group + 2);
            step(&now, &w3, w0, w1, w2, group + 3);
        }
        four_rounds(&now, w0, 12);
        four_rounds(&now, w1, 13);
        four_rounds(&now, w2, 14);
        four_rounds(&now, w3, 15);
        now.abef = _mm_add_epi32(now.abef, before.abef);
        now.cdgh = _mm_add_epi32(now.cdgh, before.cdgh);
    }
    halves_store(state, now);
}

WITH_EXTENSIONS static void pair_by_extensions(struct moon_sha256 *a, const uint8_t *blocks_a, struct moon_sha256 *b,
                                               const uint8_t *blocks_b, size_t count) {
    struct halves now_a = halves_load(a), now_b = halves_load(b);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *in_a = blocks_a + i * MOON_SHA256_BLOCK_BYTES, *in_b = blocks_b + i * MOON_SHA256_BLOCK_BYTES;
        struct halves before_a = now_a, before_b = now_b;
        __m128i aw0 = words_load(in_a, 0), aw1 = words_load(in_a, 1);
        __m128i aw2 = words_load(in_a, 2), aw3 = words_load(in_a, 3);
        __m128i bw0 = words_load(in_b, 0), bw1 = words_load(in_b, 1);
        __m128i bw2 = words_load(in_b, 2), bw3 = words_load(in_b, 3);
        for (size_t group = 0; group < 12; group += 4) {
            step(&now_a, &aw0, aw1, aw2, aw3, group);
            step(&now_b, &bw0, bw1, bw2, bw3, group);
            step(&now_a, &aw1, aw2, aw3, aw0, group + 1);
            step(&now_b, &bw1, bw2, bw3, bw0, group + 1);
            step(&now_a, &aw2, aw3, aw0, aw1, group + 2);
            step(&now_b, &bw2, bw3, bw0, bw1, group + 2);
            step(&now_a, &aw3, aw0, aw1, aw2, group + 3);
            step(&now_b, &bw3, bw0, bw1, bw2, group + 3);
        }
        four_rounds(&now_a, aw0, 12);
        four_rounds(&now_b, bw0, 12);
        four_rounds(&now_a, aw1, 13);
        four_rounds(&now_b, bw1, 13);
        four_rounds(&now_a, aw2, 14);
        four_rounds(&now_b, bw2, 14);
        four_rounds(&now_a, aw3, 15);
        four_rounds(&now_b, bw3, 15);
        now_a.abef = _mm_add_epi32(now_a.abef, before_a.abef);
        now_a.cdgh = _mm_add_epi32(now_a.cdgh, before_a.cdgh);
        now_b.abef = _mm_add_epi32(now_b.abef, before_b.abef);
        now_b.cdgh = _mm_add_epi32(now_b.cdgh, before_b.cdgh);
    }
    halves_store(a, now_a);
    halves_store(b, now_b);
}
#else
static void write_half(uint8_t *out, const uint32_t *words) {
    for (size_t i = 0; i < 4; i++)
        write_be32(out + 4 * i, words[i]);
}

#define blocks_by_extensions blocks_by_libcrypto
static void pair_by_extensions(struct moon_sha256 *a, const uint8_t *blocks_a, struct moon_sha256 *b,
                               const uint8_t *blocks_b, size_t count) {
    blocks_by_libcrypto(a, blocks_a, count);
    blocks_by_libcrypto(b, blocks_b, count);
}
#endif

void moon_sha256_digest(const struct moon_sha256 *state, uint8_t digest[MOON_SHA256_BYTES]) {
    write_half(digest, state->words);
    write_half(digest + 16, state->words + 4);
}

void moon_sha256_blocks(struct moon_sha256 *state, const uint8_t *blocks, size_t count, bool extensions) {
    if (extensions)
        blocks_by_extensions(state, blocks, count);
    else
        blocks_by_libcrypto(state, blocks, count);
}

void moon_sha256_pair(struct moon_sha256 *a, const uint8_t *blocks_a, struct moon_sha256 *b, const uint8_t *blocks_b,
                      size_t count, bool extensions) {
    if (extensions) {
        pair_by_extensions(a, blocks_a, b, blocks_b, count);
    } else {
        blocks_by_libcrypto(a, blocks_a, count);
        blocks_by_libcrypto(b, blocks_b, count);
    }
}
