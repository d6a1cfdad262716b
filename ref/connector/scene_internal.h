/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: an engine of a few requests around the scheduler side, and its jobs as text. */
#ifndef MOON_CONNECTOR_SCENE_INTERNAL_H
#define MOON_CONNECTOR_SCENE_INTERNAL_H

#include "ref/base/unit.h"
#include "ref/connector/scheduler.h"
#include "ref/key/deviation.h"
#include "ref/layout/model_check_internal.h"

enum { SCENE_GROUPS = 3, SCENE_REQUESTS = 4, SCENE_TOKENS = 512, SCENE_LOG = 2048, SCENE_HELD = 512 };

/* The lookup channel answers `result`; the block port counts references. Block i of slot s in group g is
 * 1000 * (s + 1) + 100 * g + i + 1. */
struct scene {
    struct moon_lookup_port lookups; /* first member */
    struct moon_block_port blocks;
    struct moon_memory *memory;
    struct moon_profile profile;
    struct moon_layout_group groups[SCENE_GROUPS];
    struct moon_layout_model model;
    struct moon_connector_options options;
    struct moon_connector connector;
    struct moon_deviation_notes notes;
    struct moon_scheduler *scheduler;
    uint8_t hashes[SCENE_TOKENS * 16];
    struct moon_request requests[SCENE_REQUESTS];
    int64_t numbers[SCENE_REQUESTS][SCENE_GROUPS][SCENE_TOKENS];
    struct moon_block_table tables[SCENE_REQUESTS][SCENE_GROUPS], added[SCENE_REQUESTS][SCENE_GROUPS];
    struct moon_step_request fresh[SCENE_REQUESTS], cached[SCENE_REQUESTS];
    struct moon_step_boundary boundaries[8];
    uint32_t finished[SCENE_REQUESTS], preempted[SCENE_REQUESTS];
    struct moon_step step;
    struct moon_step_jobs jobs;
    /* what a lookup answers, and what it was asked */
    struct moon_lookup_result result;
    int lookup_status;
    bool lookup_pending, reset_answer;
    int64_t asked_tokens;
    bool asked_non_block;
    int lookup_count, discard_count;
    int references[8192];
    int64_t held[SCENE_HELD], released[SCENE_HELD]; /* of the last call */
    size_t held_count, released_count;
    char log[SCENE_LOG];
    struct moon_error error;
};

static inline int scene_lookup(struct moon_lookup_port *self, const struct moon_request *request, int64_t num_tokens,
                               bool non_block, struct moon_lookup_result *result, bool *pending,
                               struct moon_error *error) {
    struct scene *scene = (struct scene *)self;
    (void)request;
    scene->lookup_count++;
    scene->asked_tokens = num_tokens;
    scene->asked_non_block = non_block;
    *result = scene->result;
    *pending = scene->lookup_pending;
    return scene->lookup_status ? moon_fail(error, scene->lookup_status, NULL, "the channel failed") : 0;
}

static inline void scene_discard(struct moon_lookup_port *self, uint32_t slot) {
    (void)slot;
    ((struct scene *)self)->discard_count++;
}

static inline bool scene_reset(struct moon_lookup_port *self) {
    return ((struct scene *)self)->reset_answer;
}

static inline struct scene *scene_of_blocks(struct moon_block_port *self) {
    return (struct scene *)((char *)self - offsetof(struct scene, blocks));
}

static inline void scene_hold(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    struct scene *scene = scene_of_blocks(self);
    for (size_t i = 0; i < count; i++) {
        scene->references[blocks[i]]++;
        scene->held[i] = blocks[i];
    }
    scene->held_count = count;
}

static inline void scene_release(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    struct scene *scene = scene_of_blocks(self);
    for (size_t i = 0; i < count; i++) {
        scene->references[blocks[i]]--;
        scene->released[i] = blocks[i];
    }
    scene->released_count = count;
}

