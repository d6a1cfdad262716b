/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed hash table that grows one bucket at a time: no insert is slow, and who does not know the secret cannot make
 * keys that collide. */
#ifndef MOON_BASE_TABLE_H
#define MOON_BASE_TABLE_H

#include "ref/base/bytes.h"
#include "ref/base/memory.h"
#include "ref/base/random.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Embedded in what is kept. */
struct moon_table_node {
    struct moon_table_node *next;
    uint64_t hash;
};

/* Linear hashing over a directory of segments. The table owns its buckets, not the nodes. Its order depends on the
 * secret: nothing that is decided or shown may follow it (keep a list beside it). */
struct moon_table {
    struct moon_memory *memory;
    uint64_t secret[2];
    struct moon_table_node ***segments;
    size_t segment_capacity; /* of the directory */
    size_t buckets, count;
    uint64_t mask; /* of the smaller of the two sizes in use */
};

void moon_table_open(struct moon_table *table, struct moon_memory *memory, struct moon_random *random);
void moon_table_close(struct moon_table *table); /* idempotent; nodes are forgotten */

/* SipHash-1-3 of the parts in order, with the table's secret; a part's length is hashed with it. */
uint64_t moon_table_hash(const struct moon_table *table, const struct moon_bytes parts[], size_t count);

/* Walks the nodes with this hash: the first, then the next after `node`; NULL at the end. The caller compares keys. */
struct moon_table_node *moon_table_find(const struct moon_table *table, uint64_t hash);
struct moon_table_node *moon_table_find_next(const struct moon_table_node *node);

/* Adds a node (equal hashes may be there already). Returns 0, or MOON_ERR_MEMORY: nothing changed. O(1), no pause
 * beyond growing a directory of count / 512 pointers. */
int moon_table_add(struct moon_table *table, struct moon_table_node *node, uint64_t hash);
/* Takes out a node that is in. Buckets shrink as they grew. */
void moon_table_remove(struct moon_table *table, struct moon_table_node *node);

#ifdef __cplusplus
}
#endif
#endif
