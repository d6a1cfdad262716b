/* SPDX-License-Identifier: Apache-2.0 */
/* struct_pack bodies from bytes to values and back. */
#include "ref/wire/value.h"

#include "ref/base/cursor.h"

#include <assert.h>
#include <string.h>

enum {
    META_TEXT = 0x04,         /* a type text follows */
    META_WIDTH_SHIFT = 3,     /* bits 3 and 4: length fields have 1 << that many bytes */
    META_KNOWN = 0x1c,        /* all bits of the above */
    HASH_WITH_META = 1,       /* bit 0 of the hash: a meta byte follows */
    FIELD_1_BYTES_MAX = 0xff, /* longest container of the length classes */
    FIELD_2_BYTES_MAX = 0xffff,
};

/* ---- decoding */

struct decoder {
    struct moon_cursor cursor;
    struct moon_arena *arena;
    unsigned length_bytes;
    struct moon_error *error;
};

static int cut(struct decoder *decoder) {
    return moon_fail(decoder->error, MOON_ERR_SYNTAX, NULL, "cut: the body ends at offset %zu, inside of a value",
                     decoder->cursor.length);
}

static uint64_t read_number(struct moon_cursor *cursor, unsigned bytes) {
    switch (bytes) {
    case 1:
        return moon_cursor_u8(cursor);
    case 2:
        return moon_cursor_u16_le(cursor);
    case 4:
        return moon_cursor_u32_le(cursor);
    default:
        return moon_cursor_u64_le(cursor);
    }
}

int moon_wire_read_head(const void *body, size_t length, struct moon_wire_head *head, size_t *data_offset,
                        struct moon_error *error) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, body, length);
    uint32_t hash = moon_cursor_u32_le(&cursor);
    uint8_t meta = hash & HASH_WITH_META ? moon_cursor_u8(&cursor) : 0;
    struct moon_wire_head read = {.hash = hash & ~(uint32_t)HASH_WITH_META,
                                  .length_bytes = 1U << (meta >> META_WIDTH_SHIFT & 3)};
    if (cursor.failed)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "cut: the body ends at offset %zu, inside of its head", length);
    if (meta & ~META_KNOWN)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "unknown bits in the meta byte 0x%02x at offset 4", meta);
    if (meta & META_TEXT) {
        const uint8_t *text = (const uint8_t *)body + cursor.offset;
        const uint8_t *end = memchr(text, 0, moon_cursor_left(&cursor));
        if (!end)
            return moon_fail(error, MOON_ERR_SYNTAX, NULL, "cut: the type text at offset %zu has no end",
                             cursor.offset);
        read.text = text;
        read.text_length = (size_t)(end - text);
        moon_cursor_bytes(&cursor, read.text_length + 1);
    }
    *head = read;
    *data_offset = cursor.offset;
    return MOON_OK;
}

static int decode_value(struct decoder *decoder, const struct moon_wire_type *type, struct moon_wire_value **out);

/* Decodes one part of `parent` and appends it behind *end. */
static int decode_part(struct decoder *decoder, struct moon_wire_value *parent, const struct moon_wire_type *type,
                       struct moon_wire_value ***end) {
    int status = decode_value(decoder, type, *end);
    if (status)
        return status;
    *end = &(**end)->next;
    parent->count++;
    return MOON_OK;
}

static int decode_flag(struct decoder *decoder, struct moon_wire_value *value) {
    value->number = moon_cursor_u8(&decoder->cursor);
    if (value->number > 1)
        return moon_fail(decoder->error, MOON_ERR_SYNTAX, NULL, "flag of value %u at offset %zu, not 0 or 1",
                         (unsigned)value->number, value->offset);
    return decoder->cursor.failed ? cut(decoder) : MOON_OK;
}

static int decode_count(struct decoder *decoder, struct moon_wire_value *value, uint64_t *count) {
    *count = read_number(&decoder->cursor, decoder->length_bytes);
    if (decoder->cursor.failed)
        return cut(decoder);
    /* Every element has at least one byte, so a false length is found before any memory is asked for. */
    size_t left = moon_cursor_left(&decoder->cursor);
    if (*count > left)
        return moon_fail(decoder->error, MOON_ERR_SYNTAX, NULL,
                         "length %llu at offset %zu, but only %zu bytes are left", (unsigned long long)*count,
                         value->offset, left);
    return MOON_OK;
}

static int decode_parts(struct decoder *decoder, struct moon_wire_value *value) {
    const struct moon_wire_type *type = value->type;
    struct moon_wire_value **end = &value->first;
    uint64_t count = 0;
    int status = decode_count(decoder, value, &count);
    for (uint64_t i = 0; i < count && !status; i++) {
        status = decode_part(decoder, value, type->of, &end);
        if (!status && type->value)
            status = decode_part(decoder, value, type->value, &end);
    }
    return status;
}

