/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between nodes of one process, in virtual time: no delay, no loss, bytes by memcpy. One queue of events, first
 * in first out: the same calls in the same order give the same events. */
#ifndef MOON_FABRIC_MEMORY_H
#define MOON_FABRIC_MEMORY_H

#include "ref/base/environment.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_memory_fabric;

struct moon_memory_fabric *moon_memory_fabric_open(struct moon_memory *memory); /* NULL: no memory */
void moon_memory_fabric_close(struct moon_memory_fabric *fabric);               /* detaches those that are left */

/* The streams of a node whose address is `host` ("10.0.0.1", at most 50 bytes, of one node only; it may listen on any
 * port there, and its own streams come from it). Free ports are given from 20000 up. Sets environment->streams; before
 * each event of the node, and now, the fabric sets its clocks. Returns 0 or MOON_ERR_MEMORY.
 *   close   bytes given to send() before it still arrive, then the peer hears PEER; bytes that were on their way to the
 *           one who closed are lost, and the peer hears BROKEN
 *   sent    comes when the peer has taken all
 *   a listener at "0.0.0.0:port" is one at host:port */
int moon_memory_fabric_attach(struct moon_memory_fabric *fabric, struct moon_environment *environment,
                              const char *host);
/* The node is gone: its listeners stop; its streams end for their peers, with PEER if nothing was under way, else with
 * BROKEN. Its users are not called. Between steps only, for an attached environment. */
void moon_memory_fabric_detach(struct moon_memory_fabric *fabric, struct moon_environment *environment);

moon_ns moon_memory_fabric_now(const struct moon_memory_fabric *fabric);
/* Moves time forward; never back. */
void moon_memory_fabric_advance(struct moon_memory_fabric *fabric, moon_ns now_ns);
/* Delivers the oldest event there is (a connection, bytes, an end). Returns the environment of the node that got it, so
 * that its driver asks for its deadline; NULL: there is none. */
struct moon_environment *moon_memory_fabric_step(struct moon_memory_fabric *fabric);

#ifdef __cplusplus
}
#endif
#endif
