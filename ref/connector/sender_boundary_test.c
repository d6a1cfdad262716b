/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the boundary puts of the sender: their order, their keys by release, and tails. */
#include "ref/connector/sender_scene_internal.h"

/* ---- boundary puts ---- */

/* A full attention group with blocks of 16 and a Mamba group with blocks of 64, hashed every 16 tokens. */
static void open_mamba(struct scene *scene, const char *profile) {
    set_scene(scene, profile, 2);
    scene->groups[1].spec.kind = MOON_SPEC_MAMBA;
    scene->groups[1].block_tokens = scene->model.scheduler_block_tokens = 64;
    open_rank(scene, 0);
}

/* Calls of one job with these boundary puts. */
static const char *boundary_calls(struct scene *scene, int64_t tokens, int64_t prefill,
                                  const struct moon_boundary_put *puts, size_t count) {
    MOON_CHECK_INT(queue_boundary(scene, tokens, prefill, puts, count), 0);
    return calls(scene);
}

static void boundary_puts_come_first_in_the_order_given(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{0, 104, 80}, {1, 900, 64}, {1, 0, 64}, {1, 901, 0}, {1, 902, 96}};
    open_mamba(&scene, "0.33");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 5),
                    "?2 ! 0.5=104 1.4=900 ?4 ! 0.1=100 0.2=101 0.3=102 0.4=103");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, puts, 2), "?2");
    MOON_CHECK_TEXT(done(&scene), "0 1");
    close_scene(&scene);
}

static void a_state_between_hashes_raises_from_032_on(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{1, 900, 64}, {1, 0, 8}, {1, 901, 72}};
    open_mamba(&scene, "0.32");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 2), "?1 ! 1.4=900 ?4 ! 0.1=100 0.2=101 0.3=102 0.4=103");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 3), "");
    MOON_CHECK_TEXT(raised(&scene),
                    "AssertionError: Boundary put at 72 tokens is not a multiple of the hash block size 16");
    MOON_CHECK_TEXT(done(&scene), "0 1");
    close_scene(&scene);
}

static void states_are_shared_out_like_chunks(void) {
    const struct moon_boundary_put puts[] = {{0, 300, 16}, {0, 301, 24}, {0, 302, 32}};
    for (int64_t rank = 0; rank < 2; rank++) {
        struct scene scene;
        set_scene(&scene, "0.33", 2);
        scene.groups[0].block_tokens = scene.groups[1].block_tokens = 16;
        scene.groups[1].spec.kind = MOON_SPEC_MAMBA;
        scene.model.hash_block_tokens = 8;
        scene.model.tp = 2;
        scene.model.total_kv_heads = 1;
        open_rank(&scene, rank);
        MOON_CHECK_TEXT(boundary_calls(&scene, 0, 40, puts, 3), rank == 0 ? "?1 ! 0.2=300" : "?2 ! 0.3=301 0.4=302");
        close_scene(&scene);
    }
}

static void a_failed_boundary_put_drops_the_job(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 64};
    open_mamba(&scene, "0.33");
    scene.store.put_hash = 4;
    scene.store.put_code = MOON_STORE_NO_ROOM;
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1 ! 1.4=900");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), ""); /* waits for room */
    scene.store.put_hash = 0;
    MOON_CHECK_INT(queue(&scene, 1, 64), 0);
    MOON_CHECK_TEXT(calls(&scene), "?4 ! 0.1=100 0.2=101 0.3=102 0.4=103");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1 ! 1.4=900 ?4");
    close_scene(&scene);
}

static void boundary_calls_that_raise_are_logged(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 64};
    open_mamba(&scene, "0.33");
    scene.store.exist_raises = true;
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1");
    scene.store.exist_raises = false;
    scene.store.put_raises = true;
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, &state, 1), "?1 ! 1.4=900");
    MOON_CHECK_TEXT(raised(&scene), "");
    close_scene(&scene);
}

static void from_029_to_031_a_state_inside_a_block_takes_the_groups_along(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{1, 900, 64}, {1, 901, 80}};
    const struct moon_boundary_put apart[] = {{1, 900, 80}, {1, 901, 96}};
    open_mamba(&scene, "0.31");
    MOON_CHECK_TEXT(boundary_calls(&scene, 64, 83, puts, 2),
                    "?7 ! 1.4=900 0.1=100 0.2=101 0.3=102 0.4=103 0.5=104 1.5=901 ?4");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, puts, 2), "?3"); /* from the offset on */
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 70, puts, 2), "?1"); /* no hash at 80 */
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 112, apart, 2), "");
    MOON_CHECK_TEXT(raised(&scene),
                    "ValueError: Sub-block partial-tail offloads for one request must share a boundary");
    scene.blocks[0][4] = 0;
    scene.store.count = 0;
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &puts[1], 1), "?1 ! 1.5=901");
    scene.block_count = 4;
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &puts[1], 1), "?1");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 15, puts, 2), ""); /* no hashes at all */
    close_scene(&scene);
}

