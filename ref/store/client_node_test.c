/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the client as a program beside the real master, other clients and transfer engines, over streams in memory.
 */
#include "ref/store/client_node.h"

#include "ref/base/fill.h"
#include "ref/base/unit.h"
#include "ref/fabric/memory.h"
#include "ref/store/master_node.h"

#include <stdlib.h>

enum {
    CLIENTS = 3,
    SEGMENT_BYTES = 16 << 20,
    SMALL_SEGMENT_BYTES = 1 << 16,
    VALUE_BYTES_MAX = 4 << 20,
    EVENTS_MAX = 2000000
};

/* ---- the world */

/* One node. instance NULL: it is down. frozen: its ticks do not come. seen: what the last message that arrived was. */
struct node {
    struct moon_recorder recorder; /* first member */
    const struct moon_program *program;
    void *instance;
    bool frozen;
    struct moon_environment environment;
    struct moon_memory_failing memory;
    char host[16], seen[32];
    union {
        struct moon_master_node_settings master;
        struct moon_client_node_settings client;
    } settings;
};

struct world {
    struct moon_memory_fabric *fabric;
    struct moon_wire_protocol protocol;
    struct node master, clients[CLIENTS];
    uint8_t *segments[CLIENTS];
};

static void record(struct moon_recorder *self, const struct moon_record *its) {
    if (its->kind == MOON_RECORD_RECV)
        snprintf(((struct node *)self)->seen, sizeof((struct node *)self)->seen, "%s", its->what);
}

/* Boots a node that is down. */
static void boot(struct world *world, struct node *node) {
    struct moon_error error = {.message = ""};
    MOON_CHECK_INT(moon_memory_fabric_attach(world->fabric, &node->environment, node->host), 0);
    node->instance = node->program->boot(&node->settings, &node->environment, &error);
    if (!node->instance && node->memory.fail_at == 0)
        fprintf(stderr, "%s: %s\n", node->host, error.message);
}

/* Ends a node at once: its peers see their streams end, the master hears nothing. */
static void kill(struct world *world, struct node *node) {
    if (node->instance)
        node->program->halt(node->instance);
    node->instance = NULL;
    moon_memory_fabric_detach(world->fabric, &node->environment);
    MOON_CHECK_INT(node->memory.held_bytes, 0);
}

static void init_node(struct node *node, const struct moon_program *program, unsigned number) {
    node->program = program;
    node->recorder.record = record;
    moon_memory_failing_init(&node->memory, moon_memory_heap(), 0);
    node->environment.memory = &node->memory.memory;
    node->environment.recorder = &node->recorder;
    moon_random_seed(&node->environment.random, number);
    snprintf(node->host, sizeof node->host, "10.0.0.%u", number);
}

/* Settings of all nodes; none is booted. Clients with `owners` bit i set lend memory. */
static void prepare(struct world *world, const char *release, unsigned owners, size_t segment_bytes) {
    memset(world, 0, sizeof *world);
    MOON_CHECK_INT(moon_wire_protocol_open(&world->protocol, moon_wire_release_find(release), moon_memory_heap()), 0);
    world->fabric = moon_memory_fabric_open(moon_memory_heap());
    init_node(&world->master, &moon_master_program, 1);
    world->master.settings.master = (struct moon_master_node_settings){.master = moon_master_defaults(),
                                                                       .protocol = &world->protocol,
                                                                       .with_text = true,
                                                                       .endpoint = "10.0.0.1:50051"};
    for (unsigned i = 0; i < CLIENTS; i++) {
        static const char *const hostnames[CLIENTS] = {"10.0.0.2:12300", "10.0.0.3:12300", "10.0.0.4:12300"};
        struct node *node = &world->clients[i];
        struct moon_client_node_settings *settings = &node->settings.client;
        init_node(node, &moon_client_program, 2 + i);
        settings->client = moon_client_defaults();
        settings->client.protocol = &world->protocol;
        settings->client.master_endpoint = "10.0.0.1:50051";
        settings->client.hostname = hostnames[i];
        settings->transfer = moon_transfer_defaults();
        settings->transfer.host = node->host;
        settings->transfer.release = world->protocol.release;
        if (owners >> i & 1) {
            settings->client.segment = world->segments[i] = calloc(1, segment_bytes);
            settings->client.segment_address = 0x100000000 * (i + 1);
            settings->client.segment_bytes = segment_bytes;
        }
    }
}

