/* SPDX-License-Identifier: Apache-2.0 */
/* For the fuzzers only: an object drawn from fuzz input, written through the writer under test and as a text to compare
 * with; and the course of such a run. */
#ifndef MOON_HASH_FUZZ_OBJECT_H
#define MOON_HASH_FUZZ_OBJECT_H

#include "ref/base/cursor.h"
#include "ref/base/text.h"
#include "ref/hash/annotate.h"
#include "ref/hash/preimage.h"

#include <assert.h>
#include <string.h>

enum { FUZZ_DEPTH_MAX = 12, FUZZ_INPUT_BYTES_MAX = 4096, FUZZ_STRING_BYTES_MAX = 66000 };

/* One value as text: kind, length, content. The decoders of the fuzzers write the same. */
static inline void fuzz_tell(struct moon_text *text, char kind, const void *bytes, size_t length) {
    moon_text_format(text, "%c%zu:", kind, length);
    moon_text_bytes(text, bytes, length);
}

static inline void fuzz_tell_int(struct moon_text *text, int64_t value) {
    moon_text_format(text, "i%lld;", (long long)value);
}

/* Content of a string or bytes object; objects of equal identity have equal content. */
static inline struct moon_string fuzz_string(struct moon_cursor *input, char *room) {
    static const uint32_t lengths[] = {0, 1, 2, 3, 23, 24, 32, 255, 256, 257, 1000, 65535, 65536};
    uint8_t selector = moon_cursor_u8(input), letter = moon_cursor_u8(input);
    letter = selector & 1 ? letter % 8 : letter;
    uint32_t identity = selector & 1 ? MOON_IDENTITY_TAGS_END + letter : 0;
    size_t length = lengths[identity ? letter : selector / 2 % 11];
    if (selector == 0xfe || selector == 0xfc) /* rarely, for they are slow */
        length = lengths[11 + letter % 2];
    memset(room, 'a' + letter % 26, length);
    return (struct moon_string){.bytes = room, .length = length, .identity = identity};
}

/* Draws one object: a tuple that nests, told as it is written. Missing input becomes None. */
static inline void fuzz_write_object(struct moon_cursor *input, struct moon_preimage *preimage,
                                     struct moon_text *told) {
    static char room[FUZZ_STRING_BYTES_MAX];
    size_t counts[FUZZ_DEPTH_MAX] = {1}, left[FUZZ_DEPTH_MAX] = {1}, depth = 0;
    do {
        uint8_t kind = moon_cursor_u8(input);
        left[depth]--;
        if (kind % 5 == 1) {
            int64_t value = (int64_t)moon_cursor_u64_le(input) >> (kind / 5 * 2 % 64);
            moon_preimage_int(preimage, value);
            fuzz_tell_int(told, value);
        } else if (kind % 5 == 2 || kind % 5 == 3) {
            struct moon_string string = fuzz_string(input, room);
            kind % 5 == 2 ? moon_preimage_str(preimage, &string) : moon_preimage_bytes(preimage, &string);
            fuzz_tell(told, kind % 5 == 2 ? 's' : 'b', string.bytes, string.length);
        } else if (kind % 5 == 4 && depth + 1 < FUZZ_DEPTH_MAX) {
            depth++;
            counts[depth] = left[depth] = kind / 5;
            moon_preimage_tuple_begin(preimage, counts[depth]);
            moon_text_format(told, "(%zu", counts[depth]);
        } else {
            moon_preimage_none(preimage);
            moon_text_char(told, 'n');
        }
        while (depth > 0 && left[depth] == 0)
            moon_preimage_tuple_end(preimage, counts[depth--]);
    } while (depth > 0);
}

/* What one run writes, in the order of time. */
struct fuzz_texts {
    struct moon_text written;   /* by the writer under test */
    struct moon_text told;      /* the object that it was given */
    struct moon_text read_back; /* the object that the fuzzer's own reader finds in `written` */
    struct moon_text listing;   /* what the annotator says */
};

static inline void fuzz_collect(void *context, const void *bytes, size_t length) {
    moon_text_bytes(context, bytes, length);
}

/* One run: `read_back` decodes texts->written and asserts that it means what texts->told tells. */
static inline int fuzz_writer(enum moon_serialisation format, const uint8_t *data, size_t size,
                              struct fuzz_texts *texts, void (*read_back)(void)) {
    struct moon_text *const all[] = {&texts->written, &texts->told, &texts->read_back, &texts->listing};
    struct moon_preimage preimage;
    struct moon_cursor input;
    if (size > FUZZ_INPUT_BYTES_MAX)
        return 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        moon_text_open(all[i], moon_memory_heap());
    moon_annotate(format, data, size, &texts->listing); /* any bytes: must only survive */
    moon_preimage_open(&preimage, format, moon_memory_heap());
    moon_cursor_open(&input, data, size);
    moon_preimage_begin(&preimage, (struct moon_sink){fuzz_collect, &texts->written}, NULL);
    fuzz_write_object(&input, &preimage, &texts->told);
    int status = moon_preimage_finish(&preimage);
    assert(status == 0);
    read_back();
    status = moon_annotate(format, texts->written.data, texts->written.length, &texts->listing);
    assert(status == 0);
    moon_preimage_close(&preimage);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        moon_text_close(all[i]);
    return 0;
}

#endif
