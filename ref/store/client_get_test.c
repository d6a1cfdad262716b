/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what the store client reads and removes, question by question, with a master and owners that the test plays.
 */
#include "ref/store/client_rig_internal.h"

/* ---- get */

static void test_get(void) {
    struct world world;
    struct task task;
    char room[8] = "........", more[4] = "....";
    struct moon_piece pieces[] = {{room, 3}, {room, 0}, {more, 4}};
    open_ready(&world, "0.3.13");
    memcpy(fake.remote + 100, "hello", 5);
    begin(&world, &task, MOON_CLIENT_GET, "k", pieces, 3);
    MOON_CHECK_TEXT(questions(&world), "GetReplicaList{\"key\":\"k\",\"tenant_id\":\"default\"}");
    answer(&world, "GetReplicaList",
           FOUND(ON_DISK "," REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "," REPLICA(
               2, 5, 4294967396, "10.0.0.3:1", 3) "," REPLICA(3, 5, 4294967296, "10.0.0.4:1", 3)));
    MOON_CHECK_TEXT(fake.jobs[0]->endpoint, "10.0.0.3:1");
    CU_ASSERT(!fake.jobs[0]->write);
    MOON_CHECK_INT(fake.jobs[0]->piece_count, 3);
    MOON_CHECK_INT(fake.jobs[0]->pieces[2].length, 2);
    end_job(&world, 0, 0);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.items[0].result, 5);
    CU_ASSERT_EQUAL(memcmp(room, "hel.....", 8), 0);
    CU_ASSERT_EQUAL(memcmp(more, "lo..", 4), 0);
    check_log(&world, "invoke get 2 k\nok get 2 k 5 bytes 9555e8555c62dcfd = 5");
    close_world(&world);
}

static void test_get_own(void) {
    struct world world;
    struct task task;
    char room[5];
    struct moon_piece piece = {room, 5};
    open_ready(&world, "0.3.13");
    begin(&world, &task, MOON_CLIENT_GET, "k", &piece, 1);
    answer(
        &world, "GetReplicaList",
        FOUND(REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3) "," REPLICA(2, 5, 4294967296, "10.0.0.9:15000", 2) "," REPLICA(
            3, 5, 4294967396, "10.0.0.9:15000", 3) "," REPLICA(4, 5, 4294967496, "10.0.0.9:15000", 3)));
    CU_ASSERT_EQUAL(fake.jobs[0]->remote, FAKE_REMOTE + 100);
    MOON_CHECK_TEXT(fake.jobs[0]->endpoint, "10.0.0.9:15000");
    CU_ASSERT(fake.jobs[0]->pieces == &piece);
    end_job(&world, 0, MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(fake.job_count, 0); /* the other replica is not tried */
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_TRANSFER_FAIL);
    check_log(&world, "invoke get 2 k\nfail get 2 k = -800");
    close_world(&world);
}

/* The result of a get of 5 bytes of room that ends with this answer. */
static int64_t get_with(struct world *world, const char *json) {
    struct task task;
    char room[5];
    struct moon_piece piece = {room, 5};
    begin(world, &task, MOON_CLIENT_GET, "k", &piece, 1);
    answer(world, "GetReplicaList", json);
    MOON_CHECK_INT(world->done, 1);
    MOON_CHECK_INT(fake.job_count, 0);
    return task.items[0].result;
}

