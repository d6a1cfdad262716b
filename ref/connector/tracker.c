/* SPDX-License-Identifier: Apache-2.0 */
/* Trackers of requests by slot, and the order of the unfinished ones. */
#include "ref/connector/scheduler_internal.h"

#include <assert.h>

struct moon_tracker *moon_tracker_find(struct moon_scheduler *scheduler, uint32_t slot) {
    return slot < scheduler->slot_capacity ? &scheduler->trackers[slot] : NULL;
}

int moon_tracker_reach(struct moon_scheduler *scheduler, uint32_t slot, struct moon_error *error) {
    if (slot >= MOON_REQUEST_SLOTS_MAX)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "slot %u is not below %d", (unsigned)slot,
                         MOON_REQUEST_SLOTS_MAX);
    if (slot < scheduler->slot_capacity)
        return 0;
    struct moon_tracker *trackers = moon_memory_grow_zeroed(
        scheduler->memory, scheduler->trackers, &scheduler->slot_capacity, (size_t)slot + 1, sizeof *trackers, 16);
    if (!trackers)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    scheduler->trackers = trackers;
    return 0;
}

void moon_tracker_enter(struct moon_scheduler *scheduler, const struct moon_request *request,
                        struct moon_tables *waiting) {
    uint32_t slot = request->slot;
    struct moon_tracker *tracker = &scheduler->trackers[slot];
    moon_tables_release(tracker->waiting);
    tracker->waiting = waiting;
    if (!tracker->request) {
        tracker->previous = scheduler->newest;
        tracker->next = MOON_SLOT_NONE;
        if (scheduler->newest == MOON_SLOT_NONE)
            scheduler->oldest = slot;
        else
            scheduler->trackers[scheduler->newest].next = slot;
        scheduler->newest = slot;
    }
    tracker->request = request;
}

void moon_tracker_leave(struct moon_scheduler *scheduler, uint32_t slot) {
    struct moon_tracker *tracker = &scheduler->trackers[slot];
    if (!tracker->request)
        return;
    if (tracker->previous == MOON_SLOT_NONE)
        scheduler->oldest = tracker->next;
    else
        scheduler->trackers[tracker->previous].next = tracker->next;
    if (tracker->next == MOON_SLOT_NONE)
        scheduler->newest = tracker->previous;
    else
        scheduler->trackers[tracker->next].previous = tracker->previous;
    moon_tables_release(tracker->waiting);
    tracker->waiting = NULL;
    tracker->request = NULL;
}

void moon_tracker_drop_load(struct moon_scheduler *scheduler, struct moon_tracker *tracker) {
    if (tracker->load_boundaries)
        scheduler->memory->resize(scheduler->memory, tracker->load_boundaries,
                                  scheduler->connector->model->group_count * sizeof(int64_t), 0);
    tracker->load_boundaries = NULL;
    tracker->load = tracker->can_load = false;
}

void moon_tracker_reset(struct moon_tracker *tracker, bool tracked) {
    moon_tables_release(tracker->tables);
    tracker->tables = NULL;
    tracker->tracked_tokens = tracker->saved_tokens = tracker->prefill_end_tokens = tracker->told_tokens = 0;
    tracker->tail_sent = tracker->handed_off = false;
    tracker->tracked = tracked;
    tracker->no_table = true;
}

void moon_tracker_mark(struct moon_tracker *tracker, uint64_t step, const struct moon_block_table *table) {
    tracker->mark = step;
    tracker->table = table;
    tracker->job = NULL;
    tracker->tail_due = false;
}

void moon_trackers_close(struct moon_scheduler *scheduler) {
    for (size_t slot = 0; slot < scheduler->slot_capacity; slot++) {
        struct moon_tracker *tracker = &scheduler->trackers[slot];
        moon_tables_release(tracker->tables);
        moon_tables_release(tracker->waiting);
        moon_tracker_drop_load(scheduler, tracker);
    }
    scheduler->memory->resize(scheduler->memory, scheduler->trackers,
                              scheduler->slot_capacity * sizeof *scheduler->trackers, 0);
}
