/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the tier log: tiers, counts and texts. */
#include "ref/connector/tier_log.h"

#include "ref/base/unit.h"

static void the_first_replica_decides_the_tier(void) {
    MOON_CHECK_INT(moon_tier_of(MOON_REPLICA_MEMORY), MOON_TIER_MEMORY);
    MOON_CHECK_INT(moon_tier_of(MOON_REPLICA_DISK), MOON_TIER_DISK);
    MOON_CHECK_INT(moon_tier_of(MOON_REPLICA_LOCAL_DISK), MOON_TIER_DISK);
    MOON_CHECK_INT(moon_tier_of(MOON_REPLICA_NONE), MOON_TIER_UNKNOWN);
    MOON_CHECK_INT(moon_tier_of(MOON_REPLICA_OTHER), MOON_TIER_UNKNOWN);
    MOON_CHECK_INT(moon_tier_of(-1), MOON_TIER_UNKNOWN);
    MOON_CHECK_INT(moon_tier_of(INT64_MAX), MOON_TIER_UNKNOWN);
}

static void the_line_counts_keys_and_bytes_by_tier(void) {
    struct moon_text out;
    struct moon_tier_summary summary = {0};
    moon_text_open(&out, moon_memory_heap());
    moon_tier_summary_add(&summary, MOON_TIER_MEMORY, 1024);
    moon_tier_summary_add(&summary, MOON_TIER_MEMORY, 0);
    moon_tier_summary_add(&summary, MOON_TIER_DISK, 7);
    moon_tier_summary_add(&summary, MOON_TIER_DISK, -704);
    moon_tier_summary_add(&summary, MOON_TIER_UNKNOWN, 512);
    moon_tier_summary_write(&summary, moon_key_text("cmpl-1"), &out);
    MOON_CHECK_TEXT(moon_text_value(&out),
                    "Mooncake load tier summary: req_id=cmpl-1 batch_keys=5 memory_keys=2 disk_keys=2 unknown_keys=1 "
                    "success_keys=4 failed_keys=1 bytes_by_tier={'memory': 1024, 'disk': 7, 'unknown': 512}");
    moon_text_close(&out);
}

static void bytes_beyond_64_bits_stay_at_the_largest_number(void) {
    struct moon_tier_summary summary = {0};
    for (int i = 0; i < 3; i++)
        moon_tier_summary_add(&summary, MOON_TIER_DISK, INT64_MAX);
    CU_ASSERT(summary.bytes[MOON_TIER_DISK] == UINT64_MAX);
}

static void a_question_that_raises_is_a_warning(void) {
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_tier_warning_write(3, moon_key_text("store unreachable"), &out);
    MOON_CHECK_TEXT(moon_text_value(&out),
                    "Failed to get Mooncake replica descriptors for tier logging (batch_keys=3, error=store "
                    "unreachable); marking tiers unknown");
    moon_text_close(&out);
}

static void one_and_true_turn_the_log_on(void) {
    static const char *const on[] = {"1", "true", "TRUE", "True"}, *const off[] = {"", "0", "yes", "1 ", "False"};
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++)
        CU_ASSERT(moon_tier_log_on(on[i]));
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++)
        CU_ASSERT(!moon_tier_log_on(off[i]));
    CU_ASSERT(!moon_tier_log_on(NULL));
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the first replica decides the tier", the_first_replica_decides_the_tier},
        {"the line counts keys and bytes by tier", the_line_counts_keys_and_bytes_by_tier},
        {"bytes beyond 64 bits stay at the largest number", bytes_beyond_64_bits_stay_at_the_largest_number},
        {"a question that raises is a warning", a_question_that_raises_is_a_warning},
        {"1 and true turn the log on", one_and_true_turn_the_log_on},
        {NULL, NULL},
    };
    return moon_unit_main("tier log", cases, argc, argv);
}
