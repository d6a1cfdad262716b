/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that a lookup asks the store for, in the order of its one existence call. */
#ifndef MOON_LAYOUT_LOOKUP_H
#define MOON_LAYOUT_LOOKUP_H

#include "ref/key/key_list.h"
#include "ref/layout/ownership.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Walk through the namespaces of a group: all must have a chunk for it to count (LAYOUT-018 to LAYOUT-020). */
struct moon_namespaces {
    const struct moon_profile *profile;
    const struct moon_layout_model *model;
    const struct moon_store_selection *selection;
    size_t group;
    int64_t inner_end, middle_end, next, end; /* counter over pcp, T and pp; pp fastest, or slowest (0.21) */
};
void moon_namespaces_open(struct moon_namespaces *walk, const struct moon_profile *profile,
                          const struct moon_layout_model *model, const struct moon_store_selection *selection,
                          size_t group);
/* The next identity, or false at the end. */
bool moon_namespaces_next(struct moon_namespaces *walk, struct moon_pool_key *key);

/* Walk through what a lookup asks for: group after group its chunks, or in fine-grained mode every hash block
 * (LAYOUT-023, LAYOUT-024). Borrows all arguments. */
struct moon_asked {
    const struct moon_profile *profile;
    const struct moon_layout_model *model;
    int64_t tokens, hash_count;
    bool fine, open;
    size_t next_group;
    struct moon_chunk_walk chunks;
};
/* `tokens` is the lookup's aligned length: a multiple of the hash block in fine-grained mode, else of the scheduler
 * block. Chunks without one of the hash_count hashes are not asked for. */
void moon_asked_open(struct moon_asked *asked, const struct moon_profile *profile,
                     const struct moon_layout_model *model, int64_t tokens, int64_t hash_count);
/* The next chunk and its group, or false at the end. */
bool moon_asked_next(struct moon_asked *asked, size_t *group, struct moon_chunk *chunk);

/* Adds every key of a lookup to an empty list, in the order of its one existence call: group, chunk, namespace; in 0.21
 * namespace, chunk (LAYOUT-021). Number n of the list's hashes is that of the n-th chunk of the walk above. Fails only
 * through list->failed. */
void moon_lookup_keys(const struct moon_profile *profile, const struct moon_layout_model *model,
                      const struct moon_store_selection *selection, const struct moon_hashes *hashes, int64_t tokens,
                      struct moon_key_list *list);

#ifdef __cplusplus
}
#endif
#endif
