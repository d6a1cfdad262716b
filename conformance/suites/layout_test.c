/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite layout: defaults, closed members, what a release does not run, explanations, drawn cases, refused
 * memory. */
#include "conformance/suites/layout.h"

#include "conformance/suites/suite_check.h"

static void an_empty_case_is_one_rank_with_one_block(void) {
    struct moon_arena arena;
    const struct moon_json *result = suite_answer(&moon_suite_layout, &arena, "0.33", "{}");
    const struct moon_json *rank = moon_json_at(moon_json_member(result, "ranks"), 0);
    MOON_CHECK_TEXT(moon_json_at(moon_json_member(rank, "puts"), 0)->bytes,
                    "model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000001");
    MOON_CHECK_TEXT(moon_json_member(moon_json_member(result, "selected"), "layout")->bytes, "rank_local");
    MOON_CHECK_INT(moon_json_member(result, "scheduler_block_size")->integer, 16);
    moon_arena_close(&arena);
}

static void old_releases_name_no_selection(void) {
    struct moon_arena arena;
    const struct moon_json *result = suite_answer(&moon_suite_layout, &arena, "0.29", "{}");
    CU_ASSERT_PTR_NULL(moon_json_member(result, "selected"));
    CU_ASSERT_PTR_NULL(moon_json_member(moon_json_at(moon_json_member(result, "ranks"), 0), "groups"));
    moon_arena_close(&arena);
}

static void a_consumer_puts_nothing(void) {
    struct moon_arena arena;
    const struct moon_json *result = suite_answer(&moon_suite_layout, &arena, "0.33", "{\"kv_role\":\"kv_consumer\"}");
    MOON_CHECK_INT(moon_json_member(moon_json_at(moon_json_member(result, "ranks"), 0), "puts")->count, 0);
    moon_arena_close(&arena);
}

