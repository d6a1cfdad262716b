/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds-checked reading of bytes from outside: the one way in which foreign bytes become numbers. */
#ifndef MOON_BASE_CURSOR_H
#define MOON_BASE_CURSOR_H

#include "ref/base/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads forward through [data, data + length). The first read past the end sets `short_at` (offset of that read) and
 * `failed`; it and all later reads return 0 or NULL and move nothing, so a decoder checks once. Borrowed bytes. */
struct moon_cursor {
    const uint8_t *data;
    size_t length;
    size_t offset;
    size_t short_at;
    bool failed;
};

void moon_cursor_open(struct moon_cursor *cursor, const void *data, size_t length);
size_t moon_cursor_left(const struct moon_cursor *cursor);
uint8_t moon_cursor_u8(struct moon_cursor *cursor);
uint16_t moon_cursor_u16_le(struct moon_cursor *cursor);
uint32_t moon_cursor_u32_le(struct moon_cursor *cursor);
uint64_t moon_cursor_u64_le(struct moon_cursor *cursor);
uint16_t moon_cursor_u16_be(struct moon_cursor *cursor);
uint32_t moon_cursor_u32_be(struct moon_cursor *cursor);
uint64_t moon_cursor_u64_be(struct moon_cursor *cursor);
/* `count` bytes in place, or NULL. count 0 gives a valid pointer. */
const uint8_t *moon_cursor_bytes(struct moon_cursor *cursor, size_t count);

#ifdef __cplusplus
}
#endif
#endif
