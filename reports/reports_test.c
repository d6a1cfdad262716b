/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the result and of each form it is written in. */
#include "reports/markup.h"
#include "reports/result.h"

#include "ref/base/unit.h"

static struct moon_arena arena;
static struct moon_result result;
static struct moon_text text;

static struct moon_result_case *add(const char *id, const char *suite, enum moon_outcome outcome, const char *reason) {
    struct moon_result_case *one = moon_result_add(&result);
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    one->id = id;
    one->suite = suite;
    one->profile = "vllm-0.33";
    one->requirement = "HASH-001";
    one->level = "MUST";
    one->required = "[HASH-001 MUST] A rule <of> \"this\" & that";
    one->outcome = outcome;
    one->reason = reason;
    one->duration_ns = 1500000;
    moon_result_count(&result, one);
    return one;
}

static void begin(void) {
    result = (struct moon_result){.arena = &arena,
                                  .command = "mooncheck vectors x",
                                  .harness_version = "1",
                                  .target = "cmd:a \"b\" <c>",
                                  .target_name = "name",
                                  .target_version = "2",
                                  .target_homepage = "",
                                  .mode = "",
                                  .seed = "7",
                                  .host = "host",
                                  .started = "2026-11-29T10:00:00Z",
                                  .duration_ns = 2500000000,
                                  .digest = "0123456789abcdef",
                                  .incomplete_why = ""};
    moon_text_clear(&text);
}

/* Two cases of one deviation, and one that shows two. */
static void fill_deviations(void) {
    static const char *const one[] = {"connector.9.1 does \"it\""}, *const two[] = {"connector.9.1 does \"it\"",
                                                                                    "connector.9.2 too"};
    begin();
    result.mode = "strict";
    struct moon_result_case *passed = add("hash.a.1", "hash", MOON_OUTCOME_PASS, "");
    passed->deviations = two;
    passed->deviation_count = 2;
    struct moon_result_case *failed = add("hash.a.2", "hash", MOON_OUTCOME_FAIL, "");
    failed->deviations = one;
    failed->deviation_count = 1;
    add("hash.a.3", "hash", MOON_OUTCOME_PASS, "");
}

/* One case of every outcome. */
static void fill(void) {
    begin();
    add("hash.a.1", "hash", MOON_OUTCOME_PASS, "");
    struct moon_result_case *failed = add("hash.a.2", "hash", MOON_OUTCOME_FAIL, "");
    failed->done = "asked # it";
    failed->expected = "$.key: \"<a>\"";
    failed->seen = "$.key: \"]]>\x01\xff\"";
    failed->reproduce = "mooncheck vectors --only hash.a.2 f";
    failed->resembles = "an issue";
    add("hash.b.1", "hash", MOON_OUTCOME_ERROR, "broke");
    add("keys.a.1", "keys", MOON_OUTCOME_CRASH, "died");
    add("keys.a.2", "keys", MOON_OUTCOME_TIMEOUT, "slow");
    add("keys.a.3", "keys", MOON_OUTCOME_SKIP, "not # offered");
    add("keys.a.4", "keys", MOON_OUTCOME_XFAIL, "known");
    add("keys.a.5", "keys", MOON_OUTCOME_XPASS, "passed");
    add("keys.a.6", "keys", MOON_OUTCOME_UNKNOWN, "could not tell");
}

static const char *value(void) {
    CU_ASSERT_FALSE(text.failed);
    return moon_text_value(&text);
}

static void check_has(const char *part) {
    bool found = strstr(value(), part) != NULL;
    if (!found)
        fprintf(stderr, "not found: %s\nin:\n%s\n", part, value());
    CU_ASSERT(found);
}

static void the_closing_line_counts_each_case_once(void) {
    fill();
    moon_result_closing_line(&result, &text);
    MOON_CHECK_TEXT(value(), "1 passed, 5 failed, 3 skipped");
}

