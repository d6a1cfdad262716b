/* SPDX-License-Identifier: Apache-2.0 */
/* Building JSON trees: values, members, copies, and the text of numbers. */
#include "ref/base/json.h"

#include "ref/base/json_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

locale_t moon_json_c_locale(void) {
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(c_locale != (locale_t)0);
    return c_locale;
}

static bool parse_int64(const char *text, size_t length, int64_t *out) {
    bool negative = text[0] == '-';
    int64_t value = 0;
    for (size_t i = negative; i < length; i++) {
        int digit = text[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    *out = value;
    return true;
}

void moon_json_number_set(struct moon_json *value, const char *text, size_t length, locale_t c_locale) {
    value->bytes = text;
    value->length = length;
    value->type = MOON_JSON_INTEGER;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '.' || text[i] == 'e' || text[i] == 'E')
            value->type = MOON_JSON_REAL;
    if (value->type == MOON_JSON_INTEGER)
        value->fits = parse_int64(text, length, &value->integer);
    value->real = value->fits ? (double)value->integer : strtod_l(text, NULL, c_locale);
}

static struct moon_json *new_value(struct moon_arena *arena, enum moon_json_type type) {
    struct moon_json *value = moon_arena_alloc(arena, sizeof *value);
    if (value)
        value->type = type;
    return value;
}

/* A value whose text is a copy of bytes. */
static struct moon_json *new_text(struct moon_arena *arena, enum moon_json_type type, const char *bytes,
                                  size_t length) {
    struct moon_json *value = new_value(arena, type);
    char *copy = value ? moon_arena_copy(arena, bytes, length) : NULL;
    if (!copy)
        return NULL;
    value->bytes = copy;
    value->length = length;
    return value;
}

struct moon_json *moon_json_null(struct moon_arena *arena) {
    return new_value(arena, MOON_JSON_NULL);
}

struct moon_json *moon_json_bool(struct moon_arena *arena, bool value) {
    struct moon_json *json = new_value(arena, MOON_JSON_BOOL);
    if (json)
        json->boolean = value;
    return json;
}

struct moon_json *moon_json_number(struct moon_arena *arena, const char *digits, size_t length) {
    size_t sign = length > 0 && digits[0] == '-';
    assert(length > sign && (digits[sign] != '0' || length == sign + 1));
    for (size_t i = sign; i < length; i++)
        assert(digits[i] >= '0' && digits[i] <= '9');
    struct moon_json *json = new_text(arena, MOON_JSON_INTEGER, digits, length);
    if (json)
        moon_json_number_set(json, json->bytes, length, moon_json_c_locale());
    return json;
}

struct moon_json *moon_json_int(struct moon_arena *arena, int64_t value) {
    char text[32];
    int length = snprintf(text, sizeof text, "%" PRId64, value);
    return moon_json_number(arena, text, (size_t)length);
}

struct moon_json *moon_json_uint(struct moon_arena *arena, uint64_t value) {
    char text[32];
    int length = snprintf(text, sizeof text, "%" PRIu64, value);
    return moon_json_number(arena, text, (size_t)length);
}

enum { REAL_DIGITS_MAX = 17, REAL_TEXT_BYTES = 48 };

/* Shortest decimal digits that read back as `value` (finite), and the power of ten of the first one. The decimal point
 * that snprintf writes depends on the locale, so only digits and exponent are taken. */
static size_t shortest_digits(double value, char digits[REAL_DIGITS_MAX + 1], int *exponent) {
    locale_t c_locale = moon_json_c_locale();
    size_t count = 0;
    for (int precision = 0; precision < REAL_DIGITS_MAX; precision++) {
        char raw[64], plain[64];
        snprintf(raw, sizeof raw, "%.*e", precision, fabs(value));
        const char *c = raw;
        for (count = 0; *c != 'e'; c++)
            if (*c >= '0' && *c <= '9')
                digits[count++] = *c;
        digits[count] = '\0';
        *exponent = (int)strtol(c + 1, NULL, 10);
        snprintf(plain, sizeof plain, "%se%d", digits, *exponent - precision);
        if (strtod_l(plain, NULL, c_locale) == fabs(value))
            break;
    }
    return count;
}

/* Laid out as Python's repr: without exponent from 1e-4 to below 1e16. */
static void real_text(double value, char text[REAL_TEXT_BYTES]) {
    if (!isfinite(value)) {
        strcpy(text, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    char digits[REAL_DIGITS_MAX + 1];
    int exponent;
    int count = (int)shortest_digits(value, digits, &exponent);
    const char *sign = signbit(value) ? "-" : "";
    if (exponent < -4 || exponent >= 16)
        snprintf(text, REAL_TEXT_BYTES, "%s%.1s%s%se%+03d", sign, digits, count > 1 ? "." : "", digits + 1, exponent);
    else if (exponent < 0)
        snprintf(text, REAL_TEXT_BYTES, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    else if (count <= exponent + 1)
        snprintf(text, REAL_TEXT_BYTES, "%s%s%.*s.0", sign, digits, exponent + 1 - count, "0000000000000000");
    else
        snprintf(text, REAL_TEXT_BYTES, "%s%.*s.%s", sign, exponent + 1, digits, digits + exponent + 1);
}

struct moon_json *moon_json_real(struct moon_arena *arena, double value) {
    char text[REAL_TEXT_BYTES];
    real_text(value, text);
    struct moon_json *json = new_text(arena, MOON_JSON_REAL, text, strlen(text));
    if (json)
        json->real = value;
    return json;
}

struct moon_json *moon_json_string(struct moon_arena *arena, const char *string) {
    return string ? moon_json_bytes(arena, string, strlen(string)) : NULL;
}

struct moon_json *moon_json_bytes(struct moon_arena *arena, const char *bytes, size_t length) {
    return new_text(arena, MOON_JSON_STRING, bytes, length);
}

struct moon_json *moon_json_hex(struct moon_arena *arena, const void *bytes, size_t length) {
    struct moon_text hex;
    moon_text_open(&hex, arena->memory);
    moon_text_hex(&hex, bytes, length);
    struct moon_json *json = hex.failed ? NULL : moon_json_bytes(arena, moon_text_value(&hex), hex.length);
    moon_text_close(&hex);
    return json;
}

struct moon_json *moon_json_array(struct moon_arena *arena) {
    return new_value(arena, MOON_JSON_ARRAY);
}

struct moon_json *moon_json_object(struct moon_arena *arena) {
    return new_value(arena, MOON_JSON_OBJECT);
}

bool moon_json_broken(const struct moon_json *root) {
    return !root || root->broken;
}

static void mark_broken(struct moon_json *value) {
    for (; value && !value->broken; value = value->parent)
        value->broken = true;
}

struct moon_json *moon_json_set(struct moon_arena *arena, struct moon_json *object, const char *name,
                                struct moon_json *child) {
    if (!object)
        return NULL;
    assert(object->type == MOON_JSON_OBJECT);
    size_t length = strlen(name);
    char *copy = child ? moon_arena_copy(arena, name, length) : NULL;
    if (!copy) {
        mark_broken(object);
        return NULL;
    }
    assert(!child->parent);
    child->name = copy;
    child->name_length = length;
    moon_json_append(object, child);
    if (child->broken)
        mark_broken(object);
    return child;
}

struct moon_json *moon_json_push(struct moon_json *array, struct moon_json *child) {
    if (!array)
        return NULL;
    assert(array->type == MOON_JSON_ARRAY);
    if (!child) {
        mark_broken(array);
        return NULL;
    }
    assert(!child->parent);
    moon_json_append(array, child);
    if (child->broken)
        mark_broken(array);
    return child;
}

/* One value without parent, children and name. */
static struct moon_json *clone_one(struct moon_arena *arena, const struct moon_json *value) {
    struct moon_json *copy =
        value->bytes ? new_text(arena, value->type, value->bytes, value->length) : new_value(arena, value->type);
    if (!copy)
        return NULL;
    copy->boolean = value->boolean;
    copy->fits = value->fits;
    copy->broken = value->broken;
    copy->line = value->line;
    copy->column = value->column;
    copy->offset = value->offset;
    copy->integer = value->integer;
    copy->real = value->real;
    return copy;
}

/* The same below `parent`, with its name. */
static struct moon_json *clone_below(struct moon_arena *arena, struct moon_json *parent,
                                     const struct moon_json *value) {
    struct moon_json *copy = clone_one(arena, value);
    if (copy && value->name) {
        copy->name = moon_arena_copy(arena, value->name, value->name_length);
        copy->name_length = value->name_length;
        if (!copy->name)
            return NULL;
    }
    if (copy)
        moon_json_append(parent, copy);
    return copy;
}

struct moon_json *moon_json_clone(struct moon_arena *arena, const struct moon_json *value) {
    struct moon_json *root = value ? clone_one(arena, value) : NULL;
    if (!root)
        return NULL;
    const struct moon_json *from = value;
    struct moon_json *to = root;
    for (;;) { /* depth first: down, else along, else up */
        if (from->first) {
            from = from->first;
            to = clone_below(arena, to, from);
        } else {
            while (from != value && !from->next) {
                from = from->parent;
                to = to->parent;
            }
            if (from == value)
                return root;
            from = from->next;
            to = clone_below(arena, to->parent, from);
        }
        if (!to)
            return NULL;
    }
}
