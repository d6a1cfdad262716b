/* SPDX-License-Identifier: Apache-2.0 */
/* Check 1: no read returns bytes that were not put under that key, nor a mixture, nor what was removed before it began.
 */
#include "conformance/checkers/checks_internal.h"
#include "conformance/checkers/finding_internal.h"

/* A put of these very bytes that may have come before the read ended. */
static bool may_explain(const struct moon_order *order, const struct moon_operation *put,
                        const struct moon_operation *get) {
    return moon_operation_is(put, "put") && put->has_put_digest && put->put_digest == get->digest &&
           put->put_bytes == get->bytes && put->kind != MOON_RECORD_FAIL &&
           !moon_order_before(order, (size_t)get->end, put->invoke);
}

/* The put was over before a removal began, which was over before the read began. */
static bool was_removed(const struct moon_order *order, const struct moon_operation *rows, size_t count,
                        const struct moon_operation *put, const struct moon_operation *get) {
    if (put->end == MOON_OPERATION_NO_END || put->kind == MOON_RECORD_INFO)
        return false;
    for (size_t i = 0; i < count; i++)
        if (moon_operation_is(&rows[i], "remove") && rows[i].kind == MOON_RECORD_OK && rows[i].code == 0 &&
            rows[i].end != MOON_OPERATION_NO_END && moon_order_before(order, (size_t)put->end, rows[i].invoke) &&
            moon_order_before(order, (size_t)rows[i].end, get->invoke))
            return true;
    return false;
}

static void judge_get(struct moon_arena *arena, const struct moon_order *order, const struct moon_operation *rows,
                      size_t count, const struct moon_operation *get, struct moon_finding *finding) {
    const struct moon_operation *removed = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!may_explain(order, &rows[i], get))
            continue;
        if (!was_removed(order, rows, count, &rows[i], get)) {
            moon_finding_held(finding);
            return;
        }
        removed = &rows[i];
    }
    moon_finding_broken(finding, (size_t)get->end, moon_finding_operation(arena, get),
                        removed ? "bytes of a put that was not removed before the read began"
                                : "the whole bytes of one put under that key",
                        moon_arena_format(arena, "%llu bytes with digest %016llx, %s%s", (unsigned long long)get->bytes,
                                          (unsigned long long)get->digest,
                                          removed ? "removed since " : "which no put of this key has",
                                          removed ? moon_finding_operation(arena, removed) : ""));
}

int moon_check_read(struct moon_arena *arena, const struct moon_history *history, struct moon_finding *finding) {
    struct moon_order order;
    struct moon_operations operations;
    int status = moon_order_make(&order, arena, history);
    if (!status)
        status = moon_operations_make(&operations, arena, history);
    if (status)
        return status;
    for (size_t i = 0; i < operations.count; i++) {
        const struct moon_operation *get = &operations.rows[i];
        size_t first;
        if (!moon_operation_is(get, "get") || get->kind != MOON_RECORD_OK || !get->has_digest)
            continue;
        size_t count = moon_operations_of(&operations, get->tenant, get->key, &first);
        judge_get(arena, &order, operations.rows + first, count, get, finding);
    }
    return MOON_OK;
}
