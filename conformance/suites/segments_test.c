/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite segments: defaults, closed members, layers that are not stored, explanations, drawn cases, refused
 * memory. */
#include "conformance/suites/segments_case.h"

#include "ref/base/unit.h"

struct fixture {
    struct moon_arena arena;
    struct moon_json *given, *result;
    struct moon_error error;
    int status;
};

static void answer_is_made(struct fixture *fixture, const char *profile, const char *given) {
    *fixture = (struct fixture){0};
    moon_arena_open(&fixture->arena, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&fixture->arena, "test", given, strlen(given), MOON_JSON_STRICT, &fixture->given,
                                  &fixture->error),
                   0);
    fixture->status = moon_suite_segments.answer(NULL, &fixture->arena, moon_profile_find(profile, NULL), "test",
                                                 fixture->given, &fixture->result, &fixture->error);
}

/* Compares the answer's text, and closes the fixture. */
static void answer_is(const char *profile, const char *given, const char *expected) {
    struct fixture fixture;
    struct moon_text text;
    answer_is_made(&fixture, profile, given);
    moon_text_open(&text, moon_memory_heap());
    if (fixture.status == 0)
        moon_json_write(fixture.result, MOON_JSON_COMPACT, &text);
    MOON_CHECK_TEXT(fixture.status ? fixture.error.message : moon_text_value(&text), expected);
    moon_text_close(&text);
    moon_arena_close(&fixture.arena);
}

#define ONE_LAYER                                                                                                      \
    "\"num_gpu_blocks\":2,\"storages\":[{\"nbytes\":128}],\"layers\":[{\"name\":\"g0.l0\",\"storage\":0,\"shape\":[2," \
    "32]}]"

static void members_left_out_have_natural_values(void) {
    /* one full attention group of block size 16, row-major strides, 2 bytes an element, shard 0 */
    answer_is("0.33", "{" ONE_LAYER ",\"requests\":[{\"chunks\":[[0,16]],\"block_ids\":[1]}],\"single_blocks\":[0]}",
              "{\"registered_buffers\":[{\"tensor\":0,\"offset\":0,\"size\":128}],\"layout\":\"RankLocalStoreLayout\","
              "\"results\":[{\"segments\":[[{\"tensor\":0,\"offset\":64,\"size\":64}]],\"block_ids\":[1]}],"
              "\"single_blocks\":[[{\"tensor\":0,\"offset\":0,\"size\":64}]]}");
    answer_is("0.21", "{" ONE_LAYER ",\"single_blocks\":[0]}",
              "{\"registered_buffers\":[{\"tensor\":0,\"offset\":0,\"size\":128}],\"results\":[]}");
}

static void the_natural_shard_of_a_sharded_rank_is_its_first(void) {
    answer_is("0.30",
              "{\"topology\":{\"tp\":2},\"rank\":1,\"total_kv_heads\":4,\"extra_config\":{\"store_tp_size\":4},"
              "\"groups\":[{\"kind\":\"full\",\"block_size\":1}],\"num_gpu_blocks\":1,\"storages\":[{\"nbytes\":4}],"
              "\"layers\":[{\"name\":\"g0.l0\",\"storage\":0,\"shape\":[1,2,1,1]}],"
              "\"requests\":[{\"chunks\":[[0,1]],\"block_ids\":[0]}]}",
              "{\"registered_buffers\":[{\"tensor\":0,\"offset\":0,\"size\":4}],\"layout\":\"LBHNCStoreLayout\","
              "\"results\":[{\"segments\":[[{\"tensor\":0,\"offset\":0,\"size\":2}]],\"block_ids\":[0]}]}");
}

#define TWO_LAYERS                                                                                                     \
    "{\"num_gpu_blocks\":1,\"groups\":[{\"kind\":\"full\",\"block_size\":16%s}],\"storages\":[{\"nbytes\":2},{"        \
    "\"nbytes\":4}],"                                                                                                  \
    "\"layers\":[{\"name\":\"%s\",\"storage\":0,\"shape\":[1]},{\"name\":\"other\",\"storage\":1,\"shape\":[2]}]}"

static void registered_count_is(const char *profile, const char *group_member, const char *layer, size_t count) {
    struct fixture fixture;
    char given[512];
    snprintf(given, sizeof given, TWO_LAYERS, group_member, layer);
    answer_is_made(&fixture, profile, given);
    MOON_CHECK_INT(fixture.status, 0);
    MOON_CHECK_INT(moon_json_member(fixture.result, "registered_buffers")->count, count);
    moon_arena_close(&fixture.arena);
}

static void layers_of_no_store_group_are_passed_over_from_0_30(void) {
    registered_count_is("0.29", "", "g0.l0", 2);
    registered_count_is("0.30", "", "g0.l0", 1);
    registered_count_is("0.30", ",\"num_layers\":3", "g0.l2", 1);
    registered_count_is("0.30", ",\"num_layers\":3", "g0.l3", 0);
    registered_count_is("0.30", ",\"layer_names\":[\"a\",\"other\"]", "a", 2);
    registered_count_is("0.30", ",\"layer_names\":[]", "g0.l0", 1);
}

