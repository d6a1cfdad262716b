/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the pickler: bytes as CPython 3.11 writes them. */
#include "ref/hash/pickle.h"

#include "ref/base/text.h"
#include "ref/base/unit.h"

#include <stdlib.h>

static void collect(void *context, const void *bytes, size_t length) {
    moon_text_bytes(context, bytes, length);
}

/* What a test writes: pickler, output and its hex. */
static struct moon_pickle pickle;
static struct moon_text bytes, hex;

static void begin(void) {
    moon_text_open(&bytes, moon_memory_heap());
    moon_text_open(&hex, moon_memory_heap());
    moon_pickle_open(&pickle, moon_memory_heap());
    moon_pickle_begin(&pickle, (struct moon_sink){collect, &bytes});
}

static const char *finish(void) {
    MOON_CHECK_INT(moon_pickle_finish(&pickle), 0);
    moon_text_hex(&hex, bytes.data, bytes.length);
    return moon_text_value(&hex);
}

static void end(void) {
    moon_pickle_close(&pickle);
    moon_pickle_close(&pickle);
    moon_text_close(&bytes);
    moon_text_close(&hex);
}

static struct moon_string string(const char *text, uint32_t identity) {
    return (struct moon_string){.bytes = text, .length = strlen(text), .identity = identity};
}

static void put_str(const char *text, uint32_t identity) {
    struct moon_string value = string(text, identity);
    moon_pickle_str(&pickle, &value);
}

static void put_bytes(const char *text, uint32_t identity) {
    struct moon_string value = string(text, identity);
    moon_pickle_bytes(&pickle, &value);
}

static void check_int(int64_t value, const char *expected) {
    begin();
    moon_pickle_int(&pickle, value);
    MOON_CHECK_TEXT(finish(), expected);
    end();
}

static void integers(void) {
    check_int(0, "80054b002e");
    check_int(255, "80054bff2e");
    check_int(256, "80059504000000000000004d00012e");
    check_int(65535, "80059504000000000000004dffff2e");
    check_int(65536, "80059506000000000000004a000001002e");
    check_int(-1, "80059506000000000000004affffffff2e");
    check_int(INT32_MAX, "80059506000000000000004affffff7f2e");
    check_int(INT32_MIN, "80059506000000000000004a000000802e");
    check_int(INT64_C(2147483648), "80059508000000000000008a0500000080002e");
    check_int(INT64_C(-2147483649), "80059508000000000000008a05ffffff7fff2e");
    check_int(INT64_C(4294967296), "80059508000000000000008a0500000000012e");
    check_int(INT64_C(-549755813888), "80059508000000000000008a0500000000802e");
    check_int(INT64_C(549755813888), "80059509000000000000008a060000000080002e");
    check_int(INT64_MAX, "8005950b000000000000008a08ffffffffffffff7f2e");
    check_int(INT64_MIN, "8005950b000000000000008a0800000000000000802e");
}

static void check_big(const char *decimal, const char *expected) {
    struct moon_bigint value;
    MOON_CHECK_INT(moon_bigint_read(&value, decimal, strlen(decimal)), 0);
    begin();
    moon_pickle_big(&pickle, &value);
    MOON_CHECK_TEXT(finish(), expected);
    end();
}

static void big_integers(void) {
    check_big("0", "80054b002e");
    check_big("-0", "80054b002e");
    check_big("-9223372036854775808", "8005950b000000000000008a0800000000000000802e");
    check_big("9223372036854775808", "8005950c000000000000008a090000000000000080002e");
    check_big("18446744073709551616", "8005950c000000000000008a090000000000000000012e");
    check_big("-9223372036854775809", "8005950c000000000000008a09ffffffffffffff7fff2e");
    check_big("-18446744073709551616", "8005950c000000000000008a090000000000000000ff2e");
    check_big("-604462909807314587353088", "8005950d000000000000008a0a000000000000000000802e"); /* -2^79 */
}

static void very_big_integers(void) {
    char decimal[MOON_BIGINT_DIGITS_MAX + 2];
    struct moon_bigint value;
    memset(decimal, '9', sizeof decimal);
    begin();
    MOON_CHECK_INT(moon_bigint_read(&value, decimal, MOON_BIGINT_DIGITS_MAX), 0);
    moon_pickle_big(&pickle, &value);
    finish();
    CU_ASSERT(strncmp(hex.data, "80059500070000000000008bfa060000", 32) == 0); /* LONG4 of 1786 bytes */
    end();
    MOON_CHECK_INT(moon_bigint_read(&value, decimal, MOON_BIGINT_DIGITS_MAX + 1), MOON_ERR_LIMIT);
    MOON_CHECK_INT(moon_bigint_read(&value, "", 0), MOON_ERR_SYNTAX);
    MOON_CHECK_INT(moon_bigint_read(&value, "-", 1), MOON_ERR_SYNTAX);
    MOON_CHECK_INT(moon_bigint_read(&value, "1 ", 2), MOON_ERR_SYNTAX);
    MOON_CHECK_INT(moon_bigint_read(&value, "1a", 2), MOON_ERR_SYNTAX);
}

