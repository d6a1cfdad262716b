/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON trees so that any reader of UTF-8 JSON takes them, and reading them back gives the same tree. */
#include "ref/base/json.h"

#include "ref/base/json_internal.h"
#include "ref/base/utf8.h"

enum {
    INDENT_SPACES = 2,
    SHORT_ARRAY_BYTES = 80, /* arrays of scalars up to about this width stay on one line */
};

/* Bytes at the start of [bytes, bytes + length) that a JSON string takes as they are. */
static size_t plain_run(const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        uint32_t code_point = 0;
        size_t used = moon_utf8_decode(bytes + at, length - at, &code_point);
        bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
        if (used == 0 || surrogate || code_point < 0x20 || code_point == '"' || code_point == '\\')
            break;
        at += used;
    }
    return at;
}

/* What stopped plain_run, escaped. A byte that is no UTF-8 is written as Python's "surrogateescape" has it: U+DC80 +
 * byte - 80. Returns the bytes taken from the input. */
static size_t write_escape(const char *bytes, size_t length, struct moon_text *out) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    uint32_t code_point;
    size_t used = moon_utf8_decode(bytes, length, &code_point);
    if (used == 0) {
        used = 1;
        code_point = 0xDC00u + (uint8_t)bytes[0];
    }
    for (size_t i = 0; i < sizeof to - 1; i++)
        if (code_point == (uint8_t)from[i]) {
            moon_text_char(out, '\\');
            moon_text_char(out, to[i]);
            return used;
        }
    moon_text_format(out, "\\u%04x", (unsigned)code_point);
    return used;
}

void moon_json_quote(const char *bytes, size_t length, struct moon_text *out) {
    moon_text_char(out, '"');
    for (size_t at = 0; at < length;) {
        size_t plain = plain_run(bytes + at, length - at);
        moon_text_bytes(out, bytes + at, plain);
        at += plain;
        if (at < length)
            at += write_escape(bytes + at, length - at, out);
    }
    moon_text_char(out, '"');
}

static bool is_container(const struct moon_json *value) {
    return value->type == MOON_JSON_ARRAY || value->type == MOON_JSON_OBJECT;
}

/* True for an array of scalars that fits on a line, give or take escapes. */
static bool is_short(const struct moon_json *value) {
    size_t width = 0;
    for (const struct moon_json *child = value->first; child; child = child->next) {
        if (is_container(child))
            return false;
        width += child->length + 4; /* quotes or the length of "true", comma, space */
        if (width > SHORT_ARRAY_BYTES)
            return false;
    }
    return value->type == MOON_JSON_ARRAY;
}

/* A scalar, or the opening bracket of a container. */
static void write_start(const struct moon_json *value, struct moon_text *out) {
    switch (value->type) {
    case MOON_JSON_NULL:
        moon_text_string(out, "null");
        break;
    case MOON_JSON_BOOL:
        moon_text_string(out, value->boolean ? "true" : "false");
        break;
    case MOON_JSON_STRING:
        moon_json_quote(value->bytes, value->length, out);
        break;
    case MOON_JSON_ARRAY:
        moon_text_char(out, '[');
        break;
    case MOON_JSON_OBJECT:
        moon_text_char(out, '{');
        break;
    default: /* both kinds of number keep their text */
        moon_text_bytes(out, value->bytes, value->length);
    }
}

/* What stands between two children, or a bracket and a child, `depth` containers deep. */
static void write_gap(enum moon_json_style style, bool one_line, bool comma, size_t depth, struct moon_text *out) {
    if (comma)
        moon_text_char(out, ',');
    if (style == MOON_JSON_PRETTY && !one_line) {
        moon_text_char(out, '\n');
        moon_text_repeat(out, ' ', depth * INDENT_SPACES);
    } else if (style == MOON_JSON_PRETTY && comma) {
        moon_text_char(out, ' ');
    }
}

static void write_name(const struct moon_json *value, enum moon_json_style style, struct moon_text *out) {
    if (!value->name)
        return;
    moon_json_quote(value->name, value->name_length, out);
    moon_text_string(out, style == MOON_JSON_PRETTY ? ": " : ":");
}

void moon_json_write(const struct moon_json *value, enum moon_json_style style, struct moon_text *out) {
    const struct moon_json *at = value;
    size_t depth = 0;
    bool one_line = false; /* the innermost open container is a short array */
    write_start(at, out);
    while (!out->failed) {
        if (at->first) {
            one_line = is_short(at);
            at = at->first;
            write_gap(style, one_line, false, ++depth, out);
        } else {
            if (is_container(at))
                moon_text_char(out, at->type == MOON_JSON_ARRAY ? ']' : '}');
            while (at != value && !at->next) {
                at = at->parent;
                write_gap(style, one_line, false, --depth, out);
                one_line = false; /* a short array holds no container, so what encloses it is on several lines */
                moon_text_char(out, at->type == MOON_JSON_ARRAY ? ']' : '}');
            }
            if (at == value)
                return;
            at = at->next;
            write_gap(style, one_line, true, depth, out);
        }
        write_name(at, style, out);
        write_start(at, out);
    }
}
