/* SPDX-License-Identifier: Apache-2.0 */
/* One process of world tcp as its supervisor sees it: mooncheck-master, mooncheck-client agent, or a foreign client. */
#ifndef MOON_WORLDS_AGENT_H
#define MOON_WORLDS_AGENT_H

#include "conformance/process.h"
#include "ref/base/json.h"

/* control: our end of its control channel, -1: it has none (foreign, or gone).
 *   alive      started and not ended
 *   silent     what it writes on its standard output is for people
 *   path_base  where its files go: PATH_BASE.jsonl (history), PATH_BASE.log */
struct moon_agent {
    struct moon_process process;
    int control;
    struct moon_text control_in;
    size_t control_taken;
    bool alive, silent;
    char name[64];
    char path_base[512];
};

enum moon_agent_event {
    MOON_AGENT_ANSWER,  /* a line on its standard output */
    MOON_AGENT_CONTROL, /* a line on its control channel */
    MOON_AGENT_NOTHING, /* no whole line is there now */
    MOON_AGENT_DEAD,    /* it has ended */
};

/* Starts `command` (a shell's, without exec). with_control: it gets " --control FD" behind it, and its environment. */
int moon_agent_start(struct moon_agent *agent, const char *name, const char *path_base, const char *command,
                     bool with_control, struct moon_error *error);
/* Queues a JSON line for its standard input; writes one to its control channel. */
void moon_agent_say(struct moon_agent *agent, const struct moon_json *message);
int moon_agent_control(struct moon_agent *agent, const struct moon_json *message, struct moon_error *error);
/* Takes what is there, without waiting. *message lives in `arena`; NULL for a line of a silent one. Returns 0, or
 * MOON_ERR_SYNTAX with the process's name for a line that is no JSON. */
int moon_agent_take(struct moon_agent *agent, struct moon_arena *arena, enum moon_agent_event *event,
                    struct moon_json **message, struct moon_error *error);
/* Waits until one of the agents (NULLs are passed over) has something to take, or the time of moon_now_ns. */
void moon_agents_wait(struct moon_agent *const agents[], size_t count, uint64_t deadline_ns);
/* Ends it by its process id: grace_ms 0 kills it. Its last words are in PATH_BASE.log. Idempotent. */
void moon_agent_end(struct moon_agent *agent, int grace_ms);
/* "the process owner (killed by signal 9): " and the last of its stderr, on one line, in `arena`. */
const char *moon_agent_obituary(const struct moon_agent *agent, struct moon_arena *arena);

#endif
