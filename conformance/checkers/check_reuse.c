/* SPDX-License-Identifier: Apache-2.0 */
/* Check 3: no memory is given to a new put while a valid lease covers it. */
#include "conformance/checkers/checks_internal.h"
#include "conformance/checkers/finding_internal.h"

/* An extent that readers may use until `until_ns` of that clock. */
struct lease {
    struct moon_extent extent;
    struct moon_bytes clock;
    moon_ns until_ns;
    size_t at;
};

struct leases {
    struct moon_arena *arena;
    struct lease *rows;
    size_t count, capacity;
};

static bool overlaps(const struct moon_extent *a, const struct moon_extent *b) {
    return moon_bytes_equal(a->segment, b->segment) && a->offset < b->offset + b->length &&
           b->offset < a->offset + a->length;
}

/* Leases that are over on the clock of `now` are forgotten when room is needed. */
static int add_lease(struct leases *leases, const struct moon_record *record, size_t at) {
    if (leases->count == leases->capacity) {
        size_t kept = 0;
        for (size_t i = 0; i < leases->count; i++)
            if (leases->rows[i].until_ns > record->time_ns || !moon_bytes_equal(leases->rows[i].clock, record->clock))
                leases->rows[kept++] = leases->rows[i];
        leases->count = kept;
    }
    if (leases->count * 2 > leases->capacity || !leases->capacity) {
        size_t capacity = leases->capacity ? 2 * leases->capacity : 256;
        struct lease *rows = moon_arena_array(leases->arena, capacity, sizeof *rows);
        if (!rows)
            return MOON_ERR_MEMORY;
        if (leases->count)
            memcpy(rows, leases->rows, leases->count * sizeof *rows);
        leases->rows = rows;
        leases->capacity = capacity;
    }
    leases->rows[leases->count++] = (struct lease){record->extent, record->clock, record->lease_ns, at};
    return MOON_OK;
}

/* The record after which the memory may have been given: the master's own, or the question that a client was answered.
 */
static bool start_of_grant(const struct moon_history *history, size_t at, size_t *start) {
    const struct moon_record *grant = &history->records[at];
    *start = at;
    if (grant->internal)
        return true;
    for (size_t i = at; i-- > 0;) {
        const struct moon_record *record = &history->records[i];
        if (record->kind == MOON_RECORD_SEND && record->op == grant->op && record->boot == grant->boot &&
            (strcmp(record->what, "PutStart") == 0 || strcmp(record->what, "BatchPutStart") == 0) &&
            moon_bytes_equal(record->node, grant->node)) {
            *start = i;
            return true;
        }
    }
    return false;
}

static void judge_grant(const struct leases *leases, const struct moon_order *order, size_t at,
                        struct moon_finding *finding) {
    const struct moon_record *grant = &order->history->records[at];
    size_t start;
    if (!start_of_grant(order->history, at, &start))
        return;
    for (size_t i = 0; i < leases->count; i++) {
        const struct lease *lease = &leases->rows[i];
        if (overlaps(&lease->extent, &grant->extent) && moon_bytes_equal(lease->clock, grant->clock) &&
            lease->until_ns > grant->time_ns && moon_order_before(order, lease->at, start)) {
            const struct moon_record *told = &order->history->records[lease->at];
            moon_finding_broken(
                finding, at,
                moon_arena_format(leases->arena, "memory of %s at %llu, %llu bytes, was given to a put of \"%s\"",
                                  moon_finding_bytes(leases->arena, grant->extent.segment),
                                  (unsigned long long)grant->extent.offset, (unsigned long long)grant->extent.length,
                                  moon_finding_bytes(leases->arena, grant->key)),
                moon_arena_format(leases->arena, "not before the lease on \"%s\" is over at %lld ns",
                                  moon_finding_bytes(leases->arena, told->key), (long long)lease->until_ns),
                moon_arena_format(leases->arena, "given at %lld ns or before", (long long)grant->time_ns));
            return;
        }
    }
    moon_finding_held(finding);
}

int moon_check_reuse(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding) {
    struct moon_order order;
    struct leases leases = {.arena = arena};
    int status = moon_order_make(&order, arena, history);
    for (size_t i = 0; i < history->count && !status; i++) {
        const struct moon_record *record = &history->records[i];
        if (!(record->has & MOON_RECORD_HAS_EXTENT))
            continue;
        if (moon_record_tells(record, "lease") && (record->has & MOON_RECORD_HAS_LEASE))
            status = add_lease(&leases, record, i);
        else if (leases.count && (moon_record_tells(record, "granted") || moon_record_tells(record, "put-start")))
            judge_grant(&leases, &order, i, finding);
    }
    return status;
}
