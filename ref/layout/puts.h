/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank puts when a prompt is saved into an empty store. */
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

/* A save of tokens 0 .. tokens - 1.
 *   tokens   multiple of the scheduler block, and covered by hash_count hashes
 *   prefill_end_tokens  length of the prefill
 *   tables   one a group */
struct moon_save {
    int64_t tokens, hash_count, prefill_end_tokens;
    const struct moon_block_table *tables;
};

/* One object that is put. */
struct moon_put {
    size_t group;
    struct moon_chunk chunk;
    int64_t shard; /* 0 for rank-local layouts */
    int64_t block; /* it is read from; 0 is the null block */
};

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
    int64_t tail_start_tokens, tail_tokens; /* of the prompt's tail (LAYOUT-030); tail_tokens 0: none */
    int64_t next_tail;                      /* block of the tail in the present group, counted from its first */
    bool in_tail;
    int64_t next_shard;  /* of the present chunk, counted from 0; shards.count when it is done */
    int64_t list_length; /* chunks kept so far, for releases that stripe by position */
    bool group_open;
};
/* Begins a walk. Returns 0, or MOON_ERR_REFUSED with IndexError: up to 0.28 a block table that is too short for a chunk
 * of the rank makes the whole save fail, and nothing is put. */
int moon_puts_open(struct moon_puts *puts, const struct moon_profile *profile, const struct moon_layout_model *model,
                   const struct moon_store_selection *selection, const struct moon_rank *rank,
                   const struct moon_save *save, struct moon_error *error);
/* The next put, or false at the end. */
bool moon_puts_next(struct moon_puts *puts, struct moon_put *put);

#ifdef __cplusplus
}
#endif
#endif
