/* SPDX-License-Identifier: Apache-2.0 */
/* Test tool: a master alone with a clock that stands still, short calls with numbers for clients and segments, and a
 * recorder that watches over the memory of objects. */
#ifndef MOON_STORE_MASTER_RIG_INTERNAL_H
#define MOON_STORE_MASTER_RIG_INTERNAL_H

#include "ref/base/unit.h"
#include "ref/store/master_internal.h"

#include <stdio.h>

#define MS  MOON_NS_PER_MS
#define S   MOON_NS_PER_S
#define KiB ((uint64_t)1024)
#define MiB ((uint64_t)1024 * 1024)

enum { RIG_KEPT = 64, RIG_EXTENTS = 4096 };

/* A record that was kept: texts as they were. */
struct rig_record {
    char what[16], key[64], endpoint[64], cause[64];
    uint64_t offset, length;
    moon_ns lease_ns;
    unsigned has;
};

/* Memory that a lease or a writer has: by endpoint, until when. writer: until its end is told. */
struct rig_extent {
    char endpoint[64];
    uint64_t offset, length;
    moon_ns until_ns;
};

struct rig {
    struct moon_recorder recorder; /* first member */
    struct moon_memory_failing memory;
    struct moon_environment environment;
    struct moon_master *master;
    struct rig_record kept[RIG_KEPT]; /* the last ones, round */
    size_t records;
    struct rig_extent extents[RIG_EXTENTS];
    size_t extent_count;
    moon_ns revoke_ns, release_ns; /* how long a writer that did not end may write */
    struct moon_replica_list list;
};

/* The rule itself, from records alone: memory that is given to a put overlaps none that is read under a lease, and
 * none that a writer may still write. */
static inline void rig_check_reuse(struct rig *rig, const struct rig_record *r) {
    moon_ns now_ns = rig->environment.now_ns;
    size_t kept = 0;
    for (size_t i = 0; i < rig->extent_count; i++) {
        struct rig_extent *e = &rig->extents[i];
        if (e->until_ns <= now_ns)
            continue;
        bool apart = e->offset + e->length <= r->offset || r->offset + r->length <= e->offset ||
                     strcmp(e->endpoint, r->endpoint) != 0;
        if (!apart)
            fprintf(stderr, "reuse: %s at %s %llu gets memory in use until %lld, now %lld\n", r->key, r->endpoint,
                    (unsigned long long)r->offset, (long long)e->until_ns, (long long)now_ns);
        CU_ASSERT(apart);
        rig->extents[kept++] = *e;
    }
    rig->extent_count = kept;
}

static inline void rig_use(struct rig *rig, const struct rig_record *r, moon_ns until_ns) {
    for (size_t i = 0; i < rig->extent_count; i++) {
        struct rig_extent *e = &rig->extents[i];
        if (e->offset == r->offset && e->length == r->length && !strcmp(e->endpoint, r->endpoint)) {
            e->until_ns = until_ns;
            return;
        }
    }
    struct rig_extent *e = &rig->extents[rig->extent_count++];
    assert(rig->extent_count <= RIG_EXTENTS);
    *e = (struct rig_extent){.offset = r->offset, .length = r->length, .until_ns = until_ns};
    memcpy(e->endpoint, r->endpoint, sizeof e->endpoint);
}

static inline void rig_copy(char *to, size_t room, struct moon_bytes text) {
    snprintf(to, room, "%.*s", (int)text.length, text.data ? text.data : "");
}

static inline void rig_record(struct moon_recorder *self, const struct moon_record *r) {
    struct rig *rig = (struct rig *)self;
    struct rig_record *kept = &rig->kept[rig->records++ % RIG_KEPT];
    *kept = (struct rig_record){
        .offset = r->extent.offset, .length = r->extent.length, .lease_ns = r->lease_ns, .has = r->has};
    rig_copy(kept->what, sizeof kept->what, moon_bytes_of(r->what));
    rig_copy(kept->key, sizeof kept->key, r->key);
    rig_copy(kept->endpoint, sizeof kept->endpoint, r->extent.segment);
    rig_copy(kept->cause, sizeof kept->cause, r->cause);
    CU_ASSERT(r->kind == MOON_RECORD_STATE && r->internal);
    moon_ns now_ns = rig->environment.now_ns;
    if (!strcmp(kept->what, "put-start")) {
        rig_check_reuse(rig, kept);
        rig_use(rig, kept, now_ns + rig->release_ns);
    } else if (!strcmp(kept->what, "put-end")) {
        rig_use(rig, kept, 0);
    } else if (!strcmp(kept->what, "lease")) {
        rig_use(rig, kept, r->lease_ns);
    } else if (!strcmp(kept->what, "revoke")) {
        rig_use(rig, kept, now_ns + rig->revoke_ns);
    }
}

/* The n-th last record; what "" if there were not so many. */
static inline struct rig_record rig_last(const struct rig *rig, size_t back) {
    return back < rig->records ? rig->kept[(rig->records - 1 - back) % RIG_KEPT] : (struct rig_record){0};
}

