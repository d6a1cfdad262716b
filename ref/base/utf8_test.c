/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of UTF-8 with surrogates. */
#include "ref/base/unit.h"
#include "ref/base/utf8.h"

static void every_code_point_goes_round(void) {
    unsigned wrong = 0;
    for (uint32_t code_point = 0; code_point <= 0x10FFFF; code_point++) {
        char bytes[MOON_UTF8_BYTES_MAX];
        uint32_t back = 0;
        size_t count = moon_utf8_encode(code_point, bytes);
        wrong += count == 0 || moon_utf8_decode(bytes, count, &back) != count || back != code_point;
        for (size_t cut = 0; cut < count; cut++)
            wrong += moon_utf8_decode(bytes, cut, &back) != 0;
    }
    MOON_CHECK_INT(wrong, 0);
}

static void lengths_change_where_they_should(void) {
    static const struct {
        uint32_t code_point;
        size_t count;
        const char *bytes;
    } rows[] = {
        {0, 1, "\0"},
        {0x7F, 1, "\x7F"},
        {0x80, 2, "\xC2\x80"},
        {0x7FF, 2, "\xDF\xBF"},
        {0x800, 3, "\xE0\xA0\x80"},
        {0xD800, 3, "\xED\xA0\x80"},
        {0xDFFF, 3, "\xED\xBF\xBF"},
        {0xFFFF, 3, "\xEF\xBF\xBF"},
        {0x10000, 4, "\xF0\x90\x80\x80"},
        {0x10FFFF, 4, "\xF4\x8F\xBF\xBF"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char bytes[MOON_UTF8_BYTES_MAX];
        MOON_CHECK_INT(moon_utf8_encode(rows[i].code_point, bytes), rows[i].count);
        CU_ASSERT(memcmp(bytes, rows[i].bytes, rows[i].count) == 0);
    }
    char bytes[MOON_UTF8_BYTES_MAX];
    MOON_CHECK_INT(moon_utf8_encode(0x110000, bytes), 0);
    MOON_CHECK_INT(moon_utf8_encode(UINT32_MAX, bytes), 0);
}

static void wrong_forms_are_refused(void) {
    static const char *const wrong[] = {
        "\x80",
        "\xBF", /* continuation first */
        "\xC0\x80",
        "\xC1\xBF", /* overlong, two bytes */
        "\xE0\x80\x80",
        "\xE0\x9F\xBF", /* three */
        "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", /* four */
        "\xF4\x90\x80\x80",
        "\xF7\xBF\xBF\xBF", /* above 10FFFF */
        "\xF8\x88\x80\x80",
        "\xFE\x80\x80\x80",
        "\xFF\x80\x80\x80", /* no lead byte */
        "\xC3(",
        "\xE2\x82(",
        "\xE2(\xAC",
        "\xF0\x9F\x98(", /* continuation missing */
        "\xC3\xC3",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint32_t code_point;
        MOON_CHECK_INT(moon_utf8_decode(wrong[i], strlen(wrong[i]), &code_point), 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every code point goes round, and is refused when cut", every_code_point_goes_round},
        {"lengths change where they should", lengths_change_where_they_should},
        {"wrong forms are refused", wrong_forms_are_refused},
        {0},
    };
    return moon_unit_main("utf8", cases, argc, argv);
}
