/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck compat: will two described deployments share their KV cache, and if not, what to change. */
#include "conformance/cli/cli.h"

#include "ref/config/compat.h"

#include <assert.h>
#include <string.h>

static bool as_json;
static const char *release_a, *release_b;

static const struct moon_option options[] = {
    {.name = "json", .kind = MOON_OPTION_FLAG, .into = &as_json, .help = "write the answer as one JSON object"},
    {.name = "profile-a",
     .kind = MOON_OPTION_TEXT,
     .into = &release_a,
     .value = "RELEASE",
     .help = "judge A as this release instead of the one it describes"},
    {.name = "profile-b",
     .kind = MOON_OPTION_TEXT,
     .into = &release_b,
     .value = "RELEASE",
     .help = "the same for B: what an upgrade would change"},
    {.name = NULL},
};

const struct moon_command moon_command_compat = {
    .name = "compat",
    .operands = "A.json B.json",
    .summary = "tell whether two deployments share their KV cache through the store",
    .details =
        "Each file describes one deployment: release, model, parallel sizes, KV cache shape, hashes, connector options "
        "and "
        "mooncake_config.json (its content, or a path relative to the description). The form is in "
        "ref/config/README.md and "
        "conformance/schema/compat.schema.json.\n\n"
        "The answer is fully, partly or not, for each direction, with the first reason, all further ones, and what to "
        "change. "
        "DANGER means that both use equal keys for different bytes: nothing crashes, and the model reads foreign "
        "KV.\n\n"
        "Exit status: 0 the two share fully in every direction that their roles allow; 1 anything else; 2 bad input.",
    .options = options,
    .operands_min = 2,
    .operands_max = 2,
};

enum { CONFIG_BYTES_MAX = 16 * 1024 * 1024 };

/* The file that a description names: relative paths start at the description's folder. */
static const char *config_file(struct moon_arena *arena, const char *description, const char *path) {
    const char *slash = strrchr(description, '/');
    if (path[0] == '/' || !slash)
        return path;
    return moon_arena_format(arena, "%.*s/%s", (int)(slash - description), description, path);
}

/* Reads a description and the configuration that it names; `config` owns the latter's bytes. */
static int read_side(struct moon_arena *arena, const char *path, const char *release, struct moon_text *config,
                     struct moon_compat_input *out, struct moon_error *error) {
    struct moon_json *document = NULL;
    int status = moon_io_read_json(arena, path, MOON_JSON_STRICT, &document, error);
    if (status)
        return status;
    *out = (struct moon_compat_input){.source = moon_io_source(path), .document = document, .release = release};
    const char *named = moon_compat_config_path(document);
    if (!named)
        return 0;
    const char *file = config_file(arena, path, named);
    if (!file)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    status = moon_io_read(file, CONFIG_BYTES_MAX, config, error);
    out->config = moon_text_value(config);
    out->config_length = config->length;
    return status;
}

static int answer(const struct moon_compat_report *report, struct moon_arena *arena) {
    int exit_status;
    if (as_json) {
        exit_status = moon_cli_print_json(moon_compat_json(arena, report));
    } else {
        struct moon_text text;
        moon_text_open(&text, moon_memory_heap());
        moon_compat_write(report, &text);
        exit_status = moon_cli_print(&text);
        moon_text_close(&text);
    }
    if (exit_status)
        return exit_status;
    return report->verdict == MOON_COMPAT_FULLY ? MOON_EXIT_PASSED : MOON_EXIT_FAILED;
}

int moon_cli_compat(const char *const operands[], int count) {
    struct moon_compat_input inputs[2] = {{0}};
    const char *const releases[2] = {release_a, release_b};
    struct moon_compat_report *report = NULL;
    struct moon_text configs[2];
    struct moon_error error;
    struct moon_arena arena;
    int status = 0;
    assert(count == 2); /* by the table of options */
    (void)count;
    moon_arena_open(&arena, moon_memory_heap());
    for (int side = 0; side < 2; side++)
        moon_text_open(&configs[side], moon_memory_heap());
    for (int side = 0; side < 2 && !status; side++)
        status = read_side(&arena, operands[side], releases[side], &configs[side], &inputs[side], &error);
    if (!status)
        status = moon_compat_compare(&arena, inputs, &report, &error);
    int exit_status = status ? moon_cli_fail(&error) : answer(report, &arena);
    for (int side = 0; side < 2; side++)
        moon_text_close(&configs[side]);
    moon_arena_close(&arena);
    return exit_status;
}
