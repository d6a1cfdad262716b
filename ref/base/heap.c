/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap whose nodes know their place. */
#include "ref/base/heap.h"

#include "ref/base/error.h"

#include <assert.h>

enum { HEAP_FIRST = 16 };

void moon_heap_open(struct moon_heap *heap, struct moon_memory *memory) {
    *heap = (struct moon_heap){.memory = memory};
}

void moon_heap_close(struct moon_heap *heap) {
    if (heap->nodes)
        heap->memory->resize(heap->memory, heap->nodes, heap->capacity * sizeof *heap->nodes, 0);
    heap->nodes = NULL;
    heap->count = heap->capacity = 0;
}

static bool earlier(const struct moon_heap_node *a, const struct moon_heap_node *b) {
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void put(struct moon_heap *heap, struct moon_heap_node *node, size_t place) {
    heap->nodes[place] = node;
    node->place = place;
}

/* Moves the node, which stands at no place yet, from the hole at `place` to where it belongs. */
static void settle(struct moon_heap *heap, struct moon_heap_node *node, size_t place) {
    for (; place > 1 && earlier(node, heap->nodes[place / 2]); place /= 2)
        put(heap, heap->nodes[place / 2], place);
    for (size_t child = 2 * place; child <= heap->count; child = 2 * place) {
        if (child < heap->count && earlier(heap->nodes[child + 1], heap->nodes[child]))
            child++;
        if (!earlier(heap->nodes[child], node))
            break;
        put(heap, heap->nodes[child], place);
        place = child;
    }
    put(heap, node, place);
}

int moon_heap_reserve(struct moon_heap *heap, size_t more) {
    size_t wanted;
    if (__builtin_add_overflow(heap->count + 1, more, &wanted))
        return MOON_ERR_MEMORY;
    struct moon_heap_node **nodes =
        moon_memory_grow(heap->memory, heap->nodes, &heap->capacity, wanted, sizeof *nodes, HEAP_FIRST);
    if (!nodes)
        return MOON_ERR_MEMORY;
    heap->nodes = nodes;
    return 0;
}

int moon_heap_add(struct moon_heap *heap, struct moon_heap_node *node, moon_ns time_ns) {
    int status = moon_heap_reserve(heap, 1);
    if (status != 0)
        return status;
    node->time_ns = time_ns;
    node->order = heap->order++;
    heap->count++;
    settle(heap, node, heap->count);
    return 0;
}

void moon_heap_move(struct moon_heap *heap, struct moon_heap_node *node, moon_ns time_ns) {
    assert(node->place > 0 && node->place <= heap->count && heap->nodes[node->place] == node);
    node->time_ns = time_ns;
    node->order = heap->order++;
    settle(heap, node, node->place);
}

void moon_heap_remove(struct moon_heap *heap, struct moon_heap_node *node) {
    size_t place = node->place;
    if (place == 0)
        return;
    assert(place <= heap->count && heap->nodes[place] == node);
    struct moon_heap_node *last = heap->nodes[heap->count--];
    node->place = 0;
    if (last != node)
        settle(heap, last, place);
}

struct moon_heap_node *moon_heap_first(const struct moon_heap *heap) {
    return heap->count > 0 ? heap->nodes[1] : NULL;
}

moon_ns moon_heap_deadline(const struct moon_heap *heap) {
    return heap->count > 0 ? heap->nodes[1]->time_ns : MOON_NS_NEVER;
}
