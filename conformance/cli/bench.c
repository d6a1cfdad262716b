/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck bench: how fast, as ratios against the limit of the machine and against Python in the same run. */
#include "conformance/bench_hash.h"
#include "conformance/cli/run_report.h"
#include "conformance/process.h"

#include <stdio.h>
#include <string.h>

static struct {
    const char *python, *peer, *out;
    int64_t tokens, runs;
    bool json;
} asked = {.python = "python3", .peer = "conformance/adapters/python_peer.py", .tokens = 1 << 20, .runs = 7};

static const struct moon_option options[] = {
    {"python", MOON_OPTION_TEXT, &asked.python, "PROGRAM", NULL, 0, 0,
     "Python with cbor2 and xxhash for the comparison (default: python3)"},
    {"peer", MOON_OPTION_TEXT, &asked.peer, "FILE", NULL, 0, 0,
     "script of the Python side (default: conformance/adapters/python_peer.py)"},
    {"tokens", MOON_OPTION_INTEGER, &asked.tokens, "N", NULL, MOON_BENCH_TOKENS_MIN, MOON_BENCH_TOKENS_MAX,
     "tokens a measurement (default: 1048576)"},
    {"runs", MOON_OPTION_INTEGER, &asked.runs, "N", NULL, 1, MOON_BENCH_RUNS_MAX,
     "each time is the median of so many runs (default: 7)"},
    {"out", MOON_OPTION_TEXT, &asked.out, "FILE", NULL, 0, 0, "write the table as Markdown too"},
    {"json", MOON_OPTION_FLAG, &asked.json, NULL, NULL, 0, 0, "print the measurements as JSON"},
    {NULL, MOON_OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
};

const struct moon_command moon_command_bench = {
    "bench",
    "[hash]",
    "speed of the reference, beside the machine's limit and Python",
    "hash: block hash chains, alone and 64 at a time, by algorithm and block size. All times are CPU time of one "
    "thread. \"digest\" is the "
    "share of our digest in it. \"/limit\" is the speed as a part of what the fastest call of libcrypto (or XXH3) does "
    "with the "
    "same bytes, ready-made and contiguous. \"/python\" is how many times faster than Python with pickle or cbor2 and "
    "hashlib or xxhash.",
    options,
    0,
    1,
};

/* One setting, measured. */
struct row {
    struct moon_bench_setting setting;
    struct moon_bench_times times;
    uint64_t python_ns; /* for as many blocks; 0: not measured */
};

enum { SETTINGS = MOON_HASH_ALGORITHMS * 3, PYTHON_RUNS = 3, PYTHON_DEADLINE_S = 120 };
static const uint32_t block_sizes[] = {16, 64, 256};

/* ---- the Python side ---- */

/* Where the answers come from, and why there are none. */
struct python {
    struct moon_process process;
    struct moon_arena *arena;
    const char *skipped; /* NULL while it answers */
    bool differs;        /* it computed another hash than we did */
};

static int start_python(struct python *python, struct moon_arena *arena) {
    const struct moon_process_setting setting = {.folder = NULL};
    struct moon_error error;
    struct moon_text command;
    *python = (struct python){.arena = arena};
    moon_text_open(&command, moon_memory_heap());
    moon_text_format(&command, "exec '%s' '%s'", asked.python, asked.peer);
    int status = strchr(asked.python, '\'') || strchr(asked.peer, '\'') || command.failed
                     ? MOON_ERR_IO
                     : moon_process_start(&python->process, moon_text_value(&command), &setting, &error);
    if (status)
        python->skipped = "it cannot be started";
    moon_text_close(&command);
    return status;
}

static const char *why_silent(struct python *python) {
    const char *log = moon_process_log(&python->process);
    const char *last = strrchr(log, '\n');
    while (last && last > log && last[1] == 0) /* the last line that is not empty */
        last = memrchr(log, '\n', (size_t)(last - log));
    const char *line = last ? last + 1 : log;
    const char *text = moon_arena_copy(python->arena, line, strcspn(line, "\n"));
    return text && *text ? text : "it does not answer";
}

/* Reads {"ns","last"} or {"missing"}. */
static void take_answer(struct python *python, const char *line, size_t length, struct row *row) {
    const char *last = NULL, *missing = NULL;
    struct moon_json *answer = NULL;
    struct moon_error error;
    int64_t ns = 0;
    if (moon_json_read(python->arena, "python", line, length, MOON_JSON_STRICT, &answer, &error) != 0) {
        python->skipped = "its answer is not JSON";
        return;
    }
    if (moon_json_get_string("python", answer, "missing", true, &missing, NULL, &error) == 0) {
        python->skipped = moon_arena_format(python->arena, "it has no %s", missing);
        return;
    }
    if (moon_json_get_int("python", answer, "ns", true, 1, INT64_MAX, &ns, &error) != 0 ||
        moon_json_get_string("python", answer, "last", true, &last, NULL, &error) != 0) {
        python->skipped = "its answer is not understood";
        return;
    }
    const struct moon_json *ours =
        moon_json_hex(python->arena, row->times.last, moon_hash_algorithm_bytes(row->setting.algorithm));
    python->differs = python->differs || !moon_json_is_string(ours, last);
    row->python_ns = (uint64_t)ns;
}

static void measure_python(struct python *python, struct row *row) {
    uint64_t deadline = moon_now_ns() + (uint64_t)PYTHON_DEADLINE_S * 1000000000;
    char question[256], *line;
    size_t length;
    if (python->skipped)
        return;
    snprintf(question, sizeof question, "{\"algo\":\"%s\",\"block_size\":%u,\"tokens\":%zu,\"runs\":%d}\n",
             moon_hash_algorithm_name(row->setting.algorithm), (unsigned)row->setting.block_tokens, row->setting.tokens,
             PYTHON_RUNS);
    moon_process_send(&python->process, question, strlen(question));
    if (moon_process_wait(&python->process, deadline, &line, &length) == MOON_PROCESS_LINE)
        take_answer(python, line, length, row);
    else
        python->skipped = why_silent(python);
}

/* ---- the table ---- */

enum { CELLS = 9, CELL_BYTES = 32 };
typedef char cells[CELLS][CELL_BYTES];
static const char *const titles[CELLS] = {"algorithm", "block",  "chains", "tokens/s", "blocks/s",
                                          "ns/block",  "digest", "/limit", "/python"};
static const int widths[CELLS] = {-11, 5, 6, 12, 11, 9, 6, 6, 8};

/* a / b with one digit behind the point, or two; "-" without b. */
static void write_ratio(char cell[CELL_BYTES], uint64_t a, uint64_t b, int digits) {
    uint64_t scale = digits == 1 ? 10 : 100, value = b ? (a * scale + b / 2) / b : 0;
    if (b == 0 || a == 0)
        snprintf(cell, CELL_BYTES, "-");
    else
        snprintf(cell, CELL_BYTES, "%llu.%0*llu", (unsigned long long)(value / scale), digits,
                 (unsigned long long)(value % scale));
}

static uint64_t per_second(uint64_t count, uint64_t ns) {
    return (uint64_t)((unsigned __int128)count * 1000000000 / ns);
}

static void fill_cells(cells out, const struct row *row, bool batch) {
    uint64_t ns = batch ? row->times.batch_ns : row->times.chain_ns;
    uint64_t digest_ns = batch ? row->times.batch_digest_ns : row->times.chain_digest_ns;
    snprintf(out[0], CELL_BYTES, "%s", moon_hash_algorithm_name(row->setting.algorithm));
    snprintf(out[1], CELL_BYTES, "%u", (unsigned)row->setting.block_tokens);
    snprintf(out[2], CELL_BYTES, "%d", batch ? MOON_BENCH_CHAINS : 1);
    snprintf(out[3], CELL_BYTES, "%llu",
             (unsigned long long)per_second(row->times.blocks * row->setting.block_tokens, ns));
    snprintf(out[4], CELL_BYTES, "%llu", (unsigned long long)per_second(row->times.blocks, ns));
    write_ratio(out[5], ns, row->times.blocks, 1);
    snprintf(out[6], CELL_BYTES, "%llu%%", (unsigned long long)(digest_ns * 100 / ns));
    write_ratio(out[7], row->times.limit_ns, ns, 2);
    write_ratio(out[8], row->python_ns, ns, 1);
}

static void write_line(const char *const line[CELLS], bool markdown, struct moon_text *out) {
    for (size_t i = 0; i < CELLS; i++)
        if (markdown)
            moon_text_format(out, "| %s ", line[i]);
        else
            moon_text_format(out, "%s%*s", i ? " " : "", widths[i], line[i]);
    moon_text_string(out, markdown ? "|\n" : "\n");
}

static void write_table(const struct row rows[SETTINGS], bool markdown, struct moon_text *out) {
    cells row_cells;
    const char *line[CELLS];
    write_line(titles, markdown, out);
    if (markdown)
        moon_text_string(out, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < CELLS; i++)
        line[i] = row_cells[i];
    for (size_t i = 0; i < (size_t)2 * SETTINGS; i++) {
        fill_cells(row_cells, &rows[i / 2], i % 2 == 1);
        write_line(line, markdown, out);
    }
}

static void write_notes(const struct row rows[SETTINGS], const struct python *python, const char *host,
                        struct moon_text *out) {
    const struct moon_cpu cpu = moon_cpu_detect();
    moon_text_format(out, "\nhost: %s\n", host);
    moon_text_format(out, "cpu: SHA extensions %s, byte compression (AVX-512 VBMI2) %s\n", cpu.sha ? "yes" : "no",
                     cpu.byte_compress ? "yes" : "no");
    moon_text_format(
        out, "limit: sha256 by %s, xxhash by XXH3_128bits; %zu tokens, median of %u runs, CPU time of one thread\n",
        rows[0].times.limit_name, rows[0].setting.tokens, (unsigned)rows[0].setting.runs);
    if (python->skipped)
        moon_text_format(out, "SKIP /python: %s: %s\n", asked.python, python->skipped);
}

static struct moon_json *build_json(struct moon_arena *arena, const struct row rows[SETTINGS],
                                    const struct python *python, const char *host) {
    struct moon_json *root = moon_json_object(arena), *list = moon_json_array(arena);
    moon_json_set(arena, root, "host", moon_json_string(arena, host));
    moon_json_set(arena, root, "python_skipped",
                  python->skipped ? moon_json_string(arena, python->skipped) : moon_json_null(arena));
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

/* ---- the command ---- */

static int measure_all(struct row rows[SETTINGS], struct python *python, struct moon_error *error) {
    for (size_t i = 0; i < SETTINGS; i++) {
        rows[i] = (struct row){.setting = {.algorithm = (enum moon_hash_algorithm)(i / 3),
                                           .block_tokens = block_sizes[i % 3],
                                           .tokens = (size_t)asked.tokens,
                                           .runs = (uint32_t)asked.runs}};
        int status = moon_bench_hash(&rows[i].setting, moon_memory_heap(), &rows[i].times, error);
        if (status)
            return status;
        measure_python(python, &rows[i]);
        moon_cli_progress(i + 1, SETTINGS);
    }
    return 0;
}

static int write_markdown(const struct row rows[SETTINGS], const struct python *python, const char *host) {
    struct moon_text text;
    struct moon_error error;
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "# Speed of block hashing\n\nWritten by `mooncheck bench hash`; `mooncheck bench --help` "
                            "explains the columns.\n\n");
    write_table(rows, true, &text);
    write_notes(rows, python, host, &text);
    int status = text.failed ? moon_fail(&error, MOON_ERR_MEMORY, NULL, "out of memory")
                             : moon_io_write(asked.out, text.data, text.length, &error);
    moon_text_close(&text);
    return status ? moon_cli_fail(&error) : 0;
}

static int show(const struct row rows[SETTINGS], const struct python *python, struct moon_arena *arena) {
    struct moon_result host;
    struct moon_text text;
    moon_cli_open_result(&host, arena, "ref");
    if (asked.out && write_markdown(rows, python, host.host) != 0)
        return MOON_EXIT_BAD;
    if (asked.json)
        return moon_cli_print_json(build_json(arena, rows, python, host.host));
    moon_text_open(&text, moon_memory_heap());
    write_table(rows, false, &text);
    write_notes(rows, python, host.host, &text);
    int exit_status = moon_cli_print(&text);
    moon_text_close(&text);
    return exit_status;
}

int moon_cli_bench(const char *const operands[], int count) {
    struct row rows[SETTINGS];
    struct moon_arena arena;
    struct python python;
    struct moon_error error;
    if (count == 1 && strcmp(operands[0], "hash") != 0)
        return moon_cli_complain("%s: there is nothing to measure by that name; there is: hash", operands[0]);
    moon_arena_open(&arena, moon_memory_heap());
    bool started = start_python(&python, &arena) == 0;
    int exit_status = measure_all(rows, &python, &error) ? moon_cli_fail(&error) : show(rows, &python, &arena);
    if (started)
        moon_process_end(&python.process, 1000);
    if (exit_status == 0 && python.differs) {
        fprintf(stderr, "mooncheck: Python computed another hash; the comparison is void\n");
        exit_status = MOON_EXIT_FAILED;
    }
    moon_arena_close(&arena);
    return exit_status;
}
