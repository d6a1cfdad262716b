/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the cursor: random reads agree with a plain model of the bytes, and never go past the end. */
#include "ref/base/cursor.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t model(const uint8_t *at, size_t count, bool big) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)at[i] << 8 * (big ? count - 1 - i : i);
    return value;
}

/* One read chosen by `what`; returns its value and how many bytes it was to take. */
static uint64_t read_one(struct moon_cursor *cursor, unsigned what, size_t *count, bool *big) {
    *big = what >= 4;
    switch (what) {
    case 0:
        *count = 1;
        return moon_cursor_u8(cursor);
    case 1:
        *count = 2;
        return moon_cursor_u16_le(cursor);
    case 2:
        *count = 4;
        return moon_cursor_u32_le(cursor);
    case 3:
        *count = 8;
        return moon_cursor_u64_le(cursor);
    case 4:
        *count = 2;
        return moon_cursor_u16_be(cursor);
    case 5:
        *count = 4;
        return moon_cursor_u32_be(cursor);
    default:
        *count = 8;
        return moon_cursor_u64_be(cursor);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_cursor script, cursor;
    size_t half = size / 2, at = 0;
    moon_cursor_open(&script, data, half);
    moon_cursor_open(&cursor, data + half, size - half);
    while (moon_cursor_left(&script) > 0) {
        unsigned what = moon_cursor_u8(&script);
        bool failed_before = cursor.failed, big = false;
        size_t count = what >> 3;
        uint64_t value = 0, expected = 0;
        const uint8_t *bytes = NULL;
        if ((what & 7) == 7)
            bytes = moon_cursor_bytes(&cursor, count);
        else
            value = read_one(&cursor, what & 7, &count, &big);
        bool fits = !failed_before && count <= size - half - at;
        if (fits && (what & 7) != 7)
            expected = model(data + half + at, count, big);
        if (fits && (what & 7) == 7 && bytes != data + half + at)
            abort();
        at += fits ? count : 0;
        if (value != expected || cursor.failed == fits || moon_cursor_left(&cursor) != size - half - at)
            abort();
        if (cursor.failed && cursor.short_at != at)
            abort();
    }
    return 0;
}
