/* SPDX-License-Identifier: Apache-2.0 */
/* Streams by memcpy: two ends that know each other, and one queue of events over all of them. */
#include "ref/fabric/memory.h"

#include "ref/base/endpoint.h"
#include "ref/base/error.h"

#include <assert.h>

enum { PORT_FIRST = 20000 };

/* Wall clocks show 2026-01-01 at time 0. */
static const moon_ns WALL_AT_ZERO = 1767225600 * MOON_NS_PER_S;

enum event_kind { EVENT_CONNECT, EVENT_OPENED, EVENT_DATA, EVENT_SENT, EVENT_CLOSED, EVENT_KINDS };

/* Embedded in its end, once a kind: to queue one needs no memory, and an end takes its events with it. */
struct event {
    struct event *next, *previous;
    struct end *end;
    enum event_kind kind;
    bool queued;
};

/* What one send() gave. The pieces are borrowed from the sender, or behind the chunk when its end is gone. */
struct chunk {
    struct chunk *next;
    size_t bytes; /* of this object */
    size_t count, index, offset;
    struct moon_piece pieces[];
};

/* One end of a stream, or a listener.
 *   node    NULL: the far end of a stream that nobody has accepted yet
 *   peer    NULL: a listener, or the other end is gone
 *   inbox   what the other end has sent and this one has not taken */
struct end {
    struct moon_stream stream;
    struct node *node;
    struct end *next, *previous;
    struct end *peer;
    struct chunk *inbox, **inbox_tail;
    struct event events[EVENT_KINDS];
    enum moon_stream_end reason;
    bool listening, paused, ended;
};

struct node {
    struct moon_streams streams;
    struct moon_memory_fabric *fabric;
    struct moon_environment *environment;
    struct node *next;
    struct end *ends;
    uint16_t next_port;
    char host[MOON_HOST_BYTES];
};

struct moon_memory_fabric {
    struct moon_memory *memory;
    struct node *nodes, **nodes_tail;
    struct event *first, *last;
    struct end *current; /* whose user is being called; NULL once it was closed by that user */
    moon_ns now_ns;
};

/* ---- events */

static void queue_event(struct moon_memory_fabric *fabric, struct end *end, enum event_kind kind) {
    struct event *event = &end->events[kind];
    if (event->queued)
        return;
    *event = (struct event){.previous = fabric->last, .end = end, .kind = kind, .queued = true};
    if (fabric->last)
        fabric->last->next = event;
    else
        fabric->first = event;
    fabric->last = event;
}

static void unqueue_event(struct moon_memory_fabric *fabric, struct event *event) {
    if (!event->queued)
        return;
    if (event->previous)
        event->previous->next = event->next;
    else
        fabric->first = event->next;
    if (event->next)
        event->next->previous = event->previous;
    else
        fabric->last = event->previous;
    event->queued = false;
}

/* ---- ends */

static struct end *new_end(struct moon_memory_fabric *fabric) {
    struct end *end = fabric->memory->resize(fabric->memory, NULL, 0, sizeof *end);
    if (!end)
        return NULL;
    *end = (struct end){.inbox = NULL};
    end->inbox_tail = &end->inbox;
    return end;
}

static void link_end(struct node *node, struct end *end) {
    end->node = node;
    end->next = node->ends;
    if (end->next)
        end->next->previous = end;
    node->ends = end;
}

static void unlink_end(struct end *end) {
    if (!end->node)
        return;
    if (end->previous)
        end->previous->next = end->next;
    else
        end->node->ends = end->next;
    if (end->next)
        end->next->previous = end->previous;
    end->node = NULL;
}

static void drop_chunk(struct moon_memory_fabric *fabric, struct end *end) {
    struct chunk *chunk = end->inbox;
    end->inbox = chunk->next;
    if (!end->inbox)
        end->inbox_tail = &end->inbox;
    fabric->memory->resize(fabric->memory, chunk, chunk->bytes, 0);
}

static void drop_inbox(struct moon_memory_fabric *fabric, struct end *end) {
    while (end->inbox)
        drop_chunk(fabric, end);
}

static void free_end(struct moon_memory_fabric *fabric, struct end *end) {
    for (int kind = 0; kind < EVENT_KINDS; kind++)
        unqueue_event(fabric, &end->events[kind]);
    unlink_end(end);
    drop_inbox(fabric, end);
    if (fabric->current == end)
        fabric->current = NULL;
    fabric->memory->resize(fabric->memory, end, sizeof *end, 0);
}

/* The user of `end` will be told that it ended, once it has taken what is there. Who takes nothing but has lost bytes
 * of its own hears it now, as a write on a dead connection fails. */
