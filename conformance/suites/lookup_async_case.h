/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup-async in parts: reading a case, running it, explaining it, drawing cases. */
#ifndef MOON_CONFORMANCE_SUITES_LOOKUP_ASYNC_CASE_H
#define MOON_CONFORMANCE_SUITES_LOOKUP_ASYNC_CASE_H

#include "conformance/suites/engine_rig.h"
#include "conformance/suites/suite.h"

enum moon_async_kind { MOON_ASYNC_ADD, MOON_ASYNC_ABORT, MOON_ASYNC_ANSWERS, MOON_ASYNC_RESET };

/* What is done before a step. */
struct moon_async_action {
    enum moon_async_kind kind;
    uint32_t slot;                    /* add, abort */
    struct moon_engine_prompt prompt; /* add */
    int64_t max_tokens;               /* add */
    int64_t count;                    /* answers */
};
struct moon_async_step {
    struct moon_async_action *actions;
    size_t count;
};

/* A case as read. Points into itself, the arena and the document.
 *   names  of the requests, by slot, in the order in which they come
 *   holds  some step lets lookups answer: then none answers by itself
 *   aborts some step aborts */
struct moon_async_case {
    struct moon_engine_case engine;
    struct moon_async_step *steps;
    size_t step_count;
    const char *names[MOON_ENGINE_CASE_REQUESTS_MAX];
    size_t name_count;
    bool holds, aborts;
};
/* Returns as moon_engine_case_read. */
int moon_async_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                         const struct moon_json *given, struct moon_async_case *out, struct moon_error *error);

/* Reads one step, a list of actions; adds the names that come in it to its->names. Returns as above. */
int moon_async_step_read(struct moon_arena *arena, const char *source, const struct moon_json *list,
                         struct moon_async_case *its, struct moon_async_step *out, struct moon_error *error);

/* Does one action. Returns as the rig's functions. */
int moon_async_act(struct moon_rig *rig, const struct moon_async_action *action, struct moon_error *error);

/* As moon_suite.answer, .explain and .draw. */
int moon_async_answer(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_json **result, struct moon_error *error);
int moon_async_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                       const struct moon_profile *profile, const char *source, const struct moon_json *given,
                       struct moon_text *out, struct moon_error *error);
int moon_async_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                    struct moon_json **given);

#endif
