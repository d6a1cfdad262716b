/* SPDX-License-Identifier: Apache-2.0 */
/* Names of deviations, notes of them, and strict profiles. */
#include "ref/key/deviation.h"

#include <assert.h>

#define MOON_DEVIATION_ROW(name, edge, text) {#name, edge, text},
static const struct { const char *name, *edge, *text; } rows[] = {MOON_DEVIATIONS(MOON_DEVIATION_ROW)};
static_assert(MOON_DEVIATION_COUNT <= 64, "one bit each");

void moon_deviation_note(struct moon_deviation_notes *notes, enum moon_deviation deviation) {
    if (notes)
        notes->taken |= UINT64_C(1) << deviation;
}

bool moon_deviation_noted(const struct moon_deviation_notes *notes, enum moon_deviation deviation) {
    return notes->taken >> deviation & 1;
}

const char *moon_deviation_name(enum moon_deviation deviation) {
    return rows[deviation].name;
}

const char *moon_deviation_edge(enum moon_deviation deviation) {
    return rows[deviation].edge;
}

const char *moon_deviation_text(enum moon_deviation deviation) {
    return rows[deviation].text;
}

/* Sets a flag to what is right. True if it was wrong. */
static bool turn(bool *flag, bool right) {
    bool wrong = *flag != right;
    *flag = right;
    return wrong;
}

/* The same for rules whose later values are right: at least `right`. */
#define RAISE(field, right) ((field) < (right) ? ((field) = (right), true) : false)

/* The hit is searched again by the worker, which must know the length that is not aligned. */
static bool search_full_hits(struct moon_profile *profile) {
    if (profile->full_hit != MOON_FULL_HIT_ALIGNED)
        return false;
    profile->full_hit = MOON_FULL_HIT_SEARCHED;
    (void)RAISE(profile->lookup_rpc, MOON_RPC_RAW);
    return true;
}

/* No group looks beyond what the others have, and none forgets what it has. */
static bool keep_to_common_hit(struct moon_profile *profile) {
    bool wrong = turn(&profile->mamba_peeks, false);
    profile->full_length_kept |= wrong;
    return wrong;
}

static bool keep_server(struct moon_profile *profile) {
    bool malformed = turn(&profile->malformed_stops_server, false);
    return turn(&profile->raised_stops_server, false) || malformed;
}

static bool tell_chunks(struct moon_profile *profile) {
    bool by_number = turn(&profile->event_hash_by_number, false);
    return turn(&profile->event_block_of_engine, false) || by_number;
}

