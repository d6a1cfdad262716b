/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the layout decision: every source of the store TP, every refusal, and the measured namespaces. */
#include "ref/layout/store_tp.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

static const struct moon_layout_group full = {.spec = {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 8},
                                              .block_tokens = 16,
                                              .transferable = true,
                                              .prefix_cacheable = true};

/* Local TP 2, 8 heads, LBHNC, one full attention group. */
static struct moon_layout_model engine(void) {
    return model_of(&full, 1, 2, 8);
}

static struct moon_setting integer(const char *digits) {
    return (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text(digits)};
}

static struct moon_setting string(const char *text) {
    return (struct moon_setting){.type = MOON_SETTING_STRING, .text = moon_key_text(text)};
}

static struct moon_setting boolean(bool value) {
    return (struct moon_setting){.type = MOON_SETTING_BOOL, .boolean = value};
}

static struct moon_setting of_type(enum moon_setting_type type) {
    return (struct moon_setting){.type = type};
}

static struct moon_setting list(const struct moon_setting *elements, size_t count) {
    return (struct moon_setting){.type = MOON_SETTING_ARRAY, .elements = elements, .count = count};
}

static struct moon_store_selection select_in(const char *profile, const struct moon_layout_model *model) {
    struct moon_store_selection selection;
    moon_store_select(moon_profile_find(profile, NULL), model, &selection);
    MOON_CHECK_INT(selection.text_length, strlen(selection.text));
    return selection;
}

static struct moon_store_selection choose(const struct moon_layout_model *model) {
    return select_in("0.33", model);
}

