/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the sender: what one rank asks for and puts, job by job, and which jobs still count. */
#include "ref/connector/sender_scene_internal.h"

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
        {NULL, NULL}};
    return moon_unit_main("sender", cases, argc, argv);
}
