/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler side outside of steps: lookups, allocations, finishes. */
#include "ref/connector/scheduler_internal.h"

#include <string.h>

int moon_scheduler_open(struct moon_scheduler **out, const struct moon_connector *connector,
                        struct moon_lookup_port *lookups, struct moon_block_port *blocks, int64_t world_size,
                        struct moon_memory *memory, struct moon_error *error) {
    if (world_size < 1)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "a world of %lld ranks", (long long)world_size);
    struct moon_scheduler *scheduler = memory->resize(memory, NULL, 0, sizeof *scheduler);
    if (!scheduler)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    *scheduler = (struct moon_scheduler){
        .connector = connector,
        .lookups = lookups,
        .blocks = blocks,
        .memory = memory,
        .world_size = world_size,
        .oldest = MOON_SLOT_NONE,
        .newest = MOON_SLOT_NONE,
    };
    moon_step_jobs_open(&scheduler->tails, memory);
    *out = scheduler;
    return 0;
}

void moon_scheduler_close(struct moon_scheduler *scheduler) {
    if (!scheduler)
        return;
    moon_trackers_close(scheduler);
    moon_pins_close(scheduler);
    moon_step_jobs_close(&scheduler->tails);
    scheduler->memory->resize(scheduler->memory, scheduler, sizeof *scheduler, 0);
}

/* Numbers of a request that its slot's tracker may rely on. */
static int check_request(const struct moon_request *request, struct moon_error *error) {
    if (request->prompt_tokens < 1 || request->known_tokens < request->prompt_tokens ||
        request->known_tokens > MOON_CONNECTOR_TOKENS_MAX)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "slot %u: a prompt of %lld tokens, %lld known tokens",
                         (unsigned)request->slot, (long long)request->prompt_tokens, (long long)request->known_tokens);
    return 0;
}

/* Tokens that the question names: from 0.27 on as many as there are. */
static int64_t asked_tokens(const struct moon_connector *connector, int64_t tokens) {
    if (connector->profile->lookup_rpc >= MOON_RPC_RAW || !connector->options.discard_partial_chunks)
        return tokens;
    return tokens - tokens % connector->model->scheduler_block_tokens;
}

/* A prompt that is stored to its end: the last token must be computed (PLAN-003). From 0.27 on the worker saw to it. */
static int64_t less_full_hit(const struct moon_connector *connector, int64_t hit_tokens, int64_t known_tokens) {
    if (hit_tokens != known_tokens)
        return hit_tokens;
    switch (connector->profile->full_hit) {
    case MOON_FULL_HIT_LESS_ONE:
        return hit_tokens - 1;
    case MOON_FULL_HIT_ALIGNED:
        return (known_tokens - 1) / connector->model->scheduler_block_tokens * connector->model->scheduler_block_tokens;
    default:
        return hit_tokens;
    }
}

/* Remembers what a lookup promised. */
static int keep_promise(struct moon_scheduler *scheduler, uint32_t slot, const struct moon_match *match,
                        int64_t computed_tokens, struct moon_error *error) {
    struct moon_tracker *tracker = &scheduler->trackers[slot];
    size_t bytes = scheduler->connector->model->group_count * sizeof(int64_t);
    moon_tracker_drop_load(scheduler, tracker);
    if (match->boundary_count > 0) {
        tracker->load_boundaries = scheduler->memory->resize(scheduler->memory, NULL, 0, bytes);
        if (!tracker->load_boundaries)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
        memcpy(tracker->load_boundaries, match->tail_boundaries, bytes);
    }
    tracker->load = true;
    tracker->load_local_tokens = computed_tokens;
    tracker->load_hit_tokens = match->hit_tokens;
    return 0;
}

