/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: every finding of lint is made on its bad example in fixtures/lint/examples.json and not on its good one. */
#include "ref/config/lint.h"

#include "ref/base/unit.h"

static struct moon_arena files; /* what was read once */

/* A file below the folder that the tests are run from. */
static struct moon_lint_input read_file(const char *path) {
    struct moon_lint_input input = {path, "", 0};
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s cannot be read; tests run in the root of the repository\n", path);
        return input;
    }
    static char bytes[1 << 20];
    input.length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    input.bytes = moon_arena_copy(&files, bytes, input.length);
    return input;
}

static const struct moon_json *examples(void) {
    struct moon_json *document = NULL;
    struct moon_lint_input input = read_file("fixtures/lint/examples.json");
    MOON_CHECK_INT(moon_json_read(&files, input.name, input.bytes, input.length, MOON_JSON_STRICT, &document, NULL),
                   MOON_OK);
    return moon_json_member(document, "examples");
}

/* Findings of the kind `id` in an example: a text is a file as it is, anything else is written as JSON. */
static size_t count_findings(const struct moon_json *example, const char *side, const char *id) {
    const struct moon_json *content = moon_json_member(example, side), *profile = moon_json_member(example, "profile");
    struct moon_arena arena;
    struct moon_text text;
    struct moon_lint_report report = {0};
    size_t count = 0;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    if (content->type == MOON_JSON_STRING)
        moon_text_bytes(&text, content->bytes, content->length);
    else
        moon_json_write(content, MOON_JSON_PRETTY, &text);
    struct moon_lint_input input = {side, moon_text_value(&text), text.length};
    MOON_CHECK_INT(
        moon_lint(&arena, moon_profile_find(profile ? profile->bytes : "vllm-0.33", NULL), &input, 1, &report, NULL),
        MOON_OK);
    for (const struct moon_lint_finding *at = report.first; at; at = at->next)
        count += strcmp(at->rule->id, id) == 0;
    moon_text_close(&text);
    moon_arena_close(&arena);
    return count;
}

static void every_finding_is_made_on_its_bad_example_only(void) {
    for (const struct moon_json *one = examples()->first; one; one = one->next) {
        const char *id = moon_json_member(one, "id")->bytes;
        if (count_findings(one, "bad", id) == 0 || count_findings(one, "good", id) != 0) {
            fprintf(stderr, "%s: bad example %zu, good example %zu\n", id, count_findings(one, "bad", id),
                    count_findings(one, "good", id));
            CU_FAIL("a finding is missing, or made where it must not be");
        }
    }
}

static void every_finding_has_an_example(void) {
    size_t count = 0;
    const struct moon_lint_rule *rules = moon_lint_rules(&count);
    const struct moon_json *all = examples();
    for (size_t i = 0; i < count; i++) {
        const struct moon_json *one = all->first;
        while (one && !moon_json_is_string(moon_json_member(one, "id"), rules[i].id))
            one = one->next;
        if (!one)
            fprintf(stderr, "%s has no example\n", rules[i].id);
        CU_ASSERT_PTR_NOT_NULL(one);
    }
}

/* Errors and warnings of some files linted together. */
static void lint_files(const char *const paths[], size_t count, size_t *errors, size_t *warnings) {
    struct moon_arena arena;
    struct moon_lint_report report = {0};
    struct moon_lint_input inputs[4];
    for (size_t i = 0; i < count; i++)
        inputs[i] = read_file(paths[i]);
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_lint(&arena, moon_profile_find("vllm-0.33", NULL), inputs, count, &report, NULL), MOON_OK);
    *errors = report.counts[MOON_LINT_ERROR];
    *warnings = report.counts[MOON_LINT_WARNING];
    moon_arena_close(&arena);
}

static void good_files_have_neither_errors_nor_warnings(void) {
    static const char *const paths[] = {"fixtures/lint/good/start.sh", "fixtures/lint/good/mooncake_config.json",
                                        "fixtures/lint/good/deployment.json",
                                        "fixtures/lint/good/kv_transfer_decode.json"};
    size_t errors = 0, warnings = 0;
    lint_files(paths, 2, &errors, &warnings);
    MOON_CHECK_INT(errors + warnings, 0);
    lint_files(paths + 2, 1, &errors, &warnings);
    MOON_CHECK_INT(errors + warnings, 0);
    lint_files(paths + 3, 1, &errors, &warnings);
    MOON_CHECK_INT(errors + warnings, 0);
}

static void bad_files_have_errors(void) {
    static const char *const paths[] = {"fixtures/lint/bad/start.sh", "fixtures/lint/bad/mooncake_config.json",
                                        "fixtures/lint/bad/deployment.json",
                                        "fixtures/lint/bad/kv_transfer_decode.json"};
    size_t errors = 0, warnings = 0;
    for (size_t i = 0; i < 4; i++) {
        lint_files(paths + i, 1, &errors, &warnings);
        CU_ASSERT(errors > 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every finding is made on its bad example only", every_finding_is_made_on_its_bad_example_only},
        {"every finding has an example", every_finding_has_an_example},
        {"good files have neither errors nor warnings", good_files_have_neither_errors_nor_warnings},
        {"bad files have errors", bad_files_have_errors},
        {NULL, NULL},
    };
    moon_arena_open(&files, moon_memory_heap());
    int status = moon_unit_main("ref/config/lint_examples", cases, argc, argv);
    moon_arena_close(&files);
    return status;
}
