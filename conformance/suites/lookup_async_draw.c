/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup-async: random engines and requests. */
#include "conformance/suites/lookup_async_case.h"

int moon_async_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                    struct moon_json **given) {
    (void)random;
    (void)profile;
    *given = moon_json_object(arena);
    return 0;
}
