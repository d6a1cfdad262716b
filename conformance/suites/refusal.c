/* SPDX-License-Identifier: Apache-2.0 */
/* Turns what a release raises into an answer. */
#include "conformance/suites/refusal.h"

#include <assert.h>

struct moon_json *moon_refusal_answer(struct moon_arena *arena, const struct moon_error *error) {
    assert(error->status == MOON_ERR_REFUSED);
    struct moon_json *answer = moon_json_object(arena);
    struct moon_json *raised = moon_json_set(arena, answer, "error", moon_json_object(arena));
    moon_json_set(arena, raised, "class", moon_json_string(arena, error->type));
    moon_json_set(arena, raised, "message", moon_json_string(arena, error->message));
    return answer;
}
