/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what is put beside the normal save, and of the blocks that jobs hold. */
#include "ref/connector/scene_internal.h"

static struct scene scene;

/* A hybrid engine: full attention of 16 tokens, Mamba of 64; one request. */
static void open_hybrid(const char *profile, int64_t prompt_tokens) {
    scene_set_hybrid(&scene, profile);
    scene_request(&scene, 0, prompt_tokens);
    scene_open(&scene, 2);
}

static const char *list(const int64_t *blocks, size_t count) {
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? " " : "", (int)blocks[i]);
    return text;
}

/* ---- states handed off ---- */

static void states_ride_on_the_save_in_their_order(void) {
    open_hybrid("0.30", 130);
    scene_new(&scene, 0, 0, 130);
    scene_hand_off(&scene, 0, 1, 501, 128);
    scene_hand_off(&scene, 0, 1, 500, 64);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 128 of 130 1:501@128 1:500@64");
    scene_close(&scene);
}

static void useless_states_are_dropped(void) {
    open_hybrid("0.30", 130);
    scene_new(&scene, 0, 0, 130);
    scene_hand_off(&scene, 0, 1, 0, 64);    /* the null block */
    scene_hand_off(&scene, 0, 0, 500, 64);  /* not of a Mamba group */
    scene_hand_off(&scene, 0, 9, 500, 64);  /* of a group that is not stored */
    scene_hand_off(&scene, 0, 1, 500, 144); /* beyond the prefill */
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 128 of 130");
    scene_hand_off(&scene, 1, 1, 500, 64); /* of an unknown request */
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_preempt(&scene, 0);
    scene_hand_off(&scene, 0, 1, 500, 64);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_hand_off(&scene, 0, 1, 500, 64);
    scene.boundaries[0].slot = 77777; /* never seen */
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

static void a_late_state_makes_a_job_of_its_own(void) {
    open_hybrid("0.29", 130);
    scene_new(&scene, 0, 0, 130);
    scene_step(&scene);
    scene_run(&scene, 0, 130, 1); /* decode: no save */
    scene_hand_off(&scene, 0, 1, 500, 128);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 130 1:500@128");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 9);
    scene_hand_off(&scene, 0, 1, 501, 64); /* not scheduled in this step */
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 130 1:501@64");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 9);
    scene_hand_off(&scene, 0, 1, 501, 64);
    scene.boundaries[0].table = NULL;
    MOON_CHECK_TEXT(scene_step(&scene), "AssertionError: Missing current block table for store request 0");
    scene_close(&scene);
}

static void consumers_and_old_releases_put_no_states(void) {
    for (int i = 0; i < 2; i++) {
        scene_set_hybrid(&scene, i == 0 ? "0.33" : "0.26");
        scene.options.role = i == 0 ? MOON_ROLE_CONSUMER : MOON_ROLE_BOTH;
        scene_request(&scene, 0, 130);
        scene_open(&scene, 1);
        scene_new(&scene, 0, 0, 130);
        scene_hand_off(&scene, 0, 1, 500, 128);
        MOON_CHECK_TEXT(scene_step(&scene), i == 0 ? "" : "save 0 to 128 of 130");
        scene_close(&scene);
    }
}

static void tails_of_27_are_handed_on_as_they_are(void) {
    open_hybrid("0.27", 130);
    scene_new(&scene, 0, 0, 130);
    scene_hand_off(&scene, 0, 1, 500, 144);
    scene_hand_off(&scene, 0, 0, 0, 128);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 128 of 130 1:500@144 0:0@128");
    scene_hand_off(&scene, 0, 1, 500, 80);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 130 1:500@80");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 9);
    scene_hand_off(&scene, 0, 1, 500, 80);
    scene_hand_off(&scene, 0, 1, 501, 64);
    MOON_CHECK_TEXT(scene_step(&scene), "AssertionError: ");
    scene_hand_off(&scene, 0, 2, 500, 80);
    MOON_CHECK_TEXT(scene_step(&scene), "boundaries[0]: block 500 of group 2 at 80 tokens");
    scene_close(&scene);
}

static void a_tail_of_27_delays_the_free(void) {
    open_hybrid("0.27", 60);
    scene_new(&scene, 0, 0, 60);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    CU_ASSERT_FALSE(moon_scheduler_finished(scene.scheduler, &scene.requests[0], true));
    scene_hand_off(&scene, 0, 1, 500, 48);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 60 1:500@48");
    CU_ASSERT(moon_scheduler_finished(scene.scheduler, &scene.requests[0], true));
    scene_close(&scene);
}

static void a_state_of_a_waiting_load_of_28_has_empty_tables(void) {
    struct moon_match out;
    open_hybrid("0.28", 130);
    scene.result.hit_tokens = 64;
    moon_scheduler_match(scene.scheduler, &scene.requests[0], 0, &out, &scene.error);
    scene_allocate(&scene, 0, 0);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 0"); /* lost, and so saved */
    scene_hand_off(&scene, 0, 1, 500, 64);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 0 1:500@64");
    MOON_CHECK_INT(scene.jobs.jobs[0]->tables->groups[0].count, 0);
    scene_close(&scene);
}

/* ---- the tail of a prompt ---- */

static void the_tail_goes_with_the_save_that_covers_the_prompt(void) {
    open_hybrid("0.33", 83);
    scene_new(&scene, 0, 0, 83);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 83 0:1005@80");
    scene_know(&scene, 0, 84);
    scene_run(&scene, 0, 83, 1);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_preempt(&scene, 0);
    scene_step(&scene);
    scene_resume(&scene, 0, 0, 84); /* the prompt still ends at 83, and the tail goes again */
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 84 0:1005@80");
    scene_close(&scene);
}

static void the_tail_goes_once(void) {
    scene_set_hybrid(&scene, "0.33");
    scene.options.save_decode_cache = true;
    scene_request(&scene, 0, 83);
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 83);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 83 0:1005@80");
    for (int64_t tokens = 84; tokens <= 128; tokens++) {
        scene_know(&scene, 0, tokens);
        scene_run(&scene, 0, tokens - 1, 1);
        MOON_CHECK_TEXT(scene_step(&scene), tokens == 128 ? "save 0 to 128 of 83" : "");
    }
    scene_close(&scene);
}

