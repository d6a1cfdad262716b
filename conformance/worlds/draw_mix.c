/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a scenario's mix, drawn from a seed. */
#include "conformance/worlds/scenario.h"

#include <string.h>

enum { BATCH_MAX = 4 };

const char *moon_scenario_key(struct moon_arena *arena, const char *pattern, int64_t repetition) {
    const char *place = strstr(pattern, "{i}");
    if (!place)
        return pattern;
    return moon_arena_format(arena, "%.*s%lld%s", (int)(place - pattern), pattern, (long long)repetition, place + 3);
}

static enum moon_scenario_do draw_kind(const struct moon_scenario_mix *mix, struct moon_random *random) {
    int64_t sum = 0;
    for (int i = 0; i < MOON_DO_COUNT; i++)
        sum += mix->rates[i];
    int64_t at = moon_random_between(random, 0, sum - 1);
    int kind = 0;
    while (at >= mix->rates[kind])
        at -= mix->rates[kind++];
    return (enum moon_scenario_do)kind;
}

/* Keys of one operation: different ones, so that a batch does not race with itself. */
static const char *const *draw_keys(struct moon_arena *arena, const struct moon_scenario_mix *mix, size_t count,
                                    struct moon_random *random) {
    const char **keys = moon_arena_array(arena, count, sizeof *keys);
    int64_t first = moon_random_between(random, 0, mix->keys - 1);
    for (size_t i = 0; keys && i < count; i++) {
        keys[i] = moon_arena_format(arena, "mix-%lld", (long long)((first + (int64_t)i) % mix->keys));
        if (!keys[i])
            return NULL;
    }
    return keys;
}

/* The number-th operation of the mix; `last`: the one before it of the same client, or MOON_SCENARIO_NONE. */
static bool draw_operation(struct moon_arena *arena, struct moon_scenario *scenario, size_t client, size_t number,
                           size_t last, struct moon_random *random, struct moon_scenario_operation *out) {
    const struct moon_scenario_mix *mix = &scenario->mix;
    enum moon_scenario_do what = draw_kind(mix, random);
    size_t largest = mix->sizes[0], count = 1;
    for (size_t i = 1; i < mix->size_count; i++)
        largest = mix->sizes[i] > largest ? mix->sizes[i] : largest;
    if (what == MOON_DO_BATCH_PUT || what == MOON_DO_BATCH_GET)
        count = (size_t)moon_random_between(random, 1, mix->keys < BATCH_MAX ? mix->keys : BATCH_MAX);
    bool put = what == MOON_DO_PUT || what == MOON_DO_BATCH_PUT;
    uint64_t size = moon_random_below(random, mix->size_count);
    struct moon_condition *after = moon_arena_alloc(arena, sizeof *after);
    *out = (struct moon_scenario_operation){
        .id = moon_arena_format(arena, "mix-%s-%zu", scenario->nodes[client].name, number),
        .node = client,
        .what = what,
        .keys = what == MOON_DO_REMOVE_ALL ? NULL : draw_keys(arena, mix, count, random),
        .key_count = what == MOON_DO_REMOVE_ALL ? 0 : count,
        .bytes = put ? mix->sizes[size] : largest,
        .fill = (number + 1) * BATCH_MAX,
        .after = after,
        .after_count = last != MOON_SCENARIO_NONE,
        .repeat = 1,
    };
    out->force = moon_random_chance(random, 1, 2) && (what == MOON_DO_REMOVE || what == MOON_DO_REMOVE_ALL);
    bool at_once = moon_random_chance(random, 1, 2); /* so that clients meet */
    out->pause_ns = moon_random_between(random, 0, at_once ? 0 : mix->pause_max_ns);
    if (after)
        *after = (struct moon_condition){MOON_CONDITION_OPERATION, last};
    return out->id && after && (out->keys || what == MOON_DO_REMOVE_ALL);
}

int moon_scenario_draw(struct moon_arena *arena, struct moon_scenario *scenario, struct moon_random *random,
                       struct moon_error *error) {
    const struct moon_scenario_mix *mix = &scenario->mix;
    size_t added = mix->client_count > 0 ? (size_t)mix->operations : 0, first = scenario->operation_count;
    struct moon_scenario_operation *all = moon_arena_array(arena, first + added, sizeof *all);
    size_t last[MOON_SCENARIO_NODES_MAX];
    for (size_t i = 0; i < MOON_SCENARIO_NODES_MAX; i++)
        last[i] = MOON_SCENARIO_NONE;
    if (!all)
        return moon_no_memory(error);
    if (first > 0)
        memcpy(all, scenario->operations, first * sizeof *all);
    for (size_t i = 0; i < added; i++) {
        size_t client = mix->clients[i % mix->client_count];
        if (!draw_operation(arena, scenario, client, i, last[client], random, &all[first + i]))
            return moon_no_memory(error);
        last[client] = first + i;
    }
    scenario->operations = all;
    scenario->operation_count = first + added;
    return 0;
}