static void strings_and_bytes(void) {
    begin();
    put_str("0", 0);
    MOON_CHECK_TEXT(finish(), "80059505000000000000008c0130942e");
    end();
    begin();
    put_bytes("ab", 0);
    MOON_CHECK_TEXT(finish(), "800595060000000000000043026162942e");
    end();
    begin();
    put_str("\xed\xa0\x80", 0); /* a lone surrogate */
    MOON_CHECK_TEXT(finish(), "80059507000000000000008c03eda080942e");
    end();
}

static void long_strings(void) {
    char text[301];
    memset(text, 'x', 300);
    text[300] = 0;
    begin();
    put_str(text, 0);
    finish();
    CU_ASSERT(strncmp(hex.data, "8005953301000000000000582c01000078", 34) == 0);
    end();
    text[256] = 0;
    begin();
    put_bytes(text, 0);
    finish();
    CU_ASSERT(strncmp(hex.data, "8005950701000000000000420001000078", 34) == 0);
    end();
}

static void tuples(void) {
    static const char *const expected[] = {
        "8005292e", "80059505000000000000004b0785942e", "80059507000000000000004b074b0786942e",
        "80059509000000000000004b074b074b0787942e", "8005950c00000000000000284b074b074b074b0774942e"};
    for (size_t count = 0; count < 5; count++) {
        begin();
        moon_pickle_tuple_begin(&pickle, count);
        for (size_t i = 0; i < count; i++)
            moon_pickle_int(&pickle, 7);
        moon_pickle_tuple_end(&pickle, count);
        MOON_CHECK_TEXT(finish(), expected[count]);
        end();
    }
}

static void same_object(void) {
    begin();
    moon_pickle_tuple_begin(&pickle, 4);
    put_str("ab", 20);
    put_str("ab", 21);
    put_str("ab", 20);
    put_str("ab", 0);
    moon_pickle_tuple_end(&pickle, 4);
    MOON_CHECK_TEXT(finish(), "8005951500000000000000288c026162948c0261629468008c0261629474942e");
    end();
    begin();
    moon_pickle_tuple_begin(&pickle, 3);
    put_bytes("ab", 20);
    put_str("ab", 20);
    put_bytes("ab", 20);
    moon_pickle_tuple_end(&pickle, 3);
    MOON_CHECK_TEXT(finish(), "8005950f0000000000000043026162948c02616294680087942e");
    end();
}

/* Checked against pickle.dumps((x, x), protocol=5) of CPython 3.11. */
static void check_pair(bool is_string, const char *text, const char *expected) {
    begin();
    moon_pickle_tuple_begin(&pickle, 2);
    for (int i = 0; i < 2; i++)
        is_string ? put_str(text, 0) : put_bytes(text, 0);
    moon_pickle_tuple_end(&pickle, 2);
    MOON_CHECK_TEXT(finish(), expected);
    end();
}

static void singletons(void) {
    check_pair(true, "", "80059508000000000000008c0094680086942e");
    check_pair(true, "a", "80059509000000000000008c016194680086942e");
    check_pair(true, "\xc3\xbf", "8005950a000000000000008c02c3bf94680086942e");
    check_pair(true, "\xc4\x80", "8005950d000000000000008c02c480948c02c4809486942e");
    check_pair(true, "aa", "8005950d000000000000008c026161948c0261619486942e");
    check_pair(false, "", "8005950800000000000000430094680086942e");
    check_pair(false, "a", "800595090000000000000043016194680086942e");
    check_pair(false, "aa", "8005950d000000000000004302616194430261619486942e");
}

static void wide_memo(void) {
    begin();
    moon_pickle_tuple_begin(&pickle, 301);
    for (uint32_t i = 0; i < 300; i++)
        put_str("ab", 20 + i);
    put_str("ab", 20 + 255);
    moon_pickle_tuple_end(&pickle, 301);
    finish();
    MOON_CHECK_TEXT(hex.data + hex.length - 10, "68ff74942e");
    end();
    begin();
    moon_pickle_tuple_begin(&pickle, 301);
    for (uint32_t i = 0; i < 300; i++)
        put_str("ab", 20 + i);
    put_str("ab", 20 + 256);
    moon_pickle_tuple_end(&pickle, 301);
    finish();
    MOON_CHECK_TEXT(hex.data + hex.length - 16, "6a0001000074942e");
    end();
}

