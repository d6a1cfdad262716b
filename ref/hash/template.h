/* SPDX-License-Identifier: Apache-2.0 */
/* Fast writer of the ordinary pre-image: a block of common token ids without extra keys. */
#ifndef MOON_HASH_TEMPLATE_H
#define MOON_HASH_TEMPLATE_H

#include "ref/hash/cpu.h"
#include "ref/hash/preimage.h"
#include "ref/hash/sha256.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_TEMPLATE_TOKENS_MAX =
        1024, /* larger blocks take the general way, where the digest outweighs everything else */
    /* Frame, parent, tuple marks: 64 bytes; tokens: 5 bytes each, written 64 bytes at a time; SHA-256 padding. */
    MOON_TEMPLATE_BYTES = 64 + 5 * MOON_TEMPLATE_TOKENS_MAX + 64 + MOON_SHA256_PADDING_BYTES,
};

/* Writes the pre-image of (parent, tokens, None) to `out`, exactly as moon_preimage_... would, but for the parent,
 * which moon_template_parent adds. So a message can be made before its parent is known. (HASH-003, -020 to -023, -040,
 * -041)
 *
 * parent_bytes is 16 or 32; count is 1 to MOON_TEMPLATE_TOKENS_MAX tokens; `cpu` says what may be used; `out` has
 * MOON_TEMPLATE_BYTES bytes, of which those behind the pre-image may be overwritten too. Returns the pre-image's
 * length, or 0 if a token is not in 0..2^31-1; then the general writer is to be used. Pure function. */
size_t moon_template_write(enum moon_serialisation serialisation, size_t parent_bytes, const int64_t *tokens,
                           size_t count, const struct moon_cpu *cpu, uint8_t *out);
/* Adds the parent to what moon_template_write made for parent_bytes. */
void moon_template_parent(enum moon_serialisation serialisation, const uint8_t *parent, size_t parent_bytes,
                          uint8_t *out);

#ifdef __cplusplus
}
#endif
#endif
