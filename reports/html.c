/* SPDX-License-Identifier: Apache-2.0 */
/* Results as one self-contained page: no network, no script; readable on a phone, in light and dark. */
#include "reports/markup.h"
#include "reports/result.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 128 };

static const char style[] =
    ":root{color-scheme:light dark;--fg:#1c2733;--bg:#fff;--dim:#5d6b79;--line:#d8dee5;--good:#1a7f37;--bad:#c62026;"
    "--warn:#8a5a00;--code:#f4f6f8}"
    "@media(prefers-color-scheme:dark){:root{--fg:#dfe6ee;--bg:#12171d;--dim:#94a1af;--line:#2e3843;--good:#57c26b;"
    "--bad:#ff7b78;--warn:#e0a93c;--code:#1b222a}}"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:0 "
    "auto;padding:1rem;max-width:70rem}"
    "h1{font-size:1.5rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}"
    "h3{font-size:1rem;margin:1.2rem 0 .4rem}"
    "p{margin:.4rem 0}.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}"
    ".banner{border:2px solid var(--warn);padding:.5rem 1rem;margin:1rem 0;font-weight:600}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}"
    "th,td{border:1px solid var(--line);padding:.25rem "
    ".5rem;text-align:right}th:first-child,td:first-child{text-align:left}"
    "td.left,th.left{text-align:left}"
    "dl{display:grid;grid-template-columns:6rem 1fr;gap:.2rem .6rem;margin:.4rem 0}dt{color:var(--dim)}"
    "dd{margin:0;overflow-wrap:anywhere}code,pre{font:.8125rem/1.45 ui-monospace,monospace;background:var(--code)}"
    "code{padding:.1rem .25rem;overflow-wrap:anywhere}details{margin:.4rem 0}summary{cursor:pointer}"
    ".case{border-left:3px solid var(--bad);padding:.2rem .8rem;margin:.8rem 0}"
    "@media(max-width:40rem){dl{grid-template-columns:1fr}dt{margin-top:.3rem}}";

/* A list of distinct names, in order of first appearance. */
struct names {
    const char *list[NAMES_MAX];
    size_t count;
};

static void add_name(struct names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return;
    if (names->count < NAMES_MAX)
        names->list[names->count++] = name;
}

static void sort_names(struct names *names) {
    for (size_t i = 1; i < names->count; i++) {
        const char *one = names->list[i];
        size_t at = i;
        for (; at > 0 && strcmp(names->list[at - 1], one) > 0; at--)
            names->list[at] = names->list[at - 1];
        names->list[at] = one;
    }
}

static void element(struct moon_text *out, const char *open, const char *text, const char *close) {
    moon_text_string(out, open);
    moon_markup_escape(out, text ? text : "");
    moon_text_string(out, close);
}

struct tally {
    size_t asked, passed, failed;
};

static void tally_case(struct tally *tally, const struct moon_result_case *one) {
    tally->asked++;
    tally->passed += one->outcome == MOON_OUTCOME_PASS;
    tally->failed += moon_outcome_is_failure(one->outcome);
}

static void tally_cell(struct moon_text *out, const struct tally *tally) {
    if (tally->asked == 0)
        moon_text_string(out, "<td class=\"dim\">-</td>");
    else if (tally->failed > 0)
        moon_text_format(out, "<td class=\"bad\">%zu of %zu failed</td>", tally->failed, tally->asked);
    else if (tally->passed == 0)
        moon_text_format(out, "<td class=\"warn\">%zu skipped</td>", tally->asked);
    else if (tally->passed < tally->asked)
        moon_text_format(out, "<td class=\"good\">%zu <span class=\"dim\">+%zu skipped</span></td>", tally->passed,
                         tally->asked - tally->passed);
    else
        moon_text_format(out, "<td class=\"good\">%zu</td>", tally->passed);
}

