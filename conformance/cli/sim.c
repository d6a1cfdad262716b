/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck sim: plays one scenario in the simulator from one seed. */
#include "conformance/checkers/repeat.h"
#include "conformance/cli/run_report.h"
#include "conformance/cli/scenarios.h"

#include <string.h>

static int64_t seed = 1;
static const char *history_path, *mode = "compat";
static bool explain, twice;

static const struct moon_option options[] = {
    {.name = "seed",
     .kind = MOON_OPTION_INTEGER,
     .into = &seed,
     .value = "N",
     .min = 0,
     .max = INT64_MAX,
     .help = "of all that is drawn: delays, clocks, operations of a mix, faults; default: 1"},
    {.name = "history",
     .kind = MOON_OPTION_TEXT,
     .into = &history_path,
     .value = "FILE",
     .help = "write all records there, one JSON object a line"},
    {.name = "explain", .kind = MOON_OPTION_FLAG, .into = &explain, .help = "tell each operation, fault and verdict"},
    {.name = "twice",
     .kind = MOON_OPTION_FLAG,
     .into = &twice,
     .help = "play the seed twice; the histories must be equal, else show the first record that differs"},
    MOON_CLI_MODE_ROW(mode),
    {.name = NULL},
};

const struct moon_command moon_command_sim = {
    .name = "sim",
    .operands = "SCENARIO",
    .summary = "play one scenario in the simulator from a seed",
    .details = "The last line is the digest of the history. It depends on the scenario, the seed and this version of "
               "mooncheck alone.\n\n"
               "Exit status: 0 if all held, 1 if something did not, 2 for bad input.",
    .options = options,
    .operands_min = 1,
    .operands_max = 1,
};

static int write_history(const struct moon_history *history, struct moon_error *error) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_history_write_json(history, &text);
    int status = text.failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory")
                             : moon_io_write(history_path, moon_text_value(&text), text.length, error);
    moon_text_close(&text);
    return status;
}

/* Plays again; a history that differs makes the play a failure. */
static int compare_again(struct moon_arena *arena, const struct moon_scenario *scenario,
                         const struct moon_play_setting *setting, struct moon_play *play, struct moon_error *error) {
    struct moon_play again;
    struct moon_finding finding = {.verdict = MOON_VERDICT_UNKNOWN};
    int status = moon_play(arena, scenario, setting, &again, error);
    if (status == 0 && moon_check_repeat(arena, &play->history, &again.history, &finding) != 0)
        status = moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    if (status == 0 && finding.verdict == MOON_VERDICT_FAIL) {
        play->outcome = MOON_OUTCOME_FAIL;
        play->requirement = "WORLD-003";
        play->required = finding.required;
        play->done = finding.done;
        play->expected = finding.expected;
        play->seen = finding.seen;
    }
    moon_play_close(&again);
    return status;
}

static int play_scenario(struct moon_arena *arena, const char *path, struct moon_text *out, struct moon_error *error) {
    struct moon_scenario scenario;
    struct moon_play_setting setting = {
        .kind = &moon_world_sim, .seed = (uint64_t)seed, .with_faults = true, .strict = strcmp(mode, "strict") == 0};
    struct moon_play play;
    if (moon_scenario_load(arena, path, &scenario, error) != 0)
        return moon_cli_fail(error);
    int status = moon_play(arena, &scenario, &setting, &play, error);
    if (status == 0 && twice)
        status = compare_again(arena, &scenario, &setting, &play, error);
    if (status == 0 && history_path)
        status = write_history(&play.history, error);
    if (status == 0 && explain)
        moon_text_string(out, play.account);
    if (status == 0 && play.outcome != MOON_OUTCOME_PASS)
        moon_cli_tell_play(&scenario, &play, out);
    moon_text_format(out, "history %016llx\n", (unsigned long long)play.digest);
    moon_play_close(&play);
    if (status != 0)
        return moon_cli_fail(error);
    return play.outcome == MOON_OUTCOME_PASS ? MOON_EXIT_PASSED : MOON_EXIT_FAILED;
}

int moon_cli_sim(const char *const operands[], int count) {
    struct moon_arena arena;
    struct moon_text out;
    struct moon_error error;
    (void)count;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    int exit_status = play_scenario(&arena, operands[0], &out, &error);
    if (exit_status != MOON_EXIT_BAD && moon_cli_print(&out) != 0)
        exit_status = MOON_EXIT_BAD;
    moon_text_close(&out);
    moon_arena_close(&arena);
    return exit_status;
}
