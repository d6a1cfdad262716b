/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: a network of nodes in one process that cuts streams at random places and tells events in random
 * order, and raw ends of streams that a test speaks through. */
#ifndef MOON_TRANSFER_NET_INTERNAL_H
#define MOON_TRANSFER_NET_INTERNAL_H

#include "ref/transfer/transfer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NET_NODES = 8, NET_STREAMS = 4096, NET_QUEUE = 1024 };

struct net;

struct net_node {
    struct moon_streams streams; /* first member */
    struct net *net;
    char host[32];
    struct moon_environment environment;
    struct moon_transfer *transfer; /* ticked, if set */
};

/* One end of a connection, or a listener. Kept until the net ends, so that a use after its end is noticed.
 *   queue    borrowed pieces, from `head` on; wire: bytes on the way to this end
 *   room     the place that the next bytes go to, if the user has named one */
struct net_stream {
    struct moon_stream stream; /* first member */
    struct net_node *node;
    struct net_stream *other;
    char target[MOON_ENDPOINT_BYTES];
    bool alive, listening, connecting, opened_due, sent_due, paused, ended;
    enum moon_stream_end end;
    struct moon_piece queue[NET_QUEUE];
    size_t head, tail;
    uint8_t *wire;
    size_t wire_length, wire_capacity;
    void *room;
    size_t room_length;
};

struct net {
    struct net_node nodes[NET_NODES];
    struct net_stream *streams[NET_STREAMS];
    size_t node_count, stream_count;
    struct moon_random random;
    unsigned next_port;
    size_t piece_bytes_max, wire_bytes_max;
    bool in_event, refuse_all;
};

static inline void net_open(struct net *net, uint64_t seed) {
    memset(net, 0, sizeof *net);
    moon_random_seed(&net->random, seed);
    net->next_port = 40000;
    net->piece_bytes_max = 1 << 16;
    net->wire_bytes_max = 1 << 18;
}

static inline void net_close(struct net *net) {
    for (size_t i = 0; i < net->stream_count; i++) {
        free(net->streams[i]->wire);
        free(net->streams[i]);
    }
}

static inline struct net_stream *net_new(struct net_node *node, struct moon_stream_user *user) {
    struct net *net = node->net;
    assert(net->stream_count < NET_STREAMS);
    struct net_stream *made = calloc(1, sizeof *made);
    assert(made);
    made->node = node;
    made->stream.user = user;
    made->alive = true;
    net->streams[net->stream_count++] = made;
    return made;
}

static inline struct net_stream *net_listener(struct net *net, const char *endpoint) {
    for (size_t i = 0; i < net->stream_count; i++)
        if (net->streams[i]->alive && net->streams[i]->listening &&
            strcmp(net->streams[i]->stream.local, endpoint) == 0)
            return net->streams[i];
    return NULL;
}

static inline struct moon_stream *net_do_open(struct moon_streams *self, const char *endpoint,
                                              struct moon_stream_user *user) {
    struct net_node *node = (struct net_node *)self;
    if (!strchr(endpoint, ':') || strlen(endpoint) >= MOON_ADDRESS_BYTES || node->net->refuse_all)
        return NULL;
    struct net_stream *made = net_new(node, user);
    made->connecting = true;
    snprintf(made->target, sizeof made->target, "%s", endpoint);
    return &made->stream;
}

static inline struct moon_stream *net_do_listen(struct moon_streams *self, const char *endpoint,
                                                struct moon_stream_user *user) {
    struct net_node *node = (struct net_node *)self;
    if (net_listener(node->net, endpoint) || strlen(endpoint) >= MOON_ADDRESS_BYTES)
        return NULL;
    struct net_stream *made = net_new(node, user);
    made->listening = true;
    snprintf(made->stream.local, sizeof made->stream.local, "%s", endpoint);
    return &made->stream;
}

static inline void net_do_send(struct moon_streams *self, struct moon_stream *stream, const struct moon_piece *pieces,
                               size_t count) {
    struct net_stream *own = (struct net_stream *)stream;
    assert(own->alive && !own->listening && &own->node->streams == self);
    assert(count > 0 && count <= MOON_STREAM_PIECES_MAX);
    if (own->head == own->tail)
        own->head = own->tail = 0;
    for (size_t i = 0; i < count; i++)
        if (pieces[i].length > 0) {
            assert(own->tail < NET_QUEUE);
            own->queue[own->tail++] = pieces[i];
        }
    own->sent_due = false;
}

static inline void net_do_resume(struct moon_streams *self, struct moon_stream *stream) {
    struct net_stream *own = (struct net_stream *)stream;
    (void)self;
    assert(own->alive);
    own->paused = false;
}

