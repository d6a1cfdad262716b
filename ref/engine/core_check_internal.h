/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the core scheduler only: a small engine with a connector that answers as it is told. */
#ifndef MOON_ENGINE_CORE_CHECK_INTERNAL_H
#define MOON_ENGINE_CORE_CHECK_INTERNAL_H

#include "ref/base/unit.h"
#include "ref/engine/core.h"
#include "ref/hash/none_hash.h"

enum { CHECK_SLOTS = 20, CHECK_CALLS = 16 };

/* Answers by slot; what was told last.
 *   questions  slots in the order in which they were asked, of the last step
 *   fresh, cached  requests of the last step, copied; blocks are those of the first group */
struct check_row {
    uint32_t slot;
    int64_t prefill_tokens, computed_tokens, scheduled_tokens;
    size_t block_count, table_count; /* block_count: SIZE_MAX for none */
};
struct check_port {
    struct moon_engine_port port; /* first member */
    struct moon_engine_match answers[CHECK_SLOTS];
    int64_t computed_seen[CHECK_SLOTS], external_seen[CHECK_SLOTS];
    int match_status, allocated_status, step_status;
    bool delays, resets, had_blocks;
    uint32_t questions[CHECK_CALLS];
    size_t question_count;
    struct check_row fresh[CHECK_CALLS], cached[CHECK_CALLS];
    size_t fresh_count, cached_count;
    uint32_t finished[CHECK_CALLS], preempted[CHECK_CALLS];
    size_t finished_count, preempted_count;
    uint64_t reported_job;
};

static int check_match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                       struct moon_engine_match *match, struct moon_error *error) {
    struct check_port *port = (struct check_port *)self;
    port->questions[port->question_count++ % CHECK_CALLS] = request->slot;
    port->computed_seen[request->slot] = computed_tokens;
    *match = port->answers[request->slot];
    return port->match_status ? moon_fail(error, (enum moon_status)port->match_status, NULL, "told to") : 0;
}

static int check_allocated(struct moon_engine_port *self, const struct moon_request *request,
                           const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    struct check_port *port = (struct check_port *)self;
    (void)tables;
    port->external_seen[request->slot] = external_tokens;
    return port->allocated_status ? moon_fail(error, (enum moon_status)port->allocated_status, NULL, "told to") : 0;
}

static size_t check_copy(const struct moon_step_request rows[], size_t count, struct check_row out[CHECK_CALLS]) {
    for (size_t i = 0; i < count && i < CHECK_CALLS; i++)
        out[i] = (struct check_row){rows[i].request->slot,
                                    rows[i].prefill_tokens,
                                    rows[i].computed_tokens,
                                    rows[i].scheduled_tokens,
                                    rows[i].blocks ? rows[i].blocks[0].count : SIZE_MAX,
                                    rows[i].table[0].count};
    return count;
}

static int check_step(struct moon_engine_port *self, const struct moon_step *step, struct moon_error *error) {
    struct check_port *port = (struct check_port *)self;
    port->fresh_count = check_copy(step->fresh, step->fresh_count, port->fresh);
    port->cached_count = check_copy(step->cached, step->cached_count, port->cached);
    port->finished_count = step->finished_count;
    port->preempted_count = step->preempted_count;
    for (size_t i = 0; i < step->finished_count && i < CHECK_CALLS; i++)
        port->finished[i] = step->finished[i];
    for (size_t i = 0; i < step->preempted_count && i < CHECK_CALLS; i++)
        port->preempted[i] = step->preempted[i];
    return port->step_status ? moon_fail(error, (enum moon_status)port->step_status, NULL, "told to") : 0;
}

static bool check_finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    (void)request;
    ((struct check_port *)self)->had_blocks = has_blocks;
    return ((struct check_port *)self)->delays;
}

static int check_report(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks,
                        struct moon_error *error) {
    (void)child;
    (void)error;
    ((struct check_port *)self)->reported_job = job * 100 + (uint64_t)ranks;
    return 0;
}

static bool check_reset(struct moon_engine_port *self) {
    return ((struct check_port *)self)->resets;
}

