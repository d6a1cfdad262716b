/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the measurements: each subject is measured, in every release that has it, and refused memory is told. */
#include "conformance/bench_connector.h"

#include "ref/base/unit.h"

static void a_spread_is_median_least_and_most(void) {
    uint64_t times[] = {5, 1, 0, 9, 3};
    const struct moon_bench_spread spread = moon_bench_spread_of(times, 5);
    MOON_CHECK_INT(spread.median_ns, 3);
    MOON_CHECK_INT(spread.low_ns, 1); /* never 0 */
    MOON_CHECK_INT(spread.high_ns, 9);
}

static void every_subject_is_measured(void) {
    static const char *const names[] = {"step.plain",  "step.block", "step.save", "lookup",
                                        "lookup.text", "save",       "load",      "segments"};
    struct moon_bench_row rows[MOON_BENCH_SUBJECTS];
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_bench_connector(moon_profile_newest(), 1, moon_memory_heap(), rows, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    for (int i = 0; i < MOON_BENCH_SUBJECTS; i++) {
        MOON_CHECK_INT(rows[i].subject, i);
        MOON_CHECK_TEXT(moon_bench_subject_name(rows[i].subject), names[i]);
        CU_ASSERT(strlen(moon_bench_subject_text(rows[i].subject)) > 20);
        CU_ASSERT(rows[i].units > 0 && rows[i].bytes > 0 && rows[i].time.median_ns > 0 && rows[i].floor.median_ns > 0);
    }
    MOON_CHECK_INT(rows[MOON_BENCH_LOOKUP].units, 65536);
    MOON_CHECK_INT(rows[MOON_BENCH_SEGMENTS].units, 65536);
}

static void refused_memory_is_told(void) {
    for (uint64_t at = 1; at < 40; at++) {
        struct moon_memory_failing failing;
        struct moon_bench_row rows[MOON_BENCH_SUBJECTS];
        struct moon_error error = {0};
        moon_memory_failing_init(&failing, moon_memory_heap(), at * at);
        int status = moon_bench_connector(moon_profile_newest(), 1, &failing.memory, rows, &error);
        MOON_CHECK_INT(failing.held_bytes, 0);
        MOON_CHECK_INT(status, failing.requests < at * at ? 0 : MOON_ERR_MEMORY);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a spread is median, least and most", a_spread_is_median_least_and_most},
        {"every subject is measured", every_subject_is_measured},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL}};
    return moon_unit_main("conformance/bench_connector", cases, argc, argv);
}
