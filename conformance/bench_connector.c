/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the connector: planning steps, lookups, save and load jobs, segments; beside a copy of the same bytes. */
#include "conformance/bench_connector.h"

#include "ref/connector/lookup_worker.h"
#include "ref/connector/receiver.h"
#include "ref/connector/scheduler.h"
#include "ref/connector/sender.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = MOON_BENCH_BLOCK_TOKENS,
    HASH_BYTES = 32,
    HASHES = MOON_BENCH_LOOKUP_TOKENS / BLOCK,
    REQUESTS = MOON_BENCH_REQUESTS,
    JOB_BLOCKS = MOON_BENCH_JOB_TOKENS / BLOCK,
    CONTENT_BYTES = 512, /* K and V of one head and token: 128 wide, 2 bytes each */
    LAYERS = MOON_BENCH_LAYERS,
    SEGMENT_TP = 2,
    SEGMENT_STORE_TP = 4,
    SEGMENT_KEYS = MOON_BENCH_SEGMENT_CHUNKS * SEGMENT_STORE_TP / SEGMENT_TP,
};

static const struct {
    const char *name, *text;
} subjects[MOON_BENCH_SUBJECTS] = {
    {"step.plain", "plan a decode step of 1,000 requests, no block begins or ends"},
    {"step.block", "plan a decode step of 1,000 requests, each gets a block"},
    {"step.save", "plan a decode step of 1,000 requests, each fills a block and saves it"},
    {"lookup", "look up 131,072 tokens over 8 store shards: keys, answers, hit"},
    {"lookup.text", "the same with every key written out as text"},
    {"save", "save job of 8,192 tokens, 32 layers: check, put, buffers"},
    {"load", "load job of 8,192 tokens, 32 layers: get, buffers"},
    {"segments", "buffers of 64 LBNHC blocks, 2 shards, 32 layers"},
};

const char *moon_bench_subject_name(enum moon_bench_subject subject) {
    return subjects[subject].name;
}

const char *moon_bench_subject_text(enum moon_bench_subject subject) {
    return subjects[subject].text;
}

/* All measurements, and what they share. */
struct bench {
    const struct moon_profile *profile;
    uint32_t runs;
    struct moon_memory *memory;
    struct moon_arena arena;
    struct moon_error *error;
    struct moon_bench_row *rows;
    struct moon_hashes hashes; /* HASHES of them */
    int64_t *blocks;           /* 1, 2, 3, ..., HASHES of them */
    struct moon_layout_group group;
};

static int no_memory(const struct bench *bench) {
    return moon_fail(bench->error, MOON_ERR_MEMORY, NULL, "no memory for a measurement");
}

/* Fills a row from its times and measures the copy. `keep` gets a byte of it, so that it is not left out. */
static int fill_row(struct bench *bench, struct moon_bench_row row, uint64_t times[], size_t count) {
    uint8_t *from = moon_arena_alloc(&bench->arena, row.bytes), *to = moon_arena_alloc(&bench->arena, row.bytes);
    uint64_t copies[MOON_BENCH_RUNS_MAX] = {0};
    if (!from || !to)
        return no_memory(bench);
    for (uint32_t i = 0; i < bench->runs; i++) {
        from[i % row.bytes] = (uint8_t)i;
        uint64_t before = moon_bench_now_ns();
        memcpy(to, from, row.bytes);
        __asm__ volatile("" : : "r"(to) : "memory"); /* the copy is used */
        copies[i] = moon_bench_now_ns() - before;
    }
    row.time = moon_bench_spread_of(times, count);
    row.floor = moon_bench_spread_of(copies, bench->runs);
    bench->rows[row.subject] = row;
    return 0;
}

