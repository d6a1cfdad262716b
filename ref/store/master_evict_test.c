/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of eviction: when it runs, how many it takes, and which. */
#include "ref/store/master_rig_internal.h"

static const char *name(int i) {
    static char text[16];
    snprintf(text, sizeof text, "k%d", i);
    return text;
}

/* How many of keys first..last-1 are there: asked without any effect, as a stranger who wants to end the put. */
static int alive(struct rig *rig, int first, int last) {
    int count = 0;
    for (int i = first; i < last; i++)
        count += rig_end(rig, 1234, name(i)) == -601;
    return count;
}

/* Puts keys first..last-1 of `bytes`, a millisecond apart. */
static int put_many(struct rig *rig, int first, int last, uint64_t bytes) {
    int stored = 0;
    for (int i = first; i < last; i++) {
        stored += rig_put(rig, name(i), bytes) == 0;
        rig->environment.now_ns += MS; /* no tick */
    }
    return stored;
}

static struct rig *open_with(int64_t eviction, int64_t watermark, uint64_t size) {
    struct moon_master_settings settings = moon_master_defaults();
    settings.client_ttl_ns = 100000 * S;
    settings.eviction_millionths = eviction;
    settings.watermark_millionths = watermark;
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, size), 0);
    return rig;
}

static void a_failed_allocation_evicts_5_percent_10_ms_later(void) {
    struct rig *rig = open_with(50000, 1000000, 64 * MiB);
    MOON_CHECK_INT(put_many(rig, 0, 64, MiB), 64); /* full, and not over 100 % */
    CU_ASSERT(moon_master_deadline(rig->master) > rig->environment.now_ns + S);
    MOON_CHECK_INT(rig_put(rig, "more", MiB), -200);
    moon_ns armed_ns = rig->environment.now_ns;
    MOON_CHECK_INT(moon_master_deadline(rig->master), armed_ns + 10 * MS);
    rig->environment.now_ns += 5 * MS;
    MOON_CHECK_INT(rig_put(rig, "more", MiB), -200); /* does not put it off */
    MOON_CHECK_INT(moon_master_deadline(rig->master), armed_ns + 10 * MS);
    rig_wait(rig, 5 * MS - 1);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 64);
    rig_wait(rig, 1);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 60); /* ceil(64 * 0.05) */
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "release");
    MOON_CHECK_TEXT(rig_last(rig, 1).what, "evict");
    MOON_CHECK_TEXT(rig_last(rig, 1).key, "k3");
    CU_ASSERT(moon_master_deadline(rig->master) > rig->environment.now_ns + S); /* once */
    MOON_CHECK_INT(put_many(rig, 100, 105, MiB), 4);
    rig_close(rig);
}

static void no_failure_arms_when_the_ratio_is_0_or_segments_are_too_few(void) {
    struct rig *rig = open_with(0, 1000000, MiB);
    MOON_CHECK_INT(rig_put(rig, "k", MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "l", MiB), -200);
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 1);
    rig_close(rig);
    rig = open_with(50000, 1000000, MiB);
    MOON_CHECK_INT(rig_put(rig, "k", MiB), 0);
    MOON_CHECK_INT(rig_start_with(rig, 9, "l", MiB, (struct moon_put_options){.replica_num = 2}), -200);
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 1);
    rig_close(rig);
}

static void the_watermark_must_be_exceeded(void) {
    struct rig *rig = open_with(50000, 900000, 100 * KiB);
    MOON_CHECK_INT(put_many(rig, 0, 90, KiB), 90); /* 90 %: not more */
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 90);
    MOON_CHECK_INT(rig_put(rig, "one", 1), 0);
    rig_wait(rig, 10 * MS - 1);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 91);
    rig_wait(rig, S);
    /* max(0.05, ~0 + 0.05) of 91 objects: 5, rounded up; then it is under the mark */
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 86);
    rig_close(rig);
}

static void a_byte_over_the_watermark_is_over(void) {
    struct rig *rig = open_with(50000, 500000, 64 * MiB);
    MOON_CHECK_INT(put_many(rig, 0, 32, MiB), 32);
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 32);
    MOON_CHECK_INT(rig_put(rig, "one", 1), 0); /* 0.015 millionths of it */
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 31);
    rig_close(rig);
}

static void what_is_above_the_watermark_is_evicted_besides(void) {
    struct rig *rig = open_with(100000, 500000, 100 * KiB);
    MOON_CHECK_INT(put_many(rig, 0, 80, KiB), 80);
    rig->environment.now_ns += S;
    moon_master_tick(rig->master);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 48); /* 80 * (0.8 - 0.5 + 0.1) = 32 go */
    MOON_CHECK_INT(alive(rig, 0, 32), 0);
    MOON_CHECK_INT(alive(rig, 32, 80), 48);
    rig_close(rig);
}

