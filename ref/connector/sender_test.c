/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the sender: what one rank asks for and puts, job by job, against a store of a few lines. */
#include "ref/connector/sender.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"

#include <stdarg.h>
#include <stdlib.h>

enum { TOKENS_MAX = 512, GROUPS_MAX = 3, STORE_MAX = 512, LOG_BYTES = 2048 };

/* A store that holds keys, answers as told, and writes down each call. */
struct store {
    char keys[STORE_MAX][200];
    size_t count;
    int64_t exist_other; /* answer for a key that is not there */
    int64_t put_code;    /* answer to a put of hash `put_hash`; others succeed */
    int put_hash;
    bool exist_raises, put_raises;
    char log[LOG_BYTES];
};

/* One rank: a model, its connector and sender, hashes 1, 2, 3 ..., and block 100 * (group + 1) + n for chunk n. */
struct scene {
    struct moon_layout_group groups[GROUPS_MAX];
    struct moon_layout_model model;
    struct moon_profile profile;
    struct moon_connector_options options;
    struct moon_connector connector;
    struct moon_deviation_notes notes;
    const struct moon_segments *segments;
    struct moon_sender *sender;
    struct moon_memory *memory;
    uint8_t hashes[TOKENS_MAX * 16];
    int64_t blocks[GROUPS_MAX][TOKENS_MAX];
    size_t block_count;
    uint64_t next_id;
    struct store store;
};

static void set_scene(struct scene *scene, const char *profile, size_t groups) {
    *scene = (struct scene){.profile = *moon_profile_find(profile, NULL),
                            .options = {.role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true},
                            .memory = moon_memory_heap(),
                            .block_count = TOKENS_MAX};
    for (size_t g = 0; g < groups; g++) {
        scene->groups[g] =
            (struct moon_layout_group){.spec = {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 8},
                                       .block_tokens = 16,
                                       .transferable = true,
                                       .prefix_cacheable = true};
        for (int64_t i = 0; i < TOKENS_MAX; i++)
            scene->blocks[g][i] = (int64_t)(g + 1) * 100 + i;
    }
    for (size_t i = 0; i < TOKENS_MAX; i++) {
        scene->hashes[i * 16 + 14] = (uint8_t)((i + 1) >> 8);
        scene->hashes[i * 16 + 15] = (uint8_t)(i + 1);
    }
    scene->model = (struct moon_layout_model){.tp = 1,
                                              .pp = 1,
                                              .pcp = 1,
                                              .dcp = 1,
                                              .total_kv_heads = 8,
                                              .groups = scene->groups,
                                              .group_count = groups,
                                              .scheduler_block_tokens = 16,
                                              .hash_block_tokens = 16,
                                              .model_name = moon_key_text("m")};
}

static void open_rank(struct scene *scene, int64_t rank) {
    MOON_CHECK_INT(moon_connector_open(&scene->connector, &scene->profile, &scene->model, &scene->options, NULL), 0);
    scene->connector.notes = &scene->notes;
    struct moon_rank its = moon_rank_at(&scene->model, rank);
    MOON_CHECK_INT(moon_sender_open(&scene->sender, &scene->connector, &its, scene->segments, scene->memory, NULL), 0);
}

static void open_scene(struct scene *scene, const char *profile) {
    set_scene(scene, profile, 1);
    open_rank(scene, 0);
}

static void close_scene(struct scene *scene) {
    moon_sender_close(scene->sender);
}

/* A job with boundary puts, not yet queued; NULL when memory refused. Hashes exist for the prefill. */
static struct moon_job *make_job(struct scene *scene, uint32_t slot, int64_t tokens, int64_t prefill,
                                 const struct moon_boundary_put *puts, size_t count) {
    struct moon_block_table tables[GROUPS_MAX];
    for (size_t g = 0; g < scene->model.group_count; g++)
        tables[g] = (struct moon_block_table){scene->blocks[g], scene->block_count};
    struct moon_job *job = moon_job_create(scene->memory, scene->model.group_count);
    if (!job)
        return NULL;
    job->id = scene->next_id++;
    job->slot = slot;
    job->save = true;
    job->save_tokens = tokens;
    job->prefill_end_tokens = prefill;
    job->hashes = (struct moon_hashes){scene->hashes, 16, (size_t)(prefill / scene->model.hash_block_tokens)};
    if (moon_tables_create(scene->memory, tables, scene->model.group_count, &job->tables) ||
        moon_job_set_boundary(job, puts, count)) {
        moon_job_release(job);
        return NULL;
    }
    return job;
}

static int queue_boundary(struct scene *scene, int64_t tokens, int64_t prefill, const struct moon_boundary_put *puts,
                          size_t count) {
    struct moon_job *job = make_job(scene, 0, tokens, prefill, puts, count);
    int status = job ? moon_sender_queue(scene->sender, job) : MOON_ERR_MEMORY;
    moon_job_release(job);
    return status;
}

static int queue(struct scene *scene, uint32_t slot, int64_t tokens) {
    struct moon_job *job = make_job(scene, slot, tokens, tokens, NULL, 0);
    int status = job ? moon_sender_queue(scene->sender, job) : MOON_ERR_MEMORY;
    moon_job_release(job);
    return status;
}

static void retire(struct scene *scene, bool preempted, uint32_t slot) {
    MOON_CHECK_INT(moon_sender_retire(scene->sender, &slot, preempted, &slot, !preempted), 0);
}

/* ---- the store ---- */

static void note(struct store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct store *store, const char *format, ...) {
    va_list arguments;
    size_t used = strlen(store->log);
    va_start(arguments, format);
    vsnprintf(store->log + used, LOG_BYTES - used, format, arguments);
    va_end(arguments);
}

static bool holds(const struct store *store, const char *key) {
    for (size_t i = 0; i < store->count; i++)
        if (strcmp(store->keys[i], key) == 0)
            return true;
    return false;
}

/* Number behind `name` in a key; 0 if it is not there. */
static int number(const char *key, const char *name) {
    const char *at = strstr(key, name);
    return at ? atoi(at + strlen(name)) : 0;
}

static int64_t put_one(struct store *store, const char *key, uint64_t block) {
    int hash = (int)strtol(key + strlen(key) - 4, NULL, 16), tp = number(key, "@tp_rank:");
    int64_t value = hash == store->put_hash ? store->put_code : 0;
    if (value >= 0 && store->count < STORE_MAX)
        snprintf(store->keys[store->count++], sizeof store->keys[0], "%s", key);
    note(store, " %d.%d=%d", number(key, "@group:"), hash, (int)block);
    if (tp)
        note(store, "'%d", tp);
    return value;
}

