/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the release table: names, order, and the release at which each flag turns. */
#include "ref/key/profile.h"

#include "ref/base/unit.h"

static void names_are_found(void) {
    const char *const names[] = {"vllm-0.27", "0.27", "0.27.1", "vllm-0.27.1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct moon_profile *profile = moon_profile_find(names[i], NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(profile);
        MOON_CHECK_TEXT(profile->name, "vllm-0.27");
        MOON_CHECK_TEXT(profile->version, "0.27.1");
        MOON_CHECK_TEXT(profile->preset, "vllm-0.24");
        MOON_CHECK_INT(profile->minor, 27);
    }
}

static void unknown_names_are_told(void) {
    const char *const names[] = {"",          "vllm-", "vllm-0.2", "vllm-0.20", "0.270",
                                 "vllm-0.34", "27",    "0.27x",    "VLLM-0.27"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct moon_error error = {0};
        CU_ASSERT_PTR_NULL(moon_profile_find(names[i], &error));
        MOON_CHECK_INT(error.status, MOON_ERR_UNSUPPORTED);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "known: vllm-0.21, vllm-0.22"));
        CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "vllm-0.33"));
    }
}

static void another_patch_release_is_told(void) {
    struct moon_error error = {0};
    CU_ASSERT_PTR_NULL(moon_profile_find("vllm-0.27.0", &error));
    MOON_CHECK_INT(error.status, MOON_ERR_UNSUPPORTED);
    MOON_CHECK_TEXT(error.message, "\"vllm-0.27.0\" was not measured, of this line only 0.27.1 was");
}

static void the_table_runs_from_21_to_33(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    MOON_CHECK_INT(count, 13);
    MOON_CHECK_TEXT(moon_profile_newest()->name, "vllm-0.33");
    for (size_t i = 0; i < count; i++) {
        MOON_CHECK_INT(all[i].minor, 21 + (int)i);
        CU_ASSERT_PTR_EQUAL(moon_profile_find(all[i].name, NULL), &all[i]);
        CU_ASSERT_PTR_EQUAL(moon_profile_find(all[i].version, NULL), &all[i]);
    }
}

/* A flag and the first release that has it; every later one must have it, every earlier one not. */
#define TURNS_AT(flag, first_minor)                                                                                    \
    do {                                                                                                               \
        size_t count_;                                                                                                 \
        const struct moon_profile *all_ = moon_profiles(&count_);                                                      \
        for (size_t i_ = 0; i_ < count_; i_++)                                                                         \
            MOON_CHECK_INT(all_[i_].flag, all_[i_].minor >= (first_minor));                                            \
    } while (0)

static void flags_turn_at_their_release(void) {
    TURNS_AT(extra_tagged, 31);
    TURNS_AT(mm_resume_overlapping, 31);
    TURNS_AT(embeds_mask, 29);
    TURNS_AT(hash_lookahead, 33);
    TURNS_AT(groups_context_parallel, 26);
    TURNS_AT(groups_dcp, 29);
    TURNS_AT(match_unit, 26);
    TURNS_AT(match_unit_checked, 32);
    TURNS_AT(uncacheable_left_out, 29);
    TURNS_AT(dcp_by_spec, 31);
    TURNS_AT(chunk_end_hash, 27);
    TURNS_AT(chunk_mask, 25);
    TURNS_AT(prefix_overrides, 25);
    TURNS_AT(cache_prefix, 24);
    TURNS_AT(store_namespace, 30);
    TURNS_AT(mooncake_group_id, 28);
    TURNS_AT(stripe_absolute, 25);
    TURNS_AT(lookup_masked, 24);
    TURNS_AT(windows_sparse, 29);
    TURNS_AT(window_extra_tokens, 33);
    TURNS_AT(eagle_boundaries, 32);
    TURNS_AT(null_blocks_skipped, 29);
    TURNS_AT(single_block_segments, 27);
    TURNS_AT(buffers_registered_first, 30);
    TURNS_AT(config_mode, 22);
    TURNS_AT(config_tenant, 28);
    TURNS_AT(eagle_by_spec, 27);
    TURNS_AT(window_retains, 28);
    TURNS_AT(full_length_kept, 26);
    TURNS_AT(peeks_to_hashes, 32);
    TURNS_AT(mamba_mode_asserted, 29);
    TURNS_AT(mamba_mode_checked, 30);
    TURNS_AT(capacity_unchecked, 33);
    TURNS_AT(batches_split, 22);
    TURNS_AT(tier_log, 22);
    TURNS_AT(block_errors_asked, 22);
    TURNS_AT(request_errors_asked, 31);
    TURNS_AT(reset_removes_keys, 23);
    TURNS_AT(transfer_trimmed, 33);
    TURNS_AT(references_distinct, 29);
    TURNS_AT(references_needed, 32);
    TURNS_AT(queue_hooks, 29);
    TURNS_AT(job_references, 28);
    TURNS_AT(tail_at_finish, 30);
    TURNS_AT(tables_of_step, 29);
    TURNS_AT(lost_load_ignored, 30);
    TURNS_AT(load_alone, 22);
    TURNS_AT(blockless_steps_count, 29);
    TURNS_AT(resumed_by_core, 25);
    TURNS_AT(preempted_reset, 22);
    TURNS_AT(option_save_decode, 29);
    TURNS_AT(option_enable_lookup, 27);
    TURNS_AT(option_lookup_async, 24);
    TURNS_AT(negative_segment, 22);
    TURNS_AT(pp_rank_without_pcp, 21);
    TURNS_AT(short_reads_pass, 21);
    TURNS_AT(raised_stops_server, 22);
    TURNS_AT(malformed_stops_server, 21);
    TURNS_AT(event_parent_of_chain, 29);
    TURNS_AT(event_group, 23);
    TURNS_AT(holders_first, 31);
    TURNS_AT(losers_see_blocks, 26);
    TURNS_AT(close_waits, 30);
    TURNS_AT(store_closed, 24);
}

