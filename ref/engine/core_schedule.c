/* SPDX-License-Identifier: Apache-2.0 */
/* One step of the core scheduler: running requests, then waiting ones, then the connector. */
#include "ref/engine/core_internal.h"

/* A step under way. */
struct planning {
    struct moon_core *core;
    int64_t budget_tokens;
    struct moon_core_queue skipped_first, skipped_second; /* requests that were looked at and not scheduled */
    struct moon_error *error;
};

static void schedule(struct planning *planning, struct moon_core_request *request, bool fresh, int64_t tokens) {
    struct moon_core *core = planning->core;
    planning->budget_tokens -= tokens;
    core->scheduled[core->scheduled_count++] = (struct moon_core_scheduled){
        .slot = request->request.slot, .fresh = fresh, .computed_tokens = request->computed_tokens, .tokens = tokens};
}

/* ---- running requests ---- */

static void preempt_last(struct moon_core *core) {
    struct moon_core_request *victim = core->running[--core->running_count];
    moon_core_free(core, victim);
    victim->status = MOON_REQUEST_PREEMPTED;
    victim->computed_tokens = 0;
    victim->prefilling = false;
    victim->preemptions++;
    moon_core_prepend(&core->second, victim);
    core->preempted[core->preempted_count++] = victim->request.slot;
}

/* Gets blocks for the running request at `index`, if need be those of the requests behind it, last first. False: it was
 * preempted itself. */
static bool make_room(struct moon_core *core, size_t index, int64_t tokens) {
    const struct moon_core_demand demand = {.computed_now = tokens, .hashed = true};
    while (core->running_count > index) {
        if (moon_core_allocate(core, core->running[index], &demand))
            return true;
        preempt_last(core);
    }
    return false;
}

static void plan_running(struct planning *planning) {
    struct moon_core *core = planning->core;
    size_t groups = core->options.model->group_count;
    for (size_t index = 0; index < core->running_count && planning->budget_tokens > 0; index++) {
        struct moon_core_request *request = core->running[index];
        struct moon_block_table *added = &core->added[index * groups];
        int64_t tokens = request->request.known_tokens - request->computed_tokens;
        if (tokens > planning->budget_tokens)
            tokens = planning->budget_tokens;
        if (tokens == 0) /* nothing was sampled yet */
            continue;
        for (size_t group = 0; group < groups; group++)
            added[group].count = request->tables[group].count;
        if (!make_room(core, index, tokens))
            break;
        bool any = false;
        for (size_t group = 0; group < groups; group++) {
            size_t before = added[group].count;
            added[group] = (struct moon_block_table){request->tables[group].blocks + before,
                                                     request->tables[group].count - before};
            any = any || added[group].count > 0;
        }
        core->cached[core->cached_count++] = (struct moon_step_request){
            .request = &request->request,
            .computed_tokens = request->computed_tokens,
            .scheduled_tokens = tokens,
            .blocks = any ? added : NULL,
            .table = any || !core->options.profile->tables_of_growing ? request->tables : NULL,
        };
        schedule(planning, request, false, tokens);
    }
}

/* ---- waiting requests ---- */

static bool holds_blocks(const struct moon_core_request *request) {
    return request->computed_tokens > 0 || request->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS;
}

/* Leaves a request for this step. */
static void skip(struct planning *planning, struct moon_core_queue *queue, struct moon_core_request *request) {
    bool first = !planning->core->options.profile->holders_first || holds_blocks(request);
    moon_core_take(queue, request);
    moon_core_append(first ? &planning->skipped_first : &planning->skipped_second, request);
}

/* The load of a request has ended: what came is cached, what did not come must be computed. */
static void take_up_load(struct moon_core *core, struct moon_core_request *request) {
    if (request->load_failed && request->computed_tokens == 0)
        moon_core_free(core, request);
    else
        moon_core_cache(core, request, request->computed_tokens);
    request->load_done = request->load_failed = false;
    if (request->computed_tokens == request->request.known_tokens)
        request->computed_tokens--; /* to have something to sample from */
    request->status = request->preemptions > 0 ? MOON_REQUEST_PREEMPTED : MOON_REQUEST_WAITING;
}

/* Blocks that loading and chunked requests still lack: a load must leave them. */
static int64_t reserved_blocks(const struct moon_core *core) {
    int64_t sum = 0;
    for (size_t i = 0; i < core->slot_capacity; i++)
        if (core->slots[i] && core->slots[i]->prefilling)
            sum += moon_core_lacking(core, core->slots[i]);
    return sum;
}

enum outcome { PLACED, SKIPPED, NO_ROOM };

/* What is known of a waiting request's prefix. */
struct prefix {
    int64_t local, external;
    bool pending, load_async;
};

static int look_up(struct planning *planning, struct moon_core_request *request, struct prefix *prefix) {
    struct moon_core *core = planning->core;
    struct moon_engine_match match = {0};
    *prefix = (struct prefix){0};
    if (request->computed_tokens > 0)
        return 0;
    prefix->local = moon_core_local_prefix(core, request);
    int status = core->port->match(core->port, &request->request, prefix->local, &match, planning->error);
    if (!status && !match.pending && (match.tokens < 0 || match.tokens > request->request.known_tokens - prefix->local))
        status = moon_fail(planning->error, MOON_ERR_RANGE, NULL, "a connector offers %lld tokens beyond %lld of %lld",
                           (long long)match.tokens, (long long)prefix->local, (long long)request->request.known_tokens);
    prefix->pending = match.pending;
    prefix->external = match.tokens;
    prefix->load_async = match.load_async && match.tokens > 0;
    return status;
}

