/* SPDX-License-Identifier: Apache-2.0 */
/* What is put beside the normal save: Mamba states at their positions, and the tail of a prompt. */
#include "ref/connector/scheduler_internal.h"

#include <assert.h>

/* A list of puts, made in scratch memory before a job copies it. */
struct put_list {
    struct moon_memory *memory;
    struct moon_boundary_put *puts;
    size_t count, capacity;
};

static int puts_open(struct put_list *list, struct moon_memory *memory, size_t capacity) {
    *list = (struct put_list){.memory = memory, .capacity = capacity};
    list->puts = capacity > 0 ? memory->resize(memory, NULL, 0, capacity * sizeof *list->puts) : NULL;
    return capacity > 0 && !list->puts ? MOON_ERR_MEMORY : 0;
}

static void puts_add(struct put_list *list, size_t group, int64_t block, int64_t tokens) {
    assert(list->puts && list->count < list->capacity);
    list->puts[list->count++] = (struct moon_boundary_put){group, block, tokens};
}

static void puts_close(struct put_list *list) {
    list->memory->resize(list->memory, list->puts, list->capacity * sizeof *list->puts, 0);
}

static bool is_mamba(const struct moon_connector *connector, size_t group) {
    return group < connector->model->group_count && connector->model->groups[group].spec.kind == MOON_SPEC_MAMBA;
}

/* ---- the tail of a prompt (0.32 on, PLAN-054) ---- */

/* True if a Mamba state inside a block was handed off just there. */
static bool state_at(const struct moon_connector *connector, const struct moon_job *job, int64_t tokens) {
    for (size_t i = 0; i < job->boundary_count; i++) {
        const struct moon_boundary_put *put = &job->boundary[i];
        if (is_mamba(connector, put->group) && put->tokens == tokens &&
            put->tokens % connector->model->groups[put->group].block_tokens != 0)
            return true;
    }
    return false;
}

/* Appends the blocks of a walk to `list`, or with NULL counts them: those that the tables have. */
static size_t tail_puts(struct moon_tail_walk walk, const struct moon_job *job, struct put_list *list) {
    struct moon_chunk chunk;
    size_t group, count = 0;
    while (moon_tail_next(&walk, &group, &chunk)) {
        const struct moon_block_table *table = &job->tables->groups[group];
        if ((uint64_t)chunk.id >= table->count || table->blocks[chunk.id] == 0)
            continue;
        if (list)
            puts_add(list, group, table->blocks[chunk.id], chunk.end_tokens);
        count++;
    }
    return count;
}

int moon_plan_tail(const struct moon_scheduler *scheduler, struct moon_job *job, int64_t prompt_tokens,
                   int64_t completed_tokens, bool due) {
    const struct moon_connector *connector = scheduler->connector;
    struct moon_tail_walk walk;
    struct put_list list;
    if (connector->profile->boundary_rule != MOON_BOUNDARY_TAIL_ONCE ||
        (!due && !state_at(connector, job, moon_tail_tokens(connector->model, prompt_tokens))))
        return 0;
    moon_tail_open(&walk, connector->profile, connector->model, prompt_tokens, completed_tokens,
                   (int64_t)job->hashes.count);
    size_t count = tail_puts(walk, job, NULL);
    if (count == 0)
        return 0;
    if (puts_open(&list, scheduler->memory, count + job->boundary_count))
        return MOON_ERR_MEMORY;
    tail_puts(walk, job, &list);
    for (size_t i = 0; i < job->boundary_count; i++)
        puts_add(&list, job->boundary[i].group, job->boundary[i].block, job->boundary[i].tokens);
    int status = moon_job_set_boundary(job, list.puts, list.count);
    puts_close(&list);
    return status;
}

/* ---- states that are handed off in a step (PLAN-050 to PLAN-053) ---- */

/* Boundaries first .. end - 1 of a step belong to one request. */
struct run {
    size_t first, end;
    struct moon_tracker *tracker; /* NULL: the connector knows nothing of the request any more */
};

/* Finds the run that begins at `first`, and checks its numbers. */
static int next_run(const struct moon_planning *planning, size_t first, struct run *run) {
    struct moon_scheduler *scheduler = planning->scheduler;
    const struct moon_step_boundary *boundaries = planning->step->boundaries;
    bool exact = scheduler->connector->profile->boundary_rule == MOON_BOUNDARY_TAIL; /* group numbers go to keys */
    *run = (struct run){first, first, moon_tracker_find(scheduler, boundaries[first].slot)};
    for (; run->end < planning->step->boundary_count && boundaries[run->end].slot == boundaries[first].slot;
         run->end++) {
        const struct moon_boundary_put *put = &boundaries[run->end].put;
        if (put->block < 0 || put->tokens < 0 || put->tokens > MOON_CONNECTOR_TOKENS_MAX ||
            (exact && put->group >= scheduler->connector->model->group_count))
            return moon_planning_fail(planning, "boundaries", run->end, "block %lld of group %zu at %lld tokens",
                                      (long long)put->block, put->group, (long long)put->tokens);
    }
    if (run->tracker && (!run->tracker->tracked || !run->tracker->request))
        run->tracker = NULL;
    return 0;
}

/* Those of a run that are put (PLAN-051). */
static void accept(const struct moon_planning *planning, const struct run *run, struct put_list *list) {
    const struct moon_connector *connector = planning->scheduler->connector;
    bool all = connector->profile->boundary_rule == MOON_BOUNDARY_TAIL;
    for (size_t i = run->first; i < run->end; i++) {
        const struct moon_boundary_put *put = &planning->step->boundaries[i].put;
        if (all ||
            (put->tokens <= run->tracker->prefill_end_tokens && put->block != 0 && is_mamba(connector, put->group)))
            puts_add(list, put->group, put->block, put->tokens);
    }
}

