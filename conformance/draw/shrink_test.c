/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the shrinker and of drawn cases. */
#include "conformance/draw/shrink.h"

#include "conformance/draw/draw.h"
#include "ref/base/unit.h"

static struct moon_arena arena;

static struct moon_json *parse(const char *text) {
    struct moon_json *value = NULL;
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_json_read(&arena, "test", text, strlen(text), MOON_JSON_STRICT, &value, &error), 0);
    return value;
}

static const char *write(const struct moon_json *value) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    if (value)
        moon_json_write(value, MOON_JSON_COMPACT, &text);
    const char *copy = moon_arena_copy(&arena, moon_text_value(&text), text.length);
    moon_text_close(&text);
    return copy;
}

static unsigned asked;

/* Properties. */
static bool anything(void *context, const struct moon_json *value) {
    (void)context;
    (void)value;
    asked++;
    return true;
}
static bool nothing(void *context, const struct moon_json *value) {
    (void)context;
    (void)value;
    asked++;
    return false;
}
/* tokens holds a 7, and somewhere after it a number over 90. */
static bool seven_before_large(void *context, const struct moon_json *value) {
    const struct moon_json *tokens = moon_json_member(value, "tokens");
    bool seven = false, found = false;
    (void)context;
    asked++;
    for (const struct moon_json *one = tokens ? tokens->first : NULL; one; one = one->next) {
        found |= seven && one->integer > 90;
        seven |= one->integer == 7;
    }
    return found;
}
static bool text_has_umlaut(void *context, const struct moon_json *value) {
    const struct moon_json *text = moon_json_member(value, "text");
    (void)context;
    return moon_json_is(text, MOON_JSON_STRING) && strstr(text->bytes, "\xc3\xa4");
}
static bool deep_is_true(void *context, const struct moon_json *value) {
    const struct moon_json *deep =
        moon_json_member(moon_json_member(moon_json_at(moon_json_member(value, "a"), 0), "b"), "c");
    (void)context;
    return moon_json_is(deep, MOON_JSON_BOOL) && deep->boolean;
}

static void what_does_not_matter_goes_away(void) {
    const struct moon_json *value = parse("{\"a\":[1,2,{\"x\":true}],\"b\":\"text\",\"c\":-5}");
    MOON_CHECK_TEXT(write(moon_shrink(&arena, value, anything, NULL, 1000)), "{}");
}

static void what_cannot_shrink_stays(void) {
    const struct moon_json *value = parse("{\"a\":[1,2,{\"x\":true}],\"b\":\"text\",\"c\":-5,\"d\":1e3,\"e\":null}");
    MOON_CHECK_TEXT(write(moon_shrink(&arena, value, nothing, NULL, 1000)), write(value));
}

static void a_long_list_shrinks_to_the_elements_that_matter(void) {
    struct moon_json *value = moon_json_object(&arena), *tokens = moon_json_array(&arena);
    for (int i = 0; i < 500; i++)
        moon_json_push(tokens, moon_json_int(&arena, i == 123 ? 7 : i == 400 ? 1000 : 50));
    moon_json_set(&arena, value, "salt", moon_json_string(&arena, "unused"));
    moon_json_set(&arena, value, "tokens", tokens);
    asked = 0;
    MOON_CHECK_TEXT(write(moon_shrink(&arena, value, seven_before_large, NULL, 2000)), "{\"tokens\":[7,91]}");
    CU_ASSERT(asked < 500);
}

static void strings_shrink_by_whole_characters(void) {
    MOON_CHECK_TEXT(
        write(moon_shrink(&arena, parse("{\"text\":\"xx\xc3\xa4yy\xc3\xa4z\"}"), text_has_umlaut, NULL, 1000)),
        "{\"text\":\"xx\xc3\xa4\"}");
}

static void what_lies_deep_is_kept_with_its_way(void) {
    MOON_CHECK_TEXT(
        write(moon_shrink(&arena, parse("{\"z\":1,\"a\":[{\"q\":[1,[2,[3]]],\"b\":{\"y\":0,\"c\":true,\"x\":0}},5,6]}"),
                          deep_is_true, NULL, 1000)),
        "{\"a\":[{\"b\":{\"c\":true}}]}");
}