static void the_exit_status_follows_the_worst(void) {
    begin();
    MOON_CHECK_INT(moon_result_exit(&result), 77);
    add("a.a.1", "a", MOON_OUTCOME_SKIP, "");
    MOON_CHECK_INT(moon_result_exit(&result), 77);
    add("a.a.2", "a", MOON_OUTCOME_PASS, "");
    MOON_CHECK_INT(moon_result_exit(&result), 0);
    result.incomplete = true;
    MOON_CHECK_INT(moon_result_exit(&result), 3);
    result.incomplete = false;
    add("a.a.3", "a", MOON_OUTCOME_UNKNOWN, "");
    MOON_CHECK_INT(moon_result_exit(&result), 3);
    add("a.a.4", "a", MOON_OUTCOME_CRASH, "");
    MOON_CHECK_INT(moon_result_exit(&result), 1);
    begin();
    add("a.a.1", "a", MOON_OUTCOME_XFAIL, "");
    MOON_CHECK_INT(moon_result_exit(&result), 0);
}

static void every_outcome_has_a_name_and_a_side(void) {
    MOON_CHECK_TEXT(moon_outcome_name(MOON_OUTCOME_PASS), "pass");
    MOON_CHECK_TEXT(moon_outcome_name(MOON_OUTCOME_UNKNOWN), "unknown");
    CU_ASSERT(moon_outcome_is_failure(MOON_OUTCOME_XPASS));
    CU_ASSERT_FALSE(moon_outcome_is_failure(MOON_OUTCOME_XFAIL));
    CU_ASSERT_FALSE(moon_outcome_is_failure(MOON_OUTCOME_UNKNOWN));
}

/* Writes as JSON, reads that, writes again. */
static int round_trip(const char *json, struct moon_error *error) {
    struct moon_json *document = NULL;
    struct moon_result again;
    int status = moon_json_read(&arena, "r.json", json, strlen(json), MOON_JSON_STRICT, &document, error);
    if (status == 0)
        status = moon_result_read(&arena, "r.json", document, &again, error);
    moon_text_clear(&text);
    if (status == 0)
        moon_report_json(&again, &text);
    return status;
}

