/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the sender: which requests are registered, the keys of the job under way, and the calls made of them. For
 * sender*.c alone. */
#ifndef MOON_CONNECTOR_SENDER_INTERNAL_H
#define MOON_CONNECTOR_SENDER_INTERNAL_H

#include "ref/connector/ring.h"
#include "ref/connector/sender.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sender_live.c: registration, offsets, pressure ---- */

/* What the rank knows of a request, by slot.
 *   saved_tokens  where the next job resumes (0.25 on)
 *   job_count     registered jobs that have not ended; below 0 after a stale job counted (up to 0.27)
 *   generation    goes up when the registration is forgotten
 *   pressed       number of the pressure that its put met; 0: none
 *   ended         the request has finished, but its jobs have not all run */
struct moon_sender_request {
    int64_t saved_tokens, job_count;
    uint64_t pressed;
    uint32_t generation;
    bool registered, ended;
};
/* A job and the generation of its request when it was queued. */
struct moon_sender_entry {
    struct moon_job *job;
    uint32_t generation;
};
struct moon_sender_live {
    const struct moon_connector *connector;
    struct moon_memory *memory;
    struct moon_sender_request *requests;
    size_t capacity;
    struct moon_ring ended;    /* slots */
    struct moon_ring finished; /* slots to be reported, up to 0.27 */
    bool pressure;
    uint64_t pressure_number;
};
void moon_live_open(struct moon_sender_live *live, const struct moon_connector *connector, struct moon_memory *memory);
void moon_live_close(struct moon_sender_live *live);
/* Registers a job of the slot; *generation goes with it. Returns 0 or MOON_ERR_MEMORY. */
int moon_live_register(struct moon_sender_live *live, uint32_t slot, uint32_t *generation);
/* True if the job may run: by job id from 0.28 on, before by request. */
bool moon_live_has(const struct moon_sender_live *live, const struct moon_sender_entry *entry);
/* True if the job's request is to be skipped because its last put met a full store. */
bool moon_live_pressed(const struct moon_sender_live *live, const struct moon_sender_entry *entry);
void moon_live_press(struct moon_sender_live *live, const struct moon_sender_entry *entry);
void moon_live_release_pressure(struct moon_sender_live *live);
/* Where the job's request resumes; 0 in releases that begin anew each time. */
int64_t moon_live_saved(const struct moon_sender_live *live, const struct moon_sender_entry *entry);
void moon_live_set_saved(struct moon_sender_live *live, const struct moon_sender_entry *entry, int64_t tokens);
/* The job has ended; `raised` by an exception. */
void moon_live_end(struct moon_sender_live *live, const struct moon_sender_entry *entry, bool raised);
int moon_live_retire(struct moon_sender_live *live, const uint32_t *preempted, size_t preempted_count,
                     const uint32_t *finished, size_t finished_count);

/* ---- sender_keys.c: keys of one part of a job, and its two calls ---- */

/* Keys of the part of a job that is under way. Its lists keep their memory from job to job.
 *   keys, puts  asked for; after the answer those that are missing. puts[i] is what key i is read from
 *   identities  number of each (group, local shard) in `keys`, MOON_IDENTITY_NONE before it is used
 *   arena       what the put call needs
 *   stored      one a logical chunk of the put, for KV events; NULL without them */
struct moon_sender_keys {
    const struct moon_connector *connector;
    const struct moon_segments *segments;
    struct moon_memory *memory;
    struct moon_rank rank;
    struct moon_shard_range shards;
    struct moon_key_list keys;
    struct moon_put *puts;
    size_t count, capacity;
    uint32_t *identities;
    size_t identity_count;
    struct moon_arena arena;
    struct moon_stored_block *stored;
    size_t stored_count;
};
#define MOON_IDENTITY_NONE UINT32_MAX

int moon_sender_keys_open(struct moon_sender_keys *keys, const struct moon_connector *connector,
                          const struct moon_rank *rank, const struct moon_segments *segments,
                          struct moon_memory *memory);
void moon_sender_keys_close(struct moon_sender_keys *keys);
/* Keys of a job's normal save from start_tokens on. Returns 0, MOON_ERR_MEMORY, MOON_ERR_REFUSED. */
int moon_sender_keys_of_save(struct moon_sender_keys *keys, const struct moon_job *job, int64_t start_tokens,
                             struct moon_error *error);
/* Forgets the keys of the last part, and adds one. Returns 0 or MOON_ERR_MEMORY. */
void moon_sender_keys_clear(struct moon_sender_keys *keys);
int moon_sender_keys_add(struct moon_sender_keys *keys, const struct moon_job *job, const struct moon_put *put);
/* Keeps the keys whose answer is not 1 (SAVE-010). */
void moon_sender_keys_drop_present(struct moon_sender_keys *keys, const int64_t *values);
/* The two calls. The put: of the kept keys; it can be made again. Returns 0, MOON_ERR_MEMORY, MOON_ERR_RANGE (an
 * address beyond 64 bits), or MOON_ERR_REFUSED (a block table that is too short, or what the segments refuse). */
void moon_sender_keys_ask(const struct moon_sender_keys *keys, struct moon_store_call *call);
int moon_sender_keys_put(struct moon_sender_keys *keys, const struct moon_job *job, bool boundary,
                         struct moon_store_call *call, struct moon_error *error);
/* Fills `stored` from the put's results; NULL: the call raised. */
void moon_sender_keys_note_stored(struct moon_sender_keys *keys, const int64_t *values);

/* ---- sender_tail.c: boundary puts ---- */

/* Keys of a job's boundary puts, by release. Returns as moon_sender_keys_of_save. */
int moon_sender_keys_of_boundary(struct moon_sender_keys *keys, const struct moon_job *job, int64_t saved_tokens,
                                 struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
