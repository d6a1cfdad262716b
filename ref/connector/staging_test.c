/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of staging costs and batches. */
#include "ref/connector/staging.h"

#include "ref/base/unit.h"

enum { PAGE = 4096, KEYS_MAX = 8 };

static uint64_t cost(uint64_t bytes) {
    const struct moon_buffer buffer = {.size_bytes = bytes};
    return moon_staging_cost_bytes(&(struct moon_staging_keys){&buffer, 1, 1}, 0);
}

static void a_key_costs_whole_pages_and_two_more(void) {
    static const uint64_t rows[][2] = {{0, 8192},
                                       {1, 12288},
                                       {4095, 12288},
                                       {4096, 12288},
                                       {4097, 16384},
                                       {524288, 532480},
                                       {1342169088, 1342177280},
                                       {1342169089, 1342181376}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        MOON_CHECK_INT(cost(rows[i][0]), rows[i][1]);
}

static void a_cost_beyond_64_bits_is_the_largest_number(void) {
    CU_ASSERT(cost(UINT64_MAX) == UINT64_MAX);
    CU_ASSERT(cost(UINT64_MAX - 12288) < UINT64_MAX);
    const struct moon_buffer buffers[] = {{.size_bytes = UINT64_MAX - 1}, {.size_bytes = 2}};
    const struct moon_staging_keys keys = {buffers, 2, 1};
    CU_ASSERT(moon_staging_data_bytes(&keys, 0) == UINT64_MAX);
}

static void buffers_of_a_key_are_summed_before_they_are_rounded(void) {
    const struct moon_buffer buffers[] = {{.size_bytes = 7}, {.size_bytes = 100}, {.size_bytes = 3996}};
    MOON_CHECK_INT(moon_staging_cost_bytes(&(struct moon_staging_keys){buffers, 2, 1}, 0), 12288);
    MOON_CHECK_INT(moon_staging_data_bytes(&(struct moon_staging_keys){buffers, 3, 1}, 0), 4103);
    MOON_CHECK_INT(moon_staging_cost_bytes(&(struct moon_staging_keys){buffers, 3, 1}, 0), 16384);
    MOON_CHECK_INT(moon_staging_data_bytes(&(struct moon_staging_keys){buffers, 1, 3}, 1), 100);
}

/* Batches of keys that cost so many pages, with 10 usable and 12 raw, as "2 1 1". */
static void check_batches(const uint64_t *pages, size_t count, const char *expected) {
    const struct moon_staging staging = {10 * PAGE, 12 * PAGE};
    struct moon_buffer buffers[KEYS_MAX];
    char seen[64] = "";
    for (size_t i = 0; i < count; i++)
        buffers[i] = (struct moon_buffer){.size_bytes = (pages[i] - 2) * PAGE};
    const struct moon_staging_keys keys = {buffers, 1, count};
    if (moon_staging_whole(&staging, &keys))
        snprintf(seen, sizeof seen, "whole");
    else if (moon_staging_oversize(&staging, &keys) < count)
        snprintf(seen, sizeof seen, "refused at %zu", moon_staging_oversize(&staging, &keys));
    else
        for (size_t first = 0; first < count; first += moon_staging_batch(&staging, &keys, first))
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%zu ",
                     moon_staging_batch(&staging, &keys, first));
    MOON_CHECK_TEXT(seen, expected);
}

#define BATCHES(expected, ...)                                                                                         \
    check_batches((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), expected)

static void a_batch_takes_keys_while_they_fit(void) {
    BATCHES("2 1 1 2 ", 4, 4, 4, 9, 3, 7);
    BATCHES("2 1 ", 5, 5, 3);
    BATCHES("whole", 5, 5);
    BATCHES("1 1 ", 5, 6);
    BATCHES("whole", 10);
}

static void a_key_above_the_usable_bytes_is_alone(void) {
    BATCHES("1 1 1 ", 4, 11, 4);
    BATCHES("1 1 1 2 ", 11, 12, 11, 3, 3);
    BATCHES("1 ", 11);
}

static void a_key_above_the_raw_bytes_refuses_the_load(void) {
    BATCHES("refused at 1", 4, 13, 4);
    BATCHES("refused at 0", 13);
}

static void nothing_fits_whole(void) {
    const struct moon_staging staging = {1, 1};
    CU_ASSERT(moon_staging_whole(&staging, &(struct moon_staging_keys){NULL, 1, 0}));
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a key costs whole pages and two more", a_key_costs_whole_pages_and_two_more},
        {"a cost beyond 64 bits is the largest number", a_cost_beyond_64_bits_is_the_largest_number},
        {"buffers of a key are summed before they are rounded", buffers_of_a_key_are_summed_before_they_are_rounded},
        {"a batch takes keys while they fit", a_batch_takes_keys_while_they_fit},
        {"a key above the usable bytes is alone", a_key_above_the_usable_bytes_is_alone},
        {"a key above the raw bytes refuses the load", a_key_above_the_raw_bytes_refuses_the_load},
        {"no keys fit whole", nothing_fits_whole},
        {NULL, NULL},
    };
    return moon_unit_main("staging", cases, argc, argv);
}
