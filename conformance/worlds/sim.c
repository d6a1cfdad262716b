/* SPDX-License-Identifier: Apache-2.0 */
/* World sim: the nodes in the simulator, with its network, clocks and faults. */
#include "sim/sim.h"
#include "conformance/worlds/inside.h"

/* Something that wakes; linked so that it is given back. */
struct alarm {
    struct alarm *next;
    struct sim_world *world;
    size_t token;
};

struct sim_world {
    struct moon_inside inside; /* first */
    struct moon_sim *sim;
    struct moon_sim_node *nodes[MOON_SCENARIO_NODES_MAX];
    bool frozen[MOON_SCENARIO_NODES_MAX]; /* because time passes while it is held */
    struct alarm *alarms;
    moon_ns since_ns; /* the last event that was told */
};

static struct sim_world *of(struct moon_world *world) {
    return (struct sim_world *)world;
}

static moon_ns now(struct moon_inside *inside) {
    return moon_sim_now(of(&inside->world)->sim);
}

static void enter(struct moon_inside *inside, size_t node) {
    moon_sim_node_environment(of(&inside->world)->nodes[node]);
}

static void touched(struct moon_inside *inside, size_t node) {
    moon_sim_touched(of(&inside->world)->nodes[node]);
}

static const char *cannot(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                          struct moon_arena *arena) {
    (void)setting;
    (void)scenario;
    (void)arena;
    return NULL;
}

static void close_world(struct moon_world *world) {
    struct sim_world *self = of(world);
    struct moon_memory *memory = world->setting.memory;
    if (self->sim)
        moon_sim_close(self->sim);
    while (self->alarms) {
        struct alarm *alarm = self->alarms;
        self->alarms = alarm->next;
        memory->resize(memory, alarm, sizeof *alarm, 0);
    }
    moon_inside_close(&self->inside);
    memory->resize(memory, self, sizeof *self, 0);
}

static int open_world(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                      struct moon_world **world, struct moon_error *error) {
    struct moon_memory *memory = setting->memory;
    struct moon_sim_settings network = moon_sim_defaults();
    struct sim_world *self = memory->resize(memory, NULL, 0, sizeof *self);
    *world = NULL;
    if (!self)
        return moon_no_memory(error);
    *self = (struct sim_world){.sim = NULL};
    int status = moon_inside_open(&self->inside, &moon_world_sim, setting, scenario, error);
    self->inside.now = now;
    self->inside.enter = enter;
    self->inside.touched = touched;
    if (status == 0) {
        self->sim = moon_sim_open(memory, setting->seed, &network, &self->inside.recorder);
        status = self->sim ? 0 : moon_no_memory(error);
    }
    for (size_t i = 0; i < scenario->node_count && status == 0; i++) {
        struct moon_inside_node *node = &self->inside.nodes[i];
        self->nodes[i] = moon_sim_add(self->sim, scenario->nodes[i].name, node->host, node->program, node->settings);
        status = self->nodes[i] ? 0 : moon_no_memory(error);
    }
    *world = &self->inside.world;
    if (status != 0) {
        close_world(*world);
        *world = NULL;
    }
    return status;
}

static int boot(struct moon_world *world, size_t index, struct moon_error *error) {
    struct sim_world *self = of(world);
    struct moon_inside_node *node = &self->inside.nodes[index];
    size_t bytes = node->client.client.segment_bytes;
    moon_world_count_anew(world, index);
    if (bytes > 0 && !node->client.client.segment) /* the same at each start, zeroed */
        node->client.client.segment = moon_sim_node_memory(self->nodes[index], bytes);
    if (bytes > 0 && !node->client.client.segment)
        return moon_no_memory(error);
    int status = moon_sim_boot(self->nodes[index], error);
    node->up = status == 0;
    node->instance = moon_sim_node_instance(self->nodes[index]);
    return status;
}

static int go_on(struct sim_world *self, size_t index, struct moon_error *error) {
    if (self->frozen[index] || self->inside.nodes[index].stopped)
        moon_sim_go_on(self->nodes[index]);
    self->frozen[index] = false;
    return moon_inside_go_on(&self->inside, index, error);
}

