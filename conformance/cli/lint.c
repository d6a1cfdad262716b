/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck lint: says what a person should know about configurations of engines, masters and owners. */
#include "conformance/cli/cli.h"

#include "ref/config/lint.h"

#include <string.h>

enum { INPUT_BYTES_MAX = 16 * 1024 * 1024 }; /* of one configuration file */

static const char *profile_name = "vllm-0.33", *explained;
static bool warnings_as_errors, as_json;

static const struct moon_option options[] = {
    {.name = "profile",
     .kind = MOON_OPTION_TEXT,
     .into = &profile_name,
     .value = "RELEASE",
     .help = "release that reads the files, where they name none; default vllm-0.33"},
    {.name = "warnings-as-errors",
     .kind = MOON_OPTION_FLAG,
     .into = &warnings_as_errors,
     .help = "exit 1 for warnings too"},
    {.name = "json", .kind = MOON_OPTION_FLAG, .into = &as_json, .help = "print the findings as JSON"},
    {.name = "explain",
     .kind = MOON_OPTION_TEXT,
     .into = &explained,
     .value = "ID",
     .help = "say what a finding means, or \"all\" for every one; needs no file"},
    {.name = NULL},
};

const struct moon_command moon_command_lint = {
    .name = "lint",
    .operands = "FILE...",
    .summary = "check configurations for what goes wrong without an error",
    .details =
        "FILE is a mooncake_config.json, a kv-transfer-config, a description of a deployment "
        "({\"engines\":[...],\"master\":{...},\"owners\":[...]}), or a script with the command lines of "
        "mooncake_master, "
        "mooncake_client and vllm serve; \"-\" is standard input. Files of one run are compared with each other.\n\n"
        "Every finding names its place, why it matters, what to do, and the public report that it resembles. "
        "Exit status: 0 without errors, 1 with errors, 2 for a file that cannot be read or is no JSON.",
    .options = options,
    .operands_min = 0,
    .operands_max = -1,
};

static int explain_rules(void) {
    struct moon_text text;
    size_t count = 0;
    const struct moon_lint_rule *all = moon_lint_rules(&count), *one = moon_lint_rule_find(explained);
    moon_text_open(&text, moon_memory_heap());
    if (strcmp(explained, "all") == 0)
        for (size_t i = 0; i < count; i++)
            moon_lint_explain(&all[i], &text);
    else if (one)
        moon_lint_explain(one, &text);
    int status = text.length > 0 || text.failed
                     ? moon_cli_print(&text)
                     : moon_cli_complain("there is no finding \"%s\"; try --explain all", explained);
    moon_text_close(&text);
    return status;
}

/* Reads the files; their bytes live in `arena`. */
static int read_inputs(struct moon_arena *arena, const char *const operands[], int count,
                       struct moon_lint_input inputs[], struct moon_error *error) {
    struct moon_text text;
    int status = MOON_OK;
    moon_text_open(&text, moon_memory_heap());
    for (int i = 0; i < count && !status; i++) {
        status = moon_io_read(operands[i], INPUT_BYTES_MAX, &text, error);
        if (status)
            break;
        inputs[i] = (struct moon_lint_input){moon_io_source(operands[i]),
                                             moon_arena_copy(arena, moon_text_value(&text), text.length), text.length};
        if (!inputs[i].bytes)
            status = moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    }
    moon_text_close(&text);
    return status;
}

static int print_report(struct moon_arena *arena, const struct moon_lint_report *report) {
    struct moon_text text;
    if (as_json)
        return moon_cli_print_json(moon_lint_json(arena, report));
    moon_text_open(&text, moon_memory_heap());
    moon_lint_write(report, &text);
    int status = moon_cli_print(&text);
    moon_text_close(&text);
    return status;
}

static int lint_files(struct moon_arena *arena, const char *const operands[], int count) {
    struct moon_error error = {0};
    struct moon_lint_report report;
    struct moon_lint_input inputs[MOON_LINT_INPUTS_MAX] = {{NULL, NULL, 0}};
    const struct moon_profile *profile = moon_profile_find(profile_name, &error);
    if (!profile || read_inputs(arena, operands, count, inputs, &error) ||
        moon_lint(arena, profile, inputs, (size_t)count, &report, &error))
        return moon_cli_fail(&error);
    int status = print_report(arena, &report);
    if (status)
        return status;
    for (const struct moon_lint_finding *one = report.first; one; one = one->next)
        if (strcmp(one->rule->id, "LINT-001") == 0)
            return moon_cli_complain("%s:%u:%u: no JSON, so it was not checked", one->source, one->line, one->column);
    bool failed = report.counts[MOON_LINT_ERROR] > 0 || (warnings_as_errors && report.counts[MOON_LINT_WARNING] > 0);
    return failed ? MOON_EXIT_FAILED : MOON_EXIT_PASSED;
}

int moon_cli_lint(const char *const operands[], int count) {
    if (explained && count == 0)
        return explain_rules();
    if (explained)
        return moon_cli_complain("--explain takes no files");
    if (count == 0)
        return moon_cli_complain("lint needs at least one file");
    if (count > MOON_LINT_INPUTS_MAX)
        return moon_cli_complain("lint takes at most %d files", MOON_LINT_INPUTS_MAX);
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    int status = lint_files(&arena, operands, count);
    moon_arena_close(&arena);
    return status;
}
