/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save: what each rank checks and puts in the steps of some requests. */
#include "conformance/suites/save.h"

#include "conformance/suites/refusal.h"
#include "conformance/suites/save_run.h"

/* Builds the answer while the case runs. */
struct answering {
    struct moon_save_observer observer;
    struct moon_arena *arena;
    const struct moon_save_case *its;
    struct moon_json *steps, *ranks, *errors; /* ranks: of the present step; NULL until one calls the store */
    struct moon_text text;                    /* scratch */
};

static struct answering *answering(struct moon_save_observer *observer) {
    return (struct answering *)observer;
}

/* A string of the scratch text, which is then empty. */
static struct moon_json *take_text(struct answering *self) {
    struct moon_json *string =
        self->text.failed ? NULL : moon_json_bytes(self->arena, moon_text_value(&self->text), self->text.length);
    moon_text_clear(&self->text);
    return string;
}

static void began(struct moon_save_observer *observer, size_t step) {
    (void)step;
    answering(observer)->ranks = NULL;
}

/* The entry of every rank, made when the first of them calls the store. */
static struct moon_json *open_ranks(struct answering *self) {
    struct moon_json *ranks = moon_json_push(self->steps, moon_json_array(self->arena));
    for (int64_t i = 0; i < moon_world_size(&self->its->its.engine.model); i++) {
        struct moon_json *rank = moon_json_push(ranks, moon_json_object(self->arena));
        moon_json_set(self->arena, rank, "rank", moon_json_int(self->arena, i));
        moon_json_set(self->arena, rank, "exist_check_sizes", moon_json_array(self->arena));
        moon_json_set(self->arena, rank, "puts", moon_json_array(self->arena));
    }
    return ranks;
}

static struct moon_json *put_entry(struct answering *self, const struct moon_store_call *call, const int64_t *results) {
    struct moon_json *put = moon_json_object(self->arena);
    struct moon_json *keys = moon_json_set(self->arena, put, "keys", moon_json_array(self->arena));
    struct moon_json *blocks = moon_json_set(self->arena, put, "source_blocks", moon_json_array(self->arena));
    struct moon_json *codes = moon_json_set(self->arena, put, "results", moon_json_array(self->arena));
    struct moon_json *groups =
        call->groups ? moon_json_set(self->arena, put, "group_ids", moon_json_array(self->arena)) : NULL;
    for (size_t i = 0; i < call->count; i++) {
        moon_key_list_write(call->keys, call->first + i, &self->text);
        moon_json_push(keys, take_text(self));
        moon_json_push(blocks, moon_json_uint(self->arena, call->blocks[i]));
        moon_json_push(codes, moon_json_int(self->arena, results[i]));
        if (call->groups)
            moon_json_push(groups, moon_json_bytes(self->arena, call->groups[i].bytes, call->groups[i].length));
    }
    return put;
}

static void called(struct moon_save_observer *observer, int64_t rank, const struct moon_store_call *call,
                   const int64_t *results) {
    struct answering *self = answering(observer);
    if (!self->ranks)
        self->ranks = open_ranks(self);
    struct moon_json *entry = moon_json_at(self->ranks, (size_t)rank);
    if (call->kind == MOON_CALL_EXIST)
        moon_json_push(moon_json_member(entry, "exist_check_sizes"), moon_json_int(self->arena, (int64_t)call->count));
    else
        moon_json_push(moon_json_member(entry, "puts"), put_entry(self, call, results));
}

static void raised(struct moon_save_observer *observer, int64_t rank, const struct moon_error *error) {
    struct answering *self = answering(observer);
    (void)rank;
    if (!self->errors)
        self->errors = moon_json_array(self->arena);
    moon_text_format(&self->text, "%s: %s", error->type, error->message);
    moon_json_push(self->errors, take_text(self));
}

static void ended(struct moon_save_observer *observer) {
    struct answering *self = answering(observer);
    if (!self->ranks)
        moon_json_push(self->steps, moon_json_array(self->arena));
}

static int run(struct moon_arena *arena, struct moon_save_case *its, struct moon_json *built,
               struct moon_error *error) {
    const struct moon_layout_model *model = &its->its.engine.model;
    struct moon_save_outcome outcome;
    struct answering self = {
        .observer = {.began = began, .called = called, .raised = raised, .ended = ended}, .arena = arena, .its = its};
    moon_json_set(arena, built, "scheduler_block_size", moon_json_int(arena, model->scheduler_block_tokens));
    moon_json_set(arena, built, "hash_block_size", moon_json_int(arena, model->hash_block_tokens));
    self.steps = moon_json_set(arena, built, "steps", moon_json_array(arena));
    moon_text_open(&self.text, arena->memory);
    int status = moon_save_run(arena, its, &self.observer, &outcome, error);
    moon_text_close(&self.text);
    if (status)
        return status;
    if (self.errors)
        moon_json_set(arena, built, "worker_errors", self.errors);
    if (its->its.connector.profile->job_references)
        moon_json_set(arena, built, "unreleased_store_jobs", moon_json_int(arena, (int64_t)outcome.unreleased_jobs));
    moon_json_set(arena, built, "stored_keys_total", moon_json_int(arena, (int64_t)outcome.stored_keys));
    return 0;
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    struct moon_save_case its;
    struct moon_error failure = {0};
    struct moon_json *built = moon_json_object(arena);
    int status = moon_save_case_read(arena, profile, source, given, &its, &failure);
    its.its.connector.notes = moon_suite_notes(world);
    if (!status)
        status = run(arena, &its, built, &failure);
    return moon_suite_end(arena, status, built, &failure, result, error);
}

const struct moon_suite moon_suite_save = {"save", answer, moon_save_explain, moon_save_draw, NULL};
