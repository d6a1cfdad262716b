/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of struct_pack bodies: known bytes, length classes, every cut and false length, JSON both ways, memory. */
#include "ref/wire/value.h"

#include "ref/base/unit.h"
#include "ref/wire/release.h"

static struct moon_wire_protocol protocol;

static const struct moon_wire_type *arguments_of(const char *name) {
    return moon_wire_call_by_name(&protocol, name)->function->arguments;
}
static const struct moon_wire_type *result_of(const char *name) {
    return moon_wire_call_by_name(&protocol, name)->function->result;
}

#define UUID     "\"1122334455667788-99aabbccddeeff00\""
#define UUID_HEX "887766554433221100ffeeddccbbaa99"
#define CONFIG                                                                                                         \
    "{\"replica_num\":1,\"nof_replica_num\":0,\"dfs_replica_num\":0,\"soft_pin_action\":0,\"soft_pin_ttl_ms\":7,"      \
    "\"with_hard_pin\":true,\"preferred_segments\":[\"h:1\"],\"preferred_segment\":\"\","                              \
    "\"preferred_nof_segments\":[],\"prefer_alloc_in_same_node\":false,\"data_type\":0,\"host_id\":\"\","              \
    "\"group_ids\":null}"
#define MEMORY_REPLICA                                                                                                 \
    "[{\"id\":3,\"where\":{\"kind\":\"MEMORY\",\"value\":{\"buffer\":{\"size\":4096,\"address\":139637976727552,"      \
    "\"protocol\":\"tcp\",\"transport_endpoint\":\"10.0.0.1:15001\"}}},\"status\":3}]"

/* Computed with the library that Mooncake uses, built with NDEBUG, so without type texts. */
static const struct known {
    const char *function;
    bool arguments;
    const char *json, *hex;
} known[] = {
    {"ExistKey", true, "{\"key\":\"k1\",\"tenant_id\":\"default\"}", "d81ef97c026b310764656661756c74"},
    {"ExistKey", false, "{\"ok\":true}", "d200e8900101"},
    {"ExistKey", false, "{\"err\":-600}", "d200e89000a8fdffff"},
    {"Ping", true, "{\"client_id\":" UUID "}", "e0836d3c" UUID_HEX},
    {"Ping", false, "{\"ok\":{\"view_version_id\":5,\"client_status\":1}}", "528f2a7401050000000000000001000000"},
    {"ServiceReady", true, "{}", ""},
    {"ServiceReady", false, "{\"ok\":\"2.0.0\"}", "34ccb31c0105322e302e30"},
    {"UnmountSegment", true, "{\"segment_id\":" UUID ",\"client_id\":" UUID "}", "e012c5d4" UUID_HEX UUID_HEX},
    {"PutStart", true,
     "{\"client_id\":" UUID ",\"key\":\"k1\",\"slice_length\":4096,\"config\":" CONFIG ",\"tenant_id\":\"default\"}",
     "0ebd85e3" UUID_HEX "026b3100100000000000000100000000000000000000000000000000000000000000000001"
     "07000000000000000101"
     "03683a310000000000000764656661756c74"},
    {"PutStart", false, "{\"ok\":" MEMORY_REPLICA "}",
     "a62739c40101030000000000000000001000000000000000000000007f0000037463700e31302e302e302e313a3135303031"
     "03000000"},
    {"PutEnd", true,
     "{\"client_id\":" UUID ",\"object_meta\":{\"key\":\"k1\",\"object_checksum\":null},\"replica_type\":4,"
     "\"tenant_id\":\"default\"}",
     "229281d1" UUID_HEX "026b3100040000000764656661756c74"},
    {"GetReplicaList", false,
     "{\"ok\":{\"replicas\":" MEMORY_REPLICA ",\"lease_ttl_ms\":10000,\"object_checksum\":null}}",
     "6c27c6880101030000000000000000001000000000000000000000007f0000037463700e31302e302e302e313a3135303031"
     "03000000102700000000000000"},
    {"BatchExistKey", false, "[{\"ok\":true},{\"ok\":false},{\"err\":-600}]", "5c8c5f2a030101010000a8fdffff"},
    {"PutEnd", false, "{\"ok\":null}", "cc6828af01"},
    {"PutEnd", false, "{\"err\":-704}", "cc6828af0040fdffff"},
    {"BatchExistKey", true, "{\"keys\":[\"a\",\"b\"],\"tenant_id\":\"default\"}", "628df70002016101620764656661756c74"},
    {"RemoveAll", false, "5", "346866860500000000000000"},
};

