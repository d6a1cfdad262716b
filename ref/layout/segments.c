/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a rank: which storages are registered, how they are cut by each release, and the buffers of a request. */
#include "ref/layout/segments.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* A rank being registered. `caches` are copies, regrouped where the release does so. */
struct builder {
    struct moon_arena *arena;
    const struct moon_rank_caches *rank;
    struct moon_tensor *caches;
    bool *storage_seen;
    struct moon_segments *out;
    size_t count, capacity; /* segments so far, over all shards */
    /* 0.21: what the first cache decides for all */
    bool split;
    unsigned outer_dimension;
    uint64_t page_bytes;
};

/* ---- collecting segments ---- */

static int add_segment(struct builder *b, struct moon_segment segment, struct moon_error *error) {
    if (b->count == MOON_SEGMENTS_MAX)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "these caches make more than %d segments", MOON_SEGMENTS_MAX);
    if (b->count == b->capacity) {
        size_t capacity = b->capacity ? 2 * b->capacity : 64;
        struct moon_segment *grown = moon_arena_array(b->arena, capacity, sizeof *grown);
        if (!grown)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for %zu segments", capacity);
        if (b->count)
            memcpy(grown, b->out->segments, b->count * sizeof *grown);
        b->out->segments = grown;
        b->capacity = capacity;
    }
    b->out->segments[b->count++] = segment;
    return MOON_OK;
}

/* `pieces` segments, `step_bytes` apart, whose blocks follow one another. */
static int add_pieces(struct builder *b, size_t storage, uint64_t offset_bytes, uint64_t pieces, uint64_t step_bytes,
                      uint64_t block_bytes, struct moon_error *error) {
    for (uint64_t i = 0; i < pieces; i++) {
        struct moon_segment segment = {storage, offset_bytes + i * step_bytes, block_bytes, block_bytes};
        int status = add_segment(b, segment, error);
        if (status)
            return status;
    }
    return MOON_OK;
}

static void register_storage(struct builder *b, size_t storage) {
    if (b->storage_seen[storage])
        return;
    b->storage_seen[storage] = true;
    b->out->registered[b->out->registered_count++] = storage;
}

/* ---- 0.21: page and split of the first cache, applied to all ---- */

/* First dimension whose byte stride exceeds a page, or the number of dimensions. */
static unsigned outer_dimension(const struct moon_tensor *cache, uint64_t page_bytes) {
    unsigned d = 0;
    while (d < cache->dimensions && moon_tensor_stride_bytes(cache, d) <= page_bytes)
        d++;
    return d;
}

static int add_split(struct builder *b, const struct moon_tensor *cache, unsigned d, struct moon_error *error) {
    uint64_t step_bytes = moon_tensor_stride_bytes(cache, d);
    return add_pieces(b, cache->storage, 0, cache->shape[d], step_bytes, step_bytes / b->rank->num_blocks, error);
}

static int add_layer(struct builder *b, const struct moon_tensor *cache, struct moon_error *error) {
    register_storage(b, cache->storage);
    if (!b->split)
        return add_pieces(b, cache->storage, 0, 1, 0, b->page_bytes, error);
    if (b->outer_dimension >= cache->dimensions)
        return moon_refuse(error, "IndexError",
                           "Dimension out of range (expected to be in range of [-%u, %u], but got %u)",
                           cache->dimensions, cache->dimensions - 1, b->outer_dimension);
    return add_split(b, cache, b->outer_dimension, error);
}

static int build_per_layer(struct builder *b, struct moon_error *error) {
    const struct moon_rank_caches *rank = b->rank;
    if (rank->cache_count) {
        const struct moon_tensor *first = &b->caches[0];
        b->page_bytes = rank->storage_bytes[first->storage] / rank->num_blocks;
        b->outer_dimension = outer_dimension(first, b->page_bytes);
        b->split = b->outer_dimension < first->dimensions;
    }
    for (size_t i = 0; i < rank->cache_count; i++) {
        int status = add_layer(b, &b->caches[i], error);
        if (status)
            return status;
    }
    for (size_t i = 0; i < b->count; i++)
        if (b->out->segments[i].size_bytes % rank->block_size_tokens != 0)
            return moon_refuse(error, "ValueError", "block_len %" PRIu64 " %% %" PRIu64 " != 0",
                               b->out->segments[i].size_bytes, rank->block_size_tokens);
    return MOON_OK;
}

