/* SPDX-License-Identifier: Apache-2.0 */
/* Results for a person on a terminal: totals, then each failure in five lines, then the closing line. */
#include "reports/result.h"

#include <string.h>

enum { FAILURES_SHOWN = 25, PROFILES_MAX = 64 };

struct colours {
    const char *good, *bad, *dim, *bold, *end;
};

static void line(struct moon_text *out, const struct colours *colour, const char *label, const char *value) {
    if (value[0])
        moon_text_format(out, "  %s%-10s%s %s\n", colour->dim, label, colour->end, value);
}

static void failure(struct moon_text *out, const struct colours *colour, const struct moon_result_case *one) {
    moon_text_format(out, "\n%s%s%s %s%s%s", colour->bad, moon_outcome_name(one->outcome), colour->end, colour->bold,
                     one->id, colour->end);
    moon_text_format(out, one->profile[0] ? " (%s)\n" : "%s\n", one->profile);
    line(out, colour, "required", one->required);
    line(out, colour, "done", one->done);
    line(out, colour, "expected", one->expected);
    line(out, colour, "seen", one->seen[0] ? one->seen : one->reason);
    line(out, colour, "reproduce", one->reproduce);
    line(out, colour, "resembles", one->resembles);
    for (size_t i = 0; i < one->deviation_count; i++)
        line(out, colour, "deviates", one->deviations[i]);
}

/* Each deviation once, with how often. */
static void deviations(struct moon_text *out, const struct colours *colour, const struct moon_result *result) {
    struct moon_result_deviation found[MOON_RESULT_DEVIATIONS_MAX];
    size_t passed, count = moon_result_deviations(result, found, &passed);
    if (passed > 0)
        moon_text_format(out, "%zu of the passed cases pass as real releases do wrong (ALT):\n", passed);
    for (size_t i = 0; i < count; i++) {
        if (found[i].passed > 0)
            moon_text_format(out, "  %5zu %s%s%s\n", found[i].passed, colour->dim, found[i].text, colour->end);
        if (found[i].failed > 0)
            moon_text_format(out, "  %5zu failed: %s%s%s\n", found[i].failed, colour->dim, found[i].text, colour->end);
    }
}

/* Reasons of skipped cases, each once, with how often. */
static void skips(struct moon_text *out, const struct moon_result *result) {
    const char *seen[PROFILES_MAX];
    size_t count = 0;
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        if (one->outcome != MOON_OUTCOME_SKIP && one->outcome != MOON_OUTCOME_UNKNOWN)
            continue;
        size_t i = 0, times = 0;
        while (i < count && strcmp(seen[i], one->reason) != 0)
            i++;
        if (i < count || count == PROFILES_MAX)
            continue;
        seen[count++] = one->reason;
        for (const struct moon_result_case *same = one; same; same = same->next)
            times += same->outcome == one->outcome && strcmp(same->reason, one->reason) == 0;
        moon_text_format(out, "%s %zu: %s\n", one->outcome == MOON_OUTCOME_SKIP ? "skipped" : "unknown", times,
                         one->reason);
    }
}

/* One row a suite: how many passed of how many that were asked. */
static void suites(struct moon_text *out, const struct moon_result *result) {
    const char *seen[PROFILES_MAX];
    size_t count = 0;
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        size_t i = 0, passed = 0, failed = 0, other = 0;
        while (i < count && strcmp(seen[i], one->suite) != 0)
            i++;
        if (i < count || count == PROFILES_MAX)
            continue;
        seen[count++] = one->suite;
        for (const struct moon_result_case *same = one; same; same = same->next) {
            if (strcmp(same->suite, one->suite) != 0)
                continue;
            passed += same->outcome == MOON_OUTCOME_PASS;
            failed += moon_outcome_is_failure(same->outcome);
            other += same->outcome != MOON_OUTCOME_PASS && !moon_outcome_is_failure(same->outcome);
        }
        moon_text_format(out, "  %-12s %5zu passed %5zu failed %5zu skipped\n", one->suite[0] ? one->suite : "-",
                         passed, failed, other);
    }
}

void moon_report_terminal(const struct moon_result *result, bool colour, struct moon_text *out) {
    static const struct colours plain = {"", "", "", "", ""},
                                bright = {"\033[32m", "\033[31m", "\033[2m", "\033[1m", "\033[0m"};
    const struct colours *use = colour ? &bright : &plain;
    moon_text_format(out, "target %s", result->target);
    if (result->target_name[0])
        moon_text_format(out, ": %s %s", result->target_name, result->target_version);
    moon_text_string(out, strcmp(result->mode, "strict") == 0 ? ", mode strict\n" : "\n");
    suites(out, result);
    size_t failed = 0;
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        if (moon_outcome_is_failure(one->outcome) && failed++ < FAILURES_SHOWN)
            failure(out, use, one);
    if (failed > FAILURES_SHOWN)
        moon_text_format(out, "\n... and %zu more failures; --out DIR writes all of them\n", failed - FAILURES_SHOWN);
    if (failed > 0)
        moon_text_char(out, '\n');
    deviations(out, use, result);
    skips(out, result);
    if (result->incomplete_why[0])
        moon_text_format(out, "%sINCOMPLETE%s: %s\n", use->bad, use->end, result->incomplete_why);
    moon_text_string(out, failed > 0 ? use->bad : use->good);
    moon_result_closing_line(result, out);
    moon_text_format(out, "%s\n", use->end);
}
