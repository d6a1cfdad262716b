/* SPDX-License-Identifier: Apache-2.0 */
/* The lookup server as a state machine: one request at a time. */
#include "ref/connector/lookup_server.h"

#include <assert.h>

void moon_lookup_server_open(struct moon_lookup_server *server, const struct moon_connector *connector,
                             struct moon_memory *memory) {
    *server = (struct moon_lookup_server){.connector = connector, .need = MOON_SERVER_IDLE};
    moon_text_open(&server->reply, memory);
    moon_rpc_request_open(&server->request, memory);
    moon_lookup_open(&server->lookup, connector, memory);
}

void moon_lookup_server_close(struct moon_lookup_server *server) {
    moon_text_close(&server->reply);
    moon_rpc_request_close(&server->request);
    moon_lookup_close(&server->lookup);
    server->need = MOON_SERVER_STOPPED;
}

/* The reply is in `reply`, or memory was refused. */
static int reply_is_there(struct moon_lookup_server *server) {
    server->need = MOON_SERVER_REPLY;
    return server->reply.failed ? MOON_ERR_MEMORY : 0;
}

static int reply_status(struct moon_lookup_server *server, bool good) {
    moon_rpc_encode_status(good, &server->reply);
    return reply_is_there(server);
}

static int reply_no_hit(struct moon_lookup_server *server) {
    const struct moon_lookup_result none = {.hit_tokens = 0};
    moon_text_clear(&server->reply);
    moon_rpc_encode_reply(server->connector->profile, &none, &server->reply, NULL);
    return reply_is_there(server);
}

/* An exception: the server ends, or, in strict mode, answers a hit of 0 (RPC-009). What memory refuses ends nothing. */
static int fails(struct moon_lookup_server *server, int status, bool stops) {
    if (status != MOON_ERR_MEMORY && stops) {
        moon_deviation_note(server->connector->notes, MOON_DEVIATION_LOOKUP_SERVER_STOPS);
        server->need = MOON_SERVER_STOPPED;
        return 0;
    }
    int reply = reply_no_hit(server);
    return status == MOON_ERR_MEMORY ? status : reply;
}

static int reply_hit(struct moon_lookup_server *server, const struct moon_lookup_result *result) {
    int status = moon_rpc_encode_reply(server->connector->profile, result, &server->reply, &server->warning);
    if (status == MOON_ERR_REFUSED)
        return fails(server, status, server->connector->profile->malformed_stops_server);
    return reply_is_there(server);
}

/* What stands in place of hashes reaches the lookup in 0.21, which catches what it raises; what is beyond the limits
 * here would be served by a release, and is a hit of 0. */
static bool unreadable_stops(const struct moon_profile *profile, int status) {
    if (status == MOON_ERR_SCHEMA)
        return profile->raised_stops_server;
    return profile->malformed_stops_server && status != MOON_ERR_LIMIT;
}

int moon_lookup_server_request(struct moon_lookup_server *server, const struct moon_rpc_frame *frames, size_t count) {
    const struct moon_profile *profile = server->connector->profile;
    assert(server->need == MOON_SERVER_IDLE);
    moon_text_close(&server->reply);
    server->warning.status = MOON_OK;
    int status = moon_rpc_decode_request(profile, frames, count, &server->request, &server->warning);
    if (status)
        return fails(server, status, unreadable_stops(profile, status));
    if (server->request.kind == MOON_RPC_UNKNOWN) {
        moon_fail(&server->warning, MOON_ERR_UNSUPPORTED, "lookup request frame 0", "unknown request of %zu bytes",
                  frames[0].length);
        return reply_status(server, false);
    }
    if (server->request.kind == MOON_RPC_RESET) {
        server->need = MOON_SERVER_DRAIN;
        return 0;
    }
    status = moon_lookup_begin(&server->lookup, server->request.num_tokens, &server->request.hashes, &server->call,
                               &server->warning);
    if (status)
        return fails(server, status, profile->raised_stops_server);
    if (!server->call)
        return reply_hit(server, &server->lookup.result);
    server->need = MOON_SERVER_ASK_STORE;
    return 0;
}

int moon_lookup_server_answer(struct moon_lookup_server *server, const int64_t *values, size_t count) {
    assert(server->need == MOON_SERVER_ASK_STORE);
    int status = moon_lookup_answer(&server->lookup, values, count, &server->warning);
    if (status == MOON_ERR_RANGE)
        return status;
    server->call = NULL;
    if (status)
        return fails(server, status, server->connector->profile->raised_stops_server);
    return reply_hit(server, &server->lookup.result);
}

int moon_lookup_server_raised(struct moon_lookup_server *server) {
    assert(server->need == MOON_SERVER_ASK_STORE);
    server->call = NULL;
    moon_fail(&server->warning, MOON_ERR_IO, "lookup", "the existence call raised");
    moon_lookup_raised(&server->lookup);
    return reply_hit(server, &server->lookup.result);
}

int moon_lookup_server_done(struct moon_lookup_server *server, bool good) {
    assert(server->need == MOON_SERVER_DRAIN || server->need == MOON_SERVER_REMOVE_KEYS);
    if (good && server->need == MOON_SERVER_DRAIN) {
        server->need = MOON_SERVER_REMOVE_KEYS;
        return 0;
    }
    if (!good)
        moon_fail(&server->warning, MOON_ERR_IO, "reset",
                  server->need == MOON_SERVER_DRAIN ? "the send queue did not run empty" : "remove_all raised");
    return reply_status(server, good);
}

void moon_lookup_server_sent(struct moon_lookup_server *server) {
    assert(server->need == MOON_SERVER_REPLY);
    server->need = MOON_SERVER_IDLE;
}
