/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the master's objects: puts, leases, removal. Numbers are those that real masters were seen to answer. */
#include "ref/store/master_rig_internal.h"

static struct moon_master_settings short_times(void) {
    struct moon_master_settings settings = moon_master_defaults();
    settings.put_start_discard_ns = 4 * S;
    settings.put_start_release_ns = 9 * S;
    settings.client_ttl_ns = 100 * S;
    return settings;
}

static void the_defaults_are_mooncakes(void) {
    struct moon_master_settings defaults = moon_master_defaults();
    MOON_CHECK_INT(defaults.lease_ttl_ns, 10 * S);
    MOON_CHECK_INT(defaults.client_ttl_ns, 10 * S);
    MOON_CHECK_INT(defaults.put_start_discard_ns, 30 * S);
    MOON_CHECK_INT(defaults.put_start_release_ns, 600 * S);
    MOON_CHECK_INT(defaults.eviction_millionths, 50000);
    MOON_CHECK_INT(defaults.watermark_millionths, 900000);
}

static void a_put_is_seen_by_nobody_before_its_end(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 5000), 0);
    MOON_CHECK_INT(rig->list.count, 1);
    MOON_CHECK_INT(rig->list.replicas[0].status, MOON_REPLICA_PROCESSING);
    MOON_CHECK_INT(rig->list.replicas[0].address, UINT64_C(1) << 32);
    MOON_CHECK_INT(rig->list.replicas[0].size, 5000);
    CU_ASSERT(moon_bytes_equal(rig->list.replicas[0].endpoint, moon_bytes_of("owner1")));
    CU_ASSERT(moon_bytes_equal(rig->list.replicas[0].protocol, moon_bytes_of("tcp")));
    uint64_t id = rig->list.replicas[0].id;
    MOON_CHECK_INT(rig_exist(rig, "k"), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), -703);
    MOON_CHECK_INT(rig_remove(rig, "k", false), -703);
    MOON_CHECK_INT(rig_remove(rig, "k", true), -703);
    MOON_CHECK_INT(rig_remove_all(rig, true), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 5000), -705);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 100), -705);
    MOON_CHECK_INT(rig_end(rig, 2, "k"), 0);
    MOON_CHECK_INT(rig_exist(rig, "k"), 1);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    MOON_CHECK_INT(rig->list.count, 1);
    MOON_CHECK_INT(rig->list.replicas[0].status, MOON_REPLICA_COMPLETE);
    MOON_CHECK_INT(rig->list.replicas[0].id, id);
    MOON_CHECK_INT(rig->list.lease_ttl_ns, 10 * S);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 100), -705);
    MOON_CHECK_INT(rig_start(rig, 2, "l", 5000), 0);
    MOON_CHECK_INT(rig->list.replicas[0].address, (UINT64_C(1) << 32) + 5120);
    MOON_CHECK_INT(rig->list.replicas[0].id, id + 1);
    rig_close(rig);
}

static void wrong_puts_are_refused(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 100), -200); /* no segment */
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "", 100), -600);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 0), -600);
    MOON_CHECK_INT(rig_start_with(rig, 2, "k", 100, (struct moon_put_options){.replica_num = 0}), -600);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 16 * MiB + 1), -200);
    MOON_CHECK_INT(rig_start(rig, 2, "k", UINT64_MAX), -200);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 16 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "l", 1), -200);
    MOON_CHECK_INT(rig_query(rig, "l"), -704);
    MOON_CHECK_INT(rig_exist(rig, ""), 0);
    MOON_CHECK_INT(rig_query(rig, ""), -704);
    MOON_CHECK_INT(rig_remove(rig, "", true), -704);
    rig_close(rig);
}

static void only_the_writer_ends_and_revokes(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_end(rig, 2, "k"), -704);
    MOON_CHECK_INT(rig_revoke(rig, 2, "k"), -704);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 100), 0);
    MOON_CHECK_INT(rig_end(rig, 3, "k"), -601);
    MOON_CHECK_INT(rig_revoke(rig, 3, "k"), -601);
    MOON_CHECK_INT(rig_end(rig, 2, "k"), 0);
    MOON_CHECK_INT(rig_end(rig, 2, "k"), 0);
    MOON_CHECK_INT(rig_revoke(rig, 2, "k"), -700);
    MOON_CHECK_INT(rig_revoke(rig, 3, "k"), -601);
    MOON_CHECK_INT(rig_end(rig, 3, "k"), -601);
    MOON_CHECK_INT(rig_start(rig, 2, "l", 100), 0);
    MOON_CHECK_INT(rig_revoke(rig, 2, "l"), 0);
    MOON_CHECK_INT(rig_query(rig, "l"), -704);
    MOON_CHECK_INT(rig_revoke(rig, 2, "l"), -704);
    MOON_CHECK_INT(rig_start(rig, 3, "l", 100), 0);
    rig_close(rig);
}

