/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of an engine's KV cache: who holds which, which one is reused next, and which content is still there. */
#ifndef MOON_ENGINE_BLOCK_POOL_H
#define MOON_ENGINE_BLOCK_POOL_H

#include "ref/base/error.h"
#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_POOL_BLOCKS_MAX = 1 << 24,
    MOON_POOL_HASH_BYTES_MAX = 32,
};

struct moon_pool_block;

/* One pool for all KV cache groups (ENGINE-001, ENGINE-002). Block 0 is the null block. Owns its memory; everything is
 * allocated at open. Thread rule: one thread at a time.
 *   free_count  blocks that nobody holds, cached ones included */
struct moon_block_pool {
    struct moon_memory *memory;
    struct moon_pool_block *blocks;
    uint32_t *buckets; /* of the hash index: first block, 0 for none */
    size_t block_count, bucket_count;
    size_t free_count;
};

/* block_count: 1 to MOON_POOL_BLOCKS_MAX, the null block included. Returns 0, or MOON_ERR_MEMORY; close it in any case.
 */
int moon_block_pool_open(struct moon_block_pool *pool, size_t block_count, struct moon_memory *memory);
void moon_block_pool_close(struct moon_block_pool *pool); /* idempotent */

/* Takes the next block to be reused, with one reference; it loses its hash. 0 when none is free. */
int64_t moon_block_pool_take(struct moon_block_pool *pool);
/* Adds a reference to each block, also to blocks that were free; the null block is left alone. */
void moon_block_pool_hold(struct moon_block_pool *pool, const int64_t *blocks, size_t count);
/* Gives one reference of each block back, in this order; the null block is left alone. */
void moon_block_pool_release(struct moon_block_pool *pool, const int64_t *blocks, size_t count);

/* Names the content of a held block that has no name yet; the null block is left alone. `hash` is copied. */
void moon_block_pool_cache(struct moon_block_pool *pool, int64_t block, size_t group, const uint8_t *hash,
                           size_t hash_bytes);
/* The block that has had this content for the longest time, or 0. */
int64_t moon_block_pool_find(const struct moon_block_pool *pool, size_t group, const uint8_t *hash, size_t hash_bytes);
/* True if nobody holds the block. */
bool moon_block_pool_is_free(const struct moon_block_pool *pool, int64_t block);
/* Forgets all content. False, and nothing is done, while a block is held. */
bool moon_block_pool_reset(struct moon_block_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
