/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: processes that begin, are called, tick, and end (SIM-002). */
#include "sim/sim_internal.h"

#include <assert.h>
#include <stdio.h>

enum {
    FIRST_FREE_PORT = 32768, /* of connections that a node opens; counts up and is never used twice */
    TICKS_IN_PLACE_MAX = 100000,
    HOST_BYTES_MAX = 40,
    NAME_BYTES_MAX = 64,
};

static char *copy_text(struct moon_sim *sim, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = moon_sim_alloc(sim, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static bool is_taken(const struct moon_sim *sim, const char *name, const char *host) {
    for (const struct moon_sim_node *node = sim->nodes; node; node = node->next)
        if (strcmp(node->name.data, name) == 0 || strcmp(node->host.data, host) == 0)
            return true;
    return false;
}

static void schedule_tick(struct moon_sim_node *node) {
    moon_ns when = moon_sim_clock_when(node, node->program->deadline(node->instance)), now = node->sim->now_ns;
    when = when < now ? now : when;
    if (when == MOON_NS_NEVER)
        moon_sim_event_cancel(node->sim, &node->tick);
    else if (!moon_sim_event_waits(&node->tick) || node->tick.place.time_ns != when)
        moon_sim_event_set(node->sim, &node->tick, when);
}

static void run_tick(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_node *node = MOON_SIM_OWNER(event, struct moon_sim_node, tick);
    if (!moon_sim_awake(node))
        return;
    node->ticks_in_place = sim->now_ns == node->last_tick_ns ? node->ticks_in_place + 1 : 0;
    node->last_tick_ns = sim->now_ns;
    assert(node->ticks_in_place < TICKS_IN_PLACE_MAX && "the program's deadline does not move on");
    moon_sim_enter(node);
    node->program->tick(node->instance);
    moon_sim_leave(node);
}

struct moon_sim_node *moon_sim_add(struct moon_sim *sim, const char *name, const char *host,
                                   const struct moon_program *program, const void *settings) {
    assert(strlen(name) <= NAME_BYTES_MAX && strlen(host) <= HOST_BYTES_MAX);
    if (is_taken(sim, name, host))
        return NULL;
    struct moon_sim_node *node = moon_sim_alloc(sim, sizeof *node);
    char *own_name = copy_text(sim, name), *own_host = copy_text(sim, host);
    if (!node || !own_name || !own_host) {
        moon_sim_free(sim, own_host, strlen(host) + 1);
        moon_sim_free(sim, own_name, strlen(name) + 1);
        moon_sim_free(sim, node, sizeof *node);
        return NULL;
    }
    node->sim = sim;
    node->name = moon_bytes_of(own_name);
    node->host = moon_bytes_of(own_host);
    node->program = program;
    node->settings = settings;
    node->next_port = FIRST_FREE_PORT;
    node->tick.run = run_tick;
    moon_sim_clock_draw(node);
    moon_sim_memory_open(&node->memory, sim);
    moon_sim_recorder_open(node);
    moon_sim_streams_open(node);
    moon_sim_verbs_open(node);
    if (sim->nodes_last)
        sim->nodes_last->next = node;
    else
        sim->nodes = node;
    sim->nodes_last = node;
    return node;
}

bool moon_sim_awake(const struct moon_sim_node *node) {
    return node->up && !node->stopped;
}

static void set_clocks(struct moon_sim_node *node) {
    node->environment.now_ns = moon_sim_clock_at(node, node->sim->now_ns);
    node->environment.wall_ns = node->wall_offset_ns + node->sim->now_ns;
}

void moon_sim_enter(struct moon_sim_node *node) {
    assert(!node->in_call && node->up);
    node->in_call = true;
    set_clocks(node);
}

void moon_sim_touched(struct moon_sim_node *node) {
    if (!node->in_call && moon_sim_awake(node))
        schedule_tick(node);
}

void moon_sim_leave(struct moon_sim_node *node) {
    assert(node->in_call);
    node->in_call = false;
    moon_sim_touched(node);
}

static struct moon_random draw_random(const struct moon_sim_node *node) {
    char name[NAME_BYTES_MAX + 32];
    snprintf(name, sizeof name, "node %s boot %u", node->name.data, (unsigned)node->boot);
    return moon_random_split(&node->sim->root, name);
}

static void prepare_boot(struct moon_sim_node *node) {
    if (node->booted) {
        node->boot++;
        node->n = 0;
    }
    node->booted = true;
    node->up = true;
    for (struct moon_sim_hardware *hardware = node->hardware; hardware; hardware = hardware->next)
        memset(hardware->piece, 0, hardware->bytes);
    node->environment = (struct moon_environment){
        .random = draw_random(node),
        .memory = &node->memory.memory,
        .streams = &node->streams,
        .recorder = node->sim->recorder ? &node->recorder : NULL,
    };
}

int moon_sim_boot(struct moon_sim_node *node, struct moon_error *error) {
    struct moon_error boot_error = {.status = MOON_ERR_MEMORY, .message = "no memory"};
    assert(!node->up && !node->in_call);
    prepare_boot(node);
    moon_sim_record_fault(node, "boot", NULL);
    moon_sim_enter(node);
    node->instance = node->program->boot(node->settings, &node->environment, &boot_error);
    if (node->instance) {
        moon_sim_leave(node);
        return 0;
    }
    node->in_call = false;
    moon_sim_take_down(node, true);
    if (error)
        *error = boot_error;
    return boot_error.status;
}

void moon_sim_take_down(struct moon_sim_node *node, bool orderly) {
    assert(!node->in_call);
    node->up = node->stopped = false;
    node->instance = NULL;
    moon_sim_event_cancel(node->sim, &node->tick);
    moon_sim_streams_take_down(node, orderly);
    moon_sim_verbs_reset(node);
    moon_sim_memory_release(&node->memory);
}

size_t moon_sim_halt(struct moon_sim_node *node) {
    assert(!node->in_call);
    moon_sim_go_on(node);
    if (!node->up)
        return 0;
    moon_sim_enter(node);
    node->program->halt(node->instance);
    node->in_call = false;
    size_t held_bytes = node->memory.held_bytes;
    moon_sim_record_fault(node, "halt", NULL);
    moon_sim_take_down(node, true);
    return held_bytes;
}

void *moon_sim_node_memory(struct moon_sim_node *node, size_t bytes) {
    struct moon_sim_hardware *hardware = moon_sim_alloc(node->sim, sizeof *hardware);
    void *piece = moon_sim_alloc(node->sim, bytes);
    if (!hardware || !piece) {
        moon_sim_free(node->sim, hardware, sizeof *hardware);
        moon_sim_free(node->sim, piece, bytes);
        return NULL;
    }
    *hardware = (struct moon_sim_hardware){.next = node->hardware, .piece = piece, .bytes = bytes};
    node->hardware = hardware;
    return piece;
}

void *moon_sim_node_instance(struct moon_sim_node *node) {
    if (node->up)
        set_clocks(node);
    return node->instance;
}

struct moon_environment *moon_sim_node_environment(struct moon_sim_node *node) {
    if (node->up)
        set_clocks(node);
    return &node->environment;
}

struct moon_verbs *moon_sim_node_verbs(struct moon_sim_node *node) {
    return &node->verbs.verbs;
}
