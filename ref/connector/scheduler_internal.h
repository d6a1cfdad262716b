/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the scheduler side share: trackers of requests, and the step that is being planned. */
#ifndef MOON_CONNECTOR_SCHEDULER_INTERNAL_H
#define MOON_CONNECTOR_SCHEDULER_INTERNAL_H

#include "ref/connector/scheduler.h"

#define MOON_SLOT_NONE UINT32_MAX

/* All that is known of the request in a slot.
 *   request            unfinished; NULL: none, or finished, or preempted
 *   tracked            the next three and `tables` mean something
 *   tracked_tokens     with KV at the end of the last step that counted
 *   saved_tokens       handed to jobs
 *   tables             blocks of the request, shared with its jobs (up to 0.28)
 *   no_table           the tracker was made or reset without blocks
 *   tail_sent          the tail of the prompt was put into a job (0.32 on)
 *   handed_off         boundary puts were given to a job
 *   preempted          remembered preemption (up to 0.24)
 *   load, can_load     a lookup promised tokens; the core took them
 *   told_tokens        ids of so many tokens go with jobs (up to 0.28)
 *   waiting            blocks told when they were taken
 *   mark               last step that named the slot; table, job and tail_due belong to it
 *   previous, next     unfinished requests in the order in which they came */
struct moon_tracker {
    const struct moon_request *request;
    int64_t tracked_tokens, saved_tokens, prefill_end_tokens, told_tokens;
    int64_t load_local_tokens, load_hit_tokens;
    int64_t *load_boundaries;
    struct moon_tables *tables, *waiting;
    const struct moon_block_table *table;
    struct moon_job *job;
    uint64_t mark;
    uint32_t previous, next;
    bool tracked, no_table, tail_sent, handed_off, preempted, load, can_load, tail_due;
};
_Static_assert(sizeof(struct moon_tracker) <= MOON_TRACKER_BYTES_MAX, "memory of a running request");

/* Blocks that a job refers to, until all ranks have reported it. */
struct moon_pin {
    uint64_t id;
    int64_t *blocks;
    size_t count, capacity;
    int64_t ranks_left;
};

struct moon_scheduler {
    const struct moon_connector *connector;
    struct moon_lookup_port *lookups;
    struct moon_block_port *blocks;
    struct moon_memory *memory;
    int64_t world_size;
    struct moon_tracker *trackers; /* by slot */
    size_t slot_capacity;
    uint32_t oldest, newest; /* unfinished requests */
    uint64_t step_number;
    uint64_t next_job_id;
    struct moon_pin *pins; /* ascending ids */
    size_t pin_count, pin_capacity;
    struct moon_step_jobs tails; /* queued when requests finished; they have their ids */
};

/* The step that is being planned. first_job: of the step in jobs. */
struct moon_planning {
    struct moon_scheduler *scheduler;
    const struct moon_step *step;
    struct moon_step_jobs *jobs;
    size_t first_job;
    struct moon_error *error;
};

/* ---- tracker.c ---- */

/* The tracker of a slot, NULL when the slot was never used. */
struct moon_tracker *moon_tracker_find(struct moon_scheduler *scheduler, uint32_t slot);
/* Makes room for the slot. Returns 0, MOON_ERR_RANGE or MOON_ERR_MEMORY. */
int moon_tracker_reach(struct moon_scheduler *scheduler, uint32_t slot, struct moon_error *error);
/* Notes the request as unfinished, behind all others if it is new; takes over `waiting` (may be NULL). */
void moon_tracker_enter(struct moon_scheduler *scheduler, const struct moon_request *request,
                        struct moon_tables *waiting);
void moon_tracker_leave(struct moon_scheduler *scheduler, uint32_t slot);
void moon_tracker_drop_load(struct moon_scheduler *scheduler, struct moon_tracker *tracker);
/* Back to nothing tracked; `tracked` says whether an empty tracker stays. */
void moon_tracker_reset(struct moon_tracker *tracker, bool tracked);
/* Begins a step for a tracker: `table` of the step may be NULL. */
void moon_tracker_mark(struct moon_tracker *tracker, uint64_t step, const struct moon_block_table *table);
/* Frees all trackers. */
void moon_trackers_close(struct moon_scheduler *scheduler);

/* ---- scheduler_step.c ---- */

/* Takes over a reference to `job` (NULL: memory was refused). Returns 0 or MOON_ERR_MEMORY. */
int moon_step_jobs_push(struct moon_step_jobs *jobs, struct moon_job *job);
/* Fails with MOON_ERR_RANGE and the place "list[index]" in `where`. */
int moon_planning_fail(const struct moon_planning *planning, const char *list, size_t index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- scheduler_boundary.c ---- */

/* Puts the states that were handed off into jobs of the step. */
int moon_plan_boundaries(const struct moon_planning *planning);
/* Puts the tail of the prompt in front of a job's boundary puts where it is due (0.32 on).
 *   tables     of the request
 *   completed_tokens  with KV at the end of the step */
int moon_plan_tail(const struct moon_scheduler *scheduler, struct moon_job *job, int64_t prompt_tokens,
                   int64_t completed_tokens, bool due);

/* ---- scheduler_references.c ---- */

/* Gives the job its id, and holds its blocks where jobs do. Returns 0 or MOON_ERR_MEMORY. */
int moon_job_refer(struct moon_scheduler *scheduler, struct moon_job *job);
void moon_pins_close(struct moon_scheduler *scheduler);

#endif
