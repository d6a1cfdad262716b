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

/* Sets environment->streams to streams on `loop`. Before each event of the node its clocks are set (CLOCK_MONOTONIC,
 * CLOCK_REALTIME); after it `after` is called (ask for the deadline again). Names are resolved without blocking; IPv4
 * and IPv6. NULL: no memory. */
struct moon_tcp_fabric *moon_tcp_fabric_open(uv_loop_t *loop, struct moon_environment *environment,
                                             void (*after)(void *context), void *context);
/* Closes all that is open; run the loop once more so that it lets go of its handles. */
void moon_tcp_fabric_close(struct moon_tcp_fabric *fabric);

#ifdef __cplusplus
}
#endif
#endif
