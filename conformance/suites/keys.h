/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of the suite keys: answering, and drawing cases. */
#ifndef MOON_CONFORMANCE_SUITES_KEYS_H
#define MOON_CONFORMANCE_SUITES_KEYS_H

#include "conformance/suites/suite.h"

/* Draws a case (conformance/suites/keys_draw.c); as moon_suite.draw. */
int moon_keys_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given);

#endif
