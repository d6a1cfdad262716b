/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite lookup: defaults, engines of all kinds, bad input, what releases raise, explanations, drawn cases.
 */
#include "conformance/suites/lookup.h"

#include "conformance/suites/suite_check.h"

/* Checks an answer: tokens, hit (-1: null), and how many keys were asked for. */
static void check_answer(const char *profile, const char *given, int64_t tokens, int64_t hit, int64_t queried) {
    struct moon_arena arena;
    struct moon_json *result = NULL;
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(suite_ask(&moon_suite_lookup, &arena, profile, given, &result, &error), 0);
    const struct moon_json *seen = moon_json_member(result, "hit_tokens");
    CU_ASSERT_PTR_NOT_NULL_FATAL(seen);
    MOON_CHECK_INT(moon_json_member(result, "new_matched_tokens")->integer, tokens);
    MOON_CHECK_INT(seen->type == MOON_JSON_NULL ? -1 : seen->integer, hit);
    MOON_CHECK_INT(moon_json_member(result, "queried_count")->integer, queried);
    MOON_CHECK_INT(moon_json_member(result, "queried_keys") != NULL, queried <= 24);
    moon_arena_close(&arena);
}

#define KEY(group, hash)                                                                                               \
    "\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:" group "@000000000000000000000000000000" hash "\""

static void an_empty_case_is_one_block_that_is_not_there(void) {
    check_answer("0.33", "{}", 0, -1, 1);
    check_answer("0.33", "{\"existing_keys\":[" KEY("0", "01") "]}", 16, 16, 1);
    check_answer("0.33", "{\"num_tokens\":1000}", 0, -1, 62);
}

static void options_decide_whether_and_how_it_is_looked_up(void) {
    check_answer("0.33", "{\"extra_config\":{\"enable_lookup\":false}}", 0, -1, 0);
    check_answer("0.33", "{\"extra_config\":{\"enable_lookup\":0}}", 0, -1, 0);
    check_answer("0.33", "{\"extra_config\":{\"enable_lookup\":\"false\"}}", 0, -1, 1); /* a text is true */
    check_answer("0.26", "{\"extra_config\":{\"enable_lookup\":false}}", 0, -1, 1);
    check_answer("0.33", "{\"kv_role\":\"kv_consumer\",\"extra_config\":{\"enable_lookup\":null}}", 0, -1, 0);
    check_answer("0.33", "{\"extra_config\":{\"lookup_async\":true},\"existing_keys\":[" KEY("0", "01") "]}", 16, 16,
                 1);
}

