/* SPDX-License-Identifier: Apache-2.0 */
/* Reading keys back: every identity that a release could have made a key from. Ambiguity is told, never resolved by a
 * guess. */
#ifndef MOON_KEY_PARSE_H
#define MOON_KEY_PARSE_H

#include "ref/key/namespace.h"
#include "ref/key/pool_key.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_KEY_READINGS_MAX = 16 };

/* One way to read a key. Texts point into the key. */
struct moon_key_reading {
    struct moon_pool_key key;
    struct moon_key_text hash;
    const struct moon_profile *oldest, *newest; /* releases that could have written it, both included */
    struct moon_store_namespace space;          /* what key.store_namespace says */
    /* How many digests of that many bytes the hash is; 0 if it cannot be. Both are above 0 only for a joined hash of
     * 0.22 and 0.23 (KEY-025). */
    int64_t digests_of_16, digests_of_32;
    bool uncut; /* the model's name holds '/', which no release writes (KEY-005) */
    bool plain; /* neither name nor prefix holds '@', and not uncut */
};

/* All readings: uncut ones last, then those with a namespace first, then by the length of the prefix. `total` counts
 * also those beyond MOON_KEY_READINGS_MAX; `possible` those that are not uncut. One key is ambiguous if possible is
 * above 1. */
struct moon_key_readings {
    struct moon_key_reading list[MOON_KEY_READINGS_MAX];
    size_t count;
    size_t total;
    size_t possible;
};

/* Reads a key for one release, or with profile NULL for all (KEY-024). Allocates nothing.
 * Returns 0, or MOON_ERR_SYNTAX with the part that is missing or that this release does not write. */
int moon_key_parse(const struct moon_profile *profile, struct moon_key_text text, struct moon_key_readings *readings,
                   struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
