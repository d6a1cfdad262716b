/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite lookup-async: defaults, closed members, limits, what is not run, explanations, drawn cases,
 * refused memory. */
#include "conformance/suites/lookup_async_case.h"

#include "conformance/suites/suite_check.h"

#define PROMPT(count) "\"prompt\":{\"count\":" count "}"

static const struct moon_json *step(const struct moon_json *result, size_t number) {
    return moon_json_at(moon_json_member(result, "steps"), number);
}

static void left_out_members_have_defaults(void) {
    struct moon_arena arena;
    const struct moon_json *result = suite_answer(&moon_suite_lookup_async, &arena, "0.33",
                                                  "{\"steps\":[[{\"add\":\"a\"," PROMPT("40") "}],[],[]]}");
    const struct moon_json *question = moon_json_at(moon_json_member(step(result, 0), "lookups"), 0);
    MOON_CHECK_INT(moon_json_member(question, "result")->integer, 0);
    MOON_CHECK_INT(moon_json_at(moon_json_member(step(result, 0), "lookup_exist_calls"), 0)->integer, 2);
    MOON_CHECK_INT(moon_json_member(step(result, 0), "puts")->count, 2);
    MOON_CHECK_TEXT(moon_json_member(moon_json_member(step(result, 0), "status_after"), "a")->bytes,
                    "FINISHED_LENGTH_CAPPED");
    MOON_CHECK_INT(moon_json_member(result, "wrong_bytes")->integer, 0);
    CU_ASSERT_PTR_NULL(moon_json_member(result, "futures_after_abort"));
    moon_arena_close(&arena);
}

static void a_case_without_requests_does_nothing(void) {
    struct moon_arena arena;
    const struct moon_json *result =
        suite_answer(&moon_suite_lookup_async, &arena, "0.33", "{\"steps\":[[],[\"reset_local_prefix_cache\"]]}");
    MOON_CHECK_INT(moon_json_member(result, "steps")->count, 2);
    MOON_CHECK_INT(moon_json_member(step(result, 1), "status_after")->count, 0);
    moon_arena_close(&arena);
}

static void several_ranks_load_what_they_hold(void) {
    struct moon_arena arena;
    const char *given = "{\"topology\":{\"tp\":2},\"kv_cache_layout\":\"LBNHC\",\"extra_config\":{\"store_tp_size\":4},"
                        "\"steps\":[[{\"add\":\"a\"," PROMPT("20") "}],[{\"reset_local_prefix_cache\":true},"
                                                                   "{\"add\":\"b\"," PROMPT("20") "}],[],[]]}";
    const struct moon_json *result = suite_answer(&moon_suite_lookup_async, &arena, "0.33", given);
    MOON_CHECK_INT(moon_json_member(step(result, 0), "puts")->count, 4);
    MOON_CHECK_INT(moon_json_member(step(result, 1), "gets")->count, 0); /* blocks are held: nothing was reset */
    MOON_CHECK_INT(moon_json_member(result, "wrong_bytes")->integer, 0);
    moon_arena_close(&arena);
    given = "{\"topology\":{\"tp\":2},\"kv_cache_layout\":\"LBNHC\",\"extra_config\":{\"store_tp_size\":4},"
            "\"steps\":[[{\"add\":\"a\"," PROMPT("20") "}],[],[{\"reset_local_prefix_cache\":true},"
                                                       "{\"add\":\"b\"," PROMPT("20") "}],[],[]]}";
    result = suite_answer(&moon_suite_lookup_async, &arena, "0.33", given);
    MOON_CHECK_INT(moon_json_member(step(result, 2), "gets")->count, 4);
    MOON_CHECK_INT(moon_json_member(moon_json_member(step(result, 4), "scheduled"), "b")->integer, 4);
    MOON_CHECK_INT(moon_json_member(result, "wrong_bytes")->integer, 0);
    moon_arena_close(&arena);
}