/* Suites down, profiles across. */
static void matrix(struct moon_text *out, const struct moon_result *result) {
    struct names suites = {0}, profiles = {0};
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        add_name(&suites, one->suite);
        add_name(&profiles, one->profile);
    }
    sort_names(&profiles);
    moon_text_string(out, "<div class=\"scroll\"><table><tr><th>suite</th>");
    for (size_t p = 0; p < profiles.count; p++)
        element(out, "<th>", profiles.list[p][0] ? profiles.list[p] : "all", "</th>");
    moon_text_string(out, "</tr>\n");
    for (size_t s = 0; s < suites.count; s++) {
        struct tally tallies[NAMES_MAX] = {{0, 0, 0}};
        for (const struct moon_result_case *one = result->first; one; one = one->next)
            for (size_t p = 0; p < profiles.count && strcmp(one->suite, suites.list[s]) == 0; p++)
                if (strcmp(one->profile, profiles.list[p]) == 0)
                    tally_case(&tallies[p], one);
        element(out, "<tr><td>", suites.list[s][0] ? suites.list[s] : "-", "</td>");
        for (size_t p = 0; p < profiles.count; p++)
            tally_cell(out, &tallies[p]);
        moon_text_string(out, "</tr>\n");
    }
    moon_text_string(out, "</table></div>\n");
}

static void row(struct moon_text *out, const char *label, const char *value, bool code) {
    if (!value || !value[0])
        return;
    moon_text_format(out, "<dt>%s</dt><dd>%s", label, code ? "<code>" : "");
    moon_markup_escape(out, value);
    moon_text_string(out, code ? "</code></dd>" : "</dd>");
}

static void failure(struct moon_text *out, const struct moon_result_case *one) {
    element(out, "<div class=\"case\"><h3><span class=\"bad\">", moon_outcome_name(one->outcome), "</span> ");
    element(out, "<code>", one->id, "</code> ");
    element(out, "<span class=\"dim\">", one->profile, "</span></h3><dl>");
    row(out, "required", one->required, false);
    row(out, "done", one->done, false);
    row(out, "expected", one->expected, true);
    row(out, "seen", one->seen, true);
    row(out, "reason", one->reason, false);
    row(out, "reproduce", one->reproduce, true);
    row(out, "resembles", one->resembles, false);
    for (size_t i = 0; i < one->deviation_count; i++)
        row(out, "deviates", one->deviations[i], false);
    moon_text_string(out, "</dl></div>\n");
}

static void failures(struct moon_text *out, const struct moon_result *result) {
    bool any = false;
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        if (!moon_outcome_is_failure(one->outcome))
            continue;
        if (!any)
            moon_text_string(out, "<h3>Failures</h3>\n");
        any = true;
        failure(out, one);
    }
}

/* Cases that were not judged, grouped by reason. */
static void unjudged(struct moon_text *out, const struct moon_result *result) {
    struct names reasons = {0};
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        if (one->outcome != MOON_OUTCOME_PASS && !moon_outcome_is_failure(one->outcome))
            add_name(&reasons, one->reason);
    if (reasons.count == 0)
        return;
    moon_text_string(out, "<h3>Skipped, known or unknown</h3>\n");
    for (size_t i = 0; i < reasons.count; i++) {
        size_t count = 0;
        for (const struct moon_result_case *one = result->first; one; one = one->next)
            count += one->outcome != MOON_OUTCOME_PASS && !moon_outcome_is_failure(one->outcome) &&
                     strcmp(one->reason, reasons.list[i]) == 0;
        moon_text_format(out, "<details><summary><span class=\"warn\">%zu</span> ", count);
        element(out, "", reasons.list[i], "</summary><p>");
        for (const struct moon_result_case *one = result->first; one; one = one->next)
            if (one->outcome != MOON_OUTCOME_PASS && !moon_outcome_is_failure(one->outcome) &&
                strcmp(one->reason, reasons.list[i]) == 0)
                element(out, "<code>", one->id, "</code> ");
        moon_text_string(out, "</p></details>\n");
    }
}

/* What real releases do wrong, by how many cases that pass or fail with it. */
static void deviations(struct moon_text *out, const struct moon_result *result) {
    struct moon_result_deviation found[MOON_RESULT_DEVIATIONS_MAX];
    size_t passed, count = moon_result_deviations(result, found, &passed);
    if (count == 0)
        return;
    moon_text_format(out,
                     "<h3>Deviations</h3>\n<p>%zu of the passed cases pass as real releases do wrong (ALT).</p>"
                     "<div class=\"scroll\"><table><tr><th>what releases do wrong</th><th>passed</th>"
                     "<th>failed</th></tr>\n",
                     passed);
    for (size_t i = 0; i < count; i++) {
        element(out, "<tr><td>", found[i].text, "</td>");
        moon_text_format(out, "<td class=\"warn\">%zu</td><td%s>%zu</td></tr>\n", found[i].passed,
                         found[i].failed > 0 ? " class=\"bad\"" : "", found[i].failed);
    }
    moon_text_string(out, "</table></div>\n");
}

