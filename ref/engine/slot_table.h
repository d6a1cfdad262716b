/* SPDX-License-Identifier: Apache-2.0 */
/* One small number for each request slot; 0 for those that were never set. */
#ifndef MOON_ENGINE_SLOT_TABLE_H
#define MOON_ENGINE_SLOT_TABLE_H

#include "ref/base/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Owns its memory: 4 bytes for each slot up to the largest that was set. Thread rule: one thread at a time. */
struct moon_slot_table {
    struct moon_memory *memory;
    uint32_t *values;
    size_t capacity;
};
void moon_slot_table_open(struct moon_slot_table *table, struct moon_memory *memory); /* allocates nothing */
void moon_slot_table_close(struct moon_slot_table *table);                            /* idempotent */
uint32_t moon_slot_table_get(const struct moon_slot_table *table, uint32_t slot);
/* Returns 0, or MOON_ERR_MEMORY and nothing changed; 0 always when the slot was set before, or `value` is 0. */
int moon_slot_table_set(struct moon_slot_table *table, uint32_t slot, uint32_t value);

#ifdef __cplusplus
}
#endif
#endif
