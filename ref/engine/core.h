/* SPDX-License-Identifier: Apache-2.0 */
/* A core scheduler: requests, their blocks, and what is computed in each step. The connector is behind a port. */
#ifndef MOON_ENGINE_CORE_H
#define MOON_ENGINE_CORE_H

#include "ref/engine/block_pool.h"
#include "ref/engine/engine_port.h"
#include "ref/hash/chain.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_CORE_TOKENS_MAX = 1 << 24,  /* of one request, output included */
    MOON_CORE_RUNNING_MAX = 1 << 16, /* requests that run together */
};
#define MOON_CORE_STEP_TOKENS_MAX (INT64_C(1) << 30)

enum moon_request_status {
    MOON_REQUEST_WAITING,
    MOON_REQUEST_WAITING_FOR_REMOTE_KVS,
    MOON_REQUEST_RUNNING,
    MOON_REQUEST_PREEMPTED,
    MOON_REQUEST_FINISHED_LENGTH_CAPPED, /* this and all after it are finished */
    MOON_REQUEST_FINISHED_ABORTED,
    MOON_REQUEST_FINISHED_ERROR,
};
const char *moon_request_status_name(enum moon_request_status status); /* as the release names it */

/* What an engine is opened with; all pointers are borrowed until it is closed.
 *   model             KV cache groups, each of full attention, and block sizes; every group is stored
 *   block_count       of the pool, the null block included: 1 to MOON_POOL_BLOCKS_MAX
 *   step_tokens       scheduled in a step at most: 1 to MOON_CORE_STEP_TOKENS_MAX
 *   running_max       1 to MOON_CORE_RUNNING_MAX
 *   recompute_failed  policy when a load fails: compute what is missing; false: the request fails
 *   hasher, none_hash of the block hash chains */
struct moon_core_options {
    const struct moon_profile *profile;
    const struct moon_layout_model *model;
    size_t block_count;
    int64_t step_tokens;
    size_t running_max;
    bool recompute_failed;
    struct moon_hasher *hasher;
    const uint8_t *none_hash;
    size_t none_hash_bytes;
};

/* One request as its engine sees it. For everybody else read-only.
 *   request          what connectors read; its address stays until moon_core_remove
 *   computed_tokens  with KV, or with KV under way
 *   tables           blocks, one table a group
 * Memory: 4 bytes a token and 8 bytes a block and group for all that the request can become, its hashes, and one chain;
 * all taken when it is added. */
struct moon_core_request {
    struct moon_request request;
    enum moon_request_status status;
    int64_t max_tokens, computed_tokens;
    uint64_t preemptions;
    struct moon_block_table *tables;
    /* private */
    int64_t **blocks; /* of `tables`, writable */
    size_t *cached;   /* blocks of each group that have their hash */
    uint32_t *tokens;
    uint8_t *hashes;
    struct moon_chain chain;
    bool prefilling; /* loading, or a chunk of its prefill is behind it */
    bool load_done, load_failed;
    bool told, freed;                          /* finished: the connector knows; the blocks are back */
    struct moon_core_request *next, *previous; /* in a queue */
};

/* A request of a step.
 *   fresh  comes from the waiting queue, so computed_tokens were not computed by the running batch
 *   tokens to compute, after computed_tokens */
struct moon_core_scheduled {
    uint32_t slot;
    bool fresh;
    int64_t computed_tokens, tokens;
};
/* What a step computes, in order, and who was preempted for it. Valid until the next schedule. */
struct moon_core_step {
    const struct moon_core_scheduled *scheduled;
    const uint32_t *preempted;
    size_t scheduled_count, preempted_count;
};

/* What came of the last step, and what the workers told. Borrowed. Counts are of entries.
 *   tokens           one a scheduled request: the token that was sampled, or -1
 *   received, sent   requests whose load or sending ended on all ranks
 *   failed_blocks    blocks that a load could not fill; failed_requests: requests that it could not
 *   reports          jobs that ranks completed */
struct moon_core_report {
    size_t child;
    uint64_t job;
    int64_t ranks;
};
struct moon_core_results {
    const int64_t *tokens;
    const uint32_t *received, *sent, *failed_requests;
    const uint64_t *failed_blocks;
    const struct moon_core_report *reports;
    size_t token_count, received_count, sent_count, failed_request_count, failed_block_count, report_count;
};

struct moon_core;

/* Returns 0, MOON_ERR_MEMORY, or MOON_ERR_UNSUPPORTED for a group that is not full attention. */
int moon_core_open(struct moon_core **out, const struct moon_core_options *options, struct moon_memory *memory,
                   struct moon_error *error);
void moon_core_close(struct moon_core *core); /* NULL: nothing */
/* Where jobs refer to blocks. */
struct moon_block_port *moon_core_blocks(struct moon_core *core);
/* To be called once, before the first request. Borrows the port. */
void moon_core_connect(struct moon_core *core, struct moon_engine_port *port);

/* A new request; tokens are copied, the identity (may be NULL) is borrowed until it is removed.
 *   slot        free: never used, or removed
 *   max_tokens  of output, 1 or more
 * Returns 0, MOON_ERR_MEMORY, MOON_ERR_RANGE for numbers that make no sense. */
struct moon_core_new {
    uint32_t slot;
    const uint32_t *prompt;
    size_t prompt_tokens;
    int64_t max_tokens;
    const struct moon_identity *identity;
};
int moon_core_add(struct moon_core *core, const struct moon_core_new *request, struct moon_error *error);
/* Ends a request from outside; nothing if it has ended or there is none (ENGINE-008). */
void moon_core_abort(struct moon_core *core, uint32_t slot);
/* Forgets a request that has ended, whose end was told in a step and whose blocks are back; false if that is not so. No
 * job may refer to it any more. */
bool moon_core_remove(struct moon_core *core, uint32_t slot);
/* NULL if there is none. */
const struct moon_core_request *moon_core_find(const struct moon_core *core, uint32_t slot);
/* Empties the local prefix cache; false, and nothing is done, while a block is held. */
bool moon_core_reset_prefix(struct moon_core *core);
/* Empties the external one. */
bool moon_core_reset_connector(struct moon_core *core);

/* Plans a step (ENGINE-003 to ENGINE-007). Returns 0, MOON_ERR_MEMORY, or what the port returned; after a failure the
 * engine can only be closed. */
int moon_core_schedule(struct moon_core *core, struct moon_core_step *step, struct moon_error *error);
/* Takes in what came of the step that was scheduled last (ENGINE-012, ENGINE-013). Returns as moon_core_schedule;
 * MOON_ERR_RANGE for a token that none is, or a count of tokens that does not fit the step; MOON_ERR_REFUSED
 * (AssertionError) when a transfer is reported of a request that has none. */
int moon_core_update(struct moon_core *core, const struct moon_core_results *results, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