static void finish(struct moon_memory_fabric *fabric, struct end *end, enum moon_stream_end reason) {
    end->ended = true;
    end->reason = reason;
    if (reason == MOON_STREAM_END_BROKEN && end->paused)
        drop_inbox(fabric, end);
    if (!end->inbox)
        queue_event(fabric, end, EVENT_CLOSED);
}

static size_t inbox_bytes(const struct end *end) {
    size_t bytes = 0;
    for (const struct chunk *chunk = end->inbox; chunk; chunk = chunk->next) {
        for (size_t i = chunk->index; i < chunk->count; i++)
            bytes += chunk->pieces[i].length;
        bytes -= chunk->offset;
    }
    return bytes;
}

/* Moves up to `room` bytes out of the inbox; returns how many. */
static size_t take(struct moon_memory_fabric *fabric, struct end *end, char *into, size_t room) {
    size_t taken = 0;
    while (end->inbox) {
        struct chunk *chunk = end->inbox;
        if (chunk->index == chunk->count) {
            drop_chunk(fabric, end);
            continue;
        }
        struct moon_piece piece = chunk->pieces[chunk->index];
        size_t left = piece.length - chunk->offset;
        if (left > 0 && taken == room)
            break;
        size_t now = left < room - taken ? left : room - taken;
        if (now > 0)
            memcpy(into + taken, (const char *)piece.data + chunk->offset, now);
        taken += now;
        chunk->offset += now;
        if (chunk->offset == piece.length) {
            chunk->index++;
            chunk->offset = 0;
        }
    }
    return taken;
}

/* Makes the inbox one chunk that owns its bytes. False: no memory; the inbox is empty then. */
static bool own_inbox(struct moon_memory_fabric *fabric, struct end *end) {
    size_t length = inbox_bytes(end);
    size_t bytes = sizeof(struct chunk) + sizeof(struct moon_piece) + length;
    struct chunk *owned = fabric->memory->resize(fabric->memory, NULL, 0, bytes);
    if (!owned) {
        drop_inbox(fabric, end);
        return false;
    }
    *owned = (struct chunk){.bytes = bytes, .count = 1};
    owned->pieces[0] = (struct moon_piece){owned->pieces + 1, length};
    take(fabric, end, owned->pieces[0].data, length);
    end->inbox = owned;
    end->inbox_tail = &owned->next;
    return true;
}

/* Parts `end` from its peer, which hears of it. keep: bytes on their way to the peer arrive, else they are lost. */
static void sever(struct moon_memory_fabric *fabric, struct end *end, bool keep) {
    struct end *peer = end->peer;
    if (!peer)
        return;
    end->peer = NULL;
    peer->peer = NULL;
    if (!peer->node) {
        free_end(fabric, peer);
        return;
    }
    bool lost = end->inbox != NULL;
    if (peer->inbox && !(keep && own_inbox(fabric, peer))) {
        drop_inbox(fabric, peer);
        lost = true;
    }
    finish(fabric, peer, lost ? MOON_STREAM_END_BROKEN : MOON_STREAM_END_PEER);
}

/* ---- operations */

static bool port_in_use(const struct node *node, uint16_t port) {
    char address[MOON_ADDRESS_BYTES];
    (void)moon_endpoint_join(node->host, port, address, sizeof address);
    for (const struct end *end = node->ends; end; end = end->next)
        if (strcmp(end->stream.local, address) == 0)
            return true;
    return false;
}

/* Writes a free address of the node; false: there is none. */
static bool free_address(struct node *node, char address[MOON_ADDRESS_BYTES]) {
    for (int tries = 0; tries <= UINT16_MAX - PORT_FIRST; tries++) {
        uint16_t port = node->next_port;
        node->next_port = port == UINT16_MAX ? PORT_FIRST : (uint16_t)(port + 1);
        if (!port_in_use(node, port))
            return moon_endpoint_join(node->host, port, address, MOON_ADDRESS_BYTES);
    }
    return false;
}

static struct moon_stream *memory_open(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user) {
    struct node *node = (struct node *)self;
    char host[MOON_HOST_BYTES], local[MOON_ADDRESS_BYTES];
    uint16_t port;
    if (!moon_endpoint_split(endpoint, host, &port) || !free_address(node, local))
        return NULL;
    struct end *near = new_end(node->fabric), *far = near ? new_end(node->fabric) : NULL;
    if (!far || !moon_endpoint_join(host, port, far->stream.local, sizeof far->stream.local)) {
        if (near)
            free_end(node->fabric, near);
        if (far)
            free_end(node->fabric, far);
        return NULL;
    }
    near->peer = far;
    far->peer = near;
    near->stream.user = user;
    memcpy(near->stream.local, local, sizeof local);
    memcpy(far->stream.peer, local, sizeof local);
    link_end(node, near);
    queue_event(node->fabric, near, EVENT_CONNECT);
    return &near->stream;
}

