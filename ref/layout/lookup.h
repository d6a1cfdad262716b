/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that a lookup asks the store for, in the order of its one existence call. */
#ifndef MOON_LAYOUT_LOOKUP_H
#define MOON_LAYOUT_LOOKUP_H

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
    int64_t inner_end, middle_end, next, end; /* counter over pcp, T and pp, pp fastest */
};
void moon_namespaces_open(struct moon_namespaces *walk, const struct moon_profile *profile,
                          const struct moon_layout_model *model, const struct moon_store_selection *selection,
                          size_t group);
/* The next identity, or false at the end. */
bool moon_namespaces_next(struct moon_namespaces *walk, struct moon_pool_key *key);

/* Gets one key, borrowed for the call. */
typedef void moon_key_receiver(void *context, struct moon_key_text key);

/* Tells `receive` every key of a lookup up to the aligned length.
 *   aligned_tokens  multiple of the hash block in fine-grained mode, else of the scheduler block
 *   hashes          block hashes; chunks without their hash are not asked for
 *   scratch         opened by the caller, cleared here; keys are built in it, so only it allocates
 * Order: group, chunk (or hash block), namespace; in 0.21 pp, T, chunk (LAYOUT-021). Returns 0, MOON_ERR_MEMORY, or
 * MOON_ERR_REFUSED where the release raises (LAYOUT-031). */
int moon_lookup_keys(const struct moon_profile *profile, const struct moon_layout_model *model,
                     const struct moon_store_selection *selection, const struct moon_hashes *hashes,
                     int64_t aligned_tokens, struct moon_text *scratch, moon_key_receiver *receive, void *context,
                     struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
