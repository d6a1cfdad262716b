/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save in words. */
#include "conformance/suites/save.h"

int moon_save_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error) {
    struct moon_json *result = NULL;
    int status = moon_suite_save.answer(world, arena, profile, source, given, &result, error);
    if (!status)
        moon_json_write(result, MOON_JSON_PRETTY, out);
    return status;
}
