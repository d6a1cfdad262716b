/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of steps: which jobs new, running, resumed, preempted, finished and waiting requests make, by release. */
#include "ref/connector/scene_internal.h"

static struct scene scene;

static void open_scene(const char *profile, enum moon_kv_role role, int64_t prompt_tokens) {
    scene_set(&scene, profile, role, 1);
    scene_request(&scene, 0, prompt_tokens);
    scene_request(&scene, 1, 40);
    scene_open(&scene, 1);
}

static void open_decoding(const char *profile, enum moon_kv_role role, int64_t prompt_tokens) {
    scene_set(&scene, profile, role, 1);
    scene.options.save_decode_cache = true;
    scene_request(&scene, 0, prompt_tokens);
    scene_open(&scene, 1);
}

static void promise(uint32_t slot, int64_t computed, int64_t hit) {
    struct moon_match out;
    scene.result = (struct moon_lookup_result){.hit_tokens = hit};
    if (scene.profile.lookup_rpc == MOON_RPC_TAILS) {
        scene.result.boundary_count = 1;
        scene.result.tail_boundaries[0] = hit;
    }
    MOON_CHECK_INT(moon_scheduler_match(scene.scheduler, &scene.requests[slot], computed, &out, &scene.error), 0);
}

static void a_prompt_is_saved_up_to_its_last_full_block(void) {
    static const struct {
        int64_t prompt;
        const char *job;
    } rows[] = {{40, "save 0 to 32 of 40"}, {15, ""}, {16, "save 0 to 16 of 16"}, {17, "save 0 to 16 of 17"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_scene("0.33", MOON_ROLE_BOTH, rows[i].prompt);
        scene_new(&scene, 0, 0, rows[i].prompt);
        MOON_CHECK_TEXT(scene_step(&scene), rows[i].job);
        scene_close(&scene);
    }
}

static void chunks_save_as_they_fill_blocks(void) {
    open_scene("0.33", MOON_ROLE_PRODUCER, 40);
    scene_new(&scene, 0, 0, 10);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_run(&scene, 0, 10, 10);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 16 of 40");
    scene_run(&scene, 0, 20, 20);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
    scene_close(&scene);
    open_scene("0.33", MOON_ROLE_PRODUCER, 32);
    scene_new(&scene, 0, 0, 16);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 16 of 32");
    scene_run(&scene, 0, 16, 1);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_run(&scene, 0, 17, 15);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 32");
    scene_close(&scene);
}

static void a_step_without_blocks_counts_from_29_on(void) {
    for (int minor = 28; minor <= 29; minor++) {
        open_scene(minor == 28 ? "0.28" : "0.29", MOON_ROLE_BOTH, 40);
        scene_new(&scene, 0, 0, 10);
        MOON_CHECK_TEXT(scene_step(&scene), "");
        scene_run(&scene, 0, 10, 6); /* fills the block that is there */
        MOON_CHECK_TEXT(scene_step(&scene), minor == 28 ? "" : "save 0 to 16 of 40");
        MOON_CHECK_INT(moon_deviation_noted(&scene.notes, MOON_DEVIATION_BLOCKLESS_STEPS_LOST), minor == 28);
        scene_run(&scene, 0, 16, 10); /* 0.28 lost 6 tokens */
        MOON_CHECK_TEXT(scene_step(&scene), minor == 28 ? "save 0 to 16 of 40" : "");
        scene_run(&scene, 0, 26, 14);
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
        scene_close(&scene);
    }
}

static void decode_saves_nothing_unless_asked(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 31);
    scene_new(&scene, 0, 0, 31);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 16 of 31");
    scene_know(&scene, 0, 32);
    scene_run(&scene, 0, 31, 1);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
    open_decoding("0.33", MOON_ROLE_BOTH, 31);
    scene_new(&scene, 0, 0, 31);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 16 of 31");
    scene_know(&scene, 0, 32);
    scene_run(&scene, 0, 31, 1);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 31");
    scene_close(&scene);
}

