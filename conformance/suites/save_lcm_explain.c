/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save-lcm: the layout, and each step with calls to the store, in words with their rules. */
#include "conformance/suites/save_lcm_case.h"

#include "conformance/suites/engine_report.h"
#include "conformance/suites/refusal.h"

#include <inttypes.h>

static void tell_layout(const struct moon_lcm_case *its, struct moon_text *out) {
    const struct moon_connector *connector = &its->engine.its.connector;
    const struct moon_store_selection *selection = &connector->selection;
    moon_text_format(out, "%s as %s: store TP: %s", connector->profile->name, its->engine.its.engine.kv_role,
                     moon_store_tp_source_text(selection->store_tp.source));
    if (selection->store_tp.known)
        moon_text_format(out, ": %" PRId64, selection->store_tp.size);
    moon_text_format(out, " (LCM-005); namespace \"%s\"", selection->text);
    if (selection->refusal != MOON_REFUSAL_NONE)
        moon_text_format(out, " because %s (LCM-004)", moon_store_refusal_text(selection->refusal));
    moon_text_format(
        out, "\n%zu prompt tokens%s, at most %" PRId64 " of output; prompt blocks are put %s (%s), %s\n",
        its->prompt.count, its->delivered ? " that another connector brings (LCM-002)" : "", its->max_tokens,
        connector->saves_prefill  ? "when they are computed"
        : connector->saves_decode ? "in the first decode step"
                                  : "never",
        connector->saves_prefill || !connector->saves_decode ? "LCM-007" : "LCM-001",
        connector->saves_decode ? "decode blocks when they are full (LCM-008)" : "decode blocks never (LCM-007)");
}

static void tell_checks(const struct moon_json *checks, struct moon_text *out) {
    for (const struct moon_json *check = checks->first; check; check = check->next) {
        const struct moon_json *present = moon_json_member(check, "present");
        size_t there = 0;
        for (const struct moon_json *one = present->first; one; one = one->next)
            there += one->integer == 1;
        moon_text_format(out, "  a rank checks %zu keys from %s on: %zu are there and left alone (LCM-003)\n",
                         present->count, moon_json_member(check, "keys")->first->bytes, there);
    }
}

/* The rule of a step's puts: after the first step that puts, single tokens fill decode blocks. */
static const char *put_rule(const struct moon_lcm_case *its, const struct moon_json *row, bool first) {
    const struct moon_connector *connector = &its->engine.its.connector;
    const struct moon_json *scheduled = moon_json_member(row, "scheduled")->first;
    if (connector->selection.space.format == MOON_STORE_MQA)
        return "LCM-006";
    if (!first && connector->saves_decode && scheduled && scheduled->integer == 1)
        return "LCM-008";
    return connector->saves_prefill ? "LCM-007" : its->delivered ? "LCM-002" : "LCM-001";
}

static void tell_step(const struct moon_json *row, const char *rule, struct moon_text *out) {
    moon_text_format(out, "step %" PRId64 "\n", moon_json_member(row, "step")->integer);
    for (const struct moon_json *one = moon_json_member(row, "scheduled")->first; one; one = one->next)
        moon_text_format(out, "  computes %" PRId64 " tokens\n", one->integer);
    tell_checks(moon_json_member(row, "exist_checks"), out);
    moon_engine_explain_calls(moon_json_member(row, "gets"), moon_json_member(row, "puts"), "ENGINE-006", rule, out);
}

static void tell(const struct moon_lcm_case *its, const struct moon_json *result, struct moon_text *out) {
    bool first = true;
    tell_layout(its, out);
    for (const struct moon_json *row = moon_json_member(result, "steps_with_store_calls")->first; row;
         row = row->next) {
        tell_step(row, put_rule(its, row, first), out);
        first = first && moon_json_member(row, "puts")->count == 0;
    }
    moon_text_format(out,
                     "all other steps call the store for lookups at most: no block fills in them\n"
                     "in the end: %" PRId64 " keys stored, %" PRId64 " wrong bytes (ENGINE-015)\n",
                     moon_json_member(result, "stored_keys_total")->integer,
                     moon_json_member(result, "wrong_bytes")->integer);
}

int moon_lcm_explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                     const char *source, const struct moon_json *given, struct moon_text *out,
                     struct moon_error *error) {
    struct moon_lcm_case *its = moon_arena_alloc(arena, sizeof *its);
    struct moon_json *result = NULL;
    int status = moon_lcm_answer(world, arena, profile, source, given, &result, error);
    if (status)
        return status;
    if (!moon_exception_explain(profile, result, out)) {
        if (!its || moon_lcm_case_read(arena, profile, source, given, its, error))
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
        tell(its, result, out);
    }
    return out->failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : 0;
}
