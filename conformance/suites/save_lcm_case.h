/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save-lcm in parts: reading a case, running it, explaining it, drawing cases. */
#ifndef MOON_CONFORMANCE_SUITES_SAVE_LCM_CASE_H
#define MOON_CONFORMANCE_SUITES_SAVE_LCM_CASE_H

#include "conformance/suites/engine_rig.h"
#include "conformance/suites/suite.h"

/* A case as read: one request that is added before the first step. Points into itself, the arena and the document. */
struct moon_lcm_case {
    struct moon_engine_case engine;
    struct moon_engine_prompt prompt;
    int64_t max_tokens, step_count;
    bool delivered;
};
/* Returns as moon_engine_case_read. */
int moon_lcm_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                       const struct moon_json *given, struct moon_lcm_case *out, struct moon_error *error);

/* As moon_suite.answer, .explain and .draw. */
int moon_lcm_answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                    const char *source, const struct moon_json *given, struct moon_json **result,
                    struct moon_error *error);
int moon_lcm_explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                     const char *source, const struct moon_json *given, struct moon_text *out,
                     struct moon_error *error);
int moon_lcm_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                  struct moon_json **given);

#endif
