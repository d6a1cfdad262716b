/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of opening a connector: options by release, what follows from them, and what is refused. */
#include "ref/connector/connector.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

static struct moon_layout_model engine(const struct moon_layout_group *groups, size_t count) {
    struct moon_layout_model model = model_of(groups, count, 1, 8);
    model.scheduler_block_tokens = 64;
    return model;
}

static const struct moon_connector_options everything = {.role = MOON_ROLE_CONSUMER,
                                                         .load_async = true,
                                                         .lookup_async = true,
                                                         .save_decode_cache = true,
                                                         .enable_group_semantics = true};

static struct moon_connector opened(const char *profile, const struct moon_layout_model *model,
                                    const struct moon_connector_options *options) {
    struct moon_connector out;
    MOON_CHECK_INT(moon_connector_open(&out, moon_profile_find(profile, NULL), model, options, NULL), 0);
    return out;
}

static void a_release_ignores_options_that_it_does_not_know(void) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 64, 0);
    const struct moon_layout_model model = engine(&full, 1);
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count; i++) {
        const struct moon_connector connector = opened(all[i].name, &model, &everything);
        const struct moon_connector_options *own = &connector.options;
        MOON_CHECK_INT(own->lookup_async, all[i].minor >= 24);
        MOON_CHECK_INT(own->enable_lookup, all[i].minor < 27);
        MOON_CHECK_INT(own->save_decode_cache, all[i].minor >= 29);
        MOON_CHECK_INT(own->enable_group_semantics, all[i].minor >= 28);
        MOON_CHECK_INT(own->discard_partial_chunks, all[i].minor >= 22);
        CU_ASSERT_TRUE(own->load_async);
        CU_ASSERT_FALSE(connector.saves_prefill);
        MOON_CHECK_INT(connector.saves_decode, all[i].minor >= 29);
        MOON_CHECK_INT(connector.capacity_only, all[i].minor == 27 || all[i].minor == 28);
    }
}

static void roles_say_what_is_saved(void) {
    static const struct {
        struct moon_connector_options options;
        bool prefill, decode, capacity;
    } rows[] = {
        {{.role = MOON_ROLE_PRODUCER, .enable_lookup = true}, true, false, false},
        {{.role = MOON_ROLE_PRODUCER, .save_decode_cache = true}, true, true, false},
        {{.role = MOON_ROLE_BOTH}, true, false, false},
        {{.role = MOON_ROLE_CONSUMER, .enable_lookup = true}, false, false, false},
        {{.role = MOON_ROLE_CONSUMER, .save_decode_cache = true}, false, true, false},
        {{.role = MOON_ROLE_CONSUMER}, false, false, true},
    };
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 64, 0);
    const struct moon_layout_model model = engine(&full, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct moon_connector connector = opened("0.33", &model, &rows[i].options);
        MOON_CHECK_INT(connector.saves_prefill, rows[i].prefill);
        MOON_CHECK_INT(connector.saves_decode, rows[i].decode);
        MOON_CHECK_INT(connector.capacity_only, rows[i].capacity);
    }
}

static void hits_end_at_hash_blocks_when_fine_grained(void) {
    const struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MAMBA, 64, 0)};
    const struct moon_layout_model model = engine(groups, 2);
    const struct moon_connector_options both = {.role = MOON_ROLE_BOTH, .enable_lookup = true};
    const struct moon_connector_options lends = {.role = MOON_ROLE_CONSUMER};
    MOON_CHECK_INT(opened("0.26", &model, &both).alignment_tokens, 64);
    MOON_CHECK_INT(opened("0.33", &model, &both).alignment_tokens, 16);
    MOON_CHECK_INT(opened("0.32", &model, &lends).alignment_tokens, 16);
    MOON_CHECK_INT(opened("0.33", &model, &lends).alignment_tokens, 64);
}

/* Refuses, with this class and message; NULL message: opens. */
static void check_refusal(const char *profile, const struct moon_layout_model *model, bool lends, const char *type,
                          const char *message) {
    struct moon_connector out;
    struct moon_error error = {0};
    const struct moon_connector_options options = {.role = lends ? MOON_ROLE_CONSUMER : MOON_ROLE_BOTH,
                                                   .enable_lookup = !lends};
    int status = moon_connector_open(&out, moon_profile_find(profile, NULL), model, &options, &error);
    MOON_CHECK_INT(status, message ? MOON_ERR_REFUSED : 0);
    MOON_CHECK_TEXT(error.type, type);
    MOON_CHECK_TEXT(error.message, message ? message : "");
}

