/* SPDX-License-Identifier: Apache-2.0 */
/* What a run gave against what its scenario expects and what the checkers find; and the run in words. */
#include "conformance/checkers/checker.h"
#include "conformance/worlds/run.h"
#include "ref/base/fill.h"
#include "ref/wire/status.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static void write_code(int64_t code, struct moon_text *out) {
    if (code == MOON_CODE_LOST)
        moon_text_string(out, "lost");
    else if (code < 0)
        moon_text_format(out, "%lld (%s)", (long long)code, moon_wire_status_name(code));
    else
        moon_text_format(out, "%lld", (long long)code);
}

static void write_codes(const int64_t codes[], size_t count, struct moon_text *out) {
    enum { SHOWN_MAX = 64 };
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++) {
        moon_text_string(out, i > 0 ? ", " : "");
        write_code(codes[i], out);
    }
    if (count > SHOWN_MAX)
        moon_text_format(out, ", and %zu more", count - SHOWN_MAX);
}

/* "batch_get of reader (a, b), repeated 3 times" */
static void write_operation(const struct moon_run *run, size_t index, struct moon_text *out) {
    const struct moon_scenario_operation *one = &run->scenario->operations[index];
    moon_text_format(out, "%s of %s", moon_scenario_do_name(one->what), run->scenario->nodes[one->node].name);
    for (size_t i = 0; i < one->key_count; i++)
        moon_text_format(out, "%s%s", i > 0 ? ", " : " (", one->keys[i]);
    moon_text_string(out, one->key_count > 0 ? ")" : "");
    if (one->force)
        moon_text_string(out, ", forced");
    if (one->repeat > 1)
        moon_text_format(out, ", %lld times", (long long)one->repeat);
}

/* ---- a failure in lines ---- */

static const char *take(struct moon_run *run, struct moon_text *text) {
    const char *copy = text->failed ? NULL : moon_arena_copy(run->arena, moon_text_value(text), text->length);
    moon_text_clear(text);
    return copy;
}

static int fail(struct moon_run *run, size_t operation, struct moon_text *expected, struct moon_text *seen,
                struct moon_error *error) {
    struct moon_play *play = run->play;
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_format(&text, "%s: %s", run->scenario->operations[operation].id, "");
    write_operation(run, operation, &text);
    run->failed = true;
    play->outcome = MOON_OUTCOME_FAIL;
    play->required = moon_arena_format(run->arena, "%s", run->scenario->title);
    play->done = take(run, &text);
    play->expected = take(run, expected);
    play->seen = take(run, seen);
    moon_text_close(&text);
    return play->required && play->done && play->expected && play->seen ? 0 : moon_no_memory(error);
}

/* ---- codes and digests ---- */

static bool is_among(const int64_t list[], size_t count, int64_t code) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == code)
            return true;
    return false;
}

static bool codes_fit(const struct moon_scenario_codes *codes, const struct moon_run_operation *operation) {
    if (codes->each && codes->allowed_count != operation->result_count)
        return false;
    for (size_t i = 0; i < operation->result_count; i++) {
        int64_t code = operation->results[i];
        if (codes->each ? codes->allowed[i] != code : !is_among(codes->allowed, codes->allowed_count, code))
            return false;
        if (codes->rising && i > 0 && code < operation->results[i - 1])
            return false;
    }
    return true;
}

static int check_codes(struct moon_run *run, const struct moon_scenario_codes *codes, struct moon_text *expected,
                       struct moon_text *seen, struct moon_error *error) {
    const struct moon_run_operation *operation = &run->operations[codes->operation];
    if (codes_fit(codes, operation))
        return 0;
    moon_text_string(expected, codes->each ? "in order " : codes->allowed_count > 1 ? "each one of " : "");
    write_codes(codes->allowed, codes->allowed_count, expected);
    moon_text_string(expected, codes->rising ? ", none lower than the one before" : "");
    write_codes(operation->results, operation->result_count, seen);
    return fail(run, codes->operation, expected, seen, error);
}

/* Digest of `bytes` bytes of a fill; false: no memory. */
static bool digest_of(uint64_t fill, size_t bytes, uint64_t *digest) {
    struct moon_memory *memory = moon_memory_heap();
    void *value = bytes > 0 ? memory->resize(memory, NULL, 0, bytes) : NULL;
    if (bytes > 0 && !value)
        return false;
    moon_fill(fill, 0, value, bytes);
    *digest = XXH3_64bits(value, bytes);
    memory->resize(memory, value, bytes, 0);
    return true;
}

/* True in *fits if result number `at` holds one of the fills. Only successful reads are asked. */
static bool digest_fits(const struct moon_run *run, const struct moon_scenario_digests *digests, size_t at,
                        bool *fits) {
    const struct moon_run_operation *operation = &run->operations[digests->operation];
    size_t keys = run->scenario->operations[digests->operation].key_count;
    for (size_t i = 0; i < digests->fill_count && !*fits; i++) {
        uint64_t digest;
        if (!digest_of(digests->fills[i] + at % keys, (size_t)operation->results[at], &digest))
            return false;
        *fits = digest == operation->digests[at];
    }
    return true;
}

