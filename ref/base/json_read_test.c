/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the JSON reader; with --probe it is the C side of json_differential.py. */
#include "ref/base/json.h"
#include "ref/base/unit.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

struct reading {
    struct moon_arena arena;
    struct moon_json *root;
    struct moon_error error;
    int rc;
};

/* The input stands at the very end of its heap piece, so that sanitizers and valgrind see any read behind it. */
static struct reading read_bytes(enum moon_json_rules rules, const char *input, size_t length) {
    struct reading reading = {.root = NULL};
    moon_arena_open(&reading.arena, moon_memory_heap());
    char *exact = malloc(length ? length : 1);
    if (!exact)
        abort();
    memcpy(exact, input, length);
    reading.rc = moon_json_read(&reading.arena, "t.json", exact, length, rules, &reading.root, &reading.error);
    free(exact);
    return reading;
}

static struct reading read_text(enum moon_json_rules rules, const char *input) {
    return read_bytes(rules, input, strlen(input));
}

static void close_reading(struct reading *reading) {
    moon_arena_close(&reading->arena);
}

static void check_written(const char *file_line, enum moon_json_rules rules, const char *input, const char *expected) {
    struct reading reading = read_text(rules, input);
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    if (reading.rc)
        moon_text_format(&text, "%s: %s", reading.error.where, reading.error.message);
    else
        moon_json_write(reading.root, MOON_JSON_COMPACT, &text);
    if (strcmp(moon_text_value(&text), expected) != 0)
        fprintf(stderr, "%s: for %s\n", file_line, input);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    CU_ASSERT((reading.rc == 0) == (reading.root != NULL));
    moon_text_close(&text);
    close_reading(&reading);
}
#define LINE_TEXT_(line)                 "line " #line
#define LINE_TEXT(line)                  LINE_TEXT_(line)
#define READS(input, expected)           check_written(LINE_TEXT(__LINE__), MOON_JSON_STRICT, input, expected)
#define READS_AS_PYTHON(input, expected) check_written(LINE_TEXT(__LINE__), MOON_JSON_PYTHON, input, expected)

static void every_kind_of_value_is_read(void) {
    READS(" null ", "null");
    READS("\t\r\ntrue", "true");
    READS("false\n", "false");
    READS("0", "0");
    READS("-12", "-12");
    READS("[ ]", "[]");
    READS("{ }", "{}");
    READS("[ 1 , \"a\" , [ ] , { } , null ]", "[1,\"a\",[],{},null]");
    READS("{ \"a\" : 1 , \"b\" : { \"c\" : [ true , false ] } }", "{\"a\":1,\"b\":{\"c\":[true,false]}}");
    READS("{\"\":0,\"a\":1,\"aa\":2,\"b\":3,\"a\\u0000\":4}", "{\"\":0,\"a\":1,\"aa\":2,\"b\":3,\"a\\u0000\":4}");
}

