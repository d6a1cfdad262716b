/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the RDMA engine: jobs cut into slices, slices posted to queue pairs, completions counted. */
#include "ref/transfer/rdma_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- the end of jobs */

static void end_job(struct moon_rdma *rdma, struct moon_rdma_job *job, int code) {
    job->code = code;
    job->endpoint = NULL;
    moon_list_move(&rdma->ended, &job->link);
}

void moon_rdma_work_end(struct moon_rdma_job *job, int code) {
    end_job(job->endpoint->rdma, job, code);
}

void moon_rdma_work_settle(struct moon_rdma *rdma) {
    while (!moon_list_empty(&rdma->ended)) {
        struct moon_rdma_job *job = moon_rdma_job_of(rdma->ended.next);
        moon_list_remove(&job->link);
        job->done(job, job->code);
    }
}

/* ---- slices (RDMA-020) */

static size_t slice_length(size_t rest) {
    return rest <= MOON_RDMA_SLICE_BYTES + MOON_RDMA_FRAGMENT_BYTES ? rest : MOON_RDMA_SLICE_BYTES;
}

static size_t slice_count(size_t length) {
    const size_t last_max = MOON_RDMA_SLICE_BYTES + MOON_RDMA_FRAGMENT_BYTES;
    if (length <= last_max)
        return length > 0;
    return (length - last_max + MOON_RDMA_SLICE_BYTES - 1) / MOON_RDMA_SLICE_BYTES + 1;
}

/* Passes over pieces that have nothing left. */
static void skip_empty(const struct moon_rdma_job *job, struct moon_rdma_cursor *cursor) {
    while (cursor->piece < job->piece_count && cursor->offset == job->pieces[cursor->piece].length) {
        cursor->piece++;
        cursor->offset = 0;
    }
}

static void advance(const struct moon_rdma_job *job, struct moon_rdma_cursor *cursor, size_t length) {
    cursor->offset += length;
    cursor->remote += length;
    cursor->slice++;
    skip_empty(job, cursor);
}

/* Sets the cursor of each queue pair to its share: halves, each in order (RDMA-022). */
static void share_out(struct moon_rdma_job *job) {
    struct moon_rdma_cursor cursor = {.remote = job->remote};
    skip_empty(job, &cursor);
    for (size_t i = 0; i < MOON_RDMA_QUEUE_PAIRS; i++) {
        job->cursors[i] = cursor;
        job->cursors[i].end = job->unfinished * (i + 1) / MOON_RDMA_QUEUE_PAIRS;
        while (cursor.slice < job->cursors[i].end)
            advance(job, &cursor, slice_length(job->pieces[cursor.piece].length - cursor.offset));
    }
}

/* The own region that a piece of memory lies in, NULL if there is none. */
static const struct moon_region *own_region(const struct moon_regions *regions, const uint8_t *memory, size_t length) {
    for (size_t i = 0; i < regions->count; i++) {
        const struct moon_region *region = &regions->rows[i];
        uintptr_t first = (uintptr_t)region->memory, wanted = (uintptr_t)memory;
        if (wanted >= first && length <= region->length && wanted - first <= region->length - length)
            return region;
    }
    return NULL;
}

/* Bytes of a job; false if they wrap, or lie in no registered memory. */
static bool measure(const struct moon_rdma *rdma, struct moon_rdma_job *job, size_t *bytes) {
    *bytes = 0;
    job->unfinished = 0;
    for (size_t i = 0; i < job->piece_count; i++) {
        const struct moon_piece *piece = &job->pieces[i];
        if (piece->length == 0)
            continue;
        if (__builtin_add_overflow(*bytes, piece->length, bytes) ||
            !own_region(rdma->settings.regions, piece->data, piece->length))
            return false;
        job->unfinished += slice_count(piece->length);
    }
    return true;
}

/* ---- posting */

