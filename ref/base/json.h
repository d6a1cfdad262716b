/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as a tree with exact integers and the place of every value: strict reader, builder, writer, comparison. */
#ifndef MOON_BASE_JSON_H
#define MOON_BASE_JSON_H

#include "ref/base/error.h"
#include "ref/base/memory.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_JSON_DEPTH_MAX = 128,                     /* nested arrays and objects */
    MOON_JSON_INPUT_BYTES_MAX = 256 * 1024 * 1024, /* one document */
    MOON_JSON_VALUES_MAX = 16 * 1024 * 1024,       /* of one document: bounds the tree's memory */
    MOON_JSON_PYTHON_DIGITS_MAX = 4300, /* of an integer under MOON_JSON_PYTHON: CPython's limit since 3.11 */
};

enum moon_json_type {
    MOON_JSON_NULL,
    MOON_JSON_BOOL,
    MOON_JSON_INTEGER, /* no fraction, no exponent; any number of digits */
    MOON_JSON_REAL,    /* fraction or exponent, or NaN and infinities under MOON_JSON_PYTHON */
    MOON_JSON_STRING,
    MOON_JSON_ARRAY,
    MOON_JSON_OBJECT,
};

/* One value. Lives in the arena it was read into or built in; members are read by anyone, changed only through the
 * functions below.
 *   bytes, length   string: content in WTF-8 (NULs allowed); number: its text as written, so an integer of any size
 *                   is exact. A NUL follows the end in both
 *   integer, fits   integer: its value when it fits int64_t (fits true), else 0 and false
 *   real            real, and integer as the nearest double
 *   first, count    array and object: children in order
 *   name            in an object: the member's name (name_length bytes, WTF-8, NUL-terminated); else NULL
 *   index           position in the parent, from 0
 *   line, column    place in the source, from 1, column in bytes; 0 for a built value; offset in bytes
 *   names_...       index of an object's members by name, for json.c alone: see there */
struct moon_json {
    enum moon_json_type type;
    bool boolean;
    bool fits;
    bool broken; /* a child was lost because memory refused */
    uint32_t line, column;
    size_t offset;
    int64_t integer;
    double real;
    const char *bytes;
    size_t length;
    struct moon_json *first, *last, *next, *parent;
    size_t count;
    size_t index;
    const char *name;
    size_t name_length;
    uint64_t names_bit;
    struct moon_json *names_branch[2];
};

enum moon_json_rules {
    MOON_JSON_STRICT, /* RFC 8259, UTF-8; refuses duplicate members, BOM, trailing text, NaN; lone surrogates allowed */
    MOON_JSON_PYTHON, /* as json.loads: also NaN, Infinity, -Infinity; of duplicate members the last wins, in the place
                         of the first (as in a dict) */
};

/* Reads one document of `length` bytes. `source` names it in errors (file name, "stdin"). The tree lives in `arena`.
 * The input may be freed afterwards. Not recursive; time is linear in `length` whatever the input holds.
 * Returns 0, or with the place "source:line:column $.path" in `where`: MOON_ERR_SYNTAX (what was expected and what was
 * found), MOON_ERR_RANGE (strict rules: a real beyond the range of double), MOON_ERR_LIMIT (see the limits above; under
 * MOON_JSON_PYTHON also an integer of too many digits) or MOON_ERR_MEMORY. *out is set only on success.
 * Thread rule: none beyond the arena's. Independent of the locale. */
int moon_json_read(struct moon_arena *arena, const char *source, const char *input, size_t length,
                   enum moon_json_rules rules, struct moon_json **out, struct moon_error *error);

