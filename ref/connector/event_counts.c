/* SPDX-License-Identifier: Apache-2.0 */
/* Equal events of several workers: counted in a table, published when they are enough. */
#include "ref/connector/kv_events.h"

#include "ref/layout/replication.h"

#include <string.h>

enum { EMPTY = UINT32_MAX };

/* An event and how many workers told it. The event's arrays lie behind it in one piece of memory. */
struct counted {
    struct moon_kv_event event;
    int64_t count;
    size_t bytes;
};

/* counted: in the order first told. table: their numbers by hash, open addressing, a power of two, at most half full.
 *   workers       of the step in which counting began
 *   step_counts   the present step still adds workers */
struct moon_event_counts {
    const struct moon_connector *connector;
    struct moon_memory *memory;
    struct counted **counted;
    uint32_t count, capacity;
    uint32_t *table;
    uint32_t table_size;
    int64_t workers;
    bool step_counts;
};

int moon_event_counts_open(struct moon_event_counts **out, const struct moon_connector *connector,
                           struct moon_memory *memory, struct moon_error *error) {
    struct moon_event_counts *counts = memory->resize(memory, NULL, 0, sizeof *counts);
    *out = counts;
    if (!counts)
        return moon_fail(error, MOON_ERR_MEMORY, "events", "no memory");
    *counts = (struct moon_event_counts){.connector = connector, .memory = memory, .step_counts = true};
    return 0;
}

static void drop(struct moon_event_counts *counts, struct counted *counted) {
    counts->memory->resize(counts->memory, counted, counted->bytes, 0);
}

void moon_event_counts_close(struct moon_event_counts *counts) {
    if (!counts)
        return;
    struct moon_memory *memory = counts->memory;
    for (uint32_t i = 0; i < counts->count; i++)
        drop(counts, counts->counted[i]);
    memory->resize(memory, counts->counted, counts->capacity * sizeof *counts->counted, 0);
    memory->resize(memory, counts->table, counts->table_size * sizeof *counts->table, 0);
    memory->resize(memory, counts, sizeof *counts, 0);
}

