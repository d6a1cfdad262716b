/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of lookups: what is asked, which answers count, whole hits, and tail boundaries. */
#include "ref/connector/lookup_worker.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

enum { HASHES = 8 };

static const struct moon_hashes *hashes(size_t count) {
    static uint8_t bytes[HASHES * 2];
    static struct moon_hashes all;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i / 2);
    all = (struct moon_hashes){bytes, 2, count};
    return &all;
}

/* An engine with TP 2 and full attention in blocks of 16; a Mamba group of 32 behind it when there are two groups. */
struct scene {
    struct moon_layout_group groups[2];
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_deviation_notes notes;
};

static void open_scene(struct scene *scene, const char *profile, size_t group_count) {
    *scene = (struct scene){.groups = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MAMBA, 32, 0)}};
    scene->model = model_of(scene->groups, group_count, 2, 8);
    scene->model.scheduler_block_tokens = group_count == 1 ? 16 : 32;
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .enable_lookup = true};
    MOON_CHECK_INT(
        moon_connector_open(&scene->connector, moon_profile_find(profile, NULL), &scene->model, &options, NULL), 0);
    scene->connector.notes = &scene->notes;
}

/* A lookup whose answers are the digits of `answers`, 'n' for -1, in the order of the call; "" when nothing is asked.
 * Returns the hit, or -1 when the release raises. */
static int64_t look_up(const struct moon_connector *connector, int64_t tokens, size_t hash_count, const char *answers,
                       struct moon_lookup_result *result) {
    struct moon_lookup lookup;
    const struct moon_store_call *call;
    struct moon_error error;
    int64_t values[256] = {0};
    size_t count = strlen(answers);
    for (size_t i = 0; i < count; i++)
        values[i] = answers[i] == 'n' ? -1 : answers[i] - '0';
    moon_lookup_open(&lookup, connector, moon_memory_heap());
    int status = moon_lookup_begin(&lookup, tokens, hashes(hash_count), &call, &error);
    MOON_CHECK_INT(status == 0 && call ? call->count : 0, count);
    if (status == 0 && call) {
        MOON_CHECK_INT(call->kind, MOON_CALL_EXIST);
        MOON_CHECK_INT(call->first, 0);
        status = moon_lookup_answer(&lookup, values, count, &error);
    }
    *result = lookup.result;
    moon_lookup_close(&lookup);
    return status ? -1 : result->hit_tokens;
}

static void a_chunk_needs_every_namespace_and_the_answer_1(void) {
    struct scene scene;
    struct moon_lookup_result result;
    open_scene(&scene, "0.33", 1);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "11111111", &result), 64);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "11101111", &result), 16);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "11112111", &result), 32);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "n1111111", &result), 0);
    MOON_CHECK_INT(result.boundary_count, 0);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 3, "111111", &result), 48); /* a chunk without its hash */
    open_scene(&scene, "0.21", 1);
    MOON_CHECK_INT(look_up(&scene.connector, 64, 4, "11110111", &result), 0); /* rank 0 first, then rank 1 */
    MOON_CHECK_INT(look_up(&scene.connector, 64, 4, "11111101", &result), 32);
}

static void the_store_is_not_asked_when_there_is_nothing_to_ask(void) {
    struct scene scene;
    struct moon_lookup_result result;
    open_scene(&scene, "0.33", 1);
    MOON_CHECK_INT(look_up(&scene.connector, 15, 0, "", &result), 0);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 0, "", &result), 0);
    MOON_CHECK_INT(look_up(&scene.connector, 0, 4, "", &result), 0);
    scene.connector.capacity_only = true;
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "", &result), 0);
    open_scene(&scene, "0.26", 1);
    scene.groups[0].spec = (struct moon_layer_spec){.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 1};
    MOON_CHECK_INT(look_up(&scene.connector, 64, 4, "", &result), 0); /* such a window needs no chunk */
}

static void a_whole_hit_is_searched_again_from_027_on(void) {
    struct scene scene;
    struct moon_lookup_result result;
    open_scene(&scene, "0.33", 1);
    MOON_CHECK_INT(look_up(&scene.connector, 64, 4, "11111111", &result), 48);
    MOON_CHECK_INT(result.boundary_count, 1);
    MOON_CHECK_INT(result.tail_boundaries[0], 48);
    MOON_CHECK_INT(look_up(&scene.connector, 65, 4, "11111111", &result), 64);
    MOON_CHECK_INT(look_up(&scene.connector, 16, 1, "11", &result), 0);
    open_scene(&scene, "0.26", 1);
    MOON_CHECK_INT(look_up(&scene.connector, 64, 4, "11111111", &result), 64);
    MOON_CHECK_INT(result.boundary_count, 0);
}

