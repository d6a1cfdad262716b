/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the verbs: GIDs anywhere; a device's operations only where there is one (conformance/rxe runs them). */
#include "ref/fabric/verbs.h"

#include "ref/base/unit.h"

#include <errno.h>

enum { BYTES = 1 << 17, DEPTH = 16 };

/* ---- without a device */

static struct moon_verbs_gid row(const char *address, uint32_t index, bool roce_v1) {
    struct moon_verbs_gid made = {.index = index, .roce_v1 = roce_v1};
    CU_ASSERT(moon_verbs_host_gid(address, made.gid));
    return made;
}

static void address_becomes_a_gid(void) {
    static const uint8_t mapped[MOON_GID_BYTES] = {[10] = 0xff, [11] = 0xff, 10, 7, 0, 1};
    static const uint8_t v6[MOON_GID_BYTES] = {0xfd, [15] = 9};
    uint8_t gid[MOON_GID_BYTES];
    CU_ASSERT(moon_verbs_host_gid("10.7.0.1", gid) && memcmp(gid, mapped, sizeof gid) == 0);
    CU_ASSERT(moon_verbs_host_gid("fd00::9", gid) && memcmp(gid, v6, sizeof gid) == 0);
    CU_ASSERT(!moon_verbs_host_gid("localhost", gid));
    CU_ASSERT(!moon_verbs_host_gid("10.7.0.1:80", gid));
}

static void gid_is_found_by_its_address(void) {
    const struct moon_verbs_gid rows[] = {row("fe80::1", 0, false), row("10.7.0.1", 2, true), row("10.7.0.1", 3, false),
                                          row("fd00::9", 7, false)};
    uint8_t wanted[MOON_GID_BYTES];
    moon_verbs_host_gid("10.7.0.1", wanted);
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 4, wanted), 2); /* not the row of RoCE v1 */
    moon_verbs_host_gid("fd00::9", wanted);
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 4, wanted), 3);
    moon_verbs_host_gid("10.7.0.2", wanted);
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 4, wanted), -1);
}

static void without_an_address_the_mapped_gid_is_preferred(void) {
    const struct moon_verbs_gid rows[] = {row("fe80::1", 0, false), row("fd00::9", 4, false),
                                          row("10.7.0.1", 9, false)};
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 3, NULL), 2);
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 2, NULL), 1);
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 1, NULL), 0);
    MOON_CHECK_INT(moon_verbs_choose_gid(rows, 0, NULL), -1);
}

/* ---- a device, its loop, and what its completions said */

struct seen {
    struct moon_verbs_user user; /* first member */
    struct moon_environment environment;
    uv_loop_t loop;
    uv_timer_t timer;
    struct moon_verbs_fabric *fabric;
    struct moon_verbs *verbs;
    uint32_t pairs[2], lkeys[2], rkeys[2];
    int count, last_status, afters;
    uint64_t last_id;
};

static _Alignas(4096) uint8_t memory[2][BYTES];
/* Announced addresses are no pointers. */
static const uint64_t addresses[2] = {0x100000000000, 0x7f0000000000};

static void completed(struct moon_verbs_user *self, uint32_t qp_num, uint64_t id, int status) {
    struct seen *seen = (struct seen *)self;
    (void)qp_num;
    CU_ASSERT(seen->environment.now_ns > 0);
    seen->count++;
    seen->last_id = id;
    seen->last_status = status;
}

static void event_ended(void *context) {
    ((struct seen *)context)->afters++;
}

static int open_device(struct seen *seen, const struct moon_verbs_settings *settings, struct moon_error *error) {
    *seen = (struct seen){.user = {completed}, .environment = {.memory = moon_memory_heap()}};
    uv_loop_init(&seen->loop);
    uv_timer_init(&seen->loop, &seen->timer);
    int status =
        moon_verbs_fabric_open(&seen->loop, &seen->environment, settings, event_ended, seen, &seen->fabric, error);
    if (!status) {
        seen->verbs = moon_verbs_fabric_verbs(seen->fabric);
        seen->verbs->user = &seen->user;
    }
    return status;
}