static struct moon_stream *memory_listen(struct moon_streams *self, const char *endpoint,
                                         struct moon_stream_user *user) {
    struct node *node = (struct node *)self;
    char host[MOON_HOST_BYTES], local[MOON_ADDRESS_BYTES];
    uint16_t port;
    if (!moon_endpoint_split(endpoint, host, &port))
        return NULL;
    if (strcmp(host, node->host) != 0 && strcmp(host, "0.0.0.0") != 0)
        return NULL;
    if (port == 0 ? !free_address(node, local)
                  : port_in_use(node, port) || !moon_endpoint_join(node->host, port, local, sizeof local))
        return NULL;
    struct end *listener = new_end(node->fabric);
    if (!listener)
        return NULL;
    listener->listening = true;
    listener->stream.user = user;
    memcpy(listener->stream.local, local, sizeof local);
    link_end(node, listener);
    return &listener->stream;
}

static void memory_send(struct moon_streams *self, struct moon_stream *stream, const struct moon_piece *pieces,
                        size_t count) {
    struct moon_memory_fabric *fabric = ((struct node *)self)->fabric;
    struct end *end = (struct end *)stream, *peer = end->peer;
    assert(count >= 1 && count <= MOON_STREAM_PIECES_MAX && !end->listening);
    if (!peer) {
        finish(fabric, end, end->reason == MOON_STREAM_END_REFUSED ? end->reason : MOON_STREAM_END_BROKEN);
        return;
    }
    size_t bytes = sizeof(struct chunk) + count * sizeof *pieces;
    struct chunk *chunk = fabric->memory->resize(fabric->memory, NULL, 0, bytes);
    if (!chunk) {
        sever(fabric, end, true);
        drop_inbox(fabric, end);
        unqueue_event(fabric, &end->events[EVENT_CONNECT]);
        finish(fabric, end, MOON_STREAM_END_BROKEN);
        return;
    }
    *chunk = (struct chunk){.bytes = bytes, .count = count};
    memcpy(chunk->pieces, pieces, count * sizeof *pieces);
    *peer->inbox_tail = chunk;
    peer->inbox_tail = &chunk->next;
    if (peer->node && !peer->paused)
        queue_event(fabric, peer, EVENT_DATA);
}

static void memory_resume(struct moon_streams *self, struct moon_stream *stream) {
    struct end *end = (struct end *)stream;
    end->paused = false;
    if (end->inbox)
        queue_event(((struct node *)self)->fabric, end, EVENT_DATA);
}

static void memory_close(struct moon_streams *self, struct moon_stream *stream) {
    struct moon_memory_fabric *fabric = ((struct node *)self)->fabric;
    struct end *end = (struct end *)stream;
    sever(fabric, end, true);
    free_end(fabric, end);
}

/* ---- delivery */

static struct end *find_listener(const struct moon_memory_fabric *fabric, const char *address) {
    for (const struct node *node = fabric->nodes; node; node = node->next)
        for (struct end *end = node->ends; end; end = end->next)
            if (end->listening && strcmp(end->stream.local, address) == 0)
                return end;
    return NULL;
}

/* Sets the clocks of the node that an event goes to. */
static struct moon_environment *enter(struct node *node) {
    moon_ns now_ns = node->fabric->now_ns;
    node->environment->now_ns = now_ns;
    node->environment->wall_ns = WALL_AT_ZERO + now_ns;
    return node->environment;
}

static struct moon_environment *connect_end(struct moon_memory_fabric *fabric, struct end *near) {
    struct end *far = near->peer, *listener = find_listener(fabric, far->stream.local);
    if (!listener) {
        near->peer = NULL;
        free_end(fabric, far);
        finish(fabric, near, MOON_STREAM_END_REFUSED);
        return near->node->environment;
    }
    memcpy(near->stream.peer, far->stream.local, sizeof near->stream.peer);
    link_end(listener->node, far);
    queue_event(fabric, near, EVENT_OPENED);
    struct moon_environment *environment = enter(listener->node);
    fabric->current = far;
    listener->stream.user->accepted(listener->stream.user, &far->stream);
    if (fabric->current == far) {
        assert(far->stream.user);
        if (far->inbox && !far->paused)
            queue_event(fabric, far, EVENT_DATA);
    }
    return environment;
}

