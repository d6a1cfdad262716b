/* SPDX-License-Identifier: Apache-2.0 */
/* The table of vLLM releases: each flag states once the release that changed it, each row is one measured release. */
#include "ref/key/profile.h"

#include <stdio.h>
#include <string.h>

/* One row from its minor number. Every flag is a rule over `minor_`, so a release cannot get a flag by accident. */
#define MOON_RELEASE(minor_, patch_, preset_)                                                                          \
    {                                                                                                                  \
        .name = "vllm-0." #minor_, .version = "0." #minor_ "." #patch_, .preset = (preset_), .minor = (minor_),        \
        .none_hash = (minor_) < 29 ? MOON_NONE_HASH_RANDOM_BYTES : MOON_NONE_HASH_FIXED_SEED,                          \
        .extra_tagged = (minor_) >= 31, .mm_resume_overlapping = (minor_) >= 31, .embeds_mask = (minor_) >= 29,        \
        .hash_lookahead = (minor_) >= 33, .pcp_multiplies_block = (minor_) < 26,                                       \
        .groups_context_parallel = (minor_) >= 26, .groups_dcp = (minor_) >= 29, .match_unit = (minor_) >= 26,         \
        .match_unit_checked = (minor_) >= 32, .uncacheable_left_out = (minor_) >= 29, .dcp_by_spec = (minor_) >= 31,   \
        .mamba_by_block_size = (minor_) < 28,                                                                          \
        .group_numbering = (minor_) < 22   ? MOON_GROUP_NONE                                                           \
                           : (minor_) < 29 ? MOON_GROUP_ALL                                                            \
                           : (minor_) < 30 ? MOON_GROUP_TRANSFER                                                       \
                                           : MOON_GROUP_CACHEABLE,                                                     \
        .chunk_hash = (minor_) < 22   ? MOON_CHUNK_HASH_ONLY                                                           \
                      : (minor_) < 24 ? MOON_CHUNK_HASH_JOINED                                                         \
                                      : MOON_CHUNK_HASH_LAST,                                                          \
        .chunk_end_hash = (minor_) >= 27, .chunk_mask = (minor_) >= 25, .prefix_overrides = (minor_) >= 25,            \
        .cache_prefix = (minor_) >= 24, .store_namespace = (minor_) >= 30, .mooncake_group_id = (minor_) >= 28,        \
        .replication = (minor_) < 24   ? MOON_REPLICATION_ENGINE                                                       \
                       : (minor_) < 27 ? MOON_REPLICATION_ENGINE_DCP                                                   \
                                       : MOON_REPLICATION_GROUP,                                                       \
        .lookup_ranks = (minor_) < 22   ? MOON_LOOKUP_TEXTUAL                                                          \
                        : (minor_) < 25 ? MOON_LOOKUP_TP_PP                                                            \
                        : (minor_) < 27 ? MOON_LOOKUP_ALL_HEADS                                                        \
                                        : MOON_LOOKUP_ALL,                                                             \
        .stripe_absolute = (minor_) >= 25, .lookup_masked = (minor_) >= 24,                                            \
        .store_mask = (minor_) < 22   ? MOON_STORE_MASK_NONE                                                           \
                      : (minor_) < 24 ? MOON_STORE_MASK_TEMPLATE                                                       \
                                      : MOON_STORE_MASK_REACH,                                                         \
        .fine_grained = (minor_) < 27   ? MOON_FINE_NEVER                                                              \
                        : (minor_) < 29 ? MOON_FINE_MAMBA                                                              \
                        : (minor_) < 32 ? MOON_FINE_MAMBA_DCP                                                          \
                                        : MOON_FINE_CORE,                                                              \
        .mamba_by_position = (minor_) < 29, .eagle_boundaries = (minor_) >= 32, .null_blocks_skipped = (minor_) >= 29, \
        .fine_windows_refused = (minor_) < 30, .windows_sparse = (minor_) >= 29,                                       \
        .window_extra_tokens = (minor_) >= 33,                                                                         \
        .segment_rule = (minor_) < 22   ? MOON_SEGMENTS_PER_LAYER                                                      \
                        : (minor_) < 29 ? MOON_SEGMENTS_PER_STORAGE                                                    \
                                        : MOON_SEGMENTS_PER_REGION,                                                    \
        .chunk_size_rule = (minor_) < 22   ? MOON_CHUNK_SIZE_DIVIDED                                                   \
                           : (minor_) < 27 ? MOON_CHUNK_SIZE_BLOCKS                                                    \
                                           : MOON_CHUNK_SIZE_ROUNDED,                                                  \
        .single_block_segments = (minor_) >= 27, .buffers_registered_first = (minor_) >= 30,                           \
        .lookup_rpc = (minor_) < 23   ? MOON_RPC_LIST                                                                  \
                      : (minor_) < 24 ? MOON_RPC_TAGGED_LIST                                                           \
                      : (minor_) < 27 ? MOON_RPC_BINARY                                                                \
                      : (minor_) < 29 ? MOON_RPC_RAW                                                                   \
                                      : MOON_RPC_TAILS,                                                                \
        .full_hit = (minor_) < 22   ? MOON_FULL_HIT_LESS_ONE                                                           \
                    : (minor_) < 27 ? MOON_FULL_HIT_ALIGNED                                                            \
                                    : MOON_FULL_HIT_SEARCHED,                                                          \
        .boundary_rule = (minor_) < 27   ? MOON_BOUNDARY_NONE                                                          \
                         : (minor_) < 29 ? MOON_BOUNDARY_TAIL                                                          \
                         : (minor_) < 32 ? MOON_BOUNDARY_HANDED                                                        \
                                         : MOON_BOUNDARY_TAIL_ONCE,                                                    \
        .load_report = (minor_) < 22   ? MOON_LOAD_LOGGED                                                              \
                       : (minor_) < 31 ? MOON_LOAD_BLOCKS                                                              \
                                       : MOON_LOAD_BLOCKS_OR_REQUEST,                                                  \
        .option_lookup_async = (minor_) >= 24, .option_enable_lookup = (minor_) >= 27,                                 \
        .option_save_decode = (minor_) >= 29, .option_discard = (minor_) < 22, .coordinator = (minor_) >= 22,          \
        .eagle_by_spec = (minor_) >= 27, .full_length_kept = (minor_) >= 26, .window_retains = (minor_) >= 28,         \
        .mamba_peeks = (minor_) >= 22 && (minor_) < 27, .peeks_to_hashes = (minor_) >= 32,                             \
        .mamba_mode_asserted = (minor_) >= 29, .mamba_mode_checked = (minor_) >= 30,                                   \
        .capacity_unchecked = (minor_) >= 33, .preempted_reset = (minor_) >= 22, .resumed_by_core = (minor_) >= 25,    \
        .blockless_steps_count = (minor_) >= 29, .load_alone = (minor_) >= 22, .lost_load_ignored = (minor_) >= 30,    \
        .tables_of_step = (minor_) >= 29, .tail_at_finish = (minor_) >= 30, .job_references = (minor_) >= 28,          \
        .references_distinct = (minor_) >= 29, .references_needed = (minor_) >= 32, .decode_advances = (minor_) < 29,  \
        .queue_hooks = (minor_) >= 29, .resume_offset = (minor_) >= 25, .retired_by_job = (minor_) >= 28,              \
        .raised_jobs_end = (minor_) >= 23, .batches_split = (minor_) >= 22, .tier_log = (minor_) >= 22,                \
        .block_errors_asked = (minor_) >= 22, .request_errors_asked = (minor_) >= 31,                                  \
        .cut_load_extended = (minor_) < 22, .failed_batch_ends_load = (minor_) >= 22,                                  \
        .reply_unchecked = (minor_) < 29, .malformed_stops_server = true, .raised_stops_server = (minor_) >= 22,       \
        .events_before_put = (minor_) < 29, .events_of_all_workers = (minor_) < 30,                                    \
        .event_parent_of_chain = (minor_) >= 29, .event_group = (minor_) >= 23, .close_waits = (minor_) >= 30,         \
        .event_block_of_engine = (minor_) < 23, .event_hash_by_number = (minor_) < 23,                                 \
        .event_ids_of_start = (minor_) < 29, .store_closed = (minor_) >= 24, .empty_load_raises = true,                \
        .short_reads_pass = true, .config_mode = (minor_) >= 22, .config_tenant = (minor_) >= 28,                      \
        .lookup_pp_first = (minor_) < 22, .lookup_edits_text = (minor_) < 22, .pp_rank_without_pcp = true,             \
        .template_drops_eagle = (minor_) >= 22 && (minor_) < 24, .negative_segment = (minor_) >= 22,                   \
        .device_by_gpu = (minor_) >= 22 && (minor_) < 24, .retention_variable = (minor_) >= 24 && (minor_) < 30,       \
        .reset_removes_keys = (minor_) >= 23, .transfer_trimmed = (minor_) >= 33, .holders_first = (minor_) >= 31,     \
        .losers_see_blocks = (minor_) >= 26, .tables_of_growing = (minor_) == 29,                                      \
    }