static void a_tail_after_all_is_saved_puts_its_last_block(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 80};
    open_mamba(&scene, "0.30");
    MOON_CHECK_INT(queue(&scene, 0, 128), 0);
    MOON_CHECK_TEXT(calls(&scene), "?8 ! 0.1=100 0.2=101 0.3=102 0.4=103 0.5=104 0.6=105 0.7=106 0.8=107");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 128, &state, 1), "?2 ! 1.5=900");
    close_scene(&scene);
}

static void other_mamba_groups_put_nothing_in_a_tail(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 80};
    for (int release = 0; release < 2; release++) {
        set_scene(&scene, release ? "0.30" : "0.28", 3);
        scene.groups[1].spec.kind = scene.groups[2].spec.kind = MOON_SPEC_MAMBA;
        scene.groups[0].block_tokens = scene.groups[1].block_tokens = scene.groups[2].block_tokens = 64;
        scene.model.scheduler_block_tokens = 64;
        open_rank(&scene, 0);
        MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &state, 1),
                        release ? "?3 ! 0.4=100 0.5=101 1.5=900"
                                : "?6 ! 0.4=100 0.5=101 1.4=200 1.5=900 2.4=300 2.5=301");
        close_scene(&scene);
    }
}

static void in_027_and_028_every_state_is_part_of_the_tail(void) {
    struct scene scene;
    const struct moon_boundary_put aligned = {1, 900, 64}, apart[] = {{1, 900, 80}, {1, 901, 64}};
    const struct moon_boundary_put twice[] = {{1, 900, 80}, {1, 901, 80}};
    open_mamba(&scene, "0.27");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &aligned, 1), "?5 ! 0.1=100 0.2=101 0.3=102 0.4=103 1.4=200");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, twice, 2), "?7 ! 0.5=104 1.5=901"); /* the last one counts */
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, apart, 2), "");
    MOON_CHECK_TEXT(raised(&scene), "ValueError: Partial-tail offloads for one request must share a boundary");
    close_scene(&scene);
}

static void a_position_before_the_first_hash_is_keyed_by_the_last(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 8};
    open_mamba(&scene, "0.30");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &state, 1), "?2 ! 0.5=100 1.5=900");
    close_scene(&scene);
}

static void without_fine_hits_states_inside_a_block_are_dropped(void) {
    struct scene scene;
    const struct moon_boundary_put puts[] = {{1, 900, 16}, {1, 901, 24}};
    set_scene(&scene, "0.30", 2);
    scene.groups[1].spec.kind = MOON_SPEC_MAMBA;
    open_rank(&scene, 0);
    MOON_CHECK_TEXT(boundary_calls(&scene, 16, 40, puts, 2), "?1 ! 1.1=900 ?1 ! 0.1=100");
    close_scene(&scene);
}

static void older_releases_know_no_boundary_puts(void) {
    struct scene scene;
    const struct moon_boundary_put state = {1, 900, 64};
    open_mamba(&scene, "0.26");
    MOON_CHECK_TEXT(boundary_calls(&scene, 0, 83, &state, 1), "");
    close_scene(&scene);
}

static void shards_have_no_boundary_puts(void) {
    struct scene scene;
    const struct moon_boundary_put state = {0, 900, 16};
    set_scene(&scene, "0.33", 1);
    scene.model.tp = 2;
    scene.model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
    open_rank(&scene, 1);
    MOON_CHECK_TEXT(boundary_calls(&scene, 16, 16, &state, 1), "");
    MOON_CHECK_TEXT(raised(&scene), "RuntimeError: This operation requires a rank-local Store layout");
    close_scene(&scene);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"boundary puts come first, in the order given", boundary_puts_come_first_in_the_order_given},
        {"a state between hashes raises from 0.32 on", a_state_between_hashes_raises_from_032_on},
        {"states are shared out like chunks", states_are_shared_out_like_chunks},
        {"a failed boundary put drops the job", a_failed_boundary_put_drops_the_job},
        {"boundary calls that raise are logged", boundary_calls_that_raise_are_logged},
        {"from 0.29 to 0.31 a state inside a block takes the groups along",
         from_029_to_031_a_state_inside_a_block_takes_the_groups_along},
        {"a tail after all is saved puts its last block", a_tail_after_all_is_saved_puts_its_last_block},
        {"other Mamba groups put nothing in a tail", other_mamba_groups_put_nothing_in_a_tail},
        {"in 0.27 and 0.28 every state is part of the tail", in_027_and_028_every_state_is_part_of_the_tail},
        {"a position before the first hash is keyed by the last",
         a_position_before_the_first_hash_is_keyed_by_the_last},
        {"without fine-grained hits states inside a block are dropped",
         without_fine_hits_states_inside_a_block_are_dropped},
        {"older releases know no boundary puts", older_releases_know_no_boundary_puts},
        {"shards have no boundary puts", shards_have_no_boundary_puts},
        {NULL, NULL}};
    return moon_unit_main("sender boundary", cases, argc, argv);
}
