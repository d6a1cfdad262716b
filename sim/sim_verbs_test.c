/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the verbs model: one-sided reads and writes, protection, flushing, dead peers, partitions, torn reads. */
#include "ref/base/unit.h"
#include "sim/sim_internal.h"

#include <errno.h>

enum { BYTES = 256 * 1024, DEPTH = 8 };
/* Where the memory of each side is said to be: not where it is. */
#define ADDRESS_A UINT64_C(0x10000)
#define ADDRESS_B UINT64_C(0x7f0000000000)

static void *idle_boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    (void)settings, (void)error;
    return environment;
}

static moon_ns idle_deadline(const void *instance) {
    (void)instance;
    return MOON_NS_NEVER;
}

static void idle_tick(void *instance) {
    (void)instance;
}

static const struct moon_program idle_program = {"idle", idle_boot, idle_deadline, idle_tick, idle_tick};

struct ended {
    uint64_t id;
    int status;
};

/* a and b with 256 KiB registered each, and a connected pair of queue pairs. */
struct scene {
    struct moon_verbs_user user; /* of a; first member */
    struct moon_memory_failing memory;
    struct moon_sim *sim;
    struct moon_sim_node *a, *b;
    struct moon_verbs *verbs_a, *verbs_b;
    unsigned char *bytes_a, *bytes_b;
    uint32_t lkey_a, rkey_a, lkey_b, rkey_b, qp_a, qp_b;
    struct ended ended[16];
    size_t ended_count;
};

static void completed(struct moon_verbs_user *self, uint32_t qp_num, uint64_t id, int status) {
    struct scene *scene = (struct scene *)self;
    MOON_CHECK_INT(qp_num, scene->qp_a);
    scene->ended[scene->ended_count++ % 16] = (struct ended){id, status};
}

static struct moon_verbs_path path_to(const struct moon_verbs *peer, uint32_t qp_num) {
    struct moon_verbs_path path = {.peer = {.lid = peer->lid, .qp_num = qp_num},
                                   .mtu_bytes = 1024,
                                   .timeout = 14,
                                   .retries = 7,
                                   .reads = 1,
                                   .hop_limit = 16};
    memcpy(path.peer.gid, peer->gid, MOON_GID_BYTES);
    return path;
}

static void scene_open(struct scene *scene) {
    struct moon_sim_settings settings = moon_sim_defaults();
    *scene = (struct scene){.user = {completed}};
    moon_memory_failing_init(&scene->memory, moon_memory_heap(), 0);
    scene->sim = moon_sim_open(&scene->memory.memory, 1, &settings, NULL);
    scene->a = moon_sim_add(scene->sim, "a", "10.0.0.1", &idle_program, NULL);
    scene->b = moon_sim_add(scene->sim, "b", "fd00::2", &idle_program, NULL);
    MOON_CHECK_INT(moon_sim_boot(scene->a, NULL), 0);
    MOON_CHECK_INT(moon_sim_boot(scene->b, NULL), 0);
    scene->verbs_a = moon_sim_node_verbs(scene->a);
    scene->verbs_b = moon_sim_node_verbs(scene->b);
    scene->verbs_a->user = &scene->user;
    scene->bytes_a = moon_sim_node_memory(scene->a, BYTES);
    scene->bytes_b = moon_sim_node_memory(scene->b, BYTES);
    struct moon_verbs *a = scene->verbs_a, *b = scene->verbs_b;
    MOON_CHECK_INT(a->register_memory(a, scene->bytes_a, ADDRESS_A, BYTES, false, &scene->lkey_a, &scene->rkey_a), 0);
    MOON_CHECK_INT(b->register_memory(b, scene->bytes_b, ADDRESS_B, BYTES, true, &scene->lkey_b, &scene->rkey_b), 0);
    MOON_CHECK_INT(a->create(a, DEPTH, &scene->qp_a), 0);
    MOON_CHECK_INT(b->create(b, DEPTH, &scene->qp_b), 0);
    struct moon_verbs_path to_a = path_to(a, scene->qp_a), to_b = path_to(b, scene->qp_b);
    MOON_CHECK_INT(a->connect(a, scene->qp_a, &to_b), 0);
    MOON_CHECK_INT(b->connect(b, scene->qp_b, &to_a), 0);
}

