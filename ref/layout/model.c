/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about an engine that several layout rules ask. */
#include "ref/layout/model.h"

size_t moon_store_groups(const struct moon_profile *profile, const struct moon_layout_group groups[], size_t count,
                         struct moon_layout_group out[]) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool transfer = groups[i].transferable || profile->group_numbering < MOON_GROUP_TRANSFER;
        bool cacheable = groups[i].prefix_cacheable || profile->group_numbering < MOON_GROUP_CACHEABLE;
        if (transfer && cacheable)
            out[kept++] = groups[i];
    }
    return kept;
}

static bool specs_equal(const struct moon_layer_spec *a, const struct moon_layer_spec *b) {
    return a->kind == b->kind && a->num_kv_heads == b->num_kv_heads && a->head_size == b->head_size &&
           a->window_tokens == b->window_tokens;
}

bool moon_layout_groups_equal(const struct moon_layout_group *a, const struct moon_layout_group *b) {
    if (!specs_equal(&a->spec, &b->spec) || a->block_tokens != b->block_tokens || a->inner_count != b->inner_count)
        return false;
    for (size_t i = 0; i < a->inner_count; i++)
        if (!specs_equal(&a->inner[i], &b->inner[i]))
            return false;
    return true;
}

bool moon_layout_group_eagle(const struct moon_layout_model *model, size_t group) {
    if (!model->speculative)
        return false;
    bool flagged = false;
    for (size_t i = 0; i < model->group_count; i++) {
        if (!model->groups[i].is_eagle)
            continue;
        if (moon_layout_groups_equal(&model->groups[i], &model->groups[group]))
            return true;
        flagged = true;
    }
    return !flagged;
}
