/* SPDX-License-Identifier: Apache-2.0 */
/* A suite of vectors: how `given` becomes the answer of the reference, and how new cases are drawn from a seed. */
#ifndef MOON_CONFORMANCE_SUITE_H
#define MOON_CONFORMANCE_SUITE_H

#include "ref/base/json.h"
#include "ref/base/random.h"
#include "ref/key/deviation.h"

/* Where a suite gets what is not in the case. environment(name) is getenv or a fixed answer; entropy fills random bytes
 * (for NONE_HASH of releases that draw it). Both given by the caller, so that the suites themselves stay deterministic.
 *   notes  where `answer` notes the deviations that happen in the connector; NULL: nobody asks */
struct moon_suite_world {
    const char *(*environment)(void *context, const char *name);
    int (*entropy)(void *context, void *bytes, size_t length); /* 0, or MOON_ERR_IO */
    void *context;
    struct moon_deviation_notes *notes;
};
/* Where to note deviations; NULL without a world. */
static inline struct moon_deviation_notes *moon_suite_notes(const struct moon_suite_world *world) {
    return world ? world->notes : NULL;
}

/* One suite. All functions return 0 or a negative status with `error` filled; results live in `arena`. A failure the
 * *release* would raise is no error here but the answer {"error":{"class","message"}}. `source` names the input in
 * errors. */
struct moon_suite {
    const char *name;
    /* `given` to an object in expect's form. `given` is checked against a closed list of members (MOON_ERR_SCHEMA with
     * the place); members with a natural default may be left out. */
    int (*answer)(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error);
    /* Text for people: each part of the answer with the rule and the release it comes from. */
    int (*explain)(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error);
    /* A new `given` from random numbers, valid for the profile: covers the suite's space widely, favours edges. */
    int (*draw)(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                struct moon_json **given);
    /* Members of expect that an implementation may leave out of its answer, compared when both have them; NULL ends. */
    const char *const *optional;
};

extern const struct moon_suite moon_suite_hash;         /* conformance/suites/hash.c */
extern const struct moon_suite moon_suite_keys;         /* conformance/suites/keys.c */
extern const struct moon_suite moon_suite_layout;       /* conformance/suites/layout.c */
extern const struct moon_suite moon_suite_segments;     /* conformance/suites/segments.c */
extern const struct moon_suite moon_suite_config;       /* conformance/suites/config.c */
extern const struct moon_suite moon_suite_lookup;       /* conformance/suites/lookup.c */
extern const struct moon_suite moon_suite_save;         /* conformance/suites/save.c */
extern const struct moon_suite moon_suite_load;         /* conformance/suites/load.c */
extern const struct moon_suite moon_suite_lookup_async; /* conformance/suites/lookup_async.c */
extern const struct moon_suite moon_suite_save_lcm;     /* conformance/suites/save_lcm.c */

/* Finds a suite by name, NULL if there is none; moon_suites() ends with NULL. (conformance/suites/suites.c) */
const struct moon_suite *moon_suite_find(const char *name);
const struct moon_suite *const *moon_suites(void);

#endif
