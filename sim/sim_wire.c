/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the bytes of a simulated connection: they leave in pieces, travel, arrive and are received (SIM-005).
 */
#include "sim/sim_streams_internal.h"

#include <assert.h>
#include <stdio.h>

/* Bytes of one direction that have left and are not received: what buffers and windows of real streams hold. */
#define IN_FLIGHT_BYTES_MAX ((size_t)4 * 1024 * 1024)
/* One piece in four is no longer than this. */
#define SMALL_PIECE_BYTES 64

static struct moon_sim *sim_of(const struct moon_sim_end *end) {
    return end->node->sim;
}

/* ---- lists */

struct moon_sim_item *moon_sim_item_new(struct moon_sim *sim, enum moon_sim_item_kind kind, size_t length) {
    struct moon_sim_item *item = moon_sim_alloc(sim, sizeof *item + length);
    if (item) {
        item->kind = kind;
        item->length = length;
    }
    return item;
}

static void free_item(struct moon_sim *sim, struct moon_sim_item *item) {
    moon_sim_free(sim, item, sizeof *item + item->length);
}

static void append(struct moon_sim_items *items, struct moon_sim_item *item) {
    if (items->last)
        items->last->next = item;
    else
        items->first = item;
    items->last = item;
}

static struct moon_sim_item *take(struct moon_sim_items *items) {
    struct moon_sim_item *item = items->first;
    items->first = item->next;
    if (!items->first)
        items->last = NULL;
    item->next = NULL;
    return item;
}

static void drop_items(struct moon_sim *sim, struct moon_sim_items *items) {
    while (items->first)
        free_item(sim, take(items));
}

static void drop_first_send(struct moon_sim_end *end) {
    struct moon_sim_send *send = end->sends;
    end->sends = send->next;
    if (!end->sends)
        end->sends_last = NULL;
    moon_sim_free(sim_of(end), send, sizeof *send + send->count * sizeof send->pieces[0]);
}

void moon_sim_end_drop(struct moon_sim_end *end) {
    struct moon_sim *sim = sim_of(end);
    while (end->sends)
        drop_first_send(end);
    drop_items(sim, &end->wire);
    drop_items(sim, &end->arrived);
    moon_sim_event_cancel(sim, &end->leave);
    moon_sim_event_cancel(sim, &end->arrive);
    moon_sim_event_cancel(sim, &end->pump);
    end->stalled = false;
}

void moon_sim_end_break(struct moon_sim_end *end, enum moon_stream_end why) {
    moon_sim_end_drop(end);
    struct moon_sim_item *item = moon_sim_item_new(sim_of(end), MOON_SIM_ITEM_END, 0);
    if (!item)
        return;
    item->end = why;
    append(&end->arrived, item);
    moon_sim_end_wake(end);
}

/* ---- the wire */

static moon_ns draw_delay(struct moon_sim_end *end) {
    const struct moon_sim_settings *settings = &sim_of(end)->settings;
    return moon_random_between(&end->connection->random, settings->delay_min_ns, settings->delay_max_ns);
}

void moon_sim_wire_push(struct moon_sim_end *end, struct moon_sim_item *item) {
    struct moon_sim *sim = sim_of(end);
    if (!item)
        return;
    item->arrives_ns = sim->now_ns + draw_delay(end);
    if (!end->wire.first && !end->stalled)
        moon_sim_event_set(sim, &end->arrive, item->arrives_ns);
    append(&end->wire, item);
}

void moon_sim_wire_push_end(struct moon_sim_end *end, enum moon_stream_end why) {
    struct moon_sim_item *item = moon_sim_item_new(sim_of(end), MOON_SIM_ITEM_END, 0);
    if (item)
        item->end = why;
    moon_sim_wire_push(end, item);
}

void moon_sim_wire_heal(struct moon_sim_end *end) {
    if (!end->stalled)
        return;
    end->stalled = false;
    moon_sim_event_set(sim_of(end), &end->arrive, sim_of(end)->now_ns + draw_delay(end));
}

