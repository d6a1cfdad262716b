/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the transfer engine share: its state, its peers, their lanes, and the jobs on them. */
#ifndef MOON_TRANSFER_TRANSFER_INTERNAL_H
#define MOON_TRANSFER_TRANSFER_INTERNAL_H

#include "ref/base/list.h"
#include "ref/transfer/data_server.h"
#include "ref/transfer/messages.h"
#include "ref/transfer/rdma.h"
#include "ref/transfer/rdma_message.h"
#include "ref/transfer/transfer.h"
#include "ref/wire/data.h"

enum {
    LANE_REQUESTS_MAX = 16,        /* under way on a lane, all of one job */
    LANE_WINDOW_BYTES = 256 << 10, /* a lane takes one more request while it has less than this under way */
};

/* A job from submit to done.
 *   link       in peer->jobs, or transfer->finished
 *   peer       NULL once it is finished, and for jobs on the own endpoint
 *   piece, offset, remote   where the next request begins; piece is no empty one, or piece_count: all have been sent
 *   lanes      that have requests of it under way
 *   on_verbs   rdma has been submitted */
struct moon_transfer_job_state {
    struct moon_list link;
    struct moon_transfer *transfer;
    struct moon_transfer_job *job;
    struct moon_peer *peer;
    size_t piece, offset;
    uint64_t remote;
    unsigned lanes;
    bool local, on_verbs;
    int code;
    struct moon_rdma_job rdma;
};

/* A part of a piece that one request moves. */
struct moon_lane_request {
    struct moon_piece piece;
    uint64_t remote;
};

/* One data connection to a peer.
 *   user         first member
 *   stream       NULL: there is none; standing: it is connected
 *   waiting      in transfer->waiting while it connects or has a job, since since_ns without progress
 *   generation   of the peer's descriptor that it was opened for
 *   requests     count of them, the oldest at `first` (a ring): sent, not answered
 *   headers      of requests that may not have left yet
 *   unsent       something given to send may not have left
 *   status       of the oldest request's answer, as far as it is here; filled: bytes of its data
 *   request_count, answer_count   of the connection, for message ids */
struct moon_lane {
    struct moon_stream_user user;
    struct moon_peer *peer;
    struct moon_stream *stream;
    struct moon_list waiting;
    moon_ns since_ns;
    bool standing, unsent;
    unsigned version, generation;
    struct moon_transfer_job_state *job;
    struct moon_lane_request requests[LANE_REQUESTS_MAX];
    unsigned first, count, header_count;
    uint8_t headers[LANE_REQUESTS_MAX][MOON_WIRE_DATA_REQUEST_BYTES];
    size_t window_bytes;
    uint8_t status[MOON_WIRE_DATA_STATUS_BYTES];
    size_t status_length, filled;
    uint64_t request_count, answer_count;
};

/* A process that jobs go to.
 *   link         in transfer->peers
 *   known        its descriptor has been asked for, and no transfer has failed since; asking: it is being asked
 *   verbs        it is reached over verbs, with `descriptor` (in `arena`); else over TCP at `data_endpoint`, framing
 *                `version`
 *   retry_ns     no lane beside those that stand is opened before */
struct moon_peer {
    struct moon_handshake_question question; /* first member */
    struct moon_list link;
    struct moon_transfer *transfer;
    char endpoint[MOON_ENDPOINT_BYTES], data_endpoint[MOON_ENDPOINT_BYTES];
    bool known, asking, verbs;
    unsigned version, generation;
    struct moon_arena arena;
    struct moon_rdma_descriptor descriptor;
    moon_ns retry_ns;
    struct moon_list jobs;
    struct moon_lane lanes[MOON_TRANSFER_LANES];
};

struct moon_transfer {
    struct moon_handshake_responder responder; /* first member */
    struct moon_environment *environment;
    struct moon_transfer_settings settings;
    char host[MOON_ENDPOINT_BYTES], endpoint[MOON_ENDPOINT_BYTES];
    uint16_t data_port;
    struct moon_regions regions;
    struct moon_handshake_server *handshake_server;
    struct moon_handshake_client *handshake_client;
    struct moon_data_server *data_server; /* without verbs */
    struct moon_rdma *rdma;               /* with verbs */
    struct moon_list peers;               /* last used last */
    size_t peer_count;
    struct moon_list waiting;  /* lanes, by since_ns */
    struct moon_list finished; /* jobs whose done() is due */
    struct moon_text header;   /* room to write one */
};

/* ---- jobs (transfer.c) */

static inline bool moon_job_has_request(const struct moon_transfer_job_state *state) {
    return state->piece < state->job->piece_count;
}
/* Takes the next request: what is left of a piece, of a write at most MOON_TRANSFER_TCP_WRITE_BYTES_MAX. */
struct moon_lane_request moon_job_take(struct moon_transfer_job_state *state);
/* Records the end of a request. */
void moon_job_record(const struct moon_transfer_job_state *state, uint64_t remote, uint64_t length, int code);
/* done(code) is due. */
void moon_job_finish(struct moon_transfer_job_state *state, int code);
/* The own descriptor, asked with and answered. False: no memory. */
bool moon_transfer_describe(struct moon_transfer *transfer, struct moon_text *out);

/* ---- lanes (lane.c) */

void moon_lane_init(struct moon_lane *lane, struct moon_peer *peer);
/* Begins to connect. False: refused at once. */
bool moon_lane_open(struct moon_lane *lane);
/* Closes the connection, if there is one. Requests under way are forgotten and recorded as failed. */
void moon_lane_close(struct moon_lane *lane);
/* May the lane send one more request of that job? */
bool moon_lane_takes(const struct moon_lane *lane, const struct moon_transfer_job_state *state);
/* Sends the job's next request. False: no memory, nothing was sent. */
bool moon_lane_send(struct moon_lane *lane, struct moon_transfer_job_state *state);
/* The lane is lost: closes it and tells the peer. */
void moon_lane_lose(struct moon_lane *lane);

/* ---- peers (peer.c) */

/* NULL: no memory. */
struct moon_peer *moon_peer_open(struct moon_transfer *transfer, const char *endpoint);
/* Its jobs are forgotten. */
void moon_peer_close(struct moon_peer *peer);
void moon_peer_submit(struct moon_peer *peer, struct moon_transfer_job_state *state);
/* Stops all that is under way of a job of this peer, and forgets it; the job is in no list then. */
void moon_peer_cancel(struct moon_peer *peer, struct moon_transfer_job_state *state);
/* Sends what can be sent, opens lanes, asks for the descriptor. */
void moon_peer_pump(struct moon_peer *peer);
/* A lane has nothing more under way of `state`. */
void moon_peer_released(struct moon_peer *peer, struct moon_transfer_job_state *state);
/* A lane was lost, with requests of `state` under way (NULL: none); standing: it had been connected. */
void moon_peer_lost(struct moon_peer *peer, struct moon_transfer_job_state *state, bool standing);

#endif
