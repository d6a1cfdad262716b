/* SPDX-License-Identifier: Apache-2.0 */
/* The family hash.processes: many OS processes hash the same prompts and must agree, or differ, exactly as each release does. */
#include "conformance/families.h"

#include "conformance/judge.h"
#include "conformance/process.h"
#include "conformance/random_case.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

enum {
    PROCESSES_MIN = 16,
    BUILDS_MIN = 3,
    PROCESSES_MAX = 64,
    PROMPTS = 2,
    PATH_BYTES = 4096,
};

static const char *const algorithms[] = {"sha256", "sha256_cbor", "xxhash", "xxhash_cbor"};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

/* Values of PYTHONHASHSEED; NULL: not set. `name` is part of ids. */
static const struct {
    const char *name, *value;
} seeds[] = {{"unset", NULL}, {"0", "0"}, {"7", "7"}, {"007", "007"}, {"empty", ""}, {"random", "random"}};
enum { SEEDS = sizeof seeds / sizeof *seeds };

/* What a process may meet and a hash must not depend on. NULL ends; the seed is added. */
enum { VARIATIONS = 6, VARIABLES_MAX = 5 };
static const struct {
    const char *folder;
    const char *environment[VARIABLES_MAX];
} variations[VARIATIONS] = {
    {NULL, {"LC_ALL=C", "TZ=UTC"}},
    {"/", {"LC_ALL=C.UTF-8", "TZ=Asia/Kathmandu"}},
    {"/tmp", {"LC_ALL=de_DE.UTF-8", "PYTHONUTF8=0"}},
    {"/usr", {"LC_ALL=tr_TR.UTF-8", "HOME=/nowhere"}},
    {NULL, {"LC_ALL", "LANG", "MALLOC_PERTURB_=165", "COLUMNS=40"}},
    {"/", {"LC_ALL=C", "LC_NUMERIC=de_DE.UTF-8", "OPENSSL_ia32cap=~0x200000200000000", "TERM=dumb"}},
};

/* {"algo":"ALGO" and then: the same prompts for every process. */
static const char *const prompts[PROMPTS] = {
    ",\"block_size\":16,\"prompt_token_ids\":{\"start\":5,\"step\":7919,\"mod\":151643,\"count\":80}}",
    ",\"block_size\":4,\"prompt_token_ids\":[0,1,255,256,65535,65536,2147483647,9,10,11,12,13],"
    "\"append_token_ids\":[[1,2,3],[4]],\"cache_salt\":\"Stra\\u00dfe \\u0130\\ud83d\\ude00\","
    "\"lora\":{\"name\":\"a\",\"path\":\"/b\"},\"mm_features\":[{\"identifier\":\"cafe\",\"offset\":2,\"length\":5}]}",
};

/* A program that hashes. */
struct worker {
    const char *command; /* of the adapter */
    const char *label;
    size_t variation;
    bool peer;
};

/* All that is known about a run. Question numbers count prompts within algorithms within profiles. */
struct run {
    const struct moon_family_setting *setting;
    struct moon_result *result;
    struct moon_arena *arena;
    struct moon_error *error;
    const struct moon_profile *profiles;
    size_t profile_count, question_count;
    const struct moon_json **givens; /* [algorithm][prompt] */
    struct worker workers[PROCESSES_MAX];
    size_t worker_count, peer_count;
    struct moon_question *answers[SEEDS][PROCESSES_MAX]; /* NULL: did not start, then: */
    const char *failures[SEEDS][PROCESSES_MAX];
    size_t done, all;
};

static int no_memory(struct run *run) {
    return moon_fail(run->error, MOON_ERR_MEMORY, NULL, "out of memory");
}

static bool wanted(const struct run *run, const char *id) {
    return !run->setting->only || fnmatch(run->setting->only, id, 0) == 0;
}

static size_t question_of(size_t profile, size_t algorithm, size_t prompt) {
    return (profile * ALGORITHMS + algorithm) * PROMPTS + prompt;
}

/* ---- the workers */

