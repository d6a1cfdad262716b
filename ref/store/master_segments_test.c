/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the master's segments, clients and the placing of replicas. */
#include "ref/store/master_rig_internal.h"

static const uint64_t BASE = UINT64_C(1) << 32;

static int mount(struct rig *rig, uint64_t client, struct moon_segment segment) {
    return moon_master_mount(rig->master, rig_client(client), &segment);
}

static int remount(struct rig *rig, uint64_t client, struct moon_segment segment) {
    return moon_master_remount(rig->master, rig_client(client), &segment, 1);
}

static int unmount(struct rig *rig, uint64_t client, uint64_t segment) {
    return moon_master_unmount(rig->master, rig_client(client), rig_segment_id(segment));
}

static void ping_is_ok_only_after_a_remount(void) {
    struct moon_master_settings settings = moon_master_defaults();
    settings.view_version = 7;
    struct rig *rig = rig_open(&settings);
    struct moon_segment segment = rig_segment(1, "a", BASE, MiB);
    MOON_CHECK_INT(rig_ping(rig, 1), 2);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 0); /* asking makes nobody known */
    MOON_CHECK_INT(mount(rig, 1, segment), 0);
    MOON_CHECK_INT(rig_ping(rig, 1), 2);
    MOON_CHECK_INT(remount(rig, 1, segment), 0);
    MOON_CHECK_INT(rig_ping(rig, 1), 1);
    int64_t view = 0;
    int status;
    MOON_CHECK_INT(moon_master_ping(rig->master, rig_client(1), &view, &status), 0);
    MOON_CHECK_INT(view, 7);
    MOON_CHECK_INT(moon_master_remount(rig->master, rig_client(2), NULL, 0), 0); /* no segment is fine */
    MOON_CHECK_INT(rig_ping(rig, 2), 1);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 2);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 1);
    rig_close(rig);
}

static void mounting_twice_is_ok_and_mounts_once(void) {
    struct rig *rig = rig_open(NULL);
    struct moon_segment segment = rig_segment(1, "a", BASE, MiB);
    MOON_CHECK_INT(mount(rig, 1, segment), 0);
    MOON_CHECK_INT(mount(rig, 1, segment), 0);
    MOON_CHECK_INT(mount(rig, 2, segment), 0); /* the id counts */
    MOON_CHECK_INT(remount(rig, 1, segment), 0);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 1);
    MOON_CHECK_INT(moon_master_count(rig->master).capacity_bytes, MiB);
    MOON_CHECK_INT(unmount(rig, 1, 1), 0);
    MOON_CHECK_INT(unmount(rig, 1, 1), 0);
    MOON_CHECK_INT(unmount(rig, 1, 99), 0);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 0);
    MOON_CHECK_INT(moon_master_count(rig->master).capacity_bytes, 0);
    rig_close(rig);
}

static void wrong_segments_are_refused(void) {
    struct rig *rig = rig_open(NULL);
    static char text[MASTER_TEXT_BYTES_MAX + 2];
    memset(text, 'a', sizeof text - 1);
    struct moon_segment good = rig_segment(9, "good", BASE, MiB), long_name = good;
    long_name.name = (struct moon_bytes){text, MASTER_TEXT_BYTES_MAX + 1};
    MOON_CHECK_INT(mount(rig, 1, rig_segment(1, "a", 0, MiB)), -600);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(1, "a", BASE, 0)), -600);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(1, "a", UINT64_MAX, 2)), -600);
    MOON_CHECK_INT(mount(rig, 1, long_name), -600);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
    struct moon_segment two[] = {rig_segment(1, "a", 0, MiB), good};
    MOON_CHECK_INT(moon_master_remount(rig->master, rig_client(1), two, 2), 0); /* passes the wrong one over */
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 1);
    MOON_CHECK_INT(rig_ping(rig, 1), 1);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(2, "huge", BASE, UINT64_MAX - BASE)), 0);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(3, "huger", BASE, UINT64_MAX - BASE)), -1010); /* beyond 2^64 in all */
    rig_close(rig);
}

