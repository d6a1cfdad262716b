/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank reports of its loads: received requests, and the blocks or requests of failed reads. */
#ifndef MOON_CONNECTOR_LOAD_FAILURE_H
#define MOON_CONNECTOR_LOAD_FAILURE_H

#include "ref/connector/connector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers that are given out in ascending order, each once (LOAD-027). Owns its array. */
struct moon_ascending {
    struct moon_memory *memory;
    uint64_t *heap; /* each at most its two children */
    size_t count, capacity;
};
void moon_ascending_open(struct moon_ascending *numbers, struct moon_memory *memory);
void moon_ascending_close(struct moon_ascending *numbers);
/* Room for `more` numbers, so that adding them cannot fail. Returns 0 or MOON_ERR_MEMORY. */
int moon_ascending_reserve(struct moon_ascending *numbers, size_t more);
void moon_ascending_add(struct moon_ascending *numbers, uint64_t number);
bool moon_ascending_take(struct moon_ascending *numbers, uint64_t *number); /* the smallest; false if there is none */

/* Failures not yet taken.
 *   engine_groups  KV cache groups of the engine, stored or not */
struct moon_load_failures {
    const struct moon_connector *connector;
    size_t engine_groups;
    struct moon_ascending blocks, requests;
};
void moon_load_failures_open(struct moon_load_failures *failures, const struct moon_connector *connector,
                             size_t engine_groups, struct moon_memory *memory);
void moon_load_failures_close(struct moon_load_failures *failures);
/* Room for the failures of a load of `keys` keys. Returns 0 or MOON_ERR_MEMORY. */
int moon_load_failures_reserve(struct moon_load_failures *failures, size_t keys);

/* True if a get's result for a key of `bytes` bytes is a failure (LOAD-020, LOAD-021). */
bool moon_load_failed(const struct moon_connector *connector, int64_t result, uint64_t bytes);
/* Reports that a key of a request failed (LOAD-020, LOAD-024, LOAD-025). */
void moon_load_failures_add(struct moon_load_failures *failures, uint32_t slot, uint64_t block);

#ifdef __cplusplus
}
#endif
#endif
