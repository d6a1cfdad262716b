/* SPDX-License-Identifier: Apache-2.0 */
/* A case of the suite segments, read: one rank of an engine, its caches, and what is asked of it. */
#ifndef MOON_CONFORMANCE_SUITES_SEGMENTS_CASE_H
#define MOON_CONFORMANCE_SUITES_SEGMENTS_CASE_H

#include "conformance/suites/suite.h"
#include "ref/layout/segments.h"
#include "ref/layout/store_tp.h"

/* One request with the group it is made in. */
struct moon_segments_ask {
    int64_t group;
    struct moon_segment_request request;
};

/* Everything lives in the arena or in the case's JSON.
 *   names       of the caches, as many as caches
 *   caches      those that the release registers (SEG-011), in order
 *   sharded     selection chose a TP-sharded layout; then `shards` is this rank's place in it */
struct moon_segments_case {
    const struct moon_profile *profile;
    int64_t rank;
    uint64_t num_blocks;
    struct moon_store_selection selection;
    bool sharded;
    struct moon_shards shards;
    uint64_t block_size_tokens; /* of group 0 */
    uint64_t *storage_bytes;
    size_t storage_count;
    struct moon_tensor *caches;
    const char **names;
    size_t cache_count;
    struct moon_segments_ask *asks;
    size_t ask_count;
    uint64_t *single_blocks;
    size_t single_count;
};

/* Reads `given`. Returns 0; MOON_ERR_SCHEMA or MOON_ERR_RANGE with the place; MOON_ERR_REFUSED when the release does
 * not start such an engine; MOON_ERR_MEMORY. */
int moon_segments_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                            const struct moon_json *given, struct moon_segments_case *out, struct moon_error *error);

/* Registers the case's caches: moon_segments_build. */
int moon_segments_case_build(struct moon_arena *arena, const struct moon_segments_case *one,
                             struct moon_segments *segments, struct moon_error *error);

/* Draws a case (conformance/suites/segments_draw.c); as moon_suite.draw. */
int moon_segments_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                       struct moon_json **given);

#endif
