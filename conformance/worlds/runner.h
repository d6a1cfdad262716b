/* SPDX-License-Identifier: Apache-2.0 */
/* Plays one scenario in one world and judges it: what its operations gave, and what the checkers say of its history. */
#ifndef MOON_WORLDS_RUNNER_H
#define MOON_WORLDS_RUNNER_H

#include "conformance/worlds/world.h"
#include "reports/result.h"

/* How. Strings are borrowed.
 *   with_faults  draw the scenario's faults (world sim only: others play its operations without)
 *   strict       mode strict, whatever the scenario says
 *   programs, client, master  as in world.h
 *   out          folder that gets a folder of this run: history, logs, scenario; NULL: none is kept */
struct moon_play_setting {
    const struct moon_world_kind *kind;
    uint64_t seed;
    bool with_faults, strict;
    const char *programs, *client, *master, *out;
};

enum { MOON_PLAY_DEVIATIONS_MAX = 16 };

/* What came of it. Texts live in the arena. `reason` of skip, error, crash and timeout; the four lines of a failure.
 *   deviations  edges that checkers saw and that are permitted here
 *   account     all operations, actions and verdicts in words, for people */
struct moon_play {
    enum moon_outcome outcome;
    const char *reason, *requirement, *required, *done, *expected, *seen, *reproduce;
    const char *deviations[MOON_PLAY_DEVIATIONS_MAX];
    size_t deviation_count;
    uint64_t digest, duration_ns;
    struct moon_history history;
    const char *account;
};

/* Plays. Returns 0 (whatever the outcome is), or MOON_ERR_MEMORY, MOON_ERR_IO (the folder). Close it also then. */
int moon_play(struct moon_arena *arena, const struct moon_scenario *scenario, const struct moon_play_setting *setting,
              struct moon_play *play, struct moon_error *error);
void moon_play_close(struct moon_play *play);

#endif
