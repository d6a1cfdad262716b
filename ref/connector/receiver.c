/* SPDX-License-Identifier: Apache-2.0 */
/* The receive thread of a rank: from queued jobs to gets, and from their results to reports. */
#include "ref/connector/receiver.h"

#include "ref/connector/load_failure.h"
#include "ref/connector/load_keys.h"
#include "ref/connector/ring.h"

#include <string.h>

/* queued        jobs, oldest first
 *   job           under way, or NULL; its keys are in `load`, the present batch is keys batch .. batch + call.count - 1
 *   whole         the load is one get
 *   asking        call waits for its answer
 *   tiers         of the present batch; room for a load of tier_capacity keys
 *   raised        exceptions not yet taken;  hanging  loads that raised and so never end */
struct moon_receiver {
    struct moon_memory *memory;
    const struct moon_connector *connector;
    struct moon_rank rank;
    struct moon_receiver_setting setting;
    struct moon_ring queued, raised;
    size_t hanging;
    struct moon_job *job;
    struct moon_load_keys load;
    size_t batch;
    bool whole, asking, asked_replicas;
    struct moon_store_call call;
    uint8_t *tiers;
    size_t tier_capacity;
    struct moon_tier_summary summary;
    uint32_t summary_slot;
    bool summary_ready;
    struct moon_load_failures failures;
    struct moon_ascending finished;
};

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory to load");
}

/* ---- opening and closing ---- */

static int check_setting(const struct moon_connector *connector, const struct moon_rank *rank,
                         const struct moon_receiver_setting *setting, struct moon_error *error) {
    const struct moon_segments *segments = setting->segments;
    const struct moon_shard_range shards = moon_local_shards(connector->model, &connector->selection, rank->tp);
    bool sharded = moon_store_sharded(&connector->selection);
    if (!segments || segments->sharded != sharded || segments->shard_count != (size_t)shards.count ||
        (sharded && (int64_t)moon_shards_first(&segments->shards) != shards.first))
        return moon_fail(error, MOON_ERR_RANGE, "segments", "they are not those of rank %lld and its %lld shards",
                         (long long)rank->rank, (long long)shards.count);
    if (setting->engine_groups < connector->model->group_count)
        return moon_fail(error, MOON_ERR_RANGE, "engine_groups", "the engine has at least the %zu groups of the store",
                         connector->model->group_count);
    if (setting->offload && setting->staging.usable_bytes < 1)
        return moon_fail(error, MOON_ERR_RANGE, "staging", "at least 1 byte of it is usable");
    return 0;
}

int moon_receiver_open(struct moon_receiver **out, const struct moon_connector *connector, const struct moon_rank *rank,
                       const struct moon_receiver_setting *setting, struct moon_memory *memory,
                       struct moon_error *error) {
    int status = check_setting(connector, rank, setting, error);
    if (status)
        return status;
    struct moon_receiver *receiver = memory->resize(memory, NULL, 0, sizeof *receiver);
    if (!receiver)
        return out_of_memory(error);
    *receiver = (struct moon_receiver){.memory = memory, .connector = connector, .rank = *rank, .setting = *setting};
    receiver->setting.offload &= connector->profile->batches_split;
    receiver->setting.tier_log &= connector->profile->tier_log;
    moon_ring_open(&receiver->queued, memory, sizeof(struct moon_job *));
    moon_ring_open(&receiver->raised, memory, sizeof(struct moon_error));
    moon_load_keys_open(&receiver->load, memory);
    moon_load_failures_open(&receiver->failures, connector, setting->engine_groups, memory);
    moon_ascending_open(&receiver->finished, memory);
    *out = receiver;
    return 0;
}

void moon_receiver_close(struct moon_receiver *receiver) {
    if (!receiver)
        return;
    struct moon_memory *memory = receiver->memory;
    struct moon_job *job;
    while (moon_ring_take(&receiver->queued, &job))
        moon_job_release(job);
    moon_job_release(receiver->job);
    memory->resize(memory, receiver->tiers, receiver->tier_capacity, 0);
    moon_ring_close(&receiver->queued);
    moon_ring_close(&receiver->raised);
    moon_ascending_close(&receiver->finished);
    moon_load_failures_close(&receiver->failures);
    moon_load_keys_close(&receiver->load);
    memory->resize(memory, receiver, sizeof *receiver, 0);
}

/* ---- the queue ---- */

int moon_receiver_queue(struct moon_receiver *receiver, struct moon_job *job) {
    if (moon_ring_reserve(&receiver->queued, 1))
        return MOON_ERR_MEMORY;
    moon_job_hold(job);
    moon_ring_push(&receiver->queued, &job);
    return 0;
}

