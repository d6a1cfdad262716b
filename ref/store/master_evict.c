/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction of the objects that were not read for longest, and of puts that never ended. */
#include "ref/base/number.h"
#include "ref/store/master_internal.h"

static const int64_t MILLION = 1000000;

/* Part of the capacity that objects have asked for, in millionths, rounded up: more than the watermark exactly when
 * the exact ratio is. */
static int64_t used_millionths(const struct moon_master *master) {
    if (master->capacity_bytes == 0)
        return 0;
    __extension__ typedef unsigned __int128 wide;
    wide scaled = (wide)master->allocated_bytes * (wide)MILLION + (master->capacity_bytes - 1);
    return (int64_t)(scaled / master->capacity_bytes);
}

static bool over_watermark(const struct moon_master *master) {
    return used_millionths(master) > master->settings.watermark_millionths;
}

static void arm(struct moon_master *master, moon_ns time_ns) {
    master->eviction_ns = moon_smaller(master->eviction_ns, time_ns);
}

void moon_master_arm_after_failure(struct moon_master *master) {
    if (master->settings.eviction_millionths > 0)
        arm(master, master_now(master) + MASTER_EVICTION_DELAY_NS);
}

/* The complete, not pinned object with the smallest lease time; NULL if there is none. Both queues are in order. */
static struct master_object *oldest(const struct moon_master *master) {
    const struct moon_list *ended = &master->queues[MASTER_ENDED], *leased = &master->queues[MASTER_LEASED];
    struct master_object *a = moon_list_empty(ended) ? NULL : master_object_of(ended->next);
    struct master_object *b = moon_list_empty(leased) ? NULL : master_object_of(leased->next);
    if (!a || !b)
        return a ? a : b;
    return b->lease_ns < a->lease_ns ? b : a;
}

/* Nothing is armed before there is something to evict. */
void moon_master_arm_by_watermark(struct moon_master *master) {
    const struct master_object *first = oldest(master);
    if (first && over_watermark(master))
        arm(master, moon_larger(master_now(master) + MASTER_EVICTION_DELAY_NS, first->lease_ns));
}

static void evict_oldest(struct moon_master *master) {
    int64_t base = (int64_t)(master->queue_counts[MASTER_ENDED] + master->queue_counts[MASTER_LEASED]);
    int64_t ratio = master->settings.eviction_millionths;
    int64_t target = moon_larger(ratio, used_millionths(master) - master->settings.watermark_millionths + ratio);
    int64_t wanted = (base * target + MILLION - 1) / MILLION;
    struct master_object *object;
    for (; wanted > 0 && (object = oldest(master)) && object->lease_ns <= master_now(master); wanted--)
        moon_master_drop(master, object, object->lease_ns, "evict", NULL);
}

static struct master_object *oldest_put(const struct moon_master *master) {
    const struct moon_list *processing = &master->queues[MASTER_PROCESSING];
    return moon_list_empty(processing) ? NULL : master_object_of(processing->next);
}

/* Puts that never ended go in a pass of eviction when they are older than the release time, and without one when they
 * are twice as old (STORE-034). */
static void discard_stale(struct moon_master *master, moon_ns age_ns) {
    struct master_object *object;
    while ((object = oldest_put(master)) && object->put_start_ns + age_ns <= master_now(master))
        moon_master_drop(master, object, moon_master_writer_end(master, object), "discard", "stale");
}

moon_ns moon_master_eviction_deadline(const struct moon_master *master) {
    const struct master_object *put = oldest_put(master);
    if (!put)
        return master->eviction_ns;
    return moon_smaller(master->eviction_ns, put->put_start_ns + 2 * master->settings.put_start_release_ns);
}

void moon_master_evict(struct moon_master *master) {
    discard_stale(master, 2 * master->settings.put_start_release_ns);
    if (master->eviction_ns > master_now(master))
        return;
    master->eviction_ns = MOON_NS_NEVER;
    discard_stale(master, master->settings.put_start_release_ns);
    evict_oldest(master);
    moon_master_arm_by_watermark(master);
}
