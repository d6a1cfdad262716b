/* SPDX-License-Identifier: Apache-2.0 */
/* Cost and batches of gets under a staging budget. */
#include "ref/connector/staging.h"

#include <assert.h>

/* The owner reads a key with direct I/O: whole pages, and a page of room on each side. */
enum { PAGE_BYTES = 4096, PADDING_BYTES = 2 * PAGE_BYTES };

static uint64_t add(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t moon_staging_data_bytes(const struct moon_staging_keys *keys, size_t key) {
    assert(key < keys->count);
    const struct moon_buffer *buffers = keys->buffers + key * keys->per_key;
    uint64_t bytes = 0;
    for (size_t i = 0; i < keys->per_key; i++)
        bytes = add(bytes, buffers[i].size_bytes);
    return bytes;
}

uint64_t moon_staging_cost_bytes(const struct moon_staging_keys *keys, size_t key) {
    uint64_t padded = add(moon_staging_data_bytes(keys, key), PAGE_BYTES - 1 + PADDING_BYTES);
    return padded == UINT64_MAX ? padded : padded / PAGE_BYTES * PAGE_BYTES;
}

bool moon_staging_whole(const struct moon_staging *staging, const struct moon_staging_keys *keys) {
    uint64_t total = 0;
    for (size_t key = 0; key < keys->count; key++)
        total = add(total, moon_staging_cost_bytes(keys, key));
    return total <= staging->usable_bytes;
}

size_t moon_staging_oversize(const struct moon_staging *staging, const struct moon_staging_keys *keys) {
    size_t key = 0;
    while (key < keys->count && moon_staging_cost_bytes(keys, key) <= staging->raw_bytes)
        key++;
    return key;
}

size_t moon_staging_batch(const struct moon_staging *staging, const struct moon_staging_keys *keys, size_t first) {
    size_t next = first + 1;
    uint64_t sum = moon_staging_cost_bytes(keys, first);
    if (sum > staging->usable_bytes)
        return 1;
    while (next < keys->count) {
        sum = add(sum, moon_staging_cost_bytes(keys, next));
        if (sum > staging->usable_bytes)
            break;
        next++;
    }
    return next - first;
}
