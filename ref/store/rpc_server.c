/* SPDX-License-Identifier: Apache-2.0 */
/* Server of remote calls: frames from any number of connections to a service, and its answers back. */
#include "ref/store/rpc_internal.h"

#include "ref/base/list.h"
#include "ref/wire/frame.h"

#include <assert.h>
#include <stdio.h>

static const char text_not_registered[] = "the rpc function not registered";
static const char text_invalid_arguments[] = "invalid rpc arg";

/* Memory of one call, up to a limit: what is announced in 64 MiB can be far larger as values. */
struct call_memory {
    struct moon_memory memory;
    struct moon_memory *below;
    size_t left;
};

struct moon_rpc_server {
    struct moon_stream_user user; /* of the listener */
    struct moon_environment *environment;
    const struct moon_wire_protocol *protocol;
    struct moon_rpc_service *service;
    struct moon_stream *listener;
    struct moon_list connections;
    size_t connection_count;
    bool with_text;
    char address[MOON_ADDRESS_BYTES];
};

/* The stream borrows `sending`; answers gather in `waiting` until it has gone.
 *   stopped    room() has refused: the stream waits for resume
 *   ending     nothing more is read; closed when all answers have left */
struct connection {
    struct moon_stream_user user;
    struct moon_list link;
    struct moon_rpc_server *server;
    struct moon_stream *stream;
    struct moon_rpc_input input;
    struct moon_text sending, waiting;
    uint64_t received_count, sent_count; /* frames */
    bool stopped, ending;
};

static void *call_resize(struct moon_memory *memory, void *old, size_t old_bytes, size_t new_bytes) {
    struct call_memory *self = (struct call_memory *)memory;
    size_t held = old ? old_bytes : 0;
    if (new_bytes > held && new_bytes - held > self->left)
        return NULL;
    void *piece = self->below->resize(self->below, old, old_bytes, new_bytes);
    if (piece || new_bytes == 0)
        self->left = self->left + held - new_bytes;
    return piece;
}

static struct connection *connection_of(struct moon_stream_user *user) {
    return MOON_HOLDER(user, struct connection, user);
}
static struct moon_rpc_server *server_of(struct moon_stream_user *user) {
    return MOON_HOLDER(user, struct moon_rpc_server, user);
}

/* ---- a connection's end */

static void forget(struct connection *connection) {
    struct moon_rpc_server *server = connection->server;
    struct moon_memory *memory = server->environment->memory;
    moon_list_remove(&connection->link);
    server->connection_count--;
    moon_rpc_input_close(&connection->input);
    moon_text_close(&connection->sending);
    moon_text_close(&connection->waiting);
    memory->resize(memory, connection, sizeof *connection, 0);
}

static void drop(struct connection *connection) {
    struct moon_streams *streams = connection->server->environment->streams;
    streams->close(streams, connection->stream);
    forget(connection);
}

static void closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    (void)stream, (void)end;
    forget(connection_of(self));
}

/* ---- one call */

static void record(struct connection *connection, enum moon_record_kind kind, uint64_t ordinal,
                   const struct moon_wire_call *call, const struct moon_wire_value *arguments,
                   const struct moon_wire_value *result) {
    struct moon_recorder *recorder = connection->server->environment->recorder;
    if (recorder)
        moon_rpc_record(recorder, &(struct moon_rpc_message){.stream = connection->stream,
                                                             .kind = kind,
                                                             .ordinal = ordinal,
                                                             .what = call ? call->function->name : "unknown",
                                                             .arguments = arguments,
                                                             .result = result});
}

/* Puts the result of call `sequence` behind the waiting answers. Returns 0 or MOON_ERR_MEMORY. */
static int put_result(struct connection *connection, uint32_t sequence, const struct moon_wire_value *result,
                      struct moon_memory *memory) {
    struct moon_text body;
    moon_text_open(&body, memory);
    moon_wire_encode(result, false, connection->server->with_text, &body);
    int status = body.failed || body.length > MOON_RPC_FRAME_BYTES_MAX ? MOON_ERR_MEMORY : MOON_OK;
    struct moon_wire_frame frame = {.direction = MOON_WIRE_RESPONSE,
                                    .sequence = sequence,
                                    .body = (const uint8_t *)moon_text_value(&body),
                                    .body_length = (uint32_t)body.length};
    if (!status)
        moon_wire_write_frame(&frame, &connection->waiting);
    moon_text_close(&body);
    return status;
}

