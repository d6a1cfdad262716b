/* SPDX-License-Identifier: Apache-2.0 */
/* The lookup as the worker of rank 0 does it: one existence call over all namespaces, then the joint hit search. */
#ifndef MOON_CONNECTOR_LOOKUP_WORKER_H
#define MOON_CONNECTOR_LOOKUP_WORKER_H

#include "ref/connector/coordinator.h"
#include "ref/connector/store_call.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a lookup answers. boundary_count is 0 before 0.29 and for a hit of 0, else the number of groups. */
struct moon_lookup_result {
    int64_t hit_tokens;
    size_t boundary_count;
    int64_t tail_boundaries[MOON_STORE_GROUPS_MAX];
};

/* A lookup under way. Owns its memory; can be used for one lookup after another. Thread rule: one thread at a time. */
struct moon_lookup {
    const struct moon_connector *connector;
    struct moon_key_list keys;
    struct moon_store_call call;
    struct moon_hashes hashes;
    int64_t num_tokens, limit_tokens;
    uint8_t *present;
    size_t present_capacity;
    struct moon_lookup_result result;
    bool asking;
};
void moon_lookup_open(struct moon_lookup *lookup, const struct moon_connector *connector, struct moon_memory *memory);
void moon_lookup_close(struct moon_lookup *lookup);

/* Begins a lookup of num_tokens (0 or more; what the RPC of the release carries) with these hashes (borrowed until it
 * ends). *call gets the existence call, or NULL when the store is not asked; then the result is ready.
 * Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED where the release raises. */
int moon_lookup_begin(struct moon_lookup *lookup, int64_t num_tokens, const struct moon_hashes *hashes,
                      const struct moon_store_call **call, struct moon_error *error);
/* The store's answers, one a key; only 1 means present. Returns as above, and MOON_ERR_RANGE for a wrong count. */
int moon_lookup_answer(struct moon_lookup *lookup, const int64_t *values, size_t count, struct moon_error *error);
/* The call raised: the result is a hit of 0. */
void moon_lookup_raised(struct moon_lookup *lookup);

#ifdef __cplusplus
}
#endif
#endif