/* Two groups of 2 namespaces; every hash block is asked for in both, and the state of 48 tokens lies inside a block. */
static void fine_grained_lookups_tell_the_tail_of_each_group(void) {
    struct scene scene;
    struct moon_lookup_result result;
    open_scene(&scene, "0.33", 2);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "1111111100001100", &result), 48);
    MOON_CHECK_INT(result.boundary_count, 2);
    MOON_CHECK_INT(result.tail_boundaries[0], 48);
    MOON_CHECK_INT(result.tail_boundaries[1], 48);
    open_scene(&scene, "0.28", 2);
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "1111111100001100", &result), 48);
    MOON_CHECK_INT(result.boundary_count, 0);
}

static void what_the_search_raises_is_told(void) {
    struct scene scene;
    struct moon_lookup_result result;
    open_scene(&scene, "0.33", 1);
    scene.groups[0].spec = (struct moon_layer_spec){.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 17};
    MOON_CHECK_INT(look_up(&scene.connector, 70, 3, "111111", &result), -1);
    MOON_CHECK_INT(result.hit_tokens, 0);
    scene.groups[0].spec = (struct moon_layer_spec){.kind = MOON_SPEC_CHUNKED_LOCAL, .local_tokens = 64};
    MOON_CHECK_INT(look_up(&scene.connector, 70, 4, "00000000", &result), -1); /* a hit of 64 without its tail */
    MOON_CHECK_INT(result.boundary_count, 0);
}

