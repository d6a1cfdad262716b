/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of building, looking up, typed reading and writing of JSON trees. */
#include "ref/base/json.h"
#include "ref/base/unit.h"

#include <math.h>

static struct moon_arena arena;

static void check_style(const struct moon_json *value, enum moon_json_style style, const char *expected) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(value, style, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
}

static void check_compact(const struct moon_json *value, const char *expected) {
    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    check_style(value, MOON_JSON_COMPACT, expected);
}

static struct moon_json *read_text(const char *text) {
    struct moon_json *root = NULL;
    struct moon_error error;
    int rc = moon_json_read(&arena, "t.json", text, strlen(text), MOON_JSON_STRICT, &root, &error);
    MOON_CHECK_INT(rc, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

static void every_kind_is_built(void) {
    struct moon_json *object = moon_json_object(&arena);
    moon_json_set(&arena, object, "null", moon_json_null(&arena));
    moon_json_set(&arena, object, "yes", moon_json_bool(&arena, true));
    moon_json_set(&arena, object, "no", moon_json_bool(&arena, false));
    moon_json_set(&arena, object, "low", moon_json_int(&arena, INT64_MIN));
    moon_json_set(&arena, object, "high", moon_json_uint(&arena, UINT64_MAX));
    moon_json_set(&arena, object, "huge", moon_json_number(&arena, "123456789012345678901234567890zzz", 30));
    moon_json_set(&arena, object, "real", moon_json_real(&arena, 0.5));
    moon_json_set(&arena, object, "string", moon_json_string(&arena, "a\"b"));
    moon_json_set(&arena, object, "bytes", moon_json_bytes(&arena, "a\0bc", 3));
    moon_json_set(&arena, object, "hex", moon_json_hex(&arena, "\x01\xFE", 2));
    moon_json_set(&arena, object, "no hex", moon_json_hex(&arena, NULL, 0));
    struct moon_json *array = moon_json_set(&arena, object, "array", moon_json_array(&arena));
    struct moon_json *one = moon_json_push(array, moon_json_int(&arena, 1));
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    moon_json_push(array, moon_json_array(&arena));
    check_compact(object,
                  "{\"null\":null,\"yes\":true,\"no\":false,\"low\":-9223372036854775808,"
                  "\"high\":18446744073709551615,\"huge\":123456789012345678901234567890,\"real\":0.5,"
                  "\"string\":\"a\\\"b\",\"bytes\":\"a\\u0000b\",\"hex\":\"01fe\",\"no hex\":\"\",\"array\":[1,[]]}");
    MOON_CHECK_INT(moon_json_broken(object), false);
    MOON_CHECK_INT(moon_json_member(object, "low")->integer, INT64_MIN);
    MOON_CHECK_INT(moon_json_member(object, "high")->fits, false);
    CU_ASSERT_EQUAL(moon_json_member(object, "high")->real, 18446744073709551616.0);
    MOON_CHECK_INT(one->line, 0);
    CU_ASSERT_PTR_EQUAL(one->parent, array);
    MOON_CHECK_INT(moon_json_member(object, "array")->index, 11);
}

static void reals_are_written_as_shortly_as_they_read_back(void) {
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {-1.5, "-1.5"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {100.0, "100.0"},
        {123456.789, "123456.789"},
        {1e15, "1000000000000000.0"},
        {9007199254740993.0, "9007199254740992.0"},
        {1e16, "1e+16"},
        {1.5e16, "1.5e+16"},
        {1e22, "1e+22"},
        {1e100, "1e+100"},
        {0.001, "0.001"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {0.00001, "1e-05"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
        {(double)INFINITY, "Infinity"},
        {-(double)INFINITY, "-Infinity"},
        {(double)NAN, "NaN"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_json *json = moon_json_real(&arena, rows[i].value);
        check_compact(json, rows[i].text);
        MOON_CHECK_INT(json->type, MOON_JSON_REAL);
        if (!isfinite(rows[i].value))
            continue;
        struct moon_json *back = read_text(rows[i].text);
        MOON_CHECK_INT(back->type, MOON_JSON_REAL);
        CU_ASSERT_EQUAL(back->real, rows[i].value);
    }
}

static void the_writer_escapes_what_json_cannot_hold(void) {
    static const struct {
        const char *bytes;
        size_t length;
        const char *text;
    } rows[] = {
        {"", 0, "\"\""},
        {"\"\\/\b\f\n\r\t", 8, "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\0\x01\x1F\x7F", 4, "\"\\u0000\\u0001\\u001f\x7F\""},
        {"\xC3\xA9\xF0\x9F\x98\x80", 6, "\"\xC3\xA9\xF0\x9F\x98\x80\""},
        {"a\xED\xA0\xBDz", 5, "\"a\\ud83dz\""},
        {"\xED\xBF\xBF", 3, "\"\\udfff\""},
        {"\xEE\x80\x80", 3, "\"\xEE\x80\x80\""},
        {"a\xFF\x80", 3, "\"a\\udcff\\udc80\""},
        {"\xE2\x82", 2, "\"\\udce2\\udc82\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_compact(moon_json_bytes(&arena, rows[i].bytes, rows[i].length), rows[i].text);
}

static void the_pretty_style_indents_and_keeps_short_arrays_on_a_line(void) {
    static const char input[] =
        "{\"a\":[],\"b\":{},\"c\":[1,\"x\",null],\"d\":[[1,2],[3]],\"e\":{\"f\":[{\"g\":true}],\"h\":1}}";
    struct moon_json *value = read_text(input);
    static const char expected[] = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [1, \"x\", null],\n"
                                   "  \"d\": [\n    [1, 2],\n    [3]\n  ],\n"
                                   "  \"e\": {\n    \"f\": [\n      {\n        \"g\": true\n      }\n    ],\n"
                                   "    \"h\": 1\n  }\n}";
    check_style(value, MOON_JSON_PRETTY, expected);
    check_style(value, MOON_JSON_COMPACT, input);
    check_style(moon_json_member(value, "c"), MOON_JSON_PRETTY, "[1, \"x\", null]");
    check_style(moon_json_member(value, "e")->first, MOON_JSON_COMPACT, "[{\"g\":true}]");
    struct moon_json *wide = moon_json_array(&arena);
    moon_json_push(wide, moon_json_string(&arena, "a string that is so long that the array of it and one more"));
    moon_json_push(wide, moon_json_string(&arena, "does not fit on the line"));
    check_style(
        wide, MOON_JSON_PRETTY,
        "[\n  \"a string that is so long that the array of it and one more\",\n  \"does not fit on the line\"\n]");
}

static void a_tree_deeper_than_the_reader_takes_is_written_and_copied(void) {
    struct moon_json *root = moon_json_array(&arena), *at = root;
    for (int i = 0; i < 1000; i++)
        at = moon_json_push(at, moon_json_array(&arena));
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(moon_json_clone(&arena, root), MOON_JSON_COMPACT, &text);
    MOON_CHECK_INT(text.length, 2002);
    moon_text_clear(&text);
    moon_json_path(at, &text);
    MOON_CHECK_INT(text.length, 1 + 3 * 1000);
    moon_text_close(&text);
}

static void looking_up_passes_missing_through(void) {
    struct moon_json *value = read_text("{\"a\":[10,20],\"s\":\"x\"}");
    CU_ASSERT_PTR_NULL(moon_json_member(NULL, "a"));
    CU_ASSERT_PTR_NULL(moon_json_member(value, "b"));
    CU_ASSERT_PTR_NULL(moon_json_member(moon_json_member(value, "a"), "a"));
    CU_ASSERT_PTR_NULL(moon_json_member(moon_json_object(&arena), "a"));
    CU_ASSERT_PTR_NULL(moon_json_member(read_text("{\"aaaa\":1,\"aaab\":2}"), "a"));
    MOON_CHECK_INT(moon_json_at(moon_json_member(value, "a"), 1)->integer, 20);
    CU_ASSERT_PTR_NULL(moon_json_at(moon_json_member(value, "a"), 2));
    CU_ASSERT_PTR_NULL(moon_json_at(value, 0));
    CU_ASSERT_PTR_NULL(moon_json_at(NULL, 0));
    CU_ASSERT(moon_json_is(value, MOON_JSON_OBJECT) && !moon_json_is(value, MOON_JSON_ARRAY));
    CU_ASSERT(!moon_json_is(NULL, MOON_JSON_NULL));
    const struct moon_json *s = moon_json_member(value, "s");
    CU_ASSERT(moon_json_is_string(s, "x") && !moon_json_is_string(s, "y") && !moon_json_is_string(s, "xy"));
    CU_ASSERT(!moon_json_is_string(value, "x") && !moon_json_is_string(NULL, "x"));
}

static void types_have_names(void) {
    static const char *const names[] = {"null", "boolean", "integer", "real", "string", "array", "object"};
    struct moon_json *value = read_text("[null,true,1,1.0,\"\",[],{}]");
    size_t i = 0;
    for (const struct moon_json *child = value->first; child; child = child->next)
        MOON_CHECK_TEXT(moon_json_type_name(child), names[i++]);
    MOON_CHECK_INT(i, 7);
    MOON_CHECK_TEXT(moon_json_type_name(NULL), "missing");
}

static void a_path_quotes_what_is_no_plain_word(void) {
    static const struct {
        const char *name, *path;
    } rows[] = {
        {"a", "$.a"},
        {"A_b-9", "$.A_b-9"},
        {"_", "$._"},
        {"", "$[\"\"]"},
        {"9", "$[\"9\"]"},
        {"-a", "$[\"-a\"]"},
        {"a.b", "$[\"a.b\"]"},
        {"a/", "$[\"a/\"]"},
        {"a:", "$[\"a:\"]"},
        {"\n", "$[\"\\n\"]"},
        {"\xC3\xA9", "$[\"\xC3\xA9\"]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_json *object = moon_json_object(&arena);
        struct moon_json *child = moon_json_set(&arena, object, rows[i].name, moon_json_null(&arena));
        struct moon_text text;
        moon_text_open(&text, moon_memory_heap());
        moon_json_path(child, &text);
        MOON_CHECK_TEXT(moon_text_value(&text), rows[i].path);
        moon_text_clear(&text);
        moon_json_path(object, &text);
        MOON_CHECK_TEXT(moon_text_value(&text), "$");
        moon_text_close(&text);
    }
}

static void a_place_has_the_parts_that_are_known(void) {
    struct moon_error error = {0};
    struct moon_json *read = read_text("[\n 1]"), *built = moon_json_array(&arena);
    struct moon_json *child = moon_json_push(built, moon_json_int(&arena, 1));
    moon_json_fail(&error, MOON_ERR_SCHEMA, "f.json", read->first, "x");
    MOON_CHECK_TEXT(error.where, "f.json:2:2 $[0]");
    moon_json_fail(&error, MOON_ERR_SCHEMA, NULL, read->first, "x");
    MOON_CHECK_TEXT(error.where, "2:2 $[0]");
    moon_json_fail(&error, MOON_ERR_SCHEMA, "f.json", child, "x");
    MOON_CHECK_TEXT(error.where, "f.json $[0]");
    moon_json_fail(&error, MOON_ERR_SCHEMA, NULL, child, "x");
    MOON_CHECK_TEXT(error.where, "$[0]");
    moon_json_fail(&error, MOON_ERR_SCHEMA, "f.json", NULL, "x");
    MOON_CHECK_TEXT(error.where, "f.json");
    moon_json_fail(&error, MOON_ERR_SCHEMA, NULL, NULL, "x");
    MOON_CHECK_TEXT(error.where, "");
    MOON_CHECK_INT(moon_json_fail(NULL, MOON_ERR_SCHEMA, NULL, NULL, "x"), MOON_ERR_SCHEMA);
}

static void a_place_that_is_too_long_keeps_its_beginning(void) {
    struct moon_json *at = read_text("[0]");
    struct moon_error error = {0};
    for (int i = 0; i < 40; i++) {
        struct moon_json *object = moon_json_object(&arena);
        moon_json_push(i ? moon_json_set(&arena, at, "a_name_of_20_letters", moon_json_array(&arena)) : at, object);
        at = object;
    }
    moon_json_fail(&error, MOON_ERR_SCHEMA, "f.json", at, "x");
    CU_ASSERT(strncmp(error.where, "f.json $[1].a_name_of_20_letters[0].", 36) == 0);
    MOON_CHECK_INT(strlen(error.where), MOON_ERROR_WHERE_BYTES - 1);
}

static void a_closed_object_names_the_stranger(void) {
    static const char *const names[] = {"protocol", "mode", NULL};
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_json_closed("f", read_text("{\"mode\":1,\"protocol\":2}"), names, &error), 0);
    MOON_CHECK_INT(moon_json_closed("f", read_text("{}"), names, &error), 0);
    MOON_CHECK_INT(moon_json_closed("f", read_text("{\"mode\":1,\"protcol\":2}"), names, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "unknown member \"protcol\"; did you mean \"protocol\"?");
    MOON_CHECK_TEXT(error.where, "f:1:21 $.protcol");
    MOON_CHECK_INT(moon_json_closed("f", read_text("{\"something\\n else\":2}"), names, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "unknown member \"something\\n else\"");
    MOON_CHECK_INT(moon_json_closed("f", read_text("{\"mode\\u0000\":2}"), names, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "unknown member \"mode\\u0000\"; did you mean \"mode\"?");
    MOON_CHECK_INT(moon_json_closed("f", read_text("{\"node\":2}"), names, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_INT(moon_json_closed("f", read_text("[1]"), names, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "must be an object, is array");
    MOON_CHECK_INT(moon_json_closed("f", NULL, names, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "must be an object, is missing");
}

static void integers_are_read_within_their_range(void) {
    struct moon_error error = {0};
    struct moon_json *object = read_text("{\"n\":7,\"big\":18446744073709551616,\"r\":1.0,\"s\":\"7\"}");
    int64_t n = -1;
    MOON_CHECK_INT(moon_json_get_int("f", object, "n", true, 7, 7, &n, &error), 0);
    MOON_CHECK_INT(n, 7);
    MOON_CHECK_INT(moon_json_get_int("f", object, "m", false, 0, 9, &n, &error), 0);
    MOON_CHECK_INT(moon_json_get_int("f", NULL, "m", false, 0, 9, &n, &error), 0);
    MOON_CHECK_INT(n, 7);
    MOON_CHECK_INT(moon_json_get_int("f", object, "m", true, 0, 9, &n, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "the member \"m\" is missing");
    MOON_CHECK_TEXT(error.where, "f:1:1 $");
    MOON_CHECK_INT(moon_json_get_int("f", object, "n", true, 8, 9, &n, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "\"n\" is 7, must be within 8 and 9");
    MOON_CHECK_TEXT(error.where, "f:1:6 $.n");
    MOON_CHECK_INT(moon_json_get_int("f", object, "n", true, 0, 6, &n, &error), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_json_get_int("f", object, "big", true, INT64_MIN, INT64_MAX, &n, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "\"big\" is 18446744073709551616, must be within -9223372036854775808 and "
                                   "9223372036854775807");
    MOON_CHECK_INT(moon_json_get_int("f", object, "r", true, 0, 9, &n, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "\"r\" must be an integer, is a number with fraction or exponent");
    MOON_CHECK_INT(moon_json_get_int("f", object, "s", false, 0, 9, &n, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "\"s\" must be an integer, is a string");
    MOON_CHECK_INT(moon_json_get_int("f", moon_json_member(object, "s"), "x", false, 0, 9, &n, &error),
                   MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "must be an object with the member \"x\", is string");
    MOON_CHECK_INT(n, 7);
    object = read_text("{\"n\":-1234567890123456789012345678901234567890123}");
    moon_json_get_int("f", object, "n", true, 0, 1, &n, &error);
    MOON_CHECK_TEXT(error.message, "\"n\" is -123456789012345678901234567890123456789..., must be within 0 and 1");
}

static void booleans_strings_and_others_are_read_by_type(void) {
    struct moon_error error = {0};
    struct moon_json *object = read_text("{\"b\":true,\"s\":\"text\",\"z\":\"a\\u0000b\",\"a\":[1],\"0\":null}");
    bool b = false;
    const char *s = "before";
    size_t length = 99;
    struct moon_json *value = NULL;
    MOON_CHECK_INT(moon_json_get_bool("f", object, "b", true, &b, &error), 0);
    MOON_CHECK_INT(b, true);
    MOON_CHECK_INT(moon_json_get_bool("f", object, "x", false, &b, &error), 0);
    MOON_CHECK_INT(b, true);
    MOON_CHECK_INT(moon_json_get_bool("f", object, "0", false, &b, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "\"0\" must be true or false, is null");
    MOON_CHECK_INT(moon_json_get_string("f", object, "x", false, &s, NULL, &error), 0);
    MOON_CHECK_TEXT(s, "before");
    MOON_CHECK_INT(moon_json_get_string("f", object, "s", true, &s, NULL, &error), 0);
    MOON_CHECK_TEXT(s, "text");
    MOON_CHECK_INT(moon_json_get_string("f", object, "z", true, &s, NULL, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "\"z\" must not hold a NUL character");
    MOON_CHECK_INT(moon_json_get_string("f", object, "z", true, &s, &length, &error), 0);
    MOON_CHECK_INT(length, 3);
    CU_ASSERT(memcmp(s, "a\0b", 4) == 0);
    MOON_CHECK_INT(moon_json_get_string("f", object, "a", true, &s, &length, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "\"a\" must be a string, is an array");
    MOON_CHECK_INT(moon_json_get("f", object, "a", true, MOON_JSON_ARRAY, &value, &error), 0);
    CU_ASSERT_PTR_EQUAL(value, moon_json_member(object, "a"));
    MOON_CHECK_INT(moon_json_get("f", object, "a", true, MOON_JSON_OBJECT, &value, NULL), MOON_ERR_SCHEMA);
}

static void a_copy_is_whole_and_apart(void) {
    struct moon_json *value =
        read_text("{\"p\":{\"a\":[1,2.5,\"x\\u0000y\",null,true,{}],\"b\":{\"c\":[[]]}},\"q\":0}");
    struct moon_json *inner = moon_json_member(value, "p");
    struct moon_json *copy = moon_json_clone(&arena, inner);
    check_compact(copy, "{\"a\":[1,2.5,\"x\\u0000y\",null,true,{}],\"b\":{\"c\":[[]]}}");
    CU_ASSERT(moon_json_equal(copy, inner));
    CU_ASSERT(copy->parent == NULL && copy->name == NULL && copy->next == NULL);
    MOON_CHECK_INT(copy->column, inner->column);
    MOON_CHECK_INT(moon_json_member(copy, "b")->column, moon_json_member(inner, "b")->column);
    CU_ASSERT(moon_json_member(copy, "a") != moon_json_member(inner, "a"));
    MOON_CHECK_INT(moon_json_at(moon_json_member(copy, "a"), 0)->integer, 1);
    CU_ASSERT(moon_json_set(&arena, moon_json_object(&arena), "new", copy) == copy);
    CU_ASSERT_PTR_NULL(moon_json_clone(&arena, NULL));
    check_compact(moon_json_clone(&arena, moon_json_member(value, "q")), "0");
}

static void a_lost_child_marks_all_above_it(void) {
    struct moon_json *root = moon_json_object(&arena), *array = moon_json_array(&arena),
                     *inner = moon_json_object(&arena);
    CU_ASSERT_PTR_NULL(moon_json_push(array, NULL));
    MOON_CHECK_INT(moon_json_broken(array), true);
    moon_json_set(&arena, inner, "a", array); /* a broken child breaks where it goes */
    moon_json_set(&arena, root, "b", inner);
    MOON_CHECK_INT(moon_json_broken(inner), true);
    MOON_CHECK_INT(moon_json_broken(root), true);
    MOON_CHECK_INT(moon_json_broken(moon_json_clone(&arena, root)), true);
    root = moon_json_array(&arena);
    inner = moon_json_push(root, moon_json_object(&arena));
    CU_ASSERT_PTR_NULL(moon_json_set(&arena, inner, "a", NULL)); /* a child lost below breaks all above */
    MOON_CHECK_INT(moon_json_broken(root), true);
    struct moon_json *above = moon_json_array(&arena);
    moon_json_push(above, root);
    MOON_CHECK_INT(moon_json_broken(above), true);
    MOON_CHECK_INT(moon_json_broken(NULL), true);
    CU_ASSERT_PTR_NULL(moon_json_set(&arena, NULL, "a", moon_json_null(&arena)));
    CU_ASSERT_PTR_NULL(moon_json_push(NULL, moon_json_null(&arena)));
}

/* A tree in which every builder takes part. */
static struct moon_json *build_everything(struct moon_arena *into) {
    struct moon_json *root = moon_json_object(into);
    struct moon_json *array = moon_json_set(into, root, "array", moon_json_array(into));
    moon_json_push(array, moon_json_int(into, -1));
    moon_json_push(array, moon_json_uint(into, 1));
    moon_json_push(array, moon_json_real(into, 1.5));
    moon_json_push(array, moon_json_hex(into, "\xAB", 1));
    moon_json_push(array, moon_json_null(into));
    moon_json_set(into, root, "string", moon_json_string(into, "text"));
    moon_json_set(into, root, "flag", moon_json_bool(into, true));
    moon_json_set(into, root, "copy", moon_json_clone(into, array));
    moon_json_set(into, root, "copy of all", moon_json_clone(into, root));
    return root;
}

static void builders_survive_every_refusal(void) {
    static const char array[] = "[-1,1,1.5,\"ab\",null]";
    char expected[400];
    snprintf(expected, sizeof expected,
             "{\"array\":%s,\"string\":\"text\",\"flag\":true,\"copy\":%s,\"copy of all\":{\"array\":%s,"
             "\"string\":\"text\",\"flag\":true,\"copy\":%s}}",
             array, array, array, array);
    unsigned refusals = 0;
    /* The arena's first chunk is filled up more and more, so that each piece in turn is the one that needs the next
     * request. */
    for (uint64_t fail_at = 2; fail_at <= 5; fail_at++)
        for (size_t filler = 16; filler <= 4080; filler += 16) {
            struct moon_memory_failing failing;
            struct moon_arena small;
            moon_memory_failing_init(&failing, moon_memory_heap(), fail_at);
            moon_arena_open(&small, &failing.memory);
            CU_ASSERT_PTR_NOT_NULL(moon_arena_alloc(&small, filler));
            struct moon_json *root = build_everything(&small);
            bool refused = failing.requests >= fail_at;
            MOON_CHECK_INT(moon_json_broken(root), refused);
            if (!refused)
                check_compact(root, expected);
            refusals += refused;
            moon_arena_close(&small);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
    CU_ASSERT(refusals > 300);
}

static void writing_survives_every_refusal(void) {
    struct moon_json *value = build_everything(&arena);
    for (uint64_t n = 1;; n++) {
        struct moon_memory_failing failing;
        struct moon_text text;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_text_open(&text, &failing.memory);
        moon_json_write(value, MOON_JSON_PRETTY, &text);
        moon_json_path(moon_json_member(value, "copy")->first, &text);
        bool failed = text.failed;
        CU_ASSERT(failed == (failing.requests >= n));
        moon_text_close(&text);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (!failed)
            break;
    }
}

static void many_names_are_found_in_a_built_object(void) {
    struct moon_json *object = moon_json_object(&arena);
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%x", (unsigned)i * 2654435761u >> i % 20);
        if (!moon_json_member(object, name))
            moon_json_set(&arena, object, name, moon_json_int(&arena, i));
    }
    size_t found = 0;
    for (const struct moon_json *member = object->first; member; member = member->next)
        found += moon_json_member(object, member->name) == member && member->index == found;
    MOON_CHECK_INT(found, object->count);
    CU_ASSERT(found > 3000);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every kind is built", every_kind_is_built},
        {"reals are written as shortly as they read back", reals_are_written_as_shortly_as_they_read_back},
        {"the writer escapes what JSON cannot hold", the_writer_escapes_what_json_cannot_hold},
        {"the pretty style indents and keeps short arrays on a line",
         the_pretty_style_indents_and_keeps_short_arrays_on_a_line},
        {"a tree deeper than the reader takes is written and copied",
         a_tree_deeper_than_the_reader_takes_is_written_and_copied},
        {"looking up passes missing through", looking_up_passes_missing_through},
        {"types have names", types_have_names},
        {"a path quotes what is no plain word", a_path_quotes_what_is_no_plain_word},
        {"a place has the parts that are known", a_place_has_the_parts_that_are_known},
        {"a place that is too long keeps its beginning", a_place_that_is_too_long_keeps_its_beginning},
        {"a closed object names the stranger", a_closed_object_names_the_stranger},
        {"integers are read within their range", integers_are_read_within_their_range},
        {"booleans, strings and others are read by type", booleans_strings_and_others_are_read_by_type},
        {"a copy is whole and apart", a_copy_is_whole_and_apart},
        {"a lost child marks all above it", a_lost_child_marks_all_above_it},
        {"builders survive every refusal", builders_survive_every_refusal},
        {"writing survives every refusal", writing_survives_every_refusal},
        {"many names are found in a built object", many_names_are_found_in_a_built_object},
        {0},
    };
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("json_build", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
