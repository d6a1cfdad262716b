/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a rank's segments: what each release registers, how it cuts, what a request gets, and hostile input. */
#include "ref/layout/segments.h"

#include "ref/base/unit.h"

enum { CACHES_MAX = 8, BUFFERS_MAX = 64 };

/* A rank in one line: caches are added one by one, then it is built for a release. */
struct rank {
    struct moon_arena arena;
    uint64_t storage_bytes[CACHES_MAX];
    struct moon_tensor caches[CACHES_MAX];
    size_t storages, count;
    uint64_t num_blocks, block_tokens;
    struct moon_segments segments;
    struct moon_error error;
    int status;
};

static void rank_open(struct rank *rank, uint64_t num_blocks, uint64_t block_tokens) {
    *rank = (struct rank){.num_blocks = num_blocks, .block_tokens = block_tokens};
}

static size_t add_storage(struct rank *rank, uint64_t bytes) {
    rank->storage_bytes[rank->storages] = bytes;
    return rank->storages++;
}

static void add_cache(struct rank *rank, size_t storage, uint64_t offset_bytes, uint64_t item_bytes,
                      unsigned dimensions, const uint64_t *shape, const uint64_t *strides) {
    struct moon_tensor *cache = &rank->caches[rank->count++];
    *cache = (struct moon_tensor){.storage = storage, .offset_bytes = offset_bytes, .dimensions = dimensions};
    cache->item_bytes = item_bytes;
    memcpy(cache->shape, shape, dimensions * sizeof *shape);
    memcpy(cache->strides, strides, dimensions * sizeof *strides);
}

static void add_cache_2d(struct rank *rank, size_t storage, uint64_t offset_bytes, uint64_t rows, uint64_t columns,
                         uint64_t row_stride) {
    add_cache(rank, storage, offset_bytes, 1, 2, (uint64_t[]){rows, columns}, (uint64_t[]){row_stride, 1});
}

static int build_in(struct rank *rank, const char *profile, struct moon_memory *memory) {
    struct moon_rank_caches caches = {.profile = moon_profile_find(profile, NULL),
                                      .storage_bytes = rank->storage_bytes,
                                      .storage_count = rank->storages,
                                      .caches = rank->caches,
                                      .cache_count = rank->count,
                                      .num_blocks = rank->num_blocks,
                                      .block_size_tokens = rank->block_tokens};
    rank->error = (struct moon_error){0};
    moon_arena_open(&rank->arena, memory);
    rank->status = moon_segments_build(&rank->arena, &caches, NULL, &rank->segments, &rank->error);
    return rank->status;
}

static void build(struct rank *rank, const char *profile) {
    MOON_CHECK_INT(build_in(rank, profile, moon_memory_heap()), MOON_OK);
}

static void rank_close(struct rank *rank) {
    moon_arena_close(&rank->arena);
}

/* "storage:offset+size ..." of a row of buffers. */
static const char *buffers_text(const struct moon_buffer *buffers, size_t count) {
    static char text[2048];
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%zu:%llu+%llu", i ? " " : "", buffers[i].storage,
                             (unsigned long long)buffers[i].offset_bytes, (unsigned long long)buffers[i].size_bytes);
    return text;
}

static const char *segments_text(const struct rank *rank) {
    struct moon_buffer rows[BUFFERS_MAX];
    for (size_t i = 0; i < rank->segments.per_chunk && i < BUFFERS_MAX; i++) {
        const struct moon_segment *segment = &rank->segments.segments[i];
        rows[i] = (struct moon_buffer){segment->storage, segment->offset_bytes, segment->size_bytes};
        MOON_CHECK_INT(segment->block_stride_bytes, segment->size_bytes);
    }
    return buffers_text(rows, rank->segments.per_chunk);
}

static void segments_are(struct rank *rank, const char *profile, const char *text) {
    build(rank, profile);
    MOON_CHECK_TEXT(segments_text(rank), text);
    rank_close(rank);
}

