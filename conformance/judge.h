/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a target by vectors: which cases are asked, what counts as right, how a failure is told. */
#ifndef MOON_CONFORMANCE_JUDGE_H
#define MOON_CONFORMANCE_JUDGE_H

#include "conformance/deviations.h"
#include "conformance/known.h"
#include "conformance/target.h"
#include "conformance/vectors.h"
#include "reports/result.h"

/* What to do. Strings are borrowed until the run ends.
 *   only     glob over ids; NULL: all
 *   profile  NULL: all
 *   known    NULL: nothing is known to fail
 *   today    YYYY-MM-DD, for the known failures
 *   limit    number of cases at most; 0: all
 *   spec     target as typed, for the command that repeats a case
 *   strict   mode strict (DEV-001): the target is opened in it as well
 *   progress called now and then with how many of how many are done; NULL: nobody asks */
struct moon_judge_setting {
    const char *only;
    const struct moon_profile *profile;
    struct moon_known *known;
    const char *today;
    size_t limit;
    const char *spec;
    bool strict;
    void (*progress)(size_t done, size_t all);
};

/* Asks the target and adds one judged case per selected vector to `result`, in the order of the vectors, then one for
 * each fault of the known-failure file. Returns 0 or MOON_ERR_MEMORY; what goes wrong with the target is part of the
 * result. */
int moon_judge_vectors(struct moon_target *target, const struct moon_vectors *vectors,
                       const struct moon_judge_setting *setting, struct moon_result *result, struct moon_error *error);

/* What a run says of deviations: their rows, and their names as reports show them. Lives in the run's arena. */
struct moon_judge_deviations {
    struct moon_deviation_table table;
    const char *edges[MOON_DEVIATION_COUNT]; /* "connector.9.19 what the release does" */
};
/* Returns 0 or MOON_ERR_MEMORY. */
int moon_judge_open_deviations(struct moon_judge_deviations *deviations, struct moon_arena *arena,
                               struct moon_error *error);
/* Names what a judged case shows: it passes as an alternative, and in mode strict fails for it (DEV-002). Returns 0 or
 * MOON_ERR_MEMORY. */
int moon_judge_name_deviations(const struct moon_judge_deviations *deviations, struct moon_arena *arena, bool strict,
                               const struct moon_deviation_notes *notes, struct moon_result_case *one,
                               struct moon_error *error);

/* Sets the outcome and reason of a case whose question was not answered; the reason is NULL when memory refused. */
void moon_judge_unanswered(struct moon_result *result, const struct moon_question *question,
                           struct moon_result_case *one);

/* Adds a case with what is known before it is asked: id, suite, profile, requirement. NULL when memory refused. */
struct moon_result_case *moon_judge_add(struct moon_result *result, const char *id, const char *kind, const char *suite,
                                        const char *profile);

/* Appends a word for a POSIX shell: as it is when it is plain, else in single quotes. */
void moon_judge_quote(struct moon_text *out, const char *word);

#endif