static int make_givens(struct run *run) {
    run->givens = moon_arena_array(run->arena, ALGORITHMS * PROMPTS, sizeof *run->givens);
    for (size_t i = 0; run->givens && i < ALGORITHMS * PROMPTS; i++) {
        struct moon_json *given = NULL;
        const char *text = moon_arena_format(run->arena, "{\"algo\":\"%s\"%s", algorithms[i / PROMPTS], prompts[i % PROMPTS]);
        if (!text ||
            moon_json_read(run->arena, "prompt", text, strlen(text), MOON_JSON_STRICT, &given, run->error) != 0)
            return no_memory(run);
        run->givens[i] = given;
    }
    return run->givens ? 0 : no_memory(run);
}

static bool add_worker(struct run *run, const char *command, const char *label, size_t variation, bool peer) {
    if (!command || !label || run->worker_count == PROCESSES_MAX)
        return false;
    run->workers[run->worker_count++] = (struct worker){command, label, variation, peer};
    return true;
}

/* Command that starts the example adapter of a folder from anywhere; NULL when the folder has none. */
static const char *example_of(struct run *run, const char *folder) {
    char path[PATH_BYTES];
    const char *file = moon_arena_format(run->arena, "%s/mooncheck-adapter-example", folder);
    if (!file || !realpath(file, path) || access(path, X_OK) != 0)
        return NULL;
    return moon_arena_format(run->arena, "exec '%s'", path);
}

/* One process for each build and variation, then one for each peer. Returns the number of builds. */
static size_t add_workers(struct run *run) {
    size_t builds = 0;
    for (size_t i = 0; i < run->setting->build_count; i++) {
        const char *command = example_of(run, run->setting->builds[i]);
        const char *slash = strrchr(run->setting->builds[i], '/');
        const char *name = slash ? slash + 1 : run->setting->builds[i];
        for (size_t v = 0; command && v < VARIATIONS; v++)
            add_worker(run, command, moon_arena_format(run->arena, "%s in environment %zu", name, v), v, false);
        builds += command != NULL;
    }
    for (size_t i = 0; i < run->setting->peer_count; i++)
        run->peer_count += add_worker(run, run->setting->peers[i],
                                      moon_arena_format(run->arena, "real release %zu", i + 1), 0, true);
    return builds;
}

/* Questions for one process: what it does not offer is marked as a skip. */
static struct moon_question *make_questions(struct run *run, const struct moon_target *target, struct moon_question *asked,
                                            size_t *places, size_t *count) {
    struct moon_question *all = moon_arena_array(run->arena, run->question_count, sizeof *all);
    *count = 0;
    for (size_t i = 0; all && i < run->question_count; i++) {
        const struct moon_profile *profile = &run->profiles[i / (ALGORITHMS * PROMPTS)];
        all[i] = (struct moon_question){.suite = &moon_suite_hash,
                                        .profile = profile,
                                        .given = run->givens[i % (ALGORITHMS * PROMPTS)],
                                        .reply = MOON_REPLY_SKIP,
                                        .reason = "not offered"};
        if (!moon_target_offers_suite(target, "hash") || !moon_target_offers_profile(target, profile->name))
            continue;
        asked[*count] = all[i];
        places[(*count)++] = i;
    }
    return all;
}

/* Starts one process under one seed, asks everything, ends it. */
static int ask_worker(struct run *run, size_t seed, size_t index) {
    const struct worker *worker = &run->workers[index];
    const char *environment[VARIABLES_MAX + 2] = {NULL};
    size_t variables = 0, count = 0;
    while (!worker->peer && variables < VARIABLES_MAX && variations[worker->variation].environment[variables]) {
        environment[variables] = variations[worker->variation].environment[variables];
        variables++;
    }
    const char *value = seeds[seed].value;
    environment[variables] = value ? moon_arena_format(run->arena, "PYTHONHASHSEED=%s", value) : "PYTHONHASHSEED";
    const struct moon_target_setting setting = {.folder = worker->peer ? NULL : variations[worker->variation].folder,
                                                .environment = environment};
    const char *spec = moon_arena_format(run->arena, "cmd:%s", worker->command);
    struct moon_question *asked = moon_arena_array(run->arena, run->question_count, sizeof *asked);
    size_t *places = moon_arena_array(run->arena, run->question_count, sizeof *places);
    struct moon_target *target = NULL;
    struct moon_error why;
    if (!spec || !asked || !places || !environment[variables])
        return no_memory(run);
    int status = moon_target_open(&target, spec, &setting, &why);
    if (status != 0) {
        run->failures[seed][index] = moon_arena_format(run->arena, "%s: %s", worker->label, why.message);
        return run->failures[seed][index] ? 0 : no_memory(run);
    }
    struct moon_question *all = make_questions(run, target, asked, places, &count);
    status = all ? moon_target_ask(target, run->arena, asked, count, run->error) : no_memory(run);
    for (size_t i = 0; i < count && status == 0; i++)
        all[places[i]] = asked[i];
    run->answers[seed][index] = all;
    moon_target_close(target);
    return status;
}

