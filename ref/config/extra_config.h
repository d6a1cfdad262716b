/* SPDX-License-Identifier: Apache-2.0 */
/* kv_connector_extra_config: the keys that each release reads, and what their values mean. */
#ifndef MOON_CONFIG_EXTRA_CONFIG_H
#define MOON_CONFIG_EXTRA_CONFIG_H

#include "ref/base/json.h"
#include "ref/key/profile.h"
#include "ref/layout/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who reads an extra config. */
enum moon_connector_kind {
    MOON_CONNECTOR_STORE, /* MooncakeStoreConnector */
    MOON_CONNECTOR_P2P,   /* MooncakeConnector */
    MOON_CONNECTOR_MULTI, /* MultiConnector */
    MOON_CONNECTOR_OTHER,
};

enum moon_extra_option_type {
    MOON_EXTRA_SWITCH, /* Python's truth of the value */
    MOON_EXTRA_SPELT,  /* on when str(value) is "true" in any case */
    MOON_EXTRA_VALUE,  /* no switch */
};

/* One key (CONFIG-023). Static.
 *   since, until  first and last minor release that reads it; until 0: still read
 *   gap           a minor release in between that does not read it, 0 for none */
struct moon_extra_option {
    const char *name;
    enum moon_connector_kind reader;
    enum moon_extra_option_type type;
    int since, until, gap;
};

/* The known key nearest to a misspelt one, NULL if none is near. Static text. */
const char *moon_extra_suggest(enum moon_connector_kind reader, const char *name);
/* The key of that name and reader, NULL if no release knows it. */
const struct moon_extra_option *moon_extra_option_find(enum moon_connector_kind reader, const char *name);
bool moon_extra_read_by(const struct moon_extra_option *key, const struct moon_profile *profile);
/* True if the release's MooncakeStoreConnector reads the key `name`, which must be a known one. */
bool moon_extra_store_reads(const struct moon_profile *profile, const char *name);

/* Value of a switch: Python's truth, `otherwise` when absent (CONFIG-024). `extra` may be NULL. */
bool moon_extra_switch(const struct moon_json *extra, const char *name, bool otherwise);

/* The options that choose a store layout, as ref/layout takes them (0.30 on). Borrows `extra`, which may be NULL; lists
 * live in `arena`. Returns 0 or MOON_ERR_MEMORY. */
int moon_extra_layout(struct moon_arena *arena, const struct moon_json *extra, struct moon_layout_model *model);

#ifdef __cplusplus
}
#endif
#endif
