/* SPDX-License-Identifier: Apache-2.0 */
/* Lint: telling inputs apart, collecting and sorting findings, small helpers of all checks. */
#include "ref/config/lint_internal.h"

#include "ref/config/python_number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SHOWN_BYTES_MAX = 80 };

/* ---- findings ---- */

/* Messages quote what users wrote: blanks for control characters, and no half character where the buffer ended. */
static void one_line(char *text, size_t capacity) {
    size_t length = strlen(text);
    if (length + 1 == capacity) {
        while (length > 0 && ((uint8_t)text[length - 1] & 0xC0) == 0x80)
            length--;
        text[length ? length - 1 : 0] = '\0';
    }
    for (; *text; text++)
        if ((uint8_t)*text < ' ' || *text == 0x7F)
            *text = ' ';
}

static void add_finding(struct lint *lint, const char *id, const enum moon_lint_severity *severity, const char *source,
                        uint32_t line, uint32_t column, const char *format, va_list arguments)
    __attribute__((format(printf, 7, 0)));

static void add_finding(struct lint *lint, const char *id, const enum moon_lint_severity *severity, const char *source,
                        uint32_t line, uint32_t column, const char *format, va_list arguments) {
    if (lint->status)
        return;
    char what[MOON_ERROR_MESSAGE_BYTES];
    vsnprintf(what, sizeof what, format, arguments);
    one_line(what, sizeof what);
    struct moon_lint_finding *finding = moon_arena_alloc(lint->arena, sizeof *finding);
    const char *copy = moon_arena_format(lint->arena, "%s", what);
    if (!finding || !copy) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    const struct moon_lint_rule *rule = moon_lint_rule_find(id);
    *finding = (struct moon_lint_finding){
        rule, severity ? *severity : rule->severity, source, line ? line : 1, column ? column : 1, copy, NULL};
    if (lint->report->last)
        lint->report->last->next = finding;
    else
        lint->report->first = finding;
    lint->report->last = finding;
}

void lint_find(struct lint *lint, const char *rule, const char *source, const struct moon_json *at, const char *format,
               ...) {
    va_list arguments;
    va_start(arguments, format);
    add_finding(lint, rule, NULL, source, at->line, at->column, format, arguments);
    va_end(arguments);
}

void lint_find_as(struct lint *lint, const char *rule, enum moon_lint_severity severity, const char *source,
                  const struct moon_json *at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_finding(lint, rule, &severity, source, at->line, at->column, format, arguments);
    va_end(arguments);
}

void lint_find_at(struct lint *lint, const char *rule, const char *source, uint32_t line, uint32_t column,
                  const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_finding(lint, rule, NULL, source, line, column, format, arguments);
    va_end(arguments);
}

static size_t input_number(const struct lint *lint, const char *source) {
    size_t i = 0;
    while (i < lint->input_count && strcmp(lint->inputs[i].name, source) != 0)
        i++;
    return i;
}

static int compare(const struct lint *lint, const struct moon_lint_finding *a, const struct moon_lint_finding *b) {
    size_t x = input_number(lint, a->source), y = input_number(lint, b->source);
    if (x != y)
        return x < y ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    int ids = strcmp(a->rule->id, b->rule->id);
    return ids ? ids : strcmp(a->what, b->what);
}

/* Merges two sorted lists. */
static struct moon_lint_finding *merge(const struct lint *lint, struct moon_lint_finding *a,
                                       struct moon_lint_finding *b) {
    struct moon_lint_finding *first = NULL, **tail = &first;
    while (a && b) {
        struct moon_lint_finding **smaller = compare(lint, a, b) <= 0 ? &a : &b;
        *tail = *smaller;
        tail = &(*tail)->next;
        *smaller = *tail;
    }
    *tail = a ? a : b;
    return first;
}

/* Bottom-up merge sort: runs[i] holds a sorted list of 2^i findings. Allocates nothing. */
static struct moon_lint_finding *sorted(const struct lint *lint, struct moon_lint_finding *list) {
    struct moon_lint_finding *runs[64] = {NULL}, *all = NULL;
    while (list) {
        struct moon_lint_finding *one = list;
        list = list->next;
        one->next = NULL;
        int i = 0;
        for (; runs[i]; i++) {
            one = merge(lint, runs[i], one);
            runs[i] = NULL;
        }
        runs[i] = one;
    }
    for (int i = 0; i < 64; i++)
        all = merge(lint, runs[i], all);
    return all;
}

