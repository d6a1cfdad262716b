/* SPDX-License-Identifier: Apache-2.0 */
/* TP-sharded store objects: which heads, tokens and bytes a shard is, and which ranges of a rank's caches hold them. */
#ifndef MOON_LAYOUT_SEGMENTS_SHARED_H
#define MOON_LAYOUT_SEGMENTS_SHARED_H

#include "ref/key/namespace.h"
#include "ref/layout/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Place of one rank in a sharded store. Checked by moon_shards_check; the other functions want one that passed.
 *   format             MOON_STORE_SHARDED_LBHNC: a head's tokens together; _LBNHC: a token's heads together
 *   total_heads        KV heads of the whole model, a multiple of store_tp
 *   store_tp           shards a block has, a multiple of local_tp
 *   local_tp, tp_rank  of the engine, tp_rank below local_tp
 *   block_size_tokens  1 or more */
struct moon_shards {
    enum moon_store_format format;
    uint64_t total_heads, store_tp;
    uint64_t local_tp, tp_rank;
    uint64_t block_size_tokens;
};

/* "tp_shared_lbhnc" or "tp_shared_lbnhc": the format as error texts name it. */
const char *moon_shards_format_name(const struct moon_shards *shards);

/* Returns 0, or MOON_ERR_RANGE naming the rule that is broken. All numbers are at most MOON_TENSOR_NUMBER_MAX. */
int moon_shards_check(const struct moon_shards *shards, struct moon_error *error);

/* Shards first .. first + per_rank - 1 belong to the rank; each is heads_per_shard heads. (SEG-023) */
uint64_t moon_shards_first(const struct moon_shards *shards);
uint64_t moon_shards_per_rank(const struct moon_shards *shards);
uint64_t moon_shards_heads(const struct moon_shards *shards);

/* Judges one cache, already regrouped to num_blocks (moon_tensor_regroup).
 * Returns 0, or MOON_ERR_REFUSED with the release's ValueError: first the shape (SEG-021), then the strides (SEG-022).
 */
int moon_shards_accept(const struct moon_shards *shards, const struct moon_tensor *cache, uint64_t num_blocks,
                       struct moon_error *error);

/* Ranges that one accepted cache adds to each shard: 1, or one a token. (SEG-023) */
uint64_t moon_shards_segments_per_cache(const struct moon_shards *shards);
/* Range `index` of local shard `local_shard` (0 is the rank's first) in an accepted cache. */
struct moon_segment moon_shards_segment(const struct moon_shards *shards, const struct moon_tensor *cache,
                                        uint64_t local_shard, uint64_t index);

/* What one byte of an object is: layer (of this pipeline stage, from 0), head of the whole model, token of the block,
 * and byte of the content (K then V) of that head and token. */
struct moon_cell {
    uint64_t layer, head, token, content_byte;
};
/* Length of every shard's object. `content_bytes` is K and V of one head and token. Returns 0, or MOON_ERR_RANGE when
 * it does not fit 64 bits. */
int moon_shards_object_bytes(const struct moon_shards *shards, uint64_t layers, uint64_t content_bytes, uint64_t *bytes,
                             struct moon_error *error);
/* The cell of byte `offset_bytes` of shard `shard` (0 .. store_tp - 1). A property of the object alone: local_tp and
 * tp_rank are not read (SEG-025). offset_bytes is below moon_shards_object_bytes, content_bytes 1 or more. */
struct moon_cell moon_shards_cell(const struct moon_shards *shards, uint64_t content_bytes, uint64_t shard,
                                  uint64_t offset_bytes);

#ifdef __cplusplus
}
#endif
#endif
