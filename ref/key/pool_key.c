/* SPDX-License-Identifier: Apache-2.0 */
/* Building keys: one writer for every release, which asks the profile what the key has. */
#include "ref/key/pool_key.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

struct moon_key_text moon_key_text(const char *string) {
    return (struct moon_key_text){string, strlen(string)};
}

struct moon_key_text moon_model_name(struct moon_key_text path) {
    size_t end = path.length;
    while (end > 0 && path.bytes[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path.bytes[start - 1] != '/')
        start--;
    return (struct moon_key_text){path.bytes + start, end - start};
}

/* The part that names the deployment and no rank: "[prefix@]model[namespace]". */
static void append_deployment(const struct moon_profile *profile, const struct moon_pool_key *key,
                              struct moon_text *out) {
    if (profile->cache_prefix && key->cache_prefix.length > 0) {
        moon_text_bytes(out, key->cache_prefix.bytes, key->cache_prefix.length);
        moon_text_char(out, '@');
    }
    moon_text_bytes(out, key->model_name.bytes, key->model_name.length);
    if (profile->store_namespace)
        moon_text_bytes(out, key->store_namespace.bytes, key->store_namespace.length);
}

void moon_key_prefix(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_text *out) {
    append_deployment(profile, key, out);
    moon_text_format(out, "@tp_rank:%" PRId64 "@pcp%" PRId64 "@dcp%" PRId64 "@pp_rank:%" PRId64, key->tp_rank,
                     key->pcp_rank, key->dcp_rank, key->pp_rank);
    if (profile->group_numbering != MOON_GROUP_NONE)
        moon_text_format(out, "@group:%" PRId64, key->group_id);
}

void moon_key_build(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_key_text hash,
                    struct moon_text *out) {
    moon_key_prefix(profile, key, out);
    moon_text_char(out, '@');
    moon_text_bytes(out, hash.bytes, hash.length);
}

void moon_key_lifecycle_group(const struct moon_profile *profile, const struct moon_pool_key *key,
                              struct moon_key_text hash, struct moon_text *out) {
    assert(profile->mooncake_group_id);
    moon_text_string(out, "vllm-mooncake-store:");
    append_deployment(profile, key, out);
    moon_text_char(out, '@');
    moon_text_bytes(out, hash.bytes, hash.length);
}
