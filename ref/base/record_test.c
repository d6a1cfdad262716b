/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of records: both forms keep every member, and refuse what is none. */
#include "ref/base/json.h"
#include "ref/base/random.h"
#include "ref/base/record.h"
#include "ref/base/unit.h"

enum { HAS_BITS = 12, ROUNDS = 2000 };

static uint64_t draw_u64(struct moon_random *random) {
    static const uint64_t edges[] = {0, 1, (uint64_t)1 << 53, ((uint64_t)1 << 53) + 1, INT64_MAX, UINT64_MAX};
    uint64_t edge = moon_random_below(random, 12);
    return edge < sizeof edges / sizeof edges[0] ? edges[edge]
                                                 : moon_random_u64(random) >> moon_random_below(random, 64);
}

static int64_t draw_i64(struct moon_random *random) {
    return moon_random_chance(random, 1, 8) ? INT64_MIN : (int64_t)draw_u64(random);
}

/* A text, bytes that are no UTF-8, or nothing; in `place`. */
static struct moon_bytes draw_bytes(struct moon_random *random, char place[16]) {
    uint64_t kind = moon_random_below(random, 3);
    struct moon_bytes bytes = {place, (size_t)moon_random_below(random, 16)};
    for (size_t i = 0; i < bytes.length; i++)
        place[i] = (char)(unsigned char)(kind == 0 ? moon_random_below(random, 256) : moon_random_below(random, 128));
    return bytes;
}

struct places {
    char node[16], clock[16], key[16], tenant[16], cause[16], segment[16];
};

static void draw_record(struct moon_random *random, struct places *places, struct moon_record *record) {
    static const char *const whats[] = {"put", "", "PutEnd", "l\"ease\\\x01", "\xc3\xa4"};
    *record = (struct moon_record){.node = draw_bytes(random, places->node)};
    record->clock = draw_bytes(random, places->clock);
    record->boot = (uint32_t)draw_u64(random);
    record->n = draw_u64(random);
    record->time_ns = draw_i64(random);
    record->kind = (enum moon_record_kind)moon_random_below(random, MOON_RECORD_NOTE + 1);
    record->internal = moon_random_chance(random, 1, 2);
    record->op = draw_u64(random);
    record->parent = draw_u64(random);
    record->msg = draw_u64(random);
    record->what = whats[moon_random_below(random, 5)];
    record->has = (unsigned)moon_random_below(random, 1 << HAS_BITS);
    record->key = draw_bytes(random, places->key);
    record->tenant = draw_bytes(random, places->tenant);
    record->cause = draw_bytes(random, places->cause);
    record->bytes = draw_u64(random);
    record->digest = draw_u64(random);
    record->replica = draw_u64(random);
    record->extent.segment = draw_bytes(random, places->segment);
    record->extent.offset = draw_u64(random);
    record->extent.length = draw_u64(random);
    record->lease_ns = draw_i64(random);
    record->code = draw_i64(random);
    record->blocks = draw_i64(random);
    record->tokens = draw_i64(random);
    record->shards = draw_i64(random);
}

/* Both forms of `a` and of `b` are the same bytes: the two agree in all that is written. */
static bool written_alike(const struct moon_record *a, const struct moon_record *b) {
    struct moon_text text_a, text_b;
    moon_text_open(&text_a, moon_memory_heap());
    moon_text_open(&text_b, moon_memory_heap());
    moon_record_write_json(a, &text_a);
    moon_record_write_json(b, &text_b);
    moon_record_write_binary(a, &text_a);
    moon_record_write_binary(b, &text_b);
    bool alike = text_a.length == text_b.length && memcmp(text_a.data, text_b.data, text_a.length) == 0;
    if (!alike)
        fprintf(stderr, "wrote %s\nread  %s\n", text_a.data, text_b.data);
    moon_text_close(&text_a);
    moon_text_close(&text_b);
    return alike;
}

