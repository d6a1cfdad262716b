/* SPDX-License-Identifier: Apache-2.0 */
/* The RDMA engine as a whole: opening, closing, time, and the own descriptor. */
#include "ref/transfer/rdma_internal.h"

#include "ref/base/number.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char location[] = "*"; /* of all buffers: this engine does not know NUMA nodes */
static const char matrix_location[] = "cpu:0";

struct moon_rdma *moon_rdma_open(struct moon_environment *environment, const struct moon_rdma_settings *settings) {
    struct moon_memory *memory = environment->memory;
    struct moon_rdma *rdma = memory->resize(memory, NULL, 0, sizeof *rdma);
    if (!rdma)
        return NULL;
    *rdma = (struct moon_rdma){.environment = environment,
                               .settings = *settings,
                               .user = {moon_rdma_work_completed},
                               .slot_count = settings->verbs->work_max};
    assert(rdma->slot_count >= 1 && strlen(settings->name) < sizeof rdma->name);
    snprintf(rdma->name, sizeof rdma->name, "%s", settings->name);
    snprintf(rdma->path, sizeof rdma->path, "%s@%s", settings->name, settings->verbs->name);
    rdma->slots = memory->resize(memory, NULL, 0, rdma->slot_count * sizeof *rdma->slots);
    if (!rdma->slots) {
        memory->resize(memory, rdma, sizeof *rdma, 0);
        return NULL;
    }
    for (uint32_t i = 0; i < rdma->slot_count; i++)
        rdma->slots[i] = (struct moon_rdma_slot){.next_free = i + 1};
    moon_list_open(&rdma->endpoints);
    moon_list_open(&rdma->ended);
    settings->verbs->user = &rdma->user;
    return rdma;
}

void moon_rdma_close(struct moon_rdma *rdma) {
    if (!rdma)
        return;
    struct moon_memory *memory = rdma->environment->memory;
    while (!moon_list_empty(&rdma->endpoints))
        moon_rdma_endpoint_remove(moon_rdma_endpoint_of(rdma->endpoints.next));
    rdma->settings.verbs->user = NULL;
    memory->resize(memory, rdma->slots, rdma->slot_count * sizeof *rdma->slots, 0);
    memory->resize(memory, rdma, sizeof *rdma, 0);
}

moon_ns moon_rdma_deadline(const struct moon_rdma *rdma) {
    moon_ns deadline = moon_list_empty(&rdma->ended) ? MOON_NS_NEVER : rdma->environment->now_ns;
    for (struct moon_list *link = rdma->endpoints.next; link != &rdma->endpoints; link = link->next)
        deadline = moon_smaller(deadline, moon_rdma_endpoint_deadline(moon_rdma_endpoint_of(link)));
    return deadline;
}

void moon_rdma_tick(struct moon_rdma *rdma) {
    for (struct moon_list *link = rdma->endpoints.next; link != &rdma->endpoints; link = link->next)
        moon_rdma_endpoint_tick(moon_rdma_endpoint_of(link));
    moon_rdma_work_settle(rdma);
}

void moon_rdma_describe(const struct moon_rdma *rdma, struct moon_arena *arena, const char *timestamp,
                        struct moon_text *out) {
    const struct moon_regions *regions = rdma->settings.regions;
    const struct moon_verbs *verbs = rdma->settings.verbs;
    struct moon_rdma_buffer *buffers = moon_arena_array(arena, regions->count, sizeof *buffers);
    if (!buffers) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < regions->count; i++) {
        const struct moon_region *region = &regions->rows[i];
        buffers[i] = (struct moon_rdma_buffer){.location = location,
                                               .address = region->address,
                                               .length = region->length,
                                               .lkeys = &region->lkey,
                                               .rkeys = region->remote ? &region->rkey : NULL};
    }
    struct moon_rdma_device device = {.name = verbs->name, .lid = verbs->lid};
    memcpy(device.gid, verbs->gid, sizeof device.gid);
    const size_t devices[] = {0};
    const struct moon_rdma_priority priority = {matrix_location, devices, 1, 0};
    const struct moon_rdma_descriptor descriptor = {.name = rdma->name,
                                                    .timestamp = timestamp,
                                                    .devices = &device,
                                                    .device_count = 1,
                                                    .buffers = buffers,
                                                    .buffer_count = regions->count,
                                                    .priorities = &priority,
                                                    .priority_count = 1};
    moon_rdma_write_descriptor(arena, &descriptor, out);
}
