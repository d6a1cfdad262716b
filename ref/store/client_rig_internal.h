/* SPDX-License-Identifier: Apache-2.0 */
/* One store client in a test that plays the master and the owners: its records as lines, its questions and their
 * answers as JSON, its operations. For the client's unit tests alone. */
#ifndef MOON_STORE_CLIENT_RIG_INTERNAL_H
#define MOON_STORE_CLIENT_RIG_INTERNAL_H

#include "ref/base/unit.h"
#include "ref/store/client_fake_internal.h"

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

static inline void record(struct moon_recorder *self, const struct moon_record *its) {
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

static inline const struct moon_wire_protocol *protocol_of(const char *release) {
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
static inline void prepare(struct world *world, const char *release, size_t segment_bytes, uint64_t fail_at) {
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

static inline void open_world(struct world *world, const char *release, size_t segment_bytes) {
    prepare(world, release, segment_bytes, 0);
    world->client = moon_client_open(&world->environment, &world->settings, &fake.transfer);
    CU_ASSERT_PTR_NOT_NULL_FATAL(world->client);
}

static inline void close_world(struct world *world) {
    moon_client_close(world->client);
    MOON_CHECK_INT(world->memory.held_bytes, 0);
    MOON_CHECK_INT(fake.question_count, 0);
    MOON_CHECK_INT(fake.job_count, 0);
    MOON_CHECK_INT(fake.registered, 0);
    moon_text_close(&world->log);
    moon_text_close(&world->shown);
}

/* All that is due. */
static inline void tick(struct world *world) {
    for (int i = 0; i < 20 && moon_client_deadline(world->client) <= world->environment.now_ns; i++)
        moon_client_tick(world->client);
}

static inline void pass_ms(struct world *world, int64_t ms) {
    world->environment.now_ns += ms * MOON_NS_PER_MS;
    tick(world);
}

/* The open questions: "Ping{...} FetchTasks{...}". */
static inline const char *questions(struct world *world) {
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
static inline const char *member(struct world *world, const char *name) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_clear(&world->shown);
    const struct moon_wire_value *value = fake.question_count ? moon_wire_at(fake.questions[0].arguments, name) : NULL;
    if (value)
        moon_json_write(moon_wire_to_json(&arena, value), MOON_JSON_COMPACT, &world->shown);
    moon_arena_close(&arena);
    return moon_text_value(&world->shown);
}

static inline size_t find(const char *name) {
    for (size_t i = 0; i < fake.question_count; i++)
        if (strcmp(fake.questions[i].function->function->name, name) == 0)
            return i;
    fprintf(stderr, "no question %s is open\n", name);
    CU_FAIL("no such question");
    return FAKE_OPEN_MAX;
}

/* Answers the oldest open question of that name. */
static inline void answer(struct world *world, const char *name, const char *json) {
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
static inline void break_off(struct world *world, const char *name, bool sent, int status, unsigned rpc_error) {
    size_t at = find(name);
    if (at == FAKE_OPEN_MAX)
        return;
    fake_end_question(at, world->environment.now_ns, sent, status, rpc_error, NULL);
    tick(world);
}

static inline void end_job(struct world *world, size_t at, int code) {
    CU_ASSERT_FATAL(at < fake.job_count);
    fake_end_job(at, code);
    tick(world);
}

static inline void check_log(struct world *world, const char *expected) {
    MOON_CHECK_TEXT(moon_text_value(&world->log), expected);
    moon_text_clear(&world->log);
}

/* ---- operations of the test */

struct task {
    struct moon_client_operation operation; /* first member */
    struct moon_client_item items[4];
    int *done;
};

static inline void count_done(struct moon_client_operation *operation) {
    ++*((struct task *)operation)->done;
    CU_ASSERT_PTR_NULL(operation->state);
}

/* keys: one letter a key. Returns what submit does. */
static inline int submit(struct world *world, struct task *task, enum moon_client_do kind, bool batched,
                         const char *keys, const struct moon_piece *const pieces[], size_t piece_count) {
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

static inline void begin(struct world *world, struct task *task, enum moon_client_do kind, const char *key,
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

static inline void set_up(struct world *world) {
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

static inline void open_ready(struct world *world, const char *release) {
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

#endif