static void decode_steps_advance_the_length_up_to_28(void) {
    static const char *const profiles[] = {"0.28", "0.29"};
    for (size_t i = 0; i < 2; i++) {
        open_scene(profiles[i], MOON_ROLE_BOTH, 31);
        scene_new(&scene, 0, 0, 31);
        scene_step(&scene);
        scene_know(&scene, 0, 64);
        scene_run(&scene, 0, 31, 2);
        MOON_CHECK_TEXT(scene_step(&scene), "");
        /* the core went back: a load of this request had failed */
        scene_run(&scene, 0, 30, 19);
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 48 of 31");
        MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, i == 0 ? 3 : 4);
        scene_close(&scene);
    }
}

static void drafts_do_not_count(void) {
    open_decoding("0.33", MOON_ROLE_PRODUCER, 30);
    scene_new(&scene, 0, 0, 30);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 16 of 30");
    scene_know(&scene, 0, 31);
    scene_run(&scene, 0, 30, 4); /* one token and three drafts */
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_know(&scene, 0, 33); /* two were accepted */
    scene_run(&scene, 0, 32, 4);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 30");
    scene_close(&scene);
}

static void a_consumer_fills_in_when_decode_starts(void) {
    open_decoding("0.33", MOON_ROLE_CONSUMER, 40);
    scene_new(&scene, 0, 39, 1); /* the prompt came from elsewhere */
    MOON_CHECK_TEXT(scene_step(&scene), "");
    for (int64_t tokens = 41; tokens <= 64; tokens++) {
        scene_know(&scene, 0, tokens);
        scene_run(&scene, 0, tokens - 1, 1);
        MOON_CHECK_TEXT(scene_step(&scene), tokens == 41   ? "save 0 to 32 of 40"
                                            : tokens == 48 ? "save 0 to 48 of 40"
                                            : tokens == 64 ? "save 0 to 64 of 40"
                                                           : "");
    }
    scene_close(&scene);
}

static void a_consumer_saves_no_prefill(void) {
    open_decoding("0.33", MOON_ROLE_CONSUMER, 40);
    scene_new(&scene, 0, 0, 20);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_run(&scene, 0, 20, 20);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
    static const char *const profiles[] = {"0.21", "0.28", "0.33"}; /* without the option, or without knowing it */
    for (size_t i = 0; i < 3; i++) {
        open_scene(profiles[i], MOON_ROLE_CONSUMER, 40);
        scene.options.save_decode_cache = i < 2;
        scene_new(&scene, 0, 0, 40);
        MOON_CHECK_TEXT(scene_step(&scene), "");
        scene_know(&scene, 0, 60);
        scene_run(&scene, 0, 40, 20);
        MOON_CHECK_TEXT(scene_step(&scene), "");
        scene_close(&scene);
    }
}

static void a_resumed_request_starts_again(void) {
    static const char *const profiles[] = {"0.21", "0.22", "0.24", "0.25", "0.33"};
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++) {
        open_scene(profiles[i], MOON_ROLE_BOTH, 40);
        scene_new(&scene, 0, 0, 40);
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
        scene_know(&scene, 0, 50);
        scene_preempt(&scene, 0);
        MOON_CHECK_TEXT(scene_step(&scene), "");
        scene_resume(&scene, 0, 16, 34);
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 48 of 50");
        MOON_CHECK_INT(scene.notes.taken, 0);
        scene_run(&scene, 0, 50, 0); /* decode now: prefill ended at 50 */
        MOON_CHECK_TEXT(scene_step(&scene), "");
        scene_close(&scene);
    }
}

static void replayed_output_is_prefill(void) {
    static const char *const profiles[] = {"0.28", "0.33"};
    for (size_t i = 0; i < 2; i++) {
        open_scene(profiles[i], MOON_ROLE_BOTH, 40);
        scene_new(&scene, 0, 0, 40);
        scene_step(&scene);
        scene_know(&scene, 0, 70);
        scene_preempt(&scene, 0);
        scene_step(&scene);
        scene_resume(&scene, 0, 0, 44);
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 70");
        scene_run(&scene, 0, 44, 26); /* behind the prompt, but not behind the prefill */
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 70");
        scene_close(&scene);
    }
}

