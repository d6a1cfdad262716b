/* SPDX-License-Identifier: Apache-2.0 */
/* Linear hashing (Litwin) over segments of buckets, keyed by SipHash-1-3 (Aumasson and Bernstein), from their published
 * descriptions. */
#include "ref/base/table.h"

#include "ref/base/error.h"

#include <assert.h>

enum {
    SEGMENT_BUCKETS = 512,
    DIRECTORY_FIRST = 4,
};

/* ---- SipHash-1-3 */

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t value, unsigned by) {
    return value << by | value >> (64 - by);
}

static inline void sip_round(struct sip *s) {
    s->v0 += s->v1;
    s->v1 = rotate_left(s->v1, 13) ^ s->v0;
    s->v0 = rotate_left(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate_left(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate_left(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate_left(s->v1, 17) ^ s->v2;
    s->v2 = rotate_left(s->v2, 32);
}

static inline void sip_word(struct sip *s, uint64_t word) {
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* Up to eight bytes as a little-endian word, the missing ones 0. */
static inline uint64_t word_of(const char *bytes, size_t length) {
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++)
        word |= (uint64_t)(uint8_t)bytes[i] << (8 * i);
    return word;
}

/* The message is, for each part, its length in eight bytes and its bytes, filled up with zeros to a whole word. */
uint64_t moon_table_hash(const struct moon_table *table, const struct moon_bytes parts[], size_t count) {
    uint64_t k0 = table->secret[0], k1 = table->secret[1], words = 0;
    struct sip s = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                    k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
    for (size_t i = 0; i < count; i++) {
        size_t length = parts[i].length;
        sip_word(&s, length);
        words += 1 + length / 8 + (length % 8 > 0);
        for (size_t at = 0; at < length; at += 8)
            sip_word(&s, word_of(parts[i].data + at, length - at < 8 ? length - at : 8));
    }
    sip_word(&s, words * 8 << 56); /* the message's length mod 256, as the last byte */
    s.v2 ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* ---- buckets */

static struct moon_table_node **bucket(const struct moon_table *table, uint64_t index) {
    return &table->segments[index / SEGMENT_BUCKETS][index % SEGMENT_BUCKETS];
}

/* Buckets below `buckets - (mask + 1)` are split already: their nodes are told apart by one bit more. */
static struct moon_table_node **bucket_of(const struct moon_table *table, uint64_t hash) {
    uint64_t index = hash & (2 * table->mask + 1);
    return bucket(table, index < table->buckets ? index : hash & table->mask);
}

void moon_table_open(struct moon_table *table, struct moon_memory *memory, struct moon_random *random) {
    *table = (struct moon_table){.memory = memory};
    table->secret[0] = moon_random_u64(random);
    table->secret[1] = moon_random_u64(random);
}

static void free_segment(struct moon_table *table, size_t index) {
    table->memory->resize(table->memory, table->segments[index], SEGMENT_BUCKETS * sizeof **table->segments, 0);
    table->segments[index] = NULL;
}

void moon_table_close(struct moon_table *table) {
    for (size_t i = 0; i * SEGMENT_BUCKETS < table->buckets; i++)
        free_segment(table, i);
    if (table->segments)
        table->memory->resize(table->memory, table->segments, table->segment_capacity * sizeof *table->segments, 0);
    table->segments = NULL;
    table->segment_capacity = table->buckets = table->count = 0;
    table->mask = 0;
}

/* A segment for bucket number `buckets`, the first of it. */
static int add_segment(struct moon_table *table) {
    size_t index = table->buckets / SEGMENT_BUCKETS, bytes = SEGMENT_BUCKETS * sizeof **table->segments;
    struct moon_table_node ***segments = moon_memory_grow(table->memory, table->segments, &table->segment_capacity,
                                                          index + 1, sizeof *segments, DIRECTORY_FIRST);
    if (!segments)
        return MOON_ERR_MEMORY;
    table->segments = segments;
    segments[index] = table->memory->resize(table->memory, NULL, 0, bytes);
    if (!segments[index])
        return MOON_ERR_MEMORY;
    memset(segments[index], 0, bytes);
    return 0;
}

/* One bucket more: the nodes of the bucket that is split next are divided between it and the new one. */
static int grow(struct moon_table *table) {
    if (table->buckets % SEGMENT_BUCKETS == 0) {
        int status = add_segment(table);
        if (status != 0)
            return status;
    }
    if (table->buckets == 0) {
        table->buckets = 1;
        return 0;
    }
    uint64_t size = table->mask + 1;
    struct moon_table_node **old = bucket(table, table->buckets - size), **fresh = bucket(table, table->buckets);
    struct moon_table_node *node = *old, *next;
    for (*old = NULL; node; node = next) {
        struct moon_table_node **to = node->hash & size ? fresh : old;
        next = node->next;
        node->next = *to;
        *to = node;
    }
    table->buckets++;
    if (table->buckets == 2 * size)
        table->mask = 2 * size - 1;
    return 0;
}

/* One bucket less: the last one's nodes go back to the bucket that they came from. */
static void shrink(struct moon_table *table) {
    if (table->buckets == table->mask + 1)
        table->mask /= 2;
    table->buckets--;
    struct moon_table_node **last = bucket(table, table->buckets),
                           **to = bucket(table, table->buckets - (table->mask + 1));
    while (*to)
        to = &(*to)->next;
    *to = *last;
    *last = NULL;
    if (table->buckets % SEGMENT_BUCKETS == 0)
        free_segment(table, table->buckets / SEGMENT_BUCKETS);
}

struct moon_table_node *moon_table_find_next(const struct moon_table_node *node) {
    struct moon_table_node *next = node->next;
    while (next && next->hash != node->hash)
        next = next->next;
    return next;
}

struct moon_table_node *moon_table_find(const struct moon_table *table, uint64_t hash) {
    if (table->count == 0)
        return NULL;
    struct moon_table_node *node = *bucket_of(table, hash);
    while (node && node->hash != hash)
        node = node->next;
    return node;
}

int moon_table_add(struct moon_table *table, struct moon_table_node *node, uint64_t hash) {
    if (table->count >= table->buckets) {
        int status = grow(table);
        if (status != 0)
            return status;
    }
    struct moon_table_node **to = bucket_of(table, hash);
    *node = (struct moon_table_node){.next = *to, .hash = hash};
    *to = node;
    table->count++;
    return 0;
}

void moon_table_remove(struct moon_table *table, struct moon_table_node *node) {
    struct moon_table_node **at = bucket_of(table, node->hash);
    while (*at != node) {
        assert(*at); /* it is in */
        at = &(*at)->next;
    }
    *at = node->next;
    node->next = NULL;
    table->count--;
    /* Half as full as when they grew, so that adding and removing one node by turns costs nothing. */
    for (int i = 0; i < 2 && table->buckets > 1 && table->buckets > 2 * table->count; i++)
        shrink(table);
}
