/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of differential runs: a target that differs in one way, and the vector that is kept of it. */
#include "conformance/drawn.h"

#include "conformance/io.h"
#include "conformance/vectors.h"
#include "ref/base/unit.h"

#include <stdlib.h>

static char folder[64];
static struct moon_arena arena;
static struct moon_result result;
static struct moon_error error;

/* A target that answers the same whatever it is asked: right for some drawn cases of config, wrong for most. */
static const char script[] =
    "cmd:while read -r line; do case $line in "
    "*'\"do\":\"start\"'*) echo "
    "'{\"ok\":{\"name\":\"stub\",\"version\":\"3\",\"homepage\":\"\",\"profiles\":[\"vllm-0.33\"],"
    "\"suites\":[\"config\"],\"store\":false}}';; "
    "*'\"do\":\"stop\"'*) echo '{\"ok\":{}}'; exit;; "
    "*) seq=${line#*'\"seq\":'}; seq=${seq%%,*}; echo '{\"seq\":'$seq',\"result\":{\"value\":null}}';; esac; done";

static void run(uint64_t count, const char *only) {
    const struct moon_target_setting plain = {0};
    struct moon_target *target = NULL;
    static const char *const suites[] = {"config"};
    result = (struct moon_result){.arena = &arena};
    error = (struct moon_error){0};
    const struct moon_drawn_setting setting = {.count = count,
                                               .seed = 5,
                                               .profile = moon_profile_find("vllm-0.33", &error),
                                               .suites = suites,
                                               .suite_count = 1,
                                               .only = only,
                                               .folder = folder,
                                               .spec = script};
    MOON_CHECK_INT(moon_target_open(&target, script, &plain, &error), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(target);
    MOON_CHECK_INT(moon_drawn_judge(target, &setting, &result, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    moon_target_close(target);
}

static void differences_are_found_shrunk_and_kept_as_vectors(void) {
    struct moon_vectors vectors;
    run(12, NULL);
    CU_ASSERT(result.counts[MOON_OUTCOME_FAIL] > 3);
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_FAIL] + result.counts[MOON_OUTCOME_PASS], 12);
    moon_vectors_open(&vectors, &arena);
    MOON_CHECK_INT(moon_vectors_load(&vectors, folder, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(vectors.count, result.counts[MOON_OUTCOME_FAIL]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(vectors.first);
    CU_ASSERT(strncmp(vectors.first->id, "config.drawn.v33s5.", 19) == 0);
    CU_ASSERT_PTR_NOT_NULL(moon_json_member(vectors.first->expect, "value"));
    CU_ASSERT(vectors.first->given->count <= 2);
}

static void a_failure_tells_how_to_draw_it_again(void) {
    run(12, NULL);
    const struct moon_result_case *one = result.first;
    while (one && one->outcome != MOON_OUTCOME_FAIL)
        one = one->next;
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(one->reproduce, "--draw 12 --seed 5 --suite config --profile vllm-0.33 --only config.drawn.v33s5."));
    const char *id = one->id;
    run(12, id);
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_FAIL], 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(result.first);
    MOON_CHECK_TEXT(result.first->id, id);
    CU_ASSERT_PTR_NULL(result.first->next);
}

static void a_suite_that_is_not_offered_is_skipped(void) {
    const struct moon_target_setting plain = {0};
    struct moon_target *target = NULL;
    result = (struct moon_result){.arena = &arena};
    const struct moon_drawn_setting setting = {
        .count = 2, .seed = 5, .profile = moon_profile_find("vllm-0.30", &error), .folder = folder, .spec = script};
    MOON_CHECK_INT(moon_target_open(&target, script, &plain, &error), 0);
    MOON_CHECK_INT(moon_drawn_judge(target, &setting, &result, &error), 0);
    moon_target_close(target);
    size_t suites = 0;
    while (moon_suites()[suites])
        suites++;
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_SKIP], suites);
}

static const struct moon_unit_case cases[] = {
    {"differences are found, shrunk and kept as vectors", differences_are_found_shrunk_and_kept_as_vectors},
    {"a failure tells how to draw it again", a_failure_tells_how_to_draw_it_again},
    {"a suite that is not offered is skipped", a_suite_that_is_not_offered_is_skipped},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    snprintf(folder, sizeof folder, "/tmp/mooncheck-drawn-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("drawn", cases, argc, argv);
    moon_arena_close(&arena);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? status : 1;
}
