/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any sequence of questions, allocations, steps, finishes and reports. Each input byte chooses what comes
 * next, so most sequences are such as a core makes; whatever comes, saves stay within what is known, ids ascend, and
 * references are given back as often as they were taken. */
#include "ref/connector/scheduler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, GROUPS = 2, BLOCKS = 64, TOKENS = 300, WORLD = 2, LIVE_JOBS = 256 };

/* One run: the engine's view of each request, and what the connector was given. */
struct run {
    struct moon_lookup_port lookups; /* first member */
    struct moon_block_port port;
    const uint8_t *data;
    size_t left;
    struct moon_layout_group groups[GROUPS];
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_scheduler *scheduler;
    struct moon_request requests[SLOTS];
    struct moon_block_table tables[SLOTS][GROUPS], added[SLOTS][GROUPS];
    bool running[SLOTS], waiting[SLOTS];
    int64_t computed[SLOTS], promised[SLOTS];
    int64_t references[SLOTS * BLOCKS + 1];
    uint8_t reports[LIVE_JOBS]; /* ranks that have not reported a job yet */
    uint64_t next_id;
    struct moon_step_jobs jobs;
    struct moon_job *late; /* held over steps, as by a worker that lags behind */
};

static uint8_t hashes[TOKENS * 16];
static int64_t numbers[SLOTS][BLOCKS];

static unsigned next(struct run *run, unsigned bound) {
    if (run->left == 0)
        return 0;
    run->left--;
    return *run->data++ % bound;
}

static int lookup(struct moon_lookup_port *self, const struct moon_request *request, int64_t num_tokens, bool non_block,
                  struct moon_lookup_result *result, bool *pending, struct moon_error *error) {
    struct run *run = (struct run *)self;
    assert(num_tokens <= request->known_tokens);
    *result = (struct moon_lookup_result){0};
    *pending = non_block && next(run, 2);
    if (next(run, 8) == 7)
        return moon_fail(error, MOON_ERR_IO, NULL, "no answer");
    result->hit_tokens = (int64_t)next(run, 20) * run->connector.alignment_tokens;
    if (result->hit_tokens > 0 && run->connector.profile->lookup_rpc == MOON_RPC_TAILS)
        result->boundary_count = run->model.group_count;
    return 0;
}

static void discard(struct moon_lookup_port *self, uint32_t slot) {
    (void)self;
    assert(slot < SLOTS);
}

static bool reset(struct moon_lookup_port *self) {
    return next((struct run *)self, 2);
}

static struct run *of_port(struct moon_block_port *self) {
    return (struct run *)((char *)self - offsetof(struct run, port));
}

static void hold(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        of_port(self)->references[blocks[i]]++;
}

static void release(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        assert(of_port(self)->references[blocks[i]]-- > 0);
}

static void open_run(struct run *run) {
    size_t count;
    const struct moon_profile *profiles = moon_profiles(&count);
    const struct moon_profile *profile = &profiles[next(run, (unsigned)count)];
    bool hybrid = next(run, 2) && profile->group_numbering != MOON_GROUP_NONE;
    struct moon_connector_options options = {.role = (enum moon_kv_role)next(run, 3),
                                             .load_async = true,
                                             .enable_lookup = next(run, 8) > 0,
                                             .save_decode_cache = next(run, 2),
                                             .lookup_async = next(run, 2),
                                             .discard_partial_chunks = next(run, 4) > 0};
    run->lookups = (struct moon_lookup_port){lookup, discard, reset};
    run->port = (struct moon_block_port){hold, release};
    for (size_t g = 0; g < GROUPS; g++)
        run->groups[g] = (struct moon_layout_group){
            .spec = {.kind = g ? MOON_SPEC_MAMBA : MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 8},
            .block_tokens = g ? 32 : 8,
            .transferable = true,
            .prefix_cacheable = true};
    run->model = (struct moon_layout_model){.tp = 1,
                                            .pp = 1,
                                            .pcp = 1,
                                            .dcp = 1,
                                            .total_kv_heads = 8,
                                            .groups = run->groups,
                                            .group_count = hybrid ? 2 : 1,
                                            .scheduler_block_tokens = hybrid ? 32 : 8,
                                            .hash_block_tokens = 8,
                                            .speculative = next(run, 2),
                                            .model_name = {"m", 1}};
    int status = moon_connector_open(&run->connector, profile, &run->model, &options, NULL);
    assert(status == 0);
    status = moon_scheduler_open(&run->scheduler, &run->connector, &run->lookups, &run->port, WORLD, moon_memory_heap(),
                                 NULL);
    assert(status == 0);
    moon_step_jobs_open(&run->jobs, moon_memory_heap());
}

