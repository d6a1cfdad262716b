/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the connector through the steps of a case, as the core and the workers of an engine do. */
#include "conformance/suites/save_run.h"

#include <string.h>

/* One rank: its save thread, and NULL where the role has none. */
struct rank {
    int64_t number;
    struct moon_sender *sender;
};

struct run {
    struct moon_arena *arena;
    struct moon_memory *memory;
    struct moon_save_case *its;
    const struct moon_profile *profile;
    struct moon_save_observer *observer;
    struct moon_scheduler *scheduler;
    struct moon_request *requests;
    struct moon_tables **tables; /* of each request, as the core has them */
    struct rank *ranks;
    size_t rank_count;
    struct moon_step_jobs jobs;
    struct moon_text key; /* scratch */
    int64_t *results;     /* scratch */
    size_t result_capacity;
    struct moon_error *error;
};

static int out_of_memory(const struct run *run) {
    return moon_fail(run->error, MOON_ERR_MEMORY, NULL, "no memory to run the case");
}

/* ---- opening ---- */

/* Hashes that exist of a request: its full hash blocks. */
static int count_hashes(const struct run *run, uint32_t slot, const struct moon_json *place) {
    struct moon_request *request = &run->requests[slot];
    const struct moon_save_request *given = &run->its->requests[slot];
    size_t count = (size_t)(request->known_tokens / run->its->its.engine.model.hash_block_tokens);
    if (count > given->hashes.count)
        return moon_json_fail(run->error, MOON_ERR_RANGE, run->its->source, place,
                              "%zu block hashes are needed for %lld tokens, %zu are given", count,
                              (long long)request->known_tokens, given->hashes.count);
    request->hashes = given->hashes;
    request->hashes.count = count;
    return 0;
}

static int open_requests(struct run *run) {
    const struct moon_save_case *its = run->its;
    run->requests = moon_arena_array(run->arena, its->request_count, sizeof *run->requests);
    run->tables = moon_arena_array(run->arena, its->request_count, sizeof *run->tables);
    if (!run->requests || !run->tables)
        return out_of_memory(run);
    int status = 0;
    for (size_t i = 0; i < its->request_count && !status; i++) {
        run->requests[i] = (struct moon_request){.slot = (uint32_t)i,
                                                 .prompt_tokens = its->requests[i].prompt_tokens,
                                                 .known_tokens = its->requests[i].prompt_tokens};
        const struct moon_json *hashes = moon_json_member(its->requests[i].place, "block_hashes");
        status = count_hashes(run, (uint32_t)i, hashes ? hashes : its->requests[i].place);
    }
    return status;
}

/* A rank has a save thread if its role ever puts. */
static int open_ranks(struct run *run) {
    const struct moon_connector *connector = &run->its->its.connector;
    run->rank_count = (size_t)moon_world_size(connector->model);
    run->ranks = moon_arena_array(run->arena, run->rank_count, sizeof *run->ranks);
    if (!run->ranks)
        return out_of_memory(run);
    int status = 0;
    for (size_t i = 0; i < run->rank_count && !status; i++) {
        const struct moon_rank rank = moon_rank_at(connector->model, (int64_t)i);
        run->ranks[i].number = (int64_t)i;
        if (connector->saves_prefill || connector->saves_decode)
            status = moon_sender_open(&run->ranks[i].sender, connector, &rank, NULL, run->memory, run->error);
    }
    return status;
}

static int open_run(struct run *run) {
    const struct moon_connector *connector = &run->its->its.connector;
    int status = open_requests(run);
    if (!status)
        status = open_ranks(run);
    if (!status)
        status = moon_scheduler_open(&run->scheduler, connector, NULL, NULL, (int64_t)run->rank_count, run->memory,
                                     run->error);
    return status;
}

static void close_run(struct run *run) {
    moon_step_jobs_close(&run->jobs);
    for (size_t i = 0; run->ranks && i < run->rank_count; i++)
        moon_sender_close(run->ranks[i].sender);
    moon_scheduler_close(run->scheduler);
    for (size_t i = 0; run->tables && i < run->its->request_count; i++)
        moon_tables_release(run->tables[i]);
    moon_text_close(&run->key);
    run->memory->resize(run->memory, run->results, run->result_capacity * sizeof *run->results, 0);
}

/* ---- the core's part of a step ---- */

/* The place of an error of the scheduler side: the step, and in words the list and number in it. */
static int at_step(const struct run *run, const struct moon_save_step *step, int status, const struct moon_error *why) {
    if (status == MOON_ERR_RANGE)
        return moon_json_fail(run->error, MOON_ERR_RANGE, run->its->source, step->place, "%s%s%s", why->where,
                              why->where[0] ? ": " : "", why->message);
    *run->error = *why;
    return status;
}

