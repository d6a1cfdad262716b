/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the records of several nodes in an order that could have been (HIST-006). */
#include "ref/base/heap.h"
#include "ref/base/table.h"
#include "reports/history.h"

/* ---- sorting */

typedef int (*comparison)(const struct moon_record *a, const struct moon_record *b);

static int compare_numbers(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

/* As a node's own log has them. */
static int compare_places(const struct moon_record *a, const struct moon_record *b) {
    int order = moon_bytes_compare(a->node, b->node);
    if (order == 0)
        order = compare_numbers(a->boot, b->boot);
    return order ? order : compare_numbers(a->n, b->n);
}

static int compare_times(const struct moon_record *a, const struct moon_record *b) {
    return a->time_ns != b->time_ns ? (a->time_ns > b->time_ns ? 1 : -1) : compare_places(a, b);
}

/* Merges rows[from, middle) and rows[middle, end) into out[from, end). */
static void merge_runs(const struct moon_record **rows, const struct moon_record **out, size_t from, size_t middle,
                       size_t end, comparison compare) {
    size_t left = from, right = middle;
    for (size_t i = from; i < end; i++) {
        bool take_left = left < middle && (right == end || compare(rows[left], rows[right]) <= 0);
        out[i] = rows[take_left ? left++ : right++];
    }
}

/* Merge sort from the bottom up; `spare` has room for as many. Returns where the sorted rows are: one of the two. */
static const struct moon_record **sort(const struct moon_record **rows, const struct moon_record **spare, size_t count,
                                       comparison compare) {
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0; from < count; from += 2 * width) {
            size_t middle = from + width < count ? from + width : count;
            size_t end = middle + width < count ? middle + width : count;
            merge_runs(rows, spare, from, middle, end, compare);
        }
        const struct moon_record **sorted = spare;
        spare = rows;
        rows = sorted;
    }
    return rows;
}

/* ---- each node's own order */

static int fail_at(struct moon_error *error, const struct moon_record *record, const char *what) {
    return moon_fail(error, MOON_ERR_SCHEMA, NULL, "node %.*s boot %u record %llu %s", (int)record->node.length,
                     record->node.data, (unsigned)record->boot, (unsigned long long)record->n, what);
}

static bool same_clock(const struct moon_record *a, const struct moon_record *b) {
    return moon_bytes_equal(a->clock, b->clock);
}

/* Rows in the order of compare_places. */
static int check_logs(const struct moon_record **rows, size_t count, struct moon_error *error) {
    for (size_t i = 1; i < count; i++) {
        if (compare_places(rows[i - 1], rows[i]) == 0)
            return fail_at(error, rows[i], "is there twice");
        bool one_process = moon_bytes_equal(rows[i - 1]->node, rows[i]->node) && rows[i - 1]->boot == rows[i]->boot;
        if (one_process && same_clock(rows[i - 1], rows[i]) && rows[i - 1]->time_ns > rows[i]->time_ns)
            return fail_at(error, rows[i], "is earlier than the record before it");
    }
    return 0;
}

/* ---- message edges */

/* A node's records, of which those before `next` are in order already. */
struct lane {
    struct moon_heap_node ready;
    struct lane *next_waiting;
    size_t next, end;
};

/* A message that was sent. */
struct message {
    struct moon_table_node place; /* hash: its id */
    size_t row;                   /* of its first send */
    bool ambiguous;               /* several nodes have sent one with this id: no edge */
    bool ordered;
    struct lane *waiting;
};

struct merge {
    const struct moon_record **rows; /* by compare_places */
    const struct moon_record **out;
    size_t count, done;
    bool by_time; /* of the lanes that are ready the one with the earliest record is next; else the first by name */
    struct moon_arena arena;
    struct moon_table messages;
    struct moon_heap ready;
    struct lane *lanes;
    size_t lane_count;
};

static struct message *find_message(const struct merge *merge, uint64_t msg) {
    return (struct message *)moon_table_find(&merge->messages, msg);
}

