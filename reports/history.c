/* SPDX-License-Identifier: Apache-2.0 */
/* Histories: adding, reading, writing, and the digest that names a run (HIST-004, HIST-005). */
#include "reports/history.h"

#define XXH_STATIC_LINKING_ONLY /* the state's size */
#include <xxhash.h>

#include <stdio.h>

enum { RECORDS_FIRST = 256 };

void moon_history_open(struct moon_history *history, struct moon_memory *memory) {
    *history = (struct moon_history){.count = 0};
    moon_arena_open(&history->arena, memory);
}

void moon_history_close(struct moon_history *history) {
    struct moon_memory *memory = history->arena.memory;
    if (history->records)
        memory->resize(memory, history->records, history->capacity * sizeof *history->records, 0);
    history->records = NULL;
    history->count = history->capacity = 0;
    moon_arena_close(&history->arena);
}

/* A copy of `bytes`, or what an earlier record has that is equal. */
static bool keep(struct moon_history *history, struct moon_bytes *bytes, const struct moon_bytes *earlier) {
    if (earlier && moon_bytes_equal(*bytes, *earlier)) {
        *bytes = *earlier;
        return true;
    }
    bytes->data = moon_arena_copy(&history->arena, bytes->data, bytes->length);
    return bytes->data != NULL;
}

static bool keep_texts(struct moon_history *history, struct moon_record *record) {
    const struct moon_record *earlier = history->count > 0 ? &history->records[history->count - 1] : NULL;
    struct moon_bytes what = moon_bytes_of(record->what);
    bool kept = keep(history, &record->node, earlier ? &earlier->node : NULL) &&
                keep(history, &record->clock, earlier ? &earlier->clock : NULL) && keep(history, &what, NULL);
    record->what = what.data;
    if (record->has & MOON_RECORD_HAS_KEY)
        kept = kept && keep(history, &record->key, NULL);
    if (record->has & MOON_RECORD_HAS_TENANT)
        kept = kept && keep(history, &record->tenant, NULL);
    if (record->has & MOON_RECORD_HAS_CAUSE)
        kept = kept && keep(history, &record->cause, NULL);
    if (record->has & MOON_RECORD_HAS_EXTENT)
        kept = kept && keep(history, &record->extent.segment, NULL);
    return kept;
}

static struct moon_record *add_room(struct moon_history *history) {
    struct moon_record *grown = moon_memory_grow(history->arena.memory, history->records, &history->capacity,
                                                 history->count + 1, sizeof *grown, RECORDS_FIRST);
    if (!grown) {
        history->failed = true;
        return NULL;
    }
    history->records = grown;
    return &grown[history->count];
}

void moon_history_add(struct moon_history *history, const struct moon_record *record) {
    struct moon_record copy = *record, *room = add_room(history);
    if (!room)
        return;
    if (!keep_texts(history, &copy)) {
        history->failed = true;
        return;
    }
    *room = copy;
    history->count++;
}

/* ---- reading */

/* One boot of one node, and the n that must come next. */
struct log {
    struct log *next;
    struct moon_bytes node;
    uint32_t boot;
    uint64_t n;
};

static struct log *find_log(struct moon_arena *arena, struct log **logs, const struct moon_record *record) {
    struct log **at = logs;
    while (*at && ((*at)->boot != record->boot || !moon_bytes_equal((*at)->node, record->node)))
        at = &(*at)->next;
    struct log *log = *at;
    if (log) {
        *at = log->next; /* to the front: the next record is likely to be of it, too */
    } else {
        log = moon_arena_alloc(arena, sizeof *log);
        if (!log)
            return NULL;
        *log = (struct log){.node = record->node, .boot = record->boot};
    }
    log->next = *logs;
    *logs = log;
    return log;
}

/* "file:LINE" in front of a place in that line ("1:7 $.n"). */
static int place_in_file(struct moon_error *error, int status, const char *source, size_t line) {
    char place[MOON_ERROR_WHERE_BYTES];
    if (!error)
        return status;
    const char *rest = error->where;
    bool in_line = rest[0] == '1' && rest[1] == ':';
    snprintf(place, sizeof place, in_line ? "%.*s:%zu:%s" : "%.*s:%zu%s", MOON_ERROR_WHERE_BYTES / 2, source, line,
             rest + (in_line ? 2 : 0));
    snprintf(error->where, sizeof error->where, "%s", place);
    return status;
}

static int read_line(struct moon_history *history, struct log **logs, const char *line, size_t length,
                     struct moon_error *error) {
    struct moon_record *room = add_room(history);
    if (!room)
        return moon_fail(error, MOON_ERR_MEMORY, "", "no memory for a history");
    int status = moon_record_read_json(&history->arena, line, length, room, error);
    if (status)
        return status;
    struct log *log = find_log(&history->arena, logs, room);
    if (!log)
        return moon_fail(error, MOON_ERR_MEMORY, "", "no memory for a history");
    if (room->n != log->n)
        return moon_fail(error, MOON_ERR_SCHEMA, "1:1 $.n", "record %llu of this node and boot is missing: found %llu",
                         (unsigned long long)log->n, (unsigned long long)room->n);
    log->n++;
    history->count++;
    return 0;
}

int moon_history_read(struct moon_history *history, const char *source, const char *bytes, size_t length,
                      struct moon_error *error) {
    struct log *logs = NULL;
    size_t before = history->count, line = 1;
    for (size_t at = 0; at < length; line++) {
        const char *end = memchr(bytes + at, '\n', length - at);
        if (!end)
            break; /* cut by the node's death */
        size_t line_length = (size_t)(end - bytes) - at;
        int status = read_line(history, &logs, bytes + at, line_length, error);
        if (status) {
            history->count = before;
            history->failed = history->failed || status == MOON_ERR_MEMORY;
            return place_in_file(error, status, source, line);
        }
        at += line_length + 1;
    }
    return 0;
}

/* ---- writing */

uint64_t moon_history_digest(const struct moon_history *history, struct moon_memory *memory) {
    XXH3_state_t state;
    struct moon_text binary;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset(&state);
    moon_text_open(&binary, memory);
    for (size_t i = 0; i < history->count; i++) {
        moon_text_clear(&binary);
        moon_record_write_binary(&history->records[i], &binary);
        XXH3_64bits_update(&state, binary.data, binary.length);
    }
    uint64_t digest = binary.failed ? 0 : XXH3_64bits_digest(&state);
    moon_text_close(&binary);
    return digest;
}

void moon_history_write_json(const struct moon_history *history, struct moon_text *out) {
    for (size_t i = 0; i < history->count; i++)
        moon_record_write_json(&history->records[i], out);
}
