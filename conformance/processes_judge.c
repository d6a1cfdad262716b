/* SPDX-License-Identifier: Apache-2.0 */
/* The family hash.processes: what must hold between the answers of many processes. */
#include "conformance/processes.h"

#include "conformance/judge.h"
#include "conformance/random_case.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>

enum { PROCESSES_MIN = 16, BUILDS_MIN = 3 };

static bool wanted(const struct moon_processes_run *run, const char *id) {
    return !run->setting->only || fnmatch(run->setting->only, id, 0) == 0;
}

static size_t question_of(size_t profile, size_t algorithm, size_t prompt) {
    return (profile * MOON_PROCESSES_ALGORITHMS + algorithm) * MOON_PROCESSES_PROMPTS + prompt;
}

static struct moon_result_case *add_case(struct moon_processes_run *run, const char *id, const char *kind,
                                         const char *profile) {
    struct moon_result_case *one = id && kind ? moon_judge_add(run->result, id, kind, "hash", profile) : NULL;
    if (one)
        one->reproduce = moon_arena_format(run->arena, "mooncheck run --only '%s'", id);
    return one;
}

/* What the release must answer when PYTHONHASHSEED has this value, by the reference in this process. */
static const struct moon_json *required_answer(struct moon_processes_run *run, size_t question, size_t seed) {
    struct moon_json *given =
        moon_json_clone(run->arena, run->givens[question % (MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS)]);
    static const struct moon_target_setting plain = {0};
    struct moon_target *reference = NULL;
    struct moon_error ignored;
    moon_json_set(run->arena, given, "python_hash_seed",
                  moon_processes_seeds[seed].value ? moon_json_string(run->arena, moon_processes_seeds[seed].value)
                                                   : moon_json_null(run->arena));
    struct moon_question ask = {.suite = &moon_suite_hash,
                                .profile =
                                    &run->profiles[question / (MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS)],
                                .given = given};
    if (moon_json_broken(given) || moon_target_open(&reference, "ref", &plain, &ignored) != 0)
        return NULL;
    int status = moon_target_ask(reference, run->arena, &ask, 1, &ignored);
    moon_target_close(reference);
    return status == 0 && ask.reply == MOON_REPLY_RESULT ? ask.answer : NULL;
}

/* By the release's rule alone, without the reference: do processes draw their own NONE_HASH? */
static bool must_differ(const struct moon_profile *profile, const char *algorithm, size_t seed) {
    bool xxhash = strncmp(algorithm, "xxhash", 6) == 0;
    return !moon_processes_seeds[seed].value && (xxhash || profile->none_hash == MOON_NONE_HASH_RANDOM_BYTES);
}

static void fail(struct moon_processes_run *run, struct moon_result_case *one, const char *expected, const char *who,
                 const char *seen) {
    one->outcome = MOON_OUTCOME_FAIL;
    one->expected = expected;
    one->seen = moon_arena_format(run->arena, "%s: %s", who, seen);
}

static void fail_by(struct moon_processes_run *run, struct moon_result_case *one,
                    const struct moon_difference *difference, const char *who) {
    fail(run, one, difference->expected, who,
         moon_arena_format(run->arena, "%s%s%s", difference->seen, difference->hint[0] ? ", " : "", difference->hint));
}

/* One answer against what is required of it alone. True when good. */
static bool judge_one(struct moon_processes_run *run, struct moon_result_case *one,
                      const struct moon_question *question, const char *who, const struct moon_json *required,
                      bool random) {
    struct moon_difference difference = {"", "", ""};
    if (question->reply != MOON_REPLY_RESULT) {
        one->outcome = question->reply == MOON_REPLY_TIMEOUT ? MOON_OUTCOME_TIMEOUT
                       : question->reply == MOON_REPLY_CRASH ? MOON_OUTCOME_CRASH
                                                             : MOON_OUTCOME_ERROR;
        one->reason = moon_arena_format(run->arena, "%s: %s", who, question->reason);
        return false;
    }
    if (moon_random_case(question->answer) != random) {
        fail(run, one, random ? "a NONE_HASH that each process draws" : "a NONE_HASH that is the same in every process",
             who, random ? "says that it is fixed" : "says that it is random");
        return false;
    }
    if (random ||
        moon_compare(run->arena, &moon_suite_hash, question->given, required, question->answer, &difference) == 0)
        return true;
    fail_by(run, one, &difference, who);
    return false;
}