static int add_message(struct merge *merge, size_t row) {
    struct message *message = find_message(merge, merge->rows[row]->msg);
    if (message) {
        message->ambiguous =
            message->ambiguous || !moon_bytes_equal(merge->rows[row]->node, merge->rows[message->row]->node);
        return 0;
    }
    message = moon_arena_alloc(&merge->arena, sizeof *message);
    if (!message)
        return MOON_ERR_MEMORY;
    message->row = row;
    return moon_table_add(&merge->messages, &message->place, merge->rows[row]->msg);
}

static int find_messages(struct merge *merge) {
    for (size_t i = 0; i < merge->count; i++) {
        const struct moon_record *record = merge->rows[i];
        if (record->kind == MOON_RECORD_SEND && record->msg != 0 && add_message(merge, i) != 0)
            return MOON_ERR_MEMORY;
    }
    return 0;
}

static int find_lanes(struct merge *merge) {
    merge->lanes = moon_arena_array(&merge->arena, merge->count, sizeof *merge->lanes);
    if (!merge->lanes)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < merge->count; i++) {
        if (i == 0 || !moon_bytes_equal(merge->rows[i - 1]->node, merge->rows[i]->node))
            merge->lanes[merge->lane_count++].next = i;
        merge->lanes[merge->lane_count - 1].end = i + 1;
    }
    return 0;
}

/* The message that the lane's next record must wait for; NULL: none. */
static struct message *awaited(const struct merge *merge, const struct lane *lane) {
    const struct moon_record *record = merge->rows[lane->next];
    if (record->kind != MOON_RECORD_RECV || record->msg == 0)
        return NULL;
    struct message *message = find_message(merge, record->msg);
    return message && !message->ordered && !message->ambiguous ? message : NULL;
}

/* Makes the lane ready, or lets it wait, if it has records left. */
static int offer(struct merge *merge, struct lane *lane) {
    if (lane->next == lane->end)
        return 0;
    struct message *message = awaited(merge, lane);
    if (!message) {
        moon_ns key = merge->by_time ? merge->rows[lane->next]->time_ns : lane - merge->lanes;
        return moon_heap_add(&merge->ready, &lane->ready, key);
    }
    lane->next_waiting = message->waiting;
    message->waiting = lane;
    return 0;
}

/* Those that waited for this send may go on. */
static int release(struct merge *merge, const struct moon_record *record) {
    int status = 0;
    struct message *message = record->kind == MOON_RECORD_SEND ? find_message(merge, record->msg) : NULL;
    if (!message)
        return 0;
    message->ordered = true;
    while (message->waiting && status == 0) {
        struct lane *lane = message->waiting;
        message->waiting = lane->next_waiting;
        status = offer(merge, lane);
    }
    return status;
}

static int fail_cycle(const struct merge *merge, struct moon_error *error) {
    const struct lane *lane = merge->lanes;
    while (lane->next == lane->end)
        lane++;
    return fail_at(error, merge->rows[lane->next], "received what can only have been sent later");
}

static int order_by_edges(struct merge *merge, struct moon_error *error) {
    int status = find_messages(merge);
    if (status == 0)
        status = find_lanes(merge);
    for (size_t i = 0; status == 0 && i < merge->lane_count; i++)
        status = offer(merge, &merge->lanes[i]);
    for (struct moon_heap_node *first; status == 0 && (first = moon_heap_first(&merge->ready));) {
        struct lane *lane = (struct lane *)first;
        const struct moon_record *record = merge->rows[lane->next++];
        moon_heap_remove(&merge->ready, first);
        merge->out[merge->done++] = record;
        status = release(merge, record);
        if (status == 0)
            status = offer(merge, lane);
    }
    if (status)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory to order a history");
    return merge->done == merge->count ? 0 : fail_cycle(merge, error);
}

