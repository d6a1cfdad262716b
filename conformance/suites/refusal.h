/* SPDX-License-Identifier: Apache-2.0 */
/* How a suite ends: with what it built, with what the release would raise, or with an error. */
#ifndef MOON_CONFORMANCE_SUITES_REFUSAL_H
#define MOON_CONFORMANCE_SUITES_REFUSAL_H

#include "ref/base/json.h"
#include "ref/key/profile.h"

/* {"error":{"class","message"}}: the answer where the release raises. NULL when memory refused. */
struct moon_json *moon_exception_answer(struct moon_arena *arena, const char *type, const char *message, size_t length);
/* The same from an error of status MOON_ERR_REFUSED. */
struct moon_json *moon_refusal_answer(struct moon_arena *arena, const struct moon_error *error);

/* The end of an `answer`, by the `status` that it came to: sets *result to `built` (0) or to the answer of a refusal,
 * or fills `error` (may be NULL) from `failure`, and returns the status, MOON_ERR_MEMORY if `built` lacks parts. */
int moon_suite_end(struct moon_arena *arena, int status, struct moon_json *built, struct moon_error *failure,
                   struct moon_json **result, struct moon_error *error);

/* The end of an `explain`, by the `status` that it came to: appends "raises CLASS: MESSAGE" for a refusal, or fills
 * `error` (may be NULL) from `failure`, and returns the status, MOON_ERR_MEMORY if `out` lacks parts. */
int moon_suite_end_explain(int status, struct moon_text *out, struct moon_error *failure, struct moon_error *error);

/* True if a suite's answer is that the release raises: then appends a line that says so. */
bool moon_exception_explain(const struct moon_profile *profile, const struct moon_json *answer, struct moon_text *out);

#endif
