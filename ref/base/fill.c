/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a value that is named by a seed. */
#include "ref/base/fill.h"

static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

void moon_fill(uint64_t seed, uint64_t offset_bytes, void *buffer, size_t length) {
    uint8_t *out = buffer;
    uint64_t start = seed * UINT64_C(0x9E3779B97F4A7C15) + offset_bytes / 8;
    unsigned skip = (unsigned)(offset_bytes % 8);
    for (size_t done = 0; done < length; skip = 0, start++) {
        uint64_t word = mix(start) >> (8 * skip);
        for (unsigned i = skip; i < 8 && done < length; i++, word >>= 8)
            out[done++] = (uint8_t)word;
    }
}
