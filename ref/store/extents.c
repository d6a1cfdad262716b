/* SPDX-License-Identifier: Apache-2.0 */
/* Segregated fits over two levels of bit maps, with sizes that only bins have. */
#include "ref/store/extents.h"

#include "ref/base/error.h"

#include <assert.h>

/* STORE-002, STORE-003. */
static const uint64_t QUANTA_MAX = UINT64_C(15) << 28; /* the largest bin size below 2^32 */
static const uint64_t REGIONS_SURE = UINT64_C(1) << 20, REGIONS_MAX = UINT64_C(1) << 26;
enum { BYTES_A_REGION = 1024 };

static unsigned highest_bit(uint64_t quanta) {
    return 63 - (unsigned)__builtin_clzll(quanta);
}

/* The bin whose size is `quanta`, or the next smaller one; 1 or more. */
static unsigned bin_below(uint32_t quanta) {
    if (quanta < MOON_EXTENTS_COLUMNS)
        return quanta;
    unsigned row = highest_bit(quanta) - 2;
    return row * MOON_EXTENTS_COLUMNS + (quanta >> (row - 1)) % MOON_EXTENTS_COLUMNS;
}

static uint32_t bin_size(unsigned bin) {
    unsigned row = bin / MOON_EXTENTS_COLUMNS, column = bin % MOON_EXTENTS_COLUMNS;
    return row == 0 ? column : (MOON_EXTENTS_COLUMNS + column) << (row - 1);
}

static unsigned bin_above(uint32_t quanta) {
    unsigned bin = bin_below(quanta);
    return bin_size(bin) < quanta ? bin + 1 : bin;
}

static void list(struct moon_extents *extents, struct moon_region *region) {
    unsigned bin = bin_below(region->length), row = bin / MOON_EXTENTS_COLUMNS;
    region->used = false;
    region->previous = NULL;
    region->next = extents->bins[bin];
    if (region->next)
        region->next->previous = region;
    extents->bins[bin] = region;
    extents->columns[row] = (uint8_t)(extents->columns[row] | 1u << bin % MOON_EXTENTS_COLUMNS);
    extents->rows |= 1u << row;
}

static void unlist(struct moon_extents *extents, struct moon_region *region) {
    unsigned bin = bin_below(region->length), row = bin / MOON_EXTENTS_COLUMNS;
    if (region->next)
        region->next->previous = region->previous;
    if (region->previous) {
        region->previous->next = region->next;
        return;
    }
    extents->bins[bin] = region->next;
    if (region->next)
        return;
    extents->columns[row] = (uint8_t)(extents->columns[row] & ~(1u << bin % MOON_EXTENTS_COLUMNS));
    if (extents->columns[row] == 0)
        extents->rows &= ~(1u << row);
}

/* The first region of the first bin from `bin` on that holds any; NULL if there is none. */
static struct moon_region *find(const struct moon_extents *extents, unsigned bin) {
    unsigned row = bin / MOON_EXTENTS_COLUMNS;
    unsigned columns = extents->columns[row] & ~0u << bin % MOON_EXTENTS_COLUMNS;
    if (columns == 0) {
        uint32_t rows = extents->rows & (uint32_t)(~UINT64_C(1) << row);
        if (rows == 0)
            return NULL;
        row = (unsigned)__builtin_ctz(rows);
        columns = extents->columns[row];
    }
    return extents->bins[row * MOON_EXTENTS_COLUMNS + (unsigned)__builtin_ctz(columns)];
}

static struct moon_region *new_region(struct moon_extents *extents) {
    struct moon_region *region = extents->memory->resize(extents->memory, NULL, 0, sizeof *region);
    if (region) {
        *region = (struct moon_region){0};
        extents->regions++;
    }
    return region;
}

static void drop_region(struct moon_extents *extents, struct moon_region *region) {
    extents->memory->resize(extents->memory, region, sizeof *region, 0);
    extents->regions--;
}

int moon_extents_open(struct moon_extents *extents, struct moon_memory *memory, uint64_t size_bytes) {
    assert(size_bytes > 0);
    *extents = (struct moon_extents){.memory = memory};
    while (size_bytes >> extents->quantum_shift > QUANTA_MAX)
        extents->quantum_shift++;
    uint64_t regions = size_bytes / BYTES_A_REGION < REGIONS_MAX ? size_bytes / BYTES_A_REGION : REGIONS_MAX;
    extents->regions_max = regions > REGIONS_SURE ? regions : REGIONS_SURE;
    extents->first = new_region(extents);
    if (!extents->first)
        return MOON_ERR_MEMORY;
    extents->first->length = (uint32_t)(size_bytes >> extents->quantum_shift);
    list(extents, extents->first);
    return 0;
}

void moon_extents_close(struct moon_extents *extents) {
    while (extents->first) {
        struct moon_region *region = extents->first;
        extents->first = region->after;
        drop_region(extents, region);
    }
    *extents = (struct moon_extents){.memory = extents->memory};
}

/* Cuts the free, unlisted region to `length`; what is behind becomes a listed region, `rest`. */
static void cut(struct moon_extents *extents, struct moon_region *region, uint32_t length, struct moon_region *rest) {
    rest->offset = region->offset + length;
    rest->length = region->length - length;
    rest->before = region;
    rest->after = region->after;
    if (rest->after)
        rest->after->before = rest;
    region->after = rest;
    region->length = length;
    list(extents, rest);
}

int moon_extents_allocate(struct moon_extents *extents, uint64_t length_bytes, struct moon_region **region) {
    assert(length_bytes > 0);
    uint64_t quanta = ((length_bytes - 1) >> extents->quantum_shift) + 1;
    if (quanta > QUANTA_MAX)
        return MOON_ERR_LIMIT;
    unsigned bin = bin_above((uint32_t)quanta);
    struct moon_region *found = find(extents, bin), *rest = NULL;
    if (!found)
        return MOON_ERR_LIMIT;
    uint32_t length = bin_size(bin);
    assert(found->length >= length);
    if (found->length > length) {
        if (extents->regions >= extents->regions_max)
            return MOON_ERR_LIMIT;
        rest = new_region(extents);
        if (!rest)
            return MOON_ERR_MEMORY;
    }
    unlist(extents, found);
    found->used = true;
    if (rest)
        cut(extents, found, length, rest);
    *region = found;
    return 0;
}

/* Makes `region` one with the one behind it, which is unlisted. */
static void merge(struct moon_extents *extents, struct moon_region *region) {
    struct moon_region *after = region->after;
    region->length += after->length;
    region->after = after->after;
    if (region->after)
        region->after->before = region;
    drop_region(extents, after);
}

void moon_extents_free(struct moon_extents *extents, struct moon_region *region) {
    assert(region->used);
    if (region->after && !region->after->used) {
        unlist(extents, region->after);
        merge(extents, region);
    }
    if (region->before && !region->before->used) {
        region = region->before;
        unlist(extents, region);
        merge(extents, region);
    }
    list(extents, region);
}

uint64_t moon_extents_offset_bytes(const struct moon_extents *extents, const struct moon_region *region) {
    return (uint64_t)region->offset << extents->quantum_shift;
}
