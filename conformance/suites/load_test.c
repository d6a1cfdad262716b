/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite load: defaults, bad cases with their place, what a release raises, explanations, drawn cases,
 * refused memory. */
#include "conformance/suites/load_case.h"

#include "conformance/suites/suite_check.h"

static const struct moon_json *first_rank(const struct moon_json *result) {
    return moon_json_at(moon_json_member(result, "ranks"), 0);
}

static void an_empty_case_loads_one_block(void) {
    struct moon_arena arena;
    const struct moon_json *result = suite_answer(&moon_suite_load, &arena, "0.33", "{}");
    MOON_CHECK_INT(moon_json_member(result, "new_matched_tokens")->integer, 16);
    const struct moon_json *get = moon_json_at(moon_json_member(first_rank(result), "get_calls"), 0);
    MOON_CHECK_TEXT(moon_json_at(moon_json_member(get, "keys"), 0)->bytes,
                    "model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000001");
    MOON_CHECK_INT(moon_json_at(moon_json_member(get, "results"), 0)->integer, 1024);
    MOON_CHECK_TEXT(moon_json_at(moon_json_member(result, "tensors"), 0)->bytes, "g0.l0");
    moon_arena_close(&arena);
}

/* Asks, and compares the answer's first rank with JSON text. */
static void check_first_rank(const char *profile, const char *given, const char *expected) {
    struct moon_arena arena;
    struct moon_json *result = NULL;
    struct moon_text seen;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&seen, moon_memory_heap());
    MOON_CHECK_INT(suite_ask(&moon_suite_load, &arena, profile, given, &result, NULL), 0);
    const struct moon_json *rank = first_rank(result);
    if (rank)
        moon_json_write(rank, MOON_JSON_COMPACT, &seen);
    MOON_CHECK_TEXT(moon_text_value(&seen), expected);
    moon_text_close(&seen);
    moon_arena_close(&arena);
}

static void layers_are_named_and_numbered_in_order(void) {
    struct moon_arena arena;
    struct moon_json *result = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(suite_ask(&moon_suite_load, &arena, "0.33",
                             "{\"groups\":[{\"kind\":\"full\",\"layer_names\":[\"a\",\"b\"]},{\"kind\":\"uniform\","
                             "\"inner\":[{\"kind\":\"mla\"},{\"kind\":\"mla\"}]},{\"kind\":\"full\"}]}",
                             &result, NULL),
                   0);
    static const char *const names[] = {"a", "b", "u0", "u1", "g2.l0"};
    MOON_CHECK_INT(moon_json_member(result, "tensors")->count, 5);
    for (size_t i = 0; i < 5; i++)
        MOON_CHECK_TEXT(moon_json_at(moon_json_member(result, "tensors"), i)->bytes, names[i]);
    moon_arena_close(&arena);
}

/* SEG-011 and LOAD-025: the second group is the engine's alone. */
static void groups_that_are_not_stored_are_not_read(void) {
    check_first_rank(
        "0.33",
        "{\"model\":\"m\",\"page_bytes\":64,\"block_hashes\":[\"aa\"],\"get_raises_on_call\":0,\"groups\":[{},"
        "{\"transferable\":false}],\"block_ids\":[[3,4],[5,6]]}",
        "{\"rank\":0,\"get_calls\":[{\"keys\":[\"m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@aa\"],"
        "\"buffers\":[[[0,192,64]]],\"results\":null}],\"invalid_block_ids\":[],\"failed_requests\":[\"r\"]}");
}

static void reports_are_those_of_the_release(void) {
    static const char given[] = "{\"model\":\"m\",\"page_bytes\":64,\"block_hashes\":[\"aa\"],\"block_ids\":[[3,4]],"
                                "\"get_raises_on_call\":0}";
    check_first_rank("0.21", given,
                     "{\"rank\":0,\"get_calls\":[{\"keys\":[\"m@tp_rank:0@pcp0@dcp0@pp_rank:0@aa\"],\"buffers\":[[[0,"
                     "192,64]]],\"results\":null}]}");
    check_first_rank("0.30", given,
                     "{\"rank\":0,\"get_calls\":[{\"keys\":[\"m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@aa\"],"
                     "\"buffers\":[[[0,192,64]]],\"results\":null}],\"invalid_block_ids\":[3]}");
}

