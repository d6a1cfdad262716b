/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of joint hit search: each finder, their interplay, load masks and tail boundaries. */
#include "ref/connector/coordinator.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"
#include "ref/connector/coordinator_internal.h"
#include "ref/layout/model_check_internal.h"

/* An engine and its store; presence is a text for each group, one digit a hash block. */
struct scene {
    const char *profile;
    struct moon_layout_group groups[4];
    int64_t sbs, hbs;
    bool speculative;
    const char *present[4];
};

/* A scene made ready. Points into itself. */
struct ready {
    struct moon_layout_model model;
    struct moon_connector connector;
    struct moon_deviation_notes notes;
    uint8_t bytes[256];
    struct moon_presence presence;
};

#define FULL(block)           group_of(MOON_SPEC_FULL, block, 0)
#define WINDOW(block, tokens) group_of(MOON_SPEC_SLIDING_WINDOW, block, tokens)
#define MAMBA(block)          group_of(MOON_SPEC_MAMBA, block, 0)

static struct moon_layout_group local_of(int64_t block, int64_t tokens) {
    struct moon_layout_group group = group_of(MOON_SPEC_CHUNKED_LOCAL, block, 0);
    group.spec.local_tokens = tokens;
    return group;
}

static struct moon_layout_group drafter(struct moon_layout_group group) {
    group.is_eagle = true;
    return group;
}

static void make_ready(const struct scene *scene, struct ready *out) {
    size_t count = 0, length = strlen(scene->present[0]);
    while (count < 4 && scene->groups[count].block_tokens != 0)
        count++;
    *out = (struct ready){.model = model_of(scene->groups, count, 1, 8)};
    out->model.scheduler_block_tokens = scene->sbs;
    out->model.hash_block_tokens = scene->hbs;
    out->model.speculative = scene->speculative;
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .enable_lookup = true};
    MOON_CHECK_INT(
        moon_connector_open(&out->connector, moon_profile_find(scene->profile, NULL), &out->model, &options, NULL), 0);
    out->connector.notes = &out->notes;
    for (size_t group = 0; group < count; group++) {
        CU_ASSERT_EQUAL_FATAL(strlen(scene->present[group]), length);
        for (size_t i = 0; i < length; i++)
            out->bytes[group * length + i] = scene->present[group][i] == '1';
    }
    out->presence = (struct moon_presence){out->bytes, (int64_t)length};
}

/* Hit of a lookup up to `limit`; -1 and the message when the release raises. */
static int64_t hit_of(const struct scene *scene, int64_t limit, struct moon_error *error) {
    struct ready ready;
    int64_t hit;
    make_ready(scene, &ready);
    int status = moon_hit_search(&ready.connector, &ready.presence, limit, &hit, error);
    CU_ASSERT(status == 0 || status == MOON_ERR_REFUSED);
    return status ? -1 : hit;
}

static void check_rows(const struct scene *scenes, const int64_t rows[][2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct moon_error error = {0};
        int64_t hit = hit_of(&scenes[i], rows[i][0], &error);
        if (hit != rows[i][1])
            fprintf(stderr, "row %zu (%s):\n", i, scenes[i].profile);
        MOON_CHECK_INT(hit, rows[i][1]);
    }
}
#define CHECK_ROWS(scenes, rows) check_rows(scenes, rows, sizeof(rows) / sizeof((rows)[0]))

static void full_attention_takes_the_leading_run(void) {
    const struct scene scenes[] = {
        {"0.33", {FULL(16)}, 16, 16, false, {"1110"}}, {"0.33", {FULL(16)}, 16, 16, false, {"1010"}},
        {"0.33", {FULL(16)}, 16, 16, true, {"1110"}},  {"0.22", {FULL(16)}, 16, 16, true, {"1110"}},
        {"0.33", {FULL(16)}, 16, 16, true, {"0000"}},  {"0.33", {FULL(16)}, 16, 16, false, {"1111"}},
        {"0.33", {FULL(16)}, 16, 16, false, {"1111"}},
    };
    static const int64_t rows[][2] = {{64, 48}, {64, 16}, {64, 32}, {64, 32}, {64, 0}, {48, 48}, {160, 64}};
    CHECK_ROWS(scenes, rows);
}