static void close_world(struct world *world) {
    struct node *nodes[] = {&world->master, &world->clients[0], &world->clients[1], &world->clients[2]};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (nodes[i]->instance)
            kill(world, nodes[i]);
    moon_memory_fabric_close(world->fabric);
    for (size_t i = 0; i < CLIENTS; i++)
        free(world->segments[i]);
}

static moon_ns deadline_of(const struct node *node) {
    return node->instance && !node->frozen ? node->program->deadline(node->instance) : MOON_NS_NEVER;
}

/* One event with what is due after it. Returns false if there is nothing to do at this time. */
static bool step(struct world *world) {
    struct node *nodes[] = {&world->master, &world->clients[0], &world->clients[1], &world->clients[2]};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        nodes[i]->environment.now_ns = moon_memory_fabric_now(world->fabric);
        if (deadline_of(nodes[i]) <= nodes[i]->environment.now_ns) {
            nodes[i]->program->tick(nodes[i]->instance);
            return true;
        }
    }
    return moon_memory_fabric_step(world->fabric) != NULL;
}

static void settle(struct world *world) {
    int events = 0;
    while (events < EVENTS_MAX && step(world))
        events++;
    CU_ASSERT_FATAL(events < EVENTS_MAX);
}

/* Moves the time to the next deadline, at most to `until_ns`, and settles. */
static void next_deadline(struct world *world, moon_ns until_ns) {
    moon_ns next_ns = deadline_of(&world->master);
    for (size_t i = 0; i < CLIENTS; i++)
        next_ns = deadline_of(&world->clients[i]) < next_ns ? deadline_of(&world->clients[i]) : next_ns;
    moon_memory_fabric_advance(world->fabric, next_ns < until_ns ? next_ns : until_ns);
    settle(world);
}

static void pass_ms(struct world *world, int64_t ms) {
    moon_ns until_ns = moon_memory_fabric_now(world->fabric) + ms * MOON_NS_PER_MS;
    settle(world);
    while (moon_memory_fabric_now(world->fabric) < until_ns)
        next_deadline(world, until_ns);
}

/* ---- operations: one at a time, to its end */

struct task {
    struct moon_client_operation operation; /* first member */
    bool done;
};

static void done(struct moon_client_operation *operation) {
    ((struct task *)operation)->done = true;
}

static int64_t now_ms(const struct world *world) {
    return moon_memory_fabric_now(world->fabric) / MOON_NS_PER_MS;
}

static struct task make(enum moon_client_do kind, struct moon_client_item *items, size_t count) {
    struct task task = {.operation = {.kind = kind, .items = items, .item_count = count, .done = done}};
    task.operation.batched = count > 1;
    return task;
}

static struct moon_client *client_of(struct world *world, size_t client) {
    return moon_client_node_client(world->clients[client].instance);
}

/* Runs it to its end, for at most two minutes. */
static void finish(struct world *world, struct task *task) {
    int64_t until_ms = now_ms(world) + 120000;
    settle(world);
    while (!task->done && now_ms(world) < until_ms)
        next_deadline(world, until_ms * MOON_NS_PER_MS);
    CU_ASSERT(task->done);
}

static int64_t run(struct world *world, size_t client, enum moon_client_do kind, const char *key, void *bytes,
                   size_t length) {
    struct moon_piece piece = {bytes, length};
    struct moon_client_item item = {.key = moon_bytes_of(key), .pieces = &piece, .piece_count = 1};
    struct task task = make(kind, &item, 1);
    int status = moon_client_submit(client_of(world, client), &task.operation);
    MOON_CHECK_INT(status, 0);
    if (status)
        return status;
    finish(world, &task);
    return key ? item.result : task.operation.result;
}

static int64_t ask(struct world *world, size_t client, enum moon_client_do kind, const char *key) {
    return run(world, client, kind, key, NULL, 0);
}

static int64_t put(struct world *world, size_t client, const char *key, const char *value) {
    char bytes[64];
    snprintf(bytes, sizeof bytes, "%s", value);
    return run(world, client, MOON_CLIENT_PUT, key, bytes, strlen(bytes));
}

