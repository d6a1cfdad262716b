/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b with a digest of 8 bytes over at most one block (RFC 7693): libcrypto has the 64-byte digest alone. */
#include "ref/engine/blake2b.h"

#include <assert.h>
#include <string.h>

enum { WORDS = 16, ROUNDS = 12, DIGEST_BYTES = 8 };

static const uint64_t initial[8] = {
    UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
    UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
    UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179),
};

/* Order of the message words in each round; rounds 10 and 11 repeat 0 and 1. */
static const uint8_t schedule[10][WORDS] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t rotate_right(uint64_t value, unsigned bits) {
    return value >> bits | value << (64 - bits);
}

static void mix(uint64_t v[WORDS], const unsigned at[4], uint64_t x, uint64_t y) {
    unsigned a = at[0], b = at[1], c = at[2], d = at[3];
    v[a] += v[b] + x;
    v[d] = rotate_right(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = rotate_right(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = rotate_right(v[b] ^ v[c], 63);
}

uint64_t moon_blake2b_u64(const uint8_t *bytes, size_t length) {
    static const unsigned places[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14}, {3, 7, 11, 15},
                                          {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13},  {3, 4, 9, 14}};
    assert(length <= MOON_BLAKE2B_BLOCK_BYTES);
    uint64_t message[WORDS] = {0}, v[WORDS];
    for (size_t i = 0; i < length; i++)
        message[i / 8] |= (uint64_t)bytes[i] << (i % 8 * 8);
    memcpy(v, initial, sizeof initial);
    memcpy(v + 8, initial, sizeof initial);
    uint64_t state = v[0] = initial[0] ^ (UINT64_C(0x01010000) | DIGEST_BYTES); /* no key, one leaf */
    v[12] ^= length;
    v[14] = ~v[14]; /* this is the last block */
    for (unsigned round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < 8; i++)
            mix(v, places[i], message[schedule[round % 10][2 * i]], message[schedule[round % 10][2 * i + 1]]);
    return state ^ v[0] ^ v[8];
}
