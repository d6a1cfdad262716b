/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the scheduler side outside of steps: questions, promises, allocations, finishes, resets. */
#include "ref/connector/scene_internal.h"

static struct scene scene;

static void open_scene(const char *profile, enum moon_kv_role role) {
    scene_set(&scene, profile, role, 1);
    scene_request(&scene, 0, 40);
    MOON_CHECK_INT(scene_open(&scene, 1), 0);
}

static int match(uint32_t slot, int64_t computed, struct moon_match *out) {
    return moon_scheduler_match(scene.scheduler, &scene.requests[slot], computed, out, &scene.error);
}

static void a_hit_less_the_local_part_is_promised(void) {
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    scene.result = (struct moon_lookup_result){.hit_tokens = 32, .boundary_count = 1, .tail_boundaries = {32}};
    MOON_CHECK_INT(match(0, 16, &out), 0);
    MOON_CHECK_INT(out.tokens, 16);
    MOON_CHECK_INT(out.hit_tokens, 32);
    CU_ASSERT(out.load_async);
    CU_ASSERT_FALSE(out.pending);
    MOON_CHECK_INT(out.boundary_count, 1);
    MOON_CHECK_INT(out.tail_boundaries[0], 32);
    scene.result.hit_tokens = 16;
    MOON_CHECK_INT(match(0, 16, &out), 0);
    MOON_CHECK_INT(out.tokens, 0);
    MOON_CHECK_INT(out.hit_tokens, 0);
    CU_ASSERT_FALSE(out.load_async);
    MOON_CHECK_INT(match(0, 32, &out), 0);
    MOON_CHECK_INT(out.tokens, 0);
    scene_close(&scene);
}

static void the_length_of_a_question_follows_the_release(void) {
    static const struct {
        const char *profile;
        int64_t asked;
    } rows[] = {{"0.21", 32}, {"0.22", 32}, {"0.24", 32}, {"0.26", 32}, {"0.27", 40}, {"0.33", 40}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_match out;
        open_scene(rows[i].profile, MOON_ROLE_BOTH);
        MOON_CHECK_INT(match(0, 0, &out), 0);
        MOON_CHECK_INT(scene.asked_tokens, rows[i].asked);
        scene_close(&scene);
    }
    struct moon_match out;
    scene_set(&scene, "0.21", MOON_ROLE_BOTH, 1);
    scene.options.discard_partial_chunks = false;
    scene_request(&scene, 0, 40);
    scene_open(&scene, 1);
    MOON_CHECK_INT(match(0, 0, &out), 0);
    MOON_CHECK_INT(scene.asked_tokens, 40);
    scene_close(&scene);
}

static void short_prompts_and_disabled_lookups_ask_nothing(void) {
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    scene_request(&scene, 1, 15);
    MOON_CHECK_INT(match(1, 0, &out), 0);
    MOON_CHECK_INT(scene.lookup_count, 0);
    scene_close(&scene);
    scene_set_hybrid(&scene, "0.33");
    scene_request(&scene, 1, 16); /* fine-grained: one hash block is enough */
    scene_open(&scene, 1);
    MOON_CHECK_INT(match(1, 0, &out), 0);
    MOON_CHECK_INT(scene.lookup_count, 1);
    scene_close(&scene);
    scene_set(&scene, "0.33", MOON_ROLE_BOTH, 1);
    scene.options.enable_lookup = false;
    scene_request(&scene, 0, 40);
    scene_open(&scene, 1);
    MOON_CHECK_INT(match(0, 0, &out), 0);
    MOON_CHECK_INT(scene.lookup_count, 0);
    scene_close(&scene);
}

