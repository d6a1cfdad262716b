/* SPDX-License-Identifier: Apache-2.0 */
/* Table of offered memory: rows as they were added, and their places in the order of addresses. */
#include "ref/transfer/regions.h"

#include "ref/base/error.h"

enum { FIRST_ROWS = 8 };

void moon_regions_open(struct moon_regions *regions, struct moon_memory *memory) {
    *regions = (struct moon_regions){.memory = memory};
}

void moon_regions_close(struct moon_regions *regions) {
    struct moon_memory *memory = regions->memory;
    if (regions->rows)
        memory->resize(memory, regions->rows, regions->row_capacity * sizeof *regions->rows, 0);
    if (regions->by_address)
        memory->resize(memory, regions->by_address, regions->address_capacity * sizeof *regions->by_address, 0);
    moon_regions_open(regions, memory);
}

static const struct moon_region *at(const struct moon_regions *regions, size_t place) {
    return &regions->rows[regions->by_address[place]];
}

/* Number of regions that begin at or below `address`: the place of the next one. */
static size_t place_behind(const struct moon_regions *regions, uint64_t address) {
    size_t low = 0, high = regions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (at(regions, middle)->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(struct moon_regions *regions) {
    void *rows = moon_memory_grow(regions->memory, regions->rows, &regions->row_capacity, regions->count + 1,
                                  sizeof *regions->rows, FIRST_ROWS);
    if (!rows)
        return false;
    regions->rows = rows;
    void *places = moon_memory_grow(regions->memory, regions->by_address, &regions->address_capacity,
                                    regions->count + 1, sizeof *regions->by_address, FIRST_ROWS);
    if (!places)
        return false;
    regions->by_address = places;
    return true;
}

int moon_regions_add(struct moon_regions *regions, const struct moon_region *region) {
    uint64_t end = 0;
    if (region->length == 0 || __builtin_add_overflow(region->address, region->length, &end))
        return MOON_ERR_RANGE;
    size_t place = place_behind(regions, region->address);
    if (place > 0 && region->address - at(regions, place - 1)->address < at(regions, place - 1)->length)
        return MOON_ERR_RANGE;
    if (place < regions->count && end > at(regions, place)->address)
        return MOON_ERR_RANGE;
    if (!make_room(regions))
        return MOON_ERR_MEMORY;
    size_t *slot = &regions->by_address[place];
    memmove(slot + 1, slot, (regions->count - place) * sizeof *slot);
    *slot = regions->count;
    regions->rows[regions->count++] = *region;
    return MOON_OK;
}

int moon_regions_remove(struct moon_regions *regions, uint64_t address) {
    size_t place = place_behind(regions, address);
    if (place == 0 || at(regions, place - 1)->address != address)
        return MOON_ERR_RANGE;
    size_t *slot = &regions->by_address[place - 1], row = *slot;
    memmove(slot, slot + 1, (regions->count - place) * sizeof *slot);
    memmove(&regions->rows[row], &regions->rows[row + 1], (regions->count - row - 1) * sizeof *regions->rows);
    regions->count--;
    for (size_t i = 0; i < regions->count; i++)
        regions->by_address[i] -= regions->by_address[i] > row;
    return MOON_OK;
}

const struct moon_region *moon_regions_find(const struct moon_regions *regions, uint64_t address, uint64_t length) {
    size_t place = place_behind(regions, address);
    if (length == 0 || place == 0)
        return NULL;
    const struct moon_region *region = at(regions, place - 1);
    uint64_t offset = address - region->address;
    return offset < region->length && length <= region->length - offset ? region : NULL;
}