static void mamba_states_must_be_aligned(void) {
    static const char asserted[] = "MooncakeStoreScheduler requires mamba_cache_mode='align'";
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_MAMBA, 64, 0), group_of(MOON_SPEC_FULL, 64, 0),
                                         group_of(MOON_SPEC_MAMBA, 64, 0)};
    const struct moon_layout_model model = engine(groups, 3);
    check_refusal("0.33", &model, false, "", NULL);
    groups[0].spec.mamba_mode = MOON_MAMBA_ALL;
    groups[2].spec.mamba_mode = MOON_MAMBA_NONE;
    groups[2].number = 3;
    check_refusal("0.33", &model, false, "ValueError",
                  "MooncakeStoreConnector does not support: group 0: mamba_cache_mode='all' != 'align'; group 3: "
                  "mamba_cache_mode='none' != 'align'");
    check_refusal("0.29", &model, false, "AssertionError", asserted);
    check_refusal("0.28", &model, false, "", NULL);
    check_refusal("0.32", &model, true, "AssertionError", asserted);
    check_refusal("0.33", &model, true, "", NULL);
}

static void several_groups_refuse_context_parallelism(void) {
    const struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 64, 0), group_of(MOON_SPEC_FULL, 16, 0)};
    struct moon_layout_model model = engine(groups, 2);
    model.dcp = 2;
    check_refusal("0.29", &model, false, "", NULL);
    check_refusal("0.28", &model, false, "ValueError",
                  "MooncakeStoreConnector does not support: PCP/DCP > 1 (pcp=1, dcp=2) with hybrid attention");
    check_refusal("0.28", &model, true, "", NULL);
    model.pcp = 3;
    check_refusal("0.33", &model, false, "ValueError",
                  "MooncakeStoreConnector does not support: PCP > 1 (pcp=3) with hybrid attention");
    model.group_count = 1;
    check_refusal("0.22", &model, false, "", NULL);
    check_refusal("0.21", &model, false, "", NULL);
}

static void a_connector_needs_a_group_and_not_too_many(void) {
    struct moon_layout_group groups[MOON_STORE_GROUPS_MAX + 1];
    for (size_t i = 0; i <= MOON_STORE_GROUPS_MAX; i++)
        groups[i] = group_of(MOON_SPEC_MAMBA, 64, 0);
    struct moon_layout_model model = engine(groups, 0);
    struct moon_connector out;
    struct moon_error error;
    const struct moon_connector_options lends = {.role = MOON_ROLE_CONSUMER};
    check_refusal("0.33", &model, false, "ValueError",
                  "MooncakeStore requires at least one prefix-cacheable KV cache group");
    MOON_CHECK_INT(moon_connector_open(&out, moon_profile_find("0.33", NULL), &model, &lends, &error), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_connector_open(&out, moon_profile_find("0.28", NULL), &model, &lends, &error), MOON_ERR_RANGE);
    model.group_count = 2;
    MOON_CHECK_INT(moon_connector_open(&out, moon_profile_find("0.21", NULL), &model, &lends, &error),
                   MOON_ERR_UNSUPPORTED);
    model.group_count = MOON_STORE_GROUPS_MAX;
    check_refusal("0.33", &model, false, "", NULL);
    model.group_count++;
    MOON_CHECK_INT(moon_connector_open(&out, moon_profile_find("0.33", NULL), &model, &lends, &error), MOON_ERR_LIMIT);
    for (size_t i = 0; i < MOON_STORE_GROUPS_MAX; i++) /* more reasons than the text holds */
        groups[i].spec.mamba_mode = MOON_MAMBA_ALL;
    const struct moon_connector_options both = {.role = MOON_ROLE_BOTH, .enable_lookup = true};
    MOON_CHECK_INT(moon_connector_open(&out, moon_profile_find("0.33", NULL), &model, &both, &error), MOON_ERR_REFUSED);
    MOON_CHECK_INT(strlen(error.message), MOON_ERROR_MESSAGE_BYTES - 1);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a release ignores options that it does not know", a_release_ignores_options_that_it_does_not_know},
        {"roles say what is saved", roles_say_what_is_saved},
        {"hits end at hash blocks when fine-grained", hits_end_at_hash_blocks_when_fine_grained},
        {"Mamba states must be aligned", mamba_states_must_be_aligned},
        {"several groups refuse context parallelism", several_groups_refuse_context_parallelism},
        {"a connector needs a group and not too many", a_connector_needs_a_group_and_not_too_many},
        {NULL, NULL}};
    return moon_unit_main("connector", cases, argc, argv);
}