static void replica_types_other_than_memory_select_nothing(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    struct moon_bytes key = moon_bytes_of("k");
    MOON_CHECK_INT(rig_start(rig, 2, "k", 100), 0);
    for (int type = 1; type <= 3; type++) {
        MOON_CHECK_INT(moon_master_put_end(rig->master, rig_client(2), RIG_TENANT, key, type), 0);
        MOON_CHECK_INT(moon_master_put_revoke(rig->master, rig_client(2), RIG_TENANT, key, type), 0);
        MOON_CHECK_INT(rig_query(rig, "k"), -703);
    }
    MOON_CHECK_INT(moon_master_put_end(rig->master, rig_client(2), RIG_TENANT, key, 0), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_close(rig);
}

static void a_put_grants_no_lease_but_reading_does(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_remove(rig, "k", false), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_exist(rig, "k"), 1);
    MOON_CHECK_INT(rig_remove(rig, "k", false), -706);
    rig_wait(rig, 5 * S);
    MOON_CHECK_INT(rig_query(rig, "k"), 0); /* longer */
    rig_ping(rig, 1);
    rig_wait(rig, 10 * S - 1);
    MOON_CHECK_INT(rig_remove(rig, "k", false), -706);
    MOON_CHECK_INT(rig_remove_all(rig, false), 0);
    rig_ping(rig, 1);
    rig_wait(rig, 1);
    MOON_CHECK_INT(rig_remove(rig, "k", false), 0);
    MOON_CHECK_INT(rig_remove(rig, "k", false), -704);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    MOON_CHECK_INT(rig_remove(rig, "k", true), 0);
    MOON_CHECK_INT(rig_remove(rig, "k", true), -704);
    rig_close(rig);
}

static void a_lease_of_zero_protects_nothing(void) {
    struct moon_master_settings settings = moon_master_defaults();
    settings.lease_ttl_ns = 0;
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_exist(rig, "k"), 1);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    MOON_CHECK_INT(rig->list.lease_ttl_ns, 0);
    MOON_CHECK_INT(rig_remove(rig, "k", false), 0);
    rig_close(rig);
}

static void remove_all_counts_what_it_removes(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "a", 100), 0);
    MOON_CHECK_INT(rig_put(rig, "b", 100), 0);
    MOON_CHECK_INT(rig_put(rig, "c", 100), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "d", 100), 0);
    MOON_CHECK_INT(rig_exist(rig, "b"), 1);
    size_t before = rig->records;
    MOON_CHECK_INT(rig_remove_all(rig, false), 2);
    MOON_CHECK_INT(rig->records - before, 4); /* each removed, its memory released; by creation */
    MOON_CHECK_TEXT(rig_last(rig, 3).key, "a");
    MOON_CHECK_TEXT(rig_last(rig, 1).key, "c");
    MOON_CHECK_INT(moon_master_remove_all(rig->master, moon_bytes_of("default"), true), 1);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, 1);
    MOON_CHECK_INT(rig_query(rig, "d"), -703);
    rig_close(rig);
}

static void tenants_are_all_the_same_one(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    bool exists = false;
    MOON_CHECK_INT(moon_master_exist(rig->master, moon_bytes_of("blue"), moon_bytes_of("k"), &exists), 0);
    CU_ASSERT(exists);
    MOON_CHECK_INT(moon_master_remove_all(rig->master, moon_bytes_of("red"), true), 1);
    rig_close(rig);
}

static void keys_are_any_bytes(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    struct moon_bytes a = {"a\0b", 3}, b = {"a\0c", 3}, c = {"a", 1};
    struct moon_put_options options = {.replica_num = 1};
    bool exists;
    MOON_CHECK_INT(moon_master_put_start(rig->master, rig_client(1), RIG_TENANT, a, 10, &options, &rig->list), 0);
    MOON_CHECK_INT(moon_master_put_end(rig->master, rig_client(1), RIG_TENANT, a, 4), 0);
    MOON_CHECK_INT(moon_master_exist(rig->master, RIG_TENANT, a, &exists), 0);
    CU_ASSERT(exists);
    MOON_CHECK_INT(moon_master_exist(rig->master, RIG_TENANT, b, &exists), 0);
    CU_ASSERT(!exists);
    MOON_CHECK_INT(moon_master_exist(rig->master, RIG_TENANT, c, &exists), 0);
    CU_ASSERT(!exists);
    rig_close(rig);
}

/* ---- puts that do not end */

