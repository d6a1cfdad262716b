/* SPDX-License-Identifier: Apache-2.0 */
/* Small value types that every layer shares: byte strings, pieces of memory, 128-bit ids, times. */
#ifndef MOON_BASE_BYTES_H
#define MOON_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Nanoseconds: a time of some clock, or a length of time. */
typedef int64_t moon_ns;
#define MOON_NS_NEVER  INT64_MAX
#define MOON_NS_PER_MS ((moon_ns)1000000)
#define MOON_NS_PER_S  ((moon_ns)1000000000)

/* Any bytes, borrowed; data may be NULL when length is 0. Keys, tenants, names. */
struct moon_bytes {
    const char *data;
    size_t length;
};

/* A piece of memory that is read or filled, borrowed. */
struct moon_piece {
    void *data;
    size_t length;
};

/* 128-bit id: client, segment. All zero: none. */
struct moon_uuid {
    uint64_t first, second;
};

static inline struct moon_bytes moon_bytes_of(const char *text) {
    return (struct moon_bytes){text, text ? strlen(text) : 0};
}

static inline bool moon_bytes_equal(struct moon_bytes a, struct moon_bytes b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* Order of byte strings as memcmp has it, a shorter one before what continues it. */
static inline int moon_bytes_compare(struct moon_bytes a, struct moon_bytes b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter > 0 ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static inline bool moon_uuid_equal(struct moon_uuid a, struct moon_uuid b) {
    return a.first == b.first && a.second == b.second;
}

#endif
