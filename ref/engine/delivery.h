/* SPDX-License-Identifier: Apache-2.0 */
/* A connector that brings whole prompts from elsewhere, as a peer-to-peer transfer would: the scheduler role. */
#ifndef MOON_ENGINE_DELIVERY_H
#define MOON_ENGINE_DELIVERY_H

#include "ref/engine/engine_port.h"
#include "ref/engine/slot_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Prompt tokens first_tokens .. to the end are to be written into the request's blocks. */
struct moon_delivery_item {
    uint32_t slot;
    int64_t first_tokens;
};

/* It offers every prompt token that is not computed, once, to requests that want it; it saves nothing. Owns its memory.
 *   wanted  1 for each request whose prompt is to be brought
 *   items   of the last step, for the workers; the next step drops them */
struct moon_delivery {
    struct moon_engine_port port; /* first member */
    struct moon_memory *memory;
    struct moon_slot_table wanted;
    struct moon_delivery_item *items, *next;
    size_t count, next_count, capacity;
};

void moon_delivery_open(struct moon_delivery *delivery, struct moon_memory *memory); /* allocates nothing */
void moon_delivery_close(struct moon_delivery *delivery);                            /* idempotent */
/* Asks for the prompt of a request. Returns 0 or MOON_ERR_MEMORY. */
int moon_delivery_want(struct moon_delivery *delivery, uint32_t slot);

#ifdef __cplusplus
}
#endif
#endif
