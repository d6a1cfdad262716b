/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the imaginary model against numbers of Python's hashlib. */
#include "ref/engine/token.h"

#include "ref/base/unit.h"
#include "ref/engine/blake2b.h"

#include <inttypes.h>

static void check_u64(uint64_t seen, uint64_t expected) {
    if (seen != expected)
        fprintf(stderr, "%016" PRIx64 ", expected %016" PRIx64 "\n", seen, expected);
    CU_ASSERT(seen == expected);
}

static void digests_are_those_of_python(void) {
    uint8_t bytes[MOON_BLAKE2B_BLOCK_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    check_u64(moon_blake2b_u64(bytes, 0), UINT64_C(0xb4b2797457a0a6e4));
    check_u64(moon_blake2b_u64((const uint8_t *)"abc", 3), UINT64_C(0x5995d533d814bbd8));
    check_u64(moon_blake2b_u64(bytes, sizeof bytes), UINT64_C(0x827e61b6f13dd1c2)); /* hashlib, bytes(range(128)) */
}

static void a_prefix_stands_for_all_tokens_before_it(void) {
    uint64_t prefix = 0;
    static const uint32_t tokens[] = {0, 7, 14};
    for (size_t i = 0; i < 3; i++)
        prefix = moon_token_prefix(prefix, tokens[i]);
    check_u64(prefix, UINT64_C(0xd3d709d9f34fc26a));
    MOON_CHECK_INT(moon_token_next(prefix), 29007);
    CU_ASSERT(moon_token_prefix(0, 14) != prefix);
}

static void prompts_follow_their_seed(void) {
    static const uint32_t expected[] = {36326, 32324, 20581};
    for (uint64_t i = 0; i < 3; i++)
        MOON_CHECK_INT(moon_token_of_prompt(5, i), expected[i]);
}

static void a_cell_is_k_then_v(void) {
    static const uint8_t expected[32] = {0x8a, 0x97, 0x2b, 0x34, 0xca, 0x95, 0x94, 0x2a, 0x91, 0x02, 0x74,
                                         0xf0, 0x77, 0x00, 0xbe, 0xd8, 0x81, 0x2a, 0x7d, 0x3c, 0x0f, 0xff,
                                         0xc7, 0x96, 0x39, 0xe8, 0x41, 0x20, 0x7a, 0x32, 0x2c, 0x92};
    uint8_t cell[32];
    moon_token_cell(UINT64_C(0xd3d709d9f34fc26a), 1, 3, 16, cell);
    CU_ASSERT(memcmp(cell, expected, sizeof cell) == 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"BLAKE2b digests are those of Python", digests_are_those_of_python},
        {"a prefix stands for all tokens before it", a_prefix_stands_for_all_tokens_before_it},
        {"prompts follow their seed", prompts_follow_their_seed},
        {"a cell is K then V", a_cell_is_k_then_v},
        {NULL, NULL}};
    return moon_unit_main("imaginary model", cases, argc, argv);
}
