/* SPDX-License-Identifier: Apache-2.0 */
/* The implementation under test: the reference in this process, or any program that speaks the adapter protocol. */
#ifndef MOON_CONFORMANCE_TARGET_H
#define MOON_CONFORMANCE_TARGET_H

#include "conformance/suites/suite.h"

enum {
    MOON_TARGET_CASE_TIMEOUT_MS_DEFAULT = 30000,
    MOON_TARGET_START_TIMEOUT_MS_MIN = 60000, /* an interpreter with large libraries is slow to start */
    MOON_TARGET_WINDOW_DEFAULT = 16,
    MOON_TARGET_WINDOW_MAX = 256,
    MOON_TARGET_DEATHS_MAX = 8, /* in a row, without any answer between them */
};

struct moon_target_setting {
    int64_t case_timeout_ms;        /* 0: default */
    int64_t window;                 /* cases in flight; 0: default */
    bool strict;                    /* mode strict: the reference answers without deviations */
    const char *version;            /* of this program: what `ref` says */
    const char *program;            /* of this program: `ref` as a second process; NULL: there is none */
    const char *folder;             /* working directory of the adapter; NULL: this one's */
    const char *const *environment; /* of the adapter, as in process.h; NULL: unchanged */
};

struct moon_target;

/* Opens "ref" or "cmd:COMMAND" (started by /bin/sh -c, asked for its name). `spec` and the setting's strings are
 * borrowed until the close. Returns 0, MOON_ERR_SCHEMA (no such kind of target), MOON_ERR_IO (it does not start or does
 * not say what the protocol asks for; the error tells in words) or MOON_ERR_MEMORY. Thread rule: one thread. */
int moon_target_open(struct moon_target **target, const char *spec, const struct moon_target_setting *setting,
                     struct moon_error *error);
/* Says "stop", ends the process, frees. NULL is allowed. */
void moon_target_close(struct moon_target *target);

/* What it says about itself; "" where it says nothing. Valid until the close. */
const char *moon_target_name(const struct moon_target *target);
const char *moon_target_version(const struct moon_target *target);
const char *moon_target_homepage(const struct moon_target *target);
bool moon_target_offers_suite(const struct moon_target *target, const char *suite);
bool moon_target_offers_profile(const struct moon_target *target, const char *profile);

enum moon_reply {
    MOON_REPLY_RESULT,
    MOON_REPLY_SKIP,
    MOON_REPLY_ERROR, /* it said so, or broke the protocol; `reason` tells whose fault it is */
    MOON_REPLY_CRASH,
    MOON_REPLY_TIMEOUT,
};

/* One case to ask, and what came back. `answer` has passed the suite's schema. */
struct moon_question {
    const struct moon_suite *suite;
    const struct moon_profile *profile;
    const struct moon_json *given;
    enum moon_reply reply;
    const struct moon_json *answer; /* MOON_REPLY_RESULT only */
    const char *reason;             /* all others */
    uint64_t duration_ns;
};

/* Asks all questions, several in flight, and fills every one. Answers and reasons live in `arena`. A process that dies
 * or hangs is started anew; of several cases in flight then, each is asked again alone, to find the one to blame.
 * Returns 0 or MOON_ERR_MEMORY. */
int moon_target_ask(struct moon_target *target, struct moon_arena *arena, struct moon_question questions[],
                    size_t count, struct moon_error *error);

/* Asks the same questions of one further, separate process, which is started at the first call. Errors as
 * moon_target_open and moon_target_ask. */
int moon_target_ask_second(struct moon_target *target, struct moon_arena *arena, struct moon_question questions[],
                           size_t count, struct moon_error *error);

/* Ends the adapter in order, by "stop": 0, or MOON_ERR_IO with what was wrong. For `adapter check`. */
int moon_target_stop(struct moon_target *target, struct moon_error *error);
/* Sends raw text, a line end added, and waits for the answer that carries this seq; up to 4 lines before it are passed
 * over. What `adapter check` does with bad input. The answer lives in `arena`; NULL when there was none, then *reason
 * says why. */
const char *moon_target_raw(struct moon_target *target, struct moon_arena *arena, const char *text, int64_t seq,
                            const char **reason);

#endif
