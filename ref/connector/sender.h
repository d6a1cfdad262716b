/* SPDX-License-Identifier: Apache-2.0 */
/* The save path of one rank: a queue of jobs, each an existence check and a put of what is missing. */
#ifndef MOON_CONNECTOR_SENDER_H
#define MOON_CONNECTOR_SENDER_H

#include "ref/connector/connector.h"
#include "ref/connector/job.h"
#include "ref/connector/store_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A put result that means that the store has no room (SAVE-024). */
enum { MOON_STORE_NO_ROOM = -200 };

/* One rank's save thread as a state machine. Its owner queues jobs, makes the calls that moon_sender_next hands out and
 * tells their results. Memory: one record a request slot (below the largest slot seen), one entry a queued job, and the
 * keys of one job. Thread rule: one thread at a time. */
struct moon_sender;

/* Borrows the connector and segments (NULL: calls tell blocks, no buffers). Returns 0, MOON_ERR_MEMORY, or
 * MOON_ERR_RANGE when the segments are not of the connector's layout. */
int moon_sender_open(struct moon_sender **out, const struct moon_connector *connector, const struct moon_rank *rank,
                     const struct moon_segments *segments, struct moon_memory *memory, struct moon_error *error);
/* NULL: nothing. Jobs that are still queued are released unreported. */
void moon_sender_close(struct moon_sender *sender);

/* Queues a save job and registers it. Takes a reference of its own. Returns 0, or MOON_ERR_MEMORY and nothing changed.
 */
int moon_sender_queue(struct moon_sender *sender, struct moon_job *job);
/* get_finished of a step: forgets preempted requests at once, finished ones when their jobs have run (looked at again
 * each time). Returns 0, or MOON_ERR_MEMORY and nothing changed. */
int moon_sender_retire(struct moon_sender *sender, const uint32_t *preempted, size_t preempted_count,
                       const uint32_t *finished, size_t finished_count);

/* Works until a call to the store is needed: *call, to be answered before the next moon_sender_next. NULL: nothing is
 * queued any more. Returns 0; MOON_ERR_MEMORY, it may be called again then; MOON_ERR_RANGE for blocks that the segments
 * cannot address. What the release raises inside a job ends that job only, and is kept for moon_sender_take_raised. */
int moon_sender_next(struct moon_sender *sender, const struct moon_store_call **call, struct moon_error *error);
/* Results of the call, one a key: 1 means present, below 0 that a put failed. Returns 0, or MOON_ERR_RANGE for a wrong
 * count: the call is still to be answered then. */
int moon_sender_answer(struct moon_sender *sender, const int64_t *values, size_t count, struct moon_error *error);
void moon_sender_raised(struct moon_sender *sender); /* the call raised */

/* A chunk of a normal save that was put: all its shards that had been missing, in one group. */
struct moon_stored_block {
    size_t group;
    struct moon_chunk chunk; /* its hashes are those of the job */
    bool failed;             /* some shard of it was not stored */
};
/* What one put was about, for KV events. Borrowed: valid until the next moon_sender_next or moon_sender_close.
 *   raised  the call raised; then no block is known to be stored, and none to have failed */
struct moon_stored {
    const struct moon_job *job;
    const struct moon_stored_block *blocks;
    size_t count;
    bool raised;
};
/* After the answer to the put of a normal save: what it was about, once. Else false, also without the kv_events option.
 * Boundary puts are not told: they make no events. */
bool moon_sender_take_stored(struct moon_sender *sender, struct moon_stored *stored);

/* Oldest exception not yet taken; false if there is none. Status MOON_ERR_REFUSED with what the release raises, or
 * MOON_ERR_IO for an existence call that raised. */
bool moon_sender_take_raised(struct moon_sender *sender, struct moon_error *error);
/* Oldest job that is done on this rank and not yet reported (0.28 on); false if there is none. */
bool moon_sender_take_done(struct moon_sender *sender, uint64_t *id);
/* Requests whose sending has ended and is to be reported (up to 0.27); false if there is none. */
bool moon_sender_take_finished(struct moon_sender *sender, uint32_t *slot);
size_t moon_sender_queued(const struct moon_sender *sender);

#ifdef __cplusplus
}
#endif
#endif
