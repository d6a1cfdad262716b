/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing of the load path: arbitrary jobs, budgets and answers; every load ends once, and reads only its own blocks.
 */
#include "ref/base/cursor.h"
#include "ref/connector/load_rig_internal.h"

enum { JOBS_MAX = 6, STEPS_MAX = 400, ANSWERS_MAX = RIG_HASHES_MAX * RIG_GROUPS_MAX * 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* An engine of the first bytes: any release, layouts and groups that it runs. */
static void plan_engine(struct moon_cursor *input, struct rig_plan *plan, struct moon_profile *strict) {
    static const enum moon_spec_kind kinds[] = {MOON_SPEC_FULL, MOON_SPEC_SLIDING_WINDOW, MOON_SPEC_MAMBA};
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    uint8_t bits = moon_cursor_u8(input);
    *plan = (struct rig_plan){.profile = &all[moon_cursor_u8(input) % count], .tp = INT64_C(1) << (bits & 3)};
    if (bits & 4) {
        moon_profile_strict(plan->profile, strict);
        plan->profile = strict;
    }
    plan->tp_rank = moon_cursor_u8(input) % plan->tp;
    plan->heads = 8;
    plan->group_count = plan->profile->coordinator ? 1 + (bits >> 3) % RIG_GROUPS_MAX : 1;
    plan->scheduler_block = plan->group_count > 1 ? 64 : 16;
    for (size_t i = 0; i < plan->group_count; i++) {
        uint8_t group = moon_cursor_u8(input);
        plan->groups[i].spec.kind = plan->profile->coordinator ? kinds[group % 3] : MOON_SPEC_FULL;
        plan->groups[i].spec.window_tokens = 1 + (group >> 2);
        plan->groups[i].block_tokens = plan->group_count > 1 && group & 128 ? 64 : 16;
    }
    if (bits & 64 && plan->group_count == 1)
        plan->store_tp = "8";
}

static struct moon_job *read_job(struct moon_cursor *input, const struct rig *rig, uint32_t slot) {
    uint8_t bits = moon_cursor_u8(input);
    struct moon_job *job =
        rig_job(rig, moon_memory_heap(), slot, moon_cursor_u16_le(input) % 700, moon_cursor_u16_le(input) % 600);
    int64_t boundaries[RIG_GROUPS_MAX];
    if (bits & 1)
        job->hashes.count = moon_cursor_u8(input) % (RIG_HASHES_MAX + 1);
    if (bits & 2)
        job->tables->groups[0].count = moon_cursor_u8(input) % RIG_BLOCKS;
    for (size_t i = 0; i < rig->model.group_count; i++)
        boundaries[i] = bits & 8 ? moon_cursor_u16_le(input) : job->load_hit_tokens;
    if (bits & 4 && moon_job_set_tail_boundaries(job, boundaries))
        abort();
    if (bits & 16)
        job->save_tokens = job->load_hit_tokens + 1;
    return job;
}

/* Blocks of a call are some of the tables, and its buffers lie in the caches. */
static void check_call(const struct rig *rig, const struct moon_store_call *call) {
    if (call->count == 0 || call->count > ANSWERS_MAX || call->first + call->count > call->keys->count)
        abort();
    for (size_t i = 0; call->kind == MOON_CALL_GET && i < call->count; i++) {
        if (call->blocks[i] == 0 || call->blocks[i] >= RIG_BLOCKS)
            abort();
        for (size_t k = i * call->buffers_per_key; k < (i + 1) * call->buffers_per_key; k++)
            if (moon_buffer_overrun_bytes(&rig->segments, &call->buffers[k]))
                abort();
    }
}

static void answer(struct moon_cursor *input, struct moon_receiver *receiver, const struct moon_store_call *call) {
    int64_t values[ANSWERS_MAX];
    uint8_t how = moon_cursor_u8(input);
    if (how == 255) {
        moon_receiver_raised(receiver);
        return;
    }
    if (how == 254 && moon_receiver_answer(receiver, values, call->count + 1, NULL) != MOON_ERR_RANGE)
        abort();
    for (size_t i = 0; i < call->count; i++)
        values[i] = how < 128 ? 1 << 20 : (int64_t)moon_cursor_u16_le(input) - 40000;
    if (moon_receiver_answer(receiver, values, call->count, NULL))
        abort();
}

/* Runs all jobs; the jobs that raised, were given up and finished are all there were. */
static void run(struct moon_cursor *input, const struct rig *rig, struct moon_receiver *receiver, size_t jobs) {
    size_t given_up = 0, finished = 0, raised = 0;
    const struct moon_store_call *call = NULL;
    struct moon_error error;
    uint64_t block;
    uint32_t slot;
    for (int step = 0; step < STEPS_MAX; step++) {
        int status = moon_receiver_next(receiver, &call, &error);
        given_up += status != 0;
        if (!status && !call)
            break;
        if (status)
            continue;
        check_call(rig, call);
        answer(input, receiver, call);
    }
    while (moon_receiver_take_finished(receiver, &slot))
        finished++;
    while (moon_receiver_take_raised(receiver, &error))
        raised++;
    while (moon_receiver_take_failed_block(receiver, &block))
        if (block >= RIG_BLOCKS)
            abort();
    while (moon_receiver_take_failed_request(receiver, &slot))
        if (slot >= jobs)
            abort();
    if (!call && (given_up + finished + raised != jobs || moon_receiver_queued(receiver) != raised))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    struct moon_cursor input;
    struct rig_plan plan;
    struct moon_profile strict;
    struct rig rig;
    struct moon_receiver *receiver = NULL;
    moon_cursor_open(&input, data, length);
    plan_engine(&input, &plan, &strict);
    rig_open(&rig, &plan);
    uint8_t bits = moon_cursor_u8(&input);
    const struct moon_receiver_setting setting = {
        .segments = &rig.segments,
        .offload = bits & 1,
        .tier_log = bits & 2,
        .staging = {1 + moon_cursor_u32_le(&input) % 100000, moon_cursor_u32_le(&input) % 100000},
        .engine_groups = rig.model.group_count + (bits >> 7),
    };
    if (moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), NULL))
        abort();
    size_t jobs = (bits >> 2) % (JOBS_MAX + 1);
    for (uint32_t slot = 0; slot < jobs; slot++) {
        struct moon_job *job = read_job(&input, &rig, slot);
        if (moon_receiver_queue(receiver, job))
            abort();
        moon_job_release(job);
    }
    run(&input, &rig, receiver, jobs);
    moon_receiver_close(receiver);
    rig_close(&rig);
    return 0;
}
