/* SPDX-License-Identifier: Apache-2.0 */
/* Values of struct_pack messages: decoded from bytes, encoded to bytes, read from and shown as JSON. */
#ifndef MOON_WIRE_VALUE_H
#define MOON_WIRE_VALUE_H

#include "ref/base/json.h"
#include "ref/wire/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One value. Lives in the arena that it was decoded or built in.
 *   number         integers (i32 and i64 sign-extended), bool; optional and expected: 1 with a value, else 0; variant:
 *                  index; uuid: first word
 *   second         uuid: second word; expected without value: the error code, sign-extended
 *   bytes, length  string: borrowed, of the message or of the JSON tree; any bytes
 *   first          vector, struct: the elements in order; map: key and value in turn; optional, expected, variant: the
 *                  one value, if there is one
 *   last           vector: the last element, set by moon_wire_append only (build.h)
 *   count          number of those; of a map: of keys and values
 *   offset         place of the value in the message, from its first byte */
struct moon_wire_value {
    const struct moon_wire_type *type;
    uint64_t number, second;
    const uint8_t *bytes;
    size_t length;
    struct moon_wire_value *first, *next, *last;
    size_t count;
    size_t offset;
};

/* How a body is written.
 *   hash          hash of the type text, bit 0 cleared
 *   text          type text sent along, or NULL (borrowed); text_length bytes, without the NUL
 *   length_bytes  size of all length fields: 1, 2, 4 or 8 */
struct moon_wire_head {
    uint32_t hash;
    const uint8_t *text;
    size_t text_length;
    unsigned length_bytes;
};

/* Reads a body of `length` bytes: arguments of a call if `arguments`, then `type` is a struct, else a result of `type`.
 * *value lives in `arena` and borrows `body`; *head may be NULL. A body without type text is as good as one with it.
 * Memory used is at most a constant times `length`. Total: any bytes give a value or an error; `error` says the offset
 * in words.
 * Returns 0; MOON_ERR_SYNTAX (cut, bytes behind the value, a flag that is neither 0 nor 1, an index that is none, a
 * damaged head); MOON_ERR_SCHEMA (the hash or the text is of another type); MOON_ERR_MEMORY. */
int moon_wire_decode(struct moon_arena *arena, const struct moon_wire_type *type, bool arguments, const void *body,
                     size_t length, struct moon_wire_head *head, struct moon_wire_value **value,
                     struct moon_error *error);

/* Reads only the head of a body; *data_offset is where the value starts. Errors as moon_wire_decode. */
int moon_wire_read_head(const void *body, size_t length, struct moon_wire_head *head, size_t *data_offset,
                        struct moon_error *error);

/* Appends the body of `value`: arguments or a result as above, with the shortest length fields that fit all its
 * containers (WIRE-024), and with the type text if `with_text`. Nothing is appended for no arguments. Fails only
 * through out->failed. */
void moon_wire_encode(const struct moon_wire_value *value, bool arguments, bool with_text, struct moon_text *out);

/* A value as JSON: integers, booleans, strings; uuid "first-second" in hex; vector [..]; map [[key, value], ..];
 * optional null or the value; expected {"ok": value} or {"err": code}; variant {"kind": name, "value": value}; void
 * null. NULL when memory refused. */
struct moon_json *moon_wire_to_json(struct moon_arena *arena, const struct moon_wire_value *value);

/* The other way round. Strings borrow the tree. Returns 0, MOON_ERR_SCHEMA (wrong type, missing or unknown member),
 * MOON_ERR_RANGE (number outside its type), both with the place in `json`, or MOON_ERR_MEMORY. */
int moon_wire_from_json(struct moon_arena *arena, const struct moon_wire_type *type, const struct moon_json *json,
                        struct moon_wire_value **value, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