static void a_put_may_be_taken_over_after_the_discard_time(void) {
    struct moon_master_settings settings = short_times();
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, 64 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 100), 0);
    rig_wait(rig, 4 * S - 1);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 200), -705);
    rig_wait(rig, 1);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 200), 0);
    MOON_CHECK_TEXT(rig_last(rig, 1).what, "discard");
    MOON_CHECK_TEXT(rig_last(rig, 1).cause, "taken over");
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 100);
    MOON_CHECK_INT(moon_master_count(rig->master).allocated_bytes, 200);
    MOON_CHECK_INT(rig_end(rig, 2, "k"), -601);
    MOON_CHECK_INT(rig_revoke(rig, 2, "k"), -601);
    MOON_CHECK_INT(rig_end(rig, 3, "k"), 0);
    MOON_CHECK_INT(rig_end(rig, 2, "k"), -601);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    MOON_CHECK_INT(rig->list.replicas[0].size, 200);
    rig_wait(rig, 5 * S - 1);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 100);
    rig_wait(rig, 1); /* the release time since the first writer's start */
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 0);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "release");
    rig_close(rig);
}

static void late_ends_complete_a_put_that_nobody_took(void) {
    struct moon_master_settings settings = short_times();
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, 64 * MiB), 0);
    static const moon_ns late_ns[] = {1 * S, 5 * S, 10 * S};
    static const char *const keys[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        MOON_CHECK_INT(rig_start(rig, 2, keys[i], 100), 0);
        rig_wait(rig, late_ns[i]);
        MOON_CHECK_INT(rig_end(rig, 2, keys[i]), 0);
        MOON_CHECK_INT(rig_query(rig, keys[i]), 0);
    }
    MOON_CHECK_INT(rig_start(rig, 2, "d", 100), 0);
    rig_wait(rig, 18 * S - 1);
    MOON_CHECK_INT(rig_query(rig, "d"), -703);
    rig_wait(rig, 1); /* twice the release time, without any eviction */
    MOON_CHECK_INT(rig_query(rig, "d"), -704);
    MOON_CHECK_INT(rig_end(rig, 2, "d"), -704);
    rig_close(rig);
}

/* 40 MiB half put on 64 MiB; a put of 30 MiB fits after the release time, when an allocation had failed. */
static void memory_of_a_half_put_is_back_after_the_release_time(void) {
    struct moon_master_settings settings = short_times();
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, 64 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "half", 40 * MiB), 0);
    moon_ns begin_ns = rig->environment.now_ns;
    while (rig_put(rig, "k", 30 * MiB) == -200)
        rig_wait(rig, 100 * MS);
    moon_ns took_ns = rig->environment.now_ns - begin_ns;
    CU_ASSERT(took_ns > 9 * S && took_ns <= 9 * S + 200 * MS);
    MOON_CHECK_INT(rig_query(rig, "half"), -704);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_close(rig);
}

static void a_take_over_that_finds_no_memory_loses_the_key(void) {
    struct moon_master_settings settings = short_times();
    struct rig *rig = rig_open(&settings);
    MOON_CHECK_INT(rig_mount(rig, 1, 64 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 40 * MiB), 0);
    rig_wait(rig, 4 * S);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 40 * MiB), -200);
    MOON_CHECK_INT(rig_query(rig, "k"), -704);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 40 * MiB);
    rig_wait(rig, 5 * S);
    MOON_CHECK_INT(rig_start(rig, 3, "k", 40 * MiB), 0);
    rig_close(rig);
}

/* ---- memory is not used again while somebody may use it */

static void forced_removal_holds_memory_until_the_lease_is_over(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 16 * MiB), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_ping(rig, 1);
    MOON_CHECK_INT(rig_remove(rig, "k", true), 0);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "remove");
    MOON_CHECK_TEXT(rig_last(rig, 0).cause, "force");
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 16 * MiB);
    MOON_CHECK_INT(moon_master_count(rig->master).allocated_bytes, 0);
    MOON_CHECK_INT(rig_put(rig, "k", 16 * MiB), -200);
    rig_live(rig, 1, 10 * S - 1);
    MOON_CHECK_INT(rig_put(rig, "k", 16 * MiB), -200);
    rig_live(rig, 1, 1);
    MOON_CHECK_INT(rig_put(rig, "k", 16 * MiB), 0);
    MOON_CHECK_INT(rig_remove(rig, "k", false), 0); /* not read: back at once */
    MOON_CHECK_INT(rig_put(rig, "k", 16 * MiB), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    MOON_CHECK_INT(rig_remove_all(rig, true), 1);
    MOON_CHECK_INT(rig_put(rig, "k", 16 * MiB), -200);
    rig_close(rig);
}