static void build(struct moon_arena *arena, const struct known *row, struct moon_wire_value **value) {
    struct moon_json *json = NULL;
    struct moon_error error = {0};
    *value = NULL;
    MOON_CHECK_INT(moon_json_read(arena, "row", row->json, strlen(row->json), MOON_JSON_STRICT, &json, &error), 0);
    MOON_CHECK_INT(moon_wire_from_json(arena, row->arguments ? arguments_of(row->function) : result_of(row->function),
                                       json, value, &error),
                   0);
    if (error.message[0])
        fprintf(stderr, "%s: %s %s\n", row->function, error.where, error.message);
}

static void known_bytes_come_out(void) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct moon_arena arena;
        struct moon_text bytes, hex;
        struct moon_wire_value *value;
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_open(&bytes, moon_memory_heap());
        moon_text_open(&hex, moon_memory_heap());
        build(&arena, &known[i], &value);
        moon_wire_encode(value, known[i].arguments, false, &bytes);
        moon_text_hex(&hex, moon_text_value(&bytes), bytes.length);
        MOON_CHECK_TEXT(moon_text_value(&hex), known[i].hex);
        moon_text_close(&hex);
        moon_text_close(&bytes);
        moon_arena_close(&arena);
    }
}

/* Decodes and returns the status; a value must show the JSON of the row. */
static int decode(const struct known *row, const void *bytes, size_t length, struct moon_error *error) {
    struct moon_arena arena;
    struct moon_wire_value *value = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_wire_decode(&arena, row->arguments ? arguments_of(row->function) : result_of(row->function),
                                  row->arguments, bytes, length, NULL, &value, error);
    if (!status) {
        struct moon_text text;
        moon_text_open(&text, moon_memory_heap());
        moon_json_write(moon_wire_to_json(&arena, value), MOON_JSON_COMPACT, &text);
        MOON_CHECK_TEXT(moon_text_value(&text), row->json);
        moon_text_close(&text);
    }
    moon_arena_close(&arena);
    return status;
}

/* A copy of exactly `length` bytes, so that a sanitizer sees a read past the end. */
static int decode_copy(const struct known *row, const uint8_t *bytes, size_t length, struct moon_error *error) {
    struct moon_memory *heap = moon_memory_heap();
    uint8_t *copy = heap->resize(heap, NULL, 0, length + (length == 0));
    if (length > 0)
        memcpy(copy, bytes, length);
    int status = decode(row, copy, length, error);
    heap->resize(heap, copy, length + (length == 0), 0);
    return status;
}

static void known_bytes_are_read_whole_and_refused_cut(void) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint8_t bytes[256];
        struct moon_error error;
        size_t length = strlen(known[i].hex) / 2;
        MOON_CHECK_INT(moon_hex_decode(known[i].hex, 2 * length, bytes), 0);
        MOON_CHECK_INT(decode_copy(&known[i], bytes, length, &error), 0);
        for (size_t cut = 0; cut < length; cut++)
            MOON_CHECK_INT(decode_copy(&known[i], bytes, cut, &error), MOON_ERR_SYNTAX);
        bytes[length] = 0;
        MOON_CHECK_INT(decode_copy(&known[i], bytes, length + 1, &error), MOON_ERR_SYNTAX);
        if (length == 0)
            continue;
        MOON_CHECK_INT(strstr(error.message, "1 bytes follow") != NULL, 1);
        bytes[1] ^= 1;
        MOON_CHECK_INT(decode_copy(&known[i], bytes, length, &error), MOON_ERR_SCHEMA);
    }
}

