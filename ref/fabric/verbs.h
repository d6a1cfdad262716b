/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of one RDMA device through libibverbs, its completions on a libuv loop. No decision is made here. */
#ifndef MOON_FABRIC_VERBS_H
#define MOON_FABRIC_VERBS_H

#include "ref/base/environment.h"
#include "ref/base/error.h"
#include "ref/base/text.h"
#include "ref/base/verbs.h"

#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* device: its name ("rxe0"); NULL: the first that there is. port: from 1. host: numeric IPv4 or IPv6 address whose GID
 * is used; NULL: see moon_verbs_choose_gid. */
struct moon_verbs_settings {
    const char *device, *host;
    uint8_t port;
};

struct moon_verbs_fabric;

/* Opens a device. Before each completion is told, the node's clocks are set; after each batch `after` is called (ask
 * for the deadline again). Errors, in words: MOON_ERR_RANGE (no such device, no GID for the host, the port is not
 * active), MOON_ERR_IO (the device refused), MOON_ERR_MEMORY. */
int moon_verbs_fabric_open(uv_loop_t *loop, struct moon_environment *environment,
                           const struct moon_verbs_settings *settings, void (*after)(void *context), void *context,
                           struct moon_verbs_fabric **fabric, struct moon_error *error);
/* The device's operations; `user` is set by the one who uses them. */
struct moon_verbs *moon_verbs_fabric_verbs(struct moon_verbs_fabric *fabric);
/* Destroys and deregisters what is left, closes the device; run the loop once more so that it lets go of its handles.
 * Not from within a completion. */
void moon_verbs_fabric_close(struct moon_verbs_fabric *fabric);

/* One row of a port's GID table, which may have holes. */
struct moon_verbs_gid {
    uint8_t gid[MOON_GID_BYTES];
    uint32_t index;
    bool roce_v1; /* addressed by Ethernet alone: does not do */
};
/* The row to use: that of the address `host`; without one the first IPv4-mapped row, else the first that is not
 * link-local, else the first. -1: there is none. */
int moon_verbs_choose_gid(const struct moon_verbs_gid rows[], size_t count, const uint8_t host[MOON_GID_BYTES]);
/* A numeric address as a GID, IPv4 mapped (::ffff:a.b.c.d). False for a text that is none. */
bool moon_verbs_host_gid(const char *host, uint8_t gid[MOON_GID_BYTES]);

/* Says in words what devices there are, and what stands in the way of using them. Returns how many ports can be used.
 */
int moon_verbs_doctor(struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
