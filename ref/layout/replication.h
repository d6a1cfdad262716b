/* SPDX-License-Identifier: Apache-2.0 */
/* How many TP ranks hold the same bytes of a group, and so share its keys and the work of putting them. */
#ifndef MOON_LAYOUT_REPLICATION_H
#define MOON_LAYOUT_REPLICATION_H

#include "ref/layout/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replication factor F of a group (LAYOUT-011), up to 0.26 of the engine (LAYOUT-012). 1 or more. */
int64_t moon_replication_factor(const struct moon_profile *profile, const struct moon_layout_model *model,
                                size_t group);
/* KV heads as releases up to 0.26 count them: 1 if the model says it uses MLA. */
int64_t moon_engine_heads(const struct moon_layout_model *model);

#ifdef __cplusplus
}
#endif
#endif