/* A SYN has come to a host, whose kernel answers even if the process is stopped. */
static void answer_syn(struct moon_sim_end *end) {
    struct moon_sim *sim = sim_of(end);
    if (!moon_sim_listener_find(end->node, end->connection->to_port)) {
        moon_sim_wire_push_end(end->peer, MOON_STREAM_END_REFUSED);
        return;
    }
    struct moon_sim_item *accept = moon_sim_item_new(sim, MOON_SIM_ITEM_ACCEPT, 0);
    if (!accept)
        return;
    end->gone = false;
    append(&end->arrived, accept);
    moon_sim_wire_push(end->peer, moon_sim_item_new(sim, MOON_SIM_ITEM_OPENED, 0));
}

static void run_pump(struct moon_sim *sim, struct moon_sim_event *event);

static void run_arrive(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_end *end = MOON_SIM_OWNER(event, struct moon_sim_end, arrive);
    if (moon_sim_blocked(end->node, end->peer->node)) {
        end->stalled = true;
        return;
    }
    struct moon_sim_item *item = take(&end->wire);
    if (end->wire.first) { /* in order: not before this one */
        moon_ns next_ns = end->wire.first->arrives_ns;
        moon_sim_event_set(sim, &end->arrive, next_ns > sim->now_ns ? next_ns : sim->now_ns);
    }
    if (item->kind == MOON_SIM_ITEM_SYN) {
        free_item(sim, item);
        answer_syn(end);
    } else if (end->gone) {
        free_item(sim, item);
    } else {
        append(&end->arrived, item);
    }
    run_pump(sim, &end->pump);
}

/* ---- leaving */

void moon_sim_end_kick(struct moon_sim_end *end) {
    struct moon_sim *sim = sim_of(end);
    if (!end->opened || !end->sends || moon_sim_event_waits(&end->leave) || end->in_flight_bytes >= IN_FLIGHT_BYTES_MAX)
        return;
    moon_ns soon = moon_random_between(&end->connection->random, 0, sim->settings.delay_min_ns);
    moon_sim_event_set(sim, &end->leave, sim->now_ns + soon);
}

static size_t draw_piece_bytes(struct moon_sim_end *end) {
    struct moon_random *random = &end->connection->random;
    size_t most = sim_of(end)->settings.piece_bytes_max, free_bytes = IN_FLIGHT_BYTES_MAX - end->in_flight_bytes;
    if (moon_random_chance(random, 1, 4) && most > SMALL_PIECE_BYTES)
        most = SMALL_PIECE_BYTES;
    size_t bytes = (size_t)moon_random_below(random, most) + 1;
    return bytes < free_bytes ? bytes : free_bytes;
}

/* Bytes that have yet to leave, counted up to `most`. */
static size_t unsent_bytes(const struct moon_sim_end *end, size_t most) {
    size_t bytes = 0;
    for (const struct moon_sim_send *send = end->sends; send && bytes < most; send = send->next)
        for (size_t i = send->piece; i < send->count; i++)
            bytes += send->pieces[i].length - (i == send->piece ? send->offset : 0);
    return bytes < most ? bytes : most;
}

/* Reads up to `wanted` bytes of what was given to send(), at this moment and not before. Returns how many. */
static size_t read_sends(struct moon_sim_end *end, unsigned char *into, size_t wanted) {
    size_t done = 0;
    while (end->sends) {
        struct moon_sim_send *send = end->sends;
        if (send->piece == send->count) {
            drop_first_send(end);
            continue;
        }
        const struct moon_piece *piece = &send->pieces[send->piece];
        size_t left = piece->length - send->offset, bytes = left < wanted - done ? left : wanted - done;
        if (bytes > 0)
            memcpy(into + done, (const unsigned char *)piece->data + send->offset, bytes);
        done += bytes;
        send->offset += bytes;
        if (send->offset < piece->length)
            break;
        send->piece++;
        send->offset = 0;
    }
    return done;
}

static void tell_sent(struct moon_sim_end *end) {
    struct moon_stream *stream = &end->socket.stream;
    moon_sim_enter(end->node);
    stream->user->sent(stream->user, stream);
    moon_sim_leave(end->node);
}

static void run_leave(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_end *end = MOON_SIM_OWNER(event, struct moon_sim_end, leave);
    if (!moon_sim_awake(end->node) || end->in_flight_bytes >= IN_FLIGHT_BYTES_MAX)
        return;
    size_t bytes = unsent_bytes(end, draw_piece_bytes(end));
    struct moon_sim_item *item = moon_sim_item_new(sim, MOON_SIM_ITEM_DATA, bytes);
    if (!item)
        return;
    size_t read = read_sends(end, item->data, bytes);
    assert(bytes > 0 && read == bytes);
    (void)read;
    if (end->peer->gone) {
        free_item(sim, item);
    } else {
        end->in_flight_bytes += bytes;
        moon_sim_wire_push(end->peer, item);
    }
    if (end->sends)
        moon_sim_end_kick(end);
    else
        tell_sent(end);
}

