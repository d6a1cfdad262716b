/* SPDX-License-Identifier: Apache-2.0 */
/* Words that findings share. Nobody outside this folder includes it. */
#ifndef MOON_CHECKERS_FINDING_INTERNAL_H
#define MOON_CHECKERS_FINDING_INTERNAL_H

#include "conformance/checkers/checker.h"
#include "conformance/checkers/operations.h"

/* "node.boot/op" of an operation with its key, for a sentence; bytes that are not printable as \xNN. Never NULL: ""
 * when memory refused. */
const char *moon_finding_operation(struct moon_arena *arena, const struct moon_operation *operation);
const char *moon_finding_bytes(struct moon_arena *arena, struct moon_bytes bytes);

/* Notes that one more case was judged and held. */
void moon_finding_held(struct moon_finding *finding);
/* Notes what broke; the first one stays. Texts may be NULL when memory refused. */
void moon_finding_broken(struct moon_finding *finding, size_t at, const char *done, const char *expected,
                         const char *seen);
/* Notes a case that cannot be judged, and why. */
void moon_finding_unclear(struct moon_finding *finding, size_t at, const char *why);

/* The record is of that state. */
bool moon_record_tells(const struct moon_record *record, const char *what);

#endif