static void deliver(struct moon_memory_fabric *fabric, struct end *end) {
    if (!end->inbox)
        return; /* dropped since */
    struct moon_stream_user *user = end->stream.user;
    void *into = NULL;
    fabric->current = end;
    size_t room = user->room(user, &end->stream, &into);
    if (fabric->current != end)
        return;
    if (room == 0) {
        end->paused = true;
        return;
    }
    size_t taken = take(fabric, end, into, room);
    if (!end->inbox && end->peer)
        queue_event(fabric, end->peer, EVENT_SENT);
    user->received(user, &end->stream, taken);
    if (fabric->current != end)
        return;
    if (end->inbox)
        queue_event(fabric, end, EVENT_DATA);
    else if (end->ended)
        queue_event(fabric, end, EVENT_CLOSED);
}

static void tell_sent(struct end *end) {
    /* More was given since, or what was given is lost: then there is nothing to tell. */
    bool unsent = end->peer ? end->peer->inbox != NULL : end->reason == MOON_STREAM_END_BROKEN;
    if (!unsent)
        end->stream.user->sent(end->stream.user, &end->stream);
}

static void tell_closed(struct moon_memory_fabric *fabric, struct end *end) {
    struct moon_stream_user *user = end->stream.user;
    unlink_end(end);
    user->closed(user, &end->stream, end->reason);
    free_end(fabric, end);
}

struct moon_environment *moon_memory_fabric_step(struct moon_memory_fabric *fabric) {
    struct event *event = fabric->first;
    if (!event)
        return NULL;
    struct end *end = event->end;
    unqueue_event(fabric, event);
    if (event->kind == EVENT_CONNECT)
        return connect_end(fabric, end);
    struct moon_environment *environment = enter(end->node);
    if (event->kind == EVENT_OPENED)
        end->stream.user->opened(end->stream.user, &end->stream);
    else if (event->kind == EVENT_DATA)
        deliver(fabric, end);
    else if (event->kind == EVENT_SENT)
        tell_sent(end);
    else
        tell_closed(fabric, end);
    return environment;
}

/* ---- fabric */

struct moon_memory_fabric *moon_memory_fabric_open(struct moon_memory *memory) {
    struct moon_memory_fabric *fabric = memory->resize(memory, NULL, 0, sizeof *fabric);
    if (!fabric)
        return NULL;
    *fabric = (struct moon_memory_fabric){.memory = memory};
    fabric->nodes_tail = &fabric->nodes;
    return fabric;
}

int moon_memory_fabric_attach(struct moon_memory_fabric *fabric, struct moon_environment *environment,
                              const char *host) {
    struct node *node = fabric->memory->resize(fabric->memory, NULL, 0, sizeof *node);
    if (!node)
        return MOON_ERR_MEMORY;
    *node = (struct node){.streams = {memory_open, memory_listen, memory_send, memory_resume, memory_close},
                          .fabric = fabric,
                          .environment = environment,
                          .next_port = PORT_FIRST};
    assert(strlen(host) < MOON_ADDRESS_BYTES - sizeof "[]:65535");
    memcpy(node->host, host, strlen(host) + 1);
    *fabric->nodes_tail = node;
    fabric->nodes_tail = &node->next;
    environment->streams = &node->streams;
    (void)enter(node);
    return 0;
}

void moon_memory_fabric_detach(struct moon_memory_fabric *fabric, struct moon_environment *environment) {
    struct node **link = &fabric->nodes;
    while ((*link)->environment != environment)
        link = &(*link)->next;
    struct node *node = *link;
    while (node->ends) {
        sever(fabric, node->ends, false);
        free_end(fabric, node->ends);
    }
    *link = node->next;
    if (fabric->nodes_tail == &node->next)
        fabric->nodes_tail = link;
    fabric->memory->resize(fabric->memory, node, sizeof *node, 0);
    environment->streams = NULL;
}

void moon_memory_fabric_close(struct moon_memory_fabric *fabric) {
    while (fabric->nodes)
        moon_memory_fabric_detach(fabric, fabric->nodes->environment);
    fabric->memory->resize(fabric->memory, fabric, sizeof *fabric, 0);
}

moon_ns moon_memory_fabric_now(const struct moon_memory_fabric *fabric) {
    return fabric->now_ns;
}

void moon_memory_fabric_advance(struct moon_memory_fabric *fabric, moon_ns now_ns) {
    if (now_ns > fabric->now_ns)
        fabric->now_ns = now_ns;
}
