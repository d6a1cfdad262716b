/* SPDX-License-Identifier: Apache-2.0 */
/* Plans a step: requests in the order of the release, and the jobs that follow. */
#include "ref/connector/scheduler_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- jobs of a step ---- */

void moon_step_jobs_open(struct moon_step_jobs *jobs, struct moon_memory *memory) {
    *jobs = (struct moon_step_jobs){.memory = memory};
}

void moon_step_jobs_clear(struct moon_step_jobs *jobs) {
    for (size_t i = 0; i < jobs->count; i++)
        moon_job_release(jobs->jobs[i]);
    jobs->count = 0;
}

void moon_step_jobs_close(struct moon_step_jobs *jobs) {
    moon_step_jobs_clear(jobs);
    jobs->memory->resize(jobs->memory, jobs->jobs, jobs->capacity * sizeof(struct moon_job *), 0);
    moon_step_jobs_open(jobs, jobs->memory);
}

int moon_step_jobs_push(struct moon_step_jobs *jobs, struct moon_job *job) {
    if (!job)
        return MOON_ERR_MEMORY;
    struct moon_job **grown =
        moon_memory_grow(jobs->memory, jobs->jobs, &jobs->capacity, jobs->count + 1, sizeof(struct moon_job *), 8);
    if (!grown) {
        moon_job_release(job);
        return MOON_ERR_MEMORY;
    }
    jobs->jobs = grown;
    jobs->jobs[jobs->count++] = job;
    return 0;
}

/* ---- errors ---- */