static void own_segments_must_not_overlap(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(1, "a", BASE, MiB)), 0);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(2, "a", BASE + MiB - 1, MiB)), -600);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(2, "a", BASE - MiB + 1, MiB)), -600);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(2, "a", BASE + 1, 1)), -600);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(2, "a", BASE + MiB, MiB)), 0);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(3, "a", BASE - MiB, MiB)), 0);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(4, "b", BASE, MiB)), 0); /* another endpoint */
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 4);
    struct moon_segment no_endpoint = rig_segment(5, "", BASE, MiB);
    no_endpoint.name = moon_bytes_of("b"); /* stands for the endpoint */
    MOON_CHECK_INT(mount(rig, 1, no_endpoint), -600);
    rig_close(rig);
}

static void there_are_limits_of_clients_and_segments(void) {
    struct rig *rig = rig_open(NULL);
    for (uint64_t i = 0; i < MASTER_CLIENTS_MAX; i++)
        CU_ASSERT(moon_master_remount(rig->master, rig_client(i), NULL, 0) == 0);
    MOON_CHECK_INT(moon_master_remount(rig->master, rig_client(MASTER_CLIENTS_MAX), NULL, 0), -1010);
    MOON_CHECK_INT(mount(rig, MASTER_CLIENTS_MAX, rig_segment(1, "a", BASE, MiB)), -1010);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, MASTER_CLIENTS_MAX);
    rig->master->gone_count = MASTER_SEGMENTS_MAX; /* as if so many were waited for */
    MOON_CHECK_INT(remount(rig, 5, rig_segment(1, "a", BASE, MiB)), -1010);
    rig->master->gone_count = 0;
    MOON_CHECK_INT(remount(rig, 5, rig_segment(1, "a", BASE, MiB)), 0);
    rig_wait(rig, 11 * S);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
    rig_close(rig);
}

/* ---- silence */

static void a_silent_client_is_gone_after_its_time(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "half", 100), 0);
    rig_wait(rig, 5 * S);
    MOON_CHECK_INT(rig_ping(rig, 1), 1);
    rig_wait(rig, 10 * S - 1);
    MOON_CHECK_INT(rig_exist(rig, "k"), 1);
    rig_wait(rig, 1);
    MOON_CHECK_INT(rig_exist(rig, "k"), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), -704);
    MOON_CHECK_INT(rig_remove(rig, "k", false), -704);
    MOON_CHECK_INT(rig_end(rig, 2, "half"), -704); /* a put in flight */
    MOON_CHECK_INT(rig_start(rig, 2, "k", 100), -200);
    MOON_CHECK_INT(rig_ping(rig, 1), 2);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
    MOON_CHECK_INT(moon_master_count(rig->master).allocated_bytes, 0);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "lose");
    MOON_CHECK_TEXT(rig_last(rig, 0).cause, "expire");
    MOON_CHECK_TEXT(rig_last(rig, 1).what, "lose");
    MOON_CHECK_TEXT(rig_last(rig, 2).what, "unmount");
    MOON_CHECK_TEXT(rig_last(rig, 3).what, "expire");
    rig_close(rig);
}

static void who_mounted_and_never_pinged_is_gone_too(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(mount(rig, 1, rig_segment(1, "a", BASE, MiB)), 0);
    rig_wait(rig, 4 * S);
    MOON_CHECK_INT(rig_ping(rig, 1), 2); /* counts as a sign of life all the same */
    rig_wait(rig, 10 * S - 1);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 1);
    rig_wait(rig, 1);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 0);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
    CU_ASSERT(moon_master_deadline(rig->master) == MOON_NS_NEVER);
    rig_close(rig);
}

