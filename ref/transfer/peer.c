/* SPDX-License-Identifier: Apache-2.0 */
/* A peer: what it announces, the lanes to it, and the jobs that wait for them. */
#include "ref/base/number.h"
#include "ref/transfer/transfer_internal.h"

#include <stdio.h>

/* As long as lanes stand, one that was refused is not tried again at once. */
static const moon_ns reconnect_pause_ns = MOON_NS_PER_S;

static struct moon_transfer_job_state *state_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct moon_transfer_job_state, link);
}

/* The oldest job that has a request to send, NULL if there is none. */
static struct moon_transfer_job_state *first_to_send(struct moon_peer *peer) {
    for (struct moon_list *link = peer->jobs.next; link != &peer->jobs; link = link->next)
        if (moon_job_has_request(state_of(link)))
            return state_of(link);
    return NULL;
}

static void stop(struct moon_peer *peer, struct moon_transfer_job_state *state) {
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++)
        if (peer->lanes[i].job == state)
            moon_lane_close(&peer->lanes[i]);
}

/* Its descriptor is asked for again before the next request. */
static void fail(struct moon_peer *peer, struct moon_transfer_job_state *state) {
    stop(peer, state);
    peer->known = false;
    moon_job_finish(state, MOON_STORE_TRANSFER_FAIL);
}

static void fail_all_to_send(struct moon_peer *peer) {
    for (struct moon_transfer_job_state *state = first_to_send(peer); state; state = first_to_send(peer))
        fail(peer, state);
}

/* ---- the descriptor */

/* Where the data port is: at its own host, or at that of the endpoint. False: it is nowhere. */
static bool place_data(const struct moon_peer *peer, const struct moon_wire_descriptor *descriptor,
                       char endpoint[MOON_ENDPOINT_BYTES]) {
    const char *host = descriptor->data_host, *colon = strrchr(peer->endpoint, ':');
    int length = (int)strlen(host);
    if (length == 0) {
        host = peer->endpoint;
        length = colon ? (int)(colon - host) : 0;
    }
    bool bare = memchr(host, ':', (size_t)length) && *host != '[';
    int written = snprintf(endpoint, MOON_ENDPOINT_BYTES, bare ? "[%.*s]:%u" : "%.*s:%u", length, host,
                           (unsigned)descriptor->data_port);
    return length > 0 && written < MOON_ENDPOINT_BYTES;
}

/* Lanes to where it was before are closed, at once or when they have nothing under way. */
static void move_data(struct moon_peer *peer, const char *endpoint, unsigned version) {
    if (strcmp(endpoint, peer->data_endpoint) == 0 && version == peer->version)
        return;
    memcpy(peer->data_endpoint, endpoint, strlen(endpoint) + 1);
    peer->version = version;
    peer->generation++;
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++)
        if (!peer->lanes[i].job)
            moon_lane_close(&peer->lanes[i]);
}

static bool take_tcp(struct moon_peer *peer, const struct moon_wire_descriptor *descriptor) {
    char endpoint[MOON_ENDPOINT_BYTES];
    unsigned version = (unsigned)moon_smaller(descriptor->data_version, peer->transfer->settings.data_version);
    if (strcmp(descriptor->protocol, "tcp") != 0 || !place_data(peer, descriptor, endpoint))
        return false;
    move_data(peer, endpoint, version);
    return true;
}

/* What the peer is reached over is decided by the protocol that it names. */
static bool take_descriptor(struct moon_peer *peer, const char *json, size_t length) {
    struct moon_wire_descriptor descriptor;
    struct moon_error error;
    moon_arena_close(&peer->arena);
    bool good = moon_wire_read_descriptor(&peer->arena, json, length, &descriptor, &error) == 0;
    peer->verbs = good && peer->transfer->rdma && strcmp(descriptor.protocol, "rdma") == 0;
    if (peer->verbs)
        return moon_rdma_read_descriptor(&peer->arena, json, length, &peer->descriptor, &error) == 0;
    good = good && take_tcp(peer, &descriptor);
    moon_arena_close(&peer->arena);
    return good;
}

static void on_answer(struct moon_handshake_question *question, const char *json, size_t length) {
    struct moon_peer *peer = (struct moon_peer *)question;
    peer->asking = false;
    peer->known = json && take_descriptor(peer, json, length);
    if (!peer->known)
        fail_all_to_send(peer);
    moon_peer_pump(peer);
}

/* False: no memory. */
static bool ask(struct moon_peer *peer) {
    struct moon_transfer *transfer = peer->transfer;
    struct moon_text own;
    moon_text_open(&own, transfer->environment->memory);
    peer->asking = moon_transfer_describe(transfer, &own) &&
                   moon_handshake_ask(transfer->handshake_client, &peer->question, peer->endpoint,
                                      MOON_WIRE_HANDSHAKE_METADATA, own.data, own.length) == 0;
    moon_text_close(&own);
    return peer->asking;
}

/* ---- over verbs */

static void on_verbs_done(struct moon_rdma_job *job, int code) {
    struct moon_transfer_job_state *state = MOON_HOLDER(job, struct moon_transfer_job_state, rdma);
    struct moon_peer *peer = state->peer;
    moon_job_record(state, state->job->remote, state->remote - state->job->remote, code);
    state->on_verbs = false;
    if (code)
        peer->known = false;
    moon_job_finish(state, code);
}