static void forget_table(struct run *run, uint32_t slot) {
    moon_tables_release(run->tables[slot]);
    run->tables[slot] = NULL;
}

/* A request starts or comes back: it gets a whole table, and nothing of it comes from the store. */
static int allocate(struct run *run, const struct moon_save_step *step, const struct moon_save_entry *entry) {
    struct moon_error why;
    forget_table(run, entry->slot);
    if (moon_tables_create(run->memory, entry->blocks, run->its->its.engine.model.group_count,
                           &run->tables[entry->slot]))
        return out_of_memory(run);
    int status = moon_scheduler_allocated(run->scheduler, &run->requests[entry->slot], entry->blocks, 0, &why);
    return status ? at_step(run, step, status, &why) : 0;
}

static int go_on(struct run *run, const struct moon_save_entry *entry) {
    struct moon_tables *tables = run->tables[entry->slot];
    if (!entry->blocks)
        return 0;
    if (!tables)
        return moon_json_fail(run->error, MOON_ERR_RANGE, run->its->source, entry->place,
                              "the request is not running, its blocks cannot grow");
    return moon_tables_append(tables, entry->blocks) ? out_of_memory(run) : 0;
}

static int allocate_all(struct run *run, const struct moon_save_step *step) {
    for (size_t i = 0; i < step->preempted_count; i++)
        forget_table(run, step->preempted[i]);
    for (size_t i = 0; i < step->finished_count; i++)
        forget_table(run, step->finished[i]);
    int status = 0;
    for (size_t i = 0; i < step->fresh_count && !status; i++)
        status = allocate(run, step, &step->fresh[i]);
    for (size_t i = 0; i < step->cached_count && !status; i++)
        status = step->cached[i].resumed ? allocate(run, step, &step->cached[i]) : go_on(run, &step->cached[i]);
    return status;
}

static struct moon_step_request *tell(const struct run *run, const struct moon_save_entry *entries, size_t count) {
    struct moon_step_request *told = moon_arena_array(run->arena, count, sizeof *told);
    for (size_t i = 0; told && i < count; i++) {
        const struct moon_save_entry *entry = &entries[i];
        const struct moon_request *request = &run->requests[entry->slot];
        const struct moon_tables *tables = run->tables[entry->slot];
        told[i] = (struct moon_step_request){
            .request = request,
            .resumed = entry->resumed,
            .prefill_tokens = entry->prefill_tokens ? entry->prefill_tokens : request->prompt_tokens,
            .computed_tokens = entry->computed_tokens,
            .scheduled_tokens = entry->scheduled_tokens,
            .blocks = entry->blocks,
            .table = tables ? tables->groups : NULL,
        };
    }
    return told;
}

/* Plans the step: its jobs are run->jobs. */
static int plan(struct run *run, const struct moon_save_step *step) {
    struct moon_error why;
    int status = allocate_all(run, step);
    if (status)
        return status;
    for (size_t i = 0; i < step->boundary_count; i++) {
        const struct moon_tables *tables = run->tables[step->boundaries[i].slot];
        step->boundaries[i].table = tables ? tables->groups : NULL;
    }
    const struct moon_step told = {
        .finished = step->finished,
        .finished_count = step->finished_count,
        .preempted = step->preempted,
        .preempted_count = step->preempted_count,
        .fresh = tell(run, step->fresh, step->fresh_count),
        .fresh_count = step->fresh_count,
        .cached = tell(run, step->cached, step->cached_count),
        .cached_count = step->cached_count,
        .boundaries = step->boundaries,
        .boundary_count = step->boundary_count,
    };
    if (!told.fresh || !told.cached)
        return out_of_memory(run);
    moon_step_jobs_clear(&run->jobs);
    status = moon_scheduler_step(run->scheduler, &told, &run->jobs, &why);
    if (status)
        return at_step(run, step, status, &why);
    if (run->observer->planned)
        run->observer->planned(run->observer, &run->jobs);
    return 0;
}

static int end_step(struct run *run, const struct moon_save_step *step) {
    int status = 0;
    for (size_t i = 0; i < step->output_count && !status; i++) {
        const struct moon_save_output *output = &step->outputs[i];
        run->requests[output->slot].known_tokens += output->tokens;
        status = count_hashes(run, output->slot, output->place);
    }
    return status;
}

/* ---- the store ---- */

static int reserve_results(struct run *run, size_t count) {
    if (count <= run->result_capacity)
        return 0;
    int64_t *results =
        run->memory->resize(run->memory, run->results, run->result_capacity * sizeof *results, count * sizeof *results);
    if (!results)
        return out_of_memory(run);
    run->results = results;
    run->result_capacity = count;
    return 0;
}

