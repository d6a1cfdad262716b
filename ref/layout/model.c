/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about an engine that several layout rules ask. */
#include "ref/layout/model.h"

size_t moon_store_groups(const struct moon_profile *profile, const struct moon_layout_group groups[], size_t count,
                         struct moon_layout_group out[]) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool transfer = groups[i].transferable || profile->group_numbering < MOON_GROUP_TRANSFER;
        bool cacheable = groups[i].prefix_cacheable || profile->group_numbering < MOON_GROUP_CACHEABLE;
        if (!transfer || !cacheable)
            continue;
        out[kept] = groups[i];
        out[kept].number = i;
        struct moon_layer_spec *spec = &out[kept++].spec;
        if (profile->window_extra_tokens && moon_spec_is_window(spec)) {
            spec->window_tokens += spec->extra_retained_tokens;
            spec->extra_retained_tokens = 0;
        }
    }
    return kept;
}

const char *moon_mamba_mode_name(enum moon_mamba_mode mode) {
    static const char *const names[] = {
        [MOON_MAMBA_ALIGN] = "align", [MOON_MAMBA_ALL] = "all", [MOON_MAMBA_NONE] = "none"};
    return names[mode];
}

const struct moon_layer_spec *moon_layout_group_spec(const struct moon_layout_group *group) {
    return group->spec.kind == MOON_SPEC_UNIFORM ? &group->inner[0] : &group->spec;
}

bool moon_spec_is_full(const struct moon_layer_spec *spec) {
    return spec->kind == MOON_SPEC_FULL || spec->kind == MOON_SPEC_MLA;
}

bool moon_spec_is_window(const struct moon_layer_spec *spec) {
    return spec->kind == MOON_SPEC_SLIDING_WINDOW || spec->kind == MOON_SPEC_SLIDING_WINDOW_MLA;
}

bool moon_layout_groups_equal(const struct moon_layout_group *a, const struct moon_layout_group *b) {
    const struct moon_layer_spec *x = moon_layout_group_spec(a), *y = moon_layout_group_spec(b);
    return x->kind == y->kind && x->num_kv_heads == y->num_kv_heads && x->head_size == y->head_size &&
           x->window_tokens == y->window_tokens && x->extra_retained_tokens == y->extra_retained_tokens &&
           x->local_tokens == y->local_tokens && x->mamba_mode == y->mamba_mode && a->block_tokens == b->block_tokens;
}

static bool any_flagged(const struct moon_layout_model *model) {
    for (size_t i = 0; i < model->group_count; i++)
        if (model->groups[i].is_eagle)
            return true;
    return false;
}

bool moon_layout_eagle(const struct moon_layout_model *model) {
    return model->speculative || any_flagged(model);
}

bool moon_layout_group_eagle(const struct moon_layout_model *model, size_t group) {
    for (size_t i = 0; i < model->group_count; i++)
        if (model->groups[i].is_eagle && moon_layout_groups_equal(&model->groups[i], &model->groups[group]))
            return true;
    return model->speculative && !any_flagged(model);
}

bool moon_layout_group_drafts(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group) {
    if (profile->eagle_by_spec || !any_flagged(model))
        return moon_layout_group_eagle(model, group);
    return model->groups[group].is_eagle;
}
