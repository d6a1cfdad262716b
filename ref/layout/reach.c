/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of reachable chunks, as questions about one chunk: no mask is built. */
#include "ref/layout/reach.h"

#include "ref/base/number.h"

static bool is_sliding(const struct moon_layout_group *group) {
    return moon_spec_is_window(moon_layout_group_spec(group));
}

/* Chunks that a hit needs of a sliding window before its end. */
static int64_t window_chunks(const struct moon_layout_group *group) {
    return moon_ceil_divide(moon_layout_group_spec(group)->window_tokens - 1, group->block_tokens);
}

static bool is_mamba(const struct moon_layout_group *group) {
    return group->spec.kind == MOON_SPEC_MAMBA;
}

/* Replay boundaries of a prefill: where a request with the same prompt would resume. A hit is one for all groups, so
 * each keeps what it needs there, whether or not it is the drafter's. Returns 1 or 2. */
static int boundaries(const struct moon_profile *profile, const struct moon_layout_model *model, int64_t prefill_end,
                      int64_t out[2]) {
    int64_t align = model->scheduler_block_tokens;
    out[0] = out[1] = prefill_end - 1;
    if (!profile->eagle_boundaries || !moon_layout_eagle(model))
        return 1;
    out[0] = moon_larger((prefill_end - 1) / align * align - align, 0);
    out[1] = moon_larger(prefill_end / align * align - align, 0);
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
    int64_t shift = moon_layout_group_drafts(profile, model, group) ? 1 : 0, need = window_chunks(its) + shift;
    if (in_segments(retained ? model->retention_tokens : align, block, need, shift, chunk))
        return true;
    if (!retained)
        return false;
    int64_t points[2];
    int count = boundaries(profile, model, prefill_end, points);
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
    int count = boundaries(profile, model, prefill_end, points);
    for (int i = 0; i < count; i++)
        if ((chunk + 1) * block == points[i] / align * align)
            return true;
    return false;
}

int64_t moon_local_start(const struct moon_layout_group *group, int64_t tokens) {
    return tokens / group->spec.local_tokens * group->spec.local_tokens / group->block_tokens;
}

/* True if an earlier group has the same spec, and so is one with it in the search. */
static bool is_repeated(const struct moon_layout_model *model, size_t group) {
    for (size_t i = 0; i < group; i++)
        if (moon_layout_groups_equal(&model->groups[i], &model->groups[group]))
            return true;
    return false;
}

/* 0.22 and 0.23: whether a template has chunks of a group when EAGLE drops some. The template is a search of one
 * scheduler block: full attention first, each group up to the hit so far. One that drops a chunk is left with nothing;
 * a Mamba group of the drafter drops none but searches a block further, and so finds the whole block again. */
static bool survives_eagle(const struct moon_layout_model *model, size_t group) {
    bool whole = true, reached = false;
    for (int full = 1; full >= 0; full--)
        for (size_t i = 0; i < model->group_count; i++) {
            const struct moon_layout_group *each = &model->groups[i];
            bool drafts = moon_layout_group_eagle(model, i);
            if (moon_spec_is_full(moon_layout_group_spec(each)) != full || is_repeated(model, i))
                continue;
            if (drafts)
                whole = is_mamba(each) && (whole || each->block_tokens == model->scheduler_block_tokens);
            if (i == group || moon_layout_groups_equal(each, &model->groups[group]))
                reached = whole;
        }
    return whole && reached;
}

/* 0.22 and 0.23: in each scheduler block what a hit at its end loads; needs no template if every group is stored whole.
 */
