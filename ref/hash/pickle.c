/* SPDX-License-Identifier: Apache-2.0 */
/* Python pickle, protocol 5, of None, int, str, bytes and tuple: byte for byte what CPython's C pickler writes. */
#include "ref/hash/pickle.h"

#include <assert.h>
#include <string.h>

enum {
    OP_MARK = 0x28,
    OP_EMPTY_TUPLE = 0x29,
    OP_STOP = 0x2e,
    OP_BINBYTES = 0x42,
    OP_SHORT_BINBYTES = 0x43,
    OP_BININT = 0x4a,
    OP_BININT1 = 0x4b,
    OP_BININT2 = 0x4d,
    OP_NONE = 0x4e,
    OP_BINUNICODE = 0x58,
    OP_BINGET = 0x68,
    OP_LONG_BINGET = 0x6a,
    OP_TUPLE = 0x74,
    OP_PROTO = 0x80,
    OP_TUPLE1 = 0x85, /* TUPLE2 and TUPLE3 follow */
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
};

enum {
    FRAME_HEAD_BYTES = 9,
    FRAME_MIN_BYTES = 4, /* shorter runs have no head */
    FRAME_CAPACITY_MIN = 512,
    MEMO_CAPACITY_MIN = 16,
    INT_BYTES_MAX = 10, /* opcode, count, eight bytes */
};

/* Keys of objects in the memo table. Strings and bytes never share one. */
enum { KEY_STRING = 1, KEY_CHARACTER, KEY_EMPTY_STRING, KEY_BYTES, KEY_BYTE, KEY_EMPTY_BYTES };
#define MEMO_KEY(kind, number) ((uint64_t)(kind) << 32 | (number))

void moon_pickle_open(struct moon_pickle *pickle, struct moon_memory *memory) {
    *pickle = (struct moon_pickle){.memory = memory};
}

void moon_pickle_close(struct moon_pickle *pickle) {
    struct moon_memory *memory = pickle->memory;
    if (pickle->frame)
        memory->resize(memory, pickle->frame, pickle->frame_capacity, 0);
    if (pickle->memo)
        memory->resize(memory, pickle->memo, pickle->memo_capacity * sizeof *pickle->memo, 0);
    moon_pickle_open(pickle, memory);
}

/* Room for `bytes` more in the frame. False when memory refused. */
static bool frame_reserve(struct moon_pickle *pickle, size_t bytes) {
    size_t needed = FRAME_HEAD_BYTES + pickle->frame_bytes + bytes;
    if (needed <= pickle->frame_capacity)
        return !pickle->failed;
    size_t capacity = pickle->frame_capacity ? pickle->frame_capacity : FRAME_CAPACITY_MIN;
    while (capacity < needed)
        capacity *= 2;
    uint8_t *frame = pickle->memory->resize(pickle->memory, pickle->frame, pickle->frame_capacity, capacity);
    if (!frame) {
        pickle->failed = true;
        return false;
    }
    pickle->frame = frame;
    pickle->frame_capacity = capacity;
    return !pickle->failed;
}

static void put(struct moon_pickle *pickle, const void *bytes, size_t length) {
    if (!frame_reserve(pickle, length))
        return;
    memcpy(pickle->frame + FRAME_HEAD_BYTES + pickle->frame_bytes, bytes, length);
    pickle->frame_bytes += length;
}

static void put_u8(struct moon_pickle *pickle, uint8_t byte) {
    put(pickle, &byte, 1);
}

static void write_le(uint8_t *out, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i) & 0xff);
}

static void frame_close(struct moon_pickle *pickle) {
    if (pickle->failed || pickle->frame_bytes == 0)
        return;
    size_t skip = FRAME_HEAD_BYTES;
    if (pickle->frame_bytes >= FRAME_MIN_BYTES) {
        pickle->frame[0] = OP_FRAME;
        write_le(pickle->frame + 1, pickle->frame_bytes, 8);
        skip = 0;
    }
    pickle->sink.write(pickle->sink.context, pickle->frame + skip, FRAME_HEAD_BYTES + pickle->frame_bytes - skip);
    pickle->frame_bytes = 0;
}

/* Before each object: a frame that is full ends here, so no object's head is torn. */
static void boundary(struct moon_pickle *pickle) {
    if (pickle->frame_bytes >= MOON_PICKLE_FRAME_BYTES)
        frame_close(pickle);
}

