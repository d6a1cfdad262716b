/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustive proof of the back-fill: the real scheduler side and the real senders, in every case that
 * backfill_enumerate_internal.h can think of, put exactly what it says, once, from the right block, and leave no hole.
 *
 *   usage: backfill_test [blocks=N] [SENTENCE]      N: largest number of blocks, 1 to 12; without it a short form */
#include "ref/connector/backfill_enumerate_internal.h"
#include "ref/connector/scheduler.h"
#include "ref/connector/sender.h"

#include "ref/base/unit.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    RANKS_MAX = 4,
    STEPS_MAX = 64,
    CALLS_MAX = 1000,
    TABLE_MAX = BACKFILL_BLOCKS_MAX + 4,
    INCARNATION_BLOCKS = 32, /* block ids of a request: 32 after a preemption follow 32 before it */
    WRONG_MAX = 3,           /* cases that are told; then the rest is not looked at */
};

/* What a step leaves to the ranks: its jobs, and whether the request was preempted or finished in it. */
struct planned_step {
    size_t first_job, job_count;
    bool preempted, finished;
};

/* Everything of one scene: a model, both sides of its connector, and the store of the present case. */
struct proof {
    const struct backfill_world *world;
    struct moon_layout_group group;
    struct moon_layout_model model;
    struct moon_profile release;
    struct moon_connector connector;
    struct moon_block_port blocks; /* counts references to the engine's blocks */
    int64_t references[2 * INCARNATION_BLOCKS];
    struct moon_scheduler *scheduler;
    struct moon_sender *senders[RANKS_MAX];
    struct moon_request request;
    uint8_t hashes[BACKFILL_BLOCKS_MAX * 2 * 16];
    struct moon_step_jobs jobs;
    struct planned_step steps[STEPS_MAX];
    size_t step_count;
    bool reported; /* jobs of this course of steps were reported to the scheduler side */
    char prefixes[BACKFILL_SHARDS_MAX][BACKFILL_KEY_BYTES], hex[BACKFILL_BLOCKS_MAX][33];
    const struct backfill_case *its;
    uint32_t store[BACKFILL_SHARDS_MAX]; /* bit k: block k is there */
    int rank, incarnation;               /* 1 after the preemption */
    char fault[2048];
    unsigned wrong;
};

/* The first thing that is wrong in a case counts. */
#define FAULT(proof, ...)                                                                                              \
    do {                                                                                                               \
        if (!(proof)->fault[0])                                                                                        \
            snprintf((proof)->fault, sizeof(proof)->fault, __VA_ARGS__);                                               \
    } while (0)

/* ---- the engine: steps of one request ---- */

static struct proof *proof_of(struct moon_block_port *port) {
    return (struct proof *)((char *)port - offsetof(struct proof, blocks));
}

static void hold(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        proof_of(self)->references[blocks[i]]++;
}

static void release(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    for (size_t i = 0; i < count; i++)
        proof_of(self)->references[blocks[i]]--;
}

static void take_step(struct proof *proof, const struct moon_step *step) {
    struct moon_error error = {0};
    struct planned_step *planned = &proof->steps[proof->step_count++];
    *planned = (struct planned_step){
        .first_job = proof->jobs.count, .preempted = step->preempted_count > 0, .finished = step->finished_count > 0};
    if (moon_scheduler_step(proof->scheduler, step, &proof->jobs, &error))
        FAULT(proof, "the step was refused: %s %s", error.where, error.message);
    planned->job_count = proof->jobs.count - planned->first_job;
    /* Of a step without any of these the ranks hear nothing that matters. */
    if (planned->job_count == 0 && !planned->preempted && !planned->finished)
        proof->step_count--;
}

