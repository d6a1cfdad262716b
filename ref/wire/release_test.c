/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of type texts, of the numbers made from them, and of the tables of releases. */
#include "ref/wire/release.h"

#include "ref/base/error.h"
#include "ref/base/unit.h"

static struct moon_wire_protocol opened(const char *release) {
    struct moon_wire_protocol protocol;
    MOON_CHECK_INT(moon_wire_protocol_open(&protocol, moon_wire_release_find(release), moon_memory_heap()), 0);
    return protocol;
}

static void type_texts_are_those_of_the_library(void) {
    static const struct moon_wire_type u8 = {.kind = MOON_WIRE_U8}, u16 = {.kind = MOON_WIRE_U16},
                                       u32 = {.kind = MOON_WIRE_U32}, string = {.kind = MOON_WIRE_STRING},
                                       list = {.kind = MOON_WIRE_VECTOR, .of = &u8},
                                       map = {.kind = MOON_WIRE_MAP, .of = &string, .value = &list},
                                       nothing = {.kind = MOON_WIRE_VOID},
                                       expected = {.kind = MOON_WIRE_EXPECTED, .of = &nothing},
                                       optional = {.kind = MOON_WIRE_OPTIONAL, .of = &map};
    static const struct moon_wire_member members[] = {{"a", &u16}, {"b", &u32}, {"c", &optional}, {NULL, NULL}};
    static const struct moon_wire_type record = {.kind = MOON_WIRE_STRUCT, .members = members};
    static const struct moon_wire_type variant = {.kind = MOON_WIRE_VARIANT, .members = members};
    static const struct {
        const struct moon_wire_type *type;
        const char *hex;
    } rows[] = {{&u8, "06"},
                {&map, "82800c8406"},
                {&expected, "87fa01"},
                {&optional, "8582800c8406"},
                {&record, "fd08028582800c8406ff"},
                {&variant, "8608028582800c8406ff"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_text text, hex;
        moon_text_open(&text, moon_memory_heap());
        moon_text_open(&hex, moon_memory_heap());
        moon_wire_type_text(rows[i].type, &text);
        moon_text_hex(&hex, text.data, text.length);
        MOON_CHECK_TEXT(moon_text_value(&hex), rows[i].hex);
        moon_text_close(&hex);
        moon_text_close(&text);
    }
}

static void one_argument_is_no_struct(void) {
    struct moon_wire_protocol protocol = opened("0.3.13");
    static const struct {
        const char *name, *hex;
    } rows[] = {
        {"ServiceReady", ""}, {"Ping", "fd04048989ff"}, {"ExistKey", "fd800c800cff"}, {"QuerySegmentStatus", "800c"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_text text, hex;
        moon_text_open(&text, moon_memory_heap());
        moon_text_open(&hex, moon_memory_heap());
        moon_wire_arguments_text(moon_wire_call_by_name(&protocol, rows[i].name)->function->arguments, &text);
        moon_text_hex(&hex, moon_text_value(&text), text.length);
        MOON_CHECK_TEXT(moon_text_value(&hex), rows[i].hex);
        moon_text_close(&hex);
        moon_text_close(&text);
    }
}

static void numbers_follow_from_names_and_types(void) {
    struct moon_wire_protocol protocol = opened("0.3.13.post1");
    static const struct {
        const char *name;
        uint32_t id, arguments, result;
    } rows[] = {
        {"Ping", 0xd6c2dae5, 0x3c6d83e0, 0x742a8f52},
        {"ServiceReady", 0x7b81bb56, 0, 0x1cb3cc34},
        {"PutStart", 0x65ea9ac1, 0xe385bd0e, 0xc43927a6},
        {"RealClient::release_offload_buffer", 0xaa143bb9, 0xec7f7e7a, 0x13c8ffd8},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct moon_wire_call *call = moon_wire_call_by_id(&protocol, rows[i].id);
        CU_ASSERT_FATAL(call != NULL);
        MOON_CHECK_TEXT(call->function->name, rows[i].name);
        MOON_CHECK_INT(call->arguments_hash, rows[i].arguments);
        MOON_CHECK_INT(call->result_hash, rows[i].result);
        CU_ASSERT_PTR_EQUAL(moon_wire_call_by_name(&protocol, rows[i].name), call);
    }
    MOON_CHECK_INT(moon_wire_digest("", 0), 0xd41d8cd9); /* MD5 of nothing */
    CU_ASSERT_PTR_NULL(moon_wire_call_by_id(&protocol, 0x12345678));
    CU_ASSERT_PTR_NULL(moon_wire_call_by_name(&protocol, "Pong"));
    CU_ASSERT_PTR_NULL(moon_wire_call_by_result(&protocol, 0x11111110));
    MOON_CHECK_TEXT(moon_wire_call_by_result(&protocol, 0x39fc52ce)->function->name, "BatchEvictDiskReplica");
}

static void calls_are_sorted_and_ids_are_unique(void) {
    for (const struct moon_wire_release *const *one = moon_wire_releases; *one; one++) {
        struct moon_wire_protocol protocol = opened((*one)->name);
        for (size_t i = 1; i < protocol.count; i++) {
            CU_ASSERT(protocol.calls[i - 1].id < protocol.calls[i].id);
            CU_ASSERT(strcmp(protocol.calls[protocol.by_name[i - 1]].function->name,
                             protocol.calls[protocol.by_name[i]].function->name) < 0);
        }
        MOON_CHECK_TEXT((*one)->version, "2.0.0");
    }
}

static void releases_differ_where_their_tables_do(void) {
    struct moon_wire_protocol newest = opened("0.3.13"), older = opened("0.3.12"), old = opened("0.3.11"),
                              oldest = opened("0.3.10");
    MOON_CHECK_INT(newest.count, 66);
    MOON_CHECK_INT(older.count, 62);
    MOON_CHECK_INT(old.count, 59);
    MOON_CHECK_INT(oldest.count, 46);
    CU_ASSERT(moon_wire_call_by_name(&newest, "UnmountLocalDiskSegment") != NULL);
    CU_ASSERT_PTR_NULL(moon_wire_call_by_name(&older, "UnmountLocalDiskSegment"));
    CU_ASSERT_PTR_NULL(moon_wire_call_by_name(&oldest, "UnmountLocalDiskSegment"));
    MOON_CHECK_INT(moon_wire_call_by_name(&newest, "ExistKey")->arguments_hash,
                   moon_wire_call_by_name(&older, "ExistKey")->arguments_hash);
    CU_ASSERT(moon_wire_call_by_name(&older, "ExistKey")->arguments_hash !=
              moon_wire_call_by_name(&old, "ExistKey")->arguments_hash);
    CU_ASSERT_PTR_EQUAL(moon_wire_call_by_name(&old, "ExistKey")->function,
                        moon_wire_call_by_name(&oldest, "ExistKey")->function);
}

static void releases_are_found_by_name_and_by_line(void) {
    MOON_CHECK_TEXT(moon_wire_release_find("0.3.10")->name, "0.3.10.post2");
    MOON_CHECK_TEXT(moon_wire_release_find("0.3.12.post1")->name, "0.3.12.post1");
    CU_ASSERT_PTR_NULL(moon_wire_release_find("0.3.1"));
    CU_ASSERT_PTR_NULL(moon_wire_release_find("0.3.13.post"));
    CU_ASSERT_PTR_NULL(moon_wire_release_find(""));
}

static int open_it(struct moon_memory *memory, const void *context) {
    struct moon_wire_protocol protocol;
    return moon_wire_protocol_open(&protocol, context, memory);
}
static void refused_memory_is_reported(void) {
    moon_unit_refuse_memory(open_it, moon_wire_releases[0]);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"type texts are those of the library", type_texts_are_those_of_the_library},
        {"one argument is no struct, and none is no body", one_argument_is_no_struct},
        {"numbers follow from names and types", numbers_follow_from_names_and_types},
        {"calls are sorted and ids are unique", calls_are_sorted_and_ids_are_unique},
        {"releases differ where their tables do", releases_differ_where_their_tables_do},
        {"releases are found by name and by line", releases_are_found_by_name_and_by_line},
        {"refused memory is reported", refused_memory_is_reported},
        {NULL, NULL},
    };
    return moon_unit_main("release", cases, argc, argv);
}
