/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of nodes: each begins at a time of its own and runs a little faster or slower (SIM-004). */
#include "sim/sim_internal.h"

#include <stdio.h>

#define MILLION            ((int64_t)1000000)
#define WALL_START_NS      (INT64_C(1767225600) * MOON_NS_PER_S) /* 2026-01-01 UTC */
#define WALL_APART_NS      (500 * MOON_NS_PER_MS)
#define CLOCK_START_MAX_NS (10000 * MOON_NS_PER_S)
/* No run lasts as long: later than this is never. Leaves room for the arithmetic. */
#define CLOCK_END_NS (INT64_MAX / 4)

void moon_sim_clock_draw(struct moon_sim_node *node) {
    struct moon_random random = moon_random_split(&node->sim->root, "clocks");
    random = moon_random_split(&random, node->name.data);
    int64_t drift = node->sim->settings.drift_millionths;
    node->clock_offset_ns = moon_random_between(&random, MOON_NS_PER_S, CLOCK_START_MAX_NS);
    node->wall_offset_ns = moon_random_between(&random, -WALL_APART_NS, WALL_APART_NS) + WALL_START_NS;
    node->drift_millionths = moon_random_between(&random, -drift, drift);
}

/* How far the node's clock moves in `time_ns`, 0 or more. Grows with it, for the drift is far below a million. */
static moon_ns elapsed(const struct moon_sim_node *node, moon_ns time_ns) {
    return time_ns + time_ns / MILLION * node->drift_millionths + time_ns % MILLION * node->drift_millionths / MILLION;
}

moon_ns moon_sim_clock_at(const struct moon_sim_node *node, moon_ns time_ns) {
    return node->clock_offset_ns + elapsed(node, time_ns);
}

moon_ns moon_sim_clock_when(const struct moon_sim_node *node, moon_ns clock_ns) {
    if (clock_ns >= CLOCK_END_NS)
        return MOON_NS_NEVER;
    if (clock_ns <= node->clock_offset_ns)
        return 0;
    moon_ns wanted = clock_ns - node->clock_offset_ns;
    int64_t rate = MILLION + node->drift_millionths;
    moon_ns time_ns = wanted / rate * MILLION + wanted % rate * MILLION / rate;
    /* The division cut fractions away: a few steps to the first time that fits. */
    while (elapsed(node, time_ns) >= wanted)
        time_ns--;
    while (elapsed(node, time_ns) < wanted)
        time_ns++;
    return time_ns;
}