/* Writes "?n" for an existence check of n keys, "! group.hash=block'T ..." for a put. */
static void answer(struct store *store, const struct moon_store_call *call, int64_t *values) {
    bool exist = call->kind == MOON_CALL_EXIST;
    note(store, "%s%s", store->log[0] ? " " : "", exist ? "?" : "!");
    if (exist)
        note(store, "%zu", call->count);
    for (size_t i = 0; i < call->count; i++) {
        struct moon_text key;
        moon_text_open(&key, moon_memory_heap());
        moon_key_list_write(call->keys, call->first + i, &key);
        const char *text = moon_text_value(&key);
        values[i] = !exist ? put_one(store, text, call->blocks[i]) : holds(store, text) ? 1 : store->exist_other;
        moon_text_close(&key);
    }
}

/* Runs all that is queued. Returns 0, or what moon_sender_next returned. */
static int run_all(struct scene *scene) {
    const struct moon_store_call *call;
    int64_t values[STORE_MAX];
    for (;;) {
        int status = moon_sender_next(scene->sender, &call, NULL);
        if (status || !call)
            return status;
        answer(&scene->store, call, values);
        if (call->kind == MOON_CALL_EXIST ? scene->store.exist_raises : scene->store.put_raises)
            moon_sender_raised(scene->sender);
        else
            MOON_CHECK_INT(moon_sender_answer(scene->sender, values, call->count, NULL), 0);
    }
}

/* Calls of the jobs that are queued, since the last time. */
static const char *calls(struct scene *scene) {
    scene->store.log[0] = '\0';
    MOON_CHECK_INT(run_all(scene), 0);
    return scene->store.log;
}

/* The exception that was kept, "" for none. */
static const char *raised(struct scene *scene) {
    static char text[MOON_ERROR_WHERE_BYTES + MOON_ERROR_MESSAGE_BYTES + 8];
    struct moon_error error;
    text[0] = '\0';
    if (moon_sender_take_raised(scene->sender, &error))
        snprintf(text, sizeof text, "%s: %s", error.type[0] ? error.type : error.where, error.message);
    return text;
}

static bool deviates(const struct scene *scene, enum moon_deviation deviation) {
    return moon_deviation_noted(&scene->notes, deviation);
}

/* ---- one job ---- */

