/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of TP-sharded objects: every byte is the cell it should be, at each local TP size, written and read back. */
#include "ref/layout/segments.h"

#include "ref/base/unit.h"

#include <stdlib.h>

enum { LAYERS = 2, TOKENS = 3, BLOCKS = 4, CONTENT_BYTES = 16, CANARY = 0xC7, HEADS_MAX = 16 };
enum { OBJECT_BYTES_MAX = LAYERS * TOKENS * CONTENT_BYTES * HEADS_MAX };

static const struct moon_profile *newest(void) {
    return moon_profile_find("vllm-0.33", NULL);
}

/* The content of a cell says where it belongs: two numbers, one for K and one for V, that no other cell has. */
static uint8_t payload(struct moon_cell cell, uint64_t block) {
    uint64_t half = cell.content_byte / 8;
    uint64_t number =
        (block + 1) << 48 | (cell.layer + 1) << 40 | (cell.head + 1) << 24 | (cell.token + 1) << 8 | (half + 1);
    return (uint8_t)(number >> (8 * (cell.content_byte % 8)));
}

/* One rank: caches with an offset in their storages and a gap after each block, in memory. */
struct rank {
    struct moon_arena arena;
    struct moon_shards shards;
    struct moon_tensor caches[LAYERS];
    uint64_t storage_bytes[LAYERS];
    uint8_t *memory[LAYERS];
    struct moon_segments segments;
};

static struct moon_tensor cache_of(const struct moon_shards *shards, size_t layer) {
    uint64_t heads = shards->total_heads / shards->local_tp, gap = 5 * layer;
    bool head_outside = shards->format == MOON_STORE_SHARDED_LBHNC;
    struct moon_tensor cache = {.storage = layer, .offset_bytes = 7 * layer, .dimensions = 4, .item_bytes = 1};
    uint64_t shape[] = {BLOCKS, heads, TOKENS, CONTENT_BYTES};
    uint64_t strides[] = {heads * TOKENS * CONTENT_BYTES + gap, head_outside ? TOKENS * CONTENT_BYTES : CONTENT_BYTES,
                          head_outside ? CONTENT_BYTES : heads * CONTENT_BYTES, 1};
    memcpy(cache.shape, shape, sizeof shape);
    memcpy(cache.strides, strides, sizeof strides);
    return cache;
}

static void rank_open(struct rank *rank, struct moon_shards shards) {
    *rank = (struct rank){.shards = shards};
    moon_arena_open(&rank->arena, moon_memory_heap());
    for (size_t layer = 0; layer < LAYERS; layer++) {
        rank->caches[layer] = cache_of(&shards, layer);
        rank->storage_bytes[layer] = rank->caches[layer].offset_bytes + BLOCKS * rank->caches[layer].strides[0];
        rank->memory[layer] = malloc(rank->storage_bytes[layer]);
        memset(rank->memory[layer], CANARY, rank->storage_bytes[layer]);
    }
    struct moon_rank_caches caches = {newest(), rank->storage_bytes, LAYERS, rank->caches, LAYERS, BLOCKS, TOKENS};
    MOON_CHECK_INT(moon_segments_build(&rank->arena, &caches, &rank->shards, &rank->segments, NULL), MOON_OK);
}

static void rank_close(struct rank *rank) {
    for (size_t layer = 0; layer < LAYERS; layer++)
        free(rank->memory[layer]);
    moon_arena_close(&rank->arena);
}

static uint8_t *cell_memory(struct rank *rank, uint64_t block, struct moon_cell local) {
    const struct moon_tensor *cache = &rank->caches[local.layer];
    return rank->memory[local.layer] + cache->offset_bytes + block * cache->strides[0] +
           local.head * cache->strides[1] + local.token * cache->strides[2] + local.content_byte;
}

/* Calls for every byte of the rank's caches that is content; `local` counts heads from the rank's first. */
static void for_each_cell(struct rank *rank, uint64_t block,
                          void (*visit)(uint8_t *, struct moon_cell, uint64_t, unsigned *), unsigned *wrong) {
    uint64_t heads = rank->shards.total_heads / rank->shards.local_tp;
    for (uint64_t n = 0; n < LAYERS * heads * TOKENS * CONTENT_BYTES; n++) {
        struct moon_cell local = {n % LAYERS, n / LAYERS % heads, n / LAYERS / heads % TOKENS,
                                  n / LAYERS / heads / TOKENS};
        uint8_t *byte = cell_memory(rank, block, local);
        struct moon_cell global = local;
        global.head += rank->shards.tp_rank * heads;
        visit(byte, global, block, wrong);
    }
}