/* An engine with one group of blocks of 4 tokens, or two of 4 and 8. */
struct check_engine {
    struct moon_hasher hasher;
    struct moon_layout_group groups[2];
    struct moon_layout_model model;
    struct moon_core_options options;
    uint8_t none[MOON_DIGEST_BYTES_MAX];
    struct check_port port;
    struct moon_core *core;
    struct moon_core_step step;
    struct moon_error error;
};

static inline int check_open(struct check_engine *engine, const char *profile, size_t groups, size_t blocks,
                             struct moon_memory *memory) {
    *engine = (struct check_engine){0};
    moon_hasher_open(&engine->hasher, MOON_SHA256, memory);
    for (size_t i = 0; i < 2; i++)
        engine->groups[i] =
            (struct moon_layout_group){.spec = {.kind = i ? MOON_SPEC_MLA : MOON_SPEC_FULL}, .block_tokens = 4 << i};
    engine->model = (struct moon_layout_model){.tp = 1,
                                               .pp = 1,
                                               .pcp = 1,
                                               .dcp = 1,
                                               .groups = engine->groups,
                                               .group_count = groups,
                                               .scheduler_block_tokens = groups > 1 ? 8 : 4,
                                               .hash_block_tokens = 4};
    engine->options = (struct moon_core_options){.profile = moon_profile_find(profile, NULL),
                                                 .model = &engine->model,
                                                 .block_count = blocks + 1,
                                                 .step_tokens = 64,
                                                 .running_max = 8,
                                                 .hasher = &engine->hasher,
                                                 .none_hash = engine->none,
                                                 .none_hash_bytes = 32};
    engine->port.port =
        (struct moon_engine_port){check_match, check_allocated, check_step, check_finished, check_report, check_reset};
    int status = moon_core_open(&engine->core, &engine->options, memory, &engine->error);
    if (!status)
        moon_core_connect(engine->core, &engine->port.port);
    return status;
}

static inline void check_close(struct check_engine *engine) {
    moon_core_close(engine->core);
    moon_hasher_close(&engine->hasher);
}

/* A prompt of `tokens` tokens; prompts of a family begin alike. */
static inline int check_add(struct check_engine *engine, uint32_t slot, uint32_t family, size_t tokens,
                            int64_t max_tokens) {
    uint32_t prompt[600];
    for (size_t i = 0; i < tokens && i < 600; i++)
        prompt[i] = family * 1000 + (uint32_t)i;
    const struct moon_core_new request = {
        .slot = slot, .prompt = prompt, .prompt_tokens = tokens, .max_tokens = max_tokens};
    return moon_core_add(engine->core, &request, &engine->error);
}

/* One step; a request whose tokens are all computed then gets a token. What workers tell comes with `results`. */
static inline int check_run(struct check_engine *engine, struct moon_core_results results) {
    int64_t tokens[CHECK_CALLS];
    engine->port.question_count = 0;
    int status = moon_core_schedule(engine->core, &engine->step, &engine->error);
    for (size_t i = 0; i < engine->step.scheduled_count && !status; i++) {
        const struct moon_core_request *request = moon_core_find(engine->core, engine->step.scheduled[i].slot);
        tokens[i] = request->computed_tokens >= request->request.known_tokens ? 7 : -1;
    }
    results.tokens = tokens;
    results.token_count = engine->step.scheduled_count;
    return status ? status : moon_core_update(engine->core, &results, &engine->error);
}

static inline int check_run_plain(struct check_engine *engine) {
    return check_run(engine, (struct moon_core_results){0});
}

static inline void check_status(const struct check_engine *engine, uint32_t slot, const char *name) {
    const struct moon_core_request *request = moon_core_find(engine->core, slot);
    MOON_CHECK_TEXT(request ? moon_request_status_name(request->status) : "none", name);
}

static inline int64_t check_block(const struct check_engine *engine, uint32_t slot, size_t group, size_t index) {
    const struct moon_core_request *request = moon_core_find(engine->core, slot);
    return index < request->tables[group].count ? request->tables[group].blocks[index] : -1;
}

static inline size_t check_blocks(const struct check_engine *engine, uint32_t slot) {
    return moon_core_find(engine->core, slot)->tables[0].count;
}

#endif