static bool post_slice(struct moon_rdma_endpoint *endpoint, struct moon_rdma_job *job, unsigned queue_pair) {
    struct moon_rdma *rdma = endpoint->rdma;
    struct moon_verbs *verbs = rdma->settings.verbs;
    struct moon_rdma_cursor *cursor = &job->cursors[queue_pair];
    const struct moon_piece *piece = &job->pieces[cursor->piece];
    size_t length = slice_length(piece->length - cursor->offset);
    uint8_t *memory = (uint8_t *)piece->data + cursor->offset;
    const struct moon_region *region = own_region(rdma->settings.regions, memory, length);
    struct moon_rdma_slot *slot = &rdma->slots[rdma->slot_free];
    job->started = true; /* so that a refusal fails it */
    if (!region)
        return false;
    const struct moon_verbs_work work = {.id = (uint64_t)slot->round << 32 | rdma->slot_free,
                                         .write = job->write,
                                         .lkey = region->lkey,
                                         .rkey = job->rkey,
                                         .local = region->address + (uint64_t)(memory - region->memory),
                                         .remote = cursor->remote,
                                         .length = (uint32_t)length};
    if (verbs->post(verbs, endpoint->numbers[queue_pair], &work))
        return false;
    rdma->slot_free = slot->next_free;
    slot->job = job;
    slot->queue_pair = queue_pair;
    endpoint->flying[queue_pair]++;
    advance(job, cursor, length);
    return true;
}

static void free_slot(struct moon_rdma *rdma, struct moon_rdma_slot *slot) {
    slot->job->endpoint->flying[slot->queue_pair]--;
    slot->job = NULL;
    slot->round++;
    slot->next_free = rdma->slot_free;
    rdma->slot_free = (uint32_t)(slot - rdma->slots);
}

/* Posts for one queue pair until there is nothing to post or no room. False: a post was refused. */
static bool pump_pair(struct moon_rdma_endpoint *endpoint, unsigned queue_pair) {
    const struct moon_rdma *rdma = endpoint->rdma;
    for (struct moon_list *link = endpoint->waiting.next; link != &endpoint->waiting; link = link->next) {
        struct moon_rdma_job *job = moon_rdma_job_of(link);
        while (job->cursors[queue_pair].slice < job->cursors[queue_pair].end) {
            if (endpoint->flying[queue_pair] == MOON_RDMA_DEPTH || rdma->slot_free == rdma->slot_count)
                return true;
            if (!post_slice(endpoint, job, queue_pair))
                return false;
        }
    }
    return true;
}

static bool all_posted(const struct moon_rdma_job *job) {
    for (unsigned i = 0; i < MOON_RDMA_QUEUE_PAIRS; i++)
        if (job->cursors[i].slice < job->cursors[i].end)
            return false;
    return true;
}

void moon_rdma_work_pump(struct moon_rdma_endpoint *endpoint) {
    if (!moon_rdma_endpoint_usable(endpoint))
        return;
    for (unsigned i = 0; i < MOON_RDMA_QUEUE_PAIRS; i++)
        if (!pump_pair(endpoint, i)) {
            moon_rdma_endpoint_break(endpoint);
            moon_rdma_endpoint_want(endpoint);
            return;
        }
    for (struct moon_list *link = endpoint->waiting.next, *next; link != &endpoint->waiting; link = next) {
        next = link->next;
        if (all_posted(moon_rdma_job_of(link)))
            moon_list_move(&endpoint->posted, link);
    }
}

/* All endpoints, `last` at the end: whoever just had a turn has the next one last. */
static void pump_all(struct moon_rdma *rdma, struct moon_rdma_endpoint *last) {
    struct moon_list *link = &last->link;
    do {
        link = link->next;
        if (link != &rdma->endpoints)
            moon_rdma_work_pump(moon_rdma_endpoint_of(link));
    } while (link != &last->link);
}

void moon_rdma_work_forget(struct moon_rdma_endpoint *endpoint) {
    struct moon_rdma *rdma = endpoint->rdma;
    for (uint32_t i = 0; i < rdma->slot_count; i++)
        if (rdma->slots[i].job && rdma->slots[i].job->endpoint == endpoint)
            free_slot(rdma, &rdma->slots[i]);
}

