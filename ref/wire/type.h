/* SPDX-License-Identifier: Apache-2.0 */
/* Types of struct_pack messages as data: what a message consists of, its type text, and the numbers made from it. */
#ifndef MOON_WIRE_TYPE_H
#define MOON_WIRE_TYPE_H

#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_wire_kind {
    MOON_WIRE_VOID, /* no bytes: the value of an expected that only succeeds */
    MOON_WIRE_BOOL,
    MOON_WIRE_U8,
    MOON_WIRE_U16,
    MOON_WIRE_U32,
    MOON_WIRE_U64,
    MOON_WIRE_I32,
    MOON_WIRE_I64,
    MOON_WIRE_UUID,     /* two u64 */
    MOON_WIRE_STRING,   /* length, bytes */
    MOON_WIRE_VECTOR,   /* length, elements */
    MOON_WIRE_MAP,      /* length, pairs of key and value */
    MOON_WIRE_OPTIONAL, /* u8 0, or 1 and the value */
    MOON_WIRE_EXPECTED, /* u8 1 and the value, or 0 and an i32 error code */
    MOON_WIRE_VARIANT,  /* u8 index, the alternative of that index */
    MOON_WIRE_STRUCT,   /* members in order */
};

struct moon_wire_type;

/* A member of a struct, or an alternative of a variant. */
struct moon_wire_member {
    const char *name;
    const struct moon_wire_type *type;
};

/* One type. Constants of a table, without cycles, nested at most MOON_WIRE_TYPE_DEPTH_MAX deep: code that follows a
 * type may call itself, because no input can make a type deeper.
 *   of       vector, optional: the element; expected: the value; map: the key
 *   value    map: the value
 *   members  struct, variant: in order, a row with name NULL ends */
struct moon_wire_type {
    enum moon_wire_kind kind;
    const struct moon_wire_type *of, *value;
    const struct moon_wire_member *members;
};

enum { MOON_WIRE_TYPE_DEPTH_MAX = 16 };

/* Appends the type text of `type`, without the NUL that ends it on the wire (WIRE-020). */
void moon_wire_type_text(const struct moon_wire_type *type, struct moon_text *text);

/* Appends the type text of a call's arguments: of the only member itself, of none nothing, of more those of a struct
 * (WIRE-021). `arguments` is a struct. */
void moon_wire_arguments_text(const struct moon_wire_type *arguments, struct moon_text *text);

/* First four bytes of the MD5 of `bytes` as a big-endian number. */
uint32_t moon_wire_digest(const void *bytes, size_t length);

/* Hash of a type text (WIRE-022), and function id of a C++ function under its full name (WIRE-012). */
uint32_t moon_wire_type_hash(const void *text, size_t length);
uint32_t moon_wire_function_id(const char *full_name);

#ifdef __cplusplus
}
#endif
#endif