static void the_prefix_is_text_as_python_makes_it(void) {
    static const char *const rows[][2] = {{"5", "5@"},   {"null", "None@"}, {"true", "True@"}, {"0.5", "0.5@"},
                                          {"[]", "[]@"}, {"\"\"", ""},      {"\"a\"", "a@"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_arena arena;
        struct moon_json *result = NULL;
        char given[128], expected[128];
        moon_arena_open(&arena, moon_memory_heap());
        snprintf(given, sizeof given, "{\"extra_config\":{\"cache_prefix\":%s}}", rows[i][0]);
        snprintf(expected, sizeof expected, "%smodel@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0", rows[i][1]);
        MOON_CHECK_INT(suite_ask(&moon_suite_layout, &arena, "0.33", given, &result, NULL), 0);
        MOON_CHECK_TEXT(moon_json_at(moon_json_at(moon_json_member(result, "lookup_key_prefixes"), 0), 0)->bytes,
                        expected);
        moon_arena_close(&arena);
    }
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "[]", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{\"x\":1}", MOON_ERR_SCHEMA, "$.x"},
        {"0.33", "{\"topology\":{\"tp\":0}}", MOON_ERR_RANGE, "$.topology.tp"},
        {"0.33", "{\"topology\":{\"ep\":1}}", MOON_ERR_SCHEMA, "$.topology.ep"},
        {"0.33", "{\"topology\":{\"tp\":4,\"dcp\":3}}", MOON_ERR_RANGE, "$.topology"},
        {"0.33", "{\"topology\":{\"tp\":65536,\"pp\":2}}", MOON_ERR_RANGE, "$.topology"},
        {"0.33", "{\"groups\":[]}", MOON_ERR_RANGE, "$.groups"},
        {"0.33", "{\"groups\":[{\"kind\":\"x\"}]}", MOON_ERR_SCHEMA, "$.groups[0].kind"},
        {"0.33", "{\"groups\":[{\"kind\":\"sliding_window\"}]}", MOON_ERR_SCHEMA, "$.groups[0]"},
        {"0.33", "{\"groups\":[{\"kind\":\"uniform\"}]}", MOON_ERR_SCHEMA, "$.groups[0]"},
        {"0.33", "{\"groups\":[{\"kind\":\"uniform\",\"inner\":[]}]}", MOON_ERR_SCHEMA, "$.groups[0].inner"},
        {"0.33", "{\"groups\":[{\"kind\":\"full\",\"inner\":[{}]}]}", MOON_ERR_SCHEMA, "$.groups[0].inner"},
        {"0.33", "{\"groups\":[{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"mamba\"}]}]}", MOON_ERR_UNSUPPORTED,
         "$.groups[0].inner[0]"},
        {"0.33", "{\"groups\":[{\"transferable\":false}]}", MOON_ERR_UNSUPPORTED, "$.groups"},
        {"0.21", "{\"groups\":[{},{}]}", MOON_ERR_UNSUPPORTED, "$.groups"},
        {"0.33", "{\"groups\":[{},{}],\"topology\":{\"pcp\":2}}", MOON_ERR_UNSUPPORTED, "$.groups"},
        {"0.28", "{\"groups\":[{},{}],\"topology\":{\"tp\":2,\"dcp\":2}}", MOON_ERR_UNSUPPORTED, "$.groups"},
        {"0.33", "{\"kv_cache_layout\":\"x\"}", MOON_ERR_SCHEMA, "$.kv_cache_layout"},
        {"0.33", "{\"kv_role\":\"x\"}", MOON_ERR_SCHEMA, "$.kv_role"},
        {"0.33", "{\"extra_config\":1}", MOON_ERR_SCHEMA, "$.extra_config"},
        {"0.33", "{\"num_chunks\":65537}", MOON_ERR_RANGE, "$.num_chunks"},
        {"0.33", "{\"num_chunks\":2,\"block_hashes\":[\"00\"]}", MOON_ERR_RANGE, "$.block_hashes"},
        {"0.33", "{\"block_ids\":[]}", MOON_ERR_SCHEMA, "$.block_ids"},
        {"0.33", "{\"block_ids\":[1]}", MOON_ERR_SCHEMA, "$.block_ids[0]"},
        {"0.33", "{\"block_ids\":[[-1]]}", MOON_ERR_SCHEMA, "$.block_ids[0][0]"},
        {"0.33", "{\"retention_interval\":-1}", MOON_ERR_RANGE, "$.retention_interval"},
        {"0.33", "{\"total_kv_heads\":0}", MOON_ERR_RANGE, "$.total_kv_heads"},
        {"0.33", "{\"use_mla\":1}", MOON_ERR_SCHEMA, "$.use_mla"},
        {"0.33", "{\"speculative\":1}", MOON_ERR_SCHEMA, "$.speculative"},
    };
    suite_check_bad_cases(&moon_suite_layout, rows, sizeof rows / sizeof rows[0]);
}

static void what_a_release_raises_is_the_answer(void) {
    static const struct suite_raising_case row = {"0.25", "{\"groups\":[{},{}],\"topology\":{\"tp\":2,\"dcp\":2}}",
                                                  "ValueError", ""};
    suite_check_raised(&moon_suite_layout, &row, 1);
}

/* Explains a case and looks for parts of the text. */
static void check_told(const char *profile, const char *given, const struct moon_layout_view *view,
                       const char *const parts[]) {
    struct moon_arena arena;
    struct moon_json *document;
    struct moon_text out;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "test", given, strlen(given), MOON_JSON_STRICT, &document, NULL), 0);
    MOON_CHECK_INT(moon_layout_explain(&arena, moon_profile_find(profile, NULL), "test", document, view, &out, NULL),
                   0);
    suite_check_parts(&out, parts);
    moon_text_close(&out);
    moon_arena_close(&arena);
}

