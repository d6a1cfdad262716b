/* SPDX-License-Identifier: Apache-2.0 */
/* Injected memory: the only way in which code of ref/ obtains any, and an arena on top of it. */
#ifndef MOON_BASE_MEMORY_H
#define MOON_BASE_MEMORY_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A source of memory. resize() behaves as realloc and free in one: old NULL allocates, new_bytes 0 frees and returns
 * NULL, otherwise the content is kept. Returns NULL when it refuses; then `old` is still valid. Aligned for any type.
 * Thread rule: as the implementation says; moon_memory_heap is safe from any thread. */
struct moon_memory {
    void *(*resize)(struct moon_memory *self, void *old, size_t old_bytes, size_t new_bytes);
};

/* The C heap. Never fails to exist; shared by all. */
struct moon_memory *moon_memory_heap(void);

/* Room in an array of elements: *capacity, from `first` on, is doubled until it is at least `wanted` (1 or more).
 * Returns the array, perhaps moved, with its elements kept; NULL, and nothing is changed, when memory refused or the
 * size overflowed. The zeroed form makes the new elements zero. */
void *moon_memory_grow(struct moon_memory *memory, void *array, size_t *capacity, size_t wanted, size_t element_bytes,
                       size_t first);
void *moon_memory_grow_zeroed(struct moon_memory *memory, void *array, size_t *capacity, size_t wanted,
                              size_t element_bytes, size_t first);

/* Memory that refuses its n-th request (n counts from 1; 0 never refuses) and all later ones, for n-th-failure loops.
 * Frees always pass. `requests` counts what was asked so far; `held_bytes` is what is not yet given back. */
struct moon_memory_failing {
    struct moon_memory memory; /* first member: pass &failing.memory */
    struct moon_memory *below;
    uint64_t fail_at;
    uint64_t requests;
    size_t held_bytes;
};
void moon_memory_failing_init(struct moon_memory_failing *self, struct moon_memory *below, uint64_t fail_at);

/* Bump allocator: many small pieces with one lifetime. Pieces are zeroed and aligned to 16 bytes.
 * Owns what it hands out; moon_arena_close gives all of it back. Thread rule: one thread at a time. */
struct moon_arena {
    struct moon_memory *memory;
    struct moon_arena_chunk *newest;
    size_t used_bytes; /* handed out, with padding */
};
void moon_arena_open(struct moon_arena *arena, struct moon_memory *memory);
void moon_arena_close(struct moon_arena *arena); /* idempotent; the arena can be used again */

/* `bytes` zeroed bytes (0 gives a valid unique pointer), or NULL when memory refused or the size overflowed. */
void *moon_arena_alloc(struct moon_arena *arena, size_t bytes);
void *moon_arena_array(struct moon_arena *arena, size_t count, size_t element_bytes);
/* NUL-terminated copies; the input need not be terminated and may hold NULs. NULL when memory refused. */
char *moon_arena_copy(struct moon_arena *arena, const char *bytes, size_t length);
char *moon_arena_format(struct moon_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
