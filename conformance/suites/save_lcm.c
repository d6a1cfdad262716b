/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save-lcm: one request decoded to its end, and the keys that each rank checks, puts and gets. */
#include "conformance/suites/save_lcm_case.h"

#include "conformance/suites/engine_report.h"
#include "conformance/suites/refusal.h"
#include "ref/layout/lookup.h"

#include <stdlib.h>
#include <string.h>

/* A case under way. */
struct run {
    struct moon_rig_observer observer; /* first member */
    struct moon_arena *arena;
    const struct moon_lcm_case *its;
    struct moon_rig *rig;
    struct moon_engine_report report; /* of the present step */
};

static const char *const request_name = "r1"; /* of the one request */

static void called(struct moon_rig_observer *self, int64_t rank, const struct moon_store_call *call,
                   const int64_t *values) {
    struct run *run = (struct run *)self;
    moon_engine_report_call(&run->report, rank, call, values);
}

/* ---- the layout ---- */

static void tell_prefixes(struct run *run, struct moon_json *built) {
    const struct moon_connector *connector = &run->its->engine.its.connector;
    struct moon_json *list = moon_json_set(run->arena, built, "lookup_prefixes", moon_json_array(run->arena));
    struct moon_namespaces walk;
    struct moon_pool_key key;
    moon_namespaces_open(&walk, connector->profile, connector->model, &connector->selection, 0);
    while (moon_namespaces_next(&walk, &key)) {
        struct moon_text *text = &run->report.key;
        moon_text_clear(text);
        moon_key_prefix(connector->profile, &key, text);
        moon_json_push(list, text->failed ? NULL : moon_json_bytes(run->arena, moon_text_value(text), text->length));
    }
}

static void tell_layout(struct run *run, struct moon_json *built) {
    const struct moon_store_selection *selection = &run->its->engine.its.connector.selection;
    const char *layout = selection->space.format == MOON_STORE_SHARDED_LBHNC   ? "LBHNCStoreLayout"
                         : selection->space.format == MOON_STORE_SHARDED_LBNHC ? "LBNHCStoreLayout"
                                                                               : "RankLocalStoreLayout";
    moon_json_set(run->arena, built, "store_tp_size",
                  moon_store_sharded(selection) ? moon_json_int(run->arena, selection->space.store_tp)
                                                : moon_json_null(run->arena));
    moon_json_set(run->arena, built, "namespace", moon_json_string(run->arena, selection->text));
    tell_prefixes(run, built);
    moon_json_set(run->arena, built, "layout", moon_json_string(run->arena, layout));
}

/* ---- steps ---- */

/* Order of two lists of keys, as Python sorts them. */
static int compare_checks(const void *a, const void *b) {
    const struct moon_json *left = moon_json_member(*(struct moon_json *const *)a, "keys")->first;
    const struct moon_json *right = moon_json_member(*(struct moon_json *const *)b, "keys")->first;
    while (left && right && strcmp(left->bytes, right->bytes) == 0) {
        left = left->next;
        right = right->next;
    }
    return !left || !right ? (left != NULL) - (right != NULL) : strcmp(left->bytes, right->bytes);
}

/* The checks of a step sorted by their keys: threads of several ranks make them in any order. */
static struct moon_json *sorted_checks(struct run *run, const struct moon_json *checks) {
    struct moon_json *list = moon_json_array(run->arena);
    const struct moon_json **rows = moon_arena_array(run->arena, checks->count, sizeof *rows);
    if (!rows || moon_json_broken(checks))
        return NULL;
    for (const struct moon_json *each = checks->first; each; each = each->next)
        rows[each->index] = each;
    qsort(rows, checks->count, sizeof *rows, compare_checks);
    for (size_t i = 0; i < checks->count; i++)
        moon_json_push(list, moon_json_clone(run->arena, rows[i]));
    return list;
}

static int run_step(struct run *run, int64_t number, struct moon_json *steps, struct moon_error *error) {
    struct moon_arena *arena = run->arena;
    struct moon_core_step planned;
    struct moon_json *checks = run->report.checks = moon_json_array(arena);
    run->report.puts = moon_json_array(arena);
    run->report.gets = moon_json_array(arena);
    if (!checks || !run->report.puts || !run->report.gets)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    int status = moon_rig_step(run->rig, &planned, error);
    if (status || checks->count + run->report.puts->count + run->report.gets->count == 0)
        return status;
    struct moon_json *row = moon_json_push(steps, moon_json_object(arena));
    moon_json_set(arena, row, "step", moon_json_int(arena, number));
    moon_json_set(arena, row, "puts", run->report.puts);
    moon_json_set(arena, row, "exist_checks", sorted_checks(run, checks));
    struct moon_json *scheduled = moon_json_set(arena, row, "scheduled", moon_json_object(arena));
    for (size_t i = 0; i < planned.scheduled_count; i++)
        moon_json_set(arena, scheduled, request_name, moon_json_int(arena, planned.scheduled[i].tokens));
    moon_json_set(arena, row, "gets", run->report.gets);
    return 0;
}

/* ---- the case ---- */

static int run_case(struct run *run, struct moon_json *built, struct moon_error *error) {
    struct moon_arena *arena = run->arena;
    tell_layout(run, built);
    int status = moon_rig_open(&run->rig, arena, &run->its->engine, false, &run->observer, error);
    if (!status)
        status = moon_rig_add(run->rig, 0, &run->its->prompt, run->its->max_tokens, run->its->delivered, error);
    struct moon_json *steps = moon_json_array(arena);
    for (int64_t i = 0; i < run->its->step_count && !status; i++)
        status = run_step(run, i, steps, error);
    if (status)
        return status;
    moon_json_set(arena, built, "block_hashes",
                  moon_engine_hashes(arena, &moon_core_find(moon_rig_core(run->rig), 0)->request.hashes));
    moon_json_set(arena, built, "steps_with_store_calls", steps);
    moon_json_set(arena, built, "stored_keys_total", moon_json_uint(arena, moon_rig_stored_keys(run->rig)));
    moon_json_set(arena, built, "wrong_bytes", moon_json_uint(arena, moon_rig_wrong_bytes(run->rig)));
    return 0;
}

int moon_lcm_answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                    const char *source, const struct moon_json *given, struct moon_json **result,
                    struct moon_error *error) {
    (void)world; /* the hash seed is fixed */
    struct moon_error failure = {0};
    struct moon_json *built = NULL;
    struct moon_lcm_case *its = moon_arena_alloc(arena, sizeof *its);
    if (!its)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    int status = moon_lcm_case_read(arena, profile, source, given, its, &failure);
    if (!status) {
        struct run run = {.observer = {.called = called}, .arena = arena, .its = its, .report = {.arena = arena}};
        built = moon_json_object(arena);
        moon_engine_report_open(&run.report);
        status = run_case(&run, built, &failure);
        if (status)
            moon_engine_name_request(&failure, &request_name, 1);
        moon_engine_report_close(&run.report);
        moon_rig_close(run.rig);
    }
    return moon_suite_end(arena, status, built, &failure, result, error);
}

const struct moon_suite moon_suite_save_lcm = {"save-lcm", moon_lcm_answer, moon_lcm_explain, moon_lcm_draw, NULL};