/* A get whose value is this text: 0, else its code or length. */
static int64_t get(struct world *world, size_t client, const char *key, const char *value) {
    char room[64];
    int64_t result = run(world, client, MOON_CLIENT_GET, key, room, sizeof room);
    return result == (int64_t)strlen(value) && memcmp(room, value, strlen(value)) == 0 ? 0 : result;
}

static void open_world(struct world *world, const char *release, unsigned owners) {
    prepare(world, release, owners, SEGMENT_BYTES);
    boot(world, &world->master);
    for (size_t i = 0; i < CLIENTS; i++) {
        boot(world, &world->clients[i]);
        MOON_CHECK_INT(ask(world, i, MOON_CLIENT_SETUP, NULL), 0);
    }
}

/* ---- tests */

static void check_sizes(struct world *world, size_t length, size_t pieces) {
    static uint8_t value[VALUE_BYTES_MAX], room[VALUE_BYTES_MAX + 1];
    struct moon_piece from[5], into[5];
    char key[32];
    snprintf(key, sizeof key, "%zu in %zu", length, pieces);
    moon_fill(length + pieces, 0, value, length);
    memset(room, 0xc7, length + 1);
    for (size_t i = 0; i < pieces; i++) {
        size_t begin = length * i / pieces, end = length * (i + 1) / pieces;
        from[i] = (struct moon_piece){value + begin, end - begin};
        begin = i ? length * i * i / (pieces * pieces) : 0; /* cut elsewhere */
        end = length * (i + 1) * (i + 1) / (pieces * pieces);
        into[i] = (struct moon_piece){room + begin, end - begin + (i == pieces - 1)};
    }
    struct moon_client_item item = {.key = moon_bytes_of(key), .pieces = from, .piece_count = pieces};
    struct task task = make(MOON_CLIENT_PUT, &item, 1);
    MOON_CHECK_INT(moon_client_submit(client_of(world, 2), &task.operation), 0);
    finish(world, &task);
    MOON_CHECK_INT(item.result, 0);
    for (size_t client = 0; client < CLIENTS; client++) {
        item.pieces = into;
        task = make(MOON_CLIENT_GET, &item, 1);
        memset(room, 0xc7, length + 1);
        MOON_CHECK_INT(moon_client_submit(client_of(world, client), &task.operation), 0);
        finish(world, &task);
        MOON_CHECK_INT(item.result, length);
        CU_ASSERT_EQUAL(memcmp(room, value, length), 0);
        MOON_CHECK_INT(room[length], 0xc7);
    }
    MOON_CHECK_INT(ask(world, 1, MOON_CLIENT_SIZE, key), length);
}

static void test_sizes(void) {
    struct world world;
    open_world(&world, "0.3.13", 1);
    static const size_t lengths[] = {1, 2, 4095, 65536, 65537, 1 << 20, VALUE_BYTES_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t pieces = 1; pieces <= 5; pieces += 4)
            check_sizes(&world, lengths[i], pieces);
    close_world(&world);
}

static void test_releases(void) {
    for (size_t i = 0; moon_wire_releases[i]; i++) {
        struct world world;
        open_world(&world, moon_wire_releases[i]->name, 1);
        MOON_CHECK_INT(get(&world, 2, "k", "one"), MOON_STORE_OBJECT_NOT_FOUND);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "k"), 0);
        MOON_CHECK_INT(put(&world, 1, "k", "one"), 0);
        MOON_CHECK_INT(put(&world, 0, "k", "two"), 0);
        MOON_CHECK_INT(get(&world, 2, "k", "one"), 0);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "k"), 1);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_SIZE, "k"), 3);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_REMOVE, "k"), MOON_STORE_OBJECT_HAS_LEASE);
        MOON_CHECK_INT(put(&world, 2, "l", "three"), 0);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_REMOVE, "l"), 0);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_REMOVE, "l"), MOON_STORE_OBJECT_NOT_FOUND);
        MOON_CHECK_INT(put(&world, 2, "l", "three"), 0);
        MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_REMOVE_ALL, NULL), 1);
        MOON_CHECK_INT(put(&world, 2, "", "three"), MOON_STORE_INVALID_PARAMS);
        close_world(&world);
    }
}