static void start(struct planning *planning, struct moon_core_queue *queue, struct moon_core_request *request,
                  int64_t tokens) {
    struct moon_core *core = planning->core;
    bool resumed = request->status == MOON_REQUEST_PREEMPTED;
    struct moon_step_request *entry =
        resumed ? &core->resumed[core->resumed_count++] : &core->fresh[core->fresh_count++];
    *entry = (struct moon_step_request){
        .request = &request->request,
        .prefill_tokens = request->request.known_tokens,
        .computed_tokens = request->computed_tokens,
        .scheduled_tokens = tokens,
        .blocks = request->tables,
        .table = request->tables,
    };
    moon_core_take(queue, request);
    core->running[core->running_count++] = request;
    request->status = MOON_REQUEST_RUNNING;
    if (request->computed_tokens + tokens < request->request.known_tokens)
        request->prefilling = true;
    schedule(planning, request, true, tokens);
}

/* Looks at the first request of a queue. */
static int plan_waiting_one(struct planning *planning, struct moon_core_queue *queue, enum outcome *outcome) {
    struct moon_core *core = planning->core;
    struct moon_core_request *request = queue->first;
    struct prefix prefix = {0};
    *outcome = SKIPPED;
    if (request->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS) {
        if (!request->load_done) {
            skip(planning, queue, request);
            return 0;
        }
        take_up_load(core, request);
    }
    int status = look_up(planning, request, &prefix);
    if (status || prefix.pending) {
        skip(planning, queue, request);
        return status;
    }
    int64_t computed = request->computed_tokens + prefix.local + prefix.external;
    struct moon_core_demand demand = {
        .local = prefix.local, .external = prefix.external, .whole = true, .hashed = !prefix.load_async};
    if (prefix.load_async)
        demand.reserved = reserved_blocks(core);
    else
        demand.computed_now = request->request.known_tokens - computed;
    if (demand.computed_now > planning->budget_tokens)
        demand.computed_now = planning->budget_tokens;
    *outcome = NO_ROOM;
    if (!moon_core_allocate(core, request, &demand))
        return 0;
    status = core->port->allocated(core->port, &request->request, request->tables, prefix.external, planning->error);
    request->computed_tokens = computed;
    *outcome = PLACED;
    if (!prefix.load_async) {
        start(planning, queue, request, demand.computed_now);
        return status;
    }
    request->status = MOON_REQUEST_WAITING_FOR_REMOTE_KVS;
    request->prefilling = true;
    skip(planning, queue, request);
    return status;
}

static int plan_waiting(struct planning *planning) {
    struct moon_core *core = planning->core;
    enum outcome outcome = PLACED;
    int status = 0;
    while (!status && outcome != NO_ROOM && planning->budget_tokens > 0 &&
           core->running_count < core->options.running_max) {
        struct moon_core_queue *queue = core->first.first ? &core->first : &core->second;
        if (!queue->first)
            break;
        status = plan_waiting_one(planning, queue, &outcome);
    }
    moon_core_splice(&core->first, &planning->skipped_first);
    moon_core_splice(&core->second, &planning->skipped_second);
    return status;
}

/* ---- the step ---- */

static int tell_connector(struct planning *planning) {
    struct moon_core *core = planning->core;
    for (size_t i = 0; i < core->resumed_count; i++) /* a resumed request comes as a new one, after those */
        core->fresh[core->fresh_count++] = core->resumed[i];
    const struct moon_step step = {
        .finished = core->finished,
        .finished_count = core->finished_count,
        .preempted = core->preempted,
        .preempted_count = core->preempted_count,
        .fresh = core->fresh,
        .fresh_count = core->fresh_count,
        .cached = core->cached,
        .cached_count = core->cached_count,
    };
    int status = core->port->step(core->port, &step, planning->error);
    for (size_t i = 0; i < core->finished_count; i++)
        core->slots[core->finished[i]]->told = true;
    core->finished_count = 0;
    return status;
}

int moon_core_schedule(struct moon_core *core, struct moon_core_step *step, struct moon_error *error) {
    struct planning planning = {.core = core, .budget_tokens = core->options.step_tokens, .error = error};
    core->preempted_count = core->scheduled_count = 0;
    core->fresh_count = core->resumed_count = core->cached_count = 0;
    plan_running(&planning);
    int status = core->preempted_count == 0 ? plan_waiting(&planning) : 0;
    if (!status)
        status = tell_connector(&planning);
    for (size_t i = 0; i < core->scheduled_count; i++) {
        struct moon_core_request *request = core->slots[core->scheduled[i].slot];
        request->computed_tokens += core->scheduled[i].tokens;
        if (request->computed_tokens >= request->request.known_tokens)
            request->prefilling = false;
    }
    *step = (struct moon_core_step){.scheduled = core->scheduled,
                                    .scheduled_count = core->scheduled_count,
                                    .preempted = core->preempted,
                                    .preempted_count = core->preempted_count};
    return status;
}
