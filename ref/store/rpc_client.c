/* SPDX-License-Identifier: Apache-2.0 */
/* Client of remote calls: a pool of connections to one endpoint, one question open on each. */
#include "ref/store/rpc_internal.h"

#include "ref/base/list.h"
#include "ref/wire/frame.h"

#include <assert.h>
#include <stdio.h>

/* A connection and, if there is one, the call on it.
 *   link          in one list of the client
 *   connecting    in the client's list of those that do not stand yet
 *   stream        NULL: refused at once, the call fails at the next tick
 *   request       the frame; borrowed by the stream while `sending`
 *   delivering    done() is being called with an answer that lives in `input`: what frees the connection waits */
struct moon_rpc_call_state {
    struct moon_stream_user user;
    struct moon_list link, connecting;
    struct moon_rpc_client *client;
    struct moon_stream *stream;
    struct moon_rpc_call *call;
    const struct moon_wire_call *function;
    struct moon_text request;
    struct moon_rpc_input input;
    moon_ns deadline_ns, connect_deadline_ns;
    uint64_t sent_count, received_count; /* frames; the former is the next request's sequence number */
    bool opened, sending, delivering, gone;
};

/* asked: with a call, in the order of their deadlines. idle: latest last. leaving: answered before the stream was done
 * with the request. refused: with a call that fails at the next tick. connecting: a part of asked. */
struct moon_rpc_client {
    struct moon_environment *environment;
    const struct moon_wire_protocol *protocol;
    struct moon_rpc_client_settings settings;
    char endpoint[MOON_ENDPOINT_BYTES];
    struct moon_list asked, idle, leaving, refused, connecting;
};

typedef struct moon_rpc_call_state connection; /* what it is here */

static connection *of_user(struct moon_stream_user *user) {
    return MOON_HOLDER(user, connection, user);
}
/* The first of a list of the client; NULL if it is empty. */
static connection *first_of(const struct moon_list *head) {
    return moon_list_empty(head) ? NULL : MOON_HOLDER(head->next, connection, link);
}
static connection *first_connecting(const struct moon_rpc_client *client) {
    const struct moon_list *head = &client->connecting;
    return moon_list_empty(head) ? NULL : MOON_HOLDER(head->next, connection, connecting);
}

/* ---- the end of a connection */

static void release(connection *self) {
    struct moon_memory *memory = self->client->environment->memory;
    self->gone = true;
    moon_list_leave(&self->link);
    moon_list_leave(&self->connecting);
    if (self->delivering)
        return;
    moon_rpc_input_close(&self->input);
    moon_text_close(&self->request);
    memory->resize(memory, self, sizeof *self, 0);
}

static void drop(connection *self) {
    struct moon_streams *streams = self->client->environment->streams;
    if (self->stream)
        streams->close(streams, self->stream);
    self->stream = NULL;
    release(self);
}

/* The call on it gets its end; the connection is closed first. */
static void fail(connection *self, int status, unsigned rpc_error) {
    struct moon_rpc_call *call = self->call;
    drop(self);
    call->state = NULL;
    call->done(call, status, rpc_error, NULL);
}

/* ---- a question */

static void record(connection *self, enum moon_record_kind kind, uint64_t ordinal,
                   const struct moon_wire_value *arguments, const struct moon_wire_value *result) {
    struct moon_recorder *recorder = self->client->environment->recorder;
    struct moon_rpc_message message = {.stream = self->stream,
                                       .kind = kind,
                                       .ordinal = ordinal,
                                       .op = self->call->op,
                                       .what = self->function->function->name,
                                       .arguments = arguments,
                                       .result = result};
    uint64_t msg = moon_rpc_record(recorder, &message);
    if (result)
        moon_rpc_record_extents(recorder, &message, msg, self->call->sent_ns);
}

/* The arguments once more, out of the request. NULL when memory refused: the record has no key then. */
static const struct moon_wire_value *arguments_of(const connection *self, struct moon_arena *arena) {
    struct moon_wire_value *arguments = NULL;
    struct moon_error error;
    moon_wire_decode(arena, self->function->function->arguments, true,
                     self->request.data + MOON_WIRE_REQUEST_HEADER_BYTES,
                     self->request.length - MOON_WIRE_REQUEST_HEADER_BYTES, NULL, &arguments, &error);
    return arguments;
}

static void send_request(connection *self) {
    struct moon_environment *environment = self->client->environment;
    struct moon_piece piece = {self->request.data, self->request.length};
    self->call->sent_ns = environment->now_ns;
    if (environment->recorder) {
        struct moon_arena arena;
        moon_arena_open(&arena, environment->memory);
        record(self, MOON_RECORD_SEND, self->sent_count, arguments_of(self, &arena), NULL);
        moon_arena_close(&arena);
    }
    self->sent_count++;
    self->sending = true;
    environment->streams->send(environment->streams, self->stream, &piece, 1);
}

