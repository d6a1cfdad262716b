/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of judging by mode: a deviation is an alternative in compat, and a failure in strict. */
#include "conformance/deviations.h"
#include "conformance/io.h"
#include "conformance/judge.h"
#include "conformance/suites/world.h"

#include "ref/base/unit.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/mooncheck-judge-XXXXXX";
static struct moon_arena arena;
static struct moon_vectors vectors;
static struct moon_error error;

/* One recorded case: a request with a salt, whose extra keys 0.30 does not tag. Both answers of the reference. */
static struct moon_json *recorded, *right;

static void make_case(const char *profile_name) {
    static const char given[] = "{\"algo\":\"sha256\",\"python_hash_seed\":\"0\",\"cache_salt\":\"s\",\"block_size\":4,"
                                "\"prompt_token_ids\":[1,2,3,4]}";
    struct moon_vector *one = moon_arena_alloc(&arena, sizeof *one);
    struct moon_json *document = NULL;
    struct moon_profile strict;
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    MOON_CHECK_INT(moon_json_read(&arena, "g", given, sizeof given - 1, MOON_JSON_STRICT, &document, &error), 0);
    *one = (struct moon_vector){.id = "hash.salt.0001",
                                .kind = "hash.salt",
                                .comment = "",
                                .suite = &moon_suite_hash,
                                .profile = moon_profile_find(profile_name, &error),
                                .given = document,
                                .file = "v.json"};
    moon_profile_strict(one->profile, &strict);
    MOON_CHECK_INT(
        moon_suite_hash.answer(moon_suite_world_system(), &arena, one->profile, "g", document, &recorded, &error), 0);
    MOON_CHECK_INT(moon_suite_hash.answer(moon_suite_world_system(), &arena, &strict, "g", document, &right, &error),
                   0);
    one->expect = recorded;
    moon_vectors_open(&vectors, &arena);
    vectors.first = vectors.last = one;
    vectors.count = 1;
}

/* An adapter that has one answer to everything. */
static const char *adapter_that_answers(const struct moon_json *answer) {
    struct moon_text text;
    char path[128];
    snprintf(path, sizeof path, "%s/adapter.sh", folder);
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text,
                     "read -r line\n"
                     "echo '{\"ok\":{\"name\":\"x\",\"version\":\"\",\"homepage\":\"\",\"profiles\":[\"vllm-0.30\"],"
                     "\"suites\":[\"hash\"],\"store\":false}}'\n"
                     "while read -r line; do\n"
                     "case $line in *'\"stop\"'*) echo '{\"ok\":{}}'; exit ;; esac\n"
                     "seq=$(echo \"$line\" | sed 's/.*\"seq\":\\([0-9]*\\).*/\\1/')\n"
                     "echo '{\"seq\":'\"$seq\"',\"result\":");
    moon_json_write(answer, MOON_JSON_COMPACT, &text);
    moon_text_string(&text, "}'\ndone\n");
    MOON_CHECK_INT(moon_io_write(path, text.data, text.length, &error), 0);
    moon_text_close(&text);
    return moon_arena_format(&arena, "cmd:sh %s", path);
}

/* Judges the case and returns its result. */
static const struct moon_result_case *judge(const char *spec, bool strict) {
    static struct moon_result result;
    const struct moon_target_setting target_setting = {.strict = strict};
    const struct moon_judge_setting setting = {.today = "2026-11-29", .spec = spec, .strict = strict};
    struct moon_target *target = NULL;
    error = (struct moon_error){0};
    result = (struct moon_result){.arena = &arena};
    MOON_CHECK_INT(moon_target_open(&target, spec, &target_setting, &error), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(target);
    MOON_CHECK_INT(moon_judge_vectors(target, &vectors, &setting, &result, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    moon_target_close(target);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.first);
    return result.first;
}

static void check(const struct moon_result_case *one, enum moon_outcome outcome, size_t deviations) {
    MOON_CHECK_TEXT(moon_outcome_name(one->outcome), moon_outcome_name(outcome));
    MOON_CHECK_INT(one->deviation_count, deviations);
    if (one->deviation_count > 0)
        CU_ASSERT(strncmp(one->deviations[0], "connector.9.7 extra keys are untagged", 37) == 0);
    MOON_CHECK_INT(strcmp(one->level, "ALT") == 0, outcome == MOON_OUTCOME_PASS && deviations > 0);
}

static void compat_passes_as_the_release_does(void) {
    make_case("0.30");
    check(judge("ref", false), MOON_OUTCOME_PASS, 1);
    check(judge(adapter_that_answers(recorded), false), MOON_OUTCOME_PASS, 1);
}

static void compat_fails_what_is_right_and_says_what_the_release_does(void) {
    make_case("0.30");
    check(judge(adapter_that_answers(right), false), MOON_OUTCOME_FAIL, 1);
}

static void strict_fails_the_release_and_names_the_edge(void) {
    make_case("0.30");
    const struct moon_result_case *one = judge("ref", true);
    check(one, MOON_OUTCOME_FAIL, 1);
    MOON_CHECK_TEXT(one->required, "[DEV-101 ALT] The tagged tuples of 0.31, with the LoRA path.");
    MOON_CHECK_TEXT(one->reproduce, "mooncheck vectors --mode strict --only hash.salt.0001 v.json");
    check(judge(adapter_that_answers(recorded), true), MOON_OUTCOME_FAIL, 1);
}

static void strict_passes_another_implementation_that_is_right(void) {
    make_case("0.30");
    check(judge(adapter_that_answers(right), true), MOON_OUTCOME_PASS, 0);
}

static void a_case_without_deviation_is_the_same_in_both_modes(void) {
    make_case("0.31");
    check(judge("ref", false), MOON_OUTCOME_PASS, 0);
    check(judge("ref", true), MOON_OUTCOME_PASS, 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"compat passes what does as the release does, as an alternative", compat_passes_as_the_release_does},
        {"compat fails what is right, and says what the release does",
         compat_fails_what_is_right_and_says_what_the_release_does},
        {"strict fails the release and names the edge", strict_fails_the_release_and_names_the_edge},
        {"strict passes another implementation that is right", strict_passes_another_implementation_that_is_right},
        {"a case without deviation is the same in both modes", a_case_without_deviation_is_the_same_in_both_modes},
        {NULL, NULL}};
    if (!mkdtemp(folder))
        return 1;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("conformance/deviations, judged", cases, argc, argv);
    moon_arena_close(&arena);
    char path[128];
    snprintf(path, sizeof path, "%s/adapter.sh", folder);
    unlink(path);
    rmdir(folder);
    return status;
}
