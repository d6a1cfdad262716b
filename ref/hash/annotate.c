/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a pre-image back, element by element, for a person who looks for the byte that differs. */
#include "ref/hash/annotate.h"

#include "ref/base/cursor.h"

enum { HEX_BYTES_MAX = 12, TEXT_BYTES_MAX = 40, DEPTH_MAX = 16 };

/* Where in (parent, tokens, extra) the reader is. A bare string, the seed of NONE_HASH, never leaves the first part. */
enum part { PART_PARENT, PART_TOKENS, PART_EXTRA };

struct reader {
    struct moon_cursor cursor;
    struct moon_text *out;
    enum part part;
    size_t start;              /* of the element at hand */
    uint32_t memo;             /* pickle: memo numbers given */
    size_t frame_end;          /* pickle: 0 outside of a frame */
    size_t depth;              /* pickle: open marks; CBOR: open arrays */
    uint64_t count[DEPTH_MAX]; /* pickle: objects since the mark; CBOR: items to come */
    bool ended;                /* the object is complete */
    bool broken;
};

static void line_start(struct reader *reader) {
    const uint8_t *bytes = reader->cursor.data + reader->start;
    size_t length = reader->cursor.offset - reader->start;
    size_t shown = length < HEX_BYTES_MAX ? length : HEX_BYTES_MAX;
    moon_text_format(reader->out, "  %6zu  ", reader->start);
    moon_text_hex(reader->out, bytes, shown);
    if (length > shown)
        moon_text_string(reader->out, "..");
    moon_text_repeat(reader->out, ' ', 2 * (HEX_BYTES_MAX - shown) + (length > shown ? 2 : 4));
}

static void line(struct reader *reader, const char *meaning) {
    line_start(reader);
    moon_text_string(reader->out, meaning);
    moon_text_char(reader->out, '\n');
}

static void line_number(struct reader *reader, const char *before, long long number, const char *after) {
    line_start(reader);
    moon_text_format(reader->out, "%s%lld%s\n", before, number, after);
}

static void quote(struct moon_text *out, const uint8_t *bytes, size_t length) {
    size_t shown = length < TEXT_BYTES_MAX ? length : TEXT_BYTES_MAX;
    moon_text_char(out, '"');
    for (size_t i = 0; i < shown; i++) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"' && bytes[i] != '\\')
            moon_text_char(out, (char)bytes[i]);
        else
            moon_text_format(out, "\\x%02x", bytes[i]);
    }
    moon_text_string(out, length > shown ? "\".." : "\"");
}

/* A string or bytes object whose head is read: takes its content. */
static void line_content(struct reader *reader, bool string, uint64_t length) {
    bool parent = !string && reader->part == PART_PARENT;
    if (length > moon_cursor_left(&reader->cursor)) {
        reader->broken = true;
        return;
    }
    const uint8_t *content = moon_cursor_bytes(&reader->cursor, (size_t)length);
    line_start(reader);
    if (string) {
        moon_text_format(reader->out, "string of %llu bytes ", (unsigned long long)length);
        quote(reader->out, content, (size_t)length);
    } else {
        moon_text_format(reader->out, "bytes, %llu%s ", (unsigned long long)length,
                         parent ? ": parent hash" : ": digest");
        moon_text_hex(reader->out, content, (size_t)length < MOON_BIGINT_DIGITS_MAX ? (size_t)length : 0);
    }
    moon_text_char(reader->out, '\n');
    if (parent)
        reader->part = PART_TOKENS;
}

static void line_int(struct reader *reader, int64_t value) {
    line_number(reader, reader->part == PART_TOKENS ? "token " : "int ", value, "");
}

static void pickle_push(struct reader *reader) {
    reader->count[reader->depth]++;
}

/* Replaces `items` objects by one tuple. */
static void pickle_tuple(struct reader *reader, uint64_t items) {
    if (reader->count[reader->depth] < items) {
        reader->broken = true;
        return;
    }
    reader->count[reader->depth] -= items;
    pickle_push(reader);
    line_number(reader, "tuple of ", (long long)items, reader->part == PART_TOKENS ? ": the tokens" : "");
    if (reader->part == PART_TOKENS)
        reader->part = PART_EXTRA;
}

