/* SPDX-License-Identifier: Apache-2.0 */
/* Check 2: after an acknowledged put, and before any legal removal, eviction or loss of its owner, no read misses. */
#include "conformance/checkers/checks_internal.h"
#include "conformance/checkers/finding_internal.h"
#include "conformance/checkers/search.h"

#include <stdlib.h>
#include <string.h>

/* A record that tells about a key. */
struct told {
    struct moon_bytes tenant, key;
    size_t at;
};

/* What the check walks over. by_key: what the master tells about keys, memory that was granted and sent PutEnds,
 * sorted; losses: what ended more than a key: faults, segments that went. told: the master tells what it does inside,
 * evictions among them. */
struct scene {
    struct moon_arena *arena;
    const struct moon_history *history;
    struct moon_order order;
    struct moon_operations operations;
    struct told *by_key;
    size_t *losses;
    size_t by_key_count, loss_count;
    bool told;
    struct moon_bytes master;
};

static int by_key(const void *left, const void *right) {
    const struct told *a = left, *b = right;
    int order = moon_bytes_compare(a->tenant, b->tenant);
    if (!order)
        order = moon_bytes_compare(a->key, b->key);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* The records about the key of `operation`: from *first on, this many. */
static size_t told_of(const struct scene *scene, const struct moon_operation *operation, size_t *first) {
    struct told wanted = {operation->tenant, operation->key, 0};
    size_t low = moon_lower_bound(scene->by_key, scene->by_key_count, sizeof wanted, &wanted, by_key);
    *first = low;
    while (low < scene->by_key_count && moon_bytes_equal(scene->by_key[low].key, operation->key) &&
           moon_bytes_equal(scene->by_key[low].tenant, operation->tenant))
        low++;
    return low - *first;
}

/* Neither certainly before the put began, nor certainly after `end`. */
static bool within(const struct moon_order *order, size_t at, const struct moon_operation *put, size_t end) {
    return !moon_order_before(order, at, put->invoke) && !moon_order_before(order, end, at);
}

/* The client of the put was seen to end it, or to be granted memory for it. */
static bool shows_writing(const struct moon_record *record, const struct moon_operation *put) {
    bool shows = record->kind == MOON_RECORD_SEND || moon_record_tells(record, "granted");
    return shows && (record->op == put->op || (put->parent && record->op == put->parent)) &&
           record->boot == put->boot && moon_bytes_equal(record->node, put->node);
}

/* An acknowledged put may have found the key there already, and stored nothing (its writer may never end). It stored if
 * the master tells so, or the client was seen to write, or nobody else ever put this key. *since: the record by which
 * the object was there, or was to be. */
static bool stored(const struct scene *scene, const struct moon_operation *put, const struct moon_operation *rows,
                   size_t count, const struct moon_operation *read, size_t *since) {
    size_t puts = 0, first, all = told_of(scene, put, &first);
    bool ended = false, written = false;
    *since = put->invoke;
    for (size_t i = first; i < first + all; i++) {
        size_t at = scene->by_key[i].at;
        const struct moon_record *record = &scene->history->records[at];
        bool ends = moon_record_tells(record, "put-end") && within(&scene->order, at, put, read->invoke);
        bool writes = !ended && !written && shows_writing(record, put);
        if (ends || writes)
            *since = at;
        ended |= ends;
        written |= writes;
    }
    for (size_t i = 0; i < count; i++)
        puts += moon_operation_is(&rows[i], "put");
    return ended || written || (!scene->told && puts == 1);
}

/* ---- excuses */

static bool is_removal(const struct moon_operation *operation) {
    return (moon_operation_is(operation, "remove") || moon_operation_is(operation, "remove_all")) &&
           operation->kind != MOON_RECORD_FAIL;
}

/* The removal may have been done between `since` and the read's end. One whose end is not known may yet be. */
static bool removal_within(const struct scene *scene, const struct moon_operation *removal, size_t since,
                           const struct moon_operation *read) {
    bool over = removal->kind == MOON_RECORD_OK && moon_order_before(&scene->order, (size_t)removal->end, since);
    return !over && !moon_order_before(&scene->order, (size_t)read->end, removal->invoke);
}

/* A client asked for the removal of the key, or of all. */
static bool removal_asked(const struct scene *scene, const struct moon_operation *rows, size_t count, size_t since,
                          const struct moon_operation *read) {
    size_t first, all = moon_operations_of(&scene->operations, moon_bytes_of("default"), moon_bytes_of(""), &first);
    for (size_t i = 0; i < count; i++)
        if (is_removal(&rows[i]) && removal_within(scene, &rows[i], since, read))
            return true;
    for (size_t i = first; i < first + all; i++)
        if (is_removal(&scene->operations.rows[i]) && removal_within(scene, &scene->operations.rows[i], since, read))
            return true;
    return false;
}

/* Of a master that tells all: between `since` and the read's end it evicted the key, lost its memory, or removed it for
 * a client that asked. What becomes of puts that have not ended is no reason: discard, revoke, a loss that tells no
 * lease. */
static bool told_end(const struct scene *scene, const struct moon_operation *put, size_t since,
                     const struct moon_operation *read, bool asked) {
    size_t first, told = told_of(scene, put, &first);
    for (size_t i = first; i < first + told; i++) {
        size_t at = scene->by_key[i].at;
        const struct moon_record *record = &scene->history->records[at];
        bool ends = moon_record_tells(record, "evict") ||
                    (moon_record_tells(record, "lose") && (record->has & MOON_RECORD_HAS_LEASE)) ||
                    (moon_record_tells(record, "remove") && asked);
        if (ends && !moon_order_before(&scene->order, at, since) &&
            !moon_order_before(&scene->order, (size_t)read->end, at))
            return true;
    }
    return false;
}

/* A fault, or a segment that went; of a master that tells all, only its own faults: it tells the rest key by key. */
static bool lost(const struct scene *scene, size_t at, const struct moon_operation *put,
                 const struct moon_operation *read) {
    const struct moon_record *record = &scene->history->records[at];
    bool counts = !scene->told || (record->kind == MOON_RECORD_FAULT && moon_bytes_equal(record->node, scene->master));
    return counts && within(&scene->order, at, put, (size_t)read->end);
}

static bool excused(const struct scene *scene, const struct moon_operation *put, const struct moon_operation *rows,
                    size_t count, size_t since, const struct moon_operation *read) {
    bool asked = removal_asked(scene, rows, count, since, read);
    if (scene->told ? told_end(scene, put, since, read, asked) : asked)
        return true;
    for (size_t i = 0; i < scene->loss_count; i++)
        if (lost(scene, scene->losses[i], put, read))
            return true;
    return false;
}

static bool is_read(const struct moon_operation *operation) {
    return operation->end != MOON_OPERATION_NO_END &&
           (moon_operation_is(operation, "get") || moon_operation_is(operation, "exist") ||
            moon_operation_is(operation, "size"));
}

static bool missed(const struct moon_operation *read) {
    if (moon_operation_is(read, "exist"))
        return read->kind == MOON_RECORD_OK && read->code == 0;
    return read->kind == MOON_RECORD_FAIL && (read->code == -704 || read->code == -703);
}

/* The put was acknowledged before the read began, and stored. */
static bool promises(const struct scene *scene, const struct moon_operation *put, const struct moon_operation *rows,
                     size_t count, const struct moon_operation *read, size_t *since) {
    return moon_operation_is(put, "put") && put->kind == MOON_RECORD_OK && put->code == 0 &&
           moon_order_before(&scene->order, (size_t)put->end, read->invoke) &&
           stored(scene, put, rows, count, read, since);
}

static void judge_miss(const struct scene *scene, const struct moon_operation *put, const struct moon_operation *read,
                       struct moon_finding *finding) {
    const char *done = moon_finding_operation(scene->arena, read);
    if (!scene->told) {
        moon_finding_unclear(
            finding, (size_t)read->end,
            moon_arena_format(scene->arena, "%s missed, and nothing tells whether it was evicted", done));
        return;
    }
    moon_finding_broken(finding, (size_t)read->end, done,
                        moon_arena_format(scene->arena, "found: %s was acknowledged before, and nothing removed it",
                                          moon_finding_operation(scene->arena, put)),
                        moon_arena_format(scene->arena, "a miss (%lld)", (long long)read->code));
}

/* Every put that promises must be found, or have an excuse of its own: an older one's says nothing of a younger. */
static void judge_read(const struct scene *scene, const struct moon_operation *rows, size_t count,
                       const struct moon_operation *read, struct moon_finding *finding) {
    bool promised = false;
    for (size_t i = 0; i < count; i++) {
        size_t since;
        if (!promises(scene, &rows[i], rows, count, read, &since))
            continue;
        promised = true;
        if (missed(read) && !excused(scene, &rows[i], rows, count, since, read)) {
            judge_miss(scene, &rows[i], read, finding);
            return;
        }
    }
    if (promised)
        moon_finding_held(finding);
}

/* ---- the master's own doing */

/* An eviction, or a removal that was not forced, is legal only when no lease is on the object. In the master's own log,
 * on its own clock. */
static void judge_end(const struct scene *scene, size_t at, struct moon_finding *finding) {
    const struct moon_record *end = &scene->history->records[at];
    struct moon_operation named = {.key = end->key, .tenant = moon_record_tenant(end)};
    size_t first, told = told_of(scene, &named, &first);
    for (size_t i = first + told; i-- > first;) {
        const struct moon_record *record = &scene->history->records[scene->by_key[i].at];
        if (scene->by_key[i].at >= at || !record->internal || !moon_bytes_equal(record->node, end->node) ||
            record->boot != end->boot)
            continue;
        if (moon_record_tells(record, "put-start"))
            break; /* an object of its own: older leases are not on it */
        if (moon_record_tells(record, "lease") && record->lease_ns > end->time_ns) {
            moon_finding_broken(
                finding, at,
                moon_arena_format(scene->arena, "%s of \"%s\"", end->what, moon_finding_bytes(scene->arena, end->key)),
                moon_arena_format(scene->arena, "not before its lease is over at %lld ns", (long long)record->lease_ns),
                moon_arena_format(scene->arena, "done at %lld ns", (long long)end->time_ns));
            return;
        }
    }
    moon_finding_held(finding);
}

/* The master says why it removed: by force, or for no reason that it tells. */
static bool respects_leases(const struct moon_record *record) {
    return record->internal && (moon_record_tells(record, "evict") ||
                                (moon_record_tells(record, "remove") && !(record->has & MOON_RECORD_HAS_CAUSE)));
}

static bool is_loss(const struct moon_record *record) {
    return record->kind == MOON_RECORD_FAULT || moon_record_tells(record, "unmount") ||
           moon_record_tells(record, "expire");
}

static bool is_about_key(const struct moon_record *record) {
    return (record->has & MOON_RECORD_HAS_KEY) &&
           ((record->kind == MOON_RECORD_STATE && record->internal) || moon_record_tells(record, "granted") ||
            (record->kind == MOON_RECORD_SEND && strcmp(record->what, "PutEnd") == 0));
}

/* Sorts the records that matter out of all. */
static int sort_records(struct scene *scene) {
    size_t count = scene->history->count;
    scene->by_key = moon_arena_array(scene->arena, count, sizeof *scene->by_key);
    scene->losses = moon_arena_array(scene->arena, count, sizeof *scene->losses);
    if (!scene->by_key || !scene->losses)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct moon_record *record = &scene->history->records[i];
        if (is_loss(record))
            scene->losses[scene->loss_count++] = i;
        if (is_about_key(record))
            scene->by_key[scene->by_key_count++] = (struct told){moon_record_tenant(record), record->key, i};
        if (!scene->told && record->internal && moon_record_tells(record, "put-end")) {
            scene->told = true;
            scene->master = record->node;
        }
    }
    if (scene->by_key_count)
        qsort(scene->by_key, scene->by_key_count, sizeof *scene->by_key, by_key);
    return MOON_OK;
}

int moon_check_durable(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding) {
    struct scene scene = {.arena = arena, .history = history};
    int status = moon_order_make(&scene.order, arena, history);
    if (!status)
        status = moon_operations_make(&scene.operations, arena, history);
    if (!status)
        status = sort_records(&scene);
    if (status)
        return status;
    for (size_t i = 0; i < scene.operations.count; i++) {
        const struct moon_operation *read = &scene.operations.rows[i];
        size_t first;
        if (!is_read(read))
            continue;
        size_t count = moon_operations_of(&scene.operations, read->tenant, read->key, &first);
        judge_read(&scene, scene.operations.rows + first, count, read, finding);
    }
    for (size_t i = 0; i < history->count; i++)
        if (respects_leases(&history->records[i]))
            judge_end(&scene, i, finding);
    return MOON_OK;
}
