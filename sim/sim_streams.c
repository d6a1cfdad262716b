/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of simulated nodes: addresses, the operations of struct moon_streams, and the life of connections (SIM-005).
 */
#include "ref/base/endpoint.h"
#include "sim/sim_streams_internal.h"

#include <assert.h>
#include <stdio.h>

/* ---- addresses */

/* Nodes are known by host and by name; a node knows itself as localhost, too. */
static struct moon_sim_node *resolve(struct moon_sim_node *self, const char *host) {
    if (strcmp(host, "127.0.0.1") == 0 || strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0)
        return self;
    struct moon_sim_node *node = self->sim->nodes;
    while (node && strcmp(host, node->host.data) != 0 && strcmp(host, node->name.data) != 0)
        node = node->next;
    return node;
}

static void write_address(char out[MOON_ADDRESS_BYTES], const struct moon_sim_node *node, uint64_t port) {
    bool bracket = strchr(node->host.data, ':') != NULL;
    snprintf(out, MOON_ADDRESS_BYTES, bracket ? "[%s]:%llu" : "%s:%llu", node->host.data, (unsigned long long)port);
}

void moon_sim_end_name(struct moon_sim_end *end) {
    const struct moon_sim_connection *connection = end->connection;
    bool opener = end == &connection->ends[0];
    struct moon_stream *stream = &end->socket.stream;
    write_address(opener ? stream->local : stream->peer, connection->ends[0].node, connection->from_port);
    write_address(opener ? stream->peer : stream->local, connection->ends[1].node, connection->to_port);
}

/* ---- connections */

void moon_sim_end_gone(struct moon_sim_end *end) {
    struct moon_sim_connection *connection = end->connection;
    struct moon_sim *sim = end->node->sim;
    end->gone = true;
    moon_sim_end_drop(end);
    if (!end->peer->gone || connection->ended)
        return;
    connection->ended = true;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        sim->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    else
        sim->connections_last = connection->previous;
    connection->next = sim->ended;
    sim->ended = connection;
}

void moon_sim_end_leave(struct moon_sim_end *end, enum moon_stream_end why) {
    if (!end->peer->gone)
        moon_sim_wire_push_end(end->peer, why);
    moon_sim_end_gone(end);
}

static void free_connection(struct moon_sim *sim, struct moon_sim_connection *connection) {
    for (size_t i = 0; i < 2; i++)
        moon_sim_end_drop(&connection->ends[i]);
    moon_sim_event_cancel(sim, &connection->timeout);
    moon_sim_free(sim, connection, sizeof *connection);
}

void moon_sim_streams_reap(struct moon_sim *sim) {
    while (sim->ended) {
        struct moon_sim_connection *connection = sim->ended;
        sim->ended = connection->next;
        free_connection(sim, connection);
    }
}

void moon_sim_streams_close(struct moon_sim *sim) {
    moon_sim_streams_reap(sim);
    while (sim->connections) {
        struct moon_sim_connection *connection = sim->connections;
        sim->connections = connection->next;
        free_connection(sim, connection);
    }
    for (struct moon_sim_node *node = sim->nodes; node; node = node->next)
        while (node->listeners) {
            struct moon_sim_listener *listener = node->listeners;
            node->listeners = listener->next;
            moon_sim_free(sim, listener, sizeof *listener);
        }
}

static void time_out(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_connection *connection = MOON_SIM_OWNER(event, struct moon_sim_connection, timeout);
    struct moon_sim_end *opener = &connection->ends[0], *other = &connection->ends[1];
    (void)sim;
    if (opener->gone || opener->opened)
        return;
    if (other->gone)
        moon_sim_end_drop(other); /* the SYN */
    else
        moon_sim_wire_push_end(other, MOON_STREAM_END_BROKEN);
    moon_sim_end_break(opener, MOON_STREAM_END_REFUSED);
}

