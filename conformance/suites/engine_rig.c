/* SPDX-License-Identifier: Apache-2.0 */
/* One engine in one piece: opening it, its requests, and its steps in the order of a release. */
#include "conformance/suites/engine_rig_internal.h"

#include "ref/engine/token.h"
#include "ref/hash/none_hash.h"

#include <assert.h>

enum { HASHER_ALIGNMENT = 64 };

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
}

static struct moon_rig *rig_of(struct moon_engine_port *port) {
    return (struct moon_rig *)port;
}

/* ---- the port: watches what goes through ---- */

static int match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *out, struct moon_error *error) {
    struct moon_rig *rig = rig_of(self);
    int status = rig->inner->match(rig->inner, request, computed_tokens, out, error);
    if (!status && rig->lookup_status)
        status = out_of_memory(error);
    if (!status && rig->observer->asked)
        rig->observer->asked(rig->observer, request, computed_tokens, out);
    return status;
}

static int allocated(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    struct moon_rig *rig = rig_of(self);
    return rig->inner->allocated(rig->inner, request, tables, external_tokens, error);
}

/* The workers hear of these slots too. */
static int plan(struct moon_engine_port *self, const struct moon_step *step, struct moon_error *error) {
    struct moon_rig *rig = rig_of(self);
    rig->finished_count = step->finished_count;
    rig->preempted_count = step->preempted_count;
    for (size_t i = 0; i < step->finished_count; i++)
        rig->finished[i] = step->finished[i];
    for (size_t i = 0; i < step->preempted_count; i++)
        rig->preempted[i] = step->preempted[i];
    return rig->inner->step(rig->inner, step, error);
}

static bool finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    struct moon_rig *rig = rig_of(self);
    return rig->inner->finished(rig->inner, request, has_blocks);
}

static int report(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error) {
    struct moon_rig *rig = rig_of(self);
    return rig->inner->report(rig->inner, child, job, ranks, error);
}

static bool reset(struct moon_engine_port *self) {
    struct moon_rig *rig = rig_of(self);
    return rig->inner->reset(rig->inner);
}

/* ---- opening ---- */

static int open_core(struct moon_rig *rig, struct moon_error *error) {
    static const struct moon_string seed = {.bytes = "0", .length = 1};
    const struct moon_profile *profile = rig->its->its.connector.profile;
    struct moon_none_hash_value *none = moon_arena_alloc(rig->arena, sizeof *none);
    if (!none)
        return out_of_memory(error);
    int status = moon_none_hash(&rig->hasher, profile, &seed, NULL, NULL, none, error);
    const struct moon_core_options options = {
        .profile = profile,
        .model = &rig->its->its.engine.model,
        .block_count = rig->its->block_count,
        .step_tokens = rig->its->step_tokens,
        .running_max = MOON_ENGINE_CASE_RUNNING_MAX,
        .hasher = &rig->hasher,
        .none_hash = none->bytes,
        .none_hash_bytes = none->length,
    };
    return status ? status : moon_core_open(&rig->core, &options, rig->arena->memory, error);
}

static int open_segments(struct moon_rig *rig, struct rig_rank *rank, struct moon_error *error) {
    const struct moon_connector *connector = &rig->its->its.connector;
    size_t layers = (size_t)rig->its->layers;
    uint64_t *storage_bytes = moon_arena_array(rig->arena, layers, sizeof *storage_bytes);
    struct moon_tensor *caches = moon_arena_array(rig->arena, layers, sizeof *caches);
    struct moon_shards shards;
    if (!storage_bytes || !caches)
        return out_of_memory(error);
    for (size_t i = 0; i < layers; i++) {
        storage_bytes[i] = rank->kv.storage_bytes;
        caches[i] = moon_kv_memory_tensor(&rank->kv, i);
    }
    bool sharded = moon_store_sharded(&connector->selection);
    if (sharded)
        shards = moon_rank_shards(connector->model, &connector->selection, rank->rank.tp);
    const struct moon_rank_caches registered = {
        .profile = connector->profile,
        .storage_bytes = storage_bytes,
        .storage_count = layers,
        .caches = caches,
        .cache_count = layers,
        .num_blocks = rig->its->block_count,
        .block_size_tokens = (uint64_t)connector->model->groups[0].block_tokens,
    };
    return moon_segments_build(rig->arena, &registered, sharded ? &shards : NULL, &rank->segments, error);
}

