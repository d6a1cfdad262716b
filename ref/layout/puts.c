/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the puts of a rank: group, chunk, shard. */
#include "ref/layout/puts.h"

#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <assert.h>

/* ---- the tail of a prompt ---- */

int64_t moon_tail_tokens(const struct moon_layout_model *model, int64_t prompt_tokens) {
    int64_t unit = model->hash_block_tokens;
    int64_t end = model->speculative ? (prompt_tokens / unit - 1) * unit : (prompt_tokens - 1) / unit * unit;
    return end > 0 ? end : 0;
}

/* Where the tail ends in a group, after the tokens that EAGLE drops of a hit; 0 without a tail. */
static int64_t tail_end(const struct moon_tail_walk *walk, size_t group) {
    const struct moon_layout_model *model = walk->model;
    if (walk->end_tokens == 0 || model->groups[group].spec.kind == MOON_SPEC_MAMBA)
        return 0;
    int64_t dropped = walk->fine_grained ? model->hash_block_tokens : model->groups[group].block_tokens;
    int64_t end = walk->end_tokens + (moon_layout_group_eagle(model, group) ? dropped : 0);
    return end > walk->computed_tokens || end / model->hash_block_tokens > walk->hash_count ? 0 : end;
}

void moon_tail_open(struct moon_tail_walk *walk, const struct moon_profile *profile,
                    const struct moon_layout_model *model, int64_t prompt_tokens, int64_t computed_tokens,
                    int64_t hash_count) {
    *walk = (struct moon_tail_walk){.model = model, .computed_tokens = computed_tokens, .hash_count = hash_count};
    walk->fine_grained = moon_fine_grained(profile, model);
    int64_t end = moon_tail_tokens(model, prompt_tokens);
    if (end / model->hash_block_tokens > hash_count)
        return;
    walk->end_tokens = end;
    walk->start_tokens = end / model->scheduler_block_tokens * model->scheduler_block_tokens;
}

bool moon_tail_next(struct moon_tail_walk *walk, size_t *group, struct moon_chunk *chunk) {
    for (; walk->group < walk->model->group_count; walk->group++, walk->next = 0) {
        int64_t block = walk->model->groups[walk->group].block_tokens, end = tail_end(walk, walk->group);
        int64_t start = walk->start_tokens + walk->next * block; /* a scheduler block is whole blocks */
        if (start >= end)
            continue;
        int64_t stop = start + block < end ? start + block : end;
        walk->next++;
        *group = walk->group;
        *chunk = (struct moon_chunk){start / block, start, stop, stop / walk->model->hash_block_tokens - 1, 1};
        return true;
    }
    return false;
}

bool moon_boundary_is_ours(const struct moon_profile *profile, const struct moon_layout_model *model,
                           const struct moon_rank *rank, size_t group, int64_t tokens) {
    int64_t factor = moon_replication_factor(profile, model, group);
    int64_t chunk = moon_ceil_divide(tokens, model->groups[group].block_tokens) - 1;
    return chunk % factor == moon_put_phase(profile, factor, rank->tp, group);
}

/* ---- all puts ---- */

/* The next block of the tail that is the rank's. */
static bool next_tail(struct moon_puts *puts) {
    struct moon_put *put = &puts->put;
    while (moon_tail_next(&puts->tail, &put->group, &put->chunk))
        if (moon_boundary_is_ours(puts->profile, puts->model, &puts->rank, put->group, put->chunk.end_tokens))
            return true;
    put->group = 0;
    puts->in_tail = false;
    return false;
}

/* True if the key of a whole chunk is there already. */
static bool in_tail(const struct moon_puts *puts, const struct moon_chunk *chunk) {
    return chunk->start_tokens >= puts->tail.start_tokens &&
           chunk->end_tokens <= tail_end(&puts->tail, puts->put.group);
}