static void a_length_that_is_not_aligned_raises_from_024_to_026(void) {
    struct scene scene;
    struct moon_lookup_result result;
    struct moon_lookup lookup;
    const struct moon_store_call *call;
    struct moon_error error;
    open_scene(&scene, "0.26", 1);
    moon_lookup_open(&lookup, &scene.connector, moon_memory_heap());
    MOON_CHECK_INT(moon_lookup_begin(&lookup, 70, hashes(4), &call, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_TEXT(error.message, "aligned_token_len (70) must be a multiple of lcm_block_size (16)");
    moon_lookup_close(&lookup);
    open_scene(&scene, "0.23", 1); /* asks for the chunk that begins before the end, and ends before it */
    MOON_CHECK_INT(look_up(&scene.connector, 70, 5, "1111111111", &result), 64);
}

static void a_call_that_raises_and_a_wrong_number_of_answers(void) {
    struct scene scene;
    struct moon_lookup lookup;
    const struct moon_store_call *call;
    struct moon_error error;
    static const int64_t ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    open_scene(&scene, "0.33", 1);
    moon_lookup_open(&lookup, &scene.connector, moon_memory_heap());
    MOON_CHECK_INT(moon_lookup_begin(&lookup, 70, hashes(4), &call, &error), 0);
    MOON_CHECK_INT(moon_lookup_answer(&lookup, ones, 7, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "7 answers for 8 keys");
    MOON_CHECK_INT(moon_lookup_answer(&lookup, ones, 9, &error), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_lookup_answer(&lookup, ones, 8, &error), 0);
    MOON_CHECK_INT(lookup.result.hit_tokens, 64);
    MOON_CHECK_INT(moon_lookup_begin(&lookup, 70, hashes(4), &call, &error), 0);
    moon_lookup_raised(&lookup);
    MOON_CHECK_INT(lookup.result.hit_tokens, 0);
    moon_lookup_close(&lookup);
}

static bool noted(const char *profile, int64_t pcp, int64_t heads, const char *name, enum moon_deviation deviation) {
    struct scene scene;
    struct moon_lookup lookup;
    const struct moon_store_call *call;
    open_scene(&scene, profile, 1);
    scene.model.tp = 4;
    scene.model.pcp = pcp;
    scene.model.total_kv_heads = heads;
    scene.model.model_name = moon_key_text(name);
    moon_lookup_open(&lookup, &scene.connector, moon_memory_heap());
    MOON_CHECK_INT(moon_lookup_begin(&lookup, 64, hashes(4), &call, NULL), 0);
    moon_lookup_close(&lookup);
    return moon_deviation_noted(&scene.notes, deviation);
}

static void deviations_are_noted_where_they_happen(void) {
    CU_ASSERT_TRUE(noted("0.24", 2, 4, "m", MOON_DEVIATION_OWN_CONTEXT_RANKS));
    CU_ASSERT_FALSE(noted("0.24", 1, 4, "m", MOON_DEVIATION_OWN_CONTEXT_RANKS));
    CU_ASSERT_FALSE(noted("0.25", 2, 4, "m", MOON_DEVIATION_OWN_CONTEXT_RANKS));
    CU_ASSERT_TRUE(noted("0.26", 1, 3, "m", MOON_DEVIATION_HEADS_NOT_ASKED));
    CU_ASSERT_FALSE(noted("0.26", 1, 2, "m", MOON_DEVIATION_HEADS_NOT_ASKED));
    CU_ASSERT_FALSE(noted("0.27", 1, 3, "m", MOON_DEVIATION_HEADS_NOT_ASKED));
    CU_ASSERT_TRUE(noted("0.21", 1, 4, "x@tp_rank:0", MOON_DEVIATION_LOOKUP_EDITS_TEXT));
    CU_ASSERT_TRUE(noted("0.21", 1, 4, "x@pp_rank:0", MOON_DEVIATION_LOOKUP_EDITS_TEXT));
    CU_ASSERT_FALSE(noted("0.21", 1, 4, "x", MOON_DEVIATION_LOOKUP_EDITS_TEXT));
    CU_ASSERT_FALSE(noted("0.22", 1, 4, "x@tp_rank:0", MOON_DEVIATION_LOOKUP_EDITS_TEXT));
}

static void refused_memory_is_told_and_the_lookup_can_be_used_again(void) {
    for (uint64_t at = 1;; at++) {
        struct moon_memory_failing failing;
        struct scene scene;
        struct moon_lookup lookup;
        const struct moon_store_call *call;
        struct moon_error error;
        open_scene(&scene, "0.33", 2);
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        moon_lookup_open(&lookup, &scene.connector, &failing.memory);
        int status = moon_lookup_begin(&lookup, 70, hashes(4), &call, &error);
        MOON_CHECK_INT(status, failing.requests >= at ? MOON_ERR_MEMORY : 0);
        failing.fail_at = 0;
        MOON_CHECK_INT(moon_lookup_begin(&lookup, 70, hashes(4), &call, &error), 0);
        MOON_CHECK_INT(call->count, 16);
        moon_lookup_close(&lookup);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (status == 0)
            break;
    }
}

static void lookups_of_one_size_allocate_once(void) {
    struct moon_memory_failing counting;
    struct scene scene;
    struct moon_lookup lookup;
    const struct moon_store_call *call;
    open_scene(&scene, "0.33", 1);
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    moon_lookup_open(&lookup, &scene.connector, &counting.memory);
    moon_lookup_begin(&lookup, 70, hashes(4), &call, NULL);
    uint64_t requests = counting.requests;
    moon_lookup_begin(&lookup, 70, hashes(4), &call, NULL);
    MOON_CHECK_INT(counting.requests, requests);
    moon_lookup_close(&lookup);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a chunk needs every namespace and the answer 1", a_chunk_needs_every_namespace_and_the_answer_1},
        {"the store is not asked when there is nothing to ask", the_store_is_not_asked_when_there_is_nothing_to_ask},
        {"a whole hit is searched again from 0.27 on", a_whole_hit_is_searched_again_from_027_on},
        {"fine-grained lookups tell the tail of each group", fine_grained_lookups_tell_the_tail_of_each_group},
        {"what the search raises is told", what_the_search_raises_is_told},
        {"a length that is not aligned raises from 0.24 to 0.26", a_length_that_is_not_aligned_raises_from_024_to_026},
        {"a call that raises is a miss, a wrong number of answers an error",
         a_call_that_raises_and_a_wrong_number_of_answers},
        {"deviations are noted where they happen", deviations_are_noted_where_they_happen},
        {"refused memory is told, and the lookup can be used again",
         refused_memory_is_told_and_the_lookup_can_be_used_again},
        {"lookups of one size allocate once", lookups_of_one_size_allocate_once},
        {NULL, NULL}};
    return moon_unit_main("lookup_worker", cases, argc, argv);
}
