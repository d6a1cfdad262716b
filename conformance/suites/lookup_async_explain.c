/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup-async: each step in words, with its rules. */
#include "conformance/suites/lookup_async_case.h"

#include "conformance/suites/engine_report.h"
#include "conformance/suites/refusal.h"

#include <inttypes.h>

static void tell_engine(const struct moon_async_case *its, struct moon_text *out) {
    const struct moon_connector *connector = &its->engine.its.connector;
    const char *lookups = !connector->options.enable_lookup  ? "no lookups (ENGINE-010)"
                          : !connector->options.lookup_async ? "lookups that the core waits for (ENGINE-010)"
                          : its->holds ? "lookups beside the steps, answered when a step says so (ENGINE-009)"
                                       : "lookups beside the steps, answered after the step (ENGINE-009)";
    moon_text_format(out, "%s as %s: %zu blocks beside the null block (ENGINE-001), %" PRId64 " tokens a step; %s\n",
                     connector->profile->name, its->engine.its.engine.kv_role, its->engine.block_count - 1,
                     its->engine.step_tokens, lookups);
}

static void tell_action(const struct moon_async_case *its, const struct moon_async_action *action,
                        struct moon_text *out) {
    switch (action->kind) {
    case MOON_ASYNC_ADD:
        moon_text_format(out, "  %s comes: %zu tokens, at most %" PRId64 " of output\n", its->names[action->slot],
                         action->prompt.count, action->max_tokens);
        break;
    case MOON_ASYNC_ABORT:
        moon_text_format(out, "  %s is aborted, unless it has ended (ENGINE-008)\n", its->names[action->slot]);
        break;
    case MOON_ASYNC_ANSWERS:
        moon_text_format(out,
                         "  lookups that get their answer, in the order of their questions: %" PRId64 " (ENGINE-009)\n",
                         action->count);
        break;
    case MOON_ASYNC_RESET:
        moon_text_string(out, "  the local prefix cache is emptied, if no block is held (ENGINE-002)\n");
        break;
    }
}

static void tell_question(const struct moon_json *row, struct moon_text *out) {
    const struct moon_json *result = moon_json_member(row, "result");
    moon_text_format(out, "  asks for %s: %" PRId64 " tokens, %" PRId64 " of them here (ENGINE-003): ",
                     moon_json_member(row, "req")->bytes, moon_json_member(row, "num_tokens")->integer,
                     moon_json_member(row, "num_computed")->integer);
    if (result->type == MOON_JSON_NULL)
        moon_text_string(out, "pending, asked again in the next step (ENGINE-009)\n");
    else if (result->integer == 0)
        moon_text_string(out, "nothing to load\n");
    else
        moon_text_format(out, "%" PRId64 " tokens to load%s (ENGINE-006)\n", result->integer,
                         moon_json_member(row, "load_async")->boolean ? " while it waits" : "");
}

/* What the requests are after the step. */
static void tell_after(const struct moon_json *row, struct moon_text *out) {
    const struct moon_json *computed = moon_json_member(row, "computed_after")->first;
    const struct moon_json *output = moon_json_member(row, "output_after")->first;
    for (const struct moon_json *one = moon_json_member(row, "status_after")->first; one; one = one->next) {
        moon_text_format(out, "  then %s: %s, %" PRId64 " tokens computed, %" PRId64 " put out\n", one->name,
                         one->bytes, computed->integer, output->integer);
        computed = computed->next;
        output = output->next;
    }
}

static void tell_step(const struct moon_async_case *its, const struct moon_json *row, struct moon_text *out) {
    const struct moon_async_step *step = &its->steps[row->index];
    moon_text_format(out, "step %zu\n", row->index);
    for (size_t i = 0; i < step->count; i++)
        tell_action(its, &step->actions[i], out);
    for (const struct moon_json *one = moon_json_member(row, "preempted")->first; one; one = one->next)
        moon_text_format(out, "  preempts %s: a request before it needs its blocks (ENGINE-004)\n", one->bytes);
    for (const struct moon_json *one = moon_json_member(row, "lookups")->first; one; one = one->next)
        tell_question(one, out);
    for (const struct moon_json *one = moon_json_member(row, "scheduled")->first; one; one = one->next)
        moon_text_format(out, "  computes %" PRId64 " tokens of %s (ENGINE-004)\n", one->integer, one->name);
    for (const struct moon_json *one = moon_json_member(row, "lookup_exist_calls")->first; one; one = one->next)
        moon_text_format(out, "  the worker of rank 0 asks the store for %" PRId64 " keys (ENGINE-009)\n",
                         one->integer);
    moon_engine_explain_calls(moon_json_member(row, "gets"), moon_json_member(row, "puts"), "ENGINE-006",
                              its->engine.its.connector.saves_decode ? "LCM-008" : "LCM-007", out);
    tell_after(row, out);
}

int moon_async_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                       const struct moon_profile *profile, const char *source, const struct moon_json *given,
                       struct moon_text *out, struct moon_error *error) {
    struct moon_async_case *its = moon_arena_alloc(arena, sizeof *its);
    struct moon_json *result = NULL;
    int status = moon_async_answer(world, arena, profile, source, given, &result, error);
    if (status)
        return status;
    if (!moon_exception_explain(profile, result, out)) {
        if (!its || moon_async_case_read(arena, profile, source, given, its, error))
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
        tell_engine(its, out);
        for (const struct moon_json *row = moon_json_member(result, "steps")->first; row; row = row->next)
            tell_step(its, row, out);
        moon_text_format(out, "in the end: %" PRId64 " keys stored, %" PRId64 " wrong bytes (ENGINE-015)\n",
                         moon_json_member(result, "stored_keys_total")->integer,
                         moon_json_member(result, "wrong_bytes")->integer);
    }
    return out->failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : 0;
}
