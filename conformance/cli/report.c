/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck report: makes one page out of the results.json files of runs. */
#include "conformance/cli/cli.h"
#include "reports/result.h"

enum { RUNS_MAX = 64 };

static const char *html_file;

static const struct moon_option options[] = {
    {.name = "html",
     .kind = MOON_OPTION_TEXT,
     .into = &html_file,
     .value = "FILE",
     .help = "file to write the page to; default: standard output"},
    {.name = NULL},
};

const struct moon_command moon_command_report = {
    .name = "report",
    .operands = "DIR|FILE...",
    .summary = "make one HTML page of the results of several runs",
    .details = "Each operand is a results.json file, or the folder that --out of a run wrote it to. The page needs no "
               "network and "
               "no script.\n\nExit status: 0, or 2 when an input is bad or the page cannot be written.",
    .options = options,
    .operands_min = 1,
    .operands_max = RUNS_MAX,
};

static int load(struct moon_arena *arena, const char *operand, struct moon_result *result, struct moon_error *error) {
    struct moon_json *document = NULL;
    const char *path = operand;
    if (moon_io_is_folder(operand))
        path = moon_arena_format(arena, "%s/results.json", operand);
    if (!path)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    int status = moon_io_read_json(arena, path, MOON_JSON_STRICT, &document, error);
    return status == 0 ? moon_result_read(arena, moon_io_source(path), document, result, error) : status;
}

static int make_page(struct moon_arena *arena, const char *const operands[], int count, struct moon_text *page,
                     struct moon_error *error) {
    struct moon_result *results = moon_arena_array(arena, (size_t)count, sizeof *results);
    const struct moon_result *pointers[RUNS_MAX];
    if (!results)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (int i = 0; i < count; i++) {
        if (load(arena, operands[i], &results[i], error) != 0)
            return error->status;
        pointers[i] = &results[i];
    }
    moon_report_html(pointers, (size_t)count, page);
    if (page->failed)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    return html_file ? moon_io_write(html_file, page->data, page->length, error)
                     : moon_io_print(page->data, page->length, error);
}

int moon_cli_report(const char *const operands[], int count) {
    struct moon_error error;
    struct moon_arena arena;
    struct moon_text page;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&page, moon_memory_heap());
    int exit_status = make_page(&arena, operands, count, &page, &error) == 0 ? MOON_EXIT_PASSED : moon_cli_fail(&error);
    moon_text_close(&page);
    moon_arena_close(&arena);
    return exit_status;
}
