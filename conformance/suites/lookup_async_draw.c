/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup-async: random engines, and steps that are chosen while the engine runs, so that they meet what it does.
 */
#include "conformance/suites/lookup_async_case.h"

#include "conformance/suites/engine_case_draw.h"

enum { REQUESTS_MAX = 6, STEPS_MAX = 70, BUSY_STEPS = 30, FAMILIES = 3, PROMPT_MAX = 110 };

/* A case under way: what is given so far, and the engine that has run it. */
struct drawing {
    struct moon_engine_drawing base;
    struct moon_async_case its;
    struct moon_rig_observer observer;
    struct moon_rig *rig;
    struct moon_json *steps;
    bool holds;
    uint64_t families[REQUESTS_MAX];
};

/* ---- the engine ---- */

static void draw_options(struct drawing *drawing) {
    static const uint64_t step_tokens[] = {20, 48, 64, 100, 256, 256};
    static const uint64_t blocks[] = {5, 8, 10, 12, 14, 20, 40, 96};
    const struct moon_engine_drawing *base = &drawing->base;
    bool async = moon_draw_chance(base, 80);
    moon_draw_bool(base, base->extra, "lookup_async", async);
    if (moon_draw_chance(base, 4))
        moon_draw_bool(base, base->extra, "enable_lookup", false);
    if (moon_draw_chance(base, 40))
        moon_draw_bool(base, base->extra, "save_decode_cache", moon_draw_chance(base, 90));
    moon_draw_int(base, base->given, "num_gpu_blocks", blocks[moon_draw_below(base, 8)]);
    moon_draw_int(base, base->given, "max_tokens_per_step", step_tokens[moon_draw_below(base, 6)]);
    moon_draw_bool(base, base->given, "behind_multi_connector", moon_draw_chance(base, 15));
    if (moon_draw_chance(base, 5))
        moon_draw_bool(base, base->given, "exist_raises", true);
    drawing->holds = async && moon_draw_chance(base, 60);
}

/* What others have stored of each family's longest prompt: a first engine hashes them. */
static int draw_store(struct drawing *drawing, struct moon_error *error) {
    const struct moon_engine_drawing *base = &drawing->base;
    struct moon_rig *rig = NULL;
    struct moon_json *stored = moon_json_array(base->arena);
    int status = moon_engine_case_read(base->arena, base->profile, "drawn", base->given, &drawing->its.engine, error);
    if (!status)
        status = moon_rig_open(&rig, base->arena, &drawing->its.engine, false, &drawing->observer, error);
    for (uint32_t family = 0; family < FAMILIES && !status; family++) {
        struct moon_json *rule = moon_json_object(base->arena);
        struct moon_engine_prompt prompt;
        moon_draw_prompt(base, rule, family, PROMPT_MAX);
        status = moon_engine_prompt_read(base->arena, "drawn", rule, &prompt, error);
        if (!status)
            status = moon_rig_add(rig, family, &prompt, 1, false, error);
        if (!status)
            moon_draw_stored(base, moon_rig_connector(rig), &moon_core_find(moon_rig_core(rig), family)->request.hashes,
                             stored);
    }
    moon_rig_close(rig);
    moon_json_set(base->arena, base->given, "stored_before", stored);
    return status;
}

/* ---- steps ---- */

static struct moon_json *new_action(struct drawing *drawing, struct moon_json *list) {
    return moon_json_push(list, moon_json_object(drawing->base.arena));
}

/* Lengths at the edges of blocks as often as others. */
static uint64_t draw_length(const struct drawing *drawing) {
    const struct moon_engine_drawing *base = &drawing->base;
    uint64_t block = (uint64_t)drawing->its.engine.its.engine.model.groups[0].block_tokens;
    uint64_t length = 1 + moon_draw_below(base, PROMPT_MAX);
    if (moon_draw_chance(base, 50))
        length = length / block * block + moon_draw_below(base, 3);
    return length < 1 ? 1 : length > PROMPT_MAX ? PROMPT_MAX : length;
}

static void draw_add(struct drawing *drawing, struct moon_json *list) {
    static const char *const names[] = {"r1", "r2", "r3", "r4", "r5", "r6"};
    const struct moon_engine_drawing *base = &drawing->base;
    struct moon_json *action = new_action(drawing, list);
    moon_draw_text(base, action, "add", names[drawing->its.name_count]);
    moon_draw_prompt(base, action, moon_draw_below(base, FAMILIES), draw_length(drawing));
    moon_draw_int(base, action, "max_tokens",
                  moon_draw_chance(base, 50) ? 1 + moon_draw_below(base, 3) : 1 + moon_draw_below(base, 40));
}

