/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of questions that are made from flags: their suites take them, and answer what a person would expect. */
#include "conformance/cli/plan_question.h"

#include "conformance/schema.h"
#include "conformance/suites/suite.h"

#include "ref/base/unit.h"

static struct moon_arena arena;

/* The answer of the suite to a question; its `given` fits the suite's schema. */
static const struct moon_json *answer(const char *profile_name, const struct moon_plan_question *question) {
    const struct moon_profile *profile = moon_profile_find(profile_name, NULL);
    const struct moon_suite *suite = moon_suite_find(question->ask);
    struct moon_json *given = NULL, *result = NULL;
    struct moon_schema schema;
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_plan_given(&arena, profile, question, &given, &error), 0);
    MOON_CHECK_INT(moon_schema_open(&schema, &arena, question->ask, &error), 0);
    MOON_CHECK_INT(moon_schema_check(&schema, "given", "given", given, &error), 0);
    MOON_CHECK_INT(suite->answer(NULL, &arena, profile, "given", given, &result, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    moon_schema_close(&schema);
    return result;
}

/* Number of keys that rank 0 puts in each step, as "0 2 1". */
static const char *put_counts(char out[256], const char *profile, const struct moon_plan_question *question) {
    size_t used = 0;
    out[0] = '\0';
    const struct moon_json *step = moon_json_member(answer(profile, question), "steps")->first;
    for (; step; step = step->next) {
        size_t keys = 0;
        const struct moon_json *list = moon_json_member(step->first, "puts");
        for (const struct moon_json *put = list ? list->first : NULL; put; put = put->next)
            keys += moon_json_member(put, "keys")->count;
        used += (size_t)snprintf(out + used, 256 - used, used ? " %zu" : "%zu", keys);
    }
    return out;
}

static int64_t number(const struct moon_json *result, const char *name) {
    return moon_json_member(result, name)->integer;
}

static void a_prompt_is_saved_in_the_steps_that_fill_blocks(void) {
    char out[256];
    struct moon_plan_question question = {.ask = "save", .prompt_tokens = 40};
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "2");
    question.step_tokens = 10;
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "0 1 0 1");
    question.step_tokens = 0;
    question.stored_tokens = 32;
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "0");
    question.stored_tokens = 20;
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "1");
}

static void a_consumer_fills_the_prompt_back_when_decoding_starts(void) {
    char out[256];
    const struct moon_plan_question question = {.ask = "save",
                                                .role = "kv_consumer",
                                                .save_decode = true,
                                                .delivered = true,
                                                .prompt_tokens = 40,
                                                .decode_tokens = 10};
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "0 2 0 0 0 0 0 0 1 0 0");
}

static void shards_and_their_list_reach_the_keys(void) {
    char out[256];
    struct moon_plan_question question = {
        .ask = "save", .tp = 2, .kv_heads = 8, .store_tp = "4", .prompt_tokens = 32, .prefix = "p", .model = "org/m"};
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "4");
    question.store_tp = NULL;
    question.lcm = "[4,2]";
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "4");
    question.stored_tokens = 32; /* every shard is there */
    MOON_CHECK_TEXT(put_counts(out, "0.33", &question), "0");
}

static void lookups_and_loads_find_what_is_stored(void) {
    struct moon_plan_question question = {.ask = "lookup", .tp = 2, .pp = 2, .prompt_tokens = 80, .stored_tokens = 64};
    MOON_CHECK_INT(number(answer("0.33", &question), "hit_tokens"), 64);
    MOON_CHECK_INT(number(answer("0.21", &question), "hit_tokens"), 64);
    question.local_tokens = 16;
    MOON_CHECK_INT(number(answer("0.33", &question), "new_matched_tokens"), 48);
    question.ask = "load";
    MOON_CHECK_INT(number(answer("0.33", &question), "new_matched_tokens"), 48);
    question.ask = "lookup";
    question.stored_tokens = 0;
    question.local_tokens = 0;
    MOON_CHECK_INT(number(answer("0.33", &question), "new_matched_tokens"), 0);
}

static void blocks_follow_the_block_size(void) {
    char out[256];
    const struct moon_plan_question question = {
        .ask = "save", .prompt_tokens = 200, .block_tokens = 64, .layout = "LBNHC"};
    MOON_CHECK_TEXT(put_counts(out, "0.30", &question), "3");
}

static void an_option_that_is_no_json_is_refused(void) {
    struct moon_json *given = NULL;
    struct moon_error error = {0};
    struct moon_plan_question question = {.ask = "save", .prompt_tokens = 40, .store_tp = "four"};
    MOON_CHECK_INT(moon_plan_given(&arena, moon_profile_newest(), &question, &given, &error), MOON_ERR_SYNTAX);
    CU_ASSERT(strncmp(error.where, "--store-tp-size:1:", 18) == 0);
    question.store_tp = NULL;
    question.lcm = "[4";
    MOON_CHECK_INT(moon_plan_given(&arena, moon_profile_newest(), &question, &given, &error), MOON_ERR_SYNTAX);
    CU_ASSERT(strncmp(error.where, "--prefill-tp-sizes:1:", 21) == 0);
}

static int make_given(struct moon_memory *memory, const void *question) {
    struct moon_arena small;
    struct moon_json *given = NULL;
    moon_arena_open(&small, memory);
    int status = moon_plan_given(&small, moon_profile_newest(), question, &given, NULL);
    moon_arena_close(&small);
    return status;
}

static void refused_memory_is_told(void) {
    const struct moon_plan_question question = {
        .ask = "save", .tp = 2, .prompt_tokens = 40, .decode_tokens = 3, .stored_tokens = 32};
    moon_unit_refuse_memory(make_given, &question);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a prompt is saved in the steps that fill blocks", a_prompt_is_saved_in_the_steps_that_fill_blocks},
        {"a consumer fills the prompt back when decoding starts",
         a_consumer_fills_the_prompt_back_when_decoding_starts},
        {"shards and their list reach the keys", shards_and_their_list_reach_the_keys},
        {"lookups and loads find what is stored", lookups_and_loads_find_what_is_stored},
        {"blocks follow the block size", blocks_follow_the_block_size},
        {"an option that is no JSON is refused", an_option_that_is_no_json_is_refused},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL}};
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("cli/plan_question", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
