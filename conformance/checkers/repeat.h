/* SPDX-License-Identifier: Apache-2.0 */
/* Check 10: the same seed gives the same history. */
#ifndef MOON_CHECKERS_REPEAT_H
#define MOON_CHECKERS_REPEAT_H

#include "conformance/checkers/checker.h"

/* Judges two runs of one seed: their records are equal, byte for byte. Returns 0 or MOON_ERR_MEMORY. */
int moon_check_repeat(struct moon_arena *arena, const struct moon_history *first, const struct moon_history *second,
                      struct moon_finding *finding);

#endif
