/* SPDX-License-Identifier: Apache-2.0 */
/* Random engines that a release runs, for the suites that ask a connector. */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_DRAW_H
#define MOON_CONFORMANCE_SUITES_ENGINE_DRAW_H

#include "ref/base/json.h"
#include "ref/base/random.h"
#include "ref/key/profile.h"

/* What is drawn. world_max: ranks, 1 or more; groups_max: KV cache groups, 1 to 6. */
struct moon_engine_limits {
    uint64_t world_max, groups_max;
};

/* Adds the members of an engine to an empty `given`: topology, heads, use_mla, groups of all kinds with EAGLE flags,
 * windows and retained tokens, speculative, prefix_match_unit, extra_config with the store TP, layout, model. Seldom
 * one that the release refuses. Role and options are the caller's: `extra_config` is there, and can take more. Fails
 * only through moon_json_broken(given). */
void moon_engine_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                      const struct moon_engine_limits *limits, struct moon_json *given);

/* Adds to a drawn engine, each once in `times`, the options that decide whether and how lookups and loads are made. */
void moon_engine_draw_options(struct moon_arena *arena, struct moon_random *random, uint64_t times,
                              struct moon_json *given);

#endif
