/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the store client: its set-up, its segment, and what may be asked of it when; with a master and owners that
 * the test plays. */
#include "ref/store/client_rig_internal.h"

/* ---- setup and owner */

static void test_setup_order(void) {
    struct world world;
    struct task task;
    open_world(&world, "0.3.13", sizeof world.segment);
    CU_ASSERT(moon_client_deadline(world.client) == MOON_NS_NEVER);
    begin(&world, &task, MOON_CLIENT_SETUP, "", NULL, 0);
    MOON_CHECK_TEXT(questions(&world), "ServiceReady");
    answer(&world, "ServiceReady", "{\"ok\":\"2.0.0\"}");
    MOON_CHECK_TEXT(questions(&world), "GetStorageConfig");
    answer(&world, "GetStorageConfig", "{\"ok\":{\"fsdir\":\"\",\"enable_disk_eviction\":false,\"quota_bytes\":0}}");
    MOON_CHECK_TEXT(questions(&world), "MountSegment{\"segment\":" SEGMENT ",\"client_id\":" CLIENT_ID "}");
    MOON_CHECK_INT(fake.registered, 1);
    answer(&world, "MountSegment", DONE);
    MOON_CHECK_TEXT(questions(&world), "Ping{\"client_id\":" CLIENT_ID "}");
    answer(&world, "Ping", NEED_REMOUNT);
    MOON_CHECK_INT(world.done, 0);
    MOON_CHECK_TEXT(questions(&world), "ReMountSegment{\"segments\":[" SEGMENT "],\"client_id\":" CLIENT_ID "}");
    answer(&world, "ReMountSegment", DONE);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.operation.result, 0);
    MOON_CHECK_TEXT(questions(&world), "");
    check_log(&world, "invoke mount 1 16 bytes at 10.0.0.9:15000+2000000\n"
                      "ok mount 1 16 bytes at 10.0.0.9:15000+2000000 = 0");
    close_world(&world);
}

static void test_setup_without_segment(void) {
    struct world world;
    struct task task;
    open_world(&world, "0.3.10", 0);
    begin(&world, &task, MOON_CLIENT_SETUP, "", NULL, 0);
    answer(&world, "ServiceReady", "{\"ok\":\"2.0.0\"}");
    break_off(&world, "GetStorageConfig", true, MOON_STORE_RPC_FAIL, 11);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.operation.result, 0);
    CU_ASSERT(moon_client_deadline(world.client) == MOON_NS_NEVER);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_SETUP, false, "", NULL, 0), MOON_ERR_RANGE);
    begin(&world, &task, MOON_CLIENT_UNMOUNT, "", NULL, 0);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.operation.result, 0);
    check_log(&world, "");
    close_world(&world);
}

/* The result of a setup that ends with what `name` gets: an answer, or `status` without one. */
static int64_t setup_with(struct world *world, const char *name, const char *json, int status) {
    static const char *const order[] = {"ServiceReady", "GetStorageConfig", "MountSegment", "Ping", "ReMountSegment"};
    static const char *const good[] = {"{\"ok\":\"2.0.0\"}", "{\"err\":-1}", DONE, NEED_REMOUNT, DONE};
    struct task task;
    begin(world, &task, MOON_CLIENT_SETUP, "", NULL, 0);
    for (size_t i = 0; i < 5 && world->done == 0; i++)
        if (strcmp(order[i], name) != 0)
            answer(world, order[i], good[i]);
        else if (json)
            answer(world, order[i], json);
        else
            break_off(world, order[i], true, status, 0);
    MOON_CHECK_INT(world->done, 1);
    return task.operation.result;
}

