/* SPDX-License-Identifier: Apache-2.0 */
/* Suite save in words: each step, its jobs and why there is one or none, and what each rank does with them. */
#include "conformance/suites/save.h"

#include "conformance/suites/refusal.h"
#include "conformance/suites/save_run.h"
#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <inttypes.h>
#include <string.h>

enum { RANKS_SHOWN_MAX = 8, KEYS_SHOWN_MAX = 16 };

/* What is known of a request to tell why it makes no job. */
struct known {
    int64_t tokens, prefill_end_tokens;
    bool saved; /* has a job in this step */
};

struct telling {
    struct moon_save_observer observer;
    const struct moon_save_case *its;
    const struct moon_profile *profile;
    struct moon_text *out;
    struct known *requests;
    const struct moon_save_step *step;
    const struct moon_step_jobs *jobs;
    int64_t present; /* rank that is told of in this step; -1: none yet */
    bool *called;    /* by rank */
    int64_t own;     /* chunks of the step's jobs that are the present rank's */
};

static struct telling *telling(struct moon_save_observer *observer) {
    return (struct telling *)observer;
}

static const char *name_of(const struct telling *self, uint32_t slot) {
    return self->its->requests[slot].place->name;
}

/* ---- the engine ---- */

static void tell_engine(const struct telling *self) {
    static const char *const roles[] = {"kv_producer", "kv_consumer", "kv_both"};
    const struct moon_connector *connector = &self->its->its.connector;
    const struct moon_layout_model *model = connector->model;
    moon_text_format(self->out, "%s (%s)\n", self->profile->name, self->profile->version);
    moon_text_format(self->out, "%s: %s (PLAN-001)%s\n", roles[connector->options.role],
                     connector->saves_prefill && connector->saves_decode ? "saves prefill and decode"
                     : connector->saves_prefill                          ? "saves prefill"
                     : connector->saves_decode                           ? "saves what is there when decode starts"
                                                                         : "saves nothing",
                     connector->capacity_only ? "; it only lends memory (PLAN-064)" : "");
    moon_text_format(
        self->out, "scheduler block %" PRId64 " tokens, hash block %" PRId64 "%s\nnamespace: \"%s\" (LAYOUT-004)\n",
        model->scheduler_block_tokens, model->hash_block_tokens,
        connector->fine_grained ? ", hits end at hash blocks (LAYOUT-024)" : "", connector->selection.text);
    for (size_t group = 0; group < model->group_count; group++)
        moon_text_format(self->out, "group %zu: block %" PRId64 " tokens, %" PRId64 " ranks hold the same bytes (%s)\n",
                         group, model->groups[group].block_tokens, moon_replication_factor(self->profile, model, group),
                         self->profile->replication == MOON_REPLICATION_GROUP ? "LAYOUT-011" : "LAYOUT-012");
}

/* ---- requests of a step ---- */

/* Why a scheduled request makes no save job. */
static const char *no_job(const struct telling *self, const struct moon_save_entry *entry, bool decode) {
    const struct moon_connector *connector = &self->its->its.connector;
    if (!connector->saves_prefill && !connector->saves_decode)
        return "this role saves nothing (PLAN-001)";
    if (decode && !connector->saves_decode)
        return "decode is not saved without save_decode_cache (PLAN-016)";
    if (!decode && !connector->saves_prefill)
        return "a consumer saves nothing before decode starts (PLAN-018)";
    if (!entry->blocks && entry->resumed)
        return "a resume without blocks is skipped (PLAN-014)";
    if (!entry->blocks && !self->profile->blockless_steps_count)
        return "a step without new blocks is ignored (PLAN-015)";
    return "no scheduler block became full (PLAN-020)";
}