/* The end of a connection for its other side. Bytes that nobody has read there break it. */
static inline void net_do_close(struct moon_streams *self, struct moon_stream *stream) {
    struct net_stream *own = (struct net_stream *)stream;
    (void)self;
    assert(own->alive);
    own->alive = false;
    if (own->other && own->other->alive) {
        own->other->ended = true;
        own->other->end = own->wire_length > 0 ? MOON_STREAM_END_BROKEN : MOON_STREAM_END_PEER;
        own->other->other = NULL;
    }
    own->other = NULL;
}

static inline struct net_node *net_add(struct net *net, const char *host, struct moon_memory *memory) {
    struct net_node *node = &net->nodes[net->node_count++];
    *node = (struct net_node){.streams = {net_do_open, net_do_listen, net_do_send, net_do_resume, net_do_close}};
    node->net = net;
    snprintf(node->host, sizeof node->host, "%s", host);
    node->environment.memory = memory;
    node->environment.streams = &node->streams;
    node->environment.now_ns = 1000 * MOON_NS_PER_S;
    node->environment.wall_ns = 1795955878123294000;
    moon_random_seed(&node->environment.random, net->node_count);
    return node;
}

/* Both ends are lost. */
static inline void net_break(struct net_stream *own) {
    struct net_stream *both[] = {own, own->other};
    for (int i = 0; i < 2; i++)
        if (both[i] && both[i]->alive) {
            both[i]->ended = true;
            both[i]->end = MOON_STREAM_END_BROKEN;
            both[i]->other = NULL;
        }
}

/* ---- events */

enum net_event { NET_CONNECT, NET_OPENED, NET_FLUSH, NET_SENT, NET_ROOM, NET_RECEIVE, NET_END };

static inline bool net_can(const struct net_stream *own, enum net_event event) {
    bool broken = own->ended && own->end == MOON_STREAM_END_BROKEN;
    switch (event) {
    case NET_CONNECT:
        return own->connecting;
    case NET_OPENED:
        return own->opened_due && !broken;
    case NET_FLUSH:
        return own->head < own->tail && own->other && own->other->wire_length < own->node->net->wire_bytes_max;
    case NET_SENT:
        return own->sent_due && !broken;
    case NET_ROOM:
        return own->wire_length > 0 && !own->paused && !own->room && !broken && !own->opened_due;
    case NET_RECEIVE:
        return own->wire_length > 0 && own->room && !broken;
    case NET_END:
        return own->ended && (broken || own->wire_length == 0) && !own->opened_due;
    }
    return false;
}

static inline size_t net_amount(struct net *net, size_t most) {
    size_t wanted = 1 + (size_t)moon_random_below(&net->random, net->piece_bytes_max);
    return wanted < most ? wanted : most;
}

static inline void net_connect(struct net_stream *own) {
    struct net *net = own->node->net;
    struct net_stream *listener = net_listener(net, own->target);
    own->connecting = false;
    if (!listener) {
        own->ended = true;
        own->alive = false;
        own->stream.user->closed(own->stream.user, &own->stream, MOON_STREAM_END_REFUSED);
        return;
    }
    struct net_stream *made = net_new(listener->node, NULL);
    snprintf(made->stream.local, sizeof made->stream.local, "%s", listener->stream.local);
    snprintf(made->stream.peer, sizeof made->stream.peer, "%s:%u", own->node->host, net->next_port++);
    memcpy(own->stream.local, made->stream.peer, sizeof own->stream.local);
    memcpy(own->stream.peer, made->stream.local, sizeof own->stream.peer);
    made->other = own;
    own->other = made;
    own->opened_due = true;
    listener->stream.user->accepted(listener->stream.user, &made->stream);
    assert(!made->alive || made->stream.user);
}

/* Bytes leave this end for the other one. */
static inline void net_flush(struct net_stream *own) {
    struct net_stream *other = own->other;
    struct moon_piece *piece = &own->queue[own->head];
    size_t amount = net_amount(own->node->net, piece->length);
    if (other->wire_length + amount > other->wire_capacity) {
        other->wire_capacity = 2 * (other->wire_length + amount);
        other->wire = realloc(other->wire, other->wire_capacity);
        assert(other->wire);
    }
    memcpy(other->wire + other->wire_length, piece->data, amount);
    other->wire_length += amount;
    piece->data = (uint8_t *)piece->data + amount;
    piece->length -= amount;
    if (piece->length == 0)
        own->head++;
    own->sent_due = own->head == own->tail;
}

