/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck bench connector: the connector's work as a table, beside a copy of the bytes and the release in Python. */
#include "conformance/bench_connector.h"
#include "conformance/bench_python.h"
#include "conformance/cli/bench_tables.h"
#include "conformance/cli/run_report.h"

#include <stdio.h>

enum { CELLS = 9, PYTHON_RUNS = 5 };
static const char *const titles[CELLS] = {"what",    "median us", "least us",  "most us", "each ns",
                                          "copy us", "/copy",     "python us", "/python"};
static const int widths[CELLS] = {-70, 10, 10, 10, 9, 9, 7, 11, 8};

/* All that is shown. python: 0 where it was not measured. */
struct shown {
    struct moon_bench_row rows[MOON_BENCH_SUBJECTS];
    uint64_t python_ns[MOON_BENCH_SUBJECTS];
    struct moon_bench_python python;
    const struct moon_profile *profile;
    const char *python_program, *host;
    uint32_t runs;
};

/* Asks the release for the same subject. One that it does not have is left out. */
static void measure_python(struct shown *shown, enum moon_bench_subject subject) {
    char question[128];
    struct moon_error error;
    int64_t ns = 0;
    snprintf(question, sizeof question, "{\"subject\":\"%s\",\"runs\":%d}\n", moon_bench_subject_name(subject),
             PYTHON_RUNS);
    const struct moon_json *answer = moon_bench_python_ask(&shown->python, question);
    if (!answer || moon_json_member(answer, "skip"))
        return;
    if (moon_json_get_int("python", answer, "ns", true, 1, INT64_MAX, &ns, &error) != 0)
        shown->python.skipped = "its answer is not understood";
    else
        shown->python_ns[subject] = (uint64_t)ns;
}

static void write_table(const struct shown *shown, bool markdown, struct moon_text *out) {
    moon_bench_cell cells[CELLS];
    moon_bench_titles(titles, widths, CELLS, markdown, out);
    for (size_t i = 0; i < MOON_BENCH_SUBJECTS; i++) {
        const struct moon_bench_row *row = &shown->rows[i];
        snprintf(cells[0], MOON_BENCH_CELL_BYTES, "%s", moon_bench_subject_text(row->subject));
        moon_bench_ratio(cells[1], row->time.median_ns, 1000, 1);
        moon_bench_ratio(cells[2], row->time.low_ns, 1000, 1);
        moon_bench_ratio(cells[3], row->time.high_ns, 1000, 1);
        moon_bench_ratio(cells[4], row->time.median_ns, row->units, 1);
        moon_bench_ratio(cells[5], row->floor.median_ns, 1000, 1);
        moon_bench_ratio(cells[6], row->time.median_ns, row->floor.median_ns, 1);
        moon_bench_ratio(cells[7], shown->python_ns[i], 1000, 1);
        moon_bench_ratio(cells[8], shown->python_ns[i], row->time.median_ns, 1);
        moon_bench_line(cells, widths, CELLS, markdown, out);
    }
}

static void write_all(const void *context, bool markdown, struct moon_text *out) {
    const struct shown *shown = context;
    write_table(shown, markdown, out);
    moon_text_format(out, "\nhost: %s\n", shown->host);
    moon_text_format(out, "each: a request of a step, a key of a lookup or job, a segment; %u runs, %s\n",
                     (unsigned)shown->runs, shown->profile->name);
    if (shown->python.skipped)
        moon_text_format(out, "SKIP /python: %s: %s\n", shown->python_program, shown->python.skipped);
}

static struct moon_json *build_json(struct moon_arena *arena, const struct shown *shown) {
    struct moon_json *root = moon_json_object(arena), *list = moon_json_array(arena);
    moon_json_set(arena, root, "host", moon_json_string(arena, shown->host));
    moon_json_set(arena, root, "profile", moon_json_string(arena, shown->profile->name));
    moon_json_set(arena, root, "python_skipped",
                  shown->python.skipped ? moon_json_string(arena, shown->python.skipped) : moon_json_null(arena));
    for (size_t i = 0; i < MOON_BENCH_SUBJECTS; i++) {
        const struct moon_bench_row *row = &shown->rows[i];
        struct moon_json *object = moon_json_push(list, moon_json_object(arena));
        moon_json_set(arena, object, "subject", moon_json_string(arena, moon_bench_subject_name(row->subject)));
        moon_json_set(arena, object, "unit", moon_json_string(arena, row->unit));
        moon_json_set(arena, object, "units", moon_json_uint(arena, row->units));
        moon_json_set(arena, object, "bytes", moon_json_uint(arena, row->bytes));
        moon_json_set(arena, object, "median_ns", moon_json_uint(arena, row->time.median_ns));
        moon_json_set(arena, object, "least_ns", moon_json_uint(arena, row->time.low_ns));
        moon_json_set(arena, object, "most_ns", moon_json_uint(arena, row->time.high_ns));
        moon_json_set(arena, object, "copy_ns", moon_json_uint(arena, row->floor.median_ns));
        moon_json_set(arena, object, "python_ns",
                      shown->python_ns[i] ? moon_json_uint(arena, shown->python_ns[i]) : moon_json_null(arena));
    }
    moon_json_set(arena, root, "rows", list);
    return root;
}

static void start_python(const struct moon_cli_bench *asked, struct shown *shown, struct moon_arena *arena) {
    const char *const words[] = {
        asked->python, asked->peer ? asked->peer : "conformance/adapters/vllm/bench_connector.py",
        "--sources",   asked->sources ? asked->sources : "build/deps/vllm",
        "--release",   shown->profile->version,
        NULL};
    moon_bench_python_start(&shown->python, arena, words);
}

int moon_cli_bench_connector(const struct moon_cli_bench *asked) {
    struct shown shown = {.python_program = asked->python, .runs = (uint32_t)asked->runs};
    struct moon_arena arena;
    struct moon_result host;
    struct moon_error error;
    int exit_status;
    shown.profile = moon_cli_profile(asked->release, &error);
    if (!shown.profile)
        return moon_cli_fail(&error);
    if (!shown.profile->store_namespace)
        return moon_cli_complain("bench connector: %s has no store shards; 0.30 and later can be measured",
                                 shown.profile->name);
    moon_arena_open(&arena, moon_memory_heap());
    moon_cli_open_result(&host, &arena, "ref");
    shown.host = host.host;
    start_python(asked, &shown, &arena);
    if (moon_bench_connector(shown.profile, shown.runs, moon_memory_heap(), shown.rows, &error) != 0) {
        exit_status = moon_cli_fail(&error);
    } else {
        for (int i = 0; i < MOON_BENCH_SUBJECTS; i++)
            measure_python(&shown, (enum moon_bench_subject)i);
        exit_status = moon_bench_show(asked, "Speed of the connector",
                                      "Written by `mooncheck bench connector`; `mooncheck bench --help` explains the "
                                      "columns.",
                                      write_all, &shown, build_json(&arena, &shown));
    }
    moon_bench_python_end(&shown.python);
    moon_arena_close(&arena);
    return exit_status;
}