static void build_raises(struct rank *rank, const char *profile, const char *type, const char *message,
                         size_t registered) {
    MOON_CHECK_INT(build_in(rank, profile, moon_memory_heap()), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(rank->error.type, type);
    MOON_CHECK_TEXT(rank->error.message, message);
    MOON_CHECK_INT(rank->segments.registered_count, registered);
    rank_close(rank);
}

/* Lists one chunk over a block table of 3, 0, 7 and compares. */
static void chunk_is(struct rank *rank, const char *profile, uint64_t start, uint64_t end, uint64_t hash_block,
                     const char *text) {
    struct moon_token_range chunk = {start, end};
    uint64_t table[] = {3, 0, 7}, block_id;
    int64_t shard = 0;
    struct moon_buffer buffers[BUFFERS_MAX];
    struct moon_segment_request request = {rank->block_tokens, hash_block, &chunk, 1, table, 3, &shard, 1};
    build(rank, profile);
    struct moon_error error = {0};
    int status = moon_segments_list(&rank->segments, &request, buffers, &block_id, &error);
    MOON_CHECK_TEXT(status ? error.type : buffers_text(buffers, rank->segments.per_chunk), text);
    rank_close(rank);
}

static void storage_is_registered_once_in_order(void) {
    static const char *const profiles[] = {"vllm-0.21", "vllm-0.22", "vllm-0.28",
                                           "vllm-0.29", "vllm-0.30", "vllm-0.33"};
    for (size_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++) {
        struct rank rank;
        rank_open(&rank, 8, 16);
        size_t a = add_storage(&rank, 1024), b = add_storage(&rank, 512);
        add_cache_2d(&rank, b, 0, 8, 64, 64);
        add_cache_2d(&rank, a, 512, 8, 64, 64);
        add_cache_2d(&rank, b, 0, 8, 64, 64);
        build(&rank, profiles[p]);
        MOON_CHECK_INT(rank.segments.registered_count, 2);
        MOON_CHECK_INT(rank.segments.registered[0], b);
        MOON_CHECK_INT(rank.segments.registered[1], a);
        rank_close(&rank);
    }
}

static void first_cache_of_0_21_decides_for_all(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_storage(&rank, 1280);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    add_cache_2d(&rank, 1, 0, 8, 160, 160);
    segments_are(&rank, "vllm-0.21", "0:0+128 1:0+128");
    segments_are(&rank, "vllm-0.22", "0:0+128 1:0+160");
    segments_are(&rank, "vllm-0.29", "0:0+128 1:0+160");
}

static void split_dimension_of_0_21_comes_from_the_first_cache(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_storage(&rank, 2048);
    add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){2, 8, 64}, (uint64_t[]){512, 64, 1});
    add_cache(&rank, 1, 0, 1, 3, (uint64_t[]){4, 8, 64}, (uint64_t[]){512, 64, 1});
    segments_are(&rank, "vllm-0.21", "0:0+64 0:512+64 1:0+64 1:512+64 1:1024+64 1:1536+64");
    segments_are(&rank, "vllm-0.22", "0:0+64 0:512+64 1:0+64 1:512+64 1:1024+64 1:1536+64");
}

static void split_dimension_that_a_layer_of_0_21_lacks_raises(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_storage(&rank, 512);
    add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){8, 64, 2}, (uint64_t[]){64, 1, 512});
    add_cache_2d(&rank, 1, 0, 8, 64, 64);
    build_raises(&rank, "vllm-0.21", "IndexError",
                 "Dimension out of range (expected to be in range of [-2, 1], but got 2)", 2);
}

static void block_length_of_0_21_must_divide(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 576);
    add_cache_2d(&rank, 0, 32, 8, 64, 64);
    build_raises(&rank, "vllm-0.21", "ValueError", "block_len 72 % 16 != 0", 1);
    segments_are(&rank, "vllm-0.22", "0:0+72"); /* the storage's tail is cut into the pages */
    segments_are(&rank, "vllm-0.29", "0:32+64");
}

