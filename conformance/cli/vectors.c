/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck vectors: judges a target by recorded vectors, or by cases drawn from a seed. */
#include "conformance/cli/run_report.h"
#include "conformance/drawn.h"
#include "conformance/judge.h"

#include <string.h>

static const char *target_spec = "ref", *profile_name, *only, *known_path, *mode = "compat";
static struct moon_cli_report report = MOON_CLI_REPORT_DEFAULT;
static int64_t limit, draw, seed = 1, case_timeout_ms = MOON_TARGET_CASE_TIMEOUT_MS_DEFAULT,
                            window = MOON_TARGET_WINDOW_DEFAULT;
static struct moon_option_list suites;

static const struct moon_option options[] = {
    {.name = "target",
     .kind = MOON_OPTION_TEXT,
     .into = &target_spec,
     .value = "TARGET",
     .help = "implementation under test: ref (the default) or cmd:COMMAND, a program that speaks the adapter protocol"},
    {.name = "profile",
     .kind = MOON_OPTION_TEXT,
     .into = &profile_name,
     .value = "RELEASE",
     .help = "only cases of this release, such as vllm-0.33; default: all"},
    {.name = "only",
     .kind = MOON_OPTION_TEXT,
     .into = &only,
     .value = "GLOB",
     .help = "only cases whose id matches, such as 'hash.sha256.*'"},
    {.name = "known",
     .kind = MOON_OPTION_TEXT,
     .into = &known_path,
     .value = "FILE",
     .help =
         "cases that are known to fail; one that passes, or an entry that has expired or matches nothing, is an error"},
    MOON_CLI_MODE_ROW(mode),
    MOON_CLI_REPORT_ROWS(report, "; with --draw also the cases that differed (default: build/drawn)"),
    {.name = "limit",
     .kind = MOON_OPTION_INTEGER,
     .into = &limit,
     .value = "N",
     .min = 0,
     .max = INT32_MAX,
     .help = "stop after N cases; default: 0, all"},
    {.name = "draw",
     .kind = MOON_OPTION_INTEGER,
     .into = &draw,
     .value = "N",
     .min = 1,
     .max = 100000000,
     .help = "instead of reading files, draw N cases a suite, and compare the target with the reference"},
    {.name = "seed",
     .kind = MOON_OPTION_INTEGER,
     .into = &seed,
     .value = "N",
     .min = 0,
     .max = INT64_MAX,
     .help = "seed of --draw; the same seed draws the same cases; default: 1"},
    {.name = "suite",
     .kind = MOON_OPTION_LIST,
     .into = &suites,
     .value = "NAME",
     .help = "with --draw, only this suite; may be repeated; default: all that the target offers"},
    MOON_CLI_CASE_TIMEOUT_ROW(case_timeout_ms, "case"),
    {.name = "window",
     .kind = MOON_OPTION_INTEGER,
     .into = &window,
     .value = "N",
     .min = 1,
     .max = MOON_TARGET_WINDOW_MAX,
     .help = "cases in flight to an adapter; default: 16"},
    {.name = NULL},
};

const struct moon_command moon_command_vectors = {
    .name = "vectors",
    .operands = "FILE|DIR...",
    .summary = "judge an implementation by vectors recorded from releases",
    .details = "Reads vector files (JSON, plain or packed by zstd or gzip) and folders of them, asks the target each "
               "case, and compares "
               "its answer with what the release answered.\n\n"
               "With --draw no files are read: N cases a suite are drawn from --seed for --profile, answered by the "
               "reference and "
               "by the target. A difference is shrunk to a small case and kept as a vector file, with the target's "
               "answer as what is "
               "expected.\n\n"
               "What releases do wrong is listed in conformance/deviations.json (mooncheck list --deviations). In mode "
               "compat such a case passes with level ALT, and the report names the edge. In mode strict the reference "
               "answers what is right, so such a case fails and names the edge; of another target the right answer "
               "is required.\n\n"
               "Exit status: 0 all passed, possibly with skips; 1 a case failed; 2 usage or bad input; 3 unknown or "
               "incomplete; 77 "
               "everything was skipped.",
    .options = options,
    .operands_min = 0,
    .operands_max = -1,
};

static bool strict(void) {
    return strcmp(mode, "strict") == 0;
}

