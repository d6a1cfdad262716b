/* SPDX-License-Identifier: Apache-2.0 */
/* Allocator of the memory of one segment: which parts are used. It hands out places, and touches none of their bytes.
 */
#ifndef MOON_STORE_EXTENTS_H
#define MOON_STORE_EXTENTS_H

#include "ref/base/bytes.h"
#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_EXTENTS_ROWS = 30, /* powers of two */
    MOON_EXTENTS_COLUMNS = 8,
    MOON_EXTENTS_BINS = MOON_EXTENTS_ROWS * MOON_EXTENTS_COLUMNS,
};

/* A used or free part of the segment, in quanta. Regions cover it without a gap, and no two free ones touch. */
struct moon_region {
    struct moon_region *before, *after;  /* neighbours by address */
    struct moon_region *previous, *next; /* in its bin; free regions only */
    uint32_t offset, length;
    bool used;
};

/* A bin holds the free regions of at least its size and less than the next one's, the last freed first. Bin sizes have
 * three bits behind the highest one: 1, 2, .. 15, 16, 18, 20, .. 30, 32, 36, ..
 *   quantum_shift  a quantum is 2^quantum_shift bytes (STORE-002)
 *   rows, columns  bit maps of the bins that hold something */
struct moon_extents {
    struct moon_memory *memory;
    unsigned quantum_shift;
    size_t regions, regions_max;
    struct moon_region *first; /* the one at offset 0 */
    uint32_t rows;
    uint8_t columns[MOON_EXTENTS_ROWS];
    struct moon_region *bins[MOON_EXTENTS_BINS];
};

/* Begins with all of `size_bytes` (1 or more) free. Returns 0 or MOON_ERR_MEMORY; then it need not be closed. */
int moon_extents_open(struct moon_extents *extents, struct moon_memory *memory, uint64_t size_bytes);
/* Gives back what it holds; regions in use are dead. Idempotent. */
void moon_extents_close(struct moon_extents *extents);

/* A region of at least `length_bytes` (1 or more): of the length rounded up to a bin size (STORE-001), at the front of
 * the first region of the first bin that is large enough. O(1). The region is the allocator's, until it is freed.
 * Returns 0; MOON_ERR_LIMIT if no free region is large enough or there would be too many regions (STORE-003);
 * MOON_ERR_MEMORY. */
int moon_extents_allocate(struct moon_extents *extents, uint64_t length_bytes, struct moon_region **region);
/* Gives a region back; it merges with free neighbours. O(1). */
void moon_extents_free(struct moon_extents *extents, struct moon_region *region);

/* Where a region begins, from the segment's base. */
uint64_t moon_extents_offset_bytes(const struct moon_extents *extents, const struct moon_region *region);

#ifdef __cplusplus
}
#endif
#endif