static void opened(struct moon_stream_user *user, struct moon_stream *stream) {
    connection *self = of_user(user);
    (void)stream;
    self->opened = true;
    moon_list_leave(&self->connecting);
    send_request(self);
}

static void sent(struct moon_stream_user *user, struct moon_stream *stream) {
    connection *self = of_user(user);
    (void)stream;
    self->sending = false;
    if (!self->call)
        moon_list_move(&self->client->idle, &self->link);
}

static void closed(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    connection *self = of_user(user);
    (void)stream, (void)end;
    self->stream = NULL;
    if (self->call)
        fail(self, MOON_STORE_RPC_FAIL, 0);
    else
        release(self);
}

/* ---- its answer */

static size_t room(struct moon_stream_user *user, struct moon_stream *stream, void **into) {
    (void)stream;
    return moon_rpc_input_room(&of_user(user)->input, into);
}

/* Hands a good answer, `used` bytes of the input, to the asker. The connection may take the next question from within
 * done(), or be closed; the bytes and the connection itself stay until done() is over. */
static void deliver(connection *self, const struct moon_wire_value *result, size_t used) {
    struct moon_rpc_call *call = self->call;
    self->call = NULL;
    call->state = NULL;
    self->delivering = true;
    moon_list_move(self->sending ? &self->client->leaving : &self->client->idle, &self->link);
    call->done(call, MOON_STORE_OK, 0, result);
    self->delivering = false;
    if (self->gone)
        release(self);
    else
        moon_rpc_input_consume(&self->input, used, 0); /* the buffer is not full afterwards: this cannot fail */
}

/* A whole frame of `used` bytes is here and nothing behind it. */
static void take_answer(connection *self, const struct moon_wire_frame *frame, size_t used) {
    struct moon_environment *environment = self->client->environment;
    struct moon_wire_value *result = NULL;
    struct moon_wire_failure failure = {.code = frame->error_code};
    struct moon_error error;
    struct moon_arena arena;
    moon_arena_open(&arena, environment->memory);
    if (frame->error_code)
        moon_wire_read_failure(&arena, frame, &failure, &error);
    else
        moon_wire_decode(&arena, self->function->function->result, false, frame->body, frame->body_length, NULL,
                         &result, &error);
    if (environment->recorder)
        record(self, MOON_RECORD_RECV, self->received_count, arguments_of(self, &arena), result);
    self->received_count++;
    if (result)
        deliver(self, result, used);
    else
        fail(self, MOON_STORE_RPC_FAIL, failure.code);
    moon_arena_close(&arena);
}

static void received(struct moon_stream_user *user, struct moon_stream *stream, size_t bytes) {
    connection *self = of_user(user);
    struct moon_rpc_input *input = &self->input;
    struct moon_wire_frame frame;
    struct moon_error error;
    size_t used = 0, needed = 0;
    (void)stream;
    input->filled += bytes;
    if (!self->call) { /* nobody asked */
        drop(self);
        return;
    }
    if (moon_wire_read_frame(MOON_WIRE_RESPONSE, input->data, input->filled, MOON_RPC_FRAME_BYTES_MAX, &frame, &used,
                             &needed, &error) ||
        (used == 0 && moon_rpc_input_consume(input, 0, needed)) ||
        (used > 0 && (used < input->filled || frame.sequence != (uint32_t)(self->sent_count - 1)))) {
        fail(self, MOON_STORE_RPC_FAIL, 0);
        return;
    }
    if (used > 0)
        take_answer(self, &frame, used);
}

/* ---- asking */

static connection *create(struct moon_rpc_client *client) {
    struct moon_memory *memory = client->environment->memory;
    connection *self = memory->resize(memory, NULL, 0, sizeof *self);
    if (!self)
        return NULL;
    *self = (connection){.user = {.opened = opened, .room = room, .received = received, .sent = sent, .closed = closed},
                         .client = client};
    moon_text_open(&self->request, memory);
    if (moon_rpc_input_open(&self->input, memory)) {
        release(self);
        return NULL;
    }
    return self;
}

static int write_request(connection *self, const struct moon_wire_call *function,
                         const struct moon_wire_value *arguments) {
    struct moon_text body;
    moon_text_open(&body, self->request.memory);
    if (arguments)
        moon_wire_encode(arguments, true, self->client->settings.with_text, &body);
    struct moon_wire_frame frame = {.direction = MOON_WIRE_REQUEST,
                                    .sequence = (uint32_t)self->sent_count,
                                    .function_id = function->id,
                                    .body = (const uint8_t *)moon_text_value(&body),
                                    .body_length = (uint32_t)body.length};
    int status = body.failed ? MOON_ERR_MEMORY : body.length > MOON_RPC_FRAME_BYTES_MAX ? MOON_ERR_LIMIT : MOON_OK;
    moon_text_close(&self->request);
    if (!status)
        moon_wire_write_frame(&frame, &self->request);
    if (self->request.failed)
        status = MOON_ERR_MEMORY;
    moon_text_close(&body);
    return status;
}