/* Block 16, hash block 4; the Mamba group makes the lookup fine-grained and is there everywhere. */
static void full_attention_ends_inside_a_block_when_fine_grained(void) {
    const struct scene scenes[] = {
        {"0.33", {FULL(16), MAMBA(16)}, 16, 4, false, {"0001000101000000", "1111111111111111"}},
        {"0.27", {FULL(16), MAMBA(16)}, 16, 4, false, {"0001000101000000", "1111111111111111"}},
        {"0.33", {drafter(FULL(16)), MAMBA(16)}, 16, 4, true, {"0001000101000000", "1111111111111111"}},
        {"0.33", {FULL(16), MAMBA(16)}, 16, 4, false, {"0001000101000000", "1111111111111111"}},
        {"0.33", {FULL(16), MAMBA(16)}, 16, 4, false, {"0001000000000000", "1111111111111111"}},
        {"0.33", {FULL(4), MAMBA(16)}, 16, 4, false, {"1111110000000000", "1111111111111111"}},
    };
    static const int64_t rows[][2] = {{64, 40}, {64, 40}, {64, 36}, {36, 32}, {64, 16}, {64, 24}};
    CHECK_ROWS(scenes, rows);
}

static void windows_take_the_last_run_that_is_long_enough(void) {
    const struct scene scenes[] = {
        {"0.33", {WINDOW(16, 33), FULL(64)}, 64, 16, false, {"001100110011", "111111111111"}},
        {"0.33", {WINDOW(16, 33), FULL(64)}, 64, 16, false, {"001100100001", "111111111111"}},
        {"0.33", {WINDOW(16, 33)}, 16, 16, false, {"100000000000"}},
        {"0.33", {WINDOW(16, 65), FULL(64)}, 64, 16, false, {"111100000000", "111111111111"}},
        {"0.33", {WINDOW(16, 33)}, 16, 16, true, {"001110000000"}},
        {"0.22", {WINDOW(16, 33)}, 16, 16, true, {"001110000000"}},
        {"0.33", {WINDOW(16, 1)}, 16, 16, false, {"000010000000"}},
        {"0.33", {WINDOW(16, 33), FULL(64)}, 64, 16, false, {"111000000000", "111111111111"}},
        {"0.33", {WINDOW(16, 129), FULL(64)}, 64, 16, true, {"111111000000", "111111111111"}},
        {"0.33", {WINDOW(16, 33)}, 16, 16, false, {"110111000000"}},
    };
    static const int64_t rows[][2] = {{192, 192}, {192, 64}, {16, 16}, {64, 64}, {80, 64},
                                      {80, 64},   {192, 80}, {192, 0}, {192, 0}, {192, 96}};
    CHECK_ROWS(scenes, rows);
}

static void mamba_takes_the_last_aligned_state(void) {
    const struct scene scenes[] = {
        {"0.33", {MAMBA(16)}, 16, 16, false, {"0101"}},
        {"0.33", {MAMBA(16), FULL(32)}, 32, 16, false, {"010", "111"}},
        {"0.33", {MAMBA(16), FULL(32)}, 32, 16, false, {"0010", "1111"}},
        {"0.33", {MAMBA(16), FULL(16)}, 16, 4, false, {"0000000001000000", "1111111111111111"}},
        {"0.33", {MAMBA(16)}, 16, 16, true, {"0101"}},
        {"0.33", {MAMBA(16), FULL(16)}, 16, 4, false, {"0000000000000000", "1111111111111111"}},
    };
    static const int64_t rows[][2] = {{64, 64}, {32, 32}, {64, 0}, {64, 40}, {64, 64}, {64, 0}};
    CHECK_ROWS(scenes, rows);
}

static void local_chunks_need_nothing_before_their_chunk(void) {
    const struct scene scenes[] = {
        {"0.33", {local_of(16, 64)}, 16, 16, false, {"00001100"}},
        {"0.33", {local_of(16, 64)}, 16, 16, false, {"11100000"}},
        {"0.33", {local_of(16, 64)}, 16, 16, false, {"00000000"}},
        {"0.33", {FULL(16), local_of(16, 64)}, 16, 16, false, {"11111000", "00001111"}},
        {"0.33", {local_of(16, 64)}, 16, 16, true, {"11111111"}},
        {"0.33", {local_of(16, 64), FULL(32)}, 32, 16, false, {"11111111", "11111111"}},
        {"0.29", {local_of(16, 64), MAMBA(16), FULL(8)}, 16, 8, false, {"11111111", "11111111", "11111111"}},
    };
    static const int64_t rows[][2] = {{112, 96}, {48, 48}, {80, 64}, {128, 80}, {128, -1}, {128, -1}, {64, -1}};
    CHECK_ROWS(scenes, rows);
    struct moon_error error = {0};
    hit_of(&scenes[4], 128, &error);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_TEXT(error.message, "Hybrid KV cache is not supported for eagle + chunked local attention.");
    hit_of(&scenes[5], 128, &error);
    MOON_CHECK_TEXT(error.message, "KV cache groups with different block sizes are not compatible with chunked local "
                                   "attention now");
}

