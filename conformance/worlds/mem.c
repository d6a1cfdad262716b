/* SPDX-License-Identifier: Apache-2.0 */
/* World mem: the nodes on streams that have no delay, in virtual time. The quickest run; no network, no faults but a
 * crash. */
#include "conformance/worlds/inside.h"
#include "ref/fabric/memory.h"

#include <stdio.h>
#include <string.h>

/* Before each piece of memory of a process, so that a crash gives all of it back. */
struct block {
    alignas(max_align_t) struct block *next;
    struct block *previous;
    size_t bytes; /* of the piece */
};

struct alarm {
    moon_ns time_ns;
    size_t token;
};

struct mem_node {
    struct moon_memory memory; /* first: the process's own */
    struct mem_world *world;
    struct block ring;
    struct moon_recorder recorder;
    struct moon_environment environment;
    uint32_t boots;
};

struct mem_world {
    struct moon_inside inside; /* first */
    struct moon_memory_fabric *fabric;
    struct mem_node nodes[MOON_SCENARIO_NODES_MAX];
    struct alarm *alarms; /* in the order of their time, then of their setting */
    size_t alarm_count, alarm_capacity;
    moon_ns since_ns; /* the last event that was told */
};

static struct mem_world *of(struct moon_world *world) {
    return (struct mem_world *)world;
}

/* ---- memory of a process ---- */

static void unlink_block(struct block *block) {
    block->previous->next = block->next;
    block->next->previous = block->previous;
}

static void *resize(struct moon_memory *memory, void *old, size_t old_bytes, size_t new_bytes) {
    struct mem_node *node = (struct mem_node *)memory;
    struct moon_memory *below = node->world->inside.world.setting.memory;
    struct block *block = old ? (struct block *)old - 1 : NULL;
    size_t before = block ? sizeof *block + old_bytes : 0, after;
    if (new_bytes == 0) {
        if (block) {
            unlink_block(block);
            below->resize(below, block, before, 0);
        }
        return NULL;
    }
    if (__builtin_add_overflow(sizeof *block, new_bytes, &after))
        return NULL;
    if (block)
        unlink_block(block);
    struct block *grown = below->resize(below, block, before, after), *kept = grown ? grown : block;
    if (!kept)
        return NULL;
    if (grown)
        grown->bytes = new_bytes;
    kept->next = node->ring.next;
    kept->previous = &node->ring;
    kept->next->previous = kept->previous->next = kept;
    return grown ? grown + 1 : NULL;
}

static void free_all(struct mem_node *node) {
    while (node->ring.next != &node->ring)
        resize(&node->memory, node->ring.next + 1, node->ring.next->bytes, 0);
}

/* ---- records ---- */

static void record_of_node(struct moon_recorder *self, const struct moon_record *record) {
    struct mem_node *node = (struct mem_node *)((char *)self - offsetof(struct mem_node, recorder));
    struct mem_world *world = node->world;
    struct moon_record full = *record;
    full.node = moon_bytes_of(world->inside.world.scenario->nodes[node - world->nodes].name);
    full.clock = moon_bytes_of("sim");
    full.boot = node->boots - 1;
    full.time_ns = moon_memory_fabric_now(world->fabric);
    world->inside.recorder.record(&world->inside.recorder, &full);
}

static void record_fault(struct mem_node *node, const char *what) {
    record_of_node(&node->recorder, &(struct moon_record){.kind = MOON_RECORD_FAULT, .what = what});
}

/* ---- the world ---- */

static moon_ns now(struct moon_inside *inside) {
    return moon_memory_fabric_now(of(&inside->world)->fabric);
}

/* Both clocks are one: nothing drifts here. */
static void enter(struct moon_inside *inside, size_t node) {
    struct moon_environment *environment = &of(&inside->world)->nodes[node].environment;
    moon_ns passed = now(inside) - environment->now_ns;
    environment->now_ns += passed;
    environment->wall_ns += passed;
}