/* True if the profile deviated. One case a deviation: the compiler misses none. */
static bool turn_right(struct moon_profile *profile, enum moon_deviation deviation) {
    switch (deviation) {
    case MOON_DEVIATION_RANDOM_NONE_HASH:
        return RAISE(profile->none_hash, MOON_NONE_HASH_FIXED_SEED);
    case MOON_DEVIATION_UNTAGGED_EXTRAS:
        return turn(&profile->extra_tagged, true);
    case MOON_DEVIATION_EARLIER_ITEMS_FORGOTTEN:
        return turn(&profile->mm_resume_overlapping, true);
    case MOON_DEVIATION_EMBEDDING_MASK_UNREAD:
        return turn(&profile->embeds_mask, true);
    case MOON_DEVIATION_PP_WITHOUT_PCP:
        return turn(&profile->pp_rank_without_pcp, false);
    case MOON_DEVIATION_STRIPED_UNDER_DCP:
        return RAISE(profile->replication, MOON_REPLICATION_ENGINE_DCP);
    case MOON_DEVIATION_MAMBA_SHARED_OUT:
        return RAISE(profile->replication, MOON_REPLICATION_GROUP);
    case MOON_DEVIATION_LOOKUP_EDITS_TEXT:
        return turn(&profile->lookup_edits_text, false);
    case MOON_DEVIATION_OWN_CONTEXT_RANKS:
        return RAISE(profile->lookup_ranks, MOON_LOOKUP_ALL_HEADS);
    case MOON_DEVIATION_HEADS_NOT_ASKED:
        return RAISE(profile->lookup_ranks, MOON_LOOKUP_ALL);
    case MOON_DEVIATION_TEMPLATE_DROPS_EAGLE:
        return turn(&profile->template_drops_eagle, false);
    case MOON_DEVIATION_FINE_WINDOWS_REFUSED:
        return profile->fine_grained != MOON_FINE_NEVER && turn(&profile->fine_windows_refused, false);
    case MOON_DEVIATION_NEGATIVE_SEGMENT:
        return turn(&profile->negative_segment, false);
    case MOON_DEVIATION_CAPACITY_ONLY_CHECKED:
        return profile->mamba_mode_asserted && turn(&profile->capacity_unchecked, true);
    case MOON_DEVIATION_MAMBA_LOOKS_BEYOND:
        return keep_to_common_hit(profile);
    case MOON_DEVIATION_FULL_HIT_CUT:
        return search_full_hits(profile);
    case MOON_DEVIATION_BLOCKLESS_STEPS_LOST:
        return turn(&profile->blockless_steps_count, true);
    case MOON_DEVIATION_LATE_TABLES:
        return profile->load_alone && turn(&profile->tables_of_step, true); /* 0.21 has one group, which keeps blocks */
    case MOON_DEVIATION_TABLES_WITHHELD:
        return turn(&profile->tables_of_growing, false);
    case MOON_DEVIATION_NULL_BLOCKS_PUT:
        return turn(&profile->null_blocks_skipped, true);
    case MOON_DEVIATION_STALE_JOB_RUNS:
        return turn(&profile->retired_by_job, true);
    case MOON_DEVIATION_RAISED_JOB_KEPT:
        return turn(&profile->raised_jobs_end, true);
    case MOON_DEVIATION_BATCHES_DROPPED:
        return turn(&profile->failed_batch_ends_load, false);
    case MOON_DEVIATION_EMPTY_LOAD_HANGS:
        return turn(&profile->empty_load_raises, false);
    case MOON_DEVIATION_LOST_LOAD_SAVED:
        return turn(&profile->lost_load_ignored, true);
    case MOON_DEVIATION_PREEMPTION_REMEMBERED:
        return turn(&profile->resumed_by_core, true);
    case MOON_DEVIATION_LOAD_ERRORS_LOGGED:
        return RAISE(profile->load_report, MOON_LOAD_BLOCKS);
    case MOON_DEVIATION_BLOCKS_OF_GROUPS:
        return profile->load_report == MOON_LOAD_BLOCKS && RAISE(profile->load_report, MOON_LOAD_BLOCKS_OR_REQUEST);
    case MOON_DEVIATION_SHORT_READ_PASSES:
        return turn(&profile->short_reads_pass, false);
    case MOON_DEVIATION_REPLY_UNCHECKED:
        return turn(&profile->reply_unchecked, false);
    case MOON_DEVIATION_LOOKUP_SERVER_STOPS:
        return keep_server(profile);
    case MOON_DEVIATION_EVENTS_OF_FAILED_PUTS:
        return turn(&profile->events_before_put, false);
    case MOON_DEVIATION_EVENTS_NEVER_COMMON:
        return turn(&profile->events_of_all_workers, false);
    case MOON_DEVIATION_EVENT_IDS_CUT:
        return turn(&profile->event_ids_of_start, false);
    case MOON_DEVIATION_EVENT_OF_OTHER_BLOCK:
        return tell_chunks(profile);
    case MOON_DEVIATION_COUNT: /* is none */
        break;
    }
    return false;
}

void moon_profile_right(struct moon_profile *profile, enum moon_deviation deviation) {
    turn_right(profile, deviation);
}

bool moon_profile_deviates(const struct moon_profile *profile, enum moon_deviation deviation) {
    struct moon_profile right = *profile;
    return turn_right(&right, deviation);
}

void moon_profile_strict(const struct moon_profile *profile, struct moon_profile *out) {
    *out = *profile;
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
        turn_right(out, (enum moon_deviation)i);
}
