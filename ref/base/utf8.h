/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as Python's "surrogatepass" has it (WTF-8): code points 0..10FFFF, lone surrogates as three bytes. */
#ifndef MOON_BASE_UTF8_H
#define MOON_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_UTF8_BYTES_MAX = 4 };

/* Decodes the code point at bytes[0..length). Returns the bytes used (1..4), or 0 if they are no shortest-form code
 * point. Surrogates D800..DFFF are accepted; who must not see them checks *code_point. */
size_t moon_utf8_decode(const char *bytes, size_t length, uint32_t *code_point);

/* Encodes a code point (0..10FFFF, surrogates included) into out[4]; returns the bytes used, 0 if out of range. */
size_t moon_utf8_encode(uint32_t code_point, char out[MOON_UTF8_BYTES_MAX]);

#ifdef __cplusplus
}
#endif
#endif