static void a_master_that_stood_still_reads_pings_before_it_judges(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_mount(rig, 2, MiB), 0);
    rig->environment.now_ns += 60 * S; /* stopped, and continued */
    moon_master_tick(rig->master);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 2);
    MOON_CHECK_INT(rig_ping(rig, 1), 1);
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 1);
    MOON_CHECK_INT(rig_ping(rig, 1), 1);
    MOON_CHECK_INT(rig_ping(rig, 2), 2);
    rig_close(rig);
}

static void early_and_empty_ticks_do_nothing(void) {
    struct rig *rig = rig_open(NULL);
    moon_master_tick(rig->master);
    CU_ASSERT(moon_master_deadline(rig->master) == MOON_NS_NEVER);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(moon_master_deadline(rig->master), rig->environment.now_ns + 10 * S);
    moon_master_tick(rig->master);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 1);
    moon_master_close(NULL);
    rig_close(rig);
}

/* ---- memory of segments that were gone */

static void a_segment_that_comes_back_holds_what_was_leased(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 8 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "unread", 4 * MiB), 0);
    rig_wait(rig, 6 * S);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_wait(rig, 4 * S); /* expired; the lease has 6 s more */
    MOON_CHECK_INT(rig_query(rig, "k"), -704);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 8 * MiB);
    MOON_CHECK_INT(rig_put(rig, "l", 8 * MiB), 0); /* the other half is usable at once */
    MOON_CHECK_INT(rig_put(rig, "m", 8 * MiB), -200);
    rig_live(rig, 1, 6 * S);
    MOON_CHECK_INT(rig_put(rig, "m", 8 * MiB), 0);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 0);
    rig_close(rig);
}

static void held_memory_survives_a_second_loss(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "half", MiB), 0); /* its writer may write for 600 s */
    for (int i = 0; i < 3; i++) {
        MOON_CHECK_INT(unmount(rig, 1, 1), 0);
        MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 0); /* not mounted: nobody's */
        MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
        MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, MiB);
        MOON_CHECK_INT(rig_put(rig, "k", 100), -200);
        rig_live(rig, 1, 100 * S);
    }
    MOON_CHECK_INT(unmount(rig, 1, 1), 0);
    rig_wait(rig, 300 * S);
    CU_ASSERT(moon_master_deadline(rig->master) == MOON_NS_NEVER);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    rig_close(rig);
}

static void other_memory_of_the_endpoint_waits_for_what_is_held(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_put(rig, "l", 100), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_live(rig, 1, S);
    MOON_CHECK_INT(rig_query(rig, "l"), 0);
    MOON_CHECK_INT(unmount(rig, 1, 1), 0);
    MOON_CHECK_INT(mount(rig, 2, rig_segment(2, "owner1", BASE + MiB, MiB)), 0); /* beside it: not concerned */
    MOON_CHECK_INT(rig_put(rig, "b", 100), 0);
    MOON_CHECK_INT(unmount(rig, 2, 2), 0);
    MOON_CHECK_INT(mount(rig, 2, rig_segment(3, "owner1", BASE, 2 * MiB)), 0); /* larger, the same place */
    MOON_CHECK_INT(rig_put(rig, "c", 100), -200);
    MOON_CHECK_INT(remount(rig, 2, rig_segment(3, "owner1", BASE, 2 * MiB)), 0);
    rig_live(rig, 2, 10 * S - 1);
    MOON_CHECK_INT(rig_put(rig, "c", 100), -200);
    MOON_CHECK_INT(unmount(rig, 2, 3), 0);
    MOON_CHECK_INT(mount(rig, 2, rig_segment(4, "owner1", BASE, 2 * MiB)), 0);
    MOON_CHECK_INT(rig_put(rig, "c", 100), -200);
    rig_live(rig, 2, 1);
    MOON_CHECK_INT(rig_put(rig, "c", 100), 0);
    rig_close(rig);
}

