/* SPDX-License-Identifier: Apache-2.0 */
/* Every case of the back-fill of decode blocks, and what must be put in each, worked out by brute force. This file
 * includes nothing of the connector: it is the other opinion in its proof. For backfill_test.c alone. */
#ifndef MOON_CONNECTOR_BACKFILL_ENUMERATE_INTERNAL_H
#define MOON_CONNECTOR_BACKFILL_ENUMERATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { BACKFILL_BLOCKS_MAX = 12, BACKFILL_SHARDS_MAX = 4, BACKFILL_KEY_BYTES = 160 };

/* Who holds what. Every block has `shards` keys; `shards_per_rank` of them lie on one rank, or `ranks_per_shard` ranks
 * hold the same one and share out its blocks. */
struct backfill_world {
    const char *name, *space; /* what follows the model's name in keys */
    int tp, shards, shards_per_rank, ranks_per_shard;
};

/* How one request goes. A step computes a piece of the prefill, or one token of decode and drafts behind it. In the
 * step `preempted_in` (-1: none) the request loses its blocks instead, and prefills all its tokens again from the next
 * on. */
struct backfill_case {
    const struct backfill_world *world;
    int block_tokens, prompt_tokens, decode_steps, preempted_in;
    int piece_tokens; /* that one step prefills at most */
    int drafts;       /* behind each token of decode; 1, 2, ... drafts + 1 tokens are accepted in turn */
    bool delivered; /* all of the prompt but its last token comes from elsewhere; after a preemption whole blocks do */
    bool saves_prefill; /* the role saves in prefill too; else only in decode */
    bool resumed_as_new;
    bool late; /* jobs run when the request is over, not in their steps; those queued before a preemption never run */
    /* Bit k: block k is in the store, but for shard lost_shard of block lost_block (-1: nothing is lost). */
    uint32_t present;
    int lost_block, lost_shard;
};

/* Outcome of a walk through the steps: how many there are, tokens with KV at the end, tokens of the last save. */
struct backfill_walk {
    int steps, tokens, saved_tokens;
};

static inline struct backfill_walk backfill_walk(const struct backfill_case *its) {
    struct backfill_walk walk = {0, 0, 0};
    int known = its->prompt_tokens, end = known, outputs_left = 1 + its->decode_steps, decoded = 0;
    int computed = its->delivered ? known - 1 : 0;
    for (; outputs_left > 0; walk.steps++) {
        if (walk.steps == its->preempted_in) {
            computed = its->delivered ? (known - 1) / its->block_tokens * its->block_tokens : 0;
            end = known;
            walk.saved_tokens = its->late ? 0 : walk.saved_tokens;
            continue;
        }
        bool prefill = computed < end;
        if (prefill)
            computed = computed + its->piece_tokens < end ? computed + its->piece_tokens : end;
        else
            computed = known;
        if ((its->saves_prefill || !prefill) && computed > walk.saved_tokens)
            walk.saved_tokens = computed;
        walk.tokens = computed;
        if (prefill && computed < end)
            continue;
        known = known + (prefill ? 1 : 1 + decoded++ % (its->drafts + 1));
        computed = known - 1;
        outputs_left--;
    }
    return walk;
}

/* True if a shard of a block is in the store at the beginning. */
static inline bool backfill_present(const struct backfill_case *its, int block, int shard) {
    return (its->present >> block & 1) != 0 && (block != its->lost_block || shard != its->lost_shard);
}

/* The rank that must put a shard of a block, and its key. Hashes are 16 equal bytes: 0xa0 + block. */
static inline int backfill_rank(const struct backfill_world *world, int block, int shard) {
    if (world->shards_per_rank > 1)
        return shard / world->shards_per_rank;
    return shard * world->ranks_per_shard + block % world->ranks_per_shard;
}

static inline uint8_t backfill_hash_byte(int block) {
    return (uint8_t)(0xa0 + block);
}

static inline void backfill_key(const struct backfill_world *world, int block, int shard, char *out) {
    int used = snprintf(out, BACKFILL_KEY_BYTES, "m%s@tp_rank:%d@pcp0@dcp0@pp_rank:0@group:0@", world->space, shard);
    for (int i = 0; i < 16; i++)
        used += snprintf(out + used, 3, "%02x", backfill_hash_byte(block));
}

/* What calls for each case; `begin` once for each course of steps, `run` for each store that it may meet. */
struct backfill_visitor {
    void *context;
    void (*begin)(void *context, const struct backfill_case *its);
    void (*run)(void *context, const struct backfill_case *its, int saved_blocks);
};

/* All stores that a course of steps may meet: every presence map; and, up to lost_blocks_max blocks, each single shard
 * lost of a block that is there. Returns how many. */
static inline uint64_t backfill_stores(struct backfill_case its, int lost_blocks_max,
                                       const struct backfill_visitor *to) {
    int blocks = backfill_walk(&its).tokens / its.block_tokens;
    int losses = its.world->shards > 1 && blocks <= lost_blocks_max ? blocks * its.world->shards : 0;
    uint64_t count = 0;
    to->begin(to->context, &its);
    for (int late = 0; late < 2; late++) {
        its.late = late == 1;
        int saved_blocks = backfill_walk(&its).saved_tokens / its.block_tokens;
        for (its.present = 0; its.present < UINT32_C(1) << blocks; its.present++) {
            for (int loss = -1; loss < losses; loss++) {
                its.lost_block = loss < 0 ? -1 : loss / its.world->shards;
                its.lost_shard = loss < 0 ? -1 : loss % its.world->shards;
                if (loss >= 0 && (its.present >> its.lost_block & 1) == 0)
                    continue;
                to->run(to->context, &its, saved_blocks);
                count++;
            }
        }
    }
    return count;
}

/* All cases of at most `blocks_max` blocks: every prompt length, every number of decode steps, a preemption in every
 * step and none. The rest comes from `scene`. Returns how many. */
static inline uint64_t backfill_enumerate(const struct backfill_case *scene, int blocks_max, int lost_blocks_max,
                                          const struct backfill_visitor *to) {
    struct backfill_case its = *scene;
    uint64_t count = 0;
    for (its.prompt_tokens = 1; its.prompt_tokens <= blocks_max * its.block_tokens; its.prompt_tokens++) {
        for (its.decode_steps = 0;; its.decode_steps++) {
            its.preempted_in = -1;
            const struct backfill_walk whole = backfill_walk(&its);
            if (whole.tokens > blocks_max * its.block_tokens)
                break;
            count += backfill_stores(its, lost_blocks_max, to);
            for (its.preempted_in = 1; its.preempted_in < whole.steps; its.preempted_in++)
                count += backfill_stores(its, lost_blocks_max, to);
        }
    }
    return count;
}

#endif
