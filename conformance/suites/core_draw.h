/* SPDX-License-Identifier: Apache-2.0 */
/* Random steps of an engine's core: requests that start, go on, are preempted, come back and finish. */
#ifndef MOON_CONFORMANCE_SUITES_CORE_DRAW_H
#define MOON_CONFORMANCE_SUITES_CORE_DRAW_H

#include "conformance/suites/connector_case.h"
#include "ref/base/random.h"

enum { MOON_CORE_REQUESTS_MAX = 4 };

enum moon_drawn_state {
    MOON_CORE_WAITING,
    MOON_CORE_RUNNING,
    MOON_CORE_PREEMPTED,
    MOON_CORE_ENDED, /* its end is to be told */
    MOON_CORE_GONE,
};

/* One request. Tokens: of the prompt, known (prompt and output), with KV, and the length of the present prefill.
 *   draft_tokens  at most this many are scheduled with a token of output
 *   tables        blocks it has in each group */
struct moon_drawn_request {
    char name[24];
    int64_t prompt_tokens, known_tokens, computed_tokens, prefill_tokens, draft_tokens;
    enum moon_drawn_state state;
    int64_t tables[MOON_ENGINE_GROUPS_MAX];
};

/* The core. Borrows all pointers. */
struct moon_drawn_core {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_connector *connector;
    struct moon_drawn_request requests[MOON_CORE_REQUESTS_MAX];
    size_t request_count;
    int64_t next_block;
    bool late;              /* the last step's jobs were left for later */
    struct moon_json *step; /* under way */
};

/* Draws one step and appends it to an array, as the suite save has them: what is scheduled fits the block tables,
 * output comes after a prefill, nobody starts in a step that preempts, and states are handed off where the core has
 * them. Fails only through moon_json_broken(steps). */
void moon_drawn_core_step(struct moon_drawn_core *core, struct moon_json *steps);

#endif