static void touched(struct moon_inside *inside, size_t node) {
    (void)inside; /* every deadline is asked for at each step */
    (void)node;
}

static const char *cannot(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                          struct moon_arena *arena) {
    (void)setting;
    for (size_t i = 0; i < scenario->action_count; i++) {
        const struct moon_scenario_action *action = &scenario->actions[i];
        if (action->what != MOON_ACT_KILL && action->what != MOON_ACT_RESTART && action->what != MOON_ACT_EXPIRE)
            return moon_arena_format(arena, "world mem has no \"%s\" (action %s)", moon_scenario_act_name(action->what),
                                     action->id);
        if (action->what == MOON_ACT_EXPIRE && action->before != MOON_SCENARIO_NONE)
            return moon_arena_format(arena, "world mem cannot hold a node while time passes (action %s)", action->id);
    }
    return NULL;
}

static void end_node(struct mem_world *self, size_t index) {
    struct mem_node *node = &self->nodes[index];
    moon_memory_fabric_detach(self->fabric, &node->environment);
    free_all(node);
}

static void close_world(struct moon_world *world) {
    struct mem_world *self = of(world);
    struct moon_memory *memory = world->setting.memory;
    for (size_t i = 0; i < world->scenario->node_count; i++)
        if (self->inside.nodes[i].up)
            end_node(self, i);
    if (self->fabric)
        moon_memory_fabric_close(self->fabric);
    if (self->alarms)
        memory->resize(memory, self->alarms, self->alarm_capacity * sizeof *self->alarms, 0);
    moon_inside_close(&self->inside);
    memory->resize(memory, self, sizeof *self, 0);
}

static int open_world(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                      struct moon_world **world, struct moon_error *error) {
    struct moon_memory *memory = setting->memory;
    struct mem_world *self = memory->resize(memory, NULL, 0, sizeof *self);
    *world = NULL;
    if (!self)
        return moon_no_memory(error);
    *self = (struct mem_world){.fabric = NULL};
    int status = moon_inside_open(&self->inside, &moon_world_mem, setting, scenario, error);
    self->inside.now = now;
    self->inside.enter = enter;
    self->inside.touched = touched;
    for (size_t i = 0; i < scenario->node_count; i++) {
        struct mem_node *node = &self->nodes[i];
        *node = (struct mem_node){.memory = {resize}, .world = self, .recorder = {record_of_node}};
        node->ring.next = node->ring.previous = &node->ring;
    }
    if (status == 0) {
        self->fabric = moon_memory_fabric_open(memory);
        status = self->fabric ? 0 : moon_no_memory(error);
    }
    *world = &self->inside.world;
    if (status != 0) {
        close_world(*world);
        *world = NULL;
    }
    return status;
}

static int boot(struct moon_world *world, size_t index, struct moon_error *error) {
    struct mem_world *self = of(world);
    struct moon_inside_node *inside = &self->inside.nodes[index];
    struct mem_node *node = &self->nodes[index];
    struct moon_random random;
    char name[64];
    size_t bytes = inside->client.client.segment_bytes;
    moon_world_count_anew(world, index);
    moon_random_seed(&random, world->setting.seed);
    snprintf(name, sizeof name, "%s %u", world->scenario->nodes[index].name, node->boots++);
    node->environment = (struct moon_environment){
        .random = moon_random_split(&random, name), .memory = &node->memory, .recorder = &node->recorder};
    if (moon_memory_fabric_attach(self->fabric, &node->environment, inside->host) != 0)
        return moon_no_memory(error);
    inside->up = true;
    record_fault(node, "boot");
    inside->client.client.segment = bytes > 0 ? resize(&node->memory, NULL, 0, bytes) : NULL;
    if (bytes > 0 && !inside->client.client.segment)
        return moon_no_memory(error);
    if (bytes > 0)
        memset(inside->client.client.segment, 0, bytes);
    inside->instance = inside->program->boot(inside->settings, &node->environment, error);
    return inside->instance ? 0 : error->status;
}

