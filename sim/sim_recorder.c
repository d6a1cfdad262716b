/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes record, on its way to the history: filled in, and shown to the watch (SIM-007). */
#include "sim/sim_internal.h"

#include <assert.h>

/* Keeps a record till the node goes on. The compact form is a copy with all its texts. */
static void hold(struct moon_sim_node *node, const struct moon_record *record) {
    moon_record_write_binary(record, &node->held);
    node->sim->failed = node->sim->failed || node->held.failed;
}

static void write(struct moon_sim_node *node, struct moon_record *record) {
    node->n++;
    if (node->sim->recorder)
        node->sim->recorder->record(node->sim->recorder, record);
}

static void fill(const struct moon_sim_node *node, struct moon_record *record) {
    record->node = node->name;
    record->clock = moon_bytes_of("sim");
    record->boot = node->boot;
    record->n = node->n;
    record->time_ns = node->sim->now_ns;
    if (record->has & MOON_RECORD_HAS_LEASE)
        record->lease_ns = moon_sim_clock_when(node, record->lease_ns);
}

/* Writes a record of the node, or does what the watch says about it. */
static void show(struct moon_sim_node *node, const struct moon_record *record) {
    struct moon_record filled = *record;
    enum moon_sim_action action = MOON_SIM_GO_ON;
    fill(node, &filled);
    if (node->sim->watch)
        action = node->sim->watch(node->sim->watch_context, node, &filled);
    switch (action) {
    case MOON_SIM_CRASH_NOW:
        node->muted = true;
        node->pending = MOON_SIM_PENDING_CRASH;
        return;
    case MOON_SIM_STOP_NOW:
        node->stopped = true;
        moon_sim_record_fault(node, "stop", NULL);
        node->held_shown = true;
        hold(node, record);
        return;
    case MOON_SIM_CRASH_AFTER:
        node->pending = MOON_SIM_PENDING_CRASH;
        break;
    case MOON_SIM_STOP_AFTER:
        if (node->pending == MOON_SIM_PENDING_NONE)
            node->pending = MOON_SIM_PENDING_STOP;
        break;
    default: /* MOON_SIM_GO_ON */
        break;
    }
    write(node, &filled);
}

static void record(struct moon_recorder *self, const struct moon_record *record) {
    struct moon_sim_node *node = MOON_SIM_OWNER(self, struct moon_sim_node, recorder);
    if (node->muted)
        return;
    if (node->stopped)
        hold(node, record);
    else
        show(node, record);
}

void moon_sim_recorder_open(struct moon_sim_node *node) {
    node->recorder.record = record;
    moon_text_open(&node->held, node->sim->memory);
}

void moon_sim_recorder_go_on(struct moon_sim_node *node) {
    struct moon_text held = node->held;
    bool shown = node->held_shown;
    moon_text_open(&node->held, node->sim->memory);
    node->held_shown = false;
    for (size_t at = 0, used = 0; at < held.length; at += used) {
        struct moon_record record;
        int status = moon_record_read_binary(held.data + at, held.length - at, &record, &used, NULL);
        assert(status == 0);
        (void)status;
        if (shown && at == 0) {
            fill(node, &record);
            write(node, &record);
        } else {
            node->recorder.record(&node->recorder, &record); /* the watch may act again */
        }
    }
    moon_text_close(&held);
}

void moon_sim_record_fault(struct moon_sim_node *node, const char *what, const struct moon_sim_node *other) {
    struct moon_record record = {.kind = MOON_RECORD_FAULT, .what = what};
    if (other) {
        record.has = MOON_RECORD_HAS_CAUSE;
        record.cause = other->name;
    }
    fill(node, &record);
    write(node, &record);
}
