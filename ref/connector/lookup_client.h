/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler side's end of the lookup channel: one request out at a time, the others queued behind it. */
#ifndef MOON_CONNECTOR_LOOKUP_CLIENT_H
#define MOON_CONNECTOR_LOOKUP_CLIENT_H

#include "ref/connector/lookup_port.h"
#include "ref/connector/lookup_rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_LOOKUP_WAIT_MS = 30000, MOON_RESET_WAIT_MS = 60000 };

/* What somebody waits for, and how long at most. Releases wait forever (RPC-009, RPC-013). */
struct moon_channel_wait {
    const char *name;
    int64_t bound_ms;
};

/* The transport. Borrowed.
 *   send  hands over one request; bytes are borrowed for the call. It must not call the client. Returns 0 or
 *         MOON_ERR_IO
 *   wait  lets time pass until moon_lookup_client_reply was called for what is out, or the bound has passed, or the
 *         channel broke. Without a reply what is out has failed, and its reply must not be delivered any more */
struct moon_lookup_channel {
    int (*send)(struct moon_lookup_channel *self, const struct moon_rpc_frame *frames, size_t count,
                struct moon_error *error);
    void (*wait)(struct moon_lookup_channel *self, const struct moon_channel_wait *wait);
};

/* Memory: MOON_LOOKUP_ENTRY_BYTES_MAX for each lookup that is queued, out, or answered and not yet taken; 4 bytes for
 * each slot up to the largest asked for. Thread rule: one thread at a time. */
enum { MOON_LOOKUP_ENTRY_BYTES_MAX = 640 };
struct moon_lookup_client;

/* Borrows connector and channel. Returns 0 or MOON_ERR_MEMORY. */
int moon_lookup_client_open(struct moon_lookup_client **out, const struct moon_connector *connector,
                            struct moon_lookup_channel *channel, struct moon_memory *memory, struct moon_error *error);
void moon_lookup_client_close(struct moon_lookup_client *client); /* NULL: nothing. Sends nothing any more */

/* What the scheduler side calls (RPC-010 to RPC-012); lives as long as the client. A lookup of the port returns 0,
 * MOON_ERR_MEMORY, or what went wrong with the call (MOON_ERR_IO, MOON_ERR_REFUSED, ...), which counts as a hit of 0.
 * The request's hashes must stay until its lookup was sent or discarded. reset waits for all that is queued before it;
 * false up to 0.22. */
struct moon_lookup_port *moon_lookup_client_port(struct moon_lookup_client *client);

/* The reply to what is out. Nothing happens if nothing is out. Sends the next queued request. */
void moon_lookup_client_reply(struct moon_lookup_client *client, const void *bytes, size_t length);
/* The bound of moon_lookup_client_waiting has passed, or the channel broke: what is out has failed, and its reply must
 * not come any more. Sends the next queued request. */
void moon_lookup_client_time_up(struct moon_lookup_client *client);
/* True if a request is out; *wait (may be NULL) tells what is waited for. */
bool moon_lookup_client_waiting(const struct moon_lookup_client *client, struct moon_channel_wait *wait);

/* Lookups that the client knows: queued, out or answered, and neither taken nor discarded. */
size_t moon_lookup_client_futures(const struct moon_lookup_client *client);

#ifdef __cplusplus
}
#endif
#endif
