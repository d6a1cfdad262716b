/* SPDX-License-Identifier: Apache-2.0 */
/* Block tables of a request, shared by reference between its tracker and its jobs. */
#include "ref/connector/job.h"

#include <assert.h>
#include <string.h>

static size_t tables_bytes(size_t group_count) {
    return sizeof(struct moon_tables) + group_count * (sizeof(struct moon_block_table) + sizeof(size_t));
}

/* Makes room for `more` blocks in a group. */
static int reserve(struct moon_tables *tables, size_t group, size_t more) {
    struct moon_block_table *table = &tables->groups[group];
    size_t wanted, bytes;
    if (__builtin_add_overflow(table->count, more, &wanted))
        return MOON_ERR_MEMORY;
    if (wanted <= tables->capacities[group])
        return 0;
    /* half as much again, so that a decoding request seldom grows its table */
    if (__builtin_add_overflow(wanted, wanted / 2 + 4, &wanted) ||
        __builtin_mul_overflow(wanted, sizeof *table->blocks, &bytes))
        return MOON_ERR_MEMORY;
    int64_t *blocks = tables->memory->resize(tables->memory, (int64_t *)table->blocks,
                                             tables->capacities[group] * sizeof *blocks, bytes);
    if (!blocks)
        return MOON_ERR_MEMORY;
    table->blocks = blocks;
    tables->capacities[group] = wanted;
    return 0;
}

int moon_tables_append(struct moon_tables *tables, const struct moon_block_table *groups) {
    for (size_t group = 0; group < tables->group_count; group++)
        if (reserve(tables, group, groups[group].count))
            return MOON_ERR_MEMORY;
    for (size_t group = 0; group < tables->group_count; group++) {
        struct moon_block_table *table = &tables->groups[group];
        if (groups[group].count > 0)
            memcpy((int64_t *)table->blocks + table->count, groups[group].blocks,
                   groups[group].count * sizeof *table->blocks);
        table->count += groups[group].count;
    }
    return 0;
}

int moon_tables_create(struct moon_memory *memory, const struct moon_block_table *groups, size_t group_count,
                       struct moon_tables **out) {
    struct moon_tables *tables = memory->resize(memory, NULL, 0, tables_bytes(group_count));
    if (!tables)
        return MOON_ERR_MEMORY;
    memset(tables, 0, tables_bytes(group_count));
    tables->memory = memory;
    tables->references = 1;
    tables->group_count = group_count;
    tables->groups = (struct moon_block_table *)(tables + 1);
    tables->capacities = (size_t *)(tables->groups + group_count);
    if (groups && moon_tables_append(tables, groups)) {
        moon_tables_release(tables);
        return MOON_ERR_MEMORY;
    }
    *out = tables;
    return 0;
}

struct moon_tables *moon_tables_hold(struct moon_tables *tables) {
    tables->references++;
    return tables;
}

void moon_tables_release(struct moon_tables *tables) {
    if (!tables)
        return;
    assert(tables->references > 0);
    if (--tables->references > 0)
        return;
    struct moon_memory *memory = tables->memory;
    for (size_t group = 0; group < tables->group_count; group++)
        memory->resize(memory, (int64_t *)tables->groups[group].blocks, tables->capacities[group] * sizeof(int64_t), 0);
    memory->resize(memory, tables, tables_bytes(tables->group_count), 0);
}
