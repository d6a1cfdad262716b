/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the pickler: what it writes must be well-formed and mean the object, for a reader that shares no code with it.
 */
#include "ref/hash/fuzz_object.h"

#include <stdlib.h>

static struct fuzz_texts texts;

/* Objects of the reader's stack and memo: pieces of texts.read_back. Its stack may hold MARK. */
struct piece {
    size_t start, length;
    bool mark;
};
enum { STACK_MAX = 1 << 16 };
static struct piece stack[STACK_MAX], memo[STACK_MAX];
static size_t stack_count, memo_count;

static void push(size_t start) {
    assert(stack_count < STACK_MAX);
    stack[stack_count++] = (struct piece){.start = start, .length = texts.read_back.length - start};
}

static void push_int(int64_t value) {
    size_t start = texts.read_back.length;
    fuzz_tell_int(&texts.read_back, value);
    push(start);
}

static void push_content(struct moon_cursor *cursor, char kind, uint32_t length) {
    size_t start = texts.read_back.length;
    const uint8_t *content = moon_cursor_bytes(cursor, length);
    assert(content);
    fuzz_tell(&texts.read_back, kind, content, length);
    push(start);
}

static void push_tuple(size_t items) {
    assert(stack_count >= items);
    size_t first = stack_count - items, start = texts.read_back.length;
    moon_text_format(&texts.read_back, "(%zu", items);
    for (size_t i = first; i < stack_count; i++) {
        assert(!stack[i].mark);
        struct moon_text copy = texts.read_back; /* appending may move the bytes */
        size_t at = stack[i].start, length = stack[i].length;
        char *piece = malloc(length + 1);
        memcpy(piece, copy.data + at, length);
        moon_text_bytes(&texts.read_back, piece, length);
        free(piece);
    }
    stack_count = first;
    push(start);
}

static void push_tuple_to_mark(void) {
    size_t items = 0;
    while (items < stack_count && !stack[stack_count - 1 - items].mark)
        items++;
    assert(items < stack_count && items > 3);
    memmove(&stack[stack_count - 1 - items], &stack[stack_count - items], items * sizeof *stack);
    stack_count--;
    push_tuple(items);
}

static void push_long(struct moon_cursor *cursor) {
    uint8_t bytes = moon_cursor_u8(cursor);
    const uint8_t *content = moon_cursor_bytes(cursor, bytes);
    assert(content && bytes > 4 && bytes <= 8);
    uint64_t value = content[bytes - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = bytes; i > 0; i--)
        value = value << 8 | content[i - 1];
    assert((int64_t)value > INT32_MAX || (int64_t)value < INT32_MIN);
    push_int((int64_t)value);
}

static void push_memo(uint32_t index) {
    assert(index < memo_count && stack_count < STACK_MAX);
    stack[stack_count++] = memo[index];
}

/* One opcode. False at STOP. */
static bool step(struct moon_cursor *cursor, size_t *frame_end) {
    uint8_t opcode = moon_cursor_u8(cursor);
    switch (opcode) {
    case 0x95:
        assert(*frame_end == 0);
        *frame_end = (size_t)moon_cursor_u64_le(cursor);
        assert(*frame_end >= 4 && *frame_end <= moon_cursor_left(cursor));
        *frame_end += cursor->offset;
        return true;
    case 0x28:
        assert(stack_count < STACK_MAX);
        stack[stack_count++] = (struct piece){.mark = true};
        break;
    case 0x29:
        push_tuple(0);
        break;
    case 0x85:
    case 0x86:
    case 0x87:
        push_tuple(opcode - 0x84u);
        break;
    case 0x74:
        push_tuple_to_mark();
        break;
    case 0x4e:
        moon_text_char(&texts.read_back, 'n');
        push(texts.read_back.length - 1);
        break;
    case 0x4b:
        push_int(moon_cursor_u8(cursor));
        break;
    case 0x4d:
        push_int(moon_cursor_u16_le(cursor));
        break;
    case 0x4a:
        push_int((int32_t)moon_cursor_u32_le(cursor));
        break;
    case 0x8a:
        push_long(cursor);
        break;
    case 0x43:
        push_content(cursor, 'b', moon_cursor_u8(cursor));
        break;
    case 0x42:
        push_content(cursor, 'b', moon_cursor_u32_le(cursor));
        break;
    case 0x8c:
        push_content(cursor, 's', moon_cursor_u8(cursor));
        break;
    case 0x58:
        push_content(cursor, 's', moon_cursor_u32_le(cursor));
        break;
    case 0x94:
        assert(stack_count > 0 && memo_count < STACK_MAX);
        memo[memo_count++] = stack[stack_count - 1];
        break;
    case 0x68:
        push_memo(moon_cursor_u8(cursor));
        break;
    case 0x6a:
        push_memo(moon_cursor_u32_le(cursor));
        break;
    default:
        assert(opcode == 0x2e);
        assert(stack_count == 1 && moon_cursor_left(cursor) == 0);
        return false;
    }
    if (*frame_end != 0 && cursor->offset >= *frame_end) {
        assert(cursor->offset == *frame_end);
        *frame_end = 0;
    }
    return true;
}

static void unpickle(void) {
    struct moon_cursor cursor;
    size_t frame_end = 0;
    stack_count = memo_count = 0;
    moon_cursor_open(&cursor, texts.written.data, texts.written.length);
    assert(moon_cursor_u16_le(&cursor) == 0x0580);
    while (step(&cursor, &frame_end))
        assert(!cursor.failed);
    assert(stack[0].length == texts.told.length &&
           memcmp(texts.read_back.data + stack[0].start, texts.told.data, texts.told.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return fuzz_writer(MOON_PICKLE, data, size, &texts, unpickle);
}
