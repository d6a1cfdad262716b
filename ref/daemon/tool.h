/* SPDX-License-Identifier: Apache-2.0 */
/* The shell tool: one store operation a run, for people and scripts; and an owner that only lends memory. */
#ifndef MOON_DAEMON_TOOL_H
#define MOON_DAEMON_TOOL_H

#include "ref/daemon/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All return the exit status (command.h). Keys are texts. path: "-" and NULL are standard input or output. */
int moon_tool_put(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *key,
                  const char *path);
int moon_tool_get(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *key,
                  const char *path);
/* Prints "yes KEY" or "no KEY" a line; MOON_DAEMON_REFUSED if one is not there. */
int moon_tool_exist(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *const keys[],
                    int count);
int moon_tool_remove(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *const keys[],
                     int count, bool force);
/* Lends memory until it is asked to stop, gives it back, and ends. */
int moon_tool_own(struct moon_daemon *daemon, const struct moon_session_settings *settings);

#ifdef __cplusplus
}
#endif
#endif
