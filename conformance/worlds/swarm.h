/* SPDX-License-Identifier: Apache-2.0 */
/* Many seeds of many scenarios in the simulator, by several processes. */
#ifndef MOON_WORLDS_SWARM_H
#define MOON_WORLDS_SWARM_H

#include "conformance/worlds/runner.h"

enum { MOON_SWARM_JOBS_MAX = 64, MOON_SWARM_FAILURES_MAX = 100 };

/* seeds first..last of each scenario. tell: writes a failed play in words. resume: file of what is done: seeds in it
 * are passed over, those that are played are added; NULL: none. progress: NULL: nobody asks. */
struct moon_swarm_setting {
    const struct moon_scenario *scenarios;
    size_t scenario_count;
    uint64_t first, last;
    size_t jobs;
    bool strict;
    const char *resume;
    void (*tell)(const struct moon_scenario *scenario, const struct moon_play *play, struct moon_text *out);
    void (*progress)(size_t done, size_t all);
};

/* failures: in words, at most MOON_SWARM_FAILURES_MAX of them. resumed: passed over, counted in `passed` or `failed` as
 * they were. */
struct moon_swarm_result {
    size_t passed, failed, skipped, resumed;
    struct moon_text failures;
};

/* Returns 0, or MOON_ERR_MEMORY, MOON_ERR_IO (no process, the file), MOON_ERR_SYNTAX (a file that is none). A process
 * that dies is a failure of the seed that it played; one that says nothing for five minutes is killed. Close the result
 * also then. */
int moon_swarm(const struct moon_swarm_setting *setting, struct moon_swarm_result *result, struct moon_error *error);
void moon_swarm_close(struct moon_swarm_result *result);

#endif
