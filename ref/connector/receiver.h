/* SPDX-License-Identifier: Apache-2.0 */
/* The load path of one rank: a queue of jobs, each cut into gets that fit the owner's staging memory. */
#ifndef MOON_CONNECTOR_RECEIVER_H
#define MOON_CONNECTOR_RECEIVER_H

#include "ref/connector/connector.h"
#include "ref/connector/job.h"
#include "ref/connector/staging.h"
#include "ref/connector/store_call.h"
#include "ref/connector/tier_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank loads with. Borrowed.
 *   segments      of the rank; needed
 *   offload       the store config says enable_offload: the staging budget applies (from 0.22 on)
 *   staging       usable: moon_disk_staging_usable; raw: MOON_DISK_STAGING_BYTES. Read with offload only
 *   engine_groups KV cache groups of the engine, stored or not: 1 reports blocks, more (0.31 on) report the request
 *   tier_log      a REPLICAS call goes before each GET (from 0.22 on) */
struct moon_receiver_setting {
    const struct moon_segments *segments;
    bool offload, tier_log;
    struct moon_staging staging;
    size_t engine_groups;
};

/* One rank's receive thread as a state machine. Its owner queues jobs, makes the calls that moon_receiver_next hands
 * out and tells their results. Memory: one entry a queued job, the keys and buffers of one load, and one number for
 * each report that is not yet taken. Thread rule: one thread at a time. */
struct moon_receiver;

/* Borrows the connector and the setting's segments. Returns 0; MOON_ERR_MEMORY; MOON_ERR_RANGE when the segments are
 * not of the rank's layout and shards, or no group or usable byte is left. */
int moon_receiver_open(struct moon_receiver **out, const struct moon_connector *connector, const struct moon_rank *rank,
                       const struct moon_receiver_setting *setting, struct moon_memory *memory,
                       struct moon_error *error);
/* NULL: nothing. Jobs that are still queued are released unreported. */
void moon_receiver_close(struct moon_receiver *receiver);

/* Queues a load job; takes a reference of its own. Returns 0, or MOON_ERR_MEMORY and nothing changed. */
int moon_receiver_queue(struct moon_receiver *receiver, struct moon_job *job);
/* Works until a call to the store is needed: *call, to be answered before anything else happens (asking again hands out
 * the same). NULL: nothing is queued any more. Returns 0; MOON_ERR_MEMORY, it may be called again then; MOON_ERR_RANGE
 * or MOON_ERR_LIMIT for a job that makes no sense (LOAD-032): it is given up unreported, and the next is looked at when
 * called again. What the release raises inside a job ends that job only, and is kept for moon_receiver_take_raised. */
int moon_receiver_next(struct moon_receiver *receiver, const struct moon_store_call **call, struct moon_error *error);
/* Results of the call, one a key: of a GET bytes, below 0 a failure; of REPLICAS a moon_replica. Returns 0, or
 * MOON_ERR_RANGE for a wrong count or without a call: the call is still to be answered then. */
int moon_receiver_answer(struct moon_receiver *receiver, const int64_t *values, size_t count, struct moon_error *error);
void moon_receiver_raised(struct moon_receiver *receiver); /* the call raised; nothing without a call */
/* Oldest exception not yet taken, status MOON_ERR_REFUSED; false if there is none. */
bool moon_receiver_take_raised(struct moon_receiver *receiver, struct moon_error *error);

/* What get_finished reports, ascending and each once: requests whose load has ended, well or not; blocks that failed;
 * requests reported as failed (0.31 on, several groups). Each false when there is no more. */
bool moon_receiver_take_finished(struct moon_receiver *receiver, uint32_t *slot);
bool moon_receiver_take_failed_block(struct moon_receiver *receiver, uint64_t *block);
bool moon_receiver_take_failed_request(struct moon_receiver *receiver, uint32_t *slot);
/* After the answer to a GET with the tier log on: its counts and the request, once. Else false. */
bool moon_receiver_take_tiers(struct moon_receiver *receiver, struct moon_tier_summary *summary, uint32_t *slot);
/* Loads that have not ended: queued, under way, and those that raised (LOAD-026). What a bounded close waits for. */
size_t moon_receiver_queued(const struct moon_receiver *receiver);

#ifdef __cplusplus
}
#endif
#endif
