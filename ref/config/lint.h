/* SPDX-License-Identifier: Apache-2.0 */
/* Lint: reads configurations of engines, masters and owners, and says what a person should know about them. */
#ifndef MOON_CONFIG_LINT_H
#define MOON_CONFIG_LINT_H

#include "ref/base/json.h"
#include "ref/config/lint_rules.h"
#include "ref/key/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_LINT_INPUTS_MAX = 64,   /* files in one run */
    MOON_LINT_ENGINES_MAX = 256, /* engines in all files; each is compared with each */
    MOON_LINT_OWNERS_MAX = 256,
};

/* One file, already read. Borrowed; must outlive the report. */
struct moon_lint_input {
    const char *name; /* as shown in places */
    const char *bytes;
    size_t length;
};

/* One finding. Texts live in the report's arena.
 *   line, column  from 1; column in bytes
 *   what          the sentence about this place
 *   severity      the rule's, or a milder one where the case is harmless */
struct moon_lint_finding {
    const struct moon_lint_rule *rule;
    enum moon_lint_severity severity;
    const char *source;
    uint32_t line, column;
    const char *what;
    struct moon_lint_finding *next;
};

struct moon_lint_report {
    struct moon_lint_finding *first, *last; /* sorted by input, line, column, id */
    size_t counts[3];                       /* by severity */
};

/* Lints all inputs together: files of one deployment are compared with each other (LINT-200).
 *   profile   release of inputs that name none
 * Returns 0 (with any number of findings); MOON_ERR_LIMIT for an input that is too large, too deep or has too many
 * parts; or MOON_ERR_MEMORY. A file that the release would refuse is a finding, not an error. Thread rule: none,
 * touches only its arguments. */
int moon_lint(struct moon_arena *arena, const struct moon_profile *profile, const struct moon_lint_input inputs[],
              size_t count, struct moon_lint_report *report, struct moon_error *error);

/* Writes findings for people: place, severity, what, then why, fix and reference on lines of their own. */
void moon_lint_write(const struct moon_lint_report *report, struct moon_text *out);
/* The report as JSON: {"findings":[...],"errors":n,"warnings":n,"notes":n}. NULL when memory refused. */
struct moon_json *moon_lint_json(struct moon_arena *arena, const struct moon_lint_report *report);
/* What a rule is about, for --explain. */
void moon_lint_explain(const struct moon_lint_rule *rule, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