static void layers_of_0_21_that_share_a_storage_repeat_its_bytes(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 64, 64);
    add_cache_2d(&rank, 0, 512, 8, 64, 64);
    segments_are(&rank, "vllm-0.21", "0:0+128 0:0+128");
    segments_are(&rank, "vllm-0.28", "0:0+128");
    segments_are(&rank, "vllm-0.29", "0:0+64 0:512+64");
}

static void axis_outside_the_blocks_splits_a_storage(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){2, 8, 64}, (uint64_t[]){512, 64, 1});
    segments_are(&rank, "vllm-0.22", "0:0+64 0:512+64");
    build_raises(&rank, "vllm-0.29", "AssertionError", "", 0); /* dimension 0 must be the blocks */
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){8, 2, 64}, (uint64_t[]){64, 512, 1}); /* heads outside */
    segments_are(&rank, "vllm-0.28", "0:0+64 0:512+64");
    segments_are(&rank, "vllm-0.33", "0:0+64 0:512+64");
}

static void block_outermost_storage_is_one_region(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 64, 8, 64, 128);
    add_cache_2d(&rank, 0, 0, 8, 64, 128);
    segments_are(&rank, "vllm-0.29", "0:0+128");
    rank.num_blocks = 4; /* regrouped to (4, 2, 64): a block has gaps, so each kernel block is a region */
    segments_are(&rank, "vllm-0.29", "0:64+256 0:192+256 0:0+256 0:128+256");
}

static void cache_of_most_dimensions_is_regrouped(void) {
    static const char *const profiles[] = {"vllm-0.29", "vllm-0.33"};
    struct rank rank;
    rank_open(&rank, 2, 16);
    add_storage(&rank, 256);
    add_cache(&rank, 0, 0, 1, MOON_TENSOR_DIMENSIONS_GIVEN_MAX, (uint64_t[]){4, 2, 2, 2, 2, 2, 2},
              (uint64_t[]){64, 32, 16, 8, 4, 2, 1});
    for (size_t p = 0; p < 2; p++)
        segments_are(&rank, profiles[p], "0:0+128");
}

static void region_is_taken_once_whatever_its_length(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 64, 64);
    add_cache_2d(&rank, 0, 0, 8, 100, 100);
    add_cache_2d(&rank, 0, 512, 8, 64, 64);
    segments_are(&rank, "vllm-0.30", "0:0+64 0:512+64");
}

static void heads_around_layers_overlap_and_overrun(void) {
    struct rank rank; /* BHLNC: 2 blocks, 2 heads, 2 layers of 10 bytes */
    rank_open(&rank, 2, 1);
    add_storage(&rank, 80);
    add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){2, 2, 10}, (uint64_t[]){40, 20, 1});
    add_cache(&rank, 0, 10, 1, 3, (uint64_t[]){2, 2, 10}, (uint64_t[]){40, 20, 1});
    build(&rank, "vllm-0.33");
    MOON_CHECK_TEXT(segments_text(&rank), "0:0+40 0:20+40 0:10+40 0:30+40");
    struct moon_buffer buffers[4];
    MOON_CHECK_INT(moon_segments_whole_block(&rank.segments, 1, buffers, NULL), MOON_OK);
    MOON_CHECK_TEXT(buffers_text(buffers, 4), "0:40+40 0:60+40 0:50+40 0:70+40");
    MOON_CHECK_INT(moon_buffer_overrun_bytes(&rank.segments, &buffers[0]), 0);
    MOON_CHECK_INT(moon_buffer_overrun_bytes(&rank.segments, &buffers[1]), 20);
    MOON_CHECK_INT(moon_buffer_overrun_bytes(&rank.segments, &buffers[3]), 30);
    buffers[0].offset_bytes = 100;
    MOON_CHECK_INT(moon_buffer_overrun_bytes(&rank.segments, &buffers[0]), 40);
    rank_close(&rank);
}

static void scattered_heads_raise(void) {
    struct rank rank; /* tokens outside heads outside blocks: one head of a block has gaps as well */
    rank_open(&rank, 2, 1);
    add_storage(&rank, 64);
    add_storage(&rank, 1000);
    add_cache_2d(&rank, 0, 0, 2, 32, 32);
    add_cache(&rank, 1, 0, 1, 4, (uint64_t[]){2, 2, 4, 8}, (uint64_t[]){8, 16, 32, 1});
    build_raises(&rank, "vllm-0.29", "AssertionError", "", 2);
    build_raises(&rank, "vllm-0.30", "AssertionError", "", 2);
}

