/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the cursor. */
#include "ref/base/cursor.h"
#include "ref/base/unit.h"

static const uint8_t sixteen[16] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                                    0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8};

static void numbers_are_read_in_both_orders(void) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, sixteen, sizeof sixteen);
    MOON_CHECK_INT(moon_cursor_u8(&cursor), 0x01);
    MOON_CHECK_INT(moon_cursor_u16_le(&cursor), 0x0302);
    MOON_CHECK_INT(moon_cursor_u16_be(&cursor), 0x0405);
    MOON_CHECK_INT(moon_cursor_left(&cursor), 11);
    moon_cursor_open(&cursor, sixteen + 8, 8);
    MOON_CHECK_INT(moon_cursor_u32_le(&cursor), 0xF4F3F2F1);
    MOON_CHECK_INT(moon_cursor_u32_be(&cursor), 0xF5F6F7F8);
    moon_cursor_open(&cursor, sixteen, sizeof sixteen);
    CU_ASSERT_EQUAL(moon_cursor_u64_le(&cursor), UINT64_C(0x0807060504030201));
    CU_ASSERT_EQUAL(moon_cursor_u64_be(&cursor), UINT64_C(0xF1F2F3F4F5F6F7F8));
    MOON_CHECK_INT(moon_cursor_left(&cursor), 0);
    MOON_CHECK_INT(cursor.failed, false);
}

static void bytes_are_given_in_place(void) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, sixteen, sizeof sixteen);
    CU_ASSERT_PTR_EQUAL(moon_cursor_bytes(&cursor, 5), sixteen);
    CU_ASSERT_PTR_EQUAL(moon_cursor_bytes(&cursor, 0), sixteen + 5);
    CU_ASSERT_PTR_EQUAL(moon_cursor_bytes(&cursor, 11), sixteen + 5);
    CU_ASSERT_PTR_EQUAL(moon_cursor_bytes(&cursor, 0), sixteen + 16);
    MOON_CHECK_INT(cursor.failed, false);
}

static void a_short_read_sticks_and_moves_nothing(void) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, sixteen, 5);
    moon_cursor_u16_le(&cursor);
    MOON_CHECK_INT(moon_cursor_u32_be(&cursor), 0);
    MOON_CHECK_INT(cursor.failed, true);
    MOON_CHECK_INT(cursor.short_at, 2);
    MOON_CHECK_INT(moon_cursor_left(&cursor), 3);
    MOON_CHECK_INT(moon_cursor_u8(&cursor), 0);
    CU_ASSERT_PTR_NULL(moon_cursor_bytes(&cursor, 0));
    CU_ASSERT_EQUAL(moon_cursor_u64_le(&cursor), 0);
    MOON_CHECK_INT(cursor.short_at, 2);
    MOON_CHECK_INT(cursor.offset, 2);
}

static void a_count_near_the_largest_size_is_short(void) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, sixteen, sizeof sixteen);
    moon_cursor_u8(&cursor);
    CU_ASSERT_PTR_NULL(moon_cursor_bytes(&cursor, SIZE_MAX));
    MOON_CHECK_INT(cursor.failed, true);
}

static void an_empty_input_has_an_empty_read_and_no_byte(void) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, NULL, 0);
    CU_ASSERT_PTR_NOT_NULL(moon_cursor_bytes(&cursor, 0));
    MOON_CHECK_INT(cursor.failed, false);
    MOON_CHECK_INT(moon_cursor_u8(&cursor), 0);
    MOON_CHECK_INT(cursor.failed, true);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"numbers are read in both orders", numbers_are_read_in_both_orders},
        {"bytes are given in place", bytes_are_given_in_place},
        {"a short read sticks and moves nothing", a_short_read_sticks_and_moves_nothing},
        {"a count near the largest size is short", a_count_near_the_largest_size_is_short},
        {"an empty input has an empty read and no byte", an_empty_input_has_an_empty_read_and_no_byte},
        {0},
    };
    return moon_unit_main("cursor", cases, argc, argv);
}
