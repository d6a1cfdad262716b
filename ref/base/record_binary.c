/* SPDX-License-Identifier: Apache-2.0 */
/* The compact form of a record: what a history's digest is taken over (HIST-004). */
#include "ref/base/cursor.h"
#include "ref/base/record_internal.h"

#include <assert.h>

enum { LENGTH_BYTES = 4 };

static void write_number(struct moon_text *out, uint64_t value, size_t bytes) {
    char digits[sizeof value];
    for (size_t i = 0; i < bytes; i++)
        digits[i] = (char)(unsigned char)(value >> (8 * i));
    moon_text_bytes(out, digits, bytes);
}

static void write_bytes(struct moon_text *out, struct moon_bytes bytes) {
    assert(bytes.length <= UINT32_MAX);
    write_number(out, bytes.length, LENGTH_BYTES);
    moon_text_bytes(out, bytes.data, bytes.length);
}

static void write_member(struct moon_text *out, enum moon_record_form form, const void *field) {
    const struct moon_extent *extent = field;
    switch (form) {
    case MOON_RECORD_FORM_U64:
    case MOON_RECORD_FORM_HEX:
        write_number(out, *(const uint64_t *)field, 8);
        break;
    case MOON_RECORD_FORM_I64:
        write_number(out, (uint64_t) * (const int64_t *)field, 8);
        break;
    case MOON_RECORD_FORM_U32:
        write_number(out, *(const uint32_t *)field, 4);
        break;
    case MOON_RECORD_FORM_KIND:
        write_number(out, *(const enum moon_record_kind *)field, 1);
        break;
    case MOON_RECORD_FORM_SOURCE:
        write_number(out, *(const bool *)field, 1);
        break;
    case MOON_RECORD_FORM_BYTES:
        write_bytes(out, *(const struct moon_bytes *)field);
        break;
    case MOON_RECORD_FORM_NAME: /* with its NUL, so that it is read in place */
        write_bytes(out, moon_bytes_of(*(const char *const *)field));
        write_number(out, 0, 1);
        break;
    case MOON_RECORD_FORM_EXTENT:
        write_bytes(out, extent->segment);
        write_number(out, extent->offset, 8);
        write_number(out, extent->length, 8);
    }
}

/* Members that a record may lack are left out if it does; op, parent and msg are there even if they are 0. */
static bool is_there(const struct moon_record *record, const struct moon_record_member *member) {
    return (member->flag & MOON_RECORD_HAS_ALL) == 0 || (record->has & member->flag) != 0;
}

void moon_record_write_binary(const struct moon_record *record, struct moon_text *out) {
    size_t start = out->length;
    assert(record->what && (record->has & ~(unsigned)MOON_RECORD_HAS_ALL) == 0);
    write_number(out, 0, LENGTH_BYTES);
    write_number(out, record->has, 4);
    for (const struct moon_record_member *m = moon_record_members; m < moon_record_members + MOON_RECORD_MEMBERS; m++)
        if (is_there(record, m))
            write_member(out, m->form, (const char *)record + m->at);
    if (out->failed)
        return;
    size_t length = out->length - start - LENGTH_BYTES;
    assert(length <= UINT32_MAX);
    for (size_t i = 0; i < LENGTH_BYTES; i++)
        out->data[start + i] = (char)(unsigned char)(length >> (8 * i));
}

static void read_bytes(struct moon_cursor *in, struct moon_bytes *bytes) {
    bytes->length = moon_cursor_u32_le(in);
    bytes->data = (const char *)moon_cursor_bytes(in, bytes->length);
}

/* UTF-8 that is ended by the NUL behind it, and by none before. */
static bool read_name(struct moon_cursor *in, const char **name) {
    struct moon_bytes bytes;
    read_bytes(in, &bytes);
    if (moon_cursor_u8(in) != 0 || in->failed || memchr(bytes.data, 0, bytes.length) || !moon_record_is_utf8(bytes))
        return false;
    *name = bytes.data;
    return true;
}

/* False: a value that is none of its form. Reading past the end is the cursor's to tell. */
static bool read_member(struct moon_cursor *in, enum moon_record_form form, void *field) {
    struct moon_extent *extent = field;
    unsigned small;
    switch (form) {
    case MOON_RECORD_FORM_U64:
    case MOON_RECORD_FORM_HEX:
        *(uint64_t *)field = moon_cursor_u64_le(in);
        return true;
    case MOON_RECORD_FORM_I64:
        *(int64_t *)field = (int64_t)moon_cursor_u64_le(in);
        return true;
    case MOON_RECORD_FORM_U32:
        *(uint32_t *)field = moon_cursor_u32_le(in);
        return true;
    case MOON_RECORD_FORM_KIND:
        small = moon_cursor_u8(in);
        *(enum moon_record_kind *)field = (enum moon_record_kind)small;
        return small <= MOON_RECORD_NOTE;
    case MOON_RECORD_FORM_SOURCE:
        small = moon_cursor_u8(in);
        *(bool *)field = small != 0;
        return small <= 1;
    case MOON_RECORD_FORM_BYTES:
        read_bytes(in, field);
        return true;
    case MOON_RECORD_FORM_NAME:
        return read_name(in, field);
    default: /* MOON_RECORD_FORM_EXTENT */
        read_bytes(in, &extent->segment);
        extent->offset = moon_cursor_u64_le(in);
        extent->length = moon_cursor_u64_le(in);
        return true;
    }
}

int moon_record_read_binary(const void *bytes, size_t length, struct moon_record *record, size_t *used,
                            struct moon_error *error) {
    struct moon_cursor outer, in;
    struct moon_record read = {.what = ""};
    moon_cursor_open(&outer, bytes, length);
    size_t body_bytes = moon_cursor_u32_le(&outer);
    const uint8_t *body = moon_cursor_bytes(&outer, body_bytes);
    if (outer.failed)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "offset %zu: the record is cut", outer.short_at);
    moon_cursor_open(&in, body, body_bytes);
    read.has = moon_cursor_u32_le(&in);
    if ((read.has & ~(unsigned)MOON_RECORD_HAS_ALL) != 0)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "offset %d: unknown members", LENGTH_BYTES);
    for (const struct moon_record_member *m = moon_record_members; m < moon_record_members + MOON_RECORD_MEMBERS; m++) {
        size_t at = in.offset;
        if (is_there(&read, m) && !read_member(&in, m->form, (char *)&read + m->at) && !in.failed)
            return moon_fail(error, MOON_ERR_SYNTAX, NULL, "offset %zu: no %s", LENGTH_BYTES + at, m->name);
    }
    if (in.failed)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "offset %zu: the record ends", LENGTH_BYTES + in.short_at);
    if (moon_cursor_left(&in) > 0)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "offset %zu: the record goes on", LENGTH_BYTES + in.offset);
    *record = read;
    *used = outer.offset;
    return 0;
}
