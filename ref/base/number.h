/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller and the larger of two whole numbers. */
#ifndef MOON_BASE_NUMBER_H
#define MOON_BASE_NUMBER_H

#include <stdint.h>

static inline int64_t moon_smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t moon_larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