static void a_job_puts_what_is_missing(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(moon_sender_queued(scene.sender), 1);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101");
    MOON_CHECK_INT(queue(&scene, 1, 48), 0); /* another request with the same prompt */
    MOON_CHECK_TEXT(calls(&scene), "?3 ! 0.3=102");
    MOON_CHECK_INT(queue(&scene, 2, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?3");
    MOON_CHECK_INT(moon_sender_queued(scene.sender), 0);
    close_scene(&scene);
}

static void only_1_means_present(void) {
    static const int64_t values[] = {0, -1, 2, -200, INT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct scene scene;
        open_scene(&scene, "0.33");
        scene.store.exist_other = values[i];
        MOON_CHECK_INT(queue(&scene, 0, 16), 0);
        MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
        close_scene(&scene);
    }
}

static void a_save_resumes_where_the_last_one_ended(void) {
    struct scene scene;
    open_scene(&scene, "0.25");
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101 ?2 ! 0.3=102 0.4=103");
    MOON_CHECK_INT(queue(&scene, 0, 64), 0); /* nothing is left */
    MOON_CHECK_TEXT(calls(&scene), "");
    close_scene(&scene);
    open_scene(&scene, "0.24");
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101 ?4 ! 0.3=102 0.4=103");
    close_scene(&scene);
}

static void a_job_that_finds_all_present_moves_the_offset(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(queue(&scene, 1, 32), 0);
    MOON_CHECK_INT(queue(&scene, 1, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101 ?2 ?1 ! 0.3=102");
    close_scene(&scene);
}

static void a_job_without_keys_moves_the_offset(void) {
    struct scene scene;
    set_scene(&scene, "0.33", 1);
    scene.model.tp = 2;
    scene.model.total_kv_heads = 1;
    open_rank(&scene, 1);
    MOON_CHECK_INT(queue(&scene, 0, 16), 0); /* chunk 0 is the other rank's */
    MOON_CHECK_INT(queue(&scene, 0, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.2=101");
    close_scene(&scene);
}

static void chunks_without_a_block_are_left_out(void) {
    struct scene scene;
    open_scene(&scene, "0.29");
    scene.blocks[0][1] = 0;
    scene.block_count = 3;
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.3=102");
    MOON_CHECK_TEXT(raised(&scene), "");
    close_scene(&scene);
}

static void up_to_028_a_short_table_raises_after_the_existence_check(void) {
    struct scene scene;
    open_scene(&scene, "0.28");
    scene.blocks[0][1] = 0;
    scene.block_count = 3;
    MOON_CHECK_INT(queue(&scene, 0, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?3 ! 0.1=100 0.2=0 0.3=102");
    CU_ASSERT(deviates(&scene, MOON_DEVIATION_NULL_BLOCKS_PUT));
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1");
    MOON_CHECK_TEXT(raised(&scene), "IndexError: list index out of range");
    MOON_CHECK_TEXT(raised(&scene), "");
    close_scene(&scene);
}

static void strict_skips_missing_blocks(void) {
    struct scene scene;
    set_scene(&scene, "0.28", 1);
    moon_profile_strict(moon_profile_find("0.28", NULL), &scene.profile);
    open_rank(&scene, 0);
    scene.blocks[0][1] = 0;
    scene.block_count = 3;
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.3=102");
    CU_ASSERT_FALSE(deviates(&scene, MOON_DEVIATION_NULL_BLOCKS_PUT));
    close_scene(&scene);
}

static void too_few_hashes_raise_before_any_call(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    struct moon_job *job = make_job(&scene, 0, 64, 64, NULL, 0);
    job->hashes.count = 3;
    MOON_CHECK_INT(moon_sender_queue(scene.sender, job), 0);
    moon_job_release(job);
    MOON_CHECK_TEXT(calls(&scene), "");
    MOON_CHECK_TEXT(raised(&scene), "AssertionError: ");
    close_scene(&scene);
}

static void up_to_026_a_job_that_waits_sees_later_hashes(void) {
    struct scene scene;
    struct moon_request request = {.prompt_tokens = 33};
    open_scene(&scene, "0.24");
    struct moon_job *job = make_job(&scene, 0, 48, 33, NULL, 0);
    request.hashes = job->hashes;
    job->request = &request;
    MOON_CHECK_INT(moon_sender_queue(scene.sender, job), 0);
    MOON_CHECK_INT(moon_sender_queue(scene.sender, job), 0);
    MOON_CHECK_INT(moon_sender_queue(scene.sender, job), 0);
    const struct moon_store_call *call;
    const int64_t values[] = {1, 1, 1};
    for (size_t hashes = 2; hashes <= 3; hashes++) {
        request.hashes.count = hashes;
        MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
        MOON_CHECK_INT(call->count, hashes);
        MOON_CHECK_INT(moon_sender_answer(scene.sender, values, hashes, NULL), 0);
    }
    moon_job_release(job);
    MOON_CHECK_TEXT(calls(&scene), "?3 ! 0.1=100 0.2=101 0.3=102");
    close_scene(&scene);
}

static void groups_follow_one_another_in_one_call(void) {
    struct scene scene;
    set_scene(&scene, "0.33", 2);
    scene.groups[1].block_tokens = 32;
    scene.model.scheduler_block_tokens = 32;
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?6 ! 0.1=100 0.2=101 0.3=102 0.4=103 1.2=200 1.4=201");
    close_scene(&scene);
}

static void replicas_share_out_chunks_by_number(void) {
    struct scene scene;
    set_scene(&scene, "0.33", 2);
    scene.model.tp = 4;
    scene.model.total_kv_heads = 2;
    open_rank(&scene, 3);
    MOON_CHECK_INT(queue(&scene, 0, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?3 ! 0.2=101'1 1.1=200'1 1.3=202'1");
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.4=103'1");
    close_scene(&scene);
}

static void only_missing_shards_are_put(void) {
    struct scene scene;
    set_scene(&scene, "0.33", 1);
    scene.model.tp = 2;
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
    open_rank(&scene, 1);
    snprintf(scene.store.keys[scene.store.count++], sizeof scene.store.keys[0], "%s",
             "m@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc@tp_rank:2@pcp0@dcp0@pp_rank:0@group:0@"
             "00000000000000000000000000000002");
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?4 ! 0.1=100'2 0.1=100'3 0.2=101'3");
    close_scene(&scene);
}

static void stripes_under_dcp_are_noted(void) {
    struct scene scene;
    set_scene(&scene, "0.23", 1);
    scene.model.tp = scene.model.dcp = 2;
    scene.model.total_kv_heads = 1;
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
    CU_ASSERT(deviates(&scene, MOON_DEVIATION_STRIPED_UNDER_DCP));
    CU_ASSERT_FALSE(deviates(&scene, MOON_DEVIATION_MAMBA_SHARED_OUT));
    close_scene(&scene);
    set_scene(&scene, "0.26", 1);
    scene.model.tp = 2;
    scene.model.total_kv_heads = 1;
    scene.groups[0].spec.kind = MOON_SPEC_MAMBA;
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
    CU_ASSERT(deviates(&scene, MOON_DEVIATION_MAMBA_SHARED_OUT));
    close_scene(&scene);
}

/* ---- failures ---- */

static void a_failed_put_is_retried_by_the_next_job(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    scene.store.put_hash = 1;
    scene.store.put_code = -1;
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101");
    scene.store.put_hash = 0;
    MOON_CHECK_INT(queue(&scene, 0, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?3 ! 0.1=100 0.3=102");
    close_scene(&scene);
}

static void a_full_store_stops_the_request_that_saw_it(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 1, 16), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
    scene.store.put_hash = 2;
    scene.store.put_code = MOON_STORE_NO_ROOM;
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(queue(&scene, 0, 48), 0); /* waits */
    MOON_CHECK_INT(queue(&scene, 1, 16), 0); /* all is saved: lifts nothing */
    MOON_CHECK_INT(queue(&scene, 0, 48), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.2=101");
    scene.store.put_hash = 0;
    MOON_CHECK_INT(queue(&scene, 2, 32), 0); /* puts 2, and so lifts the pressure for all */
    MOON_CHECK_INT(queue(&scene, 0, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.2=101 ?4 ! 0.3=102 0.4=103");
    close_scene(&scene);
}

static void other_failures_are_no_pressure(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    scene.store.put_hash = 1;
    scene.store.put_code = -201;
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100 ?2 ! 0.1=100 0.2=101");
    close_scene(&scene);
}

static void a_preemption_lifts_the_mark(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    scene.store.put_hash = 1;
    scene.store.put_code = MOON_STORE_NO_ROOM;
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
    retire(&scene, true, 0);
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
    close_scene(&scene);
}

static void a_call_that_raises_ends_its_job_alone(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    scene.store.exist_raises = true;
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1");
    MOON_CHECK_TEXT(raised(&scene), "batch_is_exist: the call raised");
    scene.store.exist_raises = false;
    scene.store.put_raises = true;
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101");
    MOON_CHECK_TEXT(raised(&scene), ""); /* it is logged */
    close_scene(&scene);
}

static void a_wrong_number_of_results_is_refused(void) {
    struct scene scene;
    struct moon_error error;
    const struct moon_store_call *call;
    const int64_t values[3] = {0};
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, &error), 0);
    MOON_CHECK_INT(moon_sender_answer(scene.sender, values, 1, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.where, "batch_is_exist");
    MOON_CHECK_TEXT(error.message, "the store answered 1 results for 2 keys");
    MOON_CHECK_INT(moon_sender_answer(scene.sender, values, 2, &error), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, &error), 0);
    MOON_CHECK_INT(moon_sender_answer(scene.sender, values, 3, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.where, "batch_put_from_multi_buffers");
    close_scene(&scene);
}

/* ---- live jobs ---- */

/* Ids of the jobs that are reported, "0 1 2". */
static const char *done(struct scene *scene) {
    static char text[128];
    uint64_t id;
    text[0] = '\0';
    while (moon_sender_take_done(scene->sender, &id))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", text[0] ? " " : "", (int)id);
    return text;
}

static void jobs_of_a_preempted_request_are_dropped(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    retire(&scene, true, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0); /* it came back: a generation of its own */
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101");
    MOON_CHECK_TEXT(done(&scene), "0 1");
    retire(&scene, true, 0);
    retire(&scene, true, 7); /* never heard of */
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2"); /* from token 0 again */
    close_scene(&scene);
}

static void up_to_027_a_stale_job_runs_when_a_new_one_is_queued(void) {
    struct scene scene;
    open_scene(&scene, "0.27");
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    retire(&scene, true, 0);
    MOON_CHECK_TEXT(calls(&scene), "");
    CU_ASSERT_FALSE(deviates(&scene, MOON_DEVIATION_STALE_JOB_RUNS));
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    retire(&scene, true, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100 ?1 ! 0.2=101");
    CU_ASSERT(deviates(&scene, MOON_DEVIATION_STALE_JOB_RUNS));
    close_scene(&scene);
}

static void strict_drops_stale_jobs(void) {
    struct scene scene;
    uint32_t slot = 9;
    set_scene(&scene, "0.27", 1);
    moon_profile_strict(moon_profile_find("0.27", NULL), &scene.profile);
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    retire(&scene, true, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2 ! 0.1=100 0.2=101");
    retire(&scene, false, 0);
    CU_ASSERT(moon_sender_take_finished(scene.sender, &slot));
    MOON_CHECK_INT(slot, 0);
    close_scene(&scene);
}

static void jobs_of_a_finished_request_still_run(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    retire(&scene, false, 0);
    retire(&scene, false, 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100 ?1 ! 0.2=101");
    MOON_CHECK_INT(moon_sender_retire(scene.sender, NULL, 0, NULL, 0), 0); /* now it is forgotten */
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_TEXT(calls(&scene), "?2");
    close_scene(&scene);
}

static void up_to_027_a_finished_request_is_reported_when_its_jobs_have_run(void) {
    struct scene scene;
    uint32_t slot = 9;
    open_scene(&scene, "0.27");
    MOON_CHECK_INT(queue(&scene, 3, 16), 0);
    retire(&scene, false, 3);
    CU_ASSERT_FALSE(moon_sender_take_finished(scene.sender, &slot));
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100");
    retire(&scene, false, 4); /* saved nothing: nobody waits for it */
    CU_ASSERT(moon_sender_take_finished(scene.sender, &slot));
    MOON_CHECK_INT(slot, 3);
    CU_ASSERT_FALSE(moon_sender_take_finished(scene.sender, &slot));
    MOON_CHECK_TEXT(done(&scene), "");
    MOON_CHECK_INT(queue(&scene, 3, 16), 0); /* the slot's next request */
    MOON_CHECK_TEXT(calls(&scene), "?1");
    retire(&scene, false, 3);
    CU_ASSERT(moon_sender_take_finished(scene.sender, &slot));
    close_scene(&scene);
}

static void a_request_preempted_while_it_waits_to_end_is_forgotten(void) {
    struct scene scene;
    uint32_t slot = 9;
    open_scene(&scene, "0.27");
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    retire(&scene, false, 0);
    retire(&scene, true, 0);
    MOON_CHECK_TEXT(calls(&scene), "");
    retire(&scene, false, 1);
    CU_ASSERT_FALSE(moon_sender_take_finished(scene.sender, &slot));
    close_scene(&scene);
}

/* Queues a job that raises, finishes its request; true if that is reported. */
static bool ends_after_exception(const char *profile, bool strict, bool *noted) {
    struct scene scene;
    uint32_t slot;
    set_scene(&scene, profile, 1);
    scene.profile.raised_jobs_end |= strict;
    open_rank(&scene, 0);
    scene.block_count = 0;
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1");
    MOON_CHECK_TEXT(raised(&scene), "IndexError: list index out of range");
    retire(&scene, false, 0);
    bool ended = moon_sender_take_finished(scene.sender, &slot);
    *noted = deviates(&scene, MOON_DEVIATION_RAISED_JOB_KEPT);
    close_scene(&scene);
    return ended;
}

static void up_to_022_a_job_that_raises_never_ends(void) {
    bool noted;
    CU_ASSERT_FALSE(ends_after_exception("0.22", false, &noted));
    CU_ASSERT(noted);
    CU_ASSERT(ends_after_exception("0.22", true, &noted));
    CU_ASSERT_FALSE(noted);
    CU_ASSERT(ends_after_exception("0.23", false, &noted));
    CU_ASSERT_FALSE(noted);
}

static void a_request_retired_during_a_call_keeps_no_offset(void) {
    struct scene scene;
    const struct moon_store_call *call;
    const int64_t zero = 0, full = MOON_STORE_NO_ROOM;
    for (int by_job = 0; by_job < 2; by_job++) {
        open_scene(&scene, by_job ? "0.33" : "0.27");
        MOON_CHECK_INT(queue(&scene, 0, 16), 0);
        MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
        retire(&scene, true, 0);
        MOON_CHECK_INT(moon_sender_answer(scene.sender, &zero, 1, NULL), 0);
        MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
        MOON_CHECK_INT(moon_sender_answer(scene.sender, by_job ? &zero : &full, 1, NULL), 0);
        MOON_CHECK_INT(queue(&scene, 0, 16), 0);
        /* up to 0.27 the mark is made though the request is gone */
        MOON_CHECK_TEXT(calls(&scene), by_job ? "?1 ! 0.1=100" : "");
        close_scene(&scene);
    }
}

static void slots_may_be_large(void) {
    struct scene scene;
    open_scene(&scene, "0.33");
    MOON_CHECK_INT(queue(&scene, 100000, 16), 0);
    MOON_CHECK_INT(queue(&scene, 3, 16), 0);
    MOON_CHECK_TEXT(calls(&scene), "?1 ! 0.1=100 ?1");
    close_scene(&scene);
}

/* ---- boundary puts ---- */

/* A full attention group with blocks of 16 and a Mamba group with blocks of 64, hashed every 16 tokens. */
static void open_mamba(struct scene *scene, const char *profile) {
    set_scene(scene, profile, 2);
    scene->groups[1].spec.kind = MOON_SPEC_MAMBA;
    scene->groups[1].block_tokens = scene->model.scheduler_block_tokens = 64;
    open_rank(scene, 0);
}

/* Calls of one job with these boundary puts. */
static const char *boundary_calls(struct scene *scene, int64_t tokens, int64_t prefill,
                                  const struct moon_boundary_put *puts, size_t count) {
    MOON_CHECK_INT(queue_boundary(scene, tokens, prefill, puts, count), 0);
    return calls(scene);
}

static void boundary_puts_come_first_in_the_order_given(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{0, 104, 80}, {1, 900, 64}, {1, 0, 64}, {1, 901, 0}, {1, 902, 96}};
    open_mamba(&scene, "0.33");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 5),
                    "?2 ! 0.5=104 1.4=900 ?4 ! 0.1=100 0.2=101 0.3=102 0.4=103");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, puts, 2), "?2");
    MOON_CHECK_TEXT(done(&scene), "0 1");
    close_scene(&scene);
}

static void a_state_between_hashes_raises_from_032_on(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{1, 900, 64}, {1, 0, 8}, {1, 901, 72}};
    open_mamba(&scene, "0.32");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 2), "?1 ! 1.4=900 ?4 ! 0.1=100 0.2=101 0.3=102 0.4=103");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 3), "");
    MOON_CHECK_TEXT(raised(&scene),
                    "AssertionError: Boundary put at 72 tokens is not a multiple of the hash block size 16");
    MOON_CHECK_TEXT(done(&scene), "0 1");
    close_scene(&scene);
}

static void states_are_shared_out_like_chunks(void) {
    const struct moon_boundary_put puts[] = {{0, 300, 16}, {0, 301, 24}, {0, 302, 32}};
    for (int64_t rank = 0; rank < 2; rank++) {
        struct scene scene;
        set_scene(&scene, "0.33", 2);
        scene.groups[0].block_tokens = scene.groups[1].block_tokens = 16;
        scene.groups[1].spec.kind = MOON_SPEC_MAMBA;
        scene.model.hash_block_tokens = 8;
        scene.model.tp = 2;
        scene.model.total_kv_heads = 1;
        open_rank(&scene, rank);
        MOON_CHECK_TEXT(boundary_calls(&scene, 0, 40, puts, 3), rank == 0 ? "?1 ! 0.2=300" : "?2 ! 0.3=301 0.4=302");
        close_scene(&scene);
    }
}

static void a_failed_boundary_put_drops_the_job(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 64};
    open_mamba(&scene, "0.33");
    scene.store.put_hash = 4;
    scene.store.put_code = MOON_STORE_NO_ROOM;
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1 ! 1.4=900");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), ""); /* waits for room */
    scene.store.put_hash = 0;
    MOON_CHECK_INT(queue(&scene, 1, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?4 ! 0.1=100 0.2=101 0.3=102 0.4=103");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1 ! 1.4=900 ?4");
    close_scene(&scene);
}

static void boundary_calls_that_raise_are_logged(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 64};
    open_mamba(&scene, "0.33");
    scene.store.exist_raises = true;
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1");
    scene.store.exist_raises = false;
    scene.store.put_raises = true;
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1 ! 1.4=900");
    MOON_CHECK_TEXT(raised(&scene), "");
    close_scene(&scene);
}

static void from_029_to_031_a_state_inside_a_block_takes_the_groups_along(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{1, 900, 64}, {1, 901, 80}};
    const struct moon_boundary_put apart[] = {{1, 900, 80}, {1, 901, 96}};
    open_mamba(&scene, "0.31");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 2),
                    "?7 ! 1.4=900 0.1=100 0.2=101 0.3=102 0.4=103 0.5=104 1.5=901 ?4");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, puts, 2), "?3"); /* from the offset on */
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 70, puts, 2), "?1"); /* no hash at 80 */
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 112, apart, 2), "");
    MOON_CHECK_TEXT(raised(&scene),
                    "ValueError: Sub-block partial-tail offloads for one request must share a boundary");
    scene.blocks[0][4] = 0;
    scene.store.count = 0;
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &puts[1], 1), "?1 ! 1.5=901");
    scene.block_count = 4;
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &puts[1], 1), "?1");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 15, puts, 2), ""); /* no hashes at all */
    close_scene(&scene);
}

