/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the growing text and of hex. */
#include "ref/base/text.h"

#include "ref/base/error.h"
#include "ref/base/unit.h"

static void appends_follow_one_another(void) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_TEXT(moon_text_value(&text), "");
    moon_text_clear(&text);
    moon_text_bytes(&text, NULL, 0);
    MOON_CHECK_TEXT(moon_text_value(&text), "");
    moon_text_string(&text, "ab");
    moon_text_char(&text, 'c');
    moon_text_bytes(&text, "defg", 3);
    moon_text_repeat(&text, '-', 3);
    moon_text_repeat(&text, '-', 0);
    moon_text_format(&text, "%d/%s", 12, "x");
    moon_text_hex(&text, "\x00\x1F\xA5", 3);
    moon_text_hex(&text, NULL, 0);
    MOON_CHECK_TEXT(moon_text_value(&text), "abcdef---12/x001fa5");
    MOON_CHECK_INT(text.length, 19);
    MOON_CHECK_INT(text.failed, false);
    moon_text_clear(&text);
    MOON_CHECK_INT(text.length, 0);
    MOON_CHECK_TEXT(moon_text_value(&text), "");
    moon_text_bytes(&text, "a\0b", 3);
    MOON_CHECK_INT(text.length, 3);
    CU_ASSERT(memcmp(text.data, "a\0b", 4) == 0);
    moon_text_close(&text);
    moon_text_close(&text);
    MOON_CHECK_TEXT(moon_text_value(&text), "");
}

static void a_text_grows_by_doubling(void) {
    struct moon_memory_failing counting;
    struct moon_text text;
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    moon_text_open(&text, &counting.memory);
    for (int i = 0; i < 100000; i++)
        moon_text_char(&text, (char)('a' + i % 26));
    MOON_CHECK_INT(text.length, 100000);
    CU_ASSERT(counting.requests < 20);
    bool same = true;
    for (int i = 0; i < 100000; i++)
        same = same && text.data[i] == (char)('a' + i % 26);
    CU_ASSERT(same);
    moon_text_close(&text);
    MOON_CHECK_INT(counting.held_bytes, 0);
}

static void a_refusal_is_remembered_and_changes_nothing(void) {
    static const char expected[] = "0123456789012345678901234567890123456789012345678901234567890123456789abcx0a";
    for (uint64_t n = 1;; n++) {
        struct moon_memory_failing failing;
        struct moon_text text;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_text_open(&text, &failing.memory);
        for (int i = 0; i < 7; i++)
            moon_text_string(&text, "0123456789");
        moon_text_format(&text, "%s", "abc");
        moon_text_repeat(&text, 'x', 1);
        moon_text_hex(&text, "\n", 1);
        CU_ASSERT(text.failed == (failing.requests >= n));
        CU_ASSERT(memcmp(moon_text_value(&text), expected, text.length) == 0);
        size_t length = text.length;
        moon_text_char(&text, 'y');
        MOON_CHECK_INT(text.length, text.failed ? length : length + 1);
        bool failed = text.failed;
        moon_text_clear(&text);
        MOON_CHECK_INT(text.failed, failed);
        moon_text_close(&text);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (!failed)
            break;
    }
}

static void sizes_that_overflow_fail(void) {
    for (int way = 0; way < 4; way++) {
        struct moon_memory_failing failing;
        struct moon_text text;
        moon_memory_failing_init(&failing, moon_memory_heap(), 2);
        moon_text_open(&text, &failing.memory);
        moon_text_char(&text, 'a');
        if (way == 0)
            moon_text_bytes(&text, NULL, SIZE_MAX);
        else if (way == 1)
            moon_text_repeat(&text, ' ', SIZE_MAX - 1);
        else if (way == 2)
            moon_text_hex(&text, NULL, SIZE_MAX / 2 + 1);
        else
            moon_text_repeat(&text, ' ', SIZE_MAX - 4); /* representable, but beyond any doubling */
        MOON_CHECK_INT(text.failed, true);
        MOON_CHECK_INT(failing.requests, way == 3 ? 2 : 1);
        MOON_CHECK_TEXT(moon_text_value(&text), "a");
        moon_text_close(&text);
    }
}

static void hex_decodes_both_cases_and_nothing_else(void) {
    uint8_t out[4] = {0};
    MOON_CHECK_INT(moon_hex_decode("00ffA5cB", 8, out), MOON_OK);
    CU_ASSERT(memcmp(out, "\x00\xFF\xA5\xCB", 4) == 0);
    MOON_CHECK_INT(moon_hex_decode("", 0, out), MOON_OK);
    MOON_CHECK_INT(moon_hex_decode("abc", 3, out), MOON_ERR_SYNTAX);
    static const char *const wrong[] = {"0g", "g0", "0/", "0:", "0@", "0G", "0`", " 0", "0\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        MOON_CHECK_INT(moon_hex_decode(wrong[i], 2, out), MOON_ERR_SYNTAX);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"appends follow one another", appends_follow_one_another},
        {"a text grows by doubling", a_text_grows_by_doubling},
        {"a refusal is remembered and changes nothing", a_refusal_is_remembered_and_changes_nothing},
        {"sizes that overflow fail", sizes_that_overflow_fail},
        {"hex decodes both cases and nothing else", hex_decodes_both_cases_and_nothing_else},
        {0},
    };
    return moon_unit_main("text", cases, argc, argv);
}
