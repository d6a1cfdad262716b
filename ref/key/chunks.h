/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of a prompt in one KV cache group: which there are, their tokens, and which block hashes key them. */
#ifndef MOON_KEY_CHUNKS_H
#define MOON_KEY_CHUNKS_H

#include "ref/key/pool_key.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Block hashes of a prompt: hash i covers the tokens up to (i + 1) * hash_block_size. Borrowed; hash_bytes is 16 or 32.
 */
struct moon_hashes {
    const uint8_t *bytes;
    size_t hash_bytes;
    size_t count;
};

/* What is listed. Sizes and positions are tokens.
 *   block_size       of the group, 1 or more
 *   hash_block_size  1 or more; not read by 0.21
 *   token_len        where the list ends, 0 or more
 *   mask_num         tokens to skip, 0 or more: the chunk that it cuts is left out too
 *   mask, mask_count from 0.25: entry 0 is the first chunk not skipped; NULL lists all
 *   put_step, put_step_rank  from 0.25: only chunks k with k % put_step == put_step_rank; put_step 1 or more */
struct moon_chunk_query {
    int64_t block_size, hash_block_size, token_len;
    int64_t hash_count;
    int64_t mask_num;
    const bool *mask;
    int64_t mask_count;
    int64_t put_step, put_step_rank;
};

/* One chunk: number from token 0, tokens start..end-1, and hashes first_hash .. first_hash + hash_count - 1, which
 * joined are the hash text of its key. */
struct moon_chunk {
    int64_t id;
    int64_t start_tokens, end_tokens;
    int64_t first_hash, hash_count;
};

/* A walk through the chunks; plain data, borrows the query's mask. */
struct moon_chunk_walk {
    const struct moon_profile *profile;
    struct moon_chunk_query query;
    int64_t hashes_per_block;
    int64_t first, next, end;
};

/* Begins a walk. Returns 0, or MOON_ERR_REFUSED as the release raises: ValueError for a block size that is no multiple
 * of the hash block (KEY-020), AssertionError with an empty message when tokens and hashes do not fit (KEY-019). */
int moon_chunk_walk_open(struct moon_chunk_walk *walk, const struct moon_profile *profile,
                         const struct moon_chunk_query *query, struct moon_error *error);
/* The next chunk, or false at the end. At most hash_count steps in all. */
bool moon_chunk_walk_next(struct moon_chunk_walk *walk, struct moon_chunk *chunk);

/* Appends the key of a chunk, whose hashes are some of `hashes` (KEY-001, KEY-015 to KEY-018). Fails only through
 * out->failed. */
void moon_chunk_key(const struct moon_profile *profile, const struct moon_pool_key *key,
                    const struct moon_hashes *hashes, const struct moon_chunk *chunk, struct moon_text *out);

/* Smallest number of `divisor`s that cover `value`; value 0 or more, divisor 1 or more. */
int64_t moon_ceil_divide(int64_t value, int64_t divisor);

#ifdef __cplusplus
}
#endif
#endif
