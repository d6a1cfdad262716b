/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: sizes, int() and float() as Python reads them. */
#include "ref/config/python_number.h"

#include "ref/base/unit.h"
#include "ref/config/python_unicode.h"

#include <math.h>

static struct moon_arena arena;

/* The size of a JSON value as text: digits, "true", or "Class: message". */
static const char *size_of(const char *json) {
    struct moon_json *value = NULL, *size = NULL;
    struct moon_exception raised = {0};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "test", json, strlen(json), MOON_JSON_PYTHON, &value, NULL), MOON_OK);
    int status = moon_python_size(&arena, value, &size, &raised);
    static char line[2048];
    if (status)
        snprintf(line, sizeof line, "%s: %s", raised.type, raised.message);
    else if (size->type == MOON_JSON_BOOL)
        snprintf(line, sizeof line, "%s", size->boolean ? "true" : "false");
    else
        snprintf(line, sizeof line, "%s", size->bytes);
    moon_arena_close(&arena);
    return line;
}

static void units_are_binary_and_case_does_not_matter(void) {
    MOON_CHECK_TEXT(size_of("\"80GB\""), "85899345920");
    MOON_CHECK_TEXT(size_of("\"1.5gb\""), "1610612736");
    MOON_CHECK_TEXT(size_of("\" 10 Mb \""), "10485760");
    MOON_CHECK_TEXT(size_of("\".5KB\""), "512");
    MOON_CHECK_TEXT(size_of("\"5.\""), "5");
    MOON_CHECK_TEXT(size_of("\"7b\""), "7");
    MOON_CHECK_TEXT(size_of("\"1.9\""), "1");
}

static void other_forms_are_refused_with_the_text_as_given(void) {
    MOON_CHECK_TEXT(size_of("\" 1GiB\""), "ValueError: Invalid format: ' 1GiB'");
    MOON_CHECK_TEXT(size_of("\"1TB\""), "ValueError: Invalid format: '1TB'");
    MOON_CHECK_TEXT(size_of("\"1g\""), "ValueError: Invalid format: '1g'");
    MOON_CHECK_TEXT(size_of("\"1bb\""), "ValueError: Invalid format: '1bb'");
    MOON_CHECK_TEXT(size_of("\"1\\u0000b\""), "ValueError: Invalid format: '1");
    MOON_CHECK_TEXT(size_of("\"1gbb\""), "ValueError: Invalid format: '1gbb'");
    MOON_CHECK_TEXT(size_of("\"-1GB\""), "ValueError: Invalid format: '-1GB'");
    MOON_CHECK_TEXT(size_of("\"1_000\""), "ValueError: Invalid format: '1_000'");
    MOON_CHECK_TEXT(size_of("\"gb\""), "ValueError: Invalid format: 'gb'");
    MOON_CHECK_TEXT(size_of("\"1\xC3\xA9\""), "ValueError: Invalid format: '1\xC3\xA9'");
    MOON_CHECK_TEXT(size_of("\" \""), "ValueError: Size cannot be empty.");
    MOON_CHECK_TEXT(size_of("\".\""), "ValueError: Invalid numeric value '.' in: '.'");
    MOON_CHECK_TEXT(size_of("\"1..5GB\""), "ValueError: Invalid numeric value '1..5' in: '1..5GB'");
}

static void values_that_are_no_text_follow_int(void) {
    MOON_CHECK_TEXT(size_of("-5"), "-5");
    MOON_CHECK_TEXT(size_of("-0"), "0");
    MOON_CHECK_TEXT(size_of("true"), "true");
    MOON_CHECK_TEXT(size_of("1.9"), "1");
    MOON_CHECK_TEXT(size_of("-1.9"), "-1");
    MOON_CHECK_TEXT(size_of("-0.5"), "0");
    MOON_CHECK_TEXT(size_of("9223372036854775808"), "9223372036854775808");
    MOON_CHECK_TEXT(size_of("null"), "TypeError: Unsupported type for size: <class 'NoneType'>");
    MOON_CHECK_TEXT(size_of("[1]"), "TypeError: Unsupported type for size: <class 'list'>");
    MOON_CHECK_TEXT(size_of("{}"), "TypeError: Unsupported type for size: <class 'dict'>");
    MOON_CHECK_TEXT(size_of("NaN"), "TypeError: Unsupported type for size: <class 'float'>");
    MOON_CHECK_TEXT(size_of("Infinity"), "OverflowError: cannot convert float infinity to integer");
}

