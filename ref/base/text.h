/* SPDX-License-Identifier: Apache-2.0 */
/* A growing byte string for output. A refused allocation is remembered, so callers check once at the end. */
#ifndef MOON_BASE_TEXT_H
#define MOON_BASE_TEXT_H

#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* data is NUL-terminated after any append that succeeded (NULL before the first); length does not count the NUL.
 * failed: some append was dropped because memory refused; it and all later ones changed nothing. */
struct moon_text {
    struct moon_memory *memory;
    char *data;
    size_t length;
    size_t capacity;
    bool failed;
};

void moon_text_open(struct moon_text *text, struct moon_memory *memory);
void moon_text_close(struct moon_text *text); /* idempotent */
void moon_text_clear(struct moon_text *text); /* length 0, keeps the buffer, keeps `failed` */

void moon_text_bytes(struct moon_text *text, const void *bytes, size_t length);
void moon_text_string(struct moon_text *text, const char *string);
void moon_text_char(struct moon_text *text, char c);
void moon_text_repeat(struct moon_text *text, char c, size_t count);
void moon_text_format(struct moon_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void moon_text_hex(struct moon_text *text, const void *bytes, size_t length); /* lower case, no separators */

/* The string as a C string, "" while empty. Valid until the next append or close. */
const char *moon_text_value(const struct moon_text *text);

/* Lower-case or upper-case hex to bytes. `hex` has `length` digits, `out` room for length / 2.
 * Returns 0, or MOON_ERR_SYNTAX for an odd length or a digit that is none. */
int moon_hex_decode(const char *hex, size_t length, uint8_t *out);

#ifdef __cplusplus
}
#endif
#endif