static void a_tail_after_all_is_saved_puts_its_last_block(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 80};
    open_mamba(&scene, "0.30");
    MOON_CHECK_INT(queue(&scene, 0, 128), 0);
    MOON_CHECK_TEXT(calls(&scene), "?8 ! 0.1=100 0.2=101 0.3=102 0.4=103 0.5=104 0.6=105 0.7=106 0.8=107");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 128, &state, 1), "?2 ! 1.5=900");
    close_scene(&scene);
}

static void other_mamba_groups_put_nothing_in_a_tail(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 80};
    for (int release = 0; release < 2; release++) {
        set_scene(&scene, release ? "0.30" : "0.28", 3);
        scene.groups[1].spec.kind = scene.groups[2].spec.kind = MOON_SPEC_MAMBA;
        scene.groups[0].block_tokens = scene.groups[1].block_tokens = scene.groups[2].block_tokens = 64;
        scene.model.scheduler_block_tokens = 64;
        open_rank(&scene, 0);
        MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &state, 1),
                        release ? "?3 ! 0.4=100 0.5=101 1.5=900"
                                : "?6 ! 0.4=100 0.5=101 1.4=200 1.5=900 2.4=300 2.5=301");
        close_scene(&scene);
    }
}

static void in_027_and_028_every_state_is_part_of_the_tail(void) {
    struct scene scene;
    const struct moon_boundary_put aligned = {1, 900, 64}, apart[] = {{1, 900, 80}, {1, 901, 64}};
    const struct moon_boundary_put twice[] = {{1, 900, 80}, {1, 901, 80}};
    open_mamba(&scene, "0.27");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &aligned, 1), "?5 ! 0.1=100 0.2=101 0.3=102 0.4=103 1.4=200");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, twice, 2), "?7 ! 0.5=104 1.5=901"); /* the last one counts */
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, apart, 2), "");
    MOON_CHECK_TEXT(raised(&scene), "ValueError: Partial-tail offloads for one request must share a boundary");
    close_scene(&scene);
}