static void explanations_name_reason_and_numbers(void) {
    const struct moon_layout_view all = {-1, 1}, rank_1 = {1, 512};
    check_told("0.33", "{\"topology\":{\"tp\":2},\"extra_config\":{\"store_tp_size\":4}}", &rank_1,
               SUITE_PARTS("store TP: store_tp_size: 4",
                           "shard 3: heads 6 to 7; 1 segment a layer of 16384 bytes, the first at 16384",
                           "rank 1: tp 1"));
    check_told("0.33", "{\"topology\":{\"tp\":2},\"extra_config\":{\"store_tp_size\":4},\"kv_cache_layout\":\"LBNHC\"}",
               &rank_1,
               SUITE_PARTS("16 segments a layer of 1024 bytes, the first at 1024 of the block, then every 2048"));
    check_told(
        "0.33", "{\"extra_config\":{\"enable_store_tp_lcm\":true,\"prefill_tp_sizes\":[2,\"4\"]}}", &all,
        SUITE_PARTS("an element of prefill_tp_sizes is a string (element 1)", "REFUSED", "the store TP is not known"));
    check_told("0.33", "{\"total_kv_heads\":1,\"extra_config\":{\"store_tp_size\":99999999999999999999}}", &all,
               SUITE_PARTS("beyond 2^63", "tp_shared_mqa"));
    check_told("0.21", "{}", &all, SUITE_PARTS("one layout", "replaced in the text", "LAYOUT-014"));
    check_told("0.33", "{\"topology\":{\"pp\":2,\"pcp\":2}}", &all, SUITE_PARTS("another pp_rank (LAYOUT-017)"));
    check_told("0.33", "{\"kv_role\":\"kv_consumer\"}", &all, SUITE_PARTS("LAYOUT-028"));
    check_told("0.28", "{\"block_ids\":[[]]}", &all, SUITE_PARTS("IndexError"));
    check_told("0.33", "{\"num_chunks\":20}", &all, SUITE_PARTS("and 4 more"));
    check_told("0.33", "{\"topology\":{\"tp\":100},\"total_kv_heads\":100}", &all, SUITE_PARTS("and 36 more"));
    check_told("0.33", "{\"groups\":[{},{\"kind\":\"mamba\",\"block_size\":32}]}", &all,
               SUITE_PARTS("for every hash block"));
    check_told("0.25", "{\"groups\":[{},{}],\"topology\":{\"tp\":2,\"dcp\":2}}", &all,
               SUITE_PARTS("raises ValueError"));
}

static void a_rank_that_there_is_not_is_told(void) {
    struct moon_arena arena;
    struct moon_json *given;
    struct moon_text out;
    struct moon_error error = {0};
    const struct moon_layout_view view = {2, 1};
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    given = moon_json_object(&arena);
    MOON_CHECK_INT(moon_layout_explain(&arena, moon_profile_find("0.33", NULL), "test", given, &view, &out, &error),
                   MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "rank 2 does not exist, the last is 0");
    moon_text_close(&out);
    moon_arena_close(&arena);
}

static void many_ranks_are_sampled(void) {
    struct moon_layout_model model = {.tp = 4, .pp = 2, .pcp = 1, .dcp = 1};
    int64_t ranks[MOON_LAYOUT_RANKS_MAX];
    MOON_CHECK_INT(moon_layout_ranks(&model, ranks), 8);
    MOON_CHECK_INT(ranks[7], 7);
    model.tp = 9;
    MOON_CHECK_INT(moon_layout_ranks(&model, ranks), 4);
    MOON_CHECK_INT(ranks[2], 9);
    MOON_CHECK_INT(ranks[3], 17);
}

static void drawn_cases_are_answered(void) {
    suite_check_drawn(&moon_suite_layout, false);
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    static const char given[] =
        "{\"extra_config\":{\"cache_prefix\":5,\"enable_store_tp_lcm\":true,\"prefill_tp_sizes\":[4]},"
        "\"groups\":[{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"mla\"}]}],\"block_ids\":[[1]]}";
    suite_check_refused_memory(&moon_suite_layout, given, 2);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"an empty case is one rank that saves one block", an_empty_case_is_one_rank_with_one_block},
        {"releases before 0.30 name no selection", old_releases_name_no_selection},
        {"a consumer puts nothing", a_consumer_puts_nothing},
        {"the cache prefix is the text that Python makes of it", the_prefix_is_text_as_python_makes_it},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"what a release raises is the answer", what_a_release_raises_is_the_answer},
        {"explanations name the reason and the numbers", explanations_name_reason_and_numbers},
        {"a rank that there is not is told", a_rank_that_there_is_not_is_told},
        {"more than eight ranks are sampled", many_ranks_are_sampled},
        {"drawn cases are answered and explained", drawn_cases_are_answered},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("suite layout", cases, argc, argv);
}
