/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reachable chunks: the measured masks, older templates, and when lookups are fine-grained. */
#include "ref/layout/reach.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

static const struct moon_profile *release(const char *name) {
    return moon_profile_find(name, NULL);
}

static struct moon_layout_group local_group(int64_t block, int64_t local) {
    struct moon_layout_group group = group_of(MOON_SPEC_CHUNKED_LOCAL, block, 0);
    group.spec.local_tokens = local;
    return group;
}

static struct moon_layout_group uniform_group(const struct moon_layer_spec *inner, int64_t block) {
    struct moon_layout_group group = group_of(MOON_SPEC_UNIFORM, block, 0);
    group.inner = inner;
    group.inner_count = 2;
    return group;
}

static struct moon_layout_model engine(const struct moon_layout_group *groups, size_t count, int64_t align) {
    struct moon_layout_model model = model_of(groups, count, 1, 8);
    model.scheduler_block_tokens = align;
    return model;
}

/* Mask of the first `count` chunks of group 0 as digits. */
static const char *stored(char out[64], const char *profile, const struct moon_layout_model *model, int count,
                          int64_t prefill_end) {
    for (int i = 0; i < count; i++)
        out[i] = moon_reach_stored(release(profile), model, 0, i, prefill_end) ? '1' : '0';
    out[count] = '\0';
    return out;
}

static void sliding_windows_give_the_measured_masks(void) {
    static const struct {
        int64_t window, retention; /* -1: none */
        bool eagle;
        const char *mask;
    } rows[] = {
        {17, -1, false, "0001000100010001"},  {17, 0, false, "0000000000010000"}, {33, 0, false, "0000000000110000"},
        {33, 128, false, "0000001100110011"}, {33, -1, true, "0011101110111011"}, {128, -1, false, "1111111111111111"},
        {33, -1, false, "0011001100110011"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[64];
        const struct moon_layout_group group = group_of(MOON_SPEC_SLIDING_WINDOW, 16, rows[i].window);
        struct moon_layout_model model = engine(&group, 1, 64);
        model.has_retention = rows[i].retention >= 0;
        model.retention_tokens = rows[i].retention >= 0 ? rows[i].retention : 0;
        model.speculative = rows[i].eagle;
        MOON_CHECK_TEXT(stored(out, "0.33", &model, 16, 200), rows[i].mask);
    }
}

static void the_mla_window_follows_the_same_rule(void) {
    char out[64];
    const struct moon_layout_group group = group_of(MOON_SPEC_SLIDING_WINDOW_MLA, 16, 17);
    const struct moon_layout_model model = engine(&group, 1, 64);
    MOON_CHECK_TEXT(stored(out, "0.24", &model, 8, 200), "00010001");
}

static void eagle_has_two_boundaries_from_032_on(void) {
    char out[64];
    const struct moon_layout_group group = group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17);
    struct moon_layout_model model = engine(&group, 1, 64);
    model.has_retention = true;
    model.speculative = true;
    /* prefill 192: boundaries 64 and 128, each with one block more after it; before 0.32 only 191, aligned 128 */
    MOON_CHECK_TEXT(stored(out, "0.33", &model, 12, 192), "000110011000");
    MOON_CHECK_TEXT(stored(out, "0.31", &model, 12, 192), "000000011000");
    MOON_CHECK_TEXT(stored(out, "0.33", &model, 14, 200), "00000001100000"); /* both at 128 */
    MOON_CHECK_TEXT(stored(out, "0.31", &model, 14, 200), "00000000000110");
    MOON_CHECK_TEXT(stored(out, "0.33", &model, 12, 30), "100000000000"); /* both at 0 */
}

