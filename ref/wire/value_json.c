/* SPDX-License-Identifier: Apache-2.0 */
/* Values of struct_pack messages as JSON, and from JSON. */
#include "ref/wire/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- to JSON */

static struct moon_json *number_to_json(struct moon_arena *arena, const struct moon_wire_value *value) {
    bool is_signed = value->type->kind == MOON_WIRE_I32 || value->type->kind == MOON_WIRE_I64;
    return is_signed ? moon_json_int(arena, (int64_t)value->number) : moon_json_uint(arena, value->number);
}

static struct moon_json *list_to_json(struct moon_arena *arena, const struct moon_wire_value *value) {
    struct moon_json *list = moon_json_array(arena);
    for (const struct moon_wire_value *one = value->first; one; one = one->next) {
        if (value->type->kind == MOON_WIRE_VECTOR) {
            moon_json_push(list, moon_wire_to_json(arena, one));
            continue;
        }
        struct moon_json *pair = moon_json_push(list, moon_json_array(arena));
        moon_json_push(pair, moon_wire_to_json(arena, one));
        one = one->next;
        moon_json_push(pair, moon_wire_to_json(arena, one));
    }
    return list;
}

static struct moon_json *struct_to_json(struct moon_arena *arena, const struct moon_wire_value *value) {
    struct moon_json *object = moon_json_object(arena);
    const struct moon_wire_member *member = value->type->members;
    for (const struct moon_wire_value *one = value->first; one; one = one->next, member++)
        moon_json_set(arena, object, member->name, moon_wire_to_json(arena, one));
    return object;
}

static struct moon_json *expected_to_json(struct moon_arena *arena, const struct moon_wire_value *value) {
    struct moon_json *object = moon_json_object(arena);
    if (value->number)
        moon_json_set(arena, object, "ok", moon_wire_to_json(arena, value->first));
    else
        moon_json_set(arena, object, "err", moon_json_int(arena, (int64_t)value->second));
    return object;
}

static struct moon_json *variant_to_json(struct moon_arena *arena, const struct moon_wire_value *value) {
    struct moon_json *object = moon_json_object(arena);
    moon_json_set(arena, object, "kind", moon_json_string(arena, value->type->members[value->number].name));
    moon_json_set(arena, object, "value", moon_wire_to_json(arena, value->first));
    return object;
}

struct moon_json *moon_wire_to_json(struct moon_arena *arena, const struct moon_wire_value *value) {
    switch (value->type->kind) {
    case MOON_WIRE_VOID:
        return moon_json_null(arena);
    case MOON_WIRE_BOOL:
        return moon_json_bool(arena, value->number != 0);
    case MOON_WIRE_UUID:
        return moon_json_string(arena,
                                moon_arena_format(arena, "%016" PRIx64 "-%016" PRIx64, value->number, value->second));
    case MOON_WIRE_STRING:
        return moon_json_bytes(arena, (const char *)value->bytes, value->length);
    case MOON_WIRE_VECTOR:
    case MOON_WIRE_MAP:
        return list_to_json(arena, value);
    case MOON_WIRE_OPTIONAL:
        return value->first ? moon_wire_to_json(arena, value->first) : moon_json_null(arena);
    case MOON_WIRE_EXPECTED:
        return expected_to_json(arena, value);
    case MOON_WIRE_VARIANT:
        return variant_to_json(arena, value);
    case MOON_WIRE_STRUCT:
        return struct_to_json(arena, value);
    default:
        return number_to_json(arena, value);
    }
}

/* ---- from JSON */

enum { UUID_DIGITS = 16 }; /* of each word */
static const char source[] = "message";

struct builder {
    struct moon_arena *arena;
    struct moon_error *error;
};

static int build(struct builder *builder, const struct moon_wire_type *type, const struct moon_json *json,
                 struct moon_wire_value **out);