/* One row a requirement that a case of this run cites. `required` of a case begins with "[ID LEVEL] ". */
static void requirements(struct moon_text *out, const struct moon_result *result) {
    struct names ids = {0};
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        if (one->requirement[0])
            add_name(&ids, one->requirement);
    if (ids.count == 0)
        return;
    sort_names(&ids);
    moon_text_format(out, "<details><summary>%zu requirements</summary><div class=\"scroll\"><table>", ids.count);
    moon_text_string(
        out, "<tr><th>requirement</th><th class=\"left\">level</th><th class=\"left\">rule</th><th>cases</th></tr>\n");
    for (size_t i = 0; i < ids.count; i++) {
        struct tally tally = {0, 0, 0};
        const struct moon_result_case *first = NULL;
        for (const struct moon_result_case *one = result->first; one; one = one->next) {
            if (strcmp(one->requirement, ids.list[i]) != 0)
                continue;
            first = first ? first : one;
            tally_case(&tally, one);
        }
        assert(first); /* each id came from a case */
        const char *title = strstr(first->required, "] ");
        element(out, "<tr><td>", ids.list[i], "</td>");
        element(out, "<td class=\"left\">", first->level, "</td>");
        element(out, "<td class=\"left\">", title ? title + 2 : first->required, "</td>");
        tally_cell(out, &tally);
        moon_text_string(out, "</tr>\n");
    }
    moon_text_string(out, "</table></div></details>\n");
}

static void facts(struct moon_text *out, const struct moon_result *result) {
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.1f s", (double)result->duration_ns / 1e9);
    moon_text_string(out, "<dl>");
    row(out, "command", result->command, true);
    row(out, "started", result->started, false);
    row(out, "took", seconds, false);
    row(out, "mode", result->mode, false);
    row(out, "seed", result->seed, false);
    row(out, "host", result->host, false);
    row(out, "vectors", result->digest, true);
    row(out, "homepage", result->target_homepage, false);
    moon_text_string(out, "</dl>\n");
}

static void run(struct moon_text *out, const struct moon_result *result) {
    element(out, "<h2>Target <code>", result->target, "</code> ");
    element(out, "", result->target_name, " ");
    element(out, "", result->target_version, "</h2>\n");
    if (result->incomplete_why[0])
        element(out, "<p class=\"banner\">INCOMPLETE: ", result->incomplete_why, "</p>\n");
    struct moon_text closing;
    moon_text_open(&closing, out->memory);
    moon_result_closing_line(result, &closing);
    element(out, moon_result_exit(result) == 1 ? "<p class=\"bad\"><strong>" : "<p class=\"good\"><strong>",
            moon_text_value(&closing), "</strong></p>\n");
    moon_text_close(&closing);
    matrix(out, result);
    failures(out, result);
    deviations(out, result);
    unjudged(out, result);
    requirements(out, result);
    facts(out, result);
}

void moon_report_html(const struct moon_result *const results[], size_t count, struct moon_text *out) {
    struct moon_result total = {0};
    bool incomplete = false;
    for (size_t i = 0; i < count; i++) {
        for (int o = 0; o < MOON_OUTCOME_COUNT; o++)
            total.counts[o] += results[i]->counts[o];
        incomplete |= results[i]->incomplete_why[0] != '\0';
    }
    int verdict = moon_result_exit(&total);
    struct moon_text closing;
    moon_text_open(&closing, out->memory);
    moon_result_closing_line(&total, &closing);
    moon_text_format(out,
                     "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                     "<title>mooncheck: %s</title><style>%s</style></head>\n<body>\n<h1>mooncheck report</h1>\n",
                     moon_text_value(&closing), style);
    if (incomplete)
        moon_text_string(
            out,
            "<p class=\"banner\">INCOMPLETE: a part of this report that was required is missing, see below.</p>\n");
    element(out, verdict == 1 ? "<p class=\"bad\"><strong>" : "<p class=\"good\"><strong>", moon_text_value(&closing),
            "</strong></p>\n");
    moon_text_string(
        out, "<p class=\"dim\">Does the implementation under test derive the same block hashes, keys, shards and "
             "segments as the published releases? Rows are suites, columns are the releases that the "
             "answers were recorded from.</p>\n");
    for (size_t i = 0; i < count; i++)
        run(out, results[i]);
    moon_text_string(out, "</body></html>\n");
    moon_text_close(&closing);
}
