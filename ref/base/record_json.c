/* SPDX-License-Identifier: Apache-2.0 */
/* A record as one line of JSON (HIST-003). */
#include "ref/base/json.h"
#include "ref/base/record_internal.h"

#include <assert.h>
#include <inttypes.h>

/* The largest whole number that every JSON reader has exactly. Larger ones are decimal text. */
#define EXACT_MAX ((uint64_t)1 << 53)

enum { HEX_DIGITS = 16 };

/* ---- writing */

static void write_bytes(struct moon_text *out, struct moon_bytes bytes) {
    if (moon_record_is_utf8(bytes)) {
        moon_json_quote(bytes.data, bytes.length, out);
        return;
    }
    moon_text_string(out, "{\"hex\":\"");
    moon_text_hex(out, bytes.data, bytes.length);
    moon_text_string(out, "\"}");
}

static void write_unsigned(struct moon_text *out, uint64_t value) {
    moon_text_format(out, value > EXACT_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}

static void write_signed(struct moon_text *out, int64_t value) {
    bool exact = value <= (int64_t)EXACT_MAX && value >= -(int64_t)EXACT_MAX;
    moon_text_format(out, exact ? "%" PRId64 : "\"%" PRId64 "\"", value);
}

static void write_extent(struct moon_text *out, const struct moon_extent *extent) {
    moon_text_string(out, "{\"segment\":");
    write_bytes(out, extent->segment);
    moon_text_string(out, ",\"offset\":");
    write_unsigned(out, extent->offset);
    moon_text_string(out, ",\"length\":");
    write_unsigned(out, extent->length);
    moon_text_char(out, '}');
}

static void write_value(struct moon_text *out, enum moon_record_form form, const void *field) {
    const char *name;
    switch (form) {
    case MOON_RECORD_FORM_U64:
        write_unsigned(out, *(const uint64_t *)field);
        break;
    case MOON_RECORD_FORM_U32:
        write_unsigned(out, *(const uint32_t *)field);
        break;
    case MOON_RECORD_FORM_I64:
        write_signed(out, *(const int64_t *)field);
        break;
    case MOON_RECORD_FORM_HEX:
        moon_text_format(out, "\"%016" PRIx64 "\"", *(const uint64_t *)field);
        break;
    case MOON_RECORD_FORM_BYTES:
        write_bytes(out, *(const struct moon_bytes *)field);
        break;
    case MOON_RECORD_FORM_NAME:
        name = *(const char *const *)field;
        moon_json_quote(name, strlen(name), out);
        break;
    case MOON_RECORD_FORM_EXTENT:
        write_extent(out, field);
        break;
    case MOON_RECORD_FORM_KIND:
        moon_text_format(out, "\"%s\"", moon_record_kind_name(*(const enum moon_record_kind *)field));
        break;
    case MOON_RECORD_FORM_SOURCE:
        moon_text_string(out, *(const bool *)field ? "\"internal\"" : "\"observed\"");
    }
}

static bool is_there(const struct moon_record *record, const struct moon_record_member *member) {
    if (member->flag == MOON_RECORD_NOT_ZERO)
        return *(const uint64_t *)((const char *)record + member->at) != 0;
    return member->flag == MOON_RECORD_ALWAYS || (record->has & member->flag) != 0;
}

void moon_record_write_json(const struct moon_record *record, struct moon_text *out) {
    char before = '{';
    assert(record->what);
    for (const struct moon_record_member *m = moon_record_members; m < moon_record_members + MOON_RECORD_MEMBERS; m++) {
        if (!is_there(record, m))
            continue;
        moon_text_format(out, "%c\"%s\":", before, m->name);
        write_value(out, m->form, (const char *)record + m->at);
        before = ',';
    }
    moon_text_string(out, "}\n");
}

/* ---- reading. Each returns 0 or fails with the value's place. */

static int bad(const struct moon_json *value, enum moon_status status, const char *expected, struct moon_error *error) {
    return moon_json_fail(error, status, NULL, value, "expected %s, found %s", expected, moon_json_type_name(value));
}

/* Digits without a leading zero, as far as 64 bits go. */
static bool parse_digits(const char *digits, size_t length, uint64_t *value) {
    *value = 0;
    if (length == 0 || (length > 1 && digits[0] == '0'))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(digits[i] - '0'), value))
            return false;
    }
    return true;
}

