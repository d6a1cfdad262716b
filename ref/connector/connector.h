/* SPDX-License-Identifier: Apache-2.0 */
/* One instance of the store connector: what its scheduler side and its workers have in common. */
#ifndef MOON_CONNECTOR_CONNECTOR_H
#define MOON_CONNECTOR_CONNECTOR_H

#include "ref/key/deviation.h"
#include "ref/layout/ownership.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_STORE_GROUPS_MAX = 64 }; /* of one engine */

enum moon_kv_role { MOON_ROLE_PRODUCER, MOON_ROLE_CONSUMER, MOON_ROLE_BOTH };

/* Options as the user's extra_config gives them (defaults in brackets). A release that does not know an option ignores
 * it: moon_connector_open clears it.
 *   load_async [true], lookup_async [false], enable_lookup [true], save_decode_cache [false]
 *   enable_group_semantics [false]  lifecycle group ids go with each put
 *   discard_partial_chunks [true]   0.21
 *   kv_events [false]               events are made, so jobs carry token ids */
struct moon_connector_options {
    enum moon_kv_role role;
    bool load_async, lookup_async, enable_lookup, save_decode_cache, enable_group_semantics, discard_partial_chunks;
    bool kv_events;
};

/* Read-only after moon_connector_open, so any thread may read it. Borrows profile and model.
 *   fine_grained      hits end at hash blocks (LAYOUT-024)
 *   alignment_tokens  of hits: the hash block if fine_grained, else the scheduler block
 *   capacity_only     lends memory, answers every lookup with 0, transfers nothing
 *   saves_prefill, saves_decode  what the role puts
 *   notes             where deviations that happen are noted; NULL: nowhere. Set by the caller after open */
struct moon_connector {
    const struct moon_profile *profile;
    const struct moon_layout_model *model;
    struct moon_store_selection selection;
    struct moon_connector_options options;
    bool fine_grained, capacity_only, saves_prefill, saves_decode;
    int64_t alignment_tokens;
    struct moon_deviation_notes *notes;
};

/* Returns 0, or MOON_ERR_REFUSED with what the release raises for this combination when it builds the connector
 * (LOOKUP-040 to LOOKUP-043); MOON_ERR_LIMIT for more than MOON_STORE_GROUPS_MAX groups; MOON_ERR_RANGE for none;
 * MOON_ERR_UNSUPPORTED for several in 0.21. */
int moon_connector_open(struct moon_connector *out, const struct moon_profile *profile,
                        const struct moon_layout_model *model, const struct moon_connector_options *options,
                        struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
