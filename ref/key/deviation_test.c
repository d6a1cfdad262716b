/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of deviations: names and notes, which releases deviate, and profiles in which nothing does. */
#include "ref/key/deviation.h"

#include "ref/base/unit.h"

static const struct moon_profile *release(const char *name) {
    return moon_profile_find(name, NULL);
}

static void each_deviation_has_name_edge_and_text(void) {
    MOON_CHECK_TEXT(moon_deviation_name(MOON_DEVIATION_BATCHES_DROPPED), "BATCHES_DROPPED");
    MOON_CHECK_TEXT(moon_deviation_edge(MOON_DEVIATION_BATCHES_DROPPED), "connector.9.19");
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++) {
        enum moon_deviation deviation = (enum moon_deviation)i;
        CU_ASSERT(strncmp(moon_deviation_edge(deviation), "connector.", 10) == 0);
        CU_ASSERT(strlen(moon_deviation_text(deviation)) > 20);
        for (int other = 0; other < i; other++)
            CU_ASSERT(strcmp(moon_deviation_name(deviation), moon_deviation_name((enum moon_deviation)other)) != 0);
    }
}

static void notes_are_kept_apart(void) {
    struct moon_deviation_notes notes = {0};
    moon_deviation_note(NULL, MOON_DEVIATION_PP_WITHOUT_PCP);
    moon_deviation_note(&notes, MOON_DEVIATION_PP_WITHOUT_PCP);
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
        MOON_CHECK_INT(moon_deviation_noted(&notes, (enum moon_deviation)i), i == MOON_DEVIATION_PP_WITHOUT_PCP);
}

static void each_deviation_is_of_some_release_and_is_turned_right(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++) {
        enum moon_deviation deviation = (enum moon_deviation)i;
        size_t deviating = 0;
        for (size_t at = 0; at < count; at++) {
            struct moon_profile right = all[at];
            deviating += moon_profile_deviates(&all[at], deviation);
            moon_profile_right(&right, deviation);
            CU_ASSERT_FALSE(moon_profile_deviates(&right, deviation));
            MOON_CHECK_TEXT(right.name, all[at].name);
        }
        if (deviating == 0)
            fprintf(stderr, "no release deviates so: %s\n", moon_deviation_name(deviation));
        CU_ASSERT(deviating > 0);
    }
    CU_ASSERT_FALSE(moon_profile_deviates(&all[0], MOON_DEVIATION_COUNT));
}

static void nothing_deviates_in_a_strict_profile(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t at = 0; at < count; at++) {
        struct moon_profile strict;
        moon_profile_strict(&all[at], &strict);
        MOON_CHECK_TEXT(strict.name, all[at].name);
        MOON_CHECK_TEXT(strict.version, all[at].version);
        MOON_CHECK_INT(strict.minor, all[at].minor);
        for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
            CU_ASSERT_FALSE(moon_profile_deviates(&strict, (enum moon_deviation)i));
    }
}

/* Strict repairs a release, it does not make it another. */
static void what_is_no_fault_stays(void) {
    struct moon_profile strict;
    moon_profile_strict(release("0.21"), &strict);
    MOON_CHECK_INT(strict.group_numbering, MOON_GROUP_NONE);
    MOON_CHECK_INT(strict.full_hit, MOON_FULL_HIT_LESS_ONE);
    MOON_CHECK_INT(strict.lookup_rpc, MOON_RPC_LIST);
    CU_ASSERT_TRUE(strict.lookup_pp_first);
    CU_ASSERT_FALSE(strict.stripe_absolute);
    moon_profile_strict(release("0.22"), &strict);
    MOON_CHECK_INT(strict.chunk_hash, MOON_CHUNK_HASH_JOINED);
    MOON_CHECK_INT(strict.store_mask, MOON_STORE_MASK_TEMPLATE);
    CU_ASSERT_FALSE(strict.resume_offset);
    moon_profile_strict(release("0.33"), &strict);
    CU_ASSERT_TRUE(strict.windows_sparse);
    CU_ASSERT_TRUE(strict.reset_removes_keys);
}

/* The search after a whole hit needs the length that is not aligned, so it is on the wire. */
static void a_searched_full_hit_brings_the_raw_length(void) {
    struct moon_profile strict;
    moon_profile_strict(release("0.24"), &strict);
    MOON_CHECK_INT(strict.full_hit, MOON_FULL_HIT_SEARCHED);
    MOON_CHECK_INT(strict.lookup_rpc, MOON_RPC_RAW);
    moon_profile_strict(release("0.30"), &strict);
    MOON_CHECK_INT(strict.lookup_rpc, MOON_RPC_TAILS);
}

static void failed_loads_are_told_in_the_form_that_fits(void) {
    struct moon_profile profile = *release("0.21");
    moon_profile_right(&profile, MOON_DEVIATION_BLOCKS_OF_GROUPS);
    MOON_CHECK_INT(profile.load_report, MOON_LOAD_LOGGED);
    moon_profile_right(&profile, MOON_DEVIATION_LOAD_ERRORS_LOGGED);
    MOON_CHECK_INT(profile.load_report, MOON_LOAD_BLOCKS);
    moon_profile_right(&profile, MOON_DEVIATION_BLOCKS_OF_GROUPS);
    MOON_CHECK_INT(profile.load_report, MOON_LOAD_BLOCKS_OR_REQUEST);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each deviation has a name of its own, an edge and a text", each_deviation_has_name_edge_and_text},
        {"notes of deviations are kept apart", notes_are_kept_apart},
        {"each deviation is of some release, and can be turned right",
         each_deviation_is_of_some_release_and_is_turned_right},
        {"nothing deviates in a strict profile", nothing_deviates_in_a_strict_profile},
        {"strict keeps what a release does differently but not wrong", what_is_no_fault_stays},
        {"a full hit that is searched again brings the raw length along", a_searched_full_hit_brings_the_raw_length},
        {"failed loads are told in the form that fits the groups", failed_loads_are_told_in_the_form_that_fits},
        {NULL, NULL}};
    return moon_unit_main("deviation", cases, argc, argv);
}
