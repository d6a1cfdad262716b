/* SPDX-License-Identifier: Apache-2.0 */
/* What is seen of a process from outside: calls as messages of the adapter protocol, and the records that the harness
 * keeps itself, of foreign clients and of what it does to processes. */
#ifndef MOON_WORLDS_OUTSIDE_H
#define MOON_WORLDS_OUTSIDE_H

#include "conformance/worlds/world.h"

/* Records of the harness: clock "harness", node the client's name, or "harness" for its own. matched: how many of them
 * anchors have been looked for in. */
struct moon_outside {
    const struct moon_scenario *scenario;
    struct moon_history records;
    uint64_t n[MOON_SCENARIO_NODES_MAX]; /* of each node's next record; [0] is the harness's own */
    size_t matched, matched_anchor;
};
void moon_outside_open(struct moon_outside *outside, const struct moon_scenario *scenario, struct moon_memory *memory);
void moon_outside_close(struct moon_outside *outside);

/* The call as {"do":"store","seq":...} in `arena`. folder: where large values of a foreign client are put; NULL: ours,
 * which makes values from their fill. Returns 0, MOON_ERR_MEMORY, MOON_ERR_IO. */
int moon_outside_message(struct moon_arena *arena, const struct moon_scenario *scenario,
                         const struct moon_world_call *call, uint64_t seq, const char *master, const char *folder,
                         struct moon_json **message, struct moon_error *error);
/* Takes an answer into the call. False: *why says what is wrong with it. */
bool moon_outside_read(struct moon_world_call *call, const struct moon_json *answer, const char **why);

/* A call of a foreign client begins, and ends. Set-ups are not recorded. */
void moon_outside_invoked(struct moon_outside *outside, uint32_t boot, uint64_t seq,
                          const struct moon_world_call *call);
void moon_outside_ended(struct moon_outside *outside, uint32_t boot, uint64_t seq, const struct moon_world_call *call);
/* Something was done to a node. */
void moon_outside_fault(struct moon_outside *outside, const char *what, const char *node);
/* The next anchor that a new record reaches; false: none. */
bool moon_outside_reached(struct moon_outside *outside, struct moon_world *world, size_t *anchor);
void moon_outside_add(const struct moon_outside *outside, struct moon_history *history);

#endif
