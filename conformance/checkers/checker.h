/* SPDX-License-Identifier: Apache-2.0 */
/* Checkers of histories: each proves one promise of a store wrong, or finds that it held, or says that it cannot know.
 */
#ifndef MOON_CHECKERS_CHECKER_H
#define MOON_CHECKERS_CHECKER_H

#include "ref/base/json.h"
#include "reports/history.h"

enum moon_verdict {
    MOON_VERDICT_PASS,    /* it was looked for, and held */
    MOON_VERDICT_FAIL,    /* it was broken */
    MOON_VERDICT_ALT,     /* broken with a listed cause, in compat mode */
    MOON_VERDICT_UNKNOWN, /* the records that it needs are not there */
};

/* Why. Texts live in the arena. `at`: index of the record that shows it; `looked_at`: how many cases were judged (a
 * pass over none is UNKNOWN). edge: of the deviation, for ALT. */
struct moon_finding {
    enum moon_verdict verdict;
    const char *required, *done, *expected, *seen, *edge;
    size_t at;
    size_t looked_at;
};

/* number: of design's list of correctness checks; requirement: its id in SPEC.md; needs: record classes, in words. */
struct moon_checker {
    unsigned number;
    const char *name, *requirement, *needs;
    /* Judges a merged history; use moon_checker_judge. Returns 0, MOON_ERR_MEMORY, MOON_ERR_LIMIT (order.h). */
    int (*judge)(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding);
};

/* All that judge one history, by number; a NULL ends. Same seed, same history is judged over two runs (repeat.h). */
extern const struct moon_checker *const moon_checkers[];

/* Judges: fills *finding. Returns 0 or an error of the checker's judge (then *finding says nothing). */
int moon_checker_judge(const struct moon_checker *checker, struct moon_arena *arena, const struct moon_history *history,
                       struct moon_finding *finding);

#endif
