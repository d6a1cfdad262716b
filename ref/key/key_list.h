/* SPDX-License-Identifier: Apache-2.0 */
/* Many keys of few identities: kept as (identity, hash) pairs, so that a call over thousands of keys copies no text. */
#ifndef MOON_KEY_KEY_LIST_H
#define MOON_KEY_KEY_LIST_H

#include "ref/key/chunks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One key: numbers of its two texts in the list. */
struct moon_key_pair {
    uint32_t identity, hash;
};

/* A list in the order of a call. Owns its memory: moon_key_list_close. Thread rule: one thread at a time.
 *   failed  memory refused; everything after that changed nothing, until the list is cleared or closed */
struct moon_key_list {
    struct moon_memory *memory;
    struct moon_text text; /* identities and hash texts, one after another */
    struct moon_key_span *identities, *hashes;
    size_t identity_count, identity_capacity, hash_count, hash_capacity;
    struct moon_key_pair *pairs;
    size_t count, capacity;
    bool failed;
};
struct moon_key_span {
    size_t offset, length;
};

void moon_key_list_open(struct moon_key_list *list, struct moon_memory *memory);
void moon_key_list_close(struct moon_key_list *list); /* idempotent */
void moon_key_list_clear(struct moon_key_list *list); /* empty; keeps the memory, but a failed list begins anew */
/* Drops keys and hash texts, keeps the identities and their numbers. */
void moon_key_list_clear_keys(struct moon_key_list *list);

/* Adds the text before "@" hash of an identity (KEY-001). Returns its number; the same identity may be added twice. */
uint32_t moon_key_list_identity(struct moon_key_list *list, const struct moon_profile *profile,
                                const struct moon_pool_key *key);
/* The same from its text, as it stands before "@" hash. */
uint32_t moon_key_list_identity_text(struct moon_key_list *list, struct moon_key_text text);
/* Adds the hash text of a chunk: its hashes joined, as hex (KEY-015). Returns its number. */
uint32_t moon_key_list_hash(struct moon_key_list *list, const struct moon_hashes *hashes,
                            const struct moon_chunk *chunk);
/* Adds a key of two numbers that this list gave out. */
void moon_key_list_add(struct moon_key_list *list, uint32_t identity, uint32_t hash);
/* Adds `count` keys of one hash, for the identities from `identity` on. */
void moon_key_list_add_run(struct moon_key_list *list, uint32_t identity, uint32_t count, uint32_t hash);

/* Length of key `index` in bytes, and the key appended to `out`. */
size_t moon_key_list_length(const struct moon_key_list *list, size_t index);
void moon_key_list_write(const struct moon_key_list *list, size_t index, struct moon_text *out);
/* The hash text of key `index`: what follows its last "@". Valid until the next change. */
struct moon_key_text moon_key_list_hash_text(const struct moon_key_list *list, size_t index);

#ifdef __cplusplus
}
#endif
#endif
