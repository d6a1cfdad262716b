/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the common writer; with --probe it is the C side of pickle_differential.py. */
#include "ref/hash/preimage.h"

#include "ref/base/cursor.h"
#include "ref/base/text.h"
#include "ref/base/unit.h"
#include "ref/hash/cbor.h"

#include <stdlib.h>

static void collect(void *context, const void *bytes, size_t length) {
    moon_text_bytes(context, bytes, length);
}

static void write_all(struct moon_preimage *preimage) {
    moon_preimage_tuple_begin(preimage, 4);
    moon_preimage_none(preimage);
    moon_preimage_int(preimage, 7);
    moon_preimage_str(preimage, &(struct moon_string){.bytes = "ab", .length = 2});
    moon_preimage_bytes(preimage, &(struct moon_string){.bytes = "cd", .length = 2});
    moon_preimage_tuple_end(preimage, 4);
}

static void check(enum moon_serialisation serialisation, const char *expected) {
    struct moon_preimage preimage;
    struct moon_text bytes, hex;
    moon_text_open(&bytes, moon_memory_heap());
    moon_text_open(&hex, moon_memory_heap());
    moon_preimage_open(&preimage, serialisation, moon_memory_heap());
    moon_preimage_begin(&preimage, (struct moon_sink){collect, &bytes}, NULL);
    write_all(&preimage);
    MOON_CHECK_INT(moon_preimage_finish(&preimage), 0);
    moon_text_hex(&hex, bytes.data, bytes.length);
    MOON_CHECK_TEXT(moon_text_value(&hex), expected);
    moon_preimage_close(&preimage);
    moon_text_close(&bytes);
    moon_text_close(&hex);
}

static void both(void) {
    check(MOON_PICKLE, "8005951100000000000000284e4b078c02616294430263649474942e");
    check(MOON_CBOR, "84f607626162426364");
}

static void after_a_refusal(void) {
    struct moon_preimage preimage;
    struct moon_error error;
    struct moon_text bytes;
    moon_text_open(&bytes, moon_memory_heap());
    moon_preimage_open(&preimage, MOON_CBOR, moon_memory_heap());
    moon_preimage_begin(&preimage, (struct moon_sink){collect, &bytes}, &error);
    moon_preimage_str(&preimage, &(struct moon_string){.bytes = "\xed\xa0\x80", .length = 3});
    write_all(&preimage);
    MOON_CHECK_INT(moon_preimage_finish(&preimage), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "UnicodeEncodeError");
    MOON_CHECK_INT(bytes.length, 0);
    moon_preimage_close(&preimage);
    moon_text_close(&bytes);
}

/* ---- the probe ---- */

enum { PROBE_DEPTH_MAX = 64, PROBE_BYTES_MAX = 1 << 24 };

static void put_decimal(struct moon_preimage *preimage, struct moon_cursor *program) {
    struct moon_bigint value;
    uint32_t length = moon_cursor_u32_le(program);
    if (moon_bigint_read(&value, (const char *)moon_cursor_bytes(program, length), length) != 0)
        abort();
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_big(&preimage->pickle, &value);
    else if (preimage->status == 0)
        moon_cbor_big(preimage->sink, &value);
}

static struct moon_string take_string(struct moon_cursor *program) {
    struct moon_string string;
    string.identity = moon_cursor_u32_le(program);
    string.length = moon_cursor_u32_le(program);
    string.bytes = (const char *)moon_cursor_bytes(program, string.length);
    if (!string.bytes)
        abort();
    return string;
}

/* Program of an object: N; I value (i64); D length, digits; S and B identity, length, content; T count, then the items.
 */
static void run_program(struct moon_cursor *program, struct moon_preimage *preimage) {
    size_t counts[PROBE_DEPTH_MAX], left[PROBE_DEPTH_MAX] = {0}, depth = 0;
    struct moon_string string;
    do {
        uint8_t kind = moon_cursor_u8(program);
        if (depth > 0)
            left[depth]--;
        if (kind == 'I') {
            moon_preimage_int(preimage, (int64_t)moon_cursor_u64_le(program));
        } else if (kind == 'D') {
            put_decimal(preimage, program);
        } else if (kind == 'S' || kind == 'B') {
            string = take_string(program);
            kind == 'S' ? moon_preimage_str(preimage, &string) : moon_preimage_bytes(preimage, &string);
        } else if (kind == 'T' && depth + 1 < PROBE_DEPTH_MAX) {
            depth++;
            counts[depth] = left[depth] = moon_cursor_u32_le(program);
            moon_preimage_tuple_begin(preimage, counts[depth]);
        } else {
            moon_preimage_none(preimage);
        }
        while (depth > 0 && left[depth] == 0)
            moon_preimage_tuple_end(preimage, counts[depth--]);
    } while (depth > 0);
}

static bool probe_one(struct moon_preimage writers[2], uint8_t *room) {
    struct moon_cursor head, program;
    uint8_t bytes[5];
    struct moon_text out;
    if (fread(bytes, 1, sizeof bytes, stdin) != sizeof bytes)
        return false;
    moon_cursor_open(&head, bytes + 1, 4);
    size_t length = moon_cursor_u32_le(&head);
    if (length > PROBE_BYTES_MAX || fread(room, 1, length, stdin) != length)
        abort();
    struct moon_preimage *preimage = &writers[bytes[0] & 1];
    moon_text_open(&out, moon_memory_heap());
    moon_cursor_open(&program, room, length);
    moon_preimage_begin(preimage, (struct moon_sink){collect, &out}, NULL);
    run_program(&program, preimage);
    int status = moon_preimage_finish(preimage);
    uint32_t answer = status ? UINT32_MAX : (uint32_t)out.length;
    for (int i = 0; i < 4; i++)
        putchar((int)(answer >> (8 * i) & 0xff));
    if (status == 0)
        fwrite(out.data, 1, out.length, stdout);
    fflush(stdout);
    moon_text_close(&out);
    return true;
}

/* Records "serialisation (1 byte), length (4 bytes, little endian), program" on stdin; "length, bytes" on stdout,
 * length 2^32-1 for a refusal. */
static int probe(void) {
    struct moon_preimage writers[2];
    uint8_t *room = malloc(PROBE_BYTES_MAX);
    for (int i = 0; i < 2; i++)
        moon_preimage_open(&writers[i], i ? MOON_CBOR : MOON_PICKLE, moon_memory_heap());
    while (room && probe_one(writers, room))
        continue;
    for (int i = 0; i < 2; i++)
        moon_preimage_close(&writers[i]);
    free(room);
    return 0;
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"an object is written in both serialisations", both},
        {"after a refusal nothing more is written (HASH-042)", after_a_refusal},
        {NULL, NULL}};
    if (argc == 2 && strcmp(argv[1], "--probe") == 0)
        return probe();
    return moon_unit_main("preimage", cases, argc, argv);
}
