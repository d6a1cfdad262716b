/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite keys: answers, defaults, members that a release does not know, drawn cases, refused memory. */
#include "conformance/suites/suite.h"

#include "ref/base/unit.h"

static int answer(struct moon_arena *arena, const char *profile, const char *given, char out[1024],
                  struct moon_error *error) {
    struct moon_json *document = NULL, *result = NULL;
    struct moon_text text;
    MOON_CHECK_INT(moon_json_read(arena, "test", given, strlen(given), MOON_JSON_STRICT, &document, error), 0);
    int status =
        moon_suite_keys.answer(NULL, arena, moon_profile_find(profile, NULL), "test", document, &result, error);
    moon_text_open(&text, moon_memory_heap());
    if (status == 0)
        moon_json_write(result, MOON_JSON_COMPACT, &text);
    snprintf(out, 1024, "%s", moon_text_value(&text));
    moon_text_close(&text);
    return status;
}

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
        struct moon_error error = {0};
        char out[1024];
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(answer(&arena, rows[i].profile, rows[i].given, out, &error), 0);
        MOON_CHECK_TEXT(out, rows[i].expect);
        MOON_CHECK_TEXT(error.message, ""); /* untouched */
        moon_arena_close(&arena);
    }
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct {
        const char *profile, *given;
        int status;
        const char *where;
    } rows[] = {
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
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_arena arena;
        struct moon_error error = {0};
        char out[1024];
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(answer(&arena, rows[i].profile, rows[i].given, out, &error), rows[i].status);
        const char *place = strrchr(error.where, ' ');
        MOON_CHECK_TEXT(place ? place + 1 : "", rows[i].where);
        moon_arena_close(&arena);
    }
}

/* Draws for each release, and answers and explains what was drawn. */
static void drawn_cases_are_answered(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count * 60; i++) {
        const struct moon_profile *profile = &all[i % count];
        struct moon_arena arena;
        struct moon_random random;
        struct moon_json *given = NULL, *result = NULL;
        struct moon_text out;
        struct moon_error error = {0};
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_open(&out, moon_memory_heap());
        moon_random_seed(&random, i);
        MOON_CHECK_INT(moon_suite_keys.draw(&arena, &random, profile, &given), 0);
        MOON_CHECK_INT(moon_suite_keys.answer(NULL, &arena, profile, "drawn", given, &result, &error), 0);
        MOON_CHECK_INT(moon_suite_keys.explain(NULL, &arena, profile, "drawn", given, &out, &error), 0);
        MOON_CHECK_TEXT(error.message, "");
        CU_ASSERT(out.length > 0);
        moon_text_close(&out);
        moon_arena_close(&arena);
    }
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    static const char given[] = "{\"op\":\"chunk_keys\",\"block_hashes\":[\"00ff\"],\"chunk_mask\":[true]}";
    for (uint64_t at = 1;; at++) {
        struct moon_memory_failing failing;
        struct moon_arena input, arena;
        struct moon_json *document = NULL, *result = NULL, *drawn = NULL;
        struct moon_text out;
        struct moon_random random;
        struct moon_error error = {0};
        const struct moon_profile *profile = moon_profile_find("0.33", NULL);
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        moon_arena_open(&input, moon_memory_heap());
        moon_arena_open(&arena, &failing.memory);
        moon_text_open(&out, &failing.memory);
        moon_random_seed(&random, 1);
        MOON_CHECK_INT(moon_json_read(&input, "test", given, strlen(given), MOON_JSON_STRICT, &document, NULL), 0);
        int answered = moon_suite_keys.answer(NULL, &arena, profile, "test", document, &result, &error);
        int explained = moon_suite_keys.explain(NULL, &arena, profile, "test", document, &out, &error);
        int drew = moon_suite_keys.draw(&arena, &random, profile, &drawn);
        moon_text_close(&out);
        moon_arena_close(&arena);
        moon_arena_close(&input);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT(answered == 0 || answered == MOON_ERR_MEMORY);
        CU_ASSERT(explained == 0 || explained == MOON_ERR_MEMORY);
        CU_ASSERT(drew == 0 || drew == MOON_ERR_MEMORY);
        MOON_CHECK_INT(answered || explained || drew, failing.requests >= at);
        if (failing.requests < at)
            break;
    }
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
