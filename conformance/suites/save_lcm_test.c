/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite save-lcm: defaults, closed members, explanations, drawn cases, refused memory. */
#include "conformance/suites/save_lcm_case.h"

#include "conformance/suites/suite_check.h"

#define PROMPT(count) "\"prompt\":{\"count\":" count "}"

static void left_out_members_have_defaults(void) {
    struct moon_arena arena;
    const struct moon_json *result = suite_answer(&moon_suite_save_lcm, &arena, "0.33", "{" PROMPT("40") "}");
    const struct moon_json *steps = moon_json_member(result, "steps_with_store_calls");
    MOON_CHECK_INT(steps->count, 1);
    MOON_CHECK_INT(moon_json_member(steps->first, "step")->integer, 0);
    MOON_CHECK_INT(moon_json_member(steps->first, "puts")->count, 2);
    MOON_CHECK_INT(moon_json_member(moon_json_member(steps->first, "scheduled"), "r1")->integer, 40);
    MOON_CHECK_TEXT(moon_json_member(result, "layout")->bytes, "RankLocalStoreLayout");
    MOON_CHECK_INT(moon_json_member(result, "store_tp_size")->type, MOON_JSON_NULL);
    MOON_CHECK_INT(moon_json_member(result, "wrong_bytes")->integer, 0);
    moon_arena_close(&arena);
}

static void a_delivered_prompt_is_filled_back(void) {
    struct moon_arena arena;
    const char *given =
        "{" PROMPT("40") ",\"max_tokens\":3,\"kv_role\":\"kv_consumer\",\"behind_multi_connector\":true,"
                         "\"delivered_out_of_band\":true,\"extra_config\":{\"save_decode_cache\":true}}";
    const struct moon_json *result = suite_answer(&moon_suite_save_lcm, &arena, "0.33", given);
    const struct moon_json *steps = moon_json_member(result, "steps_with_store_calls");
    MOON_CHECK_INT(steps->count, 1);
    MOON_CHECK_INT(moon_json_member(steps->first, "step")->integer, 2);
    MOON_CHECK_INT(moon_json_member(steps->first, "puts")->count, 2);
    MOON_CHECK_INT(moon_json_member(result, "wrong_bytes")->integer, 0);
    moon_arena_close(&arena);
}

static void checks_are_sorted_by_their_keys(void) {
    struct moon_arena arena;
    const char *given = "{" PROMPT("20") ",\"topology\":{\"tp\":12},\"total_kv_heads\":12}";
    const struct moon_json *result = suite_answer(&moon_suite_save_lcm, &arena, "0.33", given);
    const struct moon_json *checks =
        moon_json_member(moon_json_member(result, "steps_with_store_calls")->first, "exist_checks");
    MOON_CHECK_INT(checks->count, 12);
    const char *second = moon_json_member(moon_json_at(checks, 1), "keys")->first->bytes;
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "@tp_rank:10@"));
    moon_arena_close(&arena);
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "{}", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{" PROMPT("1") ",\"x\":1}", MOON_ERR_SCHEMA, "$.x"},
        {"0.33", "{" PROMPT("0") "}", MOON_ERR_RANGE, "$.prompt.count"},
        {"0.33", "{" PROMPT("1") ",\"max_tokens\":4097}", MOON_ERR_RANGE, "$.max_tokens"},
        {"0.33", "{" PROMPT("1") ",\"num_steps\":-1}", MOON_ERR_RANGE, "$.num_steps"},
        {"0.33", "{" PROMPT("1") ",\"delivered_out_of_band\":1}", MOON_ERR_SCHEMA, "$.delivered_out_of_band"},
        {"0.33", "{" PROMPT("1") ",\"delivered_out_of_band\":true}", MOON_ERR_RANGE, "$.delivered_out_of_band"},
        {"0.33", "{" PROMPT("1") ",\"topology\":{\"dcp\":0}}", MOON_ERR_RANGE, "$.topology.dcp"},
    };
    suite_check_bad_cases(&moon_suite_save_lcm, rows, sizeof rows / sizeof rows[0]);
}

static void explanations_name_layout_and_rules(void) {
    suite_check_explained(&moon_suite_save_lcm, "0.33",
                          "{" PROMPT("40") ",\"kv_role\":\"kv_consumer\",\"max_tokens\":2,\"topology\":{\"tp\":2},"
                                           "\"extra_config\":{\"save_decode_cache\":true,\"store_tp_size\":4}}",
                          SUITE_PARTS("store_tp_size: 4 (LCM-005)", "in the first decode step (LCM-001)",
                                      "0 are there and left alone", "rank 1 puts", "buffers: 1 (LCM-001)"));
    suite_check_explained(&moon_suite_save_lcm, "0.33",
                          "{" PROMPT("40") ",\"kv_role\":\"kv_consumer\",\"topology\":{\"tp\":2},"
                                           "\"extra_config\":{\"store_tp_size\":3}}",
                          SUITE_PARTS("(LCM-004)", "prompt blocks are put never (LCM-007)", "0 keys stored"));
    suite_check_explained(
        &moon_suite_save_lcm, "0.33",
        "{" PROMPT("40") ",\"max_tokens\":2,\"behind_multi_connector\":true,\"delivered_out_of_band\":true,"
                         "\"kv_role\":\"kv_consumer\",\"extra_config\":{\"save_decode_cache\":true}}",
        SUITE_PARTS("that another connector brings (LCM-002)", "buffers: 1 (LCM-002)"));
    suite_check_explained(
        &moon_suite_save_lcm, "0.33",
        "{" PROMPT(
            "400") ",\"max_tokens\":20,\"max_tokens_per_step\":400,\"extra_config\":{\"save_decode_cache\":true},"
                   "\"total_kv_heads\":1}",
        SUITE_PARTS("when they are computed (LCM-007)", "and 9 more puts", "buffers: 1 (LCM-008)",
                    "decode blocks when they are full"));
    suite_check_explained(&moon_suite_save_lcm, "0.33",
                          "{" PROMPT("40") ",\"total_kv_heads\":1,\"extra_config\":{\"store_tp_size\":2}}",
                          SUITE_PARTS("tp_shared_mqa", "(LCM-006)"));
}

static void drawn_cases_are_answered(void) {
    suite_check_drawn(&moon_suite_save_lcm, true); /* 0.29 raises where a job has no table */
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    static const char given[] =
        "{" PROMPT("20") ",\"max_tokens\":3,\"topology\":{\"tp\":2},\"num_gpu_blocks\":9,\"kv_role\":\"kv_consumer\","
                         "\"behind_multi_connector\":true,\"delivered_out_of_band\":true,"
                         "\"extra_config\":{\"save_decode_cache\":true,\"store_tp_size\":2}}";
    suite_check_refused_memory(&moon_suite_save_lcm, given, 3);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"left out members have defaults", left_out_members_have_defaults},
        {"a delivered prompt is filled back", a_delivered_prompt_is_filled_back},
        {"checks are sorted by their keys", checks_are_sorted_by_their_keys},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"explanations name the layout and the rules", explanations_name_layout_and_rules},
        {"drawn cases are answered and explained", drawn_cases_are_answered},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("suite save-lcm", cases, argc, argv);
}
