/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding and encoding of single code points. */
#include "ref/base/utf8.h"

/* Smallest code point that needs n bytes: less is an overlong form. */
static const uint32_t smallest[MOON_UTF8_BYTES_MAX + 1] = {0, 0, 0x80, 0x800, 0x10000};

size_t moon_utf8_decode(const char *bytes, size_t length, uint32_t *code_point) {
    if (length == 0)
        return 0;
    const uint8_t *b = (const uint8_t *)bytes;
    if (b[0] < 0x80) {
        *code_point = b[0];
        return 1;
    }
    size_t count = b[0] >= 0xF8 ? 0 : b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : b[0] >= 0xC0 ? 2 : 0;
    if (count == 0 || count > length)
        return 0;
    uint32_t value = b[0] & (0x7Fu >> count);
    for (size_t i = 1; i < count; i++) {
        if ((b[i] & 0xC0) != 0x80)
            return 0;
        value = value << 6 | (b[i] & 0x3Fu);
    }
    if (value < smallest[count] || value > 0x10FFFF)
        return 0;
    *code_point = value;
    return count;
}

size_t moon_utf8_encode(uint32_t code_point, char out[MOON_UTF8_BYTES_MAX]) {
    static const uint8_t lead[MOON_UTF8_BYTES_MAX + 1] = {0, 0, 0xC0, 0xE0, 0xF0};
    if (code_point > 0x10FFFF)
        return 0;
    size_t count = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = count - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    out[0] = (char)(lead[count] | code_point);
    return count;
}
