/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that live in this process: what worlds sim and mem share. A handler cannot be left midway, so a node that is
 * held at a record runs on to the end of its event; what it sends leaves at a later event, and what it tells is kept
 * back, so that nothing of it shows when the node is killed there. */
#ifndef MOON_WORLDS_INSIDE_H
#define MOON_WORLDS_INSIDE_H

#include "conformance/worlds/world.h"
#include "ref/store/client_node.h"
#include "ref/store/master_node.h"

struct moon_inside;
struct moon_inside_call;
struct moon_inside_held;

/* One node.
 *   program  and its settings: master or client
 *   steps    anchors that it is held at
 *   held     what waits behind them, in order
 *   stopped  by an action of the scenario
 *   n        of its next record, from 0 at each boot: without a gap, whatever is lost when it is held */
struct moon_inside_node {
    struct moon_inside *inside;
    size_t index;
    const struct moon_program *program;
    const void *settings;
    struct moon_master_node_settings master;
    struct moon_client_node_settings client;
    void *instance; /* of the program, NULL while it is down */
    bool up, stopped;
    uint32_t boot;
    uint64_t n;
    size_t steps;
    struct moon_inside_held *held, **held_tail;
    struct moon_inside_call *calls;
    char host[32], endpoint[48];
};

/* A world of such nodes. now: the time that is in the records; enter: the node is called from outside, its clocks must
 * be right; touched: it was called. */
struct moon_inside {
    struct moon_world world;
    moon_ns (*now)(struct moon_inside *inside);
    void (*enter)(struct moon_inside *inside, size_t node);
    void (*touched)(struct moon_inside *inside, size_t node);
    struct moon_recorder recorder; /* takes records with all members filled, gives them their n */
    struct moon_wire_protocol protocol;
    struct moon_inside_node nodes[MOON_SCENARIO_NODES_MAX];
    struct moon_history records, spare; /* spare: those that are held back */
    struct moon_inside_call *ended, *lost;
};

int moon_inside_open(struct moon_inside *inside, const struct moon_world_kind *kind,
                     const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                     struct moon_error *error);
void moon_inside_close(struct moon_inside *inside); /* after the nodes are gone */
int moon_inside_submit(struct moon_world *world, struct moon_world_call *call, struct moon_error *error);
int moon_inside_go(struct moon_world *world, size_t anchor, struct moon_error *error);
/* The node is about to die: what it has under way is lost, with all that it is held with. */
void moon_inside_kill(struct moon_inside *inside, size_t node);
/* It goes on after a stop: does what was asked meanwhile. */
int moon_inside_go_on(struct moon_inside *inside, size_t node, struct moon_error *error);
int moon_inside_history(struct moon_world *world, struct moon_history *history, struct moon_error *error);
/* The advance() of a world: gives back the calls that have been told, then goes `further` until there is an event to
 * tell; QUIET when it says that nothing can happen in time. `further` marks world->failed when memory was refused.
 * Returns 0 or MOON_ERR_MEMORY. */
int moon_inside_advance(struct moon_inside *inside, bool (*further)(struct moon_world *world),
                        struct moon_world_event *event, struct moon_error *error);

#endif