/* An engine with one full attention group. `store_tp` as JSON digits, NULL: not set. */
static int open_connector(const struct bench *bench, int64_t tp, enum moon_kv_layout layout, const char *store_tp,
                          struct moon_layout_model *model, struct moon_connector *connector) {
    const struct moon_connector_options options = {
        .role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true, .save_decode_cache = true};
    *model = (struct moon_layout_model){.tp = tp,
                                        .pp = 1,
                                        .pcp = 1,
                                        .dcp = 1,
                                        .total_kv_heads = MOON_BENCH_HEADS,
                                        .kv_layout = layout,
                                        .groups = &bench->group,
                                        .group_count = 1,
                                        .scheduler_block_tokens = BLOCK,
                                        .hash_block_tokens = BLOCK,
                                        .model_name = moon_key_text("Llama-3.1-8B-Instruct")};
    if (store_tp)
        model->store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text(store_tp)};
    return moon_connector_open(connector, bench->profile, model, &options, bench->error);
}

static int prepare(struct bench *bench) {
    uint8_t *bytes = moon_arena_array(&bench->arena, HASHES, HASH_BYTES);
    bench->blocks = moon_arena_array(&bench->arena, HASHES, sizeof *bench->blocks);
    if (!bytes || !bench->blocks)
        return no_memory(bench);
    for (size_t i = 0; i < (size_t)HASHES * HASH_BYTES; i++)
        bytes[i] = (uint8_t)((i * UINT64_C(2654435761)) >> 13);
    for (int64_t i = 0; i < HASHES; i++)
        bench->blocks[i] = i + 1;
    bench->hashes = (struct moon_hashes){bytes, HASH_BYTES, HASHES};
    bench->group =
        (struct moon_layout_group){.spec = {.kind = MOON_SPEC_FULL, .num_kv_heads = MOON_BENCH_HEADS, .head_size = 128},
                                   .block_tokens = BLOCK,
                                   .transferable = true,
                                   .prefix_cacheable = true};
    return 0;
}

/* ---- steps of the scheduler side ---- */

/* A block pool that counts references, as the engine's does. */
struct pool {
    struct moon_block_port port;
    uint32_t *references;
};

static void hold(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    struct pool *pool = (struct pool *)self;
    for (size_t i = 0; i < count; i++)
        pool->references[blocks[i]]++;
}

static void release(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    struct pool *pool = (struct pool *)self;
    for (size_t i = 0; i < count; i++)
        pool->references[blocks[i]]--;
}

/* All requests in lock step. */
struct stepping {
    struct bench *bench;
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_scheduler *scheduler;
    struct pool pool;
    struct moon_step_jobs jobs;
    struct moon_request *requests;
    struct moon_step_request *told;
    struct moon_block_table *added, *tables;
    uint64_t job_id;
};

static int open_stepping(struct stepping *self) {
    struct bench *bench = self->bench;
    struct moon_arena *arena = &bench->arena;
    self->requests = moon_arena_array(arena, REQUESTS, sizeof *self->requests);
    self->told = moon_arena_array(arena, REQUESTS, sizeof *self->told);
    self->added = moon_arena_array(arena, REQUESTS, sizeof *self->added);
    self->tables = moon_arena_array(arena, REQUESTS, sizeof *self->tables);
    self->pool = (struct pool){.port = {hold, release},
                               .references = moon_arena_array(arena, HASHES + 1, sizeof *self->pool.references)};
    moon_step_jobs_open(&self->jobs, bench->memory);
    if (!self->requests || !self->told || !self->added || !self->tables || !self->pool.references)
        return no_memory(bench);
    int status = open_connector(bench, 1, MOON_KV_LBHNC, NULL, &self->model, &self->connector);
    if (status == 0)
        status = moon_scheduler_open(&self->scheduler, &self->connector, NULL, &self->pool.port, 1, bench->memory,
                                     bench->error);
    return status;
}

