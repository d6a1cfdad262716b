/* SPDX-License-Identifier: Apache-2.0 */
/* Which store layout an engine gets: the store TP it asked for, the decision, and the reason of a refusal. */
#ifndef MOON_LAYOUT_STORE_TP_H
#define MOON_LAYOUT_STORE_TP_H

#include "ref/layout/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the store TP comes from, or why there is none (LAYOUT-001 to LAYOUT-003). */
enum moon_store_tp_source {
    MOON_STORE_TP_NOT_REQUESTED,
    MOON_STORE_TP_FROM_SIZE,
    MOON_STORE_TP_FROM_LIST,
    /* not usable; the order of checks is that of the list */
    MOON_STORE_TP_LIST_MISSING,
    MOON_STORE_TP_LIST_NULL,
    MOON_STORE_TP_LIST_NOT_ARRAY,
    MOON_STORE_TP_LIST_EMPTY,
    MOON_STORE_TP_ELEMENT_BOOL,
    MOON_STORE_TP_ELEMENT_REAL,
    MOON_STORE_TP_ELEMENT_STRING,
    MOON_STORE_TP_ELEMENT_NULL,
    MOON_STORE_TP_ELEMENT_NESTED,
    MOON_STORE_TP_ELEMENT_NOT_POSITIVE,
    MOON_STORE_TP_SIZE_BOOL,
    MOON_STORE_TP_SIZE_REAL,
    MOON_STORE_TP_SIZE_STRING,
    MOON_STORE_TP_SIZE_NESTED,
    MOON_STORE_TP_SIZE_NOT_POSITIVE,
    MOON_STORE_TP_SOURCE_COUNT
};

/* The store TP S, resolved against a local TP.
 *   size         S; 0 if it is unknown or too large for int64_t (then `large`)
 *   multiple     local TP divides S; exact for an S of any size
 *   bad_element  index in the list, for the reasons named after an element */
struct moon_store_tp {
    enum moon_store_tp_source source;
    bool known, large, multiple;
    int64_t size;
    size_t bad_element;
};
void moon_store_tp_resolve(const struct moon_layout_model *model, struct moon_store_tp *out);

/* First condition that an engine does not meet (LAYOUT-005). */
enum moon_store_refusal {
    MOON_REFUSAL_NONE,
    MOON_REFUSAL_STORE_TP_UNKNOWN,
    MOON_REFUSAL_BELOW_TP,
    MOON_REFUSAL_NOT_MULTIPLE,
    MOON_REFUSAL_KV_LAYOUT,
    MOON_REFUSAL_PCP,
    MOON_REFUSAL_DCP,
    MOON_REFUSAL_GROUPS,
    MOON_REFUSAL_SPEC,
    MOON_REFUSAL_CROSS_LAYERS,
    MOON_REFUSAL_HEADS,
    MOON_REFUSAL_COUNT
};

/* The chosen layout. `text` is the namespace as it stands in keys, NUL-terminated. */
struct moon_store_selection {
    struct moon_store_tp store_tp;
    enum moon_store_refusal refusal;
    struct moon_store_namespace space;
    char text[MOON_STORE_NAMESPACE_BYTES];
    size_t text_length;
};
/* Chooses (LAYOUT-004 to LAYOUT-010); the plain layout for releases without store namespaces. Never fails. */
void moon_store_select(const struct moon_profile *profile, const struct moon_layout_model *model,
                       struct moon_store_selection *out);
bool moon_store_sharded(const struct moon_store_selection *selection);

/* One sentence without a final period; static. */
const char *moon_store_tp_source_text(enum moon_store_tp_source source);
const char *moon_store_refusal_text(enum moon_store_refusal refusal);

#ifdef __cplusplus
}
#endif
#endif
