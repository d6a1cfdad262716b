/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: one request from its lookup to the reports of every rank. */
#include "conformance/suites/load_case.h"

#include "conformance/suites/lookup_direct.h"

#include <assert.h>

/* Everything that one function passes to the next. */
struct run {
    struct moon_arena *arena;
    const char *source;
    const struct moon_json *given;
    struct moon_load_case *its;
    const struct moon_load_watch *watch;
    struct moon_memory *memory;
    struct moon_request request;
    struct moon_error *error;
};

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
}

/* A key exists if its hash text is one of the first hashes. */
static int exist(void *context, const struct moon_store_call *call, int64_t values[]) {
    const struct moon_load_case *its = context;
    for (size_t i = 0; i < call->count; i++)
        values[i] = moon_key_set_find(&its->stored, moon_key_list_hash_text(call->keys, call->first + i)) != NULL;
    return 0;
}

/* ---- one rank ---- */

static int build_segments(const struct run *run, const struct moon_rank *rank, struct moon_segments *segments) {
    const struct moon_load_case *its = run->its;
    const struct moon_connector *connector = &its->connector.connector;
    const struct moon_layout_model *model = connector->model;
    struct moon_shards shards;
    bool sharded = moon_store_sharded(&connector->selection);
    if (sharded)
        shards = moon_rank_shards(model, &connector->selection, rank->tp);
    const struct moon_rank_caches caches = {
        .profile = connector->profile,
        .storage_bytes = its->storage_bytes,
        .storage_count = its->storage_count,
        .caches = its->caches,
        .cache_count = its->cache_count,
        .num_blocks = (uint64_t)its->num_blocks,
        .block_size_tokens = (uint64_t)model->groups[0].block_tokens,
    };
    return moon_segments_build(run->arena, &caches, sharded ? &shards : NULL, segments, run->error);
}

/* Results of a get: what the case says of a key, else all its bytes. */
static void fill_results(const struct run *run, const struct moon_store_call *call, struct moon_text *key,
                         int64_t *results) {
    const struct moon_staging_keys keys = {call->buffers, call->buffers_per_key, call->count};
    for (size_t i = 0; i < call->count; i++) {
        moon_text_clear(key);
        moon_key_list_write(call->keys, call->first + i, key);
        const int64_t *given = moon_key_set_find(&run->its->results, (struct moon_key_text){key->data, key->length});
        results[i] = given ? *given : (int64_t)moon_staging_data_bytes(&keys, i);
    }
}

/* Makes one call. *gets counts the rank's gets, *buffers what is read into over all ranks. */
static int make_call(const struct run *run, struct moon_receiver *receiver, const struct moon_store_call *call,
                     int64_t *gets, size_t *buffers) {
    bool get = call->kind == MOON_CALL_GET, raises = get && (*gets)++ == run->its->raises_on_call;
    struct moon_text key;
    int status = 0;
    *buffers += get ? call->count * call->buffers_per_key : 0; /* both have named limits */
    if (*buffers > MOON_LOAD_BUFFERS_MAX)
        return moon_json_fail(run->error, MOON_ERR_LIMIT, run->source, run->given,
                              "the ranks read into more than %d buffers", MOON_LOAD_BUFFERS_MAX);
    int64_t *results = moon_arena_array(run->arena, call->count, sizeof *results); /* zeros: no replica is known */
    if (!results)
        return out_of_memory(run->error);
    moon_text_open(&key, run->memory);
    if (get)
        fill_results(run, call, &key, results);
    if (key.failed)
        status = out_of_memory(run->error);
    moon_text_close(&key);
    if (status)
        return status;
    if (run->watch->called)
        run->watch->called(run->watch->context, call, raises ? NULL : results);
    if (raises)
        moon_receiver_raised(receiver);
    else
        status = moon_receiver_answer(receiver, results, call->count, run->error);
    return status;
}

static int run_calls(const struct run *run, struct moon_receiver *receiver, size_t *buffers) {
    const struct moon_store_call *call;
    int64_t gets = 0;
    int status = moon_receiver_next(receiver, &call, run->error);
    while (!status && call) {
        status = make_call(run, receiver, call, &gets, buffers);
        if (!status)
            status = moon_receiver_next(receiver, &call, run->error);
    }
    if (status == MOON_ERR_RANGE) {
        const struct moon_error named = *run->error;
        status = moon_json_fail(run->error, status, run->source, moon_json_member(run->given, "block_ids"), "%s",
                                named.message);
    }
    return status;
}