static bool hashes_equal(const struct moon_event_hash *a, const struct moon_event_hash *b) {
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static bool events_equal(const struct moon_kv_event *a, const struct moon_kv_event *b) {
    return hashes_equal(&a->hash, &b->hash) && hashes_equal(&a->parent, &b->parent) && a->group == b->group &&
           a->block_tokens == b->block_tokens && a->tokens_known == b->tokens_known &&
           a->token_count == b->token_count &&
           (a->token_count == 0 || memcmp(a->token_ids, b->token_ids, a->token_count * sizeof *a->token_ids) == 0);
}

/* Block hashes are digests already: their last bytes spread well. */
static uint32_t place_of(const struct moon_event_counts *counts, const struct moon_kv_event *event) {
    uint32_t value = (uint32_t)event->group;
    for (size_t i = 0; i < event->hash.length && i < 4; i++)
        value = value << 8 ^ value >> 24 ^ event->hash.bytes[event->hash.length - 1 - i];
    return value & (counts->table_size - 1);
}

/* Where the event's number is in the table, or where it would be. */
static uint32_t *find(const struct moon_event_counts *counts, const struct moon_kv_event *event) {
    uint32_t place = place_of(counts, event);
    while (counts->table[place] != EMPTY && !events_equal(&counts->counted[counts->table[place]]->event, event))
        place = (place + 1) & (counts->table_size - 1);
    return &counts->table[place];
}

static void fill_table(struct moon_event_counts *counts) {
    memset(counts->table, 0xff, counts->table_size * sizeof *counts->table);
    for (uint32_t i = 0; i < counts->count; i++)
        *find(counts, &counts->counted[i]->event) = i;
}

/* Room for one more in the list and in the table. */
static bool reserve(struct moon_event_counts *counts) {
    size_t capacity = counts->capacity, table_size = counts->table_size;
    void *list = moon_memory_grow(counts->memory, counts->counted, &capacity, (size_t)counts->count + 1,
                                  sizeof *counts->counted, 32);
    if (!list)
        return false;
    counts->counted = list;
    counts->capacity = (uint32_t)capacity;
    size_t wanted = 2 * ((size_t)counts->count + 1);
    void *table = moon_memory_grow(counts->memory, counts->table, &table_size, wanted, sizeof *counts->table, 32);
    if (!table)
        return false;
    bool grown = table_size > counts->table_size;
    counts->table = table;
    counts->table_size = (uint32_t)table_size;
    if (grown)
        fill_table(counts);
    return true;
}

/* A copy of the event in one piece of memory, told by nobody yet. */
static struct counted *copy_event(struct moon_event_counts *counts, const struct moon_kv_event *event) {
    size_t token_bytes = event->token_count * sizeof *event->token_ids;
    size_t bytes = sizeof(struct counted) + token_bytes + event->hash.length + event->parent.length;
    struct counted *copy = counts->memory->resize(counts->memory, NULL, 0, bytes);
    if (!copy)
        return NULL;
    uint32_t *tokens = (uint32_t *)(copy + 1);
    uint8_t *hashes = (uint8_t *)tokens + token_bytes;
    *copy = (struct counted){.event = *event, .bytes = bytes};
    if (token_bytes > 0)
        memcpy(tokens, event->token_ids, token_bytes);
    memcpy(hashes, event->hash.bytes, event->hash.length);
    if (event->parent.length > 0)
        memcpy(hashes + event->hash.length, event->parent.bytes, event->parent.length);
    copy->event.token_ids = tokens;
    copy->event.hash.bytes = hashes;
    copy->event.parent.bytes = hashes + event->hash.length;
    return copy;
}

int moon_event_counts_worker(struct moon_event_counts *counts, const struct moon_kv_event *events, size_t count,
                             struct moon_error *error) {
    if (counts->step_counts && (count > 0 || !counts->connector->profile->events_of_all_workers))
        counts->workers++;
    for (size_t i = 0; i < count; i++) {
        if (!reserve(counts))
            return moon_fail(error, MOON_ERR_MEMORY, "events", "no memory for %zu events", count);
        uint32_t *number = find(counts, &events[i]);
        if (*number == EMPTY) {
            struct counted *copy = copy_event(counts, &events[i]);
            if (!copy)
                return moon_fail(error, MOON_ERR_MEMORY, "events", "no memory for %zu events", count);
            *number = counts->count;
            counts->counted[counts->count++] = copy;
        }
        counts->counted[*number]->count++;
    }
    return 0;
}

/* True if enough workers told the event. Notes where a release counts only events of all workers, and so loses one. */
static bool is_common(const struct moon_event_counts *counts, const struct counted *counted) {
    const struct moon_connector *connector = counts->connector;
    int64_t factor = moon_replication_factor(connector->profile, connector->model, counted->event.group);
    bool enough = counted->count * factor >= counts->workers;
    if (!connector->profile->events_of_all_workers)
        return enough;
    if (enough && counted->count != counts->workers)
        moon_deviation_note(connector->notes, MOON_DEVIATION_EVENTS_NEVER_COMMON);
    return counted->count == counts->workers;
}

size_t moon_event_counts_publish(struct moon_event_counts *counts,
                                 void (*publish)(void *context, const struct moon_kv_event *event), void *context) {
    bool drops = counts->connector->profile->events_of_all_workers;
    uint32_t kept = 0;
    size_t published = 0;
    for (uint32_t i = 0; i < counts->count; i++) {
        struct counted *counted = counts->counted[i];
        bool common = is_common(counts, counted);
        if (common)
            publish(context, &counted->event);
        published += common;
        if (common || drops)
            drop(counts, counted);
        else
            counts->counted[kept++] = counted;
    }
    uint32_t surplus = kept > MOON_EVENTS_KEPT_MAX ? kept - MOON_EVENTS_KEPT_MAX : 0;
    for (uint32_t i = 0; i < surplus; i++)
        drop(counts, counts->counted[i]);
    kept -= surplus;
    if (surplus > 0)
        memmove(counts->counted, counts->counted + surplus, kept * sizeof *counts->counted);
    counts->count = kept;
    counts->step_counts = kept == 0;
    if (kept == 0)
        counts->workers = 0;
    if (counts->table_size > 0)
        fill_table(counts);
    return published;
}