static void a_position_before_the_first_hash_is_keyed_by_the_last(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 8};
    open_mamba(&scene, "0.30");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &state, 1), "?2 ! 0.5=100 1.5=900");
    close_scene(&scene);
}

static void without_fine_hits_states_inside_a_block_are_dropped(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{1, 900, 16}, {1, 901, 24}};
    set_scene(&scene, "0.30", 2);
    scene.groups[1].spec.kind = MOON_SPEC_MAMBA;
    open_rank(&scene, 0);
    MOON_CHECK_TEXT(boundary_calls(&scene, 16, 40, puts, 2), "?1 ! 1.1=900 ?1 ! 0.1=100");
    close_scene(&scene);
}

static void older_releases_know_no_boundary_puts(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 64};
    open_mamba(&scene, "0.26");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &state, 1), "");
    close_scene(&scene);
}

static void shards_have_no_boundary_puts(void) {
    struct scene scene;
    const struct moon_boundary_put state = {0, 900, 16};
    set_scene(&scene, "0.33", 1);
    scene.model.tp = 2;
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
    open_rank(&scene, 1);
    MOON_CHECK_TEXT(boundary_calls(&scene, 16, 16, &state, 1), "");
    MOON_CHECK_TEXT(raised(&scene), "RuntimeError: This operation requires a rank-local Store layout");
    close_scene(&scene);
}

