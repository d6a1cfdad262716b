/* SPDX-License-Identifier: Apache-2.0 */
/* The strict JSON reader: one pass, no recursion, with the place of every value and errors that say what was expected.
 */
#include "ref/base/json.h"

#include "ref/base/json_internal.h"
#include "ref/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The input is copied into the arena once; strings are unescaped inside the copy and values point into it. An unescaped
 * string is never longer than its source, and its NUL takes the place of the closing quote. A number's NUL has to wait
 * until the character behind it was read: `number_end`. Zero bytes follow the copy. They stop every scan, so that only
 * a NUL needs a look at `end`. */
enum { PADDING_BYTES = 8 };

struct reader {
    struct moon_arena *arena;
    const char *source;
    enum moon_json_rules rules;
    struct moon_error *error;
    locale_t c_locale;
    char *start, *at, *end;
    char *line_start;
    uint32_t line;
    char *number_end;
    struct moon_json *value; /* the one being read, for the path in errors */
    size_t depth;
    size_t values;
};

/* What stands at `at`, for errors: a word, a character, a byte, or the end. */
static void describe(const struct reader *r, const char *at, char out[48]) {
    size_t left = (size_t)(r->end - at), word = 0;
    uint32_t code_point;
    while (word < left && word < 20 && ((at[word] >= 'a' && at[word] <= 'z') || (at[word] >= 'A' && at[word] <= 'Z')))
        word++;
    size_t used = moon_utf8_decode(at, left, &code_point);
    if (left == 0)
        snprintf(out, 48, "the end of the input");
    else if (word > 1)
        snprintf(out, 48, "\"%.*s\"", (int)word, at);
    else if (used == 0 || (code_point >= 0xD800 && code_point <= 0xDFFF))
        snprintf(out, 48, "byte 0x%02X, which is no UTF-8", (unsigned)(uint8_t)at[0]);
    else if (code_point < 0x20 || code_point == 0x7F || code_point == 0xFEFF)
        snprintf(out, 48, "U+%04X", (unsigned)code_point);
    else
        snprintf(out, 48, "'%.*s'", (int)used, at);
}

static int fail(const struct reader *r, const char *at, enum moon_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fail(const struct reader *r, const char *at, enum moon_status status, const char *format, ...) {
    char where[MOON_ERROR_WHERE_BYTES], message[192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    moon_json_place(where, r->source, r->line, (uint32_t)(at - r->line_start) + 1, r->value);
    return moon_fail(r->error, status, where, "%s", message);
}

static int expected(const struct reader *r, const char *at, const char *what) {
    char found[48];
    describe(r, at, found);
    return fail(r, at, MOON_ERR_SYNTAX, "expected %s, found %s", what, found);
}

static void skip_space(struct reader *r) {
    for (;; r->at++) {
        if (*r->at == '\n') {
            r->line++;
            r->line_start = r->at + 1;
        } else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
            return;
        }
    }
}

/* True if one of 8 bytes ends a run of plain ASCII: below 0x20, '"', '\\', or 0x80 and above. Standard bit tricks: a
 * byte below n borrows into its top bit when n is subtracted; borrows between bytes only add false alarms above a true
 * one. */
static bool has_special(uint64_t eight) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
    uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
    return ((eight | (eight - ones * 0x20) | (quote - ones) | (backslash - ones)) & tops) != 0;
}

static bool is_plain_ascii(char c) {
    return (uint8_t)c >= 0x20 && (uint8_t)c < 0x80 && c != '"' && c != '\\';
}

/* The end of the run of characters that a string takes as they are: at a quote, a backslash, or what may not stand
 * there. */
