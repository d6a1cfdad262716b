/* SPDX-License-Identifier: Apache-2.0 */
/* Vector clocks over the records of a merged history. */
#include "conformance/checkers/order.h"

#include "conformance/checkers/search.h"

#include <stdlib.h>
#include <string.h>

/* A message that was sent: its id, and the record that says so. */
struct sent {
    uint64_t msg;
    size_t at;
};

static int by_message(const void *left, const void *right) {
    const struct sent *a = left, *b = right;
    if (a->msg != b->msg)
        return a->msg < b->msg ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static size_t node_place(struct moon_order *order, struct moon_bytes name) {
    size_t i = 0;
    while (i < order->node_count && !moon_bytes_equal(order->nodes[i], name))
        i++;
    if (i == order->node_count && i < MOON_ORDER_NODES_MAX)
        order->nodes[order->node_count++] = name;
    return i;
}

/* Names the nodes, numbers each node's records, and sees whether all have one clock. */
static int number_records(struct moon_order *order) {
    const struct moon_history *history = order->history;
    uint32_t last[MOON_ORDER_NODES_MAX] = {0};
    order->one_clock = true;
    for (size_t i = 0; i < history->count; i++) {
        size_t node = node_place(order, history->records[i].node);
        if (node == MOON_ORDER_NODES_MAX)
            return MOON_ERR_LIMIT;
        order->node_of[i] = (uint32_t)node;
        order->place[i] = ++last[node];
        order->one_clock &= moon_bytes_equal(history->records[i].clock, history->records[0].clock);
    }
    return MOON_OK;
}

static const struct sent *sent_as(const struct sent *list, size_t count, uint64_t msg) {
    struct sent wanted = {msg, 0};
    size_t low = moon_lower_bound(list, count, sizeof wanted, &wanted, by_message);
    return low < count && list[low].msg == msg ? &list[low] : NULL;
}

static void learn(uint32_t *known, const uint32_t *more, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (more[i] > known[i])
            known[i] = more[i];
}

int moon_order_make(struct moon_order *order, struct moon_arena *arena, const struct moon_history *history) {
    size_t count = history->count, sent_count = 0;
    memset(order, 0, sizeof *order);
    order->history = history;
    order->node_of = moon_arena_array(arena, count, sizeof *order->node_of);
    order->place = moon_arena_array(arena, count, sizeof *order->place);
    struct sent *sent = moon_arena_array(arena, count, sizeof *sent);
    if (!order->node_of || !order->place || !sent)
        return MOON_ERR_MEMORY;
    int status = number_records(order);
    if (status)
        return status;
    order->known = moon_arena_array(arena, count, order->node_count * sizeof *order->known);
    size_t *last = moon_arena_array(arena, order->node_count, sizeof *last);
    if (!order->known || !last)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (history->records[i].kind == MOON_RECORD_SEND && history->records[i].msg)
            sent[sent_count++] = (struct sent){history->records[i].msg, i};
    if (sent_count)
        qsort(sent, sent_count, sizeof *sent, by_message);
    for (size_t i = 0; i < count; i++) {
        uint32_t *known = order->known + i * order->node_count;
        size_t node = order->node_of[i];
        if (last[node])
            learn(known, order->known + (last[node] - 1) * order->node_count, order->node_count);
        const struct moon_record *record = &history->records[i];
        const struct sent *edge =
            record->kind == MOON_RECORD_RECV && record->msg ? sent_as(sent, sent_count, record->msg) : NULL;
        if (edge && edge->at < i)
            learn(known, order->known + edge->at * order->node_count, order->node_count);
        known[node] = order->place[i];
        last[node] = i + 1;
    }
    return MOON_OK;
}

bool moon_order_before(const struct moon_order *order, size_t a, size_t b) {
    if (a == b)
        return false;
    if (order->one_clock && order->history->records[a].time_ns != order->history->records[b].time_ns)
        return order->history->records[a].time_ns < order->history->records[b].time_ns;
    return order->known[b * order->node_count + order->node_of[a]] >= order->place[a];
}
