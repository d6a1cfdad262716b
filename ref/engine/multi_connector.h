/* SPDX-License-Identifier: Apache-2.0 */
/* Several connectors behind one port: who is asked, who loads, who is told, and when a request's blocks may go. */
#ifndef MOON_ENGINE_MULTI_CONNECTOR_H
#define MOON_ENGINE_MULTI_CONNECTOR_H

#include "ref/engine/engine_port.h"
#include "ref/engine/slot_table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_MULTI_CHILDREN_MAX = 8 };

/* The scheduler role of a MultiConnector (ENGINE-014). Borrows profile and children; owns two slot tables.
 *   winners  place + 1 of the child that last had tokens for a request
 *   sends    children that delayed the end of a request and have not reported */
struct moon_multi_connector {
    struct moon_engine_port port; /* first member */
    const struct moon_profile *profile;
    struct moon_engine_port *children[MOON_MULTI_CHILDREN_MAX];
    size_t child_count;
    struct moon_slot_table winners, sends;
};

/* child_count: 1 to MOON_MULTI_CHILDREN_MAX, in the order of the configuration. Allocates nothing. */
void moon_multi_connector_open(struct moon_multi_connector *multi, const struct moon_profile *profile,
                               struct moon_engine_port *const children[], size_t child_count,
                               struct moon_memory *memory);
void moon_multi_connector_close(struct moon_multi_connector *multi); /* idempotent */
/* A child reports a request as sent. True if it was the last that the request waits for: report it to the core. */
bool moon_multi_connector_sent(struct moon_multi_connector *multi, uint32_t slot);

#ifdef __cplusplus
}
#endif
#endif