static char *plain_run(const struct reader *r, char *at) {
    for (;;) {
        uint64_t eight;
        while (memcpy(&eight, at, sizeof eight), !has_special(eight))
            at += sizeof eight;
        while (is_plain_ascii(*at))
            at++;
        uint32_t code_point;
        if ((uint8_t)*at < 0x80)
            return at;
        size_t used = moon_utf8_decode(at, (size_t)(r->end - at), &code_point);
        if (used == 0 || (code_point >= 0xD800 && code_point <= 0xDFFF))
            return at;
        at += used;
    }
}

/* Four hex digits, or -1. */
static int32_t hex4(const char *at) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The escape at r->at, appended at *out. A high surrogate directly followed by a low one makes one code point. */
static int read_escape(struct reader *r, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = r->at[1];
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        *(*out)++ = to[simple - from];
        r->at += 2;
        return MOON_OK;
    }
    if (c != 'u')
        return expected(r, r->at + 1, "one of \" \\ / b f n r t u after a backslash");
    int32_t unit = hex4(r->at + 2);
    if (unit < 0)
        return expected(r, r->at + 2, "four hex digits after \\u");
    uint32_t code_point = (uint32_t)unit;
    r->at += 6;
    if (unit >= 0xD800 && unit <= 0xDBFF && r->at[0] == '\\' && r->at[1] == 'u') {
        int32_t low = hex4(r->at + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            code_point = 0x10000 + ((code_point - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
            r->at += 6;
        }
    }
    char encoded[MOON_UTF8_BYTES_MAX];
    size_t used = moon_utf8_encode(code_point, encoded);
    memcpy(*out, encoded, used);
    *out += used;
    return MOON_OK;
}

/* The string whose opening quote is at r->at. */
static int read_string(struct reader *r, const char **bytes, size_t *length) {
    char *start = ++r->at, *out = start;
    for (;;) {
        char *run = r->at;
        r->at = plain_run(r, run);
        if (out != run)
            memmove(out, run, (size_t)(r->at - run));
        out += r->at - run;
        if (*r->at == '"')
            break;
        if (*r->at != '\\')
            return expected(r, r->at,
                            r->at == r->end          ? "'\"' at the end of a string"
                            : (uint8_t)*r->at < 0x20 ? "an escape instead of a control character in a string"
                                                     : "UTF-8 in a string");
        int rc = read_escape(r, &out);
        if (rc)
            return rc;
    }
    *out = '\0';
    r->at++;
    *bytes = start;
    *length = (size_t)(out - start);
    return MOON_OK;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char *skip_digits(char *at) {
    while (is_digit(*at))
        at++;
    return at;
}

static int read_number(struct reader *r, struct moon_json *value) {
    char *start = r->at, *at = start + (*start == '-');
    char *whole = at;
    if (!is_digit(*at))
        return expected(r, at, "a digit");
    at = skip_digits(at);
    if (*whole == '0' && at - whole > 1)
        return fail(r, whole, MOON_ERR_SYNTAX, "a number must not begin with 0 followed by more digits");
    size_t whole_digits = (size_t)(at - whole);
    bool integer = *at != '.' && *at != 'e' && *at != 'E';
    if (*at == '.') {
        if (!is_digit(at[1]))
            return expected(r, at + 1, "a digit after the decimal point");
        at = skip_digits(at + 1);
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        if (!is_digit(*at))
            return expected(r, at, "a digit in the exponent");
        at = skip_digits(at);
    }
    if (r->rules == MOON_JSON_PYTHON && integer && whole_digits > MOON_JSON_PYTHON_DIGITS_MAX)
        return fail(r, start, MOON_ERR_LIMIT, "the integer has %zu digits, more than Python's limit of %d",
                    whole_digits, MOON_JSON_PYTHON_DIGITS_MAX);
    moon_json_number_set(value, start, (size_t)(at - start), r->c_locale);
    if (r->rules == MOON_JSON_STRICT && !integer && isinf(value->real))
        return fail(r, start, MOON_ERR_RANGE, "the number is beyond the range of a double");
    r->at = at;
    r->number_end = at;
    return MOON_OK;
}

/* Words that stand for a value. The last three exist only under Python's rules. */
static const struct word {
    const char *text;
    size_t length;
    enum moon_json_type type;
    bool boolean;
    double real;
} words[] = {
    {"null", 4, MOON_JSON_NULL, false, 0},
    {"true", 4, MOON_JSON_BOOL, true, 0},
    {"false", 5, MOON_JSON_BOOL, false, 0},
    {"NaN", 3, MOON_JSON_REAL, false, (double)NAN},
    {"Infinity", 8, MOON_JSON_REAL, false, (double)INFINITY},
    {"-Infinity", 9, MOON_JSON_REAL, false, -(double)INFINITY},
};
enum { STRICT_WORDS = 3, PYTHON_WORDS = sizeof words / sizeof words[0] };

static int read_word(struct reader *r, struct moon_json *value) {
    size_t known = r->rules == MOON_JSON_PYTHON ? PYTHON_WORDS : STRICT_WORDS;
    for (size_t i = 0; i < known; i++) {
        const struct word *word = &words[i];
        if (strncmp(r->at, word->text, word->length) != 0)
            continue;
        value->type = word->type;
        value->boolean = word->boolean;
        if (word->type == MOON_JSON_REAL) {
            value->real = word->real;
            value->bytes = word->text;
            value->length = word->length;
        }
        r->at += word->length;
        return MOON_OK;
    }
    return *r->at == '-' ? read_number(r, value) : expected(r, r->at, "a value");
}

static struct moon_json *new_value(struct reader *r) {
    return ++r->values > MOON_JSON_VALUES_MAX ? NULL : moon_arena_alloc(r->arena, sizeof(struct moon_json));
}

static int no_value(const struct reader *r) {
    if (r->values > MOON_JSON_VALUES_MAX)
        return fail(r, r->at, MOON_ERR_LIMIT, "the document has more than %d values", MOON_JSON_VALUES_MAX);
    return fail(r, r->at, MOON_ERR_MEMORY, "out of memory");
}

/* Of members of one name the last wins, in the place of the first: empties `member`, to be read again. */
static void read_again(struct reader *r, struct moon_json *member) {
    struct moon_json fresh = {.next = member->next,
                              .parent = member->parent,
                              .index = member->index,
                              .name = member->name,
                              .name_length = member->name_length,
                              .names_bit = member->names_bit,
                              .names_branch = {member->names_branch[0], member->names_branch[1]}};
    *member = fresh;
    r->value = member;
}

/* `"name":` of the next member of `object`. Leaves r->value as the member to read. */
static int read_member(struct reader *r, struct moon_json *object) {
    const char *name, *at = r->at;
    size_t length;
    if (*at != '"')
        return expected(r, at, "a member's name in double quotes");
    int rc = read_string(r, &name, &length);
    if (rc)
        return rc;
    struct moon_json *first = moon_json_names_find(object, name, length);
    if (first && r->rules == MOON_JSON_STRICT) {
        r->value = first;
        return fail(r, at, MOON_ERR_SYNTAX, "the object has a member of this name already, at %" PRIu32 ":%" PRIu32,
                    first->line, first->column);
    }
    skip_space(r);
    if (*r->at != ':')
        return expected(r, r->at, "':' after a member's name");
    r->at++;
    if (first) {
        read_again(r, first);
        return MOON_OK;
    }
    struct moon_json *member = new_value(r);
    if (!member)
        return no_value(r);
    member->name = name;
    member->name_length = length;
    moon_json_append(object, member);
    r->value = member;
    return MOON_OK;
}

/* Makes r->value the next child of `parent`. */
static int next_child(struct reader *r, struct moon_json *parent) {
    skip_space(r);
    if (parent->type == MOON_JSON_OBJECT)
        return read_member(r, parent);
    struct moon_json *element = new_value(r);
    if (!element)
        return no_value(r);
    moon_json_append(parent, element);
    r->value = element;
    return MOON_OK;
}

/* The scalar at r->at, into r->value. */
static int read_scalar(struct reader *r) {
    struct moon_json *value = r->value;
    if (*r->at == '"') {
        value->type = MOON_JSON_STRING;
        return read_string(r, &value->bytes, &value->length);
    }
    return is_digit(*r->at) ? read_number(r, value) : read_word(r, value);
}

/* Opens the array or object at r->at, which is r->value. Unless it is empty, r->value becomes its first child and *down
 * is set. */
static int open_container(struct reader *r, bool *down) {
    struct moon_json *container = r->value;
    container->type = *r->at == '[' ? MOON_JSON_ARRAY : MOON_JSON_OBJECT;
    char close = *r->at == '[' ? ']' : '}';
    if (r->depth == MOON_JSON_DEPTH_MAX)
        return fail(r, r->at, MOON_ERR_LIMIT, "arrays and objects are nested more than %d deep", MOON_JSON_DEPTH_MAX);
    r->at++;
    skip_space(r);
    if (*r->at == close) {
        r->at++;
        return MOON_OK;
    }
    *down = true;
    r->depth++;
    return next_child(r, container);
}

/* Goes on behind a complete r->value: to the next child of its parent, up through closing brackets, or to the end:
 * r->value NULL. */
static int go_on(struct reader *r) {
    for (;;) {
        struct moon_json *parent = r->value->parent;
        skip_space(r);
        if (!parent)
            break;
        char close = parent->type == MOON_JSON_ARRAY ? ']' : '}';
        if (*r->at != ',' && *r->at != close)
            return expected(r, r->at,
                            parent->type == MOON_JSON_ARRAY ? "',' or ']' after an array's element"
                                                            : "',' or '}' after a member's value");
        char found = *r->at++;
        if (r->number_end)
            *r->number_end = '\0';
        r->number_end = NULL;
        if (found == ',')
            return next_child(r, parent);
        r->depth--;
        r->value = parent;
    }
    if (r->at != r->end)
        return expected(r, r->at, "the end of the input after the document");
    if (r->number_end)
        *r->number_end = '\0';
    r->value = NULL;
    return MOON_OK;
}

static int read_document(struct reader *r) {
    if (memcmp(r->at, "\xEF\xBB\xBF", 3) == 0)
        return expected(r, r->at, "JSON without a byte order mark");
    while (r->value) {
        skip_space(r);
        r->value->line = r->line;
        r->value->column = (uint32_t)(r->at - r->line_start) + 1;
        r->value->offset = (size_t)(r->at - r->start);
        bool down = false;
        int rc = *r->at == '[' || *r->at == '{' ? open_container(r, &down) : read_scalar(r);
        if (!rc && !down)
            rc = go_on(r);
        if (rc)
            return rc;
    }
    return MOON_OK;
}

int moon_json_read(struct moon_arena *arena, const char *source, const char *input, size_t length,
                   enum moon_json_rules rules, struct moon_json **out, struct moon_error *error) {
    if (length > MOON_JSON_INPUT_BYTES_MAX)
        return moon_fail(error, MOON_ERR_LIMIT, source, "the document has %zu bytes, more than %d", length,
                         MOON_JSON_INPUT_BYTES_MAX);
    struct reader r = {.arena = arena, .source = source, .rules = rules, .error = error, .line = 1};
    r.c_locale = moon_json_c_locale();
    r.start = moon_arena_alloc(arena, length + PADDING_BYTES);
    struct moon_json *root = new_value(&r);
    if (!r.start || !root)
        return moon_fail(error, MOON_ERR_MEMORY, source, "out of memory");
    if (length > 0)
        memcpy(r.start, input, length);
    r.at = r.line_start = r.start;
    r.end = r.start + length;
    r.value = root;
    int rc = read_document(&r);
    if (!rc)
        *out = root;
    return rc;
}
