/* SPDX-License-Identifier: Apache-2.0 */
/* Listing chunks as each release does, without allocating anything. */
#include "ref/key/chunks.h"

#include "ref/base/number.h"

#include <assert.h>
#include <inttypes.h>

int64_t moon_ceil_divide(int64_t value, int64_t divisor) {
    assert(value >= 0 && divisor >= 1);
    return value / divisor + (value % divisor != 0);
}

/* One past the last chunk, before any mask (KEY-018, KEY-019). */
static int find_end(struct moon_chunk_walk *walk, struct moon_error *error) {
    const struct moon_chunk_query *query = &walk->query;
    walk->end = moon_ceil_divide(query->token_len, query->block_size);
    if (!walk->profile->chunk_end_hash) {
        walk->end = moon_smaller(walk->end, query->hash_count / walk->hashes_per_block);
        return 0;
    }
    if (query->token_len % query->hash_block_size != 0 || query->token_len / query->hash_block_size > query->hash_count)
        return moon_refuse(error, "AssertionError", "%s", "");
    return 0;
}

int moon_chunk_walk_open(struct moon_chunk_walk *walk, const struct moon_profile *profile,
                         const struct moon_chunk_query *query, struct moon_error *error) {
    assert(query->block_size >= 1 && query->hash_block_size >= 1 && query->token_len >= 0);
    assert(query->hash_count >= 0 && query->mask_num >= 0 && query->put_step >= 1);
    *walk = (struct moon_chunk_walk){.profile = profile, .query = *query};
    if (profile->chunk_hash == MOON_CHUNK_HASH_ONLY)
        walk->query.hash_block_size = query->block_size;
    int64_t block_size = walk->query.block_size, hash_block_size = walk->query.hash_block_size;
    if (block_size % hash_block_size != 0)
        return moon_refuse(error, "ValueError",
                           "block_size (%" PRId64 ") must be a multiple of hash_block_size (%" PRId64 ")", block_size,
                           hash_block_size);
    walk->hashes_per_block = block_size / hash_block_size;
    walk->first = walk->next = moon_ceil_divide(query->mask_num, block_size);
    if (query->hash_count == 0)
        return 0;
    int status = find_end(walk, error);
    if (status == 0 && query->mask && walk->end - walk->first > query->mask_count)
        walk->end = walk->first + query->mask_count;
    return status;
}

bool moon_chunk_walk_next(struct moon_chunk_walk *walk, struct moon_chunk *chunk) {
    const struct moon_chunk_query *query = &walk->query;
    while (walk->next < walk->end) {
        int64_t id = walk->next++;
        if (query->mask && !query->mask[id - walk->first])
            continue;
        if (id % query->put_step != query->put_step_rank)
            continue;
        int64_t start = id * query->block_size;
        /* The last chunk may be cut; comparing lengths cannot overflow where start + block_size could. */
        int64_t length = moon_smaller(query->token_len - start, query->block_size);
        int64_t first_hash = id * walk->hashes_per_block, count = walk->hashes_per_block;
        if (walk->profile->chunk_end_hash)
            count = length / query->hash_block_size;
        *chunk = (struct moon_chunk){id, start, start + length, first_hash, count};
        if (walk->profile->chunk_hash == MOON_CHUNK_HASH_LAST) {
            chunk->first_hash += count - 1;
            chunk->hash_count = 1;
        }
        return true;
    }
    return false;
}

void moon_chunk_key(const struct moon_profile *profile, const struct moon_pool_key *key,
                    const struct moon_hashes *hashes, const struct moon_chunk *chunk, struct moon_text *out) {
    assert(chunk->first_hash >= 0 && chunk->hash_count >= 1);
    assert((size_t)(chunk->first_hash + chunk->hash_count) <= hashes->count);
    moon_key_prefix(profile, key, out);
    moon_text_char(out, '@');
    moon_text_hex(out, hashes->bytes + (size_t)chunk->first_hash * hashes->hash_bytes,
                  (size_t)chunk->hash_count * hashes->hash_bytes);
}
