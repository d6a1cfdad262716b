/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that judge share: facts about the run, the reports in every form, the exit status. */
#ifndef MOON_CONFORMANCE_RUN_REPORT_H
#define MOON_CONFORMANCE_RUN_REPORT_H

#include "conformance/cli/cli.h"
#include "reports/result.h"

/* Remembers the command as typed, for reports. Called once by main; borrows argv. */
void moon_cli_remember(int argc, char *const argv[]);

/* Starts a result: time, host, command. `target` as typed. Everything lives in `arena`. */
void moon_cli_open_result(struct moon_result *result, struct moon_arena *arena, const char *target);

/* Where reports go, as the options say.
 *   format      terminal, tap, junit or json: the form on standard output
 *   json        --json: the same as json for `format`
 *   out_folder  folder of every form; NULL: none */
struct moon_cli_report {
    const char *format, *out_folder;
    bool json;
};
#define MOON_CLI_REPORT_DEFAULT                                                                                        \
    { .format = "terminal" }

/* Rows of a table of options that fill a static struct moon_cli_report. */
#define MOON_CLI_FORMAT_ROW(report)                                                                                    \
    {                                                                                                                  \
        .name = "format", .kind = MOON_OPTION_CHOICE, .into = &(report).format, .value = "FORM",                       \
        .choices = "terminal|tap|junit|json", .help = "form of the report on standard output; default: terminal"       \
    }
/* All of them; `also` is what else is written to the folder, "" for nothing. */
#define MOON_CLI_REPORT_ROWS(report, also)                                                                             \
    {.name = "out",                                                                                                    \
     .kind = MOON_OPTION_TEXT,                                                                                         \
     .into = &(report).out_folder,                                                                                     \
     .value = "DIR",                                                                                                   \
     .help = "write every form of the report there" also},                                                             \
        MOON_CLI_FORMAT_ROW(report), {                                                                                 \
        .name = "json", .kind = MOON_OPTION_FLAG, .into = &(report).json, .help = "the same as --format json"          \
    }
/* The row of a static const char * that is "compat" or "strict". */
#define MOON_CLI_MODE_ROW(mode)                                                                                        \
    {                                                                                                                  \
        .name = "mode", .kind = MOON_OPTION_CHOICE, .into = &(mode), .value = "MODE", .choices = "compat|strict",      \
        .help = "compat: as real releases do, right or wrong; strict: without what they do wrong; default: compat"     \
    }
/* The row of a static int64_t that limits how long one `what` of a target may take. */
#define MOON_CLI_CASE_TIMEOUT_ROW(milliseconds, what)                                                                  \
    {                                                                                                                  \
        .name = "case-timeout-ms", .kind = MOON_OPTION_INTEGER, .into = &(milliseconds), .value = "MS", .min = 1,      \
        .max = 86400000, .help = "how long one " what " may take; default: 30000"                                      \
    }

/* Ends a run that came to `status`: tells `error` unless it is 0, else writes the reports, into the folder
 * results.json, index.html, results.tap, junit.xml, terminal.txt and closing.txt. Returns the exit status of the run,
 * or MOON_EXIT_BAD after one line on stderr. */
int moon_cli_finish(int status, const struct moon_error *error, struct moon_result *result,
                    const struct moon_cli_report *report);

/* Today in UTC, YYYY-MM-DD, in `arena`; NULL when memory refused. */
const char *moon_cli_today(struct moon_arena *arena);
/* True if MOONCHECK_REQUIRE lists this name: then what needs it may not be skipped. */
bool moon_cli_required(const char *name);
/* Shows "done of all" on stderr, if that is a terminal. */
void moon_cli_progress(size_t done, size_t all);

#endif
