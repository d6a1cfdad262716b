/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save-lcm: reading a case. */
#include "conformance/suites/save_lcm_case.h"

int moon_lcm_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                       const struct moon_json *given, struct moon_lcm_case *out, struct moon_error *error) {
    static const char *const names[] = {MOON_ENGINE_CASE_MEMBERS, "prompt",    "max_tokens",
                                        "delivered_out_of_band",  "num_steps", NULL};
    *out = (struct moon_lcm_case){.max_tokens = 1};
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = moon_engine_case_read(arena, profile, source, given, &out->engine, error);
    if (!status)
        status = moon_engine_prompt_read(arena, source, given, &out->prompt, error);
    if (!status)
        status = moon_json_get_int(source, given, "max_tokens", false, 1, MOON_ENGINE_CASE_OUTPUT_MAX, &out->max_tokens,
                                   error);
    if (!status)
        status = moon_json_get_bool(source, given, "delivered_out_of_band", false, &out->delivered, error);
    out->step_count = out->max_tokens + 3;
    if (!status)
        status = moon_json_get_int(source, given, "num_steps", false, 0, MOON_ENGINE_CASE_STEPS_MAX, &out->step_count,
                                   error);
    if (!status && out->delivered && !out->engine.behind_multi)
        status = moon_json_fail(error, MOON_ERR_RANGE, source, moon_json_member(given, "delivered_out_of_band"),
                                "a prompt is delivered by a connector behind a MultiConnector, and there is none");
    return status;
}
