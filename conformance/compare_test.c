/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of comparing answers: what counts, and how a difference is told. */
#include "conformance/compare.h"

#include "conformance/random_case.h"
#include "conformance/suites/world.h"
#include "ref/base/unit.h"

static struct moon_arena arena;
static struct moon_difference difference;

static struct moon_json *parse(const char *text) {
    struct moon_json *value = NULL;
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_json_read(&arena, "test", text, strlen(text), MOON_JSON_STRICT, &value, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    return value;
}

static int compare_as(const struct moon_suite *suite, const char *given, const char *expect, const char *answer) {
    difference = (struct moon_difference){"", "", ""};
    return moon_compare(&arena, suite, parse(given), parse(expect), parse(answer), &difference);
}

static int compare(const char *expect, const char *answer) {
    return compare_as(&moon_suite_keys, "{}", expect, answer);
}

static void equal_answers_are_equal_whatever_the_order_of_members(void) {
    MOON_CHECK_INT(compare("{\"key\":\"a@b\",\"prefix\":\"c\"}", "{\"prefix\":\"c\",\"key\":\"a@b\"}"), 0);
    MOON_CHECK_INT(compare("{\"chunks\":[]}", "{\"chunks\":[]}"), 0);
    MOON_CHECK_INT(compare("{\"chunks\":[[0,16,\"k\"],[16,32,\"l\"]]}", "{\"chunks\":[[0,16,\"k\"],[16,32,\"l\"]]}"),
                   0);
}

static void a_missing_and_a_surplus_member_differ(void) {
    MOON_CHECK_INT(compare("{\"key\":\"a\",\"prefix\":\"c\"}", "{\"key\":\"a\"}"), 1);
    MOON_CHECK_TEXT(difference.expected, "$.prefix: \"c\"");
    MOON_CHECK_TEXT(difference.seen, "$.prefix: nothing there");
    MOON_CHECK_TEXT(difference.hint, "this is missing");
    MOON_CHECK_INT(compare("{\"key\":\"a\"}", "{\"key\":\"a\",\"prefix\":\"c\"}"), 1);
    MOON_CHECK_TEXT(difference.hint, "this was not expected");
}

static void lists_differ_in_length_and_order(void) {
    MOON_CHECK_INT(compare("{\"chunks\":[[0,1,\"a\"]]}", "{\"chunks\":[]}"), 1);
    MOON_CHECK_TEXT(difference.expected, "$.chunks[0]: [0,1,\"a\"]");
    MOON_CHECK_INT(compare("{\"chunks\":[]}", "{\"chunks\":[[0,1,\"a\"]]}"), 1);
    MOON_CHECK_INT(compare("{\"chunks\":[[0,1,\"a\"],[1,2,\"b\"]]}", "{\"chunks\":[[1,2,\"b\"],[0,1,\"a\"]]}"), 1);
    MOON_CHECK_TEXT(difference.expected, "$.chunks[0][0]: 0");
    MOON_CHECK_TEXT(difference.seen, "$.chunks[0][0]: 1");
}

static void types_differ(void) {
    MOON_CHECK_INT(compare_as(&moon_suite_config, "{}", "{\"value\":1}", "{\"value\":true}"), 1);
    MOON_CHECK_INT(compare_as(&moon_suite_config, "{}", "{\"value\":1}", "{\"value\":1.0}"), 1);
    MOON_CHECK_INT(compare_as(&moon_suite_config, "{}", "{\"value\":null}", "{\"value\":0}"), 1);
    MOON_CHECK_INT(compare_as(&moon_suite_config, "{}", "{\"value\":{\"a\":[]}}", "{\"value\":{\"a\":{}}}"), 1);
}

static void an_optional_member_counts_only_when_both_have_it(void) {
    static const char without[] = "{\"random\":false,\"none_hash\":\"00\"}",
                      with[] = "{\"random\":false,\"none_hash\":\"00\",\"preimages\":[\"80\"]}",
                      other[] = "{\"random\":false,\"none_hash\":\"00\",\"preimages\":[\"81\"]}";
    MOON_CHECK_INT(compare_as(&moon_suite_hash, "{}", with, without), 0);
    MOON_CHECK_INT(compare_as(&moon_suite_hash, "{}", without, with), 0);
    MOON_CHECK_INT(compare_as(&moon_suite_hash, "{}", with, other), 1);
    MOON_CHECK_TEXT(difference.hint, "the bytes differ from offset 0 on (1 bytes expected, 1 seen)");
}

static void optional_names_mean_nothing_deeper_down(void) {
    MOON_CHECK_INT(compare_as(&moon_suite_hash, "{}", "{\"block_hashes_sampled\":{\"preimages\":\"00\"}}",
                              "{\"block_hashes_sampled\":{}}"),
                   1);
}

static void the_class_of_an_error_counts_always_and_its_message_sometimes(void) {
    MOON_CHECK_INT(compare("{\"error\":{\"class\":\"ValueError\",\"message\":\"x\"}}",
                           "{\"error\":{\"class\":\"ValueError\",\"message\":\"x\"}}"),
                   0);
    MOON_CHECK_INT(compare("{\"error\":{\"class\":\"ValueError\",\"message\":\"x\"}}",
                           "{\"error\":{\"class\":\"ValueError\",\"message\":\"y\"}}"),
                   1);
    MOON_CHECK_INT(
        compare("{\"error\":{\"class\":\"ValueError\",\"message\":\"x\"}}", "{\"error\":{\"class\":\"ValueError\"}}"),
        1);
    MOON_CHECK_INT(compare("{\"error\":{\"class\":\"JSONDecodeError\",\"message\":\"x\"}}",
                           "{\"error\":{\"class\":\"JSONDecodeError\",\"message\":\"y\"}}"),
                   0);
    MOON_CHECK_INT(compare("{\"error\":{\"class\":\"FileNotFoundError\",\"message\":\"x\"}}",
                           "{\"error\":{\"class\":\"FileNotFoundError\"}}"),
                   0);
    MOON_CHECK_INT(compare("{\"error\":{\"class\":\"FileNotFoundError\",\"message\":\"x\"}}",
                           "{\"error\":{\"class\":\"OSError\",\"message\":\"x\"}}"),
                   1);
}

static void an_error_on_one_side_is_shown(void) {
    MOON_CHECK_INT(compare("{\"key\":\"k\"}", "{\"error\":{\"class\":\"ValueError\",\"message\":\"x\"}}"), 1);
    MOON_CHECK_TEXT(difference.expected, "$.error: nothing there");
    MOON_CHECK_TEXT(difference.seen, "$.error: {\"class\":\"ValueError\",\"message\":\"x\"}");
    MOON_CHECK_INT(compare("{\"error\":{\"class\":\"ValueError\",\"message\":\"x\"}}", "{\"key\":\"k\"}"), 1);
    MOON_CHECK_TEXT(difference.seen, "$.error: nothing there");
}

static void errors_inside_lists_follow_the_same_rule(void) {
    static const char expect[] =
        "{\"registered_buffers\":[],\"results\":[{\"error\":{\"class\":\"IndexError\",\"message\":\"a\"}}]}";
    MOON_CHECK_INT(
        compare_as(
            &moon_suite_segments, "{}", expect,
            "{\"registered_buffers\":[],\"results\":[{\"error\":{\"class\":\"IndexError\",\"message\":\"b\"}}]}"),
        0);
    MOON_CHECK_INT(
        compare_as(&moon_suite_segments, "{}", expect,
                   "{\"registered_buffers\":[],\"results\":[{\"error\":{\"class\":\"KeyError\",\"message\":\"a\"}}]}"),
        1);
}

static void messages_of_the_interpreter_do_not_count(void) {
    CU_ASSERT(moon_compare_message_counts("ValueError", "Size cannot be empty."));
    CU_ASSERT(moon_compare_message_counts("TypeError", "tenant_id must be a string or null, got int: 5"));
    CU_ASSERT_FALSE(moon_compare_message_counts("ValueError", "invalid literal for int() with base 10: 'x'"));
    CU_ASSERT_FALSE(moon_compare_message_counts("AttributeError", "'list' object has no attribute 'get'"));
}

static void the_part_of_a_key_that_differs_is_named(void) {
    MOON_CHECK_INT(compare("{\"key\":\"m@tp_rank:0@pcp0@aa\"}", "{\"key\":\"m@tp_rank:1@pcp0@aa\"}"), 1);
    MOON_CHECK_TEXT(difference.hint, "part 2 of the key differs: \"tp_rank:0\" expected, \"tp_rank:1\" seen");
    MOON_CHECK_INT(compare("{\"key\":\"m@a\"}", "{\"key\":\"m@a@b\"}"), 1);
    MOON_CHECK_TEXT(difference.hint, "one key goes on after part 2, the other ends there");
}

static void the_block_that_differs_is_named(void) {
    static const char given[] = "{\"block_size\":16}";
    MOON_CHECK_INT(
        compare_as(&moon_suite_hash, given, "{\"block_hashes\":[\"00\",\"01\"]}", "{\"block_hashes\":[\"00\",\"02\"]}"),
        1);
    MOON_CHECK_TEXT(difference.hint, "block 1 (tokens 16 to 31) is the first that differs; all before it agree");
    MOON_CHECK_INT(compare_as(&moon_suite_hash, given, "{\"block_hashes\":[\"01\"]}", "{\"block_hashes\":[\"02\"]}"),
                   1);
    MOON_CHECK_TEXT(difference.hint, "the chain differs from its first block (tokens 0 to 15) on: look at NONE_HASH, "
                                     "the encoding and the extra keys");
    MOON_CHECK_INT(compare_as(&moon_suite_hash, given, "{\"block_hashes\":[\"01\"]}", "{\"block_hashes\":[\"0102\"]}"),
                   1);
    MOON_CHECK_TEXT(difference.hint, "block 0 (tokens 0 to 15): a hash of 1 bytes expected, 2 seen: another algorithm");
    MOON_CHECK_INT(compare_as(&moon_suite_hash, given, "{\"none_hash\":\"01\"}", "{\"none_hash\":\"02\"}"), 1);
    MOON_CHECK_TEXT(difference.hint, "NONE_HASH differs: look at how PYTHONHASHSEED is read, and at the algorithm");
}

static void long_values_are_shown_around_the_difference(void) {
    char expect[600], answer[600];
    snprintf(expect, sizeof expect, "{\"key\":\"%0250d\xc3\xa4Q%0200d\"}", 0, 0);
    snprintf(answer, sizeof answer, "{\"key\":\"%0250d\xc3\xa4R%0200d\"}", 0, 0);
    MOON_CHECK_INT(compare(expect, answer), 1);
    CU_ASSERT(strlen(difference.expected) < 200);
    CU_ASSERT_PTR_NOT_NULL(strstr(difference.expected, "\xc3\xa4Q"));
    CU_ASSERT_PTR_NOT_NULL(strstr(difference.seen, "\xc3\xa4R"));
}

static void memory_that_refuses_is_told(void) {
    const struct moon_json *expect = parse("{\"key\":\"m@tp_rank:0@pcp0@aa\"}"),
                           *answer = parse("{\"key\":\"m@tp_rank:1\"}"), *given = parse("{}");
    struct moon_arena outer = arena;
    struct moon_memory_failing failing;
    int status = MOON_ERR_MEMORY;
    for (uint64_t n = 1; status == MOON_ERR_MEMORY && n < 100; n++) {
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_arena_open(&arena, &failing.memory);
        status = moon_compare(&arena, &moon_suite_keys, given, expect, answer, &difference);
        moon_arena_close(&arena);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
    MOON_CHECK_INT(status, 1);
    arena = outer;
}

/* ---- random cases */

static const char random_given[] =
    "{\"algo\":\"sha256\",\"python_hash_seed\":null,\"block_size\":2,\"prompt_token_ids\":[1,2,3,4]}";

static struct moon_json *answer_random(void) {
    struct moon_json *answer = NULL;
    struct moon_error error = {0};
    const struct moon_profile *profile = moon_profile_find("vllm-0.28", &error);
    MOON_CHECK_INT(moon_suite_hash.answer(moon_suite_world_system(), &arena, profile, "given", parse(random_given),
                                          &answer, &error),
                   0);
    return answer;
}

static int compare_random(const struct moon_json *first, const struct moon_json *second, const char *expect) {
    struct moon_error error;
    difference = (struct moon_difference){"", "", ""};
    return moon_random_compare(&arena, &moon_suite_hash, moon_profile_find("vllm-0.28", &error), parse(random_given),
                               parse(expect), first, second, &difference);
}

static const char random_expect[] = "{\"random\":true,\"none_hash_len\":32,\"none_hash\":null,\"block_hashes\":null}";

static void two_processes_that_draw_are_right_when_they_differ(void) {
    MOON_CHECK_INT(compare_random(answer_random(), answer_random(), random_expect), 0);
    MOON_CHECK_TEXT(difference.expected, "");
}

static void two_processes_with_one_none_hash_are_wrong(void) {
    const struct moon_json *answer = answer_random();
    MOON_CHECK_INT(compare_random(answer, answer, random_expect), 1);
    MOON_CHECK_TEXT(difference.hint, "NONE_HASH must be drawn anew when an engine starts: here it is fixed");
}

static void a_random_none_hash_has_the_length_of_the_release(void) {
    MOON_CHECK_INT(compare_random(answer_random(), answer_random(),
                                  "{\"random\":true,\"none_hash_len\":16,\"none_hash\":null,\"block_hashes\":null}"),
                   1);
    MOON_CHECK_TEXT(difference.expected, "$.none_hash_len: 16");
}

static void a_random_none_hash_must_be_told(void) {
    const struct moon_json *silent =
        parse("{\"random\":true,\"none_hash_len\":32,\"none_hash\":null,\"block_hashes\":null}");
    MOON_CHECK_INT(compare_random(silent, answer_random(), random_expect), 1);
    MOON_CHECK_TEXT(difference.seen, "$.none_hash: null");
}

static void the_chain_must_follow_from_the_none_hash_that_was_drawn(void) {
    const struct moon_json *good = answer_random(), *other = answer_random();
    struct moon_json *mixed = moon_json_object(&arena);
    moon_json_set(&arena, mixed, "random", moon_json_bool(&arena, true));
    moon_json_set(&arena, mixed, "none_hash_len", moon_json_int(&arena, 32));
    moon_json_set(&arena, mixed, "none_hash", moon_json_clone(&arena, moon_json_member(good, "none_hash")));
    moon_json_set(&arena, mixed, "block_hashes", moon_json_clone(&arena, moon_json_member(other, "block_hashes")));
    MOON_CHECK_INT(compare_random(mixed, other, random_expect), 1);
    MOON_CHECK_TEXT(difference.hint, "the chain does not follow from the NONE_HASH that was answered");
    struct moon_json *short_one = moon_json_object(&arena);
    moon_json_set(&arena, short_one, "random", moon_json_bool(&arena, true));
    moon_json_set(&arena, short_one, "none_hash_len", moon_json_int(&arena, 32));
    moon_json_set(&arena, short_one, "none_hash", moon_json_clone(&arena, moon_json_member(good, "none_hash")));
    moon_json_set(&arena, short_one, "block_hashes", moon_json_array(&arena));
    MOON_CHECK_INT(compare_random(short_one, other, random_expect), 1);
    MOON_CHECK_TEXT(difference.expected, "$.block_hashes: 2 hashes");
}

static void an_answer_that_is_not_random_is_wrong(void) {
    MOON_CHECK_INT(
        compare_random(parse("{\"random\":false,\"none_hash_len\":32,\"none_hash\":\"00\",\"block_hashes\":[]}"),
                       answer_random(), random_expect),
        1);
    MOON_CHECK_TEXT(difference.expected, "$.random: true");
}

static const struct moon_unit_case cases[] = {
    {"equal answers are equal whatever the order of members", equal_answers_are_equal_whatever_the_order_of_members},
    {"a missing and a surplus member differ", a_missing_and_a_surplus_member_differ},
    {"lists differ in length and order", lists_differ_in_length_and_order},
    {"types differ", types_differ},
    {"an optional member counts only when both have it", an_optional_member_counts_only_when_both_have_it},
    {"optional names mean nothing deeper down", optional_names_mean_nothing_deeper_down},
    {"the class of an error counts always and its message sometimes",
     the_class_of_an_error_counts_always_and_its_message_sometimes},
    {"an error on one side is shown", an_error_on_one_side_is_shown},
    {"errors inside lists follow the same rule", errors_inside_lists_follow_the_same_rule},
    {"messages of the interpreter do not count", messages_of_the_interpreter_do_not_count},
    {"the part of a key that differs is named", the_part_of_a_key_that_differs_is_named},
    {"the block that differs is named", the_block_that_differs_is_named},
    {"long values are shown around the difference", long_values_are_shown_around_the_difference},
    {"memory that refuses is told", memory_that_refuses_is_told},
    {"two processes that draw are right when they differ", two_processes_that_draw_are_right_when_they_differ},
    {"two processes with one NONE_HASH are wrong", two_processes_with_one_none_hash_are_wrong},
    {"a random NONE_HASH has the length of the release", a_random_none_hash_has_the_length_of_the_release},
    {"a random NONE_HASH must be told", a_random_none_hash_must_be_told},
    {"the chain must follow from the NONE_HASH that was drawn",
     the_chain_must_follow_from_the_none_hash_that_was_drawn},
    {"an answer that is not random is wrong", an_answer_that_is_not_random_is_wrong},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("compare", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
