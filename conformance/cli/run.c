/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck run: scenarios in a world, and harness cases that are no vectors, by family. */
#include "conformance/cli/run_report.h"
#include "conformance/cli/run_scenarios.h"
#include "conformance/families.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 16 };

static const char *only, *builds_text;
static struct moon_cli_report report = MOON_CLI_REPORT_DEFAULT;
static struct moon_option_list peers;
static struct moon_cli_scenario_options scenarios = MOON_CLI_SCENARIO_OPTIONS_DEFAULT;

static const struct moon_option options[] = {
    {.name = "only",
     .kind = MOON_OPTION_TEXT,
     .into = &only,
     .value = "GLOB",
     .help = "only cases whose id matches, such as 'hash.processes.*'; default: all"},
    {.name = "builds",
     .kind = MOON_OPTION_TEXT,
     .into = &builds_text,
     .value = "DIR,DIR,...",
     .help = "folders that hold a mooncheck-adapter-example each; default: gcc-O0, gcc-O3 and clang beside this "
             "program's folder"},
    {.name = "peer",
     .kind = MOON_OPTION_LIST,
     .into = &peers,
     .value = "COMMAND",
     .help = "adapter of a real release; may be repeated; default: the releases that make deps-check fetched"},
    MOON_CLI_SCENARIO_ROWS(scenarios),
    MOON_CLI_REPORT_ROWS(report, "; of scenarios also history, logs and account"),
    {.name = NULL},
};

const struct moon_command moon_command_run = {
    .name = "run",
    .operands = "[SCENARIO...]",
    .summary = "play scenarios in a world, or run harness cases that need more than one answer",
    .details =
        "With --world or scenarios (files, or folders of them): plays them; all of the folder scenarios by default, in "
        "world sim. A world that cannot express a scenario skips it and says why. World tcp starts mooncheck-master "
        "and "
        "mooncheck-client, or takes other programs for them: --client 'cmd:python3 adapter.py', --target "
        "wire:HOST:PORT.\n\n"
        "Without: the families of cases. "
        "hash.processes: at least 16 operating system processes of at least three builds, in different environments, "
        "and real vLLM "
        "processes where they are installed, hash the same prompts under several values of PYTHONHASHSEED. They must "
        "agree, or "
        "differ, exactly as each release does.\n\n"
        "MOONCHECK_REQUIRE=pypi makes it an error when no real release is there. Exit status as of mooncheck vectors.",
    .options = options,
    .operands_min = 0,
    .operands_max = -1,
};

/* Cuts "A,B,C" into strings of the arena. */
static size_t split(struct moon_arena *arena, const char *text, const char *list[LIST_MAX]) {
    size_t count = 0;
    while (*text && count < LIST_MAX) {
        size_t length = strcspn(text, ",");
        if (length > 0)
            list[count++] = moon_arena_copy(arena, text, length);
        text += length + (text[length] == ',');
    }
    return count;
}

static size_t default_builds(struct moon_arena *arena, const char *folder, const char *list[LIST_MAX]) {
    static const char *const names[] = {"gcc-O0", "gcc-O3", "clang"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        list[i] = moon_arena_format(arena, "%s/../%s", folder, names[i]);
    return sizeof names / sizeof *names;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Commands for the releases in ../deps/vllm beside the program's folder. */
static size_t default_peers(struct moon_arena *arena, const char *folder, const char *list[LIST_MAX]) {
    static const char adapter[] = "conformance/adapters/vllm/adapter.py";
    const char *python = moon_arena_format(arena, "%s/../deps/venv/bin/python", folder);
    const char *sources = moon_arena_format(arena, "%s/../deps/vllm", folder);
    size_t count = 0;
    if (!python || !sources || !moon_io_is_program(python))
        return 0;
    DIR *stream = opendir(sources);
    for (struct dirent *entry = stream ? readdir(stream) : NULL; entry && count < LIST_MAX; entry = readdir(stream)) {
        const char *package = moon_arena_format(arena, "%s/%s/vllm", sources, entry->d_name);
        if (entry->d_name[0] != '.' && package && moon_io_is_folder(package))
            list[count++] = moon_arena_format(arena, "exec '%s' '%s' --sources '%s' --release '%s'", python, adapter,
                                              sources, entry->d_name);
    }
    if (stream)
        closedir(stream);
    qsort(list, count, sizeof *list, by_name);
    return count;
}

static bool complete(const char *const list[], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!list[i])
            return false;
    return true;
}

/* True if ids of this family can match --only: the glob's text before its first special character and the name agree.
 */
static bool may_match(const char *family) {
    if (!only)
        return true;
    size_t plain = strcspn(only, "*?["), length = strlen(family);
    return strncmp(only, family, plain < length ? plain : length) == 0;
}

int moon_cli_run(const char *const operands[], int count) {
    struct moon_arena arena;
    struct moon_result result;
    struct moon_error error;
    const char *builds[LIST_MAX], *found_peers[LIST_MAX];
    int status = 0;
    if (count > 0 || scenarios.world)
        return moon_cli_run_scenarios(&scenarios, only, operands, count, &report);
    moon_arena_open(&arena, moon_memory_heap());
    moon_cli_open_result(&result, &arena, "ref");
    result.target_name = "mooncheck reference";
    result.target_version = MOON_VERSION;
    const char *folder = moon_io_program_folder(&arena);
    struct moon_family_setting setting = {.only = only,
                                          .builds = builds,
                                          .peers = peers.count > 0 ? peers.values : found_peers,
                                          .peer_count = peers.count,
                                          .peers_required = moon_cli_required("pypi"),
                                          .progress = moon_cli_progress};
    setting.build_count = builds_text ? split(&arena, builds_text, builds) : default_builds(&arena, folder, builds);
    if (peers.count == 0)
        setting.peer_count = default_peers(&arena, folder, found_peers);
    setting.mutants = moon_arena_format(&arena, "%s/../mutants", folder);
    if (!folder || !setting.mutants || !complete(builds, setting.build_count) ||
        !complete(setting.peers, setting.peer_count))
        status = moon_fail(&error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (size_t i = 0; moon_families[i].name && status == 0; i++)
        if (may_match(moon_families[i].name))
            status = moon_families[i].run(&setting, &result, &error);
    int exit_status = moon_cli_finish(status, &error, &result, &report);
    moon_arena_close(&arena);
    return exit_status;
}