static int ask_all(struct run *run) {
    run->all = SEEDS * run->worker_count;
    for (size_t seed = 0; seed < SEEDS; seed++) {
        for (size_t i = 0; i < run->worker_count; i++) {
            int status = ask_worker(run, seed, i);
            if (status != 0)
                return status;
            run->done++;
            if (run->setting->progress)
                run->setting->progress(run->done, run->all);
        }
    }
    return 0;
}

/* ---- judging */

static struct moon_result_case *add_case(struct run *run, const char *id, const char *kind, const char *profile) {
    struct moon_result_case *one = id && kind ? moon_judge_add(run->result, id, kind, "hash", profile) : NULL;
    if (one)
        one->reproduce = moon_arena_format(run->arena, "mooncheck run --only '%s'", id);
    return one;
}

/* What the release must answer when PYTHONHASHSEED has this value, by the reference in this process. */
static const struct moon_json *required_answer(struct run *run, size_t question, size_t seed) {
    struct moon_json *given = moon_json_clone(run->arena, run->givens[question % (ALGORITHMS * PROMPTS)]);
    static const struct moon_target_setting plain = {0};
    struct moon_target *reference = NULL;
    struct moon_error ignored;
    moon_json_set(run->arena, given, "python_hash_seed",
                  seeds[seed].value ? moon_json_string(run->arena, seeds[seed].value) : moon_json_null(run->arena));
    struct moon_question ask = {.suite = &moon_suite_hash,
                                .profile = &run->profiles[question / (ALGORITHMS * PROMPTS)],
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
    return !seeds[seed].value && (xxhash || profile->none_hash == MOON_NONE_HASH_RANDOM_BYTES);
}

static bool is_random(const struct moon_json *answer) {
    return moon_random_case(answer);
}

static void fail(struct run *run, struct moon_result_case *one, const char *expected, const char *who, const char *seen) {
    one->outcome = MOON_OUTCOME_FAIL;
    one->expected = expected;
    one->seen = moon_arena_format(run->arena, "%s: %s", who, seen);
}

/* One answer against what is required of it alone. True when good. */
static bool judge_one(struct run *run, struct moon_result_case *one, const struct moon_question *question, const char *who,
                      const struct moon_json *required, bool random) {
    struct moon_difference difference = {"", "", ""};
    if (question->reply != MOON_REPLY_RESULT) {
        one->outcome = question->reply == MOON_REPLY_TIMEOUT ? MOON_OUTCOME_TIMEOUT
                       : question->reply == MOON_REPLY_CRASH ? MOON_OUTCOME_CRASH
                                                             : MOON_OUTCOME_ERROR;
        one->reason = moon_arena_format(run->arena, "%s: %s", who, question->reason);
        return false;
    }
    if (is_random(question->answer) != random) {
        fail(run, one, random ? "a NONE_HASH that each process draws" : "a NONE_HASH that is the same in every process", who,
             random ? "says that it is fixed" : "says that it is random");
        return false;
    }
    if (random || moon_compare(run->arena, &moon_suite_hash, question->given, required, question->answer, &difference) == 0)
        return true;
    fail(run, one, difference.expected, who,
         moon_arena_format(run->arena, "%s%s%s", difference.seen, difference.hint[0] ? ", " : "", difference.hint));
    return false;
}

/* Two processes that draw: each chain follows from its NONE_HASH, and the two differ. */
static bool judge_pair(struct run *run, struct moon_result_case *one, const struct moon_question *a, const struct moon_question *b,
                       const char *who) {
    struct moon_difference difference = {"", "", ""};
    struct moon_json *expect = moon_json_object(run->arena);
    moon_json_set(run->arena, expect, "random", moon_json_bool(run->arena, true));
    moon_json_set(run->arena, expect, "none_hash_len",
                  moon_json_clone(run->arena, moon_json_member(a->answer, "none_hash_len")));
    if (moon_json_broken(expect))
        return false;
    if (moon_random_compare(run->arena, &moon_suite_hash, a->profile, a->given, expect, a->answer, b->answer, &difference) == 0)
        return true;
    fail(run, one, difference.expected, who,
         moon_arena_format(run->arena, "%s%s%s", difference.seen, difference.hint[0] ? ", " : "", difference.hint));
    return false;
}

/* All processes under one seed, for one question; stops at the first fault. Counts the processes that answered. */
static bool judge_question(struct run *run, struct moon_result_case *one, size_t seed, size_t question, bool peers,
                           size_t *answered) {
    const struct moon_profile *profile = &run->profiles[question / (ALGORITHMS * PROMPTS)];
    bool random = must_differ(profile, algorithms[question / PROMPTS % ALGORITHMS], seed);
    const struct moon_json *required = required_answer(run, question, seed);
    const struct moon_question *seen[PROCESSES_MAX];
    size_t count = 0, judged = 0;
    if (!required)
        return false;
    for (size_t i = 0; i < run->worker_count; i++) {
        const struct worker *worker = &run->workers[i];
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
        for (size_t earlier = 0; random && is_random(answer->answer) && earlier < count; earlier++)
            if (is_random(seen[earlier]->answer) && !judge_pair(run, one, answer, seen[earlier], worker->label))
                return false;
        seen[count++] = answer;
    }
    *answered = judged;
    return true;
}

/* One case: an algorithm and seed of a release. With `peers`, only the real ones are judged, against all others. */
static int judge_agreement(struct run *run, size_t profile, size_t algorithm, size_t seed, bool peers) {
    const struct moon_profile *release = &run->profiles[profile];
    const char *kind = moon_arena_format(run->arena, "hash.processes.%s%s_%s", peers ? "peer_" : "", algorithms[algorithm],
                                         seeds[seed].name);
    const char *id = kind ? moon_arena_format(run->arena, "%s.v%d", kind, release->minor) : NULL;
    if (id && !wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, kind, release->name);
    if (!one)
        return no_memory(run);
    size_t answered = 0;
    bool good = true;
    one->outcome = MOON_OUTCOME_PASS;
    one->done = moon_arena_format(run->arena, "PYTHONHASHSEED %s%s%s, %s: %zu processes hashed %d prompts",
                                  seeds[seed].value ? "\"" : "not set", seeds[seed].value ? seeds[seed].value : "",
                                  seeds[seed].value ? "\"" : "", algorithms[algorithm], run->worker_count, PROMPTS);
    for (size_t prompt = 0; prompt < PROMPTS && good; prompt++)
        good = judge_question(run, one, seed, question_of(profile, algorithm, prompt), peers, &answered);
    if (!good && one->outcome == MOON_OUTCOME_PASS)
        return no_memory(run);
    if (good && answered == 0) {
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = "no process answers this release";
    }
    moon_result_count(run->result, one);
    return 0;
}

static bool peer_answers(const struct run *run, size_t profile) {
    for (size_t seed = 0; seed < SEEDS; seed++)
        for (size_t i = 0; i < run->worker_count; i++)
            if (run->workers[i].peer && (!run->answers[seed][i] ||
                                         run->answers[seed][i][question_of(profile, 0, 0)].reply != MOON_REPLY_SKIP))
                return true;
    return false;
}

static int judge_agreements(struct run *run, bool peers) {
    for (size_t profile = 0; profile < run->profile_count; profile++) {
        if (peers && !peer_answers(run, profile))
            continue;
        for (size_t algorithm = 0; algorithm < ALGORITHMS; algorithm++)
            for (size_t seed = 0; seed < SEEDS; seed++)
                if (judge_agreement(run, profile, algorithm, seed, peers) != 0)
                    return run->error->status;
    }
    return 0;
}

/* The seed is text: no two of the values may give the same NONE_HASH. */
static int judge_seeds_apart(struct run *run, size_t profile, size_t algorithm) {
    const struct moon_profile *release = &run->profiles[profile];
    const char *id = moon_arena_format(run->arena, "hash.processes.seeds_apart.v%d_%s", release->minor, algorithms[algorithm]);
    if (id && !wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, "hash.processes.seeds_apart", release->name);
    if (!one)
        return no_memory(run);
    one->outcome = MOON_OUTCOME_PASS;
    one->done = "compared NONE_HASH under PYTHONHASHSEED 0, 7, 007, empty and random";
    for (size_t i = 0; i < run->worker_count; i++) {
        const struct moon_json *seen[SEEDS] = {NULL};
        for (size_t seed = 1; seed < SEEDS && one->outcome == MOON_OUTCOME_PASS; seed++) {
            const struct moon_question *all = run->answers[seed][i];
            const struct moon_question *answer = all ? &all[question_of(profile, algorithm, 0)] : NULL;
            seen[seed] = answer && answer->reply == MOON_REPLY_RESULT ? moon_json_member(answer->answer, "none_hash") : NULL;
            for (size_t earlier = 1; earlier < seed && seen[seed]; earlier++)
                if (seen[earlier] && moon_json_equal(seen[earlier], seen[seed]))
                    fail(run, one, "another NONE_HASH for each text", run->workers[i].label,
                         moon_arena_format(run->arena, "PYTHONHASHSEED \"%s\" and \"%s\" give the same", seeds[earlier].value,
                                           seeds[seed].value));
        }
    }
    moon_result_count(run->result, one);
    return 0;
}

/* A build that reads PYTHONHASHSEED as a number must not go unnoticed. */
static int judge_mutant(struct run *run) {
    static const char id[] = "hash.processes.mutant_seed_as_number";
    if (!wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, "hash.processes", "");
    const char *folder = moon_arena_format(run->arena, "%s/seed-as-number", run->setting->mutants);
    const char *command = folder ? example_of(run, folder) : NULL;
    if (!one || !folder)
        return no_memory(run);
    one->done = "ran a build that reads PYTHONHASHSEED as a number beside the others, with 7 and 007";
    if (!command) {
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = "the mutant seed-as-number is not built (make run builds it)";
        moon_result_count(run->result, one);
        return 0;
    }
    size_t index = run->worker_count, found = 0, asked = 0;
    if (!add_worker(run, command, "mutant", 0, false))
        return no_memory(run);
    for (size_t seed = 0; seed < SEEDS; seed++)
        if (ask_worker(run, seed, index) != 0)
            return run->error->status;
    for (size_t profile = 0; profile < run->profile_count; profile++) {
        struct moon_result_case scratch = {0};
        for (size_t seed = 1; seed < SEEDS; seed++) {
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
    return one->seen ? 0 : no_memory(run);
}

/* Conditions of the whole run, each a case of its own. */
static int judge_condition(struct run *run, const char *id, bool met, enum moon_outcome otherwise, const char *done,
                           const char *reason) {
    if (!wanted(run, id))
        return 0;
    struct moon_result_case *one = add_case(run, id, "hash.processes", "");
    if (!one || !done)
        return no_memory(run);
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

static int judge_conditions(struct run *run, size_t builds) {
    size_t processes = run->worker_count - run->peer_count;
    const char *peers_missing = "no adapter of a real release was found (make deps-check fetches them; --peer COMMAND names one)";
    enum moon_outcome without = run->setting->peers_required ? MOON_OUTCOME_ERROR : MOON_OUTCOME_SKIP;
    if (run->peer_count == 0)
        run->result->incomplete_why = "the section with real vLLM processes is missing";
    int status = judge_condition(run, "hash.processes.builds", builds >= BUILDS_MIN && processes >= PROCESSES_MIN,
                                 MOON_OUTCOME_SKIP,
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

int moon_family_processes(const struct moon_family_setting *setting, struct moon_result *result, struct moon_error *error) {
    struct run *run = moon_arena_alloc(result->arena, sizeof *run);
    if (!run)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    run->setting = setting;
    run->result = result;
    run->arena = result->arena;
    run->error = error;
    run->profiles = moon_profiles(&run->profile_count);
    run->question_count = run->profile_count * ALGORITHMS * PROMPTS;
    int status = make_givens(run);
    size_t builds = status == 0 ? add_workers(run) : 0;
    if (status == 0)
        status = ask_all(run);
    if (status == 0)
        status = judge_conditions(run, builds);
    if (status == 0 && run->worker_count > run->peer_count)
        status = judge_agreements(run, false);
    if (status == 0 && run->peer_count > 0)
        status = judge_agreements(run, true);
    for (size_t i = 0; i < run->profile_count * ALGORITHMS && status == 0 && run->worker_count > 0; i++)
        status = judge_seeds_apart(run, i / ALGORITHMS, i % ALGORITHMS);
    return status == 0 ? judge_mutant(run) : status;
}
