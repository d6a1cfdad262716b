/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the CBOR writer: what it writes must be canonical and mean the object, for a reader that shares no code with
 * it. */
#include "ref/hash/annotate.h"
#include "ref/hash/fuzz_object.h"

static struct moon_text written, told, read_back, listing;

static void collect(void *context, const void *bytes, size_t length) {
    moon_text_bytes(context, bytes, length);
}

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
    moon_cursor_open(&cursor, written.data, written.length);
    for (; items > 0; items--) {
        uint8_t first = moon_cursor_u8(&cursor);
        if (first == 0xf6) {
            moon_text_char(&read_back, 'n');
            continue;
        }
        uint64_t value = argument(&cursor, first & 0x1f);
        if (first >> 5 == 0) {
            fuzz_tell_int(&read_back, (int64_t)value);
        } else if (first >> 5 == 1) {
            fuzz_tell_int(&read_back, -1 - (int64_t)value);
        } else if (first >> 5 == 4) {
            moon_text_format(&read_back, "(%zu", (size_t)value);
            items += (size_t)value;
        } else {
            assert(first >> 5 == 2 || first >> 5 == 3);
            const uint8_t *content = moon_cursor_bytes(&cursor, (size_t)value);
            assert(content);
            fuzz_tell(&read_back, first >> 5 == 3 ? 's' : 'b', content, (size_t)value);
        }
    }
    assert(!cursor.failed && moon_cursor_left(&cursor) == 0);
    assert(read_back.length == told.length && memcmp(read_back.data, told.data, told.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_preimage preimage;
    struct moon_cursor input;
    if (size > FUZZ_INPUT_BYTES_MAX)
        return 0;
    moon_text_open(&written, moon_memory_heap());
    moon_text_open(&told, moon_memory_heap());
    moon_text_open(&read_back, moon_memory_heap());
    moon_text_open(&listing, moon_memory_heap());
    moon_annotate(MOON_CBOR, data, size, &listing); /* any bytes: must only survive */
    moon_preimage_open(&preimage, MOON_CBOR, moon_memory_heap());
    moon_cursor_open(&input, data, size);
    moon_preimage_begin(&preimage, (struct moon_sink){collect, &written}, NULL);
    fuzz_write_object(&input, &preimage, &told);
    int status = moon_preimage_finish(&preimage);
    assert(status == 0);
    decode();
    status = moon_annotate(MOON_CBOR, written.data, written.length, &listing);
    assert(status == 0);
    moon_preimage_close(&preimage);
    moon_text_close(&written);
    moon_text_close(&told);
    moon_text_close(&read_back);
    moon_text_close(&listing);
    return 0;
}
