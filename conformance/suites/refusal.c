/* SPDX-License-Identifier: Apache-2.0 */
/* How a suite ends: with what it built, with what the release would raise, or with an error. */
#include "conformance/suites/refusal.h"

#include <assert.h>
#include <string.h>

struct moon_json *moon_exception_answer(struct moon_arena *arena, const char *type, const char *message,
                                        size_t length) {
    struct moon_json *answer = moon_json_object(arena);
    struct moon_json *raised = moon_json_set(arena, answer, "error", moon_json_object(arena));
    moon_json_set(arena, raised, "class", moon_json_string(arena, type));
    moon_json_set(arena, raised, "message", moon_json_bytes(arena, message, length));
    return answer;
}

struct moon_json *moon_refusal_answer(struct moon_arena *arena, const struct moon_error *error) {
    assert(error->status == MOON_ERR_REFUSED);
    return moon_exception_answer(arena, error->type, error->message, strlen(error->message));
}

int moon_suite_end(struct moon_arena *arena, int status, struct moon_json *built, struct moon_error *failure,
                   struct moon_json **result, struct moon_error *error) {
    if (status == MOON_ERR_REFUSED) {
        built = moon_refusal_answer(arena, failure);
        status = 0;
    }
    if (!status && moon_json_broken(built))
        status = moon_fail(failure, MOON_ERR_MEMORY, NULL, "out of memory");
    if (!status)
        *result = built;
    else if (error)
        *error = *failure;
    return status;
}

int moon_suite_end_explain(int status, struct moon_text *out, struct moon_error *failure, struct moon_error *error) {
    if (status == MOON_ERR_REFUSED) {
        moon_text_format(out, "raises %s: %s\n", failure->type, failure->message);
        status = 0;
    }
    if (!status && out->failed)
        status = moon_fail(failure, MOON_ERR_MEMORY, NULL, "out of memory");
    if (status && error)
        *error = *failure;
    return status;
}

bool moon_exception_explain(const struct moon_profile *profile, const struct moon_json *answer, struct moon_text *out) {
    const struct moon_json *raised = moon_json_member(answer, "error");
    if (raised)
        moon_text_format(out, "%s raises %s: %s\n", profile->name, moon_json_member(raised, "class")->bytes,
                         moon_json_member(raised, "message")->bytes);
    return raised != NULL;
}
