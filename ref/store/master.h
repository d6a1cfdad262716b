/* SPDX-License-Identifier: Apache-2.0 */
/* The master: which segments there are, which objects lie where, who may read and write them and for how long. A state
 * machine without messages; master_service.h answers remote calls with it. */
#ifndef MOON_STORE_MASTER_H
#define MOON_STORE_MASTER_H

#include "ref/base/environment.h"
#include "ref/wire/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_MASTER_REPLICAS_MAX = 64 }; /* of one object */

/* Times in ns, ratios in millionths. */
struct moon_master_settings {
    moon_ns lease_ttl_ns;         /* default_kv_lease_ttl: 10 s */
    moon_ns client_ttl_ns;        /* client_ttl: 10 s */
    moon_ns put_start_discard_ns; /* put_start_discard_timeout_sec: 30 s */
    moon_ns put_start_release_ns; /* put_start_release_timeout_sec: 600 s; more than discard */
    int64_t eviction_millionths;  /* eviction_ratio: 50000 */
    int64_t watermark_millionths; /* eviction_high_watermark_ratio: 900000 */
    int64_t view_version;         /* what Ping answers */
};
/* Mooncake's defaults. */
struct moon_master_settings moon_master_defaults(void);

struct moon_master;

/* NULL when memory refused. `environment` outlives it. */
struct moon_master *moon_master_open(struct moon_environment *environment, const struct moon_master_settings *settings);
void moon_master_close(struct moon_master *master); /* NULL is fine */
moon_ns moon_master_deadline(const struct moon_master *master);
void moon_master_tick(struct moon_master *master);

/* All calls below: texts are borrowed for the call; the result is MOON_STORE_OK or a code of moon_store_code, among
 * them INTERNAL_ERROR when memory refused (nothing has changed then, but for what a remount has mounted already) and
 * UNAVAILABLE_IN_CURRENT_STATUS when there are 65536 clients or segments. Sources: STORE-010 to STORE-064 in SPEC.md.
 * What changes is recorded as STORE-070 says. */

/* ---- segments and clients */

struct moon_segment {
    struct moon_uuid id;
    struct moon_bytes name; /* "host:port" of the client */
    uint64_t base, size;    /* announced address; bytes */
    struct moon_bytes te_endpoint, protocol, host_id;
};

/* STORE-010 to STORE-012: mounting what is mounted, and unmounting what is not, is OK. INVALID_PARAMS for a segment
 * without memory, one that ends beyond 2^64, or that overlaps another one of this client at the same endpoint. */
int moon_master_mount(struct moon_master *master, struct moon_uuid client, const struct moon_segment *segment);
/* Mounts those that are not mounted, passes wrong ones over, and makes the client alive (STORE-013). */
int moon_master_remount(struct moon_master *master, struct moon_uuid client, const struct moon_segment segments[],
                        size_t count);
int moon_master_unmount(struct moon_master *master, struct moon_uuid client, struct moon_uuid segment);
enum moon_client_status { MOON_CLIENT_OK = 1, MOON_CLIENT_NEED_REMOUNT = 2 };
int moon_master_ping(struct moon_master *master, struct moon_uuid client, int64_t *view_version, int *client_status);

/* ---- objects */

enum moon_replica_status { MOON_REPLICA_PROCESSING = 2, MOON_REPLICA_COMPLETE = 3 };

/* A replica in memory as answers show it. Texts borrow the master and are valid until its next call. */
struct moon_replica {
    uint64_t id;
    enum moon_replica_status status;
    uint64_t address, size;
    struct moon_bytes protocol, endpoint; /* endpoint: te_endpoint of its segment */
};

struct moon_replica_list {
    struct moon_replica replicas[MOON_MASTER_REPLICAS_MAX];
    size_t count;
    moon_ns lease_ttl_ns; /* of a query */
};

/* Members of ReplicateConfig that are understood now; all others must have their default, else INVALID_PARAMS where a
 * release says so. preferred: tried first, in order. */
struct moon_put_options {
    uint64_t replica_num;
    bool with_hard_pin;
    const struct moon_bytes *preferred;
    size_t preferred_count;
};

/* STORE-030, STORE-040: both grant a lease of settings.lease_ttl_ns. A query answers OBJECT_NOT_FOUND, or
 * REPLICA_IS_NOT_READY before the put's end. */
int moon_master_exist(struct moon_master *master, struct moon_bytes tenant, struct moon_bytes key, bool *exists);
int moon_master_query(struct moon_master *master, struct moon_bytes tenant, struct moon_bytes key,
                      struct moon_replica_list *list);
/* STORE-020, STORE-031, STORE-033: INVALID_PARAMS (no key, no bytes, no replica), OBJECT_ALREADY_EXISTS,
 * NO_AVAILABLE_HANDLE. *list: where to write; fewer replicas than asked for are a success. */
int moon_master_put_start(struct moon_master *master, struct moon_uuid client, struct moon_bytes tenant,
                          struct moon_bytes key, uint64_t length, const struct moon_put_options *options,
                          struct moon_replica_list *list);
/* STORE-032: OBJECT_NOT_FOUND, ILLEGAL_CLIENT (not the writer); revoke: INVALID_WRITE (ended already). replica_type as
 * on the wire: 0 MEMORY, 4 ALL; others complete and revoke nothing. */
int moon_master_put_end(struct moon_master *master, struct moon_uuid client, struct moon_bytes tenant,
                        struct moon_bytes key, int replica_type);
int moon_master_put_revoke(struct moon_master *master, struct moon_uuid client, struct moon_bytes tenant,
                           struct moon_bytes key, int replica_type);
/* STORE-042: OBJECT_NOT_FOUND, OBJECT_HAS_LEASE unless forced, REPLICA_IS_NOT_READY also then. */
int moon_master_remove(struct moon_master *master, struct moon_bytes tenant, struct moon_bytes key, bool force);
/* Number of objects removed; protected ones are passed over. An empty tenant means all (STORE-038). */
int64_t moon_master_remove_all(struct moon_master *master, struct moon_bytes tenant, bool force);

/* ---- what there is, for tests, metrics and checks. held_bytes: memory of objects that are gone, kept because a lease
 * or a late writer may still use it. */
struct moon_master_counts {
    size_t clients, segments, objects;
    uint64_t capacity_bytes, allocated_bytes, held_bytes;
};
struct moon_master_counts moon_master_count(const struct moon_master *master);

#ifdef __cplusplus
}
#endif
#endif
