/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one command: parses its options, answers --help. */
#include "conformance/cli/dispatch.h"

#include "conformance/cli/run_report.h"

#include <signal.h>
#include <string.h>

static bool asks_for_help(int argc, char *const argv[], int from) {
    for (int i = from; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

static int usage(const struct moon_command *command) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_options_usage("mooncheck", command, &text);
    int exit_status = moon_cli_print(&text);
    moon_text_close(&text);
    return exit_status;
}

int moon_cli_dispatch(const struct moon_command *command, moon_cli_function function, int argc, char *const argv[],
                      int from) {
    struct moon_error error;
    struct moon_arena arena;
    int count = 0;
    signal(SIGPIPE, SIG_IGN);
    moon_cli_remember(argc, argv);
    if (asks_for_help(argc, argv, from))
        return usage(command);
    moon_arena_open(&arena, moon_memory_heap());
    const char **operands = moon_arena_array(&arena, (size_t)argc + 1, sizeof *operands);
    int exit_status;
    if (!operands)
        exit_status = moon_cli_complain("out of memory");
    else if (moon_options_parse(command, argc - from, argv + from, operands, &count, &error) != 0)
        exit_status = moon_cli_complain("%s: %s (mooncheck %s --help tells the options)", command->name, error.message,
                                        command->name);
    else
        exit_status = function(operands, count);
    moon_arena_close(&arena);
    return exit_status;
}
