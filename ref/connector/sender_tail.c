/* SPDX-License-Identifier: Apache-2.0 */
/* Sender: puts beside the normal save, by release: Mamba states that were handed off, and tails of prompts. */
#include "ref/connector/sender_internal.h"

#include <inttypes.h>

/* A put of a block under the hash at `tokens`. Up to 0.31 a position below the first hash counts from the end of the
 * list, as Python's index -1 does; the core hands off none. */
static int add(struct moon_sender_keys *keys, const struct moon_job *job, size_t group, int64_t tokens, int64_t block) {
    const struct moon_layout_model *model = keys->connector->model;
    int64_t block_tokens = model->groups[group].block_tokens, id = moon_ceil_divide(tokens, block_tokens) - 1;
    int64_t hash = tokens / model->hash_block_tokens - 1;
    if (hash < 0)
        hash += (int64_t)job->hashes.count;
    return moon_sender_keys_add(
        keys, job,
        &(struct moon_put){.group = group, .chunk = {id, id * block_tokens, tokens, hash, 1}, .block = block});
}

/* SAVE-031: a block put under the hash at its position, if there is a block, a position and a hash. */
static int add_state(struct moon_sender_keys *keys, const struct moon_job *job, const struct moon_boundary_put *put) {
    const struct moon_connector *connector = keys->connector;
    int64_t unit = connector->model->hash_block_tokens;
    if (put->tokens == 0 || put->block == 0 || put->tokens / unit > (int64_t)job->hashes.count ||
        !moon_boundary_is_ours(connector->profile, connector->model, &keys->rank, put->group, put->tokens))
        return 0;
    return add(keys, job, put->group, put->tokens, put->block);
}

/* 0.32 on: all in the order given; tails are among them (SAVE-030). */
static int states(struct moon_sender_keys *keys, const struct moon_job *job, struct moon_error *error) {
    int64_t unit = keys->connector->model->hash_block_tokens;
    int status = 0;
    for (size_t i = 0; i < job->boundary_count && !status; i++) {
        const struct moon_boundary_put *put = &job->boundary[i];
        if (put->tokens % unit != 0 && put->block != 0)
            status = moon_refuse(error, "AssertionError",
                                 "Boundary put at %" PRId64 " tokens is not a multiple of the hash block size %" PRId64,
                                 put->tokens, unit);
        else
            status = add_state(keys, job, put);
    }
    return status;
}

/* True if the position is the end of a block of its group. */
static bool is_aligned(const struct moon_sender_keys *keys, const struct moon_boundary_put *put) {
    return put->tokens % keys->connector->model->groups[put->group].block_tokens == 0;
}

/* Whether an entry is part of a tail: in 0.27 and 0.28 all are, later those that end inside a block. */
static bool in_tail(const struct moon_sender_keys *keys, const struct moon_boundary_put *put) {
    return keys->connector->profile->boundary_rule == MOON_BOUNDARY_TAIL || !is_aligned(keys, put);
}

/* The tail's block of a group that was handed off, the last if several; NULL: none. */
static const struct moon_boundary_put *handed(const struct moon_sender_keys *keys, const struct moon_job *job,
                                              size_t group) {
    for (size_t i = job->boundary_count; i > 0; i--)
        if (job->boundary[i - 1].group == group && in_tail(keys, &job->boundary[i - 1]))
            return &job->boundary[i - 1];
    return NULL;
}

/* Block that the tail puts for a block number of a group that ends at `tokens`; 0: none (SAVE-032, SAVE-033). */
static int64_t tail_block(const struct moon_sender_keys *keys, const struct moon_job *job,
                          const struct moon_boundary_put *state, size_t group, int64_t id, int64_t tokens) {
    const struct moon_connector *connector = keys->connector;
    bool positional = connector->profile->boundary_rule == MOON_BOUNDARY_TAIL;
    if (state && tokens == state->tokens && (!positional || !is_aligned(keys, state)))
        return state->block;
    if (!positional && (state || connector->model->groups[group].spec.kind == MOON_SPEC_MAMBA))
        return 0;
    const struct moon_block_table *table = &job->tables->groups[group];
    return (size_t)id < table->count ? table->blocks[id] : 0;
}

/* Blocks of one group from the resume offset to the tail's end, the last one always. */
static int tail_of_group(struct moon_sender_keys *keys, const struct moon_job *job, size_t group, int64_t saved_tokens,
                         int64_t end_tokens) {
    const struct moon_connector *connector = keys->connector;
    const struct moon_boundary_put *state = handed(keys, job, group);
    int64_t block_tokens = connector->model->groups[group].block_tokens;
    int64_t last = moon_ceil_divide(end_tokens, block_tokens) - 1, id = saved_tokens / block_tokens;
    int status = 0;
    for (id = id < last ? id : last; id <= last && !status; id++) {
        int64_t tokens = id < last ? (id + 1) * block_tokens : end_tokens;
        if (!moon_boundary_is_ours(connector->profile, connector->model, &keys->rank, group, tokens))
            continue;
        int64_t block = tail_block(keys, job, state, group, id, tokens);
        if (block != 0)
            status = add(keys, job, group, tokens, block);
    }
    return status;
}

/* 0.27 to 0.31: a position inside a block takes the blocks of all groups along that no normal save has put yet. */
static int tail(struct moon_sender_keys *keys, const struct moon_job *job, int64_t saved_tokens,
                struct moon_error *error) {
    const struct moon_connector *connector = keys->connector;
    const struct moon_boundary_put *first = NULL;
    for (size_t i = 0; i < job->boundary_count; i++) {
        const struct moon_boundary_put *put = &job->boundary[i];
        if (!in_tail(keys, put))
            continue;
        if (first && first->tokens != put->tokens)
            return moon_refuse(error, "ValueError", "%s-tail offloads for one request must share a boundary",
                               connector->profile->boundary_rule == MOON_BOUNDARY_TAIL ? "Partial"
                                                                                       : "Sub-block partial");
        first = first ? first : put;
    }
    int64_t end = first ? first->tokens : 0;
    if (end == 0 || end / connector->model->hash_block_tokens > (int64_t)job->hashes.count)
        return 0;
    int status = 0;
    for (size_t group = 0; group < connector->model->group_count && !status; group++)
        status = tail_of_group(keys, job, group, saved_tokens, end);
    return status;
}

int moon_sender_keys_of_boundary(struct moon_sender_keys *keys, const struct moon_job *job, int64_t saved_tokens,
                                 struct moon_error *error) {
    enum moon_boundary_rule rule = keys->connector->profile->boundary_rule;
    int status = 0;
    moon_sender_keys_clear(keys);
    if (job->hashes.count == 0)
        return 0;
    if (moon_store_sharded(&keys->connector->selection))
        return moon_refuse(error, "RuntimeError", "This operation requires a rank-local Store layout");
    if (rule == MOON_BOUNDARY_TAIL_ONCE)
        return states(keys, job, error);
    for (size_t i = 0; i < job->boundary_count && !status; i++)
        if (!in_tail(keys, &job->boundary[i]))
            status = add_state(keys, job, &job->boundary[i]);
    if (!status && keys->connector->fine_grained)
        status = tail(keys, job, saved_tokens, error);
    return status;
}
