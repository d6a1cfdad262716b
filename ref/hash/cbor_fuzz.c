/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the CBOR writer: what it writes must be canonical and mean the object, for a reader that shares no code with
 * it. */
#include "ref/hash/fuzz_object.h"

static struct fuzz_texts texts;

/* Argument of a head, which must be in its shortest form. */
static uint64_t argument(struct moon_cursor *cursor, unsigned additional) {
    uint64_t value;
    switch (additional) {
    case 24:
        value = moon_cursor_u8(cursor);
        assert(value >= 24);
        return value;
    case 25:
        value = moon_cursor_u16_be(cursor);
        assert(value > UINT8_MAX);
        return value;
    case 26:
        value = moon_cursor_u32_be(cursor);
        assert(value > UINT16_MAX);
        return value;
    case 27:
        value = moon_cursor_u64_be(cursor);
        assert(value > UINT32_MAX);
        return value;
    default:
        assert(additional < 24);
        return additional;
    }
}

static void decode(void) {
    struct moon_cursor cursor;
    size_t items = 1;
    moon_cursor_open(&cursor, texts.written.data, texts.written.length);
    for (; items > 0; items--) {
        uint8_t first = moon_cursor_u8(&cursor);
        if (first == 0xf6) {
            moon_text_char(&texts.read_back, 'n');
            continue;
        }
        uint64_t value = argument(&cursor, first & 0x1f);
        if (first >> 5 == 0) {
            fuzz_tell_int(&texts.read_back, (int64_t)value);
        } else if (first >> 5 == 1) {
            fuzz_tell_int(&texts.read_back, -1 - (int64_t)value);
        } else if (first >> 5 == 4) {
            moon_text_format(&texts.read_back, "(%zu", (size_t)value);
            items += (size_t)value;
        } else {
            assert(first >> 5 == 2 || first >> 5 == 3);
            const uint8_t *content = moon_cursor_bytes(&cursor, (size_t)value);
            assert(content);
            fuzz_tell(&texts.read_back, first >> 5 == 3 ? 's' : 'b', content, (size_t)value);
        }
    }
    assert(!cursor.failed && moon_cursor_left(&cursor) == 0);
    assert(texts.read_back.length == texts.told.length &&
           memcmp(texts.read_back.data, texts.told.data, texts.told.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_writer(MOON_CBOR, data, size, &texts, decode);
}