static struct moon_sim_connection *new_connection(struct moon_sim_node *from, struct moon_sim_node *to) {
    struct moon_sim *sim = from->sim;
    struct moon_sim_connection *connection = moon_sim_alloc(sim, sizeof *connection);
    char name[32];
    if (!connection)
        return NULL;
    snprintf(name, sizeof name, "connection %llu", (unsigned long long)sim->connections_made++);
    connection->random = moon_random_split(&sim->root, name);
    connection->timeout.run = time_out;
    for (size_t i = 0; i < 2; i++) {
        struct moon_sim_end *end = &connection->ends[i];
        end->connection = connection;
        end->peer = &connection->ends[1 - i];
        end->node = i == 0 ? from : to;
        moon_sim_end_open(end);
    }
    connection->previous = sim->connections_last;
    if (sim->connections_last)
        sim->connections_last->next = connection;
    else
        sim->connections = connection;
    sim->connections_last = connection;
    return connection;
}

/* ---- operations */

static struct moon_sim_node *node_of(struct moon_streams *self) {
    return MOON_SIM_OWNER(self, struct moon_sim_node, streams);
}

static struct moon_stream *open_stream(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim *sim = node->sim;
    char host[MOON_HOST_BYTES];
    uint16_t port;
    assert(node->up);
    if (!moon_endpoint_split(endpoint, host, &port) || port == 0)
        return NULL;
    struct moon_sim_node *to = resolve(node, host);
    struct moon_sim_connection *connection = new_connection(node, to ? to : node);
    if (!connection)
        return NULL;
    struct moon_sim_end *opener = &connection->ends[0];
    connection->from_port = node->next_port++;
    connection->to_port = port;
    opener->socket.stream.user = user;
    opener->gone = false;
    moon_sim_event_set(sim, &connection->timeout, sim->now_ns + sim->settings.connect_timeout_ns);
    if (to)
        moon_sim_wire_push(&connection->ends[1], moon_sim_item_new(sim, MOON_SIM_ITEM_SYN, 0));
    else /* the resolver's answer */
        moon_sim_wire_push_end(opener, MOON_STREAM_END_REFUSED);
    return &opener->socket.stream;
}

struct moon_sim_listener *moon_sim_listener_find(const struct moon_sim_node *node, uint64_t port) {
    struct moon_sim_listener *listener = node->listeners;
    while (listener && listener->port != port)
        listener = listener->next;
    return listener;
}

static struct moon_stream *listen_at(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user) {
    struct moon_sim_node *node = node_of(self);
    char host[MOON_HOST_BYTES];
    uint16_t port;
    assert(node->up);
    if (!moon_endpoint_split(endpoint, host, &port))
        return NULL;
    bool own = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 || resolve(node, host) == node;
    if (!own || moon_sim_listener_find(node, port))
        return NULL;
    struct moon_sim_listener *listener = moon_sim_alloc(node->sim, sizeof *listener);
    if (!listener)
        return NULL;
    listener->port = port ? port : node->next_port++;
    listener->socket.listens = true;
    listener->socket.stream.user = user;
    write_address(listener->socket.stream.local, node, listener->port);
    listener->next = node->listeners;
    node->listeners = listener;
    return &listener->socket.stream;
}

static void send_pieces(struct moon_streams *self, struct moon_stream *stream, const struct moon_piece *pieces,
                        size_t count) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_end *end = (struct moon_sim_end *)stream;
    size_t bytes = 0;
    assert(count >= 1 && count <= MOON_STREAM_PIECES_MAX && !end->socket.listens && !end->gone);
    for (size_t i = 0; i < count; i++)
        bytes += pieces[i].length;
    assert(bytes > 0 && end->node == node);
    struct moon_sim_send *send = moon_sim_alloc(node->sim, sizeof *send + count * sizeof *pieces);
    if (!send)
        return; /* the run has failed and stops here */
    send->count = count;
    memcpy(send->pieces, pieces, count * sizeof *pieces);
    if (end->sends_last)
        end->sends_last->next = send;
    else
        end->sends = send;
    end->sends_last = send;
    moon_sim_end_kick(end);
}