static void a_hash_list_that_is_too_short_raises_but_for_full_attention(void) {
    const struct scene scenes[] = {
        {"0.33", {WINDOW(16, 33)}, 16, 16, false, {"1111"}},   {"0.33", {MAMBA(16)}, 16, 16, false, {"1111"}},
        {"0.33", {local_of(16, 32)}, 16, 16, false, {"1111"}}, {"0.33", {FULL(16)}, 16, 16, false, {"1111"}},
        {"0.33", {local_of(16, 32)}, 16, 16, false, {"1111"}},
    };
    static const int64_t rows[][2] = {{80, -1}, {80, -1}, {80, -1}, {80, 64}, {96, 96}};
    CHECK_ROWS(scenes, rows);
    struct moon_error error = {0};
    hit_of(&scenes[0], 80, &error);
    MOON_CHECK_TEXT(error.type, "IndexError");
    MOON_CHECK_TEXT(error.message, "list index out of range");
}

static void equal_groups_are_present_together(void) {
    const struct scene scenes[] = {
        {"0.33", {FULL(16), FULL(16)}, 16, 16, false, {"1110", "1101"}},
        {"0.33", {WINDOW(16, 33), FULL(16), WINDOW(16, 33)}, 16, 16, false, {"0111", "1111", "1110"}},
        {"0.33", {WINDOW(16, 33), FULL(16), WINDOW(16, 17)}, 16, 16, false, {"0111", "1111", "1110"}},
        /* the flag of one counts for both: a chunk is dropped */
        {"0.33", {WINDOW(16, 33), FULL(16), drafter(WINDOW(16, 33))}, 16, 16, true, {"0111", "1111", "0111"}},
    };
    static const int64_t rows[][2] = {{64, 32}, {64, 48}, {64, 48}, {64, 48}};
    CHECK_ROWS(scenes, rows);
}

/* Only the drafter's group drops; full attention then has a block more than it needs. */
static void a_drafter_looks_one_block_beyond_the_hit(void) {
    const struct scene scenes[] = {
        {"0.33", {FULL(16), drafter(WINDOW(16, 33))}, 16, 16, true, {"11110000", "00111000"}},
        {"0.31", {FULL(16), drafter(WINDOW(16, 33))}, 16, 16, true, {"11110000", "00111000"}},
        {"0.33", {FULL(16), drafter(WINDOW(16, 33))}, 16, 16, true, {"11110000", "00110000"}},
        /* to the end of the hashes from 0.32 on, before to the end of the lookup */
        {"0.32", {FULL(16), drafter(WINDOW(16, 33))}, 16, 16, true, {"11110000", "01111000"}},
        {"0.31", {FULL(16), drafter(WINDOW(16, 33))}, 16, 16, true, {"11110000", "01111000"}},
    };
    static const int64_t rows[][2] = {{128, 64}, {128, 64}, {128, 0}, {64, 64}, {64, 48}};
    CHECK_ROWS(scenes, rows);
}

/* Window 17 needs one chunk, window 33 two; each shortens what the other found. */
static void groups_shorten_one_another_until_nothing_changes(void) {
    const struct scene scenes[] = {
        {"0.33", {FULL(16), WINDOW(16, 17), WINDOW(16, 33)}, 16, 16, false, {"11111111", "00010101", "11100011"}},
        {"0.33", {FULL(16), WINDOW(16, 17), WINDOW(16, 33)}, 16, 16, false, {"11111111", "00010100", "11101000"}},
        {"0.33", {FULL(16), WINDOW(16, 17), MAMBA(16)}, 16, 16, false, {"11111111", "01010100", "01100010"}},
        {"0.33", {FULL(16), FULL(32), WINDOW(16, 17)}, 32, 16, false, {"11111110", "11111111", "01010101"}},
    };
    static const int64_t rows[][2] = {{128, 128}, {128, 0}, {128, 32}, {128, 96}};
    CHECK_ROWS(scenes, rows);
}

/* With a second full attention group of its own block one pass is not the end; with two groups it is. */
static void two_groups_are_searched_once(void) {
    const struct scene scenes[] = {
        {"0.33", {FULL(16), drafter(MAMBA(16))}, 16, 16, true, {"11110000", "00101010"}},
        {"0.33", {WINDOW(16, 17), MAMBA(16)}, 16, 16, false, {"01010000", "00100101"}},
    };
    static const int64_t rows[][2] = {{128, 48}, {128, 0}};
    CHECK_ROWS(scenes, rows);
}

