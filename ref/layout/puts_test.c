/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of puts: order, stripes by release, missing blocks, and that each object is put exactly once over all ranks. */
#include "ref/layout/puts.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

enum { CHUNKS_MAX = 8, GROUPS_MAX = 3 };

static const struct moon_profile *release(const char *name) {
    return moon_profile_find(name, NULL);
}

/* An engine of `count` full attention groups and a save of `chunks` blocks of 16 tokens. Block of chunk k in group g:
 * 100 * g + k + 1. */
struct scene {
    struct moon_layout_group groups[GROUPS_MAX];
    int64_t blocks[GROUPS_MAX][CHUNKS_MAX];
    struct moon_block_table tables[GROUPS_MAX];
    struct moon_layout_model model;
    struct moon_save save;
};

static void set_scene(struct scene *scene, int64_t tp, int64_t heads, size_t count, int64_t chunks) {
    *scene = (struct scene){
        .save = {
            .tokens = chunks * 16, .hash_count = chunks, .prefill_end_tokens = chunks * 16, .tables = scene->tables}};
    for (size_t g = 0; g < count; g++) {
        scene->groups[g] = group_of(MOON_SPEC_FULL, 16, 0);
        for (int64_t k = 0; k < chunks; k++)
            scene->blocks[g][k] = (int64_t)(100 * g) + k + 1;
        scene->tables[g] = (struct moon_block_table){scene->blocks[g], (size_t)chunks};
    }
    scene->model = model_of(scene->groups, count, tp, heads);
}

/* Puts of a rank as "group.chunk.shard=block ...", or the exception. */
static const char *puts_of(char out[512], const char *profile, const struct scene *scene, int64_t number) {
    struct moon_store_selection selection;
    struct moon_rank rank = moon_rank_at(&scene->model, number);
    struct moon_puts walk;
    struct moon_put put;
    struct moon_error error = {0};
    size_t used = 0;
    out[0] = '\0';
    moon_store_select(release(profile), &scene->model, &selection);
    if (moon_puts_open(&walk, release(profile), &scene->model, &selection, &rank, &scene->save, &error) != 0) {
        snprintf(out, 512, "%s", error.type);
        return out;
    }
    while (moon_puts_next(&walk, &put))
        used += (size_t)snprintf(out + used, 512 - used, "%s%zu.%d.%d=%d", used ? " " : "", put.group,
                                 (int)put.chunk.id, (int)put.shard, (int)put.block);
    CU_ASSERT_FALSE(moon_puts_next(&walk, &put));
    return out;
}

static void one_rank_puts_everything_in_order(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 1, 8, 2, 2);
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 0), "0.0.0=1 0.1.0=2 1.0.0=101 1.1.0=102");
    MOON_CHECK_TEXT(puts_of(out, "0.22", &scene, 0), "0.0.0=1 0.1.0=2 1.0.0=101 1.1.0=102");
}

static void replicas_stripe_by_chunk_and_group(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 4, 2, 2, 4);
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 0), "0.0.0=1 0.2.0=3 1.1.0=102 1.3.0=104");
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 1), "0.1.0=2 0.3.0=4 1.0.0=101 1.2.0=103");
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 2), "0.0.0=1 0.2.0=3 1.1.0=102 1.3.0=104");
}

static void old_releases_stripe_by_place_in_the_list(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 2, 1, 2, 3);
    MOON_CHECK_TEXT(puts_of(out, "0.24", &scene, 0), "0.0.0=1 0.2.0=3 1.1.0=102");
    MOON_CHECK_TEXT(puts_of(out, "0.24", &scene, 1), "0.1.0=2 1.0.0=101 1.2.0=103");
    MOON_CHECK_TEXT(puts_of(out, "0.25", &scene, 1), "0.1.0=2 1.0.0=101 1.2.0=103");
    MOON_CHECK_TEXT(puts_of(out, "0.25", &scene, 0), "0.0.0=1 0.2.0=3 1.1.0=102");
    set_scene(&scene, 2, 1, 2, 2); /* an even list: place and group part ways */
    MOON_CHECK_TEXT(puts_of(out, "0.24", &scene, 0), "0.0.0=1 1.0.0=101");
    MOON_CHECK_TEXT(puts_of(out, "0.25", &scene, 0), "0.0.0=1 1.1.0=102");
}

