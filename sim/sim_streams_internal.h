/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated connection, as its two files share it. */
#ifndef MOON_SIM_STREAMS_INTERNAL_H
#define MOON_SIM_STREAMS_INTERNAL_H

#include "sim/sim_internal.h"

enum moon_sim_item_kind {
    MOON_SIM_ITEM_SYN,    /* on the wire only: asks to connect */
    MOON_SIM_ITEM_ACCEPT, /* the listener's user has yet to be told */
    MOON_SIM_ITEM_OPENED, /* the answer to SYN */
    MOON_SIM_ITEM_DATA,
    MOON_SIM_ITEM_END,
};

/* Something that travels, or has arrived and waits for its receiver. */
struct moon_sim_item {
    struct moon_sim_item *next;
    enum moon_sim_item_kind kind;
    enum moon_stream_end end;
    moon_ns arrives_ns;
    size_t length, used; /* of the data; received so far */
    unsigned char data[];
};

struct moon_sim_items {
    struct moon_sim_item *first, *last;
};

/* What one send() gave: borrowed memory that has yet to leave. */
struct moon_sim_send {
    struct moon_sim_send *next;
    size_t count, piece, offset; /* pieces; where the rest begins */
    struct moon_piece pieces[];
};

/* What a struct moon_stream is here: a listener or one end of a connection. */
struct moon_sim_socket {
    struct moon_stream stream; /* first member */
    bool listens;
};

struct moon_sim_listener {
    struct moon_sim_socket socket; /* first member */
    struct moon_sim_listener *next;
    uint64_t port;
};

struct moon_sim_end {
    struct moon_sim_socket socket; /* first member */
    struct moon_sim_connection *connection;
    struct moon_sim_node *node; /* NULL: the far end of a name that nobody has */
    struct moon_sim_end *peer;
    bool gone;   /* nobody holds it: not yet, or not any more */
    bool opened; /* bytes may leave */
    bool paused; /* room() said 0 */
    /* outgoing */
    struct moon_sim_send *sends, *sends_last;
    struct moon_sim_event leave;
    size_t in_flight_bytes; /* left, not yet received by the peer's user */
    /* coming */
    struct moon_sim_items wire;
    struct moon_sim_event arrive; /* of the first on the wire */
    bool stalled;                 /* a partition holds it */
    struct moon_sim_items arrived;
    struct moon_sim_event pump; /* of the first that has arrived */
};

struct moon_sim_connection {
    struct moon_sim_connection *previous, *next;
    struct moon_random random;
    uint64_t from_port, to_port;
    struct moon_sim_event timeout;
    bool ended;                  /* both ends are gone: freed when the event is over */
    struct moon_sim_end ends[2]; /* who opened it; who accepts it */
};

/* ---- sim_wire.c: what happens to a connection's bytes */

void moon_sim_end_open(struct moon_sim_end *end); /* sets its events */
/* Sends an item to `end`; NULL is passed over: the run has failed. */
void moon_sim_wire_push(struct moon_sim_end *end, struct moon_sim_item *item);
struct moon_sim_item *moon_sim_item_new(struct moon_sim *sim, enum moon_sim_item_kind kind, size_t length);
void moon_sim_wire_push_end(struct moon_sim_end *end, enum moon_stream_end why);
void moon_sim_wire_heal(struct moon_sim_end *end);
/* Bytes that wait leave soon, if they may. */
void moon_sim_end_kick(struct moon_sim_end *end);
/* The next thing that has arrived is told soon. */
void moon_sim_end_wake(struct moon_sim_end *end);
/* All that is on its way to `end`, or waits for it, is lost; its own unsent bytes, too. */
void moon_sim_end_drop(struct moon_sim_end *end);
/* The same, and its user is told that it has ended. */
void moon_sim_end_break(struct moon_sim_end *end, enum moon_stream_end why);

/* ---- sim_streams.c: who holds which end */

/* Nobody holds `end` any more; the peer is told `why`. */
void moon_sim_end_leave(struct moon_sim_end *end, enum moon_stream_end why);
/* Nobody holds `end` any more. */
void moon_sim_end_gone(struct moon_sim_end *end);
/* Fills in the addresses, which are known from now on. */
void moon_sim_end_name(struct moon_sim_end *end);
struct moon_sim_listener *moon_sim_listener_find(const struct moon_sim_node *node, uint64_t port);

#endif