static void open_merge(struct merge *merge, struct moon_memory *memory, const struct moon_record **rows,
                       const struct moon_record **out, size_t count) {
    struct moon_random random;
    *merge = (struct merge){.rows = rows, .out = out, .count = count};
    moon_random_seed(&random, 0);
    moon_arena_open(&merge->arena, memory);
    moon_table_open(&merge->messages, memory, &random);
    moon_heap_open(&merge->ready, memory);
}

static void close_merge(struct merge *merge) {
    moon_heap_close(&merge->ready);
    moon_table_close(&merge->messages);
    moon_arena_close(&merge->arena);
}

/* ---- the whole */

static bool has_one_clock(const struct moon_history *history) {
    for (size_t i = 1; i < history->count; i++)
        if (!same_clock(&history->records[0], &history->records[i]))
            return false;
    return true;
}

/* Whether each message in `rows` is sent before it is received: *good. Where nothing takes time it need not be. */
static int check_edges(struct moon_memory *memory, const struct moon_record **rows, size_t count, bool *good) {
    struct merge merge;
    open_merge(&merge, memory, rows, NULL, count);
    int status = find_messages(&merge);
    *good = true;
    for (size_t i = 0; status == 0 && i < count; i++) {
        const struct message *message = rows[i]->kind == MOON_RECORD_RECV ? find_message(&merge, rows[i]->msg) : NULL;
        *good = *good && !(message && !message->ambiguous && message->row > i);
    }
    close_merge(&merge);
    return status;
}

/* Orders the rows; *ordered is one of the two arrays. */
static int order(const struct moon_history *history, const struct moon_record **rows, const struct moon_record **spare,
                 const struct moon_record ***ordered, struct moon_error *error) {
    size_t count = history->count;
    bool by_time = has_one_clock(history), good = false;
    for (size_t i = 0; i < count; i++)
        rows[i] = &history->records[i];
    const struct moon_record **sorted = sort(rows, spare, count, compare_places), **other;
    int status = check_logs(sorted, count, error);
    if (status)
        return status;
    if (by_time) {
        sorted = sort(sorted, sorted == rows ? spare : rows, count, compare_times);
        if (check_edges(history->arena.memory, sorted, count, &good) != 0)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory to order a history");
        *ordered = sorted;
        if (good)
            return 0;
        sorted = sort(sorted, sorted == rows ? spare : rows, count, compare_places);
    }
    other = sorted == rows ? spare : rows;
    struct merge merge;
    open_merge(&merge, history->arena.memory, sorted, other, count);
    merge.by_time = by_time;
    status = order_by_edges(&merge, error);
    close_merge(&merge);
    *ordered = other;
    return status;
}

/* The records in their new order, in `sorted`, which has room for as many. */
static int reorder(const struct moon_history *history, const struct moon_record **rows,
                   const struct moon_record **spare, struct moon_record *sorted, struct moon_error *error) {
    const struct moon_record **ordered = rows;
    int status = order(history, rows, spare, &ordered, error);
    for (size_t i = 0; status == 0 && i < history->count; i++)
        sorted[i] = *ordered[i];
    return status;
}

int moon_history_merge(struct moon_history *history, struct moon_error *error) {
    struct moon_memory *memory = history->arena.memory;
    size_t count = history->count, rows_bytes = count * sizeof(struct moon_record *);
    int status = MOON_ERR_MEMORY;
    if (count < 2)
        return 0;
    const struct moon_record **rows = memory->resize(memory, NULL, 0, rows_bytes);
    const struct moon_record **spare = memory->resize(memory, NULL, 0, rows_bytes);
    struct moon_record *records = memory->resize(memory, NULL, 0, history->capacity * sizeof *records);
    if (rows && spare && records)
        status = reorder(history, rows, spare, records, error);
    else
        moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory to order a history");
    if (status == 0) {
        struct moon_record *before = history->records;
        history->records = records;
        records = before;
    }
    if (records)
        memory->resize(memory, records, history->capacity * sizeof *records, 0);
    if (spare)
        memory->resize(memory, spare, rows_bytes, 0);
    if (rows)
        memory->resize(memory, rows, rows_bytes, 0);
    return status;
}