/* Plans a step in which each request goes from `computed` to `computed + scheduled` tokens. */
static int plan_step(struct stepping *self, bool first, int64_t computed, int64_t scheduled, uint64_t *ns) {
    int64_t had = first ? 0 : moon_ceil_divide(computed, BLOCK), has = moon_ceil_divide(computed + scheduled, BLOCK);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        int64_t known = first ? MOON_BENCH_PROMPT_TOKENS : computed + 1;
        self->requests[i] = (struct moon_request){
            .slot = i, .prompt_tokens = MOON_BENCH_PROMPT_TOKENS, .known_tokens = known, .hashes = self->bench->hashes};
        self->requests[i].hashes.count = (size_t)(known / BLOCK);
        self->added[i] = (struct moon_block_table){self->bench->blocks + had, (size_t)(has - had)};
        self->tables[i] = (struct moon_block_table){self->bench->blocks, (size_t)has};
        self->told[i] = (struct moon_step_request){.request = &self->requests[i],
                                                   .prefill_tokens = MOON_BENCH_PROMPT_TOKENS,
                                                   .computed_tokens = computed,
                                                   .scheduled_tokens = scheduled,
                                                   .blocks = has > had ? &self->added[i] : NULL,
                                                   .table = &self->tables[i]};
    }
    struct moon_step step = {.cached = self->told, .cached_count = REQUESTS};
    if (first)
        step = (struct moon_step){.fresh = self->told, .fresh_count = REQUESTS};
    moon_step_jobs_clear(&self->jobs);
    uint64_t before = moon_bench_now_ns();
    int status = moon_scheduler_step(self->scheduler, &step, &self->jobs, self->bench->error);
    *ns = moon_bench_now_ns() - before;
    for (size_t i = 0; i < self->jobs.count && status == 0; i++)
        status = moon_scheduler_report(self->scheduler, self->job_id++, 1, self->bench->error);
    return status;
}

static int start_requests(struct stepping *self) {
    uint64_t ns;
    int status = 0;
    for (uint32_t i = 0; i < REQUESTS && status == 0; i++) {
        const struct moon_request request = {
            .slot = i, .prompt_tokens = MOON_BENCH_PROMPT_TOKENS, .known_tokens = MOON_BENCH_PROMPT_TOKENS};
        const struct moon_block_table table = {self->bench->blocks, MOON_BENCH_PROMPT_TOKENS / BLOCK};
        self->requests[i] = request;
        status = moon_scheduler_allocated(self->scheduler, &self->requests[i], &table, 0, self->bench->error);
    }
    return status ? status : plan_step(self, true, 0, MOON_BENCH_PROMPT_TOKENS, &ns);
}

static int run_steps(struct stepping *self) {
    uint64_t plain[MOON_BENCH_RUNS_MAX] = {0}, block[MOON_BENCH_RUNS_MAX] = {0}, save[MOON_BENCH_RUNS_MAX] = {0},
             ns = 0;
    struct bench *bench = self->bench;
    int status = 0;
    for (int64_t at = 0; at < (int64_t)bench->runs * BLOCK && status == 0; at++) {
        status = plan_step(self, false, MOON_BENCH_PROMPT_TOKENS + at, 1, &ns);
        uint64_t *kind = at % BLOCK == 0 ? block : at % BLOCK == BLOCK - 1 ? save : plain;
        kind[at / BLOCK] = ns; /* of the plain ones the last of each block's time */
        assert(status != 0 || self->jobs.count == (kind == save ? REQUESTS : 0));
    }
    struct moon_bench_row row = {.units = REQUESTS, .unit = "request", .bytes = REQUESTS * sizeof *self->told};
    uint64_t *const times[] = {plain, block, save};
    for (int i = 0; i < 3 && status == 0; i++) {
        row.subject = (enum moon_bench_subject)(MOON_BENCH_STEP_PLAIN + i);
        status = fill_row(bench, row, times[i], bench->runs);
    }
    return status;
}

static int measure_steps(struct bench *bench) {
    struct stepping stepping = {.bench = bench};
    int status = open_stepping(&stepping);
    if (status == 0)
        status = start_requests(&stepping);
    if (status == 0)
        status = run_steps(&stepping);
    moon_step_jobs_close(&stepping.jobs);
    moon_scheduler_close(stepping.scheduler);
    return status;
}

/* ---- lookups ---- */

