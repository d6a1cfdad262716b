/* SPDX-License-Identifier: Apache-2.0 */
/* Check 2: after an acknowledged put, and before any legal removal, eviction or loss of its owner, no read misses. */
#include "conformance/checkers/checks_internal.h"
#include "conformance/checkers/finding_internal.h"

#include <stdlib.h>
#include <string.h>

/* A record that tells about a key. */
struct told {
    struct moon_bytes tenant, key;
    size_t at;
};

/* What the check walks over. by_key: what the master tells about keys, and sent PutEnds, sorted; losses: what ended
 * more than a key: faults, segments that went. told: the master tells what it does inside, evictions among them. */
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

static struct moon_bytes tenant_of(const struct moon_record *record) {
    return (record->has & MOON_RECORD_HAS_TENANT) && record->tenant.length ? record->tenant : moon_bytes_of("default");
}

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
    size_t low = 0, high = scene->by_key_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_key(&scene->by_key[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
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

static bool is_put_end_of(const struct moon_record *record, const struct moon_operation *put) {
    return record->kind == MOON_RECORD_SEND && record->op == put->op && record->boot == put->boot &&
           moon_bytes_equal(record->node, put->node);
}

/* An acknowledged put may have found the key there already, and stored nothing (its writer may never end). It stored if
 * the master tells so, or the client was seen to end it, or nobody else ever put this key. */
static bool stored(const struct scene *scene, const struct moon_operation *put, const struct moon_operation *rows,
                   size_t count) {
    size_t puts = 0, first, told = told_of(scene, put, &first);
    for (size_t i = first; i < first + told; i++) {
        size_t at = scene->by_key[i].at;
        const struct moon_record *record = &scene->history->records[at];
        if (scene->told ? moon_record_tells(record, "put-end") && within(&scene->order, at, put, (size_t)put->end)
                        : is_put_end_of(record, put))
            return true;
    }
    for (size_t i = 0; i < count; i++)
        puts += moon_operation_is(&rows[i], "put");
    return !scene->told && puts == 1;
}

/* The segment that a record tells about held a replica of the key. */
static bool held_by(const struct scene *scene, const struct moon_record *loss, const struct moon_operation *put) {
    size_t first, told = told_of(scene, put, &first);
    if (!(loss->has & MOON_RECORD_HAS_EXTENT))
        return true;
    for (size_t i = first; i < first + told; i++) {
        const struct moon_record *record = &scene->history->records[scene->by_key[i].at];
        if (moon_record_tells(record, "put-start") && (record->has & MOON_RECORD_HAS_EXTENT) &&
            moon_bytes_equal(record->extent.segment, loss->extent.segment))
            return true;
    }
    return false;
}

/* A segment that went, or a fault: of the master, if it tells what it does, else of anybody. */
static bool lost(const struct scene *scene, const struct moon_record *record, const struct moon_operation *put) {
    if (record->kind == MOON_RECORD_FAULT)
        return !scene->told || moon_bytes_equal(record->node, scene->master);
    return held_by(scene, record, put);
}

/* What the master tells that ends a key's life. */
static bool ends_key(const struct moon_record *record) {
    static const char *const ends[] = {"evict", "remove", "discard", "revoke", "lose"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (moon_record_tells(record, ends[i]))
            return true;
    return false;
}

static bool is_removal(const struct moon_operation *operation) {
    return (moon_operation_is(operation, "remove") || moon_operation_is(operation, "remove_all")) &&
           operation->kind != MOON_RECORD_FAIL;
}

static bool removal_within(const struct scene *scene, const struct moon_operation *removal,
                           const struct moon_operation *put, const struct moon_operation *read) {
    bool over =
        removal->end != MOON_OPERATION_NO_END && moon_order_before(&scene->order, (size_t)removal->end, put->invoke);
    return !over && !moon_order_before(&scene->order, (size_t)read->end, removal->invoke);
}

static bool excused(const struct scene *scene, const struct moon_operation *put, const struct moon_operation *rows,
                    size_t count, const struct moon_operation *read) {
    size_t first, all = moon_operations_of(&scene->operations, moon_bytes_of("default"), moon_bytes_of(""), &first);
    for (size_t i = 0; i < count; i++)
        if (is_removal(&rows[i]) && removal_within(scene, &rows[i], put, read))
            return true;
    for (size_t i = first; i < first + all; i++)
        if (is_removal(&scene->operations.rows[i]) && removal_within(scene, &scene->operations.rows[i], put, read))
            return true;
    size_t told = told_of(scene, put, &first);
    for (size_t i = first; i < first + told; i++)
        if (ends_key(&scene->history->records[scene->by_key[i].at]) &&
            within(&scene->order, scene->by_key[i].at, put, (size_t)read->end))
            return true;
    for (size_t i = 0; i < scene->loss_count; i++)
        if (within(&scene->order, scene->losses[i], put, (size_t)read->end) &&
            lost(scene, &scene->history->records[scene->losses[i]], put))
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

static void judge_read(const struct scene *scene, const struct moon_operation *rows, size_t count,
                       const struct moon_operation *read, struct moon_finding *finding) {
    for (size_t i = 0; i < count; i++) {
        const struct moon_operation *put = &rows[i];
        if (!moon_operation_is(put, "put") || put->kind != MOON_RECORD_OK || put->code != 0 ||
            put->end == MOON_OPERATION_NO_END || !moon_order_before(&scene->order, (size_t)put->end, read->invoke) ||
            !stored(scene, put, rows, count))
            continue;
        if (!missed(read) || excused(scene, put, rows, count, read)) {
            moon_finding_held(finding);
        } else if (!scene->told) {
            moon_finding_unclear(finding, (size_t)read->end,
                                 moon_arena_format(scene->arena, "%s missed, and nothing tells whether it was evicted",
                                                   moon_finding_operation(scene->arena, read)));
        } else {
            moon_finding_broken(finding, (size_t)read->end, moon_finding_operation(scene->arena, read),
                                moon_arena_format(scene->arena,
                                                  "found: %s was acknowledged before, and nothing removed it",
                                                  moon_finding_operation(scene->arena, put)),
                                moon_arena_format(scene->arena, "a miss (%lld)", (long long)read->code));
        }
        return;
    }
}

/* An eviction is legal only when no lease is on the object. In the master's own log, on its own clock. */
static void judge_eviction(const struct scene *scene, size_t at, struct moon_finding *finding) {
    const struct moon_record *evict = &scene->history->records[at];
    struct moon_operation named = {.key = evict->key, .tenant = tenant_of(evict)};
    size_t first, told = told_of(scene, &named, &first);
    for (size_t i = first + told; i-- > first;) {
        const struct moon_record *record = &scene->history->records[scene->by_key[i].at];
        if (scene->by_key[i].at >= at || !record->internal || !moon_bytes_equal(record->node, evict->node) ||
            record->boot != evict->boot)
            continue;
        if (moon_record_tells(record, "put-start"))
            break; /* an object of its own: older leases are not on it */
        if (moon_record_tells(record, "lease") && record->lease_ns > evict->time_ns) {
            moon_finding_broken(
                finding, at,
                moon_arena_format(scene->arena, "eviction of \"%s\"", moon_finding_bytes(scene->arena, evict->key)),
                moon_arena_format(scene->arena, "not before its lease is over at %lld ns", (long long)record->lease_ns),
                moon_arena_format(scene->arena, "evicted at %lld ns", (long long)evict->time_ns));
            return;
        }
    }
    moon_finding_held(finding);
}

static bool is_loss(const struct moon_record *record) {
    return record->kind == MOON_RECORD_FAULT || moon_record_tells(record, "unmount") ||
           moon_record_tells(record, "expire");
}

static bool is_about_key(const struct moon_record *record) {
    return (record->has & MOON_RECORD_HAS_KEY) &&
           ((record->kind == MOON_RECORD_STATE && record->internal) ||
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
            scene->by_key[scene->by_key_count++] = (struct told){tenant_of(record), record->key, i};
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
        if (history->records[i].internal && moon_record_tells(&history->records[i], "evict"))
            judge_eviction(&scene, i, finding);
    return MOON_OK;
}