/* Two processes that draw: each chain follows from its NONE_HASH, and the two differ. */
static bool judge_pair(struct moon_processes_run *run, struct moon_result_case *one, const struct moon_question *a,
                       const struct moon_question *b, const char *who) {
    struct moon_difference difference = {"", "", ""};
    const struct moon_json *expect = moon_random_expect(run->arena, a->answer);
    if (!expect)
        return false;
    if (moon_random_compare(run->arena, &moon_suite_hash, a->profile, a->given, expect, a->answer, b->answer,
                            &difference) == 0)
        return true;
    fail_by(run, one, &difference, who);
    return false;
}

/* All processes under one seed, for one question; stops at the first fault. Counts the processes that answered. */
static bool judge_question(struct moon_processes_run *run, struct moon_result_case *one, size_t seed, size_t question,
                           bool peers, size_t *answered) {
    const struct moon_profile *profile =
        &run->profiles[question / (MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS)];
    bool random = must_differ(
        profile, moon_processes_algorithms[question / MOON_PROCESSES_PROMPTS % MOON_PROCESSES_ALGORITHMS], seed);
    const struct moon_json *required = required_answer(run, question, seed);
    const struct moon_question *seen[MOON_PROCESSES_MAX];
    size_t count = 0, judged = 0;
    if (!required)
        return false;
    for (size_t i = 0; i < run->worker_count; i++) {
        const struct moon_processes_worker *worker = &run->workers[i];
        if (!run->answers[seed][i]) {
            if (worker->peer != peers)
                continue;
            one->outcome = MOON_OUTCOME_ERROR;
            one->reason = run->failures[seed][i];
            return false;
        }
        const struct moon_question *answer = &run->answers[seed][i][question];
        if (answer->reply == MOON_REPLY_SKIP)
            continue;
        if (worker->peer == peers && !judge_one(run, one, answer, worker->label, required, random))
            return false;
        judged += worker->peer == peers;
        if (answer->reply != MOON_REPLY_RESULT)
            continue;
        for (size_t earlier = 0; random && moon_random_case(answer->answer) && earlier < count; earlier++)
            if (moon_random_case(seen[earlier]->answer) && !judge_pair(run, one, answer, seen[earlier], worker->label))
                return false;
        seen[count++] = answer;
    }
    *answered = judged;
    return true;
}

/* One case: an algorithm and seed of a release. With `peers`, only the real ones are judged, against all others. */
static int judge_agreement(struct moon_processes_run *run, size_t profile, size_t algorithm, size_t seed, bool peers) {
    const struct moon_profile *release = &run->profiles[profile];
    const char *kind = moon_arena_format(run->arena, "hash.processes.%s%s_%s", peers ? "peer_" : "",
                                         moon_processes_algorithms[algorithm], moon_processes_seeds[seed].name);
    const char *id = kind ? moon_arena_format(run->arena, "%s.v%d", kind, release->minor) : NULL;
    if (id && !wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, kind, release->name);
    if (!one)
        return moon_processes_no_memory(run);
    size_t answered = 0;
    bool good = true;
    one->outcome = MOON_OUTCOME_PASS;
    one->done = moon_arena_format(run->arena, "PYTHONHASHSEED %s%s%s, %s: %zu processes hashed %d prompts",
                                  moon_processes_seeds[seed].value ? "\"" : "not set",
                                  moon_processes_seeds[seed].value ? moon_processes_seeds[seed].value : "",
                                  moon_processes_seeds[seed].value ? "\"" : "", moon_processes_algorithms[algorithm],
                                  run->worker_count, MOON_PROCESSES_PROMPTS);
    for (size_t prompt = 0; prompt < MOON_PROCESSES_PROMPTS && good; prompt++)
        good = judge_question(run, one, seed, question_of(profile, algorithm, prompt), peers, &answered);
    if (!good && one->outcome == MOON_OUTCOME_PASS)
        return moon_processes_no_memory(run);
    if (good && answered == 0) {
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = "no process answers this release";
    }
    moon_result_count(run->result, one);
    return 0;
}

