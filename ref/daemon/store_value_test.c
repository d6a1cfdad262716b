/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the values and keys of store calls. */
#include "ref/daemon/store_value.h"

#include "ref/base/fill.h"
#include "ref/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

static char folder[] = "/tmp/mooncheck-value-XXXXXX";

static void write_file(const char *name, const char *text) {
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        abort();
    fputs(text, file);
    fclose(file);
}

/* Reads a value from JSON. */
static int read_value(struct moon_arena *arena, const char *text, size_t *left, struct moon_piece *out,
                      struct moon_error *error) {
    struct moon_json *value;
    int status = moon_json_read(arena, "t", text, strlen(text), MOON_JSON_STRICT, &value, error);
    return status ? status : moon_store_value_read(arena, "t", value, folder, left, out, error);
}

static void check_value(const char *text, const void *expected, size_t length) {
    struct moon_arena arena;
    struct moon_error error = {.message = ""};
    struct moon_piece piece = {NULL, 0};
    size_t left = 1000;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(read_value(&arena, text, &left, &piece, &error), 0);
    MOON_CHECK_INT(piece.length, length);
    MOON_CHECK_INT(left, 1000 - length);
    CU_ASSERT(piece.length == length && (length == 0 || memcmp(piece.data, expected, length) == 0));
    moon_arena_close(&arena);
}

static void test_values(void) {
    unsigned char fill[13];
    moon_fill(UINT64_MAX, 0, fill, sizeof fill);
    check_value("{\"hex\":\"00fF10\"}", "\x00\xff\x10", 3);
    check_value("{\"hex\":\"\"}", "", 0);
    check_value("{\"fill\":\"18446744073709551615\",\"bytes\":13}", fill, 13);
    moon_fill(5, 0, fill, sizeof fill);
    check_value("{\"fill\":5,\"bytes\":13}", fill, 13);
    check_value("{\"bytes\":0,\"fill\":5}", fill, 0);
    check_value("{\"file\":\"f\"}", "0123456789", 10);
    check_value("{\"file\":\"f\",\"offset\":3,\"length\":4}", "3456", 4);
    check_value("{\"file\":\"f\",\"offset\":10}", "", 0);
}

static void test_bad_values(void) {
    static const struct {
        const char *text;
        int status;
        const char *where;
    } rows[] = {
        {"{}", MOON_ERR_SCHEMA, "$"},
        {"[]", MOON_ERR_SCHEMA, "$"},
        {"\"00\"", MOON_ERR_SCHEMA, "$"},
        {"{\"hex\":\"0\"}", MOON_ERR_SCHEMA, "$"},
        {"{\"hex\":\"0g\"}", MOON_ERR_SCHEMA, "$"},
        {"{\"hex\":5}", MOON_ERR_SCHEMA, "$.hex"},
        {"{\"hex\":\"00\",\"bytes\":1}", MOON_ERR_SCHEMA, "$.bytes"},
        {"{\"fill\":1}", MOON_ERR_SCHEMA, "$"},
        {"{\"fill\":-1,\"bytes\":1}", MOON_ERR_SCHEMA, "$.fill"},
        {"{\"fill\":\"18446744073709551616\",\"bytes\":1}", MOON_ERR_SCHEMA, "$.fill"},
        {"{\"fill\":\"\",\"bytes\":1}", MOON_ERR_SCHEMA, "$.fill"},
        {"{\"fill\":1.5,\"bytes\":1}", MOON_ERR_SCHEMA, "$.fill"},
        {"{\"fill\":1,\"bytes\":-1}", MOON_ERR_RANGE, "$.bytes"},
        {"{\"fill\":1,\"bytes\":1001}", MOON_ERR_LIMIT, "$"},
        {"{\"fill\":1,\"bytes\":1073741824}", MOON_ERR_LIMIT, "$"},
        {"{\"fill\":1,\"bytes\":9223372036854775808}", MOON_ERR_RANGE, "$.bytes"},
        {"{\"file\":\"none\"}", MOON_ERR_IO, "$"},
        {"{\"file\":\"/\"}", MOON_ERR_IO, "$"},
        {"{\"file\":\"f\",\"offset\":11}", MOON_ERR_RANGE, "$"},
        {"{\"file\":\"f\",\"offset\":5,\"length\":6}", MOON_ERR_RANGE, "$"},
        {"{\"file\":\"f\",\"ofset\":5}", MOON_ERR_SCHEMA, "$.ofset"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_arena arena;
        struct moon_error error = {.message = ""};
        struct moon_piece piece;
        size_t left = 1000;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(read_value(&arena, rows[i].text, &left, &piece, &error), rows[i].status);
        const char *place = strchr(error.where, '$');
        MOON_CHECK_TEXT(place, rows[i].where);
        MOON_CHECK_INT(left, 1000);
        moon_arena_close(&arena);
    }
}

static void test_long_hex(void) {
    struct moon_arena arena;
    struct moon_error error;
    struct moon_piece piece;
    struct moon_text text;
    size_t left = MOON_VALUE_CALL_BYTES_MAX;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "{\"hex\":\"");
    moon_text_repeat(&text, '0', 2 * MOON_VALUE_HEX_BYTES_MAX + 2);
    moon_text_string(&text, "\"}");
    MOON_CHECK_INT(read_value(&arena, text.data, &left, &piece, &error), MOON_ERR_LIMIT);
    moon_text_close(&text);
    moon_arena_close(&arena);
}

