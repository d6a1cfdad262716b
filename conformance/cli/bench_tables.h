/* SPDX-License-Identifier: Apache-2.0 */
/* What the subjects of `mooncheck bench` share: the options, and writing a table for a terminal or as Markdown. */
#ifndef MOON_CONFORMANCE_BENCH_TABLES_H
#define MOON_CONFORMANCE_BENCH_TABLES_H

#include "conformance/cli/cli.h"

/* Options as given. NULL: not given. */
struct moon_cli_bench {
    const char *python, *peer, *out, *sources, *release;
    int64_t tokens, runs;
    bool json;
};
/* One subject each (bench_hash_table.c, bench_connector_table.c): measures, prints, returns the exit status. */
int moon_cli_bench_hash(const struct moon_cli_bench *asked);
int moon_cli_bench_connector(const struct moon_cli_bench *asked);

enum { MOON_BENCH_CELL_BYTES = 96, MOON_BENCH_CELLS_MAX = 12 };
typedef char moon_bench_cell[MOON_BENCH_CELL_BYTES];

/* a / b with one digit behind the point, or two; "-" without one of them. */
void moon_bench_ratio(moon_bench_cell cell, uint64_t a, uint64_t b, int digits);
/* The titles, in Markdown with the line under them; widths as of printf, negative ones to the left. */
void moon_bench_titles(const char *const titles[], const int widths[], size_t count, bool markdown,
                       struct moon_text *out);
/* One line of at most MOON_BENCH_CELLS_MAX cells. */
void moon_bench_line(const moon_bench_cell cells[], const int widths[], size_t count, bool markdown,
                     struct moon_text *out);

/* A report: the table (`write` appends it, as Markdown or for a terminal) with its notes. With --out it is written as
 * Markdown under `title` and `intro`. Prints it, or `json` if that is asked for and not NULL. Returns the exit status.
 */
int moon_bench_show(const struct moon_cli_bench *asked, const char *title, const char *intro,
                    void (*write)(const void *context, bool markdown, struct moon_text *out), const void *context,
                    const struct moon_json *json);

#endif