static void bad_cases_are_told_with_their_place(void) {
    static const struct {
        const char *given;
        int status;
        const char *where;
    } rows[] = {
        {"[]", MOON_ERR_SCHEMA, "$"},
        {"{\"x\":1}", MOON_ERR_SCHEMA, "$.x"},
        {"{\"layers\":[]}", MOON_ERR_SCHEMA, "$"},
        {"{\"storages\":[{\"nbytes\":0}],\"layers\":[]}", MOON_ERR_RANGE, "$.storages[0].nbytes"},
        {"{\"storages\":[{\"nbytes\":1,\"y\":1}],\"layers\":[]}", MOON_ERR_SCHEMA, "$.storages[0].y"},
        {"{\"storages\":[],\"layers\":[{\"name\":\"a\",\"storage\":0,\"shape\":[1]}]}", MOON_ERR_RANGE,
         "$.layers[0].storage"},
        {"{\"storages\":[{\"nbytes\":4}],\"layers\":[{\"name\":\"a\",\"storage\":0,\"shape\":[3]}]}", MOON_ERR_RANGE,
         "$.layers[0]"},
        {"{\"storages\":[{\"nbytes\":4}],\"layers\":[{\"name\":\"a\",\"storage\":0,\"shape\":[0]}]}", MOON_ERR_SCHEMA,
         "$.layers[0].shape[0]"},
        {"{\"storages\":[{\"nbytes\":4}],\"layers\":[{\"name\":\"a\",\"storage\":0,\"shape\":[1,1,1,1,1,1,1,1]}]}",
         MOON_ERR_SCHEMA, "$.layers[0]"},
        {"{\"storages\":[{\"nbytes\":4}],\"layers\":[{\"name\":\"a\",\"storage\":0,\"shape\":[1],\"strides\":[]}]}",
         MOON_ERR_SCHEMA, "$.layers[0]"},
        {"{\"storages\":[{\"nbytes\":4}],\"layers\":[{\"name\":\"a\",\"storage\":0,"
         "\"shape\":[9007199254740992,9007199254740992,2]}]}",
         MOON_ERR_RANGE, "$.layers[0]"},
        {"{" ONE_LAYER ",\"rank\":1}", MOON_ERR_RANGE, "$.rank"},
        {"{" ONE_LAYER ",\"requests\":[{\"block_ids\":[]}]}", MOON_ERR_SCHEMA, "$.requests[0]"},
        {"{" ONE_LAYER ",\"requests\":[{\"chunks\":[[1]],\"block_ids\":[]}]}", MOON_ERR_SCHEMA,
         "$.requests[0].chunks[0]"},
        {"{" ONE_LAYER ",\"requests\":[{\"chunks\":[[2,1]],\"block_ids\":[]}]}", MOON_ERR_SCHEMA,
         "$.requests[0].chunks[0]"},
        {"{" ONE_LAYER ",\"requests\":[{\"chunks\":[],\"block_ids\":[-1]}]}", MOON_ERR_SCHEMA,
         "$.requests[0].block_ids[0]"},
        {"{" ONE_LAYER ",\"requests\":[{\"chunks\":[],\"block_ids\":[],\"group\":1}]}", MOON_ERR_RANGE,
         "$.requests[0].group"},
        {"{" ONE_LAYER ",\"extra_config\":{\"store_tp_size\":1},\"single_blocks\":[0]}", MOON_ERR_SCHEMA,
         "$.single_blocks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture fixture;
        answer_is_made(&fixture, "0.33", rows[i].given);
        MOON_CHECK_INT(fixture.status, rows[i].status);
        const char *path = strchr(fixture.error.where, '$');
        MOON_CHECK_TEXT(path ? path : "", rows[i].where);
        moon_arena_close(&fixture.arena);
    }
}

/* True if the explanation of the answer contains `part`. */
static bool explained(const char *profile, const char *given, const char *part) {
    struct fixture fixture;
    struct moon_text text;
    answer_is_made(&fixture, profile, given);
    moon_text_open(&text, moon_memory_heap());
    int status = moon_suite_segments.explain(NULL, &fixture.arena, moon_profile_find(profile, NULL), "test",
                                             fixture.given, &text, &fixture.error);
    bool found = status == 0 && strstr(moon_text_value(&text), part) != NULL;
    if (!found)
        fprintf(stderr, "status %d, not explained: \"%s\" in\n%s\n", status, part, moon_text_value(&text));
    moon_text_close(&text);
    moon_arena_close(&fixture.arena);
    return found;
}

static void explanations_name_rule_release_and_traps(void) {
    static const char request[] = "{" ONE_LAYER ",\"requests\":[{\"chunks\":[[16,48]],\"block_ids\":[0,1]}]}";
    CU_ASSERT(
        explained("0.33", request, "registered, each storage once and in full (SEG-001):\n  storage 0, 128 bytes\n"));
    CU_ASSERT(explained("0.33", request, "segments a chunk: 1; 0.29 on: regions, each start taken once (SEG-008)"));
    CU_ASSERT(explained("0.33", request, "entry 1 of the block table is block 1"));
    CU_ASSERT(explained("0.33", request, "storage 0, 64 + 128 !! the last 64 bytes lie behind the storage's end"));
    CU_ASSERT(explained("0.21", request, "0.21: page and split of the first cache"));
    CU_ASSERT(explained("0.24", request, "0.22 to 0.26: whole multiples of the block (SEG-015)"));
    CU_ASSERT(explained("0.24", "{" ONE_LAYER ",\"requests\":[{\"chunks\":[[64,80]],\"block_ids\":[]}]}",
                        "raises IndexError \"list index out of range\""));
    CU_ASSERT(explained("0.33",
                        "{\"num_gpu_blocks\":2,\"storages\":[{\"nbytes\":6}],"
                        "\"layers\":[{\"name\":\"g0.l0\",\"storage\":0,\"shape\":[3]}]}",
                        "registration raises AssertionError \"\""));
    CU_ASSERT(explained(
        "0.33",
        "{\"total_kv_heads\":4,\"extra_config\":{\"store_tp_size\":2},\"kv_cache_layout\":\"LBNHC\","
        "\"groups\":[{\"kind\":\"full\",\"block_size\":2}],\"num_gpu_blocks\":1,\"storages\":[{\"nbytes\":16}],"
        "\"layers\":[{\"name\":\"g0.l0\",\"storage\":0,\"shape\":[1,4,2,1],\"strides\":[8,1,4,1]}],"
        "\"requests\":[{\"chunks\":[[0,2]],\"block_ids\":[0],\"shard_ids\":[1]}]}",
        "object byte 4: storage 0, 12 + 4 (g0.l0 from head 2, token 1)"));
}

static void drawn_cases_are_answered_and_repeat(void) {
    size_t count;
    const struct moon_profile *profiles = moon_profiles(&count);
    for (size_t p = 0; p < count; p++)
        for (uint64_t seed = 0; seed < 200; seed++) {
            struct moon_arena arena;
            struct moon_random random;
            struct moon_json *given = NULL, *again = NULL, *result = NULL;
            struct moon_error error = {0};
            moon_arena_open(&arena, moon_memory_heap());
            moon_random_seed(&random, seed);
            MOON_CHECK_INT(moon_suite_segments.draw(&arena, &random, &profiles[p], &given), 0);
            moon_random_seed(&random, seed);
            MOON_CHECK_INT(moon_suite_segments.draw(&arena, &random, &profiles[p], &again), 0);
            CU_ASSERT(moon_json_equal(given, again));
            int status = moon_suite_segments.answer(NULL, &arena, &profiles[p], "drawn", given, &result, &error);
            MOON_CHECK_TEXT(status ? error.message : "", "");
            moon_arena_close(&arena);
        }
}

/* Draws, answers and explains with memory that fails at `fail_at`; returns true if all was made. */
static bool runs_with(uint64_t seed, const struct moon_profile *profile, uint64_t fail_at) {
    struct moon_memory_failing failing;
    struct moon_arena arena;
    struct moon_random random;
    struct moon_json *given = NULL, *result = NULL;
    struct moon_text text;
    moon_memory_failing_init(&failing, moon_memory_heap(), fail_at);
    moon_arena_open(&arena, &failing.memory);
    moon_text_open(&text, &failing.memory);
    moon_random_seed(&random, seed);
    int status = moon_suite_segments.draw(&arena, &random, profile, &given);
    if (!status)
        status = moon_suite_segments.answer(NULL, &arena, profile, "drawn", given, &result, NULL);
    if (!status)
        status = moon_suite_segments.explain(NULL, &arena, profile, "drawn", given, &text, NULL);
    CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
    bool made = status == 0 && !text.failed;
    moon_text_close(&text);
    moon_arena_close(&arena);
    MOON_CHECK_INT(failing.held_bytes, 0);
    return made;
}

static void refused_memory_is_told(void) {
    static const char *const profiles[] = {"0.21", "0.28", "0.33"};
    for (size_t p = 0; p < sizeof profiles / sizeof profiles[0]; p++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            uint64_t n = 1;
            while (n < 1000 && !runs_with(seed, moon_profile_find(profiles[p], NULL), n))
                n++;
            CU_ASSERT(n > 1 && n < 1000);
        }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"members that are left out have natural values", members_left_out_have_natural_values},
        {"the natural shard of a sharded rank is its first", the_natural_shard_of_a_sharded_rank_is_its_first},
        {"layers of no store group are passed over from 0.30 on", layers_of_no_store_group_are_passed_over_from_0_30},
        {"bad cases are told with their place", bad_cases_are_told_with_their_place},
        {"explanations name rule, release and traps", explanations_name_rule_release_and_traps},
        {"drawn cases are answered and repeat", drawn_cases_are_answered_and_repeat},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL},
    };
    return moon_unit_main("conformance/suites/segments", cases, argc, argv);
}
