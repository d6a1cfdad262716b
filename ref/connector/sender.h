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

struct moon_sender;

/* Borrows the connector and segments (NULL: calls tell blocks, no buffers). */
int moon_sender_open(struct moon_sender **out, const struct moon_connector *connector, const struct moon_rank *rank,
                     const struct moon_segments *segments, struct moon_memory *memory, struct moon_error *error);
void moon_sender_close(struct moon_sender *sender);

/* Queues a save job and registers it. Takes a reference of its own. Returns 0, MOON_ERR_MEMORY. */
int moon_sender_queue(struct moon_sender *sender, struct moon_job *job);
/* get_finished of a step: forgets preempted requests at once, finished ones when their jobs have run. Returns 0,
 * MOON_ERR_MEMORY. */
int moon_sender_retire(struct moon_sender *sender, const uint32_t *preempted, size_t preempted_count,
                       const uint32_t *finished, size_t finished_count);

/* Works until a call to the store is needed: *call, to be answered before the next moon_sender_next. NULL: nothing is
 * queued any more. Returns 0, MOON_ERR_MEMORY; what the release raises inside a job ends that job only, and is kept for
 * moon_sender_take_raised. */
int moon_sender_next(struct moon_sender *sender, const struct moon_store_call **call, struct moon_error *error);
/* Results of the call, one a key. Returns 0, MOON_ERR_RANGE for a wrong count, MOON_ERR_MEMORY. */
int moon_sender_answer(struct moon_sender *sender, const int64_t *values, size_t count, struct moon_error *error);
void moon_sender_raised(struct moon_sender *sender); /* the call raised */

/* Oldest exception not yet taken; false if there is none. */
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