static void random_records_come_back_from_both_forms(void) {
    struct moon_random random;
    moon_random_seed(&random, 5);
    for (int round = 0; round < ROUNDS; round++) {
        struct places places;
        struct moon_record record, read;
        struct moon_text text;
        struct moon_arena arena;
        struct moon_error error = {.status = 0};
        size_t used = 0;
        draw_record(&random, &places, &record);
        moon_text_open(&text, moon_memory_heap());
        moon_arena_open(&arena, moon_memory_heap());
        moon_record_write_json(&record, &text);
        CU_ASSERT(memchr(text.data, '\n', text.length) == text.data + text.length - 1);
        MOON_CHECK_INT(moon_record_read_json(&arena, text.data, text.length - 1, &read, &error), 0);
        MOON_CHECK_TEXT(error.message, "");
        CU_ASSERT(error.status == 0 && written_alike(&record, &read));
        moon_text_clear(&text);
        moon_record_write_binary(&record, &text);
        moon_text_string(&text, "more");
        MOON_CHECK_INT(moon_record_read_binary(text.data, text.length, &read, &used, &error), 0);
        MOON_CHECK_INT(used, text.length - 4);
        CU_ASSERT(written_alike(&record, &read));
        moon_text_close(&text);
        moon_arena_close(&arena);
    }
}

static struct moon_record example(void) {
    struct moon_record record = {.kind = MOON_RECORD_SEND, .internal = true, .op = 7, .msg = 0xabc, .what = "PutEnd"};
    record.node = moon_bytes_of("master");
    record.clock = moon_bytes_of("sim");
    record.boot = 1;
    record.n = 3;
    record.time_ns = 1500;
    record.has = MOON_RECORD_HAS_KEY | MOON_RECORD_HAS_DIGEST | MOON_RECORD_HAS_EXTENT | MOON_RECORD_HAS_LEASE |
                 MOON_RECORD_HAS_CODE;
    record.key = (struct moon_bytes){"k\xff", 2};
    record.digest = 0x0123456789abcdef;
    record.extent = (struct moon_extent){moon_bytes_of("10.0.0.2:12345"), (uint64_t)1 << 60, 4096};
    record.lease_ns = 5000;
    record.code = -704;
    return record;
}

static const char example_line[] =
    "{\"n\":3,\"node\":\"master\",\"boot\":1,\"t\":1500,\"clock\":\"sim\",\"kind\":\"send\",\"op\":7,"
    "\"msg\":\"0000000000000abc\",\"what\":\"PutEnd\",\"key\":{\"hex\":\"6bff\"},\"digest\":\"0123456789abcdef\","
    "\"extent\":{\"segment\":\"10.0.0.2:12345\",\"offset\":\"1152921504606846976\",\"length\":4096},"
    "\"lease_until\":5000,\"code\":-704,\"source\":\"internal\"}\n";

static void the_line_has_these_members_in_this_order(void) {
    struct moon_record record = example();
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_record_write_json(&record, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), example_line);
    moon_text_close(&text);
}

static void the_compact_form_is_these_bytes(void) {
    static const char expected[] = "\x8e\0\0\0" /* length */
                                   "\xe9\0\0\0" /* has: key, digest, extent, lease, code */
                                   "\3\0\0\0\0\0\0\0\6\0\0\0master\1\0\0\0\xdc\5\0\0\0\0\0\0\3\0\0\0sim\4"
                                   "\7\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xbc\x0a\0\0\0\0\0\0\6\0\0\0PutEnd\0"
                                   "\2\0\0\0k\xff\xef\xcd\xab\x89\x67\x45\x23\1"
                                   "\x0e\0\0\0"
                                   "10.0.0.2:12345\0\0\0\0\0\0\0\x10\0\x10\0\0\0\0\0\0"
                                   "\x88\x13\0\0\0\0\0\0\x40\xfd\xff\xff\xff\xff\xff\xff\1";
    struct moon_record record = example();
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_record_write_binary(&record, &text);
    MOON_CHECK_INT(text.length, sizeof expected - 1);
    for (size_t i = 0; i < text.length && i < sizeof expected - 1; i++)
        MOON_CHECK_INT((unsigned char)text.data[i], (unsigned char)expected[i]);
    moon_text_close(&text);
}

static void no_prefix_of_either_form_is_a_record(void) {
    struct moon_record record = example(), read = {.n = 99};
    struct moon_text text;
    size_t used = 0;
    moon_text_open(&text, moon_memory_heap());
    moon_record_write_binary(&record, &text);
    for (size_t length = 0; length < text.length; length++)
        MOON_CHECK_INT(moon_record_read_binary(text.data, length, &read, &used, NULL), MOON_ERR_SYNTAX);
    for (size_t length = 0; length + 2 < sizeof example_line; length++) {
        struct moon_arena arena;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(moon_record_read_json(&arena, example_line, length, &read, NULL), MOON_ERR_SYNTAX);
        moon_arena_close(&arena);
    }
    MOON_CHECK_INT(read.n, 99);
    moon_text_close(&text);
}