static inline void net_receive(struct net_stream *own) {
    size_t most = own->room_length < own->wire_length ? own->room_length : own->wire_length;
    size_t amount = net_amount(own->node->net, most);
    memcpy(own->room, own->wire, amount);
    own->wire_length -= amount;
    memmove(own->wire, own->wire + amount, own->wire_length);
    own->room = NULL;
    own->stream.user->received(own->stream.user, &own->stream, amount);
}

static inline void net_do(struct net_stream *own, enum net_event event) {
    struct moon_stream_user *user = own->stream.user;
    switch (event) {
    case NET_CONNECT:
        net_connect(own);
        break;
    case NET_OPENED:
        own->opened_due = false;
        user->opened(user, &own->stream);
        break;
    case NET_FLUSH:
        net_flush(own);
        break;
    case NET_SENT:
        own->sent_due = false;
        user->sent(user, &own->stream);
        break;
    case NET_ROOM:
        own->room_length = user->room(user, &own->stream, &own->room);
        own->paused = own->room_length == 0;
        if (own->paused)
            own->room = NULL;
        break;
    case NET_RECEIVE:
        net_receive(own);
        break;
    case NET_END:
        own->alive = false;
        user->closed(user, &own->stream, own->end);
        break;
    }
}

/* One event, drawn from those that can happen. False: there is none. */
static inline bool net_event_once(struct net *net) {
    size_t count = 0, chosen = 0;
    enum net_event kind = NET_END;
    for (size_t i = 0; i < net->stream_count; i++)
        for (int event = NET_CONNECT; event <= NET_END && net->streams[i]->alive; event++)
            if (net_can(net->streams[i], (enum net_event)event) && moon_random_below(&net->random, ++count) == 0) {
                chosen = i;
                kind = (enum net_event)event;
            }
    if (count > 0)
        net_do(net->streams[chosen], kind);
    return count > 0;
}

static inline moon_ns net_deadline(const struct net *net) {
    moon_ns first = MOON_NS_NEVER;
    for (size_t i = 0; i < net->node_count; i++)
        if (net->nodes[i].transfer && moon_transfer_deadline(net->nodes[i].transfer) < first)
            first = moon_transfer_deadline(net->nodes[i].transfer);
    return first;
}

static inline void net_set_time(struct net *net, moon_ns now_ns) {
    for (size_t i = 0; i < net->node_count; i++)
        net->nodes[i].environment.now_ns = now_ns;
}

static inline void net_tick(struct net *net) {
    for (size_t i = 0; i < net->node_count; i++) {
        struct net_node *node = &net->nodes[i];
        for (int most = 0; node->transfer && moon_transfer_deadline(node->transfer) <= node->environment.now_ns;
             most++) {
            assert(most < 100000);
            moon_transfer_tick(node->transfer);
        }
    }
}

/* An event and what is due; false: nothing happens any more at this time. */
static inline bool net_step(struct net *net) {
    bool more = net_event_once(net);
    net_tick(net);
    return more;
}

/* Runs until nothing happens any more, without moving the time. */
static inline void net_settle(struct net *net) {
    net_tick(net);
    while (net_step(net)) {
    }
}

/* Moves the time to the next deadline, if there is one, and runs on. */
static inline bool net_wait(struct net *net) {
    moon_ns next = net_deadline(net);
    if (next == MOON_NS_NEVER)
        return false;
    net_set_time(net, next);
    net_settle(net);
    return true;
}

/* True if a stream of the node still has a part of that memory to send, or to receive into. */
static inline bool net_uses(const struct net_node *node, const void *memory, size_t length) {
    const uint8_t *begin = memory, *end = begin + length;
    for (size_t i = 0; i < node->net->stream_count; i++) {
        const struct net_stream *own = node->net->streams[i];
        if (!own->alive || own->node != node)
            continue;
        if (own->room && (uint8_t *)own->room < end && (uint8_t *)own->room + own->room_length > begin)
            return true;
        for (size_t j = own->head; j < own->tail; j++)
            if ((uint8_t *)own->queue[j].data < end && (uint8_t *)own->queue[j].data + own->queue[j].length > begin)
                return true;
    }
    return false;
}

/* The `index`-th live connection of the node with that end (accepted: its own port is a listener's), NULL if none. */
static inline struct net_stream *net_find(const struct net_node *node, bool accepted, size_t index) {
    for (size_t i = 0; i < node->net->stream_count; i++) {
        struct net_stream *own = node->net->streams[i];
        if (own->alive && own->node == node && !own->listening && (own->target[0] == '\0') == accepted && index-- == 0)
            return own;
    }
    return NULL;
}

static inline size_t net_count(const struct net_node *node, bool accepted) {
    size_t count = 0;
    while (net_find(node, accepted, count))
        count++;
    return count;
}

