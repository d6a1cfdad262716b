/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks: their numbers, the keys they use, and which of them puts a chunk. */
#ifndef MOON_LAYOUT_OWNERSHIP_H
#define MOON_LAYOUT_OWNERSHIP_H

#include "ref/layout/segments_shared.h"
#include "ref/layout/store_tp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One worker. `rank` = (pp * PCP + pcp) * TP + tp; key_pp is what releases write into keys (LAYOUT-016,
 * LAYOUT-017): moon_rank_key tells what a profile does. */
struct moon_rank {
    int64_t rank, tp, pcp, dcp, pp, key_pp;
};
/* Number of workers; the caller keeps the product of the sizes in range. */
int64_t moon_world_size(const struct moon_layout_model *model);
struct moon_rank moon_rank_at(const struct moon_layout_model *model, int64_t rank);

/* Place of a rank in a TP-sharded store. Only for a sharded selection. */
struct moon_shards moon_rank_shards(const struct moon_layout_model *model, const struct moon_store_selection *selection,
                                    int64_t tp_rank);

/* Store shards of a rank: first .. first + count - 1 (LAYOUT-009). A rank-local layout has the one shard 0. */
struct moon_shard_range {
    int64_t first, count;
};
struct moon_shard_range moon_local_shards(const struct moon_layout_model *model,
                                          const struct moon_store_selection *selection, int64_t tp_rank);

/* Identity of a rank's objects in a group. `shard` is read by TP-sharded layouts only. Borrows from model and
 * selection. */
struct moon_pool_key moon_rank_key(const struct moon_profile *profile, const struct moon_layout_model *model,
                                   const struct moon_store_selection *selection, const struct moon_rank *rank,
                                   size_t group, int64_t shard);

/* Remainder of chunk numbers that a rank puts: k % factor == phase (LAYOUT-013). Up to 0.24 the remainder of positions
 * in the list of all groups' chunks (LAYOUT-014). */
int64_t moon_put_phase(const struct moon_profile *profile, int64_t factor, int64_t tp_rank, size_t group);

#ifdef __cplusplus
}
#endif
#endif
