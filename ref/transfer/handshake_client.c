/* SPDX-License-Identifier: Apache-2.0 */
/* Asks handshake questions, one a connection. */
#include "ref/transfer/handshake.h"

#include "ref/base/list.h"
#include "ref/base/number.h"
#include "ref/transfer/messages.h"

static const moon_ns connect_timeout_ns = 5 * MOON_NS_PER_S;
static const moon_ns answer_timeout_ns = 60 * MOON_NS_PER_S;

enum { FIRST_BYTES = 512 };

/* user is the first member. stream NULL: refused at once, ends at the next tick. frame: the question; buffer: the
 * answer as far as it is here, `needed` bytes in the end. */
struct moon_handshake_exchange {
    struct moon_stream_user user;
    struct moon_handshake_client *client;
    struct moon_handshake_question *question;
    struct moon_stream *stream;
    struct moon_list link;
    enum moon_wire_handshake_type type;
    moon_ns deadline_ns;
    struct moon_text frame;
    uint8_t *buffer;
    size_t capacity, length, needed;
};

struct moon_handshake_client {
    struct moon_environment *environment;
    struct moon_list exchanges;
};

static struct moon_handshake_exchange *exchange_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct moon_handshake_exchange, link);
}

static void free_exchange(struct moon_handshake_exchange *exchange) {
    struct moon_environment *environment = exchange->client->environment;
    struct moon_memory *memory = environment->memory;
    if (exchange->stream)
        environment->streams->close(environment->streams, exchange->stream);
    moon_list_leave(&exchange->link);
    moon_text_close(&exchange->frame);
    if (exchange->buffer)
        memory->resize(memory, exchange->buffer, exchange->capacity, 0);
    memory->resize(memory, exchange, sizeof *exchange, 0);
}

/* Nothing may be done after it: the asker may have asked again. */
static void end_without_answer(struct moon_handshake_exchange *exchange) {
    struct moon_handshake_question *question = exchange->question;
    free_exchange(exchange);
    question->exchange = NULL;
    question->done(question, NULL, 0);
}

/* The answer lives in the exchange's buffer, which is taken out of it for the call. */
static void end_with_answer(struct moon_handshake_exchange *exchange, const struct moon_wire_handshake *answer) {
    struct moon_handshake_question *question = exchange->question;
    struct moon_memory *memory = exchange->client->environment->memory;
    uint8_t *buffer = exchange->buffer;
    size_t capacity = exchange->capacity;
    exchange->buffer = NULL;
    free_exchange(exchange);
    question->exchange = NULL;
    question->done(question, answer->json, answer->length);
    memory->resize(memory, buffer, capacity, 0);
}

/* ---- events */

static void on_opened(struct moon_stream_user *user, struct moon_stream *stream) {
    struct moon_handshake_exchange *exchange = (struct moon_handshake_exchange *)user;
    struct moon_environment *environment = exchange->client->environment;
    exchange->deadline_ns = environment->now_ns + answer_timeout_ns;
    moon_transfer_record_message(environment, MOON_RECORD_SEND, moon_transfer_question_name(exchange->type), stream, 0,
                                 0, NULL);
    struct moon_piece piece = {exchange->frame.data, exchange->frame.length};
    environment->streams->send(environment->streams, stream, &piece, 1);
}

static size_t on_room(struct moon_stream_user *user, struct moon_stream *stream, void **into) {
    struct moon_handshake_exchange *exchange = (struct moon_handshake_exchange *)user;
    (void)stream;
    if (exchange->length == exchange->capacity) {
        void *buffer = moon_memory_grow(exchange->client->environment->memory, exchange->buffer, &exchange->capacity,
                                        exchange->length + 1, 1, FIRST_BYTES);
        if (!buffer) {
            end_without_answer(exchange);
            return 0;
        }
        exchange->buffer = buffer;
    }
    *into = exchange->buffer + exchange->length;
    return (size_t)moon_smaller((int64_t)exchange->capacity, (int64_t)exchange->needed) - exchange->length;
}

