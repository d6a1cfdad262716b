/* SPDX-License-Identifier: Apache-2.0 */
/* KV cache groups together: how far a prefix can be loaded in all of them, and which chunks that takes. */
#ifndef MOON_CONNECTOR_COORDINATOR_H
#define MOON_CONNECTOR_COORDINATOR_H

#include "ref/connector/connector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the store has: one byte for each group and hash block, 1 where every namespace holds the key of that hash
 * (in joined-hash releases: of the chunk that ends there). present[group * hash_count + hash]. Borrowed. */
struct moon_presence {
    const uint8_t *present;
    int64_t hash_count;
};

/* Length of the longest prefix, in tokens, that every group can load (HIT requirements). A multiple of
 * connector->alignment_tokens, 0 or more, at most limit_tokens.
 *   limit_tokens  aligned length of the lookup, 0 to MOON_HIT_TOKENS_MAX
 * Returns 0, or MOON_ERR_REFUSED where the release raises. Allocates nothing. Time is linear in the hash blocks of each
 * group; two windows that disagree everywhere can cost the product of hash blocks and window. */
int moon_hit_search(const struct moon_connector *connector, const struct moon_presence *presence, int64_t limit_tokens,
                    int64_t *hit_tokens, struct moon_error *error);
#define MOON_HIT_TOKENS_MAX (INT64_C(1) << 53)

/* True if a load of hit_tokens, which a lookup found, reads this chunk of the group (HIT-020). */
bool moon_load_wanted(const struct moon_connector *connector, size_t group, int64_t chunk, int64_t hit_tokens);

/* For each group the hash boundary that keys its last chunk (0.29 on, HIT-030). Returns 0, or MOON_ERR_REFUSED
 * (AssertionError) when none is present. tokens[] has room for one a group; hit_tokens is 1 or more. */
int moon_tail_boundaries(const struct moon_connector *connector, const struct moon_presence *presence,
                         int64_t hit_tokens, int64_t tokens[], struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
