/* SPDX-License-Identifier: Apache-2.0 */
/* Objects: their puts, their leases, their removal. */
#include "ref/store/master_internal.h"

/* Without tenancy every tenant is "default" (STORE-038). */
static uint64_t hash_key(const struct moon_master *master, struct moon_bytes key) {
    struct moon_bytes parts[] = {moon_bytes_of("default"), key};
    return moon_table_hash(&master->objects, parts, 2);
}

static struct master_object *find_object(const struct moon_master *master, struct moon_bytes key) {
    struct moon_table_node *node = moon_table_find(&master->objects, hash_key(master, key));
    for (; node; node = moon_table_find_next(node)) {
        struct master_object *object = MOON_HOLDER(node, struct master_object, by_key);
        if (moon_bytes_equal((struct moon_bytes){object->key, object->key_length}, key))
            return object;
    }
    return NULL;
}

static bool complete(const struct master_object *object) {
    return object->queue != MASTER_PROCESSING;
}

/* ---- life of an object in the books */

static void add_to_queue(struct moon_master *master, struct master_object *object, enum master_queue queue) {
    object->queue = (uint8_t)queue;
    moon_list_add(&master->queues[queue], &object->in_queue);
    master->queue_counts[queue]++;
}

static void leave_queue(struct moon_master *master, struct master_object *object) {
    moon_list_remove(&object->in_queue);
    master->queue_counts[object->queue]--;
}

void moon_master_enqueue(struct moon_master *master, struct master_object *object, enum master_queue queue) {
    leave_queue(master, object);
    add_to_queue(master, object, queue);
}

/* An object without replicas, in PROCESSING. NULL when memory refused. */
static struct master_object *new_object(struct moon_master *master, struct moon_bytes key) {
    struct master_object *object = master_allocate(master, sizeof *object + key.length);
    if (!object)
        return NULL;
    *object = (struct master_object){.key_length = (uint32_t)key.length};
    memcpy(object->key, key.data, key.length);
    if (moon_table_add(&master->objects, &object->by_key, hash_key(master, key)) != 0) {
        master_free(master, object, sizeof *object + key.length);
        return NULL;
    }
    moon_list_add(&master->all, &object->in_all);
    add_to_queue(master, object, MASTER_PROCESSING);
    return object;
}

static void let_go_all(struct moon_master *master, struct master_object *object, moon_ns until_ns, const char *what,
                       const char *cause) {
    while (object->replicas)
        moon_master_let_go(master, object->replicas, until_ns, what, cause);
}

void moon_master_drop(struct moon_master *master, struct master_object *object, moon_ns until_ns, const char *what,
                      const char *cause) {
    let_go_all(master, object, until_ns, what, cause);
    leave_queue(master, object);
    moon_list_remove(&object->in_all);
    moon_table_remove(&master->objects, &object->by_key);
    master_free(master, object, sizeof *object + object->key_length);
}

moon_ns moon_master_writer_end(const struct moon_master *master, const struct master_object *object) {
    return object->put_start_ns + master->settings.put_start_release_ns;
}

/* ---- reading */

/* lease = max(lease, now + ttl): the queue of leased objects stays in order. */
static void grant_lease(struct moon_master *master, struct master_object *object) {
    moon_ns lease_ns = master_now(master) + master->settings.lease_ttl_ns;
    if (lease_ns > object->lease_ns)
        object->lease_ns = lease_ns;
    if (!object->hard_pin)
        moon_master_enqueue(master, object, MASTER_LEASED);
    moon_master_tell_object(master, "lease", object);
}

static bool leased(const struct moon_master *master, const struct master_object *object) {
    return object->lease_ns > master_now(master);
}

int moon_master_exist(struct moon_master *master, struct moon_bytes tenant, struct moon_bytes key, bool *exists) {
    (void)tenant;
    struct master_object *object = find_object(master, key);
    *exists = object && complete(object);
    if (*exists)
        grant_lease(master, object);
    return MOON_STORE_OK;
}

static void show_replicas(const struct master_object *object, struct moon_replica_list *list) {
    list->count = 0;
    list->lease_ttl_ns = 0;
    for (const struct master_replica *r = object->replicas; r; r = r->next)
        list->replicas[list->count++] = (struct moon_replica){
            .id = r->id,
            .status = complete(object) ? MOON_REPLICA_COMPLETE : MOON_REPLICA_PROCESSING,
            .address = r->segment->base + moon_extents_offset_bytes(&r->segment->extents, r->region),
            .size = r->size,
            .protocol = r->segment->protocol,
            .endpoint = r->segment->endpoint,
        };
}

int moon_master_query(struct moon_master *master, struct moon_bytes tenant, struct moon_bytes key,
                      struct moon_replica_list *list) {
    (void)tenant;
    struct master_object *object = find_object(master, key);
    if (!object)
        return MOON_STORE_OBJECT_NOT_FOUND;
    if (!complete(object))
        return MOON_STORE_REPLICA_IS_NOT_READY;
    grant_lease(master, object);
    show_replicas(object, list);
    list->lease_ttl_ns = master->settings.lease_ttl_ns;
    return MOON_STORE_OK;
}

/* ---- putting */

static int check_put(const struct moon_bytes key, uint64_t length, const struct moon_put_options *options) {
    bool right = key.length > 0 && key.length <= UINT32_MAX && length > 0 && options->replica_num > 0;
    return right ? MOON_STORE_OK : MOON_STORE_INVALID_PARAMS;
}