static void resume(struct moon_streams *self, struct moon_stream *stream) {
    struct moon_sim_end *end = (struct moon_sim_end *)stream;
    assert(!end->socket.listens && !end->gone);
    (void)self;
    end->paused = false;
    moon_sim_end_wake(end);
}

static void close_listener(struct moon_sim_node *node, struct moon_sim_listener *listener) {
    struct moon_sim_listener **at = &node->listeners;
    while (*at != listener) {
        assert(*at && "not a listener of this node");
        at = &(*at)->next;
    }
    *at = listener->next;
    moon_sim_free(node->sim, listener, sizeof *listener);
}

static void close_stream(struct moon_streams *self, struct moon_stream *stream) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_socket *socket = (struct moon_sim_socket *)stream;
    if (socket->listens) {
        close_listener(node, (struct moon_sim_listener *)socket);
        return;
    }
    struct moon_sim_end *end = (struct moon_sim_end *)socket;
    assert(!end->gone && "closed twice, or after it had ended");
    moon_sim_end_leave(end, MOON_STREAM_END_PEER);
}

void moon_sim_streams_open(struct moon_sim_node *node) {
    node->streams = (struct moon_streams){open_stream, listen_at, send_pieces, resume, close_stream};
}

/* ---- what happens to all streams of a node */

/* A dead process's unread bytes make its kernel reset the connection; else it may end as if closed. */
static enum moon_stream_end death_of(struct moon_sim_end *end, bool orderly) {
    bool reset = moon_random_chance(&end->connection->random, 1, 2);
    bool unread = end->wire.first || end->arrived.first;
    return !orderly && (reset || unread) ? MOON_STREAM_END_BROKEN : MOON_STREAM_END_PEER;
}

void moon_sim_streams_take_down(struct moon_sim_node *node, bool orderly) {
    while (node->listeners)
        close_listener(node, node->listeners);
    for (struct moon_sim_connection *at = node->sim->connections, *next; at; at = next) {
        next = at->next;
        for (size_t i = 0; i < 2; i++)
            if (at->ends[i].node == node && !at->ends[i].gone)
                moon_sim_end_leave(&at->ends[i], death_of(&at->ends[i], orderly));
    }
}

void moon_sim_streams_go_on(struct moon_sim_node *node) {
    for (struct moon_sim_connection *at = node->sim->connections; at; at = at->next)
        for (size_t i = 0; i < 2; i++)
            if (at->ends[i].node == node && !at->ends[i].gone) {
                moon_sim_end_wake(&at->ends[i]);
                moon_sim_end_kick(&at->ends[i]);
            }
}

static bool is_between(const struct moon_sim_connection *connection, const struct moon_sim_node *a,
                       const struct moon_sim_node *b) {
    const struct moon_sim_node *from = connection->ends[0].node, *to = connection->ends[1].node;
    return (from == a && to == b) || (from == b && to == a);
}

void moon_sim_streams_heal(struct moon_sim_node *a, struct moon_sim_node *b) {
    for (struct moon_sim_connection *at = a->sim->connections; at; at = at->next)
        for (size_t i = 0; is_between(at, a, b) && i < 2; i++)
            moon_sim_wire_heal(&at->ends[i]);
}

void moon_sim_streams_break(struct moon_sim_node *a, struct moon_sim_node *b) {
    for (struct moon_sim_connection *at = a->sim->connections; at; at = at->next)
        for (size_t i = 0; is_between(at, a, b) && i < 2; i++) {
            if (at->ends[i].gone)
                moon_sim_end_drop(&at->ends[i]);
            else
                moon_sim_end_break(&at->ends[i], MOON_STREAM_END_BROKEN);
        }
}