/* ---- 0.22 to 0.28: per storage ---- */

static int build_per_storage(struct builder *b, struct moon_error *error) {
    for (size_t i = 0; i < b->rank->cache_count; i++) {
        const struct moon_tensor *cache = &b->caches[i];
        if (b->storage_seen[cache->storage])
            continue;
        register_storage(b, cache->storage);
        uint64_t page_bytes = b->rank->storage_bytes[cache->storage] / b->rank->num_blocks;
        unsigned outer = outer_dimension(cache, page_bytes);
        int status = outer < cache->dimensions ? add_split(b, cache, outer, error)
                                               : add_pieces(b, cache->storage, 0, 1, 0, page_bytes, error);
        if (status)
            return status;
    }
    return MOON_OK;
}

/* ---- 0.29 on: regions ---- */

static int add_regions(struct builder *b, const struct moon_tensor *cache, struct moon_error *error) {
    uint64_t block_bytes = moon_tensor_stride_bytes(cache, 0), all_bytes;
    if (!moon_tensor_gapless(cache, 1)) {
        if (!moon_tensor_gapless(cache, 2))
            return moon_refuse(error, "AssertionError", "%s", "");
        return add_pieces(b, cache->storage, cache->offset_bytes, cache->shape[1], moon_tensor_stride_bytes(cache, 1),
                          block_bytes, error);
    }
    bool whole = !__builtin_mul_overflow(block_bytes, b->rank->num_blocks, &all_bytes) &&
                 all_bytes == b->rank->storage_bytes[cache->storage];
    return add_pieces(b, cache->storage, whole ? 0 : cache->offset_bytes, 1, 0, block_bytes, error);
}

/* Mixes a region's start into a slot number; the order of slots is never seen. */
static size_t region_slot(const struct moon_segment *segment, size_t mask) {
    uint64_t x = (segment->offset_bytes ^ ((uint64_t)segment->storage << 40)) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(x >> 32) & mask;
}

/* Leaves out each region that starts where an earlier one does (SEG-008). */
static int drop_repeated_regions(struct builder *b, struct moon_error *error) {
    size_t slots = 16;
    while (slots < 2 * b->count)
        slots *= 2;
    uint32_t *taken = moon_arena_array(b->arena, slots, sizeof *taken); /* 1 + index of a kept segment */
    if (!taken)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory to compare %zu regions", b->count);
    struct moon_segment *segments = b->out->segments;
    size_t kept = 0;
    for (size_t i = 0; i < b->count; i++) {
        size_t slot = region_slot(&segments[i], slots - 1);
        while (taken[slot] && (segments[taken[slot] - 1].storage != segments[i].storage ||
                               segments[taken[slot] - 1].offset_bytes != segments[i].offset_bytes))
            slot = (slot + 1) & (slots - 1);
        if (taken[slot])
            continue;
        segments[kept++] = segments[i];
        taken[slot] = (uint32_t)kept;
    }
    b->count = kept;
    return MOON_OK;
}

static int build_per_region(struct builder *b, struct moon_error *error) {
    for (size_t i = 0; i < b->rank->cache_count; i++) {
        /* nothing is left to do here from 0.30 on, see register_first */
        int status = moon_tensor_regroup(&b->caches[i], b->rank->num_blocks, error);
        if (status)
            return status;
        register_storage(b, b->caches[i].storage);
        status = add_regions(b, &b->caches[i], error);
        if (status)
            return status;
    }
    return drop_repeated_regions(b, error);
}

/* ---- 0.30 on: TP-sharded ---- */

