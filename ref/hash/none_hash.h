/* SPDX-License-Identifier: Apache-2.0 */
/* NONE_HASH, the parent of a chain's first block, by release, algorithm and PYTHONHASHSEED. */
#ifndef MOON_HASH_NONE_HASH_H
#define MOON_HASH_NONE_HASH_H

#include "ref/hash/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where random bytes come from: fill() returns 0, or MOON_ERR_IO. */
struct moon_entropy {
    int (*fill)(void *context, void *bytes, size_t length);
    void *context;
};

struct moon_none_hash_value {
    uint8_t bytes[MOON_DIGEST_BYTES_MAX];
    size_t length; /* 32; or 16 with the xxHash algorithms, unless it was drawn whole (HASH-012) */
    bool random;   /* differs from process to process: engines cannot share */
};

/* NONE_HASH of an engine process. (HASH-010 to HASH-014)
 *   seed     value of PYTHONHASHSEED as text; NULL: not set
 *   entropy  asked for 32 bytes where the release draws NONE_HASH or its seed
 *   tap      gets the serialised seed, if there is one (not with HASH-012); NULL: nobody
 * Returns 0, MOON_ERR_IO (no entropy), MOON_ERR_MEMORY, or MOON_ERR_REFUSED (HASH-042). */
int moon_none_hash(struct moon_hasher *hasher, const struct moon_profile *profile, const struct moon_string *seed,
                   const struct moon_entropy *entropy, const struct moon_sink *tap, struct moon_none_hash_value *out,
                   struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
