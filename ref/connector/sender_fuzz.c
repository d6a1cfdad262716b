/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the sender: any jobs, block tables, boundary puts, answers and retirements in any order. Each job ends
 * once, and a put is of keys that were asked for and missing. */
#include "ref/connector/sender.h"

#include "ref/base/cursor.h"

#include <assert.h>
#include <string.h>

enum { GROUPS_MAX = 3, BLOCKS_MAX = 16, BOUNDARIES_MAX = 4, KEYS_MAX = 512, EVENTS_MAX = 64, SLOTS = 4 };

struct scene {
    struct moon_cursor input;
    struct moon_layout_group groups[GROUPS_MAX];
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_sender *sender;
    uint8_t hashes[BLOCKS_MAX * 16];
    uint64_t queued, done;
    struct moon_key_pair missing[KEYS_MAX]; /* of the last existence check */
    size_t missing_count;
};

static uint8_t pick(struct scene *scene, unsigned bound) {
    return (uint8_t)(moon_cursor_u8(&scene->input) % bound);
}

static void open_model(struct scene *scene) {
    static const enum moon_spec_kind kinds[] = {MOON_SPEC_FULL, MOON_SPEC_SLIDING_WINDOW, MOON_SPEC_MAMBA,
                                                MOON_SPEC_MLA};
    struct moon_layout_model *model = &scene->model;
    *model = (struct moon_layout_model){.tp = 1 + pick(scene, 4),
                                        .pp = 1,
                                        .pcp = 1,
                                        .dcp = 1,
                                        .total_kv_heads = 1 + pick(scene, 4),
                                        .groups = scene->groups,
                                        .group_count = 1 + pick(scene, GROUPS_MAX),
                                        .hash_block_tokens = 4,
                                        .speculative = pick(scene, 2),
                                        .has_retention = pick(scene, 2),
                                        .model_name = moon_key_text("m")};
    model->scheduler_block_tokens = 4;
    for (size_t i = 0; i < model->group_count; i++) {
        struct moon_layout_group *group = &scene->groups[i];
        *group = (struct moon_layout_group){.spec = {.kind = kinds[pick(scene, 4)],
                                                     .num_kv_heads = 1,
                                                     .head_size = 8,
                                                     .window_tokens = 1 + pick(scene, 20)},
                                            .block_tokens = 4 << pick(scene, 3),
                                            .is_eagle = pick(scene, 2),
                                            .transferable = true,
                                            .prefix_cacheable = true};
        if (group->block_tokens > model->scheduler_block_tokens)
            model->scheduler_block_tokens = group->block_tokens;
    }
    model->retention_tokens = model->scheduler_block_tokens * pick(scene, 3);
    if (pick(scene, 3) == 0)
        model->store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
}

/* ---- events ---- */

static void queue(struct scene *scene) {
    int64_t blocks[GROUPS_MAX][BLOCKS_MAX];
    struct moon_block_table tables[GROUPS_MAX];
    struct moon_boundary_put puts[BOUNDARIES_MAX];
    const struct moon_layout_model *model = &scene->model;
    for (size_t g = 0; g < model->group_count; g++) {
        tables[g] = (struct moon_block_table){blocks[g], pick(scene, BLOCKS_MAX + 1)};
        for (size_t i = 0; i < tables[g].count; i++)
            blocks[g][i] = pick(scene, 8);
    }
    size_t count = pick(scene, BOUNDARIES_MAX + 1);
    for (size_t i = 0; i < count; i++)
        puts[i] =
            (struct moon_boundary_put){pick(scene, (unsigned)model->group_count), pick(scene, 8), pick(scene, 64)};
    struct moon_job *job = moon_job_create(moon_memory_heap(), model->group_count);
    assert(job);
    job->id = scene->queued++;
    job->slot = pick(scene, SLOTS);
    job->save = true;
    job->save_tokens = model->scheduler_block_tokens * pick(scene, 4);
    job->prefill_end_tokens = 1 + pick(scene, 64);
    job->hashes = (struct moon_hashes){scene->hashes, 16, pick(scene, BLOCKS_MAX + 1)};
    assert(moon_tables_create(moon_memory_heap(), tables, model->group_count, &job->tables) == 0);
    assert(moon_job_set_boundary(job, puts, count) == 0);
    assert(moon_sender_queue(scene->sender, job) == 0);
    moon_job_release(job);
}

