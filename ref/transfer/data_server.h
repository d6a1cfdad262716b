/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP data port: peers read and write the regions of this process. */
#ifndef MOON_TRANSFER_DATA_SERVER_H
#define MOON_TRANSFER_DATA_SERVER_H

#include "ref/base/error.h"
#include "ref/transfer/regions.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_data_server;

/* Listens at `endpoint` for requests of versions 1 and 2, on any number of connections (at most 4096), and never closes
 * an idle one. `name`: segment of the extents in records, borrowed as `regions` is. Writes are received straight into
 * memory, reads are sent from it. Errors: MOON_ERR_MEMORY, MOON_ERR_IO. */
int moon_data_server_open(struct moon_environment *environment, const struct moon_regions *regions, const char *name,
                          const char *endpoint, struct moon_data_server **server, struct moon_error *error);
void moon_data_server_close(struct moon_data_server *server); /* NULL is fine */
moon_ns moon_data_server_deadline(const struct moon_data_server *server);
void moon_data_server_tick(struct moon_data_server *server);

/* Closes the connections with a request on the region that begins at `address` under way: afterwards no byte of it is
 * touched. Call it before the region is forgotten. */
void moon_data_server_leave(struct moon_data_server *server, uint64_t address);

#ifdef __cplusplus
}
#endif
#endif