/* Sorts, drops what was found twice (one configuration serves several engines), counts. */
static void finish(const struct lint *lint) {
    struct moon_lint_report *report = lint->report;
    report->first = sorted(lint, report->first);
    report->last = NULL;
    for (struct moon_lint_finding *at = report->first; at; at = at->next) {
        while (at->next && compare(lint, at, at->next) == 0)
            at->next = at->next->next;
        report->counts[at->severity]++;
        report->last = at;
    }
}

/* ---- helpers ---- */

const char *lint_show(struct lint *lint, const struct moon_json *value) {
    struct moon_text text;
    moon_text_open(&text, lint->arena->memory);
    moon_json_write(value, MOON_JSON_COMPACT, &text);
    const char *shown = NULL;
    if (text.length <= SHOWN_BYTES_MAX) {
        shown = moon_arena_format(lint->arena, "%s", moon_text_value(&text));
    } else {
        size_t cut = SHOWN_BYTES_MAX;
        while (cut > 0 && ((uint8_t)text.data[cut] & 0xC0) == 0x80) /* not inside a character */
            cut--;
        shown = moon_arena_format(lint->arena, "%.*s...", (int)cut, text.data);
    }
    if (!shown || text.failed)
        lint->status = MOON_ERR_MEMORY;
    moon_text_close(&text);
    return shown ? shown : "";
}

const char *lint_hint(struct lint *lint, const char *suggestion) {
    if (!suggestion)
        return "";
    const char *hint = moon_arena_format(lint->arena, "; did you mean \"%s\"?", suggestion);
    if (!hint)
        lint->status = MOON_ERR_MEMORY;
    return hint ? hint : "";
}

