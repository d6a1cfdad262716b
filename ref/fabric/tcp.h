/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over TCP on a libuv loop. */
#ifndef MOON_FABRIC_TCP_H
#define MOON_FABRIC_TCP_H

#include "ref/base/environment.h"

#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

struct moon_tcp_fabric;

/* Sets environment->streams to streams on `loop`. A listener that finds no descriptor or memory for a connection says
 * so once on stderr and tries again every 100 ms; the connection waits meanwhile. Peers that shut down only their
 * sending side have closed. SIGPIPE must be ignored. Before each event of the node its clocks are set (CLOCK_MONOTONIC,
 * CLOCK_REALTIME); after it `after` is called (ask for the deadline again). Names are resolved without blocking; IPv4
 * and IPv6. NULL: no memory. */
struct moon_tcp_fabric *moon_tcp_fabric_open(uv_loop_t *loop, struct moon_environment *environment,
                                             void (*after)(void *context), void *context);
/* Closes all that is open; run the loop once more so that it lets go of its handles. Its memory must live until then;
 * the environment need not. Allowed from within an event. */
void moon_tcp_fabric_close(struct moon_tcp_fabric *fabric);

/* How many sends have not been written to the system yet. */
size_t moon_tcp_fabric_unsent(const struct moon_tcp_fabric *fabric);

/* Sets both clocks, as the fabric does before an event; for events of the driver's own. */
void moon_tcp_clocks(struct moon_environment *environment);

#ifdef __cplusplus
}
#endif
#endif
