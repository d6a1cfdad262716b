/* SPDX-License-Identifier: Apache-2.0 */
/* The connector's scheduler side: what to look up, what to save and load in each step, and when blocks may be freed. */
#ifndef MOON_CONNECTOR_SCHEDULER_H
#define MOON_CONNECTOR_SCHEDULER_H

#include "ref/connector/job.h"
#include "ref/connector/lookup_port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tokens of a request, and of a step; memory of a tracker. */
#define MOON_CONNECTOR_TOKENS_MAX (INT64_C(1) << 40)
enum { MOON_TRACKER_BYTES_MAX = 128 };

/* Blocks of the engine's pool that jobs refer to (0.28 on). hold adds a reference to each, release gives them back, in
 * this order. May be NULL: nobody counts. */
struct moon_block_port {
    void (*hold)(struct moon_block_port *self, const int64_t *blocks, size_t count);
    void (*release)(struct moon_block_port *self, const int64_t *blocks, size_t count);
};

/* What the core knows of one scheduled request. Arrays are borrowed for the call; tables have one entry a store group.
 *   prefill_tokens    new or resumed: tokens to prefill (prompt, or prompt and replayed output)
 *   computed_tokens   with KV before this step;  scheduled_tokens  of this step
 *   blocks            new or resumed: the whole table; running: blocks added, or NULL if none
 *   table             the table after this step (0.29 on; jobs are read from it); NULL: not told */
struct moon_step_request {
    const struct moon_request *request;
    bool resumed; /* in the cached list: was preempted, comes back */
    int64_t prefill_tokens, computed_tokens, scheduled_tokens;
    const struct moon_block_table *blocks;
    const struct moon_block_table *table;
};
/* A Mamba state handed off at `tokens` (0.27 on).
 *   table  of its request (0.29 on), needed when the request is not scheduled in this step; NULL: not told */
struct moon_step_boundary {
    uint32_t slot;
    struct moon_boundary_put put;
    const struct moon_block_table *table;
};
/* One scheduler step. A request is in `fresh` or `cached` once; boundaries of a request follow one another. A boundary
 * of a group that is not stored has a group number beyond the model's. */
struct moon_step {
    const uint32_t *finished, *preempted; /* slots */
    size_t finished_count, preempted_count;
    const struct moon_step_request *fresh, *cached;
    size_t fresh_count, cached_count;
    const struct moon_step_boundary *boundaries;
    size_t boundary_count;
};

/* Jobs of a step, in order; each entry is a reference that the receiver owns (moon_step_jobs_close releases them). */
struct moon_step_jobs {
    struct moon_memory *memory;
    struct moon_job **jobs;
    size_t count, capacity;
};
void moon_step_jobs_open(struct moon_step_jobs *jobs, struct moon_memory *memory);
void moon_step_jobs_clear(struct moon_step_jobs *jobs); /* releases the jobs, keeps the array */
void moon_step_jobs_close(struct moon_step_jobs *jobs);

/* Answer to the core: pending (ask again in a later step), or tokens to load (0: none) and whether they come
 * asynchronously. hit_tokens: prefix that the store can serve, 0 when nothing is to be loaded. */
struct moon_match {
    bool pending, load_async;
    int64_t tokens, hit_tokens;
    size_t boundary_count;
    int64_t tail_boundaries[MOON_STORE_GROUPS_MAX];
};

struct moon_scheduler;

/* Memory a running request holds here: one tracker of fixed size (MOON_TRACKER_BYTES_MAX) and, up to 0.28, its block
 * table; nothing grows per token. Borrows connector and ports.
 *   lookups     NULL: nothing is looked up
 *   world_size  ranks that report each job. Blocks still held at the close are not released */
int moon_scheduler_open(struct moon_scheduler **out, const struct moon_connector *connector,
                        struct moon_lookup_port *lookups, struct moon_block_port *blocks, int64_t world_size,
                        struct moon_memory *memory, struct moon_error *error);
void moon_scheduler_close(struct moon_scheduler *scheduler); /* NULL: nothing */

/* get_num_new_matched_tokens. computed_tokens: the engine's own hit. Returns 0, MOON_ERR_MEMORY, MOON_ERR_RANGE (the
 * request names impossible numbers). */
int moon_scheduler_match(struct moon_scheduler *scheduler, const struct moon_request *request, int64_t computed_tokens,
                         struct moon_match *match, struct moon_error *error);
/* update_state_after_alloc. tables: blocks of the request, one entry a store group. external_tokens: taken from this
 * connector. Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED (AssertionError: not what was promised). */
int moon_scheduler_allocated(struct moon_scheduler *scheduler, const struct moon_request *request,
                             const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error);
/* build_connector_meta: plans one step and appends its jobs. Returns 0, MOON_ERR_MEMORY (nothing of the step is kept
 * back: end the instance), MOON_ERR_RANGE with the place, MOON_ERR_REFUSED where the release raises. */
int moon_scheduler_step(struct moon_scheduler *scheduler, const struct moon_step *step, struct moon_step_jobs *jobs,
                        struct moon_error *error);
/* register_finished_partial_tail (0.30 on): states handed off when the request finished, before the step that tells so.
 * Makes a job that holds its blocks at once and is appended to the next step.
 *   computed_tokens  with KV; tables: of the request
 * Returns 0 (also when nothing is kept), MOON_ERR_MEMORY, MOON_ERR_RANGE, MOON_ERR_REFUSED (ValueError: positions
 * differ). */
int moon_scheduler_finish_tail(struct moon_scheduler *scheduler, const struct moon_request *request,
                               int64_t computed_tokens, const struct moon_block_table *tables,
                               const struct moon_boundary_put *puts, size_t count, struct moon_error *error);
/* request_finished. True if the engine must not free the blocks yet (up to 0.27). */
bool moon_scheduler_finished(struct moon_scheduler *scheduler, const struct moon_request *request, bool has_blocks);
/* update_connector_output: `ranks` more ranks completed job `id` (0.28 on). Returns 0 (also for a job that holds
 * nothing any more), MOON_ERR_REFUSED (AssertionError: more reports than ranks), MOON_ERR_RANGE (a job that was never
 * made). */
int moon_scheduler_report(struct moon_scheduler *scheduler, uint64_t id, int64_t ranks, struct moon_error *error);
size_t moon_scheduler_unreleased(const struct moon_scheduler *scheduler); /* jobs whose blocks are still referenced */
/* reset_cache: forgets load specs, drops all keys; true if the worker says so. */
bool moon_scheduler_reset(struct moon_scheduler *scheduler);

#ifdef __cplusplus
}
#endif
#endif
