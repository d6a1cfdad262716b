/* SPDX-License-Identifier: Apache-2.0 */
/* Compares an answer with what a vector expects, and tells a person where they part. */
#ifndef MOON_CONFORMANCE_COMPARE_H
#define MOON_CONFORMANCE_COMPARE_H

#include "conformance/suites/suite.h"

/* The first difference. Strings live in the arena given to moon_compare. */
struct moon_difference {
    /* Both sides decoded, each one line with the path that they differ at. */
    const char *expected;
    const char *seen;
    /* What the difference means: which part of a key, which block, which byte; "" when there is no more to say. */
    const char *hint;
};

/* What was seen, with the hint in brackets where there is one. In `arena` or borrowed; NULL when memory refused. */
const char *moon_difference_seen(struct moon_arena *arena, const struct moon_difference *difference);

/* Compares by the rules of the suite:
 *   - every member of `expect` must be in `answer` and equal; what only `answer` has is a difference
 *   - `optional` members of the suite count only when both have them
 *   - null in a case that is marked random stands for any value
 *   - of an error the class counts always, the message where it is the connector's own text and not the interpreter's
 * `answer` has passed the schema of the suite. Returns 0 when equal, 1 with *difference filled, or MOON_ERR_MEMORY. */
int moon_compare(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_json *given,
                 const struct moon_json *expect, const struct moon_json *answer, struct moon_difference *difference);

/* True if the text of this exception is the connector's own, so that implementations must give the same. */
bool moon_compare_message_counts(const char *error_class, const char *message);

#endif
