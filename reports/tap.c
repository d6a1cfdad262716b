/* SPDX-License-Identifier: Apache-2.0 */
/* Results as TAP version 14. */
#include "reports/result.h"

#include <stdio.h>

/* A description or reason: '#' and '\' would start a directive or an escape. */
static void description(struct moon_text *out, const char *text) {
    for (const char *c = text; *c; c++) {
        if (*c == '#' || *c == '\\')
            moon_text_char(out, '\\');
        moon_text_char(out, *c == '\n' ? ' ' : *c);
    }
}

/* A YAML line with a double-quoted scalar, which has JSON's escapes. */
static void yaml(struct moon_text *out, const char *name, const char *value) {
    if (!value[0])
        return;
    struct moon_arena arena;
    moon_arena_open(&arena, out->memory);
    const struct moon_json *string = moon_json_string(&arena, value);
    moon_text_format(out, "  %s: ", name);
    if (string)
        moon_json_write(string, MOON_JSON_COMPACT, out);
    else
        out->failed = true;
    moon_text_char(out, '\n');
    moon_arena_close(&arena);
}

static void one_case(struct moon_text *out, size_t number, const struct moon_result_case *one) {
    bool good =
        one->outcome == MOON_OUTCOME_PASS || one->outcome == MOON_OUTCOME_SKIP || one->outcome == MOON_OUTCOME_UNKNOWN;
    moon_text_format(out, "%s %zu - ", good ? "ok" : "not ok", number);
    description(out, one->id);
    if (one->outcome == MOON_OUTCOME_SKIP || one->outcome == MOON_OUTCOME_UNKNOWN) {
        moon_text_string(out, one->outcome == MOON_OUTCOME_SKIP ? " # SKIP " : " # SKIP unknown: ");
        description(out, one->reason);
    } else if (one->outcome == MOON_OUTCOME_XFAIL) {
        moon_text_string(out, " # TODO ");
        description(out, one->reason);
    }
    moon_text_char(out, '\n');
    if (good && one->deviation_count == 0)
        return;
    moon_text_string(out, "  ---\n");
    yaml(out, "outcome", moon_outcome_name(one->outcome));
    yaml(out, "profile", one->profile);
    yaml(out, "requirement", one->requirement);
    yaml(out, "reason", one->reason);
    yaml(out, "required", one->required);
    yaml(out, "done", one->done);
    yaml(out, "expected", one->expected);
    yaml(out, "got", one->seen);
    yaml(out, "reproduce", one->reproduce);
    yaml(out, "resembles", one->resembles);
    for (size_t i = 0; i < one->deviation_count; i++) {
        char name[32] = "deviation"; /* the keys of a mapping differ */
        if (i > 0)
            snprintf(name, sizeof name, "deviation_%zu", i + 1);
        yaml(out, name, one->deviations[i]);
    }
    moon_text_string(out, "  ...\n");
}

void moon_report_tap(const struct moon_result *result, struct moon_text *out) {
    size_t count = 0;
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        count++;
    moon_text_format(out, "TAP version 14\n1..%zu", count);
    moon_text_string(out, count == 0 ? " # SKIP nothing was selected\n" : "\n");
    count = 0;
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        one_case(out, ++count, one);
    if (result->incomplete_why[0]) {
        moon_text_string(out, "# INCOMPLETE: ");
        description(out, result->incomplete_why);
        moon_text_char(out, '\n');
    }
    moon_text_string(out, "# ");
    moon_result_closing_line(result, out);
    moon_text_char(out, '\n');
}
