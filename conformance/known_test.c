/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of known-failure files, and of how judging uses them. */
#include "conformance/known.h"

#include "conformance/io.h"
#include "conformance/judge.h"
#include "ref/base/unit.h"

#include <stdlib.h>
#include <unistd.h>

static char path[64];
static struct moon_arena arena;
static struct moon_known known;
static struct moon_error error;

static int load(const char *entries) {
    char text[2048];
    snprintf(text, sizeof text, "{\"schema\":\"mooncheck-known/1\",\"known\":[\n%s]}", entries);
    MOON_CHECK_INT(moon_io_write(path, text, strlen(text), &error), 0);
    error = (struct moon_error){0};
    return moon_known_load(&known, &arena, path, &error);
}

#define ENTRY(id, expires) "{\"id\":\"" id "\",\"reason\":\"r\",\"link\":\"l\",\"expires\":\"" expires "\"}"

static void an_entry_lists_ids_by_glob(void) {
    MOON_CHECK_INT(load(ENTRY("keys.pool.*", "2099-01-01")), 0);
    CU_ASSERT_PTR_NOT_NULL(moon_known_find(&known, "keys.pool.a.1", "vllm-0.33", "2026-11-29"));
    CU_ASSERT_PTR_NULL(moon_known_find(&known, "keys.chunk.a.1", "vllm-0.33", "2026-11-29"));
    CU_ASSERT_PTR_NULL(moon_known_find(NULL, "keys.pool.a.1", "vllm-0.33", "2026-11-29"));
}

static void an_entry_may_be_for_one_release(void) {
    MOON_CHECK_INT(
        load("{\"id\":\"*\",\"profile\":\"vllm-0.30\",\"reason\":\"r\",\"link\":\"l\",\"expires\":\"2099-01-01\"}"), 0);
    CU_ASSERT_PTR_NULL(moon_known_find(&known, "a.b.1", "vllm-0.33", "2026-11-29"));
    CU_ASSERT_PTR_NOT_NULL(moon_known_find(&known, "a.b.1", "vllm-0.30", "2026-11-29"));
}

static void an_entry_ends_after_its_day_and_is_then_at_fault(void) {
    const char *why = NULL;
    MOON_CHECK_INT(load(ENTRY("a.*", "2026-11-28")), 0);
    CU_ASSERT_PTR_NULL(moon_known_find(&known, "a.b.1", "p", "2026-11-29"));
    CU_ASSERT_PTR_NOT_NULL(moon_known_find(&known, "a.b.1", "p", "2026-11-28"));
    CU_ASSERT_PTR_NOT_NULL(moon_known_fault(&known, NULL, "2026-11-29", &arena, &why));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, ":2: the entry for a.* ended on 2026-11-28"));
}

static void an_entry_that_matches_nothing_is_at_fault(void) {
    const char *why = NULL;
    MOON_CHECK_INT(load(ENTRY("a.*", "2099-01-01") ",\n" ENTRY("b.*", "2099-01-01")), 0);
    moon_known_find(&known, "a.b.1", "p", "2026-11-29");
    const struct moon_known_entry *fault = moon_known_fault(&known, NULL, "2026-11-29", &arena, &why);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fault);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, ":3: the entry for b.* matches no case that was run"));
    CU_ASSERT_PTR_NULL(moon_known_fault(&known, fault, "2026-11-29", &arena, &why));
}

static void reason_link_and_day_are_compulsory(void) {
    MOON_CHECK_INT(load("{\"id\":\"a\",\"reason\":\"r\",\"link\":\"l\"}"), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "member \"expires\" is missing");
    MOON_CHECK_INT(load(ENTRY("a", "2026-13-01")), MOON_ERR_SCHEMA);
    MOON_CHECK_INT(load("{\"id\":\"a\",\"reason\":\"\",\"link\":\"l\",\"expires\":\"2026-12-01\"}"), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "must not be empty");
    MOON_CHECK_INT(load("{\"id\":\"a\",\"reason\":\"r\",\"link\":\"l\",\"expires\":\"2026-12-01\",\"who\":1}"),
                   MOON_ERR_SCHEMA);
}

/* ---- judging with a list */

static struct moon_result result;

