/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reports: sets, and what a failed read is told as in each release. */
#include "ref/connector/load_failure.h"

#include "ref/base/unit.h"

static void numbers_come_out_ascending_and_once(void) {
    static const uint64_t in[] = {5, 3, 9, 3, 5, 0, UINT64_MAX, 7, 9, 9}, expected[] = {0, 3, 5, 7, 9, UINT64_MAX};
    struct moon_ascending numbers;
    uint64_t number;
    moon_ascending_open(&numbers, moon_memory_heap());
    CU_ASSERT(!moon_ascending_take(&numbers, &number));
    MOON_CHECK_INT(moon_ascending_reserve(&numbers, sizeof in / sizeof in[0]), 0);
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
        moon_ascending_add(&numbers, in[i]);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CU_ASSERT(moon_ascending_take(&numbers, &number));
        CU_ASSERT(number == expected[i]);
    }
    CU_ASSERT(!moon_ascending_take(&numbers, &number));
    moon_ascending_close(&numbers);
}

/* Every order of four numbers with a repetition. */
static void any_order_of_adding_is_the_same(void) {
    for (unsigned code = 0; code < 256; code++) {
        struct moon_ascending numbers;
        uint64_t number, before = 0;
        unsigned seen = 0, expected = 0;
        moon_ascending_open(&numbers, moon_memory_heap());
        MOON_CHECK_INT(moon_ascending_reserve(&numbers, 4), 0);
        for (unsigned i = 0; i < 4; i++) {
            moon_ascending_add(&numbers, 1 + (code >> (2 * i)) % 4);
            expected |= 1u << (code >> (2 * i)) % 4;
        }
        while (moon_ascending_take(&numbers, &number)) {
            CU_ASSERT(number > before);
            before = number;
            seen |= 1u << (number - 1);
        }
        MOON_CHECK_INT(seen, expected);
        moon_ascending_close(&numbers);
    }
}

static void room_that_cannot_be_is_refused(void) {
    struct moon_memory_failing failing;
    struct moon_ascending numbers;
    moon_memory_failing_init(&failing, moon_memory_heap(), 1);
    moon_ascending_open(&numbers, &failing.memory);
    MOON_CHECK_INT(moon_ascending_reserve(&numbers, 1), MOON_ERR_MEMORY);
    moon_ascending_close(&numbers);
    moon_ascending_open(&numbers, moon_memory_heap());
    MOON_CHECK_INT(moon_ascending_reserve(&numbers, SIZE_MAX), MOON_ERR_MEMORY);
    MOON_CHECK_INT(moon_ascending_reserve(&numbers, SIZE_MAX / 8), MOON_ERR_MEMORY);
    MOON_CHECK_INT(moon_ascending_reserve(&numbers, 1), 0);
    moon_ascending_add(&numbers, 1);
    MOON_CHECK_INT(moon_ascending_reserve(&numbers, SIZE_MAX), MOON_ERR_MEMORY);
    moon_ascending_close(&numbers);
}

/* What is reported of block 7 of request 3, as "blocks requests", and the deviation that is noted (-1: none). */
static void check_report(const struct moon_profile *profile, size_t engine_groups, const char *expected, int noted) {
    struct moon_deviation_notes notes = {0};
    const struct moon_connector connector = {.profile = profile, .notes = &notes};
    struct moon_load_failures failures;
    char seen[64] = "";
    uint64_t number;
    moon_load_failures_open(&failures, &connector, engine_groups, moon_memory_heap());
    MOON_CHECK_INT(moon_load_failures_reserve(&failures, 1), 0);
    moon_load_failures_add(&failures, 3, 7);
    while (moon_ascending_take(&failures.blocks, &number))
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "block %d", (int)number);
    while (moon_ascending_take(&failures.requests, &number))
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "request %d", (int)number);
    MOON_CHECK_TEXT(seen, expected);
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
        MOON_CHECK_INT(moon_deviation_noted(&notes, (enum moon_deviation)i), i == noted);
    moon_load_failures_close(&failures);
}

static void releases_tell_failures_each_in_its_way(void) {
    check_report(moon_profile_find("0.21", NULL), 1, "", MOON_DEVIATION_LOAD_ERRORS_LOGGED);
    check_report(moon_profile_find("0.22", NULL), 1, "block 7", -1);
    check_report(moon_profile_find("0.22", NULL), 2, "block 7", MOON_DEVIATION_BLOCKS_OF_GROUPS);
    check_report(moon_profile_find("0.30", NULL), 3, "block 7", MOON_DEVIATION_BLOCKS_OF_GROUPS);
    check_report(moon_profile_find("0.31", NULL), 1, "block 7", -1);
    check_report(moon_profile_find("0.33", NULL), 2, "request 3", -1);
}

static void strict_mode_tells_all_releases_failures(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count; i++) {
        struct moon_profile strict;
        moon_profile_strict(&all[i], &strict);
        check_report(&strict, 1, "block 7", -1);
        check_report(&strict, 2, "request 3", -1);
    }
}

static void a_short_read_passes_and_strict_mode_fails_it(void) {
    struct moon_deviation_notes notes = {0};
    struct moon_connector connector = {.profile = moon_profile_newest(), .notes = &notes};
    CU_ASSERT(moon_load_failed(&connector, -1, 10));
    CU_ASSERT(moon_load_failed(&connector, INT64_MIN, 10));
    CU_ASSERT(!moon_load_failed(&connector, 10, 10));
    CU_ASSERT(!moon_load_failed(&connector, 11, 10));
    CU_ASSERT(!moon_deviation_noted(&notes, MOON_DEVIATION_SHORT_READ_PASSES));
    CU_ASSERT(!moon_load_failed(&connector, 9, 10));
    CU_ASSERT(moon_deviation_noted(&notes, MOON_DEVIATION_SHORT_READ_PASSES));
    struct moon_profile strict;
    moon_profile_strict(connector.profile, &strict);
    connector = (struct moon_connector){.profile = &strict};
    CU_ASSERT(moon_load_failed(&connector, 9, 10));
    CU_ASSERT(moon_load_failed(&connector, 0, 1));
    CU_ASSERT(!moon_load_failed(&connector, 10, 10));
    CU_ASSERT(!moon_load_failed(&connector, 0, 0));
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"numbers come out ascending and once", numbers_come_out_ascending_and_once},
        {"any order of adding is the same", any_order_of_adding_is_the_same},
        {"room that cannot be is refused", room_that_cannot_be_is_refused},
        {"releases tell failures each in its way", releases_tell_failures_each_in_its_way},
        {"strict mode tells all releases' failures", strict_mode_tells_all_releases_failures},
        {"a short read passes, and strict mode fails it", a_short_read_passes_and_strict_mode_fails_it},
        {NULL, NULL},
    };
    return moon_unit_main("load failures", cases, argc, argv);
}