static void tell_entry(struct telling *self, const struct moon_save_entry *entry, bool fresh) {
    struct known *known = &self->requests[entry->slot];
    const struct moon_save_request *request = &self->its->requests[entry->slot];
    bool begins = fresh || entry->resumed;
    if (fresh)
        known->prefill_end_tokens = entry->prefill_tokens ? entry->prefill_tokens : request->prompt_tokens;
    else if (entry->resumed)
        known->prefill_end_tokens = known->tokens;
    bool decode = !begins && entry->computed_tokens >= known->prefill_end_tokens;
    moon_text_format(self->out,
                     "  %s %s: %" PRId64 " tokens computed, %" PRId64 " scheduled, %" PRId64 " known; %s (%s)\n",
                     fresh            ? "new"
                     : entry->resumed ? "resumed"
                                      : "running",
                     name_of(self, entry->slot), entry->computed_tokens, entry->scheduled_tokens, known->tokens,
                     decode ? "decode" : "prefill",
                     fresh            ? "PLAN-013"
                     : entry->resumed ? "PLAN-014"
                                      : "PLAN-017");
    if (!known->saved)
        moon_text_format(self->out, "    makes no job: %s\n", no_job(self, entry, decode));
}

static void tell_names(const struct telling *self, const char *what, const uint32_t *slots, size_t count,
                       const char *why) {
    for (size_t i = 0; i < count; i++)
        moon_text_format(self->out, "  %s %s: %s\n", what, name_of(self, slots[i]), why);
}

/* ---- jobs ---- */

static void tell_boundary(const struct telling *self, const struct moon_job *job) {
    const struct moon_layout_model *model = &self->its->its.engine.model;
    for (size_t i = 0; i < job->boundary_count; i++) {
        const struct moon_boundary_put *put = &job->boundary[i];
        bool state = put->group < model->group_count && model->groups[put->group].spec.kind == MOON_SPEC_MAMBA;
        moon_text_format(self->out, "    beside it: group %zu block %" PRId64 " under the hash at %" PRId64 " (%s)\n",
                         put->group, put->block, put->tokens,
                         state && self->profile->boundary_rule >= MOON_BOUNDARY_HANDED ? "PLAN-050"
                         : state                                                       ? "PLAN-053"
                                                                                       : "PLAN-054");
    }
}

static void tell_job(const struct telling *self, const struct moon_job *job) {
    moon_text_format(self->out, "  job %" PRIu64 " of %s: ", job->id, name_of(self, job->slot));
    if (job->save_tokens > 0)
        moon_text_format(self->out, "save tokens 0 to %" PRId64 ", prefill ends at %" PRId64 " (%s)\n",
                         job->save_tokens, job->prefill_end_tokens,
                         self->its->its.connector.options.discard_partial_chunks ? "PLAN-020" : "PLAN-024");
    else
        moon_text_format(self->out, "nothing by position (PLAN-052)\n");
    tell_boundary(self, job);
}

static void began(struct moon_save_observer *observer, size_t step) {
    struct telling *self = telling(observer);
    self->step = &self->its->steps[step];
    self->present = -1;
    memset(self->called, 0, (size_t)moon_world_size(&self->its->its.engine.model) * sizeof *self->called);
    moon_text_format(self->out, "step %zu\n", step);
    tell_names(self, "finished", self->step->finished, self->step->finished_count, "forgotten (PLAN-011)");
    tell_names(self, "preempted", self->step->preempted, self->step->preempted_count,
               self->profile->preempted_reset ? "keeps an empty tracker (PLAN-012)" : "forgotten (PLAN-012)");
}

static void planned(struct moon_save_observer *observer, const struct moon_step_jobs *jobs) {
    struct telling *self = telling(observer);
    self->jobs = jobs;
    for (size_t i = 0; i < self->its->request_count; i++)
        self->requests[i].saved = false;
    for (size_t i = 0; i < jobs->count; i++)
        self->requests[jobs->jobs[i]->slot].saved = true;
    for (size_t i = 0; i < self->step->fresh_count; i++)
        tell_entry(self, &self->step->fresh[i], true);
    for (size_t i = 0; i < self->step->cached_count; i++)
        tell_entry(self, &self->step->cached[i], false);
    for (size_t i = 0; i < jobs->count; i++)
        tell_job(self, jobs->jobs[i]);
    if (!self->step->process_jobs)
        moon_text_string(self->out, "  the ranks queue these jobs and run them later (SAVE-001)\n");
}

/* ---- ranks ---- */