/* One step in which the request computes `scheduled` tokens behind `computed` others. */
static void schedule(struct proof *proof, int64_t computed, int64_t scheduled, int64_t prefill_end, int64_t *ids,
                     size_t *blocks_before, bool anew, bool listed_as_new) {
    size_t count = (size_t)moon_ceil_divide(computed + scheduled, proof->group.block_tokens);
    const struct moon_block_table table = {ids, count};
    const struct moon_block_table added = {ids + *blocks_before, count - *blocks_before};
    struct moon_step_request request = {
        .request = &proof->request,
        .resumed = anew && !listed_as_new,
        .prefill_tokens = prefill_end,
        .computed_tokens = computed,
        .scheduled_tokens = scheduled,
        .blocks = anew              ? &table
                  : added.count > 0 ? &added
                                    : NULL,
        .table = &table,
    };
    struct moon_error error;
    proof->request.hashes.count = (size_t)(proof->request.known_tokens / proof->group.block_tokens);
    if (anew && moon_scheduler_allocated(proof->scheduler, &proof->request, &table, 0, &error))
        FAULT(proof, "the allocation was refused: %s", error.message);
    struct moon_step step = {0};
    if (anew && listed_as_new) {
        step.fresh = &request;
        step.fresh_count = 1;
    } else {
        step.cached = &request;
        step.cached_count = 1;
    }
    take_step(proof, &step);
    *blocks_before = count;
}

/* Plans all steps of a case; the jobs stay for all stores that it may meet. */
static void begin(void *context, const struct backfill_case *its) {
    struct proof *proof = context;
    static const uint32_t slot = 0;
    int64_t ids[TABLE_MAX], prefill_end = its->prompt_tokens;
    int64_t computed = its->delivered ? prefill_end - 1 : 0;
    size_t blocks_before = 0;
    bool anew = true, was_preempted = false;
    int outputs_left = 1 + its->decode_steps, decoded = 0;
    moon_step_jobs_clear(&proof->jobs);
    proof->step_count = 0;
    proof->reported = false;
    proof->fault[0] = 0;
    proof->request.prompt_tokens = proof->request.known_tokens = its->prompt_tokens;
    for (int step = 0; outputs_left > 0 && !proof->fault[0]; step++) {
        if (step == its->preempted_in) {
            take_step(proof, &(struct moon_step){.preempted = &slot, .preempted_count = 1});
            prefill_end = proof->request.known_tokens;
            computed = its->delivered ? (prefill_end - 1) / its->block_tokens * its->block_tokens : 0;
            blocks_before = 0;
            anew = was_preempted = true;
            continue;
        }
        for (int i = 0; i < TABLE_MAX; i++)
            ids[i] = 1 + i + was_preempted * INCARNATION_BLOCKS;
        bool prefill = computed < prefill_end;
        int64_t scheduled = prefill ? prefill_end - computed : 1 + its->drafts;
        if (prefill && scheduled > its->piece_tokens)
            scheduled = its->piece_tokens;
        schedule(proof, computed, scheduled, prefill_end, ids, &blocks_before, anew,
                 !was_preempted || its->resumed_as_new);
        anew = false;
        if (prefill && computed + scheduled < prefill_end) {
            computed += scheduled;
            continue;
        }
        proof->request.known_tokens += prefill ? 1 : 1 + decoded++ % (its->drafts + 1);
        computed = proof->request.known_tokens - 1;
        outputs_left--;
    }
    take_step(proof, &(struct moon_step){.finished = &slot, .finished_count = 1});
}

/* ---- the store and the ranks ---- */

/* Block and shard of a key; false if it is none that a rank may name. */
static bool read_key(struct proof *proof, const struct moon_key_list *keys, size_t index, int *block, int *shard) {
    const struct moon_key_pair pair = keys->pairs[index];
    const struct moon_key_span identity = keys->identities[pair.identity], hash = keys->hashes[pair.hash];
    for (*shard = 0; *shard < proof->world->shards; ++*shard) {
        const char *prefix = proof->prefixes[*shard];
        if (strlen(prefix) == identity.length &&
            memcmp(prefix, keys->text.data + identity.offset, identity.length) == 0)
            break;
    }
    if (hash.length != 32)
        return false;
    const char *digits = keys->text.data + hash.offset;
    *block = (digits[0] - 'a') * 16 + (digits[1] <= '9' ? digits[1] - '0' : digits[1] - 'a' + 10);
    return *shard < proof->world->shards && *block >= 0 && *block < BACKFILL_BLOCKS_MAX &&
           memcmp(digits, proof->hex[*block], 32) == 0;
}

