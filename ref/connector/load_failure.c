/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of reports, and how a failed read enters them. */
#include "ref/connector/load_failure.h"

#include <assert.h>

void moon_ascending_open(struct moon_ascending *numbers, struct moon_memory *memory) {
    *numbers = (struct moon_ascending){.memory = memory};
}

void moon_ascending_close(struct moon_ascending *numbers) {
    struct moon_memory *memory = numbers->memory;
    memory->resize(memory, numbers->heap, numbers->capacity * sizeof *numbers->heap, 0);
    moon_ascending_open(numbers, memory);
}

int moon_ascending_reserve(struct moon_ascending *numbers, size_t more) {
    size_t wanted, bytes;
    if (__builtin_add_overflow(numbers->count, more, &wanted))
        return MOON_ERR_MEMORY;
    if (wanted <= numbers->capacity)
        return 0;
    if (__builtin_add_overflow(wanted, wanted / 2, &wanted) ||
        __builtin_mul_overflow(wanted, sizeof *numbers->heap, &bytes))
        return MOON_ERR_MEMORY;
    void *grown =
        numbers->memory->resize(numbers->memory, numbers->heap, numbers->capacity * sizeof *numbers->heap, bytes);
    if (!grown)
        return MOON_ERR_MEMORY;
    numbers->heap = grown;
    numbers->capacity = wanted;
    return 0;
}

static void swap(uint64_t *a, uint64_t *b) {
    uint64_t other = *a;
    *a = *b;
    *b = other;
}

void moon_ascending_add(struct moon_ascending *numbers, uint64_t number) {
    assert(numbers->count < numbers->capacity);
    size_t at = numbers->count++;
    numbers->heap[at] = number;
    for (; at > 0 && numbers->heap[(at - 1) / 2] > numbers->heap[at]; at = (at - 1) / 2)
        swap(&numbers->heap[(at - 1) / 2], &numbers->heap[at]);
}

/* Takes the smallest out; there is one. */
static uint64_t pop(struct moon_ascending *numbers) {
    uint64_t smallest = numbers->heap[0];
    numbers->heap[0] = numbers->heap[--numbers->count];
    for (size_t at = 0, child = 1; child < numbers->count; at = child, child = 2 * at + 1) {
        if (child + 1 < numbers->count && numbers->heap[child + 1] < numbers->heap[child])
            child++;
        if (numbers->heap[at] <= numbers->heap[child])
            break;
        swap(&numbers->heap[at], &numbers->heap[child]);
    }
    return smallest;
}

bool moon_ascending_take(struct moon_ascending *numbers, uint64_t *number) {
    if (numbers->count == 0)
        return false;
    *number = pop(numbers);
    while (numbers->count > 0 && numbers->heap[0] == *number)
        pop(numbers);
    return true;
}

void moon_load_failures_open(struct moon_load_failures *failures, const struct moon_connector *connector,
                             size_t engine_groups, struct moon_memory *memory) {
    *failures = (struct moon_load_failures){.connector = connector, .engine_groups = engine_groups};
    moon_ascending_open(&failures->blocks, memory);
    moon_ascending_open(&failures->requests, memory);
}

void moon_load_failures_close(struct moon_load_failures *failures) {
    moon_ascending_close(&failures->blocks);
    moon_ascending_close(&failures->requests);
}

/* True if failures are told as requests. */
static bool tells_requests(const struct moon_load_failures *failures) {
    return failures->engine_groups > 1 && failures->connector->profile->load_report == MOON_LOAD_BLOCKS_OR_REQUEST;
}

int moon_load_failures_reserve(struct moon_load_failures *failures, size_t keys) {
    return moon_ascending_reserve(tells_requests(failures) ? &failures->requests : &failures->blocks, keys);
}

bool moon_load_failed(const struct moon_connector *connector, int64_t result, uint64_t bytes) {
    if (result < 0)
        return true;
    if ((uint64_t)result >= bytes)
        return false;
    if (connector->profile->short_reads_pass)
        moon_deviation_note(connector->notes, MOON_DEVIATION_SHORT_READ_PASSES);
    return !connector->profile->short_reads_pass;
}

void moon_load_failures_add(struct moon_load_failures *failures, uint32_t slot, uint64_t block) {
    const struct moon_connector *connector = failures->connector;
    if (connector->profile->load_report == MOON_LOAD_LOGGED) {
        moon_deviation_note(connector->notes, MOON_DEVIATION_LOAD_ERRORS_LOGGED);
    } else if (tells_requests(failures)) {
        moon_ascending_add(&failures->requests, slot);
    } else {
        moon_ascending_add(&failures->blocks, block);
        if (failures->engine_groups > 1)
            moon_deviation_note(connector->notes, MOON_DEVIATION_BLOCKS_OF_GROUPS);
    }
}
