/* SPDX-License-Identifier: Apache-2.0 */
/* What the subjects of `mooncheck bench` share: writing a table for a terminal or as Markdown. */
#include "conformance/cli/bench_tables.h"

#include <assert.h>
#include <stdio.h>

void moon_bench_ratio(moon_bench_cell cell, uint64_t a, uint64_t b, int digits) {
    uint64_t scale = digits == 1 ? 10 : 100, value = b ? (a * scale + b / 2) / b : 0;
    if (b == 0 || a == 0)
        snprintf(cell, MOON_BENCH_CELL_BYTES, "-");
    else
        snprintf(cell, MOON_BENCH_CELL_BYTES, "%llu.%0*llu", (unsigned long long)(value / scale), digits,
                 (unsigned long long)(value % scale));
}

static void write_line(const char *const texts[], const int widths[], size_t count, bool markdown,
                       struct moon_text *out) {
    for (size_t i = 0; i < count; i++)
        if (markdown)
            moon_text_format(out, "| %s ", texts[i]);
        else
            moon_text_format(out, "%s%*s", i ? " " : "", widths[i], texts[i]);
    moon_text_string(out, markdown ? "|\n" : "\n");
}

void moon_bench_titles(const char *const titles[], const int widths[], size_t count, bool markdown,
                       struct moon_text *out) {
    write_line(titles, widths, count, markdown, out);
    if (!markdown)
        return;
    for (size_t i = 0; i < count; i++)
        moon_text_string(out, widths[i] < 0 ? "| --- " : "| ---: ");
    moon_text_string(out, "|\n");
}

void moon_bench_line(const moon_bench_cell cells[], const int widths[], size_t count, bool markdown,
                     struct moon_text *out) {
    const char *texts[MOON_BENCH_CELLS_MAX];
    assert(count <= MOON_BENCH_CELLS_MAX);
    for (size_t i = 0; i < count; i++)
        texts[i] = cells[i];
    write_line(texts, widths, count, markdown, out);
}

static int write_markdown(const char *path, const char *title, const char *intro,
                          void (*write)(const void *context, bool markdown, struct moon_text *out),
                          const void *context) {
    struct moon_text text;
    struct moon_error error;
    moon_text_open(&text, moon_memory_heap());
    moon_text_format(&text, "# %s\n\n%s\n\n", title, intro);
    write(context, true, &text);
    int status = text.failed ? moon_fail(&error, MOON_ERR_MEMORY, NULL, "out of memory")
                             : moon_io_write(path, text.data, text.length, &error);
    moon_text_close(&text);
    return status ? moon_cli_fail(&error) : 0;
}

int moon_bench_show(const struct moon_cli_bench *asked, const char *title, const char *intro,
                    void (*write)(const void *context, bool markdown, struct moon_text *out), const void *context,
                    const struct moon_json *json) {
    struct moon_text text;
    if (asked->out && write_markdown(asked->out, title, intro, write, context) != 0)
        return MOON_EXIT_BAD;
    if (asked->json)
        return moon_cli_print_json(json);
    moon_text_open(&text, moon_memory_heap());
    write(context, false, &text);
    int exit_status = moon_cli_print(&text);
    moon_text_close(&text);
    return exit_status;
}