static int run_rank(const struct run *run, int64_t number, const struct moon_step_jobs *jobs, size_t *buffers) {
    const struct moon_connector *connector = &run->its->connector.connector;
    const struct moon_rank rank = moon_rank_at(connector->model, number);
    struct moon_segments segments;
    struct moon_receiver *receiver = NULL;
    int status = build_segments(run, &rank, &segments);
    const struct moon_receiver_setting setting = {.segments = &segments,
                                                  .offload = run->its->offload,
                                                  .tier_log = run->its->tier_log,
                                                  .staging = run->its->staging,
                                                  .engine_groups = run->its->groups_of_engine};
    if (!status)
        status = moon_receiver_open(&receiver, connector, &rank, &setting, run->memory, run->error);
    for (size_t i = 0; i < jobs->count && !status; i++) {
        assert(jobs->jobs[i]->load); /* nothing else was allocated */
        if (run->watch->begins)
            run->watch->begins(run->watch->context, &rank, &segments, jobs->jobs[i]);
        status = moon_receiver_queue(receiver, jobs->jobs[i]);
        if (status)
            out_of_memory(run->error);
    }
    if (!status)
        status = run_calls(run, receiver, buffers);
    if (!status && run->watch->ended)
        run->watch->ended(run->watch->context, &rank, receiver);
    moon_receiver_close(receiver);
    return status;
}

/* ---- the request ---- */

/* An exception that the core meets in the worker, in the step that issues the load. */
static int check_async(const struct run *run) {
    if (run->its->connector.connector.options.load_async)
        return 0;
    return moon_refuse(run->error, "AssertionError", "load_async must be True for better performance.");
}

static int run_jobs(const struct run *run, const struct moon_step_jobs *jobs) {
    int64_t world = moon_world_size(run->its->connector.connector.model);
    size_t buffers = 0;
    int status = check_async(run);
    for (int64_t rank = 0; rank < world && !status; rank++)
        status = run_rank(run, rank, jobs, &buffers);
    return status;
}

/* Allocates what was matched, plans a step in which nothing else happens, and runs its jobs. */
static int load(const struct run *run, struct moon_scheduler *scheduler, const struct moon_match *match) {
    static const struct moon_step nothing_else = {0};
    struct moon_step_jobs jobs;
    moon_step_jobs_open(&jobs, run->memory);
    int status = moon_scheduler_allocated(scheduler, &run->request, run->its->tables, match->tokens, run->error);
    if (!status)
        status = moon_scheduler_step(scheduler, &nothing_else, &jobs, run->error);
    if (!status)
        status = run_jobs(run, &jobs);
    moon_step_jobs_close(&jobs);
    return status;
}

/* Matches, and loads if there is something to load. */
static int run_request(const struct run *run, struct moon_lookup_direct *lookups) {
    struct moon_scheduler *scheduler = NULL;
    struct moon_match match;
    const struct moon_connector *connector = &run->its->connector.connector;
    int status = moon_scheduler_open(&scheduler, connector, &lookups->port, NULL, moon_world_size(connector->model),
                                     run->memory, run->error);
    if (!status)
        status = moon_scheduler_match(scheduler, &run->request, run->its->computed_tokens, &match, run->error);
    if (!status && lookups->raised.status) { /* the release's client would never get an answer */
        *run->error = lookups->raised;
        status = lookups->raised.status;
    }
    if (!status && run->watch->matched)
        run->watch->matched(run->watch->context, &match);
    if (!status && match.tokens > 0)
        status = load(run, scheduler, &match);
    moon_scheduler_close(scheduler);
    return status;
}

int moon_load_run(struct moon_arena *arena, const char *source, const struct moon_json *given,
                  struct moon_load_case *its, const struct moon_load_watch *watch, struct moon_error *error) {
    struct run run = {
        .arena = arena,
        .source = source,
        .given = given,
        .its = its,
        .watch = watch,
        .memory = arena->memory,
        .request = {.prompt_tokens = its->num_tokens, .known_tokens = its->num_tokens, .hashes = its->hashes},
        .error = error,
    };
    struct moon_lookup_direct lookups;
    const struct moon_rank first = moon_rank_at(its->connector.connector.model, 0);
    struct moon_segments segments;
    int status = build_segments(&run, &first, &segments); /* caches are registered before anything is looked up */
    if (status)
        return status;
    moon_lookup_direct_open(&lookups, &its->connector.connector, arena->memory, exist, its);
    status = run_request(&run, &lookups);
    moon_lookup_direct_close(&lookups);
    return status;
}