/* Decodes, asks the service and puts the answer. `arena` is on `memory`. Returns 0 or MOON_ERR_MEMORY. */
static int answer_call(struct connection *connection, const struct moon_wire_frame *frame,
                       const struct moon_wire_call *call, struct moon_memory *memory, struct moon_arena *arena) {
    struct moon_rpc_server *server = connection->server;
    struct moon_wire_value *arguments = NULL, *result = NULL;
    struct moon_error error;
    int code = MOON_WIRE_RPC_NOT_REGISTERED;
    if (call) {
        int status = moon_wire_decode(arena, call->function->arguments, true, frame->body, frame->body_length, NULL,
                                      &arguments, &error);
        result = status ? NULL : moon_wire_zero(arena, call->function->result);
        if (status == MOON_ERR_MEMORY || (!status && !result))
            return MOON_ERR_MEMORY;
        code = MOON_WIRE_RPC_INVALID_ARGUMENTS;
    }
    record(connection, MOON_RECORD_RECV, connection->received_count++, call, arguments, NULL);
    if (result)
        code = server->service->answer(server->service, call, arguments, result, arena);
    if (code < 0)
        return MOON_ERR_MEMORY;
    if (code == 0 && put_result(connection, frame->sequence, result, memory))
        return MOON_ERR_MEMORY;
    if (code > 0)
        moon_wire_write_failure(frame->sequence, (uint8_t)code,
                                code == MOON_WIRE_RPC_NOT_REGISTERED ? text_not_registered : text_invalid_arguments,
                                server->with_text, &connection->waiting);
    if (connection->waiting.failed)
        return MOON_ERR_MEMORY;
    record(connection, MOON_RECORD_SEND, connection->sent_count++, call, arguments, code ? NULL : result);
    return MOON_OK;
}

static int answer(struct connection *connection, const struct moon_wire_frame *frame) {
    struct moon_rpc_server *server = connection->server;
    struct call_memory memory = {{call_resize}, server->environment->memory, MOON_RPC_CALL_BYTES_MAX};
    struct moon_arena arena;
    moon_arena_open(&arena, &memory.memory);
    int status = answer_call(connection, frame, moon_wire_call_by_id(server->protocol, frame->function_id),
                             &memory.memory, &arena);
    moon_arena_close(&arena);
    return status;
}

/* ---- a connection's bytes */

static size_t unsent_bytes(const struct connection *connection) {
    return connection->sending.length + connection->waiting.length;
}
static bool must_wait(const struct connection *connection) {
    return connection->ending || unsent_bytes(connection) >= MOON_RPC_UNSENT_BYTES_MAX;
}

static void flush(struct connection *connection) {
    struct moon_streams *streams = connection->server->environment->streams;
    struct moon_text text = connection->sending;
    if (text.length > 0 || connection->waiting.length == 0)
        return;
    connection->sending = connection->waiting;
    connection->waiting = text;
    struct moon_piece piece = {connection->sending.data, connection->sending.length};
    streams->send(streams, connection->stream, &piece, 1);
}

/* Answers the requests that are there, as long as their answers may wait. The connection may be gone afterwards: then
 * false. */
static bool serve(struct connection *connection) {
    struct moon_rpc_input *input = &connection->input;
    size_t at = 0, used = 1, needed = 0;
    while (used > 0 && !must_wait(connection)) {
        struct moon_wire_frame frame;
        struct moon_error error;
        if (moon_wire_read_frame(MOON_WIRE_REQUEST, input->data + at, input->filled - at, MOON_RPC_FRAME_BYTES_MAX,
                                 &frame, &used, &needed, &error))
            connection->ending = true;
        else if (used > 0 && answer(connection, &frame)) {
            drop(connection);
            return false;
        }
        at += connection->ending ? input->filled - at : used;
    }
    /* While it must wait, the buffer may be full of requests: it grows when they have been taken. */
    if ((used == 0 || connection->ending || at > 0) && moon_rpc_input_consume(input, at, needed)) {
        drop(connection);
        return false;
    }
    flush(connection);
    if (connection->ending && unsent_bytes(connection) == 0) {
        drop(connection);
        return false;
    }
    return true;
}

