/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck run with scenarios: plays each in one world. */
#include "conformance/cli/run_scenarios.h"

#include "conformance/cli/scenarios.h"

#include <fnmatch.h>
#include <string.h>

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* What is wrong with the options, in words; NULL: nothing. */
static const char *complaint(const struct moon_cli_scenario_options *options, const struct moon_world_kind *kind) {
    if ((options->client || options->target || options->programs) && kind != &moon_world_tcp)
        return "run: --client, --target and --programs go with --world tcp";
    if (options->client && !begins(options->client, "cmd:"))
        return "run: --client must be cmd:COMMAND";
    if (options->target && (!begins(options->target, "wire:") || !strchr(options->target + 5, ':')))
        return "run: --target must be wire:HOST:PORT";
    return NULL;
}

static int play_all(const struct moon_play_setting *setting, const char *only, const char *const operands[], int count,
                    struct moon_result *result, struct moon_error *error) {
    struct moon_scenario *list = NULL;
    size_t found = 0;
    int status = moon_cli_scenarios(result->arena, operands, count, &list, &found, error);
    for (size_t i = 0; i < found && status == 0; i++) {
        struct moon_play play;
        const char *id = moon_arena_format(result->arena, "scenario.%s.%s", list[i].id, setting->kind->name);
        if (!id)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
        if (only && fnmatch(only, id, 0) != 0)
            continue;
        status = moon_play(result->arena, &list[i], setting, &play, error);
        if (status == 0)
            status = moon_cli_add_play(result, &list[i], setting->kind->name, &play, error);
        moon_play_close(&play);
        moon_cli_progress(i + 1, found);
    }
    return status;
}

int moon_cli_run_scenarios(const struct moon_cli_scenario_options *options, const char *only,
                           const char *const operands[], int count, const struct moon_cli_report *report) {
    struct moon_arena arena;
    struct moon_result result;
    struct moon_error error;
    const struct moon_world_kind *kind = moon_world_find(options->world ? options->world : "sim");
    const char *wrong = complaint(options, kind);
    if (wrong)
        return moon_cli_complain("%s", wrong);
    moon_arena_open(&arena, moon_memory_heap());
    moon_cli_open_result(&result, &arena,
                         options->target   ? options->target
                         : options->client ? options->client
                                           : "ref");
    result.target_name = options->client || options->target ? "" : "mooncheck reference";
    result.target_version = options->client || options->target ? "" : MOON_VERSION;
    result.mode = options->mode;
    result.seed = moon_arena_format(&arena, "%lld", (long long)options->seed);
    struct moon_play_setting setting = {
        .kind = kind,
        .seed = (uint64_t)options->seed,
        .with_faults = true,
        .strict = strcmp(options->mode, "strict") == 0,
        .programs = options->programs ? options->programs : moon_io_program_folder(&arena),
        .client = options->client ? options->client + strlen("cmd:") : NULL,
        .master = options->target ? options->target + strlen("wire:") : NULL,
        .out = report->out_folder,
    };
    int status = result.seed && setting.programs ? play_all(&setting, only, operands, count, &result, &error)
                                                 : moon_fail(&error, MOON_ERR_MEMORY, NULL, "out of memory");
    int exit_status = moon_cli_finish(status, &error, &result, report);
    moon_arena_close(&arena);
    return exit_status;
}
