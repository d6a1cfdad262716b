/* SPDX-License-Identifier: Apache-2.0 */
/* Answers handshake questions, one a connection. */
#include "ref/transfer/handshake.h"

#include "ref/base/list.h"
#include "ref/base/number.h"
#include "ref/transfer/messages.h"

/* What the asker waits for its answer at most, so what it may take to fetch it, and then to close. */
static const moon_ns question_timeout_ns = 5 * MOON_NS_PER_S;
static const moon_ns answer_timeout_ns = 60 * MOON_NS_PER_S;
static const moon_ns farewell_timeout_ns = 5 * MOON_NS_PER_S;

enum { CONNECTIONS_MAX = 256, FIRST_BYTES = 512 };

/* user is the first member. buffer: the question as far as it is here, `needed` bytes in the end; after the answer,
 * whatever else the peer sends. */
struct connection {
    struct moon_stream_user user;
    struct moon_handshake_server *server;
    struct moon_stream *stream;
    struct moon_list link;
    moon_ns deadline_ns;
    uint8_t *buffer;
    size_t capacity, length, needed;
    struct moon_text answer;
    bool answered;
};

struct moon_handshake_server {
    struct moon_stream_user user; /* of the listener */
    struct moon_environment *environment;
    struct moon_handshake_responder *responder;
    struct moon_stream *listener;
    struct moon_list connections;
    size_t connection_count;
};

static struct connection *connection_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct connection, link);
}

/* Its stream is gone. */
static void forget(struct connection *connection) {
    struct moon_handshake_server *server = connection->server;
    struct moon_memory *memory = server->environment->memory;
    moon_list_leave(&connection->link);
    server->connection_count--;
    moon_text_close(&connection->answer);
    if (connection->buffer)
        memory->resize(memory, connection->buffer, connection->capacity, 0);
    memory->resize(memory, connection, sizeof *connection, 0);
}

static void drop(struct connection *connection) {
    struct moon_streams *streams = connection->server->environment->streams;
    streams->close(streams, connection->stream);
    forget(connection);
}

/* False: no answer, for whatever reason. */
static bool write_answer(struct connection *connection, const struct moon_wire_handshake *question) {
    struct moon_handshake_server *server = connection->server;
    struct moon_text json;
    moon_text_open(&json, server->environment->memory);
    bool good = server->responder->answer(server->responder, question, &json) && !json.failed;
    if (good) {
        struct moon_wire_handshake answer = {.type = question->type,
                                             .old_style = question->old_style,
                                             .json = moon_text_value(&json),
                                             .length = json.length};
        moon_wire_write_handshake(&answer, &connection->answer);
        good = !connection->answer.failed;
    }
    moon_text_close(&json);
    return good;
}

static void answer(struct connection *connection, const struct moon_wire_handshake *question) {
    struct moon_environment *environment = connection->server->environment;
    moon_transfer_record_message(environment, MOON_RECORD_RECV, moon_transfer_question_name(question->type),
                                 connection->stream, 0, 0, NULL);
    if (!write_answer(connection, question)) {
        drop(connection);
        return;
    }
    connection->answered = true;
    connection->deadline_ns = environment->now_ns + answer_timeout_ns;
    moon_transfer_record_message(environment, MOON_RECORD_SEND, "handshake-answer", connection->stream, 0, 0, NULL);
    struct moon_piece piece = {connection->answer.data, connection->answer.length};
    environment->streams->send(environment->streams, connection->stream, &piece, 1);
}

/* ---- events */

static size_t on_room(struct moon_stream_user *user, struct moon_stream *stream, void **into) {
    struct connection *connection = (struct connection *)user;
    (void)stream;
    if (connection->answered) {
        *into = connection->buffer;
        return connection->capacity;
    }
    if (connection->length == connection->capacity) {
        void *buffer = moon_memory_grow(connection->server->environment->memory, connection->buffer,
                                        &connection->capacity, connection->length + 1, 1, FIRST_BYTES);
        if (!buffer) {
            drop(connection);
            return 0;
        }
        connection->buffer = buffer;
    }
    *into = connection->buffer + connection->length;
    return (size_t)moon_smaller((int64_t)connection->capacity, (int64_t)connection->needed) - connection->length;
}