/* ---- what goes with a put ---- */

static void lifecycle_groups_go_with_each_key(void) {
    struct scene scene;
    const struct moon_store_call *call;
    const int64_t values[2] = {1, 0};
    set_scene(&scene, "0.33", 1);
    scene.options.enable_group_semantics = true;
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    CU_ASSERT_PTR_NULL(call->groups);
    MOON_CHECK_INT(moon_sender_answer(scene.sender, values, 2, NULL), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    MOON_CHECK_INT(call->count, 1);
    char text[100];
    snprintf(text, sizeof text, "%.*s", (int)call->groups[0].length, call->groups[0].bytes);
    MOON_CHECK_TEXT(text, "vllm-mooncake-store:m@00000000000000000000000000000002");
    MOON_CHECK_INT(moon_sender_answer(scene.sender, values, 1, NULL), 0);
    close_scene(&scene);
}

static void what_was_stored_is_told_once(void) {
    struct scene scene;
    struct moon_stored stored;
    const struct moon_store_call *call;
    const int64_t exist[4] = {1, 0, 0, 0}, put[3] = {0, 0, -1};
    set_scene(&scene, "0.33", 1);
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("2")};
    scene.options.kv_events = true;
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    CU_ASSERT_FALSE(moon_sender_take_stored(scene.sender, &stored));
    MOON_CHECK_INT(moon_sender_answer(scene.sender, exist, 4, NULL), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    MOON_CHECK_INT(moon_sender_answer(scene.sender, put, 3, NULL), 0);
    CU_ASSERT_FATAL(moon_sender_take_stored(scene.sender, &stored));
    MOON_CHECK_INT(stored.count, 2);
    MOON_CHECK_INT(stored.job->id, 0);
    CU_ASSERT_FALSE(stored.raised);
    MOON_CHECK_INT(stored.blocks[0].chunk.end_tokens, 16);
    CU_ASSERT_FALSE(stored.blocks[0].failed);
    MOON_CHECK_INT(stored.blocks[1].chunk.first_hash, 1);
    CU_ASSERT(stored.blocks[1].failed);
    CU_ASSERT_FALSE(moon_sender_take_stored(scene.sender, &stored));
    MOON_CHECK_INT(queue(&scene, 0, 32), 0);
    scene.store.put_raises = true;
    MOON_CHECK_INT(run_all(&scene), 0);
    CU_ASSERT_FALSE(moon_sender_take_stored(scene.sender, &stored)); /* too late: the sender went on */
    close_scene(&scene);
}

static void a_put_that_raises_is_told_as_such(void) {
    struct scene scene;
    struct moon_stored stored;
    const struct moon_store_call *call;
    const int64_t zero = 0;
    set_scene(&scene, "0.33", 1);
    scene.options.kv_events = true;
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    MOON_CHECK_INT(moon_sender_answer(scene.sender, &zero, 1, NULL), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    moon_sender_raised(scene.sender);
    CU_ASSERT_FATAL(moon_sender_take_stored(scene.sender, &stored));
    CU_ASSERT(stored.raised);
    MOON_CHECK_INT(stored.count, 1);
    close_scene(&scene);
}

/* Two caches of 8 blocks, 64 bytes a block (of 2 heads and 16 tokens where they are sharded). */
static void build_segments(struct scene *scene, struct moon_arena *arena, struct moon_segments *segments) {
    static const uint64_t storages[] = {512, 512};
    struct moon_tensor caches[2] = {{.dimensions = 2, .item_bytes = 1},
                                    {.storage = 1, .dimensions = 2, .item_bytes = 1}};
    for (int i = 0; i < 2; i++) {
        memcpy(caches[i].shape, (uint64_t[]){8, 64}, 2 * sizeof(uint64_t));
        memcpy(caches[i].strides, (uint64_t[]){64, 1}, 2 * sizeof(uint64_t));
    }
    struct moon_store_selection selection;
    moon_store_select(&scene->profile, &scene->model, &selection);
    struct moon_shards shards = {0};
    if (moon_store_sharded(&selection)) {
        shards = moon_rank_shards(&scene->model, &selection, 0);
        for (int i = 0; i < 2; i++) {
            caches[i].dimensions = 4;
            memcpy(caches[i].shape, (uint64_t[]){8, 2, 16, 2}, 4 * sizeof(uint64_t));
            memcpy(caches[i].strides, (uint64_t[]){64, 32, 2, 1}, 4 * sizeof(uint64_t));
        }
    }
    const struct moon_rank_caches rank = {.profile = &scene->profile,
                                          .storage_bytes = storages,
                                          .storage_count = 2,
                                          .caches = caches,
                                          .cache_count = 2,
                                          .num_blocks = 8,
                                          .block_size_tokens = 16};
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_segments_build(arena, &rank, moon_store_sharded(&selection) ? &shards : NULL, segments, &error),
                   0);
    MOON_CHECK_TEXT(error.message, "");
    scene->segments = segments;
}

/* Buffers of the next put as "storage:offset+size ...", after an existence check in which nothing is present. */
static const char *next_buffers(struct scene *scene) {
    static char text[512];
    const struct moon_store_call *call;
    const int64_t zeros[16] = {0};
    text[0] = '\0';
    MOON_CHECK_INT(moon_sender_next(scene->sender, &call, NULL), 0);
    MOON_CHECK_INT(moon_sender_answer(scene->sender, zeros, call->count, NULL), 0);
    MOON_CHECK_INT(moon_sender_next(scene->sender, &call, NULL), 0);
    for (size_t i = 0; call && i < call->count * call->buffers_per_key; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d:%d+%d", i ? " " : "",
                 (int)call->buffers[i].storage, (int)call->buffers[i].offset_bytes, (int)call->buffers[i].size_bytes);
    if (call)
        MOON_CHECK_INT(moon_sender_answer(scene->sender, zeros, call->count, NULL), 0);
    return text;
}

static void puts_carry_their_buffers(void) {
    struct scene scene;
    struct moon_arena arena;
    struct moon_segments segments;
    const struct moon_boundary_put state = {1, 5, 16};
    moon_arena_open(&arena, moon_memory_heap());
    set_scene(&scene, "0.33", 2);
    scene.groups[1].spec.kind = MOON_SPEC_MAMBA;
    scene.blocks[0][0] = 2;
    scene.blocks[0][1] = 7;
    build_segments(&scene, &arena, &segments);
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue_boundary(&scene, 32, 32, &state, 1), 0);
    MOON_CHECK_TEXT(next_buffers(&scene), "0:320+64 1:320+64");
    MOON_CHECK_TEXT(next_buffers(&scene), "0:128+64 1:128+64 0:448+64 1:448+64");
    close_scene(&scene);
    moon_arena_close(&arena);
}