/* One lookup of which the store has everything. `text`: keys are written into it; NULL: they are not. */
static int look_up(struct moon_lookup *lookup, const struct bench *bench, const int64_t *present,
                   struct moon_text *text) {
    const struct moon_store_call *call = NULL;
    int status = moon_lookup_begin(lookup, MOON_BENCH_LOOKUP_TOKENS, &bench->hashes, &call, bench->error);
    if (status)
        return status;
    if (text)
        moon_text_clear(text);
    for (size_t i = 0; text && i < call->count; i++)
        moon_key_list_write(call->keys, call->first + i, text);
    status = moon_lookup_answer(lookup, present, call->count, bench->error);
    assert(status != 0 || lookup->result.hit_tokens == MOON_BENCH_LOOKUP_TOKENS - BLOCK);
    return status ? status : text && text->failed ? no_memory(bench) : 0;
}

static int measure_lookup(struct bench *bench, enum moon_bench_subject subject) {
    enum { KEYS = HASHES * MOON_BENCH_SHARDS };
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_lookup lookup;
    struct moon_text text;
    uint64_t times[MOON_BENCH_RUNS_MAX];
    int64_t *present = moon_arena_array(&bench->arena, KEYS, sizeof *present);
    int status = open_connector(bench, MOON_BENCH_SHARDS, MOON_KV_LBHNC, "8", &model, &connector);
    bool written = subject == MOON_BENCH_LOOKUP_TEXT;
    if (status)
        return status;
    moon_lookup_open(&lookup, &connector, bench->memory);
    moon_text_open(&text, bench->memory);
    for (size_t i = 0; present && i < KEYS; i++)
        present[i] = 1;
    status = present ? look_up(&lookup, bench, present, written ? &text : NULL) : no_memory(bench); /* takes memory */
    for (uint32_t i = 0; i < bench->runs && status == 0; i++) {
        uint64_t before = moon_bench_now_ns();
        status = look_up(&lookup, bench, present, written ? &text : NULL);
        times[i] = moon_bench_now_ns() - before;
    }
    const struct moon_bench_row row = {.subject = subject,
                                       .units = KEYS,
                                       .unit = "key",
                                       .bytes = written ? text.length + KEYS * sizeof *present
                                                        : HASHES * HASH_BYTES + KEYS * sizeof *present};
    if (status == 0)
        status = fill_row(bench, row, times, bench->runs);
    moon_text_close(&text);
    moon_lookup_close(&lookup);
    return status;
}

/* ---- jobs ---- */

/* A rank with its caches: one storage a layer, every block [head][token] or [token][head]. */
static int build_segments(struct bench *bench, const struct moon_layout_model *model, const struct moon_shards *shards,
                          struct moon_segments *segments) {
    enum { BLOCKS = JOB_BLOCKS + 1 };
    uint64_t *storages = moon_arena_array(&bench->arena, LAYERS, sizeof *storages);
    struct moon_tensor *caches = moon_arena_array(&bench->arena, LAYERS, sizeof *caches);
    uint64_t heads = (uint64_t)(MOON_BENCH_HEADS / model->tp);
    bool token_outside = model->kv_layout == MOON_KV_LBNHC;
    if (!storages || !caches)
        return no_memory(bench);
    for (size_t i = 0; i < LAYERS; i++) {
        uint64_t token = token_outside ? heads * CONTENT_BYTES : CONTENT_BYTES,
                 head = token_outside ? CONTENT_BYTES : (uint64_t)BLOCK * CONTENT_BYTES;
        storages[i] = BLOCKS * heads * BLOCK * CONTENT_BYTES;
        caches[i] = (struct moon_tensor){.storage = i,
                                         .dimensions = 4,
                                         .shape = {BLOCKS, heads, BLOCK, CONTENT_BYTES},
                                         .strides = {heads * BLOCK * CONTENT_BYTES, head, token, 1},
                                         .item_bytes = 1};
    }
    const struct moon_rank_caches rank = {.profile = bench->profile,
                                          .storage_bytes = storages,
                                          .storage_count = LAYERS,
                                          .caches = caches,
                                          .cache_count = LAYERS,
                                          .num_blocks = BLOCKS,
                                          .block_size_tokens = BLOCK};
    return moon_segments_build(&bench->arena, &rank, shards, segments, bench->error);
}

