/* SPDX-License-Identifier: Apache-2.0 */
/* Members of `given` that describe an engine, shared by the suites that build on layouts. */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_H
#define MOON_CONFORMANCE_SUITES_ENGINE_H

#include "ref/base/json.h"
#include "ref/layout/model.h"

/* Names of the members, for a suite's closed list. */
#define MOON_ENGINE_MEMBERS                                                                                            \
    "topology", "total_kv_heads", "use_mla", "groups", "extra_config", "kv_role", "kv_cache_layout", "model",          \
        "num_gpu_blocks", "speculative", "retention_interval", "prefix_match_unit"

enum {
    MOON_ENGINE_GROUPS_MAX = 64,
    MOON_ENGINE_WORLD_MAX = 1 << 16, /* workers */
    MOON_ENGINE_BLOCK_TOKENS_MAX = 1 << 20,
};

/* One engine as read. `model` borrows from the arena and the document. */
struct moon_engine {
    struct moon_layout_model model;
    const char *kv_role;
};

/* Reads the members; those that are left out are: sizes 1, 8 KV heads, one full attention group of block size 16, no
 * options, role kv_both, layout LBHNC, model "model". Returns 0; MOON_ERR_SCHEMA or MOON_ERR_RANGE with the place;
 * MOON_ERR_UNSUPPORTED for an engine that the release does not run; MOON_ERR_REFUSED with what the release raises;
 * MOON_ERR_MEMORY. */
int moon_engine_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                     const struct moon_json *given, struct moon_engine *out, struct moon_error *error);

#endif
