/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a value that is named by a seed: both sides of a test make them, nobody has to carry them. */
#ifndef MOON_BASE_FILL_H
#define MOON_BASE_FILL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes `length` bytes of the value from `offset_bytes` on. Its word j, little-endian, is mix(seed * G + j), all mod
 * 2^64; mix is splitmix64's last step and G its increment, the function that the bytes of KV cells are made of, too.
 * Any cut gives the same bytes. Offset and length together stay below 2^64. */
void moon_fill(uint64_t seed, uint64_t offset_bytes, void *buffer, size_t length);

#ifdef __cplusplus
}
#endif
#endif
