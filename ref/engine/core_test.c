/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the core scheduler's steps: blocks, budget, local prefix, preemption, queues, lookups, limits. */
#include "ref/engine/core_check_internal.h"

#define OPEN(engine, profile, groups, blocks)                                                                          \
    MOON_CHECK_INT(check_open(engine, profile, groups, blocks, moon_memory_heap()), 0)
#define STEP(engine) MOON_CHECK_INT(check_run_plain(engine), 0)

static void a_request_runs_to_its_last_token(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 3, 1, 6, 3), 0);
    check_status(&engine, 3, "WAITING");
    STEP(&engine);
    check_status(&engine, 3, "RUNNING");
    MOON_CHECK_INT(engine.port.fresh_count, 1);
    MOON_CHECK_INT(engine.port.fresh[0].prefill_tokens, 6);
    MOON_CHECK_INT(engine.port.fresh[0].scheduled_tokens, 6);
    MOON_CHECK_INT(engine.port.fresh[0].block_count, 2);
    MOON_CHECK_INT(check_block(&engine, 3, 0, 0), 1); /* block 0 is never handed out */
    STEP(&engine);
    MOON_CHECK_INT(engine.port.cached_count, 1);
    MOON_CHECK_INT(engine.port.cached[0].computed_tokens, 6);
    MOON_CHECK_INT(engine.port.cached[0].block_count, SIZE_MAX); /* no new block */
    STEP(&engine);
    check_status(&engine, 3, "FINISHED_LENGTH_CAPPED");
    MOON_CHECK_INT(moon_core_find(engine.core, 3)->computed_tokens, 8);
    MOON_CHECK_INT(moon_core_find(engine.core, 3)->request.known_tokens, 9);
    MOON_CHECK_INT(engine.port.finished_count, 0);
    CU_ASSERT(engine.port.had_blocks);
    CU_ASSERT(!moon_core_remove(engine.core, 3)); /* the connector does not know yet */
    STEP(&engine);
    MOON_CHECK_INT(engine.port.finished_count, 1);
    MOON_CHECK_INT(engine.port.finished[0], 3);
    CU_ASSERT(moon_core_remove(engine.core, 3));
    CU_ASSERT_PTR_NULL(moon_core_find(engine.core, 3));
    MOON_CHECK_INT(check_add(&engine, 3, 2, 4, 1), 0); /* its slot can be used again */
    check_close(&engine);
}

static void a_long_prompt_is_computed_in_chunks(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 60);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 100, 2), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 60, 2), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 1);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 64);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 2);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 36);
    CU_ASSERT(!engine.step.scheduled[0].fresh && engine.step.scheduled[1].fresh);
    MOON_CHECK_INT(engine.step.scheduled[1].tokens, 28); /* what is left of the step */
    MOON_CHECK_INT(engine.port.cached[0].block_count, 9);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 1);
    MOON_CHECK_INT(engine.step.scheduled[1].tokens, 32);
    check_close(&engine);
}

static void a_prompt_may_take_many_steps(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 60);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 200, 2), 0);
    static const int64_t expected[] = {64, 64, 64, 8, 1};
    for (size_t i = 0; i < 5; i++) {
        STEP(&engine);
        MOON_CHECK_INT(engine.step.scheduled[0].tokens, expected[i]);
    }
    check_status(&engine, 0, "FINISHED_LENGTH_CAPPED");
    check_close(&engine);
}

static void a_request_without_a_sampled_token_waits_its_turn(void) {
    struct check_engine engine;
    const int64_t nothing[] = {-1};
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 4, 2), 0);
    MOON_CHECK_INT(moon_core_schedule(engine.core, &engine.step, &engine.error), 0);
    const struct moon_core_results results = {.tokens = nothing, .token_count = 1};
    MOON_CHECK_INT(moon_core_update(engine.core, &results, &engine.error), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 0);
    check_status(&engine, 0, "RUNNING");
    check_close(&engine);
}

/* ---- the local prefix ---- */

