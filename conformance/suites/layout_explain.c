/* SPDX-License-Identifier: Apache-2.0 */
/* Suite layout: the decision, the lookups and each rank's share in words. */
#include "conformance/suites/layout.h"
#include "conformance/suites/refusal.h"

#include "ref/layout/lookup.h"
#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <inttypes.h>
#include <string.h>

enum { CHUNKS_SHOWN_MAX = 16, NAMESPACES_SHOWN_MAX = 64 };

/* Everything that one function passes to the next. */
struct telling {
    const struct moon_profile *profile;
    const struct moon_layout_case *its;
    const struct moon_layout_view *view;
    struct moon_text *out;
};

static void tell_store_tp(const struct telling *telling) {
    const struct moon_store_tp *tp = &telling->its->selection.store_tp;
    moon_text_format(telling->out, "store TP: %s", moon_store_tp_source_text(tp->source));
    if (tp->source >= MOON_STORE_TP_ELEMENT_BOOL && tp->source <= MOON_STORE_TP_ELEMENT_NOT_POSITIVE)
        moon_text_format(telling->out, " (element %zu)", tp->bad_element);
    if (tp->large)
        moon_text_string(telling->out, ": beyond 2^63");
    else if (tp->known)
        moon_text_format(telling->out, ": %" PRId64, tp->size);
    moon_text_format(telling->out, " (%s)\n",
                     tp->source == MOON_STORE_TP_NOT_REQUESTED                                        ? "LAYOUT-001"
                     : tp->source == MOON_STORE_TP_FROM_SIZE || tp->source >= MOON_STORE_TP_SIZE_BOOL ? "LAYOUT-003"
                                                                                                      : "LAYOUT-002");
}

static void tell_decision(const struct telling *telling) {
    static const struct {
        const char *text, *requirement;
    } formats[] = {
        [MOON_STORE_PLAIN] = {"rank-local, no namespace", "LAYOUT-001"},
        [MOON_STORE_SHARDED_LBHNC] = {"TP-sharded, a head's tokens together", "LAYOUT-009"},
        [MOON_STORE_SHARDED_LBNHC] = {"TP-sharded, a token's heads together: many small segments", "LAYOUT-009"},
        [MOON_STORE_MQA] = {"one KV head, replicated", "LAYOUT-008"},
        [MOON_STORE_ISOLATED] = {"REFUSED: rank-local, shared with nobody else", "LAYOUT-029"},
    };
    const struct moon_store_selection *selection = &telling->its->selection;
    if (!telling->profile->store_namespace) {
        moon_text_format(telling->out, "%s has one layout: rank-local, no namespace\n", telling->profile->name);
        return;
    }
    tell_store_tp(telling);
    moon_text_format(telling->out, "layout: %s (%s)\n", formats[selection->space.format].text,
                     formats[selection->space.format].requirement);
    if (selection->refusal != MOON_REFUSAL_NONE)
        moon_text_format(telling->out, "  reason: %s (LAYOUT-005)\n", moon_store_refusal_text(selection->refusal));
    moon_text_format(telling->out, "namespace: \"%s\" (LAYOUT-004)\n", selection->text);
}

static void tell_sizes(const struct telling *telling) {
    const struct moon_layout_model *model = &telling->its->engine.model;
    moon_text_format(telling->out, "scheduler block %" PRId64 " tokens, hash block %" PRId64 "\n",
                     model->scheduler_block_tokens, model->hash_block_tokens);
    for (size_t group = 0; group < model->group_count; group++)
        moon_text_format(telling->out,
                         "group %zu: block %" PRId64 " tokens, %" PRId64 " ranks hold the same bytes (%s)\n", group,
                         model->groups[group].block_tokens, moon_replication_factor(telling->profile, model, group),
                         telling->profile->replication == MOON_REPLICATION_GROUP ? "LAYOUT-011" : "LAYOUT-012");
}

/* Namespaces of a lookup by group; 0.21 has no list of them. */
static void tell_lookup(const struct telling *telling) {
    static const char *const rules[] = {"LAYOUT-021", "LAYOUT-020", "LAYOUT-019", "LAYOUT-018"};
    const struct moon_layout_model *model = &telling->its->engine.model;
    moon_text_format(telling->out, "a lookup asks for (%s)\n", rules[telling->profile->lookup_ranks]);
    if (telling->profile->lookup_edits_text)
        moon_text_string(telling->out, "  keys of rank 0 with T and pp replaced in the text\n");
    for (size_t group = 0; group < model->group_count; group++) {
        struct moon_namespaces walk;
        struct moon_pool_key key;
        int shown = 0;
        moon_namespaces_open(&walk, telling->profile, model, &telling->its->selection, group);
        while (shown < NAMESPACES_SHOWN_MAX && moon_namespaces_next(&walk, &key)) {
            moon_text_string(telling->out, "  ");
            moon_key_prefix(telling->profile, &key, telling->out);
            moon_text_char(telling->out, '\n');
            shown++;
        }
        if (walk.next < walk.end)
            moon_text_format(telling->out, "  and %" PRId64 " more\n", walk.end - walk.next);
    }
    if (moon_fine_grained(telling->profile, model))
        moon_text_string(telling->out, "  for every hash block (LAYOUT-024)\n");
}

