/* SPDX-License-Identifier: Apache-2.0 */
/* How Python reads numbers from text: digits of all scripts, doubles, exact integers, and the size rule on top. */
#include "ref/config/python_number.h"

#include "ref/base/utf8.h"
#include "ref/config/python_repr.h"
#include "ref/config/python_unicode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    KELVIN_SIGN = 0x212A,       /* the one character outside ASCII whose lower case is a letter of a unit */
    EXPONENT_LIMIT = 100000000, /* beyond it every double is 0 or infinity, whatever its digits */
    INTEGER_BYTES = 512,        /* the largest double has 309 digits */
    EXPONENT_BYTES = 32,        /* "e-123456789" and a NUL */
};

/* ---- characters ---- */

static bool is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* What the pattern of the size rule calls white space: vLLM matches it with the regex package, which takes Unicode's
 * White_Space and so leaves out the four separators that str.isspace counts. */
static bool is_pattern_space(uint32_t c) {
    return is_space(c) && !(c >= 0x1C && c <= 0x1F);
}

/* Digits that came after Unicode 14: the regex package (2026) knows them, float() of CPython 3.11 does not. */
static bool is_later_digit(uint32_t c) {
    static const uint32_t zeros[] = {0x10D40, 0x116D0, 0x116DA, 0x11BF0, 0x11DE0, 0x11F50,
                                     0x16130, 0x16D70, 0x1CCF0, 0x1E4F0, 0x1E5F1};
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        if (c - zeros[i] < 10)
            return true;
    return false;
}