static void the_compact_form_refuses_what_is_no_record(void) {
    static const struct {
        size_t at;
        unsigned char byte;
        const char *message;
    } rows[] = {
        {0, 0x8d, "offset 145: the record ends"},
        {0, 0x8f, "offset 146: the record goes on"},
        {0, 0x90, "offset 4: the record is cut"},
        {5, 0x10, "offset 4: unknown members"},
        {16, 0xff, "offset 20: the record ends"},
        {45, 10, "offset 45: no kind"},
        {70, 0xff, "offset 74: the record ends"},
        {76, 0, "offset 70: no what"},
        {80, 1, "offset 70: no what"},
        {76, 0xff, "offset 70: no what"},
        {145, 2, "offset 145: no source"},
    };
    struct moon_record record = example(), read;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_text text;
        struct moon_error error = {.status = 0};
        size_t used;
        moon_text_open(&text, moon_memory_heap());
        moon_record_write_binary(&record, &text);
        moon_text_char(&text, 0); /* of the next record */
        text.data[rows[i].at] = (char)rows[i].byte;
        MOON_CHECK_INT(moon_record_read_binary(text.data, text.length, &read, &used, &error), MOON_ERR_SYNTAX);
        MOON_CHECK_TEXT(error.message, rows[i].message);
        moon_text_close(&text);
    }
}