/* One key that a rank puts: the right rank, a key that is missing, read from the block that holds it. */
static void put_key(struct proof *proof, int block, int shard, uint64_t source) {
    if (proof->store[shard] >> block & 1)
        FAULT(proof, "block %d shard %d is put although it is there", block, shard);
    if (backfill_rank(proof->world, block, shard) != proof->rank)
        FAULT(proof, "block %d shard %d is put by rank %d", block, shard, proof->rank);
    if (source != (uint64_t)(block + 1 + proof->incarnation * INCARNATION_BLOCKS))
        FAULT(proof, "block %d is read from the GPU's block %d", block, (int)source);
    proof->store[shard] |= UINT32_C(1) << block;
}

static void answer(struct proof *proof, const struct moon_store_call *call) {
    int64_t values[BACKFILL_BLOCKS_MAX * BACKFILL_SHARDS_MAX] = {0};
    struct moon_error error;
    if (call->count > sizeof values / sizeof values[0]) {
        FAULT(proof, "a call with %zu keys", call->count);
        moon_sender_raised(proof->senders[proof->rank]);
        return;
    }
    for (size_t i = 0; i < call->count; i++) {
        int block = 0, shard = 0;
        if (!read_key(proof, call->keys, call->first + i, &block, &shard))
            FAULT(proof, "key %zu of a call is unknown", i);
        else if (call->kind == MOON_CALL_EXIST)
            values[i] = proof->store[shard] >> block & 1;
        else
            put_key(proof, block, shard, call->blocks[i]);
    }
    if (moon_sender_answer(proof->senders[proof->rank], values, call->count, &error))
        FAULT(proof, "the answer was refused: %s", error.message);
}

/* Runs all queued jobs of the present rank. */
static void drive(struct proof *proof) {
    struct moon_sender *sender = proof->senders[proof->rank];
    const struct moon_store_call *call = NULL;
    struct moon_error error;
    int calls = 0;
    do {
        if (moon_sender_next(sender, &call, &error))
            FAULT(proof, "a job failed: %s", error.message);
        if (call)
            answer(proof, call);
    } while (call && ++calls < CALLS_MAX);
    if (calls == CALLS_MAX)
        FAULT(proof, "the jobs do not end");
    if (moon_sender_take_raised(sender, &error))
        FAULT(proof, "a job raised %s: %s", error.type, error.message);
}

/* One step of the present rank: its jobs are queued, run, and then requests that ended are forgotten. */
static void rank_step(struct proof *proof, const struct planned_step *step) {
    static const uint32_t slot = 0;
    struct moon_sender *sender = proof->senders[proof->rank];
    for (size_t i = 0; i < step->job_count; i++) {
        struct moon_job *job = proof->jobs.jobs[step->first_job + i];
        if (!job->save)
            FAULT(proof, "a job that saves nothing");
        else if (moon_sender_queue(sender, job))
            FAULT(proof, "out of memory");
    }
    if (!proof->its->late)
        drive(proof);
    if (moon_sender_retire(sender, &slot, step->preempted, &slot, step->finished))
        FAULT(proof, "out of memory");
}

/* Each job must be reported once; the first time the scheduler side hears of it too. */
static void take_reports(struct proof *proof) {
    uint64_t id;
    size_t count = 0;
    struct moon_error error;
    while (moon_sender_take_done(proof->senders[proof->rank], &id)) {
        if (count >= proof->jobs.count || proof->jobs.jobs[count++]->id != id)
            FAULT(proof, "rank %d reports job %d out of turn", proof->rank, (int)id);
        if (!proof->reported && moon_scheduler_report(proof->scheduler, id, 1, &error))
            FAULT(proof, "the report of job %d was refused: %s", (int)id, error.message);
    }
    if (count != proof->jobs.count)
        FAULT(proof, "rank %d reports %zu of %zu jobs", proof->rank, count, proof->jobs.count);
}

