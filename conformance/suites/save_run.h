/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a case of the suite save: the scheduler side, and the sender of every rank over one store. */
#ifndef MOON_CONFORMANCE_SUITES_SAVE_RUN_H
#define MOON_CONFORMANCE_SUITES_SAVE_RUN_H

#include "conformance/suites/save_case.h"
#include "ref/connector/sender.h"

/* What is told of a run, in order: a step begins, all its jobs, then rank by rank what each does, and the step's end.
 * Any function may be NULL.
 *   called  a call to the store with its results, one a key
 *   raised  what the release raises inside a job */
struct moon_save_observer {
    void (*began)(struct moon_save_observer *self, size_t step);
    void (*planned)(struct moon_save_observer *self, const struct moon_step_jobs *jobs);
    void (*called)(struct moon_save_observer *self, int64_t rank, const struct moon_store_call *call,
                   const int64_t *results);
    void (*raised)(struct moon_save_observer *self, int64_t rank, const struct moon_error *error);
    void (*ended)(struct moon_save_observer *self);
};

/* At the end: keys that the run added to the store, and jobs that still hold blocks. */
struct moon_save_outcome {
    size_t stored_keys, unreleased_jobs;
};

/* Runs all steps. `its` is changed: its store holds what was put. Returns 0, MOON_ERR_MEMORY, MOON_ERR_RANGE with the
 * place for steps that no core makes, MOON_ERR_REFUSED where the scheduler side of the release raises. */
int moon_save_run(struct moon_arena *arena, struct moon_save_case *its, struct moon_save_observer *observer,
                  struct moon_save_outcome *outcome, struct moon_error *error);

#endif
