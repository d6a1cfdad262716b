/* SPDX-License-Identifier: Apache-2.0 */
/* The C heap as injected memory, memory that refuses on request, and the arena. */
#include "ref/base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE_ALIGNMENT = 16,
    CHUNK_BYTES_MIN = 4096,
    CHUNK_BYTES_MAX = 1024 * 1024, /* of a chunk that holds many pieces; a larger piece gets a chunk of its own */
};

static void *heap_resize(struct moon_memory *self, void *old, size_t old_bytes, size_t new_bytes) {
    (void)self, (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_bytes);
}

struct moon_memory *moon_memory_heap(void) {
    static struct moon_memory heap = {heap_resize}; /* never written */
    return &heap;
}

void *moon_memory_grow(struct moon_memory *memory, void *array, size_t *capacity, size_t wanted, size_t element_bytes,
                       size_t first) {
    size_t larger = *capacity > 0 ? *capacity : first, bytes;
    if (wanted <= *capacity)
        return array;
    while (larger < wanted)
        if (__builtin_mul_overflow(larger, (size_t)2, &larger))
            return NULL;
    if (__builtin_mul_overflow(larger, element_bytes, &bytes))
        return NULL;
    void *grown = memory->resize(memory, array, *capacity * element_bytes, bytes);
    if (grown)
        *capacity = larger;
    return grown;
}

void *moon_memory_grow_zeroed(struct moon_memory *memory, void *array, size_t *capacity, size_t wanted,
                              size_t element_bytes, size_t first) {
    size_t before = *capacity;
    unsigned char *grown = moon_memory_grow(memory, array, capacity, wanted, element_bytes, first);
    if (grown && *capacity > before)
        memset(grown + before * element_bytes, 0, (*capacity - before) * element_bytes);
    return grown;
}

static void *failing_resize(struct moon_memory *memory, void *old, size_t old_bytes, size_t new_bytes) {
    struct moon_memory_failing *self = (struct moon_memory_failing *)memory;
    if (new_bytes > 0) {
        self->requests++;
        if (self->fail_at && self->requests >= self->fail_at)
            return NULL;
    }
    void *piece = self->below->resize(self->below, old, old_bytes, new_bytes);
    if (!piece && new_bytes > 0)
        return NULL;
    assert(!old || self->held_bytes >= old_bytes);
    self->held_bytes += new_bytes - (old ? old_bytes : 0);
    return piece;
}

void moon_memory_failing_init(struct moon_memory_failing *self, struct moon_memory *below, uint64_t fail_at) {
    *self = (struct moon_memory_failing){.memory = {failing_resize}, .below = below, .fail_at = fail_at};
}

/* Header of a chunk; pieces follow it. */
struct moon_arena_chunk {
    alignas(PIECE_ALIGNMENT) struct moon_arena_chunk *older;
    size_t bytes; /* of the whole chunk, header included */
    size_t used;  /* likewise; a multiple of PIECE_ALIGNMENT */
};
static_assert(sizeof(struct moon_arena_chunk) % PIECE_ALIGNMENT == 0, "pieces start aligned");

void moon_arena_open(struct moon_arena *arena, struct moon_memory *memory) {
    *arena = (struct moon_arena){.memory = memory};
}

void moon_arena_close(struct moon_arena *arena) {
    while (arena->newest) {
        struct moon_arena_chunk *chunk = arena->newest;
        arena->newest = chunk->older;
        arena->memory->resize(arena->memory, chunk, chunk->bytes, 0);
    }
    arena->used_bytes = 0;
}

/* A new chunk with room for a piece of `piece_bytes`. A piece that fills its chunk is put behind the newest chunk, so
 * that the newest one's room stays in use. */
static struct moon_arena_chunk *add_chunk(struct moon_arena *arena, size_t piece_bytes) {
    struct moon_arena_chunk *newest = arena->newest;
    size_t bytes = newest && newest->bytes < CHUNK_BYTES_MAX ? newest->bytes * 2 : CHUNK_BYTES_MAX;
    if (!newest)
        bytes = CHUNK_BYTES_MIN;
    size_t wanted;
    if (__builtin_add_overflow(piece_bytes, sizeof(struct moon_arena_chunk), &wanted))
        return NULL;
    bool own = newest && wanted > bytes / 2;
    if (wanted > bytes || own)
        bytes = wanted;
    struct moon_arena_chunk *chunk = arena->memory->resize(arena->memory, NULL, 0, bytes);
    if (!chunk)
        return NULL;
    chunk->bytes = bytes;
    chunk->used = sizeof *chunk;
    if (own) {
        chunk->older = newest->older;
        newest->older = chunk;
    } else {
        chunk->older = newest;
        arena->newest = chunk;
    }
    return chunk;
}

void *moon_arena_alloc(struct moon_arena *arena, size_t bytes) {
    size_t padded;
    if (__builtin_add_overflow(bytes ? bytes : 1, PIECE_ALIGNMENT - 1, &padded))
        return NULL;
    padded &= ~(size_t)(PIECE_ALIGNMENT - 1);
    struct moon_arena_chunk *chunk = arena->newest;
    if (!chunk || padded > chunk->bytes - chunk->used) {
        chunk = add_chunk(arena, padded);
        if (!chunk)
            return NULL;
    }
    void *piece = (char *)chunk + chunk->used;
    chunk->used += padded;
    arena->used_bytes += padded;
    return memset(piece, 0, padded);
}

void *moon_arena_array(struct moon_arena *arena, size_t count, size_t element_bytes) {
    size_t bytes;
    if (__builtin_mul_overflow(count, element_bytes, &bytes))
        return NULL;
    return moon_arena_alloc(arena, bytes);
}

char *moon_arena_copy(struct moon_arena *arena, const char *bytes, size_t length) {
    size_t terminated;
    if (__builtin_add_overflow(length, 1, &terminated))
        return NULL;
    char *copy = moon_arena_alloc(arena, terminated);
    if (copy && length > 0)
        memcpy(copy, bytes, length);
    return copy;
}

char *moon_arena_format(struct moon_arena *arena, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *out = length < 0 ? NULL : moon_arena_alloc(arena, (size_t)length + 1);
    if (out)
        vsnprintf(out, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    return out;
}