static int decode_string(struct decoder *decoder, struct moon_wire_value *value) {
    uint64_t count = 0;
    int status = decode_count(decoder, value, &count);
    if (status)
        return status;
    value->bytes = moon_cursor_bytes(&decoder->cursor, (size_t)count);
    value->length = (size_t)count;
    return MOON_OK;
}

static int decode_variant(struct decoder *decoder, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    unsigned alternatives = 0;
    value->number = moon_cursor_u8(&decoder->cursor);
    if (decoder->cursor.failed)
        return cut(decoder);
    while (value->type->members[alternatives].name)
        alternatives++;
    if (value->number >= alternatives)
        return moon_fail(decoder->error, MOON_ERR_SYNTAX, NULL, "alternative %u at offset %zu, but there are %u",
                         (unsigned)value->number, value->offset, alternatives);
    return decode_part(decoder, value, value->type->members[value->number].type, &end);
}

static int decode_optional(struct decoder *decoder, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    int status = decode_flag(decoder, value);
    if (!status && value->number)
        status = decode_part(decoder, value, value->type->of, &end);
    else if (!status && value->type->kind == MOON_WIRE_EXPECTED)
        value->second = (uint64_t)(int64_t)(int32_t)moon_cursor_u32_le(&decoder->cursor);
    return status;
}

static int decode_struct(struct decoder *decoder, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    int status = MOON_OK;
    for (const struct moon_wire_member *one = value->type->members; one->name && !status; one++)
        status = decode_part(decoder, value, one->type, &end);
    return status;
}

static int decode_content(struct decoder *decoder, struct moon_wire_value *value) {
    struct moon_cursor *cursor = &decoder->cursor;
    switch (value->type->kind) {
    case MOON_WIRE_VOID:
        return MOON_OK;
    case MOON_WIRE_BOOL:
        return decode_flag(decoder, value);
    case MOON_WIRE_U8:
        value->number = moon_cursor_u8(cursor);
        return MOON_OK;
    case MOON_WIRE_U16:
        value->number = moon_cursor_u16_le(cursor);
        return MOON_OK;
    case MOON_WIRE_U32:
        value->number = moon_cursor_u32_le(cursor);
        return MOON_OK;
    case MOON_WIRE_I32:
        value->number = (uint64_t)(int64_t)(int32_t)moon_cursor_u32_le(cursor);
        return MOON_OK;
    case MOON_WIRE_U64:
    case MOON_WIRE_I64:
        value->number = moon_cursor_u64_le(cursor);
        return MOON_OK;
    case MOON_WIRE_UUID:
        value->number = moon_cursor_u64_le(cursor);
        value->second = moon_cursor_u64_le(cursor);
        return MOON_OK;
    case MOON_WIRE_STRING:
        return decode_string(decoder, value);
    case MOON_WIRE_VECTOR:
    case MOON_WIRE_MAP:
        return decode_parts(decoder, value);
    case MOON_WIRE_OPTIONAL:
    case MOON_WIRE_EXPECTED:
        return decode_optional(decoder, value);
    case MOON_WIRE_VARIANT:
        return decode_variant(decoder, value);
    default:
        return decode_struct(decoder, value);
    }
}

static int decode_value(struct decoder *decoder, const struct moon_wire_type *type, struct moon_wire_value **out) {
    struct moon_wire_value *value = moon_arena_alloc(decoder->arena, sizeof *value);
    if (!value)
        return moon_fail(decoder->error, MOON_ERR_MEMORY, NULL, "out of memory");
    value->type = type;
    value->offset = decoder->cursor.offset;
    int status = decode_content(decoder, value);
    if (!status && decoder->cursor.failed)
        status = cut(decoder);
    *out = value;
    return status;
}

/* The type text of `type` must hash to the head's hash and, if it was sent, be equal to it. */
static int check_type(struct moon_arena *arena, const struct moon_wire_type *type, bool arguments,
                      const struct moon_wire_head *head, struct moon_error *error) {
    struct moon_text text;
    int status = MOON_OK;
    moon_text_open(&text, arena->memory);
    if (arguments)
        moon_wire_arguments_text(type, &text);
    else
        moon_wire_type_text(type, &text);
    uint32_t hash = moon_wire_type_hash(moon_text_value(&text), text.length);
    if (text.failed)
        status = moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    else if (head->hash != hash)
        status = moon_fail(error, MOON_ERR_SCHEMA, NULL, "type hash 0x%08x at offset 0, not 0x%08x", head->hash, hash);
    else if (head->text && (head->text_length != text.length || memcmp(head->text, text.data, text.length) != 0))
        status = moon_fail(error, MOON_ERR_SCHEMA, NULL, "type text at offset 5 is not the one that has this hash");
    moon_text_close(&text);
    return status;
}

