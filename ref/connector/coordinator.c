/* SPDX-License-Identifier: Apache-2.0 */
/* Joint hit search over KV cache groups, and what follows from its result. */
#include "ref/connector/coordinator.h"

#include "ref/base/number.h"
#include "ref/layout/reach.h"

#include <assert.h>

/* Groups of equal specs: one in the search (HIT-001). Members are `count` numbers from search.members[first] on.
 *   length    what its finder returned last; valid once `searched`
 *   verified  its drafter's chunk was dropped since the hit last shrank */
struct merged {
    const struct moon_layout_group *group;
    const struct moon_layer_spec *spec;
    size_t first, count;
    int64_t block;
    bool eagle, searched, verified;
    int64_t length;
};

struct search {
    const struct moon_connector *connector;
    const struct moon_presence *presence;
    int64_t unit, align, limit;
    struct merged merged[MOON_STORE_GROUPS_MAX];
    size_t merged_count;
    uint8_t members[MOON_STORE_GROUPS_MAX];
};

/* How far one finder looks, and whether it drops a chunk for the drafter. */
struct question {
    const struct merged *its;
    int64_t max;
    bool drop;
};

/* ---- presence ---- */

static bool is_present(const struct search *search, const struct merged *its, int64_t hash) {
    for (size_t i = 0; i < its->count; i++) {
        int64_t group = search->members[its->first + i];
        if (!search->presence->present[group * search->presence->hash_count + hash])
            return false;
    }
    return true;
}

/* Chunk `chunk`, known by the hash at its end. */
static bool has_chunk(const struct search *search, const struct merged *its, int64_t chunk) {
    return is_present(search, its, (chunk + 1) * (its->block / search->unit) - 1);
}

/* Chunks of which there is a hash. */
static int64_t hashed_chunks(const struct search *search, const struct merged *its) {
    return search->presence->hash_count / (its->block / search->unit);
}

/* Releases index the hash list without a check (HIT-016). */
static int out_of_range(struct moon_error *error) {
    return moon_refuse(error, "IndexError", "list index out of range");
}

/* ---- finders: one for each kind ---- */

/* Leading run of chunks; in fine-grained mode then the farthest hash block in the chunk after it (HIT-008, HIT-009). */
static int64_t find_full(const struct search *search, const struct question *ask) {
    const struct merged *its = ask->its;
    int64_t chunks = moon_smaller(ask->max / its->block, hashed_chunks(search, its)), run = 0;
    while (run < chunks && has_chunk(search, its, run))
        run++;
    int64_t hit = run * its->block;
    if (search->align < its->block) {
        int64_t first = hit / search->unit, end = first + its->block / search->unit - 1;
        end = moon_smaller(end, moon_smaller(ask->max / search->unit, search->presence->hash_count));
        for (int64_t hash = end - 1; hash >= first && hit == run * its->block; hash--)
            if (is_present(search, its, hash))
                hit = (hash + 1) * search->unit;
    }
    if (ask->drop && hit > 0)
        hit -= moon_smaller(search->align, its->block);
    return hit - hit % search->align;
}

/* Cuts whole chunks off a length until hits may end there. */
static int64_t align_chunks(const struct search *search, int64_t tokens) {
    return tokens - tokens % search->align;
}

/* From the right the first run of chunks that is long enough and ends, after the drop, where hits may end; else the run
 * from token 0 (HIT-011, HIT-012). */
static int find_window(const struct search *search, const struct question *ask, int64_t *hit,
                       struct moon_error *error) {
    const struct merged *its = ask->its;
    int64_t chunks = ask->max / its->block, dropped = ask->drop ? 1 : 0;
    int64_t need = moon_ceil_divide(its->spec->window_tokens - 1, its->block) + dropped, run = 0;
    if (chunks > hashed_chunks(search, its))
        return out_of_range(error);
    for (int64_t at = chunks - 1; at >= 0; at--) {
        if (!has_chunk(search, its, at)) {
            run = 0;
            continue;
        }
        if (run == 0 && (at + 1 - dropped) * its->block % search->align != 0)
            continue;
        if (++run >= need) {
            *hit = align_chunks(search, (at + run - dropped) * its->block);
            return 0;
        }
    }
    *hit = align_chunks(search, run * its->block);
    if (ask->drop && *hit > 0)
        *hit = align_chunks(search, *hit - its->block);
    return 0;
}

/* The last state that ends where hits may end; in fine-grained mode at any hash block. Drops nothing (HIT-013,
 * HIT-014). */
