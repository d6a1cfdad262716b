/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the object pool: the identity of a rank and group, and the text that a release makes of it. */
#ifndef MOON_KEY_POOL_KEY_H
#define MOON_KEY_POOL_KEY_H

#include "ref/base/text.h"
#include "ref/key/profile.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes with their length; need not end with a NUL. {0} is the empty text. */
struct moon_key_text {
    const char *bytes;
    size_t length;
};
struct moon_key_text moon_key_text(const char *string);

/* Who wrote an object: everything in a key but the hash. Texts are borrowed.
 *   cache_prefix     ignored up to 0.23
 *   model_name       copied as it is; moon_model_name cuts a configured path
 *   store_namespace  empty, or text that begins with '@'; ignored up to 0.29
 *   tp_rank          T of the key: rank / replication factor, or the store shard; all numbers 0 or more
 *   group_id         ignored by 0.21 */
struct moon_pool_key {
    struct moon_key_text cache_prefix, model_name, store_namespace;
    int64_t tp_rank, pcp_rank, dcp_rank, pp_rank, group_id;
};

/* The model's name in keys: the configured path without its last slashes, from after the last one left (KEY-005).
 * Returns a part of `path`, perhaps empty. */
struct moon_key_text moon_model_name(struct moon_key_text path);

/* Appends the key's text before "@" hash (KEY-001, KEY-002). Fails only through out->failed. */
void moon_key_prefix(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_text *out);
/* Appends the whole key; `hash` is copied as it is (KEY-011). */
void moon_key_build(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_key_text hash,
                    struct moon_text *out);
/* Appends the lifecycle group id (KEY-013). Only for a profile with mooncake_group_id. */
void moon_key_lifecycle_group(const struct moon_profile *profile, const struct moon_pool_key *key,
                              struct moon_key_text hash, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
