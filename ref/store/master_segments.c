/* SPDX-License-Identifier: Apache-2.0 */
/* Segments and the clients that lend them: mounting, unmounting, signs of life, and the end of the silent. */
#include "ref/store/master_internal.h"

/* ---- clients */

static uint64_t hash_id(const struct moon_table *table, struct moon_uuid id) {
    struct moon_bytes part = {(const char *)&id, sizeof id};
    return moon_table_hash(table, &part, 1);
}

static struct master_client *find_client(const struct moon_master *master, struct moon_uuid id) {
    struct moon_table_node *node = moon_table_find(&master->clients, hash_id(&master->clients, id));
    for (; node; node = moon_table_find_next(node)) {
        struct master_client *client = MOON_HOLDER(node, struct master_client, by_id);
        if (moon_uuid_equal(client->id, id))
            return client;
    }
    return NULL;
}

static moon_ns expiry_of_now(const struct moon_master *master) {
    return master_now(master) + master->settings.client_ttl_ns;
}

/* NULL when memory refused. */
static struct master_client *new_client(struct moon_master *master, struct moon_uuid id) {
    struct master_client *client = master_allocate(master, sizeof *client);
    if (!client)
        return NULL;
    *client = (struct master_client){.id = id};
    moon_list_open(&client->segments);
    if (moon_heap_add(&master->expiry, &client->expiry, expiry_of_now(master)) != 0)
        goto refused;
    if (moon_table_add(&master->clients, &client->by_id, hash_id(&master->clients, id)) != 0)
        goto refused;
    return client;
refused:
    moon_heap_remove(&master->expiry, &client->expiry);
    master_free(master, client, sizeof *client);
    return NULL;
}

static void free_client(struct moon_master *master, struct master_client *client) {
    assert(moon_list_empty(&client->segments));
    moon_heap_remove(&master->expiry, &client->expiry);
    moon_table_remove(&master->clients, &client->by_id);
    master_free(master, client, sizeof *client);
}

/* Finds or makes the client, and begins its time anew. */
static int meet_client(struct moon_master *master, struct moon_uuid id, struct master_client **client) {
    *client = find_client(master, id);
    if (*client) {
        moon_heap_move(&master->expiry, &(*client)->expiry, expiry_of_now(master));
        return MOON_STORE_OK;
    }
    if (master->clients.count >= MASTER_CLIENTS_MAX)
        return MOON_STORE_UNAVAILABLE_IN_CURRENT_STATUS;
    *client = new_client(master, id);
    return *client ? MOON_STORE_OK : MOON_STORE_INTERNAL_ERROR;
}

/* ---- one segment */

static struct master_segment *find_segment(const struct moon_master *master, struct moon_uuid id) {
    struct moon_table_node *node = moon_table_find(&master->segments_by_id, hash_id(&master->segments_by_id, id));
    for (; node; node = moon_table_find_next(node)) {
        struct master_segment *segment = MOON_HOLDER(node, struct master_segment, by_id);
        if (moon_uuid_equal(segment->id, id))
            return segment;
    }
    return NULL;
}

/* Whose memory it is: the transfer endpoint, or the name when there is none. */
static struct moon_bytes endpoint_of(const struct moon_segment *segment) {
    return segment->te_endpoint.length > 0 ? segment->te_endpoint : segment->name;
}

static bool overlaps(const struct master_segment *a, const struct moon_segment *b) {
    return a->base < b->base + b->size && b->base < a->base + a->size && moon_bytes_equal(a->endpoint, endpoint_of(b));
}

static struct moon_bytes keep_text(struct master_segment *segment, struct moon_bytes text) {
    char *at = segment->text + segment->text_bytes;
    if (text.length > 0)
        memcpy(at, text.data, text.length);
    segment->text_bytes += text.length;
    return (struct moon_bytes){at, text.length};
}