static void test_keys(void) {
    static const struct {
        const char *text;
        int status;
        struct moon_bytes key;
    } rows[] = {
        {"\"key\"", 0, {"key", 3}},
        {"\"k\\u0000\"", 0, {"k\0", 2}},
        {"{\"hex\":\"ff00\"}", 0, {"\xff\0", 2}},
        {"5", MOON_ERR_SCHEMA, {NULL, 0}},
        {"null", MOON_ERR_SCHEMA, {NULL, 0}},
        {"{\"hex\":\"f\"}", MOON_ERR_SCHEMA, {NULL, 0}},
        {"{\"fill\":1,\"bytes\":1}", MOON_ERR_SCHEMA, {NULL, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_arena arena;
        struct moon_json *value;
        struct moon_bytes key = {NULL, 0};
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(moon_json_read(&arena, "t", rows[i].text, strlen(rows[i].text), MOON_JSON_STRICT, &value, NULL),
                       0);
        MOON_CHECK_INT(moon_store_key_read(&arena, "t", value, &key, NULL), rows[i].status);
        CU_ASSERT(moon_bytes_equal(key, rows[i].key));
        moon_arena_close(&arena);
    }
}

static void test_digest(void) {
    char digest[17];
    char bytes[] = "123456789";
    struct moon_piece pieces[] = {{bytes, 4}, {NULL, 0}, {bytes + 4, 5}};
    moon_store_digest(pieces, 3, 9, digest);
    char same[17];
    snprintf(same, sizeof same, "%016llx", (unsigned long long)XXH3_64bits(bytes, 9));
    MOON_CHECK_TEXT(digest, same);
    moon_store_digest(pieces, 3, 0, digest);
    MOON_CHECK_TEXT(digest, "2d06800538d394c2"); /* of nothing */
    moon_store_digest(&(struct moon_piece){bytes, 9}, 1, 6, digest);
    moon_store_digest(pieces, 3, 6, same);
    MOON_CHECK_TEXT(digest, same);
}

static int read_all(struct moon_memory *memory, const void *context) {
    struct moon_arena arena;
    struct moon_error error;
    struct moon_piece piece;
    size_t left = 1000000;
    moon_arena_open(&arena, memory);
    int status = read_value(&arena, context, &left, &piece, &error);
    moon_arena_close(&arena);
    return status;
}

static void test_memory(void) {
    moon_unit_refuse_memory(read_all, "{\"fill\":5,\"bytes\":100000}");
    moon_unit_refuse_memory(read_all, "{\"hex\":\"00\"}");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a value comes from hex digits, a seed or a part of a file", test_values},
        {"a bad value names its member and takes nothing", test_bad_values},
        {"a value of over 64 KiB does not travel as hex", test_long_hex},
        {"a key is text or hex", test_keys},
        {"a digest is that of the bytes, however they lie", test_digest},
        {"refused memory leaks nothing", test_memory},
        {NULL, NULL},
    };
    if (!mkdtemp(folder))
        return 2;
    write_file("f", "0123456789");
    int status = moon_unit_main("store values", cases, argc, argv);
    char path[sizeof folder + 16];
    snprintf(path, sizeof path, "%s/f", folder);
    unlink(path);
    rmdir(folder);
    return status;
}