size_t moon_receiver_queued(const struct moon_receiver *receiver) {
    return receiver->queued.count + (receiver->job != NULL) + receiver->hanging;
}

bool moon_receiver_take_raised(struct moon_receiver *receiver, struct moon_error *error) {
    return moon_ring_take(&receiver->raised, error);
}

/* ---- one load ---- */

/* Room for everything that the load may report, so that answers need no memory. */
static int reserve_reports(struct moon_receiver *receiver) {
    size_t keys = receiver->load.count;
    if (moon_load_failures_reserve(&receiver->failures, keys) || moon_ascending_reserve(&receiver->finished, 1))
        return MOON_ERR_MEMORY;
    if (!receiver->setting.tier_log || keys <= receiver->tier_capacity)
        return 0;
    void *grown = receiver->memory->resize(receiver->memory, receiver->tiers, receiver->tier_capacity, keys);
    if (!grown)
        return MOON_ERR_MEMORY;
    receiver->tiers = grown;
    receiver->tier_capacity = keys;
    return 0;
}

static void end_load(struct moon_receiver *receiver) {
    moon_ascending_add(&receiver->finished, receiver->job->slot);
    moon_job_release(receiver->job);
    receiver->job = NULL;
}

/* Reports keys first .. first + count - 1 of the load. */
static void report_all(struct moon_receiver *receiver, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++)
        moon_load_failures_add(&receiver->failures, receiver->job->slot,
                               receiver->load.blocks[receiver->load.first + i]);
}

/* Decides how the load is cut. A load of nothing, and one with a key that no get can take, ends here. */
static void cut_load(struct moon_receiver *receiver) {
    const struct moon_staging_keys keys = moon_load_staging_keys(&receiver->load);
    const struct moon_staging *staging = &receiver->setting.staging;
    receiver->batch = 0;
    receiver->whole = !receiver->setting.offload || moon_staging_whole(staging, &keys);
    bool refused = !receiver->whole && moon_staging_oversize(staging, &keys) < keys.count;
    if (refused)
        report_all(receiver, 0, keys.count); /* LOAD-014 */
    if (refused || keys.count == 0)
        end_load(receiver);
}

/* Lists the keys of a job and makes room for its reports. */
static int prepare(struct moon_receiver *receiver, const struct moon_job *job, struct moon_error *error) {
    const struct moon_connector *connector = receiver->connector;
    int status =
        moon_load_keys_list(&receiver->load, connector, &receiver->rank, receiver->setting.segments, job, error);
    if (!status && receiver->load.count == 0 && connector->profile->empty_load_raises) { /* LOAD-026 */
        moon_deviation_note(connector->notes, MOON_DEVIATION_EMPTY_LOAD_HANGS);
        return moon_refuse(error, "ZeroDivisionError", "integer modulo by zero");
    }
    if (!status && reserve_reports(receiver))
        status = out_of_memory(error);
    return status;
}

/* Takes the oldest job; it stays queued when memory is refused. */
static int begin_load(struct moon_receiver *receiver, struct moon_error *error) {
    struct moon_job *job;
    struct moon_error failure = {0};
    if (moon_ring_reserve(&receiver->raised, 1))
        return out_of_memory(error);
    memcpy(&job, moon_ring_oldest(&receiver->queued), sizeof job);
    int status = prepare(receiver, job, &failure);
    if (status != MOON_ERR_MEMORY)
        moon_ring_take(&receiver->queued, NULL);
    if (!status) {
        receiver->job = job;
        cut_load(receiver);
    } else if (status == MOON_ERR_REFUSED) {
        moon_job_release(job);
        moon_ring_push(&receiver->raised, &failure);
        receiver->hanging++;
        status = 0;
    } else {
        if (status != MOON_ERR_MEMORY)
            moon_job_release(job);
        if (error)
            *error = failure;
    }
    return status;
}

/* ---- calls ---- */

static void ask(struct moon_receiver *receiver, enum moon_call_kind kind) {
    const struct moon_load_keys *load = &receiver->load;
    const struct moon_staging_keys keys = moon_load_staging_keys(load);
    size_t first = load->first + receiver->batch, count = keys.count;
    if (!receiver->whole)
        count = moon_staging_batch(&receiver->setting.staging, &keys, receiver->batch);
    receiver->call = (struct moon_store_call){.kind = kind, .keys = &load->keys, .first = first, .count = count};
    if (kind == MOON_CALL_GET) {
        receiver->call.blocks = load->blocks + first;
        receiver->call.buffers = load->buffers + first * load->per_key;
        receiver->call.buffers_per_key = load->per_key;
    }
    receiver->asking = true;
}