static void what_is_not_there_is_not_loaded(void) {
    check_first_rank("0.33", "{\"hit_tokens_in_store\":0}", "");
    check_first_rank("0.33", "{\"num_computed_tokens\":16}", "");
    check_first_rank("0.33", "{\"kv_role\":\"kv_consumer\",\"extra_config\":{\"enable_lookup\":false}}", "");
}

#define ONE_GROUP "\"groups\":[{\"kind\":\"full\",\"block_size\":16"

static void bad_cases_are_told_with_their_place(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "[]", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{\"x\":1}", MOON_ERR_SCHEMA, "$.x"},
        {"0.33", "{\"topology\":{\"tp\":0}}", MOON_ERR_RANGE, "$.topology.tp"},
        {"0.33", "{\"topology\":{\"tp\":2048}}", MOON_ERR_LIMIT, "$.topology"},
        {"0.33", "{\"page_bytes\":0}", MOON_ERR_RANGE, "$.page_bytes"},
        {"0.33", "{\"page_bytes\":9007199254740992}", MOON_ERR_RANGE, "$.page_bytes"},
        {"0.33", "{\"page_bytes\":1000,\"extra_config\":{\"store_tp_size\":1}}", MOON_ERR_RANGE, "$.page_bytes"},
        {"0.33", "{\"num_gpu_blocks\":0}", MOON_ERR_RANGE, "$.num_gpu_blocks"},
        {"0.33", "{\"num_gpu_blocks\":2}", MOON_ERR_RANGE, "$"},
        {"0.33", "{" ONE_GROUP ",\"num_layers\":0}]}", MOON_ERR_RANGE, "$.groups[0].num_layers"},
        {"0.33", "{" ONE_GROUP ",\"num_layers\":65537}]}", MOON_ERR_RANGE, "$.groups[0].num_layers"},
        {"0.33", "{\"groups\":[{\"num_layers\":65536},{}]}", MOON_ERR_LIMIT, "$.groups[1]"},
        {"0.33", "{" ONE_GROUP ",\"layer_names\":[1]}]}", MOON_ERR_SCHEMA, "$.groups[0].layer_names[0]"},
        {"0.33", "{" ONE_GROUP ",\"layer_names\":1}]}", MOON_ERR_SCHEMA, "$.groups[0].layer_names"},
        {"0.33", "{" ONE_GROUP ",\"layer_names\":[\"a\",\"a\"]}]}", MOON_ERR_UNSUPPORTED, "$.groups[0]"},
        {"0.33", "{\"num_tokens\":0}", MOON_ERR_RANGE, "$.num_tokens"},
        {"0.33", "{\"num_tokens\":1099511627776}", MOON_ERR_LIMIT, "$.num_tokens"},
        {"0.33", "{\"num_computed_tokens\":18}", MOON_ERR_RANGE, "$.num_computed_tokens"},
        {"0.33", "{\"hit_tokens_in_store\":-1}", MOON_ERR_RANGE, "$.hit_tokens_in_store"},
        {"0.33", "{\"block_hashes\":[\"x\"]}", MOON_ERR_SCHEMA, "$.block_hashes[0]"},
        {"0.33", "{\"num_tokens\":32,\"block_hashes\":[\"aa\"]}", MOON_ERR_RANGE, "$.block_hashes"},
        {"0.33", "{\"block_ids\":{}}", MOON_ERR_SCHEMA, "$.block_ids"},
        {"0.33", "{\"block_ids\":[]}", MOON_ERR_SCHEMA, "$.block_ids"},
        {"0.33", "{\"block_ids\":[1]}", MOON_ERR_SCHEMA, "$.block_ids[0]"},
        {"0.33", "{\"block_ids\":[[64]]}", MOON_ERR_RANGE, "$.block_ids[0][0]"},
        {"0.33", "{\"block_ids\":[[-1]]}", MOON_ERR_RANGE, "$.block_ids[0][0]"},
        {"0.33", "{\"store_config\":[]}", MOON_ERR_SCHEMA, "$.store_config"},
        {"0.33", "{\"env\":[]}", MOON_ERR_SCHEMA, "$.env"},
        {"0.33", "{\"env\":{\"A\":1}}", MOON_ERR_SCHEMA, "$.env.A"},
        {"0.33", "{\"get_results\":{\"k\":\"1\"}}", MOON_ERR_SCHEMA, "$.get_results.k"},
        {"0.33", "{\"get_raises_on_call\":-1}", MOON_ERR_RANGE, "$.get_raises_on_call"},
        {"0.33", "{\"get_raises_on_call\":\"0\"}", MOON_ERR_SCHEMA, "$.get_raises_on_call"},
    };
    suite_check_bad_cases(&moon_suite_load, rows, sizeof rows / sizeof rows[0]);
}

