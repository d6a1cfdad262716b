/* SPDX-License-Identifier: Apache-2.0 */
/* The save thread of one rank: one job after another, each part of it an existence check and a put. */
#include "ref/connector/sender_internal.h"

#include <assert.h>

/* Where the job under way stands. Boundary puts are a part of their own that comes first. */
enum stage {
    STAGE_IDLE,    /* there is no job under way */
    STAGE_BEGIN,   /* the part's keys are to be collected */
    STAGE_ASKING,  /* the existence call is out */
    STAGE_MISSING, /* it was answered: the put is to be made */
    STAGE_PUTTING, /* the put is out */
};

struct moon_sender {
    const struct moon_connector *connector;
    struct moon_memory *memory;
    struct moon_ring queue; /* of moon_sender_entry; the oldest is under way unless the stage is idle */
    struct moon_ring done;  /* ids of jobs to be reported; has room for every job that is queued */
    struct moon_ring raised;
    struct moon_sender_live live;
    struct moon_sender_keys keys;
    struct moon_store_call call;
    enum stage stage;
    bool boundary;
    struct moon_job *stored_job; /* the job of keys.stored, as long as that is valid */
    bool stored_told, stored_raised;
};

/* ---- opening, queueing ---- */

static int check_segments(const struct moon_connector *connector, const struct moon_segments *segments,
                          struct moon_error *error) {
    bool sharded = moon_store_sharded(&connector->selection);
    if (!segments || segments->sharded == sharded)
        return 0;
    return moon_fail(error, MOON_ERR_RANGE, NULL, "the segments are %s, the layout of the store is not",
                     sharded ? "rank-local" : "TP-sharded");
}

int moon_sender_open(struct moon_sender **out, const struct moon_connector *connector, const struct moon_rank *rank,
                     const struct moon_segments *segments, struct moon_memory *memory, struct moon_error *error) {
    int status = check_segments(connector, segments, error);
    if (status)
        return status;
    struct moon_sender *sender = memory->resize(memory, NULL, 0, sizeof *sender);
    if (!sender)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a sender");
    *sender = (struct moon_sender){.connector = connector, .memory = memory};
    moon_ring_open(&sender->queue, memory, sizeof(struct moon_sender_entry));
    moon_ring_open(&sender->done, memory, sizeof(uint64_t));
    moon_ring_open(&sender->raised, memory, sizeof(struct moon_error));
    moon_live_open(&sender->live, connector, memory);
    if (moon_sender_keys_open(&sender->keys, connector, rank, segments, memory)) {
        moon_sender_close(sender);
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a sender");
    }
    *out = sender;
    return 0;
}

static void drop_stored(struct moon_sender *sender) {
    moon_job_release(sender->stored_job);
    sender->stored_job = NULL;
}

void moon_sender_close(struct moon_sender *sender) {
    if (!sender)
        return;
    struct moon_sender_entry entry;
    while (moon_ring_take(&sender->queue, &entry))
        moon_job_release(entry.job);
    drop_stored(sender);
    moon_ring_close(&sender->queue);
    moon_ring_close(&sender->done);
    moon_ring_close(&sender->raised);
    moon_live_close(&sender->live);
    moon_sender_keys_close(&sender->keys);
    sender->memory->resize(sender->memory, sender, sizeof *sender, 0);
}

int moon_sender_queue(struct moon_sender *sender, struct moon_job *job) {
    assert(job->save && job->tables && job->group_count == sender->connector->model->group_count);
    struct moon_sender_entry entry = {.job = job};
    if (moon_ring_reserve(&sender->queue, 1) || moon_ring_reserve(&sender->done, sender->queue.count + 1) ||
        moon_live_register(&sender->live, job->slot, &entry.generation))
        return MOON_ERR_MEMORY;
    moon_job_hold(job);
    moon_ring_push(&sender->queue, &entry);
    return 0;
}

int moon_sender_retire(struct moon_sender *sender, const uint32_t *preempted, size_t preempted_count,
                       const uint32_t *finished, size_t finished_count) {
    return moon_live_retire(&sender->live, preempted, preempted_count, finished, finished_count);
}

/* ---- one job ---- */

static const struct moon_sender_entry *current(const struct moon_sender *sender) {
    return moon_ring_oldest(&sender->queue);
}

/* SAVE-005: every way out of a job reports it. */
static void end_job(struct moon_sender *sender, bool raised) {
    struct moon_sender_entry ended;
    bool had = moon_ring_take(&sender->queue, &ended);
    assert(had);
    (void)had;
    moon_live_end(&sender->live, &ended, raised);
    if (sender->connector->profile->job_references)
        moon_ring_push(&sender->done, &ended.job->id);
    moon_job_release(ended.job);
    sender->stage = STAGE_IDLE;
}

static void end_raised(struct moon_sender *sender, const struct moon_error *error) {
    moon_ring_push(&sender->raised, error); /* there is room since the call or the part began */
    end_job(sender, true);
}

/* Takes the oldest job under way, or drops it: its request is not live, or waits for room (SAVE-002, SAVE-025). */
static void begin_job(struct moon_sender *sender) {
    struct moon_job *job = current(sender)->job;
    if (!moon_live_has(&sender->live, current(sender)) || moon_live_pressed(&sender->live, current(sender))) {
        end_job(sender, false);
        return;
    }
    if (job->request && job->request->hashes.count > job->hashes.count)
        job->hashes.count = job->request->hashes.count; /* SAVE-028 */
    sender->boundary = job->boundary_count > 0 && sender->connector->profile->boundary_rule != MOON_BOUNDARY_NONE;
    sender->stage = STAGE_BEGIN;
    if (!sender->boundary && job->save_tokens == 0)
        end_job(sender, false);
}