/* A job of JOB_BLOCKS blocks; `slot` tells one run from the next. */
static struct moon_job *make_job(struct bench *bench, uint32_t slot, bool save) {
    const struct moon_block_table table = {bench->blocks, JOB_BLOCKS};
    const int64_t tail = MOON_BENCH_JOB_TOKENS;
    struct moon_job *job = moon_job_create(bench->memory, 1);
    if (job && (moon_tables_create(bench->memory, &table, 1, &job->tables) != 0 ||
                (!save && moon_job_set_tail_boundaries(job, &tail) != 0))) {
        moon_job_release(job);
        job = NULL;
    }
    if (!job)
        return NULL;
    job->id = job->slot = slot;
    job->hashes = bench->hashes;
    job->save = save;
    job->load = !save;
    job->save_tokens = save ? MOON_BENCH_JOB_TOKENS : 0;
    job->prefill_end_tokens = MOON_BENCH_JOB_TOKENS + 1;
    job->load_hit_tokens = save ? 0 : MOON_BENCH_JOB_TOKENS;
    return job;
}

/* Runs a job on one side of a rank: the store lacks every key, and takes and gives all. */
static int run_save(struct moon_sender *sender, const struct bench *bench, const int64_t *results) {
    const struct moon_store_call *call = NULL;
    uint64_t id;
    int status = moon_sender_next(sender, &call, bench->error);
    for (; status == 0 && call; status = moon_sender_next(sender, &call, bench->error)) {
        status = moon_sender_answer(sender, results, call->count, bench->error);
        if (status)
            return status;
    }
    while (moon_sender_take_done(sender, &id)) {
    }
    return status;
}

static int run_load(struct moon_receiver *receiver, const struct bench *bench, const int64_t *results) {
    const struct moon_store_call *call = NULL;
    uint32_t slot;
    int status = moon_receiver_next(receiver, &call, bench->error);
    for (; status == 0 && call; status = moon_receiver_next(receiver, &call, bench->error)) {
        status = moon_receiver_answer(receiver, results, call->count, bench->error);
        if (status)
            return status;
    }
    while (moon_receiver_take_finished(receiver, &slot)) {
    }
    return status;
}

/* Both sides of one rank. */
struct jobs {
    struct bench *bench;
    struct moon_sender *sender;
    struct moon_receiver *receiver;
    int64_t results[JOB_BLOCKS];
    uint64_t times[MOON_BENCH_RUNS_MAX];
};

static int run_jobs(struct jobs *self, bool save) {
    struct bench *bench = self->bench;
    int status = 0;
    for (size_t i = 0; i < JOB_BLOCKS; i++)
        self->results[i] = save ? 0 : (int64_t)LAYERS * MOON_BENCH_HEADS * BLOCK * CONTENT_BYTES;
    for (uint32_t i = 0; i <= bench->runs && status == 0; i++) { /* the first takes memory, and is not counted */
        struct moon_job *job = make_job(bench, i, save);
        if (!job)
            return no_memory(bench);
        uint64_t before = moon_bench_now_ns();
        status = save ? moon_sender_queue(self->sender, job) : moon_receiver_queue(self->receiver, job);
        if (status == 0)
            status =
                save ? run_save(self->sender, bench, self->results) : run_load(self->receiver, bench, self->results);
        if (i > 0)
            self->times[i - 1] = moon_bench_now_ns() - before;
        moon_job_release(job);
    }
    const struct moon_bench_row row = {.subject = save ? MOON_BENCH_SAVE : MOON_BENCH_LOAD,
                                       .units = JOB_BLOCKS,
                                       .unit = "key",
                                       .bytes =
                                           (size_t)JOB_BLOCKS * (HASH_BYTES + LAYERS * sizeof(struct moon_buffer))};
    return status ? status : fill_row(bench, row, self->times, bench->runs);
}

