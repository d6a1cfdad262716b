/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of chunk lists: bounds, masks, stripes and hashes by release, and what the releases refuse. */
#include "ref/key/chunks.h"

#include "ref/base/unit.h"

enum { OUT_BYTES = 2048 };

/* Lists chunks as "id:start-end/first+count ...", or "Class: message". */
static const char *list(char out[OUT_BYTES], const char *profile, struct moon_chunk_query query) {
    struct moon_chunk_walk walk;
    struct moon_chunk chunk;
    struct moon_error error = {0};
    size_t used = 0;
    out[0] = '\0';
    if (query.put_step == 0)
        query.put_step = 1;
    if (moon_chunk_walk_open(&walk, moon_profile_find(profile, NULL), &query, &error) != 0) {
        MOON_CHECK_INT(error.status, MOON_ERR_REFUSED);
        snprintf(out, OUT_BYTES, "%s: %s", error.type, error.message);
        return out;
    }
    while (moon_chunk_walk_next(&walk, &chunk))
        used += (size_t)snprintf(out + used, OUT_BYTES - used, "%s%lld:%lld-%lld/%lld+%lld", used ? " " : "",
                                 (long long)chunk.id, (long long)chunk.start_tokens, (long long)chunk.end_tokens,
                                 (long long)chunk.first_hash, (long long)chunk.hash_count);
    CU_ASSERT_FALSE(moon_chunk_walk_next(&walk, &chunk)); /* stays at the end */
    return out;
}

#define QUERY(block, hash_block, tokens, hashes, ...)                                                                  \
    (struct moon_chunk_query) {                                                                                        \
        .block_size = (block), .hash_block_size = (hash_block), .token_len = (tokens), .hash_count = (hashes),         \
        __VA_ARGS__                                                                                                    \
    }

static void plain_chunks_cover_the_prompt(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 48, 3, .mask_num = 0)), "0:0-16/0+1 1:16-32/1+1 2:32-48/2+1");
    MOON_CHECK_TEXT(list(out, "0.21", QUERY(16, 16, 48, 3, .mask_num = 0)), "0:0-16/0+1 1:16-32/1+1 2:32-48/2+1");
}

static void the_hash_block_of_021_is_the_block(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.21", QUERY(32, 5, 64, 2, .mask_num = 0)), "0:0-32/0+1 1:32-64/1+1");
}

static void coarse_chunks_take_the_last_hash_or_all(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.22", QUERY(32, 16, 64, 4, .mask_num = 0)), "0:0-32/0+2 1:32-64/2+2");
    MOON_CHECK_TEXT(list(out, "0.24", QUERY(32, 16, 64, 4, .mask_num = 0)), "0:0-32/1+1 1:32-64/3+1");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(32, 16, 64, 5, .mask_num = 0)), "0:0-32/1+1 1:32-64/3+1");
}

static void a_cut_chunk_is_keyed_by_release(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.27", QUERY(32, 16, 48, 4, .mask_num = 0)), "0:0-32/1+1 1:32-48/2+1");
    MOON_CHECK_TEXT(list(out, "0.26", QUERY(32, 16, 48, 4, .mask_num = 0)), "0:0-32/1+1 1:32-48/3+1");
    MOON_CHECK_TEXT(list(out, "0.26", QUERY(32, 16, 48, 3, .mask_num = 0)), "0:0-32/1+1");
    MOON_CHECK_TEXT(list(out, "0.23", QUERY(32, 16, 35, 4, .mask_num = 0)), "0:0-32/0+2 1:32-35/2+2");
}

static void old_lists_end_with_the_hashes(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.26", QUERY(16, 16, 64, 2, .mask_num = 0)), "0:0-16/0+1 1:16-32/1+1");
    MOON_CHECK_TEXT(list(out, "0.26", QUERY(16, 16, 16, 9, .mask_num = 0)), "0:0-16/0+1");
}

static void new_lists_refuse_tokens_without_hashes(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.27", QUERY(16, 16, 64, 3, .mask_num = 0)), "AssertionError: ");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 35, 3, .mask_num = 0)), "AssertionError: ");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 35, 0, .mask_num = 0)), "");
}

