/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup channel without sockets: the worker of rank 0 answers at once, asking a store that the caller plays. */
#ifndef MOON_CONFORMANCE_SUITES_LOOKUP_DIRECT_H
#define MOON_CONFORMANCE_SUITES_LOOKUP_DIRECT_H

#include "ref/connector/lookup_port.h"

/* Plays batch_is_exist: fills values, one a key of the call. Returns 0; MOON_ERR_MEMORY; any other status: the call
 * raised. */
typedef int moon_exist_store(void *context, const struct moon_store_call *call, int64_t values[]);

/* Borrows connector and memory. `port` is what a scheduler side is opened with.
 *   raised  what the last lookup raised beside its call (status 0: nothing); the scheduler side takes it for a hit of 0
 * Thread rule: one thread at a time. */
struct moon_lookup_direct {
    struct moon_lookup_port port; /* first member */
    struct moon_lookup lookup;
    struct moon_memory *memory;
    moon_exist_store *exist;
    void *context;
    int64_t *values;
    size_t values_capacity;
    struct moon_error raised;
};
void moon_lookup_direct_open(struct moon_lookup_direct *direct, const struct moon_connector *connector,
                             struct moon_memory *memory, moon_exist_store *exist, void *context);
void moon_lookup_direct_close(struct moon_lookup_direct *direct); /* once */

#endif