int moon_receiver_next(struct moon_receiver *receiver, const struct moon_store_call **call, struct moon_error *error) {
    *call = NULL;
    while (!receiver->job && receiver->queued.count > 0) {
        int status = begin_load(receiver, error);
        if (status)
            return status;
    }
    if (!receiver->job)
        return 0;
    if (!receiver->asking)
        ask(receiver, receiver->setting.tier_log && !receiver->asked_replicas ? MOON_CALL_REPLICAS : MOON_CALL_GET);
    *call = &receiver->call;
    return 0;
}

/* ---- answers ---- */

static void take_replicas(struct moon_receiver *receiver, const int64_t *values) {
    for (size_t i = 0; i < receiver->call.count; i++)
        receiver->tiers[i] = (uint8_t)moon_tier_of(values ? values[i] : MOON_REPLICA_NONE);
    receiver->asked_replicas = true;
}

static void summarize(struct moon_receiver *receiver, const int64_t *values) {
    receiver->summary = (struct moon_tier_summary){0};
    for (size_t i = 0; i < receiver->call.count; i++)
        moon_tier_summary_add(&receiver->summary, (enum moon_tier)receiver->tiers[i], values[i]);
    receiver->summary_slot = receiver->job->slot;
    receiver->summary_ready = true;
}

/* Judges the results of a get, NULL if it raised. True if a key failed. */
static bool judge(struct moon_receiver *receiver, const int64_t *values) {
    const struct moon_staging_keys keys = moon_load_staging_keys(&receiver->load);
    bool failed = false;
    for (size_t i = 0; i < receiver->call.count; i++) {
        size_t key = receiver->batch + i;
        if (values && !moon_load_failed(receiver->connector, values[i], moon_staging_data_bytes(&keys, key)))
            continue;
        failed = true;
        report_all(receiver, key, 1);
    }
    return failed;
}

/* A get has returned or raised: goes on to the next, or ends the load. */
static void end_get(struct moon_receiver *receiver, const int64_t *values) {
    const struct moon_connector *connector = receiver->connector;
    bool failed = judge(receiver, values);
    receiver->asked_replicas = false;
    receiver->batch += receiver->call.count;
    bool more = receiver->batch < receiver->load.count;
    if (more && failed && connector->profile->failed_batch_ends_load) { /* LOAD-023 */
        moon_deviation_note(connector->notes, MOON_DEVIATION_BATCHES_DROPPED);
        more = false;
    }
    if (!more)
        end_load(receiver);
}

int moon_receiver_answer(struct moon_receiver *receiver, const int64_t *values, size_t count,
                         struct moon_error *error) {
    if (!receiver->asking)
        return moon_fail(error, MOON_ERR_RANGE, "results", "no call waits for an answer");
    if (count != receiver->call.count)
        return moon_fail(error, MOON_ERR_RANGE, "results", "%zu results for %zu keys", count, receiver->call.count);
    receiver->asking = false;
    if (receiver->call.kind == MOON_CALL_REPLICAS) {
        take_replicas(receiver, values);
        return 0;
    }
    if (receiver->setting.tier_log)
        summarize(receiver, values);
    end_get(receiver, values);
    return 0;
}

void moon_receiver_raised(struct moon_receiver *receiver) {
    if (!receiver->asking)
        return;
    receiver->asking = false;
    if (receiver->call.kind == MOON_CALL_REPLICAS)
        take_replicas(receiver, NULL);
    else
        end_get(receiver, NULL);
}

/* ---- reports ---- */

/* Slots were 32 bits when they were put in. */
static bool take_slot(struct moon_ascending *numbers, uint32_t *slot) {
    uint64_t number;
    if (!moon_ascending_take(numbers, &number))
        return false;
    *slot = (uint32_t)number;
    return true;
}

bool moon_receiver_take_finished(struct moon_receiver *receiver, uint32_t *slot) {
    return take_slot(&receiver->finished, slot);
}

bool moon_receiver_take_failed_block(struct moon_receiver *receiver, uint64_t *block) {
    return moon_ascending_take(&receiver->failures.blocks, block);
}

bool moon_receiver_take_failed_request(struct moon_receiver *receiver, uint32_t *slot) {
    return take_slot(&receiver->failures.requests, slot);
}

bool moon_receiver_take_tiers(struct moon_receiver *receiver, struct moon_tier_summary *summary, uint32_t *slot) {
    if (!receiver->summary_ready)
        return false;
    receiver->summary_ready = false;
    *summary = receiver->summary;
    *slot = receiver->summary_slot;
    return true;
}