/* A number up to 2^53 as such, a larger one as text: one value has one form. */
static int read_magnitude(const struct moon_json *value, bool negative, uint64_t max, uint64_t *out,
                          struct moon_error *error) {
    if (!moon_json_is(value, MOON_JSON_INTEGER) && !moon_json_is(value, MOON_JSON_STRING))
        return bad(value, MOON_ERR_SCHEMA, "a whole number", error);
    bool parsed = parse_digits(value->bytes + negative, value->length - negative, out);
    if (!parsed || *out > max || (*out > EXACT_MAX) != (value->type == MOON_JSON_STRING) || (negative && *out == 0))
        return bad(value, MOON_ERR_RANGE, "a whole number of this member's range, beyond 2^53 as text", error);
    return 0;
}

static int read_unsigned(const struct moon_json *value, uint64_t max, uint64_t *out, struct moon_error *error) {
    return read_magnitude(value, false, max, out, error);
}

static int read_signed(const struct moon_json *value, int64_t *out, struct moon_error *error) {
    uint64_t magnitude = 0;
    bool digits = moon_json_is(value, MOON_JSON_INTEGER) || moon_json_is(value, MOON_JSON_STRING);
    bool negative = digits && value->length > 0 && value->bytes[0] == '-';
    int status = read_magnitude(value, negative, (uint64_t)INT64_MAX + negative, &magnitude, error);
    if (status == 0)
        *out = (int64_t)(negative ? 0 - magnitude : magnitude);
    return status;
}