/* ---- being received */

void moon_sim_end_wake(struct moon_sim_end *end) {
    if (end->arrived.first && !moon_sim_event_waits(&end->pump))
        moon_sim_event_set(sim_of(end), &end->pump, sim_of(end)->now_ns);
}

static void tell_accepted(struct moon_sim_end *end) {
    struct moon_sim_listener *listener = moon_sim_listener_find(end->node, end->connection->to_port);
    struct moon_stream *stream = &end->socket.stream;
    if (!listener) { /* it has been closed since */
        moon_sim_end_leave(end, MOON_STREAM_END_BROKEN);
        return;
    }
    end->opened = true;
    moon_sim_end_name(end);
    struct moon_stream_user *user = listener->socket.stream.user;
    moon_sim_enter(end->node);
    user->accepted(user, stream);
    assert((end->gone || stream->user) && "accepted() neither took nor closed the stream");
    moon_sim_leave(end->node);
}

static void tell_opened(struct moon_sim_end *end) {
    struct moon_stream *stream = &end->socket.stream;
    end->opened = true;
    moon_sim_event_cancel(sim_of(end), &end->connection->timeout);
    moon_sim_end_name(end);
    moon_sim_enter(end->node);
    stream->user->opened(stream->user, stream);
    moon_sim_leave(end->node);
    if (!end->gone)
        moon_sim_end_kick(end);
}

static void tell_closed(struct moon_sim_end *end, enum moon_stream_end why) {
    struct moon_stream *stream = &end->socket.stream;
    struct moon_stream_user *user = stream->user;
    bool told_of = end == &end->connection->ends[0] || end->opened;
    if (end == &end->connection->ends[0] && !end->opened)
        why = MOON_STREAM_END_REFUSED;
    moon_sim_end_gone(end);
    if (!told_of)
        return;
    moon_sim_enter(end->node);
    user->closed(user, stream, why);
    moon_sim_leave(end->node);
}

/* Hands over what fits. */
static void tell_received(struct moon_sim_end *end, struct moon_sim_item *item) {
    struct moon_stream *stream = &end->socket.stream;
    struct moon_stream_user *user = stream->user;
    size_t bytes = item->length - item->used;
    void *into = NULL;
    moon_sim_enter(end->node);
    size_t room = user->room(user, stream, &into);
    bytes = room < bytes ? room : bytes;
    end->paused = bytes == 0;
    if (bytes > 0 && !end->gone) {
        memcpy(into, item->data + item->used, bytes);
        item->used += bytes;
        end->peer->in_flight_bytes -= bytes;
        if (item->used == item->length)
            free_item(sim_of(end), take(&end->arrived));
        user->received(user, stream, bytes);
    }
    moon_sim_leave(end->node);
    if (bytes > 0 && !end->peer->gone)
        moon_sim_end_kick(end->peer);
}

/* Tells the first thing that has arrived. */
static void run_pump(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_end *end = MOON_SIM_OWNER(event, struct moon_sim_end, pump);
    struct moon_sim_item *item = end->arrived.first;
    if (end->gone || !item || !moon_sim_awake(end->node) || (item->kind == MOON_SIM_ITEM_DATA && end->paused))
        return;
    enum moon_sim_item_kind kind = item->kind;
    if (kind == MOON_SIM_ITEM_DATA) {
        tell_received(end, item);
    } else {
        enum moon_stream_end why = item->end;
        free_item(sim, take(&end->arrived));
        if (kind == MOON_SIM_ITEM_ACCEPT)
            tell_accepted(end);
        else if (kind == MOON_SIM_ITEM_OPENED)
            tell_opened(end);
        else
            tell_closed(end, why);
    }
    if (!end->gone && !end->paused)
        moon_sim_end_wake(end);
}

void moon_sim_end_open(struct moon_sim_end *end) {
    end->gone = true;
    end->leave.run = run_leave;
    end->arrive.run = run_arrive;
    end->pump.run = run_pump;
}
