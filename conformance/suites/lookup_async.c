/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup-async: an engine, step by step: what it asks, schedules, loads and saves. */
#include "conformance/suites/lookup_async_case.h"

#include "conformance/suites/engine_report.h"
#include "conformance/suites/refusal.h"

#include <stdlib.h>
#include <string.h>

/* A case under way. */
struct run {
    struct moon_rig_observer observer; /* first member */
    struct moon_arena *arena;
    const struct moon_async_case *its;
    struct moon_rig *rig;
    struct moon_json *lookups, *exist_calls;
    struct moon_engine_report report; /* gets and puts of the present step */
};

/* ---- what happens in a step ---- */

static void asked(struct moon_rig_observer *self, const struct moon_request *request, int64_t computed_tokens,
                  const struct moon_engine_match *match) {
    struct run *run = (struct run *)self;
    struct moon_arena *arena = run->arena;
    struct moon_json *row = moon_json_push(run->lookups, moon_json_object(arena));
    moon_json_set(arena, row, "req", moon_json_string(arena, run->its->names[request->slot]));
    moon_json_set(arena, row, "num_tokens", moon_json_int(arena, request->known_tokens));
    moon_json_set(arena, row, "num_computed", moon_json_int(arena, computed_tokens));
    moon_json_set(arena, row, "result", match->pending ? moon_json_null(arena) : moon_json_int(arena, match->tokens));
    moon_json_set(arena, row, "load_async", moon_json_bool(arena, match->load_async && match->tokens > 0));
}

static void looked_up(struct moon_rig_observer *self, size_t keys) {
    struct run *run = (struct run *)self;
    moon_json_push(run->exist_calls, moon_json_uint(run->arena, keys));
}

static void called(struct moon_rig_observer *self, int64_t rank, const struct moon_store_call *call,
                   const int64_t *values) {
    struct run *run = (struct run *)self;
    moon_engine_report_call(&run->report, rank, call, values);
}

/* ---- what is so after a step ---- */