static int check_digests(struct moon_run *run, const struct moon_scenario_digests *digests, struct moon_text *expected,
                         struct moon_text *seen, struct moon_error *error) {
    const struct moon_run_operation *operation = &run->operations[digests->operation];
    for (size_t i = 0; i < operation->result_count; i++) {
        bool fits = operation->results[i] < 0 || operation->results[i] == MOON_CODE_LOST;
        if (!digest_fits(run, digests, i, &fits))
            return moon_no_memory(error);
        if (fits)
            continue;
        moon_text_string(expected, "the bytes of fill ");
        for (size_t j = 0; j < digests->fill_count; j++)
            moon_text_format(expected, "%s%llu", j > 0 ? " or " : "",
                             (unsigned long long)digests->fills[j] +
                                 i % run->scenario->operations[digests->operation].key_count);
        moon_text_format(seen, "result %zu: %lld bytes with digest %016llx", i, (long long)operation->results[i],
                         (unsigned long long)operation->digests[i]);
        return fail(run, digests->operation, expected, seen, error);
    }
    return 0;
}

static int check_expected(struct moon_run *run, struct moon_error *error) {
    struct moon_text expected, seen;
    int status = 0;
    moon_text_open(&expected, moon_memory_heap());
    moon_text_open(&seen, moon_memory_heap());
    for (size_t i = 0; i < run->scenario->digest_count && status == 0 && !run->failed; i++)
        status = check_digests(run, &run->scenario->digests[i], &expected, &seen, error);
    for (size_t i = 0; i < run->scenario->code_count && status == 0 && !run->failed; i++)
        status = check_codes(run, &run->scenario->codes[i], &expected, &seen, error);
    moon_text_close(&expected);
    moon_text_close(&seen);
    return status;
}

/* ---- checkers ---- */

static bool may_deviate(const struct moon_run *run, const char *edge) {
    if (run->scenario->strict)
        return false;
    for (size_t i = 0; i < run->scenario->deviation_count; i++)
        if (strcmp(run->scenario->deviations[i], edge) == 0)
            return true;
    return false;
}

static void note_deviation(struct moon_play *play, const char *edge) {
    for (size_t i = 0; i < play->deviation_count; i++)
        if (strcmp(play->deviations[i], edge) == 0)
            return;
    if (play->deviation_count < MOON_PLAY_DEVIATIONS_MAX)
        play->deviations[play->deviation_count++] = edge;
}

static int judge_by(struct moon_run *run, const struct moon_checker *checker, struct moon_error *error) {
    struct moon_play *play = run->play;
    struct moon_finding finding = {.verdict = MOON_VERDICT_UNKNOWN};
    int status = moon_checker_judge(checker, run->arena, &play->history, &finding);
    if (status != 0)
        return moon_fail(error, status, checker->name, "%s", moon_status_text(status));
    if (finding.verdict == MOON_VERDICT_ALT && may_deviate(run, finding.edge))
        note_deviation(play, finding.edge);
    else if ((finding.verdict == MOON_VERDICT_FAIL || finding.verdict == MOON_VERDICT_ALT) && !run->failed) {
        run->failed = true;
        play->outcome = MOON_OUTCOME_FAIL;
        play->requirement = checker->requirement;
        play->required = finding.required;
        play->done = finding.done;
        play->expected = finding.expected;
        play->seen =
            finding.verdict == MOON_VERDICT_ALT
                ? moon_arena_format(run->arena, "%s (edge %s, which is not permitted here)", finding.seen, finding.edge)
                : finding.seen;
        if (!play->seen)
            return moon_no_memory(error);
    }
    static const char *const words[] = {"held", "BROKEN", "broken with a listed cause", "cannot be known"};
    play->account = moon_arena_format(run->arena, "%schecker %u %s: %s, %zu cases looked at\n", play->account,
                                      checker->number, checker->name, words[finding.verdict], finding.looked_at);
    return play->account ? 0 : moon_no_memory(error);
}

int moon_run_judge(struct moon_run *run, struct moon_error *error) {
    int status = check_expected(run, error);
    for (size_t i = 0; moon_checkers[i] && status == 0; i++)
        status = judge_by(run, moon_checkers[i], error);
    return status;
}

/* ---- in words ---- */

const char *moon_run_account(struct moon_run *run) {
    const struct moon_scenario *scenario = run->scenario;
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_format(&text, "%s: %s\n", scenario->id, scenario->title);
    for (size_t i = 0; i < scenario->operation_count; i++) {
        const struct moon_run_operation *operation = &run->operations[i];
        moon_text_format(&text, "operation %s: ", scenario->operations[i].id);
        write_operation(run, i, &text);
        moon_text_string(&text, operation->result_count > 0 ? " -> "
                                : operation->begun          ? " did not end"
                                                            : " not begun");
        write_codes(operation->results, operation->result_count, &text);
        moon_text_char(&text, '\n');
    }
    for (size_t i = 0; i < scenario->action_count; i++)
        moon_text_format(&text, "action %s: %s %s\n", scenario->actions[i].id,
                         moon_scenario_act_name(scenario->actions[i].what), run->actions[i].done ? "done" : "not done");
    for (size_t i = 0; i < run->fault_count; i++)
        moon_text_format(&text, "fault: %s %s\n", moon_scenario_act_name(run->faults[i].what),
                         scenario->nodes[run->faults[i].node].name);
    moon_text_string(&text, run->play->account ? run->play->account : "");
    const char *account = take(run, &text);
    moon_text_close(&text);
    return account;
}
