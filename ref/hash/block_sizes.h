/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler block and hash block of an engine, from its KV cache groups and context parallelism. */
#ifndef MOON_HASH_BLOCK_SIZES_H
#define MOON_HASH_BLOCK_SIZES_H

#include "ref/key/profile.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_KV_GROUPS_MAX = 1024 };

/* What the block sizes depend on in one KV cache group. */
struct moon_kv_group_size {
    int64_t block_size; /* tokens a rank, 1 to 2^24 */
    /* Its KV is split over decode-context-parallel ranks, so a block spans dcp times as many tokens. From 0.31 on a
     * flag of the spec; earlier every attention spec is (sliding windows too), Mamba is not. With a single group
     * releases before 0.31 do not look. */
    bool dcp_sharded;
    bool mamba_not_aligned; /* holds a Mamba state in another cache mode than "align" */
    bool prefix_cacheable;  /* false for scratch groups; read from 0.29 on */
};

struct moon_block_sizes_input {
    const struct moon_kv_group_size *groups;
    size_t group_count; /* 1 to MOON_KV_GROUPS_MAX */
    int64_t dcp, pcp;   /* 1 to 2^16 */
    int64_t match_unit; /* prefix_match_unit, before 0.26 hash_block_size, in tokens; 0: not given */
    bool hashing;       /* prefix caching is on, or a connector is configured */
};

/* In tokens. A request's hashes are made each hash_block tokens; the scheduler's numbers are multiples of
 * scheduler_block. */
struct moon_block_sizes {
    int64_t scheduler_block;
    int64_t hash_block;
};

/* Resolves both. (HASH-090 to HASH-094) Pure function.
 * Returns 0, MOON_ERR_REFUSED (ValueError, the release's text where it is known), or MOON_ERR_RANGE (a number is
 * outside its range, or the least common multiple is beyond 2^53). */
int moon_block_sizes_resolve(const struct moon_profile *profile, const struct moon_block_sizes_input *input,
                             struct moon_block_sizes *out, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