/* A segment with all of its memory free, in no list. NULL when memory refused. */
static struct master_segment *new_segment(struct moon_master *master, const struct moon_segment *described) {
    struct moon_bytes endpoint = endpoint_of(described);
    size_t text_bytes = described->name.length + endpoint.length + described->protocol.length;
    struct master_segment *segment = master_allocate(master, sizeof *segment + text_bytes);
    if (!segment)
        return NULL;
    *segment = (struct master_segment){.id = described->id, .base = described->base, .size = described->size};
    moon_list_open(&segment->replicas);
    segment->name = keep_text(segment, described->name);
    segment->endpoint = keep_text(segment, endpoint);
    segment->protocol = keep_text(segment, described->protocol);
    if (moon_extents_open(&segment->extents, master->environment->memory, segment->size) != 0) {
        master_free(master, segment, sizeof *segment + text_bytes);
        return NULL;
    }
    return segment;
}

void moon_master_free_segment(struct moon_master *master, struct master_segment *segment) {
    moon_extents_close(&segment->extents);
    master_free(master, segment, sizeof *segment + segment->text_bytes);
}

/* ---- the end of a segment */

/* When nobody may use the memory of a replica any more whose segment has gone. */
static moon_ns hold_of_lost(const struct moon_master *master, const struct master_object *object) {
    return object->queue == MASTER_PROCESSING ? moon_master_writer_end(master, object) : object->lease_ns;
}

static void lose_replicas(struct moon_master *master, struct master_segment *segment, const char *cause) {
    struct moon_list *next;
    for (struct moon_list *at = segment->replicas.next; at != &segment->replicas; at = next) {
        next = at->next;
        struct master_replica *replica = MOON_HOLDER(at, struct master_replica, in_segment);
        struct master_object *object = replica->object;
        if (!object)
            continue;
        moon_master_let_go(master, replica, hold_of_lost(master, object), "lose", cause);
        if (!object->replicas)
            moon_master_drop(master, object, 0, NULL, NULL);
    }
}

/* Unmounts a segment; moon_master_can_hold was asked for its replicas. It stays among those that are gone while some of
 * its memory is held. */
static void end_segment(struct moon_master *master, struct master_segment *segment, const char *cause) {
    moon_master_tell_segment(master, "unmount", segment, cause);
    lose_replicas(master, segment, cause);
    size_t at = 0;
    while (master->segments[at] != segment)
        at++;
    master->segment_count--;
    memmove(&master->segments[at], &master->segments[at + 1], (master->segment_count - at) * sizeof segment);
    master->capacity_bytes -= segment->size;
    moon_table_remove(&master->segments_by_id, &segment->by_id);
    moon_list_remove(&segment->in_client);
    segment->client = NULL;
    if (segment->replica_count == 0) {
        moon_master_free_segment(master, segment);
    } else {
        moon_list_add(&master->gone, &segment->in_client);
        master->gone_count++;
    }
    moon_master_arm_by_watermark(master);
}

/* ---- mounting */

static int check_segment(const struct moon_segment *segment) {
    uint64_t end;
    if (segment->base == 0 || segment->size == 0 || segment->name.length > MASTER_TEXT_BYTES_MAX ||
        segment->te_endpoint.length > MASTER_TEXT_BYTES_MAX || segment->protocol.length > MASTER_TEXT_BYTES_MAX ||
        __builtin_add_overflow(segment->base, segment->size, &end))
        return MOON_STORE_INVALID_PARAMS;
    return MOON_STORE_OK;
}

/* Looks at the mounted segments that lie in the way: those of the same client refuse the new one, those of others
 * belong to a process that is no more. *replicas: how many lie there. */
static int check_overlaps(const struct moon_master *master, struct moon_uuid client,
                          const struct moon_segment *described, size_t *replicas) {
    *replicas = 0;
    for (size_t i = 0; i < master->segment_count; i++) {
        const struct master_segment *segment = master->segments[i];
        if (!overlaps(segment, described))
            continue;
        if (moon_uuid_equal(segment->client->id, client))
            return MOON_STORE_INVALID_PARAMS;
        *replicas += segment->replica_count;
    }
    return MOON_STORE_OK;
}