static inline struct rig *rig_open_with(const struct moon_master_settings *settings, uint64_t fail_at) {
    struct moon_memory *heap = moon_memory_heap();
    struct rig *rig = heap->resize(heap, NULL, 0, sizeof *rig);
    assert(rig);
    *rig = (struct rig){.recorder = {rig_record}, .revoke_ns = 30 * S};
    moon_memory_failing_init(&rig->memory, heap, fail_at);
    rig->environment =
        (struct moon_environment){.now_ns = 1000 * S, .memory = &rig->memory.memory, .recorder = &rig->recorder};
    moon_random_seed(&rig->environment.random, 1);
    rig->master = moon_master_open(&rig->environment, settings);
    if (rig->master)
        rig->release_ns = rig->master->settings.put_start_release_ns;
    return rig;
}

static inline struct rig *rig_open(const struct moon_master_settings *settings) {
    struct moon_master_settings defaults = moon_master_defaults();
    return rig_open_with(settings ? settings : &defaults, 0);
}

static inline void rig_close(struct rig *rig) {
    struct moon_memory *heap = moon_memory_heap();
    moon_master_close(rig->master);
    MOON_CHECK_INT(rig->memory.held_bytes, 0);
    heap->resize(heap, rig, sizeof *rig, 0);
}

/* Lets time pass, with a tick at each deadline on the way, as a driver does. */
static inline void rig_wait(struct rig *rig, moon_ns wait_ns) {
    moon_ns end_ns = rig->environment.now_ns + wait_ns;
    for (moon_ns due_ns; (due_ns = moon_master_deadline(rig->master)) <= end_ns;) {
        if (due_ns > rig->environment.now_ns)
            rig->environment.now_ns = due_ns;
        moon_master_tick(rig->master);
        CU_ASSERT_FATAL(moon_master_deadline(rig->master) > rig->environment.now_ns); /* all that was due is done */
    }
    rig->environment.now_ns = end_ns;
}

static inline struct moon_uuid rig_client(uint64_t number) {
    return (struct moon_uuid){0xC11E, number};
}

static inline struct moon_uuid rig_segment_id(uint64_t number) {
    return (struct moon_uuid){0x5E6, number};
}

/* Segment `number` of `size` bytes at `base` of endpoint `endpoint`, which is its name, too. */
static inline struct moon_segment rig_segment(uint64_t number, const char *endpoint, uint64_t base, uint64_t size) {
    return (struct moon_segment){.id = rig_segment_id(number),
                                 .name = moon_bytes_of(endpoint),
                                 .base = base,
                                 .size = size,
                                 .te_endpoint = moon_bytes_of(endpoint),
                                 .protocol = moon_bytes_of("tcp")};
}

/* Client `number` mounts and remounts its segment of that number, at 4 GiB, endpoint "owner<number>". */
static inline int rig_mount(struct rig *rig, uint64_t number, uint64_t size) {
    char endpoint[32];
    snprintf(endpoint, sizeof endpoint, "owner%llu", (unsigned long long)number);
    struct moon_segment segment = rig_segment(number, endpoint, UINT64_C(1) << 32, size);
    int code = moon_master_mount(rig->master, rig_client(number), &segment);
    return code ? code : moon_master_remount(rig->master, rig_client(number), &segment, 1);
}

static inline int rig_ping(struct rig *rig, uint64_t number) {
    int64_t view;
    int status = 0, code = moon_master_ping(rig->master, rig_client(number), &view, &status);
    return code ? code : status;
}

/* Time passes while the owners 1..owners give signs of life. */
static inline void rig_live(struct rig *rig, uint64_t owners, moon_ns wait_ns) {
    for (; wait_ns > 0; wait_ns -= S) {
        for (uint64_t i = 1; i <= owners; i++)
            rig_ping(rig, i);
        rig_wait(rig, wait_ns < S ? wait_ns : S);
    }
}

static const struct moon_bytes RIG_TENANT = {"default", 7};

static inline int rig_start_with(struct rig *rig, uint64_t client, const char *key, uint64_t length,
                                 struct moon_put_options options) {
    return moon_master_put_start(rig->master, rig_client(client), RIG_TENANT, moon_bytes_of(key), length, &options,
                                 &rig->list);
}

static inline int rig_start(struct rig *rig, uint64_t client, const char *key, uint64_t length) {
    return rig_start_with(rig, client, key, length, (struct moon_put_options){.replica_num = 1});
}

static inline int rig_end(struct rig *rig, uint64_t client, const char *key) {
    return moon_master_put_end(rig->master, rig_client(client), RIG_TENANT, moon_bytes_of(key), 4);
}

static inline int rig_revoke(struct rig *rig, uint64_t client, const char *key) {
    return moon_master_put_revoke(rig->master, rig_client(client), RIG_TENANT, moon_bytes_of(key), 4);
}

static inline int rig_put(struct rig *rig, const char *key, uint64_t length) {
    int code = rig_start(rig, 77, key, length);
    return code ? code : rig_end(rig, 77, key);
}

/* 1, 0 or a code. */
static inline int rig_exist(struct rig *rig, const char *key) {
    bool exists = false;
    int code = moon_master_exist(rig->master, RIG_TENANT, moon_bytes_of(key), &exists);
    return code ? code : exists;
}

static inline int rig_query(struct rig *rig, const char *key) {
    return moon_master_query(rig->master, RIG_TENANT, moon_bytes_of(key), &rig->list);
}

static inline int rig_remove(struct rig *rig, const char *key, bool force) {
    return moon_master_remove(rig->master, RIG_TENANT, moon_bytes_of(key), force);
}

static inline int64_t rig_remove_all(struct rig *rig, bool force) {
    return moon_master_remove_all(rig->master, (struct moon_bytes){0}, force);
}

#endif
