/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save-lcm: random engines, prompts and presence maps, with a preference for common store TPs and consumers. */
#include "conformance/suites/save_lcm_case.h"

#include "conformance/suites/engine_case_draw.h"

enum { PROMPT_MAX = 100, OUTPUT_MAX = 50 };

static uint64_t draw_length(const struct moon_engine_drawing *drawing) {
    uint64_t length = 1 + moon_draw_below(drawing, PROMPT_MAX);
    return moon_draw_chance(drawing, 50) ? length / 16 * 16 + 1 + moon_draw_below(drawing, 2) * 15 : length;
}

static void draw_request(const struct moon_engine_drawing *drawing) {
    static const uint64_t step_tokens[] = {20, 40, 256, 256};
    struct moon_json *given = drawing->given;
    uint64_t output = 1 + moon_draw_below(drawing, OUTPUT_MAX);
    bool multi = moon_draw_chance(drawing, 40);
    if (moon_draw_chance(drawing, 80))
        moon_draw_bool(drawing, drawing->extra, "save_decode_cache", moon_draw_chance(drawing, 90));
    if (moon_draw_chance(drawing, 20))
        moon_draw_bool(drawing, drawing->extra, "lookup_async", true);
    moon_draw_int(drawing, given, "num_gpu_blocks", moon_draw_chance(drawing, 15) ? 6 : 40);
    moon_draw_int(drawing, given, "max_tokens_per_step", step_tokens[moon_draw_below(drawing, 4)]);
    moon_draw_bool(drawing, given, "behind_multi_connector", multi);
    moon_draw_bool(drawing, given, "delivered_out_of_band", multi && moon_draw_chance(drawing, 70));
    moon_draw_prompt(drawing, given, moon_draw_below(drawing, 4), draw_length(drawing));
    moon_draw_int(drawing, given, "max_tokens", output);
    moon_draw_int(drawing, given, "num_steps", output + 2 + moon_draw_below(drawing, 10));
}

/* What others have stored of the prompt and of what follows it: a first engine decodes it on an empty store. */
static int draw_store(const struct moon_engine_drawing *drawing, struct moon_error *error) {
    struct moon_rig_observer nobody = {0};
    struct moon_rig *rig = NULL;
    struct moon_core_step planned;
    struct moon_json *stored = moon_json_array(drawing->arena);
    struct moon_lcm_case *its = moon_arena_alloc(drawing->arena, sizeof *its);
    int status = its ? moon_lcm_case_read(drawing->arena, drawing->profile, "drawn", drawing->given, its, error)
                     : MOON_ERR_MEMORY;
    if (!status)
        status = moon_rig_open(&rig, drawing->arena, &its->engine, false, &nobody, error);
    if (!status)
        status = moon_rig_add(rig, 0, &its->prompt, its->max_tokens, its->delivered, error);
    for (int64_t i = 0; !status && i < its->step_count; i++)
        status = moon_rig_step(rig, &planned, error);
    if (status == MOON_ERR_REFUSED) /* the release raises: the tokens until then will do */
        status = 0;
    if (!status)
        moon_draw_stored(drawing, moon_rig_connector(rig), &moon_core_find(moon_rig_core(rig), 0)->request.hashes,
                         stored);
    moon_rig_close(rig);
    moon_json_set(drawing->arena, drawing->given, "stored_before", stored);
    return status;
}

int moon_lcm_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                  struct moon_json **given) {
    struct moon_engine_drawing drawing = {
        .arena = arena, .random = random, .profile = profile, .given = moon_json_object(arena)};
    struct moon_error error;
    moon_draw_engine(&drawing, 80);
    draw_request(&drawing);
    *given = drawing.given;
    if (moon_json_broken(drawing.given))
        return MOON_ERR_MEMORY;
    int status = draw_store(&drawing, &error);
    return !status && moon_json_broken(drawing.given) ? MOON_ERR_MEMORY : status;
}
