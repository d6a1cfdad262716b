/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of steps that no core makes: each is refused with the place in the step. */
#include "ref/connector/scene_internal.h"

static struct scene scene;

static void open_scene(const char *profile) {
    scene_set(&scene, profile, MOON_ROLE_BOTH, 1);
    scene_request(&scene, 0, 40);
    scene_request(&scene, 1, 40);
    scene_open(&scene, 1);
}

/* Runs the step and closes the scene. */
static void expect(const char *message) {
    MOON_CHECK_TEXT(scene_step(&scene), message);
    scene_close(&scene);
}

static void unknown_slots_are_named(void) {
    open_scene("0.33");
    scene.finished[scene.step.finished_count++] = MOON_REQUEST_SLOTS_MAX;
    expect("finished[0]: slot 1048576 does not exist");
    open_scene("0.33");
    scene.preempted[scene.step.preempted_count++] = 3;
    expect("preempted[0]: slot 3 was never allocated");
    open_scene("0.33");
    scene_run(&scene, 1, 0, 16);
    expect("cached[0]: slot 1 was never allocated");
    open_scene("0.33");
    scene_allocate(&scene, 0, 0);
    scene_run(&scene, 1, 0, 16);
    expect("cached[0]: slot 1 was never scheduled as new");
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_entry(&scene, &scene.fresh[scene.step.fresh_count++], 1, 0, 16);
    expect("fresh[0]: slot 1 is not allocated to this request");
}

static void a_request_is_scheduled_once_a_step(void) {
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_run(&scene, 0, 16, 16);
    expect("cached[0]: slot 0 is scheduled twice");
}

static void a_preempted_request_must_be_allocated_again(void) {
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_preempt(&scene, 0);
    scene_step(&scene);
    scene_run(&scene, 0, 0, 16)->resumed = true;
    expect("cached[0]: slot 0 is not allocated to this request");
    open_scene("0.33");
    scene.options.save_decode_cache = true;
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_preempt(&scene, 0);
    scene_allocate(&scene, 0, 0); /* before the step, as a core does that gives it blocks at once */
    scene_step(&scene);
    scene_allocate(&scene, 0, 0);
    scene_know(&scene, 0, 41);
    scene.connector.saves_decode = true;
    scene_run(&scene, 0, 0, 16); /* goes on as if nothing had happened */
    expect("cached[0]: slot 0 has no block table that could grow");
}

static void another_request_in_the_slot_is_noticed(void) {
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene.requests[1].slot = 0;
    scene_run(&scene, 1, 16, 16);
    expect("cached[0]: slot 0 is not allocated to this request");
}

static void numbers_of_new_requests_are_checked(void) {
    static const struct {
        int64_t computed, scheduled, prefill;
        const char *message;
    } rows[] = {
        {-1, 1, 40, "fresh[0]: -1 computed, 1 scheduled, 40 known tokens"},
        {0, -1, 40, "fresh[0]: 0 computed, -1 scheduled, 40 known tokens"},
        {0, 41, 40, "fresh[0]: 0 computed, 41 scheduled, 40 prefill of 40 known tokens"},
        {0, 40, 0, "fresh[0]: 0 computed, 40 scheduled, 0 prefill of 40 known tokens"},
        {0, 40, 41, "fresh[0]: 0 computed, 40 scheduled, 41 prefill of 40 known tokens"},
        {MOON_CONNECTOR_TOKENS_MAX + 1, 0, 40, "fresh[0]: 1099511627777 computed, 0 scheduled, 40 known tokens"},
        {0, MOON_CONNECTOR_TOKENS_MAX + 1, 40, "fresh[0]: 0 computed, 1099511627777 scheduled, 40 known tokens"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_scene("0.33");
        struct moon_step_request *entry = scene_new(&scene, 0, 0, 40);
        entry->computed_tokens = rows[i].computed;
        entry->scheduled_tokens = rows[i].scheduled;
        entry->prefill_tokens = rows[i].prefill;
        expect(rows[i].message);
    }
    open_scene("0.33");
    scene_new(&scene, 0, 0, 40)->blocks = NULL;
    expect("fresh[0]: blocks are missing");
}

static void numbers_of_cached_requests_are_checked(void) {
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_run(&scene, 0, 16, 16);
    scene.requests[0].known_tokens = -1;
    expect("cached[0]: 16 computed, 16 scheduled, -1 known tokens");
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_run(&scene, 0, 16, 16);
    scene.requests[0].known_tokens = MOON_CONNECTOR_TOKENS_MAX + 1;
    expect("cached[0]: 16 computed, 16 scheduled, 1099511627777 known tokens");
    open_scene("0.33");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene_preempt(&scene, 0);
    scene_step(&scene);
    scene_resume(&scene, 0, 0, 41);
    expect("cached[0]: 41 tokens of 40 known");
}

static void short_tables_are_refused(void) {
    open_scene("0.33");
    struct moon_block_table few = {scene.numbers[0][0], 2};
    scene_new(&scene, 0, 0, 40)->blocks = &few;
    expect("fresh[0]: blocks: 2 blocks of 16 tokens in group 0 are too few for 40 tokens");
    open_scene("0.33");
    few.count = 1;
    scene_new(&scene, 0, 0, 40)->table = &few;
    expect("slots[0]: table: 1 blocks of 16 tokens in group 0 are too few for 32 tokens");
}

static void negative_blocks_are_refused(void) {
    open_scene("0.33");
    scene.numbers[0][0][1] = -5;
    scene_new(&scene, 0, 0, 40);
    expect("fresh[0]: blocks: block -5 in group 0");
    open_scene("0.28");
    scene_new(&scene, 0, 0, 16);
    scene_step(&scene);
    scene.numbers[0][0][1] = -5;
    scene_run(&scene, 0, 16, 16);
    expect("cached[0]: blocks: block -5 in group 0");
}

static void short_hash_lists_are_refused(void) {
    open_scene("0.33");
    scene_new(&scene, 0, 0, 40);
    scene.requests[0].hashes.count = 1;
    expect("fresh[0]: slot 0: 1 hashes of 16 tokens are too few for 32 tokens");
    open_scene("0.33");
    struct moon_match out;
    scene_grow(&scene, 0, 40);
    scene.result = (struct moon_lookup_result){32, 1, {32}};
    moon_scheduler_match(scene.scheduler, &scene.requests[0], 0, &out, &scene.error);
    scene_allocate(&scene, 0, 32);
    scene.requests[0].hashes.count = 1;
    expect("slots[0]: slot 0: 1 hashes of 16 tokens are too few for 32 tokens");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"unknown slots are named", unknown_slots_are_named},
        {"a request is scheduled once a step", a_request_is_scheduled_once_a_step},
        {"a preempted request must be allocated again", a_preempted_request_must_be_allocated_again},
        {"another request in the slot is noticed", another_request_in_the_slot_is_noticed},
        {"numbers of new requests are checked", numbers_of_new_requests_are_checked},
        {"numbers of cached requests are checked", numbers_of_cached_requests_are_checked},
        {"short tables are refused", short_tables_are_refused},
        {"negative blocks are refused", negative_blocks_are_refused},
        {"short hash lists are refused", short_hash_lists_are_refused},
        {NULL, NULL},
    };
    return moon_unit_main("scheduler_refusals", cases, argc, argv);
}
