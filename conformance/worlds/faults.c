/* SPDX-License-Identifier: Apache-2.0 */
/* Faults drawn from the seed: when an operation begins, each kind may be chosen; each is taken back after a while. */
#include "conformance/worlds/run.h"

/* A remote call takes a few milliseconds in the simulated network: so long after its beginning a fault may strike. */
static const moon_ns DELAY_MAX_NS = 15 * MOON_NS_PER_MS;
enum { HALVINGS_MAX = 10 }; /* short lengths are as likely as long ones */

static size_t token_of(const struct moon_run *run, size_t fault) {
    return run->scenario->operation_count + run->scenario->action_count + MOON_SCENARIO_NODES_MAX + fault;
}

static int add_fault(struct moon_run *run, const struct moon_run_fault *fault, moon_ns delay_ns,
                     struct moon_error *error) {
    if (run->fault_count == run->fault_capacity) { /* the old array stays in the arena */
        size_t capacity = run->fault_capacity > 0 ? 2 * run->fault_capacity : 16;
        struct moon_run_fault *grown = moon_arena_array(run->arena, capacity, sizeof *grown);
        if (!grown)
            return moon_no_memory(error);
        for (size_t i = 0; i < run->fault_count; i++)
            grown[i] = run->faults[i];
        run->faults = grown;
        run->fault_capacity = capacity;
    }
    run->faults[run->fault_count] = *fault;
    run->faults_open++;
    return run->world->kind->wake(run->world, delay_ns, token_of(run, run->fault_count++), error);
}

/* Where it strikes: every other time the node whose operation begins, so that many faults hit something that runs. */
static size_t draw_node(struct moon_run *run, const size_t *nodes, size_t count, size_t asking) {
    bool own = moon_random_chance(&run->random, 1, 2);
    size_t drawn = moon_random_below(&run->random, count);
    for (size_t i = 0; i < count && own; i++)
        if ((nodes ? nodes[i] : i) == asking)
            return asking;
    return nodes ? nodes[drawn] : drawn;
}

static int draw_one(struct moon_run *run, enum moon_scenario_act what, int64_t rate, size_t asking,
                    struct moon_error *error) {
    const struct moon_scenario_faults *faults = &run->scenario->faults;
    if (rate == 0 || !moon_random_chance(&run->random, (uint64_t)rate, 1000))
        return 0;
    struct moon_run_fault fault = {.what = what};
    if (what == MOON_ACT_KILL || what == MOON_ACT_STOP) {
        fault.node = draw_node(run, faults->nodes, faults->node_count, asking);
    } else {
        size_t count = run->scenario->node_count;
        fault.node = draw_node(run, NULL, count, asking);
        fault.other = (fault.node + 1 + moon_random_below(&run->random, count - 1)) % count;
    }
    moon_ns longest = faults->length_max_ns >> moon_random_below(&run->random, HALVINGS_MAX);
    fault.length_ns = moon_random_between(&run->random, longest / 2, longest);
    moon_ns delay_ns = moon_random_between(&run->random, 0, DELAY_MAX_NS);
    return add_fault(run, &fault, delay_ns, error);
}

int moon_run_draw_faults(struct moon_run *run, size_t asking, struct moon_error *error) {
    const struct moon_scenario_faults *faults = &run->scenario->faults;
    const struct {
        enum moon_scenario_act what;
        int64_t rate;
    } kinds[] = {{MOON_ACT_KILL, faults->crash},
                 {MOON_ACT_STOP, faults->stop},
                 {MOON_ACT_PARTITION, faults->partition},
                 {MOON_ACT_DROP, faults->drop}};
    int status = 0;
    if (!run->setting->with_faults || !faults->there || run->world->kind != &moon_world_sim)
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == 0; i++)
        status = draw_one(run, kinds[i].what, kinds[i].rate, asking, error);
    return status;
}

/* Two faults of one kind at one place are one: the later is left out. */
static bool is_so_already(const struct moon_run *run, const struct moon_run_fault *fault) {
    if (fault->what == MOON_ACT_KILL && run->nodes[fault->node].state == MOON_RUN_DOWN)
        return true;
    for (size_t i = 0; i < run->fault_count; i++) {
        const struct moon_run_fault *other = &run->faults[i];
        bool pair = (other->node == fault->node && other->other == fault->other) ||
                    (other->node == fault->other && other->other == fault->node);
        if (other != fault && other->applied && other->what == fault->what &&
            (fault->what == MOON_ACT_PARTITION ? pair : other->node == fault->node))
            return true;
    }
    return false;
}

int moon_run_fault(struct moon_run *run, size_t index, struct moon_error *error) {
    struct moon_run_fault *fault = &run->faults[index];
    if (!fault->applied) {
        if (is_so_already(run, fault)) {
            run->faults_open--;
            return 0;
        }
        fault->applied = true;
        int status = moon_run_act(run, fault->what, fault->node, fault->other, error);
        return status == 0 ? run->world->kind->wake(run->world, fault->length_ns, token_of(run, index), error) : status;
    }
    fault->applied = false;
    run->faults_open--;
    if (fault->what == MOON_ACT_KILL)
        return moon_run_boot(run, fault->node, MOON_SCENARIO_NONE, error);
    if (fault->what == MOON_ACT_STOP)
        return moon_run_act(run, MOON_ACT_CONTINUE, fault->node, 0, error);
    if (fault->what == MOON_ACT_PARTITION)
        return moon_run_act(run, MOON_ACT_HEAL, fault->node, fault->other, error);
    return 0;
}
