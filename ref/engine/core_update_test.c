/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what comes of a step: loads, failed loads, ends, aborts, references of jobs, reports of workers. */
#include "ref/engine/core_check_internal.h"

#define OPEN(engine, profile, groups, blocks)                                                                          \
    MOON_CHECK_INT(check_open(engine, profile, groups, blocks, moon_memory_heap()), 0)
#define STEP(engine) MOON_CHECK_INT(check_run_plain(engine), 0)

static const uint32_t slot_0[] = {0};
static const struct moon_core_results received = {.received = slot_0, .received_count = 1};

static void start_loading(struct check_engine *engine, size_t prompt, int64_t tokens) {
    engine->port.answers[0] = (struct moon_engine_match){.load_async = true, .tokens = tokens};
    MOON_CHECK_INT(check_add(engine, 0, 1, prompt, 2), 0);
    STEP(engine);
    check_status(engine, 0, "WAITING_FOR_REMOTE_KVS");
    engine->port.answers[0] = (struct moon_engine_match){0};
}

/* An engine in which request 0 loads `tokens` of its prompt. */
static void open_loading(struct check_engine *engine, const char *profile, size_t prompt, int64_t tokens) {
    OPEN(engine, profile, 1, 10);
    start_loading(engine, prompt, tokens);
}

/* The same, of 0.33 with 8 of 10 tokens, in an engine that recomputes what did not come. */
static void open_recomputing(struct check_engine *engine) {
    OPEN(engine, "0.33", 1, 10);
    moon_core_close(engine->core);
    engine->options.recompute_failed = true;
    MOON_CHECK_INT(moon_core_open(&engine->core, &engine->options, moon_memory_heap(), &engine->error), 0);
    moon_core_connect(engine->core, &engine->port.port);
    start_loading(engine, 10, 8);
}

static void a_load_is_taken_up_in_the_step_after_its_report(void) {
    struct check_engine engine;
    open_loading(&engine, "0.33", 10, 8);
    MOON_CHECK_INT(engine.step.scheduled_count, 0);
    MOON_CHECK_INT(moon_core_find(engine.core, 0)->computed_tokens, 8);
    MOON_CHECK_INT(check_blocks(&engine, 0), 2); /* for what is loaded, not for what is computed then */
    MOON_CHECK_INT(engine.port.external_seen[0], 8);
    MOON_CHECK_INT(check_run(&engine, received), 0);
    check_status(&engine, 0, "WAITING_FOR_REMOTE_KVS");
    STEP(&engine);
    MOON_CHECK_INT(engine.port.question_count, 0); /* it is not asked for again */
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 2);
    MOON_CHECK_INT(engine.port.fresh[0].computed_tokens, 8);
    check_status(&engine, 0, "RUNNING");
    check_close(&engine);
}

static void loaded_blocks_are_found_only_when_the_load_is_taken_up(void) {
    struct check_engine engine;
    open_loading(&engine, "0.33", 10, 8);
    MOON_CHECK_INT(check_add(&engine, 1, 1, 10, 2), 0);
    engine.port.answers[1].pending = true;
    MOON_CHECK_INT(check_run(&engine, received), 0);
    MOON_CHECK_INT(engine.port.computed_seen[1], 0);
    STEP(&engine); /* 0 goes first, so 1 finds what it has now */
    MOON_CHECK_INT(engine.port.computed_seen[1], 8);
    check_close(&engine);
}

static void of_a_whole_prompt_that_came_the_last_token_is_computed(void) {
    struct check_engine engine;
    open_loading(&engine, "0.33", 8, 8);
    MOON_CHECK_INT(check_run(&engine, received), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled[0].computed_tokens, 7);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 1);
    check_close(&engine);
}

static void a_prompt_of_one_token_comes_back_with_its_block(void) {
    struct check_engine engine;
    open_loading(&engine, "0.33", 1, 1);
    MOON_CHECK_INT(check_run(&engine, received), 0);
    STEP(&engine); /* nothing of it is computed, so it is asked for again */
    MOON_CHECK_INT(engine.port.question_count, 1);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 1);
    MOON_CHECK_INT(check_blocks(&engine, 0), 1);
    check_close(&engine);
}

