/* SPDX-License-Identifier: Apache-2.0 */
/* New cases from a seed, and the vector file that keeps those that mattered. */
#ifndef MOON_CONFORMANCE_DRAW_H
#define MOON_CONFORMANCE_DRAW_H

#include "conformance/suites/suite.h"

/* Draws case number `index` of a suite, profile and seed. Each case has a random stream of its own, so it is the same
 * however many are drawn. `given` lives in `arena`. Returns 0 or what suite->draw returns. */
int moon_draw(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
              uint64_t seed, uint64_t index, struct moon_json **given);

/* "hash.drawn.v33s7.0012": id of that case; the kind is all but the last part. Arena memory; NULL when memory refused.
 */
const char *moon_draw_id(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
                         uint64_t seed, uint64_t index);
const char *moon_draw_kind(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
                           uint64_t seed);

/* An empty vector file for answers of the program `name`, `version`; and a case appended to it. given and expect are
 * copied. Lost memory shows in moon_json_broken(file). */
struct moon_json *moon_draw_file(struct moon_arena *arena, const struct moon_suite *suite, const char *name,
                                 const char *version);
void moon_draw_keep(struct moon_arena *arena, struct moon_json *file, const char *id,
                    const struct moon_profile *profile, const struct moon_json *given, const struct moon_json *expect,
                    const char *comment);

#endif
