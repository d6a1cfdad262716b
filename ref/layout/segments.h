/* SPDX-License-Identifier: Apache-2.0 */
/* From a rank's registered caches to the memory ranges of each store object: built once, listed per request. */
#ifndef MOON_LAYOUT_SEGMENTS_H
#define MOON_LAYOUT_SEGMENTS_H

#include "ref/base/memory.h"
#include "ref/key/profile.h"
#include "ref/layout/segments_shared.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_SEGMENTS_MAX = 1 << 20 }; /* segments of a rank, over all its shards */

/* What one rank registers. Borrowed.
 *   storage_bytes      length of each storage, 1 or more
 *   caches             in registration order; from 0.30 on only those of layers in store groups (SEG-011)
 *   num_blocks         blocks of the KV cache, 1 or more
 *   block_size_tokens  of the group, context parallelism multiplied in; read by the rule of 0.21 alone (SEG-004) */
struct moon_rank_caches {
    const struct moon_profile *profile;
    const uint64_t *storage_bytes;
    size_t storage_count;
    const struct moon_tensor *caches;
    size_t cache_count;
    uint64_t num_blocks;
    uint64_t block_size_tokens;
};

/* A rank after registration. Lives in the arena it was built in; read-only after that, so any thread may list from it.
 *   registered     storages in the order of their register_buffer calls, each in full; valid also after a failed build
 *   sharded        TP-sharded layout (then `shards` says which) or rank-local
 *   shard_count    1 for rank-local
 *   per_chunk      segments, and so buffers, of each chunk
 *   segments       shard_count rows of per_chunk; of a rank-local one size_bytes is the block length */
struct moon_segments {
    const struct moon_profile *profile;
    size_t *registered;
    size_t registered_count;
    bool sharded;
    struct moon_shards shards;
    size_t shard_count;
    size_t per_chunk;
    struct moon_segment *segments;
    uint64_t *storage_bytes;
};

/* Registers the caches and builds the segments, as the release does (SEG-001 to SEG-010, SEG-021 to SEG-023).
 *   shards  NULL for a rank-local layout
 * Returns 0; MOON_ERR_REFUSED with what the release raises (AssertionError, ValueError, for 0.21 also IndexError),
 * `out` then tells what was registered before; MOON_ERR_RANGE for numbers that make no sense (moon_tensor_check,
 * moon_shards_check, an unknown storage); MOON_ERR_LIMIT beyond MOON_SEGMENTS_MAX; MOON_ERR_MEMORY. */
int moon_segments_build(struct moon_arena *arena, const struct moon_rank_caches *rank, const struct moon_shards *shards,
                        struct moon_segments *out, struct moon_error *error);

/* Tokens start .. end - 1 of a prompt. */
struct moon_token_range {
    uint64_t start_tokens, end_tokens;
};

/* Which bytes are asked for. Borrowed.
 *   block_size_tokens, hash_block_size_tokens  of the group; the second is read from 0.27 on
 *   block_ids   the request's block table in this group
 *   shard_ids   store shard of each chunk; read from 0.30 on, where a rank-local layout wants zeros */
struct moon_segment_request {
    uint64_t block_size_tokens, hash_block_size_tokens;
    const struct moon_token_range *chunks;
    size_t chunk_count;
    const uint64_t *block_ids;
    size_t block_count;
    const int64_t *shard_ids;
    size_t shard_count;
};

/* A range of memory to put or to get: offset_bytes from the start of the storage. */
struct moon_buffer {
    size_t storage;
    uint64_t offset_bytes, size_bytes;
};

/* Lists the buffers of each chunk in order (SEG-013 to SEG-018, SEG-024). Allocates nothing.
 *   buffers    room for chunk_count * per_chunk; chunk i begins at i * per_chunk
 *   block_ids  room for chunk_count: block that each chunk is read from or written to
 * Ranges may lie outside their storage where the release's do: see moon_buffer_overrun_bytes.
 * Returns 0; MOON_ERR_REFUSED with the release's ValueError, AssertionError or IndexError; MOON_ERR_RANGE for a chunk
 * that ends before it starts, a size of 0 or an address beyond 64 bits. On failure the arrays hold nothing of use. */
int moon_segments_list(const struct moon_segments *segments, const struct moon_segment_request *request,
                       struct moon_buffer *buffers, uint64_t *block_ids, struct moon_error *error);

/* The buffers (per_chunk) of one whole block, as 0.27 and later put states at a boundary (SEG-020).
 * Returns 0; MOON_ERR_REFUSED (RuntimeError) for a TP-sharded layout; MOON_ERR_UNSUPPORTED before 0.27; MOON_ERR_RANGE.
 */
int moon_segments_whole_block(const struct moon_segments *segments, uint64_t block_id, struct moon_buffer *buffers,
                              struct moon_error *error);

/* Bytes of a listed buffer that lie behind the end of its storage: 0 for one that is sound (SEG-018, SEG-019). */
uint64_t moon_buffer_overrun_bytes(const struct moon_segments *segments, const struct moon_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
