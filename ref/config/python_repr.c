/* SPDX-License-Identifier: Apache-2.0 */
/* repr() of JSON values: quotes, escapes, shortest floats, containers. */
#include "ref/config/python_repr.h"

#include "ref/base/utf8.h"
#include "ref/config/python_unicode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOUBLE_DIGITS_MAX = 17,  /* significant digits that always read back */
    FIXED_EXPONENT_MIN = -4, /* repr() writes 1e-05, but 0.0001 */
    FIXED_EXPONENT_END = 16, /* and 1e+16, but 1000000000000000.0 */
};

const char *moon_python_type(const struct moon_json *value) {
    static const char *const names[] = {"NoneType", "bool", "int", "float", "str", "list", "dict"};
    return names[value->type];
}

bool moon_python_truth(const struct moon_json *value) {
    if (!value)
        return false;
    switch (value->type) {
    case MOON_JSON_NULL:
        return false;
    case MOON_JSON_BOOL:
        return value->boolean;
    case MOON_JSON_INTEGER:
        return !value->fits || value->integer != 0;
    case MOON_JSON_REAL:
        return value->real != 0.0;
    case MOON_JSON_STRING:
        return value->length > 0;
    default:
        return value->count > 0;
    }
}

static bool printable(uint32_t code_point) {
    size_t low = 0, high = moon_python_printable_turn_count;
    while (low < high) { /* low ends as the number of turns at or before the code point */
        size_t middle = (low + high) / 2;
        if (moon_python_printable_turns[middle] <= code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low % 2 == 0;
}

static void repr_character(uint32_t code_point, const char *bytes, size_t used, char quote, struct moon_text *out) {
    if (code_point == (uint32_t)quote || code_point == '\\')
        moon_text_format(out, "\\%c", (char)code_point);
    else if (code_point == '\t')
        moon_text_string(out, "\\t");
    else if (code_point == '\n')
        moon_text_string(out, "\\n");
    else if (code_point == '\r')
        moon_text_string(out, "\\r");
    else if (printable(code_point))
        moon_text_bytes(out, bytes, used);
    else if (code_point <= 0xFF)
        moon_text_format(out, "\\x%02x", (unsigned)code_point);
    else if (code_point <= 0xFFFF)
        moon_text_format(out, "\\u%04x", (unsigned)code_point);
    else
        moon_text_format(out, "\\U%08x", (unsigned)code_point);
}

static void repr_string(const char *text, size_t length, struct moon_text *out) {
    bool single = memchr(text, '\'', length) != NULL, twofold = memchr(text, '"', length) != NULL;
    char quote = single && !twofold ? '"' : '\'';
    moon_text_char(out, quote);
    for (size_t at = 0; at < length;) {
        uint32_t code_point = 0;
        size_t used = moon_utf8_decode(text + at, length - at, &code_point);
        if (used == 0) { /* built trees may hold any bytes; show such a byte and go on */
            code_point = (uint8_t)text[at];
            moon_text_format(out, "\\x%02x", (unsigned)code_point);
            used = 1;
        } else {
            repr_character(code_point, text + at, used, quote, out);
        }
        at += used;
    }
    moon_text_char(out, quote);
}

/* The fewest significant digits that read back as `value` (finite), without sign and point, and the exponent of the
 * first one. printf and strtod use one and the same locale here, and the point is skipped, so the locale does not
 * matter. */
static void shortest_digits(double value, char digits[DOUBLE_DIGITS_MAX + 1], int *exponent) {
    char text[64];
    for (int precision = 0; precision < DOUBLE_DIGITS_MAX; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, value);
        if (strtod(text, NULL) == value)
            break;
    }
    size_t count = 0;
    const char *at = text;
    for (; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            digits[count++] = *at;
    digits[count] = '\0';
    *exponent = (int)strtol(at + 1, NULL, 10);
}

static void repr_float(double value, struct moon_text *out) {
    if (isnan(value)) {
        moon_text_string(out, "nan");
        return;
    }
    if (signbit(value))
        moon_text_char(out, '-');
    if (isinf(value)) {
        moon_text_string(out, "inf");
        return;
    }
    char digits[DOUBLE_DIGITS_MAX + 1];
    int exponent = 0;
    shortest_digits(fabs(value), digits, &exponent);
    int count = (int)strlen(digits);
    if (exponent < FIXED_EXPONENT_MIN || exponent >= FIXED_EXPONENT_END) {
        moon_text_char(out, digits[0]);
        if (count > 1)
            moon_text_format(out, ".%s", digits + 1);
        moon_text_format(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        moon_text_string(out, "0.");
        moon_text_repeat(out, '0', (size_t)(-exponent - 1));
        moon_text_string(out, digits);
    } else if (count <= exponent + 1) {
        moon_text_string(out, digits);
        moon_text_repeat(out, '0', (size_t)(exponent + 1 - count));
        moon_text_string(out, ".0");
    } else {
        moon_text_format(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
    }
}

static void repr_scalar(const struct moon_json *value, struct moon_text *out) {
    switch (value->type) {
    case MOON_JSON_NULL:
        moon_text_string(out, "None");
        break;
    case MOON_JSON_BOOL:
        moon_text_string(out, value->boolean ? "True" : "False");
        break;
    case MOON_JSON_INTEGER: /* JSON allows one spelling that int() does not keep: -0 */
        moon_text_string(out, value->fits && value->integer == 0 ? "0" : value->bytes);
        break;
    case MOON_JSON_REAL:
        repr_float(value->real, out);
        break;
    default:
        repr_string(value->bytes, value->length, out);
    }
}

static void repr_head(const struct moon_json *value, const struct moon_json *root, struct moon_text *out) {
    if (value != root && value->index > 0)
        moon_text_string(out, ", ");
    if (value != root && value->name) {
        repr_string(value->name, value->name_length, out);
        moon_text_string(out, ": ");
    }
    if (value->type == MOON_JSON_ARRAY)
        moon_text_char(out, '[');
    else if (value->type == MOON_JSON_OBJECT)
        moon_text_char(out, '{');
    else
        repr_scalar(value, out);
}

static void repr_tail(const struct moon_json *value, struct moon_text *out) {
    if (value->type == MOON_JSON_ARRAY)
        moon_text_char(out, ']');
    else if (value->type == MOON_JSON_OBJECT)
        moon_text_char(out, '}');
}

void moon_python_repr(const struct moon_json *root, struct moon_text *out) {
    const struct moon_json *value = root;
    for (;;) { /* every value is entered once and left once */
        repr_head(value, root, out);
        if (value->first) {
            value = value->first;
            continue;
        }
        repr_tail(value, out);
        while (value != root && !value->next) {
            value = value->parent;
            repr_tail(value, out);
        }
        if (value == root)
            return;
        value = value->next;
    }
}