static void check_references(struct proof *proof) {
    if (moon_scheduler_unreleased(proof->scheduler) > 0)
        FAULT(proof, "jobs still refer to blocks");
    for (size_t i = 0; i < 2 * INCARNATION_BLOCKS; i++)
        if (proof->references[i] != 0)
            FAULT(proof, "%d references to block %d are left", (int)proof->references[i], (int)i);
    proof->reported = true;
}

/* What must be in the store now: all that was there, and every saved block with all its shards. */
static void check_store(struct proof *proof, int saved_blocks) {
    for (int shard = 0; shard < proof->world->shards; shard++) {
        for (int block = 0; block < BACKFILL_BLOCKS_MAX; block++) {
            bool expected = block < saved_blocks || backfill_present(proof->its, block, shard);
            if ((proof->store[shard] >> block & 1) != expected)
                FAULT(proof, "block %d shard %d %s", block, shard,
                      expected ? "is missing: a hole" : "was put too early");
        }
    }
}

static void tell(const struct proof *proof) {
    const struct backfill_case *its = proof->its;
    fprintf(stderr,
            "%s: %s\n  blocks of %d tokens, prompt %d %s in pieces of %d, %d steps of decode with %d drafts, "
            "preempted in step %d and back as %s, %s, %s\n  in the store: blocks 0x%x without block %d shard %d\n",
            proof->world->name, proof->fault, its->block_tokens, its->prompt_tokens,
            its->delivered ? "delivered" : "computed", its->piece_tokens, its->decode_steps, its->drafts,
            its->preempted_in, its->resumed_as_new ? "new" : "cached",
            its->saves_prefill ? "prefill is saved too" : "prefill is not saved",
            its->late ? "jobs run at the end" : "jobs run in their steps", (unsigned)its->present, its->lost_block,
            its->lost_shard);
}

static void run(void *context, const struct backfill_case *its, int saved_blocks) {
    struct proof *proof = context;
    if (proof->wrong >= WRONG_MAX)
        return;
    proof->its = its;
    for (int shard = 0; shard < proof->world->shards; shard++)
        proof->store[shard] = its->present & ~(shard == its->lost_shard ? UINT32_C(1) << its->lost_block : 0);
    proof->incarnation = 0;
    for (size_t i = 0; i < proof->step_count; i++) {
        for (proof->rank = 0; proof->rank < proof->world->tp; proof->rank++)
            rank_step(proof, &proof->steps[i]);
        proof->incarnation += proof->steps[i].preempted;
    }
    for (proof->rank = 0; proof->rank < proof->world->tp; proof->rank++) {
        drive(proof);
        moon_sender_retire(proof->senders[proof->rank], NULL, 0, NULL, 0);
        take_reports(proof);
    }
    if (!proof->reported)
        check_references(proof);
    check_store(proof, saved_blocks);
    if (!proof->fault[0])
        return;
    tell(proof);
    proof->wrong++;
    proof->fault[0] = 0;
}

/* ---- scenes ---- */

enum { PLAIN, STORE_TP, LCM, MQA, REPLICAS, WORLDS };
static const struct backfill_world worlds[WORLDS] = {
    {"one rank", "", 1, 1, 1, 1},
    {"TP 2 with store_tp_size 4", "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc", 2, 4, 2, 1},
    {"TP 2 with the LCM of 4 and 2", "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc", 2, 4, 2, 1},
    {"TP 2 with one KV head", "@store_pp:1@store_format:tp_shared_mqa", 2, 1, 1, 2},
    {"TP 4 with two KV heads", "", 4, 2, 1, 2},
};

