/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/suites/lookup.h"
int moon_lookup_explain(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    (void)arena;(void)profile;(void)given;(void)out;
    return moon_fail(error, MOON_ERR_UNSUPPORTED, source, "x");
}