static int read_hex(const struct moon_json *value, uint64_t *out, struct moon_error *error) {
    uint64_t read = 0;
    bool good = moon_json_is(value, MOON_JSON_STRING) && value->length == HEX_DIGITS;
    for (size_t i = 0; good && i < HEX_DIGITS; i++) {
        char c = value->bytes[i];
        good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        read = read << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (!good)
        return bad(value, MOON_ERR_SCHEMA, "16 lower-case hex digits", error);
    *out = read;
    return 0;
}

static int keep(struct moon_arena *arena, const char *bytes, size_t length, struct moon_bytes *out,
                struct moon_error *error) {
    *out = (struct moon_bytes){moon_arena_copy(arena, bytes, length), length};
    return out->data ? 0 : moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a record");
}

/* A string, or {"hex": ...}. */
static int read_bytes(struct moon_arena *arena, const struct moon_json *value, struct moon_bytes *out,
                      struct moon_error *error) {
    static const char *const names[] = {"hex", NULL};
    const char *hex;
    size_t length;
    if (moon_json_is(value, MOON_JSON_STRING))
        return keep(arena, value->bytes, value->length, out, error);
    if (!moon_json_is(value, MOON_JSON_OBJECT))
        return bad(value, MOON_ERR_SCHEMA, "a string or {\"hex\": ...}", error);
    int status = moon_json_closed(NULL, value, names, error);
    if (status == 0)
        status = moon_json_get_string(NULL, value, "hex", true, &hex, &length, error);
    if (status)
        return status;
    uint8_t *bytes = moon_arena_alloc(arena, length / 2);
    if (!bytes)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a record");
    if (moon_hex_decode(hex, length, bytes) != 0)
        return bad(value, MOON_ERR_SCHEMA, "hex digits", error);
    *out = (struct moon_bytes){(const char *)bytes, length / 2};
    return 0;
}

static int read_name(struct moon_arena *arena, const struct moon_json *value, const char **out,
                     struct moon_error *error) {
    struct moon_bytes copy;
    if (!moon_json_is(value, MOON_JSON_STRING) || memchr(value->bytes, 0, value->length) ||
        !moon_record_is_utf8((struct moon_bytes){value->bytes, value->length}))
        return bad(value, MOON_ERR_SCHEMA, "a name in UTF-8 without NUL", error);
    int status = keep(arena, value->bytes, value->length, &copy, error);
    if (status == 0)
        *out = copy.data;
    return status;
}

static int read_extent(struct moon_arena *arena, const struct moon_json *value, struct moon_extent *out,
                       struct moon_error *error) {
    static const char *const names[] = {"segment", "offset", "length", NULL};
    int status = moon_json_closed(NULL, value, names, error);
    for (size_t i = 0; status == 0 && names[i]; i++)
        if (!moon_json_member(value, names[i]))
            status = moon_json_fail(error, MOON_ERR_SCHEMA, NULL, value, "\"%s\" is missing", names[i]);
    if (status == 0)
        status = read_bytes(arena, moon_json_member(value, "segment"), &out->segment, error);
    if (status == 0)
        status = read_unsigned(moon_json_member(value, "offset"), UINT64_MAX, &out->offset, error);
    if (status == 0)
        status = read_unsigned(moon_json_member(value, "length"), UINT64_MAX, &out->length, error);
    return status;
}

static int read_kind(const struct moon_json *value, enum moon_record_kind *out, struct moon_error *error) {
    int found = moon_json_is(value, MOON_JSON_STRING) ? moon_record_kind_find(value->bytes, value->length) : -1;
    if (found < 0)
        return bad(value, MOON_ERR_SCHEMA, "a kind of record", error);
    *out = (enum moon_record_kind)found;
    return 0;
}

static int read_source(const struct moon_json *value, bool *internal, struct moon_error *error) {
    *internal = moon_json_is_string(value, "internal");
    if (!*internal && !moon_json_is_string(value, "observed"))
        return bad(value, MOON_ERR_SCHEMA, "\"observed\" or \"internal\"", error);
    return 0;
}

static int read_value(struct moon_arena *arena, const struct moon_json *value, enum moon_record_form form, void *field,
                      struct moon_error *error) {
    uint64_t number = 0;
    int status;
    switch (form) {
    case MOON_RECORD_FORM_U64:
        return read_unsigned(value, UINT64_MAX, field, error);
    case MOON_RECORD_FORM_U32:
        status = read_unsigned(value, UINT32_MAX, &number, error);
        *(uint32_t *)field = (uint32_t)number;
        return status;
    case MOON_RECORD_FORM_I64:
        return read_signed(value, field, error);
    case MOON_RECORD_FORM_HEX:
        return read_hex(value, field, error);
    case MOON_RECORD_FORM_BYTES:
        return read_bytes(arena, value, field, error);
    case MOON_RECORD_FORM_NAME:
        return read_name(arena, value, field, error);
    case MOON_RECORD_FORM_EXTENT:
        return read_extent(arena, value, field, error);
    case MOON_RECORD_FORM_KIND:
        return read_kind(value, field, error);
    default: /* MOON_RECORD_FORM_SOURCE */
        return read_source(value, field, error);
    }
}

static int read_members(struct moon_arena *arena, const struct moon_json *line, struct moon_record *record,
                        struct moon_error *error) {
    const char *names[MOON_RECORD_MEMBERS + 1] = {NULL};
    for (size_t i = 0; i < MOON_RECORD_MEMBERS; i++)
        names[i] = moon_record_members[i].name;
    int status = moon_json_closed(NULL, line, names, error);
    for (size_t i = 0; status == 0 && i < MOON_RECORD_MEMBERS; i++) {
        const struct moon_record_member *m = &moon_record_members[i];
        const struct moon_json *value = moon_json_member(line, m->name);
        if (!value && m->flag == MOON_RECORD_ALWAYS)
            return moon_json_fail(error, MOON_ERR_SCHEMA, NULL, line, "\"%s\" is missing", m->name);
        if (!value)
            continue;
        record->has |= m->flag & MOON_RECORD_HAS_ALL;
        status = read_value(arena, value, m->form, (char *)record + m->at, error);
    }
    return status;
}

int moon_record_read_json(struct moon_arena *arena, const char *line, size_t length, struct moon_record *record,
                          struct moon_error *error) {
    struct moon_arena tree; /* is large beside the record, so it has its own, short life */
    struct moon_json *root = NULL;
    struct moon_record read = {.what = ""};
    moon_arena_open(&tree, arena->memory);
    int status = moon_json_read(&tree, NULL, line, length, MOON_JSON_STRICT, &root, error);
    if (status == 0)
        status = read_members(arena, root, &read, error);
    if (status == 0)
        *record = read;
    moon_arena_close(&tree);
    return status;
}