static void write_cell(uint8_t *byte, struct moon_cell cell, uint64_t block, unsigned *wrong) {
    (void)wrong;
    *byte = payload(cell, block);
}

/* The block read back is the one that was written as block 2; what was right becomes canary, so that the rest can be
 * checked. */
static void compare_cell(uint8_t *byte, struct moon_cell cell, uint64_t block, unsigned *wrong) {
    (void)block;
    *wrong += *byte != payload(cell, 2);
    *byte = CANARY;
}

/* Copies one object between the rank's memory and `object`. Returns its length. */
static size_t move_object(struct rank *rank, uint64_t block, uint64_t shard, uint8_t *object, bool put) {
    struct moon_buffer buffers[LAYERS * TOKENS];
    uint64_t block_ids[1], table[] = {0, block};
    int64_t shard_ids[] = {(int64_t)shard};
    struct moon_token_range chunk = {TOKENS, UINT64_C(2) * TOKENS};
    struct moon_segment_request request = {TOKENS, TOKENS, &chunk, 1, table, 2, shard_ids, 1};
    MOON_CHECK_INT(moon_segments_list(&rank->segments, &request, buffers, block_ids, NULL), MOON_OK);
    MOON_CHECK_INT(block_ids[0], block);
    size_t length = 0;
    for (size_t i = 0; i < rank->segments.per_chunk; i++) {
        uint8_t *at = rank->memory[buffers[i].storage] + buffers[i].offset_bytes;
        MOON_CHECK_INT(moon_buffer_overrun_bytes(&rank->segments, &buffers[i]), 0);
        if (put)
            memcpy(object + length, at, buffers[i].size_bytes);
        else
            memcpy(at, object + length, buffers[i].size_bytes);
        length += buffers[i].size_bytes;
    }
    return length;
}

/* Writes all shards of block 2 from all ranks of one TP size; counts bytes that are not the cell they should be. */
static void write_all(struct moon_shards shards, uint8_t store[][OBJECT_BYTES_MAX], unsigned *wrong) {
    uint64_t object_bytes;
    MOON_CHECK_INT(moon_shards_object_bytes(&shards, LAYERS, CONTENT_BYTES, &object_bytes, NULL), MOON_OK);
    for (shards.tp_rank = 0; shards.tp_rank < shards.local_tp; shards.tp_rank++) {
        struct rank rank;
        rank_open(&rank, shards);
        for_each_cell(&rank, 2, write_cell, wrong);
        for (uint64_t s = 0; s < moon_shards_per_rank(&shards); s++) {
            uint64_t shard = moon_shards_first(&shards) + s;
            *wrong += move_object(&rank, 2, shard, store[shard], true) != object_bytes;
            for (uint64_t at = 0; at < object_bytes; at++)
                *wrong += store[shard][at] != payload(moon_shards_cell(&shards, CONTENT_BYTES, shard, at), 2);
        }
        rank_close(&rank);
    }
}

/* Reads all shards into block 1 of canary-filled ranks of one TP size; counts wrong bytes and touched neighbours. */
static void read_all(struct moon_shards shards, uint8_t store[][OBJECT_BYTES_MAX], unsigned *wrong) {
    for (shards.tp_rank = 0; shards.tp_rank < shards.local_tp; shards.tp_rank++) {
        struct rank rank;
        rank_open(&rank, shards);
        for (uint64_t s = 0; s < moon_shards_per_rank(&shards); s++)
            move_object(&rank, 1, moon_shards_first(&shards) + s, store[moon_shards_first(&shards) + s], false);
        for_each_cell(&rank, 1, compare_cell, wrong);
        for (size_t layer = 0; layer < LAYERS; layer++)
            for (uint64_t at = 0; at < rank.storage_bytes[layer]; at++)
                *wrong += rank.memory[layer][at] != CANARY;
        rank_close(&rank);
    }
}