/* Attention has 3 blocks, a Mamba state ends at 4: it looks one block beyond. Up to 0.25 full attention that was
 * searched before does not object; in 0.26 it does. */
static void mamba_overshoots_up_to_026(void) {
    static const char *const profiles[] = {"0.22", "0.25", "0.26", "0.27", "0.33"};
    const int64_t two[] = {64, 64, 64, 0, 0}, three[] = {64, 64, 0, 0, 0};
    for (size_t i = 0; i < 5; i++) {
        const struct scene pair = {profiles[i], {FULL(16), drafter(MAMBA(16))}, 16, 16, true, {"11100000", "00010000"}};
        const struct scene triple = {profiles[i], {FULL(16), drafter(MAMBA(16)), WINDOW(16, 17)},
                                     16,          16,
                                     true,        {"11100000", "00010000", "11111111"}};
        struct moon_error error;
        struct ready ready;
        int64_t hit;
        MOON_CHECK_INT(hit_of(&pair, 128, &error), two[i]);
        make_ready(&pair, &ready);
        moon_hit_search(&ready.connector, &ready.presence, 128, &hit, &error);
        MOON_CHECK_INT(moon_deviation_noted(&ready.notes, MOON_DEVIATION_MAMBA_LOOKS_BEYOND), two[i] > 0);
        MOON_CHECK_INT(hit_of(&triple, 128, &error), three[i]);
    }
}

static void the_first_release_takes_the_leading_run(void) {
    const struct scene scenes[] = {
        {"0.21", {FULL(16)}, 16, 16, true, {"1101"}},
        {"0.21", {FULL(16)}, 16, 16, false, {"1111"}},
        {"0.21", {FULL(16)}, 16, 16, false, {"1111"}},
    };
    static const int64_t rows[][2] = {{64, 32}, {40, 40}, {100, 64}};
    CHECK_ROWS(scenes, rows);
}

static void fine_grained_windows_of_wider_blocks_raise_up_to_029(void) {
    struct scene scene = {"0.29", {FULL(16), MAMBA(32), WINDOW(32, 33)}, 32, 16, false, {"1111", "1111", "1111"}};
    struct moon_error error;
    struct ready ready;
    int64_t hit;
    MOON_CHECK_INT(hit_of(&scene, 64, &error), -1);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    make_ready(&scene, &ready);
    moon_hit_search(&ready.connector, &ready.presence, 64, &hit, NULL);
    CU_ASSERT_TRUE(moon_deviation_noted(&ready.notes, MOON_DEVIATION_FINE_WINDOWS_REFUSED));
    scene.profile = "0.30"; /* searched by whole blocks */
    MOON_CHECK_INT(hit_of(&scene, 64, &error), 64);
    MOON_CHECK_INT(hit_of(&scene, 48, &error), 32);
}

