/* SPDX-License-Identifier: Apache-2.0 */
/* Events of one rank, made from what its puts stored. */
#include "ref/connector/kv_events.h"

#include <assert.h>
#include <string.h>

enum { MOON_EVENT_NUMBER_BYTES = 8 };

void moon_kv_events_open(struct moon_kv_events *events, const struct moon_connector *connector, bool whole_hashes,
                         struct moon_memory *memory) {
    *events = (struct moon_kv_events){.connector = connector, .whole_hashes = whole_hashes};
    moon_arena_open(&events->arena, memory);
}

void moon_kv_events_clear(struct moon_kv_events *events) {
    moon_arena_close(&events->arena);
    events->count = 0;
}

void moon_kv_events_close(struct moon_kv_events *events) {
    struct moon_memory *memory = events->arena.memory;
    moon_kv_events_clear(events);
    memory->resize(memory, events->events, events->capacity * sizeof *events->events, 0);
    events->events = NULL;
    events->capacity = 0;
}

/* The told form of some hashes of the job, joined. False: memory was refused. */
static bool tell_hash(struct moon_kv_events *events, const struct moon_hashes *hashes, int64_t first, int64_t count,
                      struct moon_event_hash *out) {
    const uint8_t *bytes = hashes->bytes + (size_t)first * hashes->hash_bytes;
    size_t length = (size_t)count * hashes->hash_bytes;
    assert(first >= 0 && (size_t)(first + count) <= hashes->count);
    if (!events->whole_hashes && length > MOON_EVENT_NUMBER_BYTES) {
        bytes += length - MOON_EVENT_NUMBER_BYTES;
        length = MOON_EVENT_NUMBER_BYTES;
    }
    *out =
        (struct moon_event_hash){(const uint8_t *)moon_arena_copy(&events->arena, (const char *)bytes, length), length};
    return out->bytes != NULL;
}

/* Parent by release (EVENT-004). `from`: first event of this put. */
static bool tell_parent(struct moon_kv_events *events, const struct moon_job *job, const struct moon_chunk *chunk,
                        size_t from, struct moon_kv_event *event) {
    if (events->connector->profile->event_parent_of_chain)
        return chunk->start_tokens == 0 ||
               tell_hash(events, &job->hashes, chunk->start_tokens / events->connector->model->hash_block_tokens - 1, 1,
                         &event->parent);
    for (size_t i = events->count; i > from; i--) {
        if (events->events[i - 1].group == event->group) {
            event->parent = events->events[i - 1].hash;
            break;
        }
    }
    return true;
}

static bool tell_tokens(struct moon_kv_events *events, const struct moon_job *job, const struct moon_chunk *chunk,
                        struct moon_kv_event *event) {
    bool cut = events->connector->profile->event_ids_of_start;
    if (!job->token_ids)
        return true;
    if (cut && job->token_id_count < chunk->end_tokens)
        moon_deviation_note(events->connector->notes, MOON_DEVIATION_EVENT_IDS_CUT);
    if (cut && job->token_id_count == 0)
        return true;
    int64_t end = chunk->end_tokens < job->token_id_count ? chunk->end_tokens : job->token_id_count;
    size_t count = end > chunk->start_tokens ? (size_t)(end - chunk->start_tokens) : 0;
    uint32_t *ids = moon_arena_array(&events->arena, count, sizeof *ids);
    if (!ids)
        return false;
    if (count > 0)
        memcpy(ids, job->token_ids + chunk->start_tokens, count * sizeof *ids);
    event->token_ids = ids;
    event->token_count = count;
    event->tokens_known = true;
    return true;
}

static int64_t block_tokens(const struct moon_connector *connector, size_t group) {
    const struct moon_layout_model *model = connector->model;
    if (connector->profile->event_block_of_engine)
        return model->groups[0].block_tokens / (model->pcp * model->dcp);
    return model->groups[group].block_tokens;
}

static bool tell_block(struct moon_kv_events *events, const struct moon_job *job, const struct moon_stored_block *block,
                       size_t from) {
    struct moon_kv_event event = {.block_tokens = block_tokens(events->connector, block->group), .group = block->group};
    bool by_number = events->connector->profile->event_hash_by_number;
    int64_t first = by_number ? block->chunk.id : block->chunk.first_hash;
    if (by_number && (first != block->chunk.first_hash || block->chunk.hash_count != 1))
        moon_deviation_note(events->connector->notes, MOON_DEVIATION_EVENT_OF_OTHER_BLOCK);
    if (!tell_hash(events, &job->hashes, first, by_number ? 1 : block->chunk.hash_count, &event.hash) ||
        !tell_parent(events, job, &block->chunk, from, &event) || !tell_tokens(events, job, &block->chunk, &event))
        return false;
    events->events[events->count++] = event;
    return true;
}

int moon_kv_events_add(struct moon_kv_events *events, const struct moon_stored *stored, struct moon_error *error) {
    bool untested = events->connector->profile->events_before_put;
    size_t before = events->count;
    if (stored->count == 0)
        return 0;
    struct moon_kv_event *grown = moon_memory_grow(events->arena.memory, events->events, &events->capacity,
                                                   before + stored->count, sizeof *grown, 16);
    if (!grown)
        return moon_fail(error, MOON_ERR_MEMORY, "events", "no memory for %zu events", stored->count);
    events->events = grown;
    for (size_t i = 0; i < stored->count; i++) {
        bool lost = stored->raised || stored->blocks[i].failed;
        if (lost && !untested)
            continue;
        if (lost)
            moon_deviation_note(events->connector->notes, MOON_DEVIATION_EVENTS_OF_FAILED_PUTS);
        if (!tell_block(events, stored->job, &stored->blocks[i], before)) {
            events->count = before;
            return moon_fail(error, MOON_ERR_MEMORY, "events", "no memory for %zu events", stored->count);
        }
    }
    return 0;
}