static struct moon_target_setting setting(struct moon_arena *arena) {
    const char *folder = moon_io_program_folder(arena);
    const char *program = folder && folder[0] ? moon_arena_format(arena, "%s/mooncheck", folder) : NULL;
    if (program && !moon_io_is_program(program))
        program = NULL;
    return (struct moon_target_setting){.case_timeout_ms = case_timeout_ms,
                                        .window = window,
                                        .strict = strict(),
                                        .version = MOON_VERSION,
                                        .program = program};
}

static void tell_skipped_files(struct moon_result *result, const struct moon_vectors *vectors) {
    for (const struct moon_vector_skip *skip = vectors->first_skip; skip; skip = skip->next) {
        struct moon_result_case *one = moon_result_add(result);
        if (!one)
            return;
        one->id = skip->file;
        one->suite = "files";
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = skip->reason;
        moon_result_count(result, one);
    }
}

static int load_all(struct moon_vectors *vectors, const char *const operands[], int count, struct moon_error *error) {
    for (int i = 0; i < count; i++)
        if (moon_vectors_load(vectors, operands[i], error) != 0)
            return error->status;
    return moon_vectors_check_ids(vectors, error);
}

/* Judges by files. */
static int judge_files(struct moon_target *target, const char *const operands[], int count,
                       const struct moon_profile *profile, struct moon_result *result, struct moon_error *error) {
    struct moon_vectors vectors;
    struct moon_known known;
    struct moon_judge_setting judge = {.only = only, .profile = profile, .limit = (size_t)limit, .spec = target_spec};
    moon_vectors_open(&vectors, result->arena);
    judge.strict = strict();
    judge.today = moon_cli_today(result->arena);
    judge.progress = moon_cli_progress;
    if (!judge.today)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    if (known_path && moon_known_load(&known, result->arena, known_path, error) != 0)
        return error->status;
    judge.known = known_path ? &known : NULL;
    if (load_all(&vectors, operands, count, error) != 0)
        return error->status;
    result->digest = moon_arena_format(result->arena, "%016llx", (unsigned long long)vectors.digest);
    if (!result->digest)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    int status = moon_judge_vectors(target, &vectors, &judge, result, error);
    tell_skipped_files(result, &vectors);
    return status;
}

static int judge_drawn(struct moon_target *target, const struct moon_profile *profile, struct moon_result *result,
                       struct moon_error *error) {
    const struct moon_drawn_setting drawn = {.count = (uint64_t)draw,
                                             .seed = (uint64_t)seed,
                                             .profile = profile,
                                             .suites = suites.values,
                                             .suite_count = suites.count,
                                             .only = only,
                                             .strict = strict(),
                                             .folder = report.out_folder ? report.out_folder : "build/drawn",
                                             .spec = target_spec};
    result->seed = moon_arena_format(result->arena, "%lld", (long long)seed);
    if (!result->seed)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    return moon_drawn_judge(target, &drawn, result, error);
}

static const char *usage_fault(int count) {
    if (draw == 0 && count == 0)
        return "vectors: needs vector files or folders (or --draw N)";
    if (draw == 0)
        return suites.count > 0 ? "vectors: --suite needs --draw" : NULL;
    if (count > 0)
        return "vectors: --draw reads no files";
    if (known_path || limit)
        return "vectors: --draw goes with neither --known nor --limit";
    if (!profile_name)
        return "vectors: --draw needs --profile";
    return strcmp(target_spec, "ref") == 0 ? "vectors: --draw needs a --target to compare the reference with" : NULL;
}

int moon_cli_vectors(const char *const operands[], int count) {
    struct moon_arena arena;
    struct moon_result result;
    struct moon_target *target = NULL;
    struct moon_error error;
    const struct moon_profile *profile = NULL;
    int status = 0;
    const char *fault = usage_fault(count);
    if (fault)
        return moon_cli_complain("%s", fault);
    moon_arena_open(&arena, moon_memory_heap());
    moon_cli_open_result(&result, &arena, target_spec);
    const struct moon_target_setting target_setting = setting(&arena);
    result.mode = mode;
    if (profile_name && !(profile = moon_profile_find(profile_name, &error)))
        status = error.status;
    if (status == 0)
        status = moon_target_open(&target, target_spec, &target_setting, &error);
    if (status == 0) {
        result.target_name = moon_target_name(target);
        result.target_version = moon_target_version(target);
        result.target_homepage = moon_target_homepage(target);
        status = draw > 0 ? judge_drawn(target, profile, &result, &error)
                          : judge_files(target, operands, count, profile, &result, &error);
    }
    int exit_status = moon_cli_finish(status, &error, &result, &report);
    moon_target_close(target);
    moon_arena_close(&arena);
    return exit_status;
}
