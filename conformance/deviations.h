/* SPDX-License-Identifier: Apache-2.0 */
/* What real releases do wrong: the table of deviations.json, and which of it a case shows. */
#ifndef MOON_CONFORMANCE_DEVIATIONS_H
#define MOON_CONFORMANCE_DEVIATIONS_H

#include "conformance/suites/suite.h"

/* One row. Texts live in the arena.
 *   deviation    its number in the reference; MOON_DEVIATION_COUNT for a row without a right side (compat_only)
 *   id           "batches-dropped"; "" for compat_only
 *   requirement  "DEV-118"; "" for compat_only
 *   minor_first, minor_last  release lines that deviate so
 *   permitted    what the release does;  why: what goes wrong with it
 *   strict       what is right; for compat_only the reason why nothing is */
struct moon_deviation_row {
    enum moon_deviation deviation;
    const char *id, *edge, *requirement, *permitted, *why, *strict;
    int minor_first, minor_last;
};

enum { MOON_DEVIATION_ROWS_MAX = 128 };
struct moon_deviation_table {
    struct moon_deviation_row rows[MOON_DEVIATION_ROWS_MAX];
    size_t count;
    const struct moon_json *document;
};

/* The file as it was when the program was built; *length gets its bytes. */
const char *moon_deviations_text(size_t *length);
/* Reads a table from JSON text and checks it by its schema: ids are deviations of the reference, each of them once.
 * `source` names it in errors. Returns 0, MOON_ERR_SYNTAX, MOON_ERR_SCHEMA, MOON_ERR_LIMIT (too many rows) or
 * MOON_ERR_MEMORY. */
int moon_deviations_read(struct moon_deviation_table *table, struct moon_arena *arena, const char *source,
                         const char *text, size_t length, struct moon_error *error);
/* The table that this program was built with. Returns as moon_deviations_read. */
int moon_deviations_load(struct moon_deviation_table *table, struct moon_arena *arena, struct moon_error *error);
/* The row of a deviation of the reference. */
const struct moon_deviation_row *moon_deviations_row(const struct moon_deviation_table *table,
                                                     enum moon_deviation deviation);

/* Finds what a case shows (DEV-002): deviations that the suite notes while it answers, and those whose right side
 * changes its answer. `strict` gets the answer without any deviation, NULL if there is none. Answers live in `arena`.
 * Returns 0 or MOON_ERR_MEMORY; a case that the reference cannot answer shows none. */
int moon_deviations_of_case(struct moon_arena *arena, const struct moon_suite *suite,
                            const struct moon_profile *profile, const struct moon_json *given,
                            struct moon_deviation_notes *notes, const struct moon_json **strict,
                            struct moon_error *error);

#endif
