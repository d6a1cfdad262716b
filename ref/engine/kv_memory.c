/* SPDX-License-Identifier: Apache-2.0 */
/* KV cache memory of one rank, filled and checked with the bytes of the imaginary model. */
#include "ref/engine/kv_memory.h"

#include "ref/engine/token.h"

#include <assert.h>
#include <string.h>

enum { ELEMENT_BYTES = 2, CELL_BYTES_MAX = 4096 };

/* ---- places ---- */

static size_t cell_bytes(const struct moon_kv_shape *shape) {
    return 2 * shape->half_bytes;
}

/* Where the cell of a local head and a token of a block begins. */
static size_t cell_offset(const struct moon_kv_shape *shape, uint64_t block, uint64_t head, uint64_t token) {
    uint64_t row = shape->token_outer ? token * shape->heads + head : head * shape->block_tokens + token;
    return (size_t)(block * shape->heads * shape->block_tokens + row) * cell_bytes(shape);
}

struct moon_tensor moon_kv_memory_tensor(const struct moon_kv_memory *kv, uint64_t layer) {
    const struct moon_kv_shape *shape = &kv->shape;
    uint64_t content = cell_bytes(shape) / ELEMENT_BYTES;
    return (struct moon_tensor){
        .storage = (size_t)layer,
        .dimensions = 4,
        .shape = {shape->block_count, shape->heads, shape->block_tokens, content},
        .strides = {shape->heads * shape->block_tokens * content,
                    content * (shape->token_outer ? 1 : shape->block_tokens),
                    content * (shape->token_outer ? shape->heads : 1), 1},
        .item_bytes = ELEMENT_BYTES,
    };
}

/* ---- tokens ---- */

/* Calls `visit` with each cell of a span: its place in memory, and what computing would leave there. */
typedef void visitor(void *context, uint8_t *place, const uint8_t *cell, size_t bytes);

static void for_each_cell(const struct moon_kv_memory *kv, const struct moon_kv_span *span, visitor *visit,
                          void *context) {
    const struct moon_kv_shape *shape = &kv->shape;
    uint8_t cell[CELL_BYTES_MAX];
    for (int64_t token = span->first; token < span->end; token++) {
        uint64_t index = (uint64_t)token / shape->block_tokens, within = (uint64_t)token % shape->block_tokens;
        assert(index < span->block_count);
        uint64_t block = (uint64_t)span->blocks[index];
        assert(block < shape->block_count);
        for (uint64_t layer = 0; layer < shape->layers; layer++)
            for (uint64_t head = 0; head < shape->heads; head++) {
                moon_token_cell(span->prefixes[token], layer, shape->first_head + head, shape->half_bytes, cell);
                visit(context, kv->storages[layer] + cell_offset(shape, block, head, within), cell, cell_bytes(shape));
            }
    }
}

static void write_cell(void *context, uint8_t *place, const uint8_t *cell, size_t bytes) {
    (void)context;
    memcpy(place, cell, bytes);
}

static void count_wrong(void *context, uint8_t *place, const uint8_t *cell, size_t bytes) {
    uint64_t *wrong = context;
    for (size_t i = 0; i < bytes; i++)
        *wrong += place[i] != cell[i];
}

void moon_kv_memory_write(struct moon_kv_memory *kv, const struct moon_kv_span *span) {
    for_each_cell(kv, span, write_cell, NULL);
}

uint64_t moon_kv_memory_wrong_bytes(const struct moon_kv_memory *kv, const struct moon_kv_span *span) {
    uint64_t wrong = 0;
    for_each_cell(kv, span, count_wrong, &wrong);
    return wrong;
}

/* ---- objects ---- */

static bool inside(const struct moon_kv_memory *kv, const struct moon_buffer buffers[], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (buffers[i].storage >= kv->shape.layers || buffers[i].size_bytes > kv->storage_bytes ||
            buffers[i].offset_bytes > kv->storage_bytes - buffers[i].size_bytes)
            return false;
    return true;
}

bool moon_kv_memory_gather(const struct moon_kv_memory *kv, const struct moon_buffer buffers[], size_t count,
                           uint8_t *object) {
    if (!inside(kv, buffers, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        memcpy(object, kv->storages[buffers[i].storage] + buffers[i].offset_bytes, buffers[i].size_bytes);
        object += buffers[i].size_bytes;
    }
    return true;
}

bool moon_kv_memory_scatter(struct moon_kv_memory *kv, const struct moon_buffer buffers[], size_t count,
                            const uint8_t *object) {
    if (!inside(kv, buffers, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        memcpy(kv->storages[buffers[i].storage] + buffers[i].offset_bytes, object, buffers[i].size_bytes);
        object += buffers[i].size_bytes;
    }
    return true;
}

/* ---- life ---- */

void moon_kv_memory_poison(struct moon_kv_memory *kv) {
    for (uint64_t layer = 0; layer < kv->shape.layers; layer++)
        memset(kv->storages[layer], MOON_KV_CANARY, kv->storage_bytes);
}

int moon_kv_memory_open(struct moon_kv_memory *kv, const struct moon_kv_shape *shape, struct moon_memory *memory) {
    *kv = (struct moon_kv_memory){.memory = memory, .shape = *shape};
    int64_t bytes = (int64_t)cell_bytes(shape), all;
    assert(shape->half_bytes % 8 == 0 && cell_bytes(shape) <= CELL_BYTES_MAX);
    if (__builtin_mul_overflow(bytes, shape->heads, &bytes) ||
        __builtin_mul_overflow(bytes, shape->block_tokens, &bytes) ||
        __builtin_mul_overflow(bytes, shape->block_count, &bytes) ||
        __builtin_mul_overflow(bytes, shape->layers, &all) || all > MOON_KV_MEMORY_BYTES_MAX)
        return MOON_ERR_LIMIT;
    kv->storage_bytes = (size_t)bytes;
    kv->storages = memory->resize(memory, NULL, 0, (size_t)shape->layers * sizeof *kv->storages);
    if (!kv->storages)
        return MOON_ERR_MEMORY;
    memset(kv->storages, 0, (size_t)shape->layers * sizeof *kv->storages);
    for (uint64_t layer = 0; layer < shape->layers; layer++) {
        kv->storages[layer] = memory->resize(memory, NULL, 0, kv->storage_bytes);
        if (!kv->storages[layer])
            return MOON_ERR_MEMORY;
    }
    moon_kv_memory_poison(kv);
    return 0;
}

void moon_kv_memory_close(struct moon_kv_memory *kv) {
    for (uint64_t layer = 0; kv->storages && layer < kv->shape.layers; layer++)
        if (kv->storages[layer])
            kv->memory->resize(kv->memory, kv->storages[layer], kv->storage_bytes, 0);
    if (kv->storages)
        kv->memory->resize(kv->memory, kv->storages, (size_t)kv->shape.layers * sizeof *kv->storages, 0);
    kv->storages = NULL;
}