static bool in_template(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                        int64_t chunk) {
    bool templated = false;
    for (size_t i = 0; i < model->group_count; i++) {
        const struct moon_layout_group *each = &model->groups[i];
        templated |=
            !moon_spec_is_full(moon_layout_group_spec(each)) && each->block_tokens != model->scheduler_block_tokens;
    }
    if (!templated)
        return true;
    if (profile->template_drops_eagle && !survives_eagle(model, group))
        return false;
    const struct moon_layout_group *its = &model->groups[group];
    int64_t per = model->scheduler_block_tokens / its->block_tokens, need = per, shift = 0;
    if (is_sliding(its)) {
        shift = moon_layout_group_eagle(model, group) ? 1 : 0;
        /* the search takes the last chunk, even for a window of one token */
        need = moon_larger(window_chunks(its), 1) + shift;
    } else if (is_mamba(its)) {
        need = 1;
    } else if (its->spec.kind == MOON_SPEC_CHUNKED_LOCAL) {
        need = per - moon_local_start(its, model->scheduler_block_tokens);
    }
    return in_segments(model->scheduler_block_tokens, its->block_tokens, need, shift, chunk);
}

bool moon_reach_stored(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                       int64_t chunk, int64_t prefill_end_tokens) {
    const struct moon_layout_group *its = &model->groups[group];
    if (profile->store_mask == MOON_STORE_MASK_NONE)
        return true;
    if (profile->store_mask == MOON_STORE_MASK_TEMPLATE)
        return in_template(profile, model, group, chunk);
    if (is_sliding(its))
        return sliding_reached(profile, model, group, chunk, prefill_end_tokens, false);
    if (is_mamba(its))
        return profile->mamba_by_position && mamba_reached(profile, model, group, chunk, prefill_end_tokens);
    return true;
}

bool moon_reach_asked(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                      int64_t chunk) {
    return !profile->lookup_masked || !is_sliding(&model->groups[group]) ||
           sliding_reached(profile, model, group, chunk, 1, true);
}

/* A Mamba group of which a state inside a block can be found: its blocks are wider than the hash block, or as wide
 * where that counts. */
static bool is_fine_mamba(const struct moon_layout_model *model, size_t group, bool equal_counts) {
    int64_t block = model->groups[group].block_tokens, unit = model->hash_block_tokens;
    return is_mamba(&model->groups[group]) && (block > unit || (equal_counts && block == unit));
}

/* True if hits of the group end at blocks only, and these are wider than the hash block. */
static bool is_coarse(const struct moon_layout_model *model, size_t group) {
    const struct moon_layout_group *its = &model->groups[group];
    return its->block_tokens != model->hash_block_tokens &&
           (is_sliding(its) || its->spec.kind == MOON_SPEC_CHUNKED_LOCAL);
}

/* 0.32 on: of several groups one is Mamba, and none ends at wider blocks only. */
static bool core_fine_grained(const struct moon_layout_model *model) {
    bool fine = false, coarse = false;
    for (size_t i = 0; i < model->group_count; i++) {
        fine |= is_fine_mamba(model, i, model->dcp > 1);
        coarse |= is_coarse(model, i);
    }
    return fine && !coarse && model->group_count > 1 && model->hash_block_tokens < model->scheduler_block_tokens;
}

int moon_fine_check(const struct moon_profile *profile, const struct moon_layout_model *model,
                    struct moon_error *error) {
    if (!profile->fine_windows_refused || !moon_fine_grained(profile, model))
        return 0;
    for (size_t i = 0; i < model->group_count; i++)
        if (is_sliding(&model->groups[i]) && is_coarse(model, i))
            return moon_refuse(error, "AssertionError",
                               "SlidingWindowManager does not support fine-grained (partial) cache hits");
    return 0;
}

bool moon_fine_grained(const struct moon_profile *profile, const struct moon_layout_model *model) {
    if (profile->fine_grained == MOON_FINE_NEVER)
        return false;
    if (profile->fine_grained == MOON_FINE_CORE)
        return core_fine_grained(model);
    for (size_t i = 0; i < model->group_count; i++)
        if (is_fine_mamba(model, i, profile->fine_grained == MOON_FINE_MAMBA_DCP && model->dcp > 1))
            return true;
    return false;
}
