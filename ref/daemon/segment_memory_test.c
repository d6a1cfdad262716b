/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of segment memory. */
#include "ref/daemon/segment_memory.h"

#include "ref/base/unit.h"

static void test_aligned(void) {
    static const size_t sizes[] = {1, 4096, 4097, 1000000, MOON_SEGMENT_ALIGN_BYTES, MOON_SEGMENT_ALIGN_BYTES + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = moon_segment_memory_open(sizes[i]);
        CU_ASSERT_FATAL(memory != NULL);
        MOON_CHECK_INT((uintptr_t)memory % MOON_SEGMENT_ALIGN_BYTES, 0);
        MOON_CHECK_INT(memory[0] | memory[sizes[i] - 1], 0);
        memset(memory, 7, sizes[i]);
        moon_segment_memory_close(memory, sizes[i]);
    }
}

static void test_refused(void) {
    CU_ASSERT_PTR_NULL(moon_segment_memory_open(0));
    CU_ASSERT_PTR_NULL(moon_segment_memory_open((size_t)MOON_SEGMENT_BYTES_MAX + 1));
    CU_ASSERT_PTR_NULL(moon_segment_memory_open(SIZE_MAX));
    moon_segment_memory_close(NULL, 5);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"memory is aligned, zeroed and writable to its last byte", test_aligned},
        {"sizes that make no sense are refused", test_refused},
        {NULL, NULL},
    };
    return moon_unit_main("segment memory", cases, argc, argv);
}