static void retire(struct scene *scene) {
    const uint32_t slots[2] = {pick(scene, SLOTS), pick(scene, SLOTS)};
    size_t preempted = pick(scene, 2), finished = pick(scene, 2);
    assert(moon_sender_retire(scene->sender, slots, preempted, slots + 1, finished) == 0);
}

/* Judges a call, and answers it. */
static void answer(struct scene *scene, const struct moon_store_call *call) {
    int64_t values[KEYS_MAX];
    bool exist = call->kind == MOON_CALL_EXIST;
    assert(call->count >= 1 && call->count <= KEYS_MAX && call->first + call->count <= call->keys->count);
    assert(exist || (call->blocks && call->count == scene->missing_count));
    if (exist)
        scene->missing_count = 0;
    for (size_t i = 0; i < call->count; i++) {
        const struct moon_key_pair *pair = &call->keys->pairs[call->first + i];
        values[i] = (int64_t)pick(scene, 4) - 1;
        values[i] = values[i] == -1 && !exist ? MOON_STORE_NO_ROOM : values[i];
        assert(exist || memcmp(pair, &scene->missing[i], sizeof *pair) == 0);
        if (exist && values[i] != 1)
            scene->missing[scene->missing_count++] = *pair;
    }
    if (pick(scene, 8) == 0) {
        moon_sender_raised(scene->sender);
        return;
    }
    assert(moon_sender_answer(scene->sender, values, call->count + 1, NULL) == MOON_ERR_RANGE);
    assert(moon_sender_answer(scene->sender, values, call->count, NULL) == 0);
}

static void run(struct scene *scene, bool to_the_end) {
    const struct moon_store_call *call;
    struct moon_stored stored;
    struct moon_error error;
    uint64_t id;
    uint32_t slot;
    do {
        assert(moon_sender_next(scene->sender, &call, NULL) == 0);
        if (call)
            answer(scene, call);
        if (moon_sender_take_stored(scene->sender, &stored))
            assert(stored.count >= 1 && stored.job->save);
        while (moon_sender_take_raised(scene->sender, &error))
            assert(error.status == MOON_ERR_REFUSED || error.status == MOON_ERR_IO);
        while (moon_sender_take_done(scene->sender, &id))
            assert(id == scene->done++); /* in order, and each once */
        while (moon_sender_take_finished(scene->sender, &slot))
            assert(slot < SLOTS);
    } while (call && (to_the_end || pick(scene, 4) != 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct scene scene = {.queued = 0};
    size_t profile_count;
    const struct moon_profile *profiles = moon_profiles(&profile_count);
    moon_cursor_open(&scene.input, data, size);
    for (size_t i = 0; i < BLOCKS_MAX; i++)
        scene.hashes[i * 16] = (uint8_t)i;
    const struct moon_profile *profile = &profiles[pick(&scene, (unsigned)profile_count)];
    open_model(&scene);
    const struct moon_connector_options options = {
        .role = MOON_ROLE_BOTH, .kv_events = pick(&scene, 2), .enable_group_semantics = pick(&scene, 2)};
    if (moon_connector_open(&scene.connector, profile, &scene.model, &options, NULL) != 0)
        return 0; /* the release refuses the engine */
    const struct moon_rank rank = moon_rank_at(&scene.model, pick(&scene, (unsigned)scene.model.tp));
    assert(moon_sender_open(&scene.sender, &scene.connector, &rank, NULL, moon_memory_heap(), NULL) == 0);
    for (int i = 0; i < EVENTS_MAX && !scene.input.failed; i++) {
        unsigned event = pick(&scene, 4);
        if (event < 2)
            queue(&scene);
        else if (event == 2)
            run(&scene, false);
        else
            retire(&scene);
    }
    run(&scene, true);
    assert(moon_sender_queued(scene.sender) == 0);
    assert(scene.done == (profile->job_references ? scene.queued : 0));
    moon_sender_close(scene.sender);
    return 0;
}