/* Value of a decimal digit of any script, -1 for other characters. */
static int digit_value(uint32_t c) {
    size_t low = 0, high = moon_python_zero_count;
    while (low < high) { /* low ends as the number of zeros at or before c */
        size_t middle = (low + high) / 2;
        if (moon_python_zeros[middle] <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && c - moon_python_zeros[low - 1] < 10 ? (int)(c - moon_python_zeros[low - 1]) : -1;
}

/* The character at text[0..length), U+FFFD for bytes that are none; *used gets its bytes (1 at least). */
static uint32_t character(const char *text, size_t length, size_t *used) {
    uint32_t c = 0xFFFD;
    *used = moon_utf8_decode(text, length, &c);
    if (*used == 0) {
        *used = 1;
        return 0xFFFD;
    }
    return c;
}

void moon_python_strip(const char **text, size_t *length) {
    const char *start = *text, *end = *text + *length;
    size_t used = 0;
    while (start < end && is_space(character(start, (size_t)(end - start), &used)))
        start += used;
    while (end > start) {
        const char *last = end - 1; /* back to the first byte of the last character */
        while (last > start && ((uint8_t)*last & 0xC0) == 0x80)
            last--;
        if (!is_space(character(last, (size_t)(end - last), &used)))
            break;
        end = last;
    }
    *text = start;
    *length = (size_t)(end - start);
}

/* ---- doubles ---- */

/* Digits without sign and point, and the power of ten that their last one stands for. `digits` has EXPONENT_BYTES to
 * spare. */
struct decimal {
    char *digits;
    size_t count;
    int64_t exponent;
};

/* The nearest double. Written without a point, so that strtod does not ask the locale for one. */
static double decimal_value(struct decimal *decimal) {
    int64_t exponent = decimal->exponent;
    if (exponent > EXPONENT_LIMIT)
        exponent = EXPONENT_LIMIT;
    if (exponent < -EXPONENT_LIMIT)
        exponent = -EXPONENT_LIMIT;
    snprintf(decimal->digits + decimal->count, EXPONENT_BYTES, "e%lld", (long long)exponent);
    return strtod(decimal->digits, NULL);
}

/* ---- float() and int() ---- */

/* Digits with single underscores between them, from text[*at]. Appends to `decimal` when given. Returns false if there
 * is none or an underscore stands wrong. */
static bool digits_part(const char *text, size_t length, size_t *at, struct decimal *decimal) {
    bool digit = false;
    for (;;) {
        if (*at < length && text[*at] >= '0' && text[*at] <= '9') {
            if (decimal)
                decimal->digits[decimal->count++] = text[*at];
            digit = true;
        } else if (!(digit && *at < length && text[*at] == '_')) {
            return digit;
        } else {
            digit = false;
        }
        ++*at;
    }
}

/* Mantissa of a float literal: digits, point, digits, one of the two groups may be missing. */
static bool mantissa_part(const char *text, size_t length, size_t *at, struct decimal *decimal) {
    bool digit = *at < length && text[*at] >= '0' && text[*at] <= '9';
    if (digit && !digits_part(text, length, at, decimal))
        return false;
    if (*at >= length || text[*at] != '.')
        return digit;
    ++*at;
    size_t before = decimal->count;
    bool fraction = *at < length && text[*at] >= '0' && text[*at] <= '9';
    if (fraction && !digits_part(text, length, at, decimal))
        return false;
    decimal->exponent = -(int64_t)(decimal->count - before);
    return digit || fraction;
}

static bool exponent_part(const char *text, size_t length, size_t *at, struct decimal *decimal) {
    if (*at >= length || (text[*at] != 'e' && text[*at] != 'E'))
        return true;
    ++*at;
    bool negative = *at < length && text[*at] == '-';
    if (negative || (*at < length && text[*at] == '+'))
        ++*at;
    size_t start = *at;
    if (!digits_part(text, length, at, NULL))
        return false;
    int64_t exponent = 0;
    for (size_t i = start; i < *at; i++)
        if (text[i] != '_' && exponent < EXPONENT_LIMIT)
            exponent = exponent * 10 + (text[i] - '0');
    decimal->exponent += negative ? -exponent : exponent;
    return true;
}

static bool is_word(const char *text, size_t length, const char *word) {
    return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

/* `text` is ASCII here; `decimal` has room for it. */
static bool float_literal(const char *text, size_t length, struct decimal *decimal, double *out) {
    size_t at = 0;
    bool negative = length > 0 && text[0] == '-';
    if (negative || (length > 0 && text[0] == '+'))
        at = 1;
    double value = 0;
    if (is_word(text + at, length - at, "inf") || is_word(text + at, length - at, "infinity")) {
        value = INFINITY;
    } else if (is_word(text + at, length - at, "nan")) {
        value = NAN;
    } else {
        if (!mantissa_part(text, length, &at, decimal) || !exponent_part(text, length, &at, decimal) || at != length)
            return false;
        value = decimal_value(decimal);
    }
    *out = negative ? -value : value;
    return true;
}

int moon_python_float(struct moon_arena *arena, const char *text, size_t length, double *out) {
    moon_python_strip(&text, &length);
    char *ascii = moon_arena_alloc(arena, length + 1);
    struct decimal decimal = {moon_arena_alloc(arena, length + EXPONENT_BYTES), 0, 0};
    if (!ascii || !decimal.digits)
        return MOON_ERR_MEMORY;
    size_t count = 0, used = 0;
    for (size_t at = 0; at < length; at += used) {
        uint32_t c = character(text + at, length - at, &used);
        int digit = digit_value(c);
        if (digit < 0 && c > 0x7F)
            return MOON_ERR_SYNTAX;
        ascii[count++] = (char)(digit < 0 ? (int)c : '0' + digit);
    }
    return float_literal(ascii, count, &decimal, out) ? MOON_OK : MOON_ERR_SYNTAX;
}

int moon_python_int(const char *text, size_t length, int64_t *out) {
    moon_python_strip(&text, &length);
    bool negative = length > 0 && text[0] == '-';
    size_t at = negative || (length > 0 && text[0] == '+') ? 1 : 0, used = 0;
    bool after_digit = false, fits = true;
    int64_t value = 0;
    for (; at < length; at += used) {
        uint32_t c = character(text + at, length - at, &used);
        int digit = digit_value(c);
        if (digit < 0 && !(c == '_' && after_digit))
            return MOON_ERR_SYNTAX;
        after_digit = digit >= 0;
        if (after_digit && (__builtin_mul_overflow(value, 10, &value) ||
                            __builtin_add_overflow(value, negative ? -digit : digit, &value)))
            fits = false;
    }
    if (!after_digit)
        return MOON_ERR_SYNTAX;
    if (!fits)
        return MOON_ERR_RANGE;
    *out = value;
    return MOON_OK;
}

/* ---- sizes ---- */

static int finish(struct moon_json *number, struct moon_json **out) {
    *out = number;
    return number ? MOON_OK : MOON_ERR_MEMORY;
}

int moon_python_trunc(struct moon_arena *arena, double value, struct moon_json **out, struct moon_exception *raised) {
    if (isnan(value))
        return moon_raise(arena, raised, "ValueError", "cannot convert float NaN to integer");
    if (isinf(value))
        return moon_raise(arena, raised, "OverflowError", "cannot convert float infinity to integer");
    char digits[INTEGER_BYTES];
    double whole;
    modf(value, &whole);
    int length = snprintf(digits, sizeof digits, "%.0f", whole == 0 ? 0.0 : whole); /* no -0 */
    return finish(moon_json_number(arena, digits, (size_t)length), out);
}

struct size_parts {
    struct decimal decimal;
    size_t points;       /* dots in the number */
    bool unreadable;     /* it holds digits that float() does not know */
    size_t number_bytes; /* of the text as given */
    int shift;           /* unit as a power of two, -1: none */
};

/* Unit that `text` names wholly: 0, 10, 20 or 30; -1 for an empty text; -2 for anything else. */
static int unit_shift(const char *text, size_t length) {
    char letters[2] = {0, 0};
    size_t count = 0, used = 0;
    for (size_t at = 0; at < length; at += used) {
        uint32_t c = character(text + at, length - at, &used);
        if (count == 2 || (c > 0x7F && c != KELVIN_SIGN))
            return -2;
        letters[count++] = c == KELVIN_SIGN ? 'k' : (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    if (count == 0)
        return -1;
    if (letters[count - 1] != 'b')
        return -2;
    if (count == 1)
        return 0;
    const char *prefixes = "kmg";
    const char *prefix = letters[0] ? strchr(prefixes, letters[0]) : NULL;
    return prefix ? 10 * (int)(prefix - prefixes + 1) : -2;
}

/* Takes a stripped text apart. False if it does not have the form. */
static bool size_split(const char *text, size_t length, struct size_parts *parts) {
    size_t at = 0, used = 0;
    for (; at < length; at += used) {
        uint32_t c = character(text + at, length - at, &used);
        int digit = digit_value(c);
        if (digit >= 0) {
            parts->decimal.digits[parts->decimal.count++] = (char)('0' + digit);
            parts->decimal.exponent -= parts->points > 0;
        } else if (c == '.') {
            parts->points++;
        } else if (is_later_digit(c)) {
            parts->unreadable = true;
        } else {
            break;
        }
    }
    parts->number_bytes = at;
    while (at < length && is_pattern_space(character(text + at, length - at, &used)))
        at += used;
    parts->shift = unit_shift(text + at, length - at);
    return parts->number_bytes > 0 && parts->shift >= -1;
}

static int refuse_number(struct moon_arena *arena, const char *number, size_t number_bytes, const char *given,
                         size_t given_bytes, struct moon_exception *raised) {
    struct moon_text message;
    moon_text_open(&message, arena->memory);
    if (number) {
        moon_text_string(&message, "Invalid numeric value '");
        moon_text_bytes(&message, number, number_bytes);
        moon_text_string(&message, "' in: '");
    } else {
        moon_text_string(&message, "Invalid format: '");
    }
    moon_text_bytes(&message, given, given_bytes);
    moon_text_char(&message, '\'');
    int status = moon_raise_text(arena, raised, "ValueError", &message);
    moon_text_close(&message);
    return status;
}

int moon_python_size_text(struct moon_arena *arena, const char *given, size_t given_bytes, struct moon_size_text *out,
                          struct moon_exception *raised) {
    const char *text = given;
    size_t length = given_bytes;
    moon_python_strip(&text, &length);
    if (length == 0)
        return moon_raise(arena, raised, "ValueError", "Size cannot be empty.");
    struct size_parts parts = {.decimal.digits = moon_arena_alloc(arena, length + EXPONENT_BYTES)};
    if (!parts.decimal.digits)
        return MOON_ERR_MEMORY;
    if (!size_split(text, length, &parts))
        return refuse_number(arena, NULL, 0, given, given_bytes, raised);
    if (parts.points > 1 || parts.decimal.count == 0 || parts.unreadable)
        return refuse_number(arena, text, parts.number_bytes, given, given_bytes, raised);
    double bytes = ldexp(decimal_value(&parts.decimal), parts.shift < 0 ? 0 : parts.shift);
    double whole;
    *out = (struct moon_size_text){bytes, modf(bytes, &whole) != 0, parts.shift >= 0};
    return MOON_OK;
}

int moon_python_size(struct moon_arena *arena, const struct moon_json *value, struct moon_json **out,
                     struct moon_exception *raised) {
    if (value->type == MOON_JSON_BOOL)
        return finish(moon_json_bool(arena, value->boolean), out);
    if (value->type == MOON_JSON_INTEGER) /* through int64_t where it fits: -0 becomes 0 */
        return finish(value->fits ? moon_json_int(arena, value->integer)
                                  : moon_json_number(arena, value->bytes, value->length),
                      out);
    if (value->type == MOON_JSON_REAL && !isnan(value->real))
        return moon_python_trunc(arena, value->real, out, raised);
    if (value->type != MOON_JSON_STRING)
        return moon_raise(arena, raised, "TypeError", "Unsupported type for size: <class '%s'>",
                          moon_python_type(value));
    struct moon_size_text size = {0, false, false};
    int status = moon_python_size_text(arena, value->bytes, value->length, &size, raised);
    return status ? status : moon_python_trunc(arena, size.bytes, out, raised);
}

int moon_python_sign(const struct moon_json *number) {
    if (number->type == MOON_JSON_BOOL)
        return number->boolean;
    if (number->fits)
        return (number->integer > 0) - (number->integer < 0);
    return number->bytes[0] == '-' ? -1 : 1;
}