static void scene_close(struct scene *scene) {
    moon_sim_close(scene->sim);
    MOON_CHECK_INT(scene->memory.held_bytes, 0);
}

static struct moon_verbs_work work_of(const struct scene *scene, uint64_t id, bool write, uint32_t length) {
    return (struct moon_verbs_work){.id = id,
                                    .write = write,
                                    .lkey = scene->lkey_a,
                                    .rkey = scene->rkey_b,
                                    .local = ADDRESS_A,
                                    .remote = ADDRESS_B,
                                    .length = length};
}

static int post(struct scene *scene, const struct moon_verbs_work *work) {
    return scene->verbs_a->post(scene->verbs_a, scene->qp_a, work);
}

static void run_all(struct scene *scene) {
    while (moon_sim_step(scene->sim))
        ;
}

static void check_ended(const struct scene *scene, size_t at, uint64_t id, int status) {
    CU_ASSERT_FATAL(at < scene->ended_count);
    MOON_CHECK_INT(scene->ended[at].id, id);
    MOON_CHECK_INT(scene->ended[at].status, status);
}

static void a_write_then_a_read_move_the_bytes_in_order(void) {
    struct scene scene;
    scene_open(&scene);
    for (size_t i = 0; i < BYTES / 2; i++)
        scene.bytes_a[i] = (unsigned char)(i * 7);
    struct moon_verbs_work write = work_of(&scene, 1, true, BYTES / 2), read = work_of(&scene, 2, false, BYTES / 2);
    read.local += BYTES / 2;
    MOON_CHECK_INT(post(&scene, &write), 0);
    MOON_CHECK_INT(post(&scene, &read), 0);
    MOON_CHECK_INT(scene.ended_count, 0);
    moon_sim_stop(scene.b); /* one-sided: its process need not run */
    run_all(&scene);
    MOON_CHECK_INT(scene.ended_count, 2);
    check_ended(&scene, 0, 1, MOON_VERBS_OK);
    check_ended(&scene, 1, 2, MOON_VERBS_OK);
    CU_ASSERT(memcmp(scene.bytes_a, scene.bytes_b, BYTES / 2) == 0);
    CU_ASSERT(memcmp(scene.bytes_a, scene.bytes_a + BYTES / 2, BYTES / 2) == 0);
    scene_close(&scene);
}

static void a_read_beside_a_write_of_the_owner_is_torn(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_verbs_work read = work_of(&scene, 1, false, BYTES);
    MOON_CHECK_INT(post(&scene, &read), 0);
    for (unsigned char value = 0; scene.ended_count == 0; value++) {
        memset(scene.bytes_b, value, BYTES);
        moon_sim_step(scene.sim);
    }
    check_ended(&scene, 0, 1, MOON_VERBS_OK);
    CU_ASSERT(scene.bytes_a[0] != scene.bytes_a[BYTES - 1]);
    for (size_t i = 0; i < BYTES; i += 1024) /* no packet is torn in itself */
        CU_ASSERT(memcmp(scene.bytes_a + i, scene.bytes_a + i + 1, 1023) == 0);
    scene_close(&scene);
}

/* Posts a broken request and a good one behind it; expects `status`, then a flush, then no more posts. */
static void expect_error(struct scene *scene, const struct moon_verbs_work *broken, int status) {
    struct moon_verbs_work good = work_of(scene, 9, false, 1);
    MOON_CHECK_INT(post(scene, broken), 0);
    MOON_CHECK_INT(post(scene, &good), 0);
    run_all(scene);
    MOON_CHECK_INT(scene->ended_count, 2);
    check_ended(scene, 0, broken->id, status);
    check_ended(scene, 1, 9, MOON_VERBS_FLUSHED);
    MOON_CHECK_INT(post(scene, &good), -EINVAL);
    scene_close(scene);
}