static int build_sharded(struct builder *b, struct moon_error *error) {
    const struct moon_shards *shards = &b->out->shards;
    for (size_t i = 0; i < b->rank->cache_count; i++) {
        int status = moon_shards_accept(shards, &b->caches[i], b->rank->num_blocks, error);
        if (status)
            return status;
    }
    if (moon_shards_per_rank(shards) > MOON_SEGMENTS_MAX)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "a rank of more than %d shards", MOON_SEGMENTS_MAX);
    b->out->shard_count = (size_t)moon_shards_per_rank(shards);
    for (size_t shard = 0; shard < b->out->shard_count; shard++)
        for (size_t i = 0; i < b->rank->cache_count; i++)
            for (uint64_t k = 0; k < moon_shards_segments_per_cache(shards); k++) {
                int status = add_segment(b, moon_shards_segment(shards, &b->caches[i], shard, k), error);
                if (status)
                    return status;
            }
    return MOON_OK;
}

/* ---- registration ---- */

static int check_rank(const struct moon_rank_caches *rank, struct moon_error *error) {
    if (rank->num_blocks < 1 || rank->num_blocks > MOON_TENSOR_NUMBER_MAX || rank->block_size_tokens < 1)
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "number of blocks %" PRIu64 " is not 1 to 2^53, or block size %" PRIu64 " not positive",
                         rank->num_blocks, rank->block_size_tokens);
    for (size_t i = 0; i < rank->cache_count; i++) {
        if (rank->caches[i].storage >= rank->storage_count)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "cache %zu names storage %zu of %zu", i,
                             rank->caches[i].storage, rank->storage_count);
        struct moon_error why;
        if (moon_tensor_check(&rank->caches[i], rank->storage_bytes[rank->caches[i].storage], &why))
            return moon_fail(error, MOON_ERR_RANGE, NULL, "cache %zu: %s", i, why.message);
    }
    return MOON_OK;
}

static int open_builder(struct builder *b, struct moon_error *error) {
    const struct moon_rank_caches *rank = b->rank;
    b->caches = moon_arena_array(b->arena, rank->cache_count, sizeof *b->caches);
    b->storage_seen = moon_arena_array(b->arena, rank->storage_count, sizeof *b->storage_seen);
    b->out->registered = moon_arena_array(b->arena, rank->storage_count, sizeof *b->out->registered);
    b->out->storage_bytes = moon_arena_array(b->arena, rank->storage_count, sizeof *b->out->storage_bytes);
    if (!b->caches || !b->storage_seen || !b->out->registered || !b->out->storage_bytes)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for %zu caches", rank->cache_count);
    if (rank->cache_count)
        memcpy(b->caches, rank->caches, rank->cache_count * sizeof *b->caches);
    if (rank->storage_count)
        memcpy(b->out->storage_bytes, rank->storage_bytes, rank->storage_count * sizeof *b->out->storage_bytes);
    return MOON_OK;
}

/* 0.30 on: regroups all caches, then registers all storages. */
static int register_first(struct builder *b, struct moon_error *error) {
    for (size_t i = 0; i < b->rank->cache_count; i++) {
        int status = moon_tensor_regroup(&b->caches[i], b->rank->num_blocks, error);
        if (status)
            return status;
    }
    for (size_t i = 0; i < b->rank->cache_count; i++)
        register_storage(b, b->caches[i].storage);
    return MOON_OK;
}

static int build_by_rule(struct builder *b, struct moon_error *error) {
    if (b->rank->profile->buffers_registered_first) {
        int status = register_first(b, error);
        if (status)
            return status;
    }
    if (b->out->sharded)
        return build_sharded(b, error);
    switch (b->rank->profile->segment_rule) {
    case MOON_SEGMENTS_PER_LAYER:
        return build_per_layer(b, error);
    case MOON_SEGMENTS_PER_STORAGE:
        return build_per_storage(b, error);
    case MOON_SEGMENTS_PER_REGION:
        break;
    }
    return build_per_region(b, error);
}

