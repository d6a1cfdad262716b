/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite keys: answers, defaults, members that a release does not know, drawn cases, refused memory. */
#include "conformance/suites/suite_check.h"

static void answers_are_those_of_the_release(void) {
    static const struct {
        const char *profile, *given, *expect;
    } rows[] = {
        {"0.33", "{\"chunk_hash\":\"ab\"}",
         "{\"key\":\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@ab\",\"prefix\":\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@"
         "group:0\"}"},
        {"0.21", "{\"chunk_hash\":\"ab\",\"metadata\":{\"tp_rank\":3}}",
         "{\"key\":\"model@tp_rank:3@pcp0@dcp0@pp_rank:0@ab\"}"},
        {"0.25", "{\"chunk_hash\":\"\",\"override_ranks\":{\"pp_rank\":2},\"metadata\":{\"cache_prefix\":\"p\"}}",
         "{\"key\":\"p@model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@\",\"prefix\":\"p@model@tp_rank:0@pcp0@dcp0@pp_rank:"
         "2@group:0\"}"},
        {"0.28", "{\"op\":\"mooncake_group_id\",\"chunk_hash\":\"ab\"}",
         "{\"group_id\":\"vllm-mooncake-store:model@ab\"}"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"00ff\"]}",
         "{\"chunks\":[[0,16,\"model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00ff\"]]}"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"00ff\"],\"chunk_mask\":[false]}", "{\"chunks\":[]}"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"00ff\"],\"token_len\":17}",
         "{\"error\":{\"class\":\"AssertionError\",\"message\":\"\"}}"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[],\"block_size\":24,\"hash_block_size\":16}",
         "{\"error\":{\"class\":\"ValueError\",\"message\":\"block_size (24) must be a multiple of hash_block_size "
         "(16)\"}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_arena arena;
        struct moon_json *result = NULL;
        struct moon_text out;
        struct moon_error error = {0};
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_open(&out, moon_memory_heap());
        MOON_CHECK_INT(suite_ask(&moon_suite_keys, &arena, rows[i].profile, rows[i].given, &result, &error), 0);
        if (result)
            moon_json_write(result, MOON_JSON_COMPACT, &out);
        MOON_CHECK_TEXT(moon_text_value(&out), rows[i].expect);
        MOON_CHECK_TEXT(error.message, ""); /* untouched */
        moon_text_close(&out);
        moon_arena_close(&arena);
    }
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct suite_bad_case rows[] = {
        {"0.33", "{}", MOON_ERR_SCHEMA, "$"},
        {"0.33", "[]", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{\"op\":\"x\"}", MOON_ERR_SCHEMA, "$.op"},
        {"0.33", "{\"op\":1}", MOON_ERR_SCHEMA, "$.op"},
        {"0.21", "{\"chunk_hash\":\"a\",\"metadata\":{\"group_id\":0}}", MOON_ERR_SCHEMA, "$.metadata.group_id"},
        {"0.23", "{\"chunk_hash\":\"a\",\"metadata\":{\"cache_prefix\":\"\"}}", MOON_ERR_SCHEMA,
         "$.metadata.cache_prefix"},
        {"0.29", "{\"chunk_hash\":\"a\",\"metadata\":{\"store_namespace\":\"\"}}", MOON_ERR_SCHEMA,
         "$.metadata.store_namespace"},
        {"0.24", "{\"chunk_hash\":\"a\",\"override_ranks\":{}}", MOON_ERR_SCHEMA, "$.override_ranks"},
        {"0.33", "{\"chunk_hash\":\"a\",\"override_ranks\":{\"group_id\":1}}", MOON_ERR_SCHEMA,
         "$.override_ranks.group_id"},
        {"0.33", "{\"chunk_hash\":\"a\",\"metadata\":{\"tp_rank\":-1}}", MOON_ERR_RANGE, "$.metadata.tp_rank"},
        {"0.33", "{\"chunk_hash\":\"a\",\"metadata\":{\"tp_rank\":9007199254740993}}", MOON_ERR_RANGE,
         "$.metadata.tp_rank"},
        {"0.27", "{\"op\":\"mooncake_group_id\",\"chunk_hash\":\"a\"}", MOON_ERR_UNSUPPORTED, "$"},
        {"0.33", "{\"op\":\"chunk_keys\"}", MOON_ERR_SCHEMA, "$"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"00\",\"0000\"]}", MOON_ERR_SCHEMA, "$.block_hashes[1]"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"0g\"]}", MOON_ERR_SCHEMA, "$.block_hashes[0]"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"\"]}", MOON_ERR_SCHEMA, "$.block_hashes[0]"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[\"000\"]}", MOON_ERR_SCHEMA, "$.block_hashes[0]"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[1]}", MOON_ERR_SCHEMA, "$.block_hashes[0]"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[],\"chunk_mask\":1}", MOON_ERR_SCHEMA, "$.chunk_mask"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[],\"chunk_mask\":[0]}", MOON_ERR_SCHEMA, "$.chunk_mask[0]"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[],\"block_size\":0}", MOON_ERR_RANGE, "$.block_size"},
        {"0.33", "{\"op\":\"chunk_keys\",\"block_hashes\":[],\"put_step\":0}", MOON_ERR_RANGE, "$.put_step"},
        {"0.24", "{\"op\":\"chunk_keys\",\"block_hashes\":[],\"put_step\":1}", MOON_ERR_SCHEMA, "$.put_step"},
    };
    suite_check_bad_cases(&moon_suite_keys, rows, sizeof rows / sizeof rows[0]);
}

static void drawn_cases_are_answered(void) {
    suite_check_drawn(&moon_suite_keys, true);
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    static const char given[] = "{\"op\":\"chunk_keys\",\"block_hashes\":[\"00ff\"],\"chunk_mask\":[true]}";
    suite_check_refused_memory(&moon_suite_keys, given, 1);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"answers are those of the release", answers_are_those_of_the_release},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"drawn cases are answered and explained", drawn_cases_are_answered},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("suite keys", cases, argc, argv);
}
