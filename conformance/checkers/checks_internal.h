/* SPDX-License-Identifier: Apache-2.0 */
/* The checks behind the table of checkers.c. Nobody outside this folder includes it. */
#ifndef MOON_CHECKERS_CHECKS_INTERNAL_H
#define MOON_CHECKERS_CHECKS_INTERNAL_H

#include "conformance/checkers/checker.h"

/* Each as moon_checker.judge; the finding is UNKNOWN without words when it is handed in. */
int moon_check_read(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding);
int moon_check_durable(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding);
int moon_check_reuse(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding);

#endif
