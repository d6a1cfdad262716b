/* SPDX-License-Identifier: Apache-2.0 */
/* Serves reads and writes of the own regions, in the order in which they come in on a connection. */
#include "ref/transfer/data_server.h"

#include "ref/base/list.h"
#include "ref/transfer/messages.h"
#include "ref/wire/data.h"

/* To fetch a refusal. */
static const moon_ns refusal_timeout_ns = 30 * MOON_NS_PER_S;

enum { CONNECTIONS_MAX = 4096, UNSENT_MAX = 64 };

enum state {
    STATE_HEADER,  /* header_length bytes of a request are here */
    STATE_HELD,    /* a whole header, that must wait for answers to leave */
    STATE_PAYLOAD, /* `left` bytes of a write are missing, the next goes to `into` */
    STATE_REFUSED, /* closes when the status has left, at the latest at deadline_ns */
};

/* user is the first member.
 *   region     address of the region that is written (STATE_PAYLOAD)
 *   borrowed   address of the region that unsent answers are sent from, if borrowing
 *   unsent     answers that have not left */
struct connection {
    struct moon_stream_user user;
    struct moon_data_server *server;
    struct moon_stream *stream;
    struct moon_list link; /* in server->connections, or server->refused in the order of deadlines */
    enum state state;
    uint8_t header[MOON_WIRE_DATA_REQUEST_BYTES];
    size_t header_length;
    struct moon_wire_data_request request;
    uint64_t request_count, answer_count;
    uint8_t *into;
    uint64_t left, region, borrowed;
    bool borrowing;
    unsigned unsent;
    moon_ns deadline_ns;
};

struct moon_data_server {
    struct moon_stream_user user; /* of the listener */
    struct moon_environment *environment;
    const struct moon_regions *regions;
    const char *name;
    struct moon_stream *listener;
    struct moon_list connections, refused;
    size_t connection_count;
    struct moon_text status_ok, status_rejected;
};

static struct connection *connection_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct connection, link);
}

/* Its stream is gone. */
static void forget(struct connection *connection) {
    struct moon_data_server *server = connection->server;
    struct moon_memory *memory = server->environment->memory;
    moon_list_leave(&connection->link);
    server->connection_count--;
    memory->resize(memory, connection, sizeof *connection, 0);
}

static void drop(struct connection *connection) {
    struct moon_streams *streams = connection->server->environment->streams;
    streams->close(streams, connection->stream);
    forget(connection);
}

static void record(struct connection *connection, enum moon_record_kind kind, const char *what, uint64_t ordinal) {
    const struct moon_extent extent = {moon_bytes_of(connection->server->name), connection->request.address,
                                       connection->request.size};
    moon_transfer_record_message(connection->server->environment, kind, what, connection->stream, ordinal, 0, &extent);
}

/* Answers with a status (version 2), and `size` bytes of `memory`; at least one of them. */
static void answer(struct connection *connection, const struct moon_text *status, uint8_t *memory, uint64_t size) {
    struct moon_streams *streams = connection->server->environment->streams;
    struct moon_piece pieces[2];
    size_t count = 0;
    if (connection->request.version == 2)
        pieces[count++] = (struct moon_piece){status->data, status->length};
    if (size > 0)
        pieces[count++] = (struct moon_piece){memory, (size_t)size};
    record(connection, MOON_RECORD_SEND, "data-answer", connection->answer_count++);
    connection->unsent++;
    streams->send(streams, connection->stream, pieces, count);
}

static void refuse(struct connection *connection) {
    struct moon_data_server *server = connection->server;
    if (connection->request.version == 1) {
        drop(connection);
        return;
    }
    connection->state = STATE_REFUSED;
    connection->deadline_ns = server->environment->now_ns + refusal_timeout_ns;
    moon_list_move(&server->refused, &connection->link);
    answer(connection, &server->status_rejected, NULL, 0);
}

/* True if the request must not be served before the answers ahead of it have left: they are many, a write would change
 * what a read ahead of it sends, a read is of another region than those (so that one region a connection is known to be
 * in use), or an end without a word would take them away. */
static bool must_wait(const struct connection *connection, const struct moon_region *region) {
    const struct moon_wire_data_request *request = &connection->request;
    if (!region)
        return request->version == 1 && connection->unsent > 0;
    return connection->unsent >= UNSENT_MAX ||
           (connection->borrowing && (request->write || region->address != connection->borrowed));
}

/* Serves the request, holds it, or refuses it. */
static void serve(struct connection *connection) {
    struct moon_data_server *server = connection->server;
    const struct moon_wire_data_request *request = &connection->request;
    const struct moon_region *region = moon_regions_find(server->regions, request->address, request->size);
    connection->state = STATE_HELD;
    if (must_wait(connection, region))
        return;
    if (!region) {
        refuse(connection);
        return;
    }
    uint8_t *memory = region->memory + (request->address - region->address);
    connection->header_length = 0;
    if (request->write) {
        connection->state = STATE_PAYLOAD;
        connection->region = region->address;
        connection->into = memory;
        connection->left = request->size;
        return;
    }
    connection->state = STATE_HEADER;
    connection->borrowing = true;
    connection->borrowed = region->address;
    answer(connection, &server->status_ok, memory, request->size);
}

/* ---- events */

static size_t on_room(struct moon_stream_user *user, struct moon_stream *stream, void **into) {
    struct connection *connection = (struct connection *)user;
    (void)stream;
    switch (connection->state) {
    case STATE_HEADER:
        *into = connection->header + connection->header_length;
        return sizeof connection->header - connection->header_length;
    case STATE_PAYLOAD:
        *into = connection->into;
        return (size_t)connection->left;
    case STATE_HELD:
    case STATE_REFUSED:
        break;
    }
    return 0;
}

