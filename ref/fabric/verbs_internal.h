/* SPDX-License-Identifier: Apache-2.0 */
/* What opening a device and looking at all of them share. */
#ifndef MOON_FABRIC_VERBS_INTERNAL_H
#define MOON_FABRIC_VERBS_INTERNAL_H

#include "ref/fabric/verbs.h"

#include <infiniband/verbs.h>

enum { MOON_VERBS_GIDS_MAX = 256 }; /* of one device; more are not looked at */

/* The GIDs of a port, holes left out; returns how many. */
size_t moon_verbs_read_gids(struct ibv_context *device, uint8_t port, struct moon_verbs_gid rows[MOON_VERBS_GIDS_MAX]);

#endif
