/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank puts when a part of a prompt is saved: the one walk through the keys of a save. */
#ifndef MOON_LAYOUT_PUTS_H
#define MOON_LAYOUT_PUTS_H

#include "ref/layout/ownership.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks of a group in the GPU's cache, by chunk. Borrowed; block 0 is the null block. */
struct moon_block_table {
    const int64_t *blocks;
    size_t count;
};

/* A save of tokens start_tokens .. tokens - 1.
 *   tokens   multiple of the scheduler block, and covered by hash_count hashes
 *   prefill_end_tokens  length of the prefill
 *   tables   one a group
 *   start_tokens  multiple of the scheduler block: what lies before it was saved earlier
 *   tail_apart    the prompt's tail is put on its own, as connectors do; else it comes first (LAYOUT-030) */
struct moon_save {
    int64_t tokens, hash_count, prefill_end_tokens;
    const struct moon_block_table *tables;
    int64_t start_tokens;
    bool tail_apart;
};

/* One object that is put. */
struct moon_put {
    size_t group;
    struct moon_chunk chunk;
    int64_t shard; /* 0 for rank-local layouts */
    int64_t block; /* it is read from; 0 is the null block, MOON_BLOCK_MISSING a table that is too short (up to 0.28) */
};
enum { MOON_BLOCK_MISSING = -1 };

/* Tail of a prompt, from 0.32 on: blocks of all groups but Mamba's from the last whole scheduler block to the last hash
 * boundary that a hit can end at, and what EAGLE drops after it (LAYOUT-030). Borrows the model. */
struct moon_tail_walk {
    const struct moon_layout_model *model;
    bool fine_grained;
    int64_t start_tokens, end_tokens; /* end 0: no tail */
    int64_t computed_tokens, hash_count;
    size_t group;
    int64_t next; /* block of the present group, counted from the tail's first */
};
/* Last hash boundary of a prompt that leaves a token to compute, with EAGLE's drop; 0 if there is none. */
int64_t moon_tail_tokens(const struct moon_layout_model *model, int64_t prompt_tokens);
/* Begins a walk over the tail of a prompt of which computed_tokens have KV and hash_count hashes exist. Groups that
 * need more are left out; with fewer hashes than the boundary has there is no tail. */
void moon_tail_open(struct moon_tail_walk *walk, const struct moon_profile *profile,
                    const struct moon_layout_model *model, int64_t prompt_tokens, int64_t computed_tokens,
                    int64_t hash_count);
/* The next block in the order group, chunk; the last one of a group may be cut. False at the end. */
bool moon_tail_next(struct moon_tail_walk *walk, size_t *group, struct moon_chunk *chunk);

/* True if a rank puts the block that ends at `tokens` in a group beside the normal save: tails and Mamba states share
 * the stripes of normal chunks (LAYOUT-013). tokens is 1 or more. */
bool moon_boundary_is_ours(const struct moon_profile *profile, const struct moon_layout_model *model,
                           const struct moon_rank *rank, size_t group, int64_t tokens);

/* Walk through the puts of a rank in their order (LAYOUT-013 to LAYOUT-015, LAYOUT-027, LAYOUT-030). Borrows all
 * arguments. */
struct moon_puts {
    const struct moon_profile *profile;
    const struct moon_layout_model *model;
    const struct moon_save *save;
    struct moon_rank rank;
    struct moon_shard_range shards;
    struct moon_chunk_walk chunks;
    struct moon_put put;
    struct moon_tail_walk tail;
    bool in_tail;
    int64_t next_shard;  /* of the present chunk, counted from 0; shards.count when it is done */
    int64_t list_length; /* chunks kept so far, for releases that stripe by position */
    bool group_open;
};
/* Begins a walk. Returns 0, or MOON_ERR_REFUSED with AssertionError where the release wants more hashes than there are
 * (KEY-019). */
int moon_puts_begin(struct moon_puts *puts, const struct moon_profile *profile, const struct moon_layout_model *model,
                    const struct moon_store_selection *selection, const struct moon_rank *rank,
                    const struct moon_save *save, struct moon_error *error);
/* The same for a save into an empty store. Returns also MOON_ERR_REFUSED with IndexError: up to 0.28 a block table that
 * is too short for a chunk of the rank makes the whole save fail, and nothing is put. */
int moon_puts_open(struct moon_puts *puts, const struct moon_profile *profile, const struct moon_layout_model *model,
                   const struct moon_store_selection *selection, const struct moon_rank *rank,
                   const struct moon_save *save, struct moon_error *error);
/* The next put, or false at the end. */
bool moon_puts_next(struct moon_puts *puts, struct moon_put *put);

#ifdef __cplusplus
}
#endif
#endif