static void a_size_is_resolved_by_its_type(void) {
    const struct {
        struct moon_setting size;
        enum moon_store_tp_source source;
        int64_t tp;
    } rows[] = {
        {of_type(MOON_SETTING_ABSENT), MOON_STORE_TP_NOT_REQUESTED, 0},
        {of_type(MOON_SETTING_NULL), MOON_STORE_TP_NOT_REQUESTED, 0},
        {integer("4"), MOON_STORE_TP_FROM_SIZE, 4},
        {integer("1000003"), MOON_STORE_TP_FROM_SIZE, 1000003},
        {integer("9223372036854775807"), MOON_STORE_TP_FROM_SIZE, INT64_MAX},
        {integer("0"), MOON_STORE_TP_SIZE_NOT_POSITIVE, 0},
        {integer("-0"), MOON_STORE_TP_SIZE_NOT_POSITIVE, 0},
        {integer("-1"), MOON_STORE_TP_SIZE_NOT_POSITIVE, 0},
        {boolean(true), MOON_STORE_TP_SIZE_BOOL, 0},
        {boolean(false), MOON_STORE_TP_SIZE_BOOL, 0},
        {of_type(MOON_SETTING_REAL), MOON_STORE_TP_SIZE_REAL, 0},
        {string("4"), MOON_STORE_TP_SIZE_STRING, 0},
        {list(NULL, 0), MOON_STORE_TP_SIZE_NESTED, 0},
        {of_type(MOON_SETTING_OBJECT), MOON_STORE_TP_SIZE_NESTED, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_layout_model model = engine();
        model.store_tp_size = rows[i].size;
        struct moon_store_tp found;
        moon_store_tp_resolve(&model, &found);
        MOON_CHECK_INT(found.source, rows[i].source);
        MOON_CHECK_INT(found.size, rows[i].tp);
        MOON_CHECK_INT(found.known, rows[i].tp > 0);
        CU_ASSERT(strlen(moon_store_tp_source_text(found.source)) > 10);
    }
}

static void a_list_is_resolved_to_its_least_common_multiple(void) {
    static const struct {
        const char *elements[4];
        int64_t tp;
        bool large, multiple;
    } rows[] = {
        {{"4", "2"}, 4, false, true},
        {{"4", "6"}, 12, false, true},
        {{"2", "2"}, 2, false, true},
        {{"8", "3"}, 24, false, true},
        {{"3", "5", "7"}, 105, false, false},
        {{"1"}, 1, false, false},
        {{"9223372036854775807", "2"}, 0, true, true},
        {{"9223372036854775807", "9223372036854775805"}, 0, true, false},
        {{"18446744073709551616"}, 0, true, true},
        {{"18446744073709551617", "4"}, 0, true, true},
        {{"18446744073709551617"}, 0, true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_setting elements[4];
        size_t count = 0;
        for (; count < 4 && rows[i].elements[count]; count++)
            elements[count] = integer(rows[i].elements[count]);
        struct moon_layout_model model = engine();
        model.enable_store_tp_lcm = boolean(true);
        model.prefill_tp_sizes = list(elements, count);
        struct moon_store_tp found;
        moon_store_tp_resolve(&model, &found);
        MOON_CHECK_INT(found.source, MOON_STORE_TP_FROM_LIST);
        MOON_CHECK_INT(found.size, rows[i].tp);
        MOON_CHECK_INT(found.large, rows[i].large);
        MOON_CHECK_INT(found.multiple, rows[i].multiple);
    }
}

static void every_malformed_list_has_its_reason(void) {
    const struct moon_setting element_rows[] = {
        boolean(true), of_type(MOON_SETTING_REAL),   string("2"),  of_type(MOON_SETTING_NULL),
        list(NULL, 0), of_type(MOON_SETTING_OBJECT), integer("0"), integer("-4")};
    static const enum moon_store_tp_source element_reasons[] = {
        MOON_STORE_TP_ELEMENT_BOOL,         MOON_STORE_TP_ELEMENT_REAL,        MOON_STORE_TP_ELEMENT_STRING,
        MOON_STORE_TP_ELEMENT_NULL,         MOON_STORE_TP_ELEMENT_NESTED,      MOON_STORE_TP_ELEMENT_NESTED,
        MOON_STORE_TP_ELEMENT_NOT_POSITIVE, MOON_STORE_TP_ELEMENT_NOT_POSITIVE};
    for (size_t i = 0; i < sizeof element_rows / sizeof element_rows[0]; i++) {
        const struct moon_setting elements[] = {integer("2"), element_rows[i]};
        struct moon_layout_model model = engine();
        model.enable_store_tp_lcm = boolean(true);
        model.prefill_tp_sizes = list(elements, 2);
        struct moon_store_tp found;
        moon_store_tp_resolve(&model, &found);
        MOON_CHECK_INT(found.source, element_reasons[i]);
        MOON_CHECK_INT(found.bad_element, 1);
        CU_ASSERT_FALSE(found.known);
    }
    const struct {
        struct moon_setting list;
        enum moon_store_tp_source source;
    } rows[] = {{of_type(MOON_SETTING_ABSENT), MOON_STORE_TP_LIST_MISSING},
                {of_type(MOON_SETTING_NULL), MOON_STORE_TP_LIST_NULL},
                {string("2,4"), MOON_STORE_TP_LIST_NOT_ARRAY},
                {integer("8"), MOON_STORE_TP_LIST_NOT_ARRAY},
                {of_type(MOON_SETTING_OBJECT), MOON_STORE_TP_LIST_NOT_ARRAY},
                {list(NULL, 0), MOON_STORE_TP_LIST_EMPTY}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_layout_model model = engine();
        model.enable_store_tp_lcm = boolean(true);
        model.store_tp_size = integer("4"); /* the flag wins even so */
        model.prefill_tp_sizes = rows[i].list;
        struct moon_store_tp found;
        moon_store_tp_resolve(&model, &found);
        MOON_CHECK_INT(found.source, rows[i].source);
        MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_STORE_TP_UNKNOWN);
    }
}

static void only_json_true_turns_the_list_on(void) {
    const struct moon_setting elements[] = {integer("8")};
    const struct moon_setting flags[] = {boolean(false), string("true"), integer("1"), of_type(MOON_SETTING_NULL)};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        struct moon_layout_model model = engine();
        model.enable_store_tp_lcm = flags[i];
        model.prefill_tp_sizes = list(elements, 1);
        MOON_CHECK_INT(choose(&model).space.format, MOON_STORE_PLAIN);
        model.store_tp_size = integer("4");
        MOON_CHECK_INT(choose(&model).space.store_tp, 4);
    }
}