static int find_mamba(const struct search *search, const struct question *ask, int64_t *hit, struct moon_error *error) {
    const struct merged *its = ask->its;
    *hit = 0;
    if (search->align < its->block) {
        int64_t hash = moon_smaller(ask->max / search->unit, search->presence->hash_count) - 1;
        while (hash >= 0 && !is_present(search, its, hash))
            hash--;
        *hit = (hash + 1) * search->unit;
        return 0;
    }
    int64_t chunks = ask->max / its->block;
    if (chunks > hashed_chunks(search, its))
        return out_of_range(error);
    for (int64_t at = chunks - 1; at >= 0 && *hit == 0; at--)
        if ((at + 1) * its->block % search->align == 0 && has_chunk(search, its, at))
            *hit = (at + 1) * its->block;
    return 0;
}

/* Chunks before the chunk of attention that holds `max` count without a look, then a run (HIT-015). */
static int find_local(const struct search *search, const struct question *ask, int64_t *hit, struct moon_error *error) {
    const struct merged *its = ask->its;
    if (ask->drop)
        return moon_refuse(error, "AssertionError",
                           "Hybrid KV cache is not supported for eagle + chunked local attention.");
    if (its->block != search->align)
        return moon_refuse(error, "AssertionError",
                           "KV cache groups with different block sizes are not compatible with chunked local "
                           "attention now");
    int64_t at = moon_local_start(its->group, ask->max), chunks = ask->max / its->block;
    for (; at < chunks; at++) {
        if (at >= hashed_chunks(search, its))
            return out_of_range(error);
        if (!has_chunk(search, its, at))
            break;
    }
    *hit = at * its->block;
    return 0;
}

static int find(const struct search *search, const struct question *ask, int64_t *hit, struct moon_error *error) {
    const struct moon_layer_spec *spec = ask->its->spec;
    if (moon_spec_is_window(spec))
        return find_window(search, ask, hit, error);
    if (spec->kind == MOON_SPEC_MAMBA)
        return find_mamba(search, ask, hit, error);
    if (spec->kind == MOON_SPEC_CHUNKED_LOCAL)
        return find_local(search, ask, hit, error);
    *hit = find_full(search, ask);
    return 0;
}

/* ---- all groups ---- */

/* Adds a merged group with the member `group` and all later ones of equal specs. */
static void merge(struct search *search, size_t group, size_t *used) {
    const struct moon_layout_model *model = search->connector->model;
    struct merged *its = &search->merged[search->merged_count++];
    *its = (struct merged){.group = &model->groups[group],
                           .spec = moon_layout_group_spec(&model->groups[group]),
                           .first = *used,
                           .block = model->groups[group].block_tokens,
                           .eagle = moon_layout_group_eagle(model, group)};
    for (size_t i = group; i < model->group_count; i++)
        if (moon_layout_groups_equal(&model->groups[i], &model->groups[group]))
            search->members[*used + its->count++] = (uint8_t)i;
    *used += its->count;
}

static bool is_first_of_its_spec(const struct moon_layout_model *model, size_t group) {
    for (size_t i = 0; i < group; i++)
        if (moon_layout_groups_equal(&model->groups[i], &model->groups[group]))
            return false;
    return true;
}

static void open_search(struct search *search, const struct moon_connector *connector,
                        const struct moon_presence *presence, int64_t limit) {
    const struct moon_layout_model *model = connector->model;
    size_t used = 0;
    assert(model->group_count >= 1 && model->group_count <= MOON_STORE_GROUPS_MAX);
    assert(limit >= 0 && limit <= MOON_HIT_TOKENS_MAX);
    *search = (struct search){.connector = connector,
                              .presence = presence,
                              .unit = model->hash_block_tokens,
                              .align = connector->alignment_tokens,
                              .limit = limit};
    for (int pass = 0; pass < 2; pass++) /* full attention first */
        for (size_t i = 0; i < model->group_count; i++) {
            bool full = moon_spec_is_full(moon_layout_group_spec(&model->groups[i]));
            if (full == (pass == 0) && is_first_of_its_spec(model, i))
                merge(search, i, &used);
        }
}

/* How far a group that drops a chunk may look for it beyond the hit so far (HIT-006, HIT-007). */
static int64_t peek(const struct search *search, const struct merged *its, int64_t hit) {
    const struct moon_profile *profile = search->connector->profile;
    bool mamba = its->spec->kind == MOON_SPEC_MAMBA;
    if (mamba && !profile->mamba_peeks)
        return hit;
    int64_t margin = search->align < its->block && moon_spec_is_full(its->spec) ? search->unit : its->block;
    int64_t end = profile->peeks_to_hashes ? search->presence->hash_count * search->unit : search->limit;
    return moon_smaller(hit + margin, end);
}

