/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the store client, question by question, with a master and owners that the test plays. */
#include "ref/store/client.h"

#include "ref/base/unit.h"
#include "ref/store/client_fake_internal.h"

enum { LOG_BYTES = 4096 };

/* ---- the world: one client, a log of its records, JSON for questions and answers */

struct world {
    struct moon_recorder recorder; /* first member */
    struct moon_memory_failing memory;
    struct moon_environment environment;
    struct moon_client_settings settings;
    struct moon_client *client;
    struct moon_text log, shown;
    uint8_t segment[16];
    int done;
};

static void record(struct moon_recorder *self, const struct moon_record *its) {
    struct moon_text *log = &((struct world *)self)->log;
    moon_text_format(log, "%s%s %s %d", log->length ? "\n" : "", moon_record_kind_name(its->kind), its->what,
                     (int)its->op);
    if (its->parent)
        moon_text_format(log, "<%d", (int)its->parent);
    if (its->has & MOON_RECORD_HAS_KEY)
        moon_text_format(log, " %.*s", (int)its->key.length, its->key.data);
    if (its->has & MOON_RECORD_HAS_TENANT)
        moon_text_format(log, " of %.*s", (int)its->tenant.length, its->tenant.data);
    if (its->has & MOON_RECORD_HAS_BYTES)
        moon_text_format(log, " %d bytes", (int)its->bytes);
    if (its->has & MOON_RECORD_HAS_DIGEST)
        moon_text_format(log, " %016llx", (unsigned long long)its->digest);
    if (its->has & MOON_RECORD_HAS_EXTENT)
        moon_text_format(log, " at %.*s+%llx", (int)its->extent.segment.length, its->extent.segment.data,
                         (unsigned long long)its->extent.offset);
    if (its->has & MOON_RECORD_HAS_CODE)
        moon_text_format(log, " = %d", (int)its->code);
}

static const struct moon_wire_protocol *protocol_of(const char *release) {
    static struct moon_wire_protocol protocols[4];
    for (size_t i = 0; i < 4; i++) {
        const struct moon_wire_release *its = moon_wire_releases[i];
        if (strncmp(its->name, release, strlen(release)) != 0)
            continue;
        if (!protocols[i].release)
            MOON_CHECK_INT(moon_wire_protocol_open(&protocols[i], its, moon_memory_heap()), 0);
        return &protocols[i];
    }
    return NULL;
}

/* fail_at: of the client's requests for memory; 0 none. */
static void prepare(struct world *world, const char *release, size_t segment_bytes, uint64_t fail_at) {
    memset(world, 0, sizeof *world);
    moon_memory_failing_init(&world->memory, moon_memory_heap(), fail_at);
    moon_text_open(&world->log, moon_memory_heap());
    moon_text_open(&world->shown, moon_memory_heap());
    world->recorder.record = record;
    world->environment =
        (struct moon_environment){.now_ns = 100, .memory = &world->memory.memory, .recorder = &world->recorder};
    moon_random_seed(&world->environment.random, 5);
    fake.transfer.environment = &world->environment;
    fake.refuse_register = 0;
    world->settings = moon_client_defaults();
    world->settings.protocol = protocol_of(release);
    world->settings.hostname = "10.0.0.9:12300";
    world->settings.tenant = ""; /* the same as "default" */
    world->settings.segment = world->segment;
    world->settings.segment_address = 0x2000000;
    world->settings.segment_bytes = segment_bytes;
}

static void open_world(struct world *world, const char *release, size_t segment_bytes) {
    prepare(world, release, segment_bytes, 0);
    world->client = moon_client_open(&world->environment, &world->settings, &fake.transfer);
    CU_ASSERT_PTR_NOT_NULL_FATAL(world->client);
}

static void close_world(struct world *world) {
    moon_client_close(world->client);
    MOON_CHECK_INT(world->memory.held_bytes, 0);
    MOON_CHECK_INT(fake.question_count, 0);
    MOON_CHECK_INT(fake.job_count, 0);
    MOON_CHECK_INT(fake.registered, 0);
    moon_text_close(&world->log);
    moon_text_close(&world->shown);
}

/* All that is due. */
static void tick(struct world *world) {
    for (int i = 0; i < 20 && moon_client_deadline(world->client) <= world->environment.now_ns; i++)
        moon_client_tick(world->client);
}

static void pass_ms(struct world *world, int64_t ms) {
    world->environment.now_ns += ms * MOON_NS_PER_MS;
    tick(world);
}

/* The open questions: "Ping{...} FetchTasks{...}". */
static const char *questions(struct world *world) {
    moon_text_clear(&world->shown);
    for (size_t i = 0; i < fake.question_count; i++) {
        struct moon_arena arena;
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_format(&world->shown, "%s%s", i ? " " : "", fake.questions[i].function->function->name);
        if (fake.questions[i].arguments->count)
            moon_json_write(moon_wire_to_json(&arena, fake.questions[i].arguments), MOON_JSON_COMPACT, &world->shown);
        moon_arena_close(&arena);
    }
    return moon_text_value(&world->shown);
}