bool lint_reads_as_off(const char *text) {
    static const char *const words[] = {"false", "no", "off", "0", "n", "f", "none", "null", "disabled"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

bool lint_is_number(const char *text, int64_t min, int64_t max, int64_t *out) {
    int64_t value = 0;
    if (moon_python_int(text, strlen(text), &value) != MOON_OK || value < min || value > max)
        return false;
    *out = value;
    return true;
}

bool lint_is_host_port(const char *text, size_t length) {
    const char *colon = memrchr(text, ':', length);
    if (!colon || colon == text || (size_t)(colon - text) + 1 == length || length > 300)
        return false;
    int64_t port = 0;
    for (const char *at = colon + 1; at < text + length; at++) {
        if (*at < '0' || *at > '9' || port > 65535)
            return false;
        port = port * 10 + (*at - '0');
    }
    bool bracketed = text[0] == '[' && colon[-1] == ']';
    for (const char *at = text; at < colon; at++)
        if ((uint8_t)*at <= ' ' || *at == '/' || (*at == ':' && !bracketed))
            return false;
    return port >= 1 && port <= 65535;
}

int64_t lint_port_of(const char *text) {
    int64_t port = 0;
    if (!lint_is_host_port(text, strlen(text)))
        return 0;
    lint_is_number(strrchr(text, ':') + 1, 1, 65535, &port);
    return port;
}

const struct moon_json *lint_variable(const struct moon_json *env, const char *name) {
    const struct moon_json *value = moon_json_member(env, name);
    return moon_json_is(value, MOON_JSON_STRING) ? value : NULL;
}

const char *lint_environment_get(void *context, const char *name) {
    const struct moon_json *value = lint_variable(context, name);
    return value ? value->bytes : NULL;
}

/* ---- inputs ---- */

static bool is_deployment(const struct moon_json *document) {
    return moon_json_member(document, "engines") || moon_json_member(document, "owners") ||
           moon_json_member(document, "master") || moon_json_member(document, "tenant_quota_policy");
}

static bool is_kv_transfer(const struct moon_json *document) {
    return moon_json_member(document, "kv_connector") || moon_json_member(document, "kv_role") ||
           moon_json_member(document, "kv_connector_extra_config");
}

/* A kv-transfer-config alone: an engine of which nothing else is told. */
static void lone_kv_transfer(struct lint *lint, const struct moon_lint_input *input, const struct moon_json *document) {
    struct lint_engine *engine = moon_arena_alloc(lint->arena, sizeof *engine);
    if (!engine) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    engine->profile = lint->profile;
    engine->name = "engine";
    engine->at = engine->transfer = (struct lint_place){input->name, document};
    lint_engine(lint, engine);
}

static void lint_input(struct lint *lint, const struct moon_lint_input *input, struct moon_error *error) {
    struct moon_json *document = NULL;
    if (lint_looks_like_commands(input)) {
        document = lint_commands(lint, input);
        if (document)
            lint_deployment(lint, input->name, document);
        return;
    }
    struct moon_error broken = {0};
    int status =
        moon_json_read(lint->arena, input->name, input->bytes, input->length, MOON_JSON_PYTHON, &document, &broken);
    if (status == MOON_ERR_SYNTAX) {
        lint_store_config_file(lint, input);
    } else if (status) {
        lint->status = status;
        if (error)
            *error = broken;
    } else {
        lint_repeated_members(lint, input);
        if (is_deployment(document))
            lint_deployment(lint, input->name, document);
        else if (is_kv_transfer(document))
            lone_kv_transfer(lint, input, document);
        else
            lint_store_config_file(lint, input);
    }
}

int moon_lint(struct moon_arena *arena, const struct moon_profile *profile, const struct moon_lint_input inputs[],
              size_t count, struct moon_lint_report *report, struct moon_error *error) {
    struct lint lint = {.arena = arena, .profile = profile, .inputs = inputs, .input_count = count, .report = report};
    struct moon_error limit = {0};
    *report = (struct moon_lint_report){0};
    if (count > MOON_LINT_INPUTS_MAX)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "more than %d files in one run", MOON_LINT_INPUTS_MAX);
    for (; lint.input_at < count && !lint.status; lint.input_at++)
        lint_input(&lint, &inputs[lint.input_at], &limit);
    if (!lint.status)
        lint_daemons(&lint);
    if (!lint.status)
        lint_tenants(&lint);
    if (!lint.status)
        lint_cluster(&lint);
    if (!lint.status) {
        finish(&lint);
        return MOON_OK;
    }
    if (error && limit.status)
        *error = limit;
    else
        moon_fail(error, (enum moon_status)lint.status, NULL, "%s",
                  lint.status == MOON_ERR_LIMIT ? "too many engines, owners or connectors in one run"
                                                : moon_status_text(lint.status));
    return lint.status;
}

/* ---- output ---- */

void moon_lint_write(const struct moon_lint_report *report, struct moon_text *out) {
    for (const struct moon_lint_finding *at = report->first; at; at = at->next) {
        moon_text_format(out, "%s:%u:%u: %s: %s [%s]\n", at->source, at->line, at->column,
                         moon_lint_severity_name(at->severity), at->what, at->rule->id);
        moon_text_format(out, "    why: %s\n    fix: %s\n    see: %s\n", at->rule->why, at->rule->fix,
                         at->rule->reference);
    }
    moon_text_format(out, "%zu errors, %zu warnings, %zu notes\n", report->counts[MOON_LINT_ERROR],
                     report->counts[MOON_LINT_WARNING], report->counts[MOON_LINT_NOTE]);
}

static struct moon_json *finding_json(struct moon_arena *arena, const struct moon_lint_finding *finding) {
    struct moon_json *object = moon_json_object(arena);
    moon_json_set(arena, object, "id", moon_json_string(arena, finding->rule->id));
    moon_json_set(arena, object, "severity", moon_json_string(arena, moon_lint_severity_name(finding->severity)));
    moon_json_set(arena, object, "file", moon_json_string(arena, finding->source));
    moon_json_set(arena, object, "line", moon_json_int(arena, finding->line));
    moon_json_set(arena, object, "column", moon_json_int(arena, finding->column));
    moon_json_set(arena, object, "title", moon_json_string(arena, finding->rule->title));
    moon_json_set(arena, object, "what", moon_json_string(arena, finding->what));
    moon_json_set(arena, object, "why", moon_json_string(arena, finding->rule->why));
    moon_json_set(arena, object, "fix", moon_json_string(arena, finding->rule->fix));
    moon_json_set(arena, object, "reference", moon_json_string(arena, finding->rule->reference));
    return object;
}

struct moon_json *moon_lint_json(struct moon_arena *arena, const struct moon_lint_report *report) {
    struct moon_json *object = moon_json_object(arena);
    struct moon_json *findings = moon_json_set(arena, object, "findings", moon_json_array(arena));
    for (const struct moon_lint_finding *at = report->first; at; at = at->next)
        moon_json_push(findings, finding_json(arena, at));
    moon_json_set(arena, object, "errors", moon_json_uint(arena, report->counts[MOON_LINT_ERROR]));
    moon_json_set(arena, object, "warnings", moon_json_uint(arena, report->counts[MOON_LINT_WARNING]));
    moon_json_set(arena, object, "notes", moon_json_uint(arena, report->counts[MOON_LINT_NOTE]));
    return moon_json_broken(object) ? NULL : object;
}

void moon_lint_explain(const struct moon_lint_rule *rule, struct moon_text *out) {
    moon_text_format(out, "%s %s: %s\n    why: %s\n    fix: %s\n    see: %s\n", rule->id,
                     moon_lint_severity_name(rule->severity), rule->title, rule->why, rule->fix, rule->reference);
}