static void integers_are_exact_and_reals_are_nearest(void) {
    static const struct {
        const char *text;
        enum moon_json_type type;
        bool fits;
        int64_t integer;
        double real;
    } rows[] = {
        {"0", MOON_JSON_INTEGER, true, 0, 0},
        {"-0", MOON_JSON_INTEGER, true, 0, 0},
        {"9007199254740993", MOON_JSON_INTEGER, true, 9007199254740993, 9007199254740992.0},
        {"9223372036854775807", MOON_JSON_INTEGER, true, INT64_MAX, 9223372036854775808.0},
        {"-9223372036854775808", MOON_JSON_INTEGER, true, INT64_MIN, -9223372036854775808.0},
        {"9223372036854775808", MOON_JSON_INTEGER, false, 0, 9223372036854775808.0},
        {"-9223372036854775809", MOON_JSON_INTEGER, false, 0, -9223372036854775808.0},
        {"18446744073709551615", MOON_JSON_INTEGER, false, 0, 18446744073709551616.0},
        {"100000000000000000000000000000", MOON_JSON_INTEGER, false, 0, 1e29},
        {"1.5", MOON_JSON_REAL, false, 0, 1.5},
        {"-0.0", MOON_JSON_REAL, false, 0, -0.0},
        {"1E2", MOON_JSON_REAL, false, 0, 100},
        {"1e+2", MOON_JSON_REAL, false, 0, 100},
        {"125e-2", MOON_JSON_REAL, false, 0, 1.25},
        {"0.1", MOON_JSON_REAL, false, 0, 0.1},
        {"1e-400", MOON_JSON_REAL, false, 0, 0},
        {"5e-324", MOON_JSON_REAL, false, 0, 5e-324},
        {"1.7976931348623157e308", MOON_JSON_REAL, false, 0, 1.7976931348623157e308},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reading reading = read_text(MOON_JSON_STRICT, rows[i].text);
        MOON_CHECK_INT(reading.rc, 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(reading.root);
        MOON_CHECK_INT(reading.root->type, rows[i].type);
        MOON_CHECK_INT(reading.root->fits, rows[i].fits);
        MOON_CHECK_INT(reading.root->integer, rows[i].integer);
        CU_ASSERT_EQUAL(reading.root->real, rows[i].real);
        CU_ASSERT_EQUAL(signbit(reading.root->real) != 0, signbit(rows[i].real) != 0);
        MOON_CHECK_TEXT(reading.root->bytes, rows[i].text);
        MOON_CHECK_INT(reading.root->length, strlen(rows[i].text));
        close_reading(&reading);
    }
}

static void a_number_in_a_document_keeps_its_text_terminated(void) {
    struct reading reading = read_text(MOON_JSON_STRICT, "{\"a\":[1.50,22 ,333\n],\"b\":4444}");
    MOON_CHECK_INT(reading.rc, 0);
    const struct moon_json *a = moon_json_member(reading.root, "a");
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    MOON_CHECK_TEXT(moon_json_at(a, 0)->bytes, "1.50");
    MOON_CHECK_TEXT(moon_json_at(a, 1)->bytes, "22");
    MOON_CHECK_TEXT(moon_json_at(a, 2)->bytes, "333");
    MOON_CHECK_TEXT(moon_json_member(reading.root, "b")->bytes, "4444");
    close_reading(&reading);
}

static void strings_hold_any_character(void) {
    static const struct {
        const char *input, *bytes;
        size_t length;
    } rows[] = {
        {"\"\"", "", 0},
        {"\"plain\"", "plain", 5},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xC3\xA9\xE2\x82\xAC", 6},
        {"\"a\\u0000b\"", "a\0b", 3},
        {"\"\\ud83d\\ude00\"", "\xF0\x9F\x98\x80", 4},
        {"\"\\uDBFF\\uDFFF\"", "\xF4\x8F\xBF\xBF", 4},
        {"\"\\ud83d\"", "\xED\xA0\xBD", 3},
        {"\"\\ude00\\ud83d\"", "\xED\xB8\x80\xED\xA0\xBD", 6},
        {"\"\\ude00\\ude00\"", "\xED\xB8\x80\xED\xB8\x80", 6},
        {"\"\\ud83d\\ud83d\\ude00\"", "\xED\xA0\xBD\xF0\x9F\x98\x80", 7},
        {"\"\\ud83dx\\ude00\"", "\xED\xA0\xBDx\xED\xB8\x80", 7},
        {"\"\\ud83d\\n\"", "\xED\xA0\xBD\n", 4},
        {"\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \x7F\"", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \x7F", 13},
        {"\"0123456789abcdef\\n0123456789abcdef\xC3\xA9 tail\"", "0123456789abcdef\n0123456789abcdef\xC3\xA9 tail", 40},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reading reading = read_text(MOON_JSON_STRICT, rows[i].input);
        MOON_CHECK_INT(reading.rc, 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(reading.root);
        MOON_CHECK_INT(reading.root->length, rows[i].length);
        CU_ASSERT(memcmp(reading.root->bytes, rows[i].bytes, rows[i].length + 1) == 0);
        close_reading(&reading);
    }
}

static void every_value_knows_its_place(void) {
    struct reading reading = read_text(MOON_JSON_STRICT, "{\n  \"a\": [1,\r\n    {\"b c\": null}],\n\"d\":\ttrue }");
    MOON_CHECK_INT(reading.rc, 0);
    const struct moon_json *null = moon_json_member(moon_json_at(moon_json_member(reading.root, "a"), 1), "b c");
    const struct moon_json *d = moon_json_member(reading.root, "d");
    CU_ASSERT_FATAL(null && d);
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_path(null, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), "$.a[1][\"b c\"]");
    moon_text_close(&text);
    MOON_CHECK_INT(reading.root->line, 1);
    MOON_CHECK_INT(reading.root->column, 1);
    MOON_CHECK_INT(null->line, 3);
    MOON_CHECK_INT(null->column, 13);
    MOON_CHECK_INT(null->offset, 26);
    MOON_CHECK_INT(d->line, 4);
    MOON_CHECK_INT(d->column, 6);
    MOON_CHECK_INT(d->index, 1);
    MOON_CHECK_INT(reading.root->count, 2);
    moon_json_fail(&reading.error, MOON_ERR_SCHEMA, "t.json", null, "must be %d", 7);
    MOON_CHECK_TEXT(reading.error.where, "t.json:3:13 $.a[1][\"b c\"]");
    MOON_CHECK_TEXT(reading.error.message, "must be 7");
    close_reading(&reading);
}

static void wrong_documents_are_refused_with_place_and_reason(void) {
    READS("", "t.json:1:1 $: expected a value, found the end of the input");
    READS(" \n ", "t.json:2:2 $: expected a value, found the end of the input");
    READS("\xEF\xBB\xBF{}", "t.json:1:1 $: expected JSON without a byte order mark, found U+FEFF");
    READS("nul", "t.json:1:1 $: expected a value, found \"nul\"");
    READS("n", "t.json:1:1 $: expected a value, found 'n'");
    READS("True", "t.json:1:1 $: expected a value, found \"True\"");
    READS("averyveryverylongwordindeed", "t.json:1:1 $: expected a value, found \"averyveryverylongwor\"");
    READS("'a'", "t.json:1:1 $: expected a value, found '''");
    READS("\x01", "t.json:1:1 $: expected a value, found U+0001");
    READS("\x7F", "t.json:1:1 $: expected a value, found U+007F");
    READS("\xC3\xA9", "t.json:1:1 $: expected a value, found '\xC3\xA9'");
    READS("\xFF", "t.json:1:1 $: expected a value, found byte 0xFF, which is no UTF-8");
    READS("nullx", "t.json:1:5 $: expected the end of the input after the document, found 'x'");
    READS("{} {}", "t.json:1:4 $: expected the end of the input after the document, found '{'");
    READS("[1 2]", "t.json:1:4 $[0]: expected ',' or ']' after an array's element, found '2'");
    READS("[1,]", "t.json:1:4 $[1]: expected a value, found ']'");
    READS("[,1]", "t.json:1:2 $[0]: expected a value, found ','");
    READS("[1", "t.json:1:3 $[0]: expected ',' or ']' after an array's element, found the end of the input");
    READS("[1}", "t.json:1:3 $[0]: expected ',' or ']' after an array's element, found '}'");
    READS("{\"a\":1]", "t.json:1:7 $.a: expected ',' or '}' after a member's value, found ']'");
    READS("{\"a\" 1}", "t.json:1:6 $: expected ':' after a member's name, found '1'");
    READS("{\"a\":}", "t.json:1:6 $.a: expected a value, found '}'");
    READS("{\"a\":1,}", "t.json:1:8 $.a: expected a member's name in double quotes, found '}'");
    READS("{a:1}", "t.json:1:2 $: expected a member's name in double quotes, found 'a'");
    READS("{\"a", "t.json:1:4 $: expected '\"' at the end of a string, found the end of the input");
    READS("[", "t.json:1:2 $[0]: expected a value, found the end of the input");
    READS("{", "t.json:1:2 $: expected a member's name in double quotes, found the end of the input");
    READS("// c\n1", "t.json:1:1 $: expected a value, found '/'");
}

static void wrong_numbers_are_refused(void) {
    READS("+1", "t.json:1:1 $: expected a value, found '+'");
    READS(".5", "t.json:1:1 $: expected a value, found '.'");
    READS("5.", "t.json:1:3 $: expected a digit after the decimal point, found the end of the input");
    READS("5.e1", "t.json:1:3 $: expected a digit after the decimal point, found 'e'");
    READS("-", "t.json:1:2 $: expected a digit, found the end of the input");
    READS("-a", "t.json:1:2 $: expected a digit, found 'a'");
    READS("01", "t.json:1:1 $: a number must not begin with 0 followed by more digits");
    READS("[-00]", "t.json:1:3 $[0]: a number must not begin with 0 followed by more digits");
    READS("1e", "t.json:1:3 $: expected a digit in the exponent, found the end of the input");
    READS("1E+", "t.json:1:4 $: expected a digit in the exponent, found the end of the input");
    READS("1e-x", "t.json:1:4 $: expected a digit in the exponent, found 'x'");
    READS("0x10", "t.json:1:2 $: expected the end of the input after the document, found 'x'");
    READS("1_000", "t.json:1:2 $: expected the end of the input after the document, found '_'");
    READS("1e999", "t.json:1:1 $: the number is beyond the range of a double");
    READS("-1e999", "t.json:1:1 $: the number is beyond the range of a double");
    READS("NaN", "t.json:1:1 $: expected a value, found \"NaN\"");
    READS("-Infinity", "t.json:1:2 $: expected a digit, found \"Infinity\"");
    struct reading reading = read_text(MOON_JSON_STRICT, "1e999");
    MOON_CHECK_INT(reading.rc, MOON_ERR_RANGE);
    close_reading(&reading);
}

static void wrong_strings_are_refused(void) {
    READS("\"a\nb\"", "t.json:1:3 $: expected an escape instead of a control character in a string, found U+000A");
    READS("\"\x1F\"", "t.json:1:2 $: expected an escape instead of a control character in a string, found U+001F");
    READS("\"\\x41\"", "t.json:1:3 $: expected one of \" \\ / b f n r t u after a backslash, found 'x'");
    READS("\"\\", "t.json:1:3 $: expected one of \" \\ / b f n r t u after a backslash, found the end of the input");
    READS("\"\\u12", "t.json:1:4 $: expected four hex digits after \\u, found '1'");
    READS("\"\\u12g4\"", "t.json:1:4 $: expected four hex digits after \\u, found '1'");
    READS("\"\\ud83d\\u12\"", "t.json:1:10 $: expected four hex digits after \\u, found '1'");
    READS("\"\\ud83d\\x\"", "t.json:1:9 $: expected one of \" \\ / b f n r t u after a backslash, found 'x'");
    READS("\"\xC0\x80\"", "t.json:1:2 $: expected UTF-8 in a string, found byte 0xC0, which is no UTF-8");
    READS("\"\xF4\x90\x80\x80\"", "t.json:1:2 $: expected UTF-8 in a string, found byte 0xF4, which is no UTF-8");
    READS("\"a\xE2\x82\"", "t.json:1:3 $: expected UTF-8 in a string, found byte 0xE2, which is no UTF-8");
    READS("\"\xED\xA0\x80\"", "t.json:1:2 $: expected UTF-8 in a string, found byte 0xED, which is no UTF-8");
    READS("\"\xED\xBF\xBF\"", "t.json:1:2 $: expected UTF-8 in a string, found byte 0xED, which is no UTF-8");
    READS("\"a long run of text \x1F and more text\"",
          "t.json:1:21 $: expected an escape instead of a control character in a string, found U+001F");
    struct reading reading = read_bytes(MOON_JSON_STRICT, "\"a\0b\"", 5);
    MOON_CHECK_TEXT(reading.error.message,
                    "expected an escape instead of a control character in a string, found U+0000");
    close_reading(&reading);
    reading = read_bytes(MOON_JSON_STRICT, "1\0", 2);
    MOON_CHECK_TEXT(reading.error.message, "expected the end of the input after the document, found U+0000");
    close_reading(&reading);
}

static void a_document_cut_anywhere_is_refused(void) {
    static const char whole[] =
        "{\"a\\n\":[1.5e3,-2,\"\xE2\x82\xAC\\ud83d\\ude00\",true,false,null,{}],\"b\":{\"c\":[]}}";
    for (size_t length = 0; length < sizeof whole - 1; length++) {
        struct reading reading = read_bytes(MOON_JSON_STRICT, whole, length);
        MOON_CHECK_INT(reading.rc, MOON_ERR_SYNTAX);
        CU_ASSERT_PTR_NULL(reading.root);
        close_reading(&reading);
    }
    READS(whole, "{\"a\\n\":[1.5e3,-2,\"\xE2\x82\xAC\xF0\x9F\x98\x80\",true,false,null,{}],\"b\":{\"c\":[]}}");
}

static void duplicate_members_are_refused_where_the_second_stands(void) {
    READS("{\"a\":1,\n \"b\":2, \"a\" :3}", "t.json:2:9 $.a: the object has a member of this name already, at 1:6");
    READS("{\"a\":1,\"\\u0061\"\n:3}", "t.json:1:8 $.a: the object has a member of this name already, at 1:6");
    READS("{\"x\":[{\"\":1,\"\":2}]}",
          "t.json:1:13 $.x[0][\"\"]: the object has a member of this name already, at 1:11");
    READS("[{\"a\":1},{\"a\":1}]", "[{\"a\":1},{\"a\":1}]");
}

static void python_rules_accept_what_json_loads_does(void) {
    READS_AS_PYTHON("[NaN,Infinity,-Infinity]", "[NaN,Infinity,-Infinity]");
    READS_AS_PYTHON("-NaN", "t.json:1:2 $: expected a digit, found \"NaN\"");
    READS_AS_PYTHON("nan", "t.json:1:1 $: expected a value, found \"nan\"");
    READS_AS_PYTHON("+Infinity", "t.json:1:1 $: expected a value, found '+'");
    READS_AS_PYTHON("{\"a\":{\"x\":[1]},\"b\":2,\"a\":3,\"c\":4}", "{\"a\":3,\"b\":2,\"c\":4}");
    READS_AS_PYTHON("{\"a\":1,\"a\":{\"x\":[1,{\"y\":2}],\"x\":0},\"a\":{\"z\":5}}", "{\"a\":{\"z\":5}}");
    READS_AS_PYTHON("{\"a\":1,\"a\" 2}", "t.json:1:12 $.a: expected ':' after a member's name, found '2'");
    READS_AS_PYTHON("[1,]", "t.json:1:4 $[1]: expected a value, found ']'");
    READS_AS_PYTHON("\xEF\xBB\xBF{}", "t.json:1:1 $: expected JSON without a byte order mark, found U+FEFF");
    READS_AS_PYTHON("[1e999,-1e999]", "[1e999,-1e999]");
    struct reading reading = read_text(MOON_JSON_PYTHON, "[1e999,-1e999,NaN,Infinity,-Infinity]");
    MOON_CHECK_INT(reading.rc, 0);
    CU_ASSERT(moon_json_at(reading.root, 0)->real > 0 && isinf(moon_json_at(reading.root, 0)->real));
    CU_ASSERT(moon_json_at(reading.root, 1)->real < 0 && isinf(moon_json_at(reading.root, 1)->real));
    CU_ASSERT(isnan(moon_json_at(reading.root, 2)->real));
    CU_ASSERT(moon_json_at(reading.root, 3)->real > 0 && isinf(moon_json_at(reading.root, 3)->real));
    CU_ASSERT(moon_json_at(reading.root, 4)->real < 0 && isinf(moon_json_at(reading.root, 4)->real));
    MOON_CHECK_INT(moon_json_at(reading.root, 2)->type, MOON_JSON_REAL);
    close_reading(&reading);
}

static void a_member_that_wins_under_python_rules_is_whole(void) {
    struct reading reading = read_text(MOON_JSON_PYTHON, "{\"a\":\"long text\",\"b\":2,\n\"a\":[true,{\"k\":7}]}");
    MOON_CHECK_INT(reading.rc, 0);
    const struct moon_json *a = moon_json_member(reading.root, "a");
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    MOON_CHECK_INT(reading.root->count, 2);
    MOON_CHECK_INT(a->index, 0);
    MOON_CHECK_INT(a->count, 2);
    MOON_CHECK_INT(a->line, 2);
    MOON_CHECK_INT(a->column, 5);
    CU_ASSERT_PTR_NULL(a->bytes);
    CU_ASSERT_PTR_EQUAL(a, reading.root->first);
    CU_ASSERT_PTR_EQUAL(a->next, moon_json_member(reading.root, "b"));
    CU_ASSERT_PTR_EQUAL(moon_json_member(moon_json_at(a, 1), "k")->parent->parent, a);
    close_reading(&reading);
}

static void depth_is_limited_to_128_levels(void) {
    char text[4 * MOON_JSON_DEPTH_MAX + 16];
    for (int extra = 0; extra < 2; extra++) {
        int depth = MOON_JSON_DEPTH_MAX + extra;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        struct reading reading = read_bytes(MOON_JSON_STRICT, text, 2 * (size_t)depth);
        MOON_CHECK_INT(reading.rc, extra ? MOON_ERR_LIMIT : MOON_OK);
        if (extra)
            MOON_CHECK_TEXT(reading.error.message, "arrays and objects are nested more than 128 deep");
        close_reading(&reading);
    }
    struct moon_text siblings; /* add no depth, empty or not */
    moon_text_open(&siblings, moon_memory_heap());
    moon_text_char(&siblings, '[');
    for (int i = 0; i < 200; i++)
        moon_text_string(&siblings, "[[]],{\"a\":{}},");
    moon_text_string(&siblings, "0]");
    READS(moon_text_value(&siblings), moon_text_value(&siblings));
    moon_text_close(&siblings);
}

static void size_is_limited_to_256_mebibytes(void) {
    size_t length = (size_t)MOON_JSON_INPUT_BYTES_MAX + 1;
    char *input = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_FATAL(input != MAP_FAILED);
    struct moon_arena arena;
    struct moon_json *root = NULL;
    struct moon_error error;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "t.json", input, length, MOON_JSON_STRICT, &root, &error), MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(error.message, "the document has 268435457 bytes, more than 268435456");
    MOON_CHECK_TEXT(error.where, "t.json");
    moon_arena_close(&arena);
    munmap(input, length);
}

static void python_integers_have_at_most_4300_digits(void) {
    for (int extra = 0; extra < 2; extra++)
        for (int form = 0; form < 3; form++) {
            char text[MOON_JSON_PYTHON_DIGITS_MAX + 8] = "-";
            size_t digits = (size_t)MOON_JSON_PYTHON_DIGITS_MAX + (size_t)extra;
            memset(text + 1, '7', digits);
            strcpy(text + 1 + digits, form == 2 ? ".5" : "");
            struct reading strict = read_text(MOON_JSON_STRICT, text + (form == 0));
            struct reading python = read_text(MOON_JSON_PYTHON, text + (form == 0));
            MOON_CHECK_INT(strict.rc, form == 2 ? MOON_ERR_RANGE : MOON_OK);
            MOON_CHECK_INT(python.rc, extra && form < 2 ? MOON_ERR_LIMIT : MOON_OK);
            if (python.rc)
                MOON_CHECK_TEXT(python.error.message, "the integer has 4301 digits, more than Python's limit of 4300");
            close_reading(&strict);
            close_reading(&python);
        }
}

/* 200,000 members; `pattern` picks names that are hard for some index: numbers, long equal prefixes, growing lengths.
 */
static void write_members(struct moon_text *text, int pattern, int count) {
    moon_text_char(text, '{');
    for (int i = 0; i < count; i++) {
        moon_text_string(text, i ? ",\"" : "\"");
        if (pattern == 0)
            moon_text_format(text, "%d", i);
        else if (pattern == 1)
            moon_text_format(text, "a_prefix_that_all_the_names_share_%08x", (unsigned)i * 2654435761u);
        else
            moon_text_repeat(text, 'a', (size_t)i);
        moon_text_string(text, "\":0");
    }
    moon_text_char(text, '}');
}

/* A quadratic reader would need minutes here, and run into the time limit of the unit slice. */
static void objects_with_many_members_are_read(void) {
    static const int counts[] = {200000, 200000, 4000};
    for (int pattern = 0; pattern < 3; pattern++) {
        struct moon_text text;
        moon_text_open(&text, moon_memory_heap());
        write_members(&text, pattern, counts[pattern]);
        struct reading reading = read_bytes(MOON_JSON_STRICT, text.data, text.length);
        MOON_CHECK_INT(reading.rc, 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(reading.root);
        MOON_CHECK_INT(reading.root->count, counts[pattern]);
        size_t found = 0;
        for (const struct moon_json *member = reading.root->first; member; member = member->next)
            found += moon_json_member(reading.root, member->name) == member;
        MOON_CHECK_INT(found, counts[pattern]);
        CU_ASSERT_PTR_NULL(moon_json_member(reading.root, "none"));
        close_reading(&reading);
        moon_text_close(&text);
    }
}

static void refused_memory_is_told_and_nothing_leaks(void) {
    static const char input[] = "{\"a\":[1,2,3,{\"b\":\"c\",\"d\":[[],{}]}],\"e\":1.5}";
    /* 16 bytes less room each time, so that each value in turn is the one that finds none. */
    for (size_t filler = 16; filler <= 4096; filler += 16) {
        struct moon_memory_failing failing;
        struct moon_arena arena;
        struct moon_json *root = NULL;
        struct moon_error error;
        moon_memory_failing_init(&failing, moon_memory_heap(), 2);
        moon_arena_open(&arena, &failing.memory);
        CU_ASSERT_PTR_NOT_NULL(moon_arena_alloc(&arena, filler));
        int rc = moon_json_read(&arena, "t.json", input, sizeof input - 1, MOON_JSON_STRICT, &root, &error);
        MOON_CHECK_INT(rc, failing.requests > 1 ? MOON_ERR_MEMORY : MOON_OK);
        MOON_CHECK_INT(root != NULL, rc == 0);
        if (rc)
            MOON_CHECK_TEXT(error.message, "out of memory");
        moon_arena_close(&arena);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
    struct moon_memory_failing failing;
    struct moon_arena arena;
    struct moon_json *root = NULL;
    moon_memory_failing_init(&failing, moon_memory_heap(), 1);
    moon_arena_open(&arena, &failing.memory);
    MOON_CHECK_INT(moon_json_read(&arena, NULL, "1", 1, MOON_JSON_STRICT, &root, NULL), MOON_ERR_MEMORY);
    moon_arena_close(&arena);
}

static void the_locale_does_not_matter(void) {
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    for (size_t i = 0; i < sizeof commas / sizeof commas[0] && strcmp(localeconv()->decimal_point, ",") != 0; i++)
        setlocale(LC_NUMERIC, commas[i]);
    struct reading reading = read_text(MOON_JSON_STRICT, "2.5");
    MOON_CHECK_INT(reading.rc, 0);
    CU_ASSERT_EQUAL(reading.root->real, 2.5);
    struct moon_json *real = moon_json_real(&reading.arena, 0.75);
    MOON_CHECK_TEXT(real->bytes, "0.75");
    close_reading(&reading);
    setlocale(LC_NUMERIC, "C");
}

/* The probe: records "rules (1 byte), length (4 bytes, little-endian), document" on stdin; "status (1 byte, negated),
 * length, text" on stdout. The text is the tree with every number written from its value, or the error. */
static void write_canonical(struct reading *reading, struct moon_text *text) {
    struct moon_json *value = reading->root;
    for (;;) {
        struct moon_json *rebuilt = NULL;
        if (value->type == MOON_JSON_REAL)
            rebuilt = moon_json_real(&reading->arena, value->real);
        else if (value->type == MOON_JSON_INTEGER && value->fits)
            rebuilt = moon_json_int(&reading->arena, value->integer);
        if (rebuilt) {
            value->bytes = rebuilt->bytes;
            value->length = rebuilt->length;
        }
        if (value->first) {
            value = value->first;
            continue;
        }
        while (value->parent && !value->next)
            value = value->parent;
        if (!value->parent)
            break;
        value = value->next;
    }
    moon_json_write(reading->root, MOON_JSON_COMPACT, text);
}

static int probe(void) {
    unsigned char head[5];
    static char document[1 << 20];
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        size_t length = head[1] | (size_t)head[2] << 8 | (size_t)head[3] << 16 | (size_t)head[4] << 24;
        if (length > sizeof document || fread(document, 1, length, stdin) != length)
            return 1;
        struct reading reading = read_bytes(head[0] ? MOON_JSON_PYTHON : MOON_JSON_STRICT, document, length);
        struct moon_text text;
        moon_text_open(&text, moon_memory_heap());
        if (reading.rc)
            moon_text_format(&text, "%s: %s", reading.error.where, reading.error.message);
        else
            write_canonical(&reading, &text);
        unsigned char answer[5] = {(unsigned char)-reading.rc, (unsigned char)text.length,
                                   (unsigned char)(text.length >> 8), (unsigned char)(text.length >> 16),
                                   (unsigned char)(text.length >> 24)};
        fwrite(answer, 1, sizeof answer, stdout);
        fwrite(moon_text_value(&text), 1, text.length, stdout);
        fflush(stdout);
        moon_text_close(&text);
        close_reading(&reading);
    }
    return 0;
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every kind of value is read", every_kind_of_value_is_read},
        {"integers are exact and reals are nearest", integers_are_exact_and_reals_are_nearest},
        {"a number in a document keeps its text, terminated", a_number_in_a_document_keeps_its_text_terminated},
        {"strings hold any character", strings_hold_any_character},
        {"every value knows its place", every_value_knows_its_place},
        {"wrong documents are refused with place and reason", wrong_documents_are_refused_with_place_and_reason},
        {"wrong numbers are refused", wrong_numbers_are_refused},
        {"wrong strings are refused", wrong_strings_are_refused},
        {"a document cut anywhere is refused", a_document_cut_anywhere_is_refused},
        {"duplicate members are refused where the second stands",
         duplicate_members_are_refused_where_the_second_stands},
        {"Python's rules accept what json.loads does", python_rules_accept_what_json_loads_does},
        {"a member that wins under Python's rules is whole", a_member_that_wins_under_python_rules_is_whole},
        {"depth is limited to 128 levels", depth_is_limited_to_128_levels},
        {"size is limited to 256 MiB", size_is_limited_to_256_mebibytes},
        {"Python's integers have at most 4300 digits", python_integers_have_at_most_4300_digits},
        {"objects with many members are read in linear time", objects_with_many_members_are_read},
        {"refused memory is told and nothing leaks", refused_memory_is_told_and_nothing_leaks},
        {"the locale does not matter", the_locale_does_not_matter},
        {0},
    };
    if (argc == 2 && strcmp(argv[1], "--probe") == 0)
        return probe();
    return moon_unit_main("json_read", cases, argc, argv);
}