static int wrong(struct builder *builder, const struct moon_json *json, const char *expected) {
    return moon_json_fail(builder->error, MOON_ERR_SCHEMA, source, json, "%s, not %s", moon_json_type_name(json),
                          expected);
}

static int build_part(struct builder *builder, struct moon_wire_value *parent, const struct moon_wire_type *type,
                      const struct moon_json *json, struct moon_wire_value ***end) {
    int status = build(builder, type, json, *end);
    if (status)
        return status;
    *end = &(**end)->next;
    parent->count++;
    return MOON_OK;
}

/* An integer between `min` and `max`; as u64 also beyond int64. */
static int build_number(struct builder *builder, const struct moon_json *json, int64_t min, uint64_t max,
                        uint64_t *number) {
    if (!moon_json_is(json, MOON_JSON_INTEGER))
        return wrong(builder, json, "an integer");
    bool fits = json->fits && json->integer >= min && (json->integer < 0 || (uint64_t)json->integer <= max);
    *number = (uint64_t)json->integer;
    if (!json->fits && max == UINT64_MAX && json->length <= 20 && json->bytes[0] != '-') {
        /* 20 digits, of which the first is 1: the only numbers above int64 that u64 holds. */
        struct moon_json *back;
        *number = strtoull(json->bytes, NULL, 10);
        back = moon_json_uint(builder->arena, *number);
        if (!back)
            return moon_fail(builder->error, MOON_ERR_MEMORY, NULL, "out of memory");
        fits = moon_json_equal(back, json);
    }
    if (!fits)
        return moon_json_fail(builder->error, MOON_ERR_RANGE, source, json, "%s is outside the range of its type",
                              json->bytes);
    return MOON_OK;
}

static int hex_word(const char *digits, uint64_t *word) {
    uint8_t bytes[UUID_DIGITS / 2];
    int status = moon_hex_decode(digits, UUID_DIGITS, bytes);
    *word = 0;
    for (size_t i = 0; i < sizeof bytes && !status; i++)
        *word = *word << 8 | bytes[i];
    return status;
}

static int build_uuid(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    if (!moon_json_is(json, MOON_JSON_STRING) || json->length != 2 * UUID_DIGITS + 1 ||
        json->bytes[UUID_DIGITS] != '-' || hex_word(json->bytes, &value->number) ||
        hex_word(json->bytes + UUID_DIGITS + 1, &value->second))
        return wrong(builder, json, "two words of 16 hex digits with \"-\" between");
    return MOON_OK;
}

static int build_list(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    const struct moon_wire_type *type = value->type;
    struct moon_wire_value **end = &value->first;
    int status = MOON_OK;
    if (!moon_json_is(json, MOON_JSON_ARRAY))
        return wrong(builder, json, "an array");
    for (const struct moon_json *one = json->first; one && !status; one = one->next) {
        bool is_pair = moon_json_is(one, MOON_JSON_ARRAY) && one->count == 2;
        if (!type->value)
            status = build_part(builder, value, type->of, one, &end);
        else if (!is_pair)
            status = wrong(builder, one, "a pair [key, value]");
        else {
            status = build_part(builder, value, type->of, one->first, &end);
            if (!status)
                status = build_part(builder, value, type->value, one->last, &end);
        }
    }
    return status;
}

static int build_struct(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    int status = MOON_OK;
    if (!moon_json_is(json, MOON_JSON_OBJECT))
        return wrong(builder, json, "an object");
    for (const struct moon_wire_member *one = value->type->members; one->name && !status; one++) {
        const struct moon_json *member = moon_json_member(json, one->name);
        status = member ? build_part(builder, value, one->type, member, &end)
                        : moon_json_fail(builder->error, MOON_ERR_SCHEMA, source, json, "\"%s\" is missing", one->name);
    }
    if (!status && json->count != value->count)
        status = moon_json_fail(builder->error, MOON_ERR_SCHEMA, source, json, "%zu members, not %zu", json->count,
                                value->count);
    return status;
}

