/* SPDX-License-Identifier: Apache-2.0 */
/* Sender: which requests and jobs are live, how far each request is saved, and who waits for room in the store. */
#include "ref/connector/sender_internal.h"

#include <assert.h>

void moon_live_open(struct moon_sender_live *live, const struct moon_connector *connector, struct moon_memory *memory) {
    *live = (struct moon_sender_live){.connector = connector, .memory = memory, .pressure_number = 1};
    moon_ring_open(&live->ended, memory, sizeof(uint32_t));
    moon_ring_open(&live->finished, memory, sizeof(uint32_t));
}

void moon_live_close(struct moon_sender_live *live) {
    live->memory->resize(live->memory, live->requests, live->capacity * sizeof *live->requests, 0);
    moon_ring_close(&live->ended);
    moon_ring_close(&live->finished);
}

/* The record of a slot that was registered once; NULL for any other. */
static struct moon_sender_request *find(const struct moon_sender_live *live, uint32_t slot) {
    return slot < live->capacity ? &live->requests[slot] : NULL;
}

int moon_live_register(struct moon_sender_live *live, uint32_t slot, uint32_t *generation) {
    assert(slot < MOON_REQUEST_SLOTS_MAX);
    if (slot >= live->capacity) {
        struct moon_sender_request *grown =
            moon_memory_grow_zeroed(live->memory, live->requests, &live->capacity, (size_t)slot + 1, sizeof *grown, 16);
        if (!grown)
            return MOON_ERR_MEMORY;
        live->requests = grown;
    }
    struct moon_sender_request *request = &live->requests[slot];
    request->registered = true;
    request->job_count++;
    *generation = request->generation;
    return 0;
}

/* SAVE-003: after a preemption nothing of the request is left but jobs of an older generation. */
static void forget(struct moon_sender_request *request) {
    request->registered = request->ended = false;
    request->job_count = request->saved_tokens = 0;
    request->pressed = 0;
    request->generation++;
}

static struct moon_sender_request *registered(const struct moon_sender_live *live,
                                              const struct moon_sender_entry *entry) {
    struct moon_sender_request *request = find(live, entry->job->slot);
    bool by_job = live->connector->profile->retired_by_job;
    bool has = request && request->registered && (!by_job || request->generation == entry->generation);
    return has ? request : NULL;
}

bool moon_live_has(const struct moon_sender_live *live, const struct moon_sender_entry *entry) {
    const struct moon_sender_request *request = registered(live, entry);
    if (request && request->generation != entry->generation)
        moon_deviation_note(live->connector->notes, MOON_DEVIATION_STALE_JOB_RUNS);
    return request;
}

bool moon_live_pressed(const struct moon_sender_live *live, const struct moon_sender_entry *entry) {
    const struct moon_sender_request *request = find(live, entry->job->slot);
    return live->pressure && request && request->pressed == live->pressure_number;
}

void moon_live_press(struct moon_sender_live *live, const struct moon_sender_entry *entry) {
    bool by_job = live->connector->profile->retired_by_job;
    struct moon_sender_request *request = by_job ? registered(live, entry) : find(live, entry->job->slot);
    live->pressure = true;
    if (request)
        request->pressed = live->pressure_number;
}

void moon_live_release_pressure(struct moon_sender_live *live) {
    live->pressure = false;
    live->pressure_number++; /* no request has this number: all marks are lifted */
}

int64_t moon_live_saved(const struct moon_sender_live *live, const struct moon_sender_entry *entry) {
    const struct moon_sender_request *request = registered(live, entry);
    return request && live->connector->profile->resume_offset ? request->saved_tokens : 0;
}

void moon_live_set_saved(struct moon_sender_live *live, const struct moon_sender_entry *entry, int64_t tokens) {
    struct moon_sender_request *request = registered(live, entry);
    if (request)
        request->saved_tokens = tokens;
}

void moon_live_end(struct moon_sender_live *live, const struct moon_sender_entry *entry, bool raised) {
    struct moon_sender_request *request = registered(live, entry);
    if (raised && !live->connector->profile->raised_jobs_end)
        moon_deviation_note(live->connector->notes, MOON_DEVIATION_RAISED_JOB_KEPT);
    else if (request)
        request->job_count--;
}

/* SAVE-004: a request that has finished is forgotten as soon as none of its jobs is left. `slot` may be one of which
 * nothing is known. There is room in both rings. */
static void retire_finished(struct moon_sender_live *live, uint32_t slot) {
    struct moon_sender_request *request = find(live, slot);
    if (!request || !request->registered)
        return;
    if (request->job_count != 0) {
        request->ended = true;
        moon_ring_push(&live->ended, &slot);
        return;
    }
    if (!live->connector->profile->job_references)
        moon_ring_push(&live->finished, &slot);
    forget(request);
}

int moon_live_retire(struct moon_sender_live *live, const uint32_t *preempted, size_t preempted_count,
                     const uint32_t *finished, size_t finished_count) {
    size_t waiting = live->ended.count;
    if (moon_ring_reserve(&live->ended, finished_count) || moon_ring_reserve(&live->finished, waiting + finished_count))
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < preempted_count; i++)
        if (find(live, preempted[i]))
            forget(&live->requests[preempted[i]]);
    for (uint32_t slot = 0; waiting > 0 && moon_ring_take(&live->ended, &slot); waiting--)
        retire_finished(live, slot);
    for (size_t i = 0; i < finished_count; i++) {
        const struct moon_sender_request *request = find(live, finished[i]);
        if (!request || !request->ended) /* else it waits already */
            retire_finished(live, finished[i]);
    }
    return 0;
}
