/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that live in this process: what worlds sim and mem share. A gate stands between each node and its streams, and
 * between it and the history, so that a node can be held at a record: what it sends and tells from then on waits. */
#ifndef MOON_WORLDS_INSIDE_H
#define MOON_WORLDS_INSIDE_H

#include "conformance/worlds/world.h"
#include "ref/store/client_node.h"
#include "ref/store/master_node.h"

struct moon_inside;
struct moon_inside_call;
struct moon_inside_held;

/* One node.
 *   gate     the streams that its program sees; below: those of the fabric
 *   steps    anchors that it is held at
 *   held     what waits behind them, in order
 *   stopped  by an action of the scenario
 *   n        of its next record, from 0 at each boot: without a gap, whatever is lost at the gate */
struct moon_inside_node {
    struct moon_streams gate, *below;
    struct moon_inside *inside;
    size_t index;
    const struct moon_program *program;
    struct moon_master_node_settings master;
    struct moon_client_node_settings client;
    void *instance;
    struct moon_environment *environment;
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

/* Runs the node's own program behind the gate; its settings are a struct moon_inside_node. */
extern const struct moon_program moon_inside_program;

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
/* Gives back calls that have been told. Between two events. */
void moon_inside_sweep(struct moon_inside *inside);

#endif
