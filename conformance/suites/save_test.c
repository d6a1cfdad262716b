/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite save: reading, answers by release, explanations, and memory that is refused. */
#include "conformance/suites/save.h"
#include "conformance/suites/save_run.h"
#include "conformance/suites/suite_check.h"

#define PROMPT "'requests':{'r':{'prompt_len':40}},"
#define FIRST  "{'new':[{'req':'r','num_scheduled':40,'block_ids':[[1,2,3]]}],'output_tokens':{'r':1}}"

/* JSON with ' for ". */
static const char *json(const char *text) {
    static char buffers[4][4096];
    static int turn;
    char *out = buffers[turn++ % 4];
    size_t i = 0;
    for (; i < sizeof buffers[0] - 1 && text[i]; i++)
        out[i] = text[i] == '\'' ? '"' : text[i];
    out[i] = '\0';
    return out;
}

/* The answer to a case, written compactly with ' for ". */
static const char *answer(const char *profile, const char *given) {
    static char out[8192];
    struct moon_arena arena;
    struct moon_text text;
    struct moon_json *result = NULL;
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_INT(suite_ask(&moon_suite_save, &arena, profile, json(given), &result, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    if (result)
        moon_json_write(result, MOON_JSON_COMPACT, &text);
    snprintf(out, sizeof out, "%s", moon_text_value(&text));
    for (char *at = out; *at; at++)
        if (*at == '"')
            *at = '\'';
    moon_text_close(&text);
    moon_arena_close(&arena);
    return out;
}

static const char *explain(const char *profile, const char *given) {
    static char out[16384];
    struct moon_arena arena;
    struct moon_text text;
    struct moon_json *document = NULL;
    struct moon_error error = {0};
    const char *input = json(given);
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "test", input, strlen(input), MOON_JSON_STRICT, &document, &error), 0);
    MOON_CHECK_INT(
        moon_suite_save.explain(NULL, &arena, moon_profile_find(profile, NULL), "test", document, &text, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    snprintf(out, sizeof out, "%s", moon_text_value(&text));
    moon_text_close(&text);
    moon_arena_close(&arena);
    return out;
}

static void check_has(const char *text, const char *part) {
    bool found = strstr(text, part) != NULL;
    if (!found)
        fprintf(stderr, "\"%s\" is not in\n%s\n", part, text);
    CU_ASSERT(found);
}

static void a_prompt_is_put_block_by_block(void) {
    MOON_CHECK_TEXT(
        answer("0.33", "{" PROMPT "'steps':[" FIRST "]}"),
        "{'scheduler_block_size':16,'hash_block_size':16,'steps':[[{'rank':0,'exist_check_sizes':[2],'puts':[{'keys':["
        "'model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000001',"
        "'model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000002'],"
        "'source_blocks':[1,2],'results':[0,0]}]}]],'unreleased_store_jobs':0,'stored_keys_total':2}");
}

static void nothing_asked_for_is_nothing_done(void) {
    MOON_CHECK_TEXT(answer("0.24", "{}"),
                    "{'scheduler_block_size':16,'hash_block_size':16,'steps':[],'stored_keys_total':0}");
    MOON_CHECK_TEXT(answer("0.33", "{'kv_role':'kv_consumer'," PROMPT "'steps':[" FIRST "]}"),
                    "{'scheduler_block_size':16,'hash_block_size':16,'steps':[[]],'unreleased_store_jobs':0,"
                    "'stored_keys_total':0}");
}

static void failures_and_late_jobs_are_followed(void) {
    const char *text = answer(
        "0.33",
        "{" PROMPT "'put_results':{'model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000001':-5},"
        "'existing_keys':['model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000002'],"
        "'steps':[{'new':[{'req':'r','num_scheduled':40,'block_ids':[[1,2,3]]}],'process_jobs':false}]}");
    check_has(text, "'steps':[[]],'unreleased_store_jobs':1,'stored_keys_total':0");
    text = answer("0.33",
                  "{" PROMPT
                  "'put_results':{'model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000001':-5},"
                  "'existing_keys':['model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000002'],"
                  "'steps':[" FIRST ",{'finished':['r']}]}");
    check_has(text, "'exist_check_sizes':[2]");
    check_has(text, "'source_blocks':[1],'results':[-5]");
    check_has(text, "'unreleased_store_jobs':0,'stored_keys_total':0");
}

static void a_worker_that_raises_is_told(void) {
    static const char given[] =
        "{'requests':{'r':{'prompt_len':48}},'steps':[{'new':[{'req':'r','num_scheduled':32,'block_ids':[[1,2]]}]},"
        "{'preempted':['r']},{'new':[{'req':'r','num_scheduled':32,'block_ids':[[1,2]]}]},"
        "{'cached':[{'req':'r','num_computed':32,'num_scheduled':16,'new_block_ids':[[3]]}]}]}";
    check_has(answer("0.24", given), "'worker_errors':['IndexError: list index out of range']");
    check_has(explain("0.24", given), "raises IndexError: list index out of range; the job ends (SAVE-027)");
    CU_ASSERT_PTR_NULL(strstr(answer("0.25", given), "worker_errors"));
}

static void a_scheduler_that_raises_is_the_answer(void) {
    static const char given[] = "{'groups':[{'kind':'full','block_size':16},{'kind':'mamba','block_size':16}],'"
                                "requests':{'r':{'prompt_len':70}},"
                                "'steps':[{'new':[{'req':'r','num_scheduled':20,'block_ids':[[1,2],[3,4]]}]},"
                                "{'boundary_offloads':{'r':[[1,5,16],[1,6,32]]}}]}";
    check_has(answer("0.27", given), "{'error':{'class':'AssertionError','message':''}}");
    check_has(explain("0.27", given), "raises AssertionError: ");
    check_has(answer("0.33", given), "]}],[{'rank':0,'exist_check_sizes':[2]");
}

static void group_ids_are_told_when_they_are_passed(void) {
    check_has(answer("0.28", "{'extra_config':{'enable_group_semantics':true}," PROMPT "'steps':[" FIRST "]}"),
              "'group_ids':['");
}

static void steps_are_told_with_reasons(void) {
    const char *text =
        explain("0.33", "{'topology':{'tp':4},'total_kv_heads':2,'kv_role':'kv_consumer',"
                        "'extra_config':{'save_decode_cache':true}," PROMPT
                        "'steps':[{'new':[{'req':'r','num_computed':39,'num_scheduled':1,'block_ids':[[1,2,3]]}],"
                        "'output_tokens':{'r':1}},"
                        "{'cached':[{'req':'r','num_computed':40,'num_scheduled':1}],'output_tokens':{'r':1}},"
                        "{'cached':[{'req':'r','num_computed':41,'num_scheduled':1}]}]}");
    check_has(text, "kv_consumer: saves what is there when decode starts (PLAN-001)");
    check_has(text, "makes no job: a consumer saves nothing before decode starts (PLAN-018)");
    check_has(text, "job 0 of r: save tokens 0 to 32, prefill ends at 40 (PLAN-020)");
    check_has(text, "of job 0: its own chunks 1; 1 of other ranks (SAVE-012)");
    check_has(text, "checks 1 keys: 0 are there and skipped, 1 are missing (SAVE-010)");
    check_has(text, "makes no job: no scheduler block became full (PLAN-020)");
    check_has(text, "in the end: 4 new keys in the store, 0 jobs that still hold blocks (PLAN-062)");
}

static void every_reason_for_no_job_is_told(void) {
    static const struct {
        const char *profile, *role, *steps, *reason;
    } rows[] = {
        {"0.33", "kv_consumer", "[" FIRST "]", "this role saves nothing (PLAN-001)"},
        {"0.33", "kv_both", "[" FIRST ",{'cached':[{'req':'r','num_computed':40,'num_scheduled':1}]}]",
         "decode is not saved without save_decode_cache (PLAN-016)"},
        {"0.28", "kv_both",
         "[{'new':[{'req':'r','num_scheduled':10,'block_ids':[[1]]}]},"
         "{'cached':[{'req':'r','num_computed':10,'num_scheduled':2}]}]",
         "a step without new blocks is ignored (PLAN-015)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char given[2048];
        snprintf(given, sizeof given, "{'kv_role':'%s'," PROMPT "'steps':%s}", rows[i].role, rows[i].steps);
        check_has(explain(rows[i].profile, given), rows[i].reason);
    }
}

static void states_and_many_ranks_are_told(void) {
    const char *text = explain(
        "0.33", "{'topology':{'tp':16},'total_kv_heads':16,'groups':[{'kind':'full','block_size':16},"
                "{'kind':'mamba','block_size':64}],'requests':{'r':{'prompt_len':83}},'steps':[{'new':[{'req':'r',"
                "'num_scheduled':83,'block_ids':[[1,2,3,4,5,6],[7,8]]}],'boundary_offloads':{'r':[[1,9,64]]}},"
                "{'preempted':['r'],'process_jobs':false},"
                "{'cached':[{'req':'r','num_scheduled':83,'new_block_ids':[[1,2,3,4,5,6],[7,8]],'resumed':true}]},"
                "{'finished':['r']}]}");
    check_has(text, "hits end at hash blocks (LAYOUT-024)");
    check_has(text, "beside it: group 0 block 5 under the hash at 80 (PLAN-054)");
    check_has(text, "beside it: group 1 block 9 under the hash at 64 (PLAN-050)");
    check_has(text, "of Mamba, not saved by position (SAVE-019)");
    check_has(text, "and 8 more ranks that call the store");
    check_has(text, "preempted r: keeps an empty tracker (PLAN-012)");
    check_has(text, "the ranks queue these jobs and run them later (SAVE-001)");
    check_has(text, "resumed r: ");
    check_has(text, "finished r: forgotten (PLAN-011)");
}

static void failed_puts_are_told(void) {
    const char *text = explain(
        "0.33",
        "{'requests':{'r':{'prompt_len':400}},'put_results':{"
        "'model@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000000000000000000000000000001':-200},'steps':[{'new':[{'req':"
        "'r','num_scheduled':400,'block_ids':[[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25]]}]}]"
        "}");
    check_has(text, "failed with -200");
    check_has(text, "    1 failed: the request's next job tries the range again (SAVE-022)");
    check_has(text, "      and 9 more");
}

static void bad_cases_are_refused_with_their_place(void) {
    static const struct {
        const char *given;
        int status;
        const char *where;
    } rows[] = {
        {"{'request':{}}", MOON_ERR_SCHEMA, "$.request"},
        {"{'requests':{'r':{}}}", MOON_ERR_SCHEMA, "$.requests.r"},
        {"{'requests':{'r':{'prompt_len':0}}}", MOON_ERR_RANGE, "$.requests.r.prompt_len"},
        {"{'requests':{'r':{'prompt_len':40,'hashes':[]}}}", MOON_ERR_SCHEMA, "$.requests.r.hashes"},
        {"{'requests':{'r':{'prompt_len':40,'block_hashes':['00','11']}},'steps':[" FIRST "]}", 0, ""},
        {"{'requests':{'r':{'prompt_len':40,'block_hashes':['00']}}}", MOON_ERR_RANGE, "$.requests.r.block_hashes"},
        {"{'requests':{'r':{'prompt_len':40,'block_hashes':['00','1']}}}", MOON_ERR_SCHEMA,
         "$.requests.r.block_hashes[1]"},
        {"{'requests':{'r':{'prompt_len':40,'block_hashes':['00','11']}},'steps':[" FIRST
         ",{'output_tokens':{'r':20}}]}",
         MOON_ERR_RANGE, "$.steps[1].output_tokens.r"},
        {"{'requests':[]}", MOON_ERR_SCHEMA, "$.requests"},
        {"{'steps':[7]}", MOON_ERR_SCHEMA, "$.steps[0]"},
        {"{'steps':{}}", MOON_ERR_SCHEMA, "$.steps"},
        {"{'steps':[{'old':[]}]}", MOON_ERR_SCHEMA, "$.steps[0].old"},
        {"{'steps':[{'finished':['x']}]}", MOON_ERR_SCHEMA, "$.steps[0].finished[0]"},
        {"{'steps':[{'preempted':[1]}]}", MOON_ERR_SCHEMA, "$.steps[0].preempted[0]"},
        {"{'steps':[{'process_jobs':1}]}", MOON_ERR_SCHEMA, "$.steps[0].process_jobs"},
        {"{'steps':[{'output_tokens':{'x':1}}]}", MOON_ERR_SCHEMA, "$.steps[0].output_tokens.x"},
        {"{" PROMPT "'steps':[{'output_tokens':{'r':-1}}]}", MOON_ERR_RANGE, "$.steps[0].output_tokens.r"},
        {"{'steps':[{'new':[{'req':'x','num_scheduled':1,'block_ids':[[]]}]}]}", MOON_ERR_SCHEMA,
         "$.steps[0].new[0].req"},
        {"{" PROMPT "'steps':[{'new':[{'req':'r','block_ids':[[]]}]}]}", MOON_ERR_SCHEMA, "$.steps[0].new[0]"},
        {"{" PROMPT "'steps':[{'new':[{'req':'r','num_scheduled':1}]}]}", MOON_ERR_SCHEMA, "$.steps[0].new[0]"},
        {"{" PROMPT "'steps':[{'new':[{'req':'r','num_scheduled':1,'block_ids':[[1],[2]]}]}]}", MOON_ERR_SCHEMA,
         "$.steps[0].new[0].block_ids"},
        {"{" PROMPT "'steps':[{'new':[{'req':'r','num_scheduled':1,'block_ids':[7]}]}]}", MOON_ERR_SCHEMA,
         "$.steps[0].new[0].block_ids[0]"},
        {"{" PROMPT "'steps':[{'new':[{'req':'r','num_scheduled':1,'block_ids':[[-1]]}]}]}", MOON_ERR_SCHEMA,
         "$.steps[0].new[0].block_ids[0][0]"},
        {"{" PROMPT "'steps':[{'new':[{'req':'r','num_scheduled':40,'block_ids':[[1]]}]}]}", MOON_ERR_RANGE,
         "$.steps[0]"},
        {"{" PROMPT "'steps':[{'cached':[{'req':'r','num_scheduled':1,'new_block_ids':[[1]]}]}]}", MOON_ERR_RANGE,
         "$.steps[0].cached[0]"},
        {"{" PROMPT "'steps':[{'cached':[{'req':'r','num_scheduled':1,'resumed':true}]}]}", MOON_ERR_SCHEMA,
         "$.steps[0].cached[0]"},
        {"{" PROMPT "'steps':[{'cached':[{'req':'r','num_scheduled':1,'resumed':1}]}]}", MOON_ERR_SCHEMA,
         "$.steps[0].cached[0].resumed"},
        {"{" PROMPT "'steps':[{'boundary_offloads':{'r':7}}]}", MOON_ERR_SCHEMA, "$.steps[0].boundary_offloads.r"},
        {"{" PROMPT "'steps':[{'boundary_offloads':{'x':[[0,1,2]]}}]}", MOON_ERR_SCHEMA,
         "$.steps[0].boundary_offloads.x"},
        {"{" PROMPT "'steps':[{'boundary_offloads':{'r':[[0,1]]}}]}", MOON_ERR_SCHEMA,
         "$.steps[0].boundary_offloads.r[0]"},
        {"{" PROMPT "'steps':[{'boundary_offloads':{'r':[[0,-1,2]]}}]}", MOON_ERR_SCHEMA,
         "$.steps[0].boundary_offloads.r[0][1]"},
        {"{'existing_keys':[1]}", MOON_ERR_SCHEMA, "$.existing_keys[0]"},
        {"{'put_results':{'k':'x'}}", MOON_ERR_SCHEMA, "$.put_results.k"},
        {"{'topology':{'tp':2048},'total_kv_heads':2048}", MOON_ERR_LIMIT, "$.topology"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct suite_bad_case row = {"0.33", json(rows[i].given), rows[i].status, rows[i].where};
        suite_check_bad_cases(&moon_suite_save, &row, 1);
    }
}

static void errors_of_steps_say_what_is_wrong(void) {
    struct moon_arena arena;
    struct moon_json *result = NULL;
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(suite_ask(&moon_suite_save, &arena, "0.33",
                             json("{" PROMPT "'steps':[{'new':[{'req':'r','num_scheduled':40,'block_ids':[[1]]}]}]}"),
                             &result, &error),
                   MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "fresh[0]: blocks: 1 blocks of 16 tokens in group 0 are too few for 40 tokens");
    moon_arena_close(&arena);
}

static void a_run_needs_no_observer(void) {
    struct moon_arena arena;
    struct moon_json *document = NULL;
    struct moon_save_case its;
    struct moon_save_observer observer = {0};
    struct moon_save_outcome outcome;
    const char *input = json("{" PROMPT "'steps':[" FIRST "]}");
    moon_arena_open(&arena, moon_memory_heap());
    moon_json_read(&arena, "test", input, strlen(input), MOON_JSON_STRICT, &document, NULL);
    MOON_CHECK_INT(moon_save_case_read(&arena, moon_profile_newest(), "test", document, &its, NULL), 0);
    MOON_CHECK_INT(moon_save_run(&arena, &its, &observer, &outcome, NULL), 0);
    MOON_CHECK_INT(outcome.stored_keys, 2);
    MOON_CHECK_INT(outcome.unreleased_jobs, 0);
    moon_arena_close(&arena);
}

static void drawn_cases_are_answered_and_explained(void) {
    suite_check_drawn(&moon_suite_save, true);
}

static void refused_memory_is_told(void) {
    suite_check_refused_memory(
        &moon_suite_save,
        json(
            "{'extra_config':{'enable_group_semantics':true},'groups':[{'kind':'full','block_size':16},{'kind':'mamba',"
            "'block_size':16}],'requests':{'q':{'prompt_len':16},'r':{'prompt_len':40,'block_hashes':['00','11','22']}}"
            ","
            "'existing_keys':['k'],'put_results':{'k':1},'steps':[{'new':[{'req':'r','num_scheduled':20,'block_ids':"
            "[[1,2],[3,4]]}],'boundary_offloads':{'r':[[1,9,16]]}},{'cached':[{'req':'r','num_computed':20,"
            "'num_scheduled':20,'new_block_ids':[[3],[5]]}],'output_tokens':{'r':1}},{'preempted':['r']},"
            "{'finished':['r']}]}"),
        1);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a prompt is put block by block", a_prompt_is_put_block_by_block},
        {"nothing asked for is nothing done", nothing_asked_for_is_nothing_done},
        {"failures and late jobs are followed", failures_and_late_jobs_are_followed},
        {"a worker that raises is told", a_worker_that_raises_is_told},
        {"a scheduler side that raises is the answer", a_scheduler_that_raises_is_the_answer},
        {"group ids are told when they are passed", group_ids_are_told_when_they_are_passed},
        {"steps are told with reasons", steps_are_told_with_reasons},
        {"every reason for no job is told", every_reason_for_no_job_is_told},
        {"states and many ranks are told", states_and_many_ranks_are_told},
        {"failed puts are told", failed_puts_are_told},
        {"bad cases are refused with their place", bad_cases_are_refused_with_their_place},
        {"errors of steps say what is wrong", errors_of_steps_say_what_is_wrong},
        {"a run needs no observer", a_run_needs_no_observer},
        {"drawn cases are answered and explained", drawn_cases_are_answered_and_explained},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL},
    };
    return moon_unit_main("save", cases, argc, argv);
}