/* Request 0 loads one of its six blocks, 1 wants to load four of five: which state is it in then? */
static void check_reserved(size_t blocks, const char *state) {
    struct check_engine engine;
    OPEN(&engine, "0.33", 1, blocks);
    engine.port.answers[0] = (struct moon_engine_match){.load_async = true, .tokens = 4};
    engine.port.answers[1] = (struct moon_engine_match){.load_async = true, .tokens = 16};
    MOON_CHECK_INT(check_add(&engine, 0, 1, 23, 2), 0);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 17, 2), 0);
    STEP(&engine);
    check_status(&engine, 1, state);
    check_close(&engine);
}

static void a_load_leaves_room_for_those_under_way(void) {
    check_reserved(10, "WAITING_FOR_REMOTE_KVS"); /* 4 of the 9 that are left, where 5 are spoken for */
    check_reserved(9, "WAITING");
}

/* ---- failed loads ---- */

static void a_failed_load_fails_the_request(void) {
    struct check_engine engine;
    const uint64_t failed[] = {2};
    open_loading(&engine, "0.33", 10, 8);
    struct moon_core_results results = received;
    results.failed_blocks = failed;
    results.failed_block_count = 1;
    MOON_CHECK_INT(check_run(&engine, results), 0);
    check_status(&engine, 0, "FINISHED_ERROR");
    MOON_CHECK_INT(moon_core_find(engine.core, 0)->computed_tokens, 4); /* up to the failed block */
    MOON_CHECK_INT(check_blocks(&engine, 0), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.finished_count, 1);
    CU_ASSERT(moon_core_remove(engine.core, 0));
    check_close(&engine);
}

static void blocks_of_a_failed_load_wait_for_its_end(void) {
    struct check_engine engine;
    const uint64_t failed[] = {1, 9};
    open_loading(&engine, "0.33", 10, 8);
    MOON_CHECK_INT(check_run(&engine, (struct moon_core_results){.failed_blocks = failed, .failed_block_count = 2}), 0);
    check_status(&engine, 0, "FINISHED_ERROR");
    MOON_CHECK_INT(check_blocks(&engine, 0), 2);
    CU_ASSERT(!moon_core_reset_prefix(engine.core));
    MOON_CHECK_INT(check_run(&engine, received), 0);
    CU_ASSERT(moon_core_reset_prefix(engine.core));
    MOON_CHECK_INT(check_run(&engine, received), MOON_ERR_REFUSED); /* twice */
    check_close(&engine);
}

static void with_recompute_the_rest_is_computed(void) {
    struct check_engine engine;
    const uint64_t failed[] = {2};
    open_recomputing(&engine);
    struct moon_core_results results = received;
    results.failed_blocks = failed;
    results.failed_block_count = 1;
    MOON_CHECK_INT(check_run(&engine, results), 0);
    check_status(&engine, 0, "WAITING_FOR_REMOTE_KVS");
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled[0].computed_tokens, 4);
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 6);
    check_close(&engine);
}

static void a_request_of_which_nothing_came_starts_over(void) {
    struct check_engine engine;
    open_recomputing(&engine);
    struct moon_core_results results = received;
    results.failed_requests = slot_0;
    results.failed_request_count = 1;
    MOON_CHECK_INT(check_run(&engine, results), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.question_count, 1); /* asked again */
    MOON_CHECK_INT(engine.step.scheduled[0].tokens, 10);
    MOON_CHECK_INT(check_block(&engine, 0, 0, 0), 2); /* its blocks went back, last first */
    check_close(&engine);
}

static void a_failed_request_fails_by_its_slot(void) {
    struct check_engine engine;
    open_loading(&engine, "0.33", 10, 8);
    struct moon_core_results results = received;
    results.failed_requests = slot_0;
    results.failed_request_count = 1;
    MOON_CHECK_INT(check_run(&engine, results), 0);
    check_status(&engine, 0, "FINISHED_ERROR");
    results.received_count = 0;
    MOON_CHECK_INT(check_run(&engine, results), 0); /* told again: it loads no more */
    check_close(&engine);
}