static void rules_follow_one_another(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count; i++) {
        int minor = all[i].minor;
        MOON_CHECK_INT(all[i].pcp_multiplies_block, minor <= 25);
        MOON_CHECK_INT(all[i].mamba_by_position, minor <= 28);
        MOON_CHECK_INT(all[i].decode_advances, minor <= 28);
        MOON_CHECK_INT(all[i].cut_load_extended, minor <= 21);
        MOON_CHECK_INT(all[i].reply_unchecked, minor <= 28);
        MOON_CHECK_INT(all[i].events_before_put, minor <= 28);
        MOON_CHECK_INT(all[i].event_ids_of_start, minor <= 28);
        MOON_CHECK_INT(all[i].event_block_of_engine, minor <= 22);
        MOON_CHECK_INT(all[i].event_hash_by_number, minor <= 22);
        MOON_CHECK_INT(all[i].events_of_all_workers, minor <= 29);
        MOON_CHECK_INT(all[i].mamba_by_block_size, minor <= 27);
        MOON_CHECK_INT(all[i].lookup_pp_first, minor == 21);
        MOON_CHECK_INT(all[i].lookup_edits_text, minor == 21);
        MOON_CHECK_INT(all[i].template_drops_eagle, minor == 22 || minor == 23);
        MOON_CHECK_INT(all[i].fine_windows_refused, minor <= 29);
        MOON_CHECK_INT(all[i].mamba_peeks, minor >= 22 && minor <= 26);
        MOON_CHECK_INT(all[i].device_by_gpu, minor == 22 || minor == 23);
        MOON_CHECK_INT(all[i].retention_variable, minor >= 24 && minor <= 29);
        MOON_CHECK_INT(all[i].none_hash == MOON_NONE_HASH_FIXED_SEED, minor >= 29);
        MOON_CHECK_INT(all[i].group_numbering, (minor >= 22) + (minor >= 29) + (minor >= 30));
        MOON_CHECK_INT(all[i].chunk_hash, (minor >= 22) + (minor >= 24));
        MOON_CHECK_INT(all[i].replication, (minor >= 24) + (minor >= 27));
        MOON_CHECK_INT(all[i].lookup_ranks, (minor >= 22) + (minor >= 25) + (minor >= 27));
        MOON_CHECK_INT(all[i].store_mask, (minor >= 22) + (minor >= 24));
        MOON_CHECK_INT(all[i].fine_grained, (minor >= 27) + (minor >= 29) + (minor >= 32));
        MOON_CHECK_INT(all[i].segment_rule, (minor >= 22) + (minor >= 29));
        MOON_CHECK_INT(all[i].chunk_size_rule, (minor >= 22) + (minor >= 27));
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a release is found by profile name, minor and patch number", names_are_found},
        {"an unknown release is answered with the known ones", unknown_names_are_told},
        {"a patch release that was not measured is answered with the one that was", another_patch_release_is_told},
        {"the table has every minor release from 0.21 to 0.33", the_table_runs_from_21_to_33},
        {"each flag turns at its release and stays", flags_turn_at_their_release},
        {"each rule gives way to the next at its release", rules_follow_one_another},
        {NULL, NULL}};
    return moon_unit_main("profile", cases, argc, argv);
}