static bool peer_answers(const struct moon_processes_run *run, size_t profile) {
    for (size_t seed = 0; seed < MOON_PROCESSES_SEEDS; seed++)
        for (size_t i = 0; i < run->worker_count; i++)
            if (run->workers[i].peer &&
                (!run->answers[seed][i] || run->answers[seed][i][question_of(profile, 0, 0)].reply != MOON_REPLY_SKIP))
                return true;
    return false;
}

static int judge_agreements(struct moon_processes_run *run, bool peers) {
    for (size_t profile = 0; profile < run->profile_count; profile++) {
        if (peers && !peer_answers(run, profile))
            continue;
        for (size_t algorithm = 0; algorithm < MOON_PROCESSES_ALGORITHMS; algorithm++)
            for (size_t seed = 0; seed < MOON_PROCESSES_SEEDS; seed++)
                if (judge_agreement(run, profile, algorithm, seed, peers) != 0)
                    return run->error->status;
    }
    return 0;
}

/* The seed is text: no two of the values may give the same NONE_HASH. */
static int judge_seeds_apart(struct moon_processes_run *run, size_t profile, size_t algorithm) {
    const struct moon_profile *release = &run->profiles[profile];
    const char *id = moon_arena_format(run->arena, "hash.processes.seeds_apart.v%d_%s", release->minor,
                                       moon_processes_algorithms[algorithm]);
    if (id && !wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, "hash.processes.seeds_apart", release->name);
    if (!one)
        return moon_processes_no_memory(run);
    one->outcome = MOON_OUTCOME_PASS;
    one->done = "compared NONE_HASH under PYTHONHASHSEED 0, 7, 007, empty and random";
    for (size_t i = 0; i < run->worker_count; i++) {
        const struct moon_json *seen[MOON_PROCESSES_SEEDS] = {NULL};
        for (size_t seed = 1; seed < MOON_PROCESSES_SEEDS && one->outcome == MOON_OUTCOME_PASS; seed++) {
            const struct moon_question *all = run->answers[seed][i];
            const struct moon_question *answer = all ? &all[question_of(profile, algorithm, 0)] : NULL;
            seen[seed] =
                answer && answer->reply == MOON_REPLY_RESULT ? moon_json_member(answer->answer, "none_hash") : NULL;
            for (size_t earlier = 1; earlier < seed && seen[seed]; earlier++)
                if (seen[earlier] && moon_json_equal(seen[earlier], seen[seed]))
                    fail(run, one, "another NONE_HASH for each text", run->workers[i].label,
                         moon_arena_format(run->arena, "PYTHONHASHSEED \"%s\" and \"%s\" give the same",
                                           moon_processes_seeds[earlier].value, moon_processes_seeds[seed].value));
        }
    }
    moon_result_count(run->result, one);
    return 0;
}