static void a_short_prompt_has_a_tail_alone(void) {
    open_hybrid("0.33", 40);
    scene_new(&scene, 0, 0, 20);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_run(&scene, 0, 20, 20);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 40 0:1001@16 0:1002@32");
    scene_close(&scene);
}

static void a_prompt_of_one_hash_block_has_no_tail(void) {
    open_hybrid("0.33", 16);
    scene_new(&scene, 0, 0, 16);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 16"); /* the position is 0, but the job is made */
    scene_close(&scene);
}

static void the_tail_stands_before_the_states(void) {
    open_hybrid("0.32", 83);
    scene_new(&scene, 0, 0, 83);
    scene_hand_off(&scene, 0, 1, 500, 64);
    scene_hand_off(&scene, 0, 1, 501, 80);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 83 0:1005@80 1:500@64 1:501@80");
    scene_run(&scene, 0, 83, 1);
    scene_hand_off(&scene, 0, 1, 501, 80); /* a state at the very position brings the tail again */
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 83 0:1005@80 1:501@80");
    scene_hand_off(&scene, 0, 1, 502, 48); /* another one does not */
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 83 1:502@48");
    scene_close(&scene);
}

static void null_and_missing_blocks_are_left_out_of_the_tail(void) {
    open_hybrid("0.33", 120);
    scene.numbers[0][0][5] = 0;
    scene_new(&scene, 0, 0, 120);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 120 0:1005@80 0:1007@112");
    scene_run(&scene, 0, 120, 1);
    struct moon_block_table few[2] = {{scene.numbers[0][0], 5}, scene.tables[0][1]};
    scene.cached[0].table = few;
    scene_hand_off(&scene, 0, 1, 501, 112);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 0 of 120 0:1005@80 1:501@112");
    scene_close(&scene);
}

static void eagle_puts_the_margin_of_its_group(void) {
    scene_set_hybrid(&scene, "0.33");
    scene.model.speculative = true;
    scene_request(&scene, 0, 83);
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 83);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 83 0:1005@80"); /* position 64, and 16 more */
    scene_close(&scene);
}

static void tails_are_of_fine_grained_hits_alone(void) {
    open_hybrid("0.30", 83);
    scene_new(&scene, 0, 0, 83);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 64 of 83");
    scene_close(&scene);
    scene_set(&scene, "0.33", MOON_ROLE_BOTH, 1);
    scene_request(&scene, 0, 15);
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 15);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

