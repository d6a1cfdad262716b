/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation as a whole: its beginning, its end, and what it tells about itself. */
#include "sim/sim_internal.h"

#include <assert.h>

enum { DRIFT_MILLIONTHS_MAX = 100000 };

struct moon_sim_settings moon_sim_defaults(void) {
    return (struct moon_sim_settings){
        .delay_min_ns = 10 * 1000,
        .delay_max_ns = 2 * MOON_NS_PER_MS,
        .piece_bytes_max = (size_t)64 * 1024,
        .drift_millionths = 100,
        .connect_timeout_ns = 5 * MOON_NS_PER_S,
        .break_ns = 30 * MOON_NS_PER_S,
    };
}

struct moon_sim *moon_sim_open(struct moon_memory *memory, uint64_t seed, const struct moon_sim_settings *settings,
                               struct moon_recorder *recorder) {
    assert(settings->delay_min_ns >= 0 && settings->delay_min_ns <= settings->delay_max_ns);
    assert(settings->piece_bytes_max > 0 && settings->connect_timeout_ns > 0 && settings->break_ns > 0);
    assert(settings->drift_millionths >= 0 && settings->drift_millionths <= DRIFT_MILLIONTHS_MAX);
    struct moon_sim *sim = memory->resize(memory, NULL, 0, sizeof *sim);
    if (!sim)
        return NULL;
    *sim = (struct moon_sim){.memory = memory, .settings = *settings, .recorder = recorder};
    moon_random_seed(&sim->root, seed);
    sim->world = moon_random_split(&sim->root, "world");
    moon_heap_open(&sim->events, memory);
    return sim;
}

static void free_node(struct moon_sim *sim, struct moon_sim_node *node) {
    moon_sim_event_cancel(sim, &node->tick);
    moon_sim_verbs_reset(node);
    moon_sim_memory_release(&node->memory);
    while (node->hardware) {
        struct moon_sim_hardware *hardware = node->hardware;
        node->hardware = hardware->next;
        moon_sim_free(sim, hardware->piece, hardware->bytes);
        moon_sim_free(sim, hardware, sizeof *hardware);
    }
    moon_sim_free(sim, (char *)node->name.data, node->name.length + 1);
    moon_sim_free(sim, (char *)node->host.data, node->host.length + 1);
    moon_sim_free(sim, node, sizeof *node);
}

void moon_sim_close(struct moon_sim *sim) {
    moon_sim_streams_close(sim);
    while (sim->nodes) {
        struct moon_sim_node *node = sim->nodes;
        sim->nodes = node->next;
        free_node(sim, node);
    }
    moon_sim_faults_close(sim);
    moon_sim_events_close(sim);
    sim->memory->resize(sim->memory, sim, sizeof *sim, 0);
}

moon_ns moon_sim_now(const struct moon_sim *sim) {
    return sim->now_ns;
}

bool moon_sim_failed(const struct moon_sim *sim) {
    return sim->failed;
}