/* Another put has the key: may this one have it? */
static int check_earlier(struct moon_master *master, const struct master_object *earlier) {
    if (complete(earlier) || master_now(master) < earlier->put_start_ns + master->settings.put_start_discard_ns)
        return MOON_STORE_OBJECT_ALREADY_EXISTS;
    bool room = moon_master_can_hold(master, moon_master_replica_count(earlier));
    return room ? MOON_STORE_OK : MOON_STORE_INTERNAL_ERROR;
}

/* The object becomes this put's. */
static void begin_put(struct moon_master *master, struct master_object *object, struct moon_uuid writer,
                      bool hard_pin) {
    object->writer = writer;
    object->put_start_ns = master_now(master);
    object->hard_pin = hard_pin;
    moon_list_remove(&object->in_all);
    moon_list_add(&master->all, &object->in_all);
    moon_master_enqueue(master, object, MASTER_PROCESSING);
}

int moon_master_put_start(struct moon_master *master, struct moon_uuid client, struct moon_bytes tenant,
                          struct moon_bytes key, uint64_t length, const struct moon_put_options *options,
                          struct moon_replica_list *list) {
    (void)tenant;
    struct master_replica *chain;
    int code = check_put(key, length, options);
    if (code != MOON_STORE_OK)
        return code;
    struct master_object *earlier = find_object(master, key), *object = earlier;
    if (earlier)
        code = check_earlier(master, earlier);
    else if (!(object = new_object(master, key)))
        code = MOON_STORE_INTERNAL_ERROR;
    if (code != MOON_STORE_OK)
        return code;
    code = moon_master_take(master, length, options, &chain);
    if (earlier && code != MOON_STORE_INTERNAL_ERROR)
        let_go_all(master, object, moon_master_writer_end(master, object), "discard", "taken over");
    if (code == MOON_STORE_NO_AVAILABLE_HANDLE && options->replica_num <= master->segment_count)
        moon_master_arm_after_failure(master);
    if (code != MOON_STORE_OK) {
        if (!object->replicas)
            moon_master_drop(master, object, 0, NULL, NULL);
        return code;
    }
    begin_put(master, object, client, options->with_hard_pin);
    moon_master_own(master, object, chain);
    moon_master_tell_object(master, "put-start", object);
    moon_master_arm_by_watermark(master);
    show_replicas(object, list);
    return MOON_STORE_OK;
}

/* There are replicas in memory only: other types select none. */
static bool selects_memory(int replica_type) {
    enum { MEMORY = 0, ALL = 4 };
    return replica_type == MEMORY || replica_type == ALL;
}

/* The object that `client` may end or revoke. */
static int find_own(const struct moon_master *master, struct moon_uuid client, struct moon_bytes key,
                    struct master_object **object) {
    *object = find_object(master, key);
    if (!*object)
        return MOON_STORE_OBJECT_NOT_FOUND;
    return moon_uuid_equal((*object)->writer, client) ? MOON_STORE_OK : MOON_STORE_ILLEGAL_CLIENT;
}

int moon_master_put_end(struct moon_master *master, struct moon_uuid client, struct moon_bytes tenant,
                        struct moon_bytes key, int replica_type) {
    (void)tenant;
    struct master_object *object;
    int code = find_own(master, client, key, &object);
    if (code != MOON_STORE_OK || complete(object) || !selects_memory(replica_type))
        return code;
    object->lease_ns = master_now(master); /* no lease, but its place among those that may be evicted */
    moon_master_enqueue(master, object, object->hard_pin ? MASTER_PINNED : MASTER_ENDED);
    moon_master_tell_object(master, "put-end", object);
    moon_master_arm_by_watermark(master);
    return MOON_STORE_OK;
}

int moon_master_put_revoke(struct moon_master *master, struct moon_uuid client, struct moon_bytes tenant,
                           struct moon_bytes key, int replica_type) {
    (void)tenant;
    struct master_object *object;
    int code = find_own(master, client, key, &object);
    if (code != MOON_STORE_OK || !selects_memory(replica_type))
        return code;
    if (complete(object))
        return MOON_STORE_INVALID_WRITE;
    if (!moon_master_can_hold(master, moon_master_replica_count(object)))
        return MOON_STORE_INTERNAL_ERROR;
    moon_master_drop(master, object, master_now(master) + MASTER_REVOKE_HOLD_NS, "revoke", NULL);
    return MOON_STORE_OK;
}

/* ---- removing */

static int remove_object(struct moon_master *master, struct master_object *object, bool force) {
    if (leased(master, object) && !force)
        return MOON_STORE_OBJECT_HAS_LEASE;
    if (!complete(object))
        return MOON_STORE_REPLICA_IS_NOT_READY;
    if (!moon_master_can_hold(master, moon_master_replica_count(object)))
        return MOON_STORE_INTERNAL_ERROR;
    moon_master_drop(master, object, object->lease_ns, "remove", force ? "force" : NULL);
    return MOON_STORE_OK;
}

int moon_master_remove(struct moon_master *master, struct moon_bytes tenant, struct moon_bytes key, bool force) {
    (void)tenant;
    struct master_object *object = find_object(master, key);
    return object ? remove_object(master, object, force) : MOON_STORE_OBJECT_NOT_FOUND;
}

int64_t moon_master_remove_all(struct moon_master *master, struct moon_bytes tenant, bool force) {
    (void)tenant;
    struct moon_list *next;
    int64_t removed = 0;
    for (struct moon_list *at = master->all.next; at != &master->all; at = next) {
        next = at->next;
        if (remove_object(master, MOON_HOLDER(at, struct master_object, in_all), force) == MOON_STORE_OK)
            removed++;
    }
    return removed;
}
