/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of equal elements that grows: jobs that wait, and what is to be reported of them. */
#ifndef MOON_CONNECTOR_RING_H
#define MOON_CONNECTOR_RING_H

#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owns its memory. Thread rule: one thread at a time. */
struct moon_ring {
    struct moon_memory *memory;
    unsigned char *elements;
    size_t element_bytes;
    size_t first, count, capacity;
};
void moon_ring_open(struct moon_ring *ring, struct moon_memory *memory, size_t element_bytes);
void moon_ring_close(struct moon_ring *ring);

/* Room for `more` elements. Returns 0, or MOON_ERR_MEMORY and nothing changed. */
int moon_ring_reserve(struct moon_ring *ring, size_t more);
/* Appends a copy; there must be room. */
void moon_ring_push(struct moon_ring *ring, const void *element);
/* The oldest, or NULL; valid until the next push or reserve. */
void *moon_ring_oldest(const struct moon_ring *ring);
/* Takes the oldest out to *element (NULL: drops it); false if there is none. */
bool moon_ring_take(struct moon_ring *ring, void *element);

#ifdef __cplusplus
}
#endif
#endif
