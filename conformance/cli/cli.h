/* SPDX-License-Identifier: Apache-2.0 */
/* What a command file of the command line provides, and the helpers that all commands share. */
#ifndef MOON_CONFORMANCE_CLI_H
#define MOON_CONFORMANCE_CLI_H

#include "conformance/io.h"
#include "ref/base/options.h"
#include "ref/base/version.h"
#include "ref/key/profile.h"

/* Exit statuses of every command. */
enum moon_exit {
    MOON_EXIT_PASSED = 0,   /* all required passed, possibly with skips; or the tool did its work */
    MOON_EXIT_FAILED = 1,   /* a required case failed; two sides differ; lint found an error */
    MOON_EXIT_BAD = 2,      /* usage, bad input, or output that could not be written */
    MOON_EXIT_UNKNOWN = 3,  /* unknown or incomplete */
    MOON_EXIT_SKIPPED = 77, /* everything was skipped */
};

/* A command NAME is one file, conformance/cli/NAME.c, with
 *   const struct moon_command moon_command_NAME   its table of options, which write into file-static variables
 *   int moon_cli_NAME(operands, count)            called once, after parsing; returns the exit status
 * main.c has set SIGPIPE to be ignored. A command writes its result through moon_cli_print, once, at the end: nothing
 * is printed when it fails. Diagnostics go to stderr. */
#define MOON_CLI_COMMANDS(ROW)                                                                                         \
    ROW(vectors)                                                                                                       \
    ROW(run)                                                                                                           \
    ROW(sim)                                                                                                           \
    ROW(swarm)                                                                                                         \
    ROW(list)                                                                                                          \
    ROW(hash)                                                                                                          \
    ROW(key)                                                                                                           \
    ROW(layout)                                                                                                        \
    ROW(plan)                                                                                                          \
    ROW(compat)                                                                                                        \
    ROW(lint)                                                                                                          \
    ROW(wire)                                                                                                          \
    ROW(bench)                                                                                                         \
    ROW(adapter)                                                                                                       \
    ROW(report)

#define MOON_CLI_DECLARE(name)                                                                                         \
    extern const struct moon_command moon_command_##name;                                                              \
    int moon_cli_##name(const char *const operands[], int count);
MOON_CLI_COMMANDS(MOON_CLI_DECLARE)
#undef MOON_CLI_DECLARE

/* Prints "mooncheck: WHERE: MESSAGE" as one line on stderr and returns MOON_EXIT_BAD. */
int moon_cli_fail(const struct moon_error *error);
/* The same for a message of the command's own: return moon_cli_complain("--draw needs --target"). */
int moon_cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a command's result to standard output. `text` that lost bytes for want of memory is refused. Returns 0, or
 * MOON_EXIT_BAD after one line on stderr. */
int moon_cli_print(const struct moon_text *text);
/* Writes JSON, pretty, with a final newline. Returns as moon_cli_print. */
int moon_cli_print_json(const struct moon_json *value);

/* The profile of that name, the newest for NULL; NULL and an error if there is none. */
const struct moon_profile *moon_cli_profile(const char *name, struct moon_error *error);
/* Reads one {"profile","given"} object (members in this closed list, and "suite" if `suite` is not NULL; it gets NULL
 * when that is left out) from FILE|- into `arena`. Returns 0, or an error with its place. */
int moon_cli_read_question(struct moon_arena *arena, const char *path, const char **suite,
                           const struct moon_profile **profile, struct moon_json **given, struct moon_error *error);

/* Answers one {"profile","given"} object read from FILE|- by the suite of that name:
 * prints its `expect` object, or with `explain` the explanation. Returns the exit status. This is `--json` of hash, key
 * and layout. */
int moon_cli_answer(const char *suite, const char *path, bool explain);

#endif
