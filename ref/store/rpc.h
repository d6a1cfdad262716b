/* SPDX-License-Identifier: Apache-2.0 */
/* Remote calls over streams: a server that answers frames, and a client that asks one question a connection. */
#ifndef MOON_STORE_RPC_H
#define MOON_STORE_RPC_H

#include "ref/base/environment.h"
#include "ref/wire/build.h"
#include "ref/wire/release.h"
#include "ref/wire/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- server */

/* Who answers. Called with decoded arguments; fills *result, which is zero (moon_wire_zero) of the call's result type,
 * in `arena`, which is emptied after the answer has been written. Returns 0; an error number of moon_wire_rpc_error
 * (NOT_REGISTERED for a call that it does not serve, INVALID_ARGUMENTS); or MOON_ERR_MEMORY, which ends the connection.
 */
struct moon_rpc_service {
    int (*answer)(struct moon_rpc_service *self, const struct moon_wire_call *call,
                  const struct moon_wire_value *arguments, struct moon_wire_value *result, struct moon_arena *arena);
};

struct moon_rpc_server;

enum {
    MOON_RPC_FRAME_BYTES_MAX = 64 * 1024 * 1024, /* body of a request or answer */
    MOON_RPC_CALL_BYTES_MAX = 256 * 1024 * 1024, /* arguments and result of one call in memory */
    MOON_RPC_UNSENT_BYTES_MAX = 4 * 1024 * 1024, /* answers that a client does not read: no more requests are taken */
};

/* Listens at `endpoint` and serves any number of connections, pipelined requests in order (CALL-001). A frame that is
 * none closes its connection when what was asked before is answered, and no other (CALL-004); wrong arguments and
 * unknown ids are answered (CALL-002, CALL-003) and the connection stays. with_text: answers carry their type text.
 * Records a recv and a send a call (CALL-030). `environment`, `protocol` and `service` outlive it. *server is NULL on
 * error: MOON_ERR_MEMORY, or MOON_ERR_IO (address). */
int moon_rpc_server_open(struct moon_environment *environment, const struct moon_wire_protocol *protocol,
                         struct moon_rpc_service *service, const char *endpoint, bool with_text,
                         struct moon_rpc_server **server, struct moon_error *error);
const char *moon_rpc_server_address(const struct moon_rpc_server *server); /* "127.0.0.1:50051" */
size_t moon_rpc_server_connections(const struct moon_rpc_server *server);
void moon_rpc_server_close(struct moon_rpc_server *server); /* at once; NULL is fine; not from within answer() */

/* ---- client */

struct moon_rpc_client;

/* One question, embedded by the asker and alive until done() was called or it was cancelled.
 *   op        operation of the history that it is part of
 *   done      status 0: *result is the answer (borrowed for the call); else MOON_STORE_RPC_FAIL (refused, not connected
 *             in time, broken, an error answer, an answer that is none, no memory) or MOON_STORE_RPC_TIMEOUT, result
 *             NULL. rpc_error: moon_wire_rpc_error of an error answer, else 0. It may ask again with the same call, and
 *             ask and cancel others, but not close the client.
 *   sent_ns   when the request was handed to the stream */
struct moon_rpc_call {
    uint64_t op;
    void (*done)(struct moon_rpc_call *call, int status, unsigned rpc_error, const struct moon_wire_value *result);
    moon_ns sent_ns;
    struct moon_rpc_call_state *state; /* the client's */
};

/* Both times are more than 0. */
struct moon_rpc_client_settings {
    const char *endpoint; /* copied; less than MOON_ENDPOINT_BYTES */
    bool with_text;
    moon_ns connect_timeout_ns; /* 30 s */
    moon_ns timeout_ns;         /* 30 s: of one call, connecting included */
};

/* A pool that grows to one connection a concurrent call (as real clients do), reuses idle ones, latest first
 * (CALL-010). A connection that ends while idle leaves the pool without a word; one that ends under a call fails it,
 * and nothing is asked twice (CALL-012). `environment` and `protocol` outlive it. NULL when memory refused. */
struct moon_rpc_client *moon_rpc_client_open(struct moon_environment *environment,
                                             const struct moon_wire_protocol *protocol,
                                             const struct moon_rpc_client_settings *settings);
/* Ends it; calls under way are forgotten without done(). NULL is fine. */
void moon_rpc_client_close(struct moon_rpc_client *client);
moon_ns moon_rpc_client_deadline(const struct moon_rpc_client *client);
void moon_rpc_client_tick(struct moon_rpc_client *client);

/* Asks `name` with `arguments` (a struct of the call's argument type, NULL if it has none), which are encoded before
 * the return. Returns 0, then done() comes; or MOON_ERR_MEMORY, MOON_ERR_UNSUPPORTED (no such call in this release),
 * MOON_ERR_LIMIT (they are over MOON_RPC_FRAME_BYTES_MAX), then not. */
int moon_rpc_client_ask(struct moon_rpc_client *client, struct moon_rpc_call *call, const char *name,
                        const struct moon_wire_value *arguments);
/* Forgets a call: done() will not come. Its connection is closed. One that is not under way is left alone (state NULL;
 * ask and done set it). */
void moon_rpc_client_cancel(struct moon_rpc_client *client, struct moon_rpc_call *call);

#ifdef __cplusplus
}
#endif
#endif
