/* SPDX-License-Identifier: Apache-2.0 */
/* A process's transfer engine: offers its own memory to peers, and reads and writes theirs, over TCP or verbs. */
#ifndef MOON_TRANSFER_TRANSFER_H
#define MOON_TRANSFER_TRANSFER_H

#include "ref/base/environment.h"
#include "ref/base/verbs.h"
#include "ref/wire/release.h"
#include "ref/wire/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_TRANSFER_LANES = 4,                                   /* data connections a peer (TCP) */
    MOON_TRANSFER_TCP_WRITE_BYTES_MAX = 16 * 1024 * 1024 - 16, /* of one request */
    MOON_TRANSFER_RDMA_SLICE_BYTES = 64 * 1024,                /* of one work request */
};

/*   host               what peers dial, and what is bound ("127.0.0.1", "::1"); copied
 *   release            whose descriptor is written
 *   data_version       1 or 2: framing that is announced and at most used; served are both
 *   min_port, max_port   the handshake port and the data port are free ones of these (MC_MIN_RPC_PORT 15000,
 *                      MC_MAX_RPC_PORT 17000), drawn at random
 *   stall_timeout_ns   so long without a byte, an answer or a completion, and a transfer fails (30 s)
 *   verbs              the device, outlives the engine; NULL: TCP */
struct moon_transfer_settings {
    const char *host;
    const struct moon_wire_release *release;
    unsigned data_version;
    uint16_t min_port, max_port;
    moon_ns stall_timeout_ns;
    struct moon_verbs *verbs;
};
struct moon_transfer_settings moon_transfer_defaults(void); /* host "127.0.0.1", newest release, version 2, TCP */

struct moon_transfer;
/* Binds the handshake listener and, for TCP, the data listener. Errors: MOON_ERR_MEMORY, MOON_ERR_IO (no free port in
 * 500 tries), MOON_ERR_RANGE (the host is too long). */
int moon_transfer_open(struct moon_environment *environment, const struct moon_transfer_settings *settings,
                       struct moon_transfer **transfer, struct moon_error *error);
/* Jobs are forgotten. Not from within a done(). NULL is fine. */
void moon_transfer_close(struct moon_transfer *transfer);
moon_ns moon_transfer_deadline(const struct moon_transfer *transfer);
void moon_transfer_tick(struct moon_transfer *transfer);

/* "host:port" of the handshake listener: the te_endpoint of its segments. Constant. */
const char *moon_transfer_endpoint(const struct moon_transfer *transfer);
const char *moon_transfer_protocol(const struct moon_transfer *transfer); /* "tcp", "rdma" */

/* Offers memory (regions.h). remote false: only for this process's own jobs (staging, user buffers); over TCP it is
 * listed all the same, as real releases do. Returns 0, MOON_ERR_RANGE, MOON_ERR_MEMORY, MOON_ERR_IO (the device). */
int moon_transfer_register(struct moon_transfer *transfer, void *memory, uint64_t address, size_t length, bool remote);
/* Takes back the memory that begins at `address`: peers' requests on it are cut off first, so that no byte of it is
 * touched afterwards; the own jobs on it must have ended. Returns 0, MOON_ERR_RANGE (none begins there). */
int moon_transfer_unregister(struct moon_transfer *transfer, uint64_t address);

/* One read or write of [remote, remote + sum of the pieces) at `endpoint`, gathered from or scattered to `pieces`,
 * which lie behind each other there. Embedded by the asker; it, endpoint and pieces are borrowed until done() or
 * cancel. A piece is one request at least (a peer sees as many requests as pieces); zero-length pieces are passed over,
 * and a job without bytes succeeds at the next tick. The own endpoint is served by memcpy. Over verbs the pieces lie in
 * registered memory.
 *   done   0 or MOON_STORE_TRANSFER_FAIL: some bytes may have been moved; none will be any more. Only from within
 *          moon_transfer_tick. Submitting and cancelling are allowed in it. */
struct moon_transfer_job {
    const char *endpoint;
    uint64_t remote;
    bool write;
    const struct moon_piece *pieces;
    size_t piece_count;
    uint64_t op; /* of the history */
    void (*done)(struct moon_transfer_job *job, int code);
    struct moon_transfer_job_state *state; /* the engine's */
};
/* Returns 0, then done() comes, at the earliest with the next event or tick; or MOON_ERR_MEMORY, then not. */
int moon_transfer_submit(struct moon_transfer *transfer, struct moon_transfer_job *job);
/* Forgets a job; its lanes are closed, so that no byte of its pieces is touched afterwards. */
void moon_transfer_cancel(struct moon_transfer *transfer, struct moon_transfer_job *job);

#ifdef __cplusplus
}
#endif
#endif