static void the_number_of_tries_is_a_limit(void) {
    asked = 0;
    moon_shrink(&arena, parse("{\"a\":[1,2,3,4,5,6,7,8]}"), nothing, NULL, 5);
    MOON_CHECK_INT(asked, 5);
}

static void memory_that_refuses_gives_null_and_nothing_leaks(void) {
    const struct moon_json *value = parse("{\"z\":1,\"a\":[{\"q\":[1,[2,[3]]],\"b\":{\"y\":0,\"c\":true}},5]}");
    struct moon_memory_failing failing;
    struct moon_json *small = NULL;
    for (uint64_t n = 1; !small && n < 2000; n++) {
        struct moon_arena inner;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_arena_open(&inner, &failing.memory);
        small = moon_shrink(&inner, value, deep_is_true, NULL, 1000);
        moon_arena_close(&inner);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
    CU_ASSERT_PTR_NOT_NULL(small);
}

/* ---- drawing */

static void a_seed_draws_the_same_cases_and_each_is_independent(void) {
    size_t count = 0;
    const struct moon_profile *profiles = moon_profiles(&count);
    for (size_t s = 0; moon_suites()[s]; s++) {
        for (size_t p = 0; p < count; p++) {
            struct moon_json *once = NULL, *again = NULL, *other = NULL, *seeded = NULL;
            MOON_CHECK_INT(moon_draw(&arena, moon_suites()[s], &profiles[p], 7, 3, &once), 0);
            MOON_CHECK_INT(moon_draw(&arena, moon_suites()[s], &profiles[p], 7, 4, &other), 0);
            MOON_CHECK_INT(moon_draw(&arena, moon_suites()[s], &profiles[p], 7, 3, &again), 0);
            MOON_CHECK_INT(moon_draw(&arena, moon_suites()[s], &profiles[p], 8, 3, &seeded), 0);
            CU_ASSERT(moon_json_equal(once, again));
            CU_ASSERT_FALSE(moon_json_equal(once, other) && moon_json_equal(once, seeded));
        }
    }
}

static void a_kept_case_has_the_form_of_a_vector(void) {
    struct moon_error error;
    const struct moon_profile *profile = moon_profile_find("vllm-0.30", &error);
    struct moon_json *file = moon_draw_file(&arena, &moon_suite_keys, "vllm", "0.30.0");
    const char *id = moon_draw_id(&arena, &moon_suite_keys, profile, 7, 12);
    moon_draw_keep(&arena, file, id, profile, parse("{\"op\":\"pool_key\"}"), parse("{\"key\":\"k\"}"), "c");
    MOON_CHECK_TEXT(
        write(file),
        "{\"schema\":\"mooncheck-vectors/1\",\"suite\":\"keys\",\"source\":[{\"package\":\"vllm\",\"version\":"
        "\"0.30.0\"}],\"cases\":[{\"id\":\"keys.drawn.v30s7.0012\",\"profile\":\"vllm-0.30\",\"given\":{\"op\":"
        "\"pool_key\"},\"expect\":{\"key\":\"k\"},\"comment\":\"c\"}]}");
    MOON_CHECK_TEXT(moon_draw_kind(&arena, &moon_suite_keys, profile, 7), "keys.drawn.v30s7");
}

static const struct moon_unit_case cases[] = {
    {"what does not matter goes away", what_does_not_matter_goes_away},
    {"what cannot shrink stays", what_cannot_shrink_stays},
    {"a long list shrinks to the elements that matter", a_long_list_shrinks_to_the_elements_that_matter},
    {"strings shrink by whole characters", strings_shrink_by_whole_characters},
    {"what lies deep is kept with its way", what_lies_deep_is_kept_with_its_way},
    {"the number of tries is a limit", the_number_of_tries_is_a_limit},
    {"memory that refuses gives NULL and nothing leaks", memory_that_refuses_gives_null_and_nothing_leaks},
    {"a seed draws the same cases and each is independent", a_seed_draws_the_same_cases_and_each_is_independent},
    {"a kept case has the form of a vector", a_kept_case_has_the_form_of_a_vector},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("shrink", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