/* One member of the first open question, as JSON. */
static const char *member(struct world *world, const char *name) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_clear(&world->shown);
    const struct moon_wire_value *value = fake.question_count ? moon_wire_at(fake.questions[0].arguments, name) : NULL;
    if (value)
        moon_json_write(moon_wire_to_json(&arena, value), MOON_JSON_COMPACT, &world->shown);
    moon_arena_close(&arena);
    return moon_text_value(&world->shown);
}

static size_t find(const char *name) {
    for (size_t i = 0; i < fake.question_count; i++)
        if (strcmp(fake.questions[i].function->function->name, name) == 0)
            return i;
    fprintf(stderr, "no question %s is open\n", name);
    CU_FAIL("no such question");
    return FAKE_OPEN_MAX;
}

/* Answers the oldest open question of that name. */
static void answer(struct world *world, const char *name, const char *json) {
    struct moon_arena arena;
    struct moon_json *tree = NULL;
    struct moon_wire_value *value = NULL;
    struct moon_error error = {.message = ""};
    size_t at = find(name);
    if (at == FAKE_OPEN_MAX)
        return;
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_json_read(&arena, "answer", json, strlen(json), MOON_JSON_STRICT, &tree, &error) ||
        moon_wire_from_json(&arena, fake.questions[at].function->function->result, tree, &value, &error)) {
        fprintf(stderr, "%s: %s %s\n", json, error.where, error.message);
        CU_FAIL_FATAL("the test's answer is wrong");
    }
    fake_end_question(at, world->environment.now_ns, true, 0, 0, value);
    moon_arena_close(&arena);
    tick(world);
}

/* Ends it without one. */
static void break_off(struct world *world, const char *name, bool sent, int status, unsigned rpc_error) {
    size_t at = find(name);
    if (at == FAKE_OPEN_MAX)
        return;
    fake_end_question(at, world->environment.now_ns, sent, status, rpc_error, NULL);
    tick(world);
}

static void end_job(struct world *world, size_t at, int code) {
    CU_ASSERT_FATAL(at < fake.job_count);
    fake_end_job(at, code);
    tick(world);
}

static void check_log(struct world *world, const char *expected) {
    MOON_CHECK_TEXT(moon_text_value(&world->log), expected);
    moon_text_clear(&world->log);
}

/* ---- operations of the test */

struct task {
    struct moon_client_operation operation; /* first member */
    struct moon_client_item items[4];
    int *done;
};

static void count_done(struct moon_client_operation *operation) {
    ++*((struct task *)operation)->done;
    CU_ASSERT_PTR_NULL(operation->state);
}

/* keys: one letter a key. Returns what submit does. */
static int submit(struct world *world, struct task *task, enum moon_client_do kind, bool batched, const char *keys,
                  const struct moon_piece *const pieces[], size_t piece_count) {
    *task = (struct task){.done = &world->done};
    task->operation = (struct moon_client_operation){.kind = kind,
                                                     .batched = batched,
                                                     .items = task->items,
                                                     .item_count = strlen(keys),
                                                     .result = 99,
                                                     .done = count_done};
    for (size_t i = 0; i < task->operation.item_count; i++)
        task->items[i] = (struct moon_client_item){.key = {keys + i, 1},
                                                   .pieces = pieces ? pieces[i] : NULL,
                                                   .piece_count = pieces ? piece_count : 0,
                                                   .result = 99};
    world->done = 0;
    return moon_client_submit(world->client, &task->operation);
}

/* Pieces of a value that lies in `bytes`. */
#define PIECE(bytes) ((struct moon_piece){(char[]){bytes}, sizeof(bytes) - 1})

static void begin(struct world *world, struct task *task, enum moon_client_do kind, const char *key,
                  const struct moon_piece *pieces, size_t count) {
    const struct moon_piece *const of_items[] = {pieces};
    MOON_CHECK_INT(submit(world, task, kind, false, key, pieces ? of_items : NULL, count), 0);
    tick(world);
}

#define REPLICA(id, size, address, endpoint, status)                                                                   \
    "{\"id\":" #id ",\"where\":{\"kind\":\"MEMORY\",\"value\":{\"buffer\":{\"size\":" #size ",\"address\":" #address   \
    ",\"protocol\":\"tcp\",\"transport_endpoint\":\"" endpoint "\"}}},\"status\":" #status "}"
#define ON_DISK                                                                                                        \
    "{\"id\":7,\"where\":{\"kind\":\"DISK\",\"value\":{\"file_path\":\"f\",\"object_size\":5}},\"status\":3}"
#define FOUND_OF(ttl, ...)                                                                                             \
    "{\"ok\":{\"replicas\":[" __VA_ARGS__ "],\"lease_ttl_ms\":" #ttl ",\"object_checksum\":null}}"