static void a_block_must_be_a_multiple_of_the_hash_block(void) {
    char out[OUT_BYTES];
    const char *text = "ValueError: block_size (24) must be a multiple of hash_block_size (16)";
    MOON_CHECK_TEXT(list(out, "0.22", QUERY(24, 16, 48, 3, .mask_num = 0)), text);
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(24, 16, 48, 0, .mask_num = 0)), text);
    MOON_CHECK_TEXT(list(out, "0.21", QUERY(24, 16, 48, 2, .mask_num = 0)), "0:0-24/0+1 1:24-48/1+1");
}

static void skipped_tokens_round_up_to_a_chunk(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 48, 3, .mask_num = 1)), "1:16-32/1+1 2:32-48/2+1");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 48, 3, .mask_num = 16)), "1:16-32/1+1 2:32-48/2+1");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 48, 3, .mask_num = 33)), "");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 48, 3, .mask_num = INT64_MAX)), "");
}

static void a_mask_begins_at_the_first_chunk_and_ends_the_list(void) {
    char out[OUT_BYTES];
    static const bool mask[] = {false, true};
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 64, 4, .mask_num = 16, .mask = mask, .mask_count = 2)),
                    "2:32-48/2+1");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 32, 2, .mask_num = 16, .mask = mask, .mask_count = 2)), "");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 64, 4, .mask_num = 0, .mask = mask, .mask_count = 0)), "");
}

static void stripes_count_from_token_zero(void) {
    char out[OUT_BYTES];
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 96, 6, .mask_num = 17, .put_step = 3, .put_step_rank = 2)),
                    "2:32-48/2+1 5:80-96/5+1");
    MOON_CHECK_TEXT(list(out, "0.33", QUERY(16, 16, 96, 6, .mask_num = 0, .put_step = 3, .put_step_rank = 3)), "");
}

static void large_numbers_do_not_overflow(void) {
    char out[OUT_BYTES];
    int64_t huge = INT64_MAX / 2 + 1;
    MOON_CHECK_TEXT(list(out, "0.26", QUERY(huge, huge, INT64_MAX, 2, .mask_num = 0)),
                    "0:0-4611686018427387904/0+1 1:4611686018427387904-9223372036854775807/1+1");
    MOON_CHECK_INT(moon_ceil_divide(INT64_MAX, 2), INT64_MAX / 2 + 1);
    MOON_CHECK_INT(moon_ceil_divide(0, 7), 0);
}

static void a_key_ends_with_the_digests_in_hex(void) {
    uint8_t bytes[4 * 16];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i / 16 * 0x11 + 0xa0);
    const struct moon_hashes hashes = {bytes, 16, 4};
    const struct moon_chunk chunk = {.first_hash = 2, .hash_count = 2};
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_chunk_key(moon_profile_find("0.33", NULL), &(struct moon_pool_key){.model_name = moon_key_text("m")}, &hashes,
                   &chunk, &out);
    MOON_CHECK_TEXT(moon_text_value(&out), "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@"
                                           "c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2c2d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3d3");
    moon_text_close(&out);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"plain chunks cover the prompt", plain_chunks_cover_the_prompt},
        {"0.21 knows no hash block", the_hash_block_of_021_is_the_block},
        {"a coarse chunk is keyed by all its hashes in 0.22 and 0.23, later by the last",
         coarse_chunks_take_the_last_hash_or_all},
        {"a chunk that is cut short is keyed by its own end from 0.27 on", a_cut_chunk_is_keyed_by_release},
        {"up to 0.26 the list ends where hashes end", old_lists_end_with_the_hashes},
        {"from 0.27 on tokens without hashes are refused", new_lists_refuse_tokens_without_hashes},
        {"a block that is no multiple of the hash block is refused", a_block_must_be_a_multiple_of_the_hash_block},
        {"skipped tokens round up to a chunk", skipped_tokens_round_up_to_a_chunk},
        {"a mask begins at the first listed chunk and ends the list",
         a_mask_begins_at_the_first_chunk_and_ends_the_list},
        {"stripes count chunks from token zero", stripes_count_from_token_zero},
        {"numbers at the end of the range do not overflow", large_numbers_do_not_overflow},
        {"a key ends with the digests in hex", a_key_ends_with_the_digests_in_hex},
        {NULL, NULL}};
    return moon_unit_main("chunks", cases, argc, argv);
}