static int open_rank(struct moon_rig *rig, struct rig_rank *rank, struct moon_error *error) {
    const struct moon_connector *connector = &rig->its->its.connector;
    const struct moon_layout_model *model = connector->model;
    const struct moon_receiver_setting loads = {.segments = &rank->segments, .engine_groups = 1};
    const struct moon_kv_shape shape = {
        .layers = rig->its->layers,
        .first_head = (uint64_t)(rank->rank.tp * model->total_kv_heads / model->tp),
        .heads = (uint64_t)(model->total_kv_heads > model->tp ? model->total_kv_heads / model->tp : 1),
        .block_tokens = (uint64_t)model->groups[0].block_tokens,
        .block_count = rig->its->block_count,
        .half_bytes = MOON_ENGINE_CASE_HALF_BYTES,
        .token_outer = model->kv_layout == MOON_KV_LBNHC,
    };
    int status = moon_kv_memory_open(&rank->kv, &shape, rig->arena->memory);
    if (status)
        return moon_fail(error, (enum moon_status)status, NULL, "no memory for the KV caches");
    status = open_segments(rig, rank, error);
    if (!status && (connector->saves_prefill || connector->saves_decode))
        status = moon_sender_open(&rank->sender, connector, &rank->rank, &rank->segments, rig->arena->memory, error);
    if (!status && !connector->capacity_only)
        status = moon_receiver_open(&rank->receiver, connector, &rank->rank, &loads, rig->arena->memory, error);
    return status;
}

static int open_ranks(struct moon_rig *rig, struct moon_error *error) {
    const struct moon_layout_model *model = &rig->its->its.engine.model;
    int status = 0;
    rig->rank_count = (size_t)moon_world_size(model);
    rig->ranks = moon_arena_array(rig->arena, rig->rank_count, sizeof *rig->ranks);
    rig->requests = moon_arena_array(rig->arena, MOON_ENGINE_CASE_REQUESTS_MAX, sizeof *rig->requests);
    rig->report_capacity = 4 * MOON_ENGINE_CASE_RUNNING_MAX * rig->rank_count;
    rig->reports = moon_arena_array(rig->arena, rig->report_capacity, sizeof *rig->reports);
    rig->failed_blocks = moon_arena_array(rig->arena, rig->its->block_count, sizeof *rig->failed_blocks);
    if (!rig->ranks || !rig->requests || !rig->reports || !rig->failed_blocks)
        return out_of_memory(error);
    for (size_t i = 0; i < rig->rank_count && !status; i++) {
        rig->ranks[i].rank = moon_rank_at(model, (int64_t)i);
        status = open_rank(rig, &rig->ranks[i], error);
    }
    return status;
}

static int open_connector(struct moon_rig *rig, struct moon_error *error) {
    struct moon_memory *memory = rig->arena->memory;
    int status = moon_rig_lookup_open(rig, error);
    if (!status)
        status = moon_scheduler_open(&rig->scheduler, &rig->its->its.connector, moon_lookup_client_port(rig->client),
                                     moon_core_blocks(rig->core), (int64_t)rig->rank_count, memory, error);
    struct moon_engine_port *const children[] = {&rig->delivery.port, &rig->child.port};
    moon_store_child_open(&rig->child, rig->scheduler, memory);
    moon_delivery_open(&rig->delivery, memory);
    moon_multi_connector_open(&rig->multi, rig->its->its.connector.profile, children, 2, memory);
    rig->inner = rig->its->behind_multi ? &rig->multi.port : &rig->child.port;
    rig->port = (struct moon_engine_port){match, allocated, plan, finished, report, reset};
    moon_core_connect(rig->core, &rig->port);
    return status;
}