static void test_get_refused(void) {
    struct world world;
    open_ready(&world, "0.3.13");
    MOON_CHECK_INT(get_with(&world, "{\"err\":-704}"), MOON_STORE_OBJECT_NOT_FOUND);
    MOON_CHECK_INT(get_with(&world, "{\"err\":5}"), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(get_with(&world, FOUND("")), MOON_STORE_REPLICA_IS_NOT_READY);
    MOON_CHECK_INT(get_with(&world, FOUND(ON_DISK)), MOON_STORE_REPLICA_IS_NOT_READY);
    MOON_CHECK_INT(get_with(&world, FOUND(REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2))),
                   MOON_STORE_REPLICA_IS_NOT_READY);
    MOON_CHECK_INT(get_with(&world, FOUND(REPLICA(1, 6, 4294967296, "10.0.0.2:1", 3))), MOON_STORE_INVALID_PARAMS);
    MOON_CHECK_INT(get_with(&world, FOUND(REPLICA(1, 0, 4294967296, "10.0.0.2:1", 3))), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(get_with(&world, FOUND(REPLICA(1, 9223372036854775808, 0, "10.0.0.2:1", 3))), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(get_with(&world, FOUND(REPLICA(1, 5, 4294967296, "", 3))), MOON_STORE_TRANSFER_FAIL);
    struct moon_text long_endpoint;
    moon_text_open(&long_endpoint, moon_memory_heap());
    moon_text_string(&long_endpoint,
                     "{\"ok\":{\"replicas\":[{\"id\":1,\"where\":{\"kind\":\"MEMORY\",\"value\":{\"buffer\":{"
                     "\"size\":5,\"address\":4294967296,\"protocol\":\"tcp\",\"transport_endpoint\":\"");
    moon_text_repeat(&long_endpoint, 'x', MOON_ENDPOINT_BYTES);
    moon_text_string(&long_endpoint, "\"}}},\"status\":3}],\"lease_ttl_ms\":1000,\"object_checksum\":null}}");
    MOON_CHECK_INT(get_with(&world, moon_text_value(&long_endpoint)), MOON_STORE_TRANSFER_FAIL);
    moon_text_close(&long_endpoint);
    close_world(&world);
}

/* The result of a get with a lease of `ttl` whose transfer ends `ms` after the question was asked. */
static int64_t get_after(struct world *world, const char *json, int64_t ms) {
    struct task task;
    char room[5];
    struct moon_piece piece = {room, 5};
    begin(world, &task, MOON_CLIENT_GET, "k", &piece, 1);
    pass_ms(world, ms / 2);
    answer(world, "GetReplicaList", json);
    pass_ms(world, ms - ms / 2);
    end_job(world, 0, 0);
    MOON_CHECK_INT(world->done, 1);
    return task.items[0].result;
}

static void test_get_lease(void) {
    struct world world;
    open_ready(&world, "0.3.13");
    static const char soon[] = FOUND_OF(10, REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3));
    MOON_CHECK_INT(get_after(&world, soon, 9), 5);
    moon_text_clear(&world.log);
    MOON_CHECK_INT(get_after(&world, soon, 10), MOON_STORE_LEASE_EXPIRED);
    check_log(&world, "invoke get 3 k\nfail get 3 k = -707");
    MOON_CHECK_INT(get_after(&world, soon, 1000), MOON_STORE_LEASE_EXPIRED);
    MOON_CHECK_INT(get_after(&world, FOUND_OF(0, REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3)), 0),
                   MOON_STORE_LEASE_EXPIRED);
    MOON_CHECK_INT(get_after(&world, FOUND_OF(18446744073709551615, REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3)), 9), 5);
    MOON_CHECK_INT(get_after(&world, FOUND_OF(9223372036854, REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3)), 9), 5);
    close_world(&world);
}

static void test_batch_get(void) {
    struct world world;
    struct task task;
    char room[3][5];
    struct moon_piece one = {room[0], 5}, two = {room[1], 5}, three = {room[2], 5};
    const struct moon_piece *const pieces[] = {&one, &two, &three, &one};
    open_ready(&world, "0.3.13");
    memcpy(fake.remote, "hello", 5);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_GET, true, "aba", pieces, 1), 0);
    MOON_CHECK_TEXT(questions(&world), "BatchGetReplicaList{\"keys\":[\"a\",\"b\",\"a\"],\"tenant_id\":\"default\"}");
    answer(&world, "BatchGetReplicaList",
           "[" FOUND(REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3)) ",{\"err\":-704}," FOUND_OF(
               10, REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3)) "]");
    MOON_CHECK_INT(task.items[1].result, MOON_STORE_OBJECT_NOT_FOUND);
    pass_ms(&world, 10);
    end_job(&world, 1, 0);
    MOON_CHECK_INT(task.items[2].result, MOON_STORE_LEASE_EXPIRED);
    MOON_CHECK_INT(world.done, 0);
    end_job(&world, 0, 0);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.items[0].result, 5);
    CU_ASSERT_EQUAL(memcmp(room[0], "hello", 5), 0);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_GET, true, "ab", pieces, 1), 0);
    answer(&world, "BatchGetReplicaList", "[{\"err\":-704},{\"err\":-704},{\"err\":-704}]");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_GET, true, "", NULL, 0), 0);
    tick(&world);
    MOON_CHECK_INT(world.done, 1);
    close_world(&world);
}

/* ---- the other questions */

