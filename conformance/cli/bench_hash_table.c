/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck bench hash: block hash chains as a table. */
#include "conformance/bench_hash.h"
#include "conformance/bench_python.h"
#include "conformance/cli/bench_tables.h"
#include "conformance/cli/run_report.h"

#include <stdio.h>
#include <string.h>

/* One setting, measured. */
struct row {
    struct moon_bench_setting setting;
    struct moon_bench_times times;
    uint64_t python_ns; /* for as many blocks; 0: not measured */
};

enum { SETTINGS = MOON_HASH_ALGORITHMS * 3, PYTHON_RUNS = 3 };
static const uint32_t block_sizes[] = {16, 64, 256};

/* ---- the Python side ---- */

/* Where the answers come from, and whether it computed another hash than we did. */
struct python {
    struct moon_bench_python program;
    bool differs;
};

/* Asks for the same chain, and reads {"ns","last"}. */
static void measure_python(struct python *python, struct row *row) {
    char question[256];
    const char *last = NULL;
    struct moon_error error;
    int64_t ns = 0;
    snprintf(question, sizeof question, "{\"algo\":\"%s\",\"block_size\":%u,\"tokens\":%zu,\"runs\":%d}\n",
             moon_hash_algorithm_name(row->setting.algorithm), (unsigned)row->setting.block_tokens, row->setting.tokens,
             PYTHON_RUNS);
    const struct moon_json *answer = moon_bench_python_ask(&python->program, question);
    if (!answer)
        return;
    if (moon_json_get_int("python", answer, "ns", true, 1, INT64_MAX, &ns, &error) != 0 ||
        moon_json_get_string("python", answer, "last", true, &last, NULL, &error) != 0) {
        python->program.skipped = "its answer is not understood";
        return;
    }
    const struct moon_json *ours =
        moon_json_hex(python->program.arena, row->times.last, moon_hash_algorithm_bytes(row->setting.algorithm));
    python->differs = python->differs || !moon_json_is_string(ours, last);
    row->python_ns = (uint64_t)ns;
}

/* ---- the table ---- */

enum { CELLS = 9 };
static const char *const titles[CELLS] = {"algorithm", "block",  "chains", "tokens/s", "blocks/s",
                                          "ns/block",  "digest", "/limit", "/python"};
static const int widths[CELLS] = {-11, 5, 6, 12, 11, 9, 6, 6, 8};

static uint64_t per_second(uint64_t count, uint64_t ns) {
    return (uint64_t)((unsigned __int128)count * 1000000000 / ns);
}

static void fill_cells(moon_bench_cell out[CELLS], const struct row *row, bool batch) {
    uint64_t ns = batch ? row->times.batch_ns : row->times.chain_ns;
    uint64_t digest_ns = batch ? row->times.batch_digest_ns : row->times.chain_digest_ns;
    snprintf(out[0], MOON_BENCH_CELL_BYTES, "%s", moon_hash_algorithm_name(row->setting.algorithm));
    snprintf(out[1], MOON_BENCH_CELL_BYTES, "%u", (unsigned)row->setting.block_tokens);
    snprintf(out[2], MOON_BENCH_CELL_BYTES, "%d", batch ? MOON_BENCH_CHAINS : 1);
    snprintf(out[3], MOON_BENCH_CELL_BYTES, "%llu",
             (unsigned long long)per_second(row->times.blocks * row->setting.block_tokens, ns));
    snprintf(out[4], MOON_BENCH_CELL_BYTES, "%llu", (unsigned long long)per_second(row->times.blocks, ns));
    moon_bench_ratio(out[5], ns, row->times.blocks, 1);
    snprintf(out[6], MOON_BENCH_CELL_BYTES, "%llu%%", (unsigned long long)(digest_ns * 100 / ns));
    moon_bench_ratio(out[7], row->times.limit_ns, ns, 2);
    moon_bench_ratio(out[8], row->python_ns, ns, 1);
}

static void write_table(const struct row rows[SETTINGS], bool markdown, struct moon_text *out) {
    moon_bench_cell row_cells[CELLS];
    moon_bench_titles(titles, widths, CELLS, markdown, out);
    for (size_t i = 0; i < (size_t)2 * SETTINGS; i++) {
        fill_cells(row_cells, &rows[i / 2], i % 2 == 1);
        moon_bench_line(row_cells, widths, CELLS, markdown, out);
    }
}

/* All that is shown. */
struct shown {
    const struct row *rows;
    const struct python *python;
    const char *python_program, *host;
};