/* Nothing of the part is missing any more: the normal save follows the boundary puts, and advances the offset. */
static void end_part(struct moon_sender *sender) {
    const struct moon_job *job = current(sender)->job;
    if (sender->boundary && job->save_tokens > 0) {
        sender->boundary = false;
        sender->stage = STAGE_BEGIN;
        return;
    }
    if (!sender->boundary)
        moon_live_set_saved(&sender->live, current(sender), job->save_tokens);
    end_job(sender, false);
}

static int ask(struct moon_sender *sender, struct moon_error *error) {
    const struct moon_job *job = current(sender)->job;
    int64_t saved = moon_live_saved(&sender->live, current(sender));
    int status = sender->boundary ? moon_sender_keys_of_boundary(&sender->keys, job, saved, error)
                                  : moon_sender_keys_of_save(&sender->keys, job, saved, error);
    if (status)
        return status;
    if (sender->keys.count == 0) {
        end_part(sender);
        return 0;
    }
    moon_sender_keys_ask(&sender->keys, &sender->call);
    sender->stage = STAGE_ASKING;
    return 0;
}

static int put(struct moon_sender *sender, struct moon_error *error) {
    int status = moon_sender_keys_put(&sender->keys, current(sender)->job, sender->boundary, &sender->call, error);
    if (!status)
        sender->stage = STAGE_PUTTING;
    return status;
}

int moon_sender_next(struct moon_sender *sender, const struct moon_store_call **call, struct moon_error *error) {
    assert(sender->stage != STAGE_ASKING && sender->stage != STAGE_PUTTING);
    struct moon_error why;
    drop_stored(sender);
    *call = NULL;
    while (sender->stage != STAGE_IDLE || sender->queue.count > 0) {
        if (moon_ring_reserve(&sender->raised, 1))
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a save");
        int status = 0;
        if (sender->stage == STAGE_IDLE)
            begin_job(sender);
        else
            status = sender->stage == STAGE_BEGIN ? ask(sender, &why) : put(sender, &why);
        if (status == MOON_ERR_REFUSED)
            end_raised(sender, &why);
        else if (status == MOON_ERR_MEMORY)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a save");
        else if (status)
            return moon_fail(error, status, why.where, "%s", why.message);
        if (sender->stage == STAGE_ASKING || sender->stage == STAGE_PUTTING) {
            *call = &sender->call;
            return 0;
        }
    }
    return 0;
}

/* ---- answers ---- */

static void keep_stored(struct moon_sender *sender, const int64_t *values) {
    if (!sender->keys.stored)
        return;
    moon_sender_keys_note_stored(&sender->keys, values);
    sender->stored_job = moon_job_hold(current(sender)->job);
    sender->stored_raised = !values;
    sender->stored_told = false;
}

/* SAVE-022 to SAVE-026: any failure leaves the offset where it was; a full success lifts the pressure for all. */
static void answer_put(struct moon_sender *sender, const int64_t *values, size_t count) {
    bool failed = false, no_room = false;
    for (size_t i = 0; i < count; i++) {
        failed |= values[i] < 0;
        no_room |= values[i] == MOON_STORE_NO_ROOM;
    }
    if (no_room)
        moon_live_press(&sender->live, current(sender));
    keep_stored(sender, values);
    if (failed) {
        end_job(sender, false);
        return;
    }
    moon_live_release_pressure(&sender->live);
    end_part(sender);
}

int moon_sender_answer(struct moon_sender *sender, const int64_t *values, size_t count, struct moon_error *error) {
    assert(sender->stage == STAGE_ASKING || sender->stage == STAGE_PUTTING);
    bool asking = sender->stage == STAGE_ASKING;
    if (count != sender->call.count)
        return moon_fail(error, MOON_ERR_RANGE, asking ? "batch_is_exist" : "batch_put_from_multi_buffers",
                         "the store answered %zu results for %zu keys", count, sender->call.count);
    if (!asking) {
        answer_put(sender, values, count);
        return 0;
    }
    moon_sender_keys_drop_present(&sender->keys, values);
    sender->stage = STAGE_MISSING;
    if (sender->keys.count == 0)
        end_part(sender);
    return 0;
}

void moon_sender_raised(struct moon_sender *sender) {
    assert(sender->stage == STAGE_ASKING || sender->stage == STAGE_PUTTING);
    struct moon_error error;
    if (sender->stage == STAGE_ASKING && !sender->boundary) {
        moon_fail(&error, MOON_ERR_IO, "batch_is_exist", "the call raised");
        end_raised(sender, &error);
        return;
    }
    keep_stored(sender, NULL);
    end_job(sender, false);
}

/* ---- reports ---- */

bool moon_sender_take_stored(struct moon_sender *sender, struct moon_stored *stored) {
    if (!sender->stored_job || sender->stored_told)
        return false;
    sender->stored_told = true;
    *stored = (struct moon_stored){
        .job = sender->stored_job,
        .blocks = sender->keys.stored,
        .count = sender->keys.stored_count,
        .raised = sender->stored_raised,
    };
    return true;
}

bool moon_sender_take_raised(struct moon_sender *sender, struct moon_error *error) {
    return moon_ring_take(&sender->raised, error);
}

bool moon_sender_take_done(struct moon_sender *sender, uint64_t *id) {
    return moon_ring_take(&sender->done, id);
}

bool moon_sender_take_finished(struct moon_sender *sender, uint32_t *slot) {
    return moon_ring_take(&sender->live.finished, slot);
}

size_t moon_sender_queued(const struct moon_sender *sender) {
    return sender->queue.count;
}
