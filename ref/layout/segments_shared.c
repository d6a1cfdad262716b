/* SPDX-License-Identifier: Apache-2.0 */
/* TP-sharded store objects: heads of a shard, the ranges that hold them, and the cell behind every byte. */
#include "ref/layout/segments_shared.h"

#include <assert.h>
#include <inttypes.h>

/* A head's tokens lie together, else a token's heads. */
static bool head_outside(const struct moon_shards *shards) {
    return shards->format == MOON_STORE_SHARDED_LBHNC;
}

const char *moon_shards_format_name(const struct moon_shards *shards) {
    return head_outside(shards) ? "tp_shared_lbhnc" : "tp_shared_lbnhc";
}

int moon_shards_check(const struct moon_shards *shards, struct moon_error *error) {
    if (shards->format != MOON_STORE_SHARDED_LBHNC && shards->format != MOON_STORE_SHARDED_LBNHC)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "store format %d is not sharded", (int)shards->format);
    const uint64_t numbers[] = {shards->total_heads, shards->store_tp, shards->local_tp, shards->block_size_tokens};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i] < 1 || numbers[i] > MOON_TENSOR_NUMBER_MAX)
            return moon_fail(error, MOON_ERR_RANGE, NULL,
                             "heads, store TP, local TP and block size are 1 to 2^53, one is %" PRIu64, numbers[i]);
    if (shards->tp_rank >= shards->local_tp)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "rank %" PRIu64 " does not exist at local TP %" PRIu64,
                         shards->tp_rank, shards->local_tp);
    if (shards->store_tp % shards->local_tp != 0)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "store TP %" PRIu64 " is no multiple of local TP %" PRIu64,
                         shards->store_tp, shards->local_tp);
    if (shards->total_heads % shards->store_tp != 0)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "%" PRIu64 " heads cannot be split over store TP %" PRIu64,
                         shards->total_heads, shards->store_tp);
    return MOON_OK;
}

uint64_t moon_shards_per_rank(const struct moon_shards *shards) {
    return shards->store_tp / shards->local_tp;
}

uint64_t moon_shards_first(const struct moon_shards *shards) {
    return shards->tp_rank * moon_shards_per_rank(shards);
}

uint64_t moon_shards_heads(const struct moon_shards *shards) {
    return shards->total_heads / shards->store_tp;
}

static uint64_t local_heads(const struct moon_shards *shards) {
    return shards->total_heads / shards->local_tp;
}

/* The strides of the format. The inner stride is compared first: when it is right, size - 1 steps of it lie inside the
 * storage, so the product for the outer one fits. */
static bool packed(const struct moon_shards *shards, const struct moon_tensor *cache) {
    uint64_t content_bytes = cache->shape[3] * cache->item_bytes;
    uint64_t head_bytes = moon_tensor_stride_bytes(cache, 1), token_bytes = moon_tensor_stride_bytes(cache, 2);
    if (head_outside(shards))
        return token_bytes == content_bytes && head_bytes == shards->block_size_tokens * content_bytes;
    return head_bytes == content_bytes && token_bytes == local_heads(shards) * content_bytes;
}

int moon_shards_accept(const struct moon_shards *shards, const struct moon_tensor *cache, uint64_t num_blocks,
                       struct moon_error *error) {
    if (cache->dimensions != 4 || cache->shape[0] != num_blocks || cache->shape[1] != local_heads(shards) ||
        cache->shape[2] != shards->block_size_tokens)
        return moon_refuse(error, "ValueError",
                           "TP-shared Mooncake store requires packed KV caches with logical shape (num_blocks, "
                           "local_kv_heads, block_size, content)");
    if (moon_tensor_stride_bytes(cache, 3) != cache->item_bytes || !packed(shards, cache))
        return moon_refuse(error, "ValueError", "TP-shared Mooncake store requires packed %s KV layout",
                           moon_shards_format_name(shards));
    return MOON_OK;
}

uint64_t moon_shards_segments_per_cache(const struct moon_shards *shards) {
    return head_outside(shards) ? 1 : shards->block_size_tokens;
}

struct moon_segment moon_shards_segment(const struct moon_shards *shards, const struct moon_tensor *cache,
                                        uint64_t local_shard, uint64_t index) {
    assert(local_shard < moon_shards_per_rank(shards) && index < moon_shards_segments_per_cache(shards));
    uint64_t head_bytes = moon_tensor_stride_bytes(cache, 1), token_bytes = moon_tensor_stride_bytes(cache, 2);
    uint64_t first_head_bytes = local_shard * moon_shards_heads(shards) * head_bytes;
    /* The heads of a shard lie side by side: each of them whole (all tokens), or each one token long. */
    return (struct moon_segment){
        .storage = cache->storage,
        .offset_bytes = cache->offset_bytes + first_head_bytes + index * token_bytes,
        .block_stride_bytes = moon_tensor_stride_bytes(cache, 0),
        .size_bytes = moon_shards_heads(shards) * head_bytes,
    };
}

int moon_shards_object_bytes(const struct moon_shards *shards, uint64_t layers, uint64_t content_bytes, uint64_t *bytes,
                             struct moon_error *error) {
    uint64_t product;
    if (__builtin_mul_overflow(layers, content_bytes, &product) ||
        __builtin_mul_overflow(product, moon_shards_heads(shards), &product) ||
        __builtin_mul_overflow(product, shards->block_size_tokens, &product))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "an object of %" PRIu64 " layers does not fit 64 bits", layers);
    *bytes = product;
    return MOON_OK;
}

struct moon_cell moon_shards_cell(const struct moon_shards *shards, uint64_t content_bytes, uint64_t shard,
                                  uint64_t offset_bytes) {
    assert(shard < shards->store_tp && content_bytes >= 1);
    uint64_t heads = moon_shards_heads(shards), tokens = shards->block_size_tokens;
    uint64_t cell = offset_bytes / content_bytes, in_layer = cell % (heads * tokens), head, token;
    if (head_outside(shards)) {
        head = in_layer / tokens;
        token = in_layer % tokens;
    } else {
        token = in_layer / heads;
        head = in_layer % heads;
    }
    return (struct moon_cell){
        .layer = cell / (heads * tokens),
        .head = shard * heads + head,
        .token = token,
        .content_byte = offset_bytes % content_bytes,
    };
}
