/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the puts of a rank: group, chunk, shard. */
#include "ref/layout/puts.h"

#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <assert.h>

/* Where the tail of the prompt ends in a group, after the tokens that EAGLE drops of a hit; 0 without a tail. */
static int64_t tail_end(const struct moon_puts *puts, size_t group) {
    const struct moon_layout_model *model = puts->model;
    if (puts->tail_tokens == 0 || model->groups[group].spec.kind == MOON_SPEC_MAMBA)
        return 0;
    int64_t end = puts->tail_tokens + (moon_layout_group_eagle(model, group) ? model->hash_block_tokens : 0);
    return end / model->hash_block_tokens > puts->save->hash_count ? 0 : end;
}

/* LAYOUT-030 */
static void open_tail(struct moon_puts *puts) {
    const struct moon_layout_model *model = puts->model;
    if (puts->profile->fine_grained != MOON_FINE_CORE || !moon_fine_grained(puts->profile, model))
        return;
    int64_t unit = model->hash_block_tokens, end = puts->save->prefill_end_tokens;
    puts->tail_tokens = model->speculative ? (end / unit - 1) * unit : (end - 1) / unit * unit;
    if (puts->tail_tokens < 0)
        puts->tail_tokens = 0;
    puts->tail_start_tokens = puts->tail_tokens / model->scheduler_block_tokens * model->scheduler_block_tokens;
    puts->in_tail = puts->tail_tokens > 0;
}

/* The next block of the tail that is the rank's, over all groups; the last one of a group may be cut. */
static bool next_tail(struct moon_puts *puts) {
    for (; puts->put.group < puts->model->group_count; puts->put.group++) {
        size_t group = puts->put.group;
        int64_t block = puts->model->groups[group].block_tokens, end = tail_end(puts, group);
        int64_t factor = moon_replication_factor(puts->profile, puts->model, group);
        int64_t start = puts->tail_start_tokens + puts->next_tail * block; /* a scheduler block is whole blocks */
        for (; start < end; start += block) {
            int64_t id = start / block;
            puts->next_tail++;
            if (id % factor != moon_put_phase(puts->profile, factor, puts->rank.tp, group))
                continue;
            int64_t stop = start + block < end ? start + block : end;
            puts->put.chunk = (struct moon_chunk){id, start, stop, stop / puts->model->hash_block_tokens - 1, 1};
            return true;
        }
        puts->next_tail = 0;
    }
    puts->put.group = 0;
    puts->in_tail = false;
    return false;
}

/* True if the key of a whole chunk is there already. */
static bool in_tail(const struct moon_puts *puts, const struct moon_chunk *chunk) {
    return chunk->start_tokens >= puts->tail_start_tokens && chunk->end_tokens <= tail_end(puts, puts->put.group);
}

static void open_group(struct moon_puts *puts) {
    const struct moon_layout_model *model = puts->model;
    int64_t factor = moon_replication_factor(puts->profile, model, puts->put.group);
    struct moon_chunk_query query = {.block_size = model->groups[puts->put.group].block_tokens,
                                     .hash_block_size = model->hash_block_tokens,
                                     .token_len = puts->save->tokens,
                                     .hash_count = puts->save->hash_count,
                                     .put_step = 1};
    if (puts->profile->stripe_absolute) {
        query.put_step = factor;
        query.put_step_rank = moon_put_phase(puts->profile, factor, puts->rank.tp, puts->put.group);
    }
    int status = moon_chunk_walk_open(&puts->chunks, puts->profile, &query, NULL);
    assert(status == 0); /* whole blocks with all their hashes */
    (void)status;
    puts->group_open = true;
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
        if (!puts->group_open)
            open_group(puts);
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
    puts->put.block = at < table->count ? table->blocks[at] : 0;
    return at < table->count;
}

int moon_puts_open(struct moon_puts *puts, const struct moon_profile *profile, const struct moon_layout_model *model,
                   const struct moon_store_selection *selection, const struct moon_rank *rank,
                   const struct moon_save *save, struct moon_error *error) {
    *puts = (struct moon_puts){.profile = profile, .model = model, .save = save, .rank = *rank};
    puts->shards = moon_local_shards(model, selection, rank->tp);
    puts->next_shard = puts->shards.count;
    open_tail(puts);
    if (profile->null_blocks_skipped)
        return 0;
    struct moon_puts ahead = *puts;
    while (next_chunk(&ahead))
        if (!find_block(&ahead))
            return moon_refuse(error, "IndexError", "list index out of range");
    return 0;
}

bool moon_puts_next(struct moon_puts *puts, struct moon_put *put) {
    while (puts->next_shard == puts->shards.count) {
        if (!next_chunk(puts))
            return false;
        find_block(puts);
        if (puts->put.block != 0 || !puts->profile->null_blocks_skipped)
            puts->next_shard = 0;
    }
    puts->put.shard = puts->shards.first + puts->next_shard++;
    *put = puts->put;
    return true;
}
