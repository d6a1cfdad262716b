/* SPDX-License-Identifier: Apache-2.0 */
/* Times of measurements: the clock, and what is told of many runs. */
#include "conformance/bench_time.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

uint64_t moon_bench_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare_u64(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint64_t at_least_1(uint64_t ns) {
    return ns > 0 ? ns : 1;
}

struct moon_bench_spread moon_bench_spread_of(uint64_t times[], size_t count) {
    assert(count > 0);
    qsort(times, count, sizeof *times, compare_u64);
    return (struct moon_bench_spread){at_least_1(times[count / 2]), at_least_1(times[0]), at_least_1(times[count - 1])};
}
