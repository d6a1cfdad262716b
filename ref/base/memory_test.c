/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the heap, of memory that refuses, and of the arena. */
#include "ref/base/memory.h"
#include "ref/base/unit.h"

static void the_heap_keeps_content_and_frees(void) {
    struct moon_memory *heap = moon_memory_heap();
    CU_ASSERT_PTR_EQUAL(heap, moon_memory_heap());
    char *piece = heap->resize(heap, NULL, 0, 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    memcpy(piece, "abc", 4);
    piece = heap->resize(heap, piece, 4, 100000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    MOON_CHECK_TEXT(piece, "abc");
    CU_ASSERT_PTR_NULL(heap->resize(heap, piece, 100000, 0));
}

static void failing_memory_refuses_the_nth_request_and_all_later_ones(void) {
    struct moon_memory_failing failing;
    moon_memory_failing_init(&failing, moon_memory_heap(), 2);
    struct moon_memory *memory = &failing.memory;
    char *piece = memory->resize(memory, NULL, 0, 10);
    CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
    CU_ASSERT_PTR_NULL(memory->resize(memory, piece, 10, 20));
    CU_ASSERT_PTR_NULL(memory->resize(memory, NULL, 0, 1));
    MOON_CHECK_INT(failing.requests, 3);
    MOON_CHECK_INT(failing.held_bytes, 10);
    memory->resize(memory, piece, 10, 0);
    MOON_CHECK_INT(failing.held_bytes, 0);
    MOON_CHECK_INT(failing.requests, 3);
}

static void failing_memory_counts_what_is_held(void) {
    struct moon_memory_failing failing;
    moon_memory_failing_init(&failing, moon_memory_heap(), 0);
    struct moon_memory *memory = &failing.memory;
    char *a = memory->resize(memory, NULL, 0, 10), *b = memory->resize(memory, NULL, 0, 5);
    MOON_CHECK_INT(failing.held_bytes, 15);
    a = memory->resize(memory, a, 10, 100);
    MOON_CHECK_INT(failing.held_bytes, 105);
    a = memory->resize(memory, a, 100, 1);
    MOON_CHECK_INT(failing.held_bytes, 6);
    memory->resize(memory, a, 1, 0);
    memory->resize(memory, b, 5, 0);
    memory->resize(memory, NULL, 0, 0);
    MOON_CHECK_INT(failing.held_bytes, 0);
}

static void a_refusal_from_below_is_passed_on(void) {
    struct moon_memory_failing below, above;
    moon_memory_failing_init(&below, moon_memory_heap(), 1);
    moon_memory_failing_init(&above, &below.memory, 0);
    CU_ASSERT_PTR_NULL(above.memory.resize(&above.memory, NULL, 0, 8));
    MOON_CHECK_INT(above.held_bytes, 0);
}

static void pieces_are_zeroed_aligned_and_apart(void) {
    struct moon_memory_failing counting;
    struct moon_arena arena;
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    moon_arena_open(&arena, &counting.memory);
    for (int round = 0; round < 2; round++) {
        unsigned char *before = NULL;
        size_t handed_out = 0;
        for (size_t bytes = 0; bytes < 3000; bytes += 7) {
            unsigned char *piece = moon_arena_alloc(&arena, bytes);
            CU_ASSERT_PTR_NOT_NULL_FATAL(piece);
            CU_ASSERT((uintptr_t)piece % 16 == 0);
            CU_ASSERT(piece != before);
            unsigned seen = 0;
            for (size_t i = 0; i < bytes; i++)
                seen |= piece[i];
            MOON_CHECK_INT(seen, 0);
            memset(piece, 0xFF, bytes);
            before = piece;
            handed_out += ((bytes ? bytes : 1) + 15) / 16 * 16;
        }
        MOON_CHECK_INT(arena.used_bytes, handed_out);
        moon_arena_close(&arena);
        moon_arena_close(&arena);
        MOON_CHECK_INT(arena.used_bytes, 0);
        MOON_CHECK_INT(counting.held_bytes, 0);
    }
}

static void small_pieces_share_chunks_beside_large_ones(void) {
    struct moon_memory_failing counting;
    struct moon_arena arena;
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    moon_arena_open(&arena, &counting.memory);
    for (int i = 0; i < 10; i++) {
        char *large = moon_arena_alloc(&arena, 3 << 20);
        char *small = moon_arena_alloc(&arena, 100);
        CU_ASSERT_PTR_NOT_NULL_FATAL(large);
        CU_ASSERT_PTR_NOT_NULL_FATAL(small);
        large[(3 << 20) - 1] = small[99] = 1;
    }
    CU_ASSERT(counting.requests <= 11);
    CU_ASSERT(counting.held_bytes < 11u * (3u << 20));
    uint64_t before = counting.requests;
    for (int i = 0; i < 100000; i++)
        moon_arena_alloc(&arena, 100);
    CU_ASSERT(counting.requests - before < 20);
    moon_arena_close(&arena);
    MOON_CHECK_INT(counting.held_bytes, 0);
}

static void an_array_grows_by_doubling_and_keeps_its_elements(void) {
    struct moon_memory_failing counting;
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    size_t capacity = 0;
    int *array = moon_memory_grow(&counting.memory, NULL, &capacity, 1, sizeof *array, 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(array);
    MOON_CHECK_INT(capacity, 4);
    for (int i = 0; i < 4; i++)
        array[i] = i + 1;
    CU_ASSERT(moon_memory_grow(&counting.memory, array, &capacity, 4, sizeof *array, 4) == array);
    MOON_CHECK_INT(counting.requests, 1);
    array = moon_memory_grow_zeroed(&counting.memory, array, &capacity, 9, sizeof *array, 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(array);
    MOON_CHECK_INT(capacity, 16);
    for (int i = 0; i < 16; i++)
        MOON_CHECK_INT(array[i], i < 4 ? i + 1 : 0);
    counting.fail_at = 1; /* refused: nothing changes */
    CU_ASSERT_PTR_NULL(moon_memory_grow_zeroed(&counting.memory, array, &capacity, 17, sizeof *array, 4));
    MOON_CHECK_INT(capacity, 16);
    MOON_CHECK_INT(array[3], 4);
    CU_ASSERT_PTR_NULL(moon_memory_grow(moon_memory_heap(), array, &capacity, SIZE_MAX, sizeof *array, 4));
    CU_ASSERT_PTR_NULL(moon_memory_grow(moon_memory_heap(), array, &capacity, SIZE_MAX / 2, sizeof *array, 4));
    MOON_CHECK_INT(capacity, 16);
    counting.memory.resize(&counting.memory, array, capacity * sizeof *array, 0);
    MOON_CHECK_INT(counting.held_bytes, 0);
}

static void sizes_that_overflow_are_refused(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    CU_ASSERT_PTR_NULL(moon_arena_alloc(&arena, SIZE_MAX));
    CU_ASSERT_PTR_NULL(moon_arena_alloc(&arena, SIZE_MAX - 20));
    CU_ASSERT_PTR_NULL(moon_arena_array(&arena, SIZE_MAX / 2, 3));
    CU_ASSERT_PTR_NULL(moon_arena_copy(&arena, "", SIZE_MAX));
    MOON_CHECK_INT(arena.used_bytes, 0);
    moon_arena_close(&arena);
}

static void copies_are_terminated(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    int *numbers = moon_arena_array(&arena, 10, sizeof *numbers);
    CU_ASSERT_PTR_NOT_NULL_FATAL(numbers);
    MOON_CHECK_INT(numbers[9], 0);
    MOON_CHECK_TEXT(moon_arena_copy(&arena, "abcdef", 3), "abc");
    MOON_CHECK_TEXT(moon_arena_copy(&arena, NULL, 0), "");
    char *with_nul = moon_arena_copy(&arena, "a\0b", 3);
    CU_ASSERT_PTR_NOT_NULL_FATAL(with_nul);
    CU_ASSERT(memcmp(with_nul, "a\0b", 4) == 0);
    MOON_CHECK_TEXT(moon_arena_format(&arena, "%s-%d", "x", 7), "x-7");
    moon_arena_close(&arena);
}

static void an_arena_survives_every_refusal(void) {
    for (uint64_t n = 1;; n++) {
        struct moon_memory_failing failing;
        struct moon_arena arena;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_arena_open(&arena, &failing.memory);
        bool refused = false;
        for (int i = 0; i < 8; i++) {
            refused |= !moon_arena_alloc(&arena, 3000);
            refused |= !moon_arena_copy(&arena, "some text", 9);
            refused |= !moon_arena_format(&arena, "%1000d", i);
        }
        CU_ASSERT(refused == (failing.requests >= n));
        moon_arena_close(&arena);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (!refused)
            break;
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the heap keeps content and frees", the_heap_keeps_content_and_frees},
        {"failing memory refuses the n-th request and all later ones",
         failing_memory_refuses_the_nth_request_and_all_later_ones},
        {"failing memory counts what is held", failing_memory_counts_what_is_held},
        {"a refusal from below is passed on", a_refusal_from_below_is_passed_on},
        {"pieces are zeroed, aligned and apart", pieces_are_zeroed_aligned_and_apart},
        {"small pieces share chunks beside large ones", small_pieces_share_chunks_beside_large_ones},
        {"an array grows by doubling and keeps its elements", an_array_grows_by_doubling_and_keeps_its_elements},
        {"sizes that overflow are refused", sizes_that_overflow_are_refused},
        {"copies are terminated", copies_are_terminated},
        {"an arena survives every refusal", an_arena_survives_every_refusal},
        {0},
    };
    return moon_unit_main("memory", cases, argc, argv);
}