static const struct moon_setting sizes[] = {{.type = MOON_SETTING_INTEGER, .text = {"4", 1}},
                                            {.type = MOON_SETTING_INTEGER, .text = {"2", 1}}};

static void describe(struct proof *proof, int block_tokens) {
    size_t world = (size_t)(proof->world - worlds);
    int64_t heads = world == MQA ? 1 : world == REPLICAS ? 2 : 8;
    proof->group = (struct moon_layout_group){
        .spec = {.kind = MOON_SPEC_FULL,
                 .num_kv_heads = heads > proof->world->tp ? heads / proof->world->tp : 1,
                 .head_size = 8},
        .block_tokens = block_tokens,
        .transferable = true,
        .prefix_cacheable = true,
    };
    proof->model = (struct moon_layout_model){.tp = proof->world->tp,
                                              .pp = 1,
                                              .pcp = 1,
                                              .dcp = 1,
                                              .total_kv_heads = heads,
                                              .kv_layout = MOON_KV_LBHNC,
                                              .groups = &proof->group,
                                              .group_count = 1,
                                              .scheduler_block_tokens = block_tokens,
                                              .hash_block_tokens = block_tokens,
                                              .model_name = moon_key_text("m")};
    if (world == STORE_TP)
        proof->model.store_tp_size = sizes[0];
    if (world == MQA)
        proof->model.store_tp_size = sizes[1];
    if (world == LCM) {
        proof->model.enable_store_tp_lcm = (struct moon_setting){.type = MOON_SETTING_BOOL, .boolean = true};
        proof->model.prefill_tp_sizes =
            (struct moon_setting){.type = MOON_SETTING_ARRAY, .elements = sizes, .count = 2};
    }
    for (int shard = 0; shard < proof->world->shards; shard++) {
        for (int block = 0; block < BACKFILL_BLOCKS_MAX; block++) {
            char key[BACKFILL_KEY_BYTES];
            backfill_key(proof->world, block, shard, key);
            char *at = strrchr(key, '@') + 1;
            snprintf(proof->hex[block], sizeof proof->hex[block], "%s", at);
            *at = 0;
            snprintf(proof->prefixes[shard], sizeof proof->prefixes[shard], "%s", key);
        }
    }
}

