/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck swarm: many seeds of scenarios in the simulator. */
#include "conformance/worlds/swarm.h"

#include "conformance/cli/run_report.h"
#include "conformance/cli/scenarios.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *seeds, *resume, *mode = "compat";
static int64_t jobs;

static const struct moon_option options[] = {
    {.name = "seeds",
     .kind = MOON_OPTION_TEXT,
     .into = &seeds,
     .value = "A..B",
     .help = "seeds to play of each scenario, both included; default: 1..100"},
    {.name = "jobs",
     .kind = MOON_OPTION_INTEGER,
     .into = &jobs,
     .value = "N",
     .min = 1,
     .max = MOON_SWARM_JOBS_MAX,
     .help = "processes; default: one a core"},
    {.name = "resume",
     .kind = MOON_OPTION_TEXT,
     .into = &resume,
     .value = "FILE",
     .help = "remember there what was played, and pass over what it remembers"},
    MOON_CLI_MODE_ROW(mode),
    {.name = NULL},
};

const struct moon_command moon_command_swarm = {
    .name = "swarm",
    .operands = "[SCENARIO...]",
    .summary = "play scenarios in the simulator from many seeds, with faults drawn",
    .details = "Scenarios are files or folders; default: the folder scenarios. Each failure is shown with the command "
               "that plays its seed again.\n\n"
               "Exit status: 0 if all held, 1 if a seed failed, 2 for bad input, 77 if nothing was played.",
    .options = options,
    .operands_min = 0,
    .operands_max = -1,
};

/* "A..B", or one number. */
static bool read_seeds(const char *text, uint64_t *first, uint64_t *last) {
    char *end = NULL;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *first = *last = strtoull(text, &end, 10);
    if (strncmp(end, "..", 2) == 0 && isdigit((unsigned char)end[2]))
        *last = strtoull(end + 2, &end, 10);
    return errno == 0 && *end == '\0' && *first <= *last && *last <= INT64_MAX;
}

static int exit_of(const struct moon_swarm_result *result) {
    if (result->failed > 0)
        return MOON_EXIT_FAILED;
    return result->passed > 0 ? MOON_EXIT_PASSED : MOON_EXIT_SKIPPED;
}

static int play(struct moon_arena *arena, struct moon_swarm_setting *setting, const char *const operands[], int count) {
    struct moon_scenario *list = NULL;
    struct moon_swarm_result result;
    struct moon_error error;
    struct moon_text out;
    if (moon_cli_scenarios(arena, operands, count, &list, &setting->scenario_count, &error) != 0)
        return moon_cli_fail(&error);
    setting->scenarios = list;
    moon_text_open(&out, moon_memory_heap());
    int exit_status = MOON_EXIT_BAD;
    if (moon_swarm(setting, &result, &error) != 0) {
        moon_cli_fail(&error);
    } else {
        moon_text_string(&out, moon_text_value(&result.failures));
        if (result.failed > MOON_SWARM_FAILURES_MAX)
            moon_text_format(&out, "and %zu more failures\n", result.failed - MOON_SWARM_FAILURES_MAX);
        if (result.resumed > 0)
            moon_text_format(&out, "%zu of these were played before\n", result.resumed);
        moon_text_format(&out, "%zu passed, %zu failed, %zu skipped\n", result.passed, result.failed, result.skipped);
        exit_status = moon_cli_print(&out) == 0 ? exit_of(&result) : MOON_EXIT_BAD;
    }
    moon_swarm_close(&result);
    moon_text_close(&out);
    return exit_status;
}

int moon_cli_swarm(const char *const operands[], int count) {
    struct moon_arena arena;
    struct moon_swarm_setting setting = {.first = 1,
                                         .last = 100,
                                         .jobs = (size_t)jobs,
                                         .strict = strcmp(mode, "strict") == 0,
                                         .resume = resume,
                                         .tell = moon_cli_tell_play,
                                         .progress = moon_cli_progress};
    if (seeds && !read_seeds(seeds, &setting.first, &setting.last))
        return moon_cli_complain("swarm: --seeds must be A..B, two whole numbers, the first not above the second");
    if (jobs == 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        setting.jobs = cores < 1 ? 1 : cores > MOON_SWARM_JOBS_MAX ? MOON_SWARM_JOBS_MAX : (size_t)cores;
    }
    moon_arena_open(&arena, moon_memory_heap());
    int exit_status = play(&arena, &setting, operands, count);
    moon_arena_close(&arena);
    return exit_status;
}
