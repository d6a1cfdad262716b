/* SPDX-License-Identifier: Apache-2.0 */
/* Differential runs: cases drawn from a seed, answered by the reference and by a target; differences shrunk and kept.
 */
#ifndef MOON_CONFORMANCE_DRAWN_H
#define MOON_CONFORMANCE_DRAWN_H

#include "conformance/target.h"
#include "reports/result.h"

enum {
    MOON_DRAWN_SHRINK_TRIES = 2000, /* questions asked to make one difference small */
    MOON_DRAWN_SHRUNK_MAX = 5,      /* differences of a suite that are shrunk; more of the same bug are kept as drawn */
    MOON_DRAWN_KEPT_MAX = 100,      /* differences of a suite that are kept */
};

/* What to draw. Strings are borrowed.
 *   suites   names, suite_count of them; none: all
 *   only     glob over ids; NULL: all. With it a single drawn case is repeated
 *   strict   the reference answers in mode strict
 *   folder   for the vector files drawn-SUITE-PROFILE-SEED.json; made when there is something to keep
 *   spec     target as typed, for the command that repeats a case */
struct moon_drawn_setting {
    uint64_t count;
    uint64_t seed;
    const struct moon_profile *profile;
    const char *const *suites;
    size_t suite_count;
    const char *only;
    bool strict;
    const char *folder;
    const char *spec;
};

/* Adds one judged case for each that was drawn. Returns 0, MOON_ERR_SCHEMA (no such suite), MOON_ERR_IO (a vector file
 * could not be written) or MOON_ERR_MEMORY. */
int moon_drawn_judge(struct moon_target *target, const struct moon_drawn_setting *setting, struct moon_result *result,
                     struct moon_error *error);

#endif