static void preempted_requests_are_told_by_name(void) {
    struct moon_arena arena;
    const char *given =
        "{\"num_gpu_blocks\":4,\"kv_role\":\"kv_consumer\",\"steps\":["
        "[{\"add\":\"c\"," PROMPT("32") ",\"max_tokens\":9}],"
                                        "[{\"add\":\"b\"," PROMPT("15") ",\"max_tokens\":9}],[],[],[],[]]}";
    const struct moon_json *result = suite_answer(&moon_suite_lookup_async, &arena, "0.33", given);
    size_t preempted = 0;
    for (size_t i = 0; i < 6; i++)
        preempted += moon_json_member(step(result, i), "preempted")->count;
    MOON_CHECK_INT(preempted, 0); /* b finds no room behind c */
    moon_arena_close(&arena);
    given = "{\"num_gpu_blocks\":4,\"kv_role\":\"kv_consumer\",\"steps\":["
            "[{\"add\":\"c\"," PROMPT("16") ",\"max_tokens\":19},{\"add\":\"b\",\"prompt\":{\"start\":9,\"count\":15},"
                                            "\"max_tokens\":9}],[],[]]}";
    result = suite_answer(&moon_suite_lookup_async, &arena, "0.33", given);
    MOON_CHECK_TEXT(moon_json_at(moon_json_member(step(result, 2), "preempted"), 0)->bytes, "b");
    moon_arena_close(&arena);
}

static void failing_existence_calls_are_no_hit(void) {
    struct moon_arena arena;
    const struct moon_json *result =
        suite_answer(&moon_suite_lookup_async, &arena, "0.33",
                     "{\"exist_raises\":true,\"steps\":[[{\"add\":\"a\"," PROMPT("40") "}]]}");
    const struct moon_json *question = moon_json_at(moon_json_member(step(result, 0), "lookups"), 0);
    MOON_CHECK_INT(moon_json_member(question, "result")->integer, 0);
    MOON_CHECK_INT(moon_json_member(step(result, 0), "puts")->count, 2);
    moon_arena_close(&arena);
}

static void aborted_lookups_are_counted(void) {
    struct moon_arena arena;
    const char *given = "{\"extra_config\":{\"lookup_async\":true},\"behind_multi_connector\":true,\"steps\":["
                        "[{\"add\":\"a\"," PROMPT("40") "},{\"add\":\"b\"," PROMPT(
                            "40") "}],"
                                  "[{\"abort\":\"b\"}],[{\"lookup_answers\":3}],[{\"abort\":\"b\"}]]}";
    const struct moon_json *result = suite_answer(&moon_suite_lookup_async, &arena, "0.33", given);
    MOON_CHECK_INT(moon_json_member(result, "futures_after_abort")->integer, 0);
    MOON_CHECK_INT(moon_json_member(result, "lookups_that_reached_the_store")->integer, 1);
    moon_arena_close(&arena);
}