static void pickle_mark(struct reader *reader) {
    if (reader->depth + 1 == DEPTH_MAX) {
        reader->broken = true;
        return;
    }
    reader->count[++reader->depth] = 0;
    line(reader, "a tuple of four or more begins");
}

static void pickle_tuple_to_mark(struct reader *reader) {
    if (reader->depth == 0) {
        reader->broken = true;
        return;
    }
    uint64_t items = reader->count[reader->depth--];
    reader->count[reader->depth] += items;
    pickle_tuple(reader, items);
}

static void pickle_memoize(struct reader *reader) {
    reader->broken = reader->count[reader->depth] == 0;
    line_number(reader, "memo ", reader->memo++, "");
}

static void pickle_reference(struct reader *reader, uint32_t index) {
    reader->broken = index >= reader->memo;
    pickle_push(reader);
    line_number(reader, "the same object as memo ", index, "");
}

static void pickle_long(struct reader *reader, uint32_t bytes) {
    if (bytes == 0 || bytes > moon_cursor_left(&reader->cursor)) {
        reader->broken = true;
        return;
    }
    const uint8_t *content = moon_cursor_bytes(&reader->cursor, bytes);
    pickle_push(reader);
    uint64_t value = content[bytes - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint32_t i = bytes; i > 0 && bytes <= 8; i--)
        value = value << 8 | content[i - 1];
    if (bytes <= 8)
        line_int(reader, (int64_t)value);
    else
        line_number(reader, "int of ", bytes, " bytes");
}

static void pickle_frame(struct reader *reader) {
    uint64_t length = moon_cursor_u64_le(&reader->cursor);
    reader->broken = reader->frame_end != 0 || length < 4 || length > moon_cursor_left(&reader->cursor);
    if (!reader->broken)
        reader->frame_end = reader->cursor.offset + (size_t)length;
    line_number(reader, "frame of ", (long long)length, " bytes");
}

static void pickle_content(struct reader *reader, bool string, uint32_t length) {
    pickle_push(reader);
    line_content(reader, string, length);
}

static void pickle_protocol(struct reader *reader) {
    reader->broken = moon_cursor_u8(&reader->cursor) != 5 || reader->start != 0;
    line(reader, "pickle, protocol 5");
}

static void pickle_integer(struct reader *reader, int64_t value) {
    pickle_push(reader);
    line_int(reader, value);
}

static void pickle_element(struct reader *reader) {
    struct moon_cursor *cursor = &reader->cursor;
    uint8_t opcode = moon_cursor_u8(cursor);
    switch (opcode) {
    case 0x80:
        pickle_protocol(reader);
        break;
    case 0x95:
        pickle_frame(reader);
        break;
    case 0x28:
        pickle_mark(reader);
        break;
    case 0x29:
        pickle_tuple(reader, 0);
        break;
    case 0x85:
    case 0x86:
    case 0x87:
        pickle_tuple(reader, opcode - 0x84u);
        break;
    case 0x74:
        pickle_tuple_to_mark(reader);
        break;
    case 0x43:
        pickle_content(reader, false, moon_cursor_u8(cursor));
        break;
    case 0x42:
        pickle_content(reader, false, moon_cursor_u32_le(cursor));
        break;
    case 0x8c:
        pickle_content(reader, true, moon_cursor_u8(cursor));
        break;
    case 0x58:
        pickle_content(reader, true, moon_cursor_u32_le(cursor));
        break;
    case 0x4b:
        pickle_integer(reader, moon_cursor_u8(cursor));
        break;
    case 0x4d:
        pickle_integer(reader, moon_cursor_u16_le(cursor));
        break;
    case 0x4a:
        pickle_integer(reader, (int32_t)moon_cursor_u32_le(cursor));
        break;
    case 0x8a:
        pickle_long(reader, moon_cursor_u8(cursor));
        break;
    case 0x8b:
        pickle_long(reader, moon_cursor_u32_le(cursor));
        break;
    case 0x4e:
        pickle_push(reader);
        line(reader, "None");
        break;
    case 0x94:
        pickle_memoize(reader);
        break;
    case 0x68:
        pickle_reference(reader, moon_cursor_u8(cursor));
        break;
    case 0x6a:
        pickle_reference(reader, moon_cursor_u32_le(cursor));
        break;
    case 0x2e:
        reader->ended = true;
        reader->broken = reader->depth != 0 || reader->count[0] != 1;
        line(reader, "end");
        break;
    default:
        reader->broken = true;
    }
    if (reader->frame_end != 0 && cursor->offset >= reader->frame_end) {
        reader->broken = reader->broken || cursor->offset > reader->frame_end;
        reader->frame_end = 0;
    }
}

