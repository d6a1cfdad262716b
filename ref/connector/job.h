/* SPDX-License-Identifier: Apache-2.0 */
/* A job: what the scheduler side tells every worker to put or get for one request in one step. */
#ifndef MOON_CONNECTOR_JOB_H
#define MOON_CONNECTOR_JOB_H

#include "ref/connector/request.h"
#include "ref/layout/puts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Block tables of a request, one a store group, shared by reference: up to 0.28 a job that runs late sees blocks that
 * were added since (SAVE and PLAN requirements). Counted, not atomic: jobs of one instance belong to one thread. */
struct moon_tables {
    struct moon_memory *memory;
    unsigned references;
    size_t group_count;
    struct moon_block_table *groups; /* each with its own capacity */
    size_t *capacities;
};
/* A copy of `groups` with one reference; NULL groups: empty tables. Returns 0 or MOON_ERR_MEMORY. */
int moon_tables_create(struct moon_memory *memory, const struct moon_block_table *groups, size_t group_count,
                       struct moon_tables **out);
/* Appends blocks, one list a group. Returns 0, or MOON_ERR_MEMORY and nothing changed. */
int moon_tables_append(struct moon_tables *tables, const struct moon_block_table *groups);
struct moon_tables *moon_tables_hold(struct moon_tables *tables);
void moon_tables_release(struct moon_tables *tables); /* NULL: nothing */

/* A block that is put under the hash that ends at `tokens`: Mamba states, and the tail of a prompt. */
struct moon_boundary_put {
    size_t group;
    int64_t block, tokens;
};

/* One job. Counted like moon_tables; released by each who holds it. Fixed, but for the count, once it is handed out.
 *   id                  of a save job: 0, 1, 2 ... (PLAN-060); read from 0.28 on
 *   save                tokens up to save_tokens are put; 0: boundary puts only
 *   save_tokens         a multiple of the scheduler block (0.21 may cut blocks)
 *   prefill_end_tokens  length of the prefill, for the store mask
 *   boundary            puts beside the normal ones, in order
 *   load                tokens load_local_tokens (cached by the engine) to load_hit_tokens - 1 are got
 *   tail_boundaries     per group the hash boundary that keys its last chunk; NULL before 0.29
 *   token_ids           of the first token_id_count tokens, or NULL
 *   tables              always set
 *   request             up to 0.26, where a save may be planned for tokens that are not known yet: what hashes they
 *                       have when the job runs; NULL: no more than `hashes` */
struct moon_job {
    struct moon_memory *memory;
    unsigned references;
    uint64_t id;
    uint32_t slot;
    size_t group_count;
    struct moon_hashes hashes;
    const struct moon_request *request;
    const uint32_t *token_ids;
    int64_t token_id_count;
    struct moon_tables *tables;
    bool save;
    int64_t save_tokens, prefill_end_tokens;
    struct moon_boundary_put *boundary;
    size_t boundary_count;
    bool load;
    int64_t load_local_tokens, load_hit_tokens;
    int64_t *tail_boundaries;
};
struct moon_job *moon_job_create(struct moon_memory *memory,
                                 size_t group_count); /* zeroed, 1 reference; NULL: memory */
/* Copies. Return 0 or MOON_ERR_MEMORY. */
int moon_job_set_boundary(struct moon_job *job, const struct moon_boundary_put *puts, size_t count);
int moon_job_set_tail_boundaries(struct moon_job *job, const int64_t *tokens);
struct moon_job *moon_job_hold(struct moon_job *job);
void moon_job_release(struct moon_job *job); /* NULL: nothing */

#ifdef __cplusplus
}
#endif
#endif
