/* SPDX-License-Identifier: Apache-2.0 */
/* Random engines that are run step by step, and what their store holds before: shared by lookup-async and save-lcm. */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_CASE_DRAW_H
#define MOON_CONFORMANCE_SUITES_ENGINE_CASE_DRAW_H

#include "conformance/suites/engine_rig.h"
#include "ref/base/random.h"

/* A case that is being drawn. */
struct moon_engine_drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given, *extra; /* extra_config */
};

uint64_t moon_draw_below(const struct moon_engine_drawing *drawing, uint64_t bound);
bool moon_draw_chance(const struct moon_engine_drawing *drawing, uint64_t percent);
void moon_draw_int(const struct moon_engine_drawing *drawing, struct moon_json *object, const char *name,
                   uint64_t value);
void moon_draw_text(const struct moon_engine_drawing *drawing, struct moon_json *object, const char *name,
                    const char *value);
void moon_draw_bool(const struct moon_engine_drawing *drawing, struct moon_json *object, const char *name, bool value);
/* A prompt rule of one of four families; prompts of a family begin alike. Sets member `prompt` of `object`. */
void moon_draw_prompt(const struct moon_engine_drawing *drawing, struct moon_json *object, uint64_t family,
                      uint64_t count);

/* Fills `given` with topology, heads, one group, options of the store layout, role, layout and model.
 *   shared_percent  how often a common store TP is asked for */
void moon_draw_engine(struct moon_engine_drawing *drawing, uint64_t shared_percent);

/* Appends to `stored` some keys of a chain of hashes, as another instance of equal layout would have left them: all of
 * a prefix, a prefix with a hole, single keys, or none. Lost memory shows in the JSON. */
void moon_draw_stored(const struct moon_engine_drawing *drawing, const struct moon_connector *connector,
                      const struct moon_hashes *hashes, struct moon_json *stored);

#endif