static void check_all_sizes(enum moon_store_format format) {
    static uint8_t store[HEADS_MAX][OBJECT_BYTES_MAX];
    unsigned wrong = 0, pairs = 0, refused = 0;
    for (uint64_t heads = 1; heads <= HEADS_MAX; heads++)
        for (uint64_t store_tp = 1; store_tp <= 16; store_tp++)
            for (uint64_t writer_tp = 1; writer_tp <= 16; writer_tp++) {
                struct moon_shards writer = {format, heads, store_tp, writer_tp, 0, TOKENS};
                if (moon_shards_check(&writer, NULL)) {
                    wrong += heads % store_tp == 0 && store_tp % writer_tp == 0;
                    refused++;
                    continue;
                }
                write_all(writer, store, &wrong);
                for (uint64_t reader_tp = 1; reader_tp <= store_tp; reader_tp++) {
                    struct moon_shards reader = writer;
                    reader.local_tp = reader_tp;
                    if (store_tp % reader_tp == 0) {
                        read_all(reader, store, &wrong);
                        pairs++;
                    }
                }
            }
    MOON_CHECK_INT(wrong, 0);
    MOON_CHECK_INT(pairs, 314);
    MOON_CHECK_INT(refused, 16 * 16 * 16 - 110);
}

static void lbhnc_objects_do_not_depend_on_local_tp(void) {
    check_all_sizes(MOON_STORE_SHARDED_LBHNC);
}

static void lbnhc_objects_do_not_depend_on_local_tp(void) {
    check_all_sizes(MOON_STORE_SHARDED_LBNHC);
}

static void formats_agree_only_with_one_head_a_shard(void) {
    for (uint64_t store_tp = 1; store_tp <= 8; store_tp *= 2) {
        struct moon_shards a = {MOON_STORE_SHARDED_LBHNC, 8, store_tp, 1, 0, TOKENS}, b = a;
        b.format = MOON_STORE_SHARDED_LBNHC;
        uint64_t bytes;
        bool same = true;
        moon_shards_object_bytes(&a, LAYERS, CONTENT_BYTES, &bytes, NULL);
        for (uint64_t at = 0; at < bytes; at++) {
            struct moon_cell x = moon_shards_cell(&a, CONTENT_BYTES, 0, at),
                             y = moon_shards_cell(&b, CONTENT_BYTES, 0, at);
            same &= memcmp(&x, &y, sizeof x) == 0;
        }
        MOON_CHECK_INT(same, store_tp == 8);
    }
}

/* The block of a rank whose one head is `head`, as a rank-local object. */
static size_t rank_local_object(const char *profile, uint64_t head, uint8_t *object) {
    struct rank rank = {.shards = {MOON_STORE_SHARDED_LBHNC, 1, 1, 1, 0, TOKENS}};
    uint8_t memory[LAYERS][BLOCKS * TOKENS * CONTENT_BYTES];
    moon_arena_open(&rank.arena, moon_memory_heap());
    for (size_t layer = 0; layer < LAYERS; layer++) {
        rank.caches[layer] = cache_of(&rank.shards, 0);
        rank.caches[layer].storage = layer;
        rank.storage_bytes[layer] = sizeof memory[layer];
        for (uint64_t at = 0; at < sizeof memory[layer]; at++) {
            struct moon_cell cell = {layer, head, at / CONTENT_BYTES % TOKENS, at % CONTENT_BYTES};
            memory[layer][at] = payload(cell, at / CONTENT_BYTES / TOKENS);
        }
    }
    struct moon_rank_caches caches = {
        moon_profile_find(profile, NULL), rank.storage_bytes, LAYERS, rank.caches, LAYERS, BLOCKS, TOKENS};
    struct moon_buffer buffers[LAYERS];
    uint64_t block_ids[1], table[] = {2};
    int64_t shard_ids[] = {0};
    struct moon_token_range chunk = {0, TOKENS};
    struct moon_segment_request request = {TOKENS, TOKENS, &chunk, 1, table, 1, shard_ids, 1};
    MOON_CHECK_INT(moon_segments_build(&rank.arena, &caches, NULL, &rank.segments, NULL), MOON_OK);
    MOON_CHECK_INT(rank.segments.per_chunk, LAYERS);
    MOON_CHECK_INT(moon_segments_list(&rank.segments, &request, buffers, block_ids, NULL), MOON_OK);
    size_t length = 0;
    for (size_t i = 0; i < LAYERS; i++) {
        memcpy(object + length, memory[buffers[i].storage] + buffers[i].offset_bytes, buffers[i].size_bytes);
        length += buffers[i].size_bytes;
    }
    moon_arena_close(&rank.arena);
    return length;
}

