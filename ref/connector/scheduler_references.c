/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs get their ids, and hold blocks until every rank has reported them (0.28 on). */
#include "ref/connector/scheduler_internal.h"

#include <assert.h>
#include <string.h>

/* A list of blocks that grows to a size known before. `seen` tells which blocks it has; NULL when it may have a block
 * twice. Only membership is asked of it, so its order shows nowhere. */
struct block_list {
    struct moon_memory *memory;
    int64_t *blocks;
    size_t count, capacity;
    int64_t *seen;
    size_t seen_capacity; /* a power of two, at least twice `capacity` */
};

static int list_open(struct block_list *list, struct moon_memory *memory, size_t capacity, bool distinct) {
    *list = (struct block_list){.memory = memory, .capacity = capacity};
    if (capacity == 0)
        return 0;
    list->blocks = memory->resize(memory, NULL, 0, capacity * sizeof *list->blocks);
    if (!list->blocks)
        return MOON_ERR_MEMORY;
    if (!distinct)
        return 0;
    list->seen_capacity = 1;
    while (list->seen_capacity < 2 * capacity)
        list->seen_capacity *= 2;
    list->seen = memory->resize(memory, NULL, 0, list->seen_capacity * sizeof *list->seen);
    if (!list->seen) {
        memory->resize(memory, list->blocks, capacity * sizeof *list->blocks, 0);
        return MOON_ERR_MEMORY;
    }
    memset(list->seen, 0xFF, list->seen_capacity * sizeof *list->seen); /* -1 is no block */
    return 0;
}

/* True if the block was not there; it is then. */
static bool list_first(struct block_list *list, int64_t block) {
    size_t mask = list->seen_capacity - 1;
    size_t at = (size_t)((uint64_t)block * UINT64_C(0x9E3779B97F4A7C15) >> 32) & mask;
    while (list->seen[at] != -1) {
        if (list->seen[at] == block)
            return false;
        at = (at + 1) & mask;
    }
    list->seen[at] = block;
    return true;
}

static void list_add(struct block_list *list, int64_t block) {
    assert(list->count < list->capacity);
    if (!list->seen || list_first(list, block))
        list->blocks[list->count++] = block;
}

/* Gives back the scratch, and the blocks too when there are none. */
static void list_finish(struct block_list *list) {
    list->memory->resize(list->memory, list->seen, list->seen_capacity * sizeof *list->seen, 0);
    if (list->count == 0)
        list->memory->resize(list->memory, list->blocks, list->capacity * sizeof *list->blocks, 0);
}

/* All that the job may be read from, in the order of the release. */
static int blocks_of(const struct moon_connector *connector, const struct moon_job *job, struct moon_memory *memory,
                     struct block_list *list) {
    const struct moon_profile *profile = connector->profile;
    const struct moon_tables *tables = profile->references_needed && job->save_tokens == 0 ? NULL : job->tables;
    size_t capacity = job->boundary_count;
    for (size_t group = 0; tables && group < tables->group_count; group++)
        capacity += tables->groups[group].count;
    if (list_open(list, memory, capacity, profile->references_distinct))
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < job->boundary_count; i++)
        list_add(list, job->boundary[i].block);
    for (size_t group = 0; tables && group < tables->group_count; group++) {
        if (profile->references_distinct && connector->model->groups[group].spec.kind == MOON_SPEC_MAMBA)
            continue;
        const struct moon_block_table *table = &tables->groups[group];
        for (size_t i = 0; i < table->count; i++)
            if (table->blocks[i] != 0 || !profile->references_distinct)
                list_add(list, table->blocks[i]);
    }
    list_finish(list);
    return 0;
}

static int reserve_pin(struct moon_scheduler *scheduler) {
    struct moon_pin *pins = moon_memory_grow(scheduler->memory, scheduler->pins, &scheduler->pin_capacity,
                                             scheduler->pin_count + 1, sizeof *pins, 8);
    if (pins)
        scheduler->pins = pins;
    return pins ? 0 : MOON_ERR_MEMORY;
}

int moon_job_refer(struct moon_scheduler *scheduler, struct moon_job *job) {
    struct block_list list;
    job->id = scheduler->next_job_id;
    if (scheduler->connector->profile->job_references) {
        if (reserve_pin(scheduler) || blocks_of(scheduler->connector, job, scheduler->memory, &list))
            return MOON_ERR_MEMORY;
        if (list.count > 0) {
            scheduler->pins[scheduler->pin_count++] = (struct moon_pin){.id = job->id,
                                                                        .blocks = list.blocks,
                                                                        .count = list.count,
                                                                        .capacity = list.capacity,
                                                                        .ranks_left = scheduler->world_size};
            if (scheduler->blocks)
                scheduler->blocks->hold(scheduler->blocks, list.blocks, list.count);
        }
    }
    scheduler->next_job_id++;
    return 0;
}

static void pin_close(struct moon_scheduler *scheduler, const struct moon_pin *pin) {
    scheduler->memory->resize(scheduler->memory, pin->blocks, pin->capacity * sizeof *pin->blocks, 0);
}

/* Gives the blocks back, the last of the list first, so that a shared prefix is the last to be evicted. */
static void unpin(struct moon_scheduler *scheduler, size_t index) {
    struct moon_pin *pin = &scheduler->pins[index];
    for (size_t i = 0; i < pin->count / 2; i++) {
        int64_t block = pin->blocks[i];
        pin->blocks[i] = pin->blocks[pin->count - 1 - i];
        pin->blocks[pin->count - 1 - i] = block;
    }
    if (scheduler->blocks)
        scheduler->blocks->release(scheduler->blocks, pin->blocks, pin->count);
    pin_close(scheduler, pin);
    memmove(pin, pin + 1, (--scheduler->pin_count - index) * sizeof *pin);
}

int moon_scheduler_report(struct moon_scheduler *scheduler, uint64_t id, int64_t ranks, struct moon_error *error) {
    if (id >= scheduler->next_job_id || ranks < 1)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "%lld ranks reported job %llu, of which there are %llu",
                         (long long)ranks, (unsigned long long)id, (unsigned long long)scheduler->next_job_id);
    size_t low = 0, high = scheduler->pin_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scheduler->pins[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == scheduler->pin_count || scheduler->pins[low].id != id)
        return 0; /* it held no blocks, or all ranks have reported it */
    struct moon_pin *pin = &scheduler->pins[low];
    if (ranks > pin->ranks_left)
        return moon_refuse(error, "AssertionError", "store job %llu reported by too many ranks",
                           (unsigned long long)id);
    pin->ranks_left -= ranks;
    if (pin->ranks_left == 0)
        unpin(scheduler, low);
    return 0;
}

size_t moon_scheduler_unreleased(const struct moon_scheduler *scheduler) {
    return scheduler->pin_count;
}

void moon_pins_close(struct moon_scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->pin_count; i++)
        pin_close(scheduler, &scheduler->pins[i]);
    scheduler->memory->resize(scheduler->memory, scheduler->pins, scheduler->pin_capacity * sizeof *scheduler->pins, 0);
}
