/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter protocol of a store: calls as lines of JSON on standard input, answers on standard output. */
#ifndef MOON_DAEMON_AGENT_H
#define MOON_DAEMON_AGENT_H

#include "ref/base/json.h"
#include "ref/base/list.h"
#include "ref/daemon/session.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_AGENT_LINE_BYTES_MAX = 64 * 1024 * 1024,
    MOON_AGENT_CLIENTS_MAX = 16,
    MOON_AGENT_REQUESTS_MAX = 256, /* under way; more lines wait */
};

/* A client that lives here. gone: it is closed before the next line is taken. */
struct moon_agent_client {
    const char *name;
    struct moon_session *session;
    bool leaving, gone;
};

/* What the lines act on.
 *   folder   of values that travel as files; "." until a start names one
 *   requests  those under way
 *   out      descriptor of the answers */
struct moon_agent {
    struct moon_daemon *daemon;
    const struct moon_wire_protocol *protocol;
    struct moon_arena arena;
    const char *folder;
    struct moon_agent_client clients[MOON_AGENT_CLIENTS_MAX];
    struct moon_list requests;
    size_t request_count;
    int out;
    bool stopped;
};

void moon_agent_open(struct moon_agent *agent, struct moon_daemon *daemon, const struct moon_wire_protocol *protocol,
                     int out);
void moon_agent_close(struct moon_agent *agent);
/* Takes one line: answers it, now or when its operation has ended (DAEMON-022). Whatever it holds, the agent goes on;
 * after a stop agent->stopped is true. */
void moon_agent_take(struct moon_agent *agent, const char *line, size_t length);
/* Answers a line that is longer than MOON_AGENT_LINE_BYTES_MAX. */
void moon_agent_refuse_line(struct moon_agent *agent);
/* Closes clients that are gone; their other requests are answered with an error. Between events. */
void moon_agent_reap(struct moon_agent *agent);

/* Runs an agent on the descriptors until a stop, the end of the input with no request under way, or a signal. Returns
 * the exit status. */
int moon_agent_run(struct moon_daemon *daemon, const struct moon_wire_protocol *protocol, int in, int out);

#ifdef __cplusplus
}
#endif
#endif
