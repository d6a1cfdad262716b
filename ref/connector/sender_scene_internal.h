/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: one rank that saves, and a store of a few lines that writes down what it is asked. */
#ifndef MOON_CONNECTOR_SENDER_SCENE_INTERNAL_H
#define MOON_CONNECTOR_SENDER_SCENE_INTERNAL_H

#include "ref/base/unit.h"
#include "ref/connector/sender.h"
#include "ref/layout/model_check_internal.h"

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

static inline void set_scene(struct scene *scene, const char *profile, size_t groups) {
    *scene = (struct scene){.profile = *moon_profile_find(profile, NULL),
                            .options = {.role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true},
                            .memory = moon_memory_heap(),
                            .block_count = TOKENS_MAX};
    for (size_t g = 0; g < groups; g++) {
        scene->groups[g] = group_of(MOON_SPEC_FULL, 16, 0);
        for (int64_t i = 0; i < TOKENS_MAX; i++)
            scene->blocks[g][i] = (int64_t)(g + 1) * 100 + i;
    }
    for (size_t i = 0; i < TOKENS_MAX; i++) {
        scene->hashes[i * 16 + 14] = (uint8_t)((i + 1) >> 8);
        scene->hashes[i * 16 + 15] = (uint8_t)(i + 1);
    }
    scene->model = model_of(scene->groups, groups, 1, 8);
}

static inline void open_rank(struct scene *scene, int64_t rank) {
    MOON_CHECK_INT(moon_connector_open(&scene->connector, &scene->profile, &scene->model, &scene->options, NULL), 0);
    scene->connector.notes = &scene->notes;
    struct moon_rank its = moon_rank_at(&scene->model, rank);
    MOON_CHECK_INT(moon_sender_open(&scene->sender, &scene->connector, &its, scene->segments, scene->memory, NULL), 0);
}

static inline void open_scene(struct scene *scene, const char *profile) {
    set_scene(scene, profile, 1);
    open_rank(scene, 0);
}

static inline void close_scene(struct scene *scene) {
    moon_sender_close(scene->sender);
}

/* A job with boundary puts, not yet queued; NULL when memory refused. Hashes exist for the prefill. */
static inline struct moon_job *make_job(struct scene *scene, uint32_t slot, int64_t tokens, int64_t prefill,
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

static inline int queue_boundary(struct scene *scene, int64_t tokens, int64_t prefill,
                                 const struct moon_boundary_put *puts, size_t count) {
    struct moon_job *job = make_job(scene, 0, tokens, prefill, puts, count);
    int status = job ? moon_sender_queue(scene->sender, job) : MOON_ERR_MEMORY;
    moon_job_release(job);
    return status;
}

static inline int queue(struct scene *scene, uint32_t slot, int64_t tokens) {
    struct moon_job *job = make_job(scene, slot, tokens, tokens, NULL, 0);
    int status = job ? moon_sender_queue(scene->sender, job) : MOON_ERR_MEMORY;
    moon_job_release(job);
    return status;
}

static inline void retire(struct scene *scene, bool preempted, uint32_t slot) {
    MOON_CHECK_INT(moon_sender_retire(scene->sender, &slot, preempted, &slot, !preempted), 0);
}

/* ---- the store ---- */

static inline void note(struct store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void note(struct store *store, const char *format, ...) {
    va_list arguments;
    size_t used = strlen(store->log);
    va_start(arguments, format);
    vsnprintf(store->log + used, LOG_BYTES - used, format, arguments);
    va_end(arguments);
}

static inline bool holds(const struct store *store, const char *key) {
    for (size_t i = 0; i < store->count; i++)
        if (strcmp(store->keys[i], key) == 0)
            return true;
    return false;
}

/* Number behind `name` in a key; 0 if it is not there. */
static inline int number(const char *key, const char *name) {
    const char *at = strstr(key, name);
    return at ? atoi(at + strlen(name)) : 0;
}

static inline int64_t put_one(struct store *store, const char *key, uint64_t block) {
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
static inline void answer(struct store *store, const struct moon_store_call *call, int64_t *values) {
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
static inline int run_all(struct scene *scene) {
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
static inline const char *calls(struct scene *scene) {
    scene->store.log[0] = '\0';
    MOON_CHECK_INT(run_all(scene), 0);
    return scene->store.log;
}

/* The exception that was kept, "" for none. */
static inline const char *raised(struct scene *scene) {
    static char text[MOON_ERROR_WHERE_BYTES + MOON_ERROR_MESSAGE_BYTES + 8];
    struct moon_error error;
    text[0] = '\0';
    if (moon_sender_take_raised(scene->sender, &error))
        snprintf(text, sizeof text, "%s: %s", error.type[0] ? error.type : error.where, error.message);
    return text;
}

static inline bool deviates(const struct scene *scene, enum moon_deviation deviation) {
    return moon_deviation_noted(&scene->notes, deviation);
}
/* Ids of the jobs that are reported, "0 1 2". */
static inline const char *done(struct scene *scene) {
    static char text[128];
    uint64_t id;
    text[0] = '\0';
    while (moon_sender_take_done(scene->sender, &id))
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", text[0] ? " " : "", (int)id);
    return text;
}

#endif
