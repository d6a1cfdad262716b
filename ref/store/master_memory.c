/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of objects: on which segments it is taken, and how long it is held after its object is gone. */
#include "ref/base/error.h"
#include "ref/store/master_internal.h"

size_t moon_master_replica_count(const struct master_object *object) {
    size_t count = 0;
    for (const struct master_replica *r = object->replicas; r; r = r->next)
        count++;
    return count;
}

/* ---- taking */

/* What is being taken: the chain with its end, and how much is still wanted. */
struct taking {
    struct moon_master *master;
    uint64_t length, wanted;
    struct master_replica *chain, **end;
};

static bool has_name(const struct master_replica *chain, struct moon_bytes name) {
    while (chain && !moon_bytes_equal(chain->segment->name, name))
        chain = chain->next;
    return chain != NULL;
}

/* One replica on `segment`, if it can be there. Returns 0, taken or not, or MOON_ERR_MEMORY. */
static int try_segment(struct taking *taking, struct master_segment *segment) {
    struct moon_master *master = taking->master;
    struct moon_region *region;
    if (segment->usable_ns > master_now(master) || has_name(taking->chain, segment->name))
        return 0;
    int status = moon_extents_allocate(&segment->extents, taking->length, &region);
    if (status != 0)
        return status == MOON_ERR_MEMORY ? status : 0;
    struct master_replica *replica = master_allocate(master, sizeof *replica);
    if (!replica) {
        moon_extents_free(&segment->extents, region);
        return MOON_ERR_MEMORY;
    }
    *replica = (struct master_replica){.segment = segment, .region = region, .size = taking->length};
    moon_list_add(&segment->replicas, &replica->in_segment);
    segment->replica_count++;
    *taking->end = replica;
    taking->end = &replica->next;
    taking->wanted--;
    return 0;
}

/* The oldest segments of each preferred name first. */
static int take_preferred(struct taking *taking, const struct moon_put_options *options) {
    struct moon_master *master = taking->master;
    size_t names = options->preferred_count < MASTER_SCAN_MAX ? options->preferred_count : MASTER_SCAN_MAX;
    int status = 0;
    for (size_t i = 0; i < names; i++)
        for (size_t at = 0; at < master->segment_count && taking->wanted > 0 && status == 0; at++)
            if (moon_bytes_equal(master->segments[at]->name, options->preferred[i]))
                status = try_segment(taking, master->segments[at]);
    return status;
}

/* Consecutive segments from a random one on (STORE-021). */
static int take_anywhere(struct taking *taking) {
    struct moon_master *master = taking->master;
    size_t count = master->segment_count, scan = count < MASTER_SCAN_MAX ? count : MASTER_SCAN_MAX;
    size_t start = count > 1 ? (size_t)moon_random_below(&master->environment->random, count) : 0;
    int status = 0;
    for (size_t i = 0; i < scan && taking->wanted > 0 && status == 0; i++)
        status = try_segment(taking, master->segments[(start + i) % count]);
    return status;
}

static void free_replica(struct moon_master *master, struct master_replica *replica) {
    struct master_segment *segment = replica->segment;
    moon_extents_free(&segment->extents, replica->region);
    moon_list_remove(&replica->in_segment);
    segment->replica_count--;
    master_free(master, replica, sizeof *replica);
}

int moon_master_take(struct moon_master *master, uint64_t length, const struct moon_put_options *options,
                     struct master_replica **chain) {
    struct taking taking = {.master = master, .length = length, .wanted = options->replica_num};
    taking.end = &taking.chain;
    if (taking.wanted > MOON_MASTER_REPLICAS_MAX)
        taking.wanted = MOON_MASTER_REPLICAS_MAX;
    int status = take_preferred(&taking, options);
    if (status == 0 && taking.wanted > 0)
        status = take_anywhere(&taking);
    if (status == 0 && taking.chain) {
        *chain = taking.chain;
        return MOON_STORE_OK;
    }
    while (taking.chain) {
        struct master_replica *replica = taking.chain;
        taking.chain = replica->next;
        free_replica(master, replica);
    }
    return status == 0 ? MOON_STORE_NO_AVAILABLE_HANDLE : MOON_STORE_INTERNAL_ERROR;
}

void moon_master_own(struct moon_master *master, struct master_object *object, struct master_replica *chain) {
    object->replicas = chain;
    for (struct master_replica *r = chain; r; r = r->next) {
        r->object = object;
        r->id = ++master->replica_id;
        r->segment->allocated_bytes += r->size;
        master->allocated_bytes += r->size;
    }
}

/* ---- letting go */

bool moon_master_can_hold(struct moon_master *master, size_t replicas) {
    return moon_heap_reserve(&master->holds, replicas) == 0;
}

/* The allocator may hand it out again. The last one of a segment that is gone ends that segment. */
static void release(struct moon_master *master, struct master_replica *replica) {
    struct master_segment *segment = replica->segment;
    moon_master_tell_replica(master, "release", NULL, replica, NULL);
    free_replica(master, replica);
    if (!segment->client && segment->replica_count == 0) {
        moon_list_remove(&segment->in_client);
        master->gone_count--;
        moon_master_free_segment(master, segment);
    }
}

static void take_from_object(struct master_replica *replica) {
    struct master_replica **at = &replica->object->replicas;
    while (*at != replica)
        at = &(*at)->next;
    *at = replica->next;
    replica->next = NULL;
    replica->object = NULL;
}

void moon_master_let_go(struct moon_master *master, struct master_replica *replica, moon_ns until_ns, const char *what,
                        const char *cause) {
    moon_master_tell_replica(master, what, replica->object, replica, cause);
    take_from_object(replica);
    replica->segment->allocated_bytes -= replica->size;
    master->allocated_bytes -= replica->size;
    if (until_ns <= master_now(master)) {
        release(master, replica);
        return;
    }
    replica->segment->held_bytes += replica->size;
    int status = moon_heap_add(&master->holds, &replica->hold, until_ns);
    assert(status == 0); /* can_hold was asked */
    (void)status;
}

void moon_master_release_held(struct moon_master *master) {
    while (moon_heap_deadline(&master->holds) <= master_now(master)) {
        struct master_replica *replica = MOON_HOLDER(moon_heap_first(&master->holds), struct master_replica, hold);
        moon_heap_remove(&master->holds, &replica->hold);
        replica->segment->held_bytes -= replica->size;
        release(master, replica);
    }
}
