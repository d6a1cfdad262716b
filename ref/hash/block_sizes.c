/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduler block and hash block of an engine, from its KV cache groups and context parallelism. */
#include "ref/hash/block_sizes.h"

#include <stdio.h>

enum { BLOCK_SIZE_MAX = 1 << 24, RANKS_MAX = 1 << 16 };
#define BLOCK_MAX (INT64_C(1) << 53)

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Tokens that a block of the group spans over all DCP ranks. */
static int64_t group_block(const struct moon_block_sizes_input *input, size_t i) {
    return input->groups[i].block_size * (input->groups[i].dcp_sharded ? input->dcp : 1);
}

static bool all_in_range(const struct moon_block_sizes_input *input) {
    if (input->group_count < 1 || input->group_count > MOON_KV_GROUPS_MAX || input->match_unit < 0)
        return false;
    if (input->dcp < 1 || input->dcp > RANKS_MAX || input->pcp < 1 || input->pcp > RANKS_MAX)
        return false;
    for (size_t i = 0; i < input->group_count; i++)
        if (input->groups[i].block_size < 1 || input->groups[i].block_size > BLOCK_SIZE_MAX)
            return false;
    return true;
}

/* HASH-090, HASH-093 */
static int resolve_one(const struct moon_profile *profile, const struct moon_block_sizes_input *input,
                       struct moon_block_sizes *out, struct moon_error *error) {
    int64_t block = input->groups[0].block_size;
    if (!profile->dcp_by_spec || input->groups[0].dcp_sharded)
        block *= input->dcp;
    if (profile->pcp_multiplies_block)
        block *= input->pcp; /* 24 + 16 + 16 bits at most */
    if (profile->match_unit_checked && input->hashing && input->match_unit != 0 && input->match_unit != block)
        return moon_refuse(
            error, "ValueError",
            "Invalid prefix_match_unit=%lld; with a single KV cache group, prefix-cache hits land on the "
            "block size (%lld). Unset it or set it to %lld.",
            (long long)input->match_unit, (long long)block, (long long)block);
    *out = (struct moon_block_sizes){block, block};
    return 0;
}

/* Python's text of a list of block sizes; all groups, or those that are prefix-cacheable. */
static void list_blocks(const struct moon_block_sizes_input *input, bool all, char *out, size_t bytes) {
    size_t used = 0;
    const char *separator = "[";
    for (size_t i = 0; i < input->group_count && used < bytes; i++) {
        if (!all && !input->groups[i].prefix_cacheable)
            continue;
        used += (size_t)snprintf(out + used, bytes - used, "%s%lld", separator, (long long)group_block(input, i));
        separator = ", ";
    }
    if (used < bytes)
        snprintf(out + used, bytes - used, "]");
}

/* HASH-092 */
static int refuse_unit(const struct moon_profile *profile, const struct moon_block_sizes_input *input, int64_t unit,
                       bool all, struct moon_error *error) {
    char blocks[MOON_ERROR_MESSAGE_BYTES / 2], cacheable[MOON_ERROR_MESSAGE_BYTES / 2];
    const char *name = profile->match_unit ? "prefix_match_unit" : "hash_block_size";
    list_blocks(input, true, blocks, sizeof blocks);
    if (!profile->uncacheable_left_out)
        return moon_refuse(error, "ValueError",
                           "Invalid %s=%lld; all KV cache group block sizes must be divisible by %s. Got group block "
                           "sizes=%s.",
                           name, (long long)unit, name, blocks);
    list_blocks(input, all, cacheable, sizeof cacheable);
    return moon_refuse(
        error, "ValueError",
        "Invalid %s=%lld; prefix-cacheable KV cache group block sizes must be divisible by %s. Got group "
        "block sizes=%s, prefix-cacheable=%s.",
        name, (long long)unit, name, blocks, cacheable);
}

/* The hash block of several groups, given that they are hashed at all. (HASH-091) */
static int resolve_hash_block(const struct moon_profile *profile, const struct moon_block_sizes_input *input,
                              int64_t *hash_block, struct moon_error *error) {
    bool any_cacheable = false;
    for (size_t i = 0; i < input->group_count; i++)
        any_cacheable = any_cacheable || input->groups[i].prefix_cacheable;
    bool all = !profile->uncacheable_left_out || !any_cacheable;
    int64_t unit = input->match_unit;
    if (unit == 0)
        for (size_t i = 0; i < input->group_count; i++)
            if (all || input->groups[i].prefix_cacheable)
                unit = greatest_common_divisor(group_block(input, i), unit);
    for (size_t i = 0; i < input->group_count; i++)
        if ((all || input->groups[i].prefix_cacheable) && group_block(input, i) % unit != 0)
            return refuse_unit(profile, input, unit, all, error);
    *hash_block = unit;
    return 0;
}

int moon_block_sizes_resolve(const struct moon_profile *profile, const struct moon_block_sizes_input *input,
                             struct moon_block_sizes *out, struct moon_error *error) {
    if (!all_in_range(input))
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "a block size, group count or parallel size is outside its range");
    if (input->group_count == 1 || profile->group_numbering == MOON_GROUP_NONE)
        return resolve_one(profile, input, out, error);
    if (!profile->groups_context_parallel && (input->dcp > 1 || input->pcp > 1))
        return moon_refuse(error, "ValueError",
                           "Hybrid KV cache groups with multiple block sizes do not support context parallelism "
                           "(dcp_world_size/pcp_world_size > 1)."); /* HASH-094 */
    int64_t scheduler_block = 1;
    bool aligned = true;
    for (size_t i = 0; i < input->group_count; i++) {
        int64_t block = group_block(input, i), divisor = greatest_common_divisor(scheduler_block, block);
        if (__builtin_mul_overflow(scheduler_block / divisor, block, &scheduler_block) || scheduler_block > BLOCK_MAX)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "the least common multiple of the block sizes is too large");
        aligned = aligned && !input->groups[i].mamba_not_aligned;
    }
    int64_t hash_block = scheduler_block;
    if (input->hashing && aligned) {
        int status = resolve_hash_block(profile, input, &hash_block, error);
        if (status)
            return status;
    }
    *out = (struct moon_block_sizes){scheduler_block, hash_block};
    return 0;
}