static void loads_read_what_a_hit_needs(void) {
    static const struct {
        const char *profile;
        struct moon_layout_group groups[2];
        int64_t sbs, hbs, hit;
        const char *wanted; /* chunks of group 0 */
    } rows[] = {
        {"0.33", {{.spec = {.kind = MOON_SPEC_FULL}, .block_tokens = 16}}, 16, 16, 64, "11110"},
        {"0.33",
         {{.spec = {.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 33}, .block_tokens = 16}},
         16,
         16,
         64,
         "00110"},
        {"0.33",
         {{.spec = {.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 34}, .block_tokens = 16}},
         16,
         16,
         64,
         "01110"},
        {"0.33",
         {{.spec = {.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 1}, .block_tokens = 16}},
         16,
         16,
         64,
         "00010"},
        {"0.33",
         {{.spec = {.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 900}, .block_tokens = 16}},
         16,
         16,
         64,
         "11110"},
        {"0.33", {{.spec = {.kind = MOON_SPEC_MAMBA}, .block_tokens = 16}}, 16, 16, 64, "00010"},
        {"0.33", {{.spec = {.kind = MOON_SPEC_MAMBA}, .block_tokens = 16}}, 16, 4, 40, "00100"},
        {"0.33", {{.spec = {.kind = MOON_SPEC_FULL}, .block_tokens = 16}}, 16, 4, 40, "11100"},
        {"0.33",
         {{.spec = {.kind = MOON_SPEC_CHUNKED_LOCAL, .local_tokens = 32}, .block_tokens = 16}},
         16,
         16,
         48,
         "00100"},
        {"0.33",
         {{.spec = {.kind = MOON_SPEC_CHUNKED_LOCAL, .local_tokens = 32}, .block_tokens = 16}},
         16,
         16,
         64,
         "00000"},
        {"0.21", {{.spec = {.kind = MOON_SPEC_FULL}, .block_tokens = 16}}, 16, 16, 63, "11110"},
        {"0.33", {{.spec = {.kind = MOON_SPEC_FULL}, .block_tokens = 16}}, 16, 16, 0, "00000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[6] = "";
        struct moon_layout_model model = model_of(rows[i].groups, 1, 1, 8);
        model.scheduler_block_tokens = rows[i].sbs;
        model.hash_block_tokens = rows[i].hbs;
        const struct moon_connector connector = {.profile = moon_profile_find(rows[i].profile, NULL), .model = &model};
        for (int chunk = 0; chunk < 5; chunk++)
            out[chunk] = moon_load_wanted(&connector, 0, chunk, rows[i].hit) ? '1' : '0';
        MOON_CHECK_TEXT(out, rows[i].wanted);
    }
}

static void tails_are_the_next_hash_that_is_there(void) {
    const struct scene scene = {"0.33", {FULL(16), MAMBA(16)}, 16, 4, false, {"0001000100010000", "0000000001000000"}};
    struct ready ready;
    int64_t tokens[2];
    struct moon_error error;
    make_ready(&scene, &ready);
    MOON_CHECK_INT(moon_tail_boundaries(&ready.connector, &ready.presence, 40, tokens, &error), 0);
    MOON_CHECK_INT(tokens[0], 48);
    MOON_CHECK_INT(tokens[1], 40);
    MOON_CHECK_INT(moon_tail_boundaries(&ready.connector, &ready.presence, 44, tokens, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_TEXT(error.message, "No tail key found for cache group 1 at hit length 44");
    MOON_CHECK_INT(moon_tail_boundaries(&ready.connector, &ready.presence, 68, tokens, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "IndexError");
}

static void a_hit_without_its_own_hash_raises_outside_of_fine_grained_mode(void) {
    const struct scene scene = {"0.33", {FULL(16), local_of(16, 32)}, 16, 16, false, {"1111", "0000"}};
    struct ready ready;
    int64_t tokens[2];
    struct moon_error error = {.message = "x"};
    make_ready(&scene, &ready);
    MOON_CHECK_INT(moon_tail_boundaries(&ready.connector, &ready.presence, 64, tokens, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_TEXT(error.message, "");
}

static void random_scenes_promise_only_what_they_can_load(void) {
    struct moon_random random;
    moon_random_seed(&random, 1);
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[320];
        struct moon_cursor cursor;
        struct hit_scene scene;
        moon_random_fill(&random, bytes, sizeof bytes);
        moon_cursor_open(&cursor, bytes, sizeof bytes);
        hit_scene_make(&scene, &cursor);
        hit_scene_check(&scene);
    }
    CU_PASS("no assertion failed");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"full attention takes the leading run", full_attention_takes_the_leading_run},
        {"full attention ends inside a block when fine-grained", full_attention_ends_inside_a_block_when_fine_grained},
        {"windows take the last run that is long enough", windows_take_the_last_run_that_is_long_enough},
        {"Mamba takes the last aligned state", mamba_takes_the_last_aligned_state},
        {"local chunks need nothing before their chunk", local_chunks_need_nothing_before_their_chunk},
        {"a hash list that is too short raises but for full attention",
         a_hash_list_that_is_too_short_raises_but_for_full_attention},
        {"equal groups are present together", equal_groups_are_present_together},
        {"a drafter looks one block beyond the hit", a_drafter_looks_one_block_beyond_the_hit},
        {"groups shorten one another until nothing changes", groups_shorten_one_another_until_nothing_changes},
        {"two groups are searched once", two_groups_are_searched_once},
        {"Mamba overshoots up to 0.26", mamba_overshoots_up_to_026},
        {"0.21 takes the leading run", the_first_release_takes_the_leading_run},
        {"fine-grained windows of wider blocks raise up to 0.29", fine_grained_windows_of_wider_blocks_raise_up_to_029},
        {"loads read what a hit needs", loads_read_what_a_hit_needs},
        {"tails are the next hash that is there", tails_are_the_next_hash_that_is_there},
        {"a hit without its own hash raises outside of fine-grained mode",
         a_hit_without_its_own_hash_raises_outside_of_fine_grained_mode},
        {"random scenes promise only what they can load", random_scenes_promise_only_what_they_can_load},
        {NULL, NULL}};
    return moon_unit_main("coordinator", cases, argc, argv);
}
