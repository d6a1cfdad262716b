/* SPDX-License-Identifier: Apache-2.0 */
/* Known-failure files: which cases may fail, why, and until when. */
#ifndef MOON_CONFORMANCE_KNOWN_H
#define MOON_CONFORMANCE_KNOWN_H

#include "ref/base/json.h"

/* One entry. */
struct moon_known_entry {
    const char *id;      /* a case's id, or a glob over ids */
    const char *profile; /* "" for all */
    const char *reason, *link, *expires;
    const struct moon_json *place;
    size_t matched; /* cases that it applied to */
    struct moon_known_entry *next;
};

struct moon_known {
    const char *source;
    struct moon_known_entry *first, *last;
};

/* Reads a known-failure file into `arena`. Returns 0 or the errors of moon_io_read_json and moon_schema_check. */
int moon_known_load(struct moon_known *known, struct moon_arena *arena, const char *path, struct moon_error *error);

/* The first entry that lists this case, or NULL; counts the match. An entry whose day has passed ("2026-11-29" as
 * `today`, UTC) does not apply any more. NULL as `known` lists nothing. */
const struct moon_known_entry *moon_known_find(struct moon_known *known, const char *id, const char *profile,
                                               const char *today);

/* The next entry after `after` (NULL: from the start) that is at fault: its day has passed, or it matched no case. *why
 * is a sentence in `arena`. NULL when there is none. */
const struct moon_known_entry *moon_known_fault(const struct moon_known *known, const struct moon_known_entry *after,
                                                const char *today, struct moon_arena *arena, const char **why);

#endif