static void test_batches(void) {
    struct world world;
    char room[4][8] = {""};
    struct moon_piece values[4], rooms[4];
    struct moon_client_item items[4];
    static char bytes[][8] = {"one", "two.", "three", ""};
    open_world(&world, "0.3.13", 3);
    for (size_t i = 0; i < 4; i++) {
        values[i] = (struct moon_piece){bytes[i], strlen(bytes[i])};
        rooms[i] = (struct moon_piece){room[i], i == 1 ? 3 : sizeof room[i]};
        items[i] = (struct moon_client_item){.key = {&"abcd"[i], 1}, .pieces = &values[i], .piece_count = 1};
    }
    MOON_CHECK_INT(put(&world, 0, "c", "there"), 0);
    struct task task = make(MOON_CLIENT_PUT, items, 4);
    MOON_CHECK_INT(moon_client_submit(client_of(&world, 1), &task.operation), 0);
    finish(&world, &task);
    MOON_CHECK_INT(items[0].result, 0);
    MOON_CHECK_INT(items[1].result, 0);
    MOON_CHECK_INT(items[2].result, 0);
    MOON_CHECK_INT(items[3].result, MOON_STORE_INVALID_PARAMS);
    for (size_t i = 0; i < 4; i++)
        items[i].pieces = &rooms[i];
    task = make(MOON_CLIENT_GET, items, 4);
    MOON_CHECK_INT(moon_client_submit(client_of(&world, 2), &task.operation), 0);
    finish(&world, &task);
    MOON_CHECK_INT(items[0].result, 3);
    MOON_CHECK_INT(items[1].result, MOON_STORE_INVALID_PARAMS);
    MOON_CHECK_INT(items[2].result, 5);
    MOON_CHECK_INT(items[3].result, MOON_STORE_OBJECT_NOT_FOUND);
    CU_ASSERT_EQUAL(memcmp(room[0], "one", 3), 0);
    CU_ASSERT_EQUAL(memcmp(room[2], "there", 5), 0);
    close_world(&world);
}

static void test_too_long(void) {
    struct world world;
    char byte = 'x';
    struct moon_piece piece = {&byte, 1};
    char *key = calloc(1, MOON_RPC_FRAME_BYTES_MAX);
    struct moon_client_item item = {.key = {key, MOON_RPC_FRAME_BYTES_MAX}, .pieces = &piece, .piece_count = 1};
    struct task task = make(MOON_CLIENT_PUT, &item, 1);
    open_world(&world, "0.3.13", 1);
    MOON_CHECK_INT(moon_client_submit(client_of(&world, 2), &task.operation), 0);
    finish(&world, &task);
    MOON_CHECK_INT(item.result, MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    close_world(&world);
    free(key);
}

static void test_side_by_side(void) {
    enum { GETS = 20 };
    struct world world;
    char room[GETS][8] = {""};
    struct moon_piece rooms[GETS];
    struct moon_client_item items[GETS];
    struct task tasks[GETS];
    open_world(&world, "0.3.13", 3);
    MOON_CHECK_INT(put(&world, 0, "a", "one"), 0);
    MOON_CHECK_INT(put(&world, 1, "b", "two"), 0);
    for (size_t i = 0; i < GETS; i++) {
        rooms[i] = (struct moon_piece){room[i], sizeof room[i]};
        items[i] = (struct moon_client_item){.key = {&"ab"[i % 2], 1}, .pieces = &rooms[i], .piece_count = 1};
        tasks[i] = make(MOON_CLIENT_GET, &items[i], 1);
        MOON_CHECK_INT(moon_client_submit(client_of(&world, 2), &tasks[i].operation), 0);
    }
    for (size_t i = 0; i < GETS; i++) {
        finish(&world, &tasks[i]);
        MOON_CHECK_INT(items[i].result, 3);
        CU_ASSERT_EQUAL(memcmp(room[i], i % 2 ? "two" : "one", 3), 0);
    }
    close_world(&world);
}

static void test_replicas(void) {
    struct world world;
    prepare(&world, "0.3.13", 3, SMALL_SEGMENT_BYTES);
    world.clients[2].settings.client.client.replica_num = 2;
    boot(&world, &world.master);
    for (size_t i = 0; i < CLIENTS; i++) {
        boot(&world, &world.clients[i]);
        MOON_CHECK_INT(ask(&world, i, MOON_CLIENT_SETUP, NULL), 0);
    }
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    MOON_CHECK_INT(moon_master_count(moon_master_node_master(world.master.instance)).allocated_bytes, 6);
    kill(&world, &world.clients[1]);
    MOON_CHECK_INT(get(&world, 0, "k", "one"), 0); /* its own one, whichever was first */
    MOON_CHECK_INT(put(&world, 2, "l", "two"), MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "l"), 0);
    pass_ms(&world, 12000);
    MOON_CHECK_INT(get(&world, 2, "k", "one"), 0);
    MOON_CHECK_INT(put(&world, 2, "l", "two"), 0);
    MOON_CHECK_INT(get(&world, 0, "l", "two"), 0);
    close_world(&world);
}

