/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random streams (xoshiro256**, seeded by splitmix64): the same numbers on every compiler and machine. */
#ifndef MOON_BASE_RANDOM_H
#define MOON_BASE_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct moon_random {
    uint64_t state[4];
};

void moon_random_seed(struct moon_random *random, uint64_t seed);
/* An independent stream for a named part, derived from the parent's seed state without advancing it. */
struct moon_random moon_random_split(const struct moon_random *random, const char *name);
uint64_t moon_random_u64(struct moon_random *random);
/* Uniform in 0..bound-1, without bias; bound >= 1. */
uint64_t moon_random_below(struct moon_random *random, uint64_t bound);
/* Uniform in low..high, both included; low <= high. */
int64_t moon_random_between(struct moon_random *random, int64_t low, int64_t high);
/* True with probability numerator / denominator. */
bool moon_random_chance(struct moon_random *random, uint64_t numerator, uint64_t denominator);
void moon_random_fill(struct moon_random *random, void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
