/* SPDX-License-Identifier: Apache-2.0 */
/* How Python reads numbers from text: sizes of the store configuration, int(), float(), and white space. */
#ifndef MOON_CONFIG_PYTHON_NUMBER_H
#define MOON_CONFIG_PYTHON_NUMBER_H

#include "ref/base/json.h"
#include "ref/config/python_exception.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Removes from both ends of *text what str.isspace accepts (CONFIG-012): moves *text and shortens *length (bytes of
 * WTF-8). */
void moon_python_strip(const char **text, size_t *length);

/* The size rule (CONFIG-010, -011, -012): `value` is any JSON value. *out becomes a boolean or an integer of any size
 * in `arena`. Returns 0; MOON_ERR_REFUSED with `raised` filled (ValueError, TypeError, OverflowError); or
 * MOON_ERR_MEMORY. */
int moon_python_size(struct moon_arena *arena, const struct moon_json *value, struct moon_json **out,
                     struct moon_exception *raised);

/* int(value) of a float: cut towards zero, exact. Returns 0, MOON_ERR_REFUSED (ValueError for NaN, OverflowError for
 * infinity) or MOON_ERR_MEMORY. */
int moon_python_trunc(struct moon_arena *arena, double value, struct moon_json **out, struct moon_exception *raised);

/* What a size text held, for those who explain it: filled by moon_python_size_text.
 *   fraction  the value is no whole number of bytes: some of it is cut
 *   unit      the text ends in a unit */
struct moon_size_text {
    double bytes;
    bool fraction;
    bool unit;
};
/* Reads a size text as moon_python_size does, for its value as a double. Returns as moon_python_size. */
int moon_python_size_text(struct moon_arena *arena, const char *text, size_t length, struct moon_size_text *out,
                          struct moon_exception *raised);

/* float(text): blanks around, sign, digits with single underscores between, point, exponent, inf, infinity, nan.
 * Returns 0, MOON_ERR_SYNTAX where Python raises ValueError, or MOON_ERR_MEMORY. */
int moon_python_float(struct moon_arena *arena, const char *text, size_t length, double *out);

/* int(text) for values that fit int64_t. Returns 0, MOON_ERR_SYNTAX where Python raises ValueError, MOON_ERR_RANGE for
 * a value that Python takes and int64_t does not hold. */
int moon_python_int(const char *text, size_t length, int64_t *out);

/* -1, 0 or 1: sign of a boolean or integer made by moon_python_size. */
int moon_python_sign(const struct moon_json *number);

#ifdef __cplusplus
}
#endif
#endif
