/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated environment: nodes, their clocks, the network between them, and faults, all from one seed. */
#ifndef MOON_SIM_SIM_H
#define MOON_SIM_SIM_H

#include "ref/base/program.h"
#include "ref/base/verbs.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_sim;
struct moon_sim_node;

/* What the network and the clocks do. Every number of a run is drawn from the seed within these bounds.
 *   delay     of a piece of a stream, one way; pieces of one stream stay in order
 *   piece_bytes_max   streams are cut at random places, into pieces of 1 to this many bytes
 *   drift_millionths  a node's clock runs faster or slower by up to this, and starts at a time of its own */
struct moon_sim_settings {
    moon_ns delay_min_ns, delay_max_ns;
    size_t piece_bytes_max;
    int64_t drift_millionths;
    moon_ns connect_timeout_ns; /* to a host that does not answer */
    moon_ns break_ns;           /* a partition that lasts longer breaks its streams */
};
struct moon_sim_settings moon_sim_defaults(void); /* 10 us to 2 ms, 64 KiB, 100, 5 s, 30 s */

/* `recorder` gets the records of all nodes, with node, boot, n (from 0 at each boot) and time (clock "sim") filled in,
 * and lease_ns turned from the node's clock into simulated time. NULL: no memory. */
struct moon_sim *moon_sim_open(struct moon_memory *memory, uint64_t seed, const struct moon_sim_settings *settings,
                               struct moon_recorder *recorder);
void moon_sim_close(struct moon_sim *sim);
moon_ns moon_sim_now(const struct moon_sim *sim); /* simulated time, from 0 */

/* A node with its own host address ("10.0.0.1"). Not running yet. NULL: no memory, or the name or host is taken. */
struct moon_sim_node *moon_sim_add(struct moon_sim *sim, const char *name, const char *host,
                                   const struct moon_program *program, const void *settings);
/* Starts it, or starts it again after a crash: all memory new, boot number one higher. 0 or an error of its boot. */
int moon_sim_boot(struct moon_sim_node *node, struct moon_error *error);
/* Its orderly end: the program's halt. What it still holds then is given back for it, and counted: returns those bytes,
 * 0 if the program is right. */
size_t moon_sim_halt(struct moon_sim_node *node);
/* One more piece of memory that the node's hardware has, for segments: at the same place until moon_sim_close, zeroed
 * now and at each boot. NULL: no memory. */
void *moon_sim_node_memory(struct moon_sim_node *node, size_t bytes);
/* Of a running node; NULL and a boot number of the last run while it is down. The environment's clocks are set: ask for
 * it (or the instance) at each call into the node from outside. */
void *moon_sim_node_instance(struct moon_sim_node *node); /* NULL while it is down */
struct moon_environment *moon_sim_node_environment(struct moon_sim_node *node);
/* Verbs of the node's one device; registered memory, queue pairs and completions are modelled. */
struct moon_verbs *moon_sim_node_verbs(struct moon_sim_node *node);

/* ---- faults. Each is recorded (kind fault; what: boot, halt, kill, stop, continue, partition, heal, break; the last
 * three for both nodes, with the other's name as cause). Between two events, never from within a node's own call. */

/* Now, without halt. Bytes on the wire still arrive. Peers' streams end after a delay: BROKEN, or PEER if the node had
 * read all and the dice say so. */
void moon_sim_crash(struct moon_sim_node *node);
void moon_sim_stop(struct moon_sim_node *node);  /* as SIGSTOP: gets nothing, sends nothing, its clock goes on */
void moon_sim_go_on(struct moon_sim_node *node); /* as SIGCONT */
void moon_sim_partition(struct moon_sim_node *a, struct moon_sim_node *b); /* nothing passes, both ways */
void moon_sim_heal(struct moon_sim_node *a, struct moon_sim_node *b);      /* held pieces pass, if not broken by then */
void moon_sim_break_streams(struct moon_sim_node *a, struct moon_sim_node *b); /* all streams between them, at once */

/* ---- running. Calls `run` at that simulated time, between two events. 0 or MOON_ERR_MEMORY. */
int moon_sim_at(struct moon_sim *sim, moon_ns time_ns, void (*run)(void *context), void *context);
/* After calling into a node from outside (moon_client_submit): its deadline may have changed. */
void moon_sim_touched(struct moon_sim_node *node);
/* Does the next event. False: there is none left, or memory was refused. */
bool moon_sim_step(struct moon_sim *sim);
/* True: some memory was refused; the run counts for nothing. */
bool moon_sim_failed(const struct moon_sim *sim);

#ifdef __cplusplus
}
#endif
#endif