static void test_setup_failures(void) {
    struct world world;
    open_world(&world, "0.3.13", sizeof world.segment);
    MOON_CHECK_INT(setup_with(&world, "ServiceReady", "{\"ok\":\"2.0.1\"}", 0), MOON_STORE_INVALID_VERSION);
    MOON_CHECK_INT(setup_with(&world, "ServiceReady", "{\"err\":-1011}", 0), -1011);
    MOON_CHECK_INT(setup_with(&world, "ServiceReady", NULL, MOON_STORE_RPC_TIMEOUT), MOON_STORE_RPC_TIMEOUT);
    check_log(&world, "");
    MOON_CHECK_INT(setup_with(&world, "MountSegment", "{\"err\":-600}", 0), MOON_STORE_INVALID_PARAMS);
    MOON_CHECK_INT(fake.registered, 0);
    MOON_CHECK_INT(setup_with(&world, "MountSegment", NULL, MOON_STORE_RPC_FAIL), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(fake.registered, 0);
    check_log(&world, "invoke mount 4 16 bytes at 10.0.0.9:15000+2000000\n"
                      "fail mount 4 16 bytes at 10.0.0.9:15000+2000000 = -600\n"
                      "invoke mount 5 16 bytes at 10.0.0.9:15000+2000000\n"
                      "info mount 5 16 bytes at 10.0.0.9:15000+2000000 = -900");
    fake.refuse_register = MOON_ERR_RANGE;
    MOON_CHECK_INT(setup_with(&world, "", NULL, 0), MOON_STORE_INVALID_PARAMS);
    fake.refuse_register = MOON_ERR_MEMORY;
    MOON_CHECK_INT(setup_with(&world, "", NULL, 0), MOON_STORE_INTERNAL_ERROR);
    fake.refuse_register = 0;
    MOON_CHECK_INT(setup_with(&world, "ReMountSegment", NULL, MOON_STORE_RPC_FAIL), 0);
    close_world(&world);
    open_world(&world, "0.3.13", sizeof world.segment);
    MOON_CHECK_INT(setup_with(&world, "Ping", NULL, MOON_STORE_RPC_FAIL), 0);
    close_world(&world);
}

static void test_pings(void) {
    struct world world;
    open_world(&world, "0.3.13", sizeof world.segment);
    set_up(&world);
    CU_ASSERT_EQUAL(moon_client_deadline(world.client), 100 + MOON_NS_PER_S);
    pass_ms(&world, 999);
    MOON_CHECK_TEXT(questions(&world), "");
    pass_ms(&world, 1);
    MOON_CHECK_TEXT(questions(&world), "FetchTasks{\"client_id\":" CLIENT_ID ",\"batch_size\":16} "
                                       "Ping{\"client_id\":" CLIENT_ID "}");
    pass_ms(&world, 1000);
    pass_ms(&world, 5000); /* a late tick is one ping, and never a second one beside it */
    MOON_CHECK_INT(fake.question_count, 2);
    answer(&world, "FetchTasks", "{\"ok\":[]}");
    break_off(&world, "Ping", true, MOON_STORE_RPC_TIMEOUT, 0);
    MOON_CHECK_INT(fake.question_count, 0);
    check_log(&world, "");
    pass_ms(&world, 1000);
    MOON_CHECK_INT(fake.question_count, 2);
    break_off(&world, "FetchTasks", false, MOON_STORE_RPC_FAIL, 0);
    answer(&world, "Ping", PONG);
    MOON_CHECK_INT(fake.question_count, 0);
    close_world(&world);
}

static void test_remount(void) {
    struct world world;
    open_world(&world, "0.3.13", sizeof world.segment);
    set_up(&world);
    pass_ms(&world, 1000);
    answer(&world, "Ping", NEED_REMOUNT);
    answer(&world, "FetchTasks",
           "{\"ok\":[{\"id\":\"0000000000000001-0000000000000002\",\"type\":0,\"payload\":\"\","
           "\"created_at_ms_epoch\":0,\"max_retry_attempts\":1}]}");
    MOON_CHECK_TEXT(questions(&world), "ReMountSegment{\"segments\":[" SEGMENT "],\"client_id\":" CLIENT_ID "}");
    pass_ms(&world, 1000);
    answer(&world, "Ping", NEED_REMOUNT); /* one remount at a time */
    answer(&world, "FetchTasks", "{\"err\":-1}");
    MOON_CHECK_INT(fake.question_count, 1);
    answer(&world, "ReMountSegment", DONE);
    check_log(&world, "note tasks 0 16 bytes at 10.0.0.9:15000+2000000 = 1\n"
                      "state remount 0 16 bytes at 10.0.0.9:15000+2000000 = 0");
    close_world(&world);
}

static void test_unmount(void) {
    struct world world;
    struct task task, second;
    open_world(&world, "0.3.13", sizeof world.segment);
    set_up(&world);
    pass_ms(&world, 1000);
    answer(&world, "Ping", NEED_REMOUNT);
    answer(&world, "FetchTasks", "{\"ok\":[]}");
    begin(&world, &task, MOON_CLIENT_UNMOUNT, "", NULL, 0);
    MOON_CHECK_INT(submit(&world, &second, MOON_CLIENT_UNMOUNT, false, "", NULL, 0), MOON_ERR_RANGE);
    pass_ms(&world, 3000); /* no ping, and it waits for the remount */
    MOON_CHECK_INT(fake.question_count, 1);
    break_off(&world, "ReMountSegment", true, MOON_STORE_RPC_TIMEOUT, 0);
    MOON_CHECK_TEXT(questions(&world), "UnmountSegment{\"segment_id\":" SEGMENT_ID ",\"client_id\":" CLIENT_ID "}");
    break_off(&world, "UnmountSegment", true, MOON_STORE_RPC_TIMEOUT, 0);
    MOON_CHECK_INT(task.operation.result, MOON_STORE_RPC_TIMEOUT);
    MOON_CHECK_INT(fake.registered, 1);
    MOON_CHECK_INT(fake.question_count, 2); /* an owner as before */
    begin(&world, &task, MOON_CLIENT_UNMOUNT, "", NULL, 0);
    answer(&world, "Ping", NEED_REMOUNT); /* too late to be told so */
    answer(&world, "FetchTasks", "{\"ok\":[]}");
    answer(&world, "UnmountSegment", DONE);
    MOON_CHECK_INT(task.operation.result, 0);
    MOON_CHECK_INT(fake.registered, 0);
    CU_ASSERT(moon_client_deadline(world.client) == MOON_NS_NEVER);
    check_log(&world, "invoke unmount 2 16 bytes at 10.0.0.9:15000+2000000\n"
                      "state remount 0 16 bytes at 10.0.0.9:15000+2000000 = -901\n"
                      "info unmount 2 16 bytes at 10.0.0.9:15000+2000000 = -901\n"
                      "invoke unmount 3 16 bytes at 10.0.0.9:15000+2000000\n"
                      "ok unmount 3 16 bytes at 10.0.0.9:15000+2000000 = 0");
    close_world(&world);
}

/* ---- submitting, closing, memory */

static void test_refused_submits(void) {
    struct world world;
    struct task task;
    char byte;
    struct moon_piece too_long[] = {{&byte, SIZE_MAX}, {&byte, 1}};
    const struct moon_piece *const pieces[] = {too_long};
    open_world(&world, "0.3.13", 0);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_GET, false, "k", NULL, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_REMOVE_ALL, false, "", NULL, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_UNMOUNT, false, "", NULL, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_SETUP, false, "", NULL, 0), 0);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_SETUP, false, "", NULL, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_EXIST, false, "k", NULL, 0), MOON_ERR_RANGE);
    close_world(&world);
    open_ready(&world, "0.3.13");
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_EXIST, false, "ab", NULL, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, false, "k", pieces, 2), MOON_ERR_RANGE);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_GET, false, "k", pieces, 2), MOON_ERR_RANGE);
    check_log(&world, "");
    close_world(&world);
}