static void json_members_are_closed_and_typed(void) {
    static const struct {
        const char *part, *other, *message;
        int status;
    } rows[] = {
        {"\"n\":3", "\"nn\":3", "nn", MOON_ERR_SCHEMA},
        {"\"n\":3", "\"op\":4", "op", MOON_ERR_SYNTAX},
        {"\"n\":3,", "", "\"n\" is missing", MOON_ERR_SCHEMA},
        {"\"n\":3", "\"n\":-3", "$.n", MOON_ERR_RANGE},
        {"\"n\":3", "\"n\":3.0", "$.n", MOON_ERR_SCHEMA},
        {"\"n\":3", "\"n\":\"3\"", "$.n", MOON_ERR_RANGE},
        {"\"n\":3", "\"n\":9007199254740993", "$.n", MOON_ERR_RANGE},
        {"\"n\":3", "\"n\":\"18446744073709551616\"", "$.n", MOON_ERR_RANGE},
        {"\"n\":3", "\"n\":\"\"", "$.n", MOON_ERR_RANGE},
        {"\"n\":3", "\"n\":\"99007199254740993x\"", "$.n", MOON_ERR_RANGE},
        {"\"n\":3", "\"n\":\"09007199254740993\"", "$.n", MOON_ERR_RANGE},
        {"\"boot\":1", "\"boot\":4294967296", "$.boot", MOON_ERR_RANGE},
        {"\"t\":1500", "\"t\":-0", "$.t", MOON_ERR_RANGE},
        {"\"t\":1500", "\"t\":\"9223372036854775808\"", "$.t", MOON_ERR_RANGE},
        {"\"t\":1500", "\"t\":\"-9223372036854775809\"", "$.t", MOON_ERR_RANGE},
        {"\"t\":1500", "\"t\":\"-\"", "$.t", MOON_ERR_RANGE},
        {"\"t\":1500", "\"t\":null", "$.t", MOON_ERR_SCHEMA},
        {"\"send\"", "\"sent\"", "$.kind", MOON_ERR_SCHEMA},
        {"\"send\"", "4", "$.kind", MOON_ERR_SCHEMA},
        {"\"master\"", "[]", "$.node", MOON_ERR_SCHEMA},
        {"\"master\"", "{\"hex\":\"0\"}", "$.node", MOON_ERR_SCHEMA},
        {"\"master\"", "{\"hex\":\"0g\"}", "$.node", MOON_ERR_SCHEMA},
        {"\"master\"", "{}", "hex", MOON_ERR_SCHEMA},
        {"\"master\"", "{\"hex\":\"00\",\"b\":0}", "b", MOON_ERR_SCHEMA},
        {"\"PutEnd\"", "\"Put\\u0000\"", "$.what", MOON_ERR_SCHEMA},
        {"\"PutEnd\"", "1", "$.what", MOON_ERR_SCHEMA},
        {"\"PutEnd\"", "\"\\ud800\"", "$.what", MOON_ERR_SCHEMA},
        {"0abc\"", "0abg\"", "$.msg", MOON_ERR_SCHEMA},
        {"0abc\"", "0ABC\"", "$.msg", MOON_ERR_SCHEMA},
        {"0abc\"", "abc\"", "$.msg", MOON_ERR_SCHEMA},
        {"\"0123456789abcdef\"", "1234567890123456", "$.digest", MOON_ERR_SCHEMA},
        {"\"length\":4096", "\"size\":4096", "size", MOON_ERR_SCHEMA},
        {",\"length\":4096", "", "\"length\" is missing", MOON_ERR_SCHEMA},
        {"\"length\":4096", "\"length\":-4096", "$.extent.length", MOON_ERR_RANGE},
        {"{\"segment\":\"10.0.0.2:12345\",", "[{", "", MOON_ERR_SYNTAX},
        {"\"internal\"", "\"inside\"", "$.source", MOON_ERR_SCHEMA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *part = strstr(example_line, rows[i].part);
        struct moon_arena arena;
        struct moon_record read;
        struct moon_error error = {.status = 0};
        moon_arena_open(&arena, moon_memory_heap());
        char *line = moon_arena_format(&arena, "%.*s%s%s", (int)(part - example_line), example_line, rows[i].other,
                                       part + strlen(rows[i].part));
        MOON_CHECK_INT(moon_record_read_json(&arena, line, strlen(line), &read, &error), rows[i].status);
        if (!strstr(error.message, rows[i].message) && !strstr(error.where, rows[i].message)) {
            fprintf(stderr, "%s: %s: %s names no %s\n", line, error.where, error.message, rows[i].message);
            CU_FAIL("the error does not name the member");
        }
        moon_arena_close(&arena);
    }
}

static void kinds_have_names_and_are_found_by_them(void) {
    for (int kind = 0; kind <= MOON_RECORD_NOTE; kind++) {
        const char *name = moon_record_kind_name((enum moon_record_kind)kind);
        MOON_CHECK_INT(moon_record_kind_find(name, strlen(name)), kind);
    }
    MOON_CHECK_INT(moon_record_kind_find("sends", 5), -1);
    MOON_CHECK_INT(moon_record_kind_find("sends", 4), MOON_RECORD_SEND);
    MOON_CHECK_INT(moon_record_kind_find(NULL, 0), -1);
}

static void message_ids_tell_direction_and_ordinal(void) {
    uint64_t first = moon_message_id("10.0.0.1:5000", "10.0.0.2:50051", 0);
    CU_ASSERT_EQUAL(first, UINT64_C(0x2bba58dc7628a7a5)); /* XXH3-64 of "10.0.0.1:5000 10.0.0.2:50051 0" */
    CU_ASSERT_NOT_EQUAL(first, moon_message_id("10.0.0.2:50051", "10.0.0.1:5000", 0));
    CU_ASSERT_NOT_EQUAL(first, moon_message_id("10.0.0.1:5000", "10.0.0.2:50051", 1));
    CU_ASSERT_NOT_EQUAL(first, 0);
}

static int write_and_read(struct moon_memory *memory, const void *context) {
    (void)context;
    struct moon_record record = example(), read;
    struct moon_text text;
    struct moon_arena arena;
    moon_text_open(&text, memory);
    moon_arena_open(&arena, memory);
    moon_record_write_json(&record, &text);
    size_t line = text.length;
    moon_record_write_binary(&record, &text);
    int status = text.failed ? MOON_ERR_MEMORY : 0;
    if (status == 0)
        status = moon_record_read_json(&arena, text.data, line - 1, &read, NULL);
    moon_arena_close(&arena);
    moon_text_close(&text);
    return status;
}

static void refused_memory_is_told_and_nothing_leaks(void) {
    moon_unit_refuse_memory(write_and_read, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"random records come back from both forms", random_records_come_back_from_both_forms},
        {"the line has these members in this order", the_line_has_these_members_in_this_order},
        {"the compact form is these bytes", the_compact_form_is_these_bytes},
        {"no prefix of either form is a record", no_prefix_of_either_form_is_a_record},
        {"the compact form refuses what is no record", the_compact_form_refuses_what_is_no_record},
        {"JSON members are closed and typed", json_members_are_closed_and_typed},
        {"kinds have names and are found by them", kinds_have_names_and_are_found_by_them},
        {"message ids tell direction and ordinal", message_ids_tell_direction_and_ordinal},
        {"refused memory is told and nothing leaks", refused_memory_is_told_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("record", cases, argc, argv);
}