static void know(struct run *run, uint32_t slot, int64_t tokens) {
    struct moon_request *request = &run->requests[slot];
    request->known_tokens = tokens < TOKENS ? tokens : TOKENS;
    request->hashes = (struct moon_hashes){hashes, 16, (size_t)request->known_tokens / 8};
}

static void grow(struct run *run, uint32_t slot, int64_t tokens) {
    for (size_t g = 0; g < run->model.group_count; g++) {
        struct moon_block_table *table = &run->tables[slot][g];
        size_t count = (size_t)moon_ceil_divide(tokens, run->groups[g].block_tokens);
        size_t more = count > table->count ? count - table->count : 0;
        run->added[slot][g] = (struct moon_block_table){numbers[slot] + table->count, more};
        *table = (struct moon_block_table){numbers[slot], table->count + more};
    }
}

/* A waiting request asks, and perhaps gets blocks. */
static void ask(struct run *run, uint32_t slot) {
    struct moon_request *request = &run->requests[slot];
    struct moon_match match;
    struct moon_error error;
    if (request->prompt_tokens == 0) {
        *request = (struct moon_request){.slot = slot, .prompt_tokens = 1 + next(run, 120)};
        know(run, slot, request->prompt_tokens);
    }
    int64_t computed = (int64_t)next(run, 4) * 8;
    int status = moon_scheduler_match(run->scheduler, request, computed, &match, &error);
    assert(status == 0 || status == MOON_ERR_RANGE);
    if (status || match.pending)
        return;
    assert(match.tokens >= 0 && computed + match.tokens <= request->known_tokens);
    int64_t external = next(run, 4) ? match.tokens : next(run, 3);
    grow(run, slot, computed + match.tokens);
    status = moon_scheduler_allocated(run->scheduler, request, run->tables[slot], external, &error);
    assert(status == 0 || (status == MOON_ERR_REFUSED && external != match.tokens));
    run->waiting[slot] = true;
    run->computed[slot] = computed + (external == match.tokens ? match.tokens : 0);
}

/* Jobs of a step: within what is known, and numbered upwards. */
static void check_jobs(struct run *run) {
    for (size_t i = 0; i < run->jobs.count; i++) {
        struct moon_job *job = run->jobs.jobs[i];
        const struct moon_request *request = &run->requests[job->slot];
        assert(job->save || job->load);
        assert(job->tables && job->tables->group_count == run->model.group_count);
        int64_t drafts = run->connector.profile->resumed_by_core ? 0 : 40; /* PLAN-019 */
        assert(job->save_tokens <= request->known_tokens + drafts && job->load_hit_tokens <= request->known_tokens);
        assert((size_t)job->save_tokens / 8 <= job->hashes.count + (size_t)drafts / 8);
        if (!job->save)
            continue;
        assert(job->id == run->next_id);
        assert(run->next_id < LIVE_JOBS);
        run->reports[run->next_id++] = WORLD;
        if (!run->late && next(run, 4) == 0)
            run->late = moon_job_hold(job);
    }
}

static void forget(struct run *run, uint32_t slot) {
    run->running[slot] = run->waiting[slot] = false;
    memset(run->tables[slot], 0, sizeof run->tables[slot]);
}