/* Judges two cases on the reference: keys.a.a.1 is answered as expected, keys.a.b.1 is not. */
static void judge(const char *entries) {
    static const char text[] =
        "{\"schema\":\"mooncheck-vectors/1\",\"suite\":\"keys\",\"source\":[],\"cases\":["
        "{\"id\":\"keys.a.a.1\",\"profile\":\"vllm-0.33\",\"given\":GIVEN,\"expect\":{\"key\":\"m@tp_rank:0@pcp0@dcp0@"
        "pp_rank:0@group:0@ab\",\"prefix\":\"m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0\"}},"
        "{\"id\":\"keys.a.b.1\",\"profile\":\"vllm-0.33\",\"given\":GIVEN,\"expect\":{\"key\":\"wrong\",\"prefix\":\"m@"
        "tp_rank:0@pcp0@dcp0@pp_rank:0@group:0\"}}]}";
    static const char given[] =
        "{\"op\":\"pool_key\",\"metadata\":{\"model_name\":\"m\",\"tp_rank\":0,\"pcp_rank\":0,\"dcp_rank\":0,"
        "\"pp_rank\":0,\"group_id\":0,\"cache_prefix\":\"\",\"store_namespace\":\"\"},\"chunk_hash\":\"ab\"}";
    struct moon_vectors vectors;
    struct moon_target *target = NULL;
    struct moon_text whole;
    const struct moon_target_setting plain = {0};
    moon_text_open(&whole, moon_memory_heap());
    for (const char *c = text; *c; c++) {
        bool here = strncmp(c, "GIVEN", 5) == 0;
        if (here)
            moon_text_string(&whole, given);
        else
            moon_text_char(&whole, *c);
        c += here ? 4 : 0;
    }
    MOON_CHECK_INT(moon_io_write(path, moon_text_value(&whole), whole.length, &error), 0);
    moon_text_close(&whole);
    moon_vectors_open(&vectors, &arena);
    error = (struct moon_error){0};
    MOON_CHECK_INT(moon_vectors_load(&vectors, path, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(load(entries), 0);
    result = (struct moon_result){.arena = &arena};
    const struct moon_judge_setting setting = {.known = &known, .today = "2026-11-29", .spec = "ref"};
    MOON_CHECK_INT(moon_target_open(&target, "ref", &plain, &error), 0);
    MOON_CHECK_INT(moon_judge_vectors(target, &vectors, &setting, &result, &error), 0);
    moon_target_close(target);
}

static void a_listed_failure_is_expected(void) {
    judge(ENTRY("keys.a.b.*", "2099-01-01"));
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_PASS], 1);
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_XFAIL], 1);
    MOON_CHECK_TEXT(result.last->reason, "r (l, until 2099-01-01)");
    MOON_CHECK_INT(moon_result_exit(&result), 0);
}

static void a_listed_case_that_passes_is_an_error(void) {
    judge(ENTRY("keys.a.*", "2099-01-01"));
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_XPASS], 1);
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_XFAIL], 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(result.first->reason, "is listed as known to fail"));
    MOON_CHECK_INT(moon_result_exit(&result), 1);
}

static void a_stale_or_ended_entry_fails_the_run(void) {
    judge(ENTRY("keys.a.b.*", "2099-01-01") "," ENTRY("keys.zzz.*", "2099-01-01"));
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_ERROR], 1);
    MOON_CHECK_TEXT(result.last->suite, "known");
    judge(ENTRY("keys.a.b.*", "2020-01-01"));
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_FAIL], 1);
    MOON_CHECK_INT(result.counts[MOON_OUTCOME_ERROR], 1);
    MOON_CHECK_INT(moon_result_exit(&result), 1);
}

static void a_failure_is_told_in_five_lines(void) {
    judge("");
    const struct moon_result_case *one = result.last;
    MOON_CHECK_INT(one->outcome, MOON_OUTCOME_FAIL);
    CU_ASSERT(one->required[0] != '\0');
    CU_ASSERT_PTR_NOT_NULL(strstr(one->done, "asked keys as vllm-0.33: given {\"op\":\"pool_key\""));
    MOON_CHECK_TEXT(one->expected, "$.key: \"wrong\"");
    CU_ASSERT_PTR_NOT_NULL(strstr(one->seen, "$.key: \"m@tp_rank:0@"));
    CU_ASSERT_PTR_NOT_NULL(strstr(one->reproduce, "mooncheck vectors --only keys.a.b.1 "));
}

static const struct moon_unit_case cases[] = {
    {"an entry lists ids by glob", an_entry_lists_ids_by_glob},
    {"an entry may be for one release", an_entry_may_be_for_one_release},
    {"an entry ends after its day and is then at fault", an_entry_ends_after_its_day_and_is_then_at_fault},
    {"an entry that matches nothing is at fault", an_entry_that_matches_nothing_is_at_fault},
    {"reason, link and day are compulsory", reason_link_and_day_are_compulsory},
    {"a listed failure is expected", a_listed_failure_is_expected},
    {"a listed case that passes is an error", a_listed_case_that_passes_is_an_error},
    {"a stale or ended entry fails the run", a_stale_or_ended_entry_fails_the_run},
    {"a failure is told in five lines", a_failure_is_told_in_five_lines},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    snprintf(path, sizeof path, "/tmp/mooncheck-known-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("known", cases, argc, argv);
    moon_arena_close(&arena);
    unlink(path);
    return status;
}