static void open_proof(struct proof *proof, const struct backfill_case *scene, const char *profile) {
    *proof = (struct proof){.world = scene->world, .release = *moon_profile_find(profile, NULL)};
    describe(proof, scene->block_tokens);
    const struct moon_connector_options options = {
        .role = scene->saves_prefill ? MOON_ROLE_BOTH : MOON_ROLE_CONSUMER,
        .load_async = true,
        .enable_lookup = true,
        .save_decode_cache = true,
        .discard_partial_chunks = true,
    };
    for (size_t i = 0; i < sizeof proof->hashes; i++)
        proof->hashes[i] = backfill_hash_byte((int)(i / 16));
    proof->request.hashes = (struct moon_hashes){proof->hashes, 16, 0};
    proof->blocks = (struct moon_block_port){hold, release};
    CU_ASSERT_EQUAL_FATAL(moon_connector_open(&proof->connector, &proof->release, &proof->model, &options, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(moon_scheduler_open(&proof->scheduler, &proof->connector, NULL, &proof->blocks,
                                              proof->world->tp, moon_memory_heap(), NULL),
                          0);
    for (int rank = 0; rank < proof->world->tp; rank++) {
        const struct moon_rank its = moon_rank_at(&proof->model, rank);
        CU_ASSERT_EQUAL_FATAL(
            moon_sender_open(&proof->senders[rank], &proof->connector, &its, NULL, moon_memory_heap(), NULL), 0);
    }
    moon_step_jobs_open(&proof->jobs, moon_memory_heap());
}

static void close_proof(struct proof *proof) {
    moon_step_jobs_close(&proof->jobs);
    for (int rank = 0; rank < proof->world->tp; rank++)
        moon_sender_close(proof->senders[rank]);
    moon_scheduler_close(proof->scheduler);
}

/* Blocks of the short form, and what the argument asks for. */
static int blocks_asked;
enum { BLOCKS_SHORT = 4, LOST_BLOCKS_SHORT = 3, LOST_BLOCKS = 6 };

static uint64_t prove(const struct backfill_case *scene, const char *profile) {
    struct proof *proof = malloc(sizeof *proof);
    CU_ASSERT_PTR_NOT_NULL_FATAL(proof);
    open_proof(proof, scene, profile);
    const struct backfill_visitor visitor = {proof, begin, run};
    uint64_t count = backfill_enumerate(scene, blocks_asked ? blocks_asked : BLOCKS_SHORT,
                                        blocks_asked ? LOST_BLOCKS : LOST_BLOCKS_SHORT, &visitor);
    MOON_CHECK_INT(proof->wrong, 0);
    close_proof(proof);
    free(proof);
    return count;
}

static uint64_t cases_checked;

static void told(const char *what, uint64_t count) {
    printf("backfill: %s: %" PRIu64 " cases of up to %d blocks\n", what, count,
           blocks_asked ? blocks_asked : BLOCKS_SHORT);
    cases_checked += count;
}

/* The decoder of a deployment: it saves in decode alone. The prompt comes from a prefiller, or is computed at once or
 * in pieces. */
static void prove_world(size_t world) {
    struct backfill_case scene = {
        .world = &worlds[world], .block_tokens = 2, .piece_tokens = 1000, .delivered = true, .resumed_as_new = true};
    uint64_t count = prove(&scene, "vllm-0.33");
    scene.delivered = false;
    count += prove(&scene, "vllm-0.33");
    scene.piece_tokens = 3;
    count += prove(&scene, "vllm-0.33");
    told(worlds[world].name, count);
}

static void one_rank(void) {
    prove_world(PLAIN);
}

static void store_tp(void) {
    prove_world(STORE_TP);
}

static void lcm(void) {
    prove_world(LCM);
}

static void mqa(void) {
    prove_world(MQA);
}

static void replicas(void) {
    prove_world(REPLICAS);
}

static void the_other_roads(void) {
    const struct backfill_case usual = {
        .world = &worlds[PLAIN], .block_tokens = 2, .piece_tokens = 3, .resumed_as_new = true};
    struct backfill_case scene = usual;
    scene.saves_prefill = true;
    told("a role that saves in prefill too", prove(&scene, "vllm-0.33"));
    scene = usual;
    scene.drafts = 2;
    told("speculative decoding", prove(&scene, "vllm-0.33"));
    scene = usual;
    scene.resumed_as_new = false;
    told("resumed in the list of cached requests", prove(&scene, "vllm-0.33"));
    scene = usual;
    scene.block_tokens = 3;
    told("blocks of three tokens", prove(&scene, "vllm-0.33"));
    scene.block_tokens = 1;
    told("blocks of one token", prove(&scene, "vllm-0.33"));
    told("vLLM 0.30", prove(&usual, "vllm-0.30"));
    told("vLLM 0.29", prove(&usual, "vllm-0.29"));
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"one rank puts what is missing, once, without a hole", one_rank},
        {"ranks put their store shards", store_tp},
        {"the same with the LCM of prefill sizes", lcm},
        {"ranks with one KV head share out the blocks", mqa},
        {"replicas share out their blocks", replicas},
        {"other roles, drafts, block sizes and releases", the_other_roads},
        {NULL, NULL},
    };
    if (argc > 1 && sscanf(argv[1], "blocks=%d", &blocks_asked) == 1) {
        if (blocks_asked < 1 || blocks_asked > BACKFILL_BLOCKS_MAX) {
            fprintf(stderr, "backfill_test: blocks=1 to %d\n", BACKFILL_BLOCKS_MAX);
            return 2;
        }
        argc--;
        argv++;
    }
    int status = moon_unit_main("backfill", cases, argc, argv);
    printf("backfill: %" PRIu64 " cases in all\n", cases_checked);
    return status;
}