/* A build that reads PYTHONHASHSEED as a number must not go unnoticed. */
static int judge_mutant(struct moon_processes_run *run) {
    static const char id[] = "hash.processes.mutant_seed_as_number";
    if (!wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, "hash.processes", "");
    if (!one)
        return moon_processes_no_memory(run);
    one->done = "ran a build that reads PYTHONHASHSEED as a number beside the others, with 7 and 007";
    size_t index = run->worker_count, found = 0, asked = 0;
    bool memory = false;
    if (!moon_processes_add_mutant(run, "seed-as-number", &memory)) {
        if (memory)
            return moon_processes_no_memory(run);
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = "the mutant seed-as-number is not built (make run builds it)";
        moon_result_count(run->result, one);
        return 0;
    }
    for (size_t seed = 0; seed < MOON_PROCESSES_SEEDS; seed++)
        if (moon_processes_ask(run, seed, index) != 0)
            return run->error->status;
    for (size_t profile = 0; profile < run->profile_count; profile++) {
        struct moon_result_case scratch = {0};
        for (size_t seed = 1; seed < MOON_PROCESSES_SEEDS; seed++) {
            size_t question = question_of(profile, 0, 0);
            const struct moon_question *all = run->answers[seed][index];
            const struct moon_json *required = required_answer(run, question, seed);
            if (!all || !required)
                continue;
            asked++;
            found += !judge_one(run, &scratch, &all[question], "mutant", required, false) &&
                     scratch.outcome == MOON_OUTCOME_FAIL;
        }
    }
    run->worker_count = index;
    one->outcome = found > 0 && asked > 0 ? MOON_OUTCOME_PASS : MOON_OUTCOME_FAIL;
    one->expected = "the disagreement is noticed";
    one->seen = moon_arena_format(run->arena, "%zu of %zu answers of the mutant were found wrong", found, asked);
    moon_result_count(run->result, one);
    return one->seen ? 0 : moon_processes_no_memory(run);
}

/* Conditions of the whole run, each a case of its own. */
static int judge_condition(struct moon_processes_run *run, const char *id, bool met, enum moon_outcome otherwise,
                           const char *done, const char *reason) {
    if (!wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, "hash.processes", "");
    if (!one || !done)
        return moon_processes_no_memory(run);
    one->outcome = met ? MOON_OUTCOME_PASS : otherwise;
    one->done = done;
    one->reason = met ? "" : reason;
    moon_result_count(run->result, one);
    return 0;
}

static bool addresses_are_random(void) {
    char value = '0';
    FILE *file = fopen("/proc/sys/kernel/randomize_va_space", "re");
    if (file) {
        value = (char)fgetc(file);
        fclose(file);
    }
    int flags = personality(0xffffffff);
    return value != '0' && flags >= 0 && !(flags & ADDR_NO_RANDOMIZE);
}

static int judge_conditions(struct moon_processes_run *run) {
    size_t builds = run->build_count;
    size_t processes = run->worker_count - run->peer_count;
    const char *peers_missing =
        "no adapter of a real release was found (make deps-check fetches them; --peer COMMAND names one)";
    enum moon_outcome without = run->setting->peers_required ? MOON_OUTCOME_ERROR : MOON_OUTCOME_SKIP;
    if (run->peer_count == 0)
        run->result->incomplete_why = "the section with real vLLM processes is missing";
    int status = judge_condition(
        run, "hash.processes.builds", builds >= BUILDS_MIN && processes >= PROCESSES_MIN, MOON_OUTCOME_SKIP,
        moon_arena_format(run->arena, "%zu processes of %zu builds for each seed", processes, builds),
        "fewer than 16 processes or 3 builds are here (make run builds gcc-O0, gcc-O3 and clang)");
    if (status == 0)
        status = judge_condition(run, "hash.processes.address_randomisation", addresses_are_random(), MOON_OUTCOME_SKIP,
                                 "asked the kernel whether address space layouts are random",
                                 "this machine or process has address space randomisation off");
    if (status == 0)
        status = judge_condition(run, "hash.processes.real_releases", run->peer_count > 0, without,
                                 moon_arena_format(run->arena, "%zu adapters of real releases", run->peer_count),
                                 peers_missing);
    return status;
}

int moon_processes_judge(struct moon_processes_run *run) {
    int status = judge_conditions(run);
    if (status == 0 && run->worker_count > run->peer_count)
        status = judge_agreements(run, false);
    if (status == 0 && run->peer_count > 0)
        status = judge_agreements(run, true);
    for (size_t i = 0; i < run->profile_count * MOON_PROCESSES_ALGORITHMS && status == 0 && run->worker_count > 0; i++)
        status = judge_seeds_apart(run, i / MOON_PROCESSES_ALGORITHMS, i % MOON_PROCESSES_ALGORITHMS);
    return status == 0 ? judge_mutant(run) : status;
}
