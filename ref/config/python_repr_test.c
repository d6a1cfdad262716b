/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: repr(), type names and truth of JSON values. */
#include "ref/config/python_repr.h"

#include "ref/base/unit.h"

static struct moon_arena arena;

static const char *repr_of(const char *json) {
    static char line[512];
    struct moon_json *value = NULL;
    struct moon_text text;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "test", json, strlen(json), MOON_JSON_PYTHON, &value, NULL), MOON_OK);
    moon_python_repr(value, &text);
    snprintf(line, sizeof line, "%s", moon_text_value(&text));
    moon_text_close(&text);
    moon_arena_close(&arena);
    return line;
}

static void plain_values_are_written_as_python_does(void) {
    MOON_CHECK_TEXT(repr_of("null"), "None");
    MOON_CHECK_TEXT(repr_of("true"), "True");
    MOON_CHECK_TEXT(repr_of("false"), "False");
    MOON_CHECK_TEXT(repr_of("-0"), "0");
    MOON_CHECK_TEXT(repr_of("-17"), "-17");
    MOON_CHECK_TEXT(repr_of("123456789012345678901234567890"), "123456789012345678901234567890");
}

static void floats_are_the_shortest_that_read_back(void) {
    static const char *const pairs[][2] = {
        {"0.0", "0.0"},
        {"-0.0", "-0.0"},
        {"1.0", "1.0"},
        {"0.1", "0.1"},
        {"0.0001", "0.0001"},
        {"0.00001", "1e-05"},
        {"1e15", "1000000000000000.0"},
        {"1e16", "1e+16"},
        {"1.5e300", "1.5e+300"},
        {"5e-324", "5e-324"},
        {"123456.789", "123456.789"},
        {"1e400", "inf"},
        {"-Infinity", "-inf"},
        {"NaN", "nan"},
        {"2.5", "2.5"},
        {"1e22", "1e+22"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"1234567890123456.7", "1234567890123456.8"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        MOON_CHECK_TEXT(repr_of(pairs[i][0]), pairs[i][1]);
}

static void texts_choose_their_quotes(void) {
    MOON_CHECK_TEXT(repr_of("\"a\""), "'a'");
    MOON_CHECK_TEXT(repr_of("\"\""), "''");
    MOON_CHECK_TEXT(repr_of("\"a'b\""), "\"a'b\"");
    MOON_CHECK_TEXT(repr_of("\"a\\\"b\""), "'a\"b'");
    MOON_CHECK_TEXT(repr_of("\"a'\\\"b\""), "'a\\'\"b'");
    MOON_CHECK_TEXT(repr_of("\"a\\\\b\""), "'a\\\\b'");
}

static void characters_that_are_not_printable_are_escaped(void) {
    MOON_CHECK_TEXT(repr_of("\"\\t\\n\\r\""), "'\\t\\n\\r'");
    MOON_CHECK_TEXT(repr_of("\"\\u0000\\u001f\\u007f\\u00ad\""), "'\\x00\\x1f\\x7f\\xad'");
    MOON_CHECK_TEXT(repr_of("\"\\u200b\\u2028\\ue000\\u0378\""), "'\\u200b\\u2028\\ue000\\u0378'");
    MOON_CHECK_TEXT(repr_of("\"\\ud800\""), "'\\ud800'");
    MOON_CHECK_TEXT(repr_of("\"\\udbff\\udfff\""), "'\\U0010ffff'");
    MOON_CHECK_TEXT(repr_of("\"\\u00e9\\ud83d\\ude00\""), "'\xC3\xA9\xF0\x9F\x98\x80'");
    MOON_CHECK_TEXT(repr_of("\"\\u3000\""), "'\\u3000'");
}

static void containers_nest(void) {
    MOON_CHECK_TEXT(repr_of("[]"), "[]");
    MOON_CHECK_TEXT(repr_of("{}"), "{}");
    MOON_CHECK_TEXT(repr_of("[1, [], {\"a\": [true, null]}, \"x\"]"), "[1, [], {'a': [True, None]}, 'x']");
    MOON_CHECK_TEXT(repr_of("{\"a\": {}, \"b'\": 1.5}"), "{'a': {}, \"b'\": 1.5}");
}

static void a_value_in_a_container_is_written_alone(void) {
    struct moon_json *value = NULL;
    struct moon_text text;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    moon_json_read(&arena, "test", "{\"a\":1,\"b\":[2,3],\"c\":4}", 23, MOON_JSON_PYTHON, &value, NULL);
    moon_python_repr(moon_json_member(value, "b"), &text);
    MOON_CHECK_TEXT(moon_text_value(&text), "[2, 3]");
    moon_text_close(&text);
    moon_arena_close(&arena);
}

static void bytes_that_are_no_character_are_shown(void) {
    struct moon_text text;
    struct moon_json value = {.type = MOON_JSON_STRING, .bytes = "a\xFFz", .length = 3};
    moon_text_open(&text, moon_memory_heap());
    moon_python_repr(&value, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), "'a\\xffz'");
    moon_text_close(&text);
}

static void types_have_the_names_of_python(void) {
    static const char *const pairs[][2] = {{"null", "NoneType"}, {"true", "bool"}, {"1", "int"},  {"1.5", "float"},
                                           {"\"\"", "str"},      {"[]", "list"},   {"{}", "dict"}};
    struct moon_json *value = NULL;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        moon_arena_open(&arena, moon_memory_heap());
        moon_json_read(&arena, "test", pairs[i][0], strlen(pairs[i][0]), MOON_JSON_PYTHON, &value, NULL);
        MOON_CHECK_TEXT(moon_python_type(value), pairs[i][1]);
        moon_arena_close(&arena);
    }
}

