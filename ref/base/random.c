/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** and splitmix64, both by Blackman and Vigna, from their published definitions. */
#include "ref/base/random.h"

#include <assert.h>

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t value, unsigned by) {
    return value << by | value >> (64 - by);
}

void moon_random_seed(struct moon_random *random, uint64_t seed) {
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix64(&seed);
}

struct moon_random moon_random_split(const struct moon_random *random, const char *name) {
    uint64_t seed = UINT64_C(0xCBF29CE484222325); /* FNV-1a over the name, then the parent's state, each step mixed */
    for (const char *c = name; *c; c++)
        seed = (seed ^ (uint8_t)*c) * UINT64_C(0x100000001B3);
    for (int i = 0; i < 4; i++) {
        seed ^= random->state[i];
        seed = splitmix64(&seed);
    }
    struct moon_random child;
    moon_random_seed(&child, seed);
    return child;
}

uint64_t moon_random_u64(struct moon_random *random) {
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t moon_random_below(struct moon_random *random, uint64_t bound) {
    assert(bound >= 1);
    /* Numbers below 2^64 mod bound are drawn again: what is left is a whole multiple of bound. Under half are refused.
     */
    uint64_t refused = (0 - bound) % bound;
    uint64_t drawn;
    do
        drawn = moon_random_u64(random);
    while (drawn < refused);
    return drawn % bound;
}

int64_t moon_random_between(struct moon_random *random, int64_t low, int64_t high) {
    assert(low <= high);
    uint64_t count = (uint64_t)high - (uint64_t)low + 1; /* 0 stands for 2^64 */
    uint64_t above = count ? moon_random_below(random, count) : moon_random_u64(random);
    return (int64_t)((uint64_t)low + above);
}

bool moon_random_chance(struct moon_random *random, uint64_t numerator, uint64_t denominator) {
    return moon_random_below(random, denominator) < numerator;
}

void moon_random_fill(struct moon_random *random, void *bytes, size_t length) {
    uint8_t *out = bytes;
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) {
        if (i % 8 == 0)
            word = moon_random_u64(random);
        out[i] = (uint8_t)(word >> (i % 8 * 8));
    }
}