static void the_last_moment_of_a_lease_counts(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", MiB), 0);
    MOON_CHECK_INT(rig_query(rig, "k"), 0);
    rig_ping(rig, 1);
    rig_wait(rig, 10 * S - 1);
    MOON_CHECK_INT(rig_remove(rig, "k", true), 0);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, MiB);
    rig_wait(rig, 0);
    MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, MiB);
    rig_close(rig);
}

static void revoked_memory_is_held_for_30_s(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 16 * MiB), 0);
    MOON_CHECK_INT(rig_revoke(rig, 2, "k"), 0);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 16 * MiB), -200);
    rig_live(rig, 1, 30 * S - 1);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 16 * MiB), -200);
    rig_live(rig, 1, 1);
    MOON_CHECK_INT(rig_start(rig, 2, "k", 16 * MiB), 0);
    rig_close(rig);
}

/* ---- records */

static void the_life_of_an_object_is_told(void) {
    struct rig *rig = rig_open(NULL);
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    struct rig_record last = rig_last(rig, 1);
    MOON_CHECK_TEXT(last.what, "mount");
    MOON_CHECK_TEXT(last.endpoint, "owner1");
    MOON_CHECK_INT(last.length, 16 * MiB);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "alive");
    MOON_CHECK_TEXT(rig_last(rig, 0).cause, "client 000000000000c11e-0000000000000001");
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_TEXT(rig_last(rig, 1).what, "put-start");
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "put-end");
    MOON_CHECK_INT(rig_last(rig, 0).offset, UINT64_C(1) << 32);
    MOON_CHECK_INT(rig_exist(rig, "k"), 1);
    last = rig_last(rig, 0);
    MOON_CHECK_TEXT(last.what, "lease");
    MOON_CHECK_TEXT(last.key, "k");
    MOON_CHECK_INT(last.lease_ns, rig->environment.now_ns + 10 * S);
    CU_ASSERT(last.has & MOON_RECORD_HAS_LEASE && last.has & MOON_RECORD_HAS_TENANT);
    MOON_CHECK_INT(rig_remove(rig, "k", true), 0);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "remove");
    rig_live(rig, 1, 10 * S);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "release");
    MOON_CHECK_TEXT(rig_last(rig, 0).key, "");
    MOON_CHECK_INT(rig_start(rig, 2, "l", 100), 0);
    MOON_CHECK_INT(rig_revoke(rig, 2, "l"), 0);
    MOON_CHECK_TEXT(rig_last(rig, 0).what, "revoke");
    CU_ASSERT(!(rig_last(rig, 0).has & MOON_RECORD_HAS_LEASE));
    rig_close(rig);
}

static void without_a_recorder_all_works(void) {
    struct rig *rig = rig_open(NULL);
    rig->environment.recorder = NULL;
    MOON_CHECK_INT(rig_mount(rig, 1, 16 * MiB), 0);
    MOON_CHECK_INT(rig_put(rig, "k", 100), 0);
    MOON_CHECK_INT(rig_exist(rig, "k"), 1);
    MOON_CHECK_INT(rig_remove(rig, "k", true), 0);
    rig_wait(rig, 60 * S);
    MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
    MOON_CHECK_INT(rig->records, 0);
    rig_close(rig);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the defaults are Mooncake's", the_defaults_are_mooncakes},
        {"a put is seen by nobody before its end", a_put_is_seen_by_nobody_before_its_end},
        {"wrong puts are refused", wrong_puts_are_refused},
        {"only the writer ends and revokes", only_the_writer_ends_and_revokes},
        {"replica types other than memory select nothing", replica_types_other_than_memory_select_nothing},
        {"a put grants no lease but reading does", a_put_grants_no_lease_but_reading_does},
        {"a lease of zero protects nothing", a_lease_of_zero_protects_nothing},
        {"remove_all counts what it removes", remove_all_counts_what_it_removes},
        {"tenants are all the same one", tenants_are_all_the_same_one},
        {"keys are any bytes", keys_are_any_bytes},
        {"a put may be taken over after the discard time", a_put_may_be_taken_over_after_the_discard_time},
        {"late ends complete a put that nobody took", late_ends_complete_a_put_that_nobody_took},
        {"memory of a half put is back after the release time", memory_of_a_half_put_is_back_after_the_release_time},
        {"a take-over that finds no memory loses the key", a_take_over_that_finds_no_memory_loses_the_key},
        {"forced removal holds memory until the lease is over", forced_removal_holds_memory_until_the_lease_is_over},
        {"the last moment of a lease counts", the_last_moment_of_a_lease_counts},
        {"revoked memory is held for 30 s", revoked_memory_is_held_for_30_s},
        {"the life of an object is told", the_life_of_an_object_is_told},
        {"without a recorder all works", without_a_recorder_all_works},
        {0},
    };
    return moon_unit_main("master's objects", cases, argc, argv);
}
