/* SPDX-License-Identifier: Apache-2.0 */
/* Looking things up in a JSON tree: members, places, and typed reading of closed objects. */
#include "ref/base/json.h"

#include "ref/base/json_internal.h"
#include "ref/base/suggest.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Index of an object's members: a PATRICIA trie threaded through the members themselves, so it needs no memory, no key
 * and no rehashing, and a lookup costs at most the bits of the name, whatever names an attacker picks.
 *
 * A name is read as a row of bits from 1: 64 bits of its length, then its bytes. A member that is not the first tests
 * bit `names_bit`, the first in which it differed from its nearest neighbour when it was added, and branches by it. A
 * link to a member whose bit is not larger leads upwards: it is a leaf, and its name is the only candidate. The first
 * member has bit 0 and one link. */
enum { LENGTH_BITS = 64 };

static unsigned name_bit(const char *name, size_t length, uint64_t bit) {
    if (bit <= LENGTH_BITS)
        return (uint64_t)length >> (LENGTH_BITS - bit) & 1;
    uint64_t of_bytes = bit - LENGTH_BITS - 1;
    if (of_bytes / 8 >= length)
        return 0;
    return (unsigned)(uint8_t)name[of_bytes / 8] >> (7 - of_bytes % 8) & 1;
}

/* The first bit in which two names differ, 0 if they are equal. Both end with a NUL. */
static uint64_t first_difference(const char *a, size_t a_length, const char *b, size_t b_length) {
    if (a_length != b_length)
        return (uint64_t)__builtin_clzll((unsigned long long)(a_length ^ b_length)) + 1;
    size_t i = 0;
    while (i < a_length && a[i] == b[i])
        i++;
    unsigned different = (uint8_t)a[i] ^ (uint8_t)b[i];
    return different ? LENGTH_BITS + 1 + (uint64_t)i * 8 + (uint64_t)(__builtin_clz(different) - 24) : 0;
}

/* Follows the links of a name while they lead down and test bits before `bit_end`. Returns the link that stops. */
static struct moon_json **descend(struct moon_json *first, const char *name, size_t length, uint64_t bit_end) {
    struct moon_json *above = first, **link = &first->names_branch[0];
    while ((*link)->names_bit > above->names_bit && (*link)->names_bit < bit_end) {
        above = *link;
        link = &above->names_branch[name_bit(name, length, above->names_bit)];
    }
    return link;
}

struct moon_json *moon_json_names_find(const struct moon_json *object, const char *name, size_t length) {
    if (!object->first)
        return NULL;
    struct moon_json *candidate = *descend(object->first, name, length, UINT64_MAX);
    bool same = candidate->name_length == length && memcmp(candidate->name, name, length) == 0;
    return same ? candidate : NULL;
}

static void names_add(struct moon_json *object, struct moon_json *child) {
    const char *name = child->name;
    size_t length = child->name_length;
    if (!object->first) {
        child->names_branch[0] = child;
        return;
    }
    const struct moon_json *nearest = *descend(object->first, name, length, UINT64_MAX);
    uint64_t bit = first_difference(name, length, nearest->name, nearest->name_length);
    assert(bit != 0 && "a member's name must be new in its object");
    struct moon_json **link = descend(object->first, name, length, bit);
    unsigned own = name_bit(name, length, bit);
    child->names_bit = bit;
    child->names_branch[own] = child;
    child->names_branch[1 - own] = *link;
    *link = child;
}

void moon_json_append(struct moon_json *parent, struct moon_json *child) {
    if (parent->type == MOON_JSON_OBJECT)
        names_add(parent, child);
    child->parent = parent;
    child->index = parent->count++;
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
}

struct moon_json *moon_json_member(const struct moon_json *object, const char *name) {
    if (!moon_json_is(object, MOON_JSON_OBJECT))
        return NULL;
    return moon_json_names_find(object, name, strlen(name));
}

struct moon_json *moon_json_at(const struct moon_json *array, size_t index) {
    if (!moon_json_is(array, MOON_JSON_ARRAY))
        return NULL;
    struct moon_json *child = array->first;
    while (child && index > 0) {
        child = child->next;
        index--;
    }
    return child;
}

bool moon_json_is(const struct moon_json *value, enum moon_json_type type) {
    return value && value->type == type;
}

bool moon_json_is_string(const struct moon_json *value, const char *text) {
    return moon_json_is(value, MOON_JSON_STRING) && value->length == strlen(text) &&
           memcmp(value->bytes, text, value->length) == 0;
}

static const char *const type_names[] = {
    [MOON_JSON_NULL] = "null",     [MOON_JSON_BOOL] = "boolean",  [MOON_JSON_INTEGER] = "integer",
    [MOON_JSON_REAL] = "real",     [MOON_JSON_STRING] = "string", [MOON_JSON_ARRAY] = "array",
    [MOON_JSON_OBJECT] = "object",
};
/* The same as a person says it. */
static const char *const type_phrases[] = {
    [MOON_JSON_NULL] = "null",          [MOON_JSON_BOOL] = "true or false",
    [MOON_JSON_INTEGER] = "an integer", [MOON_JSON_REAL] = "a number with fraction or exponent",
    [MOON_JSON_STRING] = "a string",    [MOON_JSON_ARRAY] = "an array",
    [MOON_JSON_OBJECT] = "an object",
};

const char *moon_json_type_name(const struct moon_json *value) {
    return value ? type_names[value->type] : "missing";
}

static void *small_text_resize(struct moon_memory *memory, void *old, size_t old_bytes, size_t new_bytes) {
    (void)old, (void)old_bytes;
    struct moon_json_small_text *small = (struct moon_json_small_text *)memory;
    return new_bytes > 0 && new_bytes <= sizeof small->buffer ? small->buffer : NULL;
}