int moon_rig_open(struct moon_rig **out, struct moon_arena *arena, const struct moon_engine_case *its, bool hold,
                  struct moon_rig_observer *observer, struct moon_error *error) {
    char *room = moon_arena_alloc(arena, sizeof(struct moon_rig) + HASHER_ALIGNMENT); /* an arena aligns to 16 */
    *out = NULL;
    if (!room)
        return out_of_memory(error);
    struct moon_rig *rig = (struct moon_rig *)(room + (-(uintptr_t)room & (HASHER_ALIGNMENT - 1)));
    *out = rig;
    rig->arena = arena;
    rig->its = its;
    rig->observer = observer;
    rig->hold = hold && its->its.connector.options.lookup_async;
    moon_text_open(&rig->key, arena->memory);
    moon_hasher_open(&rig->hasher, MOON_SHA256, arena->memory);
    int status = open_core(rig, error);
    if (!status)
        status = open_ranks(rig, error);
    if (!status)
        status = open_connector(rig, error);
    return status ? status : moon_rig_store_open(rig, error);
}

void moon_rig_close(struct moon_rig *rig) {
    if (!rig)
        return;
    for (size_t i = 0; rig->ranks && i < rig->rank_count; i++) {
        moon_sender_close(rig->ranks[i].sender);
        moon_receiver_close(rig->ranks[i].receiver);
        moon_kv_memory_close(&rig->ranks[i].kv);
    }
    if (rig->inner) {
        moon_multi_connector_close(&rig->multi);
        moon_delivery_close(&rig->delivery);
        moon_store_child_close(&rig->child);
        moon_scheduler_close(rig->scheduler);
        moon_rig_lookup_close(rig);
    }
    moon_core_close(rig->core);
    moon_hasher_close(&rig->hasher);
    moon_text_close(&rig->key);
}

/* ---- requests ---- */

/* Brings a request's prefixes up to the tokens that it knows. */
static void extend_prefixes(struct moon_rig *rig, const struct moon_core_request *request) {
    struct rig_request *mine = &rig->requests[request->request.slot];
    for (; mine->known < request->request.known_tokens; mine->known++)
        mine->prefixes[mine->known] = moon_token_prefix(mine->known > 0 ? mine->prefixes[mine->known - 1] : 0,
                                                        request->request.token_ids[mine->known]);
}

int moon_rig_add(struct moon_rig *rig, uint32_t slot, const struct moon_engine_prompt *prompt, int64_t max_tokens,
                 bool delivered, struct moon_error *error) {
    const struct moon_core_new request = {
        .slot = slot, .prompt = prompt->tokens, .prompt_tokens = prompt->count, .max_tokens = max_tokens};
    assert(slot < MOON_ENGINE_CASE_REQUESTS_MAX && (!delivered || rig->its->behind_multi));
    uint64_t *prefixes = moon_arena_array(rig->arena, prompt->count + (size_t)max_tokens, sizeof *prefixes);
    if (!prefixes)
        return out_of_memory(error);
    int status = moon_core_add(rig->core, &request, error);
    if (status)
        return status;
    rig->requests[slot] = (struct rig_request){.prefixes = prefixes};
    extend_prefixes(rig, moon_core_find(rig->core, slot));
    return delivered && moon_delivery_want(&rig->delivery, slot) ? out_of_memory(error) : 0;
}

void moon_rig_abort(struct moon_rig *rig, uint32_t slot) {
    moon_core_abort(rig->core, slot);
}

bool moon_rig_reset(struct moon_rig *rig) {
    if (!moon_core_reset_prefix(rig->core))
        return false;
    for (size_t i = 0; i < rig->rank_count; i++)
        moon_kv_memory_poison(&rig->ranks[i].kv);
    return true;
}

/* ---- a step ---- */

static struct moon_kv_span span_of(const struct moon_rig *rig, uint32_t slot, int64_t first, int64_t end) {
    const struct moon_core_request *request = moon_core_find(rig->core, slot);
    return (struct moon_kv_span){.blocks = request->tables[0].blocks,
                                 .block_count = request->tables[0].count,
                                 .prefixes = rig->requests[slot].prefixes,
                                 .first = first,
                                 .end = end};
}

/* Computes the step's tokens. What a request that starts has cached must be there then: it may be another request's
 * work of the same step. */
