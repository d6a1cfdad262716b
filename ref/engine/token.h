/* SPDX-License-Identifier: Apache-2.0 */
/* The imaginary model: which token follows a prompt, and which bytes each token leaves in the KV cache. */
#ifndef MOON_ENGINE_TOKEN_H
#define MOON_ENGINE_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_TOKEN_VOCABULARY = 50000 };

/* The number that stands for a token with all before it; `previous` is that of the token before, 0 for the first.
 * (ENGINE-015) Pure, like all functions here. */
uint64_t moon_token_prefix(uint64_t previous, uint32_t token);
/* Token `index` of prompt number `seed`; a longer prompt of a seed begins with the shorter ones. */
uint32_t moon_token_of_prompt(uint32_t seed, uint64_t index);
/* The token that the model samples after the one whose prefix this is. */
uint32_t moon_token_next(uint64_t prefix);

/* What one token leaves in one head of one layer: K then V, half_bytes (a multiple of 8) each. Head of the whole model.
 * Writes 2 * half_bytes bytes. */
void moon_token_cell(uint64_t prefix, uint64_t layer, uint64_t head, size_t half_bytes, uint8_t *out);

#ifdef __cplusplus
}
#endif
#endif