static void a_table_that_ends_before_the_hit_is_named(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "{\"num_tokens\":49,\"block_ids\":[[1,2]]}", MOON_ERR_RANGE, "$.block_ids"},
        {"0.24", "{\"num_tokens\":49,\"block_ids\":[[]]}", MOON_ERR_RANGE, "$.block_ids"},
    };
    suite_check_bad_cases(&moon_suite_load, rows, sizeof rows / sizeof rows[0]);
}

static void an_answer_has_a_largest_size(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "{\"num_tokens\":16001,\"num_gpu_blocks\":2000,\"groups\":[{\"num_layers\":5000}]}", MOON_ERR_LIMIT,
         "$"},
    };
    suite_check_bad_cases(&moon_suite_load, rows, sizeof rows / sizeof rows[0]);
}

static void what_a_release_raises_is_the_answer(void) {
    static const struct suite_raising_case rows[] = {
        {"0.33", "{\"extra_config\":{\"load_async\":false}}", "AssertionError", ""},
        {"0.33", "{\"store_config\":{\"global_segment_size\":\"x\"}}", "ValueError", ""},
        {"0.33",
         "{\"store_config\":{\"enable_offload\":true},\"env\":{\"VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO\":\"x\"}}",
         "ValueError", ""},
        {"0.21", "{\"page_bytes\":1000}", "ValueError", ""},
    };
    suite_check_raised(&moon_suite_load, rows, sizeof rows / sizeof rows[0]);
}

static void a_load_is_explained(void) {
    suite_check_explained(&moon_suite_load, "0.33", "{\"hit_tokens_in_store\":0}", SUITE_PARTS("no load is issued"));
    suite_check_explained(&moon_suite_load, "0.33", "{\"num_tokens\":33,\"topology\":{\"tp\":2}}",
                          SUITE_PARTS("to load: 32 tokens, on every rank",
                                      "rank 1: tp 1, pcp 0, pp 0: 2 keys, beginning with key 1",
                                      "group 0 reads chunks 0 to 1\n", "no offloading", "get 0: 2 keys",
                                      "block 2: g0.l0 at 2048 +1024", "-> 1024", "reports the request as received"));
    suite_check_explained(
        &moon_suite_load, "0.21",
        "{\"get_results\":{\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@00000000000000000000000000000001\":-1}}",
        SUITE_PARTS("knows no staging budget", "FAILED, only logged (LOAD-024)"));
}

#define OFFLOAD     "\"store_config\":{\"enable_offload\":true},\"env\":{\"VLLM_MOONCAKE_STORE_TIER_LOG\":\"1\","
#define RATIO(text) "\"VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO\":\"" text "\"}"

static void cuts_and_failures_are_explained(void) {
    suite_check_explained(
        &moon_suite_load, "0.33", "{\"num_tokens\":81," OFFLOAD RATIO("0.00002") ",\"get_raises_on_call\":1}",
        SUITE_PARTS("cut to 26843 staging bytes a get", "replicas of 2 keys are asked for", "get 1: 2 keys, RAISES",
                    "NEITHER READ NOR REPORTED: the other 1 key,", "reports blocks 3 4 as failed (LOAD-020)",
                    "Mooncake load tier summary: req_id=r batch_keys=2"));
    suite_check_explained(
        &moon_suite_load, "0.30", "{\"page_bytes\":1342177280,\"groups\":[{},{}]," OFFLOAD RATIO("0.9") "}",
        SUITE_PARTS("NOT READ: key 0 takes 2684362752 staging bytes", "reports blocks 1 as failed (LOAD-025"));
    suite_check_explained(
        &moon_suite_load, "0.33", "{\"groups\":[{},{}]," OFFLOAD RATIO("2") ",\"get_raises_on_call\":0}",
        SUITE_PARTS("all keys fit into 2684354560 staging bytes", "reports the request as failed (LOAD-025)"));
    suite_check_explained(&moon_suite_load, "0.33",
                          "{\"get_results\":{\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@"
                          "00000000000000000000000000000001\":5}}",
                          SUITE_PARTS("-> 5 of fewer bytes PASSES (LOAD-021)"));
    suite_check_explained(&moon_suite_load, "0.33", "{\"extra_config\":{\"load_async\":false}}",
                          SUITE_PARTS("raises AssertionError"));
}

