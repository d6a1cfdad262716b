/* SPDX-License-Identifier: Apache-2.0 */
/* Handshake exchanges of the transfer engine: one question and one answer a connection, both ways. */
#ifndef MOON_TRANSFER_HANDSHAKE_H
#define MOON_TRANSFER_HANDSHAKE_H

#include "ref/base/environment.h"
#include "ref/wire/handshake.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- server side. Answers one frame a connection, up to 256 connections at a time (a silent one blocks nobody), then
 * waits for the peer to close, 5 s at most. A frame that is none, and one that is not whole after 5 s, closes its
 * connection without an answer (TRANSFER-010 to TRANSFER-017). */

/* Who answers: appends the JSON line to `out`. Returns false: no answer, the connection is closed (malformed JSON). */
struct moon_handshake_responder {
    bool (*answer)(struct moon_handshake_responder *self, const struct moon_wire_handshake *question,
                   struct moon_text *out);
};

struct moon_handshake_server;
/* Listens at `endpoint`. Errors: MOON_ERR_MEMORY, MOON_ERR_IO. */
int moon_handshake_server_open(struct moon_environment *environment, struct moon_handshake_responder *responder,
                               const char *endpoint, struct moon_handshake_server **server, struct moon_error *error);
void moon_handshake_server_close(struct moon_handshake_server *server); /* NULL is fine */
moon_ns moon_handshake_server_deadline(const struct moon_handshake_server *server);
void moon_handshake_server_tick(struct moon_handshake_server *server);

/* ---- asking */

struct moon_handshake_client;
struct moon_handshake_client *moon_handshake_client_open(struct moon_environment *environment);
void moon_handshake_client_close(struct moon_handshake_client *client); /* questions are forgotten; NULL is fine */
moon_ns moon_handshake_client_deadline(const struct moon_handshake_client *client);
void moon_handshake_client_tick(struct moon_handshake_client *client);

/* Embedded by the asker; alive until done() or cancel. json NULL: there is no answer (refused, broken, timed out: 5 s
 * to connect, 60 s to answer; an answer of another type). In done() anything may be called but the client's close. */
struct moon_handshake_question {
    void (*done)(struct moon_handshake_question *question, const char *json, size_t length);
    struct moon_handshake_exchange *exchange; /* the client's */
};
/* Asks `endpoint`; the JSON is copied. Returns 0, then done() comes with a later event or tick; or MOON_ERR_MEMORY,
 * then not. */
int moon_handshake_ask(struct moon_handshake_client *client, struct moon_handshake_question *question,
                       const char *endpoint, enum moon_wire_handshake_type type, const char *json, size_t length);
/* One that is not being asked is left alone. */
void moon_handshake_cancel(struct moon_handshake_client *client, struct moon_handshake_question *question);

#ifdef __cplusplus
}
#endif
#endif
