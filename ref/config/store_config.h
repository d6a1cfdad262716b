/* SPDX-License-Identifier: Apache-2.0 */
/* mooncake_config.json as a release loads it: fields, defaults, order of errors, exact exceptions. */
#ifndef MOON_CONFIG_STORE_CONFIG_H
#define MOON_CONFIG_STORE_CONFIG_H

#include "ref/base/json.h"
#include "ref/config/python_exception.h"
#include "ref/key/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every field after loading. Values live in the document's or the caller's arena; read only.
 *   connection fields  any JSON value, as given (CONFIG-009)
 *   mode               text; NULL up to 0.21, which does not know it
 *   sizes in bytes     boolean, or integer of any size
 *   enable_offload     NULL up to 0.21; else a boolean
 *   tenant_id          text; NULL up to 0.27 */
struct moon_store_config {
    const struct moon_json *metadata_server, *master_server_address, *protocol, *device_name;
    const struct moon_json *mode;
    const struct moon_json *global_segment_size, *local_buffer_size;
    const struct moon_json *enable_offload;
    const struct moon_json *tenant_id;
};

/* Names of the members that the release reads; NULL ends. Static. */
const char *const *moon_store_config_names(const struct moon_profile *profile);
/* First minor release that reads a member (22 for "mode"), 0 for a name that none reads. */
int moon_store_config_since(const char *name);

/* Loads from a document that was read with MOON_JSON_PYTHON. Returns 0; MOON_ERR_REFUSED with `raised` filled,
 * raised->member naming the member at fault (CONFIG-005 to -020); or MOON_ERR_MEMORY. */
int moon_store_config_load(struct moon_arena *arena, const struct moon_profile *profile,
                           const struct moon_json *document, struct moon_store_config *out,
                           struct moon_exception *raised);

/* Reads the bytes of a file and loads (CONFIG-003, -004). `error` says where the JSON is broken (place in `where`) when
 * `raised` is a JSONDecodeError or UnicodeDecodeError. Also returns MOON_ERR_LIMIT for a document deeper or larger than
 * the reader takes: then it is not known what the release does. *document gets the tree, NULL when there is none. */
int moon_store_config_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                           const char *bytes, size_t length, const struct moon_json **document,
                           struct moon_store_config *out, struct moon_exception *raised, struct moon_error *error);

/* The fields as an object, in the form of the vectors: integers beyond 2^53 are decimal texts. NULL when memory
 * refused. */
struct moon_json *moon_store_config_json(struct moon_arena *arena, const struct moon_store_config *config);

#ifdef __cplusplus
}
#endif
#endif
