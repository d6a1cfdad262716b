/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JUnit XML: a testsuite for each suite, a testcase for each case. */
#include "reports/markup.h"
#include "reports/result.h"

#include <string.h>

static void attribute(struct moon_text *out, const char *name, const char *value) {
    moon_text_format(out, " %s=\"", name);
    moon_markup_escape(out, value ? value : "");
    moon_text_char(out, '"');
}

static void property(struct moon_text *out, const char *name, const char *value) {
    if (!value || !value[0])
        return;
    moon_text_string(out, "      <property");
    attribute(out, "name", name);
    attribute(out, "value", value);
    moon_text_string(out, "/>\n");
}

static bool is_failure_element(enum moon_outcome outcome) {
    return outcome == MOON_OUTCOME_FAIL || outcome == MOON_OUTCOME_XPASS;
}

/* What <testsuite> and <testsuites> count. */
struct totals {
    size_t tests, failures, errors, skipped;
    uint64_t duration_ns;
};

static struct totals count(const struct moon_result *result, const char *suite) {
    struct totals totals = {0};
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        if (suite && strcmp(one->suite, suite) != 0)
            continue;
        totals.tests++;
        totals.duration_ns += one->duration_ns;
        if (is_failure_element(one->outcome))
            totals.failures++;
        else if (moon_outcome_is_failure(one->outcome))
            totals.errors++;
        else if (one->outcome != MOON_OUTCOME_PASS)
            totals.skipped++;
    }
    return totals;
}

static void write_totals(struct moon_text *out, const struct totals *totals) {
    moon_text_format(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.6f\"", totals->tests,
                     totals->failures, totals->errors, totals->skipped, (double)totals->duration_ns / 1e9);
}

static void told(struct moon_text *out, const char *label, const char *value) {
    if (!value[0])
        return;
    moon_text_format(out, "%s: ", label);
    moon_markup_escape(out, value);
    moon_text_char(out, '\n');
}

static void verdict(struct moon_text *out, const struct moon_result_case *one) {
    if (one->outcome == MOON_OUTCOME_PASS)
        return;
    if (!moon_outcome_is_failure(one->outcome)) {
        moon_text_string(out, "      <skipped");
        attribute(out, "message", one->reason);
        moon_text_string(out, "/>\n");
        return;
    }
    const char *element = is_failure_element(one->outcome) ? "failure" : "error";
    moon_text_format(out, "      <%s", element);
    attribute(out, "type", moon_outcome_name(one->outcome));
    attribute(out, "message", one->seen[0] ? one->seen : one->reason);
    moon_text_char(out, '>');
    told(out, "required", one->required);
    told(out, "done", one->done);
    told(out, "expected", one->expected);
    told(out, "seen", one->seen);
    told(out, "reason", one->reason);
    told(out, "reproduce", one->reproduce);
    told(out, "resembles", one->resembles);
    moon_text_format(out, "</%s>\n", element);
}

static void testcase(struct moon_text *out, const struct moon_result_case *one) {
    moon_text_string(out, "    <testcase");
    attribute(out, "classname", one->suite[0] ? one->suite : "mooncheck");
    attribute(out, "name", one->id);
    moon_text_format(out, " time=\"%.6f\">\n", (double)one->duration_ns / 1e9);
    moon_text_string(out, "      <properties>\n");
    property(out, "outcome", moon_outcome_name(one->outcome));
    property(out, "profile", one->profile);
    property(out, "requirement", one->requirement);
    property(out, "level", one->level);
    for (size_t i = 0; i < one->deviation_count; i++)
        property(out, "deviation", one->deviations[i]);
    moon_text_string(out, "      </properties>\n");
    verdict(out, one);
    moon_text_string(out, "    </testcase>\n");
}

static void testsuite(struct moon_text *out, const struct moon_result *result, const char *suite) {
    struct totals totals = count(result, suite);
    moon_text_string(out, "  <testsuite");
    attribute(out, "name", suite[0] ? suite : "mooncheck");
    write_totals(out, &totals);
    attribute(out, "timestamp", result->started);
    moon_text_string(out, ">\n    <properties>\n");
    property(out, "target", result->target);
    property(out, "target_name", result->target_name);
    property(out, "target_version", result->target_version);
    property(out, "harness_version", result->harness_version);
    property(out, "command", result->command);
    property(out, "host", result->host);
    property(out, "mode", result->mode);
    property(out, "seed", result->seed);
    property(out, "digest", result->digest);
    property(out, "incomplete", result->incomplete_why);
    moon_text_string(out, "    </properties>\n");
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        if (strcmp(one->suite, suite) == 0)
            testcase(out, one);
    moon_text_string(out, "  </testsuite>\n");
}

static bool seen_before(const struct moon_result *result, const struct moon_result_case *one) {
    for (const struct moon_result_case *earlier = result->first; earlier != one; earlier = earlier->next)
        if (strcmp(earlier->suite, one->suite) == 0)
            return true;
    return false;
}

void moon_report_junit(const struct moon_result *result, struct moon_text *out) {
    struct totals totals = count(result, NULL);
    moon_text_string(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mooncheck\"");
    write_totals(out, &totals);
    moon_text_string(out, ">\n");
    const char *last = NULL; /* cases of a suite stand together, mostly: saves the long look back */
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        if ((!last || strcmp(last, one->suite) != 0) && !seen_before(result, one))
            testsuite(out, result, one->suite);
        last = one->suite;
    }
    moon_text_string(out, "</testsuites>\n");
}
