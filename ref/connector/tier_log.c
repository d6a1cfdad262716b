/* SPDX-License-Identifier: Apache-2.0 */
/* Classification of replicas, and the texts of the tier log. */
#include "ref/connector/tier_log.h"

#include <inttypes.h>
#include <strings.h>

enum moon_tier moon_tier_of(int64_t replica) {
    switch (replica) {
    case MOON_REPLICA_MEMORY:
        return MOON_TIER_MEMORY;
    case MOON_REPLICA_DISK:
    case MOON_REPLICA_LOCAL_DISK:
        return MOON_TIER_DISK;
    default:
        return MOON_TIER_UNKNOWN;
    }
}

void moon_tier_summary_add(struct moon_tier_summary *summary, enum moon_tier tier, int64_t result) {
    summary->batch_keys++;
    summary->keys[tier]++;
    if (result < 0) {
        summary->failed_keys++;
        return;
    }
    summary->success_keys++;
    if (__builtin_add_overflow(summary->bytes[tier], (uint64_t)result, &summary->bytes[tier]))
        summary->bytes[tier] = UINT64_MAX;
}

void moon_tier_summary_write(const struct moon_tier_summary *summary, struct moon_key_text request,
                             struct moon_text *out) {
    moon_text_string(out, "Mooncake load tier summary: req_id=");
    moon_text_bytes(out, request.bytes, request.length);
    moon_text_format(out,
                     " batch_keys=%" PRIu64 " memory_keys=%" PRIu64 " disk_keys=%" PRIu64 " unknown_keys=%" PRIu64
                     " success_keys=%" PRIu64 " failed_keys=%" PRIu64,
                     summary->batch_keys, summary->keys[MOON_TIER_MEMORY], summary->keys[MOON_TIER_DISK],
                     summary->keys[MOON_TIER_UNKNOWN], summary->success_keys, summary->failed_keys);
    moon_text_format(out, " bytes_by_tier={'memory': %" PRIu64 ", 'disk': %" PRIu64 ", 'unknown': %" PRIu64 "}",
                     summary->bytes[MOON_TIER_MEMORY], summary->bytes[MOON_TIER_DISK],
                     summary->bytes[MOON_TIER_UNKNOWN]);
}

void moon_tier_warning_write(uint64_t batch_keys, struct moon_key_text error, struct moon_text *out) {
    moon_text_format(
        out, "Failed to get Mooncake replica descriptors for tier logging (batch_keys=%" PRIu64 ", error=", batch_keys);
    moon_text_bytes(out, error.bytes, error.length);
    moon_text_string(out, "); marking tiers unknown");
}

bool moon_tier_log_on(const char *value) {
    return value && (strcasecmp(value, "1") == 0 || strcasecmp(value, "true") == 0);
}