#define LOCAL "{\"num_tokens\":65,\"groups\":[{\"kind\":\"chunked_local\",\"attention_chunk_size\":32}]}"

static void a_load_of_nothing_is_answered_and_explained(void) {
    check_first_rank("0.33", LOCAL, "{\"rank\":0,\"get_calls\":[],\"invalid_block_ids\":[],\"failed_requests\":[]}");
    suite_check_explained(&moon_suite_load, "0.33", LOCAL,
                          SUITE_PARTS("group 0 reads nothing", "NO KEY is left: the load raises and never ends"));
}

static void long_lists_are_cut(void) {
    suite_check_explained(&moon_suite_load, "0.33",
                          "{\"num_tokens\":641,\"groups\":[{\"num_layers\":6}],\"get_raises_on_call\":0}",
                          SUITE_PARTS("and 2 more (LOAD-006)", "and so on, 40 keys in all", "and 8 more as failed"));
    suite_check_explained(&moon_suite_load, "0.33",
                          "{\"num_tokens\":65,\"num_computed_tokens\":48,\"groups\":[{},{\"kind\":\"sliding_window\","
                          "\"sliding_window\":16}]}",
                          SUITE_PARTS("group 1 reads chunk 3; the engine has chunks 0 to 2 (LOAD-002)\n"));
    suite_check_explained(
        &moon_suite_load, "0.33",
        "{\"num_tokens\":65,\"num_computed_tokens\":16,\"groups\":[{},{\"kind\":\"sliding_window\","
        "\"sliding_window\":16}]}",
        SUITE_PARTS(
            "group 1 reads chunk 3; the engine has chunk 0 (LOAD-002); its attention does not need chunks 1 to 2 "
            "(LOAD-003)"));
}

static void drawn_cases_are_answered_and_explained(void) {
    suite_check_drawn(&moon_suite_load, true);
}

static void refused_memory_is_told(void) {
    suite_check_refused_memory(
        &moon_suite_load,
        "{\"num_tokens\":49,\"groups\":[{\"layer_names\":[\"a\"]},{}],\"topology\":{\"tp\":2}," OFFLOAD RATIO(
            "0.00002") ",\"block_hashes\":[\"aa\",\"bb\",\"cc\"],\"block_ids\":[[1,2,3],[4,5,6]],"
                       "\"get_results\":{\"k\":1}}",
        7);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"an empty case loads one block", an_empty_case_loads_one_block},
        {"layers are named and numbered in order", layers_are_named_and_numbered_in_order},
        {"groups that are not stored are not read", groups_that_are_not_stored_are_not_read},
        {"reports are those of the release", reports_are_those_of_the_release},
        {"what is not there is not loaded", what_is_not_there_is_not_loaded},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"a table that ends before the hit is named", a_table_that_ends_before_the_hit_is_named},
        {"an answer has a largest size", an_answer_has_a_largest_size},
        {"what a release raises is the answer", what_a_release_raises_is_the_answer},
        {"a load is explained", a_load_is_explained},
        {"cuts and failures are explained", cuts_and_failures_are_explained},
        {"a load of nothing is answered and explained", a_load_of_nothing_is_answered_and_explained},
        {"long lists are cut", long_lists_are_cut},
        {"drawn cases are answered and explained", drawn_cases_are_answered_and_explained},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL},
    };
    return moon_unit_main("suite load", cases, argc, argv);
}