void moon_pickle_begin(struct moon_pickle *pickle, struct moon_sink sink) {
    static const uint8_t protocol[2] = {OP_PROTO, 5};
    pickle->sink = sink;
    pickle->frame_bytes = 0;
    pickle->memo_next = 0;
    pickle->memo_used = 0;
    pickle->failed = false;
    if (++pickle->pickle == 0) { /* numbers start over: entries of long ago must not look fresh */
        for (uint32_t i = 0; i < pickle->memo_capacity; i++) /* GCOVR_EXCL_LINE after 2^32 pickles */
            pickle->memo[i].pickle = 0;                      /* GCOVR_EXCL_LINE the same */
        pickle->pickle = 1;                                  /* GCOVR_EXCL_LINE the same */
    }
    sink.write(sink.context, protocol, sizeof protocol);
}

void moon_pickle_none(struct moon_pickle *pickle) {
    boundary(pickle);
    put_u8(pickle, OP_NONE);
}

void moon_pickle_int(struct moon_pickle *pickle, int64_t value) {
    uint8_t out[INT_BYTES_MAX];
    size_t length;
    boundary(pickle);
    if (value >= 0 && value <= UINT8_MAX) {
        out[0] = OP_BININT1;
        length = 1;
    } else if (value >= 0 && value <= UINT16_MAX) {
        out[0] = OP_BININT2;
        length = 2;
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        out[0] = OP_BININT;
        length = 4;
    } else {
        length = 5; /* beyond int32 at least five bytes are needed */
        while (length < 8 && (value >= INT64_C(1) << (8 * length - 1) || value < -(INT64_C(1) << (8 * length - 1))))
            length++;
        out[0] = OP_LONG1;
        out[1] = (uint8_t)length;
        write_le(out + 2, (uint64_t)value, length);
        put(pickle, out, length + 2);
        return;
    }
    write_le(out + 1, (uint64_t)value, length);
    put(pickle, out, length + 1);
}

void moon_pickle_big(struct moon_pickle *pickle, const struct moon_bigint *value) {
    uint8_t bytes[sizeof value->magnitude + 1];
    size_t length = value->magnitude_bytes;
    if (length <= 8) { /* may have a short form */
        uint64_t magnitude = 0;
        for (size_t i = 0; i < length; i++)
            magnitude |= (uint64_t)value->magnitude[i] << (8 * i);
        if (magnitude <= (uint64_t)INT64_MAX + (value->negative ? 1 : 0)) {
            moon_pickle_int(pickle, (int64_t)(value->negative ? 0 - magnitude : magnitude));
            return;
        }
    }
    boundary(pickle);
    unsigned carry = 1;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = value->magnitude[i];
        if (value->negative) {
            byte = (byte ^ 0xff) + carry;
            carry = byte >> 8;
        }
        bytes[i] = (uint8_t)(byte & 0xff);
    }
    uint8_t sign = value->negative ? 0x80 : 0;
    if ((bytes[length - 1] & 0x80) != sign)
        bytes[length++] = value->negative ? 0xff : 0;
    uint8_t head[5] = {OP_LONG1, (uint8_t)length};
    if (length > UINT8_MAX) {
        head[0] = OP_LONG4;
        write_le(head + 1, length, 4);
    }
    put(pickle, head, length > UINT8_MAX ? 5 : 2);
    put(pickle, bytes, length);
}

/* Objects that exist once in CPython: their key follows from the content. (HASH-026) */
static uint64_t string_key(const struct moon_string *string) {
    const uint8_t *bytes = (const uint8_t *)string->bytes;
    if (string->length == 0)
        return MEMO_KEY(KEY_EMPTY_STRING, 0);
    if (string->length == 1)
        return MEMO_KEY(KEY_CHARACTER, bytes[0]);
    if (string->length == 2 && (bytes[0] == 0xc2 || bytes[0] == 0xc3)) /* U+0080 to U+00FF */
        return MEMO_KEY(KEY_CHARACTER, (uint32_t)(bytes[0] & 3) << 6 | (bytes[1] & 0x3f));
    return string->identity ? MEMO_KEY(KEY_STRING, string->identity) : 0;
}

static uint64_t bytes_key(const struct moon_string *bytes) {
    if (bytes->length == 0)
        return MEMO_KEY(KEY_EMPTY_BYTES, 0);
    if (bytes->length == 1)
        return MEMO_KEY(KEY_BYTE, (uint8_t)bytes->bytes[0]);
    return bytes->identity ? MEMO_KEY(KEY_BYTES, bytes->identity) : 0;
}