/* An unfinished request's name, or NULL. */
static const char *draw_unfinished(const struct drawing *drawing) {
    uint32_t slot = (uint32_t)moon_draw_below(&drawing->base, REQUESTS_MAX);
    const struct moon_core_request *request = moon_core_find(moon_rig_core(drawing->rig), slot);
    return request && request->status < MOON_REQUEST_FINISHED_LENGTH_CAPPED ? drawing->its.names[slot] : NULL;
}

static void draw_actions(struct drawing *drawing, uint64_t number, struct moon_json *list) {
    const struct moon_engine_drawing *base = &drawing->base;
    const char *aborted = NULL;
    bool busy = number < BUSY_STEPS;
    uint64_t room = REQUESTS_MAX - drawing->its.name_count;
    if (busy && room > 0 && (number == 0 || moon_draw_chance(base, 20)))
        draw_add(drawing, list);
    else if (busy && moon_draw_chance(base, 4))
        aborted = draw_unfinished(drawing);
    if (aborted)
        moon_draw_text(base, new_action(drawing, list), "abort", aborted);
    if (moon_draw_chance(base, 3))
        moon_draw_bool(base, new_action(drawing, list), "reset_local_prefix_cache", true);
    if (drawing->holds && (!busy || moon_draw_chance(base, 45)) && moon_rig_waiting_lookups(drawing->rig) > 0)
        moon_draw_int(base, new_action(drawing, list), "lookup_answers", 1 + moon_draw_below(base, 2));
}

static bool all_ended(const struct drawing *drawing) {
    for (uint32_t slot = 0; slot < drawing->its.name_count; slot++) {
        const struct moon_core_request *request = moon_core_find(moon_rig_core(drawing->rig), slot);
        if (request && request->status < MOON_REQUEST_FINISHED_LENGTH_CAPPED)
            return false;
    }
    return true;
}

static int draw_step(struct drawing *drawing, uint64_t number, struct moon_error *error) {
    struct moon_json *list = moon_json_push(drawing->steps, moon_json_array(drawing->base.arena));
    struct moon_async_step step;
    struct moon_core_step planned;
    draw_actions(drawing, number, list);
    if (moon_json_broken(drawing->base.given))
        return MOON_ERR_MEMORY;
    int status = moon_async_step_read(drawing->base.arena, "drawn", list, &drawing->its, &step, error);
    for (size_t i = 0; i < step.count && !status; i++)
        status = moon_async_act(drawing->rig, &step.actions[i], error);
    return status ? status : moon_rig_step(drawing->rig, &planned, error);
}

static int draw_steps(struct drawing *drawing, struct moon_error *error) {
    const struct moon_engine_drawing *base = &drawing->base;
    drawing->steps = moon_json_set(base->arena, base->given, "steps", moon_json_array(base->arena));
    int status = moon_engine_case_read(base->arena, base->profile, "drawn", base->given, &drawing->its.engine, error);
    if (!status)
        status =
            moon_rig_open(&drawing->rig, base->arena, &drawing->its.engine, drawing->holds, &drawing->observer, error);
    for (uint64_t i = 0; i < STEPS_MAX && !status && (i < BUSY_STEPS || !all_ended(drawing)); i++)
        status = draw_step(drawing, i, error);
    if (status == MOON_ERR_REFUSED) /* the release raises here: the case ends with that */
        status = 0;
    if (!status && drawing->holds) { /* a script that never lets a lookup answer holds none */
        struct moon_json *last = moon_json_push(drawing->steps, moon_json_array(base->arena));
        moon_draw_int(base, new_action(drawing, last), "lookup_answers", 1);
    }
    moon_rig_close(drawing->rig);
    return status;
}

int moon_async_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                    struct moon_json **given) {
    struct drawing *drawing = moon_arena_alloc(arena, sizeof *drawing);
    struct moon_error error;
    if (!drawing)
        return MOON_ERR_MEMORY;
    drawing->base = (struct moon_engine_drawing){
        .arena = arena, .random = random, .profile = profile, .given = moon_json_object(arena)};
    moon_draw_engine(&drawing->base, 20);
    draw_options(drawing);
    if (moon_json_broken(drawing->base.given))
        return MOON_ERR_MEMORY;
    int status = draw_store(drawing, &error);
    if (!status && moon_json_broken(drawing->base.given))
        status = MOON_ERR_MEMORY;
    if (!status)
        status = draw_steps(drawing, &error);
    *given = drawing->base.given;
    return !status && moon_json_broken(*given) ? MOON_ERR_MEMORY : status;
}