static int act(struct moon_world *world, enum moon_scenario_act what, size_t index, size_t other,
               struct moon_error *error) {
    struct sim_world *self = of(world);
    struct moon_inside_node *node = &self->inside.nodes[index];
    if (what == MOON_ACT_PARTITION) {
        moon_sim_partition(self->nodes[index], self->nodes[other]);
    } else if (what == MOON_ACT_HEAL) {
        moon_sim_heal(self->nodes[index], self->nodes[other]);
    } else if (what == MOON_ACT_DROP) {
        moon_sim_break_streams(self->nodes[index], self->nodes[other]);
    } else if (what == MOON_ACT_KILL && node->up) {
        self->frozen[index] = false;
        moon_inside_kill(&self->inside, index);
        moon_sim_crash(self->nodes[index]);
    } else if (what == MOON_ACT_STOP && node->up && !node->stopped) {
        if (!self->frozen[index])
            moon_sim_stop(self->nodes[index]);
        self->frozen[index] = false;
        node->stopped = true;
    } else if (what == MOON_ACT_CONTINUE && node->stopped) {
        return go_on(self, index, error);
    }
    return 0;
}

static int go(struct moon_world *world, size_t anchor, struct moon_error *error) {
    struct sim_world *self = of(world);
    size_t node = world->scenario->anchors[anchor].node;
    if (self->frozen[node] && self->inside.nodes[node].steps == 1)
        moon_sim_go_on(self->nodes[node]);
    self->frozen[node] &= self->inside.nodes[node].steps > 1;
    return moon_inside_go(world, anchor, error);
}

static void woke(void *context) {
    const struct alarm *alarm = context;
    moon_world_tell(&alarm->world->inside.world,
                    &(struct moon_world_event){.kind = MOON_WORLD_WOKE, .token = alarm->token});
}

static int wake(struct moon_world *world, moon_ns delay_ns, size_t token, struct moon_error *error) {
    struct sim_world *self = of(world);
    struct moon_memory *memory = world->setting.memory;
    struct alarm *alarm = memory->resize(memory, NULL, 0, sizeof *alarm);
    if (!alarm)
        return moon_no_memory(error);
    *alarm = (struct alarm){self->alarms, self, token};
    self->alarms = alarm;
    return moon_sim_at(self->sim, moon_sim_now(self->sim) + delay_ns, woke, alarm) == 0 ? 0 : moon_no_memory(error);
}

/* Nodes that are held while time goes on get nothing, as a process that waits for its supervisor. */
static void freeze(struct sim_world *self) {
    for (size_t i = 0; i < self->inside.world.scenario->node_count; i++) {
        const struct moon_inside_node *node = &self->inside.nodes[i];
        if (node->steps > 0 && !node->stopped && !self->frozen[i]) {
            moon_sim_stop(self->nodes[i]);
            self->frozen[i] = true;
        }
    }
}

/* False: nothing can happen in time. */
static bool go_further(struct moon_world *world) {
    struct sim_world *self = of(world);
    freeze(self);
    bool more = moon_sim_now(self->sim) - self->since_ns < MOON_WORLD_QUIET_VIRTUAL_NS && moon_sim_step(self->sim);
    world->failed |= moon_sim_failed(self->sim);
    return more;
}

static int advance(struct moon_world *world, struct moon_world_event *event, struct moon_error *error) {
    struct sim_world *self = of(world);
    int status = moon_inside_advance(&self->inside, go_further, event, error);
    if (!status && event->kind != MOON_WORLD_QUIET)
        self->since_ns = moon_sim_now(self->sim);
    return status;
}

const struct moon_world_kind moon_world_sim = {
    .name = "sim",
    .virtual_time = true,
    .cannot = cannot,
    .open = open_world,
    .close = close_world,
    .boot = boot,
    .submit = moon_inside_submit,
    .act = act,
    .go = go,
    .wake = wake,
    .advance = advance,
    .history = moon_inside_history,
};