void moon_rdma_work_completed(struct moon_verbs_user *user, uint32_t qp_num, uint64_t id, int status) {
    struct moon_rdma *rdma = MOON_HOLDER(user, struct moon_rdma, user);
    struct moon_rdma_slot *slot = (uint32_t)id < rdma->slot_count ? &rdma->slots[(uint32_t)id] : NULL;
    if (!slot || !slot->job || slot->round != id >> 32)
        return; /* of a queue pair that is gone */
    struct moon_rdma_job *job = slot->job;
    struct moon_rdma_endpoint *endpoint = job->endpoint;
    assert(endpoint->numbers[slot->queue_pair] == qp_num);
    bool full = rdma->slot_free == rdma->slot_count;
    free_slot(rdma, slot);
    endpoint->progress_ns = rdma->environment->now_ns;
    if (status) {
        moon_rdma_endpoint_break(endpoint);
        moon_rdma_endpoint_want(endpoint);
    } else if (--job->unfinished == 0) {
        moon_rdma_work_end(job, MOON_STORE_OK);
    }
    if (full)
        pump_all(rdma, endpoint);
    else
        moon_rdma_work_pump(endpoint);
    moon_rdma_work_settle(rdma);
}

/* ---- the asker's side */

/* The endpoint that reaches the job's bytes, found or made; NULL without code: no memory. */
static struct moon_rdma_endpoint *choose_endpoint(struct moon_rdma *rdma, struct moon_rdma_job *job, size_t bytes,
                                                  const struct moon_rdma_descriptor *descriptor, int *code) {
    char path[MOON_RDMA_PATH_BYTES + 1]; /* one more, to notice that it was cut */
    size_t chosen = 0;
    *code = MOON_STORE_TRANSFER_FAIL;
    if (!moon_rdma_reach(descriptor, job->remote, bytes, &chosen, &job->rkey))
        return NULL;
    const struct moon_rdma_device *device = &descriptor->devices[chosen];
    snprintf(path, sizeof path, "%s@%s", descriptor->name, device->name);
    if (!moon_rdma_path_fits(path))
        return NULL;
    *code = MOON_STORE_OK;
    struct moon_rdma_endpoint *endpoint = moon_rdma_endpoint_find(rdma, path);
    if (!endpoint)
        endpoint = moon_rdma_endpoint_add(rdma, path);
    if (endpoint) {
        memcpy(endpoint->gid, device->gid, sizeof endpoint->gid);
        endpoint->lid = device->lid;
    }
    return endpoint;
}

int moon_rdma_submit(struct moon_rdma *rdma, struct moon_rdma_job *job, const struct moon_rdma_descriptor *descriptor) {
    size_t bytes = 0;
    int code = MOON_STORE_OK;
    job->link = (struct moon_list){NULL, NULL};
    job->endpoint = NULL;
    job->started = false;
    bool measured = measure(rdma, job, &bytes);
    if (!measured || bytes == 0) {
        end_job(rdma, job, measured ? MOON_STORE_OK : MOON_STORE_TRANSFER_FAIL);
        return MOON_OK;
    }
    struct moon_rdma_endpoint *endpoint = choose_endpoint(rdma, job, bytes, descriptor, &code);
    if (!endpoint) {
        if (code)
            end_job(rdma, job, code);
        return code ? MOON_OK : MOON_ERR_MEMORY;
    }
    share_out(job);
    job->endpoint = endpoint;
    if (moon_list_empty(&endpoint->waiting) && moon_list_empty(&endpoint->posted))
        endpoint->progress_ns = rdma->environment->now_ns;
    moon_list_add(&endpoint->waiting, &job->link);
    moon_rdma_endpoint_want(endpoint);
    moon_rdma_work_pump(endpoint);
    return MOON_OK;
}

void moon_rdma_cancel(struct moon_rdma_job *job) {
    struct moon_rdma_endpoint *endpoint = job->endpoint;
    if (endpoint && job->started) {
        moon_rdma_endpoint_break(endpoint); /* which ends it, too */
        moon_rdma_endpoint_want(endpoint);
    }
    moon_list_leave(&job->link);
}
