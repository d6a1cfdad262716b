/* SPDX-License-Identifier: Apache-2.0 */
/* One small number for each request slot; 0 for those that were never set. */
#include "ref/engine/slot_table.h"

#include "ref/base/error.h"

void moon_slot_table_open(struct moon_slot_table *table, struct moon_memory *memory) {
    *table = (struct moon_slot_table){.memory = memory};
}

void moon_slot_table_close(struct moon_slot_table *table) {
    if (table->values)
        table->memory->resize(table->memory, table->values, table->capacity * sizeof *table->values, 0);
    table->values = NULL;
    table->capacity = 0;
}

uint32_t moon_slot_table_get(const struct moon_slot_table *table, uint32_t slot) {
    return slot < table->capacity ? table->values[slot] : 0;
}

int moon_slot_table_set(struct moon_slot_table *table, uint32_t slot, uint32_t value) {
    if (slot >= table->capacity) {
        if (value == 0)
            return 0;
        uint32_t *values = moon_memory_grow_zeroed(table->memory, table->values, &table->capacity, (size_t)slot + 1,
                                                   sizeof *values, 16);
        if (!values)
            return MOON_ERR_MEMORY;
        table->values = values;
    }
    table->values[slot] = value;
    return 0;
}
