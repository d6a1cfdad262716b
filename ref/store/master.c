/* SPDX-License-Identifier: Apache-2.0 */
/* The master as a whole: opening, closing, its ticks, and what there is in it. */
#include "ref/base/number.h"
#include "ref/store/master_internal.h"

struct moon_master_settings moon_master_defaults(void) {
    return (struct moon_master_settings){
        .lease_ttl_ns = 10 * MOON_NS_PER_S,
        .client_ttl_ns = 10 * MOON_NS_PER_S,
        .put_start_discard_ns = 30 * MOON_NS_PER_S,
        .put_start_release_ns = 600 * MOON_NS_PER_S,
        .eviction_millionths = 50000,
        .watermark_millionths = 900000,
    };
}

/* Times that can be added to any clock, and ratios from 0 to 1. */
static struct moon_master_settings sane(struct moon_master_settings settings) {
    static const moon_ns LONGEST_NS = MOON_NS_PER_S * 86400 * 365 * 100;
    moon_ns *times[] = {&settings.lease_ttl_ns, &settings.client_ttl_ns, &settings.put_start_discard_ns,
                        &settings.put_start_release_ns};
    int64_t *ratios[] = {&settings.eviction_millionths, &settings.watermark_millionths};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        *times[i] = moon_smaller(moon_larger(*times[i], 0), LONGEST_NS);
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++)
        *ratios[i] = moon_smaller(moon_larger(*ratios[i], 0), 1000000);
    return settings;
}

struct moon_master *moon_master_open(struct moon_environment *environment,
                                     const struct moon_master_settings *settings) {
    struct moon_master *master = environment->memory->resize(environment->memory, NULL, 0, sizeof *master);
    if (!master)
        return NULL;
    *master =
        (struct moon_master){.environment = environment, .settings = sane(*settings), .eviction_ns = MOON_NS_NEVER};
    moon_table_open(&master->clients, environment->memory, &environment->random);
    moon_table_open(&master->segments_by_id, environment->memory, &environment->random);
    moon_table_open(&master->objects, environment->memory, &environment->random);
    moon_heap_open(&master->expiry, environment->memory);
    moon_heap_open(&master->holds, environment->memory);
    moon_list_open(&master->gone);
    moon_list_open(&master->all);
    for (int i = 0; i < MASTER_QUEUES; i++)
        moon_list_open(&master->queues[i]);
    return master;
}

/* Segments with all that lies in them; objects are gone already. */
static void close_segments(struct moon_master *master, struct moon_list *segments) {
    while (!moon_list_empty(segments)) {
        struct master_segment *segment = MOON_HOLDER(segments->next, struct master_segment, in_client);
        while (!moon_list_empty(&segment->replicas)) {
            struct master_replica *replica = MOON_HOLDER(segment->replicas.next, struct master_replica, in_segment);
            moon_list_remove(&replica->in_segment);
            master_free(master, replica, sizeof *replica);
        }
        moon_list_remove(&segment->in_client);
        moon_master_free_segment(master, segment);
    }
}

void moon_master_close(struct moon_master *master) {
    if (!master)
        return;
    while (!moon_list_empty(&master->all)) {
        struct master_object *object = MOON_HOLDER(master->all.next, struct master_object, in_all);
        moon_list_remove(&object->in_all);
        master_free(master, object, sizeof *object + object->key_length);
    }
    close_segments(master, &master->gone);
    struct moon_heap_node *first;
    while ((first = moon_heap_first(&master->expiry)) != NULL) {
        struct master_client *client = MOON_HOLDER(first, struct master_client, expiry);
        moon_heap_remove(&master->expiry, first);
        close_segments(master, &client->segments);
        master_free(master, client, sizeof *client);
    }
    moon_heap_close(&master->expiry);
    moon_heap_close(&master->holds);
    moon_table_close(&master->clients);
    moon_table_close(&master->segments_by_id);
    moon_table_close(&master->objects);
    master_free(master, master->segments, master->segment_capacity * sizeof(struct master_segment *));
    master_free(master, master, sizeof *master);
}

moon_ns moon_master_deadline(const struct moon_master *master) {
    moon_ns deadline = moon_smaller(moon_heap_deadline(&master->expiry), moon_heap_deadline(&master->holds));
    return moon_smaller(deadline, moon_master_eviction_deadline(master));
}

/* Memory comes back before anything is evicted for the want of it. */
void moon_master_tick(struct moon_master *master) {
    moon_master_release_held(master);
    moon_master_expire_clients(master);
    moon_master_evict(master);
}

struct moon_master_counts moon_master_count(const struct moon_master *master) {
    struct moon_master_counts counts = {
        .clients = master->clients.count,
        .segments = master->segment_count,
        .objects = master->objects.count,
        .capacity_bytes = master->capacity_bytes,
        .allocated_bytes = master->allocated_bytes,
    };
    for (size_t i = 0; i < master->segment_count; i++)
        counts.held_bytes += master->segments[i]->held_bytes;
    return counts;
}