/* What the store answers for one key; a put that succeeds makes it exist. */
static int answer_key(struct run *run, enum moon_call_kind kind, struct moon_key_text key, int64_t *result) {
    if (kind == MOON_CALL_EXIST) {
        *result = moon_key_set_find(&run->its->existing, key) ? 1 : 0;
        return 0;
    }
    const int64_t *set = moon_key_set_find(&run->its->put_results, key);
    *result = set ? *set : 0;
    return *result >= 0 ? moon_key_set_put(&run->its->existing, key, 1) : 0;
}

static int answer_call(struct run *run, const struct rank *rank, const struct moon_store_call *call) {
    if (reserve_results(run, call->count))
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < call->count; i++) {
        moon_text_clear(&run->key);
        moon_key_list_write(call->keys, call->first + i, &run->key);
        const struct moon_key_text key = {moon_text_value(&run->key), run->key.length};
        if (run->key.failed || answer_key(run, call->kind, key, &run->results[i]))
            return out_of_memory(run);
    }
    if (run->observer->called)
        run->observer->called(run->observer, rank->number, call, run->results);
    return moon_sender_answer(rank->sender, run->results, call->count, run->error);
}

/* ---- the workers' part of a step ---- */

/* Runs all jobs that a rank has queued. */
static int drain(struct run *run, const struct rank *rank) {
    const struct moon_store_call *call;
    struct moon_error raised;
    int status = 0;
    do {
        status = moon_sender_next(rank->sender, &call, run->error);
        while (moon_sender_take_raised(rank->sender, &raised))
            if (run->observer->raised)
                run->observer->raised(run->observer, rank->number, &raised);
        if (!status && call)
            status = answer_call(run, rank, call);
    } while (!status && call);
    return status;
}

static int queue_jobs(struct run *run, const struct rank *rank) {
    for (size_t i = 0; i < run->jobs.count; i++)
        if (run->jobs.jobs[i]->save && moon_sender_queue(rank->sender, run->jobs.jobs[i]))
            return out_of_memory(run);
    return 0;
}

/* One rank: up to 0.28 jobs are queued by the same call that retires requests, later before. */
static int run_rank(struct run *run, const struct moon_save_step *step, const struct rank *rank) {
    bool first = run->profile->queue_hooks;
    int status = first ? queue_jobs(run, rank) : 0;
    if (!status && step->process_jobs)
        status = drain(run, rank);
    if (!status && !first)
        status = queue_jobs(run, rank);
    if (!status &&
        moon_sender_retire(rank->sender, step->preempted, step->preempted_count, step->finished, step->finished_count))
        status = out_of_memory(run);
    return status || !step->process_jobs ? status : drain(run, rank);
}

/* Jobs that a rank has done become reports to the scheduler side. */
static int report(struct run *run, const struct rank *rank) {
    uint64_t id;
    int status = 0;
    while (!status && moon_sender_take_done(rank->sender, &id))
        status = moon_scheduler_report(run->scheduler, id, 1, run->error);
    return status;
}

static int run_step(struct run *run, size_t number) {
    const struct moon_save_step *step = &run->its->steps[number];
    uint32_t slot;
    if (run->observer->began)
        run->observer->began(run->observer, number);
    int status = plan(run, step);
    for (size_t i = 0; i < run->rank_count && !status; i++)
        if (run->ranks[i].sender)
            status = run_rank(run, step, &run->ranks[i]);
    for (size_t i = 0; i < run->rank_count && !status; i++) {
        if (!run->ranks[i].sender)
            continue;
        status = report(run, &run->ranks[i]);
        while (moon_sender_take_finished(run->ranks[i].sender, &slot)) {
            /* the core frees their blocks; none are counted here */
        }
    }
    if (!status)
        status = end_step(run, step);
    if (!status && run->observer->ended)
        run->observer->ended(run->observer);
    return status;
}

int moon_save_run(struct moon_arena *arena, struct moon_save_case *its, struct moon_save_observer *observer,
                  struct moon_save_outcome *outcome, struct moon_error *error) {
    struct moon_error failure = {0};
    struct run run = {.arena = arena,
                      .memory = arena->memory,
                      .its = its,
                      .profile = its->its.connector.profile,
                      .observer = observer,
                      .error = &failure};
    size_t stored_before = its->existing.count;
    moon_text_open(&run.key, run.memory);
    moon_step_jobs_open(&run.jobs, run.memory);
    int status = open_run(&run);
    for (size_t i = 0; i < its->step_count && !status; i++)
        status = run_step(&run, i);
    if (!status)
        *outcome = (struct moon_save_outcome){.stored_keys = its->existing.count - stored_before,
                                              .unreleased_jobs = moon_scheduler_unreleased(run.scheduler)};
    else if (error)
        *error = failure;
    close_run(&run);
    return status;
}