static void registration_before_an_error_depends_on_the_release(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 512);
    add_storage(&rank, 528);
    add_cache_2d(&rank, 0, 0, 8, 64, 64);
    add_cache_2d(&rank, 1, 0, 33, 16, 16);
    build_raises(&rank, "vllm-0.29", "AssertionError", "", 1);
    build_raises(&rank, "vllm-0.30", "AssertionError", "", 0);
    segments_are(&rank, "vllm-0.28", "0:0+64 1:0+66"); /* nobody looks at dimension 0 */
}

static void chunk_size_follows_the_release(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    chunk_is(&rank, "vllm-0.21", 0, 16, 16, "0:384+128");
    chunk_is(&rank, "vllm-0.21", 16, 24, 16, "0:0+64");
    chunk_is(&rank, "vllm-0.21", 0, 32, 16, "0:384+256");
    chunk_is(&rank, "vllm-0.26", 16, 24, 8, "AssertionError");
    chunk_is(&rank, "vllm-0.26", 0, 32, 8, "0:384+256");
    chunk_is(&rank, "vllm-0.27", 16, 24, 8, "0:0+128");
    chunk_is(&rank, "vllm-0.27", 16, 24, 16, "AssertionError");
    chunk_is(&rank, "vllm-0.33", 0, 40, 8, "0:384+384");
    chunk_is(&rank, "vllm-0.33", 16, 16, 8, "0:0+0");
}

static void block_table_that_is_too_short_raises(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    static const char *const profiles[] = {"vllm-0.21", "vllm-0.22", "vllm-0.28", "vllm-0.33"};
    for (size_t p = 0; p < 4; p++) {
        chunk_is(&rank, profiles[p], 32, 48, 16, "0:896+128");
        chunk_is(&rank, profiles[p], 48, 64, 16, "IndexError");
        chunk_is(&rank, profiles[p], UINT64_MAX - 15, UINT64_MAX, 1, "IndexError");
    }
    /* both wrong: 0.22 to 0.26 look at the table first, later ones at the length */
    chunk_is(&rank, "vllm-0.22", 48, 50, 16, "IndexError");
    chunk_is(&rank, "vllm-0.27", 48, 50, 16, "AssertionError");
}

/* One request of two chunks. */
static int list_two(struct rank *rank, struct moon_token_range a, struct moon_token_range b, const int64_t *shards,
                    size_t shard_count) {
    struct moon_token_range chunks[] = {a, b};
    uint64_t table[] = {3, 0}, block_ids[2];
    struct moon_buffer buffers[2 * BUFFERS_MAX];
    struct moon_segment_request request = {rank->block_tokens, rank->block_tokens, chunks, 2, table, 2, shards,
                                           shard_count};
    return moon_segments_list(&rank->segments, &request, buffers, block_ids, &rank->error);
}

