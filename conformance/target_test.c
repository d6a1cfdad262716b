/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of conversations with adapters, most of them bad ones: small shell scripts that break the protocol in one way
 * each. */
#include "conformance/adapter_check.h"
#include "conformance/process.h"
#include "conformance/target.h"
#include "ref/base/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { QUESTIONS = 6 };

/* A script that answers well; BEFORE and CASE are put into its loop: CASE handles one case whose number is in $seq. */
#define SCRIPT(before, one_case)                                                                                       \
    before "\nwhile read -r line; do\n"                                                                                \
           "  case $line in\n"                                                                                         \
           "  *'\"do\":\"start\"'*) printf '%s\\n' '{\"ok\":{\"name\":\"sh\",\"version\":\"2\",\"homepage\":\"h\","    \
           "\"profiles\":[\"vllm-0.33\"],\"suites\":[\"keys\"],\"store\":false}}' ;;\n"                                \
           "  *'\"do\":\"stop\"'*) echo '{\"ok\":{}}'; exit 0 ;;\n"                                                    \
           "  *) seq=${line#*'\"seq\":'}; seq=${seq%%[,\\}]*}\n" one_case "\n ;;\n  esac\ndone"
#define GOOD "echo '{\"seq\":'$seq',\"result\":{\"key\":\"k'$seq'\"}}'"
/* GOOD, except for case 3. */
#define AT_3(bad) "if [ $seq -eq 3 ]; then " bad "; else " GOOD "; fi"

static struct moon_arena arena;
static struct moon_question questions[QUESTIONS];
static struct moon_error error;

static void prepare(void) {
    struct moon_error why;
    for (size_t i = 0; i < QUESTIONS; i++) {
        struct moon_json *given = moon_json_object(&arena);
        moon_json_set(&arena, given, "op", moon_json_string(&arena, "pool_key"));
        questions[i] = (struct moon_question){
            .suite = &moon_suite_keys, .profile = moon_profile_find("vllm-0.33", &why), .given = given};
    }
}

static struct moon_target *open_script(const char *script, int64_t case_timeout_ms, int64_t window) {
    struct moon_target *target = NULL;
    const struct moon_target_setting setting = {.case_timeout_ms = case_timeout_ms, .window = window};
    const char *spec = moon_arena_format(&arena, "cmd:%s", script);
    error = (struct moon_error){0};
    moon_target_open(&target, spec, &setting, &error);
    return target;
}

/* Asks all questions of a script; the answers are in questions[]. */
static void ask(const char *script, int64_t case_timeout_ms, int64_t window) {
    prepare();
    struct moon_target *target = open_script(script, case_timeout_ms, window);
    CU_ASSERT_PTR_NOT_NULL_FATAL(target);
    MOON_CHECK_INT(moon_target_ask(target, &arena, questions, QUESTIONS, &error), 0);
    moon_target_close(target);
}

static const char *key_of(size_t i) {
    const struct moon_json *key = moon_json_member(questions[i].answer, "key");
    return key ? key->bytes : "no answer";
}

/* All but question 3 were answered by their own key. */
static void check_others(void) {
    static const char *const keys[QUESTIONS] = {"k1", "k2", "k3", "k4", "k5", "k6"};
    for (size_t i = 0; i < QUESTIONS; i++) {
        if (i == 2)
            continue;
        MOON_CHECK_INT(questions[i].reply, MOON_REPLY_RESULT);
        MOON_CHECK_TEXT(key_of(i), keys[i]);
    }
}

static void check_third(enum moon_reply reply, const char *part_of_reason) {
    MOON_CHECK_INT(questions[2].reply, reply);
    bool found = strstr(questions[2].reason, part_of_reason) != NULL;
    if (!found)
        fprintf(stderr, "the reason is \"%s\", expected \"...%s...\"\n", questions[2].reason, part_of_reason);
    CU_ASSERT(found);
}