static void puts_of_shards_carry_the_buffers_of_their_heads(void) {
    struct scene scene;
    struct moon_arena arena;
    struct moon_segments segments;
    moon_arena_open(&arena, moon_memory_heap());
    set_scene(&scene, "0.33", 1);
    scene.model.total_kv_heads = 2;
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("2")};
    scene.blocks[0][0] = 3;
    build_segments(&scene, &arena, &segments);
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_TEXT(next_buffers(&scene), "0:192+32 1:192+32 0:224+32 1:224+32");
    close_scene(&scene);
    moon_arena_close(&arena);
}

static void segments_of_another_layout_are_refused(void) {
    struct scene scene;
    struct moon_error error;
    struct moon_segments segments = {.sharded = true};
    set_scene(&scene, "0.33", 1);
    MOON_CHECK_INT(moon_connector_open(&scene.connector, &scene.profile, &scene.model, &scene.options, NULL), 0);
    struct moon_rank rank = moon_rank_at(&scene.model, 0);
    MOON_CHECK_INT(moon_sender_open(&scene.sender, &scene.connector, &rank, &segments, scene.memory, &error),
                   MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "the segments are TP-sharded, the layout of the store is not");
    segments.sharded = false;
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("2")};
    MOON_CHECK_INT(moon_connector_open(&scene.connector, &scene.profile, &scene.model, &scene.options, NULL), 0);
    MOON_CHECK_INT(moon_sender_open(&scene.sender, &scene.connector, &rank, &segments, scene.memory, &error),
                   MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "the segments are rank-local, the layout of the store is not");
}

static void a_block_beyond_all_memory_is_an_error_of_ours(void) {
    struct scene scene;
    struct moon_arena arena;
    struct moon_segments segments;
    const struct moon_store_call *call;
    const int64_t zero = 0;
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    set_scene(&scene, "0.33", 1);
    scene.blocks[0][0] = INT64_MAX;
    build_segments(&scene, &arena, &segments);
    open_rank(&scene, 0);
    MOON_CHECK_INT(queue(&scene, 0, 16), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, NULL), 0);
    MOON_CHECK_INT(moon_sender_answer(scene.sender, &zero, 1, NULL), 0);
    MOON_CHECK_INT(moon_sender_next(scene.sender, &call, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "block 9223372036854775807 of chunk 0 lies beyond 64 bits");
    close_scene(&scene);
    moon_arena_close(&arena);
}

/* ---- memory, and any order of events ---- */

/* A save with all that takes memory; each call is tried again until memory refuses no more. Returns what the first
 * refusal was. */
static int exercise(struct scene *scene, struct moon_memory_failing *failing) {
    struct moon_rank rank = moon_rank_at(&scene->model, 0);
    const struct moon_boundary_put state = {1, 5, 64};
    int first = 0;
    scene->memory = &failing->memory;
    scene->sender = NULL;
    for (int step = 0; step < 6;) {
        int status = 0;
        uint32_t slot = 0;
        if (step == 0)
            status = moon_sender_open(&scene->sender, &scene->connector, &rank, scene->segments, scene->memory, NULL);
        else if (step == 1)
            status = queue_boundary(scene, 128, 131, &state, 1);
        else if (step == 2 || step == 5)
            status = run_all(scene);
        else if (step == 3)
            status = queue(scene, 40, 128);
        else
            status = moon_sender_retire(scene->sender, &slot, 1, (uint32_t[]){40, 41}, 2);
        if (status) {
            first = first ? first : status;
            failing->fail_at = 0;
        } else {
            step++;
        }
    }
    moon_sender_close(scene->sender);
    return first;
}

static void refused_memory_changes_nothing_and_leaks_nothing(void) {
    for (uint64_t at = 1;; at++) {
        struct scene scene;
        struct moon_memory_failing failing;
        struct moon_arena arena;
        struct moon_segments segments;
        moon_arena_open(&arena, moon_memory_heap());
        set_scene(&scene, "0.33", 2);
        scene.groups[1].spec.kind = MOON_SPEC_MAMBA;
        scene.groups[1].block_tokens = scene.model.scheduler_block_tokens = 64;
        scene.options.kv_events = scene.options.enable_group_semantics = true;
        for (int64_t i = 0; i < 8; i++)
            scene.blocks[0][i] = i;
        build_segments(&scene, &arena, &segments);
        MOON_CHECK_INT(moon_connector_open(&scene.connector, &scene.profile, &scene.model, &scene.options, NULL), 0);
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        int status = exercise(&scene, &failing);
        MOON_CHECK_INT(failing.held_bytes, 0);
        MOON_CHECK_TEXT(scene.store.log, "?1 ! 1.4=5 ?7 ! 0.2=1 0.3=2 0.4=3 0.5=4 0.6=5 0.7=6 0.8=7 ?7");
        MOON_CHECK_INT(status, failing.requests < at ? 0 : MOON_ERR_MEMORY);
        moon_arena_close(&arena);
        if (failing.requests < at)
            break;
    }
}

/* As above with so many keys that each list of a call is a piece of memory of its own. */
static void refused_memory_of_large_calls_is_told(void) {
    for (uint64_t at = 1;; at++) {
        static struct scene scene;
        struct moon_memory_failing failing;
        struct moon_arena arena;
        struct moon_segments segments;
        moon_arena_open(&arena, moon_memory_heap());
        set_scene(&scene, "0.33", 1);
        for (size_t i = 0; i < TOKENS_MAX; i++)
            scene.blocks[0][i] = 1;
        scene.options.enable_group_semantics = scene.options.kv_events = true;
        build_segments(&scene, &arena, &segments);
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        scene.memory = &failing.memory;
        MOON_CHECK_INT(moon_connector_open(&scene.connector, &scene.profile, &scene.model, &scene.options, NULL), 0);
        struct moon_rank rank = moon_rank_at(&scene.model, 0);
        int status = moon_sender_open(&scene.sender, &scene.connector, &rank, scene.segments, scene.memory, NULL);
        if (!status)
            status = queue(&scene, 0, 16 * 400);
        if (!status)
            status = run_all(&scene);
        moon_sender_close(scene.sender);
        MOON_CHECK_INT(failing.held_bytes, 0);
        MOON_CHECK_INT(status, failing.requests < at ? 0 : MOON_ERR_MEMORY);
        moon_arena_close(&arena);
        if (failing.requests < at)
            break;
    }
}