static void a_prompt_finds_what_another_computed(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 1, 8, 1), 0); /* in the same step: cached before it is computed */
    STEP(&engine);
    MOON_CHECK_INT(engine.port.computed_seen[1], 4); /* all but the last token, cut to a block */
    MOON_CHECK_INT(engine.step.scheduled[1].computed_tokens, 4);
    MOON_CHECK_INT(engine.step.scheduled[1].tokens, 4);
    MOON_CHECK_INT(engine.port.fresh[1].computed_tokens, 4);
    MOON_CHECK_INT(check_add(&engine, 2, 1, 9, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.computed_seen[2], 8); /* blocks of those that ended */
    check_close(&engine);
}

static void the_last_block_of_a_request_is_reused_first(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 3);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 12, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 4, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(moon_core_find(engine.core, 1)->request.known_tokens, 5);
    MOON_CHECK_INT(check_add(&engine, 2, 1, 12, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.computed_seen[2], 8); /* the third block is gone */
    check_close(&engine);
}

static void a_reset_empties_the_local_cache(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 2), 0);
    STEP(&engine);
    CU_ASSERT(!moon_core_reset_prefix(engine.core));
    STEP(&engine);
    CU_ASSERT(moon_core_reset_prefix(engine.core));
    MOON_CHECK_INT(check_add(&engine, 1, 1, 8, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.computed_seen[1], 0);
    CU_ASSERT(!moon_core_reset_connector(engine.core));
    engine.port.resets = true;
    CU_ASSERT(moon_core_reset_connector(engine.core));
    check_close(&engine);
}

static void groups_have_tables_of_their_own_and_share_a_prefix(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 2, 20);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 13, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.fresh[0].block_count, 4);
    MOON_CHECK_INT(check_add(&engine, 1, 1, 13, 3), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.computed_seen[1], 8); /* whole scheduler blocks only */
    MOON_CHECK_INT(check_block(&engine, 1, 0, 0), 1);
    MOON_CHECK_INT(check_block(&engine, 1, 0, 1), 2);
    MOON_CHECK_INT(check_block(&engine, 1, 1, 0), 5);
    MOON_CHECK_INT(moon_core_find(engine.core, 1)->tables[1].count, 2);
    check_close(&engine);
}

static void a_hit_in_one_group_alone_is_no_hit(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 2, 6);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 16, 1), 0); /* blocks 1 to 4 and 5, 6 */
    STEP(&engine);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 4, 1), 0); /* takes block 4 and then block 3 */
    STEP(&engine);
    MOON_CHECK_INT(check_add(&engine, 2, 1, 17, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.computed_seen[2], 8);
    check_close(&engine);
}

/* ---- preemption ---- */

static void the_last_running_request_gives_its_blocks(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 4);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 9), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 7, 9), 0);
    STEP(&engine);
    MOON_CHECK_INT(check_add(&engine, 2, 3, 2, 9), 0);
    STEP(&engine); /* 0 needs a third block */
    MOON_CHECK_INT(engine.step.preempted_count, 1);
    MOON_CHECK_INT(engine.step.preempted[0], 1);
    MOON_CHECK_INT(engine.port.preempted[0], 1);
    MOON_CHECK_INT(engine.step.scheduled_count, 1);
    MOON_CHECK_INT(engine.port.question_count, 0); /* nobody who waits is looked at */
    check_status(&engine, 1, "PREEMPTED");
    MOON_CHECK_INT(moon_core_find(engine.core, 1)->computed_tokens, 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.questions[0], 1);   /* at the head of the queue */
    MOON_CHECK_INT(engine.port.question_count, 1); /* it finds no room, and ends the round */
    MOON_CHECK_INT(moon_core_find(engine.core, 1)->preemptions, 1);
    check_close(&engine);
}

static void a_request_may_preempt_itself(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 2);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 7, 9), 0);
    STEP(&engine);
    STEP(&engine);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.preempted_count, 1);
    MOON_CHECK_INT(engine.step.scheduled_count, 0);
    check_status(&engine, 0, "PREEMPTED");
    STEP(&engine); /* nine tokens do not fit in two blocks */
    check_status(&engine, 0, "PREEMPTED");
    check_close(&engine);
}

