/* SPDX-License-Identifier: Apache-2.0 */
/* For tests and fuzzing only: one rank of a small engine, with caches and load jobs made by hand. */
#ifndef MOON_CONNECTOR_LOAD_RIG_INTERNAL_H
#define MOON_CONNECTOR_LOAD_RIG_INTERNAL_H

#include "ref/connector/receiver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { RIG_GROUPS_MAX = 3, RIG_BLOCKS = 64, RIG_HASHES_MAX = 32, RIG_PAGE_BYTES = 1024 };

/* What an engine is made of; zero means one.
 *   layers  of each group; every layer's block has RIG_PAGE_BYTES bytes */
struct rig_plan {
    const struct moon_profile *profile;
    const char *release; /* if profile is NULL */
    int64_t tp, pp, heads, tp_rank, pp_rank;
    struct moon_layout_group groups[RIG_GROUPS_MAX];
    size_t group_count, layers;
    int64_t scheduler_block, hash_block; /* 0: 16 */
    const char *store_tp;                /* digits, or NULL */
};

struct rig {
    struct moon_layout_model model;
    struct moon_layout_group groups[RIG_GROUPS_MAX];
    struct moon_connector connector;
    struct moon_deviation_notes notes;
    struct moon_rank rank;
    struct moon_arena arena;
    struct moon_segments segments;
    uint8_t hash_bytes[RIG_HASHES_MAX][2];
    int64_t blocks[RIG_GROUPS_MAX][RIG_BLOCKS];
    struct moon_block_table tables[RIG_GROUPS_MAX];
};

static inline int64_t rig_or_one(int64_t value) {
    return value ? value : 1;
}

/* One cache a layer, in the dimensions that the layout wants. */
static inline void rig_register(struct rig *rig, size_t layers) {
    static uint64_t storage_bytes[RIG_GROUPS_MAX * 4];
    struct moon_tensor caches[RIG_GROUPS_MAX * 4];
    bool sharded = moon_store_sharded(&rig->connector.selection);
    uint64_t heads = (uint64_t)(rig->model.total_kv_heads / rig->model.tp);
    for (size_t i = 0; i < layers; i++) {
        storage_bytes[i] = RIG_BLOCKS * RIG_PAGE_BYTES;
        caches[i] = (struct moon_tensor){.storage = i,
                                         .dimensions = 2,
                                         .shape = {RIG_BLOCKS, RIG_PAGE_BYTES},
                                         .strides = {RIG_PAGE_BYTES, 1},
                                         .item_bytes = 1};
        if (sharded) {
            uint64_t content = RIG_PAGE_BYTES / heads / 16;
            caches[i] = (struct moon_tensor){.storage = i,
                                             .dimensions = 4,
                                             .shape = {RIG_BLOCKS, heads, 16, content},
                                             .strides = {RIG_PAGE_BYTES, 16 * content, content, 1},
                                             .item_bytes = 1};
        }
    }
    const struct moon_rank_caches registered = {.profile = rig->connector.profile,
                                                .storage_bytes = storage_bytes,
                                                .storage_count = layers,
                                                .caches = caches,
                                                .cache_count = layers,
                                                .num_blocks = RIG_BLOCKS,
                                                .block_size_tokens = 16};
    struct moon_shards shards;
    if (sharded)
        shards = moon_rank_shards(&rig->model, &rig->connector.selection, rig->rank.tp);
    int status = moon_segments_build(&rig->arena, &registered, sharded ? &shards : NULL, &rig->segments, NULL);
    assert(status == 0);
    (void)status;
}

static inline void rig_open(struct rig *rig, const struct rig_plan *plan) {
    *rig = (struct rig){0};
    memcpy(rig->groups, plan->groups, sizeof rig->groups);
    size_t group_count = plan->group_count ? plan->group_count : 1;
    for (size_t i = 0; i < group_count; i++) {
        rig->groups[i].block_tokens = rig->groups[i].block_tokens ? rig->groups[i].block_tokens : 16;
        rig->groups[i].spec.num_kv_heads = rig->groups[i].spec.head_size = 1;
        rig->groups[i].transferable = rig->groups[i].prefix_cacheable = true;
    }
    rig->model = (struct moon_layout_model){
        .tp = rig_or_one(plan->tp),
        .pp = rig_or_one(plan->pp),
        .pcp = 1,
        .dcp = 1,
        .total_kv_heads = plan->heads ? plan->heads : 8,
        .kv_layout = MOON_KV_LBHNC,
        .groups = rig->groups,
        .group_count = group_count,
        .scheduler_block_tokens = plan->scheduler_block ? plan->scheduler_block : 16,
        .hash_block_tokens = plan->hash_block ? plan->hash_block : 16,
        .model_name = moon_key_text("m"),
    };
    if (plan->store_tp)
        rig->model.store_tp_size =
            (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text(plan->store_tp)};
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true};
    const struct moon_profile *profile = plan->profile ? plan->profile : moon_profile_find(plan->release, NULL);
    int status = moon_connector_open(&rig->connector, profile, &rig->model, &options, NULL);
    assert(status == 0);
    (void)status;
    rig->connector.notes = &rig->notes;
    rig->rank = moon_rank_at(&rig->model, plan->pp_rank * rig->model.tp + plan->tp_rank);
    moon_arena_open(&rig->arena, moon_memory_heap());
    rig_register(rig, group_count * (plan->layers ? plan->layers : 1));
    for (size_t i = 0; i < RIG_HASHES_MAX; i++)
        rig->hash_bytes[i][0] = (uint8_t)(i + 1);
    for (size_t group = 0; group < group_count; group++) {
        for (int64_t i = 0; i < RIG_BLOCKS; i++) /* group 1 has its blocks the other way round */
            rig->blocks[group][i] = group == 1 ? RIG_BLOCKS - 1 - i : i + 1;
        rig->tables[group] = (struct moon_block_table){rig->blocks[group], RIG_BLOCKS - 1};
    }
}

static inline void rig_close(struct rig *rig) {
    moon_arena_close(&rig->arena);
}

/* A load of slot `slot` from `local` to `hit`, with one reference; NULL: memory refused. */
static inline struct moon_job *rig_job(const struct rig *rig, struct moon_memory *memory, uint32_t slot, int64_t local,
                                       int64_t hit) {
    struct moon_job *job = moon_job_create(memory, rig->model.group_count);
    if (!job)
        return NULL;
    job->slot = slot;
    job->hashes = (struct moon_hashes){rig->hash_bytes[0], 2, RIG_HASHES_MAX};
    job->load = true;
    job->load_local_tokens = local;
    job->load_hit_tokens = hit;
    if (moon_tables_create(memory, rig->tables, rig->model.group_count, &job->tables)) {
        moon_job_release(job);
        return NULL;
    }
    return job;
}

#endif
