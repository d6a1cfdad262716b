/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of values built and read by member names. */
#include "ref/wire/build.h"

#include "ref/base/unit.h"
#include "ref/wire/release.h"

static struct moon_wire_protocol protocol;

static const struct moon_wire_call *call(const char *name) {
    return moon_wire_call_by_name(&protocol, name);
}

static void check_json(struct moon_arena *arena, const struct moon_wire_value *value, const char *expected) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(moon_wire_to_json(arena, value), MOON_JSON_COMPACT, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
}

/* Encoded, decoded, encoded: the same bytes. */
static int check_both_ways(struct moon_arena *arena, const struct moon_wire_value *value, bool arguments) {
    struct moon_text bytes, again;
    struct moon_wire_value *decoded = NULL;
    struct moon_error error;
    moon_text_open(&bytes, arena->memory);
    moon_text_open(&again, arena->memory);
    moon_wire_encode(value, arguments, true, &bytes);
    int status = bytes.failed ? MOON_ERR_MEMORY
                              : moon_wire_decode(arena, value->type, arguments, moon_text_value(&bytes), bytes.length,
                                                 NULL, &decoded, &error);
    if (!status)
        moon_wire_encode(decoded, arguments, true, &again);
    if (again.failed)
        status = MOON_ERR_MEMORY;
    if (!status)
        CU_ASSERT(bytes.length == again.length &&
                  memcmp(moon_text_value(&bytes), moon_text_value(&again), bytes.length) == 0);
    moon_text_close(&bytes);
    moon_text_close(&again);
    return status;
}

static void every_type_has_a_zero(void) {
    for (const struct moon_wire_release *const *one = moon_wire_releases; *one; one++) {
        struct moon_wire_protocol of_release;
        MOON_CHECK_INT(moon_wire_protocol_open(&of_release, *one, moon_memory_heap()), 0);
        for (size_t i = 0; i < of_release.count; i++) {
            const struct moon_wire_function *function = of_release.calls[i].function;
            struct moon_arena arena;
            moon_arena_open(&arena, moon_memory_heap());
            MOON_CHECK_INT(check_both_ways(&arena, moon_wire_zero(&arena, function->arguments), true), 0);
            MOON_CHECK_INT(check_both_ways(&arena, moon_wire_zero(&arena, function->result), false), 0);
            moon_arena_close(&arena);
        }
    }
}

static void a_zero_is_zero_in_all_its_parts(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    check_json(&arena, moon_wire_zero(&arena, call("PutEnd")->function->arguments),
               "{\"client_id\":\"0000000000000000-0000000000000000\",\"object_meta\":{\"key\":\"\","
               "\"object_checksum\":null},\"replica_type\":0,\"tenant_id\":\"\"}");
    check_json(&arena, moon_wire_zero(&arena, call("PutEnd")->function->result), "{\"err\":0}");
    struct moon_wire_value *result = moon_wire_zero(&arena, call("PutStart")->function->result);
    moon_wire_append(&arena, moon_wire_present(&arena, result));
    check_json(&arena, result,
               "{\"ok\":[{\"id\":0,\"where\":{\"kind\":\"MEMORY\",\"value\":{\"buffer\":{\"size\":0,\"address\":0,"
               "\"protocol\":\"\",\"transport_endpoint\":\"\"}}},\"status\":0}]}");
    moon_arena_close(&arena);
}

/* A result with everything in it. Returns NULL when memory refused. */
static struct moon_wire_value *build_replicas(struct moon_arena *arena) {
    struct moon_wire_value *result = moon_wire_zero(arena, call("GetReplicaList")->function->result);
    struct moon_wire_value *answer = result ? moon_wire_present(arena, result) : NULL;
    struct moon_wire_value *list = moon_wire_at(answer, "replicas");
    for (uint64_t i = 1; i <= 2; i++) {
        struct moon_wire_value *descriptor = list ? moon_wire_append(arena, list) : NULL;
        struct moon_wire_value *where = moon_wire_at(descriptor, "where");
        struct moon_wire_value *disk = where && i == 2 ? moon_wire_choose(arena, where, "LOCAL_DISK") : NULL;
        if (!descriptor || (i == 2 && !disk))
            return NULL;
        moon_wire_set_number(moon_wire_at(descriptor, "id"), i);
        moon_wire_set_uuid(moon_wire_at(disk, "client_id"), (struct moon_uuid){1, 2});
        moon_wire_set_bytes(moon_wire_at(disk, "transport_endpoint"), moon_bytes_of("h:1"));
    }
    struct moon_wire_value *checksum = moon_wire_present(arena, moon_wire_at(answer, "object_checksum"));
    moon_wire_set_number(checksum, 7);
    return checksum ? result : NULL;
}