static int build_expected(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    const struct moon_json *ok = moon_json_member(json, "ok"), *err = moon_json_member(json, "err");
    if (!moon_json_is(json, MOON_JSON_OBJECT) || json->count != 1 || (!ok && !err))
        return wrong(builder, json, "{\"ok\": value} or {\"err\": code}");
    value->number = ok != NULL;
    return ok ? build_part(builder, value, value->type->of, ok, &end)
              : build_number(builder, err, INT32_MIN, INT32_MAX, &value->second);
}

static int build_variant(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    const struct moon_json *kind = moon_json_member(json, "kind"), *inner = moon_json_member(json, "value");
    const struct moon_wire_member *one = value->type->members;
    while (one->name && !moon_json_is_string(kind, one->name))
        one++;
    if (!one->name || !inner || json->count != 2)
        return wrong(builder, json, "{\"kind\": one of the known, \"value\": value}");
    value->number = (uint64_t)(one - value->type->members);
    return build_part(builder, value, one->type, inner, &end);
}

static int build_string(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    if (!moon_json_is(json, MOON_JSON_STRING))
        return wrong(builder, json, "a string");
    value->bytes = (const uint8_t *)json->bytes;
    value->length = json->length;
    return MOON_OK;
}

static int build_content(struct builder *builder, const struct moon_json *json, struct moon_wire_value *value) {
    struct moon_wire_value **end = &value->first;
    switch (value->type->kind) {
    case MOON_WIRE_VOID:
        return moon_json_is(json, MOON_JSON_NULL) ? MOON_OK : wrong(builder, json, "null");
    case MOON_WIRE_BOOL:
        value->number = moon_json_is(json, MOON_JSON_BOOL) && json->boolean;
        return moon_json_is(json, MOON_JSON_BOOL) ? MOON_OK : wrong(builder, json, "a boolean");
    case MOON_WIRE_U8:
        return build_number(builder, json, 0, UINT8_MAX, &value->number);
    case MOON_WIRE_U16:
        return build_number(builder, json, 0, UINT16_MAX, &value->number);
    case MOON_WIRE_U32:
        return build_number(builder, json, 0, UINT32_MAX, &value->number);
    case MOON_WIRE_U64:
        return build_number(builder, json, 0, UINT64_MAX, &value->number);
    case MOON_WIRE_I32:
        return build_number(builder, json, INT32_MIN, INT32_MAX, &value->number);
    case MOON_WIRE_I64:
        return build_number(builder, json, INT64_MIN, INT64_MAX, &value->number);
    case MOON_WIRE_UUID:
        return build_uuid(builder, json, value);
    case MOON_WIRE_STRING:
        return build_string(builder, json, value);
    case MOON_WIRE_VECTOR:
    case MOON_WIRE_MAP:
        return build_list(builder, json, value);
    case MOON_WIRE_OPTIONAL:
        value->number = !moon_json_is(json, MOON_JSON_NULL);
        return value->number ? build_part(builder, value, value->type->of, json, &end) : MOON_OK;
    case MOON_WIRE_EXPECTED:
        return build_expected(builder, json, value);
    case MOON_WIRE_VARIANT:
        return build_variant(builder, json, value);
    default:
        return build_struct(builder, json, value);
    }
}

static int build(struct builder *builder, const struct moon_wire_type *type, const struct moon_json *json,
                 struct moon_wire_value **out) {
    struct moon_wire_value *value = moon_arena_alloc(builder->arena, sizeof *value);
    if (!value)
        return moon_fail(builder->error, MOON_ERR_MEMORY, NULL, "out of memory");
    value->type = type;
    *out = value;
    return build_content(builder, json, value);
}

int moon_wire_from_json(struct moon_arena *arena, const struct moon_wire_type *type, const struct moon_json *json,
                        struct moon_wire_value **value, struct moon_error *error) {
    struct builder builder = {arena, error};
    struct moon_wire_value *built = NULL;
    int status = build(&builder, type, json, &built);
    if (!status)
        *value = built;
    return status;
}