static int open_group(struct moon_puts *puts, struct moon_error *error) {
    const struct moon_layout_model *model = puts->model;
    int64_t factor = moon_replication_factor(puts->profile, model, puts->put.group);
    struct moon_chunk_query query = {.block_size = model->groups[puts->put.group].block_tokens,
                                     .hash_block_size = model->hash_block_tokens,
                                     .token_len = puts->save->tokens,
                                     .hash_count = puts->save->hash_count,
                                     .mask_num = puts->save->start_tokens,
                                     .put_step = 1};
    if (puts->profile->stripe_absolute) {
        query.put_step = factor;
        query.put_step_rank = moon_put_phase(puts->profile, factor, puts->rank.tp, puts->put.group);
    }
    puts->group_open = true;
    return moon_chunk_walk_open(&puts->chunks, puts->profile, &query, error);
}

/* Whether the rank puts a chunk that it listed: not masked out and, for old releases, at one of its places in the list.
 */
static bool is_ours(struct moon_puts *puts, const struct moon_chunk *chunk) {
    if (!moon_reach_stored(puts->profile, puts->model, puts->put.group, chunk->id, puts->save->prefill_end_tokens))
        return false;
    if (puts->profile->stripe_absolute)
        return !in_tail(puts, chunk);
    int64_t factor = moon_replication_factor(puts->profile, puts->model, puts->put.group);
    int64_t place = puts->list_length++;
    return place % factor == moon_put_phase(puts->profile, factor, puts->rank.tp, puts->put.group);
}

/* The next chunk of the rank, over all groups, whether or not it has a block. */
static bool next_chunk(struct moon_puts *puts) {
    if (puts->in_tail && next_tail(puts))
        return true;
    for (; puts->put.group < puts->model->group_count; puts->put.group++) {
        int status = puts->group_open ? 0 : open_group(puts, NULL);
        assert(status == 0); /* as for the first group, when the walk began */
        (void)status;
        while (moon_chunk_walk_next(&puts->chunks, &puts->put.chunk))
            if (is_ours(puts, &puts->put.chunk))
                return true;
        puts->group_open = false;
    }
    return false;
}

/* Block of the present chunk; false if the table is too short. */
static bool find_block(struct moon_puts *puts) {
    const struct moon_block_table *table = &puts->save->tables[puts->put.group];
    size_t at = (size_t)puts->put.chunk.id;
    puts->put.block = at < table->count ? table->blocks[at] : MOON_BLOCK_MISSING;
    return at < table->count;
}

int moon_puts_begin(struct moon_puts *puts, const struct moon_profile *profile, const struct moon_layout_model *model,
                    const struct moon_store_selection *selection, const struct moon_rank *rank,
                    const struct moon_save *save, struct moon_error *error) {
    *puts = (struct moon_puts){.profile = profile, .model = model, .save = save, .rank = *rank};
    puts->shards = moon_local_shards(model, selection, rank->tp);
    puts->next_shard = puts->shards.count;
    puts->tail.model = model;
    if (!save->tail_apart && profile->fine_grained == MOON_FINE_CORE && moon_fine_grained(profile, model)) {
        int64_t prompt = save->prefill_end_tokens;
        moon_tail_open(&puts->tail, profile, model, prompt, prompt, save->hash_count);
        puts->in_tail = true;
    }
    return open_group(puts, error);
}

int moon_puts_open(struct moon_puts *puts, const struct moon_profile *profile, const struct moon_layout_model *model,
                   const struct moon_store_selection *selection, const struct moon_rank *rank,
                   const struct moon_save *save, struct moon_error *error) {
    int status = moon_puts_begin(puts, profile, model, selection, rank, save, error);
    struct moon_puts ahead = *puts;
    while (!status && !profile->null_blocks_skipped && next_chunk(&ahead))
        if (!find_block(&ahead))
            status = moon_refuse(error, "IndexError", "list index out of range");
    return status;
}

bool moon_puts_next(struct moon_puts *puts, struct moon_put *put) {
    while (puts->next_shard == puts->shards.count) {
        if (!next_chunk(puts))
            return false;
        find_block(puts);
        if (puts->put.block > 0 || !puts->profile->null_blocks_skipped)
            puts->next_shard = 0;
    }
    puts->put.shard = puts->shards.first + puts->next_shard++;
    *put = puts->put;
    return true;
}