static void options_have_the_truth_that_python_gives_them(void) {
    static const struct {
        const char *extra;
        bool group_semantics, save_decode_cache, discard;
    } rows[] = {
        {"{}", false, false, true},
        {"{\"enable_group_semantics\":true,\"save_decode_cache\":1,\"discard_partial_chunks\":0}", true, true, false},
        {"{\"enable_group_semantics\":\" TRUE\\t\",\"save_decode_cache\":\"\"}", true, false, true},
        {"{\"enable_group_semantics\":\"1\",\"save_decode_cache\":[]}", false, false, true},
        {"{\"enable_group_semantics\":1,\"save_decode_cache\":[0],\"discard_partial_chunks\":null}", false, true,
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_arena arena;
        struct moon_json *extra;
        struct moon_connector_options out;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(
            moon_json_read(&arena, "test", rows[i].extra, strlen(rows[i].extra), MOON_JSON_STRICT, &extra, NULL), 0);
        moon_connector_options_read("kv_producer", extra, &out);
        MOON_CHECK_INT(out.role, MOON_ROLE_PRODUCER);
        MOON_CHECK_INT(out.enable_group_semantics, rows[i].group_semantics);
        MOON_CHECK_INT(out.save_decode_cache, rows[i].save_decode_cache);
        MOON_CHECK_INT(out.discard_partial_chunks, rows[i].discard);
        CU_ASSERT_TRUE(out.load_async && out.enable_lookup);
        moon_arena_close(&arena);
    }
    struct moon_connector_options out;
    moon_connector_options_read("kv_consumer", NULL, &out);
    MOON_CHECK_INT(out.role, MOON_ROLE_CONSUMER);
    moon_connector_options_read("kv_both", NULL, &out);
    MOON_CHECK_INT(out.role, MOON_ROLE_BOTH);
}

static void groups_of_all_kinds_are_read(void) {
    check_answer("0.33", "{\"groups\":[{\"kind\":\"chunked_local\",\"attention_chunk_size\":32}],\"num_tokens\":30}", 0,
                 -1, 1);
    /* 17 tokens need one chunk, with 16 retained ones two: from 0.33 on */
    check_answer("0.32",
                 "{\"groups\":[{\"kind\":\"sliding_window\",\"sliding_window\":17,\"extra_retained_tokens\":16}],"
                 "\"num_tokens\":65,\"existing_keys\":[" KEY("0", "03") "]}",
                 48, 48, 4);
    check_answer("0.33",
                 "{\"groups\":[{\"kind\":\"sliding_window\",\"sliding_window\":17,\"extra_retained_tokens\":16}],"
                 "\"num_tokens\":65,\"existing_keys\":[" KEY("0", "03") "]}",
                 0, -1, 4);
    check_answer("0.33", "{\"groups\":[{\"kind\":\"mamba\",\"mamba_cache_mode\":\"align\"}]}", 0, -1, 1);
    check_answer("0.33", "{\"groups\":[{},{\"kind\":\"mamba\"}],\"prefix_match_unit\":8}", 0, -1, 4);
    check_answer("0.33", "{\"groups\":[{\"kind\":\"mla\",\"num_kv_heads\":4}]}", 0, -1, 1);
}

static void answers_are_those_of_the_store(void) {
    check_answer("0.33", "{\"existing_keys\":[" KEY("0", "01") "],\"exist_result_override\":{" KEY("0", "01") ":-1}}",
                 0, -1, 1);
    check_answer("0.33", "{\"exist_result_override\":{" KEY("0", "01") ":1}}", 16, 16, 1);
    check_answer("0.33", "{\"exist_result_override\":{" KEY("0", "01") ":2}}", 0, -1, 1);
    check_answer("0.33", "{\"existing_keys\":[" KEY("0", "01") "],\"exist_raises\":true}", 0, -1, 1);
    check_answer("0.33", "{\"existing_keys\":[" KEY("0", "01") "],\"num_computed_tokens\":16}", 0, -1, 1);
    check_answer("0.33", "{\"existing_keys\":[" KEY("0", "01") "],\"num_computed_tokens\":3}", 13, 16, 1);
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "[]", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{\"num_chunks\":1}", MOON_ERR_SCHEMA, "$.num_chunks"},
        {"0.33", "{\"num_tokens\":0}", MOON_ERR_RANGE, "$.num_tokens"},
        {"0.33", "{\"num_tokens\":16777217}", MOON_ERR_RANGE, "$.num_tokens"},
        {"0.33", "{\"num_tokens\":\"1\"}", MOON_ERR_SCHEMA, "$.num_tokens"},
        {"0.33", "{\"num_tokens\":20,\"num_computed_tokens\":21}", MOON_ERR_RANGE, "$.num_computed_tokens"},
        {"0.33", "{\"num_tokens\":40,\"block_hashes\":[\"00\"]}", MOON_ERR_RANGE, "$.block_hashes"},
        {"0.33", "{\"block_hashes\":[\"0\"]}", MOON_ERR_SCHEMA, "$.block_hashes[0]"},
        {"0.33", "{\"block_hashes\":{}}", MOON_ERR_SCHEMA, "$.block_hashes"},
        {"0.33", "{\"existing_keys\":[1]}", MOON_ERR_SCHEMA, "$.existing_keys[0]"},
        {"0.33", "{\"existing_keys\":{}}", MOON_ERR_SCHEMA, "$.existing_keys"},
        {"0.33", "{\"exist_result_override\":{\"k\":\"1\"}}", MOON_ERR_SCHEMA, "$.exist_result_override.k"},
        {"0.33", "{\"exist_result_override\":{\"k\":true}}", MOON_ERR_SCHEMA, "$.exist_result_override.k"},
        {"0.33", "{\"exist_result_override\":{\"k\":9223372036854775808}}", MOON_ERR_RANGE,
         "$.exist_result_override.k"},
        {"0.33", "{\"exist_result_override\":[]}", MOON_ERR_SCHEMA, "$.exist_result_override"},
        {"0.33", "{\"exist_raises\":1}", MOON_ERR_SCHEMA, "$.exist_raises"},
        {"0.33", "{\"groups\":[{\"kind\":\"chunked_local\"}]}", MOON_ERR_SCHEMA, "$.groups[0]"},
        {"0.33", "{\"groups\":[{\"kind\":\"chunked_local\",\"attention_chunk_size\":0}]}", MOON_ERR_RANGE,
         "$.groups[0].attention_chunk_size"},
        {"0.33", "{\"groups\":[{\"kind\":\"mamba\",\"mamba_cache_mode\":\"x\"}]}", MOON_ERR_SCHEMA,
         "$.groups[0].mamba_cache_mode"},
        {"0.33", "{\"groups\":[{\"kind\":\"mamba\",\"mamba_cache_mode\":1}]}", MOON_ERR_SCHEMA,
         "$.groups[0].mamba_cache_mode"},
        {"0.33", "{\"groups\":[{\"extra_retained_tokens\":1}]}", MOON_ERR_UNSUPPORTED,
         "$.groups[0].extra_retained_tokens"},
        {"0.27", "{\"groups\":[{\"kind\":\"sliding_window\",\"sliding_window\":9,\"extra_retained_tokens\":1}]}",
         MOON_ERR_UNSUPPORTED, "$.groups[0].extra_retained_tokens"},
        {"0.33", "{\"groups\":[{\"kind\":\"sliding_window\",\"sliding_window\":9,\"extra_retained_tokens\":-1}]}",
         MOON_ERR_RANGE, "$.groups[0].extra_retained_tokens"},
        {"0.33", "{\"prefix_match_unit\":0}", MOON_ERR_RANGE, "$.prefix_match_unit"},
        {"0.33", "{\"topology\":{\"tp\":2,\"dcp\":4}}", MOON_ERR_RANGE, "$.topology"},
    };
    suite_check_bad_cases(&moon_suite_lookup, rows, sizeof rows / sizeof rows[0]);
}