static void masked_chunks_do_not_count_as_places(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 2, 1, 1, 8);
    scene.groups[0].spec = (struct moon_layer_spec){
        .kind = MOON_SPEC_SLIDING_WINDOW, .num_kv_heads = 1, .head_size = 8, .window_tokens = 17};
    scene.model.scheduler_block_tokens = 32;
    MOON_CHECK_TEXT(puts_of(out, "0.24", &scene, 0), "0.1.0=2 0.5.0=6");
    MOON_CHECK_TEXT(puts_of(out, "0.24", &scene, 1), "0.3.0=4 0.7.0=8");
    MOON_CHECK_TEXT(puts_of(out, "0.25", &scene, 0), "");
    MOON_CHECK_TEXT(puts_of(out, "0.25", &scene, 1), "0.1.0=2 0.3.0=4 0.5.0=6 0.7.0=8");
}

static void shards_of_a_chunk_follow_one_another(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 2, 8, 1, 2);
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 1), "0.0.2=1 0.0.3=1 0.1.2=2 0.1.3=2");
}

static void missing_blocks_are_skipped_from_029_on(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 1, 8, 1, 3);
    scene.blocks[0][1] = 0;
    MOON_CHECK_TEXT(puts_of(out, "0.29", &scene, 0), "0.0.0=1 0.2.0=3");
    MOON_CHECK_TEXT(puts_of(out, "0.28", &scene, 0), "0.0.0=1 0.1.0=0 0.2.0=3");
    scene.tables[0].count = 2;
    MOON_CHECK_TEXT(puts_of(out, "0.29", &scene, 0), "0.0.0=1");
    MOON_CHECK_TEXT(puts_of(out, "0.28", &scene, 0), "IndexError");
}

static void a_short_table_hurts_only_ranks_that_need_it(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 2, 1, 1, 4);
    scene.tables[0].count = 3;
    MOON_CHECK_TEXT(puts_of(out, "0.28", &scene, 0), "0.0.0=1 0.2.0=3");
    MOON_CHECK_TEXT(puts_of(out, "0.28", &scene, 1), "IndexError");
}

/* A group with blocks of `block` tokens beside a Mamba group with blocks of 64; 128 tokens, hashed every 16. */
static void set_fine_scene(struct scene *scene, int64_t tp, int64_t heads, int64_t block) {
    set_scene(scene, tp, heads, 2, 8);
    scene->groups[0].block_tokens = block;
    scene->groups[1].spec.kind = MOON_SPEC_MAMBA;
    scene->groups[1].block_tokens = scene->model.scheduler_block_tokens = 64;
}

static void the_tail_of_a_prompt_comes_first_when_hits_are_fine_grained(void) {
    char out[512];
    struct scene scene;
    set_fine_scene(&scene, 1, 8, 16);
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "0.4.0=5 0.5.0=6 0.6.0=7 0.0.0=1 0.1.0=2 0.2.0=3 0.3.0=4 0.7.0=8");
    MOON_CHECK_TEXT(puts_of(out, "0.31", &scene, 0), "0.0.0=1 0.1.0=2 0.2.0=3 0.3.0=4 0.4.0=5 0.5.0=6 0.6.0=7 0.7.0=8");
    scene.model.speculative = true; /* the tail ends where the tokens do */
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "0.4.0=5 0.5.0=6 0.6.0=7 0.7.0=8 0.0.0=1 0.1.0=2 0.2.0=3 0.3.0=4");
    set_fine_scene(&scene, 2, 1, 16);
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 1), "0.5.0=6 0.1.0=2 0.3.0=4 0.7.0=8");
}

static void a_tail_that_ends_inside_a_block_is_put_beside_it(void) {
    char out[512];
    struct scene scene;
    set_fine_scene(&scene, 1, 8, 32);
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "0.2.0=3 0.3.0=4 0.0.0=1 0.1.0=2 0.3.0=4");
    scene.model.speculative = true;
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "0.2.0=3 0.3.0=4 0.0.0=1 0.1.0=2");
}

static void a_prompt_without_hashes_for_it_has_no_tail(void) {
    char out[512];
    struct scene scene;
    set_fine_scene(&scene, 1, 8, 32);
    scene.save.tokens = 64;
    scene.save.hash_count = 4;
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "0.0.0=1 0.1.0=2");
    scene.save.tokens = scene.save.hash_count = 0;
    scene.save.prefill_end_tokens = 1;
    scene.model.speculative = true;
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "");
}