/* Applies one deviation to an engine that would be sharded. */
static struct moon_layout_model deviate(enum moon_store_refusal refusal, struct moon_layout_group groups[2]) {
    struct moon_layout_model model = engine();
    model.store_tp_size = integer("4");
    groups[0] = groups[1] = full;
    model.groups = groups;
    switch (refusal) {
    case MOON_REFUSAL_STORE_TP_UNKNOWN:
        model.store_tp_size = string("4");
        break;
    case MOON_REFUSAL_BELOW_TP:
        model.tp = 8;
        break;
    case MOON_REFUSAL_NOT_MULTIPLE:
        model.store_tp_size = integer("3");
        break;
    case MOON_REFUSAL_KV_LAYOUT:
        model.kv_layout = MOON_KV_BLHNC;
        break;
    case MOON_REFUSAL_PCP:
        model.pcp = 2;
        break;
    case MOON_REFUSAL_DCP:
        model.dcp = 2;
        break;
    case MOON_REFUSAL_GROUPS:
        model.group_count = 2;
        break;
    case MOON_REFUSAL_SPEC:
        groups[0].spec.kind = MOON_SPEC_MLA;
        break;
    case MOON_REFUSAL_CROSS_LAYERS:
        model.enable_cross_layers_blocks = string("True");
        break;
    case MOON_REFUSAL_HEADS:
        model.total_kv_heads = 6;
        break;
    default:
        break;
    }
    return model;
}

static void every_refusal_is_reported_and_isolates(void) {
    for (int i = 0; i < MOON_REFUSAL_COUNT; i++) {
        struct moon_layout_group groups[2];
        struct moon_layout_model model = deviate((enum moon_store_refusal)i, groups);
        struct moon_store_selection selection = choose(&model);
        MOON_CHECK_INT(selection.refusal, i);
        MOON_CHECK_INT(selection.space.format, i == MOON_REFUSAL_NONE ? MOON_STORE_SHARDED_LBHNC : MOON_STORE_ISOLATED);
        MOON_CHECK_INT(moon_store_sharded(&selection), i == MOON_REFUSAL_NONE);
        CU_ASSERT(strlen(moon_store_refusal_text(selection.refusal)) > 5);
    }
}

static void the_first_failing_condition_is_the_reason(void) {
    struct moon_layout_group groups[2];
    struct moon_layout_model model = deviate(MOON_REFUSAL_NONE, groups);
    /* From the last condition back: each new deviation takes over. */
    model.total_kv_heads = 6;
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_HEADS);
    model.enable_cross_layers_blocks = boolean(true);
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_CROSS_LAYERS);
    groups[0].spec.kind = MOON_SPEC_UNIFORM;
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_SPEC);
    model.group_count = 2;
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_GROUPS);
    model.dcp = 2;
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_DCP);
    model.pcp = 2;
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_PCP);
    model.kv_layout = MOON_KV_LHBNC;
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_KV_LAYOUT);
    model.store_tp_size = integer("5");
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_NOT_MULTIPLE);
    model.store_tp_size = integer("1");
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_BELOW_TP);
    model.store_tp_size = integer("0");
    MOON_CHECK_INT(choose(&model).refusal, MOON_REFUSAL_STORE_TP_UNKNOWN);
}