static void a_good_adapter_answers_all(void) {
    ask(SCRIPT("", GOOD), 5000, 0);
    check_others();
    MOON_CHECK_TEXT(key_of(2), "k3");
    struct moon_target *target = open_script(SCRIPT("", GOOD), 5000, 0);
    MOON_CHECK_TEXT(moon_target_name(target), "sh");
    MOON_CHECK_TEXT(moon_target_version(target), "2");
    MOON_CHECK_TEXT(moon_target_homepage(target), "h");
    CU_ASSERT(moon_target_offers_profile(target, "vllm-0.33"));
    CU_ASSERT_FALSE(moon_target_offers_profile(target, "vllm-0.30"));
    CU_ASSERT(moon_target_offers_suite(target, "keys"));
    CU_ASSERT_FALSE(moon_target_offers_suite(target, "hash"));
    MOON_CHECK_INT(moon_target_stop(target, &error), 0);
    moon_target_close(target);
}

static void answers_may_come_in_any_order(void) {
    ask(SCRIPT("held=", "if [ $seq -lt 6 ]; then held=\"$seq $held\"; else echo "
                        "'{\"seq\":6,\"result\":{\"key\":\"k6\"}}'; for seq in $held; "
                        "do " GOOD "; done; fi"),
        5000, 8);
    check_others();
    MOON_CHECK_TEXT(key_of(2), "k3");
}

