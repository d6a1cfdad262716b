/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal integers of any width as bytes, for token ids beyond 64 bits. */
#ifndef MOON_HASH_BIGINT_H
#define MOON_HASH_BIGINT_H

#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_BIGINT_DIGITS_MAX = 4300 }; /* what CPython's int() accepts by default; more is a mistake */

/* An integer as sign and magnitude. magnitude: little endian, magnitude_bytes without leading zeros (0 bytes for zero).
 */
struct moon_bigint {
    bool negative;
    size_t magnitude_bytes;
    uint8_t magnitude[MOON_BIGINT_DIGITS_MAX / 2 + 8];
};

/* Reads "-123": an optional minus and 1 to MOON_BIGINT_DIGITS_MAX digits; -0 is 0.
 * Returns 0, or MOON_ERR_SYNTAX / MOON_ERR_LIMIT. Pure function. */
int moon_bigint_read(struct moon_bigint *value, const char *decimal, size_t length);

#ifdef __cplusplus
}
#endif
#endif
