/* SPDX-License-Identifier: Apache-2.0 */
/* A store client: requester (put, get, exist, remove) and, with a segment, owner. A state machine over remote calls to
 * the master and transfers to other owners. */
#ifndef MOON_STORE_CLIENT_H
#define MOON_STORE_CLIENT_H

#include "ref/base/environment.h"
#include "ref/store/rpc.h"
#include "ref/transfer/transfer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* hostname: name of its segments, "host:port". master_endpoint: less than MOON_ENDPOINT_BYTES. segment: memory that it
 * lends (segment_bytes 0: none), announced at segment_address, a multiple of 32 MiB. tenant: "" and "default" are the
 * same. Texts that are NULL are "". */
struct moon_client_settings {
    const char *hostname, *master_endpoint, *tenant, *host_id;
    const struct moon_wire_protocol *protocol;
    bool with_text;
    void *segment;
    uint64_t segment_address;
    size_t segment_bytes;
    uint64_t replica_num;          /* of puts; 1 */
    const char *preferred_segment; /* NULL: none */
    moon_ns ping_ns;               /* 1 s */
    moon_ns rpc_timeout_ns;        /* 30 s */
};
struct moon_client_settings moon_client_defaults(void);

struct moon_client;

/* `environment`, the protocol, `transfer` (open) and the segment's memory outlive it; texts are copied. The client
 * registers the segment with the transfer engine. NULL when memory refused. Nothing is sent before setup. */
struct moon_client *moon_client_open(struct moon_environment *environment, const struct moon_client_settings *settings,
                                     struct moon_transfer *transfer);
/* At once, without a word to the master; operations are forgotten (CLIENT-043). NULL is fine. */
void moon_client_close(struct moon_client *client);
moon_ns moon_client_deadline(const struct moon_client *client);
void moon_client_tick(struct moon_client *client);

enum moon_client_do {
    MOON_CLIENT_SETUP,  /* ServiceReady, GetStorageConfig, MountSegment, Ping, ReMountSegment; no keys */
    MOON_CLIENT_PUT,    /* pieces are the value; result 0 or a code; an existing key gives 0 (CLIENT-011) */
    MOON_CLIENT_GET,    /* pieces are filled; result: bytes of the object, or a code. Room for more is fine, for less
                           is INVALID_PARAMS */
    MOON_CLIENT_EXIST,  /* 1, 0 or a code */
    MOON_CLIENT_SIZE,   /* bytes or a code */
    MOON_CLIENT_REMOVE, /* 0 or a code */
    MOON_CLIENT_REMOVE_ALL, /* no keys; result: number removed or a code */
    MOON_CLIENT_UNMOUNT,    /* gives its segments back; no keys */
};

/* One key of an operation. Borrowed until the operation is done; `result` is set then. */
struct moon_client_item {
    struct moon_bytes key;
    const struct moon_piece *pieces;
    size_t piece_count;
    int64_t result;
};

/* An operation, embedded by the asker; it and its items are borrowed until done(). batched: the Batch forms of the
 * calls, also for one key; otherwise there is exactly one item. Operations run side by side, in no order. force: of
 * REMOVE and REMOVE_ALL.
 *   result   of SETUP, REMOVE_ALL, UNMOUNT; else 0
 *   done     comes from moon_client_tick; it may submit, this operation too, and it may close the client */
struct moon_client_operation {
    enum moon_client_do kind;
    bool batched, force;
    struct moon_client_item *items;
    size_t item_count;
    int64_t result;
    void (*done)(struct moon_client_operation *operation);
    struct moon_client_operation_state *state; /* the client's */
};
/* Returns 0, then done() comes; or, and then not, MOON_ERR_MEMORY, or MOON_ERR_RANGE: not one item, lengths of pieces
 * that overflow, before SETUP has succeeded, SETUP after it or while one runs, UNMOUNT while one runs. Records the
 * invoke, and at its end ok, fail or info for each key (CLIENT-042); of a SETUP the mount. */
int moon_client_submit(struct moon_client *client, struct moon_client_operation *operation);

#ifdef __cplusplus
}
#endif
#endif