static void first_failing_chunk_decides_up_to_0_26(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    const struct moon_token_range partial = {0, 8}, outside = {64, 80};
    const int64_t zeros[] = {0, 0};
    build(&rank, "vllm-0.24");
    MOON_CHECK_INT(list_two(&rank, partial, outside, zeros, 2), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(rank.error.type, "AssertionError");
    MOON_CHECK_INT(list_two(&rank, outside, partial, zeros, 2), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(rank.error.type, "IndexError");
    rank_close(&rank);
    build(&rank, "vllm-0.28");
    MOON_CHECK_INT(list_two(&rank, outside, partial, zeros, 2), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(rank.error.type, "AssertionError");
    rank_close(&rank);
}

static void rank_local_shard_ids_are_zeros_from_0_30(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    const struct moon_token_range a = {0, 16}, b = {16, 32};
    build(&rank, "vllm-0.30");
    MOON_CHECK_INT(list_two(&rank, a, b, (int64_t[]){0, 0}, 2), MOON_OK);
    MOON_CHECK_INT(list_two(&rank, a, b, (int64_t[]){0, 1}, 2), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(rank.error.type, "AssertionError");
    MOON_CHECK_TEXT(rank.error.message, "");
    MOON_CHECK_INT(list_two(&rank, a, b, (int64_t[]){0}, 1), MOON_ERR_REFUSED);
    rank_close(&rank);
    build(&rank, "vllm-0.29");
    MOON_CHECK_INT(list_two(&rank, a, b, (int64_t[]){9}, 1), MOON_OK);
    rank_close(&rank);
}

static void request_without_chunks_is_not_checked(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    build(&rank, "vllm-0.33");
    struct moon_segment_request request = {0};
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &request, NULL, NULL, NULL), MOON_OK);
    rank_close(&rank);
}

static void rank_without_caches_has_no_segments(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    static const char *const profiles[] = {"vllm-0.21", "vllm-0.22", "vllm-0.30"};
    for (size_t p = 0; p < 3; p++) {
        build(&rank, profiles[p]);
        MOON_CHECK_INT(rank.segments.per_chunk, 0);
        MOON_CHECK_INT(rank.segments.registered_count, 0);
        MOON_CHECK_INT(
            list_two(&rank, (struct moon_token_range){0, 16}, (struct moon_token_range){16, 32}, (int64_t[]){0, 0}, 2),
            MOON_OK);
        rank_close(&rank);
    }
}

static void whole_blocks_exist_from_0_27_and_rank_local(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache(&rank, 0, 0, 2, 4, (uint64_t[]){8, 2, 16, 2}, (uint64_t[]){64, 32, 2, 1});
    struct moon_buffer buffer;
    build(&rank, "vllm-0.26");
    MOON_CHECK_INT(moon_segments_whole_block(&rank.segments, 1, &buffer, NULL), MOON_ERR_UNSUPPORTED);
    rank_close(&rank);
    build(&rank, "vllm-0.27");
    MOON_CHECK_INT(moon_segments_whole_block(&rank.segments, 7, &buffer, NULL), MOON_OK);
    MOON_CHECK_TEXT(buffers_text(&buffer, 1), "0:896+128");
    MOON_CHECK_INT(moon_segments_whole_block(&rank.segments, UINT64_MAX, &buffer, NULL), MOON_ERR_RANGE);
    rank_close(&rank);

    struct moon_shards shards = {MOON_STORE_SHARDED_LBHNC, 2, 2, 1, 0, 16};
    struct moon_rank_caches caches = {
        moon_profile_find("vllm-0.30", NULL), rank.storage_bytes, 1, rank.caches, 1, 8, 16};
    moon_arena_open(&rank.arena, moon_memory_heap());
    MOON_CHECK_INT(moon_segments_build(&rank.arena, &caches, &shards, &rank.segments, NULL), MOON_OK);
    MOON_CHECK_INT(moon_segments_whole_block(&rank.segments, 1, &buffer, &rank.error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(rank.error.type, "RuntimeError");
    MOON_CHECK_TEXT(rank.error.message, "This operation requires a rank-local Store layout");
    caches.profile = moon_profile_find("vllm-0.29", NULL);
    MOON_CHECK_INT(moon_segments_build(&rank.arena, &caches, &shards, &rank.segments, NULL), MOON_ERR_UNSUPPORTED);
    caches.profile = moon_profile_find("vllm-0.30", NULL);
    shards.store_tp = 3;
    MOON_CHECK_INT(moon_segments_build(&rank.arena, &caches, &shards, &rank.segments, NULL), MOON_ERR_RANGE);
    shards = (struct moon_shards){MOON_STORE_SHARDED_LBHNC, 1 << 21, 1 << 21, 1, 0, 16};
    caches.cache_count = 0;
    MOON_CHECK_INT(moon_segments_build(&rank.arena, &caches, &shards, &rank.segments, NULL), MOON_ERR_LIMIT);
    rank_close(&rank);
}

static void ranks_without_sense_are_refused(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    rank.num_blocks = 0;
    MOON_CHECK_INT(build_in(&rank, "vllm-0.33", moon_memory_heap()), MOON_ERR_RANGE);
    rank.num_blocks = MOON_TENSOR_NUMBER_MAX + 1;
    MOON_CHECK_INT(build_in(&rank, "vllm-0.33", moon_memory_heap()), MOON_ERR_RANGE);
    rank.num_blocks = 8;
    rank.block_tokens = 0;
    MOON_CHECK_INT(build_in(&rank, "vllm-0.33", moon_memory_heap()), MOON_ERR_RANGE);
    rank.block_tokens = 16;
    rank.caches[0].storage = 1;
    MOON_CHECK_INT(build_in(&rank, "vllm-0.33", moon_memory_heap()), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(rank.error.message, "cache 0 names storage 1 of 1");
    rank.caches[0].storage = 0;
    rank.caches[0].offset_bytes = 1;
    MOON_CHECK_INT(build_in(&rank, "vllm-0.33", moon_memory_heap()), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(rank.error.message, "cache 0: the tensor ends at byte 1025, its storage has 1024 bytes");
}

static void requests_without_sense_are_refused(void) {
    struct rank rank;
    rank_open(&rank, 8, 16);
    add_storage(&rank, 1024);
    add_cache_2d(&rank, 0, 0, 8, 128, 128);
    build(&rank, "vllm-0.29");
    uint64_t table[] = {UINT64_MAX / 2}, block_id;
    struct moon_token_range chunk = {0, 16};
    struct moon_buffer buffer;
    struct moon_segment_request good = {16, 16, &chunk, 1, table, 1, NULL, 0}, request = good;
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &good, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    table[0] = (UINT64_MAX - 127) / 128; /* begins inside 64 bits, ends outside */
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &good, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    table[0] -= 1;
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &good, &buffer, &block_id, NULL), MOON_OK);
    request.block_size_tokens = 0;
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &request, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    request = good;
    request.hash_block_size_tokens = 0;
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &request, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    chunk = (struct moon_token_range){16, 15};
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &good, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    chunk = (struct moon_token_range){0, UINT64_MAX};
    request = good;
    request.hash_block_size_tokens = request.block_size_tokens = 1;
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &request, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    rank_close(&rank);
    chunk = (struct moon_token_range){0, UINT64_MAX};
    build(&rank, "vllm-0.21");
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &request, &buffer, &block_id, NULL), MOON_ERR_RANGE);
    rank_close(&rank);
}

static void too_many_segments_are_refused(void) {
    struct rank rank; /* 2^21 "heads" that all are the same element */
    rank_open(&rank, 1, 16);
    add_storage(&rank, 16);
    add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){1, 1 << 21, 1}, (uint64_t[]){0, 0, 1});
    MOON_CHECK_INT(build_in(&rank, "vllm-0.29", moon_memory_heap()), MOON_ERR_LIMIT);
    rank_close(&rank);
    rank.caches[0].shape[1] = 1000;
    segments_are(&rank, "vllm-0.29", "0:0+0"); /* one region: all start at the same byte */
}

