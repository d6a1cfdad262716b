/* SPDX-License-Identifier: Apache-2.0 */
/* The tier log: from which tier each key of a get came, and the line that a release writes about it. */
#ifndef MOON_CONNECTOR_TIER_LOG_H
#define MOON_CONNECTOR_TIER_LOG_H

#include "ref/base/text.h"
#include "ref/key/pool_key.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the first replica of a key is: the values that answer a call of kind MOON_CALL_REPLICAS. */
enum moon_replica {
    MOON_REPLICA_NONE, /* the key has none, or is not in the answer */
    MOON_REPLICA_MEMORY,
    MOON_REPLICA_DISK,
    MOON_REPLICA_LOCAL_DISK,
    MOON_REPLICA_OTHER,
};
enum moon_tier { MOON_TIER_MEMORY, MOON_TIER_DISK, MOON_TIER_UNKNOWN, MOON_TIER_COUNT };

/* Tier of a first replica (LOAD-030); any number that is none of the above is unknown. */
enum moon_tier moon_tier_of(int64_t replica);

/* Counts of one get. Plain data. */
struct moon_tier_summary {
    uint64_t keys[MOON_TIER_COUNT], bytes[MOON_TIER_COUNT];
    uint64_t batch_keys, success_keys, failed_keys;
};
/* Adds a key with the result of its get. Bytes beyond 64 bits stay at the largest number. */
void moon_tier_summary_add(struct moon_tier_summary *summary, enum moon_tier tier, int64_t result);

/* Appends the line without its end (LOAD-031). `request` is the request id. Fails only through out->failed. */
void moon_tier_summary_write(const struct moon_tier_summary *summary, struct moon_key_text request,
                             struct moon_text *out);
/* Appends the warning about a question for replicas that raised `error` (LOAD-030). */
void moon_tier_warning_write(uint64_t batch_keys, struct moon_key_text error, struct moon_text *out);

/* True if VLLM_MOONCAKE_STORE_TIER_LOG has a value that turns the log on; NULL: not set. */
bool moon_tier_log_on(const char *value);

#ifdef __cplusplus
}
#endif
#endif