static void blocks_of_several_groups_name_nobody(void) {
    struct check_engine engine;
    const uint64_t failed[] = {2};
    OPEN(&engine, "0.33", 2, 10);
    MOON_CHECK_INT(check_run(&engine, (struct moon_core_results){.failed_blocks = failed, .failed_block_count = 1}),
                   MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(engine.error.type, "RuntimeError");
    check_close(&engine);
}

/* ---- ends ---- */

static void an_abort_ends_a_request_in_any_state(void) {
    struct check_engine engine;
    open_loading(&engine, "0.33", 10, 8);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 4, 9), 0);
    STEP(&engine);
    MOON_CHECK_INT(check_add(&engine, 2, 3, 4, 9), 0);
    for (uint32_t slot = 0; slot < 5; slot++)
        moon_core_abort(engine.core, slot); /* loading, running, waiting, unknown */
    moon_core_abort(engine.core, 1);        /* again */
    for (uint32_t slot = 0; slot < 3; slot++)
        check_status(&engine, slot, "FINISHED_ABORTED");
    MOON_CHECK_INT(check_blocks(&engine, 0), 2); /* the load still writes into them */
    MOON_CHECK_INT(check_blocks(&engine, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.port.finished_count, 3);
    MOON_CHECK_INT(engine.port.finished[0], 0);
    CU_ASSERT(!moon_core_remove(engine.core, 0) && moon_core_remove(engine.core, 1));
    MOON_CHECK_INT(check_run(&engine, received), 0);
    CU_ASSERT(moon_core_remove(engine.core, 0));
    check_close(&engine);
}

static void an_abort_after_the_report_gives_the_blocks_at_once(void) {
    struct check_engine engine;
    open_loading(&engine, "0.30", 10, 8);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 4, 9), 0);
    MOON_CHECK_INT(check_run(&engine, received), 0);
    moon_core_abort(engine.core, 0);
    MOON_CHECK_INT(check_blocks(&engine, 0), 0);
    check_close(&engine);
}

static void a_token_of_an_aborted_request_is_dropped(void) {
    struct check_engine engine;
    const int64_t token[] = {7};
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 4, 9), 0);
    MOON_CHECK_INT(moon_core_schedule(engine.core, &engine.step, &engine.error), 0);
    moon_core_abort(engine.core, 0);
    const struct moon_core_results results = {.tokens = token, .token_count = 1};
    MOON_CHECK_INT(moon_core_update(engine.core, &results, &engine.error), 0);
    MOON_CHECK_INT(moon_core_find(engine.core, 0)->request.known_tokens, 4);
    check_close(&engine);
}

static void a_delayed_end_keeps_the_blocks_until_they_are_sent(void) {
    struct check_engine engine;
    OPEN(&engine, "0.27", 1, 10);
    engine.port.delays = true;
    MOON_CHECK_INT(check_add(&engine, 0, 1, 4, 1), 0);
    STEP(&engine);
    check_status(&engine, 0, "FINISHED_LENGTH_CAPPED");
    MOON_CHECK_INT(check_blocks(&engine, 0), 1);
    const struct moon_core_results sent = {.sent = slot_0, .sent_count = 1};
    MOON_CHECK_INT(check_run(&engine, sent), 0);
    MOON_CHECK_INT(check_blocks(&engine, 0), 0);
    CU_ASSERT(moon_core_remove(engine.core, 0));
    check_close(&engine);
}

static void jobs_keep_blocks_that_a_request_gave_back(void) {
    struct check_engine engine;
    const int64_t blocks[] = {1, 2};
    OPEN(&engine, "0.33", 1, 2);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 8, 1), 0);
    MOON_CHECK_INT(moon_core_schedule(engine.core, &engine.step, &engine.error), 0);
    struct moon_block_port *port = moon_core_blocks(engine.core);
    port->hold(port, blocks, 2);
    const int64_t token[] = {7};
    const struct moon_core_report reports[] = {{0, 5, 2}};
    const struct moon_core_results results = {.tokens = token, .token_count = 1, .reports = reports, .report_count = 1};
    MOON_CHECK_INT(moon_core_update(engine.core, &results, &engine.error), 0);
    MOON_CHECK_INT(engine.port.reported_job, 502);
    MOON_CHECK_INT(check_add(&engine, 1, 2, 4, 1), 0);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 0);
    port->release(port, blocks, 2);
    STEP(&engine);
    MOON_CHECK_INT(engine.step.scheduled_count, 1);
    check_close(&engine);
}