static void old_releases_run_too(void) {
    static const char *const profiles[] = {"0.21", "0.22", "0.24", "0.27", "0.28", "0.29", "0.31"};
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        struct moon_arena arena;
        const struct moon_json *result =
            suite_answer(&moon_suite_lookup_async, &arena, profiles[i],
                         "{\"extra_config\":{\"lookup_async\":true},\"steps\":"
                         "[[{\"add\":\"a\"," PROMPT("40") "}],[],[],"
                                                          "[{\"add\":\"b\"," PROMPT("40") "}],[],[]]}");
        MOON_CHECK_INT(moon_json_member(result, "stored_keys_total")->integer, 2);
        MOON_CHECK_INT(moon_json_member(result, "wrong_bytes")->integer, 0);
        moon_arena_close(&arena);
    }
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "[]", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{}", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{\"x\":1}", MOON_ERR_SCHEMA, "$.x"},
        {"0.33", "{\"steps\":1}", MOON_ERR_SCHEMA, "$.steps"},
        {"0.33", "{\"steps\":[1]}", MOON_ERR_SCHEMA, "$.steps[0]"},
        {"0.33", "{\"steps\":[[1]]}", MOON_ERR_SCHEMA, "$.steps[0][0]"},
        {"0.33", "{\"steps\":[[{}]]}", MOON_ERR_SCHEMA, "$.steps[0][0]"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\"}]]}", MOON_ERR_SCHEMA, "$.steps[0][0]"},
        {"0.33", "{\"steps\":[[{\"add\":1," PROMPT("1") "}]]}", MOON_ERR_SCHEMA, "$.steps[0][0].add"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\"," PROMPT("0") "}]]}", MOON_ERR_RANGE, "$.steps[0][0].prompt.count"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\"," PROMPT("65537") "}]]}", MOON_ERR_RANGE, "$.steps[0][0].prompt.count"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\",\"prompt\":{\"count\":1,\"mod\":0}}]]}", MOON_ERR_RANGE,
         "$.steps[0][0].prompt.mod"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\",\"prompt\":{\"count\":1,\"x\":0}}]]}", MOON_ERR_SCHEMA,
         "$.steps[0][0].prompt.x"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\"," PROMPT("1") ",\"max_tokens\":0}]]}", MOON_ERR_RANGE,
         "$.steps[0][0].max_tokens"},
        {"0.33", "{\"steps\":[[{\"add\":\"a\"," PROMPT("1") "},{\"add\":\"a\"," PROMPT("1") "}]]}", MOON_ERR_RANGE,
         "$.steps[0][1].add"},
        {"0.33", "{\"steps\":[[{\"abort\":\"a\"}]]}", MOON_ERR_RANGE, "$.steps[0][0].abort"},
        {"0.33", "{\"steps\":[[{\"abort\":\"a\",\"x\":1}]]}", MOON_ERR_SCHEMA, "$.steps[0][0].x"},
        {"0.33", "{\"steps\":[[{\"lookup_answers\":-1}]]}", MOON_ERR_RANGE, "$.steps[0][0].lookup_answers"},
        {"0.33", "{\"steps\":[[{\"lookup_answers\":1,\"x\":1}]]}", MOON_ERR_SCHEMA, "$.steps[0][0].x"},
        {"0.33", "{\"steps\":[[{\"reset_local_prefix_cache\":true,\"x\":1}]]}", MOON_ERR_SCHEMA, "$.steps[0][0].x"},
        {"0.33", "{\"steps\":[],\"topology\":{\"pp\":2}}", MOON_ERR_UNSUPPORTED, "$.topology"},
        {"0.33", "{\"steps\":[],\"topology\":{\"tp\":128},\"total_kv_heads\":128}", MOON_ERR_LIMIT, "$.topology"},
        {"0.33", "{\"steps\":[],\"groups\":[{\"kind\":\"mla\"}]}", MOON_ERR_UNSUPPORTED, "$.groups"},
        {"0.33", "{\"steps\":[],\"groups\":[{},{}]}", MOON_ERR_UNSUPPORTED, "$.groups"},
        {"0.33", "{\"steps\":[],\"groups\":[{\"num_kv_heads\":3}]}", MOON_ERR_RANGE, "$.groups[0].num_kv_heads"},
        {"0.33", "{\"steps\":[],\"groups\":[{\"num_layers\":257}]}", MOON_ERR_RANGE, "$.groups[0].num_layers"},
        {"0.33", "{\"steps\":[],\"groups\":[{\"layer_names\":[]}]}", MOON_ERR_RANGE, "$.groups[0].layer_names"},
        {"0.33", "{\"steps\":[],\"groups\":[{\"layer_names\":1}]}", MOON_ERR_SCHEMA, "$.groups[0].layer_names"},
        {"0.33", "{\"steps\":[],\"topology\":{\"tp\":4},\"total_kv_heads\":6}", MOON_ERR_RANGE, "$.total_kv_heads"},
        {"0.33", "{\"steps\":[],\"topology\":{\"tp\":3}}", MOON_ERR_RANGE, "$"},
        {"0.33", "{\"steps\":[],\"kv_cache_layout\":\"BHLNC\"}", MOON_ERR_UNSUPPORTED, "$.kv_cache_layout"},
        {"0.33", "{\"steps\":[],\"speculative\":true}", MOON_ERR_UNSUPPORTED, "$.speculative"},
        {"0.33", "{\"steps\":[],\"extra_config\":{\"load_async\":false}}", MOON_ERR_UNSUPPORTED,
         "$.extra_config.load_async"},
        {"0.33", "{\"steps\":[],\"num_gpu_blocks\":0}", MOON_ERR_RANGE, "$.num_gpu_blocks"},
        {"0.33", "{\"steps\":[],\"max_tokens_per_step\":0}", MOON_ERR_RANGE, "$.max_tokens_per_step"},
        {"0.33", "{\"steps\":[],\"behind_multi_connector\":1}", MOON_ERR_SCHEMA, "$.behind_multi_connector"},
        {"0.33", "{\"steps\":[],\"exist_raises\":1}", MOON_ERR_SCHEMA, "$.exist_raises"},
        {"0.33", "{\"steps\":[],\"stored_before\":1}", MOON_ERR_SCHEMA, "$.stored_before"},
        {"0.33", "{\"steps\":[],\"stored_before\":[1]}", MOON_ERR_SCHEMA, "$.stored_before[0]"},
        {"0.33", "{\"steps\":[],\"num_gpu_blocks\":65536,\"groups\":[{\"block_size\":1024}]}", MOON_ERR_LIMIT, "$"},
        {"0.33", "{\"steps\":[],\"total_kv_heads\":4611686018427387904}", MOON_ERR_RANGE, "$.total_kv_heads"},
    };
    suite_check_bad_cases(&moon_suite_lookup_async, rows, sizeof rows / sizeof rows[0]);
}

