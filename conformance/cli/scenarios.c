/* SPDX-License-Identifier: Apache-2.0 */
/* Loading scenarios that a command line names, and telling what came of them. */
#include "conformance/cli/scenarios.h"

#include "conformance/io.h"

#include <string.h>

static bool is_json(const char *path) {
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

/* Scenarios that are read so far. */
struct list {
    struct moon_arena *arena;
    struct moon_scenario *rows;
    size_t count, capacity;
};

static int add(struct list *list, const char *path, struct moon_error *error) {
    if (list->count == list->capacity) { /* the old array stays in the arena */
        size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
        struct moon_scenario *grown = moon_arena_array(list->arena, capacity, sizeof *grown);
        if (!grown)
            return moon_no_memory(error);
        if (list->count > 0)
            memcpy(grown, list->rows, list->count * sizeof *grown);
        list->rows = grown;
        list->capacity = capacity;
    }
    return moon_scenario_load(list->arena, path, &list->rows[list->count++], error);
}

static int add_folder(struct list *list, const char *folder, struct moon_error *error) {
    const char *const *paths = NULL;
    size_t count = 0, before = list->count;
    int status = moon_io_list(list->arena, folder, &paths, &count, error);
    for (size_t i = 0; i < count && status == 0; i++)
        if (is_json(paths[i]))
            status = add(list, paths[i], error);
    if (status == 0 && list->count == before)
        status = moon_fail(error, MOON_ERR_IO, folder, "holds no scenario (*.json)");
    return status;
}

int moon_cli_scenarios(struct moon_arena *arena, const char *const operands[], int count, struct moon_scenario **list,
                       size_t *found, struct moon_error *error) {
    static const char *const standard[] = {"scenarios"};
    struct list all = {.arena = arena};
    int status = 0;
    if (count == 0) {
        operands = standard;
        count = 1;
    }
    for (int i = 0; i < count && status == 0; i++)
        status = moon_io_is_folder(operands[i]) ? add_folder(&all, operands[i], error) : add(&all, operands[i], error);
    *list = all.rows;
    *found = all.count;
    return status;
}

int moon_cli_add_play(struct moon_result *result, const struct moon_scenario *scenario, const char *world,
                      const struct moon_play *play, struct moon_error *error) {
    struct moon_result_case *one = moon_result_add(result);
    const char **deviations = moon_arena_array(result->arena, play->deviation_count, sizeof *deviations);
    if (!one || !deviations)
        return moon_no_memory(error);
    for (size_t i = 0; i < play->deviation_count; i++)
        deviations[i] = play->deviations[i];
    one->id = moon_arena_format(result->arena, "scenario.%s.%s", scenario->id, world);
    one->profile = moon_arena_format(result->arena, "mooncake-%s", scenario->release->name);
    one->suite = "scenario";
    one->requirement = play->requirement;
    one->level = play->deviation_count > 0 ? "ALT" : "SHOULD";
    one->outcome = play->outcome;
    one->duration_ns = play->duration_ns;
    one->reason = play->reason;
    one->required = play->required;
    one->done = play->done;
    one->expected = play->expected;
    one->seen = play->seen;
    one->reproduce = play->reproduce;
    one->resembles = "";
    one->deviations = deviations;
    one->deviation_count = play->deviation_count;
    if (!one->id || !one->profile)
        return moon_no_memory(error);
    moon_result_count(result, one);
    return 0;
}

static void line(struct moon_text *out, const char *label, const char *value) {
    if (value[0])
        moon_text_format(out, "  %-10s %s\n", label, value);
}

void moon_cli_tell_play(const struct moon_scenario *scenario, const struct moon_play *play, struct moon_text *out) {
    moon_text_format(out, "%s %s (%s)\n", moon_outcome_name(play->outcome), scenario->id, play->requirement);
    line(out, "required", play->required);
    line(out, "done", play->done);
    line(out, "expected", play->expected);
    line(out, "seen", play->seen[0] ? play->seen : play->reason);
    line(out, "reproduce", play->reproduce);
}