static void an_adapter_that_dies_loses_only_the_case_that_killed_it(void) {
    ask(SCRIPT("", AT_3("echo last words >&2; kill -SEGV $$")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_CRASH, "the adapter died (killed by signal 11");
    check_third(MOON_REPLY_CRASH, "its stderr ends: last words");
    ask(SCRIPT("", AT_3("exit 5")), 5000, 1);
    check_others();
    check_third(MOON_REPLY_CRASH, "(exit status 5)");
}

static void an_adapter_that_always_dies_is_given_up(void) {
    prepare();
    struct moon_question many[40];
    for (size_t i = 0; i < 40; i++)
        many[i] = questions[0];
    struct moon_target *target = open_script(SCRIPT("", "exit 1"), 5000, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(target);
    MOON_CHECK_INT(moon_target_ask(target, &arena, many, 40, &error), 0);
    MOON_CHECK_INT(many[0].reply, MOON_REPLY_CRASH);
    MOON_CHECK_INT(many[39].reply, MOON_REPLY_ERROR);
    MOON_CHECK_TEXT(many[39].reason, "not asked: the adapter died 8 times in a row");
    moon_target_close(target);
}

static void an_adapter_that_hangs_is_a_timeout(void) {
    ask(SCRIPT("", AT_3("sleep 1000")), 200, 8);
    check_others();
    check_third(MOON_REPLY_TIMEOUT, "no answer within 200 ms");
}

static void garbage_is_the_adapters_fault(void) {
    ask(SCRIPT("", AT_3("echo Hello")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "the adapter's fault: its answer to a case is no JSON");
    check_third(MOON_REPLY_ERROR, "it begins Hello");
}

static void an_answer_to_nothing_is_the_adapters_fault(void) {
    ask(SCRIPT("", AT_3("echo '{\"seq\":77,\"result\":{}}'")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "the adapter's fault: it answers seq 77, which is not waiting for an answer");
    ask(SCRIPT("", AT_3("echo '{\"result\":{}}'")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "member \"seq\" is missing");
}

static void an_unknown_member_is_named(void) {
    ask(SCRIPT("", AT_3("echo '{\"seq\":3,\"reslut\":{}}'")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "unknown member \"reslut\"; did you mean \"result\"?");
    ask(SCRIPT("", AT_3("echo '{\"seq\":3,\"result\":{\"kee\":1}}'")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "$.result.kee: unknown member \"kee\"; did you mean \"key\"?");
    ask(SCRIPT("", AT_3("echo '{\"seq\":3,\"result\":{\"key\":1}}'")), 5000, 8);
    check_third(MOON_REPLY_ERROR, "$.result.key: must be string, is integer");
}

static void exactly_one_kind_of_answer_is_allowed(void) {
    ask(SCRIPT("", AT_3("echo '{\"seq\":3,\"result\":{\"key\":\"\"},\"skip\":\"x\"}'")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "exactly one of \"result\", \"skip\" and \"error\"");
    ask(SCRIPT("", AT_3("echo '{\"seq\":3}'")), 5000, 8);
    check_third(MOON_REPLY_ERROR, "exactly one of");
}

static void skips_and_errors_carry_their_reason(void) {
    ask(SCRIPT("", AT_3("echo '{\"seq\":3,\"skip\":\"too new\"}'")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_SKIP, "too new");
    ask(SCRIPT("", AT_3("echo '{\"seq\":3,\"error\":\"broken\"}'")), 5000, 8);
    check_third(MOON_REPLY_ERROR, "the adapter says: broken");
}

static void closing_standard_output_is_a_crash(void) {
    ask(SCRIPT("", AT_3("exec >&-; sleep 1000")), 5000, 8);
    check_others();
    check_third(MOON_REPLY_CRASH, "the adapter died (had to be killed)");
}

static void a_line_without_end_is_cut_off(void) {
    ask(SCRIPT("", AT_3("head -c 70000000 /dev/zero | tr '\\0' x")), 20000, 8);
    check_others();
    check_third(MOON_REPLY_ERROR, "longer than 64 MiB");
}

static void a_flood_on_stderr_harms_nobody(void) {
    ask(SCRIPT("", "head -c 300000 /dev/zero | tr '\\0' y >&2; " GOOD), 5000, 8);
    check_others();
}

static void a_bad_handshake_is_told_in_words(void) {
    CU_ASSERT_PTR_NULL(open_script("read -r l; echo nonsense", 5000, 0));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "the adapter's fault: its answer to \"start\" is no JSON"));
    CU_ASSERT_PTR_NULL(open_script("read -r l; echo '{\"ok\":{\"name\":\"x\"}}'", 5000, 0));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "member \"version\" is missing"));
    CU_ASSERT_PTR_NULL(open_script("exit 3", 5000, 0));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "the adapter ended instead of answering \"start\" (exit status 3)"));
    CU_ASSERT_PTR_NULL(open_script("no-such-program-anywhere", 5000, 0));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "exit status 127"));
    struct moon_target *target = NULL;
    const struct moon_target_setting plain = {0};
    MOON_CHECK_INT(moon_target_open(&target, "cmd:", &plain, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_INT(moon_target_open(&target, "wire:host:1", &plain, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "target \"wire:host:1\" is none of: ref, cmd:COMMAND");
}

static void ends_of_conversations_are_judged(void) {
    static const char hello[] =
        "read -r l; echo '{\"ok\":{\"name\":\"x\",\"version\":\"\",\"homepage\":\"\",\"profiles\":[],"
        "\"suites\":[],\"store\":false}}'; read -r l; ";
    const char *scripts[] = {"echo '{\"ok\":{}}'; exit 4", "exit 0", "echo '{\"okay\":{}}'",
                             "echo '{\"ok\":{}}'; sleep 1000"};
    const char *texts[] = {"did not end well: exit status 4", "ended instead of answering \"stop\" (exit status 0)",
                           "unknown member \"okay\"", "did not end well: had to be killed"};
    for (size_t i = 0; i < 4; i++) {
        struct moon_target *target = open_script(moon_arena_format(&arena, "%s%s", hello, scripts[i]), 5000, 0);
        CU_ASSERT_PTR_NOT_NULL_FATAL(target);
        CU_ASSERT(moon_target_stop(target, &error) < 0);
        bool found = strstr(error.message, texts[i]) != NULL;
        if (!found)
            fprintf(stderr, "the message is \"%s\", expected \"...%s...\"\n", error.message, texts[i]);
        CU_ASSERT(found);
        moon_target_close(target);
    }
}

static void nothing_that_an_adapter_started_is_left_behind(void) {
    char name[] = "/tmp/mooncheck-pid-XXXXXX";
    int fd = mkstemp(name), pid = 0;
    CU_ASSERT_FATAL(fd >= 0);
    const char *before = moon_arena_format(&arena, "sleep 1000 & echo $! > %s", name);
    struct moon_target *target = open_script(moon_arena_format(&arena, "%s\n%s", before, SCRIPT("", GOOD)), 5000, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(target);
    FILE *file = fdopen(fd, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fscanf(file, "%d", &pid) == 1);
    fclose(file);
    unlink(name);
    MOON_CHECK_INT(kill(pid, 0), 0);
    moon_target_close(target);
    for (int i = 0; i < 200 && kill(pid, 0) == 0; i++) /* its new parent has to reap it */
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    bool gone = kill(pid, 0) != 0;
    if (!gone) { /* a zombie that nobody reaps, as in a container without init, is gone as well */
        char path[64], line[256] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *stat = fopen(path, "r");
        gone = !stat || !fgets(line, sizeof line, stat) || strstr(line, ") Z ");
        if (stat)
            fclose(stat);
    }
    CU_ASSERT(gone);
}

static void a_second_process_is_another_one(void) {
    prepare();
    struct moon_target *target =
        open_script(SCRIPT("", "echo '{\"seq\":'$seq',\"result\":{\"key\":\"'$$'\"}}'"), 5000, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(target);
    struct moon_question first = questions[0], second = questions[0];
    MOON_CHECK_INT(moon_target_ask(target, &arena, &first, 1, &error), 0);
    MOON_CHECK_INT(moon_target_ask_second(target, &arena, &second, 1, &error), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(first.answer);
    CU_ASSERT_PTR_NOT_NULL_FATAL(second.answer);
    CU_ASSERT_FALSE(moon_json_equal(first.answer, second.answer));
    moon_target_close(target);
}

static void the_reference_answers_in_this_process(void) {
    struct moon_target *target = NULL;
    const struct moon_target_setting setting = {.version = "9"};
    struct moon_json *given = NULL;
    static const char text[] =
        "{\"op\":\"pool_key\",\"metadata\":{\"model_name\":\"m\",\"tp_rank\":0,\"pcp_rank\":0,\"dcp_rank\":0,"
        "\"pp_rank\":0},\"chunk_hash\":\"ab\"}";
    MOON_CHECK_INT(moon_target_open(&target, "ref", &setting, &error), 0);
    MOON_CHECK_INT(moon_json_read(&arena, "t", text, strlen(text), MOON_JSON_STRICT, &given, &error), 0);
    prepare();
    questions[0].given = given;
    questions[1].given = moon_json_array(&arena);
    MOON_CHECK_INT(moon_target_ask(target, &arena, questions, 2, &error), 0);
    MOON_CHECK_INT(questions[0].reply, MOON_REPLY_RESULT);
    CU_ASSERT(strncmp(key_of(0), "m@tp_rank:0@", 12) == 0);
    MOON_CHECK_INT(questions[1].reply, MOON_REPLY_ERROR);
    MOON_CHECK_TEXT(moon_target_name(target), "mooncheck reference");
    MOON_CHECK_TEXT(moon_target_version(target), "9");
    CU_ASSERT(moon_target_offers_suite(target, "anything"));
    MOON_CHECK_INT(moon_target_stop(target, &error), 0);
    moon_target_close(target);
}

/* ---- adapter check */

static struct moon_result check_result;

static const struct moon_result_case *find_case(const char *id) {
    const struct moon_result_case *one = check_result.first;
    while (one && strcmp(one->id, id) != 0)
        one = one->next;
    return one;
}

static void check_adapter(const char *script) {
    const struct moon_target_setting setting = {.case_timeout_ms = 1000};
    check_result = (struct moon_result){.arena = &arena};
    MOON_CHECK_INT(moon_adapter_check(moon_arena_format(&arena, "cmd:%s", script), &setting, &check_result, &error), 0);
}

static void the_check_finds_an_adapter_that_answers_nonsense(void) {
    check_adapter(SCRIPT("", GOOD));
    const struct moon_result_case *one = find_case("adapter.bad.unknown_suite");
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    MOON_CHECK_INT(one->outcome, MOON_OUTCOME_FAIL);
    one = find_case("adapter.smoke.keys");
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    MOON_CHECK_INT(one->outcome, MOON_OUTCOME_PASS);
    one = find_case("adapter.stop.orderly");
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    MOON_CHECK_INT(one->outcome, MOON_OUTCOME_PASS);
}

static void the_check_passes_an_adapter_that_refuses_what_it_should(void) {
    check_adapter(SCRIPT(
        "",
        "case $line in *no_such*|*9.99*|*sing*) echo '{\"seq\":'$seq',\"error\":\"no\"}';; '{\"do\":\"case\"'*) " GOOD
        ";; *) echo '{\"error\":\"not understood\"}';; esac"));
    for (const struct moon_result_case *one = check_result.first; one; one = one->next) {
        if (one->outcome != MOON_OUTCOME_PASS)
            fprintf(stderr, "%s: %s\n", one->id, one->reason);
        MOON_CHECK_INT(one->outcome, MOON_OUTCOME_PASS);
    }
    CU_ASSERT_PTR_NOT_NULL(find_case("adapter.bad.no_utf8"));
}

static void the_check_tells_of_an_adapter_that_does_not_start(void) {
    check_adapter("exit 9");
    MOON_CHECK_INT(check_result.counts[MOON_OUTCOME_FAIL], 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(check_result.first->reason, "exit status 9"));
}

static void the_check_tells_of_an_adapter_that_dies_of_bad_input(void) {
    check_adapter(SCRIPT("", "case $line in *no_such_suite*) exit 1;; *) " GOOD ";; esac"));
    const struct moon_result_case *one = find_case("adapter.bad.unknown_suite");
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    MOON_CHECK_INT(one->outcome, MOON_OUTCOME_FAIL);
    CU_ASSERT_PTR_NOT_NULL(strstr(one->reason, "the adapter ended"));
}

static const struct moon_unit_case cases[] = {
    {"a good adapter answers all", a_good_adapter_answers_all},
    {"answers may come in any order", answers_may_come_in_any_order},
    {"an adapter that dies loses only the case that killed it",
     an_adapter_that_dies_loses_only_the_case_that_killed_it},
    {"an adapter that always dies is given up", an_adapter_that_always_dies_is_given_up},
    {"an adapter that hangs is a timeout", an_adapter_that_hangs_is_a_timeout},
    {"garbage is the adapter's fault", garbage_is_the_adapters_fault},
    {"an answer to nothing is the adapter's fault", an_answer_to_nothing_is_the_adapters_fault},
    {"an unknown member is named", an_unknown_member_is_named},
    {"exactly one kind of answer is allowed", exactly_one_kind_of_answer_is_allowed},
    {"skips and errors carry their reason", skips_and_errors_carry_their_reason},
    {"closing standard output is a crash", closing_standard_output_is_a_crash},
    {"a line without end is cut off", a_line_without_end_is_cut_off},
    {"a flood on stderr harms nobody", a_flood_on_stderr_harms_nobody},
    {"a bad handshake is told in words", a_bad_handshake_is_told_in_words},
    {"ends of conversations are judged", ends_of_conversations_are_judged},
    {"nothing that an adapter started is left behind", nothing_that_an_adapter_started_is_left_behind},
    {"a second process is another one", a_second_process_is_another_one},
    {"the reference answers in this process", the_reference_answers_in_this_process},
    {"the check finds an adapter that answers nonsense", the_check_finds_an_adapter_that_answers_nonsense},
    {"the check passes an adapter that refuses what it should",
     the_check_passes_an_adapter_that_refuses_what_it_should},
    {"the check tells of an adapter that does not start", the_check_tells_of_an_adapter_that_does_not_start},
    {"the check tells of an adapter that dies of bad input", the_check_tells_of_an_adapter_that_dies_of_bad_input},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("target", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
