/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup-async: reading a case. */
#include "conformance/suites/lookup_async_case.h"

#include <string.h>

/* Everything that one function passes to the next. */
struct reading {
    struct moon_arena *arena;
    const char *source;
    struct moon_async_case *out;
    struct moon_error *error;
};

/* Slot of a request by its name, or name_count. */
static uint32_t find(const struct moon_async_case *its, const char *name) {
    uint32_t slot = 0;
    while (slot < its->name_count && strcmp(its->names[slot], name) != 0)
        slot++;
    return slot;
}

static int read_add(const struct reading *reading, const struct moon_json *object, struct moon_async_action *action) {
    static const char *const names[] = {"add", "prompt", "max_tokens", NULL};
    struct moon_async_case *out = reading->out;
    const char *name = NULL;
    int status = moon_json_closed(reading->source, object, names, reading->error);
    if (!status)
        status = moon_json_get_string(reading->source, object, "add", true, &name, NULL, reading->error);
    if (!status)
        status = moon_engine_prompt_read(reading->arena, reading->source, object, &action->prompt, reading->error);
    action->max_tokens = 1;
    if (!status)
        status = moon_json_get_int(reading->source, object, "max_tokens", false, 1, MOON_ENGINE_CASE_OUTPUT_MAX,
                                   &action->max_tokens, reading->error);
    if (status)
        return status;
    action->kind = MOON_ASYNC_ADD;
    action->slot = find(out, name);
    if (action->slot < out->name_count)
        return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, moon_json_member(object, "add"),
                              "a request \"%.64s\" was added before", name);
    if (out->name_count == MOON_ENGINE_CASE_REQUESTS_MAX)
        return moon_json_fail(reading->error, MOON_ERR_LIMIT, reading->source, object, "a case has at most %d requests",
                              MOON_ENGINE_CASE_REQUESTS_MAX);
    out->names[out->name_count++] = name;
    return 0;
}

static int read_abort(const struct reading *reading, const struct moon_json *object, struct moon_async_action *action) {
    static const char *const names[] = {"abort", NULL};
    const char *name = NULL;
    int status = moon_json_closed(reading->source, object, names, reading->error);
    if (!status)
        status = moon_json_get_string(reading->source, object, "abort", true, &name, NULL, reading->error);
    if (status)
        return status;
    action->kind = MOON_ASYNC_ABORT;
    action->slot = find(reading->out, name);
    reading->out->aborts = true;
    if (action->slot < reading->out->name_count)
        return 0;
    return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, moon_json_member(object, "abort"),
                          "no request \"%.64s\" was added before", name);
}

static int read_answers(const struct reading *reading, const struct moon_json *object,
                        struct moon_async_action *action) {
    static const char *const names[] = {"lookup_answers", NULL};
    int status = moon_json_closed(reading->source, object, names, reading->error);
    if (!status)
        status = moon_json_get_int(reading->source, object, "lookup_answers", true, 0, MOON_ENGINE_CASE_REQUESTS_MAX,
                                   &action->count, reading->error);
    action->kind = MOON_ASYNC_ANSWERS;
    reading->out->holds = true;
    return status;
}

static int read_reset(const struct reading *reading, const struct moon_json *object, struct moon_async_action *action) {
    static const char *const names[] = {"reset_local_prefix_cache", NULL};
    action->kind = MOON_ASYNC_RESET;
    return moon_json_closed(reading->source, object, names, reading->error);
}

/* One action: {"add": ...}, {"abort": ...}, {"lookup_answers": n}, {"reset_local_prefix_cache": true}; the last may be
 * the bare name. */
static int read_action(const struct reading *reading, const struct moon_json *value, struct moon_async_action *action) {
    if (moon_json_is_string(value, "reset_local_prefix_cache")) {
        action->kind = MOON_ASYNC_RESET;
        return 0;
    }
    if (moon_json_member(value, "add"))
        return read_add(reading, value, action);
    if (moon_json_member(value, "abort"))
        return read_abort(reading, value, action);
    if (moon_json_member(value, "lookup_answers"))
        return read_answers(reading, value, action);
    if (moon_json_member(value, "reset_local_prefix_cache"))
        return read_reset(reading, value, action);
    return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, value,
                          "an action is one of add, abort, lookup_answers, reset_local_prefix_cache");
}

int moon_async_step_read(struct moon_arena *arena, const char *source, const struct moon_json *list,
                         struct moon_async_case *its, struct moon_async_step *out, struct moon_error *error) {
    const struct reading reading = {arena, source, its, error};
    if (list->type != MOON_JSON_ARRAY)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, list, "a step is a list of actions");
    out->actions = moon_arena_array(arena, list->count, sizeof *out->actions);
    out->count = list->count;
    if (!out->actions)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    int status = 0;
    for (const struct moon_json *each = list->first; each && !status; each = each->next)
        status = read_action(&reading, each, &out->actions[each->index]);
    return status;
}

static int read_steps(const struct reading *reading, const struct moon_json *given) {
    struct moon_json *list = NULL;
    int status = moon_json_get(reading->source, given, "steps", true, MOON_JSON_ARRAY, &list, reading->error);
    if (status)
        return status;
    if (list->count > MOON_ENGINE_CASE_STEPS_MAX)
        return moon_json_fail(reading->error, MOON_ERR_LIMIT, reading->source, list, "a case has at most %d steps",
                              MOON_ENGINE_CASE_STEPS_MAX);
    reading->out->step_count = list->count;
    reading->out->steps = moon_arena_array(reading->arena, list->count, sizeof *reading->out->steps);
    if (!reading->out->steps)
        return moon_fail(reading->error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (const struct moon_json *each = list->first; each && !status; each = each->next)
        status = moon_async_step_read(reading->arena, reading->source, each, reading->out,
                                      &reading->out->steps[each->index], reading->error);
    return status;
}

int moon_async_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                         const struct moon_json *given, struct moon_async_case *out, struct moon_error *error) {
    static const char *const names[] = {MOON_ENGINE_CASE_MEMBERS, "steps", NULL};
    const struct reading reading = {arena, source, out, error};
    *out = (struct moon_async_case){0};
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = moon_engine_case_read(arena, profile, source, given, &out->engine, error);
    return status ? status : read_steps(&reading, given);
}

int moon_async_act(struct moon_rig *rig, const struct moon_async_action *action, struct moon_error *error) {
    switch (action->kind) {
    case MOON_ASYNC_ADD:
        return moon_rig_add(rig, action->slot, &action->prompt, action->max_tokens, false, error);
    case MOON_ASYNC_ABORT:
        moon_rig_abort(rig, action->slot);
        return 0;
    case MOON_ASYNC_ANSWERS:
        return moon_rig_answer(rig, action->count, error);
    case MOON_ASYNC_RESET:
        moon_rig_reset(rig);
        return 0;
    }
    return 0;
}
