/* SPDX-License-Identifier: Apache-2.0 */
/* One deadline for all queues, each looked at in its turn. */
#include "ref/connector/closing.h"

void moon_closing_begin(struct moon_closing *closing, const struct moon_profile *profile, int64_t now_ms) {
    *closing = (struct moon_closing){
        .waits = profile->close_waits, .closes = profile->store_closed, .deadline_ms = now_ms + MOON_CLOSE_BOUND_MS};
}

struct moon_closing_step moon_closing_next(struct moon_closing *closing, const size_t *unfinished, size_t count,
                                           int64_t now_ms) {
    while (closing->waits && closing->queue < count) {
        size_t queue = closing->queue;
        if (unfinished[queue] > 0 && now_ms < closing->deadline_ms)
            return (struct moon_closing_step){MOON_CLOSING_WAIT, queue, unfinished[queue], MOON_CLOSE_POLL_MS};
        closing->queue++;
        if (unfinished[queue] > 0)
            return (struct moon_closing_step){MOON_CLOSING_WARN, queue, unfinished[queue], 0};
    }
    struct moon_closing_step step = {closing->closes ? MOON_CLOSING_CLOSE : MOON_CLOSING_DONE, 0, 0, 0};
    closing->closes = false;
    return step;
}
