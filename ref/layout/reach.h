/* SPDX-License-Identifier: Apache-2.0 */
/* Which chunks of a group are worth storing and asking for: those that a later hit could load. */
#ifndef MOON_LAYOUT_REACH_H
#define MOON_LAYOUT_REACH_H

#include "ref/layout/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* True if a chunk of the group is stored (LAYOUT-025, LAYOUT-026).
 *   chunk              number from token 0
 *   prefill_end_tokens length of the prefill: prompt, or prompt and replayed output; 1 or more */
bool moon_reach_stored(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                       int64_t chunk, int64_t prefill_end_tokens);
/* True if a lookup asks for the chunk (LAYOUT-023); not for fine-grained lookups, which ask for every hash block. */
bool moon_reach_asked(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group,
                      int64_t chunk);
/* True if hits end at hash blocks instead of scheduler blocks (LAYOUT-024). */
bool moon_fine_grained(const struct moon_profile *profile, const struct moon_layout_model *model);
/* Returns 0, or MOON_ERR_REFUSED (AssertionError) if a fine-grained lookup raises, because a sliding window has blocks
 * wider than the hash block (LAYOUT-031). */
int moon_fine_check(const struct moon_profile *profile, const struct moon_layout_model *model,
                    struct moon_error *error);
/* Chunk of a chunked local group in which the chunk of attention begins that holds token `tokens`, 0 or more. */
int64_t moon_local_start(const struct moon_layout_group *group, int64_t tokens);

#ifdef __cplusplus
}
#endif
#endif
