/* SPDX-License-Identifier: Apache-2.0 */
/* What all worlds have in common: events that wait to be told, and anchors. */
#include "conformance/worlds/world.h"

#include <fnmatch.h>
#include <string.h>

const struct moon_world_kind *const moon_worlds[] = {&moon_world_sim, &moon_world_mem, &moon_world_tcp, NULL};

const struct moon_world_kind *moon_world_find(const char *name) {
    size_t i = 0;
    while (moon_worlds[i] && strcmp(moon_worlds[i]->name, name) != 0)
        i++;
    return moon_worlds[i];
}

int moon_world_open(struct moon_world *world, const struct moon_world_kind *kind,
                    const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                    struct moon_error *error) {
    size_t counted = 0, flagged = 0;
    *world = (struct moon_world){.kind = kind, .scenario = scenario, .setting = *setting};
    world->counts = moon_memory_grow_zeroed(setting->memory, NULL, &counted, scenario->anchor_count + 1,
                                            sizeof *world->counts, scenario->anchor_count + 1);
    world->reached = moon_memory_grow_zeroed(setting->memory, NULL, &flagged, scenario->anchor_count + 1,
                                             sizeof *world->reached, scenario->anchor_count + 1);
    return world->counts && world->reached ? 0 : moon_no_memory(error);
}

void moon_world_close(struct moon_world *world) {
    struct moon_memory *memory = world->setting.memory;
    size_t anchors = world->scenario->anchor_count + 1;
    if (world->counts)
        memory->resize(memory, world->counts, anchors * sizeof *world->counts, 0);
    if (world->reached)
        memory->resize(memory, world->reached, anchors * sizeof *world->reached, 0);
    if (world->events)
        memory->resize(memory, world->events, world->event_capacity * sizeof *world->events, 0);
}

void moon_world_tell(struct moon_world *world, const struct moon_world_event *event) {
    if (world->event_count == world->event_capacity) {
        struct moon_world_event *grown = moon_memory_grow(world->setting.memory, world->events, &world->event_capacity,
                                                          world->event_count + 1, sizeof *grown, 16);
        world->failed |= !grown;
        if (!grown)
            return;
        world->events = grown;
    }
    world->events[world->event_count++] = *event;
}

bool moon_world_take(struct moon_world *world, struct moon_world_event *event) {
    if (world->event_first == world->event_count)
        return false;
    *event = world->events[world->event_first++];
    if (world->event_first == world->event_count)
        world->event_first = world->event_count = 0;
    return true;
}

static bool glob_fits(const char *glob, const struct moon_record *record) {
    char key[1024];
    if (!(record->has & MOON_RECORD_HAS_KEY) || record->key.length >= sizeof key)
        return false;
    memcpy(key, record->key.data, record->key.length);
    key[record->key.length] = '\0';
    return strlen(key) == record->key.length && fnmatch(glob, key, 0) == 0;
}

bool moon_world_reaches(struct moon_world *world, size_t anchor, size_t node, const struct moon_record *record) {
    const struct moon_anchor *one = &world->scenario->anchors[anchor];
    if (world->reached[anchor] || one->node != node || (one->kind >= 0 && one->kind != (int)record->kind) ||
        strcmp(one->what, record->what) != 0 || (one->key && !glob_fits(one->key, record)))
        return false;
    world->counts[anchor]++;
    world->reached[anchor] = world->counts[anchor] == one->occurrence;
    return world->reached[anchor];
}

void moon_world_count_anew(struct moon_world *world, size_t node) {
    for (size_t i = 0; i < world->scenario->anchor_count; i++)
        if (world->scenario->anchors[i].node == node)
            world->counts[i] = 0;
}
