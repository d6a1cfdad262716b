/* SPDX-License-Identifier: Apache-2.0 */
/* KV events of the store: which blocks a rank put, and which of them enough ranks put to be published. */
#ifndef MOON_CONNECTOR_KV_EVENTS_H
#define MOON_CONNECTOR_KV_EVENTS_H

#include "ref/connector/sender.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A hash as an event tells it (EVENT-003): the whole digest, or the 8 bytes of a big-endian integer. */
struct moon_event_hash {
    const uint8_t *bytes;
    size_t length;
};

/* One BlockStored (EVENT-005). medium is "cpu", lora_id and lora_name are none, there are no extra keys.
 *   parent       length 0: none
 *   token_ids    token_count of them; tokens_known false: up to 0.28 null, from 0.29 on an empty list
 *   block_tokens block_size
 *   group        group_idx from 0.23 on, no field before */
struct moon_kv_event {
    struct moon_event_hash hash, parent;
    const uint32_t *token_ids;
    size_t token_count;
    bool tokens_known;
    int64_t block_tokens;
    size_t group;
};

/* Events of one rank since they were last taken. Owns copies of hashes and token ids. Thread rule: one thread at a
 * time.
 *   whole_hashes  VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES is 0 */
struct moon_kv_events {
    const struct moon_connector *connector;
    bool whole_hashes;
    struct moon_arena arena;
    struct moon_kv_event *events;
    size_t count, capacity;
};
void moon_kv_events_open(struct moon_kv_events *events, const struct moon_connector *connector, bool whole_hashes,
                         struct moon_memory *memory);
void moon_kv_events_close(struct moon_kv_events *events); /* idempotent */
void moon_kv_events_clear(struct moon_kv_events *events); /* they were taken */

/* Adds the events of one put of a normal save (EVENT-001, EVENT-002, EVENT-004). Token ids are read from the job, which
 * points at all of its request's: so what a failed save had needs no keeping (EVENT-006).
 * Returns 0, or MOON_ERR_MEMORY and nothing was added. */
int moon_kv_events_add(struct moon_kv_events *events, const struct moon_stored *stored, struct moon_error *error);

enum { MOON_EVENTS_KEPT_MAX = 1 << 16 };

/* Counts equal events of all workers (EVENT-007, EVENT-008). Owns copies of what it keeps: at most MOON_EVENTS_KEPT_MAX
 * events that are not published yet, the oldest of which give way. */
struct moon_event_counts;
/* Returns 0 or MOON_ERR_MEMORY. */
int moon_event_counts_open(struct moon_event_counts **out, const struct moon_connector *connector,
                           struct moon_memory *memory, struct moon_error *error);
void moon_event_counts_close(struct moon_event_counts *counts); /* NULL: nothing */
/* One worker's events of a step, perhaps none. Returns 0 or MOON_ERR_MEMORY: then some of them were not counted. */
int moon_event_counts_worker(struct moon_event_counts *counts, const struct moon_kv_event *events, size_t count,
                             struct moon_error *error);
/* All workers were counted: publishes what enough of them told, in the order first told. The event is borrowed for the
 * call. Returns how many were published. */
size_t moon_event_counts_publish(struct moon_event_counts *counts,
                                 void (*publish)(void *context, const struct moon_kv_event *event), void *context);

#ifdef __cplusplus
}
#endif
#endif
