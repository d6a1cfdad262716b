/* SPDX-License-Identifier: Apache-2.0 */
/* kv-transfer-config: connectors, roles, and the children of MultiConnector. */
#ifndef MOON_CONFIG_KV_TRANSFER_H
#define MOON_CONFIG_KV_TRANSFER_H

#include "ref/config/extra_config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_kv_role {
    MOON_ROLE_NONE, /* missing, or none of the three */
    MOON_ROLE_PRODUCER,
    MOON_ROLE_CONSUMER,
    MOON_ROLE_BOTH,
};

/* One connector: the outer one, or a child of a MultiConnector. Borrows the document.
 *   name       kv_connector; "" when missing
 *   extra      kv_connector_extra_config, NULL when missing or no object
 *   parent     the MultiConnector that lists it; NULL for the outer one
 *   child      position among the parent's children
 *   refused    what the engine refuses about it (first thing), one sentence; NULL when nothing
 *   refused_at the value at fault */
struct moon_connector {
    enum moon_connector_kind kind;
    enum moon_kv_role role;
    const char *name;
    const struct moon_json *config, *extra;
    struct moon_connector *parent, *next;
    size_t child;
    const char *refused;
    const struct moon_json *refused_at;
};

enum { MOON_CONNECTORS_MAX = 64 }; /* in one configuration; real ones have three */

/* Reads a configuration into a list: the outer connector first, then children in order, outer levels before inner ones
 * (CONFIG-025). Never stops at a fault that the engine would refuse; the connector says so in `refused`.
 * Returns 0, MOON_ERR_LIMIT (over MOON_CONNECTORS_MAX connectors) or MOON_ERR_MEMORY. */
int moon_kv_transfer_read(struct moon_arena *arena, const struct moon_json *config, struct moon_connector **first);

/* The first connector of a kind, NULL if there is none. */
const struct moon_connector *moon_kv_transfer_find(const struct moon_connector *first, enum moon_connector_kind kind);

const char *moon_kv_role_name(enum moon_kv_role role); /* "kv_producer"; "no role" for none */

/* Names of the members of a kv-transfer-config that the release takes; NULL ends. Static. */
const char *const *moon_kv_transfer_members(const struct moon_profile *profile);
/* Names of connectors that vLLM brings; NULL ends. Static. */
const char *const *moon_kv_connector_names(void);

#ifdef __cplusplus
}
#endif
#endif
