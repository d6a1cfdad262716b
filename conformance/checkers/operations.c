/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs the invokes of a history with their ends. */
#include "conformance/checkers/operations.h"

#include "conformance/checkers/search.h"

#include <stdlib.h>
#include <string.h>

/* Name of an operation, and its row: sorted to find the row of an end. */
struct name {
    const struct moon_operation *operation;
    size_t row;
};

static int compare_numbers(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int by_name(const void *left, const void *right) {
    const struct moon_operation *a = ((const struct name *)left)->operation;
    const struct moon_operation *b = ((const struct name *)right)->operation;
    int order = moon_bytes_compare(a->node, b->node);
    if (!order)
        order = compare_numbers(a->boot, b->boot);
    return order ? order : compare_numbers(a->op, b->op);
}

static int by_key(const void *left, const void *right) {
    const struct moon_operation *a = left, *b = right;
    int order = moon_bytes_compare(a->tenant, b->tenant);
    if (!order)
        order = moon_bytes_compare(a->key, b->key);
    return order ? order : compare_numbers(a->invoke, b->invoke);
}

struct moon_bytes moon_record_tenant(const struct moon_record *record) {
    return (record->has & MOON_RECORD_HAS_TENANT) && record->tenant.length ? record->tenant : moon_bytes_of("default");
}

static struct moon_operation begun(const struct moon_record *record, size_t at) {
    struct moon_operation operation = {.node = record->node,
                                       .tenant = moon_record_tenant(record),
                                       .boot = record->boot,
                                       .op = record->op,
                                       .parent = record->parent,
                                       .what = record->what,
                                       .invoke = at,
                                       .end = MOON_OPERATION_NO_END,
                                       .kind = MOON_RECORD_INFO};
    if (record->has & MOON_RECORD_HAS_KEY)
        operation.key = record->key;
    if (record->has & MOON_RECORD_HAS_DIGEST) {
        operation.has_put_digest = true;
        operation.put_digest = record->digest;
        operation.put_bytes = record->bytes;
    }
    return operation;
}

static void end_one(struct moon_operation *operation, const struct moon_record *record, size_t at) {
    if (operation->end != MOON_OPERATION_NO_END)
        return;
    operation->end = (int64_t)at;
    operation->kind = record->kind;
    operation->code = record->has & MOON_RECORD_HAS_CODE ? record->code : 0;
    operation->bytes = record->has & MOON_RECORD_HAS_BYTES ? record->bytes : 0;
    operation->has_digest = (record->has & MOON_RECORD_HAS_DIGEST) != 0;
    operation->digest = record->digest;
}

static bool is_end(const struct moon_record *record) {
    return record->op &&
           (record->kind == MOON_RECORD_OK || record->kind == MOON_RECORD_FAIL || record->kind == MOON_RECORD_INFO);
}

static void end_all(struct moon_operation *rows, const struct name *names, size_t count,
                    const struct moon_history *history) {
    for (size_t i = 0; i < history->count; i++) {
        const struct moon_record *record = &history->records[i];
        struct moon_operation asked = {.node = record->node, .boot = record->boot, .op = record->op};
        struct name wanted = {&asked, 0};
        if (!is_end(record))
            continue;
        size_t low = moon_lower_bound(names, count, sizeof wanted, &wanted, by_name);
        if (low < count && by_name(&names[low], &wanted) == 0)
            end_one(&rows[names[low].row], record, i);
    }
}

int moon_operations_make(struct moon_operations *operations, struct moon_arena *arena,
                         const struct moon_history *history) {
    size_t count = 0;
    for (size_t i = 0; i < history->count; i++)
        count += history->records[i].kind == MOON_RECORD_INVOKE;
    struct moon_operation *rows = moon_arena_array(arena, count, sizeof *rows);
    struct name *names = moon_arena_array(arena, count, sizeof *names);
    if (!rows || !names)
        return MOON_ERR_MEMORY;
    count = 0;
    for (size_t i = 0; i < history->count; i++)
        if (history->records[i].kind == MOON_RECORD_INVOKE) {
            rows[count] = begun(&history->records[i], i);
            names[count] = (struct name){&rows[count], count};
            count++;
        }
    if (count)
        qsort(names, count, sizeof *names, by_name);
    end_all(rows, names, count, history);
    if (count)
        qsort(rows, count, sizeof *rows, by_key);
    *operations = (struct moon_operations){rows, count};
    return MOON_OK;
}

size_t moon_operations_of(const struct moon_operations *operations, struct moon_bytes tenant, struct moon_bytes key,
                          size_t *first) {
    struct moon_operation wanted = {.tenant = tenant.length ? tenant : moon_bytes_of("default"), .key = key};
    size_t low = moon_lower_bound(operations->rows, operations->count, sizeof wanted, &wanted, by_key);
    *first = low;
    while (low < operations->count && moon_bytes_equal(operations->rows[low].key, key) &&
           moon_bytes_equal(operations->rows[low].tenant, wanted.tenant))
        low++;
    return low - *first;
}

bool moon_operation_is(const struct moon_operation *operation, const char *what) {
    return strcmp(operation->what, what) == 0;
}
