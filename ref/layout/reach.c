/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of reachable chunks, as questions about one chunk: no mask is built. */
#include "ref/layout/reach.h"

static bool is_sliding(const struct moon_layout_group *group) {
    return group->spec.kind == MOON_SPEC_SLIDING_WINDOW || group->spec.kind == MOON_SPEC_SLIDING_WINDOW_MLA;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Replay boundaries of a prefill: where a request with the same prompt would resume. Returns 1 or 2. */
static int boundaries(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                      int64_t prefill_end, int64_t out[2]) {
    int64_t align = model->scheduler_block_tokens;
    out[0] = out[1] = prefill_end - 1;
    if (!profile->eagle_boundaries || !moon_layout_group_eagle(model, group))
        return 1;
    out[0] = larger((prefill_end - 1) / align * align - align, 0);
    out[1] = larger(prefill_end / align * align - align, 0);
    return 2;
}

/* A sliding window stored every `segment` tokens; 0 stores none. `need` chunks before each point, `shift` after it.
 * Chunks before the shift have a negative remainder here, and are out. */
static bool in_segments(int64_t segment, int64_t block, int64_t need, int64_t shift, int64_t chunk) {
    if (segment == 0)
        return false;
    int64_t per = segment / block;
    return need >= per || (chunk - shift) % per >= per - need;
}

/* SlidingWindowManager.reachable_block_mask; `dense` leaves the retention out, as lookups do. */
static bool sliding_reached(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                            int64_t chunk, int64_t prefill_end, bool dense) {
    const struct moon_layout_group *its = &model->groups[group];
    int64_t align = model->scheduler_block_tokens, block = its->block_tokens;
    bool retained = model->has_retention && !dense;
    int64_t shift = moon_layout_group_eagle(model, group) ? 1 : 0;
    int64_t need = moon_ceil_divide(its->spec.window_tokens - 1, block) + shift;
    if (in_segments(retained ? model->retention_tokens : align, block, need, shift, chunk))
        return true;
    if (!retained)
        return false;
    int64_t points[2];
    int count = boundaries(profile, model, group, prefill_end, points);
    for (int i = 0; i < count; i++) {
        int64_t end = points[i] / align * align / block + shift;
        if (chunk >= end - need && chunk < end)
            return true;
    }
    return false;
}

/* Mamba states saved by position (0.24 to 0.28): EAGLE never shifts them. */
static bool mamba_reached(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                          int64_t chunk, int64_t prefill_end) {
    int64_t block = model->groups[group].block_tokens, align = model->scheduler_block_tokens;
    if (!model->has_retention || model->retention_tokens <= block)
        return true;
    if ((chunk + 1) % (model->retention_tokens / block) == 0)
        return true;
    int64_t points[2];
    int count = boundaries(profile, model, group, prefill_end, points);
    for (int i = 0; i < count; i++)
        if ((chunk + 1) * block == points[i] / align * align)
            return true;
    return false;
}

/* 0.22 and 0.23: in each scheduler block what a hit at its end loads; needs no template if every group is stored whole.
 */
static bool in_template(const struct moon_layout_model *model, size_t group, int64_t chunk) {
    bool templated = false;
    for (size_t i = 0; i < model->group_count; i++) {
        const struct moon_layout_group *each = &model->groups[i];
        bool full = !is_sliding(each) && each->spec.kind != MOON_SPEC_MAMBA;
        templated |= !full && each->block_tokens != model->scheduler_block_tokens;
    }
    if (!templated)
        return true;
    if (model->speculative)
        return false;
    const struct moon_layout_group *its = &model->groups[group];
    int64_t per = model->scheduler_block_tokens / its->block_tokens, need = per;
    if (is_sliding(its))
        need = moon_ceil_divide(its->spec.window_tokens - 1, its->block_tokens);
    else if (its->spec.kind == MOON_SPEC_MAMBA)
        need = 1;
    return chunk % per >= per - need;
}

bool moon_reach_stored(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                       int64_t chunk, int64_t prefill_end_tokens) {
    const struct moon_layout_group *its = &model->groups[group];
    if (profile->store_mask == MOON_STORE_MASK_NONE)
        return true;
    if (profile->store_mask == MOON_STORE_MASK_TEMPLATE)
        return in_template(model, group, chunk);
    if (is_sliding(its))
        return sliding_reached(profile, model, group, chunk, prefill_end_tokens, false);
    if (its->spec.kind == MOON_SPEC_MAMBA)
        return profile->mamba_by_position && mamba_reached(profile, model, group, chunk, prefill_end_tokens);
    return true;
}

bool moon_reach_asked(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                      int64_t chunk) {
    return !profile->lookup_masked || !is_sliding(&model->groups[group]) ||
           sliding_reached(profile, model, group, chunk, 1, true);
}

/* 0.32 on: one Mamba group wider than the hash block, and no group that cannot be searched below its block. */
static bool core_fine_grained(const struct moon_layout_model *model) {
    bool wide_mamba = false;
    for (size_t i = 0; i < model->group_count; i++) {
        const struct moon_layout_group *each = &model->groups[i];
        bool wide = each->block_tokens > model->hash_block_tokens;
        if (wide && is_sliding(each))
            return false;
        wide_mamba |= wide && each->spec.kind == MOON_SPEC_MAMBA;
    }
    return wide_mamba && model->group_count > 1;
}

bool moon_fine_refused(const struct moon_profile *profile, const struct moon_layout_model *model) {
    for (size_t i = 0; i < model->group_count; i++)
        if (profile->fine_windows_refused && is_sliding(&model->groups[i]) &&
            model->groups[i].block_tokens != model->hash_block_tokens)
            return true;
    return false;
}

bool moon_fine_grained(const struct moon_profile *profile, const struct moon_layout_model *model) {
    if (profile->fine_grained == MOON_FINE_NEVER)
        return false;
    if (profile->fine_grained == MOON_FINE_CORE)
        return core_fine_grained(model);
    bool equal_counts = profile->fine_grained == MOON_FINE_MAMBA_DCP && model->dcp > 1;
    for (size_t i = 0; i < model->group_count; i++) {
        const struct moon_layout_group *each = &model->groups[i];
        if (each->spec.kind != MOON_SPEC_MAMBA)
            continue;
        if (each->block_tokens > model->hash_block_tokens ||
            (equal_counts && each->block_tokens == model->hash_block_tokens))
            return true;
    }
    return false;
}
