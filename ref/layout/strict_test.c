/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of strict profiles in keys and layouts: each fault of a release is there, and is right in strict. */
#include "ref/key/deviation.h"
#include "ref/layout/lookup.h"
#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

/* A release as it is, and without what it does wrong. */
struct pair {
    const struct moon_profile *real;
    struct moon_profile strict;
};

static struct pair pair_of(const char *name) {
    struct pair pair = {.real = moon_profile_find(name, NULL)};
    moon_profile_strict(pair.real, &pair.strict);
    return pair;
}

static struct moon_layout_model engine(const struct moon_layout_group *groups, size_t count, int64_t tp,
                                       int64_t heads) {
    struct moon_layout_model model = model_of(groups, count, tp, heads);
    model.scheduler_block_tokens = 64;
    return model;
}

/* ---- keys ---- */

static void the_pipeline_rank_counts_pcp(void) {
    const struct pair pair = pair_of("0.33");
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 1, 8);
    struct moon_store_selection selection;
    model.pp = model.pcp = 2;
    moon_store_select(pair.real, &model, &selection);
    static const int64_t real[] = {0, 1, 0, 1}, right[] = {0, 0, 1, 1};
    for (int64_t number = 0; number < 4; number++) {
        const struct moon_rank rank = moon_rank_at(&model, number);
        MOON_CHECK_INT(moon_rank_key(pair.real, &model, &selection, &rank, 0, 0).pp_rank, real[number]);
        MOON_CHECK_INT(moon_rank_key(&pair.strict, &model, &selection, &rank, 0, 0).pp_rank, right[number]);
    }
}

static void replicas_are_counted_by_what_ranks_hold(void) {
    struct pair pair = pair_of("0.23");
    const struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MAMBA, 16, 0)};
    struct moon_layout_model model = engine(groups, 2, 4, 2);
    MOON_CHECK_INT(moon_replication_factor(pair.real, &model, 1), 2);
    MOON_CHECK_INT(moon_replication_factor(&pair.strict, &model, 0), 2);
    MOON_CHECK_INT(moon_replication_factor(&pair.strict, &model, 1), 1);
    model.dcp = 2;
    MOON_CHECK_INT(moon_replication_factor(pair.real, &model, 0), 2);
    MOON_CHECK_INT(moon_replication_factor(&pair.strict, &model, 0), 1);
}

/* ---- lookups ---- */

enum { TEXT_BYTES = 2048 };

/* Keys of two chunks with the hashes 0000 and 0101. */
static const char *asked(char out[TEXT_BYTES], const struct moon_profile *profile,
                         const struct moon_layout_model *model) {
    static const uint8_t bytes[] = {0, 0, 1, 1};
    static const struct moon_hashes hashes = {bytes, 2, 2};
    struct moon_store_selection selection;
    struct moon_key_list list;
    struct moon_text text;
    moon_key_list_open(&list, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    moon_store_select(profile, model, &selection);
    moon_lookup_keys(profile, model, &selection, &hashes, 32, &list);
    for (size_t i = 0; i < list.count; i++) {
        moon_key_list_write(&list, i, &text);
        moon_text_char(&text, '\n');
    }
    snprintf(out, TEXT_BYTES, "%s", moon_text_value(&text));
    moon_text_close(&text);
    moon_key_list_close(&list);
    return out;
}

static void a_model_name_with_a_rank_in_it_is_not_edited(void) {
    char out[TEXT_BYTES];
    const struct pair pair = pair_of("0.21");
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 2, 8);
    model.scheduler_block_tokens = 16;
    model.pp = 2;
    model.model_name = moon_key_text("a@tp_rank:0b");
    CU_ASSERT_PTR_NOT_NULL(strstr(asked(out, pair.real, &model), "a@tp_rank:1b@tp_rank:0@"));
    MOON_CHECK_TEXT(asked(out, &pair.strict, &model), "a@tp_rank:0b@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\n"
                                                      "a@tp_rank:0b@tp_rank:0@pcp0@dcp0@pp_rank:0@0101\n"
                                                      "a@tp_rank:0b@tp_rank:1@pcp0@dcp0@pp_rank:0@0000\n"
                                                      "a@tp_rank:0b@tp_rank:1@pcp0@dcp0@pp_rank:0@0101\n"
                                                      "a@tp_rank:0b@tp_rank:0@pcp0@dcp0@pp_rank:1@0000\n"
                                                      "a@tp_rank:0b@tp_rank:0@pcp0@dcp0@pp_rank:1@0101\n"
                                                      "a@tp_rank:0b@tp_rank:1@pcp0@dcp0@pp_rank:1@0000\n"
                                                      "a@tp_rank:0b@tp_rank:1@pcp0@dcp0@pp_rank:1@0101\n");
}

