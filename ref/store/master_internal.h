/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the master share: its objects, replicas, segments and clients. */
#ifndef MOON_STORE_MASTER_INTERNAL_H
#define MOON_STORE_MASTER_INTERNAL_H

#include "ref/base/heap.h"
#include "ref/base/list.h"
#include "ref/base/table.h"
#include "ref/store/extents.h"
#include "ref/store/master.h"

#include <assert.h>

enum {
    MASTER_CLIENTS_MAX = 65536,
    MASTER_SEGMENTS_MAX = 65536, /* mounted, and as many that are gone but still waited for */
    MASTER_TEXT_BYTES_MAX = 4096,
    MASTER_SCAN_MAX = 100, /* segments tried at random, and preferred names (STORE-021) */
};

#define MASTER_EVICTION_DELAY_NS (10 * MOON_NS_PER_MS) /* STORE-060 */
#define MASTER_REVOKE_HOLD_NS    (30 * MOON_NS_PER_S)  /* STORE-051 */
#define MASTER_GRACE_NS          MOON_NS_PER_S         /* STORE-014 */

/* A client that has mounted something or wanted to. alive: it has remounted (STORE-013). */
struct master_client {
    struct moon_table_node by_id;
    struct moon_heap_node expiry;
    struct moon_list segments; /* in mount order */
    struct moon_uuid id;
    bool alive;
};

/* A segment. After its end it stays, with client NULL, for as long as some of its memory is held.
 *   replicas     what lies or is held here
 *   usable_ns    nothing is placed here before (STORE-052)
 *   name ..      texts in `text` */
struct master_segment {
    struct moon_table_node by_id;
    struct moon_list in_client; /* or among those that are gone */
    struct master_client *client;
    struct moon_list replicas;
    size_t replica_count;
    struct moon_uuid id;
    uint64_t base, size, allocated_bytes, held_bytes;
    moon_ns usable_ns;
    struct moon_extents extents;
    struct moon_bytes name, endpoint, protocol;
    size_t text_bytes;
    char text[];
};

/* A replica of an object, or, with object NULL, its memory that is held until hold.time_ns. */
struct master_replica {
    struct moon_heap_node hold;
    struct moon_list in_segment;
    struct master_replica *next; /* of the object */
    struct master_object *object;
    struct master_segment *segment;
    struct moon_region *region;
    uint64_t id, size;
};

/* Where an object waits.
 *   PROCESSING  by put start
 *   ENDED       complete, never read: by the put's end, which is its lease_ns
 *   LEASED      complete, read: by lease_ns
 *   PINNED      complete, and never evicted */
enum master_queue { MASTER_PROCESSING, MASTER_ENDED, MASTER_LEASED, MASTER_PINNED, MASTER_QUEUES };

/* An object. Its replicas are all in the same state: complete when the queue is not PROCESSING. */
struct master_object {
    struct moon_table_node by_key;
    struct moon_list in_all; /* by creation */
    struct moon_list in_queue;
    struct moon_uuid writer;
    moon_ns put_start_ns, lease_ns;
    struct master_replica *replicas; /* in the order of their allocation */
    uint32_t key_length;
    uint8_t queue;
    bool hard_pin;
    char key[];
};
static_assert(sizeof(struct master_object) <= 160, "metadata of an object beside key and replicas");

struct moon_master {
    struct moon_environment *environment;
    struct moon_master_settings settings;
    struct moon_table clients, segments_by_id, objects;
    struct moon_heap expiry, holds;   /* clients; replicas */
    struct master_segment **segments; /* mounted, in mount order */
    size_t segment_count, segment_capacity;
    struct moon_list gone; /* segments that ended, with memory held */
    size_t gone_count;
    struct moon_list all, queues[MASTER_QUEUES];
    size_t queue_counts[MASTER_QUEUES];
    uint64_t capacity_bytes, allocated_bytes; /* mounted; of objects, as asked for */
    uint64_t replica_id;
    moon_ns eviction_ns; /* of the armed eviction, else MOON_NS_NEVER */
};

static inline moon_ns master_now(const struct moon_master *master) {
    return master->environment->now_ns;
}

static inline void *master_allocate(struct moon_master *master, size_t bytes) {
    struct moon_memory *memory = master->environment->memory;
    return memory->resize(memory, NULL, 0, bytes);
}

static inline void master_free(struct moon_master *master, void *piece, size_t bytes) {
    struct moon_memory *memory = master->environment->memory;
    memory->resize(memory, piece, bytes, 0);
}

static inline struct master_object *master_object_of(struct moon_list *in_queue) {
    return MOON_HOLDER(in_queue, struct master_object, in_queue);
}

/* ---- master_segments.c */

/* Ends every client whose time is over. */
void moon_master_expire_clients(struct moon_master *master);
/* Frees a segment that is not mounted (any more) and holds nothing. */
void moon_master_free_segment(struct moon_master *master, struct master_segment *segment);

/* ---- master_memory.c */

/* Takes memory for up to options->replica_num replicas of `length` bytes, on segments of different names. Returns
 * MOON_STORE_OK with one or more in *chain, NO_AVAILABLE_HANDLE, or INTERNAL_ERROR; else nothing is taken. */
int moon_master_take(struct moon_master *master, uint64_t length, const struct moon_put_options *options,
                     struct master_replica **chain);
/* Makes what was taken the object's memory. */
void moon_master_own(struct moon_master *master, struct master_object *object, struct master_replica *chain);
/* Room for holding so many replicas more; false when memory refused. Asked for before anything is changed. */
bool moon_master_can_hold(struct moon_master *master, size_t replicas);
/* Takes a replica from its object and keeps its memory until `until_ns` (can_hold was asked), or gives it back at once
 * if that is over. Told as `what`. */
void moon_master_let_go(struct moon_master *master, struct master_replica *replica, moon_ns until_ns, const char *what,
                        const char *cause);
/* Gives back what was held long enough. */
void moon_master_release_held(struct moon_master *master);
size_t moon_master_replica_count(const struct master_object *object);

/* ---- master_objects.c */

/* Moves an object to the end of a queue. */
void moon_master_enqueue(struct moon_master *master, struct master_object *object, enum master_queue queue);
/* Lets go all replicas of an object, and forgets it. */
void moon_master_drop(struct moon_master *master, struct master_object *object, moon_ns until_ns, const char *what,
                      const char *cause);
/* When a writer that did not end can write no more (STORE-051). */
moon_ns moon_master_writer_end(const struct moon_master *master, const struct master_object *object);

/* ---- master_evict.c */

/* Arms eviction: an allocation has failed; or if the watermark is passed. */
void moon_master_arm_after_failure(struct moon_master *master);
void moon_master_arm_by_watermark(struct moon_master *master);
/* Time of the next pass of eviction or of stale puts, and the pass, if its time has come. */
moon_ns moon_master_eviction_deadline(const struct moon_master *master);
void moon_master_evict(struct moon_master *master);

/* ---- master_record.c: nothing without a recorder */

/* `what` happened to one replica (object may be NULL: its memory), to all of an object, to a segment, to a client.
 * cause may be NULL. */
void moon_master_tell_replica(struct moon_master *master, const char *what, const struct master_object *object,
                              const struct master_replica *replica, const char *cause);
void moon_master_tell_object(struct moon_master *master, const char *what, const struct master_object *object);
void moon_master_tell_segment(struct moon_master *master, const char *what, const struct master_segment *segment,
                              const char *cause);
void moon_master_tell_client(struct moon_master *master, const char *what, struct moon_uuid client);

#endif