static void compute(struct moon_rig *rig, const struct moon_core_step *step) {
    for (size_t i = 0; i < step->scheduled_count; i++) {
        const struct moon_core_scheduled *one = &step->scheduled[i];
        const struct moon_kv_span made =
            span_of(rig, one->slot, one->computed_tokens, one->computed_tokens + one->tokens);
        for (size_t k = 0; k < rig->rank_count; k++)
            moon_kv_memory_write(&rig->ranks[k].kv, &made);
    }
    for (size_t i = 0; i < step->scheduled_count; i++) {
        const struct moon_core_scheduled *one = &step->scheduled[i];
        const struct moon_kv_span there = span_of(rig, one->slot, 0, one->computed_tokens);
        for (size_t k = 0; one->fresh && k < rig->rank_count; k++)
            rig->wrong_bytes += moon_kv_memory_wrong_bytes(&rig->ranks[k].kv, &there);
    }
    for (size_t i = 0; i < rig->delivery.count; i++) {
        const struct moon_delivery_item *item = &rig->delivery.items[i];
        const struct moon_core_request *request = moon_core_find(rig->core, item->slot);
        const struct moon_kv_span brought =
            span_of(rig, item->slot, item->first_tokens, request->request.prompt_tokens);
        for (size_t k = 0; k < rig->rank_count; k++)
            moon_kv_memory_write(&rig->ranks[k].kv, &brought);
    }
}

/* The step's jobs go to the threads of each rank; what they do now comes after the step. */
static int queue_jobs(struct moon_rig *rig, struct moon_error *error) {
    int status = 0;
    for (size_t k = 0; k < rig->rank_count && !status; k++) {
        struct rig_rank *rank = &rig->ranks[k];
        for (size_t i = 0; i < rig->child.jobs.count && !status; i++) {
            struct moon_job *job = rig->child.jobs.jobs[i];
            if (job->load && rank->receiver)
                status = moon_receiver_queue(rank->receiver, job);
            if (!status && job->save && rank->sender)
                status = moon_sender_queue(rank->sender, job);
        }
        if (!status && rank->sender)
            status = moon_sender_retire(rank->sender, rig->preempted, rig->preempted_count, rig->finished,
                                        rig->finished_count);
    }
    return status ? out_of_memory(error) : 0;
}

/* ---- what the workers tell the core ---- */

/* Adds a number that is not yet in the list. */
static void add_once(uint64_t list[], size_t *count, uint64_t value) {
    for (size_t i = 0; i < *count; i++)
        if (list[i] == value)
            return;
    list[(*count)++] = value;
}

/* Counts a rank that ended a transfer of a request; the last one makes it known. */
static void count_rank(const struct moon_rig *rig, int64_t *ranks, uint32_t slot, uint32_t list[], size_t *count) {
    if (++*ranks < (int64_t)rig->rank_count)
        return;
    *ranks = 0;
    list[(*count)++] = slot;
}

static void take_loads(struct moon_rig *rig, struct moon_receiver *receiver, struct moon_core_results *results) {
    uint32_t slot;
    uint64_t block;
    while (moon_receiver_take_finished(receiver, &slot))
        count_rank(rig, &rig->requests[slot].received, slot, rig->received, &results->received_count);
    while (moon_receiver_take_failed_block(receiver, &block))
        add_once(rig->failed_blocks, &results->failed_block_count, block);
    while (moon_receiver_take_failed_request(receiver, &slot))
        rig->failed_requests[results->failed_request_count++] = slot;
}

static void take_saves(struct moon_rig *rig, struct moon_sender *sender, struct moon_core_results *results) {
    uint32_t slot;
    uint64_t job;
    while (results->report_count < rig->report_capacity && moon_sender_take_done(sender, &job))
        rig->reports[results->report_count++] = (struct moon_core_report){rig->its->behind_multi, job, 1};
    while (moon_sender_take_finished(sender, &slot))
        count_rank(rig, &rig->requests[slot].sent, slot, rig->sent, &results->sent_count);
}

