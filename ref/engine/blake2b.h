/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE2b with a digest of 8 bytes over at most one block (RFC 7693): libcrypto has the 64-byte digest alone. */
#ifndef MOON_ENGINE_BLAKE2B_H
#define MOON_ENGINE_BLAKE2B_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_BLAKE2B_BLOCK_BYTES = 128 };

/* The digest as a little-endian number. length: 0 to MOON_BLAKE2B_BLOCK_BYTES. Pure function. */
uint64_t moon_blake2b_u64(const uint8_t *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