/* A dense cache of one layer with one block, as the format wants it. */
static struct moon_tensor dense_cache(const struct moon_shards *shards, uint64_t content_bytes) {
    uint64_t heads = shards->total_heads / shards->local_tp, tokens = shards->block_size_tokens;
    bool head_outside = shards->format == MOON_STORE_SHARDED_LBHNC;
    return (struct moon_tensor){
        .dimensions = 4,
        .shape = {1, heads, tokens, content_bytes},
        .strides = {heads * tokens * content_bytes, head_outside ? tokens * content_bytes : content_bytes,
                    head_outside ? content_bytes : heads * content_bytes, 1},
        .item_bytes = 1,
    };
}

/* Heads and segments of each shard of a rank. */
static void tell_shards(const struct telling *telling, const struct moon_rank *rank) {
    const struct moon_layout_model *model = &telling->its->engine.model;
    if (!moon_store_sharded(&telling->its->selection))
        return;
    const struct moon_shards shards = moon_rank_shards(model, &telling->its->selection, rank->tp);
    const struct moon_tensor cache = dense_cache(&shards, (uint64_t)telling->view->content_bytes);
    const char *unit = telling->view->content_bytes == 1 ? "cells (K and V of a head and token)" : "bytes";
    uint64_t count = moon_shards_segments_per_cache(&shards), heads = moon_shards_heads(&shards);
    for (uint64_t local = 0; local < moon_shards_per_rank(&shards); local++) {
        uint64_t shard = moon_shards_first(&shards) + local;
        struct moon_segment first = moon_shards_segment(&shards, &cache, local, 0);
        moon_text_format(telling->out,
                         "  shard %" PRIu64 ": heads %" PRIu64 " to %" PRIu64 "; %" PRIu64
                         " segment%s a layer of %" PRIu64 " %s, the first at %" PRIu64 " of the block",
                         shard, shard * heads, (shard + 1) * heads - 1, count, count == 1 ? "" : "s", first.size_bytes,
                         unit, first.offset_bytes);
        if (count > 1)
            moon_text_format(telling->out, ", then every %" PRIu64,
                             moon_shards_segment(&shards, &cache, local, 1).offset_bytes - first.offset_bytes);
        moon_text_string(telling->out, " (LAYOUT-009)\n");
    }
}

static void tell_puts(const struct telling *telling, const struct moon_rank *rank) {
    const struct moon_layout_case *its = telling->its;
    struct moon_puts walk;
    struct moon_put put;
    struct moon_error raised;
    int shown = 0;
    if (strcmp(its->engine.kv_role, "kv_consumer") == 0) {
        moon_text_string(telling->out, "  puts nothing: a consumer saves no prompt (LAYOUT-028)\n");
        return;
    }
    if (moon_puts_open(&walk, telling->profile, &its->engine.model, &its->selection, rank, &its->save, &raised)) {
        moon_text_format(telling->out, "  puts nothing: %s, a block table is too short (LAYOUT-027)\n", raised.type);
        return;
    }
    moon_text_format(telling->out, "  puts (%s, in the order of LAYOUT-015)\n",
                     telling->profile->stripe_absolute ? "LAYOUT-013" : "LAYOUT-014");
    while (moon_puts_next(&walk, &put)) {
        if (++shown > CHUNKS_SHOWN_MAX)
            continue;
        const struct moon_pool_key key =
            moon_rank_key(telling->profile, &its->engine.model, &its->selection, rank, put.group, put.shard);
        moon_text_format(telling->out, "    group %zu chunk %" PRId64 " block %" PRId64 ": ", put.group, put.chunk.id,
                         put.block);
        moon_chunk_key(telling->profile, &key, &its->hashes, &put.chunk, telling->out);
        moon_text_char(telling->out, '\n');
    }
    if (shown > CHUNKS_SHOWN_MAX)
        moon_text_format(telling->out, "    and %d more\n", shown - CHUNKS_SHOWN_MAX);
}

static void tell_rank(const struct telling *telling, int64_t number) {
    const struct moon_layout_model *model = &telling->its->engine.model;
    struct moon_rank rank = moon_rank_at(model, number);
    int64_t key_pp = moon_rank_key(telling->profile, model, &telling->its->selection, &rank, 0, 0).pp_rank;
    moon_text_format(telling->out,
                     "rank %" PRId64 ": tp %" PRId64 ", pcp %" PRId64 ", dcp %" PRId64 ", pp %" PRId64 "%s\n", number,
                     rank.tp, rank.pcp, rank.dcp, rank.pp,
                     rank.pp == key_pp ? "" : ", but its keys have another pp_rank (LAYOUT-017)");
    tell_shards(telling, &rank);
    tell_puts(telling, &rank);
}

int moon_layout_explain(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, const struct moon_layout_view *view, struct moon_text *out,
                        struct moon_error *error) {
    struct moon_layout_case its;
    struct moon_error failure;
    const struct telling telling = {profile, &its, view, out};
    int status = moon_layout_case_read(arena, profile, source, given, &its, &failure);
    moon_text_format(out, "%s (%s)\n", profile->name, profile->version);
    if (!status && view->rank >= moon_world_size(&its.engine.model)) {
        status = moon_fail(&failure, MOON_ERR_RANGE, NULL, "rank %" PRId64 " does not exist, the last is %" PRId64,
                           view->rank, moon_world_size(&its.engine.model) - 1);
    } else if (!status) {
        int64_t ranks[MOON_LAYOUT_RANKS_MAX] = {view->rank};
        size_t count = view->rank >= 0 ? 1 : moon_layout_ranks(&its.engine.model, ranks);
        tell_decision(&telling);
        tell_sizes(&telling);
        tell_lookup(&telling);
        for (size_t i = 0; i < count; i++)
            tell_rank(&telling, ranks[i]);
    }
    return moon_suite_end_explain(status, out, &failure, error);
}
