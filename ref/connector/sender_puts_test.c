/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what goes with a put of the sender (groups, events, buffers), of memory, and of any order of events. */
#include "ref/base/random.h"
#include "ref/connector/sender_scene_internal.h"

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
    return moon_unit_main("sender puts", cases, argc, argv);
}