static void a_resume_without_blocks_is_skipped(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 40);
    scene_new(&scene, 0, 0, 40);
    scene_step(&scene);
    scene_preempt(&scene, 0);
    scene_resume(&scene, 0, 0, 40)->blocks = NULL;
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

static void a_preempted_request_may_come_back_as_new(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 40);
    scene_new(&scene, 0, 0, 40);
    scene_step(&scene);
    scene_know(&scene, 0, 50);
    scene_preempt(&scene, 0);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_new(&scene, 0, 0, 50);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 48 of 50");
    scene_close(&scene);
}

/* Preempted, resumed as new, and then running with a new block. */
static const char *run_after_new(const char *profile, bool strict) {
    scene_set(&scene, profile, MOON_ROLE_BOTH, 1);
    if (strict)
        moon_profile_strict(moon_profile_find(profile, NULL), &scene.profile);
    scene_request(&scene, 0, 40);
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_preempt(&scene, 0);
    scene_step(&scene);
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_run(&scene, 0, 16, 20);
    return scene_step(&scene);
}

static void a_remembered_preemption_restarts_a_running_request(void) {
    MOON_CHECK_TEXT(run_after_new("0.24", false), "save 0 to 32 of 40");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 2); /* the third block alone is told: blocks 2 and 3 */
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].blocks[0], 1002);
    CU_ASSERT(moon_deviation_noted(&scene.notes, MOON_DEVIATION_PREEMPTION_REMEMBERED));
    scene_close(&scene);
    MOON_CHECK_TEXT(run_after_new("0.25", false), "save 0 to 32 of 40");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 3);
    CU_ASSERT_FALSE(moon_deviation_noted(&scene.notes, MOON_DEVIATION_PREEMPTION_REMEMBERED));
    scene_close(&scene);
    MOON_CHECK_TEXT(run_after_new("0.24", true), "save 0 to 32 of 40");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].blocks[0], 1001);
    CU_ASSERT_FALSE(moon_deviation_noted(&scene.notes, MOON_DEVIATION_PREEMPTION_REMEMBERED));
    scene_close(&scene);
}

static void a_finish_ends_a_remembered_preemption(void) {
    open_scene("0.24", MOON_ROLE_BOTH, 40);
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_preempt(&scene, 0);
    scene_step(&scene);
    scene.finished[scene.step.finished_count++] = 0;
    scene_step(&scene);
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_run(&scene, 0, 16, 20);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 3);
    scene_close(&scene);
}

static void local_hits_are_saved_from_the_start(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 40);
    scene_new(&scene, 0, 32, 8);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
    scene_close(&scene);
}

static void waiting_loads_make_jobs_in_the_order_of_their_allocation(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 40);
    for (uint32_t slot = 2; slot-- > 0;) {
        scene_grow(&scene, slot, 40);
        promise(slot, slot == 0 ? 0 : 16, 32);
        scene_allocate(&scene, slot, slot == 0 ? 32 : 16);
    }
    scene_allocate(&scene, 1, 16); /* told again: it keeps its place */
    MOON_CHECK_TEXT(scene_step(&scene), "load 1 from 16 to 32; load 0 from 0 to 32");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].blocks[0], 2001);
    MOON_CHECK_INT(scene.jobs.jobs[0]->tail_boundaries[0], 32);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_new(&scene, 0, 32, 8); /* saved from the start: the load did not count */
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
    scene_close(&scene);
}

static void a_preempted_load_is_forgotten(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 40);
    scene_grow(&scene, 0, 40);
    promise(0, 0, 32);
    scene_allocate(&scene, 0, 32);
    scene_preempt(&scene, 0);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_grow(&scene, 0, 40);
    promise(0, 0, 32);
    scene_allocate(&scene, 0, 32);
    scene.finished[scene.step.finished_count++] = 0;
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

/* A new request that is loaded in the step that schedules it. */
static const char *load_at_once(const char *profile, bool resumed) {
    open_scene(profile, MOON_ROLE_BOTH, 40);
    if (resumed) {
        scene_new(&scene, 0, 0, 40);
        scene_step(&scene);
        scene_preempt(&scene, 0);
        scene_step(&scene);
    }
    promise(0, 0, 32);
    if (resumed)
        scene_resume(&scene, 0, 32, 8);
    else
        scene_new(&scene, 0, 32, 8);
    scene_allocate(&scene, 0, 32);
    return scene_step(&scene);
}

