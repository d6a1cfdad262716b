/* SPDX-License-Identifier: Apache-2.0 */
/* The imaginary model: which token follows a prompt, and which bytes each token leaves in the KV cache. */
#include "ref/engine/token.h"

#include "ref/engine/blake2b.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* The finaliser of SplitMix64. */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t moon_token_prefix(uint64_t previous, uint32_t token) {
    uint8_t bytes[12];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(previous >> 8 * i);
    for (unsigned i = 0; i < 4; i++)
        bytes[8 + i] = (uint8_t)(token >> 8 * i);
    return moon_blake2b_u64(bytes, sizeof bytes);
}

uint32_t moon_token_of_prompt(uint32_t seed, uint64_t index) {
    return (uint32_t)(mix((((uint64_t)seed << 32) + index) * GOLDEN) % MOON_TOKEN_VOCABULARY);
}

uint32_t moon_token_next(uint64_t prefix) {
    return (uint32_t)(mix(prefix) % MOON_TOKEN_VOCABULARY);
}

void moon_token_cell(uint64_t prefix, uint64_t layer, uint64_t head, size_t half_bytes, uint8_t *out) {
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t base = mix(prefix + GOLDEN * (1 + (layer << 24 | head << 8 | half)));
        for (size_t j = 0; j < half_bytes / 8; j++) {
            uint64_t word = mix(base + j);
            for (unsigned i = 0; i < 8; i++)
                *out++ = (uint8_t)(word >> 8 * i);
        }
    }
}
