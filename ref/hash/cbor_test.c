/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the CBOR writer: bytes as cbor2 6.3.0 writes them with canonical=True. */
#include "ref/hash/cbor.h"

#include "ref/base/text.h"
#include "ref/base/unit.h"

static struct moon_text hex;

static void collect(void *context, const void *bytes, size_t length) {
    moon_text_hex(context, bytes, length);
}

static struct moon_sink begin(void) {
    moon_text_open(&hex, moon_memory_heap());
    return (struct moon_sink){collect, &hex};
}

static void check(const char *expected) {
    MOON_CHECK_TEXT(moon_text_value(&hex), expected);
    moon_text_close(&hex);
}

static void check_int(int64_t value, const char *expected) {
    moon_cbor_int(begin(), value);
    check(expected);
}

static void integers(void) {
    check_int(0, "00");
    check_int(23, "17");
    check_int(24, "1818");
    check_int(255, "18ff");
    check_int(256, "190100");
    check_int(65535, "19ffff");
    check_int(65536, "1a00010000");
    check_int(INT64_C(4294967295), "1affffffff");
    check_int(INT64_C(4294967296), "1b0000000100000000");
    check_int(INT64_MAX, "1b7fffffffffffffff");
    check_int(-1, "20");
    check_int(-24, "37");
    check_int(-25, "3818");
    check_int(INT64_MIN, "3b7fffffffffffffff");
}

static void check_big(const char *decimal, const char *expected) {
    struct moon_bigint value;
    MOON_CHECK_INT(moon_bigint_read(&value, decimal, strlen(decimal)), 0);
    moon_cbor_big(begin(), &value);
    check(expected);
}

static void big_integers(void) {
    check_big("0", "00");
    check_big("-1", "20");
    check_big("-256", "38ff");
    check_big("18446744073709551615", "1bffffffffffffffff");
    check_big("18446744073709551616", "c249010000000000000000");
    check_big("-18446744073709551616", "3bffffffffffffffff");
    check_big("-18446744073709551617", "c349010000000000000000");
    check_big("1180591620717411303424", "c249400000000000000000");
}

static void other_objects(void) {
    struct moon_error error;
    moon_cbor_none(begin());
    check("f6");
    moon_cbor_bytes(begin(), &(struct moon_string){.bytes = "ab", .length = 2});
    check("426162");
    moon_cbor_bytes(begin(), &(struct moon_string){.length = 0});
    check("40");
    moon_cbor_tuple(begin(), 3);
    check("83");
    moon_cbor_tuple(begin(), 300);
    check("99012c");
    MOON_CHECK_INT(moon_cbor_str(begin(), &(struct moon_string){.bytes = "\xc3\xa9", .length = 2}, &error), 0);
    check("62c3a9");
    MOON_CHECK_INT(moon_cbor_str(begin(), &(struct moon_string){.length = 0}, &error), 0);
    check("60");
}

static void check_surrogates(const char *text, const char *message) {
    struct moon_error error;
    struct moon_string string = {.bytes = text, .length = strlen(text)};
    MOON_CHECK_INT(moon_cbor_str(begin(), &string, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "UnicodeEncodeError");
    MOON_CHECK_TEXT(error.message, message);
    check("");
}

static void surrogates(void) {
    check_surrogates("\xed\xa0\x80",
                     "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed");
    check_surrogates("a\xc3\xa9\xed\xbf\xbfz",
                     "'utf-8' codec can't encode character '\\udfff' in position 2: surrogates not allowed");
    check_surrogates("a\xed\xa0\x80\xed\xa0\x81z\xed\xa0\x80",
                     "'utf-8' codec can't encode characters in position 1-2: surrogates not allowed");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"integers have the shortest head (HASH-041)", integers},
        {"integers beyond 64 bits are tagged byte strings (HASH-041)", big_integers},
        {"None, bytes, strings and tuples are definite and short (HASH-040)", other_objects},
        {"lone surrogates are refused as Python does (HASH-042)", surrogates},
        {NULL, NULL}};
    return moon_unit_main("cbor", cases, argc, argv);
}