static void no_job_saves_and_loads_from_22_on(void) {
    MOON_CHECK_TEXT(load_at_once("0.21", false), "save 0 to 32 of 40 load 0 from 0 to 32");
    scene_close(&scene);
    MOON_CHECK_TEXT(load_at_once("0.22", false), "load 0 from 0 to 32");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 3);
    scene_close(&scene);
    MOON_CHECK_TEXT(load_at_once("0.33", false), "load 0 from 0 to 32");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 3);
    scene_run(&scene, 0, 40, 0); /* the saved length stayed, but this is decode */
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
    MOON_CHECK_TEXT(load_at_once("0.33", true), "load 0 from 0 to 32");
    scene_close(&scene);
}

static void a_full_hit_of_21_tracks_its_last_token(void) {
    scene_set(&scene, "0.21", MOON_ROLE_BOTH, 1);
    scene_request(&scene, 0, 32);
    scene_open(&scene, 1);
    scene_grow(&scene, 0, 32);
    promise(0, 0, 32);
    scene_allocate(&scene, 0, 31);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 0 load 0 from 0 to 31");
    scene_close(&scene);
}

static void a_lost_load_becomes_a_save_up_to_29(void) {
    static const char *const rows[][2] = {{"0.28", "save 0 to 32 of 0"},
                                          {"0.29", "AssertionError: Missing current block table for store request 0"},
                                          {"0.30", ""},
                                          {"0.33", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_scene(rows[i][0], MOON_ROLE_BOTH, 40);
        scene_grow(&scene, 0, 40);
        promise(0, 0, 32);
        scene_allocate(&scene, 0, 0); /* another connector won */
        MOON_CHECK_TEXT(scene_step(&scene), rows[i][1]);
        MOON_CHECK_INT(moon_deviation_noted(&scene.notes, MOON_DEVIATION_LOST_LOAD_SAVED), i < 2);
        if (i == 0)
            MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 0);
        scene_close(&scene);
    }
    open_scene("0.28", MOON_ROLE_BOTH, 40);
    moon_profile_strict(moon_profile_find("0.28", NULL), &scene.profile);
    promise(0, 0, 32);
    scene_allocate(&scene, 0, 0);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    CU_ASSERT_FALSE(moon_deviation_noted(&scene.notes, MOON_DEVIATION_LOST_LOAD_SAVED));
    scene_close(&scene);
}

static void tables_are_shared_up_to_28_and_the_steps_own_after(void) {
    static const char *const profiles[] = {"0.28", "0.33"};
    for (size_t i = 0; i < 2; i++) {
        open_scene(profiles[i], MOON_ROLE_BOTH, 40);
        scene_new(&scene, 0, 0, 20);
        MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 16 of 40");
        struct moon_job *late = moon_job_hold(scene.jobs.jobs[0]);
        scene_run(&scene, 0, 20, 20);
        scene_step(&scene);
        MOON_CHECK_INT(late->tables->groups[0].count, i == 0 ? 3 : 2);
        MOON_CHECK_INT(moon_deviation_noted(&scene.notes, MOON_DEVIATION_LATE_TABLES), i == 0);
        scene_preempt(&scene, 0);
        scene_step(&scene);
        scene_resume(&scene, 0, 0, 16);
        scene_step(&scene);
        MOON_CHECK_INT(late->tables->groups[0].count, i == 0 ? 3 : 2);
        moon_job_release(late);
        scene_close(&scene);
    }
}

static void a_save_needs_the_table_of_its_step(void) {
    open_scene("0.33", MOON_ROLE_BOTH, 40);
    scene_new(&scene, 0, 0, 40)->table = NULL;
    MOON_CHECK_TEXT(scene_step(&scene), "AssertionError: Missing current block table for store request 0");
    scene_close(&scene);
}