static void what_the_peer_has_not_registered_is_a_remote_access_error(void) {
    for (int row = 0; row < 6; row++) {
        struct scene scene;
        scene_open(&scene);
        struct moon_verbs_work work = work_of(&scene, 3, row % 2 == 0, 1024);
        struct moon_verbs *b = scene.verbs_b;
        if (row == 0)
            work.rkey++;
        else if (row == 1)
            work.remote = ADDRESS_B + BYTES - 1023;
        else if (row == 2)
            work.remote = ADDRESS_B - 1;
        else if (row == 3)
            work.remote = UINT64_MAX - 10;
        else if (row == 4)
            MOON_CHECK_INT(b->deregister_memory(b, scene.lkey_b), 0);
        else
            b->register_memory(b, scene.bytes_b, ADDRESS_B, BYTES, false, &scene.lkey_b, &work.rkey);
        expect_error(&scene, &work, MOON_VERBS_REMOTE_ACCESS);
    }
}

static void what_is_not_registered_here_is_a_local_protection_error(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_verbs_work work = work_of(&scene, 3, true, 1024);
    work.local = ADDRESS_A + BYTES;
    expect_error(&scene, &work, MOON_VERBS_LOCAL_PROTECTION);
    scene_open(&scene);
    work = work_of(&scene, 4, true, 1024);
    work.lkey ^= 1;
    expect_error(&scene, &work, MOON_VERBS_LOCAL_PROTECTION);
}

static void a_peer_that_is_gone_exceeds_the_retries(void) {
    for (int row = 0; row < 4; row++) {
        struct scene scene;
        scene_open(&scene);
        struct moon_verbs *b = scene.verbs_b;
        struct moon_verbs_path elsewhere = path_to(scene.verbs_a, scene.qp_a + 1);
        struct moon_verbs_work work = work_of(&scene, 5, false, BYTES);
        if (row == 0)
            moon_sim_crash(scene.b);
        if (row == 1)
            moon_sim_partition(scene.a, scene.b);
        if (row == 2)
            b->destroy(b, scene.qp_b);
        if (row == 3) { /* it is connected to another one */
            uint32_t other;
            struct moon_verbs_path to_other;
            MOON_CHECK_INT(b->create(b, DEPTH, &other), 0);
            MOON_CHECK_INT(b->connect(b, other, &elsewhere), 0);
            scene.verbs_a->destroy(scene.verbs_a, scene.qp_a);
            MOON_CHECK_INT(scene.verbs_a->create(scene.verbs_a, DEPTH, &scene.qp_a), 0);
            to_other = path_to(b, other);
            MOON_CHECK_INT(scene.verbs_a->connect(scene.verbs_a, scene.qp_a, &to_other), 0);
        }
        moon_ns start_ns = moon_sim_now(scene.sim);
        MOON_CHECK_INT(post(&scene, &work), 0);
        while (scene.ended_count == 0 && moon_sim_step(scene.sim))
            ;
        check_ended(&scene, 0, 5, MOON_VERBS_RETRIES_EXCEEDED);
        moon_ns took_ns = moon_sim_now(scene.sim) - start_ns, timeouts_ns = 7 * ((moon_ns)4096 << 14);
        CU_ASSERT(took_ns >= timeouts_ns && took_ns < timeouts_ns + 4 * MOON_NS_PER_MS);
        scene_close(&scene);
    }
}

static void a_short_partition_only_delays(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_verbs_work work = work_of(&scene, 5, false, BYTES);
    MOON_CHECK_INT(post(&scene, &work), 0);
    for (int i = 0; i < 5; i++)
        moon_sim_step(scene.sim);
    moon_sim_partition(scene.a, scene.b);
    for (int i = 0; i < 4; i++)
        moon_sim_step(scene.sim);
    moon_sim_heal(scene.a, scene.b);
    run_all(&scene);
    check_ended(&scene, 0, 5, MOON_VERBS_OK);
    scene_close(&scene);
}