static void the_oldest_lease_goes_first(void) {
    struct rig *rig = open_with(100000, 1000000, 64 * MiB);
    MOON_CHECK_INT(put_many(rig, 0, 40, MiB), 40);
    /* 0..9 were read last, 10..19 before them, their leases are over; 20..29 were never read, 30..39 are leased. */
    for (int i = 10; i < 20; i++)
        MOON_CHECK_INT(rig_exist(rig, name(i)), 1);
    rig_wait(rig, S);
    for (int i = 0; i < 10; i++)
        MOON_CHECK_INT(rig_exist(rig, name(i)), 1);
    rig_wait(rig, 11 * S);
    for (int i = 30; i < 40; i++)
        MOON_CHECK_INT(rig_exist(rig, name(i)), 1);
    MOON_CHECK_INT(put_many(rig, 50, 60, MiB), 10); /* put later than the leases of 0..19 ended */
    static const int evicted_first[] = {20, 10, 0, 50};
    int gone[4] = {0};
    for (int round = 0; round < 20; round++) {
        MOON_CHECK_INT(rig_put(rig, "huge", 64 * MiB), -200);
        rig_wait(rig, 10 * MS);
        for (int g = 0; g < 4; g++) {
            gone[g] = 10 - alive(rig, evicted_first[g], evicted_first[g] + 10);
            if (g > 0 && gone[g] > 0)
                MOON_CHECK_INT(gone[g - 1], 10);
        }
    }
    MOON_CHECK_INT(gone[3], 10);
    MOON_CHECK_INT(alive(rig, 30, 40), 10); /* leased: never */
    rig_close(rig);
}

static void leased_and_pinned_objects_and_open_puts_stay(void) {
    struct rig *rig = open_with(1000000, 1000000, 64 * MiB);
    for (int i = 0; i < 60; i++) {
        MOON_CHECK_INT(
            rig_start_with(rig, 9, name(i), MiB, (struct moon_put_options){.replica_num = 1, .with_hard_pin = i < 20}),
            0);
        if (i < 40)
            MOON_CHECK_INT(rig_end(rig, 9, name(i)), 0);
    }
    for (int i = 10; i < 30; i++)
        MOON_CHECK_INT(rig_exist(rig, name(i)), 1);
    MOON_CHECK_INT(rig_put(rig, "huge", 64 * MiB), -200);
    rig_wait(rig, 10 * MS);
    MOON_CHECK_INT(alive(rig, 0, 60), 50); /* 30..39 went */
    rig_wait(rig, 10 * S);
    MOON_CHECK_INT(rig_put(rig, "huge", 64 * MiB), -200);
    rig_wait(rig, 10 * MS);
    MOON_CHECK_INT(alive(rig, 0, 60), 40); /* 20..29, whose leases are over */
    MOON_CHECK_INT(alive(rig, 0, 20), 20);
    MOON_CHECK_INT(rig_remove(rig, name(0), false), 0); /* a pin does not stop removal */
    rig_close(rig);
}

static void pinned_objects_fill_a_segment_for_good(void) {
    struct rig *rig = open_with(50000, 900000, 64 * MiB);
    for (int i = 0; i < 64; i++) {
        struct moon_put_options pinned = {.replica_num = 1, .with_hard_pin = true};
        MOON_CHECK_INT(rig_start_with(rig, 9, name(i), MiB, pinned), 0);
        MOON_CHECK_INT(rig_end(rig, 9, name(i)), 0);
    }
    for (int i = 0; i < 10; i++) {
        MOON_CHECK_INT(rig_put(rig, "more", MiB), -200);
        rig_wait(rig, 10 * S);
    }
    MOON_CHECK_INT(alive(rig, 0, 64), 64);
    CU_ASSERT(moon_master_deadline(rig->master) > rig->environment.now_ns + 10 * S); /* no idle running */
    rig_close(rig);
}

static void over_the_watermark_it_waits_for_the_first_lease_to_end(void) {
    struct rig *rig = open_with(50000, 500000, 64 * KiB);
    for (int i = 0; i < 32; i++) {
        MOON_CHECK_INT(rig_put(rig, name(i), KiB), 0);
        MOON_CHECK_INT(rig_exist(rig, name(i)), 1);
        rig_wait(rig, MS);
    }
    MOON_CHECK_INT(rig_put(rig, name(32), KiB), 0);
    MOON_CHECK_INT(rig_exist(rig, name(32)), 1);
    rig_wait(rig, 20 * MS);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 33);
    moon_ns first_ns = moon_master_deadline(rig->master);
    CU_ASSERT(first_ns > rig->environment.now_ns + 9 * S); /* when k0's lease is over */
    rig_wait(rig, first_ns - rig->environment.now_ns);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 32);
    MOON_CHECK_INT(alive(rig, 0, 1), 0);
    rig_close(rig);
}

