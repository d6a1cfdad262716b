/* SPDX-License-Identifier: Apache-2.0 */
/* The family hash.processes inside: what is run, and what is known while it runs. Used by processes.c and
 * processes_judge.c alone. */
#ifndef MOON_CONFORMANCE_PROCESSES_H
#define MOON_CONFORMANCE_PROCESSES_H

#include "conformance/families.h"
#include "conformance/target.h"

enum {
    MOON_PROCESSES_MAX = 64,
    MOON_PROCESSES_PROMPTS = 2,
    MOON_PROCESSES_ALGORITHMS = 4,
    MOON_PROCESSES_SEEDS = 6,
};

extern const char *const moon_processes_algorithms[MOON_PROCESSES_ALGORITHMS];

/* Values of PYTHONHASHSEED; NULL: not set. `name` is part of ids. The first is the one that is not set. */
struct moon_processes_seed {
    const char *name, *value;
};
extern const struct moon_processes_seed moon_processes_seeds[MOON_PROCESSES_SEEDS];

/* A program that hashes. */
struct moon_processes_worker {
    const char *command; /* of the adapter */
    const char *label;
    size_t variation; /* of its environment */
    bool peer;        /* a real release */
};

/* All that is known about a run. Question numbers count prompts within algorithms within profiles.
 *   givens    [algorithm][prompt]
 *   answers   [seed][worker] -> one entry a question; NULL: the process did not start, then failures tells why */
struct moon_processes_run {
    const struct moon_family_setting *setting;
    struct moon_result *result;
    struct moon_arena *arena;
    struct moon_error *error;
    const struct moon_profile *profiles;
    size_t profile_count, question_count, build_count;
    const struct moon_json **givens;
    struct moon_processes_worker workers[MOON_PROCESSES_MAX];
    size_t worker_count, peer_count;
    struct moon_question *answers[MOON_PROCESSES_SEEDS][MOON_PROCESSES_MAX];
    const char *failures[MOON_PROCESSES_SEEDS][MOON_PROCESSES_MAX];
    size_t done, all;
};

int moon_processes_no_memory(struct moon_processes_run *run);

/* Starts the worker under one seed, asks it everything, ends it. Returns 0 or MOON_ERR_MEMORY. */
int moon_processes_ask(struct moon_processes_run *run, size_t seed, size_t worker);
/* Adds the mutant NAME as last worker. False when it is not built; *memory is set when memory refused. */
bool moon_processes_add_mutant(struct moon_processes_run *run, const char *name, bool *memory);

/* Adds the judged cases of a run whose workers were asked. Returns 0 or MOON_ERR_MEMORY. */
int moon_processes_judge(struct moon_processes_run *run);

#endif
