/* SPDX-License-Identifier: Apache-2.0 */
/* The first of sorted rows that is not before a wanted one. */
#ifndef MOON_CHECKERS_SEARCH_H
#define MOON_CHECKERS_SEARCH_H

#include <stddef.h>

/* `compare` orders rows as qsort had it when they were sorted. Returns `count` if all rows are before. */
static inline size_t moon_lower_bound(const void *rows, size_t count, size_t row_bytes, const void *wanted,
                                      int (*compare)(const void *, const void *)) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare((const char *)rows + middle * row_bytes, wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