static void test_exist_size_remove(void) {
    struct world world;
    struct task task;
    open_ready(&world, "0.3.13");
    begin(&world, &task, MOON_CLIENT_EXIST, "k", NULL, 0);
    answer(&world, "ExistKey", "{\"ok\":true}");
    MOON_CHECK_INT(task.items[0].result, 1);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_EXIST, true, "ab", NULL, 0), 0);
    answer(&world, "BatchExistKey", "[{\"ok\":false},{\"err\":-600}]");
    MOON_CHECK_INT(task.items[0].result, 0);
    MOON_CHECK_INT(task.items[1].result, -600);
    begin(&world, &task, MOON_CLIENT_SIZE, "k", NULL, 0);
    answer(&world, "GetReplicaList", FOUND(REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3)));
    MOON_CHECK_INT(task.items[0].result, 5);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_SIZE, true, "ab", NULL, 0), 0);
    answer(&world, "BatchGetReplicaList", "[" FOUND(ON_DISK) ",{\"err\":-704}]");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_REPLICA_IS_NOT_READY);
    MOON_CHECK_INT(task.items[1].result, MOON_STORE_OBJECT_NOT_FOUND);
    begin(&world, &task, MOON_CLIENT_REMOVE, "k", NULL, 0);
    MOON_CHECK_TEXT(questions(&world), "Remove{\"key\":\"k\",\"force\":false,\"tenant_id\":\"default\"}");
    answer(&world, "Remove", "{\"err\":-706}");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_OBJECT_HAS_LEASE);
    begin(&world, &task, MOON_CLIENT_REMOVE, "k", NULL, 0);
    answer(&world, "Remove", DONE);
    check_log(&world, "invoke exist 2 k\nok exist 2 k = 1\n"
                      "invoke exist 4<3 a\ninvoke exist 5<3 b\nok exist 4<3 a = 0\nfail exist 5<3 b = -600\n"
                      "invoke size 6 k\nok size 6 k = 5\n"
                      "invoke size 8<7 a\ninvoke size 9<7 b\nfail size 8<7 a = -703\nfail size 9<7 b = -704\n"
                      "invoke remove 10 k\nfail remove 10 k = -706\ninvoke remove 11 k\nok remove 11 k = 0");
    close_world(&world);
}

static void test_remove_unanswered(void) {
    struct world world;
    struct task task;
    open_ready(&world, "0.3.13");
    *(&task) = (struct task){.done = &world.done};
    task.items[0].key = task.items[1].key = (struct moon_bytes){"ab", 1};
    task.operation = (struct moon_client_operation){.kind = MOON_CLIENT_REMOVE,
                                                    .batched = true,
                                                    .force = true,
                                                    .items = task.items,
                                                    .item_count = 2,
                                                    .done = count_done};
    MOON_CHECK_INT(moon_client_submit(world.client, &task.operation), 0);
    MOON_CHECK_TEXT(questions(&world), "BatchRemove{\"keys\":[\"a\",\"a\"],\"force\":true,\"tenant_id\":\"default\"}");
    break_off(&world, "BatchRemove", true, MOON_STORE_RPC_TIMEOUT, 0);
    begin(&world, &task, MOON_CLIENT_EXIST, "k", NULL, 0);
    break_off(&world, "ExistKey", true, MOON_STORE_RPC_TIMEOUT, 0);
    begin(&world, &task, MOON_CLIENT_REMOVE_ALL, "", NULL, 0);
    MOON_CHECK_TEXT(questions(&world), "RemoveAll{\"force\":false,\"tenant_id\":\"default\"}");
    answer(&world, "RemoveAll", "3");
    MOON_CHECK_INT(task.operation.result, 3);
    begin(&world, &task, MOON_CLIENT_REMOVE_ALL, "", NULL, 0);
    break_off(&world, "RemoveAll", true, MOON_STORE_RPC_FAIL, 0);
    MOON_CHECK_INT(task.operation.result, MOON_STORE_RPC_FAIL);
    begin(&world, &task, MOON_CLIENT_REMOVE_ALL, "", NULL, 0);
    answer(&world, "RemoveAll", "-1010");
    check_log(&world, "invoke remove 3<2 a\ninvoke remove 4<2 a\ninfo remove 3<2 a = -901\ninfo remove 4<2 a = -901\n"
                      "invoke exist 5 k\nfail exist 5 k = -901\n"
                      "invoke remove_all 6\nok remove_all 6 = 3\ninvoke remove_all 7\ninfo remove_all 7 = -900\n"
                      "invoke remove_all 8\nfail remove_all 8 = -1010");
    close_world(&world);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a get reads the first complete replica in memory into its pieces", test_get},
        {"a get prefers its own replica and tries no other", test_get_own},
        {"a get that cannot be gives a code", test_get_refused},
        {"what was read when the lease is over is void", test_get_lease},
        {"the keys of a batch of gets fare each by itself", test_batch_get},
        {"exist, size and remove give the master's answer", test_exist_size_remove},
        {"a remove without an answer may have happened, a question did not", test_remove_unanswered},
        {NULL, NULL},
    };
    return moon_unit_main("store client gets", cases, argc, argv);
}
