/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the puts of the store client, question by question, with a master and owners that the test plays. */
#include "ref/store/client_rig_internal.h"

/* ---- put */

static void test_put(void) {
    struct world world;
    struct task task;
    struct moon_piece pieces[] = {PIECE("hel"), PIECE(""), PIECE("lo")};
    open_ready(&world, "0.3.13");
    begin(&world, &task, MOON_CLIENT_PUT, "k", pieces, 3);
    MOON_CHECK_TEXT(
        questions(&world),
        "PutStart{\"client_id\":" CLIENT_ID ",\"key\":\"k\",\"slice_length\":5,\"config\":{\"replica_num\":1,"
        "\"nof_replica_num\":0,\"dfs_replica_num\":0,\"soft_pin_action\":0,\"soft_pin_ttl_ms\":null,"
        "\"with_hard_pin\":false,\"preferred_segments\":[],\"preferred_segment\":\"\",\"preferred_nof_segments\":[],"
        "\"prefer_alloc_in_same_node\":false,\"data_type\":0,\"host_id\":\"\",\"group_ids\":null},"
        "\"tenant_id\":\"default\"}");
    answer(&world, "PutStart", "{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "]}");
    MOON_CHECK_INT(fake.question_count, 0);
    MOON_CHECK_INT(fake.job_count, 1);
    MOON_CHECK_TEXT(fake.jobs[0]->endpoint, "10.0.0.2:1");
    CU_ASSERT(fake.jobs[0]->write);
    CU_ASSERT_EQUAL(fake.jobs[0]->op, 2);
    end_job(&world, 0, 0);
    CU_ASSERT_EQUAL(memcmp(fake.remote, "hello", 5), 0);
    MOON_CHECK_TEXT(questions(&world),
                    "PutEnd{\"client_id\":" CLIENT_ID ",\"object_meta\":{\"key\":\"k\",\"object_checksum\":null},"
                    "\"replica_type\":4,\"tenant_id\":\"default\"}");
    MOON_CHECK_INT(world.done, 0);
    answer(&world, "PutEnd", DONE);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.items[0].result, 0);
    check_log(&world, "invoke put 2 k 5 bytes 9555e8555c62dcfd\nok put 2 k = 0");
    close_world(&world);
}

static void test_put_options(void) {
    struct world world;
    struct task task;
    struct moon_piece piece = PIECE("hello");
    prepare(&world, "0.3.12", 0, 0);
    world.settings.replica_num = 2;
    world.settings.preferred_segment = "10.0.0.2:1";
    world.settings.host_id = "h";
    world.settings.tenant = "a";
    world.client = moon_client_open(&world.environment, &world.settings, &fake.transfer);
    set_up(&world);
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    MOON_CHECK_TEXT(member(&world, "config"),
                    "{\"replica_num\":2,\"nof_replica_num\":0,\"with_soft_pin\":false,\"with_hard_pin\":false,"
                    "\"preferred_segments\":[],\"preferred_segment\":\"10.0.0.2:1\",\"preferred_nof_segments\":[],"
                    "\"prefer_alloc_in_same_node\":false,\"data_type\":0,\"host_id\":\"h\",\"group_ids\":null}");
    MOON_CHECK_TEXT(member(&world, "tenant_id"), "\"a\"");
    answer(&world, "PutStart", "{\"err\":-200}");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_NO_AVAILABLE_HANDLE);
    check_log(&world, "invoke put 2 k of a 5 bytes 9555e8555c62dcfd\nfail put 2 k of a = -200");
    begin(&world, &task, MOON_CLIENT_REMOVE_ALL, "", NULL, 0);
    answer(&world, "RemoveAll", "1");
    check_log(&world, "invoke remove_all 3 of a\nok remove_all 3 of a = 1");
    close_world(&world);
}

/* replica_type of the last question of a put: PutEnd, or if the transfer fails PutRevoke. */
static int replica_type(const char *release, bool batched, bool fails) {
    struct world world;
    struct task task;
    struct moon_piece piece = PIECE("hello");
    const struct moon_piece *const pieces[] = {&piece};
    open_ready(&world, release);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, batched, "k", pieces, 1), 0);
    if (batched)
        answer(&world, "BatchPutStart", "[{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "]}]");
    else
        answer(&world, "PutStart", "{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "]}");
    end_job(&world, 0, fails ? MOON_STORE_TRANSFER_FAIL : 0);
    const char *type = member(&world, "replica_type");
    int number = *type ? *type - '0' : -1;
    close_world(&world);
    return number;
}

