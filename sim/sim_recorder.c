/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes record, on its way to the history: filled in (SIM-006). */
#include "sim/sim_internal.h"

#include <assert.h>

static void fill_and_write(struct moon_sim_node *node, struct moon_record record) {
    record.node = node->name;
    record.clock = moon_bytes_of("sim");
    record.boot = node->boot;
    record.n = node->n++;
    record.time_ns = node->sim->now_ns;
    if (record.has & MOON_RECORD_HAS_LEASE)
        record.lease_ns = moon_sim_clock_when(node, record.lease_ns);
    if (node->sim->recorder)
        node->sim->recorder->record(node->sim->recorder, &record);
}

static void record(struct moon_recorder *self, const struct moon_record *record) {
    struct moon_sim_node *node = MOON_SIM_OWNER(self, struct moon_sim_node, recorder);
    assert(moon_sim_awake(node));
    fill_and_write(node, *record);
}

void moon_sim_recorder_open(struct moon_sim_node *node) {
    node->recorder.record = record;
}

void moon_sim_record_fault(struct moon_sim_node *node, const char *what, const struct moon_sim_node *other) {
    struct moon_record record = {.kind = MOON_RECORD_FAULT, .what = what};
    if (other) {
        record.has = MOON_RECORD_HAS_CAUSE;
        record.cause = other->name;
    }
    fill_and_write(node, record);
}