/* A put of nothing that is put again from within done(), `left` times. */
struct chain {
    struct moon_client_operation operation; /* first member */
    struct moon_client_item item;
    struct world *world;
    int left, done;
    bool closes;
};

static void chain_done(struct moon_client_operation *operation) {
    struct chain *chain = (struct chain *)operation;
    chain->done++;
    if (chain->left-- > 0)
        MOON_CHECK_INT(moon_client_submit(chain->world->client, operation), 0);
    if (chain->closes) {
        moon_client_close(chain->world->client);
        chain->world->client = NULL;
    }
}

static struct chain make_chain(struct world *world, int left, bool closes) {
    struct chain chain = {.world = world, .left = left, .closes = closes};
    chain.item.key = moon_bytes_of("k");
    /* A batch of nothing asks nobody, and is over at the next tick. */
    chain.operation = (struct moon_client_operation){.kind = MOON_CLIENT_PUT, .batched = true, .done = chain_done};
    return chain;
}

static void test_done(void) {
    struct world world;
    open_ready(&world, "0.3.13");
    struct chain chain = make_chain(&world, 3, false), other = make_chain(&world, 0, false);
    chain.operation.items = &chain.item;
    other.operation.items = &other.item;
    MOON_CHECK_INT(moon_client_submit(world.client, &chain.operation), 0);
    MOON_CHECK_INT(moon_client_submit(world.client, &other.operation), 0);
    moon_client_tick(world.client);
    MOON_CHECK_INT(chain.done, 1); /* its next one waits for the next tick */
    MOON_CHECK_INT(other.done, 1);
    tick(&world);
    MOON_CHECK_INT(chain.done, 4);
    other = make_chain(&world, 0, true);
    other.operation.items = &other.item;
    chain.done = 0;
    MOON_CHECK_INT(moon_client_submit(world.client, &other.operation), 0);
    MOON_CHECK_INT(moon_client_submit(world.client, &chain.operation), 0);
    moon_client_tick(world.client);
    MOON_CHECK_INT(chain.done, 0); /* forgotten */
    CU_ASSERT_PTR_NULL(world.client);
    close_world(&world);
}

