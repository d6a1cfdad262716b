/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue of the simulator: simulated time, and the one order in which things happen (SIM-001). */
#include "sim/sim_internal.h"

#include <assert.h>

void *moon_sim_alloc(struct moon_sim *sim, size_t bytes) {
    void *piece = sim->memory->resize(sim->memory, NULL, 0, bytes);
    if (piece)
        memset(piece, 0, bytes);
    else
        sim->failed = true;
    return piece;
}

void moon_sim_free(struct moon_sim *sim, void *piece, size_t bytes) {
    if (piece)
        sim->memory->resize(sim->memory, piece, bytes, 0);
}

bool moon_sim_event_waits(const struct moon_sim_event *event) {
    return event->place.place != 0;
}

void moon_sim_event_set(struct moon_sim *sim, struct moon_sim_event *event, moon_ns time_ns) {
    assert(time_ns >= sim->now_ns && event->run);
    if (moon_sim_event_waits(event))
        moon_heap_move(&sim->events, &event->place, time_ns);
    else if (moon_heap_add(&sim->events, &event->place, time_ns) != 0)
        sim->failed = true;
}

void *moon_sim_event_new(struct moon_sim *sim, size_t bytes, moon_ns time_ns,
                         void (*run)(struct moon_sim *, struct moon_sim_event *)) {
    struct moon_sim_event *event = moon_sim_alloc(sim, bytes);
    if (!event)
        return NULL;
    event->run = run;
    event->owned_bytes = bytes;
    moon_sim_event_set(sim, event, time_ns);
    if (moon_sim_event_waits(event))
        return event;
    moon_sim_free(sim, event, bytes);
    return NULL;
}

void moon_sim_event_cancel(struct moon_sim *sim, struct moon_sim_event *event) {
    assert(event->owned_bytes == 0);
    moon_heap_remove(&sim->events, &event->place);
}

/* The earliest event, taken out of the queue; NULL if there is none. */
static struct moon_sim_event *take(struct moon_sim *sim) {
    struct moon_heap_node *first = moon_heap_first(&sim->events);
    if (first)
        moon_heap_remove(&sim->events, first);
    return (struct moon_sim_event *)first;
}

void moon_sim_events_close(struct moon_sim *sim) {
    for (struct moon_sim_event *event; (event = take(sim));)
        if (event->owned_bytes > 0)
            moon_sim_free(sim, event, event->owned_bytes);
    moon_heap_close(&sim->events);
}

bool moon_sim_step(struct moon_sim *sim) {
    moon_sim_streams_reap(sim); /* what ended by calls from outside */
    struct moon_sim_event *event = sim->failed ? NULL : take(sim);
    if (!event)
        return false;
    assert(event->place.time_ns >= sim->now_ns);
    sim->now_ns = event->place.time_ns;
    size_t owned_bytes = event->owned_bytes; /* one that is not owned may be gone when it has run */
    event->run(sim, event);
    if (owned_bytes > 0)
        moon_sim_free(sim, event, owned_bytes);
    moon_sim_streams_reap(sim);
    return true;
}

struct user_event {
    struct moon_sim_event event; /* first member */
    void (*run)(void *context);
    void *context;
};

static void run_user_event(struct moon_sim *sim, struct moon_sim_event *event) {
    const struct user_event *user = (const struct user_event *)event;
    (void)sim;
    user->run(user->context);
}

int moon_sim_at(struct moon_sim *sim, moon_ns time_ns, void (*run)(void *context), void *context) {
    struct user_event *event =
        moon_sim_event_new(sim, sizeof *event, time_ns > sim->now_ns ? time_ns : sim->now_ns, run_user_event);
    if (!event)
        return MOON_ERR_MEMORY;
    event->run = run;
    event->context = context;
    return 0;
}