static void end_overlapped(struct moon_master *master, const struct moon_segment *described) {
    for (size_t i = master->segment_count; i-- > 0;) {
        struct master_segment *segment = master->segments[i];
        if (!overlaps(segment, described))
            continue;
        segment->client->alive = false; /* should it still be there, it shall know */
        end_segment(master, segment, "replaced");
    }
}

/* The same memory is back: what is held of it stays held. */
static void take_over_held(struct moon_master *master, struct master_segment *segment, struct master_segment *gone) {
    moon_extents_close(&segment->extents);
    segment->extents = gone->extents;
    segment->held_bytes = gone->held_bytes;
    segment->replica_count = gone->replica_count;
    if (gone->usable_ns > segment->usable_ns)
        segment->usable_ns = gone->usable_ns;
    while (!moon_list_empty(&gone->replicas)) {
        struct master_replica *replica = MOON_HOLDER(gone->replicas.next, struct master_replica, in_segment);
        moon_list_remove(&replica->in_segment);
        moon_list_add(&segment->replicas, &replica->in_segment);
        replica->segment = segment;
    }
    gone->extents = (struct moon_extents){.memory = segment->extents.memory};
    moon_list_remove(&gone->in_client);
    master->gone_count--;
    moon_master_free_segment(master, gone);
}

static moon_ns last_hold(const struct master_segment *segment) {
    moon_ns last = 0;
    for (const struct moon_list *at = segment->replicas.next; at != &segment->replicas; at = at->next) {
        const struct master_replica *replica = MOON_HOLDER(at, const struct master_replica, in_segment);
        if (replica->hold.time_ns > last)
            last = replica->hold.time_ns;
    }
    return last;
}

/* Memory that is still held of segments that are gone (STORE-052). */
static void mind_held(struct moon_master *master, struct master_segment *segment,
                      const struct moon_segment *described) {
    struct moon_list *next;
    for (struct moon_list *at = master->gone.next; at != &master->gone; at = next) {
        next = at->next;
        struct master_segment *gone = MOON_HOLDER(at, struct master_segment, in_client);
        if (!overlaps(gone, described))
            continue;
        moon_ns last = last_hold(gone);
        if (gone->base == segment->base && gone->size == segment->size)
            take_over_held(master, segment, gone);
        else if (last > segment->usable_ns)
            segment->usable_ns = last;
    }
}

/* Room for a new segment, and its entry under its id. False when memory refused; then there is none. */
static bool list_segment(struct moon_master *master, struct master_segment *segment) {
    struct master_segment **segments =
        moon_memory_grow(master->environment->memory, master->segments, &master->segment_capacity,
                         master->segment_count + 1, sizeof *segments, 8);
    if (!segments)
        return false;
    master->segments = segments;
    return moon_table_add(&master->segments_by_id, &segment->by_id, hash_id(&master->segments_by_id, segment->id)) == 0;
}

/* Mounts a segment of a client that is known. */
static int mount(struct moon_master *master, struct master_client *client, const struct moon_segment *described) {
    size_t replicas;
    uint64_t capacity;
    int code = check_segment(described);
    if (code != MOON_STORE_OK || find_segment(master, described->id))
        return code;
    code = check_overlaps(master, client->id, described, &replicas);
    if (code != MOON_STORE_OK)
        return code;
    if (master->segment_count >= MASTER_SEGMENTS_MAX || master->gone_count >= MASTER_SEGMENTS_MAX ||
        __builtin_add_overflow(master->capacity_bytes, described->size, &capacity))
        return MOON_STORE_UNAVAILABLE_IN_CURRENT_STATUS;
    struct master_segment *segment = new_segment(master, described);
    if (!segment)
        return MOON_STORE_INTERNAL_ERROR;
    if (!moon_master_can_hold(master, replicas) || !list_segment(master, segment)) {
        moon_master_free_segment(master, segment);
        return MOON_STORE_INTERNAL_ERROR;
    }
    end_overlapped(master, described);
    segment->client = client;
    moon_list_add(&client->segments, &segment->in_client);
    master->segments[master->segment_count++] = segment;
    master->capacity_bytes += segment->size;
    mind_held(master, segment, described);
    moon_master_tell_segment(master, "mount", segment, NULL);
    return MOON_STORE_OK;
}

