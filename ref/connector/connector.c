/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a release, a model and the options. */
#include "ref/connector/connector.h"

#include "ref/layout/reach.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- what the release refuses ---- */

/* Reasons of a refusal, joined; cut at the buffer's end, as moon_refuse cuts. */
struct reasons {
    char text[MOON_ERROR_MESSAGE_BYTES];
    size_t used;
};

static void add_reason(struct reasons *reasons, const char *reason) {
    size_t left = sizeof reasons->text - reasons->used;
    int length = snprintf(reasons->text + reasons->used, left, "%s%s", reasons->used ? "; " : "", reason);
    reasons->used += (size_t)length < left ? (size_t)length : left - 1;
}

static bool is_unaligned(const struct moon_layout_group *group) {
    return group->spec.kind == MOON_SPEC_MAMBA && group->spec.mamba_mode != MOON_MAMBA_ALIGN;
}

static void list_unaligned(const struct moon_layout_model *model, struct reasons *reasons) {
    for (size_t i = 0; i < model->group_count; i++)
        if (is_unaligned(&model->groups[i])) {
            char reason[96];
            snprintf(reason, sizeof reason, "group %zu: mamba_cache_mode='%s' != 'align'", model->groups[i].number,
                     moon_mamba_mode_name(model->groups[i].spec.mamba_mode));
            add_reason(reasons, reason);
        }
}

static void list_parallel(const struct moon_profile *profile, const struct moon_layout_model *model,
                          struct reasons *reasons) {
    char reason[96];
    if (model->group_count == 1 || (model->pcp == 1 && (profile->groups_dcp || model->dcp == 1)))
        return;
    if (profile->groups_dcp)
        snprintf(reason, sizeof reason, "PCP > 1 (pcp=%" PRId64 ") with hybrid attention", model->pcp);
    else
        snprintf(reason, sizeof reason, "PCP/DCP > 1 (pcp=%" PRId64 ", dcp=%" PRId64 ") with hybrid attention",
                 model->pcp, model->dcp);
    add_reason(reasons, reason);
}

/* The check of the connector itself, which a capacity-only consumer is spared (LOOKUP-040, LOOKUP-041). */
static int check_groups(const struct moon_profile *profile, const struct moon_layout_model *model,
                        struct moon_error *error) {
    struct reasons reasons = {.used = 0};
    if (model->group_count == 0 && profile->group_numbering == MOON_GROUP_CACHEABLE)
        return moon_refuse(error, "ValueError", "MooncakeStore requires at least one prefix-cacheable KV cache group");
    if (profile->mamba_mode_checked)
        list_unaligned(model, &reasons);
    if (profile->coordinator && model->group_count > 0)
        list_parallel(profile, model, &reasons);
    if (reasons.used > 0)
        return moon_refuse(error, "ValueError", "MooncakeStoreConnector does not support: %s", reasons.text);
    return 0;
}

/* What its scheduler side asserts (LOOKUP-042, LOOKUP-043). */
static int assert_aligned(const struct moon_connector *connector, struct moon_error *error) {
    const struct moon_profile *profile = connector->profile;
    if (!profile->mamba_mode_asserted || (connector->capacity_only && profile->capacity_unchecked))
        return 0;
    for (size_t i = 0; i < connector->model->group_count; i++)
        if (is_unaligned(&connector->model->groups[i]))
            return moon_refuse(error, "AssertionError", "MooncakeStoreScheduler requires mamba_cache_mode='align'");
    return 0;
}

static int check(const struct moon_connector *connector, struct moon_error *error) {
    const struct moon_layout_model *model = connector->model;
    int status = connector->capacity_only ? 0 : check_groups(connector->profile, model, error);
    if (!status && model->group_count == 0)
        status = moon_fail(error, MOON_ERR_RANGE, NULL, "no KV cache group is left for the store");
    if (!status && model->group_count > 1 && !connector->profile->coordinator)
        status = moon_fail(error, MOON_ERR_UNSUPPORTED, NULL, "%s has one KV cache group", connector->profile->name);
    if (!status && model->group_count > MOON_STORE_GROUPS_MAX)
        status = moon_fail(error, MOON_ERR_LIMIT, NULL, "more than %d KV cache groups", MOON_STORE_GROUPS_MAX);
    return status ? status : assert_aligned(connector, error);
}

/* ---- opening ---- */

/* Options that the release knows, and what follows from them. */
static void settle_options(struct moon_connector *out) {
    const struct moon_profile *profile = out->profile;
    struct moon_connector_options *own = &out->options;
    own->lookup_async &= profile->option_lookup_async;
    own->enable_lookup |= !profile->option_enable_lookup;
    own->save_decode_cache &= profile->option_save_decode;
    own->enable_group_semantics &= profile->mooncake_group_id;
    own->discard_partial_chunks |= !profile->option_discard;
    out->saves_prefill = own->role != MOON_ROLE_CONSUMER;
    out->saves_decode = own->save_decode_cache;
    out->capacity_only = own->role == MOON_ROLE_CONSUMER && !own->enable_lookup && !own->save_decode_cache;
}

int moon_connector_open(struct moon_connector *out, const struct moon_profile *profile,
                        const struct moon_layout_model *model, const struct moon_connector_options *options,
                        struct moon_error *error) {
    *out = (struct moon_connector){.profile = profile, .model = model, .options = *options};
    settle_options(out);
    int status = check(out, error);
    if (status)
        return status;
    moon_store_select(profile, model, &out->selection);
    out->fine_grained = moon_fine_grained(profile, model) && !(out->capacity_only && profile->capacity_unchecked);
    out->alignment_tokens = out->fine_grained ? model->hash_block_tokens : model->scheduler_block_tokens;
    return 0;
}