/* A rank of 64 local heads, each a shard, in LBNHC; `tokens` a block. */
static int build_sharded(struct rank *rank, uint64_t tokens, struct moon_memory *memory) {
    struct moon_shards shards = {MOON_STORE_SHARDED_LBNHC, 64, 64, 1, 0, tokens};
    rank_open(rank, 2, tokens);
    add_storage(rank, tokens * 2 * 64);
    add_cache(rank, 0, 0, 1, 4, (uint64_t[]){2, 64, tokens, 1}, (uint64_t[]){64 * tokens, 1, 64, 1});
    struct moon_rank_caches caches = {
        moon_profile_find("vllm-0.33", NULL), rank->storage_bytes, 1, rank->caches, 1, 2, tokens};
    moon_arena_open(&rank->arena, memory);
    return moon_segments_build(&rank->arena, &caches, &shards, &rank->segments, &rank->error);
}

static void too_many_sharded_segments_are_refused(void) {
    struct rank rank;
    MOON_CHECK_INT(build_sharded(&rank, 16, moon_memory_heap()), MOON_OK);
    MOON_CHECK_INT(rank.segments.per_chunk, 16);
    MOON_CHECK_INT(rank.segments.shard_count, 64);
    rank_close(&rank);
    MOON_CHECK_INT(build_sharded(&rank, MOON_SEGMENTS_MAX / 64 + 1, moon_memory_heap()), MOON_ERR_LIMIT);
    rank_close(&rank);
}