static void full_attention_is_stored_whole(void) {
    const struct moon_layer_spec inner[] = {{.kind = MOON_SPEC_MLA}, {.kind = MOON_SPEC_FULL}};
    const struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MLA, 16, 0),
                                               uniform_group(inner, 16), local_group(16, 32)};
    for (size_t i = 0; i < 4; i++) {
        char out[64];
        struct moon_layout_model model = engine(&groups[i], 1, 64);
        model.has_retention = true;
        MOON_CHECK_TEXT(stored(out, "0.33", &model, 8, 128), "11111111");
        MOON_CHECK_TEXT(stored(out, "0.21", &model, 8, 128), "11111111");
    }
}

static void mamba_is_stored_by_position_up_to_028(void) {
    char out[64];
    const struct moon_layout_group group = group_of(MOON_SPEC_MAMBA, 16, 0);
    struct moon_layout_model model = engine(&group, 1, 64);
    MOON_CHECK_TEXT(stored(out, "0.29", &model, 8, 128), "00000000");
    MOON_CHECK_TEXT(stored(out, "0.28", &model, 8, 128), "11111111");
    model.has_retention = true;
    model.retention_tokens = 16;
    MOON_CHECK_TEXT(stored(out, "0.28", &model, 8, 128), "11111111");
    model.retention_tokens = 48;
    MOON_CHECK_TEXT(stored(out, "0.28", &model, 12, 192),
                    "001001011001"); /* every third, and the one that ends at 128 */
}

static void old_templates_keep_what_a_hit_loads(void) {
    char out[64];
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_SLIDING_WINDOW, 16, 33), group_of(MOON_SPEC_FULL, 64, 0)};
    struct moon_layout_model model = engine(groups, 2, 64);
    MOON_CHECK_TEXT(stored(out, "0.22", &model, 8, 128), "00110011");
    model.speculative = true;
    MOON_CHECK_TEXT(stored(out, "0.23", &model, 8, 128), "00000000");
    CU_ASSERT_FALSE(moon_reach_stored(release("0.23"), &model, 1, 0, 128));
    model.speculative = false;
    CU_ASSERT_TRUE(moon_reach_stored(release("0.23"), &model, 1, 0, 128));
    groups[0] = group_of(MOON_SPEC_MAMBA, 16, 0);
    MOON_CHECK_TEXT(stored(out, "0.22", &model, 8, 128), "00010001");
    groups[0] = group_of(MOON_SPEC_SLIDING_WINDOW, 64, 33); /* of the scheduler's size: no template */
    MOON_CHECK_TEXT(stored(out, "0.22", &model, 4, 256), "1111");
    groups[0] = group_of(MOON_SPEC_FULL, 16, 0);
    model.speculative = true;
    MOON_CHECK_TEXT(stored(out, "0.22", &model, 8, 128), "11111111");
}

/* Of groups with blocks of their own: only what lies in the attention chunk at the end; and a drafter that is Mamba
 * drops nothing. */
static void old_templates_know_local_chunks_and_a_mamba_drafter(void) {
    char out[64];
    struct moon_layout_group groups[] = {local_group(64, 48), group_of(MOON_SPEC_MAMBA, 16, 0)};
    struct moon_layout_model model = engine(groups, 2, 64);
    MOON_CHECK_TEXT(stored(out, "0.22", &model, 3, 192), "111"); /* begins inside the block */
    groups[0].spec.local_tokens = 32;                            /* begins behind it */
    MOON_CHECK_TEXT(stored(out, "0.22", &model, 3, 192), "000");
    groups[0].spec.local_tokens = 100;
    groups[1].is_eagle = true;
    CU_ASSERT_TRUE(moon_reach_stored(release("0.22"), &model, 1, 3, 192));
    CU_ASSERT_FALSE(moon_reach_stored(release("0.22"), &model, 1, 2, 192));
    groups[0].is_eagle = true;
    CU_ASSERT_FALSE(moon_reach_stored(release("0.22"), &model, 1, 3, 192));
    MOON_CHECK_INT(moon_local_start(&groups[0], 399), 4);
    MOON_CHECK_INT(moon_local_start(&groups[0], 99), 0);
}

