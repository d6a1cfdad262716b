/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between nodes of one process, in virtual time: no delay, no loss, bytes by memcpy. */
#ifndef MOON_FABRIC_MEMORY_H
#define MOON_FABRIC_MEMORY_H

#include "ref/base/environment.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_memory_fabric;

struct moon_memory_fabric *moon_memory_fabric_open(struct moon_memory *memory); /* NULL: no memory */
void moon_memory_fabric_close(struct moon_memory_fabric *fabric);

/* The streams of a node whose address is `host` ("10.0.0.1"; it may listen on any port there, and its own streams come
 * from it). Sets environment->streams; before each event of the node the fabric sets its clocks. Returns 0 or
 * MOON_ERR_MEMORY. */
int moon_memory_fabric_attach(struct moon_memory_fabric *fabric, struct moon_environment *environment,
                              const char *host);
/* The node is gone: its streams end for their peers, its listeners stop. */
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