static void refused_memory_is_reported_and_leaks_nothing(void) {
    static const char *const profiles[] = {"vllm-0.21", "vllm-0.24", "vllm-0.29", "vllm-0.33", NULL};
    struct rank rank;
    for (size_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++) {
        uint64_t n = 1;
        for (int status = MOON_ERR_MEMORY; status && n < 1000; n++) {
            struct moon_memory_failing failing;
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            if (profiles[p]) { /* 512 heads outside the blocks; no memory stands behind the storage */
                rank_open(&rank, 1024, 16);
                add_storage(&rank, 1 << 26);
                add_cache(&rank, 0, 0, 1, 3, (uint64_t[]){1024, 512, 128}, (uint64_t[]){128, 1 << 17, 1});
                status = build_in(&rank, profiles[p], &failing.memory);
            } else {
                status = build_sharded(&rank, 16, &failing.memory);
            }
            CU_ASSERT(status == MOON_OK || status == MOON_ERR_MEMORY);
            CU_ASSERT(status != MOON_OK || rank.segments.per_chunk == (profiles[p] ? 512 : 16));
            rank_close(&rank);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
        CU_ASSERT(n > 2 && n < 1000);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a storage is registered once, in the order of the caches", storage_is_registered_once_in_order},
        {"the first cache of 0.21 decides the page for all", first_cache_of_0_21_decides_for_all},
        {"the split dimension of 0.21 comes from the first cache", split_dimension_of_0_21_comes_from_the_first_cache},
        {"a split dimension that a layer of 0.21 lacks raises", split_dimension_that_a_layer_of_0_21_lacks_raises},
        {"a block length of 0.21 must divide by the block size", block_length_of_0_21_must_divide},
        {"layers of 0.21 that share a storage repeat its bytes", layers_of_0_21_that_share_a_storage_repeat_its_bytes},
        {"an axis outside the blocks splits a storage", axis_outside_the_blocks_splits_a_storage},
        {"a storage with blocks outermost is one region", block_outermost_storage_is_one_region},
        {"a cache of the most dimensions is regrouped", cache_of_most_dimensions_is_regrouped},
        {"a region is taken once, whatever its length", region_is_taken_once_whatever_its_length},
        {"heads around layers overlap and overrun", heads_around_layers_overlap_and_overrun},
        {"scattered heads raise", scattered_heads_raise},
        {"what is registered before an error depends on the release",
         registration_before_an_error_depends_on_the_release},
        {"the size of a chunk follows the release", chunk_size_follows_the_release},
        {"a block table that is too short raises", block_table_that_is_too_short_raises},
        {"the first failing chunk decides up to 0.26", first_failing_chunk_decides_up_to_0_26},
        {"rank-local shard ids are zeros from 0.30 on", rank_local_shard_ids_are_zeros_from_0_30},
        {"a request without chunks is not checked", request_without_chunks_is_not_checked},
        {"a rank without caches has no segments", rank_without_caches_has_no_segments},
        {"whole blocks exist from 0.27 on and rank-local", whole_blocks_exist_from_0_27_and_rank_local},
        {"ranks without sense are refused", ranks_without_sense_are_refused},
        {"requests without sense are refused", requests_without_sense_are_refused},
        {"too many segments are refused", too_many_segments_are_refused},
        {"too many TP-sharded segments are refused", too_many_sharded_segments_are_refused},
        {"refused memory is reported and leaks nothing", refused_memory_is_reported_and_leaks_nothing},
        {NULL, NULL},
    };
    return moon_unit_main("ref/layout/segments", cases, argc, argv);
}