enum { SCRIPT_EVENTS_MAX = 64 };

static const char *script_answer(const char *name) {
    static const char *const answers[][2] = {
        {"ServiceReady", "{\"ok\":\"2.0.0\"}"},
        {"GetStorageConfig", "{\"ok\":{\"fsdir\":\"\",\"enable_disk_eviction\":false,\"quota_bytes\":0}}"},
        {"MountSegment", DONE},
        {"Ping", NEED_REMOUNT},
        {"ReMountSegment", DONE},
        {"FetchTasks", "{\"ok\":[]}"},
        {"UnmountSegment", DONE},
        {"BatchPutStart",
         "[{\"ok\":[" REPLICA(1, 5, 4294967296, "10.0.0.2:1", 2) "," REPLICA(
             2, 5, 4294967396, "10.0.0.3:1", 2) "]},{\"ok\":[" REPLICA(3, 3, 4294967496, "10.0.0.2:1", 2) "]}]"},
        {"BatchPutEnd", "[{\"ok\":null}]"},
        {"BatchPutRevoke", "[{\"ok\":null}]"},
        {"GetReplicaList", FOUND(REPLICA(1, 5, 4294967296, "10.0.0.2:1", 3))},
        {"RemoveAll", "2"},
    };
    size_t at = 0;
    while (at < sizeof answers / sizeof *answers - 1 && strcmp(answers[at][0], name) != 0)
        at++;
    return answers[at][1];
}

/* What the script submits when its event number says so, or when nothing is open. */
static void script_submit(struct world *world, struct task tasks[], size_t next) {
    static char room[8], hello_bytes[] = "hello", one_bytes[] = "one";
    static const struct moon_piece hello = {hello_bytes, 5}, one = {one_bytes, 3}, into[2] = {{room, 2}, {room + 2, 6}};
    static const struct moon_piece *const values[] = {&one, &hello, &one}, *const rooms[] = {into};
    static const struct {
        enum moon_client_do kind;
        bool batched;
        const char *keys;
    } rows[] = {{MOON_CLIENT_SETUP, false, ""},
                {MOON_CLIENT_PUT, true, "bab"},
                {MOON_CLIENT_GET, false, "a"},
                {MOON_CLIENT_REMOVE_ALL, false, ""},
                {MOON_CLIENT_UNMOUNT, false, ""}};
    if (next < sizeof rows / sizeof *rows)
        submit(world, &tasks[next], rows[next].kind, rows[next].batched, rows[next].keys,
               rows[next].kind == MOON_CLIENT_PUT ? values : rooms, rows[next].kind == MOON_CLIENT_PUT ? 1 : 2);
}

