/* SPDX-License-Identifier: Apache-2.0 */
/* The compression function of SHA-256 on ready-made blocks: one message or two interleaved ones. */
#ifndef MOON_HASH_SHA256_H
#define MOON_HASH_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_SHA256_BYTES = 32, MOON_SHA256_BLOCK_BYTES = 64, MOON_SHA256_PADDING_BYTES = 72 };

/* Chaining value between blocks, words as numbers. */
struct moon_sha256 {
    uint32_t words[8];
};

/* Value before the first block. */
void moon_sha256_start(struct moon_sha256 *state);
/* Feeds `count` blocks of 64 bytes, any alignment. `extensions`: use the CPU's SHA instructions (struct moon_cpu tells
 * if it has them); else libcrypto's, which are as fast as the CPU allows. Pure function; any thread. */
void moon_sha256_blocks(struct moon_sha256 *state, const uint8_t *blocks, size_t count, bool extensions);
/* The same for two messages, `count` blocks each. With the extensions it takes little longer than one, because the
 * instructions of one message fill the waiting time of the other. */
void moon_sha256_pair(struct moon_sha256 *a, const uint8_t *blocks_a, struct moon_sha256 *b, const uint8_t *blocks_b,
                      size_t count, bool extensions);
/* Appends the padding to a message of `length` bytes, in place. 72 bytes behind the message are written, of which the
 * padding is a part. Returns the number of blocks. */
size_t moon_sha256_pad(uint8_t *message, size_t length);
void moon_sha256_digest(const struct moon_sha256 *state, uint8_t digest[MOON_SHA256_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