static void tell_requests(struct run *run, struct moon_json *row) {
    struct moon_arena *arena = run->arena;
    struct moon_json *status = moon_json_set(arena, row, "status_after", moon_json_object(arena));
    struct moon_json *computed = moon_json_set(arena, row, "computed_after", moon_json_object(arena));
    struct moon_json *output = moon_json_set(arena, row, "output_after", moon_json_object(arena));
    for (uint32_t slot = 0; slot < run->its->name_count; slot++) {
        const struct moon_core_request *request = moon_core_find(moon_rig_core(run->rig), slot);
        const char *name = run->its->names[slot];
        if (!request) /* it comes in a later step */
            break;
        moon_json_set(arena, status, name, moon_json_string(arena, moon_request_status_name(request->status)));
        moon_json_set(arena, computed, name, moon_json_int(arena, request->computed_tokens));
        moon_json_set(arena, output, name,
                      moon_json_int(arena, request->request.known_tokens - request->request.prompt_tokens));
    }
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A release keeps them in a set: they are told in the order of their names. */
static void tell_preempted(const struct run *run, const struct moon_core_step *planned, struct moon_json *list) {
    const char *names[MOON_ENGINE_CASE_RUNNING_MAX] = {0};
    for (size_t i = 0; i < planned->preempted_count; i++)
        names[i] = run->its->names[planned->preempted[i]];
    qsort(names, planned->preempted_count, sizeof *names, compare_names);
    for (size_t i = 0; i < planned->preempted_count; i++)
        moon_json_push(list, moon_json_string(run->arena, names[i]));
}

static int run_step(struct run *run, const struct moon_async_step *step, struct moon_json *steps,
                    struct moon_error *error) {
    struct moon_arena *arena = run->arena;
    struct moon_core_step planned;
    struct moon_json *row = moon_json_push(steps, moon_json_object(arena));
    run->lookups = moon_json_set(arena, row, "lookups", moon_json_array(arena));
    struct moon_json *scheduled = moon_json_set(arena, row, "scheduled", moon_json_object(arena));
    struct moon_json *preempted = moon_json_set(arena, row, "preempted", moon_json_array(arena));
    run->exist_calls = moon_json_set(arena, row, "lookup_exist_calls", moon_json_array(arena));
    run->report.gets = moon_json_set(arena, row, "gets", moon_json_array(arena));
    run->report.puts = moon_json_set(arena, row, "puts", moon_json_array(arena));
    int status = 0;
    for (size_t i = 0; i < step->count && !status; i++)
        status = moon_async_act(run->rig, &step->actions[i], error);
    if (!status)
        status = moon_rig_step(run->rig, &planned, error);
    if (status)
        return status;
    for (size_t i = 0; i < planned.scheduled_count; i++)
        moon_json_set(arena, scheduled, run->its->names[planned.scheduled[i].slot],
                      moon_json_int(arena, planned.scheduled[i].tokens));
    tell_preempted(run, &planned, preempted);
    tell_requests(run, row);
    return 0;
}

/* ---- the case ---- */

static bool step_aborts(const struct moon_async_step *step) {
    for (size_t i = 0; i < step->count; i++)
        if (step->actions[i].kind == MOON_ASYNC_ABORT)
            return true;
    return false;
}

static int run_case(struct run *run, struct moon_json *built, struct moon_error *error) {
    struct moon_arena *arena = run->arena;
    struct moon_json *hashes = moon_json_set(arena, built, "block_hashes", moon_json_object(arena));
    struct moon_json *steps = moon_json_set(arena, built, "steps", moon_json_array(arena));
    size_t futures = 0;
    int status = moon_rig_open(&run->rig, arena, &run->its->engine, run->its->holds, &run->observer, error);
    for (size_t i = 0; i < run->its->step_count && !status; i++) {
        status = run_step(run, &run->its->steps[i], steps, error);
        if (!status && step_aborts(&run->its->steps[i]))
            futures = moon_rig_futures(run->rig);
    }
    if (status)
        return status;
    for (uint32_t slot = 0; slot < run->its->name_count; slot++)
        moon_json_set(arena, hashes, run->its->names[slot],
                      moon_engine_hashes(arena, &moon_core_find(moon_rig_core(run->rig), slot)->request.hashes));
    moon_json_set(arena, built, "stored_keys_total", moon_json_uint(arena, moon_rig_stored_keys(run->rig)));
    moon_json_set(arena, built, "wrong_bytes", moon_json_uint(arena, moon_rig_wrong_bytes(run->rig)));
    if (run->its->aborts) {
        moon_json_set(arena, built, "futures_after_abort", moon_json_uint(arena, futures));
        moon_json_set(arena, built, "lookups_that_reached_the_store",
                      moon_json_uint(arena, moon_rig_asked_store(run->rig)));
    }
    return 0;
}

int moon_async_answer(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_json **result, struct moon_error *error) {
    (void)world; /* the hash seed is fixed */
    struct moon_error failure = {0};
    struct moon_json *built = NULL;
    struct moon_async_case *its = moon_arena_alloc(arena, sizeof *its);
    if (!its)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    int status = moon_async_case_read(arena, profile, source, given, its, &failure);
    if (!status) {
        struct run run = {
            .observer = {asked, looked_up, called}, .arena = arena, .its = its, .report = {.arena = arena}};
        built = moon_json_object(arena);
        moon_engine_report_open(&run.report);
        status = run_case(&run, built, &failure);
        if (status)
            moon_engine_name_request(&failure, its->names, its->name_count);
        moon_engine_report_close(&run.report);
        moon_rig_close(run.rig);
    }
    return moon_suite_end(arena, status, built, &failure, result, error);
}

static const char *const optional[] = {"futures_after_abort", "lookups_that_reached_the_store", NULL};

const struct moon_suite moon_suite_lookup_async = {"lookup-async", moon_async_answer, moon_async_explain,
                                                   moon_async_draw, optional};