/* ---- tails at a finish ---- */

static int finish_tail(const struct moon_boundary_put *puts, size_t count) {
    return moon_scheduler_finish_tail(scene.scheduler, &scene.requests[0], 83, scene.tables[0], puts, count,
                                      &scene.error);
}

static void a_tail_at_the_finish_waits_for_the_next_step(void) {
    static const char *const rows[][2] = {{"0.29", "save 1 to 64 of 70 0:2005@64"},
                                          {"0.30", "save 1 to 64 of 70; save 0 to 0 of 83 1:501@80"},
                                          {"0.33", "save 1 to 64 of 70; save 0 to 0 of 83 0:1005@80 1:501@80"}};
    const struct moon_boundary_put put = {1, 501, 80};
    for (size_t i = 0; i < 3; i++) {
        open_hybrid(rows[i][0], 83);
        scene_request(&scene, 1, 70);
        scene_new(&scene, 0, 0, 83);
        scene_step(&scene);
        MOON_CHECK_INT(scene.jobs.jobs[0]->id, 0);
        MOON_CHECK_INT(finish_tail(&put, 1), 0);
        MOON_CHECK_INT(moon_scheduler_unreleased(scene.scheduler), i == 0 ? 1 : 2);
        scene.finished[scene.step.finished_count++] = 0;
        scene_new(&scene, 1, 0, 70);
        MOON_CHECK_TEXT(scene_step(&scene), i == 0 ? "save 1 to 64 of 70" : rows[i][1]);
        MOON_CHECK_INT(scene.jobs.jobs[0]->id, i == 0 ? 1 : 2);
        if (i > 0)
            MOON_CHECK_INT(scene.jobs.jobs[1]->id, 1);
        MOON_CHECK_TEXT(scene_step(&scene), "");
        scene_close(&scene);
    }
}

static void useless_tails_at_the_finish_are_not_kept(void) {
    static const struct moon_boundary_put rows[][2] = {
        {{1, 501, 96}, {1, 502, 96}}, /* beyond the prefill */
        {{0, 501, 80}, {1, 502, 80}}, /* not of a Mamba group */
        {{1, 501, 80}, {1, 0, 80}},   /* the null block */
    };
    open_hybrid("0.33", 83);
    MOON_CHECK_INT(finish_tail(rows[0], 2), 0); /* never scheduled */
    scene_new(&scene, 0, 0, 83);
    scene_step(&scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        MOON_CHECK_INT(finish_tail(rows[i], 2), 0);
    MOON_CHECK_INT(finish_tail(rows[0], 0), 0);
    const struct moon_boundary_put good = {1, 501, 80};
    struct moon_block_table none[2] = {{NULL, 0}, {NULL, 0}};
    MOON_CHECK_INT(moon_scheduler_finish_tail(scene.scheduler, &scene.requests[0], 83, none, &good, 1, &scene.error),
                   0);
    scene_preempt(&scene, 0);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_grow(&scene, 0, 83);
    MOON_CHECK_INT(finish_tail(&good, 1), 0);
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

static void wrong_tails_at_the_finish_are_refused(void) {
    static const struct moon_boundary_put apart[] = {{1, 501, 80}, {1, 502, 64}};
    static const struct moon_boundary_put bad[] = {{1, -1, 80}, {1, 501, -1}, {1, 501, MOON_CONNECTOR_TOKENS_MAX + 1}};
    open_hybrid("0.33", 83);
    scene_new(&scene, 0, 0, 83);
    scene_step(&scene);
    MOON_CHECK_INT(finish_tail(apart, 2), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(scene.error.message, "Partial-tail offloads for one request must share a boundary");
    for (size_t i = 0; i < 3; i++)
        MOON_CHECK_INT(finish_tail(&bad[i], 1), MOON_ERR_RANGE);
    scene_close(&scene);
}

/* ---- references ---- */

static void jobs_hold_blocks_by_release(void) {
    static const char *const rows[][2] = {
        {"0.27", ""},
        {"0.28", "500 501 1001 0 1003 1004 1004 1006 1007 1008 1009 1010 1101 1102 1103"},
        {"0.29", "500 501 1001 1003 1004 1006 1007 1008 1009 1010"},
        {"0.33", "1009 500 501 1001 1003 1004 1006 1007 1008 1010"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_hybrid(rows[i][0], 145);
        scene.numbers[0][0][1] = 0;
        scene.numbers[0][0][4] = scene.numbers[0][0][3];
        scene_new(&scene, 0, 0, 145);
        scene_hand_off(&scene, 0, 1, 500, 64);
        scene_hand_off(&scene, 0, 1, 501, 128);
        scene_step(&scene);
        MOON_CHECK_TEXT(list(scene.held, scene.held_count), rows[i][1]);
        MOON_CHECK_INT(moon_scheduler_unreleased(scene.scheduler), i > 0);
        scene_close(&scene);
    }
}

static void a_job_of_states_alone_holds_them_alone_from_32_on(void) {
    static const char *const rows[][2] = {{"0.31", "501 1001 1002 1003 1004 1005 1006 1007 1008 1009"},
                                          {"0.32", "501"}};
    for (size_t i = 0; i < 2; i++) {
        open_hybrid(rows[i][0], 130);
        scene_new(&scene, 0, 0, 130);
        scene_step(&scene);
        scene_hand_off(&scene, 0, 1, 501, 64);
        scene_step(&scene);
        MOON_CHECK_TEXT(list(scene.held, scene.held_count), rows[i][1]);
        scene_close(&scene);
    }
}

static void blocks_come_back_when_every_rank_has_reported(void) {
    open_hybrid("0.33", 70);
    scene_new(&scene, 0, 0, 70);
    scene_step(&scene);
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 0, 1, &scene.error), 0);
    MOON_CHECK_INT(scene.released_count, 0);
    MOON_CHECK_INT(scene.references[1001], 1);
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 0, 1, &scene.error), 0);
    MOON_CHECK_TEXT(list(scene.released, scene.released_count), "1005 1004 1003 1002 1001");
    MOON_CHECK_INT(scene.references[1001], 0);
    MOON_CHECK_INT(moon_scheduler_unreleased(scene.scheduler), 0);
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 0, 1, &scene.error), 0); /* holds nothing: ignored */
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 1, 1, &scene.error), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 0, 0, &scene.error), MOON_ERR_RANGE);
    scene_close(&scene);
}

