/* SPDX-License-Identifier: Apache-2.0 */
/* The result of one run: what every writer of reports reads, and nothing else. */
#ifndef MOON_REPORTS_RESULT_H
#define MOON_REPORTS_RESULT_H

#include "ref/base/json.h"

enum moon_outcome {
    MOON_OUTCOME_PASS,
    MOON_OUTCOME_FAIL,  /* the answer differs from what is required */
    MOON_OUTCOME_ERROR, /* harness or adapter broke, or the adapter said "error" */
    MOON_OUTCOME_CRASH, /* the adapter's process died while it had this case */
    MOON_OUTCOME_TIMEOUT,
    MOON_OUTCOME_SKIP,    /* with a reason */
    MOON_OUTCOME_XFAIL,   /* failed and is listed as known failure */
    MOON_OUTCOME_XPASS,   /* passed though listed: an error */
    MOON_OUTCOME_UNKNOWN, /* could not be judged: never a pass */
    MOON_OUTCOME_COUNT
};
const char *moon_outcome_name(enum moon_outcome outcome); /* "pass", "fail", ... */
/* True for outcomes that make a run fail: fail, error, crash, timeout, xpass. */
bool moon_outcome_is_failure(enum moon_outcome outcome);

/* One case. Strings live in the run's arena; empty string where there is nothing to say.
 * A failure is told in the five lines: required (with requirement id), done, expected, seen, reproduce; resembles: a
 * public report of the same shape. */
struct moon_result_case {
    const char *id;          /* hash.sha256.text.0001 */
    const char *suite;       /* hash */
    const char *profile;     /* vllm-0.33 */
    const char *requirement; /* HASH-003 */
    const char *level;       /* MUST, SHOULD, MAY, ALT */
    enum moon_outcome outcome;
    uint64_t duration_ns;
    const char *reason;                                                    /* of skip, error, xfail, unknown */
    const char *required, *done, *expected, *seen, *reproduce, *resembles; /* of a failure */
    const char *const *deviations; /* what real releases do wrong and this case shows: "connector.9.19 it does so" */
    size_t deviation_count;
    struct moon_result_case *next;
};

/* One run. Owner: whoever opened `arena`. */
struct moon_result {
    struct moon_arena *arena;
    const char *command; /* as typed */
    const char *harness_version;
    const char *target; /* "ref", "cmd:..." */
    const char *target_name, *target_version, *target_homepage;
    const char *mode;    /* "compat" or "strict"; "" where there are no modes */
    const char *seed;    /* decimal, or "" */
    const char *host;    /* kernel, CPU, compiler: one line */
    const char *started; /* ISO 8601 UTC */
    uint64_t duration_ns;
    const char *digest;         /* XXH3-64 over suite files, 16 hex digits */
    bool incomplete;            /* a section that was required is missing: the run has no good exit status */
    const char *incomplete_why; /* heads the report with INCOMPLETE; "" when every section is there */
    struct moon_result_case *first, *last;
    size_t counts[MOON_OUTCOME_COUNT];
};

/* Appends a zeroed case (arena memory; NULL when memory refused). After the case is filled, moon_result_count counts
 * it. */
struct moon_result_case *moon_result_add(struct moon_result *result);
void moon_result_count(struct moon_result *result, const struct moon_result_case *one);
/* "N passed, N failed, N skipped": failures as in moon_outcome_is_failure; skip, xfail and unknown count as skipped. */
void moon_result_closing_line(const struct moon_result *result, struct moon_text *out);
/* One deviation of a run, and the cases that show it. A passed one passes as real releases do wrong. */
struct moon_result_deviation {
    const char *text;
    size_t passed, failed;
};
enum { MOON_RESULT_DEVIATIONS_MAX = 64 };
/* All of them, in the order of their texts' first appearance, and how many cases passed with any. Returns how many;
 * more than the array holds are left out. */
size_t moon_result_deviations(const struct moon_result *result,
                              struct moon_result_deviation out[MOON_RESULT_DEVIATIONS_MAX], size_t *passed_cases);
/* Exit status of the run: 0, 1 (any failure), 3 (any unknown, or incomplete), 77 (everything was skipped, or nothing
 * ran). */
int moon_result_exit(const struct moon_result *result);

/* Writers. Each writes one complete document. The JSON form reads back with moon_result_read. */
void moon_report_json(const struct moon_result *result, struct moon_text *out);
int moon_result_read(struct moon_arena *arena, const char *source, const struct moon_json *document,
                     struct moon_result *result, struct moon_error *error);
void moon_report_terminal(const struct moon_result *result, bool colour, struct moon_text *out);
void moon_report_tap(const struct moon_result *result, struct moon_text *out);
void moon_report_junit(const struct moon_result *result, struct moon_text *out);
/* Self-contained page: no network, no script needed. Several runs make a matrix. */
void moon_report_html(const struct moon_result *const results[], size_t count, struct moon_text *out);

#endif
