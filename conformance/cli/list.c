/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck list: requirements with their provenance and the kinds of cases that hold them; families of `run`;
 * scenarios; deviations. */
#include "conformance/cli/cli.h"
#include "conformance/cli/scenarios.h"
#include "conformance/deviations.h"
#include "conformance/families.h"
#include "conformance/requirements.h"

#include <string.h>

static bool json, by_requirement, deviations;

static const struct moon_option options[] = {
    {.name = "json", .kind = MOON_OPTION_FLAG, .into = &json, .help = "as JSON"},
    {.name = "by-requirement",
     .kind = MOON_OPTION_FLAG,
     .into = &by_requirement,
     .help = "one entry a requirement, with its source, instead of one a kind of case"},
    {.name = "deviations",
     .kind = MOON_OPTION_FLAG,
     .into = &deviations,
     .help = "what releases do wrong, by edge: what, since when, why it matters, what mode strict does"},
    {.name = NULL},
};

const struct moon_command moon_command_list = {
    .name = "list",
    .operands = "",
    .summary = "list kinds of cases and the requirements they hold",
    .details = "A kind is the id of a case without its number; it is shown as the pattern that the requirement cites. "
               "Scenarios are those of the folder scenarios, where there is one.",
    .options = options,
    .operands_min = 0,
    .operands_max = 0,
};

static struct moon_json *requirement_to_json(struct moon_arena *arena, const struct moon_requirement *requirement) {
    struct moon_json *object = moon_json_object(arena), *kinds = moon_json_array(arena);
    moon_json_set(arena, object, "id", moon_json_string(arena, requirement->id));
    moon_json_set(arena, object, "level", moon_json_string(arena, requirement->level));
    moon_json_set(arena, object, "title", moon_json_string(arena, requirement->title));
    moon_json_set(arena, object, "provenance", moon_json_string(arena, requirement->provenance));
    moon_json_set(arena, object, "profiles", moon_json_string(arena, requirement->profiles));
    moon_json_set(arena, object, "source", moon_json_string(arena, requirement->source));
    for (const char *const *glob = requirement->globs; *glob; glob++)
        moon_json_push(kinds, moon_json_string(arena, *glob));
    moon_json_set(arena, object, "cases", kinds);
    return object;
}

/* Scenarios of the folder here; none where there is no such folder. */
static int load_scenarios(struct moon_arena *arena, struct moon_scenario **list, size_t *count,
                          struct moon_error *error) {
    *list = NULL;
    *count = 0;
    return moon_io_is_folder("scenarios") ? moon_cli_scenarios(arena, NULL, 0, list, count, error) : 0;
}

/* "sim mem" */
static const char *worlds_of(struct moon_arena *arena, const struct moon_scenario *scenario) {
    static const struct moon_world_setting plain = {0};
    const char *worlds = "";
    for (size_t i = 0; moon_worlds[i] && worlds; i++)
        if (!moon_worlds[i]->cannot(&plain, scenario, arena))
            worlds = moon_arena_format(arena, "%s%s%s", worlds, worlds[0] ? " " : "", moon_worlds[i]->name);
    return worlds;
}

static struct moon_json *scenario_to_json(struct moon_arena *arena, const struct moon_scenario *scenario) {
    static const struct moon_world_setting plain = {0};
    struct moon_json *object = moon_json_object(arena), *worlds = moon_json_array(arena),
                     *guide = moon_json_array(arena);
    moon_json_set(arena, object, "id", moon_json_string(arena, scenario->id));
    moon_json_set(arena, object, "title", moon_json_string(arena, scenario->title));
    moon_json_set(arena, object, "file", moon_json_string(arena, scenario->source));
    for (size_t i = 0; moon_worlds[i]; i++)
        if (!moon_worlds[i]->cannot(&plain, scenario, arena))
            moon_json_push(worlds, moon_json_string(arena, moon_worlds[i]->name));
    for (size_t i = 0; i < scenario->guide_count; i++)
        moon_json_push(guide, moon_json_string(arena, scenario->guide[i]));
    moon_json_set(arena, object, "worlds", worlds);
    moon_json_set(arena, object, "guide", guide);
    return object;
}

