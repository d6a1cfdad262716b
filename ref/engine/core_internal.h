/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the core scheduler share among themselves. Nobody else includes it. */
#ifndef MOON_ENGINE_CORE_INTERNAL_H
#define MOON_ENGINE_CORE_INTERNAL_H

#include "ref/engine/core.h"

struct moon_core_queue {
    struct moon_core_request *first, *last;
};

struct moon_core {
    struct moon_memory *memory;
    struct moon_core_options options;
    struct moon_engine_port *port;
    struct moon_block_port blocks;
    struct moon_block_pool pool;
    struct moon_core_request **slots;
    size_t slot_capacity;
    struct moon_core_queue first, second; /* waiting: `first` is served before `second` (ENGINE-007) */
    struct moon_core_request **running;   /* in order; running_max of them */
    size_t running_count;
    uint32_t *finished;  /* ended since the last step */
    uint32_t *preempted; /* in this step */
    size_t finished_count, finished_capacity, preempted_count;
    struct moon_core_scheduled *scheduled; /* of the last step, in order */
    size_t scheduled_count;
    /* The parts of that step. Resumed requests stand behind the fresh ones. */
    struct moon_step_request *fresh, *resumed, *cached;
    size_t fresh_count, resumed_count, cached_count;
    struct moon_block_table *added; /* group_count for each running request */
};

/* Queues (core.c). */
void moon_core_append(struct moon_core_queue *queue, struct moon_core_request *request);
void moon_core_prepend(struct moon_core_queue *queue, struct moon_core_request *request);
void moon_core_take(struct moon_core_queue *queue, struct moon_core_request *request);
/* Puts all of `front` before all of `queue`. */
void moon_core_splice(struct moon_core_queue *queue, struct moon_core_queue *front);

/* Ends a request that is in no running list: status, blocks, the list of those that ended (core.c). */
void moon_core_finish(struct moon_core *core, struct moon_core_request *request, enum moon_request_status status);
bool moon_core_is_finished(const struct moon_core_request *request);
/* Gives the blocks of a request that has ended back for good. */
void moon_core_give_back(struct moon_core *core, struct moon_core_request *request);
/* Removes a request from the running ones, keeping their order. */
void moon_core_stop_running(struct moon_core *core, const struct moon_core_request *request);

/* Blocks of a request (core_blocks.c). */

/* Tokens that get blocks: `local` found in the pool (the blocks stand in the request's tables, beyond their count),
 * `external` brought by the connector, `computed_now` computed in this step.
 *   reserved   blocks that must stay free beside
 *   whole      room for all tokens of the request is needed
 *   hashed     the blocks get their hash at once */
struct moon_core_demand {
    int64_t local, external, computed_now;
    int64_t reserved;
    bool whole, hashed;
};
/* Length of the local prefix in tokens (ENGINE-003). The request holds no blocks, or has only one token. */
int64_t moon_core_local_prefix(struct moon_core *core, struct moon_core_request *request);
/* True if the request got its blocks; false: nothing has changed. */
bool moon_core_allocate(struct moon_core *core, struct moon_core_request *request,
                        const struct moon_core_demand *demand);
/* Gives hashes to the full blocks of the first `tokens` tokens. */
void moon_core_cache(struct moon_core *core, struct moon_core_request *request, int64_t tokens);
void moon_core_free(struct moon_core *core, struct moon_core_request *request);
/* Blocks that the request lacks for all its tokens. */
int64_t moon_core_lacking(const struct moon_core *core, const struct moon_core_request *request);

#endif