static int act(struct moon_world *world, enum moon_scenario_act what, size_t index, size_t other,
               struct moon_error *error) {
    struct mem_world *self = of(world);
    (void)other;
    (void)error;
    if (what != MOON_ACT_KILL || !self->inside.nodes[index].up)
        return 0; /* cannot() let nothing else through */
    moon_inside_kill(&self->inside, index);
    record_fault(&self->nodes[index], "kill");
    end_node(self, index);
    return 0;
}

static int wake(struct moon_world *world, moon_ns delay_ns, size_t token, struct moon_error *error) {
    struct mem_world *self = of(world);
    struct alarm alarm = {moon_memory_fabric_now(self->fabric) + delay_ns, token};
    struct alarm *grown = moon_memory_grow(world->setting.memory, self->alarms, &self->alarm_capacity,
                                           self->alarm_count + 1, sizeof *grown, 16);
    if (!grown)
        return moon_no_memory(error);
    self->alarms = grown;
    size_t place = self->alarm_count++;
    for (; place > 0 && grown[place - 1].time_ns > alarm.time_ns; place--)
        grown[place] = grown[place - 1];
    grown[place] = alarm;
    return 0;
}

/* ---- time ---- */

/* The earliest thing that waits for time to pass. */
static moon_ns next_time(const struct mem_world *self) {
    moon_ns next = self->alarm_count > 0 ? self->alarms[0].time_ns : MOON_NS_NEVER;
    for (size_t i = 0; i < self->inside.world.scenario->node_count; i++) {
        const struct moon_inside_node *node = &self->inside.nodes[i];
        moon_ns deadline = node->up ? node->program->deadline(node->instance) : MOON_NS_NEVER;
        next = deadline < next ? deadline : next;
    }
    return next;
}

/* One tick of the first node that is due, else one alarm. */
static void do_due(struct mem_world *self) {
    moon_ns time_ns = moon_memory_fabric_now(self->fabric);
    for (size_t i = 0; i < self->inside.world.scenario->node_count; i++) {
        struct moon_inside_node *node = &self->inside.nodes[i];
        if (!node->up || node->program->deadline(node->instance) > time_ns)
            continue;
        enter(&self->inside, i);
        node->program->tick(node->instance);
        return;
    }
    moon_world_tell(&self->inside.world,
                    &(struct moon_world_event){.kind = MOON_WORLD_WOKE, .token = self->alarms[0].token});
    self->alarm_count--;
    memmove(self->alarms, self->alarms + 1, self->alarm_count * sizeof *self->alarms);
}

/* False: nothing can happen in time. */
static bool go_further(struct moon_world *world) {
    struct mem_world *self = of(world);
    if (moon_memory_fabric_step(self->fabric))
        return true;
    moon_ns next = next_time(self), time_ns = moon_memory_fabric_now(self->fabric);
    if (next == MOON_NS_NEVER || next - self->since_ns > MOON_WORLD_QUIET_VIRTUAL_NS)
        return false;
    if (next > time_ns)
        moon_memory_fabric_advance(self->fabric, next);
    do_due(self);
    return true;
}

static int advance(struct moon_world *world, struct moon_world_event *event, struct moon_error *error) {
    struct mem_world *self = of(world);
    int status = moon_inside_advance(&self->inside, go_further, event, error);
    if (!status && event->kind != MOON_WORLD_QUIET)
        self->since_ns = moon_memory_fabric_now(self->fabric);
    return status;
}

const struct moon_world_kind moon_world_mem = {
    .name = "mem",
    .virtual_time = true,
    .cannot = cannot,
    .open = open_world,
    .close = close_world,
    .boot = boot,
    .submit = moon_inside_submit,
    .act = act,
    .go = moon_inside_go,
    .wake = wake,
    .advance = advance,
    .history = moon_inside_history,
};
