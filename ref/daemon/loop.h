/* SPDX-License-Identifier: Apache-2.0 */
/* A process that runs programs of nodes on a libuv loop: clocks, timers, signals, history and control channel. */
#ifndef MOON_DAEMON_LOOP_H
#define MOON_DAEMON_LOOP_H

#include "ref/base/options.h"
#include "ref/base/program.h"
#include "ref/daemon/control.h"
#include "ref/daemon/history_file.h"
#include "ref/fabric/tcp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What every daemon is told. seed NULL: from the system. history NULL: none. node: its name in records. boot: how often
 * it was started before. control: descriptor of the supervisor's socket, -1: none. */
struct moon_daemon_options {
    const char *seed, *history, *node;
    int64_t boot, control;
};

/* Rows of a table of options for a `struct moon_daemon_options its`. */
#define MOON_DAEMON_OPTIONS(its)                                                                                       \
    {.name = "seed",                                                                                                   \
     .kind = MOON_OPTION_TEXT,                                                                                         \
     .into = &(its).seed,                                                                                              \
     .value = "N",                                                                                                     \
     .help = "all random numbers come from it; else from the system"},                                                 \
        {.name = "history",                                                                                            \
         .kind = MOON_OPTION_TEXT,                                                                                     \
         .into = &(its).history,                                                                                       \
         .value = "FILE",                                                                                              \
         .help = "append a record of every event, one line of JSON each"},                                             \
        {.name = "node",                                                                                               \
         .kind = MOON_OPTION_TEXT,                                                                                     \
         .into = &(its).node,                                                                                          \
         .value = "NAME",                                                                                              \
         .help = "name in these records"},                                                                             \
        {.name = "boot",                                                                                               \
         .kind = MOON_OPTION_INTEGER,                                                                                  \
         .into = &(its).boot,                                                                                          \
         .value = "N",                                                                                                 \
         .min = 0,                                                                                                     \
         .max = INT32_MAX,                                                                                             \
         .help = "how often it was started before, in these records"},                                                 \
    {                                                                                                                  \
        .name = "control", .kind = MOON_OPTION_INTEGER, .into = &(its).control, .value = "FD", .min = 0,               \
        .max = 1 << 20, .help = "inherited socket of a supervisor"                                                     \
    }

/* One a process.
 *   asked  to end, by whomever
 *   stop   asked to end in order (SIGTERM, SIGINT, the supervisor is gone); NULL: moon_daemon_end with 0 */
struct moon_daemon {
    uv_loop_t loop;
    uv_signal_t terminate, interrupt;
    uv_poll_t control_ready;
    struct moon_random random;
    struct moon_daemon_options options;
    struct moon_history_file history;
    struct moon_control control;
    struct moon_text line;
    uint64_t records, nodes;
    void (*stop)(void *context);
    void *context;
    int status;
    bool ending, asked;
};

/* `options` and its texts outlive it. On failure nothing is left open. Errors: MOON_ERR_IO, _SCHEMA, _RANGE, _MEMORY.
 */
int moon_daemon_open(struct moon_daemon *daemon, const struct moon_daemon_options *options, struct moon_error *error);
/* Runs until moon_daemon_end; returns the exit status. */
int moon_daemon_run(struct moon_daemon *daemon);
/* Ends the run, after the event that is being handled. The first status counts. */
void moon_daemon_end(struct moon_daemon *daemon, int status);
/* All nodes must be closed. */
void moon_daemon_close(struct moon_daemon *daemon);

/* A node of the process: an instance of a program with an environment of its own. Several in one process share its name
 * and records; operation ids of the i-th are moved up by i * 2^40, so that they stay unique. */
struct moon_daemon_node;

/* Boots it. NULL and an error if it cannot. `settings` outlive it. */
struct moon_daemon_node *moon_daemon_node_open(struct moon_daemon *daemon, const struct moon_program *program,
                                               const void *settings, struct moon_error *error);
/* Halts it. Not from within a call of the instance. */
void moon_daemon_node_close(struct moon_daemon_node *node);
void *moon_daemon_node_instance(struct moon_daemon_node *node);
/* Before calling into the instance from outside: sets its clocks. */
void moon_daemon_node_enter(struct moon_daemon_node *node);
/* After it: asks for the deadline, does what an event's end does. */
void moon_daemon_node_leave(struct moon_daemon_node *node);

#ifdef __cplusplus
}
#endif
#endif