static void frames(void) {
    begin();
    moon_pickle_tuple_begin(&pickle, 20000);
    for (int64_t i = 0; i < 20000; i++)
        moon_pickle_int(&pickle, 70000);
    moon_pickle_tuple_end(&pickle, 20000);
    finish();
    /* mark and 13107 ints of 5 bytes are 65536 bytes: the frame ends before the next one */
    CU_ASSERT(strncmp(hex.data, "800595000001000000000028", 24) == 0);
    CU_ASSERT(strncmp(hex.data + 2 * (size_t)(2 + 9 + 65536), "95a486000000000000", 18) == 0);
    end();
}

static void values_outside_frames(void) {
    char *text = malloc(65537);
    memset(text, 'x', 65536);
    text[65536] = 0;
    begin();
    moon_pickle_tuple_begin(&pickle, 2);
    moon_pickle_int(&pickle, 1);
    put_str(text, 0);
    moon_pickle_tuple_end(&pickle, 2);
    finish();
    CU_ASSERT(strncmp(hex.data, "80054b015800000100", 18) == 0);
    MOON_CHECK_TEXT(hex.data + hex.length - 26, "9504000000000000009486942e");
    end();
    begin();
    put_bytes(text, 0);
    finish();
    MOON_CHECK_TEXT(hex.data + hex.length - 8, "7878942e"); /* too short for a frame */
    end();
    text[65535] = 0; /* one less stays inside */
    begin();
    put_bytes(text, 0);
    finish();
    CU_ASSERT(strncmp(hex.data, "800595060001000000000042ffff0000", 32) == 0);
    end();
    free(text);
}

static void memo_is_forgotten(void) {
    begin();
    put_str("ab", 20);
    MOON_CHECK_INT(moon_pickle_finish(&pickle), 0);
    moon_text_clear(&bytes);
    moon_pickle_begin(&pickle, (struct moon_sink){collect, &bytes});
    put_str("ab", 20);
    MOON_CHECK_TEXT(finish(), "80059506000000000000008c026162942e");
    end();
}

static void write_much(void) {
    static const char text[70000] = {1};
    moon_pickle_tuple_begin(&pickle, 61);
    for (uint32_t i = 0; i < 20; i++) {
        put_str("ab", 20 + i);
        put_bytes("cd", 20 + i);
        moon_pickle_int(&pickle, INT64_MAX);
    }
    moon_pickle_str(&pickle, &(struct moon_string){.bytes = text, .length = sizeof text});
    moon_pickle_none(&pickle);
    moon_pickle_tuple_end(&pickle, 61);
}

static void memory_refused(void) {
    int status = MOON_ERR_MEMORY;
    for (uint64_t n = 1; status; n++) {
        struct moon_memory_failing failing;
        begin();
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_pickle_open(&pickle, &failing.memory);
        moon_pickle_begin(&pickle, (struct moon_sink){collect, &bytes});
        write_much();
        status = moon_pickle_finish(&pickle);
        CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
        CU_ASSERT(status == 0 || pickle.failed);
        end();
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT_FATAL(n < 100);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"integers take the shortest opcode (HASH-022)", integers},
        {"integers beyond 64 bits are minimal two's complement (HASH-022)", big_integers},
        {"integers of 256 bytes and more take the long opcode, bad digits are refused", very_big_integers},
        {"strings and bytes are short up to 255 bytes (HASH-023)", strings_and_bytes},
        {"longer strings and bytes have four length bytes (HASH-023)", long_strings},
        {"tuples of up to three items have no mark (HASH-023)", tuples},
        {"the same object again is a reference, an equal one is not (HASH-024, HASH-025)", same_object},
        {"empty and one-character strings and bytes are always the same object (HASH-026)", singletons},
        {"references beyond memo 255 are wide (HASH-024)", wide_memo},
        {"a full frame ends before the next object (HASH-020)", frames},
        {"values of 64 KiB stand outside of frames (HASH-021)", values_outside_frames},
        {"a new object knows nothing of the last one's memo", memo_is_forgotten},
        {"refused memory is reported and leaks nothing", memory_refused},
        {NULL, NULL}};
    return moon_unit_main("pickle", cases, argc, argv);
}