static void too_many_reports_are_refused(void) {
    open_hybrid("0.33", 70);
    scene_new(&scene, 0, 0, 70);
    scene_step(&scene);
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 0, 3, &scene.error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(scene.error.message, "store job 0 reported by too many ranks");
    scene_close(&scene);
}

static void many_jobs_are_reported_in_any_order(void) {
    scene_set(&scene, "0.33", MOON_ROLE_BOTH, 1);
    scene_request(&scene, 0, 400);
    scene_open(&scene, 1);
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    for (int64_t tokens = 16; tokens < 400; tokens += 16) {
        scene_run(&scene, 0, tokens, 16);
        scene_step(&scene);
        MOON_CHECK_INT(scene.jobs.jobs[0]->id, tokens / 16);
    }
    MOON_CHECK_INT(moon_scheduler_unreleased(scene.scheduler), 25);
    for (uint64_t i = 0; i < 25; i++)
        MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, i * 7 % 25, 1, &scene.error), 0);
    MOON_CHECK_INT(moon_scheduler_unreleased(scene.scheduler), 0);
    for (size_t i = 0; i < 8192; i++)
        MOON_CHECK_INT(scene.references[i], 0);
    scene_close(&scene);
}

static void a_job_without_blocks_holds_nothing(void) {
    open_hybrid("0.33", 16);
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    MOON_CHECK_INT(moon_scheduler_unreleased(scene.scheduler), 0);
    MOON_CHECK_INT(moon_scheduler_report(scene.scheduler, 0, 1, &scene.error), 0);
    scene_close(&scene);
}

/* ---- numbers that no core tells, and memory that is refused ---- */

static void boundaries_that_make_no_sense_are_refused(void) {
    open_hybrid("0.33", 130);
    scene_request(&scene, 1, 130);
    scene_new(&scene, 0, 0, 64);
    scene_new(&scene, 1, 0, 64);
    scene_hand_off(&scene, 0, 1, 500, 64);
    scene_hand_off(&scene, 1, 1, 500, 64);
    scene_hand_off(&scene, 0, 1, 500, 64);
    MOON_CHECK_TEXT(scene_step(&scene), "boundaries[2]: those of slot 0 do not follow one another");
    static const int64_t bad[][2] = {{-1, 64}, {500, -1}, {500, MOON_CONNECTOR_TOKENS_MAX + 1}};
    for (size_t i = 0; i < 3; i++) {
        scene_hand_off(&scene, 0, 1, bad[i][0], bad[i][1]);
        MOON_CHECK_INT(scene_try(&scene), MOON_ERR_RANGE);
        MOON_CHECK_TEXT(scene.error.where, "boundaries[0]");
    }
    scene_close(&scene);
}