static void on_received(struct moon_stream_user *user, struct moon_stream *stream, size_t bytes) {
    struct moon_handshake_exchange *exchange = (struct moon_handshake_exchange *)user;
    struct moon_wire_handshake answer;
    struct moon_error error;
    size_t used = 0;
    exchange->length += bytes;
    int status = moon_wire_read_handshake(exchange->buffer, exchange->length, MOON_WIRE_HANDSHAKE_BYTES_MAX, &answer,
                                          &used, &exchange->needed, &error);
    if (!status && used == 0)
        return;
    if (status || answer.type != exchange->type) {
        end_without_answer(exchange);
        return;
    }
    moon_transfer_record_message(exchange->client->environment, MOON_RECORD_RECV, "handshake-answer", stream, 0, 0,
                                 NULL);
    end_with_answer(exchange, &answer);
}

/* The question has left; what is waited for is the answer. */
static void on_sent(struct moon_stream_user *user, struct moon_stream *stream) {
    (void)user;
    (void)stream;
}

static void on_closed(struct moon_stream_user *user, struct moon_stream *stream, enum moon_stream_end end) {
    struct moon_handshake_exchange *exchange = (struct moon_handshake_exchange *)user;
    (void)stream;
    (void)end;
    exchange->stream = NULL;
    end_without_answer(exchange);
}

/* ---- calls */

struct moon_handshake_client *moon_handshake_client_open(struct moon_environment *environment) {
    struct moon_memory *memory = environment->memory;
    struct moon_handshake_client *client = memory->resize(memory, NULL, 0, sizeof *client);
    if (!client)
        return NULL;
    client->environment = environment;
    moon_list_open(&client->exchanges);
    return client;
}

void moon_handshake_client_close(struct moon_handshake_client *client) {
    if (!client)
        return;
    struct moon_memory *memory = client->environment->memory;
    while (!moon_list_empty(&client->exchanges)) {
        struct moon_handshake_exchange *exchange = exchange_of(client->exchanges.next);
        exchange->question->exchange = NULL;
        free_exchange(exchange);
    }
    memory->resize(memory, client, sizeof *client, 0);
}

moon_ns moon_handshake_client_deadline(const struct moon_handshake_client *client) {
    moon_ns first = MOON_NS_NEVER;
    for (struct moon_list *link = client->exchanges.next; link != &client->exchanges; link = link->next)
        first = moon_smaller(first, exchange_of(link)->deadline_ns);
    return first;
}

void moon_handshake_client_tick(struct moon_handshake_client *client) {
    size_t most = 0;
    for (struct moon_list *link = client->exchanges.next; link != &client->exchanges; link = link->next)
        most++;
    /* An end may begin new exchanges and cancel any: the list is looked at anew, and new ones wait for the next tick.
     */
    for (struct moon_list *link = client->exchanges.next; link != &client->exchanges && most > 0;) {
        if (exchange_of(link)->deadline_ns > client->environment->now_ns) {
            link = link->next;
            continue;
        }
        most--;
        end_without_answer(exchange_of(link));
        link = client->exchanges.next;
    }
}

int moon_handshake_ask(struct moon_handshake_client *client, struct moon_handshake_question *question,
                       const char *endpoint, enum moon_wire_handshake_type type, const char *json, size_t length) {
    struct moon_environment *environment = client->environment;
    struct moon_handshake_exchange *exchange =
        environment->memory->resize(environment->memory, NULL, 0, sizeof *exchange);
    if (!exchange)
        return MOON_ERR_MEMORY;
    *exchange = (struct moon_handshake_exchange){
        .user = {.opened = on_opened, .room = on_room, .received = on_received, .sent = on_sent, .closed = on_closed},
        .client = client,
        .question = question,
        .type = type,
        .deadline_ns = environment->now_ns + connect_timeout_ns,
        .needed = MOON_WIRE_HANDSHAKE_HEADER_BYTES,
    };
    moon_text_open(&exchange->frame, environment->memory);
    struct moon_wire_handshake frame = {.type = type, .json = json, .length = length};
    moon_wire_write_handshake(&frame, &exchange->frame);
    if (exchange->frame.failed) {
        free_exchange(exchange);
        return MOON_ERR_MEMORY;
    }
    moon_list_move(&client->exchanges, &exchange->link);
    exchange->stream = environment->streams->open(environment->streams, endpoint, &exchange->user);
    if (!exchange->stream)
        exchange->deadline_ns = environment->now_ns;
    question->exchange = exchange;
    return MOON_OK;
}

void moon_handshake_cancel(struct moon_handshake_client *client, struct moon_handshake_question *question) {
    (void)client;
    if (question->exchange)
        free_exchange(question->exchange);
    question->exchange = NULL;
}