int moon_segments_build(struct moon_arena *arena, const struct moon_rank_caches *rank, const struct moon_shards *shards,
                        struct moon_segments *out, struct moon_error *error) {
    *out = (struct moon_segments){.profile = rank->profile, .shard_count = 1};
    struct builder b = {.arena = arena, .rank = rank, .out = out};
    if (shards) {
        if (!rank->profile->store_namespace)
            return moon_fail(error, MOON_ERR_UNSUPPORTED, NULL, "%s has no TP-sharded layout", rank->profile->name);
        int status = moon_shards_check(shards, error);
        if (status)
            return status;
        out->sharded = true;
        out->shards = *shards;
    }
    int status = check_rank(rank, error);
    if (!status)
        status = open_builder(&b, error);
    if (!status)
        status = build_by_rule(&b, error);
    if (status)
        return status;
    out->per_chunk = b.count / out->shard_count;
    return MOON_OK;
}

/* ---- requests ---- */

static uint64_t span_tokens(const struct moon_token_range *chunk) {
    return chunk->end_tokens - chunk->start_tokens;
}

static int check_request(const struct moon_segment_request *request, struct moon_error *error) {
    if (request->block_size_tokens < 1 || request->hash_block_size_tokens < 1)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "block size and hash block size must be positive");
    for (size_t i = 0; i < request->chunk_count; i++)
        if (request->chunks[i].end_tokens < request->chunks[i].start_tokens)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "chunk %zu ends before it starts", i);
    return MOON_OK;
}

/* SEG-024, up to the block table. */
static int check_sharded(const struct moon_segments *segments, const struct moon_segment_request *request,
                         struct moon_error *error) {
    if (request->shard_count != request->chunk_count)
        return moon_refuse(error, "ValueError", "Each Store chunk must have one shard ID");
    for (size_t i = 0; i < request->chunk_count; i++)
        if (span_tokens(&request->chunks[i]) != segments->shards.block_size_tokens)
            return moon_refuse(error, "ValueError", "TP-shared Mooncake store requires full KV blocks");
    int64_t first = (int64_t)moon_shards_first(&segments->shards), count = (int64_t)segments->shard_count;
    for (size_t i = 0; i < request->chunk_count; i++)
        if (request->shard_ids[i] < first || request->shard_ids[i] >= first + count)
            return moon_refuse(error, "ValueError", "Store shard is not owned by this TP rank");
    return MOON_OK;
}

/* SEG-016 and SEG-017: what is judged over the whole request. */
static int check_rank_local(const struct moon_segments *segments, const struct moon_segment_request *request,
                            struct moon_error *error) {
    bool wrong = false;
    if (segments->profile->store_namespace) {
        wrong = request->shard_count != request->chunk_count;
        for (size_t i = 0; i < request->shard_count; i++)
            wrong |= request->shard_ids[i] != 0;
    }
    if (segments->profile->chunk_size_rule == MOON_CHUNK_SIZE_ROUNDED)
        for (size_t i = 0; i < request->chunk_count; i++)
            wrong |= span_tokens(&request->chunks[i]) % request->hash_block_size_tokens != 0;
    return wrong ? moon_refuse(error, "AssertionError", "%s", "") : MOON_OK;
}

static int find_block(const struct moon_segments *segments, const struct moon_segment_request *request, size_t chunk,
                      uint64_t *block_id, struct moon_error *error) {
    const struct moon_token_range *range = &request->chunks[chunk];
    uint64_t index = range->start_tokens / request->block_size_tokens;
    if (index >= request->block_count)
        return moon_refuse(error, "IndexError", "list index out of range");
    if (segments->profile->chunk_size_rule == MOON_CHUNK_SIZE_BLOCKS &&
        span_tokens(range) % request->block_size_tokens != 0)
        return moon_refuse(error, "AssertionError", "%s", "");
    *block_id = request->block_ids[index];
    return MOON_OK;
}

/* Bytes of a chunk in one segment of a rank-local layout. Returns false when they do not fit. */
static bool chunk_bytes(const struct moon_segments *segments, const struct moon_segment_request *request, uint64_t span,
                        uint64_t block_bytes, uint64_t *bytes) {
    uint64_t block_size = request->block_size_tokens;
    if (segments->profile->chunk_size_rule == MOON_CHUNK_SIZE_DIVIDED)
        return !__builtin_mul_overflow(block_bytes / block_size, span, bytes);
    return !__builtin_mul_overflow(block_bytes, span / block_size + (span % block_size != 0), bytes);
}