static void a_resumed_request_comes_as_new_behind_those_that_are(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 5);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 2), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 11, 9), 0);
    STEP(&engine);
    MOON_CHECK_INT(check_add(&engine, 2, 3, 2, 9), 0);
    STEP(&engine); /* 0 ends with its second token, for which it took the last block of 1 */
    check_status(&engine, 0, "FINISHED_LENGTH_CAPPED");
    check_status(&engine, 1, "PREEMPTED");
    STEP(&engine);
    MOON_CHECK_INT(engine.port.questions[0], 1);
    MOON_CHECK_INT(engine.port.fresh_count, 2);
    MOON_CHECK_INT(engine.port.fresh[0].slot, 2);
    MOON_CHECK_INT(engine.port.fresh[1].slot, 1);
    MOON_CHECK_INT(engine.port.fresh[1].prefill_tokens, 12); /* its output too */
    MOON_CHECK_INT(engine.step.scheduled[0].slot, 1);        /* but it is scheduled first */
    check_close(&engine);
}

static void room_for_the_whole_sequence_is_needed(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 20);
    engine.port.resets = true;
    MOON_CHECK_INT(check_add(&engine, 0, 1, 84, 1), 0); /* a step takes 64 tokens, but 21 blocks there are not */
    MOON_CHECK_INT(check_add(&engine, 1, 2, 4, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 0);
    MOON_CHECK_INT(engine.port.question_count, 1);
    check_close(&engine);
}

static void only_so_many_run_together(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 40);
    for (uint32_t slot = 0; slot < 10; slot++)
        MOON_CHECK_INT(check_add(&engine, slot, slot, 2, 2), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 8);
    STEP(&engine);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 2);
    check_close(&engine);
}

/* ---- questions ---- */

static void a_pending_request_holds_nobody_back(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 10);
    engine.port.answers[0].pending = true;
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 8, 5), 0);
    STEP(&engine);
    check_status(&engine, 0, "WAITING");
    check_status(&engine, 1, "RUNNING");
    STEP(&engine);
    MOON_CHECK_INT(engine.port.questions[0], 0);
    engine.port.answers[0].pending = false;
    STEP(&engine);
    check_status(&engine, 0, "FINISHED_LENGTH_CAPPED");
    check_close(&engine);
}

/* A pending request, and one that is preempted later: who is asked first? */
static void check_order(const char *profile, uint32_t first) {
    struct check_engine engine;
    OPEN(&engine, profile, 1, 4);
    engine.port.answers[2].pending = true;
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 9), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 7, 9), 0);
    MOON_CHECK_INT(check_add(&engine, 2, 3, 2, 9), 0);
    STEP(&engine);
    STEP(&engine);
    check_status(&engine, 1, "PREEMPTED");
    STEP(&engine);
    MOON_CHECK_INT(engine.port.questions[0], first);
    check_close(&engine);
}

static void up_to_0_30_skipped_requests_stand_before_preempted_ones(void) {
    check_order("0.30", 2);
    check_order("0.31", 1);
}

static void requests_that_hold_blocks_go_first_from_0_31(void) {
    struct check_engine engine;
    static const struct moon_engine_match load = {.load_async = true, .tokens = 4};
    const uint32_t received[] = {1};
    OPEN(&engine, "0.31", 1, 10);
    engine.port.answers[0].pending = true;
    engine.port.answers[1] = load;
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 8, 1), 0);
    STEP(&engine);
    check_status(&engine, 1, "WAITING_FOR_REMOTE_KVS");
    MOON_CHECK_INT(check_run(&engine, (struct moon_core_results){.received = received, .received_count = 1}), 0);
    engine.port.answers[0].pending = false;
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled[0].slot, 1);
    MOON_CHECK_INT(engine.step.scheduled[1].slot, 0);
    check_close(&engine);
}

static void tokens_that_need_no_load_are_taken_at_once(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 10);
    engine.port.answers[0].tokens = 4; /* loaded inside the step */
    MOON_CHECK_INT(check_add(&engine, 0, 1, 9, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled[0].computed_tokens, 4);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 5);
    MOON_CHECK_INT(engine.port.external_seen[0], 4);
    check_close(&engine);
}

static void impossible_offers_are_refused(void) {
    static const int64_t offers[] = {-1, 9};
    for (size_t i = 0; i < 2; i++) {
        struct check_engine engine;
        OPEN(&engine, "0.33", 1, 10);
        engine.port.answers[0].tokens = offers[i];
        MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
        MOON_CHECK_INT(check_run_plain(&engine), MOON_ERR_RANGE);
        check_close(&engine);
    }
}