/* ---- reports ---- */

static void reports_of_nobody_are_refused(void) {
    const uint32_t slots[] = {9, 0};
    struct moon_core_results rows[] = {
        {.received = slots, .received_count = 1},
        {.sent = slots, .sent_count = 1},
        {.received = slots + 1, .received_count = 1}, /* it runs */
        {.sent = slots + 1, .sent_count = 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct check_engine engine;
        OPEN(&engine, "0.33", 1, 10);
        MOON_CHECK_INT(check_add(&engine, 0, 1, 4, 5), 0);
        MOON_CHECK_INT(check_run(&engine, rows[i]), MOON_ERR_REFUSED);
        MOON_CHECK_TEXT(engine.error.type, "AssertionError");
        check_close(&engine);
    }
}

static void a_failed_load_of_nobody_is_passed_over(void) {
    struct check_engine engine;
    const uint32_t slots[] = {9, 0};
    OPEN(&engine, "0.33", 1, 10);
    MOON_CHECK_INT(check_add(&engine, 0, 1, 4, 5), 0);
    MOON_CHECK_INT(check_run(&engine, (struct moon_core_results){.failed_requests = slots, .failed_request_count = 2}),
                   0);
    check_status(&engine, 0, "RUNNING");
    check_close(&engine);
}

static void tokens_that_do_not_fit_are_refused(void) {
    static const int64_t bad[] = {-2, INT64_C(1) << 31};
    for (size_t i = 0; i < 3; i++) {
        struct check_engine engine;
        OPEN(&engine, "0.33", 1, 10);
        MOON_CHECK_INT(check_add(&engine, 0, 1, 4, 5), 0);
        MOON_CHECK_INT(moon_core_schedule(engine.core, &engine.step, &engine.error), 0);
        const struct moon_core_results results = {.tokens = i < 2 ? &bad[i] : NULL, .token_count = i < 2};
        MOON_CHECK_INT(moon_core_update(engine.core, &results, &engine.error), MOON_ERR_RANGE);
        check_close(&engine);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a load is taken up in the step after its report", a_load_is_taken_up_in_the_step_after_its_report},
        {"loaded blocks are found only when the load is taken up",
         loaded_blocks_are_found_only_when_the_load_is_taken_up},
        {"of a whole prompt that came the last token is computed",
         of_a_whole_prompt_that_came_the_last_token_is_computed},
        {"a prompt of one token comes back with its block", a_prompt_of_one_token_comes_back_with_its_block},
        {"a load leaves room for those under way", a_load_leaves_room_for_those_under_way},
        {"a failed load fails the request", a_failed_load_fails_the_request},
        {"blocks of a failed load wait for its end", blocks_of_a_failed_load_wait_for_its_end},
        {"with recompute the rest is computed", with_recompute_the_rest_is_computed},
        {"a request of which nothing came starts over", a_request_of_which_nothing_came_starts_over},
        {"a failed request fails by its slot", a_failed_request_fails_by_its_slot},
        {"blocks of several groups name nobody", blocks_of_several_groups_name_nobody},
        {"an abort ends a request in any state", an_abort_ends_a_request_in_any_state},
        {"an abort after the report gives the blocks at once", an_abort_after_the_report_gives_the_blocks_at_once},
        {"a token of an aborted request is dropped", a_token_of_an_aborted_request_is_dropped},
        {"a delayed end keeps the blocks until they are sent", a_delayed_end_keeps_the_blocks_until_they_are_sent},
        {"jobs keep blocks that a request gave back", jobs_keep_blocks_that_a_request_gave_back},
        {"reports of nobody are refused", reports_of_nobody_are_refused},
        {"a failed load of nobody is passed over", a_failed_load_of_nobody_is_passed_over},
        {"tokens that do not fit are refused", tokens_that_do_not_fit_are_refused},
        {NULL, NULL}};
    return moon_unit_main("core scheduler, results", cases, argc, argv);
}