/* Makes the answer of a lookup the answer to the core. */
static int take_result(struct moon_scheduler *scheduler, const struct moon_request *request, int64_t computed_tokens,
                       const struct moon_lookup_result *result, struct moon_match *match, struct moon_error *error) {
    const struct moon_connector *connector = scheduler->connector;
    if (result->hit_tokens < 0 || result->hit_tokens > request->known_tokens ||
        (result->boundary_count != 0 && result->boundary_count != connector->model->group_count))
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "slot %u: the lookup of %lld tokens answers a hit of %lld and %zu boundaries for %zu groups",
                         (unsigned)request->slot, (long long)request->known_tokens, (long long)result->hit_tokens,
                         result->boundary_count, connector->model->group_count);
    int64_t hit_tokens = less_full_hit(connector, result->hit_tokens, request->known_tokens);
    if (hit_tokens <= computed_tokens)
        return 0;
    match->tokens = hit_tokens - computed_tokens;
    match->hit_tokens = hit_tokens;
    match->load_async = connector->options.load_async;
    match->boundary_count = result->boundary_count;
    memcpy(match->tail_boundaries, result->tail_boundaries, result->boundary_count * sizeof result->tail_boundaries[0]);
    return keep_promise(scheduler, request->slot, match, computed_tokens, error);
}

int moon_scheduler_match(struct moon_scheduler *scheduler, const struct moon_request *request, int64_t computed_tokens,
                         struct moon_match *match, struct moon_error *error) {
    const struct moon_connector *connector = scheduler->connector;
    struct moon_lookup_result result = {0};
    struct moon_error refusal;
    bool pending = false;
    *match = (struct moon_match){0};
    int status = check_request(request, error);
    if (!status && (computed_tokens < 0 || computed_tokens > request->known_tokens))
        status = moon_fail(error, MOON_ERR_RANGE, NULL, "slot %u: %lld of %lld tokens are computed",
                           (unsigned)request->slot, (long long)computed_tokens, (long long)request->known_tokens);
    if (!status)
        status = moon_tracker_reach(scheduler, request->slot, error);
    if (status)
        return status;
    if (!scheduler->lookups || !connector->options.enable_lookup || request->known_tokens < connector->alignment_tokens)
        return 0;
    status = scheduler->lookups->lookup(scheduler->lookups, request, asked_tokens(connector, request->known_tokens),
                                        connector->options.lookup_async, &result, &pending, &refusal);
    if (status == MOON_ERR_MEMORY)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    if (status) /* the channel failed: nothing is to be loaded */
        return 0;
    if (pending) {
        match->pending = true;
        return 0;
    }
    return take_result(scheduler, request, computed_tokens, &result, match, error);
}

int moon_scheduler_allocated(struct moon_scheduler *scheduler, const struct moon_request *request,
                             const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    struct moon_tables *waiting = NULL;
    int status = check_request(request, error);
    if (!status && external_tokens < 0)
        status = moon_fail(error, MOON_ERR_RANGE, NULL, "slot %u: %lld external tokens", (unsigned)request->slot,
                           (long long)external_tokens);
    if (!status)
        status = moon_tracker_reach(scheduler, request->slot, error);
    if (status)
        return status;
    if (external_tokens > 0 &&
        moon_tables_create(scheduler->memory, tables, scheduler->connector->model->group_count, &waiting))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    moon_tracker_enter(scheduler, request, waiting);
    struct moon_tracker *tracker = &scheduler->trackers[request->slot];
    if (!tracker->load)
        return 0;
    tracker->can_load = false;
    if (external_tokens == 0)
        return 0;
    if (external_tokens != tracker->load_hit_tokens - tracker->load_local_tokens)
        return moon_refuse(error, "AssertionError", "Mismatch in number of tokens: %lld vs %lld - %lld for request %u",
                           (long long)external_tokens, (long long)tracker->load_hit_tokens,
                           (long long)tracker->load_local_tokens, (unsigned)request->slot);
    tracker->can_load = true;
    return 0;
}

bool moon_scheduler_finished(struct moon_scheduler *scheduler, const struct moon_request *request, bool has_blocks) {
    const struct moon_connector *connector = scheduler->connector;
    const struct moon_tracker *tracker = moon_tracker_find(scheduler, request->slot);
    if (connector->profile->job_references || connector->options.role == MOON_ROLE_CONSUMER || !tracker)
        return false;
    return has_blocks && tracker->tracked && (tracker->saved_tokens > 0 || tracker->handed_off);
}

bool moon_scheduler_reset(struct moon_scheduler *scheduler) {
    if (!scheduler->connector->profile->reset_removes_keys)
        return false;
    for (size_t slot = 0; slot < scheduler->slot_capacity; slot++)
        moon_tracker_drop_load(scheduler, &scheduler->trackers[slot]);
    return scheduler->lookups && scheduler->lookups->reset(scheduler->lookups);
}