/* An item is complete; with it perhaps the arrays that it ends. */
static void cbor_item(struct reader *reader) {
    while (reader->depth > 0 && --reader->count[reader->depth] == 0) {
        reader->depth--;
        if (reader->depth == 1 && reader->part == PART_TOKENS)
            reader->part = PART_EXTRA;
    }
    reader->ended = reader->depth == 0;
}

static void cbor_array(struct reader *reader, uint64_t items) {
    line_number(reader, "array of ", (long long)items, reader->part == PART_TOKENS ? ": the tokens" : "");
    if (items == 0) {
        cbor_item(reader);
        return;
    }
    if (reader->depth + 1 == DEPTH_MAX || items > moon_cursor_left(&reader->cursor)) {
        reader->broken = true;
        return;
    }
    reader->count[++reader->depth] = items;
}

/* Argument after the first byte; `broken` unless it is in its shortest form. */
static uint64_t cbor_argument(struct reader *reader, unsigned additional) {
    uint64_t argument = additional, least = 0;
    if (additional == 24) {
        argument = moon_cursor_u8(&reader->cursor);
        least = 24;
    } else if (additional == 25) {
        argument = moon_cursor_u16_be(&reader->cursor);
        least = UINT8_MAX + 1;
    } else if (additional == 26) {
        argument = moon_cursor_u32_be(&reader->cursor);
        least = UINT16_MAX + 1;
    } else if (additional == 27) {
        argument = moon_cursor_u64_be(&reader->cursor);
        least = (uint64_t)UINT32_MAX + 1;
    }
    reader->broken = additional > 27 || argument < least;
    return argument;
}

static void cbor_integer(struct reader *reader, bool negative, uint64_t argument) {
    if (argument <= INT64_MAX)
        line_int(reader, negative ? -1 - (int64_t)argument : (int64_t)argument);
    else
        line(reader, negative ? "int below -2^63" : "int of 2^63 or more");
    cbor_item(reader);
}

static void cbor_element(struct reader *reader) {
    uint8_t first = moon_cursor_u8(&reader->cursor);
    if (first == 0xf6) {
        line(reader, "null: None");
        cbor_item(reader);
        return;
    }
    if (first == 0xc2 || first == 0xc3) { /* one item with the bytes that follow */
        line(reader, first == 0xc2 ? "a wide int follows" : "a wide negative int follows");
        return;
    }
    uint64_t argument = cbor_argument(reader, first & 0x1f);
    if (reader->broken || reader->cursor.failed)
        return;
    switch (first >> 5) {
    case 0:
    case 1:
        cbor_integer(reader, first >> 5 == 1, argument);
        break;
    case 2:
    case 3:
        line_content(reader, first >> 5 == 3, argument);
        cbor_item(reader);
        break;
    case 4:
        cbor_array(reader, argument);
        break;
    default:
        reader->broken = true;
    }
}

int moon_annotate(enum moon_serialisation serialisation, const void *bytes, size_t length, struct moon_text *out) {
    struct reader reader = {.out = out};
    moon_cursor_open(&reader.cursor, bytes, length);
    while (!reader.ended && !reader.broken && !reader.cursor.failed) {
        reader.start = reader.cursor.offset;
        if (serialisation == MOON_PICKLE)
            pickle_element(&reader);
        else
            cbor_element(&reader);
    }
    if (!reader.broken && !reader.cursor.failed && moon_cursor_left(&reader.cursor) == 0)
        return 0;
    moon_text_format(out, "  %6zu  not well-formed\n", reader.start);
    return MOON_ERR_SYNTAX;
}