static int print_requirements_json(void) {
    struct moon_arena arena;
    struct moon_error error;
    struct moon_scenario *scenarios;
    size_t count;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_json *root = moon_json_object(&arena), *families = moon_json_array(&arena);
    struct moon_json *list = moon_json_set(&arena, root, "requirements", moon_json_array(&arena));
    for (size_t i = 0; i < moon_requirements_count; i++)
        moon_json_push(list, requirement_to_json(&arena, &moon_requirements[i]));
    for (size_t i = 0; moon_families[i].name; i++) {
        struct moon_json *family = moon_json_push(families, moon_json_object(&arena));
        moon_json_set(&arena, family, "name", moon_json_string(&arena, moon_families[i].name));
        moon_json_set(&arena, family, "summary", moon_json_string(&arena, moon_families[i].summary));
    }
    moon_json_set(&arena, root, "families", families);
    struct moon_json *plays = moon_json_set(&arena, root, "scenarios", moon_json_array(&arena));
    int exit_status = load_scenarios(&arena, &scenarios, &count, &error) == 0 ? 0 : moon_cli_fail(&error);
    for (size_t i = 0; i < count && exit_status == 0; i++)
        moon_json_push(plays, scenario_to_json(&arena, &scenarios[i]));
    if (exit_status == 0)
        exit_status = moon_cli_print_json(root);
    moon_arena_close(&arena);
    return exit_status;
}

static void write_by_requirement(struct moon_text *out) {
    for (size_t i = 0; i < moon_requirements_count; i++) {
        const struct moon_requirement *one = &moon_requirements[i];
        moon_text_format(out, "%s %s %s\n    %s, %s\n    source: %s\n    cases:", one->id, one->level, one->title,
                         one->profiles, one->provenance, one->source);
        for (const char *const *glob = one->globs; *glob; glob++)
            moon_text_format(out, " %s", *glob);
        moon_text_string(out, one->globs[0] ? "\n" : " none (unit tests)\n");
    }
}

static void write_by_kind(struct moon_text *out) {
    for (size_t i = 0; i < moon_requirements_count; i++)
        for (const char *const *glob = moon_requirements[i].globs; *glob; glob++)
            moon_text_format(out, "%-32s %-12s %-6s %s\n", *glob, moon_requirements[i].id, moon_requirements[i].level,
                             moon_requirements[i].title);
    for (size_t i = 0; moon_families[i].name; i++)
        moon_text_format(out, "%-32s %s (mooncheck run)\n", moon_families[i].name, moon_families[i].summary);
}

static int write_scenarios(struct moon_text *out) {
    struct moon_arena arena;
    struct moon_error error;
    struct moon_scenario *list;
    size_t count;
    moon_arena_open(&arena, moon_memory_heap());
    int exit_status = load_scenarios(&arena, &list, &count, &error) == 0 ? 0 : moon_cli_fail(&error);
    for (size_t i = 0; i < count && exit_status == 0; i++) {
        const char *worlds = worlds_of(&arena, &list[i]);
        moon_text_format(out, "scenario.%-23s %s (%s;", list[i].id, list[i].title, worlds ? worlds : "");
        for (size_t g = 0; g < list[i].guide_count; g++)
            moon_text_format(out, " %s", list[i].guide[g]);
        moon_text_string(out, ")\n");
    }
    moon_arena_close(&arena);
    return exit_status;
}

static void write_deviations(const struct moon_deviation_table *table, struct moon_text *out) {
    for (size_t i = 0; i < table->count; i++) {
        const struct moon_deviation_row *row = &table->rows[i];
        bool right = row->deviation < MOON_DEVIATION_COUNT;
        moon_text_format(out, "%s vllm-0.%d to vllm-0.%d %s%s%s\n    %s\n    %s\n    %s: %s\n", row->edge,
                         row->minor_first, row->minor_last, row->id, right ? " " : "", row->requirement, row->permitted,
                         row->why, right ? "strict" : "nothing is right instead", row->strict);
    }
}

static int print_deviations(void) {
    struct moon_arena arena;
    struct moon_deviation_table table;
    struct moon_error error;
    struct moon_text text;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    int exit_status;
    if (moon_deviations_load(&table, &arena, &error) != 0) {
        exit_status = moon_cli_fail(&error);
    } else if (json) {
        exit_status = moon_cli_print_json(table.document);
    } else {
        write_deviations(&table, &text);
        exit_status = moon_cli_print(&text);
    }
    moon_text_close(&text);
    moon_arena_close(&arena);
    return exit_status;
}

int moon_cli_list(const char *const operands[], int count) {
    struct moon_text text;
    (void)operands;
    (void)count;
    if (deviations && by_requirement)
        return moon_cli_complain("list: --deviations and --by-requirement are two lists");
    if (deviations)
        return print_deviations();
    if (json)
        return print_requirements_json();
    moon_text_open(&text, moon_memory_heap());
    if (by_requirement)
        write_by_requirement(&text);
    else
        write_by_kind(&text);
    int exit_status = by_requirement ? 0 : write_scenarios(&text);
    if (exit_status == 0)
        exit_status = moon_cli_print(&text);
    moon_text_close(&text);
    return exit_status;
}