static void take_told(struct moon_rig *rig, const struct moon_core_step *step, struct moon_core_results *results) {
    *results = (struct moon_core_results){.tokens = rig->tokens,
                                          .received = rig->received,
                                          .sent = rig->sent,
                                          .failed_requests = rig->failed_requests,
                                          .failed_blocks = rig->failed_blocks,
                                          .reports = rig->reports,
                                          .token_count = step->scheduled_count};
    for (size_t i = 0; i < step->scheduled_count; i++) {
        const struct moon_core_scheduled *one = &step->scheduled[i];
        const struct moon_core_request *request = moon_core_find(rig->core, one->slot);
        bool samples = one->computed_tokens + one->tokens >= request->request.known_tokens;
        rig->tokens[i] = -1;
        if (samples)
            rig->tokens[i] = moon_token_next(rig->requests[one->slot].prefixes[request->request.known_tokens - 1]);
    }
    for (size_t i = 0; i < rig->delivery.count; i++)
        rig->received[results->received_count++] = rig->delivery.items[i].slot;
    for (size_t k = 0; k < rig->rank_count; k++) {
        if (rig->ranks[k].receiver)
            take_loads(rig, rig->ranks[k].receiver, results);
        if (rig->ranks[k].sender)
            take_saves(rig, rig->ranks[k].sender, results);
    }
}

/* ---- transfers ---- */

static int run_receiver(struct moon_rig *rig, struct rig_rank *rank, struct moon_error *error) {
    const struct moon_store_call *call = NULL;
    int status = rank->receiver ? moon_receiver_next(rank->receiver, &call, error) : 0;
    while (!status && call) {
        status = moon_rig_store_call(rig, rank, call, error);
        if (!status && rig->observer->called)
            rig->observer->called(rig->observer, rank->rank.rank, call, rig->values);
        if (!status)
            status = moon_receiver_answer(rank->receiver, rig->values, call->count, error);
        if (!status)
            status = moon_receiver_next(rank->receiver, &call, error);
    }
    return status;
}

static int run_sender(struct moon_rig *rig, struct rig_rank *rank, struct moon_error *error) {
    const struct moon_store_call *call = NULL;
    int status = rank->sender ? moon_sender_next(rank->sender, &call, error) : 0;
    while (!status && call) {
        status = moon_rig_store_call(rig, rank, call, error);
        if (!status && rig->observer->called)
            rig->observer->called(rig->observer, rank->rank.rank, call, rig->values);
        if (!status)
            status = moon_sender_answer(rank->sender, rig->values, call->count, error);
        if (!status)
            status = moon_sender_next(rank->sender, &call, error);
    }
    return status;
}

/* What comes after the step: its transfers, then the lookups that it asked for, unless the case holds them. */
static int run_transfers(struct moon_rig *rig, struct moon_error *error) {
    int status = 0;
    for (size_t k = 0; k < rig->rank_count && !status; k++) {
        status = run_receiver(rig, &rig->ranks[k], error);
        if (!status)
            status = run_sender(rig, &rig->ranks[k], error);
    }
    return status ? status : moon_rig_lookup_serve(rig, !rig->hold, error);
}

int moon_rig_step(struct moon_rig *rig, struct moon_core_step *step, struct moon_error *error) {
    struct moon_core_results results;
    rig->in_step = true;
    int status = moon_core_schedule(rig->core, step, error);
    if (status)
        return status;
    compute(rig, step);
    status = queue_jobs(rig, error);
    take_told(rig, step, &results); /* of transfers before this step: its own come after it */
    if (!status)
        status = moon_core_update(rig->core, &results, error);
    for (size_t i = 0; i < step->scheduled_count && !status; i++)
        extend_prefixes(rig, moon_core_find(rig->core, step->scheduled[i].slot));
    return status ? status : run_transfers(rig, error);
}

const struct moon_core *moon_rig_core(const struct moon_rig *rig) {
    return rig->core;
}

const struct moon_connector *moon_rig_connector(const struct moon_rig *rig) {
    return &rig->its->its.connector;
}

uint64_t moon_rig_wrong_bytes(const struct moon_rig *rig) {
    return rig->wrong_bytes;
}
