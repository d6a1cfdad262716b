/* SPDX-License-Identifier: Apache-2.0 */
/* Times of measurements: the clock, and what is told of many runs. */
#ifndef MOON_CONFORMANCE_BENCH_TIME_H
#define MOON_CONFORMANCE_BENCH_TIME_H

#include <stddef.h>
#include <stdint.h>

enum { MOON_BENCH_RUNS_MAX = 999 };

/* CPU time of this thread: other programs on the machine do not count. */
uint64_t moon_bench_now_ns(void);

/* Median, least and most of some times; each is 1 ns at least, so that it can divide. */
struct moon_bench_spread {
    uint64_t median_ns, low_ns, high_ns;
};
/* Sorts `times`, of which there is one at least. */
struct moon_bench_spread moon_bench_spread_of(uint64_t times[], size_t count);

#endif