/* Chunk 3 of a group with blocks of 16, or 0 of one with 64, of a scheduler block of 64: "1" a group that has it. */
static const char *kept(char out[8], const struct moon_layout_model *model) {
    for (size_t i = 0; i < model->group_count; i++)
        out[i] = moon_reach_stored(release("0.22"), model, i, 64 / model->groups[i].block_tokens - 1, 64) ? '1' : '0';
    out[model->group_count] = '\0';
    return out;
}

static void a_wide_mamba_drafter_survives_the_groups_before_it(void) {
    char out[8];
    struct moon_layout_group window = group_of(MOON_SPEC_SLIDING_WINDOW, 16, 33);
    struct moon_layout_group groups[] = {window, group_of(MOON_SPEC_MAMBA, 64, 0), window, window,
                                         group_of(MOON_SPEC_FULL, 64, 0)};
    struct moon_layout_model model = engine(groups, 2, 64);
    model.speculative = true; /* all draft */
    MOON_CHECK_TEXT(kept(out, &model), "01");
    model.group_count = 3; /* the third is one with the first */
    MOON_CHECK_TEXT(kept(out, &model), "010");
    groups[2].spec.window_tokens = 17; /* it comes after the Mamba group, and drops what that found */
    MOON_CHECK_TEXT(kept(out, &model), "000");
    groups[0].is_eagle = groups[1].is_eagle = true; /* the third does not draft */
    MOON_CHECK_TEXT(kept(out, &model), "011");
    model.group_count = 5;
    groups[3].spec.window_tokens = 65;
    MOON_CHECK_TEXT(kept(out, &model), "01111"); /* full attention is searched first */
    groups[1].block_tokens = 16;
    MOON_CHECK_TEXT(kept(out, &model), "00000");
}

/* A group with the drafter's spec but not its flag. */
static void masks_take_the_groups_own_flag_up_to_026(void) {
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17),
                                         group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17), group_of(MOON_SPEC_FULL, 64, 0)};
    struct moon_layout_model model = engine(groups, 3, 64);
    model.speculative = true;
    CU_ASSERT_TRUE(moon_layout_group_drafts(release("0.26"), &model, 0)); /* no flag: all */
    groups[1].is_eagle = true;
    for (size_t i = 0; i < 3; i++) {
        MOON_CHECK_INT(moon_layout_group_drafts(release("0.26"), &model, i), i == 1);
        MOON_CHECK_INT(moon_layout_group_drafts(release("0.27"), &model, i), i < 2);
    }
    CU_ASSERT_FALSE(moon_reach_asked(release("0.26"), &model, 0, 4));
    CU_ASSERT_TRUE(moon_reach_asked(release("0.27"), &model, 0, 4));
}

static void lookups_ask_for_the_dense_mask(void) {
    char out[64];
    const struct moon_layout_group groups[] = {group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17),
                                               group_of(MOON_SPEC_MAMBA, 16, 0)};
    struct moon_layout_model model = engine(groups, 2, 64);
    model.has_retention = true; /* not read */
    for (int i = 0; i < 8; i++) {
        out[i] = moon_reach_asked(release("0.33"), &model, 0, i) ? '1' : '0';
        CU_ASSERT_TRUE(moon_reach_asked(release("0.23"), &model, 0, i));
        CU_ASSERT_TRUE(moon_reach_asked(release("0.33"), &model, 1, i));
    }
    out[8] = '\0';
    MOON_CHECK_TEXT(out, "00010001");
}