/* `count` full attention groups with blocks of 16 tokens; options are the defaults. */
static inline void scene_set(struct scene *scene, const char *profile, enum moon_kv_role role, size_t count) {
    memset(scene, 0, sizeof *scene);
    scene->lookups = (struct moon_lookup_port){scene_lookup, scene_discard, scene_reset};
    scene->blocks = (struct moon_block_port){scene_hold, scene_release};
    scene->memory = moon_memory_heap();
    scene->profile = *moon_profile_find(profile, NULL);
    scene->options = (struct moon_connector_options){
        .role = role, .load_async = true, .enable_lookup = true, .discard_partial_chunks = true};
    for (size_t g = 0; g < count; g++)
        scene->groups[g] = group_of(MOON_SPEC_FULL, 16, 0);
    scene->model = model_of(scene->groups, count, 1, 8);
    for (size_t i = 0; i < sizeof scene->hashes; i++)
        scene->hashes[i] = (uint8_t)(i / 16);
}

/* A full attention group of 16 tokens and a Mamba group of 64: hits are fine-grained. */
static inline void scene_set_hybrid(struct scene *scene, const char *profile) {
    scene_set(scene, profile, MOON_ROLE_BOTH, 2);
    scene->groups[1].spec.kind = MOON_SPEC_MAMBA;
    scene->groups[1].block_tokens = scene->model.scheduler_block_tokens = 64;
}

static inline int scene_open(struct scene *scene, int64_t world_size) {
    moon_step_jobs_open(&scene->jobs, scene->memory);
    CU_ASSERT_EQUAL_FATAL(moon_connector_open(&scene->connector, &scene->profile, &scene->model, &scene->options, NULL),
                          0);
    scene->connector.notes = &scene->notes;
    return moon_scheduler_open(&scene->scheduler, &scene->connector, &scene->lookups, &scene->blocks, world_size,
                               scene->memory, &scene->error);
}

static inline void scene_close(struct scene *scene) {
    moon_step_jobs_close(&scene->jobs);
    moon_scheduler_close(scene->scheduler);
    scene->scheduler = NULL;
}

/* Tokens that are known of a request, and the hashes that follow. */
static inline void scene_know(struct scene *scene, uint32_t slot, int64_t tokens) {
    struct moon_request *request = &scene->requests[slot];
    request->known_tokens = tokens;
    request->hashes = (struct moon_hashes){scene->hashes, 16, (size_t)(tokens / scene->model.hash_block_tokens)};
}

static inline void scene_request(struct scene *scene, uint32_t slot, int64_t prompt_tokens) {
    scene->requests[slot] = (struct moon_request){.slot = slot, .prompt_tokens = prompt_tokens};
    for (size_t g = 0; g < SCENE_GROUPS; g++) {
        for (int i = 0; i < SCENE_TOKENS; i++)
            scene->numbers[slot][g][i] = 1000 * (int64_t)(slot + 1) + 100 * (int64_t)g + i + 1;
        scene->tables[slot][g].blocks = scene->numbers[slot][g];
    }
    scene_know(scene, slot, prompt_tokens);
}

/* Grows the table of a request to `tokens`; what was added is in `added`. True if anything was. */
static inline bool scene_grow(struct scene *scene, uint32_t slot, int64_t tokens) {
    bool grown = false;
    for (size_t g = 0; g < scene->model.group_count; g++) {
        struct moon_block_table *table = &scene->tables[slot][g];
        size_t count = (size_t)moon_ceil_divide(tokens, scene->groups[g].block_tokens);
        size_t more = count > table->count ? count - table->count : 0;
        scene->added[slot][g] = (struct moon_block_table){table->blocks + table->count, more};
        table->count += more;
        grown |= more > 0;
    }
    return grown;
}

static inline int scene_allocate(struct scene *scene, uint32_t slot, int64_t external_tokens) {
    return moon_scheduler_allocated(scene->scheduler, &scene->requests[slot], scene->tables[slot], external_tokens,
                                    &scene->error);
}

static inline struct moon_step_request *scene_entry(struct scene *scene, struct moon_step_request *entry, uint32_t slot,
                                                    int64_t computed, int64_t scheduled) {
    bool grown = scene_grow(scene, slot, computed + scheduled);
    *entry = (struct moon_step_request){.request = &scene->requests[slot],
                                        .computed_tokens = computed,
                                        .scheduled_tokens = scheduled,
                                        .blocks = grown ? scene->added[slot] : NULL,
                                        .table = scene->tables[slot]};
    return entry;
}