int moon_planning_fail(const struct moon_planning *planning, const char *list, size_t index, const char *format, ...) {
    char where[MOON_ERROR_WHERE_BYTES], message[MOON_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(where, sizeof where, "%s[%zu]", list, index);
    return moon_fail(planning->error, MOON_ERR_RANGE, where, "%s", message);
}

static int out_of_memory(const struct moon_planning *planning) {
    return moon_fail(planning->error, MOON_ERR_MEMORY, NULL, "out of memory");
}

/* A request of the step: where it stands, and its tracker. */
struct entry {
    const struct moon_step_request *its;
    struct moon_tracker *tracker;
    const char *list;
    size_t index;
};

/* Blocks told for a request: none negative, and with `tokens` at least so many covered. Mamba's table may be shorter,
 * as its states are few. */
static int check_blocks(const struct moon_planning *planning, const struct entry *entry, const char *name,
                        const struct moon_block_table *blocks, int64_t tokens) {
    const struct moon_layout_model *model = planning->scheduler->connector->model;
    for (size_t group = 0; group < model->group_count; group++) {
        const struct moon_layout_group *its = &model->groups[group];
        for (size_t i = 0; i < blocks[group].count; i++)
            if (blocks[group].blocks[i] < 0)
                return moon_planning_fail(planning, entry->list, entry->index, "%s: block %lld in group %zu", name,
                                          (long long)blocks[group].blocks[i], group);
        if (its->spec.kind != MOON_SPEC_MAMBA &&
            blocks[group].count < (uint64_t)moon_ceil_divide(tokens, its->block_tokens))
            return moon_planning_fail(planning, entry->list, entry->index,
                                      "%s: %zu blocks of %lld tokens in group %zu are too few for %lld tokens", name,
                                      blocks[group].count, (long long)its->block_tokens, group, (long long)tokens);
    }
    return 0;
}

/* Finds the tracker of a request that the core schedules, and marks it as seen in this step. */
static int enter(const struct moon_planning *planning, const char *list, size_t index,
                 const struct moon_step_request *its, struct entry *entry) {
    struct moon_scheduler *scheduler = planning->scheduler;
    const struct moon_request *request = its->request;
    *entry = (struct entry){its, moon_tracker_find(scheduler, request->slot), list, index};
    if (!entry->tracker)
        return moon_planning_fail(planning, list, index, "slot %u was never allocated", (unsigned)request->slot);
    if (entry->tracker->mark == scheduler->step_number)
        return moon_planning_fail(planning, list, index, "slot %u is scheduled twice", (unsigned)request->slot);
    if (its->computed_tokens < 0 || its->scheduled_tokens < 0 || request->known_tokens < 0 ||
        its->computed_tokens > MOON_CONNECTOR_TOKENS_MAX || its->scheduled_tokens > MOON_CONNECTOR_TOKENS_MAX ||
        request->known_tokens > MOON_CONNECTOR_TOKENS_MAX)
        return moon_planning_fail(planning, list, index, "%lld computed, %lld scheduled, %lld known tokens",
                                  (long long)its->computed_tokens, (long long)its->scheduled_tokens,
                                  (long long)request->known_tokens);
    moon_tracker_mark(entry->tracker, scheduler->step_number, its->table);
    return 0;
}

/* The core must have allocated blocks for the request since it was last taken from it. */
static int check_unfinished(const struct moon_planning *planning, const struct entry *entry) {
    if (entry->tracker->request != entry->its->request)
        return moon_planning_fail(planning, entry->list, entry->index, "slot %u is not allocated to this request",
                                  (unsigned)entry->its->request->slot);
    return 0;
}

/* ---- from a tracker to a job (PLAN-020 to PLAN-025) ---- */

/* What a tracker asks for now. */
struct wish {
    bool save, load, tail;
    int64_t save_tokens;
};

static struct wish wish_of(const struct moon_connector *connector, const struct moon_tracker *tracker, bool skip_save,
                           bool may_tail) {
    int64_t block = connector->model->scheduler_block_tokens;
    bool whole = connector->options.discard_partial_chunks;
    int64_t tokens = tracker->tracked_tokens;
    struct wish wish = {.save_tokens = whole ? tokens - tokens % block : tokens,
                        .load = tracker->load && tracker->can_load};
    int64_t boundary = whole ? (tracker->saved_tokens / block + 1) * block : 0;
    wish.tail = may_tail && connector->profile->boundary_rule == MOON_BOUNDARY_TAIL_ONCE && connector->fine_grained &&
                !tracker->tail_sent && tracker->request->prompt_tokens <= tokens;
    wish.save =
        !skip_save && (wish.save_tokens >= boundary || wish.tail) && !(wish.load && connector->profile->load_alone);
    wish.tail &= wish.save;
    return wish;
}

/* Tables of a job: the tracker's own, or what is told for the job, or empty ones. */
static int give_tables(struct moon_job *job, const struct moon_tracker *tracker, struct moon_tables *waiting,
                       const struct moon_block_table *blocks) {
    struct moon_tables *shared = tracker->tables ? tracker->tables : waiting;
    if (shared) {
        job->tables = moon_tables_hold(shared);
        return 0;
    }
    return moon_tables_create(job->memory, blocks, job->group_count, &job->tables);
}

static int fill_load(const struct moon_tracker *tracker, struct moon_job *job) {
    job->load = true;
    job->load_local_tokens = tracker->load_local_tokens;
    job->load_hit_tokens = tracker->load_hit_tokens;
    return tracker->load_boundaries ? moon_job_set_tail_boundaries(job, tracker->load_boundaries) : 0;
}

/* Makes the job of a tracker, if it wants any. Its load spec is used up.
 *   waiting, blocks  where its tables come from when the tracker has none; both may be NULL
 *   place            of the request in the step */
static int plan_job(const struct moon_planning *planning, const struct entry *entry, bool skip_save, bool may_tail,
                    struct moon_tables *waiting, const struct moon_block_table *blocks) {
    struct moon_scheduler *scheduler = planning->scheduler;
    const struct moon_connector *connector = scheduler->connector;
    struct moon_tracker *tracker = entry->tracker;
    const struct moon_request *request = tracker->request;
    int64_t hash_block = connector->model->hash_block_tokens;
    const struct wish wish = wish_of(connector, tracker, skip_save, may_tail);
    if (!wish.save && !wish.load) {
        moon_tracker_drop_load(scheduler, tracker);
        return 0;
    }
    int64_t needed = wish.save ? wish.save_tokens : 0;
    if (wish.load && tracker->load_hit_tokens > needed)
        needed = tracker->load_hit_tokens;
    if (needed > request->known_tokens) /* drafts after a remembered preemption: they have no hashes (PLAN-019) */
        needed = request->known_tokens;
    if (request->hashes.count < (uint64_t)(needed / hash_block))
        return moon_planning_fail(
            planning, entry->list, entry->index, "slot %u: %zu hashes of %lld tokens are too few for %lld tokens",
            (unsigned)request->slot, request->hashes.count, (long long)hash_block, (long long)needed);
    struct moon_job *job = moon_job_create(scheduler->memory, connector->model->group_count);
    if (moon_step_jobs_push(planning->jobs, job))
        return out_of_memory(planning);
    job->slot = request->slot;
    job->hashes = request->hashes;
    job->request = connector->profile->chunk_end_hash ? NULL : request;
    job->prefill_end_tokens = tracker->prefill_end_tokens;
    job->save = wish.save;
    job->save_tokens = wish.save ? wish.save_tokens : 0;
    if (wish.save) {
        job->token_ids = connector->options.kv_events ? request->token_ids : NULL;
        job->token_id_count = connector->profile->event_ids_of_start ? tracker->told_tokens : wish.save_tokens;
        tracker->saved_tokens = wish.save_tokens;
        tracker->tail_sent |= wish.tail;
        tracker->tail_due = wish.tail;
        tracker->job = job;
    }
    if (wish.load && fill_load(tracker, job))
        return out_of_memory(planning);
    moon_tracker_drop_load(scheduler, tracker);
    if (wish.save && connector->profile->tables_of_step)
        return 0; /* PLAN-040: they get the tables of the step at its end */
    return give_tables(job, tracker, waiting, blocks) ? out_of_memory(planning) : 0;
}

/* ---- the parts of a step, in order (PLAN-010) ---- */

static int plan_finished(const struct moon_planning *planning) {
    struct moon_scheduler *scheduler = planning->scheduler;
    for (size_t i = 0; i < planning->step->finished_count; i++) {
        uint32_t slot = planning->step->finished[i];
        struct moon_tracker *tracker = moon_tracker_find(scheduler, slot);
        if (slot >= MOON_REQUEST_SLOTS_MAX)
            return moon_planning_fail(planning, "finished", i, "slot %u does not exist", (unsigned)slot);
        if (scheduler->lookups)
            scheduler->lookups->discard(scheduler->lookups, slot);
        if (!tracker)
            continue;
        moon_tracker_drop_load(scheduler, tracker);
        moon_tracker_reset(tracker, false);
        moon_tracker_leave(scheduler, slot);
        tracker->preempted = false;
    }
    return 0;
}

static int plan_preempted(const struct moon_planning *planning) {
    struct moon_scheduler *scheduler = planning->scheduler;
    for (size_t i = 0; i < planning->step->preempted_count; i++) {
        uint32_t slot = planning->step->preempted[i];
        struct moon_tracker *tracker = moon_tracker_find(scheduler, slot);
        if (!tracker)
            return moon_planning_fail(planning, "preempted", i, "slot %u was never allocated", (unsigned)slot);
        moon_tracker_drop_load(scheduler, tracker);
        moon_tracker_reset(tracker, tracker->tracked && scheduler->connector->profile->preempted_reset);
        moon_tracker_leave(scheduler, slot);
        tracker->preempted = true;
    }
    return 0;
}

/* Starts a request afresh: all its blocks are told, nothing of it is saved. */
static int restart(const struct moon_planning *planning, const struct entry *entry, int64_t prefill_end_tokens) {
    struct moon_scheduler *scheduler = planning->scheduler;
    struct moon_tracker *tracker = entry->tracker;
    const struct moon_step_request *its = entry->its;
    moon_tracker_reset(tracker, true);
    tracker->no_table = false;
    tracker->tracked_tokens = its->computed_tokens + its->scheduled_tokens;
    tracker->prefill_end_tokens = prefill_end_tokens;
    tracker->told_tokens = tracker->tracked_tokens;
    if (!scheduler->connector->profile->tables_of_step &&
        moon_tables_create(scheduler->memory, its->blocks, scheduler->connector->model->group_count, &tracker->tables))
        return out_of_memory(planning);
    return plan_job(planning, entry, !scheduler->connector->saves_prefill, true, NULL, its->blocks);
}

static int plan_fresh(const struct moon_planning *planning, size_t index) {
    const struct moon_step_request *its = &planning->step->fresh[index];
    struct entry entry;
    int status = enter(planning, "fresh", index, its, &entry);
    if (!status)
        status = check_unfinished(planning, &entry);
    if (status)
        return status;
    int64_t end = its->computed_tokens + its->scheduled_tokens, known = its->request->known_tokens;
    if (end > known || its->prefill_tokens < 1 || its->prefill_tokens > known)
        return moon_planning_fail(planning, "fresh", index,
                                  "%lld computed, %lld scheduled, %lld prefill of %lld known tokens",
                                  (long long)its->computed_tokens, (long long)its->scheduled_tokens,
                                  (long long)its->prefill_tokens, (long long)known);
    if (!its->blocks)
        return moon_planning_fail(planning, "fresh", index, "blocks are missing");
    status = check_blocks(planning, &entry, "blocks", its->blocks, end);
    return status ? status : restart(planning, &entry, its->prefill_tokens);
}

/* A request comes back in the cached list (PLAN-014). `told`: the core says so, else a preemption is remembered; then
 * the blocks may be only those that were added. */
static int plan_resumed(const struct moon_planning *planning, const struct entry *entry, bool told) {
    const struct moon_connector *connector = planning->scheduler->connector;
    const struct moon_step_request *its = entry->its;
    int64_t end = its->computed_tokens + its->scheduled_tokens;
    int status = check_unfinished(planning, entry);
    entry->tracker->preempted = false;
    if (!told)
        moon_deviation_note(connector->notes, MOON_DEVIATION_PREEMPTION_REMEMBERED);
    if (!status && told && end > its->request->known_tokens)
        status = moon_planning_fail(planning, entry->list, entry->index, "%lld tokens of %lld known", (long long)end,
                                    (long long)its->request->known_tokens);
    if (!status)
        status = check_blocks(planning, entry, "blocks", its->blocks, told ? end : 0);
    return status ? status : restart(planning, entry, its->request->known_tokens);
}

/* Blocks that a running request got. */
static int grow_table(const struct moon_planning *planning, const struct entry *entry) {
    struct moon_tracker *tracker = entry->tracker;
    if (!entry->its->blocks)
        return 0;
    if (tracker->no_table)
        return moon_planning_fail(planning, entry->list, entry->index, "slot %u has no block table that could grow",
                                  (unsigned)entry->its->request->slot);
    int status = check_blocks(planning, entry, "blocks", entry->its->blocks, 0);
    if (tracker->tables && tracker->tables->references > 1) /* a job that has not run yet */
        moon_deviation_note(planning->scheduler->connector->notes, MOON_DEVIATION_LATE_TABLES);
    if (!status && tracker->tables && moon_tables_append(tracker->tables, entry->its->blocks))
        status = out_of_memory(planning);
    return status;
}

/* Tokens that are new to the tracker; drafts are not known yet and so do not count (PLAN-017). */
static void advance(const struct entry *entry) {
    int64_t left = entry->its->request->known_tokens - entry->tracker->tracked_tokens;
    int64_t scheduled = entry->its->scheduled_tokens;
    if (left > 0)
        entry->tracker->tracked_tokens += scheduled < left ? scheduled : left;
}

/* A request in prefill or decode goes on (PLAN-015 to PLAN-018). */
static int plan_running(const struct moon_planning *planning, const struct entry *entry) {
    const struct moon_connector *connector = planning->scheduler->connector;
    struct moon_tracker *tracker = entry->tracker;
    if (!tracker->tracked)
        return moon_planning_fail(planning, entry->list, entry->index, "slot %u was never scheduled as new",
                                  (unsigned)entry->its->request->slot);
    bool decode = entry->its->computed_tokens >= tracker->prefill_end_tokens;
    if (decode && !connector->saves_decode && !connector->profile->decode_advances)
        return 0;
    int status = check_unfinished(planning, entry);
    if (status)
        return status;
    advance(entry);
    if (decode && !connector->saves_decode)
        return 0;
    status = grow_table(planning, entry);
    if (status || (!decode && !connector->saves_prefill))
        return status;
    return plan_job(planning, entry, false, true, NULL, NULL);
}

static int plan_cached(const struct moon_planning *planning, size_t index) {
    const struct moon_connector *connector = planning->scheduler->connector;
    const struct moon_step_request *its = &planning->step->cached[index];
    struct entry entry;
    int status = enter(planning, "cached", index, its, &entry);
    if (status || (!connector->saves_prefill && !connector->saves_decode))
        return status;
    bool resumed = connector->profile->resumed_by_core ? its->resumed : entry.tracker->preempted;
    if (!its->blocks && !resumed && !connector->profile->blockless_steps_count) {
        if (its->computed_tokens < entry.tracker->prefill_end_tokens)
            moon_deviation_note(connector->notes, MOON_DEVIATION_BLOCKLESS_STEPS_LOST);
        return 0;
    }
    if (!its->blocks && resumed)
        return 0;
    return resumed ? plan_resumed(planning, &entry, its->resumed) : plan_running(planning, &entry);
}

/* Requests that wait with a promised load: a job for the load alone (PLAN-030, PLAN-031). */
static int plan_waiting(const struct moon_planning *planning, uint32_t slot) {
    struct moon_scheduler *scheduler = planning->scheduler;
    const struct moon_connector *connector = scheduler->connector;
    struct moon_tracker *tracker = &scheduler->trackers[slot];
    const struct entry entry = {NULL, tracker, "slots", slot};
    int64_t tokens = tracker->load_hit_tokens;
    if (!tracker->can_load && connector->profile->lost_load_ignored) {
        moon_tracker_drop_load(scheduler, tracker);
        return 0;
    }
    /* 0.21: the token that a full hit lacks is loaded all the same */
    if (connector->profile->cut_load_extended && tokens == tracker->request->known_tokens - 1 &&
        tokens % connector->model->scheduler_block_tokens != 0)
        tokens++;
    moon_tracker_reset(tracker, true);
    tracker->no_table = !tracker->waiting;
    tracker->tracked_tokens = tokens;
    moon_tracker_mark(tracker, scheduler->step_number, NULL);
    if (!connector->profile->tables_of_step && tracker->waiting)
        tracker->tables = moon_tables_hold(tracker->waiting);
    bool lost = !tracker->can_load;
    int status = plan_job(planning, &entry, false, false, tracker->waiting, NULL);
    if (!status && lost && tracker->job)
        moon_deviation_note(connector->notes, MOON_DEVIATION_LOST_LOAD_SAVED);
    return status;
}

static int plan_all_waiting(const struct moon_planning *planning) {
    struct moon_scheduler *scheduler = planning->scheduler;
    int status = 0;
    for (uint32_t slot = scheduler->oldest; !status && slot != MOON_SLOT_NONE;) {
        const struct moon_tracker *tracker = &scheduler->trackers[slot];
        uint32_t next = tracker->next;
        if (tracker->load && tracker->mark != scheduler->step_number)
            status = plan_waiting(planning, slot);
        slot = next;
    }
    return status;
}

/* Save jobs read from the tables as the step leaves them (0.29 on, PLAN-040). */
static int take_table(const struct moon_planning *planning, struct moon_job *job, const struct moon_tracker *tracker) {
    const struct entry entry = {NULL, NULL, "slots", job->slot};
    if (!planning->scheduler->connector->profile->tables_of_step)
        return 0;
    if (!tracker->table)
        return moon_refuse(planning->error, "AssertionError", "Missing current block table for store request %u",
                           (unsigned)job->slot);
    int status = check_blocks(planning, &entry, "table", tracker->table, job->save_tokens);
    if (!status && moon_tables_create(job->memory, tracker->table, job->group_count, &job->tables))
        status = out_of_memory(planning);
    return status;
}

/* Last, save jobs get their tables, and then what depends on them. */
static int finish_jobs(const struct moon_planning *planning) {
    struct moon_scheduler *scheduler = planning->scheduler;
    struct moon_step_jobs *jobs = planning->jobs;
    int status = 0;
    for (size_t i = planning->first_job; !status && i < jobs->count; i++)
        if (jobs->jobs[i]->save)
            status = take_table(planning, jobs->jobs[i], &scheduler->trackers[jobs->jobs[i]->slot]);
    for (size_t i = planning->first_job; !status && i < jobs->count; i++) {
        struct moon_job *job = jobs->jobs[i];
        const struct moon_tracker *tracker = &scheduler->trackers[job->slot];
        if (!job->save)
            continue;
        if (moon_plan_tail(scheduler, job, tracker->request->prompt_tokens, tracker->tracked_tokens,
                           tracker->tail_due) ||
            moon_job_refer(scheduler, job))
            status = out_of_memory(planning);
    }
    for (size_t i = 0; !status && i < scheduler->tails.count; i++)
        if (moon_step_jobs_push(jobs, moon_job_hold(scheduler->tails.jobs[i])))
            status = out_of_memory(planning);
    if (!status)
        moon_step_jobs_clear(&scheduler->tails);
    return status;
}

int moon_scheduler_step(struct moon_scheduler *scheduler, const struct moon_step *step, struct moon_step_jobs *jobs,
                        struct moon_error *error) {
    const struct moon_planning planning = {scheduler, step, jobs, jobs->count, error};
    scheduler->step_number++;
    int status = plan_finished(&planning);
    if (!status)
        status = plan_preempted(&planning);
    for (size_t i = 0; !status && i < step->fresh_count; i++)
        status = plan_fresh(&planning, i);
    for (size_t i = 0; !status && i < step->cached_count; i++)
        status = plan_cached(&planning, i);
    if (!status)
        status = plan_all_waiting(&planning);
    if (!status)
        status = moon_plan_boundaries(&planning);
    return status ? status : finish_jobs(&planning);
}