static void a_save_begins_where_the_last_one_ended(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 2, 1, 2, 6);
    scene.save.start_tokens = 48;
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 0), "0.4.0=5 1.3.0=104 1.5.0=106"); /* stripes count from token 0 */
    set_scene(&scene, 1, 8, 1, 6);
    scene.groups[0].spec = (struct moon_layer_spec){.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 17};
    scene.model.scheduler_block_tokens = 32;
    scene.save.start_tokens = 32;
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 0), "0.3.0=4 0.5.0=6"); /* so does the mask */
    scene.save.start_tokens = 96;
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 0), "");
}

static void a_tail_that_is_put_apart_is_left_out(void) {
    char out[512];
    struct scene scene;
    set_fine_scene(&scene, 1, 8, 32);
    scene.save.tail_apart = true;
    MOON_CHECK_TEXT(puts_of(out, "0.32", &scene, 0), "0.0.0=1 0.1.0=2 0.2.0=3 0.3.0=4");
}

/* The tail of a prompt as "group.chunk-end ...". */
static const char *tail_of(char out[256], const char *profile, const struct scene *scene, int64_t prompt,
                           int64_t computed, int64_t hash_count) {
    struct moon_tail_walk walk;
    struct moon_chunk chunk;
    size_t group, used = 0;
    out[0] = '\0';
    moon_tail_open(&walk, release(profile), &scene->model, prompt, computed, hash_count);
    while (moon_tail_next(&walk, &group, &chunk))
        used += (size_t)snprintf(out + used, 256 - used, "%s%zu.%d-%d", used ? " " : "", group, (int)chunk.id,
                                 (int)chunk.end_tokens);
    return out;
}

static void a_tail_ends_at_the_last_hash_that_a_hit_can_have(void) {
    char out[256];
    struct scene scene;
    set_fine_scene(&scene, 1, 8, 16);
    scene.model.hash_block_tokens = 4;
    scene.groups[0].block_tokens = 16;
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 45, 45, 11), "0.0-16 0.1-32 0.2-44");
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 44, 44, 11), "0.0-16 0.1-32 0.2-40");
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 45, 43, 11), ""); /* not computed yet */
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 45, 45, 10), ""); /* not hashed */
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 4, 4, 1), "");
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 65, 65, 16), ""); /* ends with a scheduler block */
    MOON_CHECK_INT(moon_tail_tokens(&scene.model, 45), 44);
    scene.model.speculative = true; /* one unit back, and the proof of one unit more */
    MOON_CHECK_INT(moon_tail_tokens(&scene.model, 45), 40);
    MOON_CHECK_INT(moon_tail_tokens(&scene.model, 3), 0);
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 45, 45, 11), "0.0-16 0.1-32 0.2-44");
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 45, 43, 11), "");
}

static void without_fine_hits_the_proof_is_a_whole_block(void) {
    char out[256];
    struct scene scene;
    set_fine_scene(&scene, 1, 8, 32);
    scene.model.speculative = true;
    scene.groups[0].spec = (struct moon_layer_spec){.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = 65};
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 130, 130, 8), ""); /* 112 and 32 more */
    MOON_CHECK_TEXT(tail_of(out, "0.33", &scene, 130, 150, 9), "0.2-96 0.3-128 0.4-144");
}