/* Where nothing is wrong, strict asks what the release asks, in its order. */
static void a_plain_lookup_of_021_stays_as_it_is(void) {
    char real[TEXT_BYTES], strict[TEXT_BYTES];
    const struct pair pair = pair_of("0.21");
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 4, 2);
    model.scheduler_block_tokens = 16;
    model.pp = 2;
    MOON_CHECK_TEXT(asked(strict, &pair.strict, &model), asked(real, pair.real, &model));
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void every_rank_that_writes_is_asked_for(void) {
    char out[TEXT_BYTES];
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 6, 4);
    model.scheduler_block_tokens = 16;
    struct pair pair = pair_of("0.26");
    MOON_CHECK_INT(count_lines(asked(out, pair.real, &model)), 2 * 4);
    MOON_CHECK_INT(count_lines(asked(out, &pair.strict, &model)), 2 * 6);
    pair = pair_of("0.24");
    model = engine(&full, 1, 2, 2);
    model.scheduler_block_tokens = 16;
    model.pcp = 2;
    MOON_CHECK_INT(count_lines(asked(out, pair.real, &model)), 2 * 2);
    MOON_CHECK_INT(count_lines(asked(out, &pair.strict, &model)), 2 * 4);
}

static void a_wide_window_does_not_stop_a_fine_lookup(void) {
    const struct pair pair = pair_of("0.29");
    const struct moon_layout_group groups[] = {group_of(MOON_SPEC_MAMBA, 64, 0),
                                               group_of(MOON_SPEC_SLIDING_WINDOW, 32, 33)};
    const struct moon_layout_model model = engine(groups, 2, 1, 8);
    CU_ASSERT_TRUE(moon_fine_grained(pair.real, &model));
    MOON_CHECK_INT(moon_fine_check(pair.real, &model, NULL), MOON_ERR_REFUSED);
    MOON_CHECK_INT(moon_fine_check(&pair.strict, &model, NULL), 0);
}

/* ---- what is stored ---- */

static const char *stored(char out[64], const struct moon_profile *profile, const struct moon_layout_model *model,
                          size_t group) {
    for (int64_t i = 0; i < 8; i++)
        out[i] = moon_reach_stored(profile, model, group, i, 200) ? '1' : '0';
    out[8] = '\0';
    return out;
}

static void eagle_keeps_one_block_more_instead_of_none(void) {
    char out[64];
    const struct pair pair = pair_of("0.22");
    const struct moon_layout_group groups[] = {
        group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17), group_of(MOON_SPEC_MAMBA, 16, 0)};
    struct moon_layout_model model = engine(groups, 3, 1, 8);
    MOON_CHECK_TEXT(stored(out, &pair.strict, &model, 1), "00010001");
    model.speculative = true;
    for (size_t group = 0; group < 3; group++)
        MOON_CHECK_TEXT(stored(out, pair.real, &model, group), "00000000");
    MOON_CHECK_TEXT(stored(out, &pair.strict, &model, 0), "11111111");
    MOON_CHECK_TEXT(stored(out, &pair.strict, &model, 1), "00011001"); /* the block, and what EAGLE drops after it */
    MOON_CHECK_TEXT(stored(out, &pair.strict, &model, 2), "00010001");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"strict: the pipeline rank in keys counts PCP", the_pipeline_rank_counts_pcp},
        {"strict: replicas are counted by what ranks hold", replicas_are_counted_by_what_ranks_hold},
        {"strict: a model name with a rank in it is not edited", a_model_name_with_a_rank_in_it_is_not_edited},
        {"strict: a plain lookup of 0.21 stays as it is", a_plain_lookup_of_021_stays_as_it_is},
        {"strict: every rank that writes is asked for", every_rank_that_writes_is_asked_for},
        {"strict: a wide window does not stop a fine-grained lookup", a_wide_window_does_not_stop_a_fine_lookup},
        {"strict: EAGLE keeps one block more instead of none", eagle_keeps_one_block_more_instead_of_none},
        {NULL, NULL}};
    return moon_unit_main("strict profiles", cases, argc, argv);
}
