/* SPDX-License-Identifier: Apache-2.0 */
/* KV cache memory of one rank, filled and checked with the bytes of the imaginary model. */
#ifndef MOON_ENGINE_KV_MEMORY_H
#define MOON_ENGINE_KV_MEMORY_H

#include "ref/base/memory.h"
#include "ref/layout/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_KV_CANARY = 0xc7 }; /* what memory holds before anything is computed or loaded */
#define MOON_KV_MEMORY_BYTES_MAX (INT64_C(1) << 32)

/* What a rank's caches look like: one tensor a layer, each in a storage of its own, (block, head, token, content) or
 * (block, token, head, content) in memory. All numbers are 1 or more.
 *   first_head   of the model, that the rank holds;  heads: how many from there
 *   half_bytes   of K, or V, of one head and token; a multiple of 8
 *   token_outer  a token's heads lie together (LBNHC); else a head's tokens (LBHNC) */
struct moon_kv_shape {
    uint64_t layers, first_head, heads, block_tokens, block_count;
    size_t half_bytes;
    bool token_outer;
};

/* Owns its memory. Thread rule: one thread at a time. storages: one a layer, storage_bytes each. */
struct moon_kv_memory {
    struct moon_memory *memory;
    struct moon_kv_shape shape;
    uint8_t **storages;
    size_t storage_bytes;
};

/* Returns 0, MOON_ERR_MEMORY, or MOON_ERR_LIMIT beyond MOON_KV_MEMORY_BYTES_MAX. Close it in any case. */
int moon_kv_memory_open(struct moon_kv_memory *kv, const struct moon_kv_shape *shape, struct moon_memory *memory);
void moon_kv_memory_close(struct moon_kv_memory *kv); /* idempotent */
/* The tensor of a layer, as it is registered: elements of two bytes. */
struct moon_tensor moon_kv_memory_tensor(const struct moon_kv_memory *kv, uint64_t layer);
/* Overwrites everything with the canary. */
void moon_kv_memory_poison(struct moon_kv_memory *kv);

/* Tokens first .. end - 1 of a request whose blocks these are; prefixes[i] stands for token i (moon_token_prefix). A
 * table that is too short for them is the caller's error (asserted). */
struct moon_kv_span {
    const int64_t *blocks;
    size_t block_count;
    const uint64_t *prefixes;
    int64_t first, end;
};
/* What computing the tokens leaves in memory. */
void moon_kv_memory_write(struct moon_kv_memory *kv, const struct moon_kv_span *span);
/* Number of bytes that are not what computing the tokens would have left. */
uint64_t moon_kv_memory_wrong_bytes(const struct moon_kv_memory *kv, const struct moon_kv_span *span);

/* Copies ranges of memory one after another to `object`, or back; their sizes add up to its length. False, and nothing
 * is copied, if a range lies outside of its storage. */
bool moon_kv_memory_gather(const struct moon_kv_memory *kv, const struct moon_buffer buffers[], size_t count,
                           uint8_t *object);
bool moon_kv_memory_scatter(struct moon_kv_memory *kv, const struct moon_buffer buffers[], size_t count,
                            const uint8_t *object);

#ifdef __cplusplus
}
#endif
#endif