/* Everything that asks for memory, once; the first failure ends it. */
static int use_all(const char *profile) {
    const struct moon_boundary_put put = {1, 501, 80};
    struct moon_match out;
    int status = moon_scheduler_match(scene.scheduler, &scene.requests[1], 0, &out, &scene.error);
    scene_grow(&scene, 1, 83);
    if (!status)
        status = scene_allocate(&scene, 1, 64);
    if (status)
        return status;
    scene_new(&scene, 0, 0, 83);
    scene_hand_off(&scene, 0, 1, 500, 64);
    status = scene.error.status ? scene.error.status : scene_try(&scene);
    if (!status && strcmp(profile, "0.28") != 0)
        status = finish_tail(&put, 1);
    if (status)
        return status;
    scene_know(&scene, 0, 200);
    scene_run(&scene, 0, 82, 40);
    scene_hand_off(&scene, 0, 1, 501, 80);
    return scene_try(&scene);
}

/* `profile` is a name. */
static int live(struct moon_memory *memory, const void *profile) {
    scene_set_hybrid(&scene, profile);
    scene.memory = memory;
    scene_request(&scene, 0, 83);
    scene_request(&scene, 1, 83);
    scene.result = (struct moon_lookup_result){64, strcmp(profile, "0.28") == 0 ? 0 : 2, {64, 64}};
    int status = scene_open(&scene, 1);
    if (!status)
        status = use_all(profile);
    scene_close(&scene);
    return status;
}

static void refused_memory_is_told_and_nothing_leaks(void) {
    moon_unit_refuse_memory(live, "0.28");
    moon_unit_refuse_memory(live, "0.33");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"states ride on the save in their order", states_ride_on_the_save_in_their_order},
        {"useless states are dropped", useless_states_are_dropped},
        {"a late state makes a job of its own", a_late_state_makes_a_job_of_its_own},
        {"consumers and old releases put no states", consumers_and_old_releases_put_no_states},
        {"tails of 0.27 are handed on as they are", tails_of_27_are_handed_on_as_they_are},
        {"a tail of 0.27 delays the free", a_tail_of_27_delays_the_free},
        {"a state of a waiting load of 0.28 has empty tables", a_state_of_a_waiting_load_of_28_has_empty_tables},
        {"the tail goes with the save that covers the prompt", the_tail_goes_with_the_save_that_covers_the_prompt},
        {"the tail goes once", the_tail_goes_once},
        {"a short prompt has a tail alone", a_short_prompt_has_a_tail_alone},
        {"a prompt of one hash block has no tail", a_prompt_of_one_hash_block_has_no_tail},
        {"the tail stands before the states", the_tail_stands_before_the_states},
        {"null and missing blocks are left out of the tail", null_and_missing_blocks_are_left_out_of_the_tail},
        {"EAGLE puts the margin of its group", eagle_puts_the_margin_of_its_group},
        {"tails are of fine-grained hits alone", tails_are_of_fine_grained_hits_alone},
        {"a tail at the finish waits for the next step", a_tail_at_the_finish_waits_for_the_next_step},
        {"useless tails at the finish are not kept", useless_tails_at_the_finish_are_not_kept},
        {"wrong tails at the finish are refused", wrong_tails_at_the_finish_are_refused},
        {"jobs hold blocks by release", jobs_hold_blocks_by_release},
        {"a job of states alone holds them alone from 0.32 on", a_job_of_states_alone_holds_them_alone_from_32_on},
        {"blocks come back when every rank has reported", blocks_come_back_when_every_rank_has_reported},
        {"too many reports are refused", too_many_reports_are_refused},
        {"many jobs are reported in any order", many_jobs_are_reported_in_any_order},
        {"a job without blocks holds nothing", a_job_without_blocks_holds_nothing},
        {"boundaries that make no sense are refused", boundaries_that_make_no_sense_are_refused},
        {"refused memory is told and nothing leaks", refused_memory_is_told_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("scheduler_boundary", cases, argc, argv);
}
