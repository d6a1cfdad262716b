/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: crash, stop, partition, and their ends (SIM-006). */
#include "sim/sim_internal.h"

#include <assert.h>

void moon_sim_crash(struct moon_sim_node *node) {
    if (!node->up)
        return;
    assert(!node->in_call);
    moon_sim_record_fault(node, "kill", NULL);
    moon_sim_take_down(node, false);
}

void moon_sim_stop(struct moon_sim_node *node) {
    if (!node->up || node->stopped)
        return;
    assert(!node->in_call);
    node->stopped = true;
    moon_sim_record_fault(node, "stop", NULL);
}

void moon_sim_go_on(struct moon_sim_node *node) {
    if (!node->up || !node->stopped)
        return;
    node->stopped = false;
    moon_sim_record_fault(node, "continue", NULL);
    moon_sim_touched(node);
    moon_sim_streams_go_on(node);
    moon_sim_verbs_go_on(node);
}

static struct moon_sim_partition **find(const struct moon_sim_node *a, const struct moon_sim_node *b) {
    struct moon_sim_partition **at = &a->sim->partitions;
    while (*at && !((*at)->a == a && (*at)->b == b) && !((*at)->a == b && (*at)->b == a))
        at = &(*at)->next;
    return at;
}

bool moon_sim_blocked(const struct moon_sim_node *a, const struct moon_sim_node *b) {
    return *find(a, b) != NULL;
}

static void record_both(struct moon_sim_node *a, struct moon_sim_node *b, const char *what) {
    moon_sim_record_fault(a, what, b);
    moon_sim_record_fault(b, what, a);
}

/* The end of a partition's patience. */
struct giving_up {
    struct moon_sim_event event; /* first member */
    struct moon_sim_node *a, *b;
    uint64_t serial;
};

static void give_up(struct moon_sim *sim, struct moon_sim_event *event) {
    const struct giving_up *due = (const struct giving_up *)event;
    const struct moon_sim_partition *partition = *find(due->a, due->b);
    (void)sim;
    if (partition && partition->serial == due->serial)
        moon_sim_streams_break(due->a, due->b);
}

void moon_sim_partition(struct moon_sim_node *a, struct moon_sim_node *b) {
    struct moon_sim *sim = a->sim;
    struct moon_sim_partition **end = find(a, b);
    assert(a != b);
    if (*end)
        return;
    struct giving_up *due = moon_sim_event_new(sim, sizeof *due, sim->now_ns + sim->settings.break_ns, give_up);
    struct moon_sim_partition *partition = due ? moon_sim_alloc(sim, sizeof *partition) : NULL;
    if (!partition)
        return;
    *partition = (struct moon_sim_partition){.a = a, .b = b, .serial = ++sim->partitions_made};
    due->a = a;
    due->b = b;
    due->serial = partition->serial;
    *end = partition;
    record_both(a, b, "partition");
}

void moon_sim_heal(struct moon_sim_node *a, struct moon_sim_node *b) {
    struct moon_sim_partition **at = find(a, b), *partition = *at;
    if (!partition)
        return;
    *at = partition->next;
    moon_sim_free(a->sim, partition, sizeof *partition);
    record_both(a, b, "heal");
    moon_sim_streams_heal(a, b);
}

void moon_sim_break_streams(struct moon_sim_node *a, struct moon_sim_node *b) {
    record_both(a, b, "break");
    moon_sim_streams_break(a, b);
}

void moon_sim_faults_close(struct moon_sim *sim) {
    while (sim->partitions) {
        struct moon_sim_partition *partition = sim->partitions;
        sim->partitions = partition->next;
        moon_sim_free(sim, partition, sizeof *partition);
    }
}