static void replicas_of_a_head_write_equal_objects(void) {
    static const char *const profiles[] = {"vllm-0.21", "vllm-0.24", "vllm-0.33"};
    enum { TP_MAX = 16, BYTES = LAYERS * TOKENS * CONTENT_BYTES };
    for (size_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++)
        for (uint64_t heads = 1; heads <= 4; heads++)
            for (uint64_t tp = heads; tp <= TP_MAX; tp += heads) {
                uint8_t objects[TP_MAX][BYTES];
                uint64_t replicas = tp / heads, wrong = 0;
                for (uint64_t r = 0; r < tp; r++)
                    wrong += rank_local_object(profiles[p], r / replicas, objects[r]) != BYTES;
                for (uint64_t r = 0; r < tp; r++)
                    for (uint64_t q = 0; q < tp; q++)
                        wrong += (memcmp(objects[r], objects[q], BYTES) == 0) != (r / replicas == q / replicas);
                MOON_CHECK_INT(wrong, 0);
            }
}

static void places_without_sense_are_refused(void) {
    const struct moon_shards good = {MOON_STORE_SHARDED_LBHNC, 8, 4, 2, 1, 16};
    MOON_CHECK_INT(moon_shards_check(&good, NULL), MOON_OK);
    struct moon_shards bad[7];
    for (size_t i = 0; i < 7; i++)
        bad[i] = good;
    bad[0].format = MOON_STORE_MQA;
    bad[1].tp_rank = 2;
    bad[2].store_tp = 3;
    bad[3].total_heads = 6;
    bad[4].block_size_tokens = 0;
    bad[5].local_tp = 0;
    bad[6].total_heads = MOON_TENSOR_NUMBER_MAX + 4;
    for (size_t i = 0; i < 7; i++)
        MOON_CHECK_INT(moon_shards_check(&bad[i], NULL), MOON_ERR_RANGE);
    uint64_t bytes;
    struct moon_shards large = {MOON_STORE_SHARDED_LBHNC, MOON_TENSOR_NUMBER_MAX, 1, 1, 0, MOON_TENSOR_NUMBER_MAX};
    MOON_CHECK_INT(moon_shards_check(&large, NULL), MOON_OK);
    MOON_CHECK_INT(moon_shards_object_bytes(&large, 1, 1, &bytes, NULL), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_shards_object_bytes(&good, UINT64_MAX, 2, &bytes, NULL), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_shards_object_bytes(&good, UINT64_MAX, 1, &bytes, NULL), MOON_ERR_RANGE);
}

static void accept_says(struct moon_tensor cache, const struct moon_shards *shards, const char *message) {
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_shards_accept(shards, &cache, BLOCKS, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "ValueError");
    MOON_CHECK_TEXT(error.message, message);
}

static void shape_is_judged_before_strides(void) {
    static const char text[] = "TP-shared Mooncake store requires packed KV caches with logical shape (num_blocks, "
                               "local_kv_heads, block_size, content)";
    struct moon_shards shards = {MOON_STORE_SHARDED_LBHNC, 4, 2, 1, 0, TOKENS};
    struct moon_tensor good = cache_of(&shards, 1), bad;
    MOON_CHECK_INT(moon_shards_accept(&shards, &good, BLOCKS, NULL), MOON_OK);
    for (unsigned d = 0; d < 3; d++) {
        bad = good;
        bad.shape[d]++;
        bad.strides[3] = 2; /* wrong as well */
        accept_says(bad, &shards, text);
    }
    bad = good;
    bad.dimensions = 5;
    accept_says(bad, &shards, text);
}

