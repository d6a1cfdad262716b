/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: placeholder until its owner replaces it. */
#include "conformance/suites/suite.h"

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    (void)world;
    (void)arena;
    (void)profile;
    (void)given;
    (void)result;
    return moon_fail(error, MOON_ERR_UNSUPPORTED, source, "not built yet");
}

static int explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    struct moon_json *result;
    (void)out;
    return answer(world, arena, profile, source, given, &result, error);
}

static int draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                struct moon_json **given) {
    (void)random;
    (void)profile;
    *given = moon_json_object(arena);
    return 0;
}

const struct moon_suite moon_suite_load = {"load", answer, explain, draw, NULL};
