/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the simulator share. Nobody else includes it. */
#ifndef MOON_SIM_INTERNAL_H
#define MOON_SIM_INTERNAL_H

#include "ref/base/heap.h"
#include "ref/base/text.h"
#include "sim/sim.h"

/* The struct of `type` whose `member` is at `pointer`. */
#define MOON_SIM_OWNER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- events (sim_events.c): a total order of time, then of scheduling */

struct moon_sim_event {
    struct moon_heap_node place; /* first member */
    void (*run)(struct moon_sim *sim, struct moon_sim_event *event);
    size_t owned_bytes; /* not 0: allocated for one run, freed behind it */
};

/* A one-time event of `bytes`, which begin with a struct moon_sim_event. NULL: the run has failed. */
void *moon_sim_event_new(struct moon_sim *sim, size_t bytes, moon_ns time_ns,
                         void (*run)(struct moon_sim *, struct moon_sim_event *));
/* Schedules an event that lives in another object, or moves it if it waits already. */
void moon_sim_event_set(struct moon_sim *sim, struct moon_sim_event *event, moon_ns time_ns);
bool moon_sim_event_waits(const struct moon_sim_event *event);
void moon_sim_event_cancel(struct moon_sim *sim, struct moon_sim_event *event);
void moon_sim_events_close(struct moon_sim *sim);
/* Memory of the simulation itself, zeroed. NULL: the run has failed. */
void *moon_sim_alloc(struct moon_sim *sim, size_t bytes);
void moon_sim_free(struct moon_sim *sim, void *piece, size_t bytes);

/* ---- memory of a node (sim_node_memory.c) */

struct moon_sim_memory {
    struct moon_memory memory; /* first member */
    struct moon_sim *sim;
    struct moon_sim_block *blocks;
    size_t held_bytes;
};
void moon_sim_memory_open(struct moon_sim_memory *memory, struct moon_sim *sim);
void moon_sim_memory_release(struct moon_sim_memory *memory); /* all that is held */

/* ---- verbs of a node (sim_verbs.c) */

struct moon_sim_region;
struct moon_sim_queue_pair;
struct moon_sim_completion;

struct moon_sim_verbs {
    struct moon_verbs verbs; /* first member */
    struct moon_random random;
    struct moon_sim_region *regions;
    struct moon_sim_queue_pair *queue_pairs;
    struct moon_sim_completion *completions, *completions_last;
    struct moon_sim_event complete;
};
void moon_sim_verbs_open(struct moon_sim_node *node);
void moon_sim_verbs_reset(struct moon_sim_node *node); /* the process has died: all is gone */
void moon_sim_verbs_go_on(struct moon_sim_node *node);

/* ---- nodes (sim_node.c) */

struct moon_sim_hardware {
    struct moon_sim_hardware *next;
    void *piece;
    size_t bytes;
};

struct moon_sim_node {
    struct moon_sim *sim;
    struct moon_sim_node *next;
    struct moon_bytes name, host; /* copies with a NUL behind */
    const struct moon_program *program;
    const void *settings;
    void *instance;
    struct moon_environment environment;
    struct moon_sim_memory memory;
    struct moon_streams streams;
    struct moon_recorder recorder;
    struct moon_sim_verbs verbs;
    struct moon_sim_hardware *hardware;
    struct moon_sim_listener *listeners;
    struct moon_sim_event tick;
    /* clock: now = offset + t + t * drift / 1,000,000 */
    moon_ns clock_offset_ns, wall_offset_ns;
    int64_t drift_millionths;
    uint64_t next_port, n;
    uint32_t boot;
    bool booted; /* ever */
    bool up;     /* boot has begun, neither crash nor halt has come */
    bool stopped;
    bool in_call;
    uint32_t ticks_in_place; /* at last_tick_ns */
    moon_ns last_tick_ns;
};

/* Around every call into a node: sets its clocks; asks for its deadline. */
void moon_sim_enter(struct moon_sim_node *node);
void moon_sim_leave(struct moon_sim_node *node);
/* The process is gone: instance, streams, verbs, memory. */
void moon_sim_take_down(struct moon_sim_node *node, bool orderly);
bool moon_sim_awake(const struct moon_sim_node *node);

/* ---- clocks (sim_clock.c) */

void moon_sim_clock_draw(struct moon_sim_node *node);
moon_ns moon_sim_clock_at(const struct moon_sim_node *node, moon_ns time_ns);
/* Simulated time at which the node's clock first shows `clock_ns`; 0 if before the start, NEVER if never. */
moon_ns moon_sim_clock_when(const struct moon_sim_node *node, moon_ns clock_ns);

/* ---- records (sim_recorder.c) */

void moon_sim_recorder_open(struct moon_sim_node *node);
void moon_sim_record_fault(struct moon_sim_node *node, const char *what, const struct moon_sim_node *other);

/* ---- streams (sim_streams.c) */

void moon_sim_streams_open(struct moon_sim_node *node);
void moon_sim_streams_take_down(struct moon_sim_node *node, bool orderly);
void moon_sim_streams_go_on(struct moon_sim_node *node);
void moon_sim_streams_heal(struct moon_sim_node *a, struct moon_sim_node *b);
void moon_sim_streams_break(struct moon_sim_node *a, struct moon_sim_node *b);
void moon_sim_streams_reap(struct moon_sim *sim); /* frees what ended during the event */
void moon_sim_streams_close(struct moon_sim *sim);

/* ---- faults (sim_faults.c) */

struct moon_sim_partition {
    struct moon_sim_partition *next;
    const struct moon_sim_node *a, *b;
    uint64_t serial;
};
bool moon_sim_blocked(const struct moon_sim_node *a, const struct moon_sim_node *b);
void moon_sim_faults_close(struct moon_sim *sim);

struct moon_sim {
    struct moon_memory *memory;
    struct moon_sim_settings settings;
    struct moon_random root; /* never advanced: streams are split from it by name */
    struct moon_random world;
    struct moon_recorder *recorder;
    struct moon_heap events;
    moon_ns now_ns;
    bool failed;
    struct moon_sim_node *nodes, *nodes_last; /* in the order of their addition */
    struct moon_sim_connection *connections, *connections_last;
    struct moon_sim_connection *ended;
    uint64_t connections_made, partitions_made;
    struct moon_sim_partition *partitions;
};

#endif