/* One event: the oldest transfer ends (every third one fails), else the oldest question is answered, else time passes
 * and the next operation is submitted. Returns false at the end. */
static bool script_event(struct world *world, struct task tasks[], size_t event, size_t *next) {
    if (fake.job_count > 0)
        end_job(world, 0, event % 3 == 0 ? MOON_STORE_TRANSFER_FAIL : 0);
    else if (fake.question_count > 0) {
        const char *name = fake.questions[0].function->function->name;
        answer(world, name, script_answer(name));
    } else {
        pass_ms(world, *next > 1 && *next < 5 ? 1000 : 0);
        script_submit(world, tasks, (*next)++);
        tick(world);
    }
    return *next < 7 && event < SCRIPT_EVENTS_MAX;
}

/* Runs the script, at most `events` events of it, then closes. Returns how many there were. */
static size_t run_script(size_t events, uint64_t fail_at, uint64_t *requests) {
    struct world world;
    struct task tasks[8];
    size_t done = 0, next = 0;
    prepare(&world, "0.3.13", sizeof world.segment, fail_at);
    world.client = moon_client_open(&world.environment, &world.settings, &fake.transfer);
    while (world.client && done < events && script_event(&world, tasks, done, &next))
        done++;
    *requests = world.memory.requests;
    close_world(&world);
    return done;
}

static void test_close_anywhere(void) {
    uint64_t requests;
    size_t all = run_script(SCRIPT_EVENTS_MAX, 0, &requests);
    CU_ASSERT(all > 20 && all < SCRIPT_EVENTS_MAX);
    for (size_t events = 0; events < all; events++)
        MOON_CHECK_INT(run_script(events, 0, &requests), events);
}

static void test_memory(void) {
    uint64_t fail_at = 1, requests;
    do
        run_script(SCRIPT_EVENTS_MAX, fail_at, &requests);
    while (requests >= fail_at++);
    CU_ASSERT(fail_at > 50);
}

/* A put whose n-th request for memory is refused, and only that one, gives a code, and the client goes on. */
static void test_memory_for_a_while(void) {
    for (uint64_t at = 1, more = 1; more; at++) {
        struct world world;
        struct task task;
        struct moon_piece one = PIECE("one"), two = PIECE("two");
        const struct moon_piece *const pieces[] = {&one, &two, &one};
        open_ready(&world, "0.3.13");
        world.memory.fail_at = world.memory.requests + at;
        int status = submit(&world, &task, MOON_CLIENT_PUT, true, "aba", pieces, 1);
        more = world.memory.requests >= world.memory.fail_at;
        world.memory.fail_at = 0;
        MOON_CHECK_INT(status == 0 || (more && status == MOON_ERR_MEMORY), 1);
        tick(&world);
        if (status == 0 && more) { /* it could not be asked */
            MOON_CHECK_INT(world.done, 1);
            MOON_CHECK_INT(task.items[0].result, MOON_STORE_INTERNAL_ERROR);
        }
        begin(&world, &task, MOON_CLIENT_EXIST, "k", NULL, 0);
        answer(&world, "ExistKey", "{\"ok\":true}");
        MOON_CHECK_INT(task.items[0].result, 1);
        close_world(&world);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"setup asks in the order of the wheels", test_setup_order},
        {"setup without a segment asks twice, and the client never pings", test_setup_without_segment},
        {"setup gives the code of what it cannot do without, and may be tried again", test_setup_failures},
        {"an owner pings and fetches tasks once a second, one at a time, whatever comes of it", test_pings},
        {"an owner mounts again when a ping tells it to", test_remount},
        {"unmount stops the pings, follows a remount, and lets go of the segment when the master agreed", test_unmount},
        {"what may not begin is refused without a record", test_refused_submits},
        {"done() may submit again and close the client", test_done},
        {"closing after any event gives everything back", test_close_anywhere},
        {"memory that runs out at any request loses nothing", test_memory},
        {"memory that is short for a while costs one operation", test_memory_for_a_while},
        {NULL, NULL},
    };
    return moon_unit_main("store client", cases, argc, argv);
}