/* A job for boundary puts alone, of a request that saves nothing in this step. */
static struct moon_job *boundary_job(const struct moon_planning *planning, struct moon_tracker *tracker,
                                     const struct moon_block_table *table) {
    struct moon_scheduler *scheduler = planning->scheduler;
    struct moon_job *job = moon_job_create(scheduler->memory, scheduler->connector->model->group_count);
    if (moon_step_jobs_push(planning->jobs, job))
        return NULL;
    job->slot = tracker->request->slot;
    job->hashes = tracker->request->hashes;
    job->prefill_end_tokens = tracker->prefill_end_tokens;
    job->save = true;
    if (tracker->tables)
        job->tables = moon_tables_hold(tracker->tables);
    else if (!scheduler->connector->profile->tables_of_step &&
             moon_tables_create(job->memory, NULL, job->group_count, &job->tables))
        return NULL;
    if (tracker->mark != scheduler->step_number)
        moon_tracker_mark(tracker, scheduler->step_number, table);
    tracker->job = job;
    return job;
}

static bool same_position(const struct moon_boundary_put *puts, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (puts[i].tokens != puts[0].tokens)
            return false;
    return true;
}

static int plan_run(const struct moon_planning *planning, const struct run *run, struct put_list *list) {
    struct moon_tracker *tracker = run->tracker;
    if (!tracker)
        return 0;
    list->count = 0;
    accept(planning, run, list);
    if (list->count == 0)
        return 0;
    struct moon_job *job = tracker->mark == planning->scheduler->step_number ? tracker->job : NULL;
    if (job && job->boundary_count > 0)
        return moon_planning_fail(planning, "boundaries", run->first, "those of slot %u do not follow one another",
                                  (unsigned)job->slot);
    if (!job && planning->scheduler->connector->profile->boundary_rule == MOON_BOUNDARY_TAIL &&
        !same_position(list->puts, list->count))
        return moon_refuse(planning->error, "AssertionError", "%s", "");
    tracker->handed_off = true;
    if (!job)
        job = boundary_job(planning, tracker, planning->step->boundaries[run->first].table);
    if (!job || moon_job_set_boundary(job, list->puts, list->count))
        return moon_fail(planning->error, MOON_ERR_MEMORY, NULL, "out of memory");
    return 0;
}

int moon_plan_boundaries(const struct moon_planning *planning) {
    const struct moon_connector *connector = planning->scheduler->connector;
    size_t count = planning->step->boundary_count;
    struct put_list list;
    int status = 0;
    if (count == 0 || connector->profile->boundary_rule == MOON_BOUNDARY_NONE ||
        connector->options.role == MOON_ROLE_CONSUMER)
        return 0;
    if (puts_open(&list, planning->scheduler->memory, count))
        return moon_fail(planning->error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (size_t first = 0; !status && first < count;) {
        struct run run;
        status = next_run(planning, first, &run);
        if (!status)
            status = plan_run(planning, &run, &list);
        first = run.end;
    }
    puts_close(&list);
    return status;
}

/* ---- states that are handed off when a request finishes (0.30 on, PLAN-055) ---- */

/* True if the tail of a finished request is worth a job. */
static bool tail_wanted(const struct moon_connector *connector, const struct moon_tracker *tracker,
                        const struct moon_block_table *tables, const struct moon_boundary_put *puts, size_t count) {
    size_t blocks = 0;
    for (size_t group = 0; group < connector->model->group_count; group++)
        blocks += tables[group].count;
    if (!tracker || !tracker->tracked || blocks == 0 || puts[0].tokens > tracker->prefill_end_tokens)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_mamba(connector, puts[i].group) || puts[i].block == 0)
            return false;
    return true;
}

/* Fills the job of a tail, which is in the queue already. */
static int fill_tail(struct moon_scheduler *scheduler, struct moon_job *job, const struct moon_request *request,
                     const struct moon_block_table *tables) {
    job->slot = request->slot;
    job->hashes = request->hashes;
    job->save = true;
    job->prefill_end_tokens = scheduler->trackers[request->slot].prefill_end_tokens;
    return moon_tables_create(job->memory, tables, job->group_count, &job->tables);
}

int moon_scheduler_finish_tail(struct moon_scheduler *scheduler, const struct moon_request *request,
                               int64_t computed_tokens, const struct moon_block_table *tables,
                               const struct moon_boundary_put *puts, size_t count, struct moon_error *error) {
    const struct moon_connector *connector = scheduler->connector;
    struct moon_tracker *tracker = moon_tracker_find(scheduler, request->slot);
    if (!connector->profile->tail_at_finish || connector->options.role == MOON_ROLE_CONSUMER || count == 0)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (puts[i].block < 0 || puts[i].tokens < 0 || puts[i].tokens > MOON_CONNECTOR_TOKENS_MAX)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "slot %u: block %lld at %lld tokens", (unsigned)request->slot,
                             (long long)puts[i].block, (long long)puts[i].tokens);
    if (!same_position(puts, count))
        return moon_refuse(error, "ValueError", "Partial-tail offloads for one request must share a boundary");
    if (!tail_wanted(connector, tracker, tables, puts, count))
        return 0;
    struct moon_job *job = moon_job_create(scheduler->memory, connector->model->group_count);
    if (moon_step_jobs_push(&scheduler->tails, job))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    if (fill_tail(scheduler, job, request, tables) || moon_job_set_boundary(job, puts, count) ||
        moon_plan_tail(scheduler, job, request->prompt_tokens, computed_tokens, false) ||
        moon_job_refer(scheduler, job)) {
        moon_job_release(scheduler->tails.jobs[--scheduler->tails.count]);
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    }
    tracker->handed_off = true;
    return 0;
}
