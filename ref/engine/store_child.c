/* SPDX-License-Identifier: Apache-2.0 */
/* The store connector's scheduler side as a core scheduler sees it. */
#include "ref/engine/store_child.h"

static struct moon_store_child *child_of(struct moon_engine_port *port) {
    return (struct moon_store_child *)port;
}

static int match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *out, struct moon_error *error) {
    struct moon_match found = {0};
    int status = moon_scheduler_match(child_of(self)->scheduler, request, computed_tokens, &found, error);
    *out = (struct moon_engine_match){found.pending, found.load_async, found.tokens};
    return status;
}

static int allocated(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    return moon_scheduler_allocated(child_of(self)->scheduler, request, tables, external_tokens, error);
}

static int step(struct moon_engine_port *self, const struct moon_step *what, struct moon_error *error) {
    struct moon_store_child *child = child_of(self);
    moon_step_jobs_clear(&child->jobs);
    return moon_scheduler_step(child->scheduler, what, &child->jobs, error);
}

static bool finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    return moon_scheduler_finished(child_of(self)->scheduler, request, has_blocks);
}

static int report(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error) {
    (void)child; /* it is the only one */
    return moon_scheduler_report(child_of(self)->scheduler, job, ranks, error);
}

static bool reset(struct moon_engine_port *self) {
    return moon_scheduler_reset(child_of(self)->scheduler);
}

void moon_store_child_open(struct moon_store_child *child, struct moon_scheduler *scheduler,
                           struct moon_memory *memory) {
    *child =
        (struct moon_store_child){.port = {match, allocated, step, finished, report, reset}, .scheduler = scheduler};
    moon_step_jobs_open(&child->jobs, memory);
}

void moon_store_child_close(struct moon_store_child *child) {
    moon_step_jobs_close(&child->jobs);
}
