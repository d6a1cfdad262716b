/* SPDX-License-Identifier: Apache-2.0 */
/* Building and reading message values by member name, so that one code serves all releases: a member that a release
 * lacks is simply not there. */
#ifndef MOON_WIRE_BUILD_H
#define MOON_WIRE_BUILD_H

#include "ref/base/bytes.h"
#include "ref/wire/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value of `type` in which everything is zero: numbers 0, texts and lists empty, optionals absent, an expected is an
 * error with code 0, a variant its first alternative. NULL when memory refused. */
struct moon_wire_value *moon_wire_zero(struct moon_arena *arena, const struct moon_wire_type *type);

/* The member of that name of a struct; NULL if `value` is NULL, no struct, or has none of that name. The setters and
 * getters below that take any value take NULL, too, and then do nothing, or give 0; the others want what they name. */
struct moon_wire_value *moon_wire_at(const struct moon_wire_value *value, const char *name);

void moon_wire_set_number(struct moon_wire_value *value, uint64_t number);        /* integers, bool */
void moon_wire_set_bytes(struct moon_wire_value *value, struct moon_bytes bytes); /* string; borrowed */
void moon_wire_set_uuid(struct moon_wire_value *value, struct moon_uuid uuid);
/* Appends a zero element to a vector that was built here, and returns it; NULL when memory refused. O(1). */
struct moon_wire_value *moon_wire_append(struct moon_arena *arena, struct moon_wire_value *vector);
/* Makes an optional present, or an expected successful: returns the value inside, zero. NULL when memory refused: then
 * `value` must not be encoded. */
struct moon_wire_value *moon_wire_present(struct moon_arena *arena, struct moon_wire_value *value);
/* Makes an expected an error. */
void moon_wire_set_error(struct moon_wire_value *expected, int code);
/* Chooses the alternative of that name of a variant: returns it, zero. NULL: none of that name, and nothing changed, or
 * no memory, and it must not be encoded. */
struct moon_wire_value *moon_wire_choose(struct moon_arena *arena, struct moon_wire_value *variant, const char *name);

uint64_t moon_wire_number(const struct moon_wire_value *value);
struct moon_bytes moon_wire_bytes(const struct moon_wire_value *value);
struct moon_uuid moon_wire_uuid(const struct moon_wire_value *value);
/* Name of the alternative a variant holds; "" for NULL. */
const char *moon_wire_choice(const struct moon_wire_value *variant);

#ifdef __cplusplus
}
#endif
#endif
