/* SPDX-License-Identifier: Apache-2.0 */
/* Message values built and read by the names of their members. */
#include "ref/wire/build.h"

#include <assert.h>

/* Makes `value`, which has no parts, have the one part `part`. */
static struct moon_wire_value *hold(struct moon_wire_value *value, struct moon_wire_value *part) {
    value->first = part;
    value->count = part != NULL;
    return part;
}

struct moon_wire_value *moon_wire_zero(struct moon_arena *arena, const struct moon_wire_type *type) {
    struct moon_wire_value *value = moon_arena_alloc(arena, sizeof *value);
    if (!value)
        return NULL;
    value->type = type;
    if (type->kind == MOON_WIRE_VARIANT && !hold(value, moon_wire_zero(arena, type->members[0].type)))
        return NULL;
    struct moon_wire_value **end = &value->first;
    for (const struct moon_wire_member *one = type->members; type->kind == MOON_WIRE_STRUCT && one->name; one++) {
        *end = moon_wire_zero(arena, one->type);
        if (!*end)
            return NULL;
        end = &(*end)->next;
        value->count++;
    }
    return value;
}

struct moon_wire_value *moon_wire_at(const struct moon_wire_value *value, const char *name) {
    if (!value || value->type->kind != MOON_WIRE_STRUCT)
        return NULL;
    struct moon_wire_value *part = value->first;
    for (const struct moon_wire_member *one = value->type->members; one->name; one++, part = part->next)
        if (strcmp(one->name, name) == 0)
            return part;
    return NULL;
}

void moon_wire_set_number(struct moon_wire_value *value, uint64_t number) {
    if (value)
        value->number = number;
}

void moon_wire_set_bytes(struct moon_wire_value *value, struct moon_bytes bytes) {
    if (!value)
        return;
    value->bytes = (const uint8_t *)bytes.data;
    value->length = bytes.length;
}

void moon_wire_set_uuid(struct moon_wire_value *value, struct moon_uuid uuid) {
    if (!value)
        return;
    value->number = uuid.first;
    value->second = uuid.second;
}

struct moon_wire_value *moon_wire_append(struct moon_arena *arena, struct moon_wire_value *vector) {
    assert(vector->type->kind == MOON_WIRE_VECTOR && (vector->last != NULL) == (vector->count > 0));
    struct moon_wire_value *element = moon_wire_zero(arena, vector->type->of);
    if (!element)
        return NULL;
    if (vector->last)
        vector->last->next = element;
    else
        vector->first = element;
    vector->last = element;
    vector->count++;
    return element;
}

struct moon_wire_value *moon_wire_present(struct moon_arena *arena, struct moon_wire_value *value) {
    assert(value->type->kind == MOON_WIRE_OPTIONAL || value->type->kind == MOON_WIRE_EXPECTED);
    value->number = 1;
    value->second = 0;
    return hold(value, moon_wire_zero(arena, value->type->of));
}

void moon_wire_set_error(struct moon_wire_value *expected, int code) {
    assert(expected->type->kind == MOON_WIRE_EXPECTED);
    expected->number = 0;
    expected->second = (uint64_t)(int64_t)code;
    hold(expected, NULL);
}

struct moon_wire_value *moon_wire_choose(struct moon_arena *arena, struct moon_wire_value *variant, const char *name) {
    uint64_t index = 0;
    assert(variant->type->kind == MOON_WIRE_VARIANT);
    for (const struct moon_wire_member *one = variant->type->members; one->name; one++, index++)
        if (strcmp(one->name, name) == 0) {
            variant->number = index;
            return hold(variant, moon_wire_zero(arena, one->type));
        }
    return NULL;
}

uint64_t moon_wire_number(const struct moon_wire_value *value) {
    return value ? value->number : 0;
}

struct moon_bytes moon_wire_bytes(const struct moon_wire_value *value) {
    return value ? (struct moon_bytes){(const char *)value->bytes, value->length} : (struct moon_bytes){NULL, 0};
}

struct moon_uuid moon_wire_uuid(const struct moon_wire_value *value) {
    return value ? (struct moon_uuid){value->number, value->second} : (struct moon_uuid){0, 0};
}

const char *moon_wire_choice(const struct moon_wire_value *variant) {
    return variant && variant->type->kind == MOON_WIRE_VARIANT ? variant->type->members[variant->number].name : "";
}