static void values_are_doubles_written_out_exactly(void) {
    char text[420] = "\"";
    MOON_CHECK_TEXT(size_of("\"9007199254740993\""), "9007199254740992");
    MOON_CHECK_TEXT(size_of("\"18446744073709551616\""), "18446744073709551616");
    MOON_CHECK_TEXT(size_of("\"999999999999gb\""), "1073741823998926258176");
    MOON_CHECK_TEXT(size_of("1e22"), "10000000000000000000000");
    memset(text + 1, '9', 400);
    strcpy(text + 401, "\"");
    MOON_CHECK_TEXT(size_of(text), "OverflowError: cannot convert float infinity to integer");
    strcpy(text + 309, "gb\"");
    MOON_CHECK_TEXT(size_of(text), "OverflowError: cannot convert float infinity to integer");
}

static void digits_and_blanks_of_all_scripts_count(void) {
    MOON_CHECK_TEXT(size_of("\"\\uff11\\uff16GB\""), "17179869184");
    MOON_CHECK_TEXT(size_of("\"\\u0660\\u0661.\\uff15KB\""), "1536");
    MOON_CHECK_TEXT(size_of("\"\\ud835\\udfff\""), "9");
    MOON_CHECK_TEXT(size_of("\"4\\u212aB\""), "4096");
    MOON_CHECK_TEXT(size_of("\"4\\u2003\\u0085gb\""), "4294967296");
    MOON_CHECK_TEXT(size_of("\"\\u3000\\u001c4\\u001f\""), "4");
    MOON_CHECK_TEXT(size_of("\"4\\u001fgb\""), "ValueError: Invalid format: '4\x1Fgb'");
    MOON_CHECK_TEXT(size_of("\"4\\u001cgb\""), "ValueError: Invalid format: '4\x1Cgb'");
    MOON_CHECK_TEXT(size_of("\"\\u200b4\""), "ValueError: Invalid format: '\xE2\x80\x8B"
                                             "4'");
    MOON_CHECK_TEXT(size_of("\"\\u00b2\""), "ValueError: Invalid format: '\xC2\xB2'");
}

static void digits_later_than_the_interpreter_match_and_are_then_refused(void) {
    MOON_CHECK_TEXT(size_of("\"\\ud807\\udf51\""),
                    "ValueError: Invalid numeric value '\xF0\x91\xBD\x91' in: '\xF0\x91\xBD\x91'");
}

static void a_text_tells_what_is_cut_off(void) {
    struct moon_size_text size;
    struct moon_exception raised;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_python_size_text(&arena, "0.3kb", 5, &size, &raised), MOON_OK);
    CU_ASSERT(size.fraction && size.unit && size.bytes > 307 && size.bytes < 308);
    MOON_CHECK_INT(moon_python_size_text(&arena, "80", 2, &size, &raised), MOON_OK);
    CU_ASSERT(!size.fraction && !size.unit && size.bytes == 80);
    moon_arena_close(&arena);
}

static void strip_takes_white_space_of_both_ends(void) {
    const char *text = "\xE3\x80\x80 a b\x1F\n";
    size_t length = strlen(text);
    moon_python_strip(&text, &length);
    CU_ASSERT(length == 3 && memcmp(text, "a b", 3) == 0);
    text = " \x85 ";
    length = 3;
    moon_python_strip(&text, &length); /* a byte that is no character is no white space */
    MOON_CHECK_INT(length, 1);
    text = "\t\n";
    length = 2;
    moon_python_strip(&text, &length);
    MOON_CHECK_INT(length, 0);
}

static int read_float(const char *text, double *out) {
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_python_float(&arena, text, strlen(text), out);
    moon_arena_close(&arena);
    return status;
}

static void floats_have_the_grammar_of_python(void) {
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0.9", 0.9}, {" 1 ", 1},     {"+1_000.5", 1000.5}, {"-.5", -0.5},
                {"1.", 1},    {"1e3", 1000},  {"1E-3", 0.001},      {"1_0e+1_0", 1e11},
                {"0e999", 0}, {"1.5e2", 150}, {"\xEF\xBC\x91", 1},  {"12e-99999999999999999999", 0}};
    static const char *const bad[] = {"",      ".",    "e5",  "1e",  "1_",    "_1",   "1__0", "0x10",     "1 0", "--1",
                                      "1.5.2", "1e5_", "abc", "1,5", "infin", "1._5", "1_.5", "\xC3\xA9", "+",   "1e+"};
    double value = 0;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        MOON_CHECK_INT(read_float(good[i].text, &value), MOON_OK);
        CU_ASSERT_DOUBLE_EQUAL(value, good[i].value, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        MOON_CHECK_INT(read_float(bad[i], &value), MOON_ERR_SYNTAX);
    MOON_CHECK_INT(read_float("-Infinity", &value), MOON_OK);
    CU_ASSERT(isinf(value) && value < 0);
    MOON_CHECK_INT(read_float("inf", &value), MOON_OK);
    CU_ASSERT(isinf(value) && value > 0);
    MOON_CHECK_INT(read_float("1e999999999999", &value), MOON_OK);
    CU_ASSERT(isinf(value));
    MOON_CHECK_INT(read_float(" nan\n", &value), MOON_OK);
    CU_ASSERT(isnan(value));
}