/* The slot of `object`, or the free slot where it belongs. The table is never full. */
static struct moon_pickle_memo *memo_slot(const struct moon_pickle *pickle, uint64_t object) {
    uint32_t mask = pickle->memo_capacity - 1;
    uint32_t at = (uint32_t)(object * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (pickle->memo[at].pickle == pickle->pickle && pickle->memo[at].object != object)
        at = (at + 1) & mask;
    return &pickle->memo[at];
}

static bool memo_grow(struct moon_pickle *pickle) {
    struct moon_pickle old = *pickle;
    uint32_t capacity = old.memo_capacity ? old.memo_capacity * 2 : MEMO_CAPACITY_MIN;
    struct moon_pickle_memo *memo = pickle->memory->resize(pickle->memory, NULL, 0, capacity * sizeof *memo);
    if (!memo) {
        pickle->failed = true;
        return false;
    }
    memset(memo, 0, capacity * sizeof *memo);
    pickle->memo = memo;
    pickle->memo_capacity = capacity;
    for (uint32_t i = 0; i < old.memo_capacity; i++)
        if (old.memo[i].pickle == old.pickle)
            *memo_slot(pickle, old.memo[i].object) = old.memo[i];
    if (old.memo)
        old.memory->resize(old.memory, old.memo, old.memo_capacity * sizeof *old.memo, 0);
    return true;
}

/* Writes a reference if `object` was written before; else notes that it gets the next memo number. `object` 0 never
 * was. */
static bool memo_known(struct moon_pickle *pickle, uint64_t object) {
    if (object == 0)
        return false;
    if (pickle->memo_used * 2 >= pickle->memo_capacity && !memo_grow(pickle))
        return true;
    struct moon_pickle_memo *slot = memo_slot(pickle, object);
    if (slot->pickle != pickle->pickle) {
        *slot = (struct moon_pickle_memo){.object = object, .index = pickle->memo_next, .pickle = pickle->pickle};
        pickle->memo_used++;
        return false;
    }
    uint8_t out[5] = {OP_BINGET, (uint8_t)slot->index};
    if (slot->index > UINT8_MAX) {
        out[0] = OP_LONG_BINGET;
        write_le(out + 1, slot->index, 4);
    }
    put(pickle, out, slot->index > UINT8_MAX ? 5 : 2);
    return true;
}

static void memoize(struct moon_pickle *pickle) {
    put_u8(pickle, OP_MEMOIZE);
    pickle->memo_next++;
}

/* Opcode by length, content, memo. Lengths beyond 4 GiB do not occur: no input is that large. */
static void save_content(struct moon_pickle *pickle, uint8_t short_op, uint8_t long_op,
                         const struct moon_string *content) {
    uint8_t head[5] = {short_op, (uint8_t)content->length};
    size_t head_bytes = 2;
    assert(content->length <= UINT32_MAX);
    if (content->length > UINT8_MAX) {
        head[0] = long_op;
        write_le(head + 1, content->length, 4);
        head_bytes = 5;
    }
    if (content->length >= MOON_PICKLE_FRAME_BYTES) {
        frame_close(pickle);
        if (!pickle->failed) {
            pickle->sink.write(pickle->sink.context, head, head_bytes);
            pickle->sink.write(pickle->sink.context, content->bytes, content->length);
        }
    } else {
        put(pickle, head, head_bytes);
        if (content->length > 0)
            put(pickle, content->bytes, content->length);
    }
    memoize(pickle);
}

void moon_pickle_str(struct moon_pickle *pickle, const struct moon_string *string) {
    boundary(pickle);
    if (!memo_known(pickle, string_key(string)))
        save_content(pickle, OP_SHORT_BINUNICODE, OP_BINUNICODE, string);
}

void moon_pickle_bytes(struct moon_pickle *pickle, const struct moon_string *bytes) {
    boundary(pickle);
    if (!memo_known(pickle, bytes_key(bytes)))
        save_content(pickle, OP_SHORT_BINBYTES, OP_BINBYTES, bytes);
}

void moon_pickle_tuple_begin(struct moon_pickle *pickle, size_t count) {
    boundary(pickle);
    if (count == 0)
        put_u8(pickle, OP_EMPTY_TUPLE);
    else if (count > 3)
        put_u8(pickle, OP_MARK);
}

void moon_pickle_tuple_end(struct moon_pickle *pickle, size_t count) {
    if (count == 0)
        return;
    put_u8(pickle, count > 3 ? OP_TUPLE : (uint8_t)(OP_TUPLE1 + count - 1));
    memoize(pickle);
}

int moon_pickle_finish(struct moon_pickle *pickle) {
    put_u8(pickle, OP_STOP);
    frame_close(pickle);
    return pickle->failed ? MOON_ERR_MEMORY : 0;
}
