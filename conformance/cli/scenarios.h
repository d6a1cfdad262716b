/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that play scenarios share. */
#ifndef MOON_CONFORMANCE_CLI_SCENARIOS_H
#define MOON_CONFORMANCE_CLI_SCENARIOS_H

#include "conformance/worlds/runner.h"

/* Loads the scenarios of the operands, files or folders (all *.json below), in order; without operands those of the
 * folder "scenarios". *list is an arena array. Returns 0 or an error with its place. */
int moon_cli_scenarios(struct moon_arena *arena, const char *const operands[], int count, struct moon_scenario **list,
                       size_t *found, struct moon_error *error);

/* The result of one play as a case of the suite "scenario"; id: "scenario.ID.WORLD". Returns 0 or MOON_ERR_MEMORY. */
int moon_cli_add_play(struct moon_result *result, const struct moon_scenario *scenario, const char *world,
                      const struct moon_play *play, struct moon_error *error);
/* A failed play in lines: what was required, done, expected, seen, and how to see it again. */
void moon_cli_tell_play(const struct moon_scenario *scenario, const struct moon_play *play, struct moon_text *out);

#endif