static int measure_jobs(struct bench *bench) {
    struct jobs *self = moon_arena_alloc(&bench->arena, sizeof *self);
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_segments segments;
    if (!self)
        return no_memory(bench);
    self->bench = bench;
    int status = open_connector(bench, 1, MOON_KV_LBHNC, NULL, &model, &connector);
    if (status == 0)
        status = build_segments(bench, &model, NULL, &segments);
    if (status)
        return status;
    const struct moon_rank rank = moon_rank_at(&model, 0);
    const struct moon_receiver_setting setting = {.segments = &segments, .engine_groups = 1};
    status = moon_sender_open(&self->sender, &connector, &rank, &segments, bench->memory, bench->error);
    if (status == 0)
        status = moon_receiver_open(&self->receiver, &connector, &rank, &setting, bench->memory, bench->error);
    if (status == 0)
        status = run_jobs(self, true);
    if (status == 0)
        status = run_jobs(self, false);
    moon_receiver_close(self->receiver);
    moon_sender_close(self->sender);
    return status;
}

/* ---- segments ---- */

static int measure_segments(struct bench *bench) {
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_segments segments;
    struct moon_token_range chunks[SEGMENT_KEYS];
    int64_t shard_ids[SEGMENT_KEYS];
    uint64_t blocks[MOON_BENCH_SEGMENT_CHUNKS], used[SEGMENT_KEYS], times[MOON_BENCH_RUNS_MAX];
    int status = open_connector(bench, SEGMENT_TP, MOON_KV_LBNHC, "4", &model, &connector);
    if (status)
        return status;
    const struct moon_shards shards = moon_rank_shards(&model, &connector.selection, 0);
    status = build_segments(bench, &model, &shards, &segments);
    if (status)
        return status;
    for (size_t i = 0; i < SEGMENT_KEYS; i++) {
        size_t chunk = i / 2;
        chunks[i] = (struct moon_token_range){chunk * BLOCK, (chunk + 1) * BLOCK};
        shard_ids[i] = (int64_t)(i % 2);
        blocks[chunk] = chunk + 1;
    }
    const struct moon_segment_request request = {
        BLOCK, BLOCK, chunks, SEGMENT_KEYS, blocks, MOON_BENCH_SEGMENT_CHUNKS, shard_ids, SEGMENT_KEYS};
    size_t count = SEGMENT_KEYS * segments.per_chunk;
    struct moon_buffer *buffers = moon_arena_array(&bench->arena, count, sizeof *buffers);
    if (!buffers)
        return no_memory(bench);
    for (uint32_t i = 0; i < bench->runs && status == 0; i++) {
        uint64_t before = moon_bench_now_ns();
        status = moon_segments_list(&segments, &request, buffers, used, bench->error);
        times[i] = moon_bench_now_ns() - before;
    }
    const struct moon_bench_row row = {
        .subject = MOON_BENCH_SEGMENTS, .units = count, .unit = "segment", .bytes = count * sizeof *buffers};
    return status ? status : fill_row(bench, row, times, bench->runs);
}

int moon_bench_connector(const struct moon_profile *profile, uint32_t runs, struct moon_memory *memory,
                         struct moon_bench_row rows[MOON_BENCH_SUBJECTS], struct moon_error *error) {
    struct bench bench = {.profile = profile, .runs = runs, .memory = memory, .error = error, .rows = rows};
    moon_arena_open(&bench.arena, memory);
    int status = prepare(&bench);
    if (status == 0)
        status = measure_steps(&bench);
    if (status == 0)
        status = measure_lookup(&bench, MOON_BENCH_LOOKUP);
    if (status == 0)
        status = measure_lookup(&bench, MOON_BENCH_LOOKUP_TEXT);
    if (status == 0)
        status = measure_jobs(&bench);
    if (status == 0)
        status = measure_segments(&bench);
    moon_arena_close(&bench.arena);
    return status;
}