/* Gives an idle connection, or one without a stream yet, the call whose request it has. */
static void take_call(connection *self, struct moon_rpc_call *call) {
    struct moon_rpc_client *client = self->client;
    struct moon_streams *streams = client->environment->streams;
    if (!self->stream)
        self->stream = streams->open(streams, client->endpoint, &self->user);
    self->call = call;
    call->state = self;
    if (!self->stream) {
        moon_list_move(&client->refused, &self->link);
        return;
    }
    self->deadline_ns = client->environment->now_ns + client->settings.timeout_ns;
    self->connect_deadline_ns = client->environment->now_ns + client->settings.connect_timeout_ns;
    moon_list_move(&client->asked, &self->link);
    if (self->opened)
        send_request(self);
    else
        moon_list_add(&client->connecting, &self->connecting);
}

int moon_rpc_client_ask(struct moon_rpc_client *client, struct moon_rpc_call *call, const char *name,
                        const struct moon_wire_value *arguments) {
    const struct moon_wire_call *function = moon_wire_call_by_name(client->protocol, name);
    if (!function)
        return MOON_ERR_UNSUPPORTED;
    assert(arguments ? arguments->type == function->function->arguments : function->arguments_hash == 0);
    bool is_new = moon_list_empty(&client->idle);
    connection *self = is_new ? create(client) : MOON_HOLDER(client->idle.previous, connection, link);
    if (!self)
        return MOON_ERR_MEMORY;
    int status = write_request(self, function, arguments);
    if (status && is_new)
        release(self);
    if (status)
        return status;
    self->function = function;
    take_call(self, call);
    return MOON_OK;
}

void moon_rpc_client_cancel(struct moon_rpc_client *client, struct moon_rpc_call *call) {
    connection *self = call->state;
    (void)client;
    if (!self)
        return;
    call->state = NULL;
    self->call = NULL;
    drop(self);
}

/* ---- time */

moon_ns moon_rpc_client_deadline(const struct moon_rpc_client *client) {
    const connection *first = first_of(&client->asked);
    const connection *connecting = first_connecting(client);
    if (!moon_list_empty(&client->refused))
        return client->environment->now_ns;
    moon_ns deadline_ns = first ? first->deadline_ns : MOON_NS_NEVER;
    return connecting && connecting->connect_deadline_ns < deadline_ns ? connecting->connect_deadline_ns : deadline_ns;
}

void moon_rpc_client_tick(struct moon_rpc_client *client) {
    moon_ns now_ns = client->environment->now_ns;
    struct moon_list refused;
    connection *self;
    /* Those of now only: done() may ask again and be refused again. */
    moon_list_open(&refused);
    while ((self = first_of(&client->refused)))
        moon_list_move(&refused, &self->link);
    while ((self = first_of(&refused)))
        fail(self, MOON_STORE_RPC_FAIL, 0);
    while ((self = first_connecting(client)) && self->connect_deadline_ns <= now_ns)
        fail(self, MOON_STORE_RPC_FAIL, 0);
    while ((self = first_of(&client->asked)) && self->deadline_ns <= now_ns)
        fail(self, MOON_STORE_RPC_TIMEOUT, 0);
}

/* ---- the client */

struct moon_rpc_client *moon_rpc_client_open(struct moon_environment *environment,
                                             const struct moon_wire_protocol *protocol,
                                             const struct moon_rpc_client_settings *settings) {
    struct moon_rpc_client *client = environment->memory->resize(environment->memory, NULL, 0, sizeof *client);
    assert(settings->timeout_ns > 0 && settings->connect_timeout_ns > 0);
    assert(strlen(settings->endpoint) < MOON_ENDPOINT_BYTES);
    if (!client)
        return NULL;
    *client = (struct moon_rpc_client){.environment = environment, .protocol = protocol, .settings = *settings};
    snprintf(client->endpoint, sizeof client->endpoint, "%s", settings->endpoint);
    moon_list_open(&client->asked);
    moon_list_open(&client->idle);
    moon_list_open(&client->leaving);
    moon_list_open(&client->refused);
    moon_list_open(&client->connecting);
    return client;
}

void moon_rpc_client_close(struct moon_rpc_client *client) {
    if (!client)
        return;
    struct moon_list *const lists[] = {&client->asked, &client->idle, &client->leaving, &client->refused};
    struct moon_memory *memory = client->environment->memory;
    connection *self;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        while ((self = first_of(lists[i]))) {
            assert(!self->delivering);
            if (self->call)
                self->call->state = NULL;
            drop(self);
        }
    memory->resize(memory, client, sizeof *client, 0);
}