static void a_scheduler_without_channel_never_asks(void) {
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    moon_scheduler_close(scene.scheduler);
    MOON_CHECK_INT(moon_scheduler_open(&scene.scheduler, &scene.connector, NULL, NULL, 1, scene.memory, &scene.error),
                   0);
    scene.result.hit_tokens = 32;
    MOON_CHECK_INT(match(0, 0, &out), 0);
    MOON_CHECK_INT(out.tokens, 0);
    scene.reset_answer = true;
    CU_ASSERT_FALSE(moon_scheduler_reset(scene.scheduler));
    scene.finished[scene.step.finished_count++] = 0;
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

static void a_pending_answer_is_handed_on(void) {
    struct moon_match out;
    scene_set(&scene, "0.30", MOON_ROLE_BOTH, 1);
    scene.options.lookup_async = true;
    scene_request(&scene, 0, 40);
    scene_open(&scene, 1);
    scene.lookup_pending = true;
    scene.result.hit_tokens = 32;
    MOON_CHECK_INT(match(0, 0, &out), 0);
    CU_ASSERT(out.pending);
    CU_ASSERT(scene.asked_non_block);
    MOON_CHECK_INT(out.tokens, 0);
    scene.lookup_pending = false;
    MOON_CHECK_INT(match(0, 0, &out), 0);
    CU_ASSERT_FALSE(out.pending);
    MOON_CHECK_INT(out.tokens, 32);
    scene.finished[scene.step.finished_count++] = 0;
    MOON_CHECK_TEXT(scene_step(&scene), "");
    MOON_CHECK_INT(scene.discard_count, 1);
    scene_close(&scene);
}

static void a_failed_channel_is_no_hit(void) {
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    scene.result.hit_tokens = 32;
    scene.lookup_status = MOON_ERR_IO;
    MOON_CHECK_INT(match(0, 0, &out), 0);
    MOON_CHECK_INT(out.tokens, 0);
    scene.lookup_status = MOON_ERR_REFUSED;
    MOON_CHECK_INT(match(0, 0, &out), 0);
    MOON_CHECK_INT(out.tokens, 0);
    scene.lookup_status = MOON_ERR_MEMORY;
    MOON_CHECK_INT(match(0, 0, &out), MOON_ERR_MEMORY);
    scene_close(&scene);
}

static void a_full_hit_leaves_a_token_to_compute(void) {
    static const struct {
        const char *profile;
        int64_t known, hit, tokens;
    } rows[] = {{"0.21", 32, 32, 31}, {"0.22", 32, 32, 16}, {"0.26", 32, 32, 16}, {"0.27", 32, 32, 32},
                {"0.22", 33, 32, 32}, {"0.22", 16, 16, 0},  {"0.21", 33, 32, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_match out;
        open_scene(rows[i].profile, MOON_ROLE_BOTH);
        scene_request(&scene, 0, rows[i].known);
        scene.result.hit_tokens = rows[i].hit;
        MOON_CHECK_INT(match(0, 0, &out), 0);
        MOON_CHECK_INT(out.tokens, rows[i].tokens);
        scene_close(&scene);
    }
}

static void impossible_numbers_are_refused(void) {
    static const struct {
        int64_t prompt, known, computed;
        uint32_t slot;
    } rows[] = {{0, 40, 0, 0},   {40, 39, 0, 0},        {40, 40, -1, 0},
                {40, 40, 41, 0}, {40, 40, 0, 1u << 20}, {40, MOON_CONNECTOR_TOKENS_MAX + 1, 0, 0}};
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct moon_request request = {
            .slot = rows[i].slot, .prompt_tokens = rows[i].prompt, .known_tokens = rows[i].known};
        MOON_CHECK_INT(moon_scheduler_match(scene.scheduler, &request, rows[i].computed, &out, &scene.error),
                       MOON_ERR_RANGE);
        MOON_CHECK_INT(moon_scheduler_allocated(scene.scheduler, &request, scene.tables[0],
                                                rows[i].computed > 0 ? -1 : rows[i].computed, &scene.error),
                       MOON_ERR_RANGE);
    }
    static const struct moon_lookup_result bad[] = {{.hit_tokens = -1}, {.hit_tokens = 41}, {32, 2, {0}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        scene.result = bad[i];
        MOON_CHECK_INT(match(0, 0, &out), MOON_ERR_RANGE);
    }
    scene_close(&scene);
    MOON_CHECK_INT(scene_open(&scene, 0), MOON_ERR_RANGE);
}

static void other_tokens_than_promised_are_refused(void) {
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    scene.result.hit_tokens = 32;
    MOON_CHECK_INT(match(0, 16, &out), 0);
    scene_grow(&scene, 0, 40);
    MOON_CHECK_INT(scene_allocate(&scene, 0, 32), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(scene.error.type, "AssertionError");
    MOON_CHECK_TEXT(scene.error.message, "Mismatch in number of tokens: 32 vs 32 - 16 for request 0");
    MOON_CHECK_INT(scene_allocate(&scene, 0, 16), 0);
    MOON_CHECK_TEXT(scene_step(&scene), "load 0 from 16 to 32");
    MOON_CHECK_INT(scene_allocate(&scene, 0, 16), 0); /* nothing is promised any more */
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene_close(&scene);
}

static void a_reset_forgets_promises(void) {
    struct moon_match out;
    open_scene("0.33", MOON_ROLE_BOTH);
    scene.result = (struct moon_lookup_result){32, 1, {32}};
    scene_grow(&scene, 0, 40);
    match(0, 0, &out);
    scene_allocate(&scene, 0, 32);
    CU_ASSERT_FALSE(moon_scheduler_reset(scene.scheduler));
    MOON_CHECK_TEXT(scene_step(&scene), "");
    scene.reset_answer = true;
    CU_ASSERT(moon_scheduler_reset(scene.scheduler));
    scene_close(&scene);
    open_scene("0.22", MOON_ROLE_BOTH);
    scene.reset_answer = true;
    CU_ASSERT_FALSE(moon_scheduler_reset(scene.scheduler));
    scene_close(&scene);
}

static void a_finish_delays_the_free_up_to_27(void) {
    static const struct {
        const char *profile;
        enum moon_kv_role role;
        int64_t prompt;
        bool blocks, delays;
    } rows[] = {{"0.27", MOON_ROLE_BOTH, 40, true, true},      {"0.21", MOON_ROLE_PRODUCER, 16, true, true},
                {"0.27", MOON_ROLE_BOTH, 40, false, false},    {"0.27", MOON_ROLE_BOTH, 15, true, false},
                {"0.27", MOON_ROLE_CONSUMER, 40, true, false}, {"0.28", MOON_ROLE_BOTH, 40, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_scene(rows[i].profile, rows[i].role);
        scene_request(&scene, 0, rows[i].prompt);
        scene_new(&scene, 0, 0, rows[i].prompt);
        scene_step(&scene);
        MOON_CHECK_INT(moon_scheduler_finished(scene.scheduler, &scene.requests[0], rows[i].blocks), rows[i].delays);
        scene_preempt(&scene, 0);
        scene_step(&scene);
        CU_ASSERT_FALSE(moon_scheduler_finished(scene.scheduler, &scene.requests[0], true));
        scene.requests[1].slot = 900; /* a slot that was never used */
        CU_ASSERT_FALSE(moon_scheduler_finished(scene.scheduler, &scene.requests[1], true));
        scene_close(&scene);
    }
}

static void slots_may_be_sparse(void) {
    open_scene("0.33", MOON_ROLE_BOTH);
    struct moon_request request = scene.requests[0];
    request.slot = MOON_REQUEST_SLOTS_MAX - 1;
    MOON_CHECK_INT(moon_scheduler_allocated(scene.scheduler, &request, scene.tables[0], 0, &scene.error), 0);
    scene_new(&scene, 0, 0, 40);
    MOON_CHECK_TEXT(scene_step(&scene), "save 0 to 32 of 40");
    scene_close(&scene);
    moon_scheduler_close(NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a hit less the local part is promised", a_hit_less_the_local_part_is_promised},
        {"the length of a question follows the release", the_length_of_a_question_follows_the_release},
        {"short prompts and disabled lookups ask nothing", short_prompts_and_disabled_lookups_ask_nothing},
        {"a scheduler without a channel never asks", a_scheduler_without_channel_never_asks},
        {"a pending answer is handed on", a_pending_answer_is_handed_on},
        {"a failed channel is no hit", a_failed_channel_is_no_hit},
        {"a full hit leaves a token to compute", a_full_hit_leaves_a_token_to_compute},
        {"impossible numbers are refused", impossible_numbers_are_refused},
        {"other tokens than promised are refused", other_tokens_than_promised_are_refused},
        {"a reset forgets promises", a_reset_forgets_promises},
        {"a finish delays the free up to 0.27", a_finish_delays_the_free_up_to_27},
        {"slots may be sparse", slots_may_be_sparse},
        {NULL, NULL},
    };
    return moon_unit_main("scheduler", cases, argc, argv);
}