static void strides_are_exact_even_of_size_one_dimensions(void) {
    static const char lbhnc[] = "TP-shared Mooncake store requires packed tp_shared_lbhnc KV layout";
    static const char lbnhc[] = "TP-shared Mooncake store requires packed tp_shared_lbnhc KV layout";
    struct moon_shards shards = {MOON_STORE_SHARDED_LBHNC, 2, 2, 2, 0, TOKENS};
    struct moon_tensor good = cache_of(&shards, 1), bad;
    for (unsigned d = 1; d < 4; d++) { /* one local head: dimension 1 has size 1 */
        bad = good;
        bad.strides[d] += 1;
        accept_says(bad, &shards, lbhnc);
    }
    bad = good;
    bad.strides[0] += 100;
    MOON_CHECK_INT(moon_shards_accept(&shards, &bad, BLOCKS, NULL), MOON_OK);
    shards.format = MOON_STORE_SHARDED_LBNHC;
    accept_says(good, &shards, lbnhc);
    good = cache_of(&shards, 1);
    MOON_CHECK_INT(moon_shards_accept(&shards, &good, BLOCKS, NULL), MOON_OK);
    for (unsigned d = 1; d < 4; d++) {
        bad = good;
        bad.strides[d] += 1;
        accept_says(bad, &shards, lbnhc);
    }
}

/* One request of a rank that owns shards 2 and 3. */
static int ask(struct rank *rank, struct moon_token_range chunk, size_t chunks, int64_t shard, size_t shards,
               size_t blocks, struct moon_error *error) {
    struct moon_token_range ranges[] = {chunk, {0, TOKENS}};
    uint64_t table[] = {1, 0}, block_ids[2];
    int64_t shard_ids[] = {shard, 3};
    struct moon_buffer buffers[2 * LAYERS * TOKENS];
    struct moon_segment_request request = {TOKENS, TOKENS, ranges, chunks, table, blocks, shard_ids, shards};
    return moon_segments_list(&rank->segments, &request, buffers, block_ids, error);
}

static void request_is_judged_in_order(void) {
    const struct moon_token_range good = {0, TOKENS}, shorter = {0, TOKENS - 1}, longer = {0, UINT64_C(2) * TOKENS},
                                  second = {TOKENS, 6};
    struct rank rank;
    rank_open(&rank, (struct moon_shards){MOON_STORE_SHARDED_LBNHC, 4, 4, 2, 1, TOKENS});
    struct moon_error error = {0};
    MOON_CHECK_INT(ask(&rank, good, 1, 2, 1, 2, &error), MOON_OK);
    MOON_CHECK_INT(ask(&rank, shorter, 0, 9, 5, 0, &error), MOON_OK); /* no chunks: no checks */
    MOON_CHECK_INT(ask(&rank, shorter, 2, 9, 1, 0, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "Each Store chunk must have one shard ID");
    MOON_CHECK_INT(ask(&rank, shorter, 2, 9, 2, 0, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "TP-shared Mooncake store requires full KV blocks");
    MOON_CHECK_INT(ask(&rank, longer, 2, 2, 2, 2, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "TP-shared Mooncake store requires full KV blocks");
    static const int64_t foreign[] = {1, 4, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        MOON_CHECK_INT(ask(&rank, good, 2, foreign[i], 2, 0, &error), MOON_ERR_REFUSED);
        MOON_CHECK_TEXT(error.message, "Store shard is not owned by this TP rank");
        MOON_CHECK_TEXT(error.type, "ValueError");
    }
    MOON_CHECK_INT(ask(&rank, second, 1, 2, 1, 1, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "IndexError");
    rank_close(&rank);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"LBHNC objects do not depend on the local TP size, for all heads and sizes to 16",
         lbhnc_objects_do_not_depend_on_local_tp},
        {"LBNHC objects do not depend on the local TP size, for all heads and sizes to 16",
         lbnhc_objects_do_not_depend_on_local_tp},
        {"the two formats agree only with one head a shard", formats_agree_only_with_one_head_a_shard},
        {"replicas of a head write equal objects, other heads different ones", replicas_of_a_head_write_equal_objects},
        {"places without sense are refused", places_without_sense_are_refused},
        {"the shape of a cache is judged before its strides", shape_is_judged_before_strides},
        {"strides are exact, even of dimensions of size 1", strides_are_exact_even_of_size_one_dimensions},
        {"a request is judged in order", request_is_judged_in_order},
        {NULL, NULL},
    };
    return moon_unit_main("ref/layout/segments_shared", cases, argc, argv);
}
