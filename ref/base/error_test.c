/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of status codes and error values. */
#include "ref/base/error.h"
#include "ref/base/unit.h"

static void failing_fills_the_error_and_returns_the_status(void) {
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_fail(&error, MOON_ERR_RANGE, "a.json:1:2", "size %d is not positive", -3), MOON_ERR_RANGE);
    MOON_CHECK_INT(error.status, MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.where, "a.json:1:2");
    MOON_CHECK_TEXT(error.type, "");
    MOON_CHECK_TEXT(error.message, "size -3 is not positive");
}

static void an_error_may_be_null_and_the_place_unknown(void) {
    struct moon_error error = {.where = "old"};
    MOON_CHECK_INT(moon_fail(NULL, MOON_ERR_IO, NULL, "x"), MOON_ERR_IO);
    MOON_CHECK_INT(moon_refuse(NULL, "ValueError", "x"), MOON_ERR_REFUSED);
    moon_fail(&error, MOON_ERR_IO, NULL, "x");
    MOON_CHECK_TEXT(error.where, "");
}

static void a_message_is_one_line_but_a_refusal_is_verbatim(void) {
    struct moon_error error = {0};
    moon_fail(&error, MOON_ERR_IO, NULL, "two\nlines\tand a tab");
    MOON_CHECK_TEXT(error.message, "two lines and a tab");
    MOON_CHECK_INT(moon_refuse(&error, "ValueError", "two\nlines: %s", "x"), MOON_ERR_REFUSED);
    MOON_CHECK_INT(error.status, MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "ValueError");
    MOON_CHECK_TEXT(error.message, "two\nlines: x");
}

static void a_message_may_quote_the_error_it_replaces(void) {
    struct moon_error error = {0};
    moon_fail(&error, MOON_ERR_IO, "there", "below");
    moon_fail(&error, MOON_ERR_IO, error.where, "above: %s", error.message);
    MOON_CHECK_TEXT(error.where, "there");
    MOON_CHECK_TEXT(error.message, "above: below");
}

/* `filler` bytes 'a', then `tail` over and over until the text is too long for any buffer of an error. */
static void check_cut(size_t filler, const char *tail, size_t message_length, size_t where_length) {
    char text[MOON_ERROR_MESSAGE_BYTES * 2] = "";
    memset(text, 'a', filler);
    for (size_t at = filler; at + strlen(tail) < sizeof text; at += strlen(tail))
        memcpy(text + at, tail, strlen(tail));
    struct moon_error error;
    moon_fail(&error, MOON_ERR_IO, text, "%s", text);
    MOON_CHECK_INT(strlen(error.message), message_length);
    MOON_CHECK_INT(strlen(error.where), where_length);
    CU_ASSERT(memcmp(error.message, text, message_length) == 0);
    CU_ASSERT(memcmp(error.where, text, where_length) == 0);
}

static void a_long_text_is_cut_between_characters(void) {
    check_cut(0, "a", 1023, 255);
    check_cut(0, "\xC3\xA9", 1022, 254);
    check_cut(1, "\xC3\xA9", 1023, 255);
    check_cut(0, "\xE2\x82\xAC", 1023, 255);
    check_cut(1, "\xE2\x82\xAC", 1021, 253);
    check_cut(2, "\xE2\x82\xAC", 1022, 254);
    check_cut(0, "\xF0\x9F\x98\x80", 1020, 252);
    check_cut(1, "\xF0\x9F\x98\x80", 1021, 253);
    check_cut(2, "\xF0\x9F\x98\x80", 1022, 254);
    check_cut(3, "\xF0\x9F\x98\x80", 1023, 255);
    check_cut(0, "\x80", 1023, 255); /* no UTF-8 at all: kept */
}

static void a_long_class_is_cut(void) {
    struct moon_error error;
    moon_refuse(&error, "AClassWhoseNameIsMuchLongerThanTheBuffer", "x");
    MOON_CHECK_TEXT(error.type, "AClassWhoseNameIsMuchLongerThan");
}

static void every_status_has_a_name_and_a_text(void) {
    MOON_CHECK_TEXT(moon_status_name(0), "MOON_OK");
    MOON_CHECK_TEXT(moon_status_text(0), "success");
    MOON_CHECK_TEXT(moon_status_name(MOON_ERR_REFUSED), "MOON_ERR_REFUSED");
    for (int status = 0; status >= MOON_ERR_REFUSED; status--) {
        CU_ASSERT(strncmp(moon_status_name(status), "MOON_", 5) == 0);
        CU_ASSERT(strcmp(moon_status_text(status), "unknown status") != 0);
    }
    MOON_CHECK_TEXT(moon_status_name(1), "unknown status");
    MOON_CHECK_TEXT(moon_status_text(MOON_ERR_REFUSED - 1), "unknown status");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"failing fills the error and returns the status", failing_fills_the_error_and_returns_the_status},
        {"an error may be NULL and the place unknown", an_error_may_be_null_and_the_place_unknown},
        {"a message is one line, but a refusal is verbatim", a_message_is_one_line_but_a_refusal_is_verbatim},
        {"a message may quote the error it replaces", a_message_may_quote_the_error_it_replaces},
        {"a long text is cut between characters", a_long_text_is_cut_between_characters},
        {"a long class is cut", a_long_class_is_cut},
        {"every status has a name and a text", every_status_has_a_name_and_a_text},
        {0},
    };
    return moon_unit_main("error", cases, argc, argv);
}
