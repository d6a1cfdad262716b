/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds-checked reading of bytes from outside. */
#include "ref/base/cursor.h"

void moon_cursor_open(struct moon_cursor *cursor, const void *data, size_t length) {
    *cursor = (struct moon_cursor){.data = data, .length = length};
}

size_t moon_cursor_left(const struct moon_cursor *cursor) {
    return cursor->length - cursor->offset;
}

const uint8_t *moon_cursor_bytes(struct moon_cursor *cursor, size_t count) {
    static const uint8_t nothing[1]; /* the valid pointer of an empty read from an empty buffer that is NULL */
    if (cursor->failed)
        return NULL;
    if (count > moon_cursor_left(cursor)) {
        cursor->failed = true;
        cursor->short_at = cursor->offset;
        return NULL;
    }
    if (!cursor->data)
        return nothing;
    const uint8_t *at = cursor->data + cursor->offset;
    cursor->offset += count;
    return at;
}

static uint64_t little_endian(struct moon_cursor *cursor, size_t count) {
    const uint8_t *bytes = moon_cursor_bytes(cursor, count);
    uint64_t value = 0;
    for (size_t i = bytes ? count : 0; i > 0; i--)
        value = value << 8 | bytes[i - 1];
    return value;
}

static uint64_t big_endian(struct moon_cursor *cursor, size_t count) {
    const uint8_t *bytes = moon_cursor_bytes(cursor, count);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

uint8_t moon_cursor_u8(struct moon_cursor *cursor) {
    return (uint8_t)little_endian(cursor, 1);
}

uint16_t moon_cursor_u16_le(struct moon_cursor *cursor) {
    return (uint16_t)little_endian(cursor, 2);
}

uint32_t moon_cursor_u32_le(struct moon_cursor *cursor) {
    return (uint32_t)little_endian(cursor, 4);
}

uint64_t moon_cursor_u64_le(struct moon_cursor *cursor) {
    return little_endian(cursor, 8);
}

uint16_t moon_cursor_u16_be(struct moon_cursor *cursor) {
    return (uint16_t)big_endian(cursor, 2);
}

uint32_t moon_cursor_u32_be(struct moon_cursor *cursor) {
    return (uint32_t)big_endian(cursor, 4);
}

uint64_t moon_cursor_u64_be(struct moon_cursor *cursor) {
    return big_endian(cursor, 8);
}