/* Chunks of a job by what one rank does with them, before it looks at what it saved earlier. */
struct share {
    int64_t own, others, useless, states, blockless;
};

static void share_group(const struct telling *self, const struct moon_job *job, const struct moon_rank *rank,
                        size_t group, struct share *share) {
    const struct moon_layout_model *model = &self->its->its.engine.model;
    int64_t factor = moon_replication_factor(self->profile, model, group);
    int64_t phase = moon_put_phase(self->profile, factor, rank->tp, group);
    bool state = model->groups[group].spec.kind == MOON_SPEC_MAMBA && !self->profile->mamba_by_position;
    const struct moon_block_table *table = &job->tables->groups[group];
    for (int64_t chunk = 0; chunk < job->save_tokens / model->groups[group].block_tokens; chunk++) {
        bool block = (size_t)chunk < table->count && table->blocks[chunk] != 0;
        int64_t *count = state ? &share->states
                         : !moon_reach_stored(self->profile, model, group, chunk, job->prefill_end_tokens)
                             ? &share->useless
                         : self->profile->stripe_absolute && chunk % factor != phase ? &share->others
                         : self->profile->null_blocks_skipped && !block              ? &share->blockless
                                                                                     : &share->own;
        ++*count;
    }
}

static void tell_count(const struct telling *self, int64_t count, const char *why) {
    if (count > 0)
        moon_text_format(self->out, "; %" PRId64 " %s", count, why);
}

static void tell_shares(struct telling *self, const struct moon_rank *rank) {
    for (size_t i = 0; i < self->jobs->count; i++) {
        const struct moon_job *job = self->jobs->jobs[i];
        struct share share = {0};
        if (job->save_tokens == 0 || job->prefill_end_tokens == 0)
            continue;
        for (size_t group = 0; group < job->group_count; group++)
            share_group(self, job, rank, group, &share);
        self->own += share.own;
        moon_text_format(self->out, "    of job %" PRIu64 ": its own chunks %" PRId64, job->id, share.own);
        tell_count(self, share.others, "of other ranks (SAVE-012)");
        tell_count(self, share.useless, "out of reach of every hit (SAVE-017, SAVE-018)");
        tell_count(self, share.states, "of Mamba, not saved by position (SAVE-019)");
        tell_count(self, share.blockless, "without a block (SAVE-020)");
        moon_text_string(self->out, self->profile->stripe_absolute
                                        ? "\n"
                                        : "; replicas share them out by position in the list (SAVE-013)\n");
    }
}

static bool has_saves(const struct telling *self) {
    for (size_t i = 0; i < self->jobs->count; i++)
        if (self->jobs->jobs[i]->save)
            return true;
    return false;
}

/* The line of a rank, before the first thing that is told of it. */
static void open_rank(struct telling *self, int64_t number) {
    const struct moon_rank rank = moon_rank_at(&self->its->its.engine.model, number);
    self->present = number;
    self->own = 0;
    moon_text_format(self->out, "  rank %" PRId64 "\n", number);
    tell_shares(self, &rank);
}

/* Ranks run one after another: those before `rank` that have not called the store do not call it in this step. */
static void tell_silent(struct telling *self, int64_t rank) {
    bool jobs = self->step->process_jobs && has_saves(self);
    while (self->present + 1 < rank && self->present + 1 < RANKS_SHOWN_MAX) {
        if (!jobs) {
            self->present++;
            continue;
        }
        open_rank(self, self->present + 1);
        moon_text_format(self->out, "    asks nothing%s\n",
                         self->own > 0 ? ": its own was saved before (SAVE-011), or its jobs were dropped (SAVE-002, "
                                         "SAVE-025)"
                                       : "");
    }
}

/* Turns to a rank. False for one that is not shown. */
static bool turn_to(struct telling *self, int64_t rank) {
    tell_silent(self, rank);
    if (rank < RANKS_SHOWN_MAX && rank != self->present)
        open_rank(self, rank);
    return rank < RANKS_SHOWN_MAX;
}