static void close_device(struct seen *seen) {
    if (seen->verbs)
        moon_verbs_fabric_close(seen->fabric);
    uv_close((uv_handle_t *)&seen->timer, NULL);
    uv_run(&seen->loop, UV_RUN_NOWAIT);
    MOON_CHECK_INT(uv_loop_close(&seen->loop), 0);
}

static void unknown_device_is_an_error_in_words(void) {
    const struct moon_verbs_settings settings = {"no such device", NULL, 1};
    struct moon_error error;
    struct seen seen;
    MOON_CHECK_INT(open_device(&seen, &settings, &error), MOON_ERR_RANGE);
    CU_ASSERT(strstr(error.message, "no such device") != NULL);
    close_device(&seen);
}

/* ---- with a device */

static const struct moon_verbs_settings any = {NULL, NULL, 1};

/* Two queue pairs of the one device, joined with each other, and two pieces of memory. */
static void join(struct seen *seen) {
    struct moon_error error;
    MOON_CHECK_INT(open_device(seen, &any, &error), MOON_OK);
    struct moon_verbs *verbs = seen->verbs;
    for (int i = 0; i < 2; i++) {
        MOON_CHECK_INT(verbs->create(verbs, DEPTH, &seen->pairs[i]), 0);
        MOON_CHECK_INT(
            verbs->register_memory(verbs, memory[i], addresses[i], BYTES, i == 1, &seen->lkeys[i], &seen->rkeys[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        struct moon_verbs_path path = {.peer = {.lid = verbs->lid, .qp_num = seen->pairs[1 - i]},
                                       .mtu_bytes = verbs->mtu_bytes,
                                       .timeout = 14,
                                       .retries = 6, /* 7 would be for ever with rxe */
                                       .rnr_retries = 6,
                                       .rnr_timer = 12,
                                       .reads = 16,
                                       .hop_limit = 64};
        memcpy(path.peer.gid, verbs->gid, MOON_GID_BYTES);
        MOON_CHECK_INT(verbs->connect(verbs, seen->pairs[i], &path), 0);
    }
}

static int post(struct seen *seen, bool write, uint32_t rkey, uint32_t length) {
    const struct moon_verbs_work work = {77, write, seen->lkeys[0], rkey, addresses[0], addresses[1], length};
    return seen->verbs->post(seen->verbs, seen->pairs[0], &work);
}

static void late(uv_timer_t *timer) {
    uv_stop(timer->loop);
}

/* Runs until so many completions have been seen, at most 5 s. */
static void wait_for(struct seen *seen, int count) {
    uv_timer_start(&seen->timer, late, 5000, 0);
    while (seen->count < count && uv_is_active((uv_handle_t *)&seen->timer))
        uv_run(&seen->loop, UV_RUN_ONCE);
    uv_timer_stop(&seen->timer);
    MOON_CHECK_INT(seen->count, count);
}

static void read_and_write_move_bytes(void) {
    struct seen seen;
    join(&seen);
    for (int i = 0; i < BYTES; i++)
        memory[1][i] = (uint8_t)(i * 7 + (i >> 8));
    MOON_CHECK_INT(post(&seen, false, seen.rkeys[1], BYTES), 0);
    wait_for(&seen, 1);
    MOON_CHECK_INT(seen.last_status, MOON_VERBS_OK);
    MOON_CHECK_INT(seen.last_id, 77);
    CU_ASSERT(memcmp(memory[0], memory[1], BYTES) == 0 && seen.afters > 0);
    memset(memory[0], 9, BYTES);
    MOON_CHECK_INT(post(&seen, true, seen.rkeys[1], 1000), 0);
    wait_for(&seen, 2);
    CU_ASSERT(memcmp(memory[0], memory[1], 1000) == 0 && memory[1][1000] != 9);
    close_device(&seen);
}

static void many_completions_all_come(void) {
    struct seen seen;
    join(&seen);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < DEPTH; i++)
            MOON_CHECK_INT(post(&seen, true, seen.rkeys[1], 8), 0);
        wait_for(&seen, (round + 1) * DEPTH);
    }
    close_device(&seen);
}

static void wrong_rkey_is_a_remote_access_error(void) {
    struct seen seen;
    join(&seen);
    MOON_CHECK_INT(post(&seen, false, seen.rkeys[1] + 1, 8), 0);
    wait_for(&seen, 1);
    MOON_CHECK_INT(seen.last_status, MOON_VERBS_REMOTE_ACCESS);
    MOON_CHECK_INT(post(&seen, false, seen.rkeys[1], 8), 0); /* the queue pair is in error now */
    wait_for(&seen, 2);
    MOON_CHECK_INT(seen.last_status, MOON_VERBS_FLUSHED);
    close_device(&seen);
}

static void memory_that_is_not_remote_is_refused(void) {
    struct seen seen;
    join(&seen);
    const struct moon_verbs_work work = {1, false, seen.lkeys[1], seen.rkeys[0], addresses[1], addresses[0], 8};
    MOON_CHECK_INT(seen.verbs->post(seen.verbs, seen.pairs[0], &work), 0);
    wait_for(&seen, 1);
    MOON_CHECK_INT(seen.last_status, MOON_VERBS_REMOTE_ACCESS);
    close_device(&seen);
}

static void destroyed_peer_exceeds_retries(void) {
    struct seen seen;
    join(&seen);
    seen.verbs->destroy(seen.verbs, seen.pairs[1]);
    MOON_CHECK_INT(post(&seen, false, seen.rkeys[1], 8), 0);
    wait_for(&seen, 1);
    MOON_CHECK_INT(seen.last_status, MOON_VERBS_RETRIES_EXCEEDED);
    close_device(&seen);
}

static void destroyed_queue_pair_says_nothing(void) {
    struct seen seen;
    join(&seen);
    MOON_CHECK_INT(post(&seen, false, seen.rkeys[1], BYTES), 0);
    seen.verbs->destroy(seen.verbs, seen.pairs[0]);
    MOON_CHECK_INT(post(&seen, false, seen.rkeys[1], 8), -ENOENT);
    for (int i = 0; i < 10; i++)
        uv_run(&seen.loop, UV_RUN_NOWAIT);
    MOON_CHECK_INT(seen.count, 0);
    MOON_CHECK_INT(seen.verbs->deregister_memory(seen.verbs, seen.lkeys[0]), 0);
    MOON_CHECK_INT(seen.verbs->deregister_memory(seen.verbs, seen.lkeys[0]), -ENOENT);
    close_device(&seen);
}

#define ANYWHERE                                                                                                       \
    {"an address becomes a GID", address_becomes_a_gid},                                                               \
        {"a GID is found by its address", gid_is_found_by_its_address},                                                \
        {"without an address the mapped GID is preferred", without_an_address_the_mapped_gid_is_preferred}, {          \
        "an unknown device is an error in words", unknown_device_is_an_error_in_words                                  \
    }

static const struct moon_unit_case without_device[] = {ANYWHERE, {NULL, NULL}};
static const struct moon_unit_case with_device[] = {
    ANYWHERE,
    {"READ and WRITE move bytes between announced addresses", read_and_write_move_bytes},
    {"many completions all come", many_completions_all_come},
    {"a wrong rkey is a remote access error", wrong_rkey_is_a_remote_access_error},
    {"memory that is not remote is refused", memory_that_is_not_remote_is_refused},
    {"a destroyed peer exceeds retries", destroyed_peer_exceeds_retries},
    {"a destroyed queue pair says nothing", destroyed_queue_pair_says_nothing},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    struct moon_text words;
    moon_text_open(&words, moon_memory_heap());
    bool usable = moon_verbs_doctor(&words) > 0;
    moon_text_close(&words);
    if (!usable)
        puts("fabric/verbs: SKIP: no RDMA device: its cases run in conformance/rxe/spike.sh");
    return moon_unit_main("fabric/verbs", usable ? with_device : without_device, argc, argv);
}
