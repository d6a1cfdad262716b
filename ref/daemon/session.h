/* SPDX-License-Identifier: Apache-2.0 */
/* A store client in a daemon: its node, its segment's memory and its name. */
#ifndef MOON_DAEMON_SESSION_H
#define MOON_DAEMON_SESSION_H

#include "ref/daemon/loop.h"
#include "ref/store/client_node.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_session;

/* host: address that peers reach this process at. hostname: name of its segments; NULL: host and a free port of
 * Mooncake's range (12300 to 14300), which is kept until the end (DAEMON-010). segment_bytes 0: none, at most
 * MOON_SEGMENT_BYTES_MAX. Texts are copied; `protocol` outlives it. */
struct moon_session_settings {
    const char *host, *hostname, *master, *tenant;
    int64_t segment_bytes;
    const struct moon_wire_protocol *protocol;
};

/* NULL and an error: no memory, no free port, no such address. Nothing is sent before a SETUP is submitted. */
struct moon_session *moon_session_open(struct moon_daemon *daemon, const struct moon_session_settings *settings,
                                       struct moon_error *error);
/* At once, without a word to the master. Not from within done(). */
void moon_session_close(struct moon_session *session);
/* moon_client_submit from outside of any event, or from within done(). */
int moon_session_submit(struct moon_session *session, struct moon_client_operation *operation);
const char *moon_session_hostname(const struct moon_session *session);
const char *moon_session_endpoint(const struct moon_session *session); /* of its transfer engine */

#ifdef __cplusplus
}
#endif
#endif