/* A request that is new, or comes back as new; nothing of it is loaded. */
static inline struct moon_step_request *scene_new(struct scene *scene, uint32_t slot, int64_t computed,
                                                  int64_t scheduled) {
    struct moon_step_request *entry =
        scene_entry(scene, &scene->fresh[scene->step.fresh_count++], slot, computed, scheduled);
    entry->blocks = scene->tables[slot];
    entry->prefill_tokens = scene->requests[slot].known_tokens;
    scene_allocate(scene, slot, 0);
    return entry;
}

static inline struct moon_step_request *scene_run(struct scene *scene, uint32_t slot, int64_t computed,
                                                  int64_t scheduled) {
    return scene_entry(scene, &scene->cached[scene->step.cached_count++], slot, computed, scheduled);
}

static inline struct moon_step_request *scene_resume(struct scene *scene, uint32_t slot, int64_t computed,
                                                     int64_t scheduled) {
    struct moon_step_request *entry = scene_run(scene, slot, computed, scheduled);
    entry->resumed = true;
    entry->blocks = scene->tables[slot];
    scene_allocate(scene, slot, 0);
    return entry;
}

static inline void scene_preempt(struct scene *scene, uint32_t slot) {
    scene->preempted[scene->step.preempted_count++] = slot;
    for (size_t g = 0; g < SCENE_GROUPS; g++)
        scene->tables[slot][g].count = 0;
}

static inline void scene_hand_off(struct scene *scene, uint32_t slot, size_t group, int64_t block, int64_t tokens) {
    scene->boundaries[scene->step.boundary_count++] =
        (struct moon_step_boundary){slot, {group, block, tokens}, scene->tables[slot]};
}

/* One job as text: "save 0 to 32 prefill 40", "load 1 from 0 to 16", puts as "group:block@tokens". */
static inline size_t scene_tell_job(const struct moon_job *job, char *out, size_t room) {
    size_t used = 0;
    if (job->save)
        used += (size_t)snprintf(out + used, room - used, "save %u to %d of %d", (unsigned)job->slot,
                                 (int)job->save_tokens, (int)job->prefill_end_tokens);
    if (job->load)
        used += (size_t)snprintf(out + used, room - used, "%sload %u from %d to %d", job->save ? " " : "",
                                 (unsigned)job->slot, (int)job->load_local_tokens, (int)job->load_hit_tokens);
    for (size_t i = 0; i < job->boundary_count; i++)
        used += (size_t)snprintf(out + used, room - used, " %zu:%d@%d", job->boundary[i].group,
                                 (int)job->boundary[i].block, (int)job->boundary[i].tokens);
    return used;
}

/* Runs the step that was put together; its status. The jobs stay in scene->jobs until the next. */
static inline int scene_try(struct scene *scene) {
    scene->step.fresh = scene->fresh;
    scene->step.cached = scene->cached;
    scene->step.boundaries = scene->boundaries;
    scene->step.finished = scene->finished;
    scene->step.preempted = scene->preempted;
    moon_step_jobs_clear(&scene->jobs);
    scene->error = (struct moon_error){0};
    int status = moon_scheduler_step(scene->scheduler, &scene->step, &scene->jobs, &scene->error);
    scene->step = (struct moon_step){0};
    return status;
}

/* Runs it and tells the jobs, separated by "; ". An error is its place and message. */
static inline const char *scene_step(struct scene *scene) {
    size_t used = 0;
    scene->log[0] = '\0';
    int status = scene_try(scene);
    if (status) {
        snprintf(scene->log, SCENE_LOG, "%s: %s", status == MOON_ERR_REFUSED ? scene->error.type : scene->error.where,
                 scene->error.message);
        return scene->log;
    }
    for (size_t i = 0; i < scene->jobs.count; i++) {
        used += (size_t)snprintf(scene->log + used, SCENE_LOG - used, "%s", i ? "; " : "");
        used += scene_tell_job(scene->jobs.jobs[i], scene->log + used, SCENE_LOG - used);
    }
    return scene->log;
}

#endif
