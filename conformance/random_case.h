/* SPDX-License-Identifier: Apache-2.0 */
/* Cases whose hashes are drawn anew by every process: what can still be required of two answers. */
#ifndef MOON_CONFORMANCE_RANDOM_CASE_H
#define MOON_CONFORMANCE_RANDOM_CASE_H

#include "conformance/compare.h"

/* True for an `expect` that is marked random. */
bool moon_random_case(const struct moon_json *expect);

/* What is required of the answers of other processes where this one draws, too. NULL when memory refused. */
const struct moon_json *moon_random_expect(struct moon_arena *arena, const struct moon_json *answer);

/* Judges the answers of two processes to one random case:
 *   - both say random, and give what `expect` fixes
 *   - both give a NONE_HASH of the length that `expect` states, and the two differ
 *   - the block hashes of each follow from its own NONE_HASH
 * Returns 0 when all hold, 1 with *difference filled, or MOON_ERR_MEMORY. Strings of the difference live in `arena`. */
int moon_random_compare(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
                        const struct moon_json *given, const struct moon_json *expect, const struct moon_json *first,
                        const struct moon_json *second, struct moon_difference *difference);

#endif
