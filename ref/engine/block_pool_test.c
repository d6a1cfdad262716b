/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the block pool: order of reuse, references, contents, reset, refused memory. */
#include "ref/engine/block_pool.h"

#include "ref/base/unit.h"

static const uint8_t hash_a[] = {1, 2, 3, 4}, hash_b[] = {1, 2, 3, 5};

static void blocks_come_in_order_and_never_block_0(void) {
    struct moon_block_pool pool;
    MOON_CHECK_INT(moon_block_pool_open(&pool, 4, moon_memory_heap()), 0);
    MOON_CHECK_INT(pool.free_count, 3);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 2);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 3);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 0);
    MOON_CHECK_INT(pool.free_count, 0);
    CU_ASSERT(!moon_block_pool_is_free(&pool, 0));
    moon_block_pool_close(&pool);
    moon_block_pool_close(&pool);
}

static void a_pool_of_the_null_block_alone_gives_nothing(void) {
    struct moon_block_pool pool;
    MOON_CHECK_INT(moon_block_pool_open(&pool, 1, moon_memory_heap()), 0);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 0);
    CU_ASSERT(moon_block_pool_reset(&pool));
    moon_block_pool_close(&pool);
}

static void nameless_blocks_go_to_the_head_in_the_order_given(void) {
    struct moon_block_pool pool;
    MOON_CHECK_INT(moon_block_pool_open(&pool, 6, moon_memory_heap()), 0);
    for (int i = 1; i <= 3; i++)
        MOON_CHECK_INT(moon_block_pool_take(&pool), i);
    const int64_t back[] = {3, 0, 1};
    moon_block_pool_release(&pool, back, 3);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 3);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 4);
    moon_block_pool_close(&pool);
}

static void named_blocks_go_to_the_tail_in_the_order_given(void) {
    struct moon_block_pool pool;
    MOON_CHECK_INT(moon_block_pool_open(&pool, 5, moon_memory_heap()), 0);
    for (int i = 1; i <= 3; i++)
        MOON_CHECK_INT(moon_block_pool_take(&pool), i);
    moon_block_pool_cache(&pool, 1, 0, hash_a, sizeof hash_a);
    moon_block_pool_cache(&pool, 2, 0, hash_b, sizeof hash_b);
    const int64_t back[] = {2, 3, 1}; /* 3 has no name */
    moon_block_pool_release(&pool, back, 3);
    const int64_t expected[] = {3, 4, 2, 1};
    for (size_t i = 0; i < 4; i++)
        MOON_CHECK_INT(moon_block_pool_take(&pool), expected[i]);
    moon_block_pool_close(&pool);
}

static void a_block_is_free_when_its_last_reference_is_back(void) {
    struct moon_block_pool pool;
    const int64_t one[] = {1};
    MOON_CHECK_INT(moon_block_pool_open(&pool, 3, moon_memory_heap()), 0);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    moon_block_pool_hold(&pool, one, 1);
    moon_block_pool_release(&pool, one, 1);
    CU_ASSERT(!moon_block_pool_is_free(&pool, 1));
    moon_block_pool_release(&pool, one, 1);
    CU_ASSERT(moon_block_pool_is_free(&pool, 1));
    MOON_CHECK_INT(pool.free_count, 2);
    moon_block_pool_close(&pool);
}

static void content_stays_until_its_block_is_handed_out(void) {
    struct moon_block_pool pool;
    const int64_t one[] = {1, 0};
    MOON_CHECK_INT(moon_block_pool_open(&pool, 3, moon_memory_heap()), 0);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    moon_block_pool_cache(&pool, 1, 0, hash_a, sizeof hash_a);
    moon_block_pool_cache(&pool, 0, 0, hash_a, sizeof hash_a); /* the null block has no content */
    moon_block_pool_release(&pool, one, 2);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 1);
    moon_block_pool_hold(&pool, one, 2); /* found again: it leaves the free queue */
    MOON_CHECK_INT(pool.free_count, 1);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 2);
    moon_block_pool_release(&pool, one, 2);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 0);
    moon_block_pool_close(&pool);
}

static void content_belongs_to_its_group(void) {
    struct moon_block_pool pool;
    MOON_CHECK_INT(moon_block_pool_open(&pool, 3, moon_memory_heap()), 0);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    moon_block_pool_cache(&pool, 1, 1, hash_a, sizeof hash_a);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 0);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 1, hash_a, sizeof hash_a - 1), 0);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 1, hash_b, sizeof hash_b), 0);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 1, hash_a, sizeof hash_a), 1);
    moon_block_pool_close(&pool);
}

static void of_equal_contents_the_oldest_is_found(void) {
    struct moon_block_pool pool;
    MOON_CHECK_INT(moon_block_pool_open(&pool, 40, moon_memory_heap()), 0);
    for (int i = 1; i < 40; i++) {
        MOON_CHECK_INT(moon_block_pool_take(&pool), i);
        if (i > 1)
            moon_block_pool_cache(&pool, i, 0, hash_a, sizeof hash_a);
    }
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 2);
    const int64_t two[] = {2};
    moon_block_pool_release(&pool, two, 1);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 2);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 3);
    const int64_t four[] = {4}; /* from the middle of the list */
    moon_block_pool_release(&pool, four, 1);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 4);
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 3);
    moon_block_pool_close(&pool);
}

static void a_reset_needs_all_blocks_free(void) {
    struct moon_block_pool pool;
    const int64_t one[] = {1};
    MOON_CHECK_INT(moon_block_pool_open(&pool, 3, moon_memory_heap()), 0);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 1);
    moon_block_pool_cache(&pool, 1, 0, hash_a, sizeof hash_a);
    CU_ASSERT(!moon_block_pool_reset(&pool));
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 1);
    moon_block_pool_release(&pool, one, 1);
    CU_ASSERT(moon_block_pool_reset(&pool));
    MOON_CHECK_INT(moon_block_pool_find(&pool, 0, hash_a, sizeof hash_a), 0);
    MOON_CHECK_INT(moon_block_pool_take(&pool), 2); /* the order of the queue stays */
    moon_block_pool_close(&pool);
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    for (uint64_t at = 1; at <= 3; at++) {
        struct moon_memory_failing failing;
        struct moon_block_pool pool;
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        MOON_CHECK_INT(moon_block_pool_open(&pool, 8, &failing.memory), at <= 2 ? MOON_ERR_MEMORY : 0);
        moon_block_pool_close(&pool);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"blocks come in order, and never block 0", blocks_come_in_order_and_never_block_0},
        {"a pool of the null block alone gives nothing", a_pool_of_the_null_block_alone_gives_nothing},
        {"blocks without content go to the head in the order given", nameless_blocks_go_to_the_head_in_the_order_given},
        {"blocks with content go to the tail in the order given", named_blocks_go_to_the_tail_in_the_order_given},
        {"a block is free when its last reference is back", a_block_is_free_when_its_last_reference_is_back},
        {"content stays until its block is handed out", content_stays_until_its_block_is_handed_out},
        {"content belongs to its group", content_belongs_to_its_group},
        {"of equal contents the oldest is found", of_equal_contents_the_oldest_is_found},
        {"a reset needs all blocks free", a_reset_needs_all_blocks_free},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("block pool", cases, argc, argv);
}