#define FOUND(...) FOUND_OF(10000, __VA_ARGS__)

static void set_up(struct world *world) {
    struct task task;
    begin(world, &task, MOON_CLIENT_SETUP, "", NULL, 0);
    answer(world, "ServiceReady", "{\"ok\":\"2.0.0\"}");
    answer(world, "GetStorageConfig", "{\"err\":-1010}");
    if (world->settings.segment_bytes > 0) {
        answer(world, "MountSegment", "{\"ok\":null}");
        answer(world, "Ping", "{\"ok\":{\"view_version_id\":0,\"client_status\":1}}");
    }
    MOON_CHECK_INT(world->done, 1);
    MOON_CHECK_INT(task.operation.result, 0);
    moon_text_clear(&world->log);
}

static void open_ready(struct world *world, const char *release) {
    open_world(world, release, 0);
    set_up(world);
}

/* Ids drawn from the seed. */
#define CLIENT_ID  "\"49d55178ca54cf69-9a22115a4d2624dd\""
#define SEGMENT_ID "\"84475cf19f18e249-c8d68fcc4867a987\""
#define SEGMENT                                                                                                        \
    "{\"id\":" SEGMENT_ID ",\"name\":\"10.0.0.9:12300\",\"base\":33554432,\"size\":16,"                                \
    "\"te_endpoint\":\"10.0.0.9:15000\",\"protocol\":\"tcp\",\"host_id\":\"\"}"
#define PONG         "{\"ok\":{\"view_version_id\":0,\"client_status\":1}}"
#define NEED_REMOUNT "{\"ok\":{\"view_version_id\":0,\"client_status\":2}}"
#define DONE         "{\"ok\":null}"

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
    CU_ASSERT_EQUAL(moon_client_id(world.client).first, 0x49d55178ca54cf69);
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

static void test_put_shortcuts(void) {
    struct world world;
    struct task task;
    struct moon_piece piece = PIECE("hello"), nothing = PIECE("");
    const struct moon_piece *const pieces[] = {&nothing};
    open_ready(&world, "0.3.13");
    begin(&world, &task, MOON_CLIENT_PUT, "k", &piece, 1);
    answer(&world, "PutStart", "{\"err\":-705}");
    MOON_CHECK_INT(task.items[0].result, 0);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, false, "z", pieces, 1), 0);
    MOON_CHECK_INT(world.done, 0); /* never from within a call by the user */
    CU_ASSERT_EQUAL(moon_client_deadline(world.client), world.environment.now_ns);
    tick(&world);
    MOON_CHECK_INT(world.done, 1);
    MOON_CHECK_INT(task.items[0].result, 0);
    MOON_CHECK_INT(submit(&world, &task, MOON_CLIENT_PUT, true, "z", pieces, 1), 0);
    MOON_CHECK_TEXT(member(&world, "slice_lengths"), "[0]");
    answer(&world, "BatchPutStart", "[{\"err\":-600}]");
    MOON_CHECK_INT(task.items[0].result, MOON_STORE_INVALID_PARAMS);
    check_log(&world, "invoke put 2 k 5 bytes 9555e8555c62dcfd\nok put 2 k = 0\n"
                      "invoke put 3 z 0 bytes 2d06800538d394c2\nok put 3 z = 0\n"
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
    chain.operation = (struct moon_client_operation){.kind = MOON_CLIENT_PUT, .item_count = 1, .done = chain_done};
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
        {"a put starts, writes its pieces and ends", test_put},
        {"a put says how many replicas it wants, and where", test_put_options},
        {"replica_type is that of the release", test_replica_type},
        {"an existing key and an empty value give 0 without a byte", test_put_shortcuts},
        {"a put with a failed replica is revoked when the others are over", test_put_revoked},
        {"a put without an answer may have happened only if its end has left", test_put_without_master},
        {"replicas that make no sense are revoked", test_put_nonsense},
        {"the keys of a batch of puts fare each by itself", test_batch_put},
        {"a batch that is answered for another number of keys has no answer", test_batch_put_wrong_count},
        {"of equal keys in a batch of puts the last is written for all", test_batch_put_same_keys},
        {"a get reads the first complete replica in memory into its pieces", test_get},
        {"a get prefers its own replica and tries no other", test_get_own},
        {"a get that cannot be gives a code", test_get_refused},
        {"what was read when the lease is over is void", test_get_lease},
        {"the keys of a batch of gets fare each by itself", test_batch_get},
        {"exist, size and remove give the master's answer", test_exist_size_remove},
        {"a remove without an answer may have happened, a question did not", test_remove_unanswered},
        {"what may not begin is refused without a record", test_refused_submits},
        {"done() may submit again and close the client", test_done},
        {"closing after any event gives everything back", test_close_anywhere},
        {"memory that runs out at any request loses nothing", test_memory},
        {"memory that is short for a while costs one operation", test_memory_for_a_while},
        {NULL, NULL},
    };
    return moon_unit_main("store client", cases, argc, argv);
}