static void values_are_built_by_name(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_wire_value *result = build_replicas(&arena);
    check_json(&arena, result,
               "{\"ok\":{\"replicas\":[{\"id\":1,\"where\":{\"kind\":\"MEMORY\",\"value\":{\"buffer\":{\"size\":0,"
               "\"address\":0,\"protocol\":\"\",\"transport_endpoint\":\"\"}}},\"status\":0},{\"id\":2,\"where\":"
               "{\"kind\":\"LOCAL_DISK\",\"value\":{\"client_id\":\"0000000000000001-0000000000000002\","
               "\"object_size\":0,\"transport_endpoint\":\"h:1\"}},\"status\":0}],\"lease_ttl_ms\":0,"
               "\"object_checksum\":7}}");
    MOON_CHECK_INT(check_both_ways(&arena, result, false), 0);
    moon_wire_set_error(result, -704);
    check_json(&arena, result, "{\"err\":-704}");
    CU_ASSERT_PTR_NOT_NULL(moon_wire_present(&arena, result));
    MOON_CHECK_INT(check_both_ways(&arena, result, false), 0);
    moon_arena_close(&arena);
}

static void values_are_read_by_name(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_wire_value *result = build_replicas(&arena);
    const struct moon_wire_value *list = moon_wire_at(result->first, "replicas");
    const struct moon_wire_value *where = moon_wire_at(list->last, "where");
    MOON_CHECK_TEXT(moon_wire_choice(where), "LOCAL_DISK");
    MOON_CHECK_TEXT(moon_wire_choice(moon_wire_at(list->first, "where")), "MEMORY");
    MOON_CHECK_INT(moon_wire_uuid(moon_wire_at(where->first, "client_id")).first, 1);
    MOON_CHECK_INT(moon_wire_uuid(moon_wire_at(where->first, "client_id")).second, 2);
    CU_ASSERT(
        moon_bytes_equal(moon_wire_bytes(moon_wire_at(where->first, "transport_endpoint")), moon_bytes_of("h:1")));
    MOON_CHECK_INT(moon_wire_number(moon_wire_at(list->last, "id")), 2);
    moon_arena_close(&arena);
}

static void what_is_not_there_is_nothing(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_wire_value *arguments = moon_wire_zero(&arena, call("ExistKey")->function->arguments);
    struct moon_wire_value *where = moon_wire_at(
        moon_wire_append(&arena, moon_wire_present(&arena, moon_wire_zero(&arena, call("PutStart")->function->result))),
        "where");
    CU_ASSERT_PTR_NULL(moon_wire_at(arguments, "keys"));
    CU_ASSERT_PTR_NULL(moon_wire_at(NULL, "key"));
    CU_ASSERT_PTR_NULL(moon_wire_at(moon_wire_at(arguments, "key"), "key"));
    CU_ASSERT_PTR_NULL(moon_wire_choose(&arena, where, "TAPE"));
    MOON_CHECK_TEXT(moon_wire_choice(where), "MEMORY");
    MOON_CHECK_TEXT(moon_wire_choice(NULL), "");
    MOON_CHECK_TEXT(moon_wire_choice(arguments), "");
    moon_wire_set_number(NULL, 1);
    moon_wire_set_bytes(NULL, moon_bytes_of("x"));
    moon_wire_set_uuid(NULL, (struct moon_uuid){1, 2});
    MOON_CHECK_INT(moon_wire_number(NULL), 0);
    MOON_CHECK_INT(moon_wire_bytes(NULL).length, 0);
    MOON_CHECK_INT(moon_wire_uuid(NULL).first, 0);
    moon_arena_close(&arena);
}

static int build_it(struct moon_memory *memory, const void *context) {
    struct moon_arena arena;
    (void)context;
    moon_arena_open(&arena, memory);
    struct moon_wire_value *result = build_replicas(&arena);
    int status = result ? check_both_ways(&arena, result, false) : MOON_ERR_MEMORY;
    moon_arena_close(&arena);
    return status;
}

static void refused_memory_gives_nothing(void) {
    moon_unit_refuse_memory(build_it, NULL);
    /* An arena asks seldom: here the second chunk is refused, and the first is full before each piece in turn. */
    for (size_t left = 0; left < 2400; left += 16) {
        struct moon_memory_failing failing;
        struct moon_arena arena;
        moon_memory_failing_init(&failing, moon_memory_heap(), 2);
        moon_arena_open(&arena, &failing.memory);
        CU_ASSERT_PTR_NOT_NULL(moon_arena_alloc(&arena, 4096 - 32 - left));
        build_replicas(&arena);
        moon_arena_close(&arena);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every type of every release has a zero", every_type_has_a_zero},
        {"a zero is zero in all its parts", a_zero_is_zero_in_all_its_parts},
        {"values are built by name", values_are_built_by_name},
        {"values are read by name", values_are_read_by_name},
        {"what is not there is nothing", what_is_not_there_is_nothing},
        {"refused memory gives nothing", refused_memory_gives_nothing},
        {NULL, NULL},
    };
    if (moon_wire_protocol_open(&protocol, moon_wire_releases[0], moon_memory_heap()))
        return 1;
    return moon_unit_main("build", cases, argc, argv);
}