static void tell_exist(const struct telling *self, const struct moon_store_call *call, const int64_t *results) {
    size_t present = 0;
    for (size_t i = 0; i < call->count; i++)
        present += results[i] == 1;
    moon_text_format(self->out, "    checks %zu keys: %zu are there and skipped, %zu are missing (SAVE-010)\n",
                     call->count, present, call->count - present);
}

static void tell_put(const struct telling *self, const struct moon_store_call *call, const int64_t *results) {
    size_t failed = 0;
    for (size_t i = 0; i < call->count; i++)
        failed += results[i] < 0;
    moon_text_format(self->out, "    puts %zu keys%s\n", call->count,
                     call->groups ? ", with group ids (SAVE-040)" : "");
    for (size_t i = 0; i < call->count && i < KEYS_SHOWN_MAX; i++) {
        moon_text_format(self->out, "      block %" PRIu64 ": ", call->blocks[i]);
        moon_key_list_write(call->keys, call->first + i, self->out);
        if (results[i] < 0)
            moon_text_format(self->out, " failed with %" PRId64, results[i]);
        moon_text_char(self->out, '\n');
    }
    if (call->count > KEYS_SHOWN_MAX)
        moon_text_format(self->out, "      and %zu more\n", call->count - KEYS_SHOWN_MAX);
    if (failed > 0)
        moon_text_format(self->out, "    %zu failed: the request's next job tries the range again (SAVE-022)\n",
                         failed);
}

static void called(struct moon_save_observer *observer, int64_t rank, const struct moon_store_call *call,
                   const int64_t *results) {
    struct telling *self = telling(observer);
    self->called[rank] = true;
    if (!turn_to(self, rank))
        return;
    if (call->kind == MOON_CALL_EXIST)
        tell_exist(self, call, results);
    else
        tell_put(self, call, results);
}

static void raised(struct moon_save_observer *observer, int64_t rank, const struct moon_error *error) {
    struct telling *self = telling(observer);
    if (turn_to(self, rank))
        moon_text_format(self->out, "    raises %s: %s; the job ends (SAVE-027)\n", error->type, error->message);
}

static void ended(struct moon_save_observer *observer) {
    struct telling *self = telling(observer);
    int64_t ranks = moon_world_size(&self->its->its.engine.model);
    tell_silent(self, ranks);
    int64_t more = 0;
    for (int64_t rank = RANKS_SHOWN_MAX; rank < ranks; rank++)
        more += self->called[rank];
    if (more > 0)
        moon_text_format(self->out, "  and %" PRId64 " more ranks that call the store\n", more);
    for (size_t i = 0; i < self->step->output_count; i++)
        self->requests[self->step->outputs[i].slot].tokens += self->step->outputs[i].tokens;
}

/* ---- all of it ---- */

static int tell_run(struct moon_arena *arena, struct telling *self, struct moon_save_case *its,
                    struct moon_error *error) {
    struct moon_save_outcome outcome;
    self->requests = moon_arena_array(arena, its->request_count, sizeof *self->requests);
    self->called = moon_arena_array(arena, (size_t)moon_world_size(&its->its.engine.model), sizeof *self->called);
    if (!self->requests || !self->called)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (size_t i = 0; i < its->request_count; i++)
        self->requests[i].tokens = its->requests[i].prompt_tokens;
    tell_engine(self);
    int status = moon_save_run(arena, its, &self->observer, &outcome, error);
    if (status)
        return status;
    moon_text_format(self->out, "in the end: %zu new keys in the store", outcome.stored_keys);
    if (self->profile->job_references)
        moon_text_format(self->out, ", %zu jobs that still hold blocks (PLAN-062)", outcome.unreleased_jobs);
    moon_text_char(self->out, '\n');
    return 0;
}

int moon_save_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error) {
    (void)world;
    struct moon_save_case its;
    struct moon_error failure = {0};
    struct telling self = {
        .observer = {.began = began, .planned = planned, .called = called, .raised = raised, .ended = ended},
        .its = &its,
        .profile = profile,
        .out = out,
    };
    int status = moon_save_case_read(arena, profile, source, given, &its, &failure);
    if (!status)
        status = tell_run(arena, &self, &its, &failure);
    return moon_suite_end_explain(status, out, &failure, error);
}