void moon_json_small_text_open(struct moon_json_small_text *small) {
    small->memory.resize = small_text_resize;
    moon_text_open(&small->text, &small->memory);
}

static bool is_plain_word(const char *name, size_t length) {
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    if (length == 0 || !memchr(first, name[0], sizeof first - 1))
        return false;
    for (size_t i = 1; i < length; i++)
        if (!memchr(first, name[i], sizeof first - 1) && name[i] != '-' && (name[i] < '0' || name[i] > '9'))
            return false;
    return true;
}

void moon_json_path(const struct moon_json *value, struct moon_text *out) {
    size_t depth = 0;
    for (const struct moon_json *up = value; up->parent; up = up->parent)
        depth++;
    moon_text_char(out, '$');
    for (; depth > 0 && !out->failed; depth--) {
        const struct moon_json *step = value;
        for (size_t i = 1; i < depth; i++)
            step = step->parent;
        if (!step->name) {
            moon_text_format(out, "[%zu]", step->index);
        } else if (is_plain_word(step->name, step->name_length)) {
            moon_text_char(out, '.');
            moon_text_bytes(out, step->name, step->name_length);
        } else {
            moon_text_char(out, '[');
            moon_json_quote(step->name, step->name_length, out);
            moon_text_char(out, ']');
        }
    }
}

void moon_json_place(char where[MOON_ERROR_WHERE_BYTES], const char *source, uint32_t line, uint32_t column,
                     const struct moon_json *value) {
    struct moon_json_small_text small;
    moon_json_small_text_open(&small);
    if (source)
        moon_text_string(&small.text, source);
    if (line > 0)
        moon_text_format(&small.text, "%s%" PRIu32 ":%" PRIu32, source ? ":" : "", line, column);
    if (value) {
        moon_text_string(&small.text, small.text.length ? " " : "");
        moon_json_path(value, &small.text);
    }
    snprintf(where, MOON_ERROR_WHERE_BYTES, "%s", moon_text_value(&small.text));
}

int moon_json_fail(struct moon_error *error, enum moon_status status, const char *source, const struct moon_json *value,
                   const char *format, ...) {
    if (!error)
        return status;
    char message[MOON_ERROR_MESSAGE_BYTES], where[MOON_ERROR_WHERE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    moon_json_place(where, source, value ? value->line : 0, value ? value->column : 0, value);
    return moon_fail(error, status, where, "%s", message);
}

int moon_json_closed(const char *source, const struct moon_json *object, const char *const names[],
                     struct moon_error *error) {
    if (!moon_json_is(object, MOON_JSON_OBJECT))
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, object, "must be an object, is %s",
                              moon_json_type_name(object));
    for (const struct moon_json *member = object->first; member; member = member->next) {
        size_t i = 0;
        while (names[i] &&
               (strlen(names[i]) != member->name_length || memcmp(names[i], member->name, member->name_length) != 0))
            i++;
        if (names[i])
            continue;
        struct moon_json_small_text small;
        moon_json_small_text_open(&small);
        moon_json_quote(member->name, member->name_length, &small.text);
        const char *near = moon_suggest(member->name, names);
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, member,
                              near ? "unknown member %s; did you mean \"%s\"?" : "unknown member %s%s",
                              moon_text_value(&small.text), near ? near : "");
    }
    return MOON_OK;
}

int moon_json_get(const char *source, const struct moon_json *object, const char *name, bool required,
                  enum moon_json_type type, struct moon_json **out, struct moon_error *error) {
    if (object && object->type != MOON_JSON_OBJECT)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, object, "must be an object with the member \"%s\", is %s",
                              name, moon_json_type_name(object));
    struct moon_json *value = moon_json_member(object, name);
    if (!value && required)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, object, "the member \"%s\" is missing", name);
    if (value && value->type != type)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "\"%s\" must be %s, is %s", name,
                              type_phrases[type], type_phrases[value->type]);
    if (value)
        *out = value;
    return MOON_OK;
}

int moon_json_get_int(const char *source, const struct moon_json *object, const char *name, bool required, int64_t min,
                      int64_t max, int64_t *out, struct moon_error *error) {
    struct moon_json *value = NULL;
    int rc = moon_json_get(source, object, name, required, MOON_JSON_INTEGER, &value, error);
    if (rc || !value)
        return rc;
    if (!value->fits || value->integer < min || value->integer > max)
        return moon_json_fail(error, MOON_ERR_RANGE, source, value,
                              "\"%s\" is %.40s%s, must be within %" PRId64 " and %" PRId64, name, value->bytes,
                              value->length > 40 ? "..." : "", min, max);
    *out = value->integer;
    return MOON_OK;
}

int moon_json_get_bool(const char *source, const struct moon_json *object, const char *name, bool required, bool *out,
                       struct moon_error *error) {
    struct moon_json *value = NULL;
    int rc = moon_json_get(source, object, name, required, MOON_JSON_BOOL, &value, error);
    if (rc || !value)
        return rc;
    *out = value->boolean;
    return MOON_OK;
}

int moon_json_get_string(const char *source, const struct moon_json *object, const char *name, bool required,
                         const char **out, size_t *length, struct moon_error *error) {
    struct moon_json *value = NULL;
    int rc = moon_json_get(source, object, name, required, MOON_JSON_STRING, &value, error);
    if (rc || !value)
        return rc;
    if (!length && memchr(value->bytes, '\0', value->length))
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "\"%s\" must not hold a NUL character", name);
    *out = value->bytes;
    if (length)
        *length = value->length;
    return MOON_OK;
}