/* Opens the node's engine with the defaults. version 0: the newest. */
static inline struct moon_transfer *net_start(struct net_node *node, unsigned version) {
    struct moon_transfer_settings settings = moon_transfer_defaults();
    struct moon_error error;
    settings.host = node->host;
    settings.data_version = version ? version : settings.data_version;
    int status = moon_transfer_open(&node->environment, &settings, &node->transfer, &error);
    assert(status == 0);
    (void)status;
    return node->transfer;
}

static inline void net_stop(struct net_node *node) {
    moon_transfer_close(node->transfer);
    node->transfer = NULL;
}

/* Port of the node's data listener, in `endpoint` with its host. */
static inline const char *net_data_endpoint(const struct net_node *node) {
    const char *own = node->transfer ? moon_transfer_endpoint(node->transfer) : "";
    for (size_t i = 0; i < node->net->stream_count; i++) {
        const struct net_stream *one = node->net->streams[i];
        if (one->alive && one->listening && one->node == node && strcmp(one->stream.local, own) != 0)
            return one->stream.local;
    }
    return "";
}

/* A job, and what became of it. */
struct net_job {
    struct moon_transfer_job job; /* first member */
    int code, done_count;
};

static inline void net_job_done(struct moon_transfer_job *job, int code) {
    struct net_job *own = (struct net_job *)job;
    own->code = code;
    own->done_count++;
}

static inline int net_submit(struct net_node *node, struct net_job *own, const char *endpoint, bool write,
                             uint64_t remote, const struct moon_piece *pieces, size_t piece_count) {
    own->code = 1;
    own->done_count = 0;
    own->job = (struct moon_transfer_job){.endpoint = endpoint,
                                          .remote = remote,
                                          .write = write,
                                          .pieces = pieces,
                                          .piece_count = piece_count,
                                          .op = 7,
                                          .done = net_job_done};
    return moon_transfer_submit(node->transfer, &own->job);
}

/* ---- a raw end of a stream */

/* What a test says and hears. hold: takes no bytes. As a listener it keeps the stream that came in last. */
struct raw {
    struct moon_stream_user user; /* first member */
    struct net_node *node;
    struct moon_stream *stream, *listener;
    bool open, ended, hold;
    enum moon_stream_end end;
    uint8_t bytes[1 << 16];
    size_t length;
    size_t accepted_count;
};

static inline void raw_accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct raw *raw = (struct raw *)self;
    stream->user = self;
    raw->stream = stream;
    raw->accepted_count++;
    raw->open = true;
    raw->ended = false;
    raw->length = 0;
}

static inline void raw_opened(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)stream;
    ((struct raw *)self)->open = true;
}

static inline size_t raw_room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct raw *raw = (struct raw *)self;
    (void)stream;
    *into = raw->bytes + raw->length;
    return raw->hold ? 0 : sizeof raw->bytes - raw->length;
}

static inline void raw_received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    (void)stream;
    ((struct raw *)self)->length += bytes;
}

static inline void raw_sent(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)self;
    (void)stream;
}

static inline void raw_closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct raw *raw = (struct raw *)self;
    if (stream != raw->stream)
        return;
    raw->ended = true;
    raw->open = false;
    raw->end = end;
    raw->stream = NULL;
}

static inline void raw_init(struct raw *raw, struct net_node *node) {
    memset(raw, 0, sizeof *raw);
    raw->user = (struct moon_stream_user){raw_accepted, raw_opened, raw_room, raw_received, raw_sent, raw_closed};
    raw->node = node;
}

static inline void raw_dial(struct raw *raw, struct net_node *node, const char *endpoint) {
    raw_init(raw, node);
    raw->stream = node->streams.open(&node->streams, endpoint, &raw->user);
    assert(raw->stream);
}

static inline void raw_listen(struct raw *raw, struct net_node *node, const char *endpoint) {
    raw_init(raw, node);
    raw->listener = node->streams.listen(&node->streams, endpoint, &raw->user);
    assert(raw->listener);
}

/* The bytes must live until they have left. */
static inline void raw_send(struct raw *raw, const void *bytes, size_t length) {
    struct moon_piece piece = {(void *)(uintptr_t)bytes, length};
    raw->node->streams.send(&raw->node->streams, raw->stream, &piece, 1);
}

static inline void raw_close(struct raw *raw) {
    if (raw->stream)
        raw->node->streams.close(&raw->node->streams, raw->stream);
    raw->stream = NULL;
}

static inline bool raw_has(const struct raw *raw, const void *bytes, size_t length) {
    return raw->length == length && memcmp(raw->bytes, bytes, length) == 0;
}

#endif