static void integers_have_the_grammar_of_python(void) {
    static const char *const bad[] = {"", "-", "+", "1_", "_1", "1__0", "1.0", "0x1", "a"};
    int64_t value = 0;
    MOON_CHECK_INT(moon_python_int(" 1_000 ", 7, &value), MOON_OK);
    MOON_CHECK_INT(value, 1000);
    MOON_CHECK_INT(moon_python_int("-9223372036854775808", 20, &value), MOON_OK);
    MOON_CHECK_INT(value, INT64_MIN);
    MOON_CHECK_INT(moon_python_int("+007", 4, &value), MOON_OK);
    MOON_CHECK_INT(value, 7);
    MOON_CHECK_INT(moon_python_int("9223372036854775808", 19, &value), MOON_ERR_RANGE);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        MOON_CHECK_INT(moon_python_int(bad[i], strlen(bad[i]), &value), MOON_ERR_SYNTAX);
}

static void cutting_a_float_refuses_nan_and_infinity(void) {
    struct moon_json *number = NULL;
    struct moon_exception raised = {0};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_python_trunc(&arena, NAN, &number, &raised), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(raised.message, "cannot convert float NaN to integer");
    MOON_CHECK_INT(moon_python_trunc(&arena, -INFINITY, &number, &raised), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(raised.type, "OverflowError");
    moon_arena_close(&arena);
}

static void signs_are_those_of_the_numbers(void) {
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_python_sign(moon_json_bool(&arena, true)), 1);
    MOON_CHECK_INT(moon_python_sign(moon_json_bool(&arena, false)), 0);
    MOON_CHECK_INT(moon_python_sign(moon_json_int(&arena, -3)), -1);
    MOON_CHECK_INT(moon_python_sign(moon_json_int(&arena, 0)), 0);
    MOON_CHECK_INT(moon_python_sign(moon_json_number(&arena, "-99999999999999999999", 21)), -1);
    MOON_CHECK_INT(moon_python_sign(moon_json_number(&arena, "99999999999999999999", 20)), 1);
    moon_arena_close(&arena);
}

static void tables_are_sorted(void) {
    for (size_t i = 1; i < moon_python_printable_turn_count; i++)
        CU_ASSERT(moon_python_printable_turns[i - 1] < moon_python_printable_turns[i]);
    for (size_t i = 1; i < moon_python_zero_count; i++)
        CU_ASSERT(moon_python_zeros[i - 1] + 10 <= moon_python_zeros[i]);
    MOON_CHECK_INT(moon_python_zero_count, 66);
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void) {
    static const char *const texts[] = {"1.5GB", "1GiB", "1..5", "", "9999999999999999999999"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (uint64_t n = 1; n < 100; n++) {
            struct moon_memory_failing failing;
            struct moon_exception raised = {0};
            struct moon_json *size = NULL,
                             value = {.type = MOON_JSON_STRING, .bytes = texts[i], .length = strlen(texts[i])};
            double number;
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            moon_arena_open(&arena, &failing.memory);
            int status = moon_python_size(&arena, &value, &size, &raised);
            if (status != MOON_ERR_MEMORY &&
                moon_python_float(&arena, texts[i], strlen(texts[i]), &number) != MOON_ERR_MEMORY)
                n = 100;
            moon_arena_close(&arena);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"units are binary and case does not matter", units_are_binary_and_case_does_not_matter},
        {"other forms are refused with the text as given", other_forms_are_refused_with_the_text_as_given},
        {"values that are no text follow int()", values_that_are_no_text_follow_int},
        {"values are doubles written out exactly", values_are_doubles_written_out_exactly},
        {"digits and blanks of all scripts count", digits_and_blanks_of_all_scripts_count},
        {"digits later than the interpreter match and are then refused",
         digits_later_than_the_interpreter_match_and_are_then_refused},
        {"a text tells what is cut off", a_text_tells_what_is_cut_off},
        {"strip takes white space of both ends", strip_takes_white_space_of_both_ends},
        {"floats have the grammar of Python", floats_have_the_grammar_of_python},
        {"integers have the grammar of Python", integers_have_the_grammar_of_python},
        {"cutting a float refuses NaN and infinity", cutting_a_float_refuses_nan_and_infinity},
        {"signs are those of the numbers", signs_are_those_of_the_numbers},
        {"tables are sorted", tables_are_sorted},
        {"every refused allocation is reported and nothing leaks",
         every_refused_allocation_is_reported_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("ref/config/python_number", cases, argc, argv);
}
