/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a worker: how long it waits for its queues before the store is closed. */
#ifndef MOON_CONNECTOR_CLOSING_H
#define MOON_CONNECTOR_CLOSING_H

#include "ref/key/profile.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_CLOSE_BOUND_MS = 5000, MOON_CLOSE_POLL_MS = 50 };

/* What to do next.
 *   WAIT   wait_ms, for the jobs of queue `queue`, then ask again
 *   WARN   say that queue `queue` still has `unfinished` jobs, then ask again
 *   CLOSE  close the store; what that raises is only logged. Then ask again
 *   DONE   nothing any more */
enum moon_closing_act { MOON_CLOSING_WAIT, MOON_CLOSING_WARN, MOON_CLOSING_CLOSE, MOON_CLOSING_DONE };
struct moon_closing_step {
    enum moon_closing_act act;
    size_t queue, unfinished;
    int64_t wait_ms;
};

/* A close under way (METRIC-004). Plain data. */
struct moon_closing {
    bool waits, closes;
    int64_t deadline_ms;
    size_t queue;
};
/* Begins. now_ms: monotonic. A worker that is closed already needs no second one: nothing happens then. */
void moon_closing_begin(struct moon_closing *closing, const struct moon_profile *profile, int64_t now_ms);
/* unfinished[i]: jobs queued or running in queue i: the send queue first, if there is one, then the receive queues.
 * Asked at most MOON_CLOSE_BOUND_MS / MOON_CLOSE_POLL_MS + 2 * count + 3 times until DONE, if each wait is waited. */
struct moon_closing_step moon_closing_next(struct moon_closing *closing, const size_t *unfinished, size_t count,
                                           int64_t now_ms);

#ifdef __cplusplus
}
#endif
#endif