static void destroying_ends_work_without_completions(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_verbs_work work = work_of(&scene, 6, true, BYTES);
    scene.bytes_a[BYTES - 1] = 1;
    MOON_CHECK_INT(post(&scene, &work), 0);
    MOON_CHECK_INT(post(&scene, &work), 0);
    for (int i = 0; i < 5; i++)
        moon_sim_step(scene.sim);
    scene.verbs_a->destroy(scene.verbs_a, scene.qp_a);
    run_all(&scene);
    MOON_CHECK_INT(scene.ended_count, 0);
    MOON_CHECK_INT(scene.bytes_b[BYTES - 1], 0);
    MOON_CHECK_INT(post(&scene, &work), -EINVAL);
    scene_close(&scene);
}

static void completions_wait_while_the_process_is_stopped(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_verbs_work work = work_of(&scene, 7, true, 1);
    MOON_CHECK_INT(post(&scene, &work), 0);
    work.id = 8;
    MOON_CHECK_INT(post(&scene, &work), 0);
    moon_sim_stop(scene.a);
    run_all(&scene);
    MOON_CHECK_INT(scene.ended_count, 0);
    moon_sim_go_on(scene.a);
    run_all(&scene);
    check_ended(&scene, 0, 7, MOON_VERBS_OK);
    check_ended(&scene, 1, 8, MOON_VERBS_OK);
    scene_close(&scene);
}

static void operations_refuse_what_is_wrong(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_verbs *a = scene.verbs_a;
    struct moon_verbs_path path = path_to(scene.verbs_b, scene.qp_b);
    struct moon_verbs_work work = work_of(&scene, 1, true, 0);
    uint32_t qp, key;
    MOON_CHECK_INT(post(&scene, &work), -EINVAL);
    MOON_CHECK_INT(a->connect(a, scene.qp_a, &path), -EINVAL); /* it is connected */
    MOON_CHECK_INT(a->connect(a, 0, &path), -EINVAL);
    MOON_CHECK_INT(a->register_memory(a, scene.bytes_a, ADDRESS_A, 0, true, &key, &key), -EINVAL);
    MOON_CHECK_INT(a->deregister_memory(a, 0), -EINVAL);
    MOON_CHECK_INT(a->create(a, 1, &qp), 0);
    MOON_CHECK_INT(a->post(a, qp, &work), -EINVAL);
    path.mtu_bytes = 4096; /* more than the port's */
    MOON_CHECK_INT(a->connect(a, qp, &path), -EINVAL);
    path.mtu_bytes = 512;
    path.peer.gid[0] ^= 1;
    MOON_CHECK_INT(a->connect(a, qp, &path), -EHOSTUNREACH);
    path.peer.gid[0] ^= 1;
    MOON_CHECK_INT(a->connect(a, qp, &path), 0);
    work.length = 1;
    MOON_CHECK_INT(a->post(a, qp, &work), 0);
    MOON_CHECK_INT(a->post(a, qp, &work), -ENOMEM); /* deeper than asked for */
    scene_close(&scene);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a write, then a read move the bytes in order", a_write_then_a_read_move_the_bytes_in_order},
        {"a read beside a write of the owner is torn", a_read_beside_a_write_of_the_owner_is_torn},
        {"what the peer has not registered is a remote access error",
         what_the_peer_has_not_registered_is_a_remote_access_error},
        {"what is not registered here is a local protection error",
         what_is_not_registered_here_is_a_local_protection_error},
        {"a peer that is gone exceeds the retries", a_peer_that_is_gone_exceeds_the_retries},
        {"a short partition only delays", a_short_partition_only_delays},
        {"destroying ends work without completions", destroying_ends_work_without_completions},
        {"completions wait while the process is stopped", completions_wait_while_the_process_is_stopped},
        {"operations refuse what is wrong", operations_refuse_what_is_wrong},
        {NULL, NULL},
    };
    return moon_unit_main("sim verbs", cases, argc, argv);
}