/* One pass over the groups: shortens *hit to what each can load (HIT-005). */
static int search_pass(struct search *search, int64_t *hit, struct moon_error *error) {
    for (size_t i = 0; i < search->merged_count; i++) {
        struct merged *its = &search->merged[i];
        if (its->searched && moon_spec_is_full(its->spec)) {
            *hit = search->connector->profile->full_length_kept ? moon_smaller(*hit, its->length)
                                                                : *hit / its->block * its->block;
            continue;
        }
        struct question ask = {its, *hit, its->eagle && !its->verified};
        if (ask.drop)
            ask.max = peek(search, its, *hit);
        int status = find(search, &ask, &its->length, error);
        if (status)
            return status;
        its->searched = true;
        if (its->length > *hit) /* only Mamba does (HIT-007) */
            moon_deviation_note(search->connector->notes, MOON_DEVIATION_MAMBA_LOOKS_BEYOND);
        if (ask.drop)
            its->verified = true;
        else if (its->length < *hit)
            for (size_t k = 0; k < search->merged_count; k++)
                search->merged[k].verified = false;
        *hit = its->length;
    }
    return 0;
}

/* 0.21: the leading run of chunks, which may end inside a block (HIT-017). */
static int64_t find_run(const struct search *search) {
    const struct merged *its = &search->merged[0];
    assert(search->merged_count == 1 && its->block > 0);
    int64_t chunks = moon_smaller(moon_ceil_divide(search->limit, its->block), hashed_chunks(search, its)), run = 0;
    while (run < chunks && has_chunk(search, its, run))
        run++;
    return moon_smaller(run * its->block, search->limit);
}

int moon_hit_search(const struct moon_connector *connector, const struct moon_presence *presence, int64_t limit_tokens,
                    int64_t *hit_tokens, struct moon_error *error) {
    struct search search;
    open_search(&search, connector, presence, limit_tokens);
    if (!connector->profile->coordinator) {
        *hit_tokens = find_run(&search);
        return 0;
    }
    int status = moon_fine_check(connector->profile, connector->model, error);
    if (status) {
        moon_deviation_note(connector->notes, MOON_DEVIATION_FINE_WINDOWS_REFUSED);
        return status;
    }
    if (search.merged_count == 1) {
        const struct question ask = {&search.merged[0], limit_tokens, search.merged[0].eagle};
        return find(&search, &ask, hit_tokens, error);
    }
    bool simple = search.merged_count == 2 && moon_spec_is_full(search.merged[0].spec);
    int64_t before;
    *hit_tokens = limit_tokens;
    do { /* ends: each pass but the last shortens the hit */
        before = *hit_tokens;
        status = search_pass(&search, hit_tokens, error);
    } while (!status && *hit_tokens < before && !simple);
    if (*hit_tokens > before)
        *hit_tokens = before;
    return status;
}

/* ---- what follows from a hit ---- */

bool moon_load_wanted(const struct moon_connector *connector, size_t group, int64_t chunk, int64_t hit_tokens) {
    const struct moon_layout_group *its = &connector->model->groups[group];
    const struct moon_layer_spec *spec = moon_layout_group_spec(its);
    int64_t block = its->block_tokens, end = moon_ceil_divide(hit_tokens, block), first = 0;
    if (connector->profile->coordinator && moon_spec_is_window(spec)) {
        int64_t need = moon_ceil_divide(spec->window_tokens - 1, block);
        end = hit_tokens / block; /* windows end at whole blocks */
        first = end - (need > 0 ? need : 1);
    } else if (connector->profile->coordinator && spec->kind == MOON_SPEC_MAMBA) {
        first = end - 1;
    } else if (spec->kind == MOON_SPEC_CHUNKED_LOCAL) {
        first = moon_local_start(its, hit_tokens);
    }
    return chunk >= first && chunk < end;
}

int moon_tail_boundaries(const struct moon_connector *connector, const struct moon_presence *presence,
                         int64_t hit_tokens, int64_t tokens[], struct moon_error *error) {
    const struct moon_layout_model *model = connector->model;
    int64_t unit = model->hash_block_tokens, at = hit_tokens / unit - 1;
    if (at >= presence->hash_count)
        return out_of_range(error);
    for (size_t group = 0; group < model->group_count; group++) {
        const uint8_t *present = presence->present + group * (size_t)presence->hash_count;
        int64_t block = model->groups[group].block_tokens, hash = at;
        int64_t end = moon_smaller(moon_ceil_divide(hit_tokens, block) * block / unit, presence->hash_count);
        if (!connector->fine_grained && !present[at])
            return moon_refuse(error, "AssertionError", "%s", "");
        while (hash < end && !present[hash])
            hash++;
        if (hash == end)
            return moon_refuse(error, "AssertionError", "No tail key found for cache group %zu at hit length %lld",
                               group, (long long)hit_tokens);
        tokens[group] = (hash + 1) * unit;
    }
    return 0;
}