static void json_reads_back_as_it_was_written(void) {
    struct moon_error error = {0};
    fill();
    result.incomplete_why = "a part is missing";
    result.last->reason = "w\xc3\xa4hrend \"x\"";
    result.first->next->seen = "plain";
    moon_report_json(&result, &text);
    const char *written = moon_arena_copy(&arena, value(), text.length);
    MOON_CHECK_INT(round_trip(written, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_TEXT(value(), written);
}

/* The JSON of fill() with one text replaced must be refused. */
static void check_refused(const char *from, const char *to, const char *message) {
    struct moon_error error = {0};
    struct moon_text changed;
    fill();
    result.first->next->seen = "plain";
    moon_report_json(&result, &text);
    const char *place = strstr(value(), from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(place);
    moon_text_open(&changed, moon_memory_heap());
    moon_text_bytes(&changed, text.data, (size_t)(place - text.data));
    moon_text_string(&changed, to);
    moon_text_string(&changed, place + strlen(from));
    CU_ASSERT(round_trip(moon_text_value(&changed), &error) < 0);
    MOON_CHECK_TEXT(error.message, message);
    moon_text_close(&changed);
}

static void json_that_is_no_result_is_refused(void) {
    check_refused("mooncheck-results/1", "mooncheck-vectors/1",
                  "is no result file: member \"schema\" is not \"mooncheck-results/1\"");
    check_refused("\"outcome\": \"crash\"", "\"outcome\": \"crush\"", "\"crush\" is no outcome");
    check_refused("\"level\": \"MUST\"", "\"lever\": \"MUST\"", "unknown member \"lever\"; did you mean \"level\"?");
    check_refused("\"pass\": 1", "\"pass\": 2", "says 2, but the file holds 1 such cases");
    check_refused("\"seconds\": 2.5", "\"seconds\": \"2.5\"", "is no number of seconds");
    check_refused("\"harness\": {", "\"harness\": {\"x\":1,", "unknown member \"x\"");
}

static void tap_has_plan_directives_and_blocks(void) {
    fill();
    moon_report_tap(&result, &text);
    CU_ASSERT(strncmp(value(),
                      "TAP version 14\n1..9\nok 1 - hash.a.1\nnot ok 2 - hash.a.2\n  ---\n  outcome: \"fail\"\n",
                      79) == 0);
    check_has("\n  expected: \"$.key: \\\"<a>\\\"\"\n");
    check_has("\nok 6 - keys.a.3 # SKIP not \\# offered\n");
    check_has("\nnot ok 7 - keys.a.4 # TODO known\n");
    check_has("\nnot ok 8 - keys.a.5\n");
    check_has("\nok 9 - keys.a.6 # SKIP unknown: could not tell\n");
    check_has("\n# 1 passed, 5 failed, 3 skipped\n");
    begin();
    moon_report_tap(&result, &text);
    MOON_CHECK_TEXT(value(), "TAP version 14\n1..0 # SKIP nothing was selected\n# 0 passed, 0 failed, 0 skipped\n");
}

static void junit_counts_and_escapes(void) {
    fill();
    moon_report_junit(&result, &text);
    check_has("<testsuites name=\"mooncheck\" tests=\"9\" failures=\"2\" errors=\"3\" skipped=\"3\"");
    check_has("<testsuite name=\"hash\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\"");
    check_has("<property name=\"target\" value=\"cmd:a &quot;b&quot; &lt;c&gt;\"/>");
    check_has("<failure type=\"fail\" message=\"$.key: &quot;]]&gt;\xEF\xBF\xBD\xEF\xBF\xBD&quot;\">");
    check_has("<skipped message=\"not # offered\"/>");
    check_has("<error type=\"crash\" message=\"died\">");
}

static void html_tells_totals_failures_and_requirements(void) {
    fill();
    const struct moon_result *runs[] = {&result, &result};
    moon_report_html(runs, 2, &text);
    check_has("<title>mooncheck: 2 passed, 10 failed, 6 skipped</title>");
    check_has("<td class=\"bad\">2 of 3 failed</td>");
    check_has("<dt>expected</dt><dd><code>$.key: &quot;&lt;a&gt;&quot;</code></dd>");
    check_has("<td class=\"left\">A rule &lt;of&gt; &quot;this&quot; &amp; that</td>");
    check_has("<code>mooncheck vectors --only hash.a.2 f</code>");
    CU_ASSERT_PTR_NULL(strstr(value(), "INCOMPLETE"));
    CU_ASSERT_PTR_NULL(strstr(value(), "<script"));
    CU_ASSERT_PTR_NULL(strstr(value(), "http"));
    result.incomplete_why = "no peer";
    moon_text_clear(&text);
    moon_report_html(runs, 1, &text);
    check_has("INCOMPLETE: no peer");
}

static void the_terminal_shows_failures_in_five_lines(void) {
    fill();
    moon_report_terminal(&result, false, &text);
    check_has("\nfail hash.a.2 (vllm-0.33)\n  required   [HASH-001 MUST] A rule");
    check_has("\n  done       asked # it\n  expected   $.key: \"<a>\"\n  seen       $.key: ");
    check_has("\n  reproduce  mooncheck vectors --only hash.a.2 f\n  resembles  an issue\n");
    check_has("\n  hash             1 passed     2 failed     0 skipped\n");
    check_has("\nskipped 1: not # offered\n");
    check_has("\nunknown 1: could not tell\n");
    CU_ASSERT(strcmp(value() + text.length - 30, "1 passed, 5 failed, 3 skipped\n") == 0);
    CU_ASSERT_PTR_NULL(strchr(value(), '\033'));
    moon_text_clear(&text);
    moon_report_terminal(&result, true, &text);
    check_has("\033[31m1 passed, 5 failed, 3 skipped\033[0m\n");
}

static void every_form_names_deviations(void) {
    struct moon_error error = {0};
    const struct moon_result *runs[] = {&result};
    fill_deviations();
    moon_report_terminal(&result, false, &text);
    check_has("name 2, mode strict\n");
    check_has("\n  deviates   connector.9.1 does \"it\"\n");
    check_has("\n1 of the passed cases pass as real releases do wrong (ALT):\n      1 connector.9.1 does \"it\"\n"
              "      1 failed: connector.9.1 does \"it\"\n      1 connector.9.2 too\n");
    moon_text_clear(&text);
    moon_report_tap(&result, &text);
    check_has("ok 1 - hash.a.1\n  ---\n  outcome: \"pass\"");
    check_has("\n  deviation: \"connector.9.1 does \\\"it\\\"\"\n  deviation_2: \"connector.9.2 too\"\n  ...\n");
    moon_text_clear(&text);
    moon_report_junit(&result, &text);
    check_has("<property name=\"mode\" value=\"strict\"/>");
    check_has("<property name=\"deviation\" value=\"connector.9.1 does &quot;it&quot;\"/>");
    moon_text_clear(&text);
    moon_report_html(runs, 1, &text);
    check_has("<p>1 of the passed cases pass as real releases do wrong (ALT).</p>");
    check_has("<tr><td>connector.9.1 does &quot;it&quot;</td><td class=\"warn\">1</td><td class=\"bad\">1</td></tr>");
    moon_text_clear(&text);
    moon_report_json(&result, &text);
    check_has("\"deviation\": [\"connector.9.1 does \\\"it\\\"\", \"connector.9.2 too\"]");
    const char *written = moon_arena_copy(&arena, value(), text.length);
    MOON_CHECK_INT(round_trip(written, &error), 0);
    MOON_CHECK_TEXT(value(), written);
}

static void a_deviation_that_is_no_text_is_refused(void) {
    struct moon_error error = {0};
    fill_deviations();
    moon_report_json(&result, &text);
    char *written = moon_arena_copy(&arena, value(), text.length);
    memcpy(strstr(written, "\"connector.9.2 too\""), "7                  ", 19);
    MOON_CHECK_INT(round_trip(written, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "is no string");
}

static void many_failures_are_cut_on_a_terminal_only(void) {
    begin();
    for (int i = 0; i < 40; i++)
        add("a.b.1", "a", MOON_OUTCOME_FAIL, "");
    moon_report_terminal(&result, false, &text);
    check_has("\n... and 15 more failures; --out DIR writes all of them\n");
}

static void no_writer_hides_that_memory_was_refused(void) {
    fill();
    const struct moon_result *runs[] = {&result};
    for (int form = 0; form < 5; form++) {
        bool done = false;
        for (uint64_t n = 1; !done && n < 5000; n += n < 50 ? 1 : 37) {
            struct moon_memory_failing failing;
            struct moon_text out;
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            moon_text_open(&out, &failing.memory);
            switch (form) {
            case 0:
                moon_report_json(&result, &out);
                break;
            case 1:
                moon_report_tap(&result, &out);
                break;
            case 2:
                moon_report_junit(&result, &out);
                break;
            case 3:
                moon_report_html(runs, 1, &out);
                break;
            default:
                moon_report_terminal(&result, false, &out);
            }
            done = failing.requests < n;
            CU_ASSERT(out.failed == !done);
            moon_text_close(&out);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
        CU_ASSERT(done);
    }
}

static const struct moon_unit_case cases[] = {
    {"the closing line counts each case once", the_closing_line_counts_each_case_once},
    {"the exit status follows the worst", the_exit_status_follows_the_worst},
    {"every outcome has a name and a side", every_outcome_has_a_name_and_a_side},
    {"JSON reads back as it was written", json_reads_back_as_it_was_written},
    {"JSON that is no result is refused", json_that_is_no_result_is_refused},
    {"TAP has plan, directives and blocks", tap_has_plan_directives_and_blocks},
    {"JUnit counts and escapes", junit_counts_and_escapes},
    {"HTML tells totals, failures and requirements", html_tells_totals_failures_and_requirements},
    {"the terminal shows failures in five lines", the_terminal_shows_failures_in_five_lines},
    {"every form names deviations", every_form_names_deviations},
    {"a deviation that is no text is refused", a_deviation_that_is_no_text_is_refused},
    {"many failures are cut on a terminal only", many_failures_are_cut_on_a_terminal_only},
    {"no writer hides that memory was refused", no_writer_hides_that_memory_was_refused},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    int status = moon_unit_main("reports", cases, argc, argv);
    moon_text_close(&text);
    moon_arena_close(&arena);
    return status;
}
