/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck: finds the command by its name, here or as a program mooncheck-NAME, and writes the overview and the
 * manual. */
#include "conformance/cli/dispatch.h"

#include "ref/base/suggest.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_ROW(name) {&moon_command_##name, moon_cli_##name},
static const struct {
    const struct moon_command *command;
    moon_cli_function function;
} commands[] = {MOON_CLI_COMMANDS(COMMAND_ROW)};
#undef COMMAND_ROW

enum { COMMANDS = sizeof commands / sizeof *commands, PATH_BYTES = 4096 };

/* A writer of documentation from the tables. */
typedef void (*document)(const struct moon_command table[], struct moon_text *out);

static void overview(const struct moon_command table[], struct moon_text *out) {
    moon_options_overview("mooncheck", table, out);
}
static void man(const struct moon_command table[], struct moon_text *out) {
    moon_options_man("mooncheck", "conformance of KV cache connectors and stores", table, out);
}
static void completion(const struct moon_command table[], struct moon_text *out) {
    moon_options_completion("mooncheck", table, out);
}

static int print_document(document write) {
    struct moon_command table[COMMANDS + 1] = {{.name = NULL}};
    struct moon_text text;
    for (int i = 0; i < COMMANDS; i++)
        table[i] = *commands[i].command;
    moon_text_open(&text, moon_memory_heap());
    write(table, &text);
    int exit_status = moon_cli_print(&text);
    moon_text_close(&text);
    return exit_status;
}

static int print_version(void) {
    static const char line[] = "mooncheck " MOON_VERSION "\n";
    struct moon_error error;
    return moon_io_print(line, sizeof line - 1, &error) == 0 ? MOON_EXIT_PASSED : moon_cli_fail(&error);
}

/* Replaces this process by mooncheck-NAME from the program's folder or from PATH; returns when there is none. */
static void run_helper(const char *name, char *const argv[]) {
    struct moon_arena arena;
    char path[PATH_BYTES];
    if (strchr(name, '/') || strlen(name) > 64)
        return;
    moon_arena_open(&arena, moon_memory_heap());
    const char *folder = moon_io_program_folder(&arena);
    int length = folder && folder[0] ? snprintf(path, sizeof path, "%s/mooncheck-%s", folder, name) : 0;
    moon_arena_close(&arena);
    if (length > 0 && length < (int)sizeof path && moon_io_is_program(path))
        execv(path, argv + 1);
    snprintf(path, sizeof path, "mooncheck-%s", name);
    execvp(path, argv + 1);
}

static int unknown_command(const char *name) {
    const char *names[COMMANDS + 1] = {NULL};
    for (int i = 0; i < COMMANDS; i++)
        names[i] = commands[i].command->name;
    const char *near = moon_suggest(name, names);
    if (near)
        return moon_cli_complain("there is no command \"%.60s\"; did you mean \"%s\"?", name, near);
    return moon_cli_complain("there is no command \"%.60s\" (mooncheck --help lists them)", name);
}

int main(int argc, char *argv[]) {
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return moon_cli_complain("needs a command (mooncheck --help lists them)");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0)
        return print_document(overview);
    if (strcmp(name, "--version") == 0)
        return print_version();
    if (strcmp(name, "man") == 0)
        return print_document(man);
    if (strcmp(name, "completion") == 0)
        return print_document(completion);
    if (strcmp(name, "report") == 0) {
        run_helper(name, argv);
        return moon_cli_complain("the program mooncheck-report is neither beside this one nor in PATH");
    }
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].command->name, name) == 0)
            return moon_cli_dispatch(commands[i].command, commands[i].function, argc, argv, 2);
    if (name[0] != '-')
        run_helper(name, argv);
    return unknown_command(name);
}
