/* SPDX-License-Identifier: Apache-2.0 */
/* One data connection to a peer: requests of one job at a time go out, their answers come back in order. */
#include "ref/transfer/transfer_internal.h"

#include <assert.h>

static struct moon_environment *environment_of(const struct moon_lane *lane) {
    return lane->peer->transfer->environment;
}

/* Moves the lane to the end of those that wait. */
static void wait_from_now(struct moon_lane *lane) {
    lane->since_ns = environment_of(lane)->now_ns;
    moon_list_move(&lane->peer->transfer->waiting, &lane->waiting);
}

static void record_message(const struct moon_lane *lane, enum moon_record_kind kind, const char *what, uint64_t ordinal,
                           const struct moon_lane_request *request) {
    const struct moon_extent extent = {moon_bytes_of(lane->peer->endpoint), request->remote, request->piece.length};
    moon_transfer_record_message(environment_of(lane), kind, what, lane->stream, ordinal, lane->job->job->op, &extent);
}

/* A write of version 1 has no answer: it is done when it has left. */
static bool has_answers(const struct moon_lane *lane) {
    return lane->version == 2 || !lane->job->job->write;
}

/* The oldest request has ended. */
static void end_request(struct moon_lane *lane, int code) {
    const struct moon_lane_request *request = &lane->requests[lane->first];
    moon_job_record(lane->job, request->remote, request->piece.length, code);
    lane->window_bytes -= request->piece.length;
    lane->first = (lane->first + 1) % LANE_REQUESTS_MAX;
    lane->count--;
    lane->status_length = lane->filled = 0;
}

/* Something has moved: lets the job go if nothing of it is under way, and sends more. */
static void go_on(struct moon_lane *lane) {
    struct moon_peer *peer = lane->peer;
    struct moon_transfer_job_state *state = lane->job;
    assert(state);
    wait_from_now(lane);
    if (lane->count == 0 && !lane->unsent) {
        lane->job = NULL;
        state->lanes--;
        moon_list_leave(&lane->waiting);
        if (lane->generation != peer->generation)
            moon_lane_close(lane);
        moon_peer_released(peer, state);
    }
    moon_peer_pump(peer);
}

/* ---- events */

static void on_opened(struct moon_stream_user *user, struct moon_stream *stream) {
    struct moon_lane *lane = (struct moon_lane *)user;
    (void)stream;
    lane->standing = true;
    moon_list_leave(&lane->waiting);
    moon_peer_pump(lane->peer);
}

static size_t on_room(struct moon_stream_user *user, struct moon_stream *stream, void **into) {
    struct moon_lane *lane = (struct moon_lane *)user;
    (void)stream;
    *into = lane->status;
    if (lane->count == 0 || !has_answers(lane))
        return 1; /* only to learn that it ends, or that the peer sends what nobody asked for */
    const struct moon_piece *piece = &lane->requests[lane->first].piece;
    if (lane->version == 2 && lane->status_length < sizeof lane->status) {
        *into = lane->status + lane->status_length;
        return sizeof lane->status - lane->status_length;
    }
    *into = (uint8_t *)piece->data + lane->filled;
    return piece->length - lane->filled;
}

/* Bytes of a status. False: it is none, or it refuses. */
static bool status_received(struct moon_lane *lane, size_t bytes) {
    struct moon_error error;
    uint32_t status = 0;
    lane->status_length += bytes;
    if (lane->status_length < sizeof lane->status)
        return true;
    record_message(lane, MOON_RECORD_RECV, "data-answer", lane->answer_count++, &lane->requests[lane->first]);
    if (moon_wire_read_data_status(lane->status, &status, &error) || status != MOON_WIRE_DATA_OK)
        return false;
    if (lane->job->job->write)
        end_request(lane, MOON_STORE_OK);
    return true;
}

static void data_received(struct moon_lane *lane, size_t bytes) {
    if (lane->version == 1 && lane->filled == 0)
        record_message(lane, MOON_RECORD_RECV, "data-answer", lane->answer_count++, &lane->requests[lane->first]);
    lane->filled += bytes;
    if (lane->filled == lane->requests[lane->first].piece.length)
        end_request(lane, MOON_STORE_OK);
}

