/* SPDX-License-Identifier: Apache-2.0 */
/* Character classes of CPython 3.11 (Unicode 14.0), as sorted tables. */
#ifndef MOON_CONFIG_PYTHON_UNICODE_H
#define MOON_CONFIG_PYTHON_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* Code points at which str.isprintable changes its answer; it starts as true at 0 (and turns false there). Static,
 * sorted. */
extern const uint32_t moon_python_printable_turns[];
extern const size_t moon_python_printable_turn_count;

/* The zero of every script's decimal digits (category Nd); the nine code points after it are 1 to 9. Static, sorted. */
extern const uint32_t moon_python_zeros[];
extern const size_t moon_python_zero_count;

#endif