static void test_replica_type(void) {
    MOON_CHECK_INT(replica_type("0.3.13", false, false), 4);
    MOON_CHECK_INT(replica_type("0.3.13", true, false), 4);
    MOON_CHECK_INT(replica_type("0.3.13", false, true), 4);
    MOON_CHECK_INT(replica_type("0.3.12", false, false), 4);
    MOON_CHECK_INT(replica_type("0.3.12", true, true), 4);
    MOON_CHECK_INT(replica_type("0.3.11", false, false), 0);
    MOON_CHECK_INT(replica_type("0.3.11", false, true), 0);
    MOON_CHECK_INT(replica_type("0.3.11", true, false), 4);
    MOON_CHECK_INT(replica_type("0.3.10", false, false), 0);
    MOON_CHECK_INT(replica_type("0.3.10", true, false), -1);
}

static void test_put_without_bytes(void) {
    struct world world;
    struct task task;
    struct moon_piece piece = PIECE("hello"), nothing = PIECE("");
    const struct moon_piece *const pieces[] = {&nothing};
    open_ready(&world, "0.3.13");
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    answer(&world, "PutStart", "{\"err\":-705}");
    MOON_CHECK_INT(task.items[0].result, 0);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, false, "z", pieces, 1), 0);
    MOON_CHECK_TEXT(member(&world, "slice_length"), "0");
    answer(&world, "PutStart", "{\"err\":-600}");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_INVALID_PARAMS);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, true, "z", pieces, 1), 0);
    MOON_CHECK_TEXT(member(&world, "slice_lengths"), "[0]");
    answer(&world, "BatchPutStart", "[{\"err\":-600}]");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_INVALID_PARAMS);
    check_log(&world, "invoke put 2 k 5 bytes 9555e8555c62dcfd\nok put 2 k = 0\n"
                      "invoke put 3 z 0 bytes 2d06800538d394c2\nfail put 3 z = -600\n"
                      "invoke put 5<4 z 0 bytes 2d06800538d394c2\nfail put 5<4 z = -600");
    close_world(&world);
}

static void test_put_revoked(void) {
    struct world world;
    struct task task;
    struct moon_piece piece = PIECE("hello");
    open_ready(&world, "0.3.13");
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    answer(&world, "PutStart",
           "{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "," REPLICA(2, 5, 4294967396, "10.0.0.3:1", 2) "]}");
    MOON_CHECK_INT(fake.job_count, 2);
    end_job(&world, 0, MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_TEXT(questions(&world), ""); /* not before the other is over */
    end_job(&world, 0, 0);
    MOON_CHECK_TEXT(questions(&world), "PutRevoke{\"client_id\":" CLIENT_ID
                                       ",\"key\":\"k\",\"replica_type\":4,\"tenant_id\":\"default\"}");
    break_off(&world, "PutRevoke", true, MOON_STORE_RPC_TIMEOUT, 0);
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_TRANSFER_FAIL);
    check_log(&world, "invoke put 2 k 5 bytes 9555e8555c62dcfd\nfail put 2 k = -800");
    close_world(&world);
}

/* The end of a put whose question `name` ends so. */
static void put_without_answer(struct world *world, const char *name, bool sent, int status, unsigned rpc_error) {
    struct task task;
    struct moon_piece piece = PIECE("hello");
    begin(world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    if (strcmp(name, "PutEnd") == 0) {
        answer(world, "PutStart", "{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "]}");
        end_job(world, 0, 0);
    }
    moon_text_clear(&world->log);
    break_off(world, name, sent, status, rpc_error);
    MOON_CHECK_INT(world->done, 1);
    MOON_CHECK_INT(task.items[0].result, status);
}

