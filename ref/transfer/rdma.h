/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers over RDMA verbs: the queue pairs to each peer, the handshake that joins them, the work on them. */
#ifndef MOON_TRANSFER_RDMA_H
#define MOON_TRANSFER_RDMA_H

#include "ref/base/environment.h"
#include "ref/base/list.h"
#include "ref/base/verbs.h"
#include "ref/transfer/handshake.h"
#include "ref/transfer/rdma_message.h"
#include "ref/transfer/regions.h"
#include "ref/wire/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_RDMA_QUEUE_PAIRS = 2,            /* of an endpoint; both sides must have as many */
    MOON_RDMA_DEPTH = 256,                /* work requests under way on a queue pair */
    MOON_RDMA_SLICE_BYTES = 64 * 1024,    /* of one work request (RDMA-020) */
    MOON_RDMA_FRAGMENT_BYTES = 16 * 1024, /* a last piece may be longer by this */
    MOON_RDMA_ENDPOINTS_MAX = 512,        /* RDMA-026 */
    MOON_RDMA_CONNECT_ATTEMPTS = 8,       /* RDMA-017 */
    MOON_RDMA_ATTEMPT_PAUSE_MS = 100,     /* between two of them */
};

/* Everything is borrowed and outlives the engine; `name` is copied.
 *   name              own endpoint as peers dial it, "host:port" of the handshake listener
 *   verbs             the device; its `user` becomes the engine
 *   client            asks the peers
 *   regions           own memory, registered with the device (lkey, rkey set)
 *   stall_timeout_ns  RDMA-025 */
struct moon_rdma_settings {
    const char *name;
    struct moon_verbs *verbs;
    struct moon_handshake_client *client;
    const struct moon_regions *regions;
    moon_ns stall_timeout_ns;
};

struct moon_rdma;
/* NULL: no memory. */
struct moon_rdma *moon_rdma_open(struct moon_environment *environment, const struct moon_rdma_settings *settings);
/* Destroys all queue pairs. Jobs are forgotten, none of their memory is touched afterwards. NULL is fine. */
void moon_rdma_close(struct moon_rdma *rdma);
moon_ns moon_rdma_deadline(const struct moon_rdma *rdma);
void moon_rdma_tick(struct moon_rdma *rdma);

/* Appends the own descriptor: the JSON line that answers a Metadata question, and is asked with (RDMA-001). `arena` is
 * used on the way. Fails only through out->failed. */
void moon_rdma_describe(const struct moon_rdma *rdma, struct moon_arena *arena, const char *timestamp,
                        struct moon_text *out);

/* Answers a Connection question as an owner does (RDMA-010 to RDMA-016): appends the JSON line. False: the question is
 * no JSON, the connection is closed. No user is called; what this ends, ends at the next tick. */
bool moon_rdma_answer(struct moon_rdma *rdma, const struct moon_wire_handshake *question, struct moon_text *out);

/* Where the slices of one queue pair go on: slice `slice` of `end` is next, `offset` bytes into piece `piece`. */
struct moon_rdma_cursor {
    size_t slice, end, piece, offset;
    uint64_t remote;
};

/* One read or write of [remote, remote + sum of the pieces) of a peer. Embedded by the asker; it and its pieces are
 * borrowed until done() or cancel. Pieces lie in registered regions.
 *   done   0 or MOON_STORE_TRANSFER_FAIL: some bytes may have been moved; none will be any more */
struct moon_rdma_job {
    uint64_t remote;
    bool write;
    const struct moon_piece *pieces;
    size_t piece_count;
    void (*done)(struct moon_rdma_job *job, int code);
    /* the engine's */
    struct moon_list link;
    struct moon_rdma_endpoint *endpoint;
    uint32_t rkey;
    size_t unfinished; /* slices without a completion */
    bool started;      /* a slice has been posted */
    int code;          /* once it has ended */
    struct moon_rdma_cursor cursors[MOON_RDMA_QUEUE_PAIRS];
};

/* Begins a job towards the peer that gave this descriptor, which is not kept. Returns 0, then done() comes from a later
 * event or tick, also when no buffer of the descriptor or of the own side has the bytes; or MOON_ERR_MEMORY (also when
 * all endpoints are in use), then not. After a job that failed the asker should ask for the descriptor anew. */
int moon_rdma_submit(struct moon_rdma *rdma, struct moon_rdma_job *job, const struct moon_rdma_descriptor *descriptor);
/* Forgets a job that has been submitted and is not done. If some of it is under way its endpoint is torn down, and the
 * other jobs that had begun there fail at the next tick. */
void moon_rdma_cancel(struct moon_rdma_job *job);

#ifdef __cplusplus
}
#endif
#endif
