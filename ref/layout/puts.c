/* SPDX-License-Identifier: Apache-2.0 */
/* Walking the puts of a rank: group, chunk, shard. */
#include "ref/layout/puts.h"

#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <assert.h>

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
        return true;
    int64_t factor = moon_replication_factor(puts->profile, puts->model, puts->put.group);
    int64_t place = puts->list_length++;
    return place % factor == moon_put_phase(puts->profile, factor, puts->rank.tp, puts->put.group);
}

/* The next chunk of the rank, over all groups, whether or not it has a block. */
static bool next_chunk(struct moon_puts *puts) {
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