static void write_notes(const struct shown *shown, struct moon_text *out) {
    const struct row *rows = shown->rows;
    const struct moon_cpu cpu = moon_cpu_detect();
    moon_text_format(out, "\nhost: %s\n", shown->host);
    moon_text_format(out, "cpu: SHA extensions %s, byte compression (AVX-512 VBMI2) %s\n", cpu.sha ? "yes" : "no",
                     cpu.byte_compress ? "yes" : "no");
    moon_text_format(
        out, "limit: sha256 by %s, xxhash by XXH3_128bits; %zu tokens, median of %u runs, CPU time of one thread\n",
        rows[0].times.limit_name, rows[0].setting.tokens, (unsigned)rows[0].setting.runs);
    if (shown->python->program.skipped)
        moon_text_format(out, "SKIP /python: %s: %s\n", shown->python_program, shown->python->program.skipped);
}

static void write_all(const void *context, bool markdown, struct moon_text *out) {
    const struct shown *shown = context;
    write_table(shown->rows, markdown, out);
    write_notes(shown, out);
}

static struct moon_json *build_json(struct moon_arena *arena, const struct shown *shown) {
    const struct row *rows = shown->rows;
    const char *skipped = shown->python->program.skipped;
    struct moon_json *root = moon_json_object(arena), *list = moon_json_array(arena);
    moon_json_set(arena, root, "host", moon_json_string(arena, shown->host));
    moon_json_set(arena, root, "python_skipped", skipped ? moon_json_string(arena, skipped) : moon_json_null(arena));
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct moon_bench_times *times = &rows[i].times;
        struct moon_json *row = moon_json_object(arena);
        moon_json_set(arena, row, "algo", moon_json_string(arena, moon_hash_algorithm_name(rows[i].setting.algorithm)));
        moon_json_set(arena, row, "block_size", moon_json_uint(arena, rows[i].setting.block_tokens));
        moon_json_set(arena, row, "blocks", moon_json_uint(arena, times->blocks));
        moon_json_set(arena, row, "chain_ns", moon_json_uint(arena, times->chain_ns));
        moon_json_set(arena, row, "batch_ns", moon_json_uint(arena, times->batch_ns));
        moon_json_set(arena, row, "chain_digest_ns", moon_json_uint(arena, times->chain_digest_ns));
        moon_json_set(arena, row, "batch_digest_ns", moon_json_uint(arena, times->batch_digest_ns));
        moon_json_set(arena, row, "limit_ns", moon_json_uint(arena, times->limit_ns));
        moon_json_set(arena, row, "limit", moon_json_string(arena, times->limit_name));
        moon_json_set(arena, row, "python_ns",
                      rows[i].python_ns ? moon_json_uint(arena, rows[i].python_ns) : moon_json_null(arena));
        moon_json_push(list, row);
    }
    moon_json_set(arena, root, "rows", list);
    return root;
}

/* ---- the subject ---- */

static int measure_all(const struct moon_cli_bench *asked, struct row rows[SETTINGS], struct python *python,
                       struct moon_error *error) {
    for (size_t i = 0; i < SETTINGS; i++) {
        rows[i] = (struct row){.setting = {.algorithm = (enum moon_hash_algorithm)(i / 3),
                                           .block_tokens = block_sizes[i % 3],
                                           .tokens = (size_t)asked->tokens,
                                           .runs = (uint32_t)asked->runs}};
        int status = moon_bench_hash(&rows[i].setting, moon_memory_heap(), &rows[i].times, error);
        if (status)
            return status;
        measure_python(python, &rows[i]);
        moon_cli_progress(i + 1, SETTINGS);
    }
    return 0;
}

int moon_cli_bench_hash(const struct moon_cli_bench *asked) {
    struct row rows[SETTINGS];
    struct moon_arena arena;
    struct moon_result host;
    struct python python = {.differs = false};
    struct moon_error error;
    const char *const words[] = {asked->python, asked->peer ? asked->peer : "conformance/adapters/python_peer.py",
                                 NULL};
    moon_arena_open(&arena, moon_memory_heap());
    moon_cli_open_result(&host, &arena, "ref");
    moon_bench_python_start(&python.program, &arena, words);
    const struct shown shown = {rows, &python, asked->python, host.host};
    int exit_status;
    if (measure_all(asked, rows, &python, &error) != 0)
        exit_status = moon_cli_fail(&error);
    else
        exit_status = moon_bench_show(asked, "Speed of block hashing",
                                      "Written by `mooncheck bench hash`; `mooncheck bench --help` explains the "
                                      "columns.",
                                      write_all, &shown, build_json(&arena, &shown));
    moon_bench_python_end(&python.program);
    if (exit_status == 0 && python.differs) {
        fprintf(stderr, "mooncheck: Python computed another hash; the comparison is void\n");
        exit_status = MOON_EXIT_FAILED;
    }
    moon_arena_close(&arena);
    return exit_status;
}
