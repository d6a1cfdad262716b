/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ranks, replication and ownership: each object has exactly one writer among the ranks that hold the same
 * bytes. */
#include "ref/layout/ownership.h"
#include "ref/layout/replication.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

static const struct moon_profile *release(const char *name) {
    return moon_profile_find(name, NULL);
}

static void ranks_count_tp_then_pcp_then_pp(void) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 64);
    struct moon_layout_model model = model_of(&full, 1, 4, 8);
    model.pp = 2;
    model.pcp = 3;
    model.dcp = 2;
    MOON_CHECK_INT(moon_world_size(&model), 24);
    for (int64_t pp = 0; pp < 2; pp++)
        for (int64_t pcp = 0; pcp < 3; pcp++)
            for (int64_t tp = 0; tp < 4; tp++) {
                struct moon_rank rank = moon_rank_at(&model, (pp * 3 + pcp) * 4 + tp);
                MOON_CHECK_INT(rank.tp, tp);
                MOON_CHECK_INT(rank.pcp, pcp);
                MOON_CHECK_INT(rank.pp, pp);
                MOON_CHECK_INT(rank.dcp, tp % 2);
                MOON_CHECK_INT(rank.key_pp, (pp * 3 + pcp) % 2);
            }
}

static void replication_follows_spec_and_release(void) {
    static const struct {
        enum moon_spec_kind kind;
        int64_t tp, heads, dcp;
        bool use_mla;
        int64_t in_23, in_26, in_27;
    } rows[] = {
        {MOON_SPEC_FULL, 4, 2, 1, false, 2, 2, 2},
        {MOON_SPEC_FULL, 4, 8, 1, false, 1, 1, 1},
        {MOON_SPEC_FULL, 6, 4, 1, false, 1, 1, 1},
        {MOON_SPEC_FULL, 8, 3, 1, false, 2, 2, 2},
        {MOON_SPEC_FULL, 4, 2, 2, false, 2, 1, 1},
        {MOON_SPEC_FULL, 4, 8, 1, true, 4, 4, 1},
        {MOON_SPEC_MLA, 4, 8, 1, false, 1, 1, 4},
        {MOON_SPEC_SLIDING_WINDOW_MLA, 4, 8, 1, false, 1, 1, 4},
        {MOON_SPEC_SLIDING_WINDOW, 4, 1, 1, false, 4, 4, 4},
        {MOON_SPEC_MAMBA, 4, 1, 1, false, 4, 4, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct moon_layout_group group = group_of(rows[i].kind, 16, 64);
        struct moon_layout_model model = model_of(&group, 1, rows[i].tp, rows[i].heads);
        model.dcp = rows[i].dcp;
        model.use_mla = rows[i].use_mla;
        MOON_CHECK_INT(moon_replication_factor(release("0.23"), &model, 0), rows[i].in_23);
        MOON_CHECK_INT(moon_replication_factor(release("0.26"), &model, 0), rows[i].in_26);
        MOON_CHECK_INT(moon_replication_factor(release("0.27"), &model, 0), rows[i].in_27);
    }
}

static void a_uniform_group_is_mla_if_all_its_layers_are(void) {
    const struct moon_layer_spec inner[] = {{.kind = MOON_SPEC_MLA, .num_kv_heads = 1, .head_size = 8},
                                            {.kind = MOON_SPEC_MLA, .num_kv_heads = 1, .head_size = 16},
                                            {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 8}};
    struct moon_layout_group group = group_of(MOON_SPEC_UNIFORM, 16, 64);
    struct moon_layout_model model = model_of(&group, 1, 4, 2);
    group.inner = inner;
    group.inner_count = 2;
    MOON_CHECK_INT(moon_replication_factor(release("0.33"), &model, 0), 4);
    group.inner_count = 3;
    MOON_CHECK_INT(moon_replication_factor(release("0.33"), &model, 0), 2);
}

static void replicas_share_one_t(void) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 64);
    const struct moon_layout_model model = model_of(&full, 1, 4, 2);
    struct moon_store_selection selection;
    moon_store_select(release("0.33"), &model, &selection);
    for (int64_t tp = 0; tp < 4; tp++) {
        struct moon_rank rank = moon_rank_at(&model, tp);
        struct moon_pool_key key = moon_rank_key(release("0.33"), &model, &selection, &rank, 0, 0);
        MOON_CHECK_INT(key.tp_rank, tp / 2);
    }
}

/* Among the F ranks that share one T, exactly one has the phase of each chunk, whatever the group. */
static void each_chunk_has_one_owner(void) {
    for (int64_t factor = 1; factor <= 8; factor++)
        for (size_t group = 0; group < 5; group++)
            for (int64_t chunk = 0; chunk < 20; chunk++) {
                int owners = 0;
                for (int64_t tp = 0; tp < factor; tp++)
                    owners += chunk % factor == moon_put_phase(release("0.33"), factor, factor * 3 + tp, group);
                MOON_CHECK_INT(owners, 1);
            }
}

static void the_worked_stripes_are_reproduced(void) {
    static const struct {
        size_t group;
        int64_t tp, phase;
    } rows[] = {{0, 0, 0}, {0, 3, 3}, {1, 0, 1}, {1, 3, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        MOON_CHECK_INT(moon_put_phase(release("0.25"), 4, rows[i].tp, rows[i].group), rows[i].phase);
        MOON_CHECK_INT(moon_put_phase(release("0.24"), 4, rows[i].tp, rows[i].group), rows[i].tp); /* no group in it */
    }
}

static void shards_split_over_the_ranks(void) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 64);
    static const int64_t tps[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        struct moon_layout_model model = model_of(&full, 1, tps[i], 8);
        model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
        struct moon_store_selection selection;
        moon_store_select(release("0.33"), &model, &selection);
        int64_t next = 0;
        for (int64_t tp = 0; tp < tps[i]; tp++) {
            struct moon_shard_range range = moon_local_shards(&model, &selection, tp);
            MOON_CHECK_INT(range.first, next);
            MOON_CHECK_INT(range.count, 4 / tps[i]);
            struct moon_rank rank = moon_rank_at(&model, tp);
            MOON_CHECK_INT(moon_rank_key(release("0.33"), &model, &selection, &rank, 0, range.first).tp_rank,
                           range.first);
            next += range.count;
        }
        MOON_CHECK_INT(next, 4);
    }
}

static void a_rank_local_layout_has_one_shard(void) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 64);
    const struct moon_layout_model model = model_of(&full, 1, 4, 8);
    struct moon_store_selection selection;
    moon_store_select(release("0.33"), &model, &selection);
    struct moon_shard_range range = moon_local_shards(&model, &selection, 3);
    MOON_CHECK_INT(range.first, 0);
    MOON_CHECK_INT(range.count, 1);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"rank numbers count tp, then pcp, then pp", ranks_count_tp_then_pcp_then_pp},
        {"replication follows spec and release", replication_follows_spec_and_release},
        {"a uniform group counts as MLA if all its layers are", a_uniform_group_is_mla_if_all_its_layers_are},
        {"replicas share one T", replicas_share_one_t},
        {"each chunk has one owner among its replicas", each_chunk_has_one_owner},
        {"the worked stripes are reproduced", the_worked_stripes_are_reproduced},
        {"store shards are split over the ranks in order", shards_split_over_the_ranks},
        {"a rank-local layout has the one shard 0", a_rank_local_layout_has_one_shard},
        {NULL, NULL}};
    return moon_unit_main("ownership", cases, argc, argv);
}