static void what_the_connector_returns_ends_the_step(void) {
    for (int call = 0; call < 3; call++) {
        struct check_engine engine;
        OPEN(&engine, "0.33", 1, 10);
        MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
        *(call == 0   ? &engine.port.match_status
          : call == 1 ? &engine.port.allocated_status
                      : &engine.port.step_status) = MOON_ERR_REFUSED;
        MOON_CHECK_INT(check_run_plain(&engine), MOON_ERR_REFUSED);
        MOON_CHECK_TEXT(engine.error.message, "told to");
        check_close(&engine);
    }
}

static void numbers_that_make_no_sense_are_refused(void) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(engine.error.message, "slot 0 is not free");
    MOON_CHECK_INT(check_add(&engine, MOON_REQUEST_SLOTS_MAX, 1, 8, 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(check_add(&engine, 1, 1, 0, 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(check_add(&engine, 1, 1, 8, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(check_add(&engine, 1, 1, MOON_CORE_TOKENS_MAX + 1, 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(check_add(&engine, 1, 1, 8, MOON_CORE_TOKENS_MAX), MOON_ERR_RANGE);
    CU_ASSERT(!moon_core_remove(engine.core, 0) && !moon_core_remove(engine.core, 1000));
    check_close(&engine);
    MOON_CHECK_INT(check_open(&engine, "0.33", 1, 4, moon_memory_heap()), 0);
    moon_core_close(engine.core);
    engine.groups[0].spec.kind = MOON_SPEC_MAMBA;
    MOON_CHECK_INT(moon_core_open(&engine.core, &engine.options, moon_memory_heap(), &engine.error),
                   MOON_ERR_UNSUPPORTED);
    engine.groups[0].spec.kind = MOON_SPEC_UNIFORM;
    MOON_CHECK_INT(moon_core_open(&engine.core, &engine.options, moon_memory_heap(), &engine.error), 0);
    check_close(&engine);
}

/* Two requests that share a prefix, one of them long, with an abort. */
static int live(struct moon_memory *memory, const void *context) {
    (void)context;
    struct check_engine engine;
    int status = check_open(&engine, "0.33", 2, 40, memory);
    for (uint32_t slot = 0; slot < 3 && !status; slot++)
        status = check_add(&engine, slot * 9, 1, 20, 9);
    for (int i = 0; i < 4 && !status; i++)
        status = check_run_plain(&engine);
    if (!status)
        moon_core_abort(engine.core, 0);
    check_close(&engine);
    return status;
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    moon_unit_refuse_memory(live, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a request runs to its last token", a_request_runs_to_its_last_token},
        {"a long prompt is computed in chunks", a_long_prompt_is_computed_in_chunks},
        {"a prompt may take many steps", a_prompt_may_take_many_steps},
        {"a request without a sampled token waits its turn", a_request_without_a_sampled_token_waits_its_turn},
        {"a prompt finds what another computed", a_prompt_finds_what_another_computed},
        {"the last block of a request is reused first", the_last_block_of_a_request_is_reused_first},
        {"a reset empties the local cache", a_reset_empties_the_local_cache},
        {"groups have tables of their own and share a prefix", groups_have_tables_of_their_own_and_share_a_prefix},
        {"a hit in one group alone is no hit", a_hit_in_one_group_alone_is_no_hit},
        {"the last running request gives its blocks", the_last_running_request_gives_its_blocks},
        {"a request may preempt itself", a_request_may_preempt_itself},
        {"a resumed request comes as new, behind those that are", a_resumed_request_comes_as_new_behind_those_that_are},
        {"room for the whole sequence is needed", room_for_the_whole_sequence_is_needed},
        {"only so many run together", only_so_many_run_together},
        {"a pending request holds nobody back", a_pending_request_holds_nobody_back},
        {"up to 0.30 skipped requests stand before preempted ones",
         up_to_0_30_skipped_requests_stand_before_preempted_ones},
        {"requests that hold blocks go first from 0.31 on", requests_that_hold_blocks_go_first_from_0_31},
        {"tokens that need no load are taken at once", tokens_that_need_no_load_are_taken_at_once},
        {"impossible offers are refused", impossible_offers_are_refused},
        {"what the connector returns ends the step", what_the_connector_returns_ends_the_step},
        {"numbers that make no sense are refused", numbers_that_make_no_sense_are_refused},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("core scheduler", cases, argc, argv);
}
