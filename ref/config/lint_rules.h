/* SPDX-License-Identifier: Apache-2.0 */
/* The table of findings that lint can make. */
#ifndef MOON_CONFIG_LINT_RULES_H
#define MOON_CONFIG_LINT_RULES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum moon_lint_severity {
    MOON_LINT_NOTE,    /* worth knowing, may well be meant */
    MOON_LINT_WARNING, /* works, but probably not as meant */
    MOON_LINT_ERROR,   /* does not start, never shares, loses data or reads another one's */
};
const char *moon_lint_severity_name(enum moon_lint_severity severity); /* "note", "warning", "error" */

/* One kind of finding (SPEC: the requirement of the same id). Static. */
struct moon_lint_rule {
    const char *id; /* "LINT-005" */
    enum moon_lint_severity severity;
    const char *title, *why, *fix;
    const char *reference; /* public reports, guide numbers, requirements */
};

/* All of them, sorted by id. */
const struct moon_lint_rule *moon_lint_rules(size_t *count);
/* Finds a rule by its id, case ignored; NULL if there is none. */
const struct moon_lint_rule *moon_lint_rule_find(const char *id);

#ifdef __cplusplus
}
#endif
#endif
