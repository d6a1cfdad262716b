/* SPDX-License-Identifier: Apache-2.0 */
/* How the scheduler side asks for a lookup: an injected channel to the worker of rank 0. */
#ifndef MOON_CONNECTOR_LOOKUP_PORT_H
#define MOON_CONNECTOR_LOOKUP_PORT_H

#include "ref/connector/lookup_worker.h"
#include "ref/connector/request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* lookup: asks, or asks again. num_tokens is what goes over the wire. With non_block false it answers at once, with
 * true it may set *pending, and is then asked again later with the same slot; an answer is used up by the call that
 * takes it. Returns 0, or MOON_ERR_REFUSED / MOON_ERR_IO / MOON_ERR_MEMORY (the scheduler side hands on MOON_ERR_MEMORY
 * and takes the others for a hit of 0, as releases do). discard: forgets what is pending for a slot; nothing if there
 * is none. reset: drops every key of the tenant; true if the worker says so. */
struct moon_lookup_port {
    int (*lookup)(struct moon_lookup_port *self, const struct moon_request *request, int64_t num_tokens, bool non_block,
                  struct moon_lookup_result *result, bool *pending, struct moon_error *error);
    void (*discard)(struct moon_lookup_port *self, uint32_t slot);
    bool (*reset)(struct moon_lookup_port *self);
};

#ifdef __cplusplus
}
#endif
#endif