static void fine_grained_mode_follows_the_release(void) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0), mamba = group_of(MOON_SPEC_MAMBA, 64, 0),
                                   narrow = group_of(MOON_SPEC_MAMBA, 16, 0),
                                   window = group_of(MOON_SPEC_SLIDING_WINDOW, 32, 33), local = local_group(32, 64),
                                   narrow_local = local_group(16, 64);
    const struct {
        struct moon_layout_group groups[3];
        size_t count;
        int64_t dcp;
        bool in_26, in_27, in_29, in_32;
    } rows[] = {
        {{full, mamba}, 2, 1, false, true, true, true},          {{full, narrow}, 2, 1, false, false, false, false},
        {{full, narrow}, 2, 2, false, false, true, true},        {{mamba}, 1, 1, false, true, true, false},
        {{full, mamba, window}, 3, 1, false, true, true, false}, {{full, window}, 2, 1, false, false, false, false},
        {{full, full}, 2, 1, false, false, false, false},        {{mamba, local}, 2, 1, false, true, true, false},
        {{mamba, narrow_local}, 2, 1, false, true, true, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_layout_model model = engine(rows[i].groups, rows[i].count, 64);
        model.dcp = rows[i].dcp;
        MOON_CHECK_INT(moon_fine_grained(release("0.26"), &model), rows[i].in_26);
        MOON_CHECK_INT(moon_fine_grained(release("0.28"), &model), rows[i].in_27);
        MOON_CHECK_INT(moon_fine_grained(release("0.31"), &model), rows[i].in_29);
        MOON_CHECK_INT(moon_fine_grained(release("0.32"), &model), rows[i].in_32);
    }
}

static void the_drafters_flag_reaches_equal_groups(void) {
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_SLIDING_WINDOW, 16, 33),
                                         group_of(MOON_SPEC_SLIDING_WINDOW, 16, 33)};
    struct moon_layout_model model = engine(groups, 3, 16);
    CU_ASSERT_FALSE(moon_layout_group_eagle(&model, 0));
    CU_ASSERT_FALSE(moon_layout_eagle(&model));
    model.speculative = true; /* no group flagged: all */
    CU_ASSERT_TRUE(moon_layout_eagle(&model));
    for (size_t i = 0; i < 3; i++)
        CU_ASSERT_TRUE(moon_layout_group_eagle(&model, i));
    groups[2].is_eagle = true;
    CU_ASSERT_FALSE(moon_layout_group_eagle(&model, 0));
    CU_ASSERT_TRUE(moon_layout_group_eagle(&model, 1));
    CU_ASSERT_TRUE(moon_layout_group_eagle(&model, 2));
    model.speculative = false; /* the flag alone is enough */
    CU_ASSERT_TRUE(moon_layout_group_eagle(&model, 1));
    CU_ASSERT_FALSE(moon_layout_group_eagle(&model, 0));
    CU_ASSERT_TRUE(moon_layout_eagle(&model));
}

static void groups_are_equal_by_spec(void) {
    const struct moon_layer_spec inner[] = {{.kind = MOON_SPEC_MLA, .num_kv_heads = 1, .head_size = 8},
                                            {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 8},
                                            {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 16}};
    struct moon_layout_group a = uniform_group(inner, 16), b = a;
    CU_ASSERT_TRUE(moon_layout_groups_equal(&a, &b));
    b.inner_count = 1; /* only the first layer counts */
    CU_ASSERT_TRUE(moon_layout_groups_equal(&a, &b));
    b = group_of(MOON_SPEC_MLA, 16, 0);
    CU_ASSERT_TRUE(moon_layout_groups_equal(&a, &b));
    b = a;
    b.inner = inner + 1;
    CU_ASSERT_FALSE(moon_layout_groups_equal(&a, &b));
    b = a;
    b.block_tokens = 32;
    CU_ASSERT_FALSE(moon_layout_groups_equal(&a, &b));
    struct moon_layout_group variants[4] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MLA, 16, 0),
                                            group_of(MOON_SPEC_FULL, 16, 5), group_of(MOON_SPEC_FULL, 16, 0)};
    variants[3].spec.num_kv_heads = 2;
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++)
            MOON_CHECK_INT(moon_layout_groups_equal(&variants[i], &variants[k]), i == k);
    for (int member = 0; member < 4; member++) {
        struct moon_layer_spec *spec = &variants[3].spec;
        variants[3] = variants[0];
        if (member == 3)
            spec->mamba_mode = MOON_MAMBA_ALL;
        else
            *(int64_t *const[]){&spec->head_size, &spec->extra_retained_tokens, &spec->local_tokens}[member] = 9;
        CU_ASSERT_FALSE(moon_layout_groups_equal(&variants[0], &variants[3]));
    }
}