static void test_put_without_master(void) {
    struct world world;
    open_ready(&world, "0.3.13");
    put_without_answer(&world, "PutStart", true, MOON_STORE_RPC_TIMEOUT, 0);
    check_log(&world, "fail put 2 k = -901");
    put_without_answer(&world, "PutEnd", true, MOON_STORE_RPC_TIMEOUT, 0);
    check_log(&world, "info put 3 k = -901");
    put_without_answer(&world, "PutEnd", false, MOON_STORE_RPC_FAIL, 0);
    check_log(&world, "fail put 4 k = -900");
    put_without_answer(&world, "PutEnd", true, MOON_STORE_RPC_FAIL, 11);
    check_log(&world, "fail put 5 k = -900");
    close_world(&world);
}

/* A put that was granted `replicas`, which make no sense, is revoked, and gives `code`. */
static void put_to(struct world *world, const char *replicas, int code) {
    struct task task;
    struct moon_piece piece = PIECE("hello");
    char json[1024];
    snprintf(json, sizeof json, "{\"ok\":[%s]}", replicas);
    begin(world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    answer(world, "PutStart", json);
    MOON_CHECK_INT(fake.job_count, 0);
    answer(world, "PutRevoke", DONE);
    MOON_CHECK_INT(task.items[0].result, code);
}

static void test_put_nonsense(void) {
    struct world world;
    struct task task;
    struct moon_piece piece = PIECE("hello");
    struct moon_text many;
    open_ready(&world, "0.3.13");
    put_to(&world, "", MOON_STORE_RPC_FAIL);
    put_to(&world, REPLICA(1, 4, 4294967296, "10.0.0.2:1", 2), MOON_STORE_RPC_FAIL);
    put_to(&world, REPLICA(1, 5, 18446744073709551613, "10.0.0.2:1", 2), MOON_STORE_RPC_FAIL);
    put_to(&world, REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "," ON_DISK, MOON_STORE_RPC_FAIL);
    put_to(&world, REPLICA(1, 5, 4294967296, "", 2), MOON_STORE_TRANSFER_FAIL);
    put_to(&world, REPLICA(1, 5, 4294967296, "10.0.0.2\\u0000:1", 2), MOON_STORE_TRANSFER_FAIL);
    moon_text_clear(&world.log);
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    answer(&world, "PutStart", "{\"err\":0}");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_RPC_FAIL);
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    answer(&world, "PutStart", "{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "]}");
    end_job(&world, 0, 0);
    answer(&world, "PutEnd", "{\"err\":7}");
    check_log(&world, "invoke put 8 k 5 bytes 9555e8555c62dcfd\nfail put 8 k = -900\n"
                      "invoke put 9 k 5 bytes 9555e8555c62dcfd\ninfo put 9 k = -900");
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    moon_text_open(&many, moon_memory_heap());
    for (int i = 0; i < 65; i++)
        moon_text_format(&many, "%s%s", i ? "," : "{\"ok\":[", REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2));
    moon_text_string(&many, "]}");
    answer(&world, "PutStart", moon_text_value(&many));
    MOON_CHECK_INT(fake.job_count, 0);
    answer(&world, "PutRevoke", DONE);
    moon_text_close(&many);
    close_world(&world);
}

