/* SPDX-License-Identifier: Apache-2.0 */
/* The family hash.processes: many OS processes hash the same prompts and must agree, or differ, exactly as each release
 * does. */
#include "conformance/processes.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

const char *const moon_processes_algorithms[MOON_PROCESSES_ALGORITHMS] = {"sha256", "sha256_cbor", "xxhash",
                                                                          "xxhash_cbor"};

const struct moon_processes_seed moon_processes_seeds[MOON_PROCESSES_SEEDS] = {
    {"unset", NULL}, {"0", "0"}, {"7", "7"}, {"007", "007"}, {"empty", ""}, {"random", "random"},
};

/* What a process may meet and a hash must not depend on. NULL ends; the seed is added. */
enum { VARIATIONS = 6, VARIABLES_MAX = 5 };
static const struct {
    const char *folder;
    const char *environment[VARIABLES_MAX];
} variations[VARIATIONS] = {
    {NULL, {"LC_ALL=C", "TZ=UTC"}},
    {"/", {"LC_ALL=C.UTF-8", "TZ=Asia/Kathmandu"}},
    {"/var", {"LC_ALL=de_DE.UTF-8", "PYTHONUTF8=0"}},
    {"/usr", {"LC_ALL=tr_TR.UTF-8", "HOME=/nowhere"}},
    {NULL, {"LC_ALL", "LANG", "MALLOC_PERTURB_=165", "COLUMNS=40"}},
    {"/", {"LC_ALL=C", "LC_NUMERIC=de_DE.UTF-8", "OPENSSL_ia32cap=~0x200000200000000", "TERM=dumb"}},
};

/* {"algo":"ALGO" and then: the same prompts for every process. */
static const char *const prompts[MOON_PROCESSES_PROMPTS] = {
    ",\"block_size\":16,\"prompt_token_ids\":{\"start\":5,\"step\":7919,\"mod\":151643,\"count\":80}}",
    ",\"block_size\":4,\"prompt_token_ids\":[0,1,255,256,65535,65536,2147483647,9,10,11,12,13],"
    "\"append_token_ids\":[[1,2,3],[4]],\"cache_salt\":\"Stra\\u00dfe \\u0130\\ud83d\\ude00\","
    "\"lora\":{\"name\":\"a\",\"path\":\"/b\"},\"mm_features\":[{\"identifier\":\"cafe\",\"offset\":2,\"length\":5}]}",
};

int moon_processes_no_memory(struct moon_processes_run *run) {
    return moon_fail(run->error, MOON_ERR_MEMORY, NULL, "out of memory");
}

static int make_givens(struct moon_processes_run *run) {
    run->givens = moon_arena_array(run->arena, MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS, sizeof *run->givens);
    for (size_t i = 0; run->givens && i < MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS; i++) {
        struct moon_json *given = NULL;
        const char *text =
            moon_arena_format(run->arena, "{\"algo\":\"%s\"%s", moon_processes_algorithms[i / MOON_PROCESSES_PROMPTS],
                              prompts[i % MOON_PROCESSES_PROMPTS]);
        if (!text ||
            moon_json_read(run->arena, "prompt", text, strlen(text), MOON_JSON_STRICT, &given, run->error) != 0)
            return moon_processes_no_memory(run);
        run->givens[i] = given;
    }
    return run->givens ? 0 : moon_processes_no_memory(run);
}

static bool add_worker(struct moon_processes_run *run, const char *command, const char *label, size_t variation,
                       bool peer) {
    if (!command || !label || run->worker_count == MOON_PROCESSES_MAX)
        return false;
    run->workers[run->worker_count++] = (struct moon_processes_worker){command, label, variation, peer};
    return true;
}

/* Command that starts the example adapter of a folder from anywhere; NULL when the folder has none. */
static const char *example_of(struct moon_processes_run *run, const char *folder) {
    char path[PATH_BYTES];
    const char *file = moon_arena_format(run->arena, "%s/mooncheck-adapter-example", folder);
    if (!file || !realpath(file, path) || access(path, X_OK) != 0)
        return NULL;
    return moon_arena_format(run->arena, "exec '%s'", path);
}

bool moon_processes_add_mutant(struct moon_processes_run *run, const char *name, bool *memory) {
    const char *folder = moon_arena_format(run->arena, "%s/%s", run->setting->mutants, name);
    const char *command = folder ? example_of(run, folder) : NULL;
    *memory = folder == NULL;
    return add_worker(run, command, "mutant", 0, false);
}

