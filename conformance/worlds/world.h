/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds: what a scenario is played in. One interface for the simulator, the memory world and real processes. */
#ifndef MOON_WORLDS_WORLD_H
#define MOON_WORLDS_WORLD_H

#include "conformance/worlds/scenario.h"
#include "reports/history.h"

/* Without any event for so long, a world is quiet: WORLD-004. */
#define MOON_WORLD_QUIET_VIRTUAL_NS (3600 * MOON_NS_PER_S)
#define MOON_WORLD_QUIET_REAL_NS    (90 * MOON_NS_PER_S)

/* What a world is opened with. Strings are borrowed until its close.
 *   seed      of every random number in it
 *   programs  world tcp: folder that holds mooncheck-master and mooncheck-client
 *   folder    world tcp: where histories and logs of nodes go; it exists
 *   client    world tcp: command of a foreign client that speaks the adapter protocol; NULL: mooncheck-client agent
 *   master    world tcp: "host:port" of a foreign master that runs already; NULL: mooncheck-master */
struct moon_world_setting {
    struct moon_memory *memory;
    uint64_t seed;
    const char *programs, *folder, *client, *master;
};

/* One operation of a node: asked once, ended once. Lives with the asker until then.
 *   fill     of put: value of key k is moon_fill(fill + k)
 *   results  one a key, at least one (setup and remove_all have no key): what the client returned
 *   digests  one a key: XXH3-64 of what a get read; 0 where it read nothing
 *   lost     the node died under it: nothing else is set */
struct moon_world_call {
    size_t node;
    enum moon_scenario_do what;
    const char *const *keys;
    size_t key_count;
    size_t bytes;
    uint64_t fill;
    bool force;
    int64_t *results;
    uint64_t *digests;
    bool lost;
};

enum moon_world_event_kind {
    MOON_WORLD_QUIET, /* nothing happened for the time above, or can happen any more */
    MOON_WORLD_ENDED, /* a call has ended */
    MOON_WORLD_STEP,  /* an anchor was reached; its node is held there until go() */
    MOON_WORLD_WOKE,  /* the time of wake() is over */
};

/* What advance() tells.
 *   lease_left_ns  STEP: how long the lease lasts that the record tells; MOON_NS_NEVER: it tells none */
struct moon_world_event {
    enum moon_world_event_kind kind;
    struct moon_world_call *call;
    size_t anchor;
    moon_ns lease_left_ns;
    size_t token;
};

struct moon_world;

/* A kind of world. Functions return 0 or an error in words; after one the world is good for history() and close()
 * alone. All of one world in one thread. Nodes are places in scenario->nodes. */
struct moon_world_kind {
    const char *name;
    bool virtual_time;
    /* Why this world cannot play the scenario, in `arena`; NULL: it can. */
    const char *(*cannot)(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                          struct moon_arena *arena);
    /* No node runs yet. */
    int (*open)(const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                struct moon_world **world, struct moon_error *error);
    void (*close)(struct moon_world *world);
    /* Starts a node, or starts it again after a kill. Clients need a call SETUP afterwards. Anchors of the node count
     * anew. */
    int (*boot)(struct moon_world *world, size_t node, struct moon_error *error);
    /* Begins a call on a node that runs. One that is stopped or held does it when it goes on. */
    int (*submit)(struct moon_world *world, struct moon_world_call *call, struct moon_error *error);
    /* Kill, stop, continue; partition, heal, drop with `other`. What is so already stays as it is. */
    int (*act)(struct moon_world *world, enum moon_scenario_act what, size_t node, size_t other,
               struct moon_error *error);
    /* Lets the node go on that is held at this anchor; once for each event STEP, unless the node was killed there. */
    int (*go)(struct moon_world *world, size_t anchor, struct moon_error *error);
    /* An event WOKE with this token comes after so long. */
    int (*wake)(struct moon_world *world, moon_ns delay_ns, size_t token, struct moon_error *error);
    /* Goes on until something happens. */
    int (*advance)(struct moon_world *world, struct moon_world_event *event, struct moon_error *error);
    /* Adds all records to `history`, in order. Once, at the end; nodes are ended by it. */
    int (*history)(struct moon_world *world, struct moon_history *history, struct moon_error *error);
};

/* All of them: sim, mem, tcp; a NULL ends. */
extern const struct moon_world_kind *const moon_worlds[];
extern const struct moon_world_kind moon_world_sim, moon_world_mem, moon_world_tcp;
const struct moon_world_kind *moon_world_find(const char *name); /* NULL: there is none */

/* ---- for worlds ---- */

/* What each world has: embedded as its first member. Events that have happened and were not told yet; anchors that are
 * not reached yet. */
struct moon_world {
    const struct moon_world_kind *kind;
    const struct moon_scenario *scenario;
    struct moon_world_setting setting;
    struct moon_world_event *events;
    size_t event_first, event_count, event_capacity;
    int64_t *counts; /* of each anchor */
    bool *reached;
    bool failed; /* memory refused: an event was lost */
};

int moon_world_open(struct moon_world *world, const struct moon_world_kind *kind,
                    const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                    struct moon_error *error);
void moon_world_close(struct moon_world *world);
void moon_world_tell(struct moon_world *world, const struct moon_world_event *event);
/* Takes the oldest event; false: there is none. */
bool moon_world_take(struct moon_world *world, struct moon_world_event *event);
/* Counts the record for the anchor; true: it is reached with this one. */
bool moon_world_reaches(struct moon_world *world, size_t anchor, size_t node, const struct moon_record *record);
/* A node starts: its anchors count from 0. */
void moon_world_count_anew(struct moon_world *world, size_t node);

#endif
