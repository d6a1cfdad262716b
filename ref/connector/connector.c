/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a release, a model and the options. */
#include "ref/connector/connector.h"

#include "ref/layout/reach.h"

int moon_connector_open(struct moon_connector *out, const struct moon_profile *profile,
                        const struct moon_layout_model *model, const struct moon_connector_options *options,
                        struct moon_error *error) {
    (void)error;
    *out = (struct moon_connector){.profile = profile, .model = model, .options = *options};
    struct moon_connector_options *own = &out->options;
    own->lookup_async &= profile->option_lookup_async;
    own->enable_lookup |= !profile->option_enable_lookup;
    own->save_decode_cache &= profile->option_save_decode;
    own->enable_group_semantics &= profile->mooncake_group_id;
    own->discard_partial_chunks |= !profile->option_discard;
    moon_store_select(profile, model, &out->selection);
    out->fine_grained = moon_fine_grained(profile, model);
    out->alignment_tokens = out->fine_grained ? model->hash_block_tokens : model->scheduler_block_tokens;
    out->saves_prefill = own->role != MOON_ROLE_CONSUMER;
    out->saves_decode = own->save_decode_cache;
    out->capacity_only = own->role == MOON_ROLE_CONSUMER && !own->enable_lookup && !own->save_decode_cache;
    return 0;
}