static void the_measured_namespaces_are_chosen(void) {
    static const struct {
        const char *size;
        int64_t tp, pp, heads;
        enum moon_kv_layout layout;
        const char *text;
    } rows[] = {
        {"4", 2, 1, 8, MOON_KV_LBHNC, "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc"},
        {"4", 2, 2, 8, MOON_KV_LBNHC, "@store_tp:4@store_pp:2@store_format:tp_shared_lbnhc"},
        {"4", 2, 1, 8, MOON_KV_BLHNC, "@store_pp:1@store_format:rank_local_tp2_layout_BLHNC"},
        {"4", 2, 1, 1, MOON_KV_LBHNC, "@store_pp:1@store_format:tp_shared_mqa"},
        {"2", 2, 1, 1, MOON_KV_LBHNC, "@store_pp:1@store_format:tp_shared_mqa"},
        {"2", 2, 1, 1, MOON_KV_LBNHC, "@store_pp:1@store_format:tp_shared_mqa"},
        {"18446744073709551616", 2, 1, 1, MOON_KV_LBHNC, "@store_pp:1@store_format:tp_shared_mqa"},
        {"18446744073709551616", 2, 1, 8, MOON_KV_LBHNC, "@store_pp:1@store_format:rank_local_tp2_layout_LBHNC"},
        {"1", 1, 1, 1, MOON_KV_LBHNC, "@store_tp:1@store_pp:1@store_format:tp_shared_lbhnc"},
        {"4", 2, 1, 6, MOON_KV_LBHNC, "@store_pp:1@store_format:rank_local_tp2_layout_LBHNC"},
        {"2", 4, 1, 8, MOON_KV_LBHNC, "@store_pp:1@store_format:rank_local_tp4_layout_LBHNC"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_layout_model model = engine();
        model.store_tp_size = integer(rows[i].size);
        model.tp = rows[i].tp;
        model.pp = rows[i].pp;
        model.total_kv_heads = rows[i].heads;
        model.kv_layout = rows[i].layout;
        MOON_CHECK_TEXT(choose(&model).text, rows[i].text);
    }
}

static void a_missing_request_has_no_namespace(void) {
    struct moon_layout_model model = engine();
    MOON_CHECK_TEXT(choose(&model).text, "");
    model.store_tp_size = of_type(MOON_SETTING_NULL);
    MOON_CHECK_TEXT(choose(&model).text, "");
}

static void releases_before_030_ignore_the_options(void) {
    struct moon_layout_model model = engine();
    model.store_tp_size = integer("4");
    MOON_CHECK_TEXT(select_in("0.29", &model).text, "");
    CU_ASSERT(strlen(select_in("0.30", &model).text) > 0);
}

static void the_cross_layer_veto_reads_text_as_python_does(void) {
    const struct {
        struct moon_setting setting;
        bool veto;
    } rows[] = {
        {boolean(true), true},  {boolean(false), false},  {string("true"), true}, {string("TRUE"), true},
        {string("yes"), false}, {string("true "), false}, {integer("1"), false},  {of_type(MOON_SETTING_NULL), false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_layout_model model = engine();
        model.store_tp_size = integer("4");
        model.enable_cross_layers_blocks = rows[i].setting;
        MOON_CHECK_INT(choose(&model).refusal, rows[i].veto ? MOON_REFUSAL_CROSS_LAYERS : MOON_REFUSAL_NONE);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a store_tp_size is resolved by its type and value", a_size_is_resolved_by_its_type},
        {"a list is resolved to its least common multiple", a_list_is_resolved_to_its_least_common_multiple},
        {"every malformed list has its own reason", every_malformed_list_has_its_reason},
        {"only JSON true turns the list on", only_json_true_turns_the_list_on},
        {"every refusal is reported and isolates", every_refusal_is_reported_and_isolates},
        {"the first failing condition is the reason", the_first_failing_condition_is_the_reason},
        {"the measured namespaces are chosen", the_measured_namespaces_are_chosen},
        {"an engine that asks for nothing has no namespace", a_missing_request_has_no_namespace},
        {"releases before 0.30 ignore the options", releases_before_030_ignore_the_options},
        {"the cross-layer veto reads text as Python does", the_cross_layer_veto_reads_text_as_python_does},
        {NULL, NULL}};
    return moon_unit_main("store_tp", cases, argc, argv);
}
