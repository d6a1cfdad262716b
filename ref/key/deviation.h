/* SPDX-License-Identifier: Apache-2.0 */
/* What real releases do wrong: named, so that a run can tell which of it happened, and a strict profile without it. */
#ifndef MOON_KEY_DEVIATION_H
#define MOON_KEY_DEVIATION_H

#include "ref/key/profile.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ROW(NAME, "edge id", "what the release does"). Each is a row of conformance/deviations.json, which tells more, and is
 * turned right by moon_profile_right. An edge may have several rows. */
#define MOON_DEVIATIONS(ROW)                                                                                           \
    ROW(RANDOM_NONE_HASH, "connector.9.1",                                                                             \
        "without a seed each start draws its own NONE_HASH, so no two engines share")                                  \
    ROW(UNTAGGED_EXTRAS, "connector.9.7",                                                                              \
        "extra keys are untagged and without the LoRA path, so different ones hash alike")                             \
    ROW(EARLIER_ITEMS_FORGOTTEN, "connector.1.6", "hashing that resumes leaves out all multimodal items but the last") \
    ROW(EMBEDDING_MASK_UNREAD, "connector.1.2", "token ids at embedding positions of a mixed prompt are hashed")       \
    ROW(PP_WITHOUT_PCP, "connector.2.1", "the pipeline rank in keys is computed without the PCP size")                 \
    ROW(STRIPED_UNDER_DCP, "connector.9.18",                                                                           \
        "ranks of one DCP group share out chunks that differ, so keys stay unwritten")                                 \
    ROW(MAMBA_SHARED_OUT, "connector.2.4", "ranks with different Mamba states share one key")                          \
    ROW(LOOKUP_EDITS_TEXT, "connector.9.16",                                                                           \
        "a lookup edits the first rank in the text of a key, also inside the model name")                              \
    ROW(OWN_CONTEXT_RANKS, "connector.9.17", "a lookup asks for the PCP and DCP rank of rank 0 alone")                 \
    ROW(HEADS_NOT_ASKED, "connector.6.7", "a lookup asks for min(tp, heads) ranks, not for all that write")            \
    ROW(TEMPLATE_DROPS_EAGLE, "connector.4.3", "with EAGLE and groups of several block sizes nothing is stored")       \
    ROW(FINE_WINDOWS_REFUSED, "connector.4.2", "a fine-grained lookup raises where a window has wider blocks")         \
    ROW(NEGATIVE_SEGMENT, "connector.9.49", "a negative segment size passes the check for more than 0")                \
    ROW(CAPACITY_ONLY_CHECKED, "connector.9.61",                                                                       \
        "a capacity-only consumer, which moves nothing, refuses Mamba groups that are not aligned")                    \
    ROW(MAMBA_LOOKS_BEYOND, "connector.4.5", "with EAGLE a Mamba group may promise more than the other groups have")   \
    ROW(FULL_HIT_CUT, "connector.9.25",                                                                                \
        "a hit of the whole prompt is cut by arithmetic, also where a window has no such chunk")                       \
    ROW(LOST_LOAD_SAVED, "connector.9.27", "a load that another connector won becomes a save of no blocks")            \
    ROW(PREEMPTION_REMEMBERED, "connector.9.69", "a resume is known by a remembered preemption")                       \
    ROW(BLOCKLESS_STEPS_LOST, "connector.9.30",                                                                        \
        "a step without new blocks is not counted, so its blocks are saved late or never")                             \
    ROW(LATE_TABLES, "connector.5.5", "a job reads the tracker's own block table, not the one of its step")            \
    ROW(TABLES_WITHHELD, "connector.5.5", "a save in a step without new blocks raises, since the core told no table")  \
    ROW(NULL_BLOCKS_PUT, "connector.6.5", "a null block is put like any other, a missing one raises IndexError")       \
    ROW(STALE_JOB_RUNS, "connector.9.70",                                                                              \
        "a job of a preempted request runs when the request has queued another one since")                             \
    ROW(RAISED_JOB_KEPT, "connector.2.6", "a save job that raises never ends, so its request keeps its blocks")        \
    ROW(BATCHES_DROPPED, "connector.9.19", "after a failed batch the rest of a load is neither read nor reported")     \
    ROW(EMPTY_LOAD_HANGS, "connector.9.20", "a load that selects no key raises, and its request never ends")           \
    ROW(SHORT_READ_PASSES, "connector.9.45", "a get of fewer bytes than the object has counts as success")             \
    ROW(LOAD_ERRORS_LOGGED, "connector.9.21", "a failed get is only logged, the request goes on as if loaded")         \
    ROW(BLOCKS_OF_GROUPS, "connector.9.22", "failed loads of several groups are told as block ids")                    \
    ROW(REPLY_UNCHECKED, "connector.9.55", "a lookup reply of the wrong length is taken for one large integer")        \
    ROW(LOOKUP_SERVER_STOPS, "connector.9.54", "an exception in a lookup ends the server, later ones get no answer")   \
    ROW(EVENTS_OF_FAILED_PUTS, "connector.6.9", "blocks whose put failed are told as stored")                          \
    ROW(EVENTS_NEVER_COMMON, "connector.6.9", "events of blocks that one of several replicas puts are not published")  \
    ROW(EVENT_IDS_CUT, "connector.6.9", "events of later steps have fewer token ids, or none")                         \
    ROW(EVENT_OF_OTHER_BLOCK, "connector.6.9", "a wide chunk is told by the hash of another block")

#define MOON_DEVIATION_ENUM(name, edge, text) MOON_DEVIATION_##name,
enum moon_deviation { MOON_DEVIATIONS(MOON_DEVIATION_ENUM) MOON_DEVIATION_COUNT };
#undef MOON_DEVIATION_ENUM

/* Which happened, one bit each (MOON_DEVIATION_COUNT is at most 64). Plain data. */
struct moon_deviation_notes {
    uint64_t taken;
};
void moon_deviation_note(struct moon_deviation_notes *notes, enum moon_deviation deviation); /* NULL notes: nothing */
bool moon_deviation_noted(const struct moon_deviation_notes *notes, enum moon_deviation deviation);
const char *moon_deviation_name(enum moon_deviation deviation); /* "BATCHES_DROPPED" */
const char *moon_deviation_edge(enum moon_deviation deviation); /* "connector.9.19" */
const char *moon_deviation_text(enum moon_deviation deviation);

/* Turns right what this deviation gets wrong; a release that does not deviate so stays as it is. Right is what the
 * newest release that changed it does, or a rule of our own where none did (SPEC.md, DEV requirements). `name`,
 * `version` and `minor` stay. */
void moon_profile_right(struct moon_profile *profile, enum moon_deviation deviation);
/* True if the release deviates so. */
bool moon_profile_deviates(const struct moon_profile *profile, enum moon_deviation deviation);
/* A copy of the profile in which nothing deviates: mode strict. */
void moon_profile_strict(const struct moon_profile *profile, struct moon_profile *out);

#ifdef __cplusplus
}
#endif
#endif