static void on_received(struct moon_stream_user *user, struct moon_stream *stream, size_t bytes) {
    struct connection *connection = (struct connection *)user;
    struct moon_wire_handshake question;
    struct moon_error error;
    size_t used = 0;
    (void)stream;
    if (connection->answered)
        return;
    connection->length += bytes;
    if (moon_wire_read_handshake(connection->buffer, connection->length, MOON_WIRE_HANDSHAKE_BYTES_MAX, &question,
                                 &used, &connection->needed, &error))
        drop(connection);
    else if (used > 0)
        answer(connection, &question);
}

static void on_sent(struct moon_stream_user *user, struct moon_stream *stream) {
    struct connection *connection = (struct connection *)user;
    (void)stream;
    connection->deadline_ns = connection->server->environment->now_ns + farewell_timeout_ns;
}

static void on_closed(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    (void)stream;
    (void)end;
    forget((struct connection *)user);
}

static void on_accepted(struct moon_stream_user *user, struct moon_stream *stream) {
    struct moon_handshake_server *server = (struct moon_handshake_server *)user;
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
        .deadline_ns = environment->now_ns + question_timeout_ns,
        .needed = MOON_WIRE_HANDSHAKE_HEADER_BYTES,
    };
    moon_list_move(&server->connections, &connection->link);
    moon_text_open(&connection->answer, environment->memory);
    server->connection_count++;
    stream->user = &connection->user;
}

static void on_listener_lost(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    (void)stream;
    (void)end;
    ((struct moon_handshake_server *)user)->listener = NULL;
}

/* ---- calls */

int moon_handshake_server_open(struct moon_environment *environment, struct moon_handshake_responder *responder,
                               const char *endpoint, struct moon_handshake_server **server, struct moon_error *error) {
    struct moon_memory *memory = environment->memory;
    struct moon_handshake_server *made = memory->resize(memory, NULL, 0, sizeof *made);
    if (!made)
        return moon_no_memory(error);
    *made = (struct moon_handshake_server){
        .user = {.accepted = on_accepted, .closed = on_listener_lost},
        .environment = environment,
        .responder = responder,
    };
    moon_list_open(&made->connections);
    made->listener = environment->streams->listen(environment->streams, endpoint, &made->user);
    if (!made->listener) {
        memory->resize(memory, made, sizeof *made, 0);
        return moon_fail(error, MOON_ERR_IO, NULL, "cannot listen for handshakes at %s", endpoint);
    }
    *server = made;
    return MOON_OK;
}

void moon_handshake_server_close(struct moon_handshake_server *server) {
    if (!server)
        return;
    struct moon_environment *environment = server->environment;
    while (!moon_list_empty(&server->connections))
        drop(connection_of(server->connections.next));
    if (server->listener)
        environment->streams->close(environment->streams, server->listener);
    environment->memory->resize(environment->memory, server, sizeof *server, 0);
}

moon_ns moon_handshake_server_deadline(const struct moon_handshake_server *server) {
    moon_ns first = MOON_NS_NEVER;
    for (struct moon_list *link = server->connections.next; link != &server->connections; link = link->next)
        first = moon_smaller(first, connection_of(link)->deadline_ns);
    return first;
}

void moon_handshake_server_tick(struct moon_handshake_server *server) {
    struct moon_list *next = NULL;
    for (struct moon_list *link = server->connections.next; link != &server->connections; link = next) {
        next = link->next;
        if (connection_of(link)->deadline_ns <= server->environment->now_ns)
            drop(connection_of(link));
    }
}