static void store_groups_leave_out_what_the_release_leaves_out(void) {
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 1, 0), group_of(MOON_SPEC_FULL, 2, 0),
                                         group_of(MOON_SPEC_FULL, 3, 0)},
                             kept[3];
    groups[0].transferable = false;
    groups[1].prefix_cacheable = false;
    MOON_CHECK_INT(moon_store_groups(release("0.28"), groups, 3, kept), 3);
    MOON_CHECK_INT(moon_store_groups(release("0.29"), groups, 3, kept), 2);
    MOON_CHECK_INT(kept[0].block_tokens, 2);
    MOON_CHECK_INT(moon_store_groups(release("0.30"), groups, 3, kept), 1);
    MOON_CHECK_INT(kept[0].block_tokens, 3);
    MOON_CHECK_INT(kept[0].number, 2);
}

static void windows_cover_the_retained_tokens_from_033_on(void) {
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_SLIDING_WINDOW, 16, 33),
                                         group_of(MOON_SPEC_SLIDING_WINDOW_MLA, 16, 33),
                                         group_of(MOON_SPEC_FULL, 16, 33)},
                             kept[3];
    for (size_t i = 0; i < 3; i++)
        groups[i].spec.extra_retained_tokens = 5;
    moon_store_groups(release("0.32"), groups, 3, kept);
    MOON_CHECK_INT(kept[0].spec.window_tokens, 33);
    MOON_CHECK_INT(kept[0].spec.extra_retained_tokens, 5);
    moon_store_groups(release("0.33"), groups, 3, kept);
    MOON_CHECK_INT(kept[0].spec.window_tokens, 38);
    MOON_CHECK_INT(kept[1].spec.window_tokens, 38);
    MOON_CHECK_INT(kept[2].spec.window_tokens, 33);
    MOON_CHECK_INT(kept[0].spec.extra_retained_tokens, 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"sliding windows give the measured masks", sliding_windows_give_the_measured_masks},
        {"an MLA window follows the same rule", the_mla_window_follows_the_same_rule},
        {"EAGLE has two replay boundaries from 0.32 on", eagle_has_two_boundaries_from_032_on},
        {"full attention is stored whole", full_attention_is_stored_whole},
        {"Mamba is stored by position up to 0.28 only", mamba_is_stored_by_position_up_to_028},
        {"0.22 and 0.23 keep what a hit at the end of a scheduler block loads", old_templates_keep_what_a_hit_loads},
        {"0.22 and 0.23 keep the local chunk at the end, and all of a Mamba drafter",
         old_templates_know_local_chunks_and_a_mamba_drafter},
        {"a wide Mamba drafter survives the groups before it", a_wide_mamba_drafter_survives_the_groups_before_it},
        {"masks take the group's own flag up to 0.26", masks_take_the_groups_own_flag_up_to_026},
        {"lookups ask for the dense mask and for every Mamba chunk", lookups_ask_for_the_dense_mask},
        {"fine-grained mode follows the release", fine_grained_mode_follows_the_release},
        {"the drafter's flag reaches groups of equal spec", the_drafters_flag_reaches_equal_groups},
        {"groups are equal by their whole spec", groups_are_equal_by_spec},
        {"store groups leave out what the release leaves out", store_groups_leave_out_what_the_release_leaves_out},
        {"windows cover the retained tokens from 0.33 on", windows_cover_the_retained_tokens_from_033_on},
        {NULL, NULL}};
    return moon_unit_main("reach", cases, argc, argv);
}