int moon_wire_decode(struct moon_arena *arena, const struct moon_wire_type *type, bool arguments, const void *body,
                     size_t length, struct moon_wire_head *head, struct moon_wire_value **value,
                     struct moon_error *error) {
    struct moon_wire_head own = {.length_bytes = 1};
    struct decoder decoder = {.arena = arena, .error = error};
    struct moon_wire_value *decoded = NULL;
    size_t at = 0;
    int status = MOON_OK;
    if (!arguments || type->members[0].name) {
        status = moon_wire_read_head(body, length, &own, &at, error);
        if (!status)
            status = check_type(arena, type, arguments, &own, error);
    }
    if (status)
        return status;
    moon_cursor_open(&decoder.cursor, body, length);
    moon_cursor_bytes(&decoder.cursor, at);
    decoder.length_bytes = own.length_bytes;
    status = decode_value(&decoder, type, &decoded);
    if (status)
        return status;
    if (moon_cursor_left(&decoder.cursor) > 0)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "the value ends at offset %zu, but %zu bytes follow",
                         decoder.cursor.offset, moon_cursor_left(&decoder.cursor));
    *value = decoded;
    if (head)
        *head = own;
    return MOON_OK;
}

/* ---- encoding */

static size_t longest(const struct moon_wire_value *value) {
    size_t most = value->type->kind == MOON_WIRE_STRING   ? value->length
                  : value->type->kind == MOON_WIRE_VECTOR ? value->count
                  : value->type->kind == MOON_WIRE_MAP    ? value->count / 2
                                                          : 0;
    for (const struct moon_wire_value *one = value->first; one; one = one->next) {
        size_t inner = longest(one);
        most = inner > most ? inner : most;
    }
    return most;
}

static void put_number(struct moon_text *out, uint64_t number, unsigned bytes) {
    uint8_t little[8];
    for (unsigned i = 0; i < 8; i++)
        little[i] = (uint8_t)(number >> 8 * i);
    moon_text_bytes(out, little, bytes);
}

/* Bytes of the fixed part of a value: the number itself, a flag or an index. */
static unsigned fixed_bytes(enum moon_wire_kind kind) {
    switch (kind) {
    case MOON_WIRE_BOOL:
    case MOON_WIRE_U8:
    case MOON_WIRE_OPTIONAL:
    case MOON_WIRE_EXPECTED:
    case MOON_WIRE_VARIANT:
        return 1;
    case MOON_WIRE_U16:
        return 2;
    case MOON_WIRE_U32:
    case MOON_WIRE_I32:
        return 4;
    case MOON_WIRE_U64:
    case MOON_WIRE_I64:
    case MOON_WIRE_UUID:
        return 8;
    default:
        return 0;
    }
}

static void encode_value(const struct moon_wire_value *value, unsigned length_bytes, struct moon_text *out) {
    enum moon_wire_kind kind = value->type->kind;
    put_number(out, value->number, fixed_bytes(kind));
    if (kind == MOON_WIRE_UUID)
        put_number(out, value->second, 8);
    else if (kind == MOON_WIRE_EXPECTED && !value->number)
        put_number(out, value->second, 4);
    else if (kind == MOON_WIRE_VECTOR)
        put_number(out, value->count, length_bytes);
    else if (kind == MOON_WIRE_MAP)
        put_number(out, value->count / 2, length_bytes);
    else if (kind == MOON_WIRE_STRING) {
        put_number(out, value->length, length_bytes);
        moon_text_bytes(out, value->bytes, value->length);
    }
    for (const struct moon_wire_value *one = value->first; one; one = one->next)
        encode_value(one, length_bytes, out);
}

void moon_wire_encode(const struct moon_wire_value *value, bool arguments, bool with_text, struct moon_text *out) {
    struct moon_text text;
    if (arguments && !value->first)
        return;
    size_t most = longest(value);
    unsigned width = most <= FIELD_1_BYTES_MAX ? 0 : most <= FIELD_2_BYTES_MAX ? 1 : most <= UINT32_MAX ? 2 : 3;
    unsigned meta = width << META_WIDTH_SHIFT | (with_text ? META_TEXT : 0);
    moon_text_open(&text, out->memory);
    if (arguments)
        moon_wire_arguments_text(value->type, &text);
    else
        moon_wire_type_text(value->type, &text);
    put_number(out, moon_wire_type_hash(moon_text_value(&text), text.length) | (meta ? HASH_WITH_META : 0), 4);
    if (meta)
        moon_text_char(out, (char)meta);
    if (with_text)
        moon_text_bytes(out, moon_text_value(&text), text.length + 1); /* with the NUL behind it */
    encode_value(value, 1U << width, out);
    out->failed = out->failed || text.failed;
    moon_text_close(&text);
}