static const struct moon_profile profiles[] = {
    MOON_RELEASE(21, 0, "vllm-0.21"), MOON_RELEASE(22, 1, "vllm-0.22"), MOON_RELEASE(23, 0, "vllm-0.22"),
    MOON_RELEASE(24, 0, "vllm-0.24"), MOON_RELEASE(25, 1, "vllm-0.24"), MOON_RELEASE(26, 0, "vllm-0.24"),
    MOON_RELEASE(27, 1, "vllm-0.24"), MOON_RELEASE(28, 0, "vllm-0.24"), MOON_RELEASE(29, 0, "vllm-0.30"),
    MOON_RELEASE(30, 0, "vllm-0.30"), MOON_RELEASE(31, 0, "vllm-0.33"), MOON_RELEASE(32, 0, "vllm-0.33"),
    MOON_RELEASE(33, 0, "vllm-0.33"),
};
enum { MOON_PROFILE_COUNT = sizeof profiles / sizeof profiles[0] };

const struct moon_profile *moon_profiles(size_t *count) {
    *count = MOON_PROFILE_COUNT;
    return profiles;
}

const struct moon_profile *moon_profile_newest(void) {
    return &profiles[MOON_PROFILE_COUNT - 1];
}

/* True if `word` is `release`, or `release` followed by a patch number; *exact tells which. */
static bool names_release(const char *word, const char *release, bool *exact) {
    size_t length = strlen(release);
    if (strncmp(word, release, length) != 0 || (word[length] != '\0' && word[length] != '.'))
        return false;
    *exact = word[length] == '\0';
    return true;
}

const struct moon_profile *moon_profile_find(const char *name, struct moon_error *error) {
    static const char family[] = "vllm-";
    const char *word = strncmp(name, family, sizeof family - 1) == 0 ? name + sizeof family - 1 : name;
    for (size_t i = 0; i < MOON_PROFILE_COUNT; i++) {
        const struct moon_profile *profile = &profiles[i];
        bool exact;
        if (!names_release(word, profile->name + sizeof family - 1, &exact))
            continue;
        if (exact || strcmp(word, profile->version) == 0)
            return profile;
        moon_fail(error, MOON_ERR_UNSUPPORTED, NULL, "\"%.64s\" was not measured, of this line only %s was", name,
                  profile->version);
        return NULL;
    }
    char known[MOON_PROFILE_COUNT * 16];
    size_t used = 0;
    for (size_t i = 0; i < MOON_PROFILE_COUNT; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", profiles[i].name);
    moon_fail(error, MOON_ERR_UNSUPPORTED, NULL, "no profile \"%.64s\"; known: %s", name, known);
    return NULL;
}
