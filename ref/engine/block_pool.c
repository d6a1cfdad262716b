/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of an engine's KV cache: who holds which, which one is reused next, and which content is still there. */
#include "ref/engine/block_pool.h"

#include <assert.h>
#include <string.h>

/* next, previous  in the free queue, whose two ends are block 0; free blocks only
 * later           the next block in its bucket of the index, in the order in which they were cached; 0 ends */
struct moon_pool_block {
    uint32_t references;
    uint32_t next, previous;
    uint32_t later;
    uint32_t group;
    uint8_t hash_bytes; /* 0: no content is known */
    uint8_t hash[MOON_POOL_HASH_BYTES_MAX];
};

/* ---- free queue ---- */

static void link_between(struct moon_block_pool *pool, uint32_t block, uint32_t before, uint32_t after) {
    pool->blocks[block].previous = before;
    pool->blocks[block].next = after;
    pool->blocks[before].next = block;
    pool->blocks[after].previous = block;
    pool->free_count++;
}

static void unlink_free(struct moon_block_pool *pool, uint32_t block) {
    const struct moon_pool_block *one = &pool->blocks[block];
    pool->blocks[one->previous].next = one->next;
    pool->blocks[one->next].previous = one->previous;
    assert(pool->free_count > 0);
    pool->free_count--;
}

/* ---- index of contents ---- */

static size_t bucket_of(const struct moon_block_pool *pool, size_t group, const uint8_t *hash, size_t hash_bytes) {
    uint64_t number = group + 1;
    for (size_t i = 0; i < hash_bytes; i++)
        number = (number ^ hash[i]) * UINT64_C(0x100000001b3);
    return (size_t)(number ^ number >> 32) & (pool->bucket_count - 1);
}

static void forget(struct moon_block_pool *pool, uint32_t block) {
    struct moon_pool_block *one = &pool->blocks[block];
    if (one->hash_bytes == 0)
        return;
    uint32_t *link = &pool->buckets[bucket_of(pool, one->group, one->hash, one->hash_bytes)];
    while (*link != block) {
        assert(*link != 0);
        link = &pool->blocks[*link].later;
    }
    *link = one->later;
    one->later = 0;
    one->hash_bytes = 0;
}

void moon_block_pool_cache(struct moon_block_pool *pool, int64_t block, size_t group, const uint8_t *hash,
                           size_t hash_bytes) {
    if (block == 0)
        return;
    struct moon_pool_block *one = &pool->blocks[block];
    assert(one->references > 0 && one->hash_bytes == 0);
    assert(hash_bytes > 0 && hash_bytes <= MOON_POOL_HASH_BYTES_MAX);
    uint32_t *link = &pool->buckets[bucket_of(pool, group, hash, hash_bytes)];
    while (*link != 0)
        link = &pool->blocks[*link].later;
    *link = (uint32_t)block;
    one->group = (uint32_t)group;
    one->hash_bytes = (uint8_t)hash_bytes;
    memcpy(one->hash, hash, hash_bytes);
}

int64_t moon_block_pool_find(const struct moon_block_pool *pool, size_t group, const uint8_t *hash, size_t hash_bytes) {
    uint32_t block = pool->buckets[bucket_of(pool, group, hash, hash_bytes)];
    for (; block != 0; block = pool->blocks[block].later) {
        const struct moon_pool_block *one = &pool->blocks[block];
        if (one->group == group && one->hash_bytes == hash_bytes && memcmp(one->hash, hash, hash_bytes) == 0)
            break;
    }
    return block;
}

/* ---- references ---- */

int64_t moon_block_pool_take(struct moon_block_pool *pool) {
    uint32_t block = pool->blocks[0].next;
    if (block == 0)
        return 0;
    unlink_free(pool, block);
    forget(pool, block);
    pool->blocks[block].references = 1;
    return block;
}

void moon_block_pool_hold(struct moon_block_pool *pool, const int64_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (blocks[i] == 0)
            continue;
        assert(blocks[i] > 0 && (uint64_t)blocks[i] < pool->block_count);
        if (pool->blocks[blocks[i]].references++ == 0)
            unlink_free(pool, (uint32_t)blocks[i]);
    }
}

void moon_block_pool_release(struct moon_block_pool *pool, const int64_t *blocks, size_t count) {
    uint32_t front = 0; /* last of those that were put at the head in this call */
    for (size_t i = 0; i < count; i++) {
        uint32_t block = (uint32_t)blocks[i];
        if (block == 0)
            continue;
        struct moon_pool_block *one = &pool->blocks[block];
        assert(one->references > 0);
        if (--one->references > 0)
            continue;
        if (one->hash_bytes > 0) {
            link_between(pool, block, pool->blocks[0].previous, 0);
        } else {
            link_between(pool, block, front, pool->blocks[front].next);
            front = block;
        }
    }
}

bool moon_block_pool_is_free(const struct moon_block_pool *pool, int64_t block) {
    return block != 0 && pool->blocks[block].references == 0;
}

bool moon_block_pool_reset(struct moon_block_pool *pool) {
    if (pool->free_count + 1 != pool->block_count)
        return false;
    memset(pool->buckets, 0, pool->bucket_count * sizeof *pool->buckets);
    for (size_t i = 0; i < pool->block_count; i++) {
        pool->blocks[i].later = 0;
        pool->blocks[i].hash_bytes = 0;
    }
    return true;
}

/* ---- life ---- */

int moon_block_pool_open(struct moon_block_pool *pool, size_t block_count, struct moon_memory *memory) {
    assert(block_count >= 1 && block_count <= MOON_POOL_BLOCKS_MAX);
    *pool = (struct moon_block_pool){.memory = memory, .block_count = block_count, .bucket_count = 16};
    while (pool->bucket_count < block_count)
        pool->bucket_count *= 2;
    pool->blocks = memory->resize(memory, NULL, 0, block_count * sizeof *pool->blocks);
    if (pool->blocks)
        pool->buckets = memory->resize(memory, NULL, 0, pool->bucket_count * sizeof *pool->buckets);
    if (!pool->blocks || !pool->buckets)
        return MOON_ERR_MEMORY;
    memset(pool->blocks, 0, block_count * sizeof *pool->blocks);
    memset(pool->buckets, 0, pool->bucket_count * sizeof *pool->buckets);
    for (uint32_t block = 1; block < block_count; block++)
        link_between(pool, block, pool->blocks[0].previous, 0);
    return 0;
}

void moon_block_pool_close(struct moon_block_pool *pool) {
    if (pool->blocks)
        pool->memory->resize(pool->memory, pool->blocks, pool->block_count * sizeof *pool->blocks, 0);
    if (pool->buckets)
        pool->memory->resize(pool->memory, pool->buckets, pool->bucket_count * sizeof *pool->buckets, 0);
    pool->blocks = NULL;
    pool->buckets = NULL;
}