static void on_received(struct moon_stream_user *user, struct moon_stream *stream, size_t bytes) {
    struct moon_lane *lane = (struct moon_lane *)user;
    (void)stream;
    bool good = lane->count > 0 && has_answers(lane);
    if (good && lane->version == 2 && lane->status_length < sizeof lane->status)
        good = status_received(lane, bytes);
    else if (good)
        data_received(lane, bytes);
    if (good)
        go_on(lane);
    else
        moon_lane_lose(lane);
}

static void on_sent(struct moon_stream_user *user, struct moon_stream *stream) {
    struct moon_lane *lane = (struct moon_lane *)user;
    (void)stream;
    lane->unsent = false;
    lane->header_count = 0;
    while (lane->count > 0 && !has_answers(lane))
        end_request(lane, MOON_STORE_OK);
    go_on(lane);
}

static void on_closed(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    struct moon_lane *lane = (struct moon_lane *)user;
    (void)stream;
    (void)end;
    lane->stream = NULL;
    moon_lane_lose(lane);
}

/* ---- calls */

void moon_lane_init(struct moon_lane *lane, struct moon_peer *peer) {
    *lane = (struct moon_lane){
        .user = {.opened = on_opened, .room = on_room, .received = on_received, .sent = on_sent, .closed = on_closed},
        .peer = peer,
    };
}

bool moon_lane_open(struct moon_lane *lane) {
    struct moon_streams *streams = environment_of(lane)->streams;
    lane->version = lane->peer->version;
    lane->generation = lane->peer->generation;
    lane->stream = streams->open(streams, lane->peer->data_endpoint, &lane->user);
    if (lane->stream)
        wait_from_now(lane);
    return lane->stream;
}

void moon_lane_close(struct moon_lane *lane) {
    struct moon_streams *streams = environment_of(lane)->streams;
    if (lane->stream)
        streams->close(streams, lane->stream);
    while (lane->count > 0)
        end_request(lane, MOON_STORE_TRANSFER_FAIL);
    if (lane->job)
        lane->job->lanes--;
    moon_list_leave(&lane->waiting);
    moon_lane_init(lane, lane->peer);
}

bool moon_lane_takes(const struct moon_lane *lane, const struct moon_transfer_job_state *state) {
    if (!lane->standing || lane->generation != lane->peer->generation)
        return false;
    if (!lane->job)
        return true;
    return lane->job == state && has_answers(lane) && lane->count < LANE_REQUESTS_MAX &&
           lane->header_count < LANE_REQUESTS_MAX && lane->window_bytes < LANE_WINDOW_BYTES;
}

bool moon_lane_send(struct moon_lane *lane, struct moon_transfer_job_state *state) {
    struct moon_streams *streams = environment_of(lane)->streams;
    struct moon_text *text = &lane->peer->transfer->header;
    struct moon_lane_request *request = &lane->requests[(lane->first + lane->count) % LANE_REQUESTS_MAX];
    uint8_t *header = lane->headers[lane->header_count];
    struct moon_transfer_job_state before = *state;
    *request = moon_job_take(state);
    struct moon_wire_data_request wire = {.size = request->piece.length,
                                          .address = request->remote,
                                          .write = state->job->write,
                                          .version = lane->version};
    moon_text_clear(text);
    moon_wire_write_data_request(&wire, text);
    if (text->failed) {
        text->failed = false;
        *state = before;
        return false;
    }
    memcpy(header, text->data, MOON_WIRE_DATA_REQUEST_BYTES);
    state->lanes += !lane->job;
    lane->job = state;
    lane->header_count++;
    lane->count++;
    lane->window_bytes += request->piece.length;
    lane->unsent = true;
    wait_from_now(lane);
    record_message(lane, MOON_RECORD_SEND, wire.write ? "data-write" : "data-read", lane->request_count++, request);
    struct moon_piece pieces[] = {{header, MOON_WIRE_DATA_REQUEST_BYTES}, request->piece};
    streams->send(streams, lane->stream, pieces, wire.write ? 2 : 1);
    return true;
}

void moon_lane_lose(struct moon_lane *lane) {
    struct moon_peer *peer = lane->peer;
    struct moon_transfer_job_state *state = lane->job;
    bool standing = lane->standing;
    moon_lane_close(lane);
    moon_peer_lost(peer, state, standing);
}