static void test_dead_owner(void) {
    struct world world;
    open_world(&world, "0.3.13", 1);
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    kill(&world, &world.clients[0]);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "k"), 1);
    MOON_CHECK_INT(get(&world, 2, "k", "one"), MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(put(&world, 2, "l", "two"), MOON_STORE_TRANSFER_FAIL);
    pass_ms(&world, 12000);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "k"), 0);
    MOON_CHECK_INT(get(&world, 2, "k", "one"), MOON_STORE_OBJECT_NOT_FOUND);
    MOON_CHECK_INT(put(&world, 2, "l", "two"), MOON_STORE_NO_AVAILABLE_HANDLE);
    boot(&world, &world.clients[0]);
    MOON_CHECK_INT(ask(&world, 0, MOON_CLIENT_SETUP, NULL), 0);
    MOON_CHECK_INT(put(&world, 2, "l", "two"), 0);
    MOON_CHECK_INT(get(&world, 2, "l", "two"), 0);
    close_world(&world);
}

static void test_unmount(void) {
    struct world world;
    open_world(&world, "0.3.13", 1);
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    MOON_CHECK_INT(ask(&world, 0, MOON_CLIENT_UNMOUNT, NULL), 0);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "k"), 0);
    MOON_CHECK_INT(put(&world, 2, "l", "two"), MOON_STORE_NO_AVAILABLE_HANDLE);
    pass_ms(&world, 30000);
    MOON_CHECK_INT(moon_master_count(moon_master_node_master(world.master.instance)).segments, 0);
    close_world(&world);
}

static void test_dead_master(void) {
    struct world world;
    open_world(&world, "0.3.13", 1);
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    kill(&world, &world.master);
    MOON_CHECK_INT(put(&world, 2, "l", "two"), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(get(&world, 2, "k", "one"), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_EXIST, "k"), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_REMOVE, "k"), MOON_STORE_RPC_FAIL);
    MOON_CHECK_INT(ask(&world, 2, MOON_CLIENT_REMOVE_ALL, NULL), MOON_STORE_RPC_FAIL);
    pass_ms(&world, 40000);
    boot(&world, &world.master);
    pass_ms(&world, 1000); /* within which the owner comes back, by itself */
    MOON_CHECK_INT(get(&world, 2, "k", "one"), MOON_STORE_OBJECT_NOT_FOUND);
    MOON_CHECK_INT(put(&world, 2, "k", "two"), 0);
    MOON_CHECK_INT(get(&world, 1, "k", "two"), 0);
    close_world(&world);
}

static void test_silent_owner(void) {
    struct world world;
    open_world(&world, "0.3.13", 1);
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    world.clients[0].frozen = true;
    pass_ms(&world, 12000);
    MOON_CHECK_INT(put(&world, 2, "k", "two"), MOON_STORE_NO_AVAILABLE_HANDLE);
    world.clients[0].frozen = false;
    pass_ms(&world, 0);
    MOON_CHECK_INT(put(&world, 2, "k", "two"), 0);
    MOON_CHECK_INT(get(&world, 1, "k", "two"), 0);
    close_world(&world);
}

/* Time passes between the master's answer and the transfer. */
static void test_slow_transfer(void) {
    struct world world;
    char room[8];
    struct moon_piece piece = {room, sizeof room};
    struct moon_client_item item = {.key = moon_bytes_of("k"), .pieces = &piece, .piece_count = 1};
    open_world(&world, "0.3.13", 1);
    MOON_CHECK_INT(put(&world, 2, "k", "one"), 0);
    for (int64_t late = 0; late < 2; late++) {
        struct task task = make(MOON_CLIENT_GET, &item, 1);
        world.clients[2].seen[0] = '\0';
        MOON_CHECK_INT(moon_client_submit(client_of(&world, 2), &task.operation), 0);
        while (strcmp(world.clients[2].seen, "GetReplicaList") != 0 && step(&world))
            continue;
        moon_ns slow_ns = 10 * MOON_NS_PER_S - (late ? 0 : 1);
        moon_memory_fabric_advance(world.fabric, moon_memory_fabric_now(world.fabric) + slow_ns);
        finish(&world, &task);
        MOON_CHECK_INT(item.result, late ? MOON_STORE_LEASE_EXPIRED : 3);
    }
    close_world(&world);
}

