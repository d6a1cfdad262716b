/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: a group and a model as most tests want them. */
#ifndef MOON_LAYOUT_MODEL_CHECK_INTERNAL_H
#define MOON_LAYOUT_MODEL_CHECK_INTERNAL_H

#include "ref/layout/model.h"

/* A stored group of one KV head; window_tokens is 0 where the kind has no window. */
static inline struct moon_layout_group group_of(enum moon_spec_kind kind, int64_t block_tokens, int64_t window_tokens) {
    return (struct moon_layout_group){
        .spec = {.kind = kind, .num_kv_heads = 1, .head_size = 8, .window_tokens = window_tokens},
        .block_tokens = block_tokens,
        .transferable = true,
        .prefix_cacheable = true};
}

/* An engine of `tp` ranks, with blocks of 16 tokens for scheduler and hashes. Borrows `groups`. */
static inline struct moon_layout_model model_of(const struct moon_layout_group *groups, size_t count, int64_t tp,
                                                int64_t heads) {
    return (struct moon_layout_model){.tp = tp,
                                      .pp = 1,
                                      .pcp = 1,
                                      .dcp = 1,
                                      .total_kv_heads = heads,
                                      .groups = groups,
                                      .group_count = count,
                                      .scheduler_block_tokens = 16,
                                      .hash_block_tokens = 16,
                                      .model_name = moon_key_text("m")};
}

#endif