int moon_master_mount(struct moon_master *master, struct moon_uuid id, const struct moon_segment *segment) {
    struct master_client *client;
    bool known = find_client(master, id) != NULL;
    int code = meet_client(master, id, &client);
    if (code != MOON_STORE_OK)
        return code;
    code = mount(master, client, segment);
    if (code != MOON_STORE_OK && !known)
        free_client(master, client);
    return code;
}

int moon_master_remount(struct moon_master *master, struct moon_uuid id, const struct moon_segment segments[],
                        size_t count) {
    struct master_client *client;
    int code = meet_client(master, id, &client);
    if (code != MOON_STORE_OK)
        return code;
    for (size_t i = 0; i < count; i++) {
        code = mount(master, client, &segments[i]);
        /* Wrong ones are passed over: asking again would not make them right. */
        if (code != MOON_STORE_OK && code != MOON_STORE_INVALID_PARAMS)
            return code;
    }
    if (!client->alive)
        moon_master_tell_client(master, "alive", id);
    client->alive = true;
    return MOON_STORE_OK;
}

int moon_master_unmount(struct moon_master *master, struct moon_uuid client, struct moon_uuid id) {
    (void)client; /* whoever knows the id may (STORE-012) */
    struct master_segment *segment = find_segment(master, id);
    if (!segment)
        return MOON_STORE_OK;
    if (!moon_master_can_hold(master, segment->replica_count))
        return MOON_STORE_INTERNAL_ERROR;
    end_segment(master, segment, NULL);
    return MOON_STORE_OK;
}

/* ---- signs of life */

int moon_master_ping(struct moon_master *master, struct moon_uuid id, int64_t *view_version, int *client_status) {
    struct master_client *client = find_client(master, id);
    if (client)
        moon_heap_move(&master->expiry, &client->expiry, expiry_of_now(master));
    *view_version = master->settings.view_version;
    *client_status = client && client->alive ? MOON_CLIENT_OK : MOON_CLIENT_NEED_REMOUNT;
    return MOON_STORE_OK;
}

static size_t replicas_of_client(const struct master_client *client) {
    size_t count = 0;
    for (const struct moon_list *at = client->segments.next; at != &client->segments; at = at->next)
        count += MOON_HOLDER(at, const struct master_segment, in_client)->replica_count;
    return count;
}

static void expire(struct moon_master *master, struct master_client *client) {
    moon_master_tell_client(master, "expire", client->id);
    while (!moon_list_empty(&client->segments))
        end_segment(master, MOON_HOLDER(client->segments.next, struct master_segment, in_client), "expire");
    free_client(master, client);
}

void moon_master_expire_clients(struct moon_master *master) {
    moon_ns now_ns = master_now(master);
    while (moon_heap_deadline(&master->expiry) <= now_ns) {
        struct master_client *client = MOON_HOLDER(moon_heap_first(&master->expiry), struct master_client, expiry);
        /* Far too late: the master itself stood still, and the pings of that time wait to be read (STORE-014). */
        bool late = now_ns - client->expiry.time_ns > MASTER_GRACE_NS;
        if (late || !moon_master_can_hold(master, replicas_of_client(client)))
            moon_heap_move(&master->expiry, &client->expiry, now_ns + MASTER_GRACE_NS);
        else
            expire(master, client);
    }
}
