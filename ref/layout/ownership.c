/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks, their shards, keys and share of the puts. */
#include "ref/layout/ownership.h"

#include "ref/layout/replication.h"

#include <assert.h>

int64_t moon_world_size(const struct moon_layout_model *model) {
    return model->tp * model->pp * model->pcp;
}

struct moon_rank moon_rank_at(const struct moon_layout_model *model, int64_t rank) {
    assert(rank >= 0 && rank < moon_world_size(model));
    int64_t tp = rank % model->tp, stage = rank / model->tp;
    return (struct moon_rank){rank, tp, stage % model->pcp, tp % model->dcp, stage / model->pcp, stage % model->pp};
}

struct moon_shards moon_rank_shards(const struct moon_layout_model *model, const struct moon_store_selection *selection,
                                    int64_t tp_rank) {
    assert(moon_store_sharded(selection));
    return (struct moon_shards){
        .format = selection->space.format,
        .total_heads = (uint64_t)model->total_kv_heads,
        .store_tp = (uint64_t)selection->space.store_tp,
        .local_tp = (uint64_t)model->tp,
        .tp_rank = (uint64_t)tp_rank,
        .block_size_tokens = (uint64_t)model->groups[0].block_tokens,
    };
}

struct moon_shard_range moon_local_shards(const struct moon_layout_model *model,
                                          const struct moon_store_selection *selection, int64_t tp_rank) {
    if (!moon_store_sharded(selection))
        return (struct moon_shard_range){0, 1};
    const struct moon_shards shards = moon_rank_shards(model, selection, tp_rank);
    return (struct moon_shard_range){(int64_t)moon_shards_first(&shards), (int64_t)moon_shards_per_rank(&shards)};
}

struct moon_pool_key moon_rank_key(const struct moon_profile *profile, const struct moon_layout_model *model,
                                   const struct moon_store_selection *selection, const struct moon_rank *rank,
                                   size_t group, int64_t shard) {
    int64_t tp = moon_store_sharded(selection) ? shard : rank->tp / moon_replication_factor(profile, model, group);
    return (struct moon_pool_key){
        .cache_prefix = model->cache_prefix,
        .model_name = model->model_name,
        .store_namespace = {selection->text, selection->text_length},
        .tp_rank = tp,
        .pcp_rank = rank->pcp,
        .dcp_rank = rank->dcp,
        .pp_rank = profile->pp_rank_without_pcp ? rank->key_pp : rank->pp,
        .group_id = (int64_t)group,
    };
}

int64_t moon_put_phase(const struct moon_profile *profile, int64_t factor, int64_t tp_rank, size_t group) {
    int64_t offset = profile->stripe_absolute ? (int64_t)group % factor : 0;
    return (tp_rank % factor + offset) % factor;
}
