/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the suite save. */
#ifndef MOON_CONFORMANCE_SUITES_SAVE_H
#define MOON_CONFORMANCE_SUITES_SAVE_H

#include "conformance/suites/suite.h"

/* As the suite's explain: per step and rank what is checked, put and skipped, and why. (save_explain.c) */
int moon_save_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error);
/* As the suite's draw. (save_draw.c) */
int moon_save_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given);

#endif
