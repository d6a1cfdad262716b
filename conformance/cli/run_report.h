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

/* Writes the reports: `format` (terminal, tap, junit, json) to standard output, and every form into `out_folder` unless
 * it is NULL: results.json, index.html, results.tap, junit.xml, terminal.txt, closing.txt. Returns the exit status of
 * the run, or MOON_EXIT_BAD after one line on stderr when a report could not be written. */
int moon_cli_finish(struct moon_result *result, const char *format, const char *out_folder);

/* Today in UTC, YYYY-MM-DD, in `arena`; NULL when memory refused. */
const char *moon_cli_today(struct moon_arena *arena);
/* True if MOONCHECK_REQUIRE lists this name: then what needs it may not be skipped. */
bool moon_cli_required(const char *name);
/* Shows "done of all" on stderr, if that is a terminal. */
void moon_cli_progress(size_t done, size_t all);

#endif