/* "$.cases[3].given": path of a value from its root. Names that are no plain words are quoted as JSON. */
void moon_json_path(const struct moon_json *value, struct moon_text *out);
/* Fails with the value's place in `where`: "source:line:column $.path". Arguments as moon_fail. */
int moon_json_fail(struct moon_error *error, enum moon_status status, const char *source, const struct moon_json *value,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Looking up. NULL or a NULL result is passed through: a missing member of a missing object is missing. */
struct moon_json *moon_json_member(const struct moon_json *object, const char *name);
struct moon_json *moon_json_at(const struct moon_json *array, size_t index); /* linear in index: in loops walk ->next */
bool moon_json_is(const struct moon_json *value, enum moon_json_type type);  /* false for NULL */
bool moon_json_is_string(const struct moon_json *value, const char *text);   /* a string equal to `text` */
const char *moon_json_type_name(const struct moon_json *value); /* "missing", "null", "boolean", "integer", ... */

/* Reading members of a closed object. Each returns 0 or fails with MOON_ERR_SCHEMA / MOON_ERR_RANGE and the place;
 * `error` names the member. `source` as in moon_json_read. A member that is absent leaves *out as it was when
 * `required` is false. */
int moon_json_closed(const char *source, const struct moon_json *object, const char *const names[] /* NULL ends */,
                     struct moon_error *error); /* object type, and every member's name is listed (else a suggestion) */
int moon_json_get_int(const char *source, const struct moon_json *object, const char *name, bool required, int64_t min,
                      int64_t max, int64_t *out, struct moon_error *error);
int moon_json_get_bool(const char *source, const struct moon_json *object, const char *name, bool required, bool *out,
                       struct moon_error *error);
int moon_json_get_string(const char *source, const struct moon_json *object, const char *name, bool required,
                         const char **out, size_t *length /* may be NULL; then NUL inside is refused */,
                         struct moon_error *error);
int moon_json_get(const char *source, const struct moon_json *object, const char *name, bool required,
                  enum moon_json_type type, struct moon_json **out, struct moon_error *error);

/* Building. Every function returns NULL when memory refused, and passes a NULL child or parent through as NULL, so a
 * whole answer is built without checks. A lost child is remembered: its ancestors are marked, and
 * moon_json_broken(root) tells. Strings are copied; a NULL string
 * (refused memory of its maker) gives NULL. */
struct moon_json *moon_json_null(struct moon_arena *arena);
struct moon_json *moon_json_bool(struct moon_arena *arena, bool value);
struct moon_json *moon_json_int(struct moon_arena *arena, int64_t value);
struct moon_json *moon_json_uint(struct moon_arena *arena, uint64_t value);
struct moon_json *moon_json_real(struct moon_arena *arena,
                                 double value); /* shortest text that reads back: Python's repr */
struct moon_json *moon_json_number(struct moon_arena *arena, const char *digits,
                                   size_t length); /* integer of any size */
struct moon_json *moon_json_string(struct moon_arena *arena, const char *string);
struct moon_json *moon_json_bytes(struct moon_arena *arena, const char *bytes,
                                  size_t length); /* a string with its length */
struct moon_json *moon_json_hex(struct moon_arena *arena, const void *bytes,
                                size_t length); /* a string of hex digits */
struct moon_json *moon_json_array(struct moon_arena *arena);
struct moon_json *moon_json_object(struct moon_arena *arena);
/* True if `root` is NULL or any moon_json_set / moon_json_push below it got a NULL child. Test once, at the end. */
bool moon_json_broken(const struct moon_json *root);
/* Appends `child` (a value without parent) and returns `child`, or NULL. The name is copied; it must be new in the
 * object. */
struct moon_json *moon_json_set(struct moon_arena *arena, struct moon_json *object, const char *name,
                                struct moon_json *child);
struct moon_json *moon_json_push(struct moon_json *array, struct moon_json *child);
/* A deep copy without parent, in `arena`. */
struct moon_json *moon_json_clone(struct moon_arena *arena, const struct moon_json *value);

enum moon_json_style {
    MOON_JSON_COMPACT, /* one line, no spaces */
    MOON_JSON_PRETTY,  /* two spaces a level, short arrays of scalars on one line */
};
/* Writes a value, without a newline behind it. Output is UTF-8; control characters and lone surrogates are escaped, so
 * any JSON reader takes it. Bytes of a built string that are no UTF-8 are written as Python's "surrogateescape" reads
 * them. Numbers keep their text (so NaN and infinities are written as Python writes them). Fails only through
 * text->failed. */
void moon_json_write(const struct moon_json *value, enum moon_json_style style, struct moon_text *out);
/* Writes bytes as a JSON string, quotes included, as moon_json_write does. */
void moon_json_quote(const char *bytes, size_t length, struct moon_text *out);

/* Equality of content: member order in objects does not matter, array order does; integers by exact value, reals by
 * double (NaN equals NaN), an integer never equals a real or a boolean. */
bool moon_json_equal(const struct moon_json *a, const struct moon_json *b);
/* First difference, depth first in a's order: returns true and sets *in_a, *in_b (NULL where one side lacks it). */
bool moon_json_difference(const struct moon_json *a, const struct moon_json *b, const struct moon_json **in_a,
                          const struct moon_json **in_b);

#ifdef __cplusplus
}
#endif
#endif
