/* SPDX-License-Identifier: Apache-2.0 */
/* Heap of deadlines: the earliest first, equal ones in the order of their addition. */
#ifndef MOON_BASE_HEAP_H
#define MOON_BASE_HEAP_H

#include "ref/base/bytes.h"
#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Embedded in what waits. place 0: not in a heap. */
struct moon_heap_node {
    moon_ns time_ns;
    uint64_t order;
    size_t place;
};

struct moon_heap {
    struct moon_memory *memory;
    struct moon_heap_node **nodes; /* from place 1 on */
    size_t count, capacity;
    uint64_t order; /* of the next addition */
};

void moon_heap_open(struct moon_heap *heap, struct moon_memory *memory);
void moon_heap_close(struct moon_heap *heap); /* idempotent; nodes are forgotten */
/* Room for `more` additions: until so many have been made, moon_heap_add cannot fail. Returns 0 or MOON_ERR_MEMORY. */
int moon_heap_reserve(struct moon_heap *heap, size_t more);
/* Adds a node that is in no heap. O(log n). Returns 0 or MOON_ERR_MEMORY: nothing changed. */
int moon_heap_add(struct moon_heap *heap, struct moon_heap_node *node, moon_ns time_ns);
/* Moves a node that is in to another time; among equal times it is then the last. O(log n), cannot fail. */
void moon_heap_move(struct moon_heap *heap, struct moon_heap_node *node, moon_ns time_ns);
/* Takes a node out; one that is in no heap is left alone. O(log n). */
void moon_heap_remove(struct moon_heap *heap, struct moon_heap_node *node);
/* The earliest, NULL if there is none; and its time, MOON_NS_NEVER if there is none. */
struct moon_heap_node *moon_heap_first(const struct moon_heap *heap);
moon_ns moon_heap_deadline(const struct moon_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