static void too_many_requests_are_refused(void) {
    struct moon_arena arena;
    struct moon_text given;
    struct moon_json *result = NULL;
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&given, moon_memory_heap());
    moon_text_string(&given, "{\"steps\":[[");
    for (int i = 0; i < 257; i++)
        moon_text_format(&given, "%s{\"add\":\"%d\"," PROMPT("1") "}", i ? "," : "", i);
    moon_text_string(&given, "]]}");
    MOON_CHECK_INT(suite_ask(&moon_suite_lookup_async, &arena, "0.33", moon_text_value(&given), &result, &error),
                   MOON_ERR_LIMIT);
    moon_text_close(&given);
    moon_arena_close(&arena);
}

static void explanations_name_questions_and_rules(void) {
    static const char given[] =
        "{\"num_gpu_blocks\":6,\"extra_config\":{\"lookup_async\":true},\"stored_before\":[],\"steps\":["
        "[{\"add\":\"a\"," PROMPT(
            "40") ",\"max_tokens\":20}],[{\"lookup_answers\":1}],"
                  "[{\"add\":\"b\",\"prompt\":{\"start\":9,\"count\":15},\"max_tokens\":20}],[],[],[],[],[],[],[],[],[]"
                  ",[],[],[],[],[],[],[],[],"
                  "[{\"abort\":\"a\"},{\"abort\":\"b\"}],[\"reset_local_prefix_cache\"],[\"reset_local_prefix_cache\"],"
                  "[{\"add\":\"d\"," PROMPT("40") "}],[{\"lookup_answers\":1}],[{\"lookup_answers\":1}],[],[]]}";
    static const char *const parts[] = {"answered when a step says so (ENGINE-009)",
                                        "asks for a: 40 tokens, 0 of them here (ENGINE-003): pending",
                                        "computes 40 tokens of a (ENGINE-004)",
                                        "a is aborted",
                                        "the local prefix cache is emptied",
                                        "32 tokens to load while it waits (ENGINE-006)",
                                        "rank 0 gets model@",
                                        "rank 0 puts model@",
                                        "preempts b",
                                        "in the end: 2 keys stored, 0 wrong bytes",
                                        NULL};
    suite_check_explained(&moon_suite_lookup_async, "0.33", given, parts);
}

static void what_a_release_raises_names_the_request(void) {
    struct moon_arena arena; /* a decode block is saved in a step without new blocks, whose table 0.29 is not told */
    const struct moon_json *result = suite_answer(&moon_suite_lookup_async, &arena, "0.29",
                                                  "{\"extra_config\":{\"save_decode_cache\":true},\"steps\":"
                                                  "[[{\"add\":\"a\"," PROMPT("14") ",\"max_tokens\":9}],[],[],[]]}");
    MOON_CHECK_TEXT(moon_json_member(moon_json_member(result, "error"), "message")->bytes,
                    "Missing current block table for store request a");
    moon_arena_close(&arena);
}

static void drawn_cases_are_answered(void) {
    suite_check_drawn(&moon_suite_lookup_async, true); /* 0.29 raises where a job has no table */
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    static const char given[] =
        "{\"topology\":{\"tp\":2},\"extra_config\":{\"lookup_async\":true,\"store_tp_size\":2},\"num_gpu_blocks\":9,"
        "\"steps\":[[{\"add\":\"a\"," PROMPT("20") "}],[{\"lookup_answers\":1}],[],[\"reset_local_prefix_cache\"],"
                                                   "[{\"add\":\"b\"," PROMPT(
                                                       "20") "}],[{\"lookup_answers\":1}],[],[{\"abort\":\"b\"}],[]]}";
    suite_check_refused_memory(&moon_suite_lookup_async, given, 2);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"left out members have defaults", left_out_members_have_defaults},
        {"a case without requests does nothing", a_case_without_requests_does_nothing},
        {"several ranks load what they hold", several_ranks_load_what_they_hold},
        {"preempted requests are told by name", preempted_requests_are_told_by_name},
        {"failing existence calls are no hit", failing_existence_calls_are_no_hit},
        {"aborted lookups are counted", aborted_lookups_are_counted},
        {"old releases run too", old_releases_run_too},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"too many requests are refused", too_many_requests_are_refused},
        {"explanations name questions and rules", explanations_name_questions_and_rules},
        {"what a release raises names the request", what_a_release_raises_names_the_request},
        {"drawn cases are answered and explained", drawn_cases_are_answered},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("suite lookup-async", cases, argc, argv);
}