/* False: no memory. */
static bool submit_to_verbs(struct moon_peer *peer, struct moon_transfer_job_state *state) {
    const struct moon_transfer_job *job = state->job;
    state->rdma = (struct moon_rdma_job){.remote = job->remote,
                                         .write = job->write,
                                         .pieces = job->pieces,
                                         .piece_count = job->piece_count,
                                         .done = on_verbs_done};
    while (moon_job_has_request(state))
        moon_job_take(state);
    state->on_verbs = moon_rdma_submit(peer->transfer->rdma, &state->rdma, &peer->descriptor) == 0;
    return state->on_verbs;
}

/* ---- over lanes */

/* An idle lane, or else the one of this job that has the least under way. */
static struct moon_lane *find_lane(struct moon_peer *peer, const struct moon_transfer_job_state *state) {
    struct moon_lane *best = NULL;
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++) {
        struct moon_lane *lane = &peer->lanes[i];
        if (moon_lane_takes(lane, state) && (!best || lane->count < best->count))
            best = lane;
    }
    return best;
}

/* Requests that wait to be sent, counted to MOON_TRANSFER_LANES. */
static unsigned count_to_send(struct moon_peer *peer) {
    unsigned count = 0;
    for (struct moon_list *link = peer->jobs.next; link != &peer->jobs; link = link->next) {
        struct moon_transfer_job_state copy = *state_of(link);
        for (; moon_job_has_request(&copy); moon_job_take(&copy))
            if (++count == MOON_TRANSFER_LANES)
                return count;
    }
    return count;
}

/* Opens as many lanes as there are requests to send. False: there is no lane that could ever send them. */
static bool open_lanes(struct moon_peer *peer) {
    unsigned wanted = count_to_send(peer), there = 0;
    bool paused = peer->transfer->environment->now_ns < peer->retry_ns;
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++) {
        const struct moon_lane *lane = &peer->lanes[i];
        there += lane->stream != NULL;
        wanted -= wanted > 0 && lane->stream && !lane->standing;
    }
    for (unsigned i = 0; i < MOON_TRANSFER_LANES && wanted > 0 && !(paused && there > 0); i++) {
        if (peer->lanes[i].stream || !moon_lane_open(&peer->lanes[i]))
            continue;
        there++;
        wanted--;
    }
    return there > 0;
}

void moon_peer_pump(struct moon_peer *peer) {
    for (struct moon_transfer_job_state *state = first_to_send(peer); state; state = first_to_send(peer)) {
        if (!peer->known) {
            if (!peer->asking && !ask(peer))
                fail_all_to_send(peer);
            return;
        }
        if (peer->verbs) {
            if (!submit_to_verbs(peer, state))
                fail(peer, state);
            continue;
        }
        struct moon_lane *lane = find_lane(peer, state);
        if (!lane) {
            if (!open_lanes(peer))
                fail_all_to_send(peer);
            return;
        }
        if (!moon_lane_send(lane, state))
            fail(peer, state);
    }
}

void moon_peer_released(struct moon_peer *peer, struct moon_transfer_job_state *state) {
    (void)peer;
    if (state->lanes == 0 && !moon_job_has_request(state))
        moon_job_finish(state, MOON_STORE_OK);
}

void moon_peer_lost(struct moon_peer *peer, struct moon_transfer_job_state *state, bool standing) {
    if (state)
        fail(peer, state);
    else if (!standing)
        peer->retry_ns = peer->transfer->environment->now_ns + reconnect_pause_ns;
    bool any = standing;
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++)
        any = any || peer->lanes[i].stream;
    if (!any)
        fail_all_to_send(peer);
    moon_peer_pump(peer);
}

/* ---- calls */

struct moon_peer *moon_peer_open(struct moon_transfer *transfer, const char *endpoint) {
    struct moon_memory *memory = transfer->environment->memory;
    struct moon_peer *peer = memory->resize(memory, NULL, 0, sizeof *peer);
    if (!peer)
        return NULL;
    *peer = (struct moon_peer){.question = {.done = on_answer}, .transfer = transfer};
    memcpy(peer->endpoint, endpoint, strlen(endpoint) + 1);
    moon_list_open(&peer->jobs);
    moon_arena_open(&peer->arena, memory);
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++)
        moon_lane_init(&peer->lanes[i], peer);
    return peer;
}

void moon_peer_submit(struct moon_peer *peer, struct moon_transfer_job_state *state) {
    state->peer = peer;
    moon_list_move(&peer->jobs, &state->link);
    moon_peer_pump(peer);
}

void moon_peer_cancel(struct moon_peer *peer, struct moon_transfer_job_state *state) {
    if (state->on_verbs)
        moon_rdma_cancel(&state->rdma);
    stop(peer, state);
    moon_list_leave(&state->link);
}

void moon_peer_close(struct moon_peer *peer) {
    struct moon_memory *memory = peer->transfer->environment->memory;
    moon_handshake_cancel(peer->transfer->handshake_client, &peer->question);
    while (!moon_list_empty(&peer->jobs)) {
        struct moon_transfer_job_state *state = state_of(peer->jobs.next);
        moon_peer_cancel(peer, state);
        memory->resize(memory, state, sizeof *state, 0);
    }
    for (unsigned i = 0; i < MOON_TRANSFER_LANES; i++)
        moon_lane_close(&peer->lanes[i]);
    moon_list_leave(&peer->link);
    moon_arena_close(&peer->arena);
    memory->resize(memory, peer, sizeof *peer, 0);
}