static void less_capacity_may_pass_the_watermark(void) {
    struct rig *rig = open_with(50000, 900000, 100 * KiB);
    struct moon_segment second = rig_segment(2, "owner2", UINT64_C(1) << 33, 100 * KiB);
    MOON_CHECK_INT(put_many(rig, 0, 20, 4 * KiB), 20);
    MOON_CHECK_INT(moon_master_mount(rig->master, rig_client(1), &second), 0);
    MOON_CHECK_INT(put_many(rig, 20, 23, 4 * KiB), 3);
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 23);
    while (moon_master_count(rig->master).allocated_bytes < 150 * KiB)
        put_many(rig, (int)moon_master_count(rig->master).objects, (int)moon_master_count(rig->master).objects + 1,
                 4 * KiB);
    rig_wait(rig, S);
    size_t before = moon_master_count(rig->master).objects;
    MOON_CHECK_INT(moon_master_unmount(rig->master, rig_client(1), second.id), 0);
    size_t left = moon_master_count(rig->master).objects;
    CU_ASSERT(left < before);
    bool over = moon_master_count(rig->master).allocated_bytes > 90 * KiB;
    rig_wait(rig, S);
    CU_ASSERT((moon_master_count(rig->master).objects < left) == over);
    rig_close(rig);
}

static void used_is_what_was_asked_for_not_what_was_rounded(void) {
    struct rig *rig = open_with(50000, 900000, 256 * KiB);
    int stored = put_many(rig, 0, 300, 1025);  /* 1152 each */
    MOON_CHECK_INT(stored, 256 * 1024 / 1152); /* full at 89 % */
    MOON_CHECK_INT(moon_master_count(rig->master).allocated_bytes, (uint64_t)stored * 1025);
    MOON_CHECK_INT(moon_master_count(rig->master).capacity_bytes, 256 * KiB);
    rig_close(rig);
}

static void eviction_without_any_segment_left_finds_nothing(void) {
    struct rig *rig = open_with(50000, 900000, MiB);
    MOON_CHECK_INT(rig_put(rig, "k", MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "l", MiB), -200);
    MOON_CHECK_INT(moon_master_unmount(rig->master, rig_client(1), rig_segment_id(1)), 0);
    rig_wait(rig, S);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 0);
    rig_close(rig);
}

/* 80 puts of 1 MiB back to back, and after a reader has all: what real masters were seen to do with 64 MiB. */
static void pressure_as_measured(void) {
    struct moon_master_settings settings = moon_master_defaults();
    settings.lease_ttl_ns = 2 * S;
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, 64 * MiB), 0);
    int stored = 0;
    for (int i = 0; i < 80; i++) {
        stored += rig_put(rig, name(i), MiB) == 0;
        rig_wait(rig, 5 * MS);
    }
    CU_ASSERT(stored >= 79);
    int left = alive(rig, 0, 80);
    CU_ASSERT(left >= 50 && left <= 60);
    for (int i = 0; i < 80; i++)
        rig_exist(rig, name(i));
    stored = 0;
    for (int i = 100; i < 140; i++) {
        stored += rig_put(rig, name(i), MiB) == 0;
        rig_exist(rig, name(i));
        rig_wait(rig, 5 * MS);
    }
    MOON_CHECK_INT(stored, 64 - left); /* then full, and all leased */
    rig_wait(rig, 3 * S);
    stored = 0;
    for (int i = 200; i < 260; i++) {
        stored += rig_put(rig, name(i), MiB) == 0;
        rig_wait(rig, 30 * MS);
    }
    CU_ASSERT(stored >= 59);
    rig_close(rig);
}

static void settings_out_of_range_are_limited(void) {
    struct moon_master_settings settings = {
        .lease_ttl_ns = INT64_MAX,
        .client_ttl_ns = INT64_MAX,
        .put_start_discard_ns = -5,
        .put_start_release_ns = INT64_MAX,
        .eviction_millionths = -1,
        .watermark_millionths = INT64_MAX,
    };
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 1, "k", KiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", KiB), 0); /* discarded at once */
    MOON_CHECK_INT(rig_end(rig, 2, "k"), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_wait(rig, 100000 * S);
    MOON_CHECK_INT(rig_remove(rig, "k", false), -706);
    rig_close(rig);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a failed allocation evicts 5 percent 10 ms later", a_failed_allocation_evicts_5_percent_10_ms_later},
        {"no failure arms when the ratio is 0 or segments are too few",
         no_failure_arms_when_the_ratio_is_0_or_segments_are_too_few},
        {"the watermark must be exceeded", the_watermark_must_be_exceeded},
        {"a byte over the watermark is over", a_byte_over_the_watermark_is_over},
        {"what is above the watermark is evicted besides", what_is_above_the_watermark_is_evicted_besides},
        {"the oldest lease goes first", the_oldest_lease_goes_first},
        {"leased and pinned objects and open puts stay", leased_and_pinned_objects_and_open_puts_stay},
        {"pinned objects fill a segment for good", pinned_objects_fill_a_segment_for_good},
        {"over the watermark it waits for the first lease to end",
         over_the_watermark_it_waits_for_the_first_lease_to_end},
        {"less capacity may pass the watermark", less_capacity_may_pass_the_watermark},
        {"used is what was asked for, not what was rounded", used_is_what_was_asked_for_not_what_was_rounded},
        {"eviction without any segment left finds nothing", eviction_without_any_segment_left_finds_nothing},
        {"pressure as measured", pressure_as_measured},
        {"settings out of range are limited", settings_out_of_range_are_limited},
        {0},
    };
    return moon_unit_main("master's eviction", cases, argc, argv);
}
