/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal integers of any width as bytes, for token ids beyond 64 bits. */
#include "ref/hash/bigint.h"

#include "ref/base/error.h"

static void multiply_add(struct moon_bigint *value, unsigned factor, unsigned addend) {
    unsigned carry = addend;
    for (size_t i = 0; i < value->magnitude_bytes; i++) {
        unsigned product = value->magnitude[i] * factor + carry;
        value->magnitude[i] = (uint8_t)(product & 0xff);
        carry = product >> 8;
    }
    if (carry)
        value->magnitude[value->magnitude_bytes++] = (uint8_t)carry;
}

int moon_bigint_read(struct moon_bigint *value, const char *decimal, size_t length) {
    size_t start = length > 0 && decimal[0] == '-' ? 1 : 0;
    value->magnitude_bytes = 0;
    if (length == start)
        return MOON_ERR_SYNTAX;
    if (length - start > MOON_BIGINT_DIGITS_MAX)
        return MOON_ERR_LIMIT;
    for (size_t i = start; i < length; i++) {
        if (decimal[i] < '0' || decimal[i] > '9')
            return MOON_ERR_SYNTAX;
        multiply_add(value, 10, (unsigned)(decimal[i] - '0'));
    }
    value->negative = start == 1 && value->magnitude_bytes > 0;
    return 0;
}
