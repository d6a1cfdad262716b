/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of scheduler and hash block sizes. */
#include "ref/hash/block_sizes.h"

#include "ref/base/unit.h"

static const struct moon_kv_group_size full_16 = {16, true, false, true}, full_32 = {32, true, false, true},
                                       local_16 = {16, false, false, true}, mamba_48 = {48, false, true, true},
                                       scratch_4 = {4, false, false, false};

static struct moon_error error;
static struct moon_block_sizes sizes;

static int resolve(const char *release, const struct moon_kv_group_size *groups, size_t count, int64_t dcp, int64_t pcp,
                   int64_t unit, bool hashing) {
    const struct moon_block_sizes_input input = {groups, count, dcp, pcp, unit, hashing};
    return moon_block_sizes_resolve(moon_profile_find(release, &error), &input, &sizes, &error);
}

static void check(int status, int64_t scheduler_block, int64_t hash_block) {
    MOON_CHECK_INT(status, 0);
    MOON_CHECK_INT(sizes.scheduler_block, scheduler_block);
    MOON_CHECK_INT(sizes.hash_block, hash_block);
}

static void one_group(void) {
    check(resolve("0.33", &full_16, 1, 1, 1, 0, true), 16, 16);
    check(resolve("0.33", &full_16, 1, 2, 2, 0, true), 32, 32);
    check(resolve("0.25", &full_16, 1, 2, 2, 0, true), 64, 64);
    check(resolve("0.21", &full_16, 1, 2, 2, 0, true), 64, 64);
    check(resolve("0.30", &local_16, 1, 2, 1, 0, true), 32, 32);
    check(resolve("0.31", &local_16, 1, 2, 1, 0, true), 16, 16);
}

static void one_group_unit(void) {
    check(resolve("0.31", &full_16, 1, 1, 1, 8, true), 16, 16);
    check(resolve("0.32", &full_16, 1, 1, 1, 16, true), 16, 16);
    check(resolve("0.32", &full_16, 1, 1, 1, 8, false), 16, 16);
    MOON_CHECK_INT(resolve("0.32", &full_16, 1, 2, 1, 16, true), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "ValueError");
    MOON_CHECK_TEXT(error.message,
                    "Invalid prefix_match_unit=16; with a single KV cache group, prefix-cache hits land on "
                    "the block size (32). Unset it or set it to 32.");
}

static void many_groups(void) {
    const struct moon_kv_group_size groups[] = {full_32, local_16, full_16};
    check(resolve("0.33", groups, 3, 1, 1, 0, true), 32, 16);
    check(resolve("0.33", groups, 3, 2, 4, 0, true), 64, 16);
    check(resolve("0.33", groups, 3, 1, 1, 8, true), 32, 8);
    check(resolve("0.33", groups, 3, 1, 1, 0, false), 32, 32);
    check(resolve("0.21", groups, 3, 1, 1, 0, true), 32, 32); /* knows one group only */
}

static void mamba(void) {
    const struct moon_kv_group_size groups[] = {full_32, mamba_48};
    check(resolve("0.33", groups, 2, 1, 1, 0, true), 96, 96);
    struct moon_kv_group_size aligned[] = {full_32, mamba_48};
    aligned[1].mamba_not_aligned = false;
    check(resolve("0.33", aligned, 2, 1, 1, 0, true), 96, 16);
}

static void scratch_groups(void) {
    const struct moon_kv_group_size groups[] = {full_32, scratch_4}, only[] = {scratch_4, scratch_4};
    check(resolve("0.33", groups, 2, 1, 1, 0, true), 32, 32);
    check(resolve("0.28", groups, 2, 1, 1, 0, true), 32, 4);
    check(resolve("0.33", only, 2, 1, 1, 0, true), 4, 4);
    check(resolve("0.33", groups, 2, 1, 1, 16, true), 32, 16);
}

static void units_that_do_not_divide(void) {
    const struct moon_kv_group_size groups[] = {full_32, local_16, scratch_4};
    MOON_CHECK_INT(resolve("0.33", groups, 3, 1, 1, 12, true), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "Invalid prefix_match_unit=12; prefix-cacheable KV cache group block sizes must be "
                                   "divisible by prefix_match_unit. Got group block sizes=[32, 16, 4], "
                                   "prefix-cacheable=[32, 16].");
    MOON_CHECK_INT(resolve("0.27", groups, 3, 1, 1, 12, true), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "Invalid prefix_match_unit=12; all KV cache group block sizes must be divisible by "
                                   "prefix_match_unit. Got group block sizes=[32, 16, 4].");
    MOON_CHECK_INT(resolve("0.25", groups, 3, 1, 1, 12, true), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "Invalid hash_block_size=12; all KV cache group block sizes must be divisible by "
                                   "hash_block_size. Got group block sizes=[32, 16, 4].");
    static struct moon_kv_group_size many[MOON_KV_GROUPS_MAX]; /* a list longer than any message */
    for (size_t i = 0; i < MOON_KV_GROUPS_MAX; i++)
        many[i] = full_16;
    MOON_CHECK_INT(resolve("0.33", many, MOON_KV_GROUPS_MAX, 1, 1, 12, true), MOON_ERR_REFUSED);
}

static void context_parallelism(void) {
    const struct moon_kv_group_size groups[] = {full_32, local_16};
    MOON_CHECK_INT(resolve("0.25", groups, 2, 2, 1, 0, true), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message,
                    "Hybrid KV cache groups with multiple block sizes do not support context parallelism "
                    "(dcp_world_size/pcp_world_size > 1).");
    MOON_CHECK_INT(resolve("0.22", groups, 2, 1, 2, 0, true), MOON_ERR_REFUSED);
    check(resolve("0.26", groups, 2, 2, 2, 0, true), 64, 16);
}

static void out_of_range(void) {
    struct moon_kv_group_size group = {0, true, false, true};
    MOON_CHECK_INT(resolve("0.33", &group, 1, 1, 1, 0, true), MOON_ERR_RANGE);
    group.block_size = (1 << 24) + 1;
    MOON_CHECK_INT(resolve("0.33", &group, 1, 1, 1, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, 0, 1, 1, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, MOON_KV_GROUPS_MAX + 1, 1, 1, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, 1, 0, 1, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, 1, 65537, 1, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, 1, 1, 0, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, 1, 1, 65537, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", &full_16, 1, 1, 1, -1, true), MOON_ERR_RANGE);
    const struct moon_kv_group_size coprime[] = {{16777213, true, false, true},
                                                 {16777199, true, false, true},
                                                 {16777183, true, false, true},
                                                 {16777153, true, false, true}};
    MOON_CHECK_INT(resolve("0.33", coprime, 3, 1, 1, 0, true), MOON_ERR_RANGE);
    MOON_CHECK_INT(resolve("0.33", coprime, 4, 65536, 1, 0, true), MOON_ERR_RANGE);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"one group has one size, by release (HASH-090)", one_group},
        {"the override is checked with one group from 0.32 on (HASH-093)", one_group_unit},
        {"many groups take the least common multiple and greatest common divisor (HASH-091)", many_groups},
        {"a Mamba group that is not aligned turns fine hashing off (HASH-091)", mamba},
        {"scratch groups are left out of the divisor from 0.29 on (HASH-091)", scratch_groups},
        {"an override that does not divide is refused with the release's text (HASH-092)", units_that_do_not_divide},
        {"many groups under context parallelism are refused up to 0.25 (HASH-094)", context_parallelism},
        {"numbers out of range are errors", out_of_range},
        {NULL, NULL}};
    return moon_unit_main("block_sizes", cases, argc, argv);
}
