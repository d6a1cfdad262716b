/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of the lookup channel, without its socket: frames in, calls to the store, frames out. */
#ifndef MOON_CONNECTOR_LOOKUP_SERVER_H
#define MOON_CONNECTOR_LOOKUP_SERVER_H

#include "ref/connector/lookup_rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_DRAIN_WAIT_MS = 30000 };

/* What the server needs of its owner next.
 *   IDLE         a request: moon_lookup_server_request
 *   ASK_STORE    the existence call: moon_lookup_server_answer or _raised
 *   DRAIN        the send queue to run empty, within MOON_DRAIN_WAIT_MS: moon_lookup_server_done
 *   REMOVE_KEYS  remove_all(force): moon_lookup_server_done
 *   REPLY        the reply to be sent: moon_lookup_server_sent
 *   STOPPED      nothing: an exception has ended the server (RPC-009); requests get no answer any more */
enum moon_lookup_server_need {
    MOON_SERVER_IDLE,
    MOON_SERVER_ASK_STORE,
    MOON_SERVER_DRAIN,
    MOON_SERVER_REMOVE_KEYS,
    MOON_SERVER_REPLY,
    MOON_SERVER_STOPPED,
};

/* Owns its memory. Thread rule: one thread at a time. Functions are called only in the state that they belong to.
 *   need     see above
 *   call     of ASK_STORE: borrowed until it is answered
 *   reply    of REPLY: one frame
 *   warning  newest exception or unknown request, for the log; status 0: none */
struct moon_lookup_server {
    const struct moon_connector *connector;
    enum moon_lookup_server_need need;
    const struct moon_store_call *call;
    struct moon_text reply;
    struct moon_error warning;
    struct moon_rpc_request request;
    struct moon_lookup lookup;
};
void moon_lookup_server_open(struct moon_lookup_server *server, const struct moon_connector *connector,
                             struct moon_memory *memory);
void moon_lookup_server_close(struct moon_lookup_server *server); /* idempotent */

/* IDLE: a request has arrived; its frames stay until the reply. Returns 0, also for what cannot be served, or
 * MOON_ERR_MEMORY: then the answer is a hit of 0 or 00, if there is memory for that. */
int moon_lookup_server_request(struct moon_lookup_server *server, const struct moon_rpc_frame *frames, size_t count);
/* ASK_STORE: the answers, one a key. Returns 0, MOON_ERR_MEMORY as above, or MOON_ERR_RANGE for a wrong count: the call
 * is still to be answered then. */
int moon_lookup_server_answer(struct moon_lookup_server *server, const int64_t *values, size_t count);
/* ASK_STORE: the call raised; a hit of 0 (RPC-009). Returns 0 or MOON_ERR_MEMORY. */
int moon_lookup_server_raised(struct moon_lookup_server *server);
/* DRAIN, REMOVE_KEYS: it is done; or not: it raised, or its time is up (RPC-008, RPC-013). Returns 0 or
 * MOON_ERR_MEMORY. */
int moon_lookup_server_done(struct moon_lookup_server *server, bool good);
/* REPLY: the reply was sent. */
void moon_lookup_server_sent(struct moon_lookup_server *server);

#ifdef __cplusplus
}
#endif
#endif