static size_t room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct connection *connection = connection_of(self);
    (void)stream;
    connection->stopped = must_wait(connection);
    return connection->stopped ? 0 : moon_rpc_input_room(&connection->input, into);
}

static void received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    struct connection *connection = connection_of(self);
    (void)stream;
    connection->input.filled += bytes;
    serve(connection);
}

static void sent(struct moon_stream_user *self, struct moon_stream *stream) {
    struct connection *connection = connection_of(self);
    struct moon_streams *streams = connection->server->environment->streams;
    if (connection->sending.capacity > MOON_RPC_INPUT_BYTES_FIRST)
        moon_text_close(&connection->sending);
    moon_text_clear(&connection->sending);
    flush(connection);
    if (!connection->ending && unsent_bytes(connection) >= MOON_RPC_UNSENT_BYTES_MAX / 2)
        return;
    if (serve(connection) && connection->stopped && !must_wait(connection)) {
        connection->stopped = false;
        streams->resume(streams, stream);
    }
}

/* ---- the listener */

static void accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct moon_rpc_server *server = server_of(self);
    struct moon_memory *memory = server->environment->memory;
    struct moon_streams *streams = server->environment->streams;
    struct connection *connection = memory->resize(memory, NULL, 0, sizeof *connection);
    if (!connection) {
        streams->close(streams, stream);
        return;
    }
    *connection = (struct connection){.user = {.room = room, .received = received, .sent = sent, .closed = closed},
                                      .server = server,
                                      .stream = stream};
    moon_text_open(&connection->sending, memory);
    moon_text_open(&connection->waiting, memory);
    moon_list_add(&server->connections, &connection->link);
    server->connection_count++;
    stream->user = &connection->user;
    if (moon_rpc_input_open(&connection->input, memory))
        drop(connection);
}

static void listener_closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    (void)stream, (void)end;
    server_of(self)->listener = NULL;
}

int moon_rpc_server_open(struct moon_environment *environment, const struct moon_wire_protocol *protocol,
                         struct moon_rpc_service *service, const char *endpoint, bool with_text,
                         struct moon_rpc_server **server, struct moon_error *error) {
    struct moon_memory *memory = environment->memory;
    struct moon_rpc_server *opening = memory->resize(memory, NULL, 0, sizeof *opening);
    *server = NULL;
    if (!opening)
        return moon_no_memory(error);
    *opening = (struct moon_rpc_server){.user = {.accepted = accepted, .closed = listener_closed},
                                        .environment = environment,
                                        .protocol = protocol,
                                        .service = service,
                                        .with_text = with_text};
    moon_list_open(&opening->connections);
    opening->listener = environment->streams->listen(environment->streams, endpoint, &opening->user);
    if (!opening->listener) {
        memory->resize(memory, opening, sizeof *opening, 0);
        return moon_fail(error, MOON_ERR_IO, endpoint, "cannot listen: address in use or not of this host");
    }
    snprintf(opening->address, sizeof opening->address, "%s", opening->listener->local);
    *server = opening;
    return MOON_OK;
}

const char *moon_rpc_server_address(const struct moon_rpc_server *server) {
    return server->address;
}

size_t moon_rpc_server_connections(const struct moon_rpc_server *server) {
    return server->connection_count;
}

void moon_rpc_server_close(struct moon_rpc_server *server) {
    if (!server)
        return;
    struct moon_memory *memory = server->environment->memory;
    struct moon_streams *streams = server->environment->streams;
    if (server->listener)
        streams->close(streams, server->listener);
    while (!moon_list_empty(&server->connections))
        drop(MOON_HOLDER(server->connections.next, struct connection, link));
    memory->resize(memory, server, sizeof *server, 0);
}