static void step(struct run *run) {
    struct moon_step_request fresh[SLOTS] = {{0}}, cached[SLOTS] = {{0}};
    struct moon_step_boundary boundaries[SLOTS];
    uint32_t finished[SLOTS], preempted[SLOTS];
    struct moon_step told = {
        .finished = finished, .preempted = preempted, .fresh = fresh, .cached = cached, .boundaries = boundaries};
    struct moon_error error = {0};
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct moon_request *request = &run->requests[slot];
        int64_t left = request->known_tokens - run->computed[slot];
        int64_t scheduled = 1 + (int64_t)next(run, 40);
        unsigned what = next(run, 8);
        if (run->running[slot] && what < 2) {
            uint32_t *list = what == 0 ? &finished[told.finished_count++] : &preempted[told.preempted_count++];
            *list = slot;
            forget(run, slot);
            if (what == 0)
                *request = (struct moon_request){.slot = slot};
            run->computed[slot] = 0;
        } else if (run->waiting[slot] && what < 6 && left > 0) {
            scheduled = scheduled < left ? scheduled : left;
            grow(run, slot, run->computed[slot] + scheduled);
            fresh[told.fresh_count++] = (struct moon_step_request){
                request,          false, request->known_tokens, run->computed[slot], scheduled, run->tables[slot],
                run->tables[slot]};
            run->waiting[slot] = false;
            run->running[slot] = true;
            run->computed[slot] += scheduled;
        } else if (run->running[slot] && run->computed[slot] + scheduled + 8 < TOKENS) {
            size_t before = run->tables[slot][0].count;
            grow(run, slot, run->computed[slot] + scheduled);
            bool grown = run->tables[slot][0].count > before;
            cached[told.cached_count++] = (struct moon_step_request){
                request, false, 0, run->computed[slot], scheduled, grown ? run->added[slot] : NULL, run->tables[slot]};
            run->computed[slot] += scheduled < left ? scheduled : left > 0 ? left : 1;
        }
        if (run->running[slot] && next(run, 4) == 0)
            boundaries[told.boundary_count++] = (struct moon_step_boundary){
                slot, {next(run, 2), (int64_t)next(run, 3), (int64_t)next(run, 20) * 8}, run->tables[slot]};
    }
    moon_step_jobs_clear(&run->jobs);
    int status = moon_scheduler_step(run->scheduler, &told, &run->jobs, &error);
    assert(status == 0 || status == MOON_ERR_REFUSED || status == MOON_ERR_RANGE);
    if (status)
        run->left = 0; /* such an instance is at its end */
    else
        check_jobs(run);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (run->running[slot] && run->computed[slot] >= run->requests[slot].known_tokens)
            know(run, slot, run->computed[slot] + 1);
}

static void report(struct run *run) {
    struct moon_error error;
    uint64_t id = next(run, 32);
    int64_t ranks = 1 + next(run, 3);
    int status = moon_scheduler_report(run->scheduler, id, ranks, &error);
    assert(status == 0 || (status == MOON_ERR_RANGE && id >= run->next_id) ||
           (status == MOON_ERR_REFUSED && ranks > run->reports[id]));
    if (!status && run->reports[id] > 0)
        run->reports[id] = (uint8_t)(run->reports[id] > ranks ? run->reports[id] - ranks : 0);
}

/* Every job that is still out is reported; then nothing is held. */
static void report_all(struct run *run) {
    for (uint64_t id = 0; id < run->next_id; id++)
        if (run->reports[id] > 0)
            assert(moon_scheduler_report(run->scheduler, id, run->reports[id], NULL) == 0);
    assert(moon_scheduler_unreleased(run->scheduler) == 0);
    for (size_t i = 0; i < sizeof run->references / sizeof run->references[0]; i++)
        assert(run->references[i] == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct run run;
    memset(&run, 0, sizeof run);
    run.data = data;
    run.left = size < 2000 ? size : 2000;
    for (size_t i = 0; i < SLOTS * BLOCKS; i++)
        numbers[i / BLOCKS][i % BLOCKS] = i % 9 == 8 ? 0 : (int64_t)i + 1;
    open_run(&run);
    while (run.left > 0 && run.next_id + 2 * SLOTS < LIVE_JOBS) {
        unsigned what = next(&run, 8);
        uint32_t slot = next(&run, SLOTS);
        if (what < 3 && !run.running[slot] && !run.waiting[slot])
            ask(&run, slot);
        else if (what < 6)
            step(&run);
        else if (what == 6)
            report(&run);
        else if (next(&run, 8) == 0)
            (void)moon_scheduler_reset(run.scheduler);
        else if (run.running[slot])
            (void)moon_scheduler_finished(run.scheduler, &run.requests[slot], true);
        if (what == 7) {
            moon_job_release(run.late);
            run.late = NULL;
        }
    }
    moon_job_release(run.late);
    moon_step_jobs_close(&run.jobs);
    report_all(&run);
    moon_scheduler_close(run.scheduler);
    return 0;
}
