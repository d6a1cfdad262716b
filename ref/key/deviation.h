/* SPDX-License-Identifier: Apache-2.0 */
/* What real releases do wrong: named, so that a run can tell which of it happened, and a strict profile without it. */
#ifndef MOON_KEY_DEVIATION_H
#define MOON_KEY_DEVIATION_H

#include "ref/key/profile.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ROW(NAME, "edge id", "what the release does"). Each is a row of conformance/deviations.json, and a flag of the
 * profile that moon_profile_strict turns right. */
#define MOON_DEVIATIONS(ROW)                                                                                           \
    ROW(BATCHES_DROPPED, "connector.9.19", "after a failed batch the rest of a load is neither read nor reported")     \
    ROW(EMPTY_LOAD_HANGS, "connector.9.20", "a load that selects no key raises, and its request never ends")           \
    ROW(PP_WITHOUT_PCP, "connector.2.1", "the pipeline rank in keys is computed without the PCP size")                 \
    ROW(OWN_CONTEXT_RANKS, "connector.9.17", "a lookup asks for the PCP and DCP rank of rank 0 alone")                 \
    ROW(LOST_LOAD_SAVED, "connector.9.27", "a load that another connector won becomes a save of no blocks")            \
    ROW(PREEMPTION_REMEMBERED, "connector.9.69", "a resume is known by a remembered preemption")                       \
    ROW(LOAD_ERRORS_LOGGED, "connector.9.21", "a failed get is only logged, the request goes on as if loaded")         \
    ROW(BLOCKS_OF_GROUPS, "connector.9.22", "failed loads of several groups are told as block ids")                    \
    ROW(SHORT_READ_PASSES, "connector.9.45", "a get of fewer bytes than the object has counts as success")

#define MOON_DEVIATION_ENUM(name, edge, text) MOON_DEVIATION_##name,
enum moon_deviation { MOON_DEVIATIONS(MOON_DEVIATION_ENUM) MOON_DEVIATION_COUNT };
#undef MOON_DEVIATION_ENUM

/* Which happened, one bit each (MOON_DEVIATION_COUNT is at most 64). Plain data. */
struct moon_deviation_notes {
    uint64_t taken;
};
void moon_deviation_note(struct moon_deviation_notes *notes, enum moon_deviation deviation); /* NULL notes: nothing */
bool moon_deviation_noted(const struct moon_deviation_notes *notes, enum moon_deviation deviation);
const char *moon_deviation_edge(enum moon_deviation deviation);
const char *moon_deviation_text(enum moon_deviation deviation);

/* A copy of the profile in which nothing deviates: mode strict. `name` and `version` stay. */
void moon_profile_strict(const struct moon_profile *profile, struct moon_profile *out);

#ifdef __cplusplus
}
#endif
#endif