/* False when the buffer would reach beyond 64 bits. */
static bool place(const struct moon_segment *segment, uint64_t block_id, uint64_t size_bytes,
                  struct moon_buffer *buffer) {
    uint64_t end_bytes;
    buffer->storage = segment->storage;
    buffer->size_bytes = size_bytes;
    return !__builtin_mul_overflow(block_id, segment->block_stride_bytes, &buffer->offset_bytes) &&
           !__builtin_add_overflow(buffer->offset_bytes, segment->offset_bytes, &buffer->offset_bytes) &&
           !__builtin_add_overflow(buffer->offset_bytes, size_bytes, &end_bytes);
}

/* Fills the buffers of one chunk, which begin at chunk * per_chunk. */
static int list_chunk(const struct moon_segments *segments, const struct moon_segment_request *request, size_t chunk,
                      uint64_t block_id, struct moon_buffer *buffers, struct moon_error *error) {
    size_t row = 0, first = chunk * segments->per_chunk;
    if (segments->sharded)
        row =
            (size_t)((uint64_t)request->shard_ids[chunk] - moon_shards_first(&segments->shards)) * segments->per_chunk;
    for (size_t k = 0; k < segments->per_chunk; k++) {
        const struct moon_segment *segment = &segments->segments[row + k];
        uint64_t size_bytes = segment->size_bytes;
        bool fits = segments->sharded || chunk_bytes(segments, request, span_tokens(&request->chunks[chunk]),
                                                     segment->size_bytes, &size_bytes);
        if (!fits || !place(segment, block_id, size_bytes, &buffers[first + k]))
            return moon_fail(error, MOON_ERR_RANGE, NULL, "block %" PRIu64 " of chunk %zu lies beyond 64 bits",
                             block_id, chunk);
    }
    return MOON_OK;
}

int moon_segments_list(const struct moon_segments *segments, const struct moon_segment_request *request,
                       struct moon_buffer *buffers, uint64_t *block_ids, struct moon_error *error) {
    if (request->chunk_count == 0)
        return MOON_OK;
    int status = check_request(request, error);
    if (!status)
        status =
            segments->sharded ? check_sharded(segments, request, error) : check_rank_local(segments, request, error);
    for (size_t i = 0; !status && i < request->chunk_count; i++)
        status = find_block(segments, request, i, &block_ids[i], error);
    for (size_t i = 0; !status && i < request->chunk_count; i++)
        status = list_chunk(segments, request, i, block_ids[i], buffers, error);
    return status;
}

int moon_segments_whole_block(const struct moon_segments *segments, uint64_t block_id, struct moon_buffer *buffers,
                              struct moon_error *error) {
    if (!segments->profile->single_block_segments)
        return moon_fail(error, MOON_ERR_UNSUPPORTED, NULL, "%s does not list single blocks", segments->profile->name);
    if (segments->sharded)
        return moon_refuse(error, "RuntimeError", "This operation requires a rank-local Store layout");
    for (size_t k = 0; k < segments->per_chunk; k++)
        if (!place(&segments->segments[k], block_id, segments->segments[k].size_bytes, &buffers[k]))
            return moon_fail(error, MOON_ERR_RANGE, NULL, "block %" PRIu64 " lies beyond 64 bits", block_id);
    return MOON_OK;
}

uint64_t moon_buffer_overrun_bytes(const struct moon_segments *segments, const struct moon_buffer *buffer) {
    uint64_t end_bytes = buffer->offset_bytes + buffer->size_bytes,
             storage_bytes = segments->storage_bytes[buffer->storage];
    if (end_bytes <= storage_bytes)
        return 0;
    uint64_t over_bytes = end_bytes - storage_bytes;
    return over_bytes < buffer->size_bytes ? over_bytes : buffer->size_bytes;
}
