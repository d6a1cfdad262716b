/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that the connector reads, with the environment itself injected. */
#ifndef MOON_CONFIG_ENVIRONMENT_H
#define MOON_CONFIG_ENVIRONMENT_H

#include "ref/base/json.h"
#include "ref/config/python_exception.h"
#include "ref/key/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where variables come from. get() returns the value or NULL when it is not set; borrowed until the next call. */
struct moon_environment {
    const char *(*get)(void *context, const char *name);
    void *context;
};

enum { MOON_DISK_STAGING_BYTES = 1280 * 1024 * 1024 }; /* what every release assumes of an owner (CONFIG-027) */

/* Path of mooncake_config.json (CONFIG-001), borrowed from the environment.
 * Returns 0, MOON_ERR_REFUSED (ValueError) or MOON_ERR_MEMORY. */
int moon_store_config_path(struct moon_arena *arena, const struct moon_environment *environment, const char **path,
                           struct moon_exception *raised);

/* Segment that puts prefer (CONFIG-021): `extra` is the connector's extra config, NULL when there is none. *value gets
 * *length bytes of WTF-8, or NULL for none; borrowed from `extra` or the environment. Returns 0, MOON_ERR_REFUSED
 * (ValueError) or MOON_ERR_MEMORY. */
int moon_preferred_segment(struct moon_arena *arena, const struct moon_environment *environment,
                           const struct moon_json *extra, const char **value, size_t *length,
                           struct moon_exception *raised);

/* Name that a requester gives itself (CONFIG-022): *length bytes, borrowed from the environment or `local_ip`. Never
 * fails. */
void moon_requester_hostname(const struct moon_environment *environment, const char *local_ip, const char **value,
                             size_t *length);

/* Bytes that one batched read may ask of an owner's staging buffer (CONFIG-027).
 * Returns 0; MOON_ERR_REFUSED for a ratio that Python refuses (ValueError; OverflowError for infinity);
 * MOON_ERR_MEMORY. */
int moon_disk_staging_usable(struct moon_arena *arena, const struct moon_environment *environment,
                             struct moon_json **bytes, struct moon_exception *raised);

/* Path of the lookup socket (CONFIG-026) of one engine: `user` is the user id that 0.21 writes in place of the host
 * name, `rpc_port` the text of extra config lookup_rpc_port. NULL when memory refused. */
const char *moon_lookup_socket(struct moon_arena *arena, const struct moon_profile *profile,
                               const struct moon_environment *environment, const char *rpc_port, const char *hostname,
                               const char *user, int64_t dp_rank);

#ifdef __cplusplus
}
#endif
#endif