static void what_a_release_raises_is_the_answer(void) {
    static const struct suite_raising_case rows[] = {
        {"0.33", "{\"prefix_match_unit\":8}", "ValueError", "Invalid prefix_match_unit=8"},
        {"0.33", "{\"groups\":[{\"kind\":\"mamba\",\"mamba_cache_mode\":\"all\"}]}", "ValueError",
         "group 0: mamba_cache_mode='all' != 'align'"},
        {"0.28",
         "{\"groups\":[{},{\"kind\":\"mamba\",\"block_size\":32},{\"kind\":\"sliding_window\",\"block_size\":32,"
         "\"sliding_window\":33}],\"num_tokens\":40}",
         "AssertionError", "does not support fine-grained"},
        {"0.33", "{\"groups\":[{\"kind\":\"chunked_local\",\"attention_chunk_size\":32,\"is_eagle\":true}]}",
         "AssertionError", "eagle + chunked local"},
    };
    suite_check_raised(&moon_suite_lookup, rows, sizeof rows / sizeof rows[0]);
}

static void explanations_name_what_is_missing_and_why(void) {
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"num_tokens\":65,\"existing_keys\":[" KEY("0", "01") "," KEY("0", "02") "]}",
                          SUITE_PARTS("hits end at scheduler blocks", "asks for tokens 0 to 64: 4 keys",
                                      "there are 0-16, 16-32; missing in some namespace: 32-48, 48-64",
                                      "alone it reaches 32 tokens (HIT-008)", "a hit of 32 tokens (HIT-004)",
                                      "is told 32 more, loaded beside other work",
                                      "group 0 loads 0-16, 16-32 (HIT-020), the last under the hash at 32 (HIT-030)"));
    suite_check_explained(&moon_suite_lookup, "0.33", "{\"num_tokens\":1000}",
                          SUITE_PARTS("there are none", "and 46 more", "is told 0 more"));
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"groups\":[{},{\"kind\":\"mamba\",\"block_size\":32},{\"is_eagle\":true}]}",
                          SUITE_PARTS("hits end at hash blocks", "group 1: Mamba", "searched with group 0 (HIT-001)",
                                      "EAGLE drops its last chunk", "HIT-014", "HIT-009"));
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"groups\":[{\"kind\":\"sliding_window\",\"sliding_window\":33},{\"kind\":\"mamba\"}],"
                          "\"speculative\":true}",
                          SUITE_PARTS("window 33", "EAGLE drops nothing of it", "HIT-011", "HIT-013", "HIT-005"));
    suite_check_explained(&moon_suite_lookup, "0.33", "{\"num_tokens\":16,\"existing_keys\":[" KEY("0", "01") "]}",
                          SUITE_PARTS("a hit of 0 tokens", "searched again (LOOKUP-014)"));
    suite_check_explained(&moon_suite_lookup, "0.26",
                          "{\"num_tokens\":32,\"existing_keys\":[" KEY("0", "01") "," KEY(
                              "0", "02") "],"
                                         "\"extra_config\":{\"load_async\":false}}",
                          SUITE_PARTS("less for the core (PLAN-003)", "loaded before the step"));
    suite_check_explained(
        &moon_suite_lookup, "0.21",
        "{\"existing_keys\":[\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@00000000000000000000000000000001\"]}",
        SUITE_PARTS("(HIT-017)", "group 0 loads 0-16 (HIT-017)"));
    suite_check_explained(&moon_suite_lookup, "0.33", "{\"exist_raises\":true}",
                          SUITE_PARTS("the call raises: no hit (LOOKUP-015)"));
    suite_check_explained(&moon_suite_lookup, "0.33", "{\"num_tokens\":3}",
                          SUITE_PARTS("shorter than a block (LOOKUP-001)"));
    suite_check_explained(&moon_suite_lookup, "0.33", "{\"extra_config\":{\"enable_lookup\":false}}",
                          SUITE_PARTS("enable_lookup is false (LOOKUP-001)"));
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"kv_role\":\"kv_consumer\",\"extra_config\":{\"enable_lookup\":false}}",
                          SUITE_PARTS("only lends memory"));
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"groups\":[{\"kind\":\"sliding_window\",\"sliding_window\":1}]}",
                          SUITE_PARTS("there is no key to ask for"));
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"groups\":[{\"kind\":\"chunked_local\",\"attention_chunk_size\":32}],\"num_tokens\":20}",
                          SUITE_PARTS("chunks of attention 32", "HIT-015"));
    suite_check_explained(&moon_suite_lookup, "0.33",
                          "{\"groups\":[{\"kind\":\"chunked_local\",\"attention_chunk_size\":32,\"is_eagle\":true}]}",
                          SUITE_PARTS("alone: AssertionError", "raises AssertionError", "gets no answer"));
    suite_check_explained(&moon_suite_lookup, "0.33", "{\"prefix_match_unit\":8}",
                          SUITE_PARTS("raises ValueError: Invalid prefix_match_unit=8"));
}

