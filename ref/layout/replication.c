/* SPDX-License-Identifier: Apache-2.0 */
/* Replication factors by release. */
#include "ref/layout/replication.h"

int64_t moon_engine_heads(const struct moon_layout_model *model) {
    return model->use_mla ? 1 : model->total_kv_heads;
}

/* True if every layer of the group is MLA, with or without a sliding window. */
static bool all_mla(const struct moon_layout_group *group) {
    if (group->spec.kind != MOON_SPEC_UNIFORM)
        return group->spec.kind == MOON_SPEC_MLA || group->spec.kind == MOON_SPEC_SLIDING_WINDOW_MLA;
    for (size_t i = 0; i < group->inner_count; i++)
        if (group->inner[i].kind != MOON_SPEC_MLA)
            return false;
    return true;
}

int64_t moon_replication_factor(const struct moon_profile *profile, const struct moon_layout_model *model,
                                size_t group) {
    if (profile->replication != MOON_REPLICATION_ENGINE && model->dcp > 1)
        return 1;
    int64_t heads = model->total_kv_heads;
    if (profile->replication == MOON_REPLICATION_GROUP) {
        if (model->groups[group].spec.kind == MOON_SPEC_MAMBA)
            return 1;
        if (all_mla(&model->groups[group]))
            return model->tp;
    } else {
        heads = moon_engine_heads(model);
    }
    return heads < model->tp ? model->tp / heads : 1;
}
