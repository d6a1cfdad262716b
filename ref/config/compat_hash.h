/* SPDX-License-Identifier: Apache-2.0 */
/* Block hashes of the sample prompt, as one deployment makes them. */
#ifndef MOON_CONFIG_COMPAT_HASH_H
#define MOON_CONFIG_COMPAT_HASH_H

#include "ref/config/compat_description.h"
#include "ref/key/chunks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the first parent of a chain comes from. */
enum moon_compat_root { MOON_COMPAT_ROOT_RANDOM, MOON_COMPAT_ROOT_FIXED, MOON_COMPAT_ROOT_SEED };
enum moon_compat_root moon_compat_root(const struct moon_compat_description *description);

/* True if CPython starts with this value of PYTHONHASHSEED: empty, "random", or 0 to 4294967295 in digits. (COMPAT-008)
 */
bool moon_compat_seed_starts(const struct moon_json *seed);

/* Hashes of `count` tokens in blocks of block_tokens; `request` may be one of the kinds' samples. `side` (0 or 1) makes
 * random roots of two sides differ, as they do in real processes. `out` borrows the arena.
 * Returns 0, MOON_ERR_REFUSED (what the release's hasher refuses) or MOON_ERR_MEMORY. */
int moon_compat_hashes(struct moon_arena *arena, const struct moon_compat_description *description, int side,
                       const struct moon_compat_request *request, const int64_t *tokens, size_t count,
                       int64_t block_tokens, struct moon_hashes *out, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