static void another_client_at_the_same_place_ends_the_old_segment(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    MOON_CHECK_INT(mount(rig, 2, rig_segment(2, "owner1", BASE, MiB)), 0);
    MOON_CHECK_INT(moon_master_count(rig->master).segments, 1);
    MOON_CHECK_INT(rig_query(rig, "k"), -704);
    MOON_CHECK_INT(rig_ping(rig, 1), 2);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 100);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 100), 0); /* the recorder checks that it is other memory */
    MOON_CHECK_INT(rig->list.replicas[0].address, BASE + 104);
    rig_close(rig);
}

/* ---- placing */

static void replicas_lie_on_segments_of_different_names(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_start_with(rig, 9, "one", 100, (struct moon_put_options){.replica_num = 3}), 0);
    MOON_CHECK_INT(rig->list.count, 1); /* fewer than asked for */
    struct moon_segment same_name = rig_segment(2, "b", BASE, MiB);
    same_name.name = moon_bytes_of("owner1");
    MOON_CHECK_INT(mount(rig, 2, same_name), 0);
    MOON_CHECK_INT(rig_start_with(rig, 9, "two", 100, (struct moon_put_options){.replica_num = 2}), 0);
    MOON_CHECK_INT(rig->list.count, 1);
    MOON_CHECK_INT(rig_mount(rig, 3, MiB), 0);
    MOON_CHECK_INT(rig_mount(rig, 4, MiB), 0);
    MOON_CHECK_INT(rig_start_with(rig, 9, "three", 100, (struct moon_put_options){.replica_num = UINT64_MAX}), 0);
    MOON_CHECK_INT(rig->list.count, 3);
    MOON_CHECK_INT(rig_end(rig, 9, "three"), 0);
    MOON_CHECK_INT(rig_query(rig, "three"), 0);
    MOON_CHECK_INT(rig->list.count, 3);
    MOON_CHECK_INT(unmount(rig, 3, 3), 0); /* two are left */
    MOON_CHECK_INT(rig_query(rig, "three"), 0);
    MOON_CHECK_INT(rig->list.count, 2);
    MOON_CHECK_INT(unmount(rig, 4, 4), 0);
    MOON_CHECK_INT(rig_query(rig, "three"), 0);
    MOON_CHECK_INT(rig->list.count, 1);
    rig_close(rig);
}

static void the_first_segment_is_drawn(void) {
    struct rig *rig = rig_open(NULL);
    unsigned on[5] = {0};
    for (uint64_t i = 1; i <= 4; i++)
        MOON_CHECK_INT(rig_mount(rig, i, MiB), 0);
    struct moon_random before = rig->environment.random, after;
    for (int i = 0; i < 400; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        MOON_CHECK_INT(rig_start(rig, 9, key, 8), 0);
        on[rig->list.replicas[0].endpoint.data[5] - '0']++;
    }
    for (int i = 1; i <= 4; i++)
        CU_ASSERT(on[i] > 60 && on[i] < 140);
    after = before;
    for (int i = 0; i < 400; i++)
        moon_random_below(&after, 4); /* one draw a put, no other */
    CU_ASSERT(memcmp(&after, &rig->environment.random, sizeof after) == 0);
    rig_close(rig);
}