/* Whatever happens, each queued job is reported once, and no key is put twice into a store that keeps them. */
static void every_job_is_reported_once(void) {
    struct moon_random random;
    moon_random_seed(&random, 4);
    for (int round = 0; round < 200; round++) {
        static struct scene scene;
        uint64_t id, reported = 0;
        set_scene(&scene, moon_random_chance(&random, 1, 2) ? "0.33" : "0.28", 2);
        scene.model.tp = 2;
        scene.model.total_kv_heads = 1;
        open_rank(&scene, (int64_t)moon_random_below(&random, 2));
        for (int event = 0; event < 30; event++) {
            uint32_t slot = (uint32_t)moon_random_below(&random, 3);
            uint64_t kind = moon_random_below(&random, 8);
            scene.store.put_hash = (int)moon_random_below(&random, 12);
            scene.store.put_code = moon_random_chance(&random, 1, 2) ? MOON_STORE_NO_ROOM : -1;
            scene.store.put_raises = moon_random_chance(&random, 1, 10);
            scene.store.exist_raises = moon_random_chance(&random, 1, 10);
            if (kind < 4)
                MOON_CHECK_INT(queue(&scene, slot, 16 * moon_random_between(&random, 1, 8)), 0);
            else if (kind == 4)
                retire(&scene, moon_random_chance(&random, 1, 2), slot);
            else
                calls(&scene);
        }
        calls(&scene);
        for (; moon_sender_take_done(scene.sender, &id); reported++)
            MOON_CHECK_INT(id, reported);
        MOON_CHECK_INT(reported, scene.next_id);
        close_scene(&scene);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a job puts what is missing", a_job_puts_what_is_missing},
        {"only the answer 1 means present", only_1_means_present},
        {"a save resumes where the last one ended, from 0.25 on", a_save_resumes_where_the_last_one_ended},
        {"a job that finds all present moves the offset", a_job_that_finds_all_present_moves_the_offset},
        {"a job without keys moves the offset", a_job_without_keys_moves_the_offset},
        {"chunks without a block are left out", chunks_without_a_block_are_left_out},
        {"up to 0.28 a short table raises after the existence check",
         up_to_028_a_short_table_raises_after_the_existence_check},
        {"strict skips missing blocks", strict_skips_missing_blocks},
        {"too few hashes raise before any call", too_few_hashes_raise_before_any_call},
        {"up to 0.26 a job that waits sees hashes that came since", up_to_026_a_job_that_waits_sees_later_hashes},
        {"groups follow one another in one call", groups_follow_one_another_in_one_call},
        {"replicas share out chunks by their number", replicas_share_out_chunks_by_number},
        {"only missing shards are put", only_missing_shards_are_put},
        {"stripes over ranks with other bytes are noted", stripes_under_dcp_are_noted},
        {"a failed put is retried by the next job", a_failed_put_is_retried_by_the_next_job},
        {"a full store stops the request that saw it until another succeeds",
         a_full_store_stops_the_request_that_saw_it},
        {"other failures are no pressure", other_failures_are_no_pressure},
        {"a preemption lifts the mark of its request", a_preemption_lifts_the_mark},
        {"a call that raises ends its job alone", a_call_that_raises_ends_its_job_alone},
        {"a wrong number of results is refused", a_wrong_number_of_results_is_refused},
        {"jobs of a preempted request are dropped", jobs_of_a_preempted_request_are_dropped},
        {"up to 0.27 a stale job runs when a new one is queued", up_to_027_a_stale_job_runs_when_a_new_one_is_queued},
        {"strict drops stale jobs", strict_drops_stale_jobs},
        {"jobs of a finished request still run", jobs_of_a_finished_request_still_run},
        {"up to 0.27 a finished request is reported when its jobs have run",
         up_to_027_a_finished_request_is_reported_when_its_jobs_have_run},
        {"a request preempted while it waits to end is forgotten",
         a_request_preempted_while_it_waits_to_end_is_forgotten},
        {"up to 0.22 a job that raises never ends", up_to_022_a_job_that_raises_never_ends},
        {"a request retired during a call keeps no offset", a_request_retired_during_a_call_keeps_no_offset},
        {"slots may be large", slots_may_be_large},
        {"boundary puts come first, in the order given", boundary_puts_come_first_in_the_order_given},
        {"a state between hashes raises from 0.32 on", a_state_between_hashes_raises_from_032_on},
        {"states are shared out like chunks", states_are_shared_out_like_chunks},
        {"a failed boundary put drops the job", a_failed_boundary_put_drops_the_job},
        {"boundary calls that raise are logged", boundary_calls_that_raise_are_logged},
        {"from 0.29 to 0.31 a state inside a block takes the groups along",
         from_029_to_031_a_state_inside_a_block_takes_the_groups_along},
        {"a tail after all is saved puts its last block", a_tail_after_all_is_saved_puts_its_last_block},
        {"other Mamba groups put nothing in a tail", other_mamba_groups_put_nothing_in_a_tail},
        {"in 0.27 and 0.28 every state is part of the tail", in_027_and_028_every_state_is_part_of_the_tail},
        {"a position before the first hash is keyed by the last",
         a_position_before_the_first_hash_is_keyed_by_the_last},
        {"without fine-grained hits states inside a block are dropped",
         without_fine_hits_states_inside_a_block_are_dropped},
        {"older releases know no boundary puts", older_releases_know_no_boundary_puts},
        {"shards have no boundary puts", shards_have_no_boundary_puts},
        {"lifecycle groups go with each key", lifecycle_groups_go_with_each_key},
        {"what was stored is told once", what_was_stored_is_told_once},
        {"a put that raises is told as such", a_put_that_raises_is_told_as_such},
        {"puts carry their buffers", puts_carry_their_buffers},
        {"puts of shards carry the buffers of their heads", puts_of_shards_carry_the_buffers_of_their_heads},
        {"segments of another layout are refused", segments_of_another_layout_are_refused},
        {"a block beyond all memory is an error of ours", a_block_beyond_all_memory_is_an_error_of_ours},
        {"refused memory changes nothing and leaks nothing", refused_memory_changes_nothing_and_leaks_nothing},
        {"refused memory of large calls is told", refused_memory_of_large_calls_is_told},
        {"every job is reported once", every_job_is_reported_once},
        {NULL, NULL}};
    return moon_unit_main("sender", cases, argc, argv);
}
