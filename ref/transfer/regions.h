/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that this process offers to its peers, under the addresses that it announced. */
#ifndef MOON_TRANSFER_REGIONS_H
#define MOON_TRANSFER_REGIONS_H

#include "ref/base/environment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `length` bytes at `memory`, announced as [address, address + length). In real processes the announced address is the
 * pointer; in simulations it is a number of its own, so that histories do not depend on the machine.
 *   lkey, rkey  of a verbs device, 0 without; remote: peers may reach it (over TCP they always can) */
struct moon_region {
    uint64_t address;
    uint8_t *memory;
    size_t length;
    bool remote;
    uint32_t lkey, rkey;
};

/* rows: in the order of their addition, as descriptors list them; by_address: their places, ordered by address. */
struct moon_regions {
    struct moon_memory *memory;
    struct moon_region *rows;
    size_t *by_address;
    size_t count, row_capacity, address_capacity;
};

void moon_regions_open(struct moon_regions *regions, struct moon_memory *memory);
void moon_regions_close(struct moon_regions *regions); /* idempotent */
/* Returns 0, MOON_ERR_RANGE (empty, wraps, or overlaps a region that is there; TRANSFER-002) or MOON_ERR_MEMORY. */
int moon_regions_add(struct moon_regions *regions, const struct moon_region *region);
/* Forgets the region that begins at `address`; MOON_ERR_RANGE if there is none. */
int moon_regions_remove(struct moon_regions *regions, uint64_t address);
/* The region that all of [address, address + length) lies in, NULL if there is none or length is 0 (TRANSFER-003). It
 * is good until the next add or remove. */
const struct moon_region *moon_regions_find(const struct moon_regions *regions, uint64_t address, uint64_t length);

#ifdef __cplusplus
}
#endif
#endif