static void every_changed_byte_gives_a_value_or_an_error(void) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct known any = known[i];
        uint8_t bytes[256];
        size_t length = strlen(any.hex) / 2;
        moon_hex_decode(any.hex, 2 * length, bytes);
        for (size_t at = 4; at < length; at++)
            for (unsigned to = 0; to < 256; to += 51) { /* 0, 51, ... 255 */
                struct moon_arena arena;
                struct moon_error error = {0};
                struct moon_wire_value *value = NULL;
                uint8_t before = bytes[at];
                bytes[at] = (uint8_t)to;
                moon_arena_open(&arena, moon_memory_heap());
                int status =
                    moon_wire_decode(&arena, any.arguments ? arguments_of(any.function) : result_of(any.function),
                                     any.arguments, bytes, length, NULL, &value, &error);
                CU_ASSERT(status == MOON_OK || strstr(error.message, "offset") != NULL);
                moon_arena_close(&arena);
                bytes[at] = before;
            }
    }
}

static void faults_name_their_offset(void) {
    static const struct {
        const char *function, *hex, *message;
        bool arguments;
    } rows[] = {
        {"ExistKey", "d200e8900102", "flag of value 2 at offset 5, not 0 or 1", false},
        {"ExistKey", "d200e89002", "flag of value 2 at offset 4, not 0 or 1", false},
        {"ExistKey", "d200e89001", "cut: the body ends at offset 5, inside of a value", false},
        {"ExistKey", "d200", "cut: the body ends at offset 2, inside of its head", false},
        {"ExistKey", "d300e890", "cut: the body ends at offset 4, inside of its head", false},
        {"ExistKey", "d300e890200101", "unknown bits in the meta byte 0x20 at offset 4", false},
        {"ExistKey", "d300e89004870b", "cut: the type text at offset 5 has no end", false},
        {"ExistKey", "d300e89004870b0200", "type text at offset 5 is not the one that has this hash", false},
        {"ExistKey", "d300e89004870b00", "type text at offset 5 is not the one that has this hash", false},
        {"ExistKey", "d81ef97c01", "length 1 at offset 4, but only 0 bytes are left", true},
        {"ExistKey", "d81ef97c05", "length 5 at offset 4, but only 0 bytes are left", true},
        {"ExistKey", "d91ef97c18ffffffffffffffff00",
         "length 18446744073709551615 at offset 5, but only 1 bytes are left", true},
        {"ExistKey", "d91ef97c10000000", "cut: the body ends at offset 8, inside of a value", true},
        {"BatchExistKey", "628df700ff", "length 255 at offset 4, but only 0 bytes are left", true},
        {"BatchExistKey", "628df700", "cut: the body ends at offset 4, inside of a value", true},
        {"PutStart", "a62739c401010300000000000000ff", "alternative 255 at offset 14, but there are 5", false},
        {"PutStart", "a62739c401010300000000000000", "cut: the body ends at offset 14, inside of a value", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct known row = {rows[i].function, rows[i].arguments, "", ""};
        uint8_t bytes[64];
        struct moon_error error = {0};
        moon_hex_decode(rows[i].hex, strlen(rows[i].hex), bytes);
        CU_ASSERT(decode_copy(&row, bytes, strlen(rows[i].hex) / 2, &error) != 0);
        MOON_CHECK_TEXT(error.message, rows[i].message);
    }
}

/* A key of `length` bytes: the fields that hold lengths, and the meta byte. */
static void length_class(size_t length, unsigned expected_bytes, unsigned expected_meta) {
    static const struct moon_wire_type string = {.kind = MOON_WIRE_STRING};
    struct moon_memory *heap = moon_memory_heap();
    uint8_t *key = heap->resize(heap, NULL, 0, length);
    memset(key, 'x', length);
    struct moon_wire_value value = {.type = &string, .bytes = key, .length = length};
    for (unsigned with_text = 0; with_text < 2; with_text++) {
        struct moon_text out;
        struct moon_arena arena;
        struct moon_wire_head head = {0};
        struct moon_wire_value *read = NULL;
        struct moon_error error;
        moon_text_open(&out, heap);
        moon_arena_open(&arena, heap);
        moon_wire_encode(&value, false, with_text, &out);
        unsigned meta = expected_meta | (with_text ? 4 : 0);
        MOON_CHECK_INT(out.length, 4U + (meta ? 1U : 0U) + (with_text ? 3U : 0U) + expected_bytes + length);
        if (meta)
            MOON_CHECK_INT(out.data[4], meta);
        MOON_CHECK_INT(out.data[0] & 1, meta != 0);
        MOON_CHECK_INT(moon_wire_decode(&arena, &string, false, out.data, out.length, &head, &read, &error), 0);
        MOON_CHECK_INT(read->length, length);
        MOON_CHECK_INT(read->offset, out.length - length - expected_bytes);
        MOON_CHECK_INT(head.length_bytes, expected_bytes);
        MOON_CHECK_INT(head.text_length, with_text ? 2 : 0);
        moon_arena_close(&arena);
        moon_text_close(&out);
    }
    heap->resize(heap, key, length, 0);
}

static void lengths_take_as_few_bytes_as_fit(void) {
    length_class(255, 1, 0x00);
    length_class(256, 2, 0x08);
    length_class(65535, 2, 0x08);
    length_class(65536, 4, 0x10);
}

/* Only the count matters here: no element is there. */
static void lengths_beyond_4_gib_take_8_bytes(void) {
    static const struct moon_wire_type vector = {.kind = MOON_WIRE_VECTOR};
    struct moon_wire_value value = {.type = &vector, .count = (size_t)UINT32_MAX + 1};
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_wire_encode(&value, false, false, &out);
    MOON_CHECK_INT(out.data[4], 0x18);
    MOON_CHECK_INT(out.length, 4 + 1 + 8);
    moon_text_close(&out);
}

/* Each kind of value, through JSON and back. */
static const struct moon_wire_type u8 = {.kind = MOON_WIRE_U8}, u16 = {.kind = MOON_WIRE_U16},
                                   u32 = {.kind = MOON_WIRE_U32}, u64 = {.kind = MOON_WIRE_U64},
                                   i32 = {.kind = MOON_WIRE_I32}, i64 = {.kind = MOON_WIRE_I64},
                                   string = {.kind = MOON_WIRE_STRING},
                                   map = {.kind = MOON_WIRE_MAP, .of = &string, .value = &u16},
                                   optional = {.kind = MOON_WIRE_OPTIONAL, .of = &map};
static const struct moon_wire_type all = {
    .kind = MOON_WIRE_STRUCT,
    .members = (const struct moon_wire_member[]){
        {"a", &u8}, {"b", &u16}, {"c", &u32}, {"d", &u64}, {"e", &i32}, {"f", &i64}, {"g", &optional}, {NULL, NULL}}};

static int from_text(struct moon_arena *arena, const struct moon_wire_type *type, const char *text,
                     struct moon_wire_value **value, struct moon_error *error) {
    struct moon_json *json = NULL;
    MOON_CHECK_INT(moon_json_read(arena, "row", text, strlen(text), MOON_JSON_STRICT, &json, error), 0);
    return moon_wire_from_json(arena, type, json, value, error);
}

static void each_kind_goes_through_json(void) {
    static const char *const texts[] = {
        "{\"a\":255,\"b\":65535,\"c\":4294967295,\"d\":18446744073709551615,\"e\":-2147483648,"
        "\"f\":-9223372036854775808,\"g\":[[\"x\",1],[\"\",65535]]}",
        "{\"a\":0,\"b\":0,\"c\":0,\"d\":9223372036854775807,\"e\":2147483647,\"f\":9223372036854775807,\"g\":null}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct moon_arena arena;
        struct moon_text bytes, text;
        struct moon_wire_value *value = NULL, *again = NULL;
        struct moon_error error;
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_open(&bytes, moon_memory_heap());
        moon_text_open(&text, moon_memory_heap());
        MOON_CHECK_INT(from_text(&arena, &all, texts[i], &value, &error), 0);
        moon_wire_encode(value, false, true, &bytes);
        MOON_CHECK_INT(moon_wire_decode(&arena, &all, false, bytes.data, bytes.length, NULL, &again, &error), 0);
        moon_json_write(moon_wire_to_json(&arena, again), MOON_JSON_COMPACT, &text);
        MOON_CHECK_TEXT(moon_text_value(&text), texts[i]);
        moon_text_close(&text);
        moon_text_close(&bytes);
        moon_arena_close(&arena);
    }
}

static void json_that_does_not_fit_is_refused(void) {
    const struct {
        const struct moon_wire_type *type;
        const char *json;
        int status;
    } rows[] = {
        {&u8, "256", MOON_ERR_RANGE},
        {&u8, "-1", MOON_ERR_RANGE},
        {&u64, "18446744073709551616", MOON_ERR_RANGE},
        {&u64, "28446744073709551616", MOON_ERR_RANGE},
        {&u64, "184467440737095516150", MOON_ERR_RANGE},
        {&u64, "-9223372036854775809", MOON_ERR_RANGE},
        {&i64, "9223372036854775808", MOON_ERR_RANGE},
        {&i32, "-2147483649", MOON_ERR_RANGE},
        {&i32, "2147483648", MOON_ERR_RANGE},
        {&u32, "\"1\"", MOON_ERR_SCHEMA},
        {&u32, "1.5", MOON_ERR_SCHEMA},
        {&string, "1", MOON_ERR_SCHEMA},
        {&map, "{}", MOON_ERR_SCHEMA},
        {&map, "[[\"a\"]]", MOON_ERR_SCHEMA},
        {&map, "[1]", MOON_ERR_SCHEMA},
        {&map, "[[1,1]]", MOON_ERR_SCHEMA},
        {&map, "[[\"a\",\"b\"]]", MOON_ERR_SCHEMA},
        {&all, "[]", MOON_ERR_SCHEMA},
        {&all, "{\"a\":1}", MOON_ERR_SCHEMA},
        {result_of("Ping"), "{\"ok\":{\"view_version_id\":5,\"client_status\":1,\"more\":0}}", MOON_ERR_SCHEMA},
        {result_of("Ping"), "{\"ok\":1,\"err\":2}", MOON_ERR_SCHEMA},
        {result_of("Ping"), "{\"no\":1}", MOON_ERR_SCHEMA},
        {result_of("Ping"), "1", MOON_ERR_SCHEMA},
        {result_of("Ping"), "{\"err\":2147483648}", MOON_ERR_RANGE},
        {result_of("PutEnd"), "{\"ok\":1}", MOON_ERR_SCHEMA},
        {result_of("ExistKey"), "{\"ok\":1}", MOON_ERR_SCHEMA},
        {arguments_of("Ping"), "{\"client_id\":5}", MOON_ERR_SCHEMA},
        {arguments_of("Ping"), "{\"client_id\":\"5\"}", MOON_ERR_SCHEMA},
        {arguments_of("Ping"), "{\"client_id\":\"1122334455667788_99aabbccddeeff00\"}", MOON_ERR_SCHEMA},
        {arguments_of("Ping"), "{\"client_id\":\"112233445566778x-99aabbccddeeff00\"}", MOON_ERR_SCHEMA},
        {arguments_of("Ping"), "{\"client_id\":\"1122334455667788-99aabbccddeeff0x\"}", MOON_ERR_SCHEMA},
        {result_of("PutStart"), "{\"ok\":[{\"id\":1,\"where\":{\"kind\":\"TAPE\",\"value\":1},\"status\":1}]}",
         MOON_ERR_SCHEMA},
        {result_of("PutStart"), "{\"ok\":[{\"id\":1,\"where\":{\"kind\":\"DISK\"},\"status\":1}]}", MOON_ERR_SCHEMA},
        {result_of("PutStart"), "{\"ok\":[{\"id\":1,\"where\":{\"kind\":\"DISK\",\"value\":1,\"x\":1},\"status\":1}]}",
         MOON_ERR_SCHEMA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_arena arena;
        struct moon_wire_value *value = NULL;
        struct moon_error error = {0};
        moon_arena_open(&arena, moon_memory_heap());
        int status = from_text(&arena, rows[i].type, rows[i].json, &value, &error);
        if (status != rows[i].status)
            fprintf(stderr, "%s gives %d: %s\n", rows[i].json, status, error.message);
        MOON_CHECK_INT(status, rows[i].status);
        CU_ASSERT(strncmp(error.where, "message:", 8) == 0);
        moon_arena_close(&arena);
    }
}

static int make_all(struct moon_memory *memory, const void *context) {
    const struct known *row = context;
    struct moon_arena arena;
    struct moon_text bytes;
    struct moon_json *json = NULL;
    struct moon_wire_value *value = NULL;
    struct moon_error error = {0};
    const struct moon_wire_type *type = row->arguments ? arguments_of(row->function) : result_of(row->function);
    moon_arena_open(&arena, memory);
    moon_text_open(&bytes, memory);
    int status = moon_json_read(&arena, "row", row->json, strlen(row->json), MOON_JSON_STRICT, &json, &error);
    if (!status)
        status = moon_wire_from_json(&arena, type, json, &value, &error);
    if (!status) {
        moon_wire_encode(value, row->arguments, true, &bytes);
        status = bytes.failed ? MOON_ERR_MEMORY : MOON_OK;
    }
    if (!status)
        status =
            moon_wire_decode(&arena, type, row->arguments, moon_text_value(&bytes), bytes.length, NULL, &value, &error);
    if (!status && moon_json_broken(moon_wire_to_json(&arena, value)))
        status = MOON_ERR_MEMORY;
    moon_text_close(&bytes);
    moon_arena_close(&arena);
    return status;
}

static void refused_memory_is_reported(void) {
    static const struct known row = {"BatchExistKey", false, "[{\"ok\":true},{\"err\":-600}]", ""};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        moon_unit_refuse_memory(make_all, &known[i]);
    moon_unit_refuse_memory(make_all, &row);
}

/* An arena asks for memory in chunks, so a long list is needed to be refused in its middle. */
static int make_long(struct moon_memory *memory, const void *context) {
    struct moon_arena arena;
    struct moon_text bytes;
    struct moon_json *json = NULL;
    struct moon_wire_value *value = NULL;
    struct moon_error error = {0};
    const struct moon_wire_type *type = context;
    moon_arena_open(&arena, memory);
    moon_text_open(&bytes, memory);
    moon_text_string(&bytes, "[18446744073709551615");
    for (int i = 0; i < 3000; i++)
        moon_text_string(&bytes, ",18446744073709551615");
    moon_text_char(&bytes, ']');
    int status = bytes.failed
                     ? MOON_ERR_MEMORY
                     : moon_json_read(&arena, "row", bytes.data, bytes.length, MOON_JSON_STRICT, &json, &error);
    if (!status)
        status = moon_wire_from_json(&arena, type, json, &value, &error);
    moon_text_close(&bytes);
    moon_arena_close(&arena);
    return status;
}

static void refused_memory_in_the_middle_is_reported(void) {
    static const struct moon_wire_type list = {.kind = MOON_WIRE_VECTOR, .of = &u64};
    moon_unit_refuse_memory(make_long, &list);
}

/* A body may claim anything; memory is asked for only as elements arrive. */
static void memory_is_bounded_by_the_input(void) {
    struct moon_memory_failing counting;
    struct moon_arena arena;
    struct moon_text bytes;
    struct moon_wire_value *value = NULL;
    struct moon_error error;
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    moon_arena_open(&arena, &counting.memory);
    moon_text_open(&bytes, moon_memory_heap());
    moon_text_bytes(&bytes, "\x63\x8d\xf7\x00\x08\xff\xff", 7); /* 65535 keys announced, each would be empty */
    moon_text_repeat(&bytes, '\0', 65535);
    CU_ASSERT(moon_wire_decode(&arena, arguments_of("BatchExistKey"), true, bytes.data, bytes.length, NULL, &value,
                               &error) != 0);
    CU_ASSERT(arena.used_bytes <= (sizeof *value + 16) * bytes.length);
    moon_text_close(&bytes);
    moon_arena_close(&arena);
    MOON_CHECK_INT(counting.held_bytes, 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"known bytes come out", known_bytes_come_out},
        {"known bytes are read whole and refused cut", known_bytes_are_read_whole_and_refused_cut},
        {"every changed byte gives a value or an error with its offset", every_changed_byte_gives_a_value_or_an_error},
        {"faults name their offset", faults_name_their_offset},
        {"lengths take as few bytes as fit", lengths_take_as_few_bytes_as_fit},
        {"lengths beyond 4 GiB take 8 bytes", lengths_beyond_4_gib_take_8_bytes},
        {"each kind of value goes through JSON and back", each_kind_goes_through_json},
        {"JSON that does not fit is refused with its place", json_that_does_not_fit_is_refused},
        {"refused memory is reported and nothing is held", refused_memory_is_reported},
        {"refused memory in the middle of a list is reported", refused_memory_in_the_middle_is_reported},
        {"memory is bounded by the input", memory_is_bounded_by_the_input},
        {NULL, NULL},
    };
    if (moon_wire_protocol_open(&protocol, moon_wire_release_find("0.3.13"), moon_memory_heap()))
        return 1;
    return moon_unit_main("value", cases, argc, argv);
}
