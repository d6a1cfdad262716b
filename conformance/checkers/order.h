/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two records of a history came certainly first: by one clock where there is one, else by messages. */
#ifndef MOON_CHECKERS_ORDER_H
#define MOON_CHECKERS_ORDER_H

#include "reports/history.h"

enum { MOON_ORDER_NODES_MAX = 256 };

/* For each record, how much of each node's log it can know of: vector clocks. nodes: names, in order of appearance. */
struct moon_order {
    const struct moon_history *history;
    bool one_clock;
    size_t node_count;
    struct moon_bytes nodes[MOON_ORDER_NODES_MAX];
    uint32_t *node_of; /* of each record: place in nodes */
    uint32_t *place;   /* its number in that node's log, from 1, over all boots */
    uint32_t *known;   /* [record][node]: the highest number that came before it, its own included */
};

/* Over a merged history. Lives in `arena`. Returns 0, MOON_ERR_MEMORY, MOON_ERR_LIMIT (over MOON_ORDER_NODES_MAX
 * nodes). */
int moon_order_make(struct moon_order *order, struct moon_arena *arena, const struct moon_history *history);

/* True if record `a` came certainly before record `b`: at an earlier time of the only clock, or in the same node, or
 * through messages (HIST: the clocks of two nodes are never compared). Never true both ways. */
bool moon_order_before(const struct moon_order *order, size_t a, size_t b);

#endif
