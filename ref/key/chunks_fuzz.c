/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of chunk lists: any numbers; chunks come in order, do not overlap, and name hashes that exist. */
#include "ref/key/chunks.h"

#include "ref/base/cursor.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 0 or more: mostly small, the first byte decides. */
static int64_t number(struct moon_cursor *input) {
    uint8_t kind = moon_cursor_u8(input);
    if (kind < 200)
        return kind % 50;
    return kind < 240 ? moon_cursor_u16_le(input) : (int64_t)(moon_cursor_u64_le(input) >> 1);
}

static int64_t positive(int64_t value) {
    return value > 0 ? value : 1;
}

static void check_walk(struct moon_chunk_walk *walk) {
    const struct moon_chunk_query *query = &walk->query;
    struct moon_chunk chunk, before = {.id = -1};
    while (moon_chunk_walk_next(walk, &chunk)) {
        assert(chunk.id > before.id && chunk.start_tokens >= before.end_tokens);
        assert(chunk.start_tokens >= query->mask_num && chunk.start_tokens < chunk.end_tokens);
        assert(chunk.end_tokens <= query->token_len && chunk.end_tokens - chunk.start_tokens <= query->block_size);
        assert(chunk.first_hash >= 0 && chunk.hash_count >= 1);
        assert(chunk.first_hash + chunk.hash_count <= query->hash_count);
        assert(chunk.id % query->put_step == query->put_step_rank);
        before = chunk;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { MASK_MAX = 64 };
    struct moon_cursor input;
    struct moon_chunk_walk walk;
    bool mask[MASK_MAX];
    size_t count;
    moon_cursor_open(&input, data, size);
    const struct moon_profile *all = moon_profiles(&count), *profile = &all[moon_cursor_u8(&input) % count];
    struct moon_chunk_query query = {.block_size = positive(number(&input))};
    query.hash_block_size =
        positive(moon_cursor_u8(&input) % 4 ? query.block_size / (1 + moon_cursor_u8(&input) % 8) : number(&input));
    query.hash_count = moon_cursor_u16_le(&input) % 4096;
    query.token_len = moon_cursor_u8(&input) % 2 ? number(&input) : 0;
    if (query.token_len == 0 && __builtin_mul_overflow(query.hash_count, query.hash_block_size, &query.token_len))
        query.token_len = INT64_MAX;
    query.mask_num = number(&input);
    query.put_step = 1 + number(&input) % 1000;
    query.put_step_rank = number(&input) % query.put_step;
    query.mask_count = moon_cursor_u8(&input) % MASK_MAX;
    for (int64_t i = 0; i < query.mask_count; i++)
        mask[i] = moon_cursor_u8(&input) % 2;
    query.mask = moon_cursor_u8(&input) % 2 ? mask : NULL;
    struct moon_error error;
    if (moon_chunk_walk_open(&walk, profile, &query, &error) == 0)
        check_walk(&walk);
    else
        assert(error.status == MOON_ERR_REFUSED && error.type[0]);
    return 0;
}