static void preferred_segments_come_first_and_only_as_a_hint(void) {
    struct rig *rig = rig_open(NULL);
    for (uint64_t i = 1; i <= 4; i++)
        MOON_CHECK_INT(rig_mount(rig, i, MiB), 0);
    struct moon_bytes names[] = {moon_bytes_of("nobody"), moon_bytes_of("owner3"), moon_bytes_of("owner2")};
    struct moon_put_options one = {.replica_num = 1, .preferred = names, .preferred_count = 3}, two = one;
    two.replica_num = 2;
    for (int i = 0; i < 8; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        MOON_CHECK_INT(rig_start_with(rig, 9, key, 128 * KiB, i % 2 ? two : one), 0);
        CU_ASSERT(moon_bytes_equal(rig->list.replicas[0].endpoint, moon_bytes_of("owner3")));
        if (i % 2)
            CU_ASSERT(moon_bytes_equal(rig->list.replicas[1].endpoint, moon_bytes_of("owner2")));
    }
    MOON_CHECK_INT(rig_start_with(rig, 9, "full", 128 * KiB, one), 0); /* owner3 is full */
    CU_ASSERT(moon_bytes_equal(rig->list.replicas[0].endpoint, moon_bytes_of("owner2")));
    one.preferred_count = 2;
    MOON_CHECK_INT(rig_start_with(rig, 9, "any", 128 * KiB, one), 0);
    CU_ASSERT(!moon_bytes_equal(rig->list.replicas[0].endpoint, moon_bytes_of("owner3")));
    rig_close(rig);
}

static void of_one_name_the_oldest_segment_is_preferred(void) {
    struct rig *rig = rig_open(NULL);
    struct moon_segment old = rig_segment(1, "p:1", BASE, MiB), young = rig_segment(2, "p:2", BASE, MiB);
    old.name = young.name = moon_bytes_of("host");
    MOON_CHECK_INT(mount(rig, 1, old), 0);
    MOON_CHECK_INT(mount(rig, 2, young), 0);
    struct moon_bytes name = moon_bytes_of("host");
    struct moon_put_options options = {.replica_num = 1, .preferred = &name, .preferred_count = 1};
    for (int i = 0; i < 8; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        MOON_CHECK_INT(rig_start_with(rig, 9, key, 100, options), 0);
        CU_ASSERT(moon_bytes_equal(rig->list.replicas[0].endpoint, moon_bytes_of("p:1")));
    }
    rig_close(rig);
}

static void a_scan_looks_at_100_segments(void) {
    struct rig *rig = rig_open(NULL);
    for (uint64_t i = 1; i <= 300; i++)
        MOON_CHECK_INT(rig_mount(rig, i, i <= 150 ? 64 : MiB), 0); /* half of them too small */
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        int code = rig_start(rig, 9, key, 4096);
        CU_ASSERT(code == 0 || code == -200);
        refused += code == -200;
    }
    CU_ASSERT(refused > 20 && refused < 90); /* a sixth */
    rig_close(rig);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"ping is OK only after a remount", ping_is_ok_only_after_a_remount},
        {"mounting twice is OK and mounts once", mounting_twice_is_ok_and_mounts_once},
        {"wrong segments are refused", wrong_segments_are_refused},
        {"own segments must not overlap", own_segments_must_not_overlap},
        {"there are limits of clients and segments", there_are_limits_of_clients_and_segments},
        {"a silent client is gone after its time", a_silent_client_is_gone_after_its_time},
        {"who mounted and never pinged is gone too", who_mounted_and_never_pinged_is_gone_too},
        {"a master that stood still reads pings before it judges",
         a_master_that_stood_still_reads_pings_before_it_judges},
        {"early and empty ticks do nothing", early_and_empty_ticks_do_nothing},
        {"a segment that comes back holds what was leased", a_segment_that_comes_back_holds_what_was_leased},
        {"held memory survives a second loss", held_memory_survives_a_second_loss},
        {"other memory of the endpoint waits for what is held", other_memory_of_the_endpoint_waits_for_what_is_held},
        {"another client at the same place ends the old segment",
         another_client_at_the_same_place_ends_the_old_segment},
        {"replicas lie on segments of different names", replicas_lie_on_segments_of_different_names},
        {"the first segment is drawn", the_first_segment_is_drawn},
        {"preferred segments come first and only as a hint", preferred_segments_come_first_and_only_as_a_hint},
        {"of one name the oldest segment is preferred", of_one_name_the_oldest_segment_is_preferred},
        {"a scan looks at 100 segments", a_scan_looks_at_100_segments},
        {0},
    };
    return moon_unit_main("master's segments", cases, argc, argv);
}
