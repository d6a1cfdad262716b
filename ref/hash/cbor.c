/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical CBOR of None, int, str, bytes and tuple: byte for byte what cbor2 writes with canonical=True. */
#include "ref/hash/cbor.h"

#include "ref/base/utf8.h"

#include <assert.h>

enum { MAJOR_UNSIGNED = 0, MAJOR_NEGATIVE = 1, MAJOR_BYTES = 2, MAJOR_STRING = 3, MAJOR_ARRAY = 4 };
enum { SIMPLE_NULL = 0xf6, TAG_BIG_POSITIVE = 0xc2, TAG_BIG_NEGATIVE = 0xc3 };

/* Major type and argument in the shortest form. */
static void head(struct moon_sink sink, unsigned major, uint64_t argument) {
    uint8_t out[9];
    unsigned bytes = argument <= UINT8_MAX ? 1 : argument <= UINT16_MAX ? 2 : argument <= UINT32_MAX ? 4 : 8;
    if (argument < 24) {
        out[0] = (uint8_t)(major << 5 | argument);
        sink.write(sink.context, out, 1);
        return;
    }
    unsigned additional = bytes == 1 ? 24 : bytes == 2 ? 25 : bytes == 4 ? 26 : 27;
    out[0] = (uint8_t)(major << 5 | additional);
    for (unsigned i = 0; i < bytes; i++)
        out[1 + i] = (uint8_t)(argument >> (8 * (bytes - 1 - i)) & 0xff);
    sink.write(sink.context, out, 1 + bytes);
}

void moon_cbor_none(struct moon_sink sink) {
    static const uint8_t null = SIMPLE_NULL;
    sink.write(sink.context, &null, 1);
}

void moon_cbor_int(struct moon_sink sink, int64_t value) {
    if (value >= 0)
        head(sink, MAJOR_UNSIGNED, (uint64_t)value);
    else
        head(sink, MAJOR_NEGATIVE, (uint64_t)(-1 - value));
}

void moon_cbor_big(struct moon_sink sink, const struct moon_bigint *value) {
    uint8_t bytes[sizeof value->magnitude] = {0}; /* big endian; of -1 - n for a negative n */
    size_t length = value->magnitude_bytes;
    unsigned borrow = value->negative ? 1 : 0;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = value->magnitude[i];
        bytes[length - 1 - i] = (uint8_t)((byte - borrow) & 0xff);
        borrow = byte < borrow ? 1 : 0;
    }
    size_t skip = 0;
    while (skip < length && bytes[skip] == 0)
        skip++;
    if (length - skip <= 8) {
        uint64_t argument = 0;
        for (size_t i = skip; i < length; i++)
            argument = argument << 8 | bytes[i];
        head(sink, value->negative ? MAJOR_NEGATIVE : MAJOR_UNSIGNED, argument);
        return;
    }
    uint8_t tag = value->negative ? TAG_BIG_NEGATIVE : TAG_BIG_POSITIVE;
    sink.write(sink.context, &tag, 1);
    head(sink, MAJOR_BYTES, length - skip);
    sink.write(sink.context, bytes + skip, length - skip);
}

void moon_cbor_bytes(struct moon_sink sink, const struct moon_string *bytes) {
    head(sink, MAJOR_BYTES, bytes->length);
    if (bytes->length > 0)
        sink.write(sink.context, bytes->bytes, bytes->length);
}

void moon_cbor_tuple(struct moon_sink sink, size_t count) {
    head(sink, MAJOR_ARRAY, count);
}

/* Fails as Python's UTF-8 encoder does: the first run of surrogates, by code point. */
static int refuse_surrogates(const struct moon_string *string, struct moon_error *error) {
    size_t position = 0, first = 0, run = 0;
    uint32_t surrogate = 0;
    for (size_t at = 0; at < string->length; position++) {
        uint32_t code_point;
        size_t used = moon_utf8_decode(string->bytes + at, string->length - at, &code_point);
        assert(used > 0);
        at += used;
        if (code_point >= 0xd800 && code_point <= 0xdfff) {
            if (run++ == 0) {
                first = position;
                surrogate = code_point;
            }
        } else if (run > 0) {
            break;
        }
    }
    if (run == 0)
        return 0;
    if (run == 1)
        return moon_refuse(error, "UnicodeEncodeError",
                           "'utf-8' codec can't encode character '\\u%04x' in position %zu: surrogates not allowed",
                           (unsigned)surrogate, first);
    return moon_refuse(error, "UnicodeEncodeError",
                       "'utf-8' codec can't encode characters in position %zu-%zu: surrogates not allowed", first,
                       first + run - 1);
}

int moon_cbor_str(struct moon_sink sink, const struct moon_string *string, struct moon_error *error) {
    int status = refuse_surrogates(string, error);
    if (status)
        return status;
    head(sink, MAJOR_STRING, string->length);
    if (string->length > 0)
        sink.write(sink.context, string->bytes, string->length);
    return 0;
}