static void a_set_of_keys_grows_and_keeps_numbers(void) {
    struct moon_arena arena;
    struct moon_key_set set;
    char key[32];
    moon_arena_open(&arena, moon_memory_heap());
    moon_key_set_open(&set, &arena);
    CU_ASSERT_PTR_NULL(moon_key_set_find(&set, moon_key_text("a")));
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key %d", i);
        MOON_CHECK_INT(moon_key_set_put(&set, moon_key_text(key), i), 0);
    }
    MOON_CHECK_INT(moon_key_set_put(&set, moon_key_text("key 7"), -7), 0);
    MOON_CHECK_INT(set.count, 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key %d", i);
        const int64_t *number = moon_key_set_find(&set, moon_key_text(key));
        CU_ASSERT_PTR_NOT_NULL_FATAL(number);
        MOON_CHECK_INT(*number, i == 7 ? -7 : i);
    }
    CU_ASSERT_PTR_NULL(moon_key_set_find(&set, moon_key_text("key 1000")));
    CU_ASSERT_PTR_NULL(moon_key_set_find(&set, moon_key_text("")));
    MOON_CHECK_INT(moon_key_set_put(&set, (struct moon_key_text){"\0x", 2}, 5), 0);
    MOON_CHECK_INT(*moon_key_set_find(&set, (struct moon_key_text){"\0x", 2}), 5);
    moon_arena_close(&arena);
}

static void drawn_cases_are_answered(void) {
    suite_check_drawn(&moon_suite_lookup, true);
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    static const char given[] =
        "{\"groups\":[{},{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"mla\"}]}],"
        "\"existing_keys\":[\"a\",\"b\"],\"exist_result_override\":{\"c\":1},\"num_tokens\":40}";
    suite_check_refused_memory(&moon_suite_lookup, given, 3);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"an empty case is one block that is not there", an_empty_case_is_one_block_that_is_not_there},
        {"options decide whether and how it is looked up", options_decide_whether_and_how_it_is_looked_up},
        {"options have the truth that Python gives them", options_have_the_truth_that_python_gives_them},
        {"groups of all kinds are read", groups_of_all_kinds_are_read},
        {"answers are those of the store", answers_are_those_of_the_store},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"what a release raises is the answer", what_a_release_raises_is_the_answer},
        {"explanations name what is missing and why", explanations_name_what_is_missing_and_why},
        {"a set of keys grows and keeps numbers", a_set_of_keys_grows_and_keeps_numbers},
        {"drawn cases are answered and explained", drawn_cases_are_answered},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("suite lookup", cases, argc, argv);
}