static void test_batch_put(void) {
    struct world world;
    struct task task;
    struct moon_piece one = PIECE("one"), two = PIECE("two."), three = PIECE("three"), four = PIECE("four");
    const struct moon_piece *const pieces[] = {&one, &two, &three, &four};
    open_ready(&world, "0.3.12");
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, true, "abcd", pieces, 1), 0);
    MOON_CHECK_TEXT(member(&world, "keys"), "[\"a\",\"b\",\"c\",\"d\"]");
    MOON_CHECK_TEXT(member(&world, "slice_lengths"), "[3,4,5,4]");
    answer(&world, "BatchPutStart",
           "[{\"ok\":[" REPLICA(1, 3, 4294967296, "10.0.0.2:1",
                                2) "]},{\"err\":-200},"
                                   "{\"ok\":[" REPLICA(2, 5, 4294967396, "10.0.0.2:1",
                                                       2) "]},"
                                                          "{\"ok\":[" REPLICA(3, 4, 4294967496, "10.0.0.2:1", 2) "]}]");
    MOON_CHECK_INT(task.items[1].result, MOON_STORE_NO_AVAILABLE_HANDLE);
    end_job(&world, 2, 0);
    end_job(&world, 1, MOON_STORE_TRANSFER_FAIL);
    end_job(&world, 0, 0);
    MOON_CHECK_TEXT(questions(&world), "BatchPutEnd{\"client_id\":" CLIENT_ID
                                       ",\"keys\":[\"a\",\"d\"],\"replica_type\":4,\"tenant_id\":\"default\"}");
    answer(&world, "BatchPutEnd", "[{\"ok\":null},{\"err\":-704}]");
    MOON_CHECK_TEXT(questions(&world), "BatchPutRevoke{\"client_id\":" CLIENT_ID
                                       ",\"keys\":[\"c\"],\"replica_type\":4,\"tenant_id\":\"default\"}");
    answer(&world, "BatchPutRevoke", "[{\"ok\":null}]");
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.operation.result, 0);
    MOON_CHECK_INT(task.items[0].result, 0);
    MOON_CHECK_INT(task.items[2].result, MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(task.items[3].result, MOON_STORE_OBJECT_NOT_FOUND);
    check_log(&world, "invoke put 3<2 a 3 bytes 911faba7321fe1a0\ninvoke put 4<2 b 4 bytes b48e825cefa76cd5\n"
                      "invoke put 5<2 c 5 bytes c11df15eb3a3e385\ninvoke put 6<2 d 4 bytes adc1176ac1ea0d6b\n"
                      "fail put 4<2 b = -200\nok put 3<2 a = 0\nfail put 6<2 d = -704\nfail put 5<2 c = -800");
    close_world(&world);
}

static void test_batch_put_wrong_count(void) {
    struct world world;
    struct task task;
    struct moon_piece one = PIECE("one"), two = PIECE("two");
    const struct moon_piece *const pieces[] = {&one, &two};
    open_ready(&world, "0.3.13");
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, true, "ab", pieces, 1), 0);
    answer(&world, "BatchPutStart", "[{\"err\":-705}]");
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(task.items[1].result, MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, true, "", NULL, 0), 0);
    MOON_CHECK_INT(world.done, 0);
    tick(&world);
    MOON_CHECK_INT(world.done, 1);
    close_world(&world);
}

static void test_batch_put_same_keys(void) {
    struct world world;
    struct task task;
    struct moon_piece one = PIECE("one"), two = PIECE("two."), three = PIECE("three"), four = PIECE("four..");
    const struct moon_piece *const pieces[] = {&one, &two, &three, &four};
    open_ready(&world, "0.3.13");
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, true, "abaa", pieces, 1), 0);
    MOON_CHECK_TEXT(member(&world, "keys"), "[\"b\",\"a\"]");
    MOON_CHECK_TEXT(member(&world, "slice_lengths"), "[4,6]");
    moon_text_clear(&world.log);
    answer(&world, "BatchPutStart", "[{\"err\":-200},{\"ok\":[" REPLICA(1, 6, 4294967296, "10.0.0.2:1", 2) "]}]");
    end_job(&world, 0, 0);
    CU_ASSERT_EQUAL(memcmp(fake.remote, "four..", 6), 0);
    answer(&world, "BatchPutEnd", "[{\"ok\":null}]");
    MOON_CHECK_INT(task.items[0].result, 0);
    MOON_CHECK_INT(task.items[2].result, 0);
    MOON_CHECK_INT(task.items[3].result, 0);
    check_log(&world, "fail put 4<2 b = -200\nok put 6<2 a = 0\nok put 3<2 a = 0\nok put 5<2 a = 0");
    close_world(&world);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a put starts, writes its pieces and ends", test_put},
        {"a put says how many replicas it wants, and where", test_put_options},
        {"replica_type is that of the release", test_replica_type},
        {"an existing key gives 0 without a byte, the master judges an empty value", test_put_without_bytes},
        {"a put with a failed replica is revoked when the others are over", test_put_revoked},
        {"a put without an answer may have happened only if its end has left", test_put_without_master},
        {"replicas that make no sense are revoked", test_put_nonsense},
        {"the keys of a batch of puts fare each by itself", test_batch_put},
        {"a batch that is answered for another number of keys has no answer", test_batch_put_wrong_count},
        {"of equal keys in a batch of puts the last is written for all", test_batch_put_same_keys},
        {NULL, NULL},
    };
    return moon_unit_main("store client puts", cases, argc, argv);
}
