/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck run with scenarios: plays each in one world. */
#ifndef MOON_CONFORMANCE_RUN_SCENARIOS_H
#define MOON_CONFORMANCE_RUN_SCENARIOS_H

#include "conformance/cli/run_report.h"

/* What the options say. */
struct moon_cli_scenario_options {
    const char *world, *mode, *client, *target, *programs;
    int64_t seed;
};
#define MOON_CLI_SCENARIO_OPTIONS_DEFAULT                                                                              \
    { .mode = "compat", .seed = 1 }

/* Rows of a table of options that fill a static struct moon_cli_scenario_options. */
#define MOON_CLI_SCENARIO_ROWS(options)                                                                                \
    {.name = "world",                                                                                                  \
     .kind = MOON_OPTION_CHOICE,                                                                                       \
     .into = &(options).world,                                                                                         \
     .value = "WORLD",                                                                                                 \
     .choices = "sim|mem|tcp",                                                                                         \
     .help = "where scenarios are played: simulator, memory, or processes over TCP; default: sim"},                    \
        {.name = "seed",                                                                                               \
         .kind = MOON_OPTION_INTEGER,                                                                                  \
         .into = &(options).seed,                                                                                      \
         .value = "N",                                                                                                 \
         .min = 0,                                                                                                     \
         .max = INT64_MAX,                                                                                             \
         .help = "of all that a scenario draws; default: 1"},                                                          \
        {.name = "client",                                                                                             \
         .kind = MOON_OPTION_TEXT,                                                                                     \
         .into = &(options).client,                                                                                    \
         .value = "cmd:COMMAND",                                                                                       \
         .help = "world tcp: a program that speaks the adapter protocol, one process a client"},                       \
        {.name = "target",                                                                                             \
         .kind = MOON_OPTION_TEXT,                                                                                     \
         .into = &(options).target,                                                                                    \
         .value = "wire:HOST:PORT",                                                                                    \
         .help = "world tcp: a master that runs already"},                                                             \
        {.name = "programs",                                                                                           \
         .kind = MOON_OPTION_TEXT,                                                                                     \
         .into = &(options).programs,                                                                                  \
         .value = "DIR",                                                                                               \
         .help = "world tcp: folder of mooncheck-master and mooncheck-client; default: beside this program"},          \
        MOON_CLI_MODE_ROW((options).mode)

/* Plays the scenarios whose id matches `only` (NULL: all). Returns the exit status. */
int moon_cli_run_scenarios(const struct moon_cli_scenario_options *options, const char *only,
                           const char *const operands[], int count, const struct moon_cli_report *report);

#endif
