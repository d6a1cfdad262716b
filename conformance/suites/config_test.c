/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite config: its operations, what it refuses, what it explains, and the cases that it draws. */
#include "conformance/suites/config.h"

#include "conformance/suites/suite_check.h"

static struct moon_arena arena;
static struct moon_error error;

static struct moon_json *parse(const char *json) {
    struct moon_json *value = NULL;
    MOON_CHECK_INT(moon_json_read(&arena, "test", json, strlen(json), MOON_JSON_STRICT, &value, NULL), MOON_OK);
    return value;
}

/* The answer of a release as compact JSON, or "status N: where". */
static const char *answer(const char *release, const char *given) {
    static char line[2048];
    struct moon_json *result = NULL;
    struct moon_text text;
    moon_arena_open(&arena, moon_memory_heap());
    error = (struct moon_error){0};
    int status = moon_suite_config.answer(NULL, &arena, moon_profile_find(release, NULL), "given", parse(given),
                                          &result, &error);
    moon_text_open(&text, moon_memory_heap());
    if (status)
        moon_text_format(&text, "status %d: %s", status, error.where);
    else
        moon_json_write(result, MOON_JSON_COMPACT, &text);
    snprintf(line, sizeof line, "%s", moon_text_value(&text));
    moon_text_close(&text);
    moon_arena_close(&arena);
    return line;
}

static void a_configuration_is_loaded_from_json_or_text(void) {
    static const char loaded[] =
        "{\"value\":{\"metadata_server\":\"\",\"master_server_address\":\"\",\"protocol\":\"tcp\","
        "\"device_name\":\"\",\"global_segment_size\":4294967296,\"local_buffer_size\":4294967296}}";
    MOON_CHECK_TEXT(answer("vllm-0.21", "{\"op\":\"store_config\",\"file_json\":{\"protocol\":\"tcp\"}}"), loaded);
    MOON_CHECK_TEXT(answer("vllm-0.21", "{\"op\":\"store_config\",\"file_text\":\"{\\\"protocol\\\":\\\"tcp\\\"}\"}"),
                    loaded);
}

static void failures_of_the_release_are_answers(void) {
    MOON_CHECK_TEXT(
        answer("vllm-0.33", "{\"op\":\"store_config\",\"file_json\":{\"tenant_id\":5}}"),
        "{\"error\":{\"class\":\"TypeError\",\"message\":\"tenant_id must be a string or null, got int: 5\"}}");
    MOON_CHECK_TEXT(
        answer("vllm-0.33", "{\"op\":\"store_config\",\"file_json\":{},\"env_set\":false}"),
        "{\"error\":{\"class\":\"ValueError\",\"message\":\"The environment variable 'MOONCAKE_CONFIG_PATH' is not "
        "set.\"}}");
    MOON_CHECK_TEXT(
        answer("vllm-0.33", "{\"op\":\"store_config\",\"file_json\":{},\"file_missing\":true}"),
        "{\"error\":{\"class\":\"FileNotFoundError\",\"message\":\"[Errno 2] No such file or directory: '<file>'\"}}");
    MOON_CHECK_TEXT(
        answer("vllm-0.33", "{\"op\":\"store_config\",\"file_json\":{},\"env_value\":\"x\"}"),
        "{\"error\":{\"class\":\"FileNotFoundError\",\"message\":\"[Errno 2] No such file or directory: 'x'\"}}");
    MOON_CHECK_TEXT(
        answer("vllm-0.33", "{\"op\":\"preferred_segment\",\"extra_config\":{\"preferred_segment\":0}}"),
        "{\"error\":{\"class\":\"ValueError\",\"message\":\"Mooncake preferred_segment override must be a non-empty "
        "string\"}}");
}