static void parts_of_blocks_are_saved_by_21(void) {
    scene_set(&scene, "0.21", MOON_ROLE_BOTH, 1);
    scene.options.discard_partial_chunks = false;
    scene_request(&scene, 0, 40);
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 10);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 10 of 40");
    scene_run(&scene, 0, 10, 30);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 40 of 40");
    scene_close(&scene);
}

static void token_ids_go_along_for_events(void) {
    static const uint32_t ids[40] = {1};
    scene_set(&scene, "0.33", MOON_ROLE_BOTH, 1);
    scene.options.kv_events = true;
    scene_request(&scene, 0, 40);
    scene.requests[0].token_ids = ids;
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 40);
    scene_step(&scene);
    CU_ASSERT_PTR_EQUAL(scene.jobs.jobs[0]->token_ids, ids);
    scene_close(&scene);
}

static void finished_requests_leave_their_place(void) {
    scene_set(&scene, "0.33", MOON_ROLE_BOTH, 1);
    for (uint32_t slot = 0; slot < 4; slot++)
        scene_request(&scene, slot, 40);
    scene_open(&scene, 1);
    for (uint32_t slot = 0; slot < 4; slot++) {
        scene_grow(&scene, slot, 40);
        promise(slot, 0, 16);
        scene_allocate(&scene, slot, 16);
    }
    scene.finished[scene.step.finished_count++] = 1; /* from the middle, the end and the front */
    scene.finished[scene.step.finished_count++] = 3;
    scene.finished[scene.step.finished_count++] = 0;
    scene.finished[scene.step.finished_count++] = 77777; /* was never seen: nothing to forget */
    MOON_CHECK_TEXT(scene_step(&scene), "load 2 from 0 to 16");
    promise(0, 0, 16);
    scene_allocate(&scene, 0, 16);
    promise(2, 0, 16);
    scene_allocate(&scene, 2, 16);
    MOON_CHECK_TEXT(scene_step(&scene), "load 2 from 0 to 16; load 0 from 0 to 16");
    scene_close(&scene);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a prompt is saved up to its last full block", a_prompt_is_saved_up_to_its_last_full_block},
        {"chunks save as they fill blocks", chunks_save_as_they_fill_blocks},
        {"a step without blocks counts from 0.29 on", a_step_without_blocks_counts_from_29_on},
        {"decode saves nothing unless asked", decode_saves_nothing_unless_asked},
        {"decode steps advance the length up to 0.28", decode_steps_advance_the_length_up_to_28},
        {"drafts do not count", drafts_do_not_count},
        {"a consumer fills in when decode starts", a_consumer_fills_in_when_decode_starts},
        {"a consumer saves no prefill", a_consumer_saves_no_prefill},
        {"a resumed request starts again", a_resumed_request_starts_again},
        {"replayed output is prefill", replayed_output_is_prefill},
        {"a resume without blocks is skipped", a_resume_without_blocks_is_skipped},
        {"a preempted request may come back as new", a_preempted_request_may_come_back_as_new},
        {"a remembered preemption restarts a running request", a_remembered_preemption_restarts_a_running_request},
        {"a finish ends a remembered preemption", a_finish_ends_a_remembered_preemption},
        {"local hits are saved from the start", local_hits_are_saved_from_the_start},
        {"waiting loads make jobs in the order of their allocation",
         waiting_loads_make_jobs_in_the_order_of_their_allocation},
        {"a preempted load is forgotten", a_preempted_load_is_forgotten},
        {"no job saves and loads from 0.22 on", no_job_saves_and_loads_from_22_on},
        {"a full hit of 0.21 tracks its last token", a_full_hit_of_21_tracks_its_last_token},
        {"a lost load becomes a save up to 0.29", a_lost_load_becomes_a_save_up_to_29},
        {"tables are shared up to 0.28 and the step's own after", tables_are_shared_up_to_28_and_the_steps_own_after},
        {"a save needs the table of its step", a_save_needs_the_table_of_its_step},
        {"parts of blocks are saved by 0.21", parts_of_blocks_are_saved_by_21},
        {"token ids go along for events", token_ids_go_along_for_events},
        {"finished requests leave their place", finished_requests_leave_their_place},
        {NULL, NULL},
    };
    return moon_unit_main("scheduler_step", cases, argc, argv);
}
