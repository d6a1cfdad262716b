/* SPDX-License-Identifier: Apache-2.0 */
/* How the suites lookup-async and save-lcm tell calls to the store and hashes. */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_REPORT_H
#define MOON_CONFORMANCE_SUITES_ENGINE_REPORT_H

#include "ref/base/json.h"
#include "ref/connector/store_call.h"

/* Arrays that calls are appended to; set them before each step. checks NULL: existence calls are not told. */
struct moon_engine_report {
    struct moon_arena *arena;
    struct moon_json *gets, *puts, *checks;
    struct moon_text key; /* scratch */
};
void moon_engine_report_open(struct moon_engine_report *report);
void moon_engine_report_close(struct moon_engine_report *report);
/* Appends a call with its results: gets and puts row by row, an existence check as one row. */
void moon_engine_report_call(struct moon_engine_report *report, int64_t rank, const struct moon_store_call *call,
                             const int64_t *values);

/* Words for rows of `gets` and `puts`, at most 16 of each, with the requirements that they follow. */
void moon_engine_explain_calls(const struct moon_json *gets, const struct moon_json *puts, const char *get_rule,
                               const char *put_rule, struct moon_text *out);

/* What a release raises about a request names it; the reference, which knows slots alone, ends its message with the
 * slot. Puts the name there. Other errors stay. */
void moon_engine_name_request(struct moon_error *error, const char *const names[], size_t count);

/* Hashes as an array of hex texts. */
struct moon_json *moon_engine_hashes(struct moon_arena *arena, const struct moon_hashes *hashes);

#endif