static void truth_is_that_of_python(void) {
    static const char *const no[] = {"null", "false", "0", "-0", "0.0", "-0.0", "\"\"", "[]", "{}"};
    static const char *const yes[] = {"true", "-1",       "99999999999999999999", "0.1", "NaN", "\"false\"",
                                      "[0]",  "{\"a\":0}"};
    struct moon_json *value = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        moon_json_read(&arena, "test", no[i], strlen(no[i]), MOON_JSON_PYTHON, &value, NULL);
        CU_ASSERT_FALSE(moon_python_truth(value));
    }
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        moon_json_read(&arena, "test", yes[i], strlen(yes[i]), MOON_JSON_PYTHON, &value, NULL);
        CU_ASSERT_TRUE(moon_python_truth(value));
    }
    CU_ASSERT_FALSE(moon_python_truth(NULL));
    moon_arena_close(&arena);
}

static void a_refused_allocation_is_remembered_by_the_text(void) {
    struct moon_memory_failing failing;
    struct moon_text text;
    struct moon_json value = {.type = MOON_JSON_STRING, .bytes = "abc", .length = 3};
    moon_memory_failing_init(&failing, moon_memory_heap(), 1);
    moon_text_open(&text, &failing.memory);
    moon_python_repr(&value, &text);
    CU_ASSERT_TRUE(text.failed);
    moon_text_close(&text);
    MOON_CHECK_INT(failing.held_bytes, 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"plain values are written as Python does", plain_values_are_written_as_python_does},
        {"floats are the shortest that read back", floats_are_the_shortest_that_read_back},
        {"texts choose their quotes", texts_choose_their_quotes},
        {"characters that are not printable are escaped", characters_that_are_not_printable_are_escaped},
        {"containers nest", containers_nest},
        {"a value in a container is written alone", a_value_in_a_container_is_written_alone},
        {"bytes that are no character are shown", bytes_that_are_no_character_are_shown},
        {"types have the names of Python", types_have_the_names_of_python},
        {"truth is that of Python", truth_is_that_of_python},
        {"a refused allocation is remembered by the text", a_refused_allocation_is_remembered_by_the_text},
        {NULL, NULL},
    };
    return moon_unit_main("ref/config/python_repr", cases, argc, argv);
}