/* ---- ends in the middle, and memory */

/* A requester with a segment of its own puts and gets, among two others; it is killed after `events` of its events, or
 * its fail_at-th request for memory is refused. Returns true if the script came to its end. */
static bool run_script(size_t events, uint64_t fail_at, uint64_t *requests) {
    struct world world;
    static char room[8], value[] = "hello", other[] = "hello, world";
    struct moon_piece values[] = {{value, 2}, {other, 12}, {value + 2, 3}};
    struct moon_piece rooms[] = {{room, 8}, {room, 1}, {room + 1, 7}};
    struct moon_client_item items[] = {{.key = {"a", 1}, .pieces = values, .piece_count = 1},
                                       {.key = {"b", 1}, .pieces = values + 1, .piece_count = 2}};
    struct moon_client_item found[] = {{.key = {"a", 1}, .pieces = rooms, .piece_count = 1},
                                       {.key = {"b", 1}, .pieces = rooms + 1, .piece_count = 2}};
    struct task tasks[] = {make(MOON_CLIENT_SETUP, NULL, 0), make(MOON_CLIENT_PUT, items, 2),
                           make(MOON_CLIENT_GET, found, 2), make(MOON_CLIENT_UNMOUNT, NULL, 0)};
    prepare(&world, "0.3.13", 3, SMALL_SEGMENT_BYTES);
    boot(&world, &world.master);
    boot(&world, &world.clients[0]);
    MOON_CHECK_INT(ask(&world, 0, MOON_CLIENT_SETUP, NULL), 0);
    struct node *node = &world.clients[1];
    node->memory.fail_at = fail_at;
    boot(&world, node);
    size_t next = 0;
    for (bool submitted = false; node->instance && next < 4 && events > 0; events--) {
        if (!submitted && moon_client_submit(client_of(&world, 1), &tasks[next].operation))
            break;
        submitted = true;
        if (!step(&world))
            next_deadline(&world, MOON_NS_NEVER);
        if (tasks[next].done) {
            submitted = false;
            if (tasks[next++].operation.result)
                break;
        }
    }
    *requests = node->memory.requests;
    if (fail_at == 0 && next == 4)
        MOON_CHECK_INT(found[1].result, MOON_STORE_INVALID_PARAMS); /* 15 bytes do not fit in 8 */
    node->memory.fail_at = 0;
    kill(&world, node);
    MOON_CHECK_INT(put(&world, 0, "c", "still there") <= 0, 1);
    close_world(&world);
    return next == 4;
}

static void test_killed_anywhere(void) {
    uint64_t requests;
    size_t events = 0;
    while (!run_script(events, 0, &requests))
        events++;
    CU_ASSERT(events > 50);
}

static void test_memory(void) {
    uint64_t fail_at = 1, requests;
    do
        run_script(EVENTS_MAX, fail_at, &requests);
    while (requests >= fail_at++);
    CU_ASSERT(fail_at > 50);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"values of 1 byte to 4 MiB come back through all clients, in other pieces", test_sizes},
        {"clients of each release put, get, exist and remove", test_releases},
        {"the keys of batches fare each by itself", test_batches},
        {"a question over the longest frame is not asked", test_too_long},
        {"gets run side by side", test_side_by_side},
        {"all replicas are written, and the own one is read", test_replicas},
        {"a dead owner gives -800, and after its time is over -704 and -200", test_dead_owner},
        {"an owner that unmounts takes its objects along", test_unmount},
        {"a dead master gives -900, and a new one is good within a second", test_dead_master},
        {"an owner that was silent for too long mounts again", test_silent_owner},
        {"a transfer that outlives the lease is void", test_slow_transfer},
        {"a client that is killed after any event leaves the others whole", test_killed_anywhere},
        {"memory that runs out at any request loses nothing", test_memory},
        {NULL, NULL},
    };
    return moon_unit_main("store client among others", cases, argc, argv);
}