static void header_received(struct connection *connection, size_t bytes) {
    connection->header_length += bytes;
    if (connection->header_length < sizeof connection->header)
        return;
    moon_wire_read_data_request(connection->header, &connection->request);
    record(connection, MOON_RECORD_RECV, connection->request.write ? "data-write" : "data-read",
           connection->request_count++);
    serve(connection);
}

static void payload_received(struct connection *connection, size_t bytes) {
    connection->into += bytes;
    connection->left -= bytes;
    if (connection->left > 0)
        return;
    connection->state = STATE_HEADER;
    if (connection->request.version == 2)
        answer(connection, &connection->server->status_ok, NULL, 0);
}

static void on_received(struct moon_stream_user *user, struct moon_stream *stream, size_t bytes) {
    struct connection *connection = (struct connection *)user;
    (void)stream;
    if (connection->state == STATE_PAYLOAD)
        payload_received(connection, bytes);
    else
        header_received(connection, bytes);
}

static void on_sent(struct moon_stream_user *user, struct moon_stream *stream) {
    struct connection *connection = (struct connection *)user;
    struct moon_streams *streams = connection->server->environment->streams;
    if (connection->state == STATE_REFUSED) {
        drop(connection);
        return;
    }
    connection->unsent = 0;
    connection->borrowing = false;
    if (connection->state != STATE_HELD)
        return;
    streams->resume(streams, stream);
    serve(connection);
}

static void on_closed(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    (void)stream;
    (void)end;
    forget((struct connection *)user);
}

static void on_accepted(struct moon_stream_user *user, struct moon_stream *stream) {
    struct moon_data_server *server = (struct moon_data_server *)user;
    struct moon_environment *environment = server->environment;
    struct connection *connection = NULL;
    if (server->connection_count < CONNECTIONS_MAX)
        connection = environment->memory->resize(environment->memory, NULL, 0, sizeof *connection);
    if (!connection) {
        environment->streams->close(environment->streams, stream);
        return;
    }
    *connection = (struct connection){
        .user = {.room = on_room, .received = on_received, .sent = on_sent, .closed = on_closed},
        .server = server,
        .stream = stream,
    };
    moon_list_move(&server->connections, &connection->link);
    server->connection_count++;
    stream->user = &connection->user;
}

static void on_listener_lost(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    (void)stream;
    (void)end;
    ((struct moon_data_server *)user)->listener = NULL;
}

/* ---- calls */

int moon_data_server_open(struct moon_environment *environment, const struct moon_regions *regions, const char *name,
                          const char *endpoint, struct moon_data_server **server, struct moon_error *error) {
    struct moon_memory *memory = environment->memory;
    int status = MOON_OK;
    struct moon_data_server *made = memory->resize(memory, NULL, 0, sizeof *made);
    if (!made)
        return moon_no_memory(error);
    *made = (struct moon_data_server){
        .user = {.accepted = on_accepted, .closed = on_listener_lost},
        .environment = environment,
        .regions = regions,
        .name = name,
    };
    moon_list_open(&made->connections);
    moon_list_open(&made->refused);
    moon_text_open(&made->status_ok, memory);
    moon_text_open(&made->status_rejected, memory);
    moon_wire_write_data_status(MOON_WIRE_DATA_OK, &made->status_ok);
    moon_wire_write_data_status(MOON_WIRE_DATA_REJECTED, &made->status_rejected);
    if (made->status_ok.failed || made->status_rejected.failed)
        status = moon_no_memory(error);
    if (!status) {
        made->listener = environment->streams->listen(environment->streams, endpoint, &made->user);
        if (!made->listener)
            status = moon_fail(error, MOON_ERR_IO, NULL, "cannot listen for data at %s", endpoint);
    }
    if (status)
        moon_data_server_close(made);
    else
        *server = made;
    return status;
}

void moon_data_server_close(struct moon_data_server *server) {
    if (!server)
        return;
    struct moon_environment *environment = server->environment;
    while (!moon_list_empty(&server->connections))
        drop(connection_of(server->connections.next));
    while (!moon_list_empty(&server->refused))
        drop(connection_of(server->refused.next));
    if (server->listener)
        environment->streams->close(environment->streams, server->listener);
    moon_text_close(&server->status_ok);
    moon_text_close(&server->status_rejected);
    environment->memory->resize(environment->memory, server, sizeof *server, 0);
}

moon_ns moon_data_server_deadline(const struct moon_data_server *server) {
    return moon_list_empty(&server->refused) ? MOON_NS_NEVER : connection_of(server->refused.next)->deadline_ns;
}

void moon_data_server_tick(struct moon_data_server *server) {
    while (moon_data_server_deadline(server) <= server->environment->now_ns)
        drop(connection_of(server->refused.next));
}

/* Closes those of a list that use the region. */
static void leave(struct moon_list *connections, uint64_t address) {
    struct moon_list *next = NULL;
    for (struct moon_list *link = connections->next; link != connections; link = next) {
        struct connection *connection = connection_of(link);
        next = link->next;
        if ((connection->state == STATE_PAYLOAD && connection->region == address) ||
            (connection->borrowing && connection->borrowed == address))
            drop(connection);
    }
}

void moon_data_server_leave(struct moon_data_server *server, uint64_t address) {
    leave(&server->connections, address);
    leave(&server->refused, address);
}