/* One process for each build and variation, then one for each peer. Counts the builds. */
static void add_workers(struct moon_processes_run *run) {
    for (size_t i = 0; i < run->setting->build_count; i++) {
        const char *command = example_of(run, run->setting->builds[i]);
        const char *slash = strrchr(run->setting->builds[i], '/');
        const char *name = slash ? slash + 1 : run->setting->builds[i];
        for (size_t v = 0; command && v < VARIATIONS; v++)
            add_worker(run, command, moon_arena_format(run->arena, "%s in environment %zu", name, v), v, false);
        run->build_count += command != NULL;
    }
    for (size_t i = 0; i < run->setting->peer_count; i++)
        run->peer_count +=
            add_worker(run, run->setting->peers[i], moon_arena_format(run->arena, "real release %zu", i + 1), 0, true);
}

/* Questions for one process: what it does not offer is marked as a skip. */
static struct moon_question *make_questions(struct moon_processes_run *run, const struct moon_target *target,
                                            struct moon_question *asked, size_t *places, size_t *count) {
    struct moon_question *all = moon_arena_array(run->arena, run->question_count, sizeof *all);
    *count = 0;
    for (size_t i = 0; all && i < run->question_count; i++) {
        const struct moon_profile *profile = &run->profiles[i / (MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS)];
        all[i] = (struct moon_question){.suite = &moon_suite_hash,
                                        .profile = profile,
                                        .given = run->givens[i % (MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS)],
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
int moon_processes_ask(struct moon_processes_run *run, size_t seed, size_t index) {
    const struct moon_processes_worker *worker = &run->workers[index];
    const char *environment[VARIABLES_MAX + 2] = {NULL};
    size_t variables = 0, count = 0;
    while (!worker->peer && variables < VARIABLES_MAX && variations[worker->variation].environment[variables]) {
        environment[variables] = variations[worker->variation].environment[variables];
        variables++;
    }
    const char *value = moon_processes_seeds[seed].value;
    environment[variables] = value ? moon_arena_format(run->arena, "PYTHONHASHSEED=%s", value) : "PYTHONHASHSEED";
    const struct moon_target_setting setting = {.folder = worker->peer ? NULL : variations[worker->variation].folder,
                                                .environment = environment};
    const char *spec = moon_arena_format(run->arena, "cmd:%s", worker->command);
    struct moon_question *asked = moon_arena_array(run->arena, run->question_count, sizeof *asked);
    size_t *places = moon_arena_array(run->arena, run->question_count, sizeof *places);
    struct moon_target *target = NULL;
    struct moon_error why;
    if (!spec || !asked || !places || !environment[variables])
        return moon_processes_no_memory(run);
    int status = moon_target_open(&target, spec, &setting, &why);
    if (status != 0) {
        run->failures[seed][index] = moon_arena_format(run->arena, "%s: %s", worker->label, why.message);
        return run->failures[seed][index] ? 0 : moon_processes_no_memory(run);
    }
    struct moon_question *all = make_questions(run, target, asked, places, &count);
    status = all ? moon_target_ask(target, run->arena, asked, count, run->error) : moon_processes_no_memory(run);
    for (size_t i = 0; i < count && status == 0; i++)
        all[places[i]] = asked[i];
    run->answers[seed][index] = all;
    moon_target_close(target);
    return status;
}

static int ask_all(struct moon_processes_run *run) {
    run->all = MOON_PROCESSES_SEEDS * run->worker_count;
    for (size_t seed = 0; seed < MOON_PROCESSES_SEEDS; seed++) {
        for (size_t i = 0; i < run->worker_count; i++) {
            int status = moon_processes_ask(run, seed, i);
            if (status != 0)
                return status;
            run->done++;
            if (run->setting->progress)
                run->setting->progress(run->done, run->all);
        }
    }
    return 0;
}

int moon_family_processes(const struct moon_family_setting *setting, struct moon_result *result,
                          struct moon_error *error) {
    struct moon_processes_run *run = moon_arena_alloc(result->arena, sizeof *run);
    if (!run)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    run->setting = setting;
    run->result = result;
    run->arena = result->arena;
    run->error = error;
    run->profiles = moon_profiles(&run->profile_count);
    run->question_count = run->profile_count * MOON_PROCESSES_ALGORITHMS * MOON_PROCESSES_PROMPTS;
    int status = make_givens(run);
    if (status == 0) {
        add_workers(run);
        status = ask_all(run);
    }
    return status == 0 ? moon_processes_judge(run) : status;
}