static void too_few_hashes_are_told_when_a_walk_begins(void) {
    struct scene scene;
    struct moon_store_selection selection;
    struct moon_puts walk;
    struct moon_error error;
    set_scene(&scene, 1, 8, 1, 3);
    struct moon_rank rank = moon_rank_at(&scene.model, 0);
    moon_store_select(release("0.33"), &scene.model, &selection);
    scene.save.hash_count = 2;
    MOON_CHECK_INT(moon_puts_begin(&walk, release("0.33"), &scene.model, &selection, &rank, &scene.save, &error),
                   MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_INT(moon_puts_open(&walk, release("0.33"), &scene.model, &selection, &rank, &scene.save, &error),
                   MOON_ERR_REFUSED);
    MOON_CHECK_INT(moon_puts_begin(&walk, release("0.26"), &scene.model, &selection, &rank, &scene.save, &error), 0);
}

static void an_empty_save_puts_nothing(void) {
    char out[512];
    struct scene scene;
    set_scene(&scene, 1, 8, 1, 0);
    MOON_CHECK_TEXT(puts_of(out, "0.33", &scene, 0), "");
}

/* Counts puts of each (group, chunk, T or shard) over all ranks of one engine: one each. */
static void check_cover(const struct scene *scene, const char *profile) {
    int seen[GROUPS_MAX][CHUNKS_MAX][16] = {{{0}}};
    struct moon_store_selection selection;
    int64_t ts = 0;
    moon_store_select(release(profile), &scene->model, &selection);
    for (int64_t number = 0; number < scene->model.tp; number++) {
        struct moon_rank rank = moon_rank_at(&scene->model, number);
        struct moon_puts walk;
        struct moon_put put;
        MOON_CHECK_INT(moon_puts_open(&walk, release(profile), &scene->model, &selection, &rank, &scene->save, NULL),
                       0);
        while (moon_puts_next(&walk, &put)) {
            struct moon_pool_key key =
                moon_rank_key(release(profile), &scene->model, &selection, &rank, put.group, put.shard);
            ts = key.tp_rank > ts ? key.tp_rank : ts;
            seen[put.group][put.chunk.id][key.tp_rank]++;
        }
    }
    for (size_t g = 0; g < scene->model.group_count; g++)
        for (int64_t k = 0; k < scene->save.hash_count; k++)
            for (int64_t t = 0; t <= ts; t++)
                MOON_CHECK_INT(seen[g][k][t], 1);
}

static void every_object_is_put_once(void) {
    static const int64_t tps[] = {1, 2, 4, 8}, heads[] = {1, 2, 4, 8};
    static const char *const sizes[] = {"1", "2", "4", "8"};
    struct moon_random random;
    moon_random_seed(&random, 13);
    for (int round = 0; round < 300; round++) {
        struct scene scene;
        set_scene(&scene, tps[moon_random_below(&random, 4)], heads[moon_random_below(&random, 4)],
                  1 + moon_random_below(&random, GROUPS_MAX), 1 + (int64_t)moon_random_below(&random, CHUNKS_MAX));
        if (moon_random_chance(&random, 1, 2))
            scene.model.store_tp_size = (struct moon_setting){
                .type = MOON_SETTING_INTEGER, .text = moon_key_text(sizes[moon_random_below(&random, 4)])};
        check_cover(&scene, moon_random_chance(&random, 1, 2) ? "0.33" : "0.25");
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"one rank puts everything, group by group", one_rank_puts_everything_in_order},
        {"replicas stripe by chunk and group", replicas_stripe_by_chunk_and_group},
        {"up to 0.24 replicas stripe by place in the list", old_releases_stripe_by_place_in_the_list},
        {"masked chunks take no place in the list", masked_chunks_do_not_count_as_places},
        {"shards of a chunk follow one another", shards_of_a_chunk_follow_one_another},
        {"missing blocks are skipped from 0.29 on and raise before", missing_blocks_are_skipped_from_029_on},
        {"a short table hurts only the ranks that need it", a_short_table_hurts_only_ranks_that_need_it},
        {"from 0.32 on the tail of a prompt comes first when hits are fine-grained",
         the_tail_of_a_prompt_comes_first_when_hits_are_fine_grained},
        {"a tail that ends inside a block is put beside the whole block",
         a_tail_that_ends_inside_a_block_is_put_beside_it},
        {"a prompt without hashes for it has no tail", a_prompt_without_hashes_for_it_has_no_tail},
        {"a save begins where the last one ended", a_save_begins_where_the_last_one_ended},
        {"a tail that is put apart is left out", a_tail_that_is_put_apart_is_left_out},
        {"a tail ends at the last hash that a hit can have", a_tail_ends_at_the_last_hash_that_a_hit_can_have},
        {"without fine-grained hits EAGLE's proof is a whole block", without_fine_hits_the_proof_is_a_whole_block},
        {"too few hashes are told when a walk begins", too_few_hashes_are_told_when_a_walk_begins},
        {"an empty save puts nothing", an_empty_save_puts_nothing},
        {"every object is put exactly once over all ranks", every_object_is_put_once},
        {NULL, NULL}};
    return moon_unit_main("puts", cases, argc, argv);
}
