/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a scenario: how far its operations and actions are. Shared by the files of the runner. */
#ifndef MOON_WORLDS_RUN_H
#define MOON_WORLDS_RUN_H

#include "conformance/worlds/runner.h"

/* One operation. results, digests: of all keys of all repetitions so far, room for all. */
struct moon_run_operation {
    struct moon_world_call call;
    bool begun, paused, running, ended;
    int64_t repetition;
    int64_t *results;
    uint64_t *digests;
    size_t result_count;
};

struct moon_run_action {
    bool begun, done;
};

enum moon_run_node_state { MOON_RUN_DOWN, MOON_RUN_SETTING_UP, MOON_RUN_READY };

/* restarting: the action that waits for the set-up, or MOON_SCENARIO_NONE. */
struct moon_run_node {
    enum moon_run_node_state state;
    struct moon_world_call setup;
    int64_t setup_result;
    uint64_t setup_digest;
    size_t starts, restarting;
    int attempts;
};

/* One drawn fault, and what it does next. */
struct moon_run_fault {
    enum moon_scenario_act what; /* KILL, STOP, PARTITION or DROP */
    size_t node, other;
    moon_ns length_ns;
    bool applied;
};

/* Tokens of wake(): first those of operations, then of actions, of nodes, then of faults. */
struct moon_run {
    struct moon_arena *arena;
    const struct moon_scenario *scenario;
    const struct moon_play_setting *setting;
    struct moon_play *play;
    struct moon_world *world;
    struct moon_run_operation *operations;
    struct moon_run_action *actions;
    bool *anchors;
    struct moon_run_node nodes[MOON_SCENARIO_NODES_MAX];
    size_t next_start; /* node that starts next, one after the other; node_count: all have */
    bool started;      /* all nodes are ready: operations may begin */
    struct moon_random random;
    struct moon_run_fault *faults;
    size_t fault_count, fault_capacity, faults_open;
    bool failed; /* `play` tells how */
};

/* Ends the run with an outcome and its reason. */
void moon_run_end(struct moon_run *run, enum moon_outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Starts a node, or starts it again, with its set-up; `action`: what waits for it. */
int moon_run_boot(struct moon_run *run, size_t node, size_t action, struct moon_error *error);
int moon_run_act(struct moon_run *run, enum moon_scenario_act what, size_t node, size_t other,
                 struct moon_error *error);

/* faults.c: an operation of node `asking` begins; a fault's time has come. */
int moon_run_draw_faults(struct moon_run *run, size_t asking, struct moon_error *error);
int moon_run_fault(struct moon_run *run, size_t fault, struct moon_error *error);

/* judge.c: what the run gave against `expect` and the checkers, into run->play. Returns 0 or MOON_ERR_MEMORY. */
int moon_run_judge(struct moon_run *run, struct moon_error *error);
/* The operations, actions and verdicts in words. */
const char *moon_run_account(struct moon_run *run);

#endif
