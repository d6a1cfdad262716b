/* SPDX-License-Identifier: Apache-2.0 */
/* The load path of one rank: a queue of jobs, each cut into gets that fit the owner's staging memory. */
#ifndef MOON_CONNECTOR_RECEIVER_H
#define MOON_CONNECTOR_RECEIVER_H

#include "ref/connector/connector.h"
#include "ref/connector/job.h"
#include "ref/connector/store_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a rank loads with. Borrowed.
 *   segments      of the rank; needed
 *   offload       the store config says enable_offload: the staging budget applies
 *   usable_bytes  moon_disk_staging_usable; raw_bytes: the owner's staging memory
 *   engine_groups KV cache groups of the engine, stored or not: 1 reports blocks, more (0.31 on) report the request
 *   tier_log      a REPLICAS call goes before each GET */
struct moon_receiver_setting {
    const struct moon_segments *segments;
    bool offload, tier_log;
    int64_t usable_bytes, raw_bytes;
    size_t engine_groups;
};

struct moon_receiver;

int moon_receiver_open(struct moon_receiver **out, const struct moon_connector *connector, const struct moon_rank *rank,
                       const struct moon_receiver_setting *setting, struct moon_memory *memory,
                       struct moon_error *error);
void moon_receiver_close(struct moon_receiver *receiver);

/* Queues a load job; takes a reference of its own. Returns 0, MOON_ERR_MEMORY. */
int moon_receiver_queue(struct moon_receiver *receiver, struct moon_job *job);
/* As moon_sender_next, _answer, _raised and _take_raised. */
int moon_receiver_next(struct moon_receiver *receiver, const struct moon_store_call **call, struct moon_error *error);
int moon_receiver_answer(struct moon_receiver *receiver, const int64_t *values, size_t count, struct moon_error *error);
void moon_receiver_raised(struct moon_receiver *receiver);
bool moon_receiver_take_raised(struct moon_receiver *receiver, struct moon_error *error);

/* What get_finished reports: requests whose load has ended, well or not; blocks that failed, ascending and each once;
 * requests reported as failed (0.31 on, several groups). Each false when there is no more. */
bool moon_receiver_take_finished(struct moon_receiver *receiver, uint32_t *slot);
bool moon_receiver_take_failed_block(struct moon_receiver *receiver, uint64_t *block);
bool moon_receiver_take_failed_request(struct moon_receiver *receiver, uint32_t *slot);
size_t moon_receiver_queued(const struct moon_receiver *receiver);

#ifdef __cplusplus
}
#endif
#endif
