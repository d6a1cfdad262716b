/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the connector's suites a question belongs to, told from the members of its `given`. */
#ifndef MOON_CONFORMANCE_SUITE_GUESS_H
#define MOON_CONFORMANCE_SUITE_GUESS_H

#include "conformance/suites/suite.h"

/* The suites of the connector that `mooncheck plan` answers; NULL ends. */
extern const char *const moon_plan_suites[];

/* Finds the one suite whose schema knows every member of `given` (an object). Returns 0; MOON_ERR_SCHEMA with the place
 * if none does (naming a member that no suite has, or two that no suite has together) or if several do (naming them,
 * and a member that would decide for each); MOON_ERR_MEMORY. */
int moon_suite_guess(struct moon_arena *arena, const char *source, const struct moon_json *given,
                     const struct moon_suite **out, struct moon_error *error);

#endif
