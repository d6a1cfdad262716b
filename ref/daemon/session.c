/* SPDX-License-Identifier: Apache-2.0 */
/* A store client in a daemon. */
#include "ref/daemon/session.h"

#include "ref/base/endpoint.h"
#include "ref/daemon/segment_memory.h"
#include "ref/fabric/tcp_address.h"

#include <unistd.h>

enum { PORT_MIN = 12300, PORT_MAX = 14300, PORT_TRIES = 20 };

/* reserved: a socket that holds the port of the name; -1: the name was given. */
struct moon_session {
    struct moon_daemon_node *node;
    struct moon_client_node_settings settings;
    struct moon_arena arena;
    void *segment;
    size_t segment_bytes;
    int reserved;
    char hostname[MOON_ENDPOINT_BYTES];
};

/* Binds the port without listening: nobody else takes it while this process lives. */
static int bind_port(uint16_t port) {
    struct sockaddr_storage any;
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && moon_tcp_address_parse("0.0.0.0", port, &any) &&
        bind(made, (const struct sockaddr *)&any, sizeof(struct sockaddr_in)) == 0)
        return made;
    if (made >= 0)
        close(made);
    return -1;
}

static int name_session(struct moon_session *session, struct moon_daemon *daemon,
                        const struct moon_session_settings *settings, struct moon_error *error) {
    uint16_t port = 0;
    if (settings->hostname) {
        size_t length = strlen(settings->hostname);
        if (length == 0 || length >= sizeof session->hostname)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "the host name is empty or too long");
        memcpy(session->hostname, settings->hostname, length + 1);
        return 0;
    }
    for (int tries = 0; tries < PORT_TRIES && session->reserved < 0; tries++) {
        port = (uint16_t)moon_random_between(&daemon->random, PORT_MIN, PORT_MAX);
        session->reserved = bind_port(port);
    }
    if (session->reserved < 0)
        return moon_fail(error, MOON_ERR_IO, NULL, "no free port in %d to %d", PORT_MIN, PORT_MAX);
    if (!moon_endpoint_join(settings->host, port, session->hostname, sizeof session->hostname))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "the host name is too long");
    return 0;
}

static int lend_memory(struct moon_session *session, int64_t bytes, struct moon_error *error) {
    if (bytes == 0)
        return 0;
    session->segment = moon_segment_memory_open((size_t)bytes);
    session->segment_bytes = (size_t)bytes;
    if (!session->segment)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a segment of %lld bytes", (long long)bytes);
    return 0;
}

static int copy_settings(struct moon_session *session, const struct moon_session_settings *settings,
                         struct moon_error *error) {
    struct moon_client_settings *client = &session->settings.client;
    const char *tenant = settings->tenant ? settings->tenant : "";
    session->settings.transfer = moon_transfer_defaults();
    session->settings.transfer.release = settings->protocol->release;
    session->settings.transfer.host = moon_arena_copy(&session->arena, settings->host, strlen(settings->host));
    *client = moon_client_defaults();
    client->protocol = settings->protocol;
    client->hostname = session->hostname;
    client->master_endpoint = moon_arena_copy(&session->arena, settings->master, strlen(settings->master));
    client->tenant = moon_arena_copy(&session->arena, tenant, strlen(tenant));
    client->segment = session->segment;
    client->segment_address = (uintptr_t)session->segment;
    client->segment_bytes = session->segment ? session->segment_bytes : 0;
    if (!session->settings.transfer.host || !client->master_endpoint || !client->tenant)
        return moon_no_memory(error);
    return 0;
}

struct moon_session *moon_session_open(struct moon_daemon *daemon, const struct moon_session_settings *settings,
                                       struct moon_error *error) {
    struct moon_memory *memory = moon_memory_heap();
    struct moon_session *session = memory->resize(memory, NULL, 0, sizeof *session);
    char host[MOON_HOST_BYTES];
    uint16_t port;
    if (!session) {
        moon_no_memory(error);
        return NULL;
    }
    *session = (struct moon_session){.reserved = -1};
    moon_arena_open(&session->arena, memory);
    int status = 0;
    if (!moon_endpoint_split(settings->master, host, &port))
        status = moon_fail(error, MOON_ERR_SCHEMA, NULL, "the master is HOST:PORT, not \"%.80s\"", settings->master);
    if (status == 0)
        status = name_session(session, daemon, settings, error);
    if (status == 0)
        status = lend_memory(session, settings->segment_bytes, error);
    if (status == 0)
        status = copy_settings(session, settings, error);
    if (status == 0)
        session->node = moon_daemon_node_open(daemon, &moon_client_program, &session->settings, error);
    if (session->node)
        return session;
    moon_session_close(session);
    return NULL;
}

void moon_session_close(struct moon_session *session) {
    struct moon_memory *memory = moon_memory_heap();
    if (session->node)
        moon_daemon_node_close(session->node);
    moon_segment_memory_close(session->segment, session->segment_bytes);
    if (session->reserved >= 0)
        close(session->reserved);
    moon_arena_close(&session->arena);
    memory->resize(memory, session, sizeof *session, 0);
}

int moon_session_submit(struct moon_session *session, struct moon_client_operation *operation) {
    moon_daemon_node_enter(session->node);
    int status = moon_client_submit(moon_client_node_client(moon_daemon_node_instance(session->node)), operation);
    moon_daemon_node_leave(session->node);
    return status;
}

const char *moon_session_hostname(const struct moon_session *session) {
    return session->hostname;
}

const char *moon_session_endpoint(const struct moon_session *session) {
    return moon_transfer_endpoint(moon_client_node_transfer(moon_daemon_node_instance(session->node)));
}
