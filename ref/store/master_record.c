/* SPDX-License-Identifier: Apache-2.0 */
/* What the master tells a history about what changes inside it. */
#include "ref/store/master_internal.h"

#include <inttypes.h>
#include <stdio.h>

static void tell(struct moon_master *master, struct moon_record *record, const char *cause) {
    struct moon_recorder *recorder = master->environment->recorder;
    record->kind = MOON_RECORD_STATE;
    record->internal = true;
    if (cause) {
        record->cause = moon_bytes_of(cause);
        record->has |= MOON_RECORD_HAS_CAUSE;
    }
    recorder->record(recorder, record);
}

void moon_master_tell_replica(struct moon_master *master, const char *what, const struct master_object *object,
                              const struct master_replica *replica, const char *cause) {
    if (!master->environment->recorder)
        return;
    const struct master_segment *segment = replica->segment;
    struct moon_record record = {
        .what = what,
        .has = MOON_RECORD_HAS_REPLICA | MOON_RECORD_HAS_EXTENT | MOON_RECORD_HAS_BYTES,
        .replica = replica->id,
        .bytes = replica->size,
        .extent = {segment->endpoint, segment->base + moon_extents_offset_bytes(&segment->extents, replica->region),
                   replica->size},
    };
    if (object) {
        record.has |= MOON_RECORD_HAS_KEY | MOON_RECORD_HAS_TENANT;
        record.key = (struct moon_bytes){object->key, object->key_length};
        record.tenant = moon_bytes_of("default");
    }
    if (object && object->queue != MASTER_PROCESSING) {
        record.has |= MOON_RECORD_HAS_LEASE;
        record.lease_ns = object->lease_ns;
    }
    tell(master, &record, cause);
}

void moon_master_tell_object(struct moon_master *master, const char *what, const struct master_object *object) {
    for (const struct master_replica *r = object->replicas; r; r = r->next)
        moon_master_tell_replica(master, what, object, r, NULL);
}

void moon_master_tell_segment(struct moon_master *master, const char *what, const struct master_segment *segment,
                              const char *cause) {
    if (!master->environment->recorder)
        return;
    struct moon_record record = {
        .what = what,
        .has = MOON_RECORD_HAS_EXTENT,
        .extent = {segment->endpoint, segment->base, segment->size},
    };
    tell(master, &record, cause);
}

void moon_master_tell_client(struct moon_master *master, const char *what, struct moon_uuid client) {
    if (!master->environment->recorder)
        return;
    struct moon_record record = {.what = what};
    char cause[48];
    snprintf(cause, sizeof cause, "client %016" PRIx64 "-%016" PRIx64, client.first, client.second);
    tell(master, &record, cause);
}