static void environment_values_are_read(void) {
    MOON_CHECK_TEXT(
        answer("vllm-0.33", "{\"op\":\"preferred_segment\",\"env\":{\"MOONCAKE_PREFERRED_SEGMENT\":\" h:1 \"}}"),
        "{\"value\":\"h:1\"}");
    MOON_CHECK_TEXT(answer("vllm-0.33", "{\"op\":\"preferred_segment\"}"), "{\"value\":null}");
    MOON_CHECK_TEXT(answer("vllm-0.33", "{\"op\":\"requester_hostname\",\"local_ip\":\"1.2.3.4\"}"),
                    "{\"value\":\"1.2.3.4\"}");
}

static void a_given_that_is_malformed_has_a_place(void) {
    static const char *const cases[][2] = {
        {"{}", "given:1:1 $"},
        {"{\"op\":\"x\"}", "given:1:7 $.op"},
        {"{\"op\":\"store_config\"}", "given:1:1 $"},
        {"{\"op\":\"store_config\",\"file_json\":{},\"file_text\":\"\"}", "given:1:1 $"},
        {"{\"op\":\"store_config\",\"file_json\":{},\"env\":{}}", "given:1:43 $.env"},
        {"{\"op\":\"store_config\",\"file_json\":{},\"env_set\":1}", "given:1:47 $.env_set"},
        {"{\"op\":\"store_config\",\"file_json\":{},\"env_value\":1}", "given:1:49 $.env_value"},
        {"{\"op\":\"store_config\",\"file_text\":1}", "given:1:34 $.file_text"},
        {"{\"op\":\"store_config\",\"file_json\":{},\"file_missing\":1}", "given:1:52 $.file_missing"},
        {"{\"op\":\"preferred_segment\",\"env\":{\"a\":1}}", "given:1:38 $.env.a"},
        {"{\"op\":\"preferred_segment\",\"env\":{\"a\":\"\\u0000\"}}", "given:1:38 $.env.a"},
        {"{\"op\":\"preferred_segment\",\"x\":1}", "given:1:31 $.x"},
        {"{\"op\":\"requester_hostname\",\"x\":1}", "given:1:32 $.x"},
        {"{\"op\":\"requester_hostname\"}", "given:1:1 $"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        answer("vllm-0.33", cases[i][0]);
        MOON_CHECK_INT(error.status, MOON_ERR_SCHEMA);
        MOON_CHECK_TEXT(error.where, cases[i][1]);
    }
}

static void operations_that_came_later_are_not_supported(void) {
    answer("vllm-0.21", "{\"op\":\"preferred_segment\"}");
    MOON_CHECK_INT(error.status, MOON_ERR_UNSUPPORTED);
    answer("vllm-0.21", "{\"op\":\"requester_hostname\",\"local_ip\":\"a\"}");
    MOON_CHECK_INT(error.status, MOON_ERR_UNSUPPORTED);
}

static void explain_names_the_rule_of_each_field(void) {
    static const char *const cases[][2] = {
        {"{\"op\":\"store_config\",\"file_json\":{\"global_segment_size\":\"1GB\",\"x\":1}}",
         "global_segment_size    1073741824   from '1GB'   (CONFIG-010"},
        {"{\"op\":\"store_config\",\"file_text\":\"{\\\"x\\\":1}\"}", "x                      ignored   (CONFIG-008"},
        {"{\"op\":\"store_config\",\"file_json\":{\"protocol\":\"tcp\"}}", "(CONFIG-009: passed through as it is)"},
        {"{\"op\":\"store_config\",\"file_json\":{\"mode\":\"x\"}}",
         "raises ValueError: unknown Mooncake mode: 'x'\nabout mode"},
        {"{\"op\":\"store_config\",\"file_json\":[]}",
         "raises AttributeError: 'list' object has no attribute 'get'\n   (CONFIG-020"},
        {"{\"op\":\"preferred_segment\"}", "None   (CONFIG-021"},
        {"{\"op\":\"requester_hostname\",\"local_ip\":\"a\"}", "'a'   (CONFIG-022"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        suite_check_explained(&moon_suite_config, "vllm-0.33", cases[i][0], SUITE_PARTS(cases[i][1]));
}

static void drawn_cases_are_answered_by_every_release(void) {
    size_t count = 0, refused = 0, total = 0;
    const struct moon_profile *profiles = moon_profiles(&count);
    struct moon_random random;
    moon_random_seed(&random, 7);
    for (size_t i = 0; i < count * 100; i++) {
        struct moon_json *given = NULL, *result = NULL;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(moon_suite_config.draw(&arena, &random, &profiles[i % count], &given), MOON_OK);
        MOON_CHECK_INT(moon_suite_config.answer(NULL, &arena, &profiles[i % count], "drawn", given, &result, &error),
                       MOON_OK);
        refused += moon_json_member(result, "error") != NULL;
        total++;
        moon_arena_close(&arena);
    }
    CU_ASSERT(refused > total / 5 && refused < total * 4 / 5); /* both kinds of answers are common */
}

static void equal_seeds_draw_equal_cases(void) {
    struct moon_json *given[2] = {NULL, NULL};
    moon_arena_open(&arena, moon_memory_heap());
    for (size_t i = 0; i < 2; i++) {
        struct moon_random random;
        moon_random_seed(&random, 11);
        moon_suite_config.draw(&arena, &random, moon_profile_find("vllm-0.33", NULL), &given[i]);
    }
    CU_ASSERT_TRUE(moon_json_equal(given[0], given[1]));
    moon_arena_close(&arena);
}

/* Draws, answers and explains with memory that refuses its n-th request after `used` bytes of the arena were taken.
 * Returns false when it never refused. */
static bool run_failing(uint64_t seed, uint64_t n, size_t used) {
    struct moon_memory_failing failing;
    struct moon_json *given = NULL, *result = NULL;
    struct moon_random random;
    struct moon_text text;
    const struct moon_profile *profile = moon_profile_find("vllm-0.33", NULL);
    moon_random_seed(&random, seed);
    moon_memory_failing_init(&failing, moon_memory_heap(), 0);
    moon_arena_open(&arena, &failing.memory);
    moon_text_open(&text, &failing.memory);
    for (size_t taken = 0; taken < used; taken += 16)
        moon_arena_alloc(&arena, 16);
    failing.fail_at = failing.requests + n;
    int status = moon_suite_config.draw(&arena, &random, profile, &given);
    if (!status)
        status = moon_suite_config.answer(NULL, &arena, profile, "drawn", given, &result, &error);
    if (!status)
        status = moon_suite_config.explain(NULL, &arena, profile, "drawn", given, &text, &error);
    bool refused = failing.requests >= failing.fail_at;
    moon_text_close(&text);
    moon_arena_close(&arena);
    MOON_CHECK_INT(status, refused ? MOON_ERR_MEMORY : MOON_OK);
    MOON_CHECK_INT(failing.held_bytes, 0);
    return refused;
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void) {
    for (uint64_t seed = 0; seed < 12; seed++)
        for (size_t used = 0; used < 4096; used += 256)
            for (uint64_t n = 1; run_failing(seed, n, used); n++)
                continue;
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a configuration is loaded from JSON or text", a_configuration_is_loaded_from_json_or_text},
        {"failures of the release are answers", failures_of_the_release_are_answers},
        {"environment values are read", environment_values_are_read},
        {"a given that is malformed has a place", a_given_that_is_malformed_has_a_place},
        {"operations that came later are not supported", operations_that_came_later_are_not_supported},
        {"explain names the rule of each field", explain_names_the_rule_of_each_field},
        {"drawn cases are answered by every release", drawn_cases_are_answered_by_every_release},
        {"equal seeds draw equal cases", equal_seeds_draw_equal_cases},
        {"every refused allocation is reported and nothing leaks",
         every_refused_allocation_is_reported_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("conformance/suites/config", cases, argc, argv);
}
