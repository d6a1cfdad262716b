/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of mooncheck compat: exit statuses of the examples, bad files, and the schema beside the reader. */
#include "conformance/cli/cli.h"
#include "conformance/schema.h"
#include "ref/base/random.h"
#include "ref/base/unit.h"

#include "ref/config/compat_cases.inc"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define EXAMPLES "fixtures/compat/"

/* Runs the command with its output thrown away. */
static int run(const char *a, const char *b, const char *flag) {
    const char *argv[4] = {a, b, flag, NULL}, *operands[4];
    struct moon_error error;
    int count = 0;
    int status = moon_options_parse(&moon_command_compat, flag ? 3 : 2, (char *const *)argv, operands, &count, &error);
    CU_ASSERT_EQUAL_FATAL(status, 0);
    fflush(NULL);
    int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    int exit_status = moon_cli_compat(operands, count);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    close(out);
    close(err);
    close(nowhere);
    return exit_status;
}

static void examples_have_the_exit_status_of_their_verdict(void) {
    static const struct {
        const char *a, *b;
        int exit_status;
    } pairs[] = {
        {EXAMPLES "fully-prefill-tp4.json", EXAMPLES "fully-decode-tp2.json", MOON_EXIT_PASSED},
        {EXAMPLES "partly-old.json", EXAMPLES "partly-new.json", MOON_EXIT_FAILED},
        {EXAMPLES "partly-window-dense.json", EXAMPLES "partly-window-sparse.json", MOON_EXIT_FAILED},
        {EXAMPLES "not-seed-7.json", EXAMPLES "not-seed-007.json", MOON_EXIT_FAILED},
        {EXAMPLES "not-isolated-mla.json", EXAMPLES "not-plain-mla.json", MOON_EXIT_FAILED},
        {EXAMPLES "danger-bf16.json", EXAMPLES "danger-fp8.json", MOON_EXIT_FAILED},
        {EXAMPLES "danger-tp1.json", EXAMPLES "danger-tp2.json", MOON_EXIT_FAILED},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        MOON_CHECK_INT(run(pairs[i].a, pairs[i].b, NULL), pairs[i].exit_status);
        MOON_CHECK_INT(run(pairs[i].b, pairs[i].a, "--json"), pairs[i].exit_status);
        MOON_CHECK_INT(run(pairs[i].a, pairs[i].a, "--json=false"), MOON_EXIT_PASSED);
    }
}

static void an_upgrade_can_be_asked_about(void) {
    MOON_CHECK_INT(run(EXAMPLES "partly-old.json", EXAMPLES "partly-new.json", "--profile-a=0.33"), MOON_EXIT_PASSED);
    MOON_CHECK_INT(run(EXAMPLES "partly-old.json", EXAMPLES "partly-new.json", "--profile-a=0.1"), MOON_EXIT_BAD);
}

static void write_file(const char *path, const char *text) {
    struct moon_error error;
    CU_ASSERT_EQUAL_FATAL(moon_io_write(path, text, strlen(text), &error), 0);
}

static void bad_files_are_bad_input(void) {
    char folder[] = "/tmp/mooncheck-compat-XXXXXX", path[64], config[64];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.json", folder);
    snprintf(config, sizeof config, "%s/c.json", folder);
    MOON_CHECK_INT(run(path, path, NULL), MOON_EXIT_BAD);
    MOON_CHECK_INT(run(folder, folder, NULL), MOON_EXIT_BAD);
    write_file(path, "{");
    MOON_CHECK_INT(run(path, path, NULL), MOON_EXIT_BAD);
    write_file(path, "[]");
    MOON_CHECK_INT(run(path, path, NULL), MOON_EXIT_BAD);
    write_file(path, "{\"profile\":\"vllm-0.33\",\"model\":\"m\",\"kv\":{\"heads\":1},\"mooncake\":\"c.json\"}");
    MOON_CHECK_INT(run(path, path, NULL), MOON_EXIT_BAD);
    write_file(config, "{}"); /* beside the description */
    MOON_CHECK_INT(run(path, path, NULL), MOON_EXIT_PASSED);
    write_file(config, "no JSON: the engine does not start");
    MOON_CHECK_INT(run(path, path, NULL), MOON_EXIT_FAILED);
    remove(config);
    remove(path);
    rmdir(folder);
}

/* ---- the schema ---- */

static int check(struct moon_schema *schema, struct moon_arena *arena, const char *text, size_t length) {
    struct moon_json *document = NULL;
    struct moon_error error = {0};
    CU_ASSERT_EQUAL_FATAL(moon_json_read(arena, "x", text, length, MOON_JSON_STRICT, &document, &error), 0);
    int status = moon_schema_check(schema, NULL, "x", document, &error);
    if (status && strstr(error.message, "unknown") == NULL)
        fprintf(stderr, "%s: %s\n", error.where, error.message);
    return status;
}

static void the_schema_takes_what_the_reader_takes(void) {
    struct moon_random random;
    struct moon_arena arena;
    struct moon_schema schema;
    struct moon_error error;
    moon_random_seed(&random, 5);
    moon_arena_open(&arena, moon_memory_heap());
    CU_ASSERT_EQUAL_FATAL(moon_schema_open(&schema, &arena, "compat", &error), 0);
    for (int i = 0; i < 300; i++) {
        struct moon_text texts[2];
        open_random_cases(&random, texts);
        for (int side = 0; side < 2; side++) {
            MOON_CHECK_INT(check(&schema, &arena, texts[side].data, texts[side].length), 0);
            moon_text_close(&texts[side]);
        }
    }
    static const char *const unknown[] = {
        "{\"profile\":\"0.33\",\"model\":\"m\",\"kv\":{\"heads\":1},\"x\":1}",
        "{\"profile\":\"0.33\",\"model\":\"m\",\"kv\":{\"heads\":1,\"x\":1}}",
        "{\"profile\":\"0.33\",\"model\":\"m\",\"kv\":{\"heads\":1,\"groups\":[{\"kind\":\"full\",\"x\":1}]}}",
        "{\"profile\":\"0.33\",\"model\":\"m\",\"kv\":{\"heads\":1},\"request\":{\"lora\":{\"name\":\"a\",\"x\":1}}}",
    };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        MOON_CHECK_INT(check(&schema, &arena, unknown[i], strlen(unknown[i])), MOON_ERR_SCHEMA);
    moon_schema_close(&schema);
    moon_arena_close(&arena);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"examples have the exit status of their verdict", examples_have_the_exit_status_of_their_verdict},
        {"bad files are bad input", bad_files_are_bad_input},
        {"the schema takes what the reader takes", the_schema_takes_what_the_reader_takes},
        {"an upgrade can be asked about", an_upgrade_can_be_asked_about}, /* last: options stay set */
        {NULL, NULL},
    };
    return moon_unit_main("compat command", cases, argc, argv);
}
