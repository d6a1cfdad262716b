/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup in parts: reading a case, asking the reference, explaining, and drawing cases. */
#ifndef MOON_CONFORMANCE_SUITES_LOOKUP_H
#define MOON_CONFORMANCE_SUITES_LOOKUP_H

#include "conformance/suites/connector_case.h"
#include "conformance/suites/key_set.h"
#include "conformance/suites/lookup_direct.h"
#include "conformance/suites/suite.h"
#include "ref/connector/scheduler.h"

enum { MOON_LOOKUP_TOKENS_MAX = 1 << 24 };

/* A case as read: the connector, one request, and the store. Points into itself, as moon_connector_case. Borrows from
 * arena and document. */
struct moon_lookup_case {
    struct moon_connector_case its;
    struct moon_request request;
    int64_t computed_tokens;
    struct moon_key_set answers; /* of the keys that the store does not answer with 0 */
    bool raises;                 /* the existence call */
};
/* Reads `given`. What is left out besides the engine's members: one token more than a scheduler block, none of them
 * computed, hashes 0...01, 0...02, ..., an empty store. Errors as moon_connector_case_read; MOON_ERR_RANGE at
 * block_hashes for fewer than the prompt has. */
int moon_lookup_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given, struct moon_lookup_case *out, struct moon_error *error);

/* Asks the scheduler side as the core does; `store` plays the existence call. Opens `direct`, which the caller closes;
 * its lookup tells what was asked and found. Returns 0 with *match; MOON_ERR_REFUSED with what a lookup raises, to
 * which the release's client would never get an answer; MOON_ERR_MEMORY. */
int moon_lookup_case_ask(const struct moon_lookup_case *its, struct moon_lookup_direct *direct, moon_exist_store *store,
                         void *context, struct moon_memory *memory, struct moon_match *match, struct moon_error *error);

/* What one key is answered with. */
int64_t moon_lookup_case_answer(const struct moon_lookup_case *its, struct moon_key_text key);

/* As moon_suite.explain (conformance/suites/lookup_explain.c) and moon_suite.draw (lookup_draw.c). */
int moon_lookup_explain(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_text *out, struct moon_error *error);
int moon_lookup_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                     struct moon_json **given);

#endif
