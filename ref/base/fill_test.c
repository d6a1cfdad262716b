/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the bytes of seeded values. */
#include "ref/base/fill.h"
#include "ref/base/unit.h"

static uint64_t word_at(uint64_t seed, uint64_t j) {
    uint8_t bytes[8];
    uint64_t word = 0;
    moon_fill(seed, 8 * j, bytes, sizeof bytes);
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static void words_are_the_documented_function(void) {
    CU_ASSERT_EQUAL(word_at(0, 0), 0);
    CU_ASSERT_EQUAL(word_at(0, 1), UINT64_C(0x5692161d100b05e5));
    CU_ASSERT_EQUAL(word_at(7, 0), UINT64_C(0x2c829abe1f4532e1));
    CU_ASSERT_EQUAL(word_at(7, 3), UINT64_C(0x2298eb42cbbefdb8));
    CU_ASSERT_EQUAL(word_at(UINT64_C(0x8000000000000005), 2), UINT64_C(0xd7a59e5667427fad));
}

static void any_cut_gives_the_same_bytes(void) {
    uint8_t whole[100], part[100];
    moon_fill(99, 0, whole, sizeof whole);
    for (size_t from = 0; from <= sizeof whole; from++)
        for (size_t to = from; to <= sizeof whole; to++) {
            memset(part, 0xC7, sizeof part);
            moon_fill(99, from, part, to - from);
            CU_ASSERT(memcmp(part, whole + from, to - from) == 0);
            CU_ASSERT(to - from == sizeof part || part[to - from] == 0xC7);
        }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"words are the documented function", words_are_the_documented_function},
        {"any cut gives the same bytes", any_cut_gives_the_same_bytes},
        {0},
    };
    return moon_unit_main("fill", cases, argc, argv);
}
