/* SPDX-License-Identifier: Apache-2.0 */
/* Queues on an array that wraps around. */
#include "ref/connector/ring.h"

#include "ref/base/error.h"

#include <assert.h>
#include <string.h>

enum { RING_FIRST_CAPACITY = 8 };

void moon_ring_open(struct moon_ring *ring, struct moon_memory *memory, size_t element_bytes) {
    *ring = (struct moon_ring){.memory = memory, .element_bytes = element_bytes};
}

void moon_ring_close(struct moon_ring *ring) {
    ring->memory->resize(ring->memory, ring->elements, ring->capacity * ring->element_bytes, 0);
    moon_ring_open(ring, ring->memory, ring->element_bytes);
}

static unsigned char *at(const struct moon_ring *ring, size_t index) {
    assert(ring->capacity > 0);
    return ring->elements + (ring->first + index) % ring->capacity * ring->element_bytes;
}

int moon_ring_reserve(struct moon_ring *ring, size_t more) {
    size_t needed, capacity = ring->capacity ? ring->capacity : RING_FIRST_CAPACITY, bytes;
    if (__builtin_add_overflow(ring->count, more, &needed) || needed > SIZE_MAX / 2)
        return MOON_ERR_MEMORY;
    if (needed <= ring->capacity)
        return 0;
    while (capacity < needed)
        capacity *= 2;
    if (__builtin_mul_overflow(capacity, ring->element_bytes, &bytes))
        return MOON_ERR_MEMORY;
    unsigned char *grown = ring->memory->resize(ring->memory, NULL, 0, bytes);
    if (!grown)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < ring->count; i++)
        memcpy(grown + i * ring->element_bytes, at(ring, i), ring->element_bytes);
    ring->memory->resize(ring->memory, ring->elements, ring->capacity * ring->element_bytes, 0);
    ring->elements = grown;
    ring->first = 0;
    ring->capacity = capacity;
    return 0;
}

void moon_ring_push(struct moon_ring *ring, const void *element) {
    assert(ring->count < ring->capacity);
    memcpy(at(ring, ring->count++), element, ring->element_bytes);
}

void *moon_ring_oldest(const struct moon_ring *ring) {
    return ring->count ? at(ring, 0) : NULL;
}

bool moon_ring_take(struct moon_ring *ring, void *element) {
    if (!ring->count)
        return false;
    if (element)
        memcpy(element, at(ring, 0), ring->element_bytes);
    ring->first = ring->first + 1 < ring->capacity ? ring->first + 1 : 0;
    ring->count--;
    return true;
}
