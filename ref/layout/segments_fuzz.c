/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of registration and requests: any tensors, any chunks; buffers lie inside their storages or are known to
 * overrun. */
#include "ref/layout/segments.h"

#include "ref/base/cursor.h"

#include <assert.h>
#include <stdlib.h>

enum { STORAGES_MAX = 4, CACHES_MAX = 6, CHUNKS_MAX = 6, BUFFERS_MAX = 1 << 16 };

/* Mostly small numbers; the first byte decides. */
static uint64_t number(struct moon_cursor *input) {
    uint8_t kind = moon_cursor_u8(input);
    if (kind < 160)
        return kind % 20;
    if (kind < 224)
        return moon_cursor_u8(input);
    return kind < 250 ? moon_cursor_u16_le(input) : moon_cursor_u64_le(input);
}

static struct moon_tensor tensor(struct moon_cursor *input, size_t storages) {
    struct moon_tensor made = {.storage = moon_cursor_u8(input) % (storages + 1)};
    made.offset_bytes = number(input);
    made.dimensions = moon_cursor_u8(input) % (MOON_TENSOR_DIMENSIONS_GIVEN_MAX + 2);
    for (unsigned d = 0; d < made.dimensions && d < MOON_TENSOR_DIMENSIONS_MAX; d++) {
        made.shape[d] = number(input);
        made.strides[d] = number(input);
    }
    made.item_bytes = number(input);
    return made;
}

static void check_buffers(const struct moon_segments *segments, const struct moon_buffer *buffers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t storage_bytes = segments->storage_bytes[buffers[i].storage];
        uint64_t over_bytes = moon_buffer_overrun_bytes(segments, &buffers[i]);
        assert(over_bytes <= buffers[i].size_bytes);
        assert(over_bytes > 0 || buffers[i].offset_bytes + buffers[i].size_bytes <= storage_bytes ||
               buffers[i].size_bytes == 0);
    }
}

static void request(struct moon_cursor *input, const struct moon_segments *segments, struct moon_buffer *buffers) {
    struct moon_token_range chunks[CHUNKS_MAX];
    uint64_t table[CHUNKS_MAX], block_ids[CHUNKS_MAX];
    int64_t shard_ids[CHUNKS_MAX];
    struct moon_segment_request asked = {number(input), number(input), chunks, 0, table, 0, shard_ids, 0};
    asked.chunk_count = moon_cursor_u8(input) % (CHUNKS_MAX + 1);
    asked.block_count = moon_cursor_u8(input) % (CHUNKS_MAX + 1);
    asked.shard_count = moon_cursor_u8(input) % (CHUNKS_MAX + 1);
    for (size_t i = 0; i < CHUNKS_MAX; i++) {
        chunks[i].start_tokens = number(input);
        chunks[i].end_tokens = number(input);
        table[i] = number(input);
        shard_ids[i] = (int64_t)number(input);
    }
    if (segments->per_chunk > BUFFERS_MAX / CHUNKS_MAX)
        return;
    struct moon_error error;
    if (moon_segments_list(segments, &asked, buffers, block_ids, &error) == MOON_OK)
        check_buffers(segments, buffers, asked.chunk_count * segments->per_chunk);
    if (moon_segments_whole_block(segments, table[0], buffers, &error) == MOON_OK)
        check_buffers(segments, buffers, segments->per_chunk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_cursor input;
    moon_cursor_open(&input, data, size);
    size_t profile_count;
    const struct moon_profile *profiles = moon_profiles(&profile_count);
    uint64_t storage_bytes[STORAGES_MAX];
    struct moon_tensor caches[CACHES_MAX];
    struct moon_rank_caches rank = {
        .profile = &profiles[moon_cursor_u8(&input) % profile_count], .storage_bytes = storage_bytes, .caches = caches};
    rank.storage_count = moon_cursor_u8(&input) % (STORAGES_MAX + 1);
    rank.cache_count = moon_cursor_u8(&input) % (CACHES_MAX + 1);
    rank.num_blocks = number(&input);
    rank.block_size_tokens = number(&input);
    for (size_t i = 0; i < rank.storage_count; i++)
        storage_bytes[i] = number(&input) * 16;
    for (size_t i = 0; i < rank.cache_count; i++)
        caches[i] = tensor(&input, rank.storage_count);
    uint8_t layout = moon_cursor_u8(&input);
    struct moon_shards shards = {layout & 2 ? MOON_STORE_SHARDED_LBHNC : MOON_STORE_SHARDED_LBNHC,
                                 number(&input),
                                 number(&input),
                                 number(&input),
                                 number(&input),
                                 rank.block_size_tokens};

    static struct moon_buffer buffers[BUFFERS_MAX];
    struct moon_arena arena;
    struct moon_segments segments;
    struct moon_error error;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_segments_build(&arena, &rank, layout & 1 ? &shards : NULL, &segments, &error);
    assert(segments.registered_count <= rank.storage_count);
    if (!status)
        for (int i = 0; i < 3; i++)
            request(&input, &segments, buffers);
    moon_arena_close(&arena);
    return 0;
}
