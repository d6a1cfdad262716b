/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the client of remote calls: its pool, times, broken answers, refused memory, records. */
#include "ref/store/rpc_internal.h"
#include "ref/store/rpc_rig_internal.h"

#include "ref/base/unit.h"
#include "ref/wire/frame.h"

static struct moon_wire_protocol protocol;
static const char address[] = "10.0.0.1:50051";

/* ---- a service that answers, a client that asks */

/* ExistKey is true. GetReplicaList and PutStart: two replicas in memory and one on disk; -704 for the key "none".
 * BatchGetReplicaList: as GetReplicaList for each key. PutEnd is not served. */
static int put_replicas(struct moon_wire_value *expected, struct moon_bytes key, struct moon_arena *arena) {
    if (moon_bytes_equal(key, moon_bytes_of("none"))) {
        moon_wire_set_error(expected, MOON_STORE_OBJECT_NOT_FOUND);
        return 0;
    }
    struct moon_wire_value *answer = moon_wire_present(arena, expected);
    struct moon_wire_value *inner = moon_wire_at(answer, "replicas"), *list = inner ? inner : answer;
    moon_wire_set_number(moon_wire_at(answer, "lease_ttl_ms"), 10000);
    for (uint64_t i = 1; i <= 3; i++) {
        struct moon_wire_value *one = list ? moon_wire_append(arena, list) : NULL;
        struct moon_wire_value *where = moon_wire_at(one, "where");
        struct moon_wire_value *kind = where ? moon_wire_choose(arena, where, i == 2 ? "DISK" : "MEMORY") : NULL;
        struct moon_wire_value *buffer = moon_wire_at(kind, "buffer");
        if (!kind)
            return MOON_ERR_MEMORY;
        moon_wire_set_number(moon_wire_at(one, "id"), i);
        moon_wire_set_number(moon_wire_at(buffer, "address"), 4096 * i);
        moon_wire_set_number(moon_wire_at(buffer, "size"), 100 + i);
        moon_wire_set_bytes(moon_wire_at(buffer, "transport_endpoint"), moon_bytes_of("10.0.0.7:15001"));
    }
    return 0;
}

static int service_answer(struct moon_rpc_service *self, const struct moon_wire_call *call,
                          const struct moon_wire_value *arguments, struct moon_wire_value *result,
                          struct moon_arena *arena) {
    const char *name = call->function->name;
    struct moon_rpc_keys keys = moon_rpc_keys_of(arguments);
    struct moon_bytes key;
    int status = 0;
    (void)self;
    if (strcmp(name, "ExistKey") == 0) {
        struct moon_wire_value *answer = moon_wire_present(arena, result);
        moon_wire_set_number(answer, 1);
        return answer ? 0 : MOON_ERR_MEMORY;
    }
    if (strcmp(name, "PutEnd") == 0)
        return MOON_WIRE_RPC_NOT_REGISTERED;
    while (!status && moon_rpc_keys_next(&keys, &key)) {
        bool batch = result->type->kind == MOON_WIRE_VECTOR;
        struct moon_wire_value *expected = batch ? moon_wire_append(arena, result) : result;
        status = expected ? put_replicas(expected, key, arena) : MOON_ERR_MEMORY;
    }
    return status;
}

struct world {
    struct rig rig;
    struct rig_node master, node;
    struct moon_rpc_service service;
    struct moon_rpc_server *server; /* or */
    struct rig_raw listener, peer;
    struct moon_rpc_client *client;
};

static struct moon_rpc_client *client_of(struct world *world, bool with_text) {
    struct moon_rpc_client_settings settings = {.endpoint = address,
                                                .with_text = with_text,
                                                .connect_timeout_ns = 2 * MOON_NS_PER_S,
                                                .timeout_ns = 5 * MOON_NS_PER_S};
    return moon_rpc_client_open(&world->node.environment, &protocol, &settings);
}

/* With a server, or with a raw peer in its place: it gets the first connection. */
static void open_world(struct world *world, bool raw) {
    struct moon_error error;
    *world = (struct world){.service = {service_answer}};
    rig_init(&world->rig);
    rig_node_init(&world->master, &world->rig, 0);
    rig_node_init(&world->node, &world->rig, 0);
    if (raw) {
        rig_raw_listen(&world->listener, &world->rig, address);
        rig_raw_init(&world->peer, &world->rig);
        world->listener.accepts = &world->peer;
    } else
        MOON_CHECK_INT(moon_rpc_server_open(&world->master.environment, &protocol, &world->service, address, true,
                                            &world->server, &error),
                       0);
    world->client = client_of(world, true);
}

static void close_world(struct world *world) {
    moon_rpc_client_close(world->client);
    moon_rpc_server_close(world->server);
    if (world->listener.rig) {
        rig_raw_close(&world->peer);
        rig_raw_close(&world->listener);
    }
    rig_close(&world->rig);
    MOON_CHECK_INT(world->node.memory.held_bytes, 0);
    MOON_CHECK_INT(world->master.memory.held_bytes, 0);
}

/* A call that remembers its end. asks_again: from within done(); then: cancels that again. */
struct asker {
    struct moon_rpc_call call; /* first member */
    struct world *world;
    int ended, status;
    unsigned rpc_error;
    uint64_t number; /* of the result: what an expected holds */
    struct asker *asks_again;
    bool then_cancels;
};

static int ask(struct asker *asker, struct world *world, const char *name, const char *key);

static void done(struct moon_rpc_call *call, int status, unsigned rpc_error, const struct moon_wire_value *result) {
    struct asker *asker = (struct asker *)call;
    asker->ended++;
    asker->status = status;
    asker->rpc_error = rpc_error;
    CU_ASSERT_PTR_NULL(call->state);
    if (asker->asks_again) {
        struct asker *again = asker->asks_again;
        asker->asks_again = NULL;
        MOON_CHECK_INT(ask(again, asker->world, "ExistKey", "again"), 0);
        if (asker->then_cancels)
            moon_rpc_client_cancel(asker->world->client, &again->call);
    }
    asker->number = result && result->first ? result->first->number : 0; /* still there */
}

static int ask(struct asker *asker, struct world *world, const char *name, const char *key) {
    const struct moon_wire_call *function = moon_wire_call_by_name(&protocol, name);
    struct moon_wire_value *arguments = NULL;
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    if (key) {
        arguments = moon_wire_zero(&arena, function->function->arguments);
        struct moon_wire_value *keys = moon_wire_at(arguments, "keys");
        if (keys) {
            moon_wire_set_bytes(moon_wire_append(&arena, keys), moon_bytes_of(key));
            moon_wire_set_bytes(moon_wire_append(&arena, keys), moon_bytes_of("none"));
            moon_wire_set_bytes(moon_wire_append(&arena, keys), moon_bytes_of("last"));
        }
        moon_wire_set_bytes(moon_wire_at(arguments, "key"), moon_bytes_of(key));
        moon_wire_set_bytes(moon_wire_at(moon_wire_at(arguments, "object_meta"), "key"), moon_bytes_of(key));
        moon_wire_set_bytes(moon_wire_at(arguments, "tenant_id"), moon_bytes_of("t"));
    }
    asker->world = world;
    asker->call.op = 42;
    asker->call.done = done;
    int status = moon_rpc_client_ask(world->client, &asker->call, name, arguments);
    moon_arena_close(&arena);
    return status;
}

static void advance(struct world *world, moon_ns by_ns) {
    world->node.environment.now_ns += by_ns;
    moon_rpc_client_tick(world->client);
    rig_run(&world->rig);
}

static void check_end(const struct asker *asker, int status, unsigned rpc_error) {
    MOON_CHECK_INT(asker->ended, 1);
    MOON_CHECK_INT(asker->status, status);
    MOON_CHECK_INT(asker->rpc_error, rpc_error);
}

/* ---- the pool */

static void answers_come_back(void) {
    static const char *const names[] = {"ExistKey", "GetReplicaList", "BatchGetReplicaList", "PutStart"};
    for (int with_text = 0; with_text < 2; with_text++) {
        struct world world;
        open_world(&world, false);
        moon_rpc_client_close(world.client);
        world.client = client_of(&world, with_text);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            struct asker asker = {.ended = 0};
            MOON_CHECK_INT(ask(&asker, &world, names[i], "k"), 0);
            MOON_CHECK_INT(asker.ended, 0);
            rig_run(&world.rig);
            check_end(&asker, MOON_STORE_OK, 0);
        }
        MOON_CHECK_INT(moon_rpc_server_connections(world.server), 1);
        MOON_CHECK_INT(moon_rpc_client_deadline(world.client), MOON_NS_NEVER);
        close_world(&world);
    }
}

static void each_call_at_a_time_has_a_connection(void) {
    struct world world;
    struct asker askers[8] = {{.ended = 0}};
    open_world(&world, false);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 8; i++)
            MOON_CHECK_INT(ask(&askers[i], &world, "ExistKey", "k"), 0);
        rig_run(&world.rig);
        for (int i = 0; i < 8; i++) {
            MOON_CHECK_INT(askers[i].ended, round);
            MOON_CHECK_INT(askers[i].number, 1);
        }
        MOON_CHECK_INT(moon_rpc_server_connections(world.server), 8);
    }
    close_world(&world);
}

static void the_connection_that_was_idle_last_is_taken(void) {
    struct world world;
    struct asker first = {.ended = 0}, second = {.ended = 0}, third = {.ended = 0};
    open_world(&world, false);
    world.node.environment.recorder = &world.node.recorder;
    ask(&first, &world, "ExistKey", "first");
    ask(&second, &world, "ExistKey", "second");
    rig_run(&world.rig);
    const struct rig_record *records = world.node.records;
    MOON_CHECK_TEXT(records[3].key, "second"); /* answered last */
    MOON_CHECK_INT(records[3].record.kind, MOON_RECORD_RECV);
    ask(&third, &world, "ExistKey", "third");
    rig_run(&world.rig);
    /* The second frame of the second connection. */
    const struct rig_stream *second_stream = (const struct rig_stream *)world.rig.all.before;
    CU_ASSERT(records[4].record.msg == moon_message_id(second_stream->stream.peer, second_stream->stream.local, 1));
    close_world(&world);
}

static void done_may_ask_again_on_the_same_connection(void) {
    for (int cancels = 0; cancels < 2; cancels++) {
        struct world world;
        struct asker again = {.ended = 0}, asker = {.asks_again = &again, .then_cancels = cancels};
        open_world(&world, false);
        ask(&asker, &world, "ExistKey", "k");
        rig_run(&world.rig);
        check_end(&asker, MOON_STORE_OK, 0);
        MOON_CHECK_INT(asker.number, 1);
        MOON_CHECK_INT(again.ended, !cancels);
        MOON_CHECK_INT(moon_rpc_server_connections(world.server), !cancels);
        close_world(&world);
    }
}

static void an_answer_before_the_request_was_let_go_is_an_answer(void) {
    struct world world;
    struct asker asker = {.ended = 0}, second = {.ended = 0};
    open_world(&world, false);
    world.rig.hold_sent = true;
    ask(&asker, &world, "ExistKey", "k");
    rig_run(&world.rig);
    check_end(&asker, MOON_STORE_OK, 0);
    ask(&second, &world, "ExistKey", "k"); /* the first one's request is still borrowed */
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 2);
    rig_release_sent(&world.rig);
    rig_run(&world.rig);
    check_end(&second, MOON_STORE_OK, 0);
    for (int i = 0; i < 2; i++)
        ask(i ? &second : &asker, &world, "ExistKey", "k");
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 2);
    world.rig.hold_sent = true;
    ask(&asker, &world, "ExistKey", "k");
    rig_run(&world.rig);
    close_world(&world);
}

static void a_connection_that_ends_while_idle_leaves_the_pool(void) {
    struct world world;
    struct asker asker = {.ended = 0}, second = {.ended = 0};
    struct moon_error error;
    open_world(&world, false);
    ask(&asker, &world, "ExistKey", "k");
    rig_run(&world.rig);
    moon_rpc_server_close(world.server);
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_open(&world.master.environment, &protocol, &world.service, address, false,
                                        &world.server, &error),
                   0);
    ask(&second, &world, "ExistKey", "k");
    rig_run(&world.rig);
    check_end(&second, MOON_STORE_OK, 0);
    close_world(&world);
}

/* ---- what goes wrong */

static void a_master_that_is_not_there_fails_the_call(void) {
    struct world world;
    struct asker refused = {.ended = 0}, at_once = {.ended = 0}, again = {.ended = 0};
    open_world(&world, true);
    rig_raw_close(&world.listener);
    ask(&refused, &world, "ExistKey", "k");
    rig_run(&world.rig);
    check_end(&refused, MOON_STORE_RPC_FAIL, 0);
    world.rig.no_open = true;
    at_once.asks_again = &again;
    MOON_CHECK_INT(ask(&at_once, &world, "ExistKey", "k"), 0);
    MOON_CHECK_INT(at_once.ended, 0); /* not from within */
    MOON_CHECK_INT(moon_rpc_client_deadline(world.client), world.node.environment.now_ns);
    moon_rpc_client_tick(world.client);
    check_end(&at_once, MOON_STORE_RPC_FAIL, 0);
    MOON_CHECK_INT(again.ended, 0); /* with the next tick */
    moon_rpc_client_tick(world.client);
    check_end(&again, MOON_STORE_RPC_FAIL, 0);
    close_world(&world);
}

static void calls_do_not_wait_for_ever(void) {
    struct world world;
    struct asker connecting = {.ended = 0}, first = {.ended = 0};
    open_world(&world, true);
    ask(&first, &world, "ExistKey", "k");
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_client_deadline(world.client), 5 * MOON_NS_PER_S);
    world.rig.mute_connects = true;
    advance(&world, MOON_NS_PER_S);
    ask(&connecting, &world, "ExistKey", "k");
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_client_deadline(world.client), 3 * MOON_NS_PER_S);
    advance(&world, 2 * MOON_NS_PER_S - 1);
    MOON_CHECK_INT(connecting.ended, 0);
    advance(&world, 1);
    check_end(&connecting, MOON_STORE_RPC_FAIL, 0);
    MOON_CHECK_INT(moon_rpc_client_deadline(world.client), 5 * MOON_NS_PER_S);
    advance(&world, 2 * MOON_NS_PER_S - 1);
    MOON_CHECK_INT(first.ended, 0);
    advance(&world, 1);
    check_end(&first, MOON_STORE_RPC_TIMEOUT, 0);
    CU_ASSERT(world.peer.ended); /* a late answer must not meet the next call */
    MOON_CHECK_INT(moon_rpc_client_deadline(world.client), MOON_NS_NEVER);
    close_world(&world);
}

static void an_error_answer_fails_the_call_and_ends_the_connection(void) {
    struct world world;
    struct asker asker = {.ended = 0};
    open_world(&world, false);
    ask(&asker, &world, "PutEnd", "k");
    rig_run(&world.rig);
    check_end(&asker, MOON_STORE_RPC_FAIL, MOON_WIRE_RPC_NOT_REGISTERED);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 0);
    close_world(&world);
}

static void answers_that_are_none_fail_the_call_and_end_the_connection(void) {
    static const struct {
        const char *hex;
        unsigned rpc_error;
    } rows[] = {
        {"150000000100000006000000000000"
         "00d200e8900101",
         0},                                                   /* another sequence number */
        {"15000000000000000600000000000000d200e890010100", 0}, /* bytes behind it */
        {"15000000000000000700000000000000d200e890010100", 0}, /* bytes behind the value */
        {"15000000000000000500000000000000cc6828af01", 0},     /* another type */
        {"15000000000000000000000000000000", 0},               /* no body */
        {"160000000000000006", 0},                             /* no frame */
        {"1500000000000000ffffffff00000000", 0},               /* too long */
        {"15000400000000000600000000000000d200e8900101", 4},   /* an error whose text is none */
        {"1500ff00000000000b000000000000000000000000000000000000", 255},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world world;
        struct asker asker = {.ended = 0};
        uint8_t bytes[64];
        open_world(&world, true);
        MOON_CHECK_INT(moon_hex_decode(rows[i].hex, strlen(rows[i].hex), bytes), 0);
        ask(&asker, &world, "ExistKey", "k");
        rig_run(&world.rig);
        rig_raw_send(&world.peer, bytes, strlen(rows[i].hex) / 2);
        rig_run(&world.rig);
        check_end(&asker, MOON_STORE_RPC_FAIL, rows[i].rpc_error);
        CU_ASSERT(world.peer.ended);
        close_world(&world);
    }
}

static void answers_arrive_in_pieces_of_any_size(void) {
    uint8_t bytes[22];
    MOON_CHECK_INT(moon_hex_decode("15000000000000000600000000000000d200e8900101", 44, bytes), 0);
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        struct world world;
        struct asker asker = {.ended = 0};
        open_world(&world, true);
        ask(&asker, &world, "ExistKey", "k");
        rig_run(&world.rig);
        rig_raw_send(&world.peer, bytes, cut);
        rig_run(&world.rig);
        MOON_CHECK_INT(asker.ended, 0);
        if (cut % 2) { /* and the rest never comes */
            rig_raw_close(&world.peer);
            rig_run(&world.rig);
            check_end(&asker, MOON_STORE_RPC_FAIL, 0);
        } else {
            rig_raw_send(&world.peer, bytes + cut, sizeof bytes - cut);
            rig_run(&world.rig);
            check_end(&asker, MOON_STORE_OK, 0);
        }
        close_world(&world);
    }
}

static void a_long_answer_is_read_and_its_buffer_goes(void) {
    struct world world;
    struct asker asker = {.ended = 0}, second = {.ended = 0};
    struct moon_text frame, body;
    open_world(&world, true);
    char *version = calloc(1, 100001);
    memset(version, 'v', 100000);
    moon_text_open(&frame, moon_memory_heap());
    moon_text_open(&body, moon_memory_heap());
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_wire_value *result =
        moon_wire_zero(&arena, moon_wire_call_by_name(&protocol, "ServiceReady")->function->result);
    moon_wire_set_bytes(moon_wire_present(&arena, result), moon_bytes_of(version));
    moon_wire_encode(result, false, true, &body);
    for (uint32_t sequence = 0; sequence < 2; sequence++) {
        ask(sequence ? &second : &asker, &world, "ServiceReady", NULL);
        rig_run(&world.rig);
        moon_text_clear(&frame);
        moon_wire_write_frame(&(struct moon_wire_frame){.direction = MOON_WIRE_RESPONSE,
                                                        .sequence = sequence,
                                                        .body = (const uint8_t *)body.data,
                                                        .body_length = (uint32_t)body.length},
                              &frame);
        rig_raw_send(&world.peer, frame.data, frame.length);
        rig_run(&world.rig);
    }
    check_end(&asker, MOON_STORE_OK, 0);
    check_end(&second, MOON_STORE_OK, 0);
    CU_ASSERT(world.node.memory.held_bytes < 8192);
    moon_arena_close(&arena);
    moon_text_close(&frame);
    moon_text_close(&body);
    free(version);
    close_world(&world);
}

static void bytes_that_nobody_asked_for_end_the_connection(void) {
    struct world world;
    struct asker asker = {.ended = 0};
    uint8_t bytes[22];
    open_world(&world, true);
    MOON_CHECK_INT(moon_hex_decode("15000000000000000600000000000000d200e8900101", 44, bytes), 0);
    ask(&asker, &world, "ExistKey", "k");
    rig_run(&world.rig);
    for (int i = 0; i < 2; i++) {
        CU_ASSERT(!world.peer.ended);
        rig_raw_send(&world.peer, bytes, sizeof bytes);
        rig_run(&world.rig);
    }
    check_end(&asker, MOON_STORE_OK, 0);
    CU_ASSERT(world.peer.ended);
    close_world(&world);
}

static void a_cancelled_call_hears_nothing(void) {
    struct world world;
    struct asker refused = {.ended = 0}, opening = {.ended = 0}, waiting = {.ended = 0};
    open_world(&world, true);
    ask(&waiting, &world, "ExistKey", "k");
    rig_run(&world.rig);
    ask(&opening, &world, "ExistKey", "k");
    world.rig.no_open = true;
    ask(&refused, &world, "ExistKey", "k");
    moon_rpc_client_cancel(world.client, &refused.call);
    moon_rpc_client_cancel(world.client, &opening.call);
    moon_rpc_client_cancel(world.client, &waiting.call);
    moon_rpc_client_cancel(world.client, &waiting.call);
    rig_run(&world.rig);
    CU_ASSERT(world.peer.ended);
    advance(&world, 10 * MOON_NS_PER_S);
    MOON_CHECK_INT(refused.ended + opening.ended + waiting.ended, 0);
    close_world(&world);
}

static void a_client_forgets_its_calls_at_its_end(void) {
    struct world world;
    struct asker askers[3] = {{.ended = 0}};
    open_world(&world, true);
    ask(&askers[0], &world, "ExistKey", "k");
    rig_run(&world.rig);
    ask(&askers[1], &world, "ExistKey", "k");
    world.rig.no_open = true;
    ask(&askers[2], &world, "ExistKey", "k");
    close_world(&world);
    for (int i = 0; i < 3; i++) {
        MOON_CHECK_INT(askers[i].ended, 0);
        CU_ASSERT_PTR_NULL(askers[i].call.state);
    }
    moon_rpc_client_close(NULL);
}

static void what_cannot_be_asked_is_said_at_once(void) {
    struct world world;
    struct moon_rpc_call call = {.done = done};
    open_world(&world, false);
    MOON_CHECK_INT(moon_rpc_client_ask(world.client, &call, "FlyAway", NULL), MOON_ERR_UNSUPPORTED);
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    const struct moon_wire_call *function = moon_wire_call_by_name(&protocol, "ExistKey");
    struct moon_wire_value *arguments = moon_wire_zero(&arena, function->function->arguments);
    char *key = calloc(1, MOON_RPC_FRAME_BYTES_MAX);
    moon_wire_set_bytes(moon_wire_at(arguments, "key"), (struct moon_bytes){key, MOON_RPC_FRAME_BYTES_MAX});
    MOON_CHECK_INT(moon_rpc_client_ask(world.client, &call, "ExistKey", arguments), MOON_ERR_LIMIT);
    CU_ASSERT_PTR_NULL(call.state);
    free(key);
    moon_arena_close(&arena);
    close_world(&world);
}

/* Two calls one after another, with a recorder; whichever request of the client's memory is refused. */
static bool ask_some(uint64_t fail_at) {
    struct world world;
    struct asker askers[3] = {{.ended = 0}};
    bool asked[3] = {false};
    open_world(&world, false);
    moon_rpc_client_close(world.client);
    world.node.environment.recorder = &world.node.recorder;
    world.node.memory.requests = 0;
    world.node.memory.fail_at = fail_at;
    world.client = client_of(&world, true);
    for (int i = 0; i < 3 && world.client; i++) {
        int status = ask(&askers[i], &world, i ? "GetReplicaList" : "ExistKey", "k");
        CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
        asked[i] = status == 0;
        rig_run(&world.rig);
    }
    bool refused = fail_at > 0 && world.node.memory.requests >= fail_at;
    for (int i = 0; i < 3; i++) {
        MOON_CHECK_INT(askers[i].ended, asked[i]);
        if (!refused)
            MOON_CHECK_INT(askers[i].status, 0);
    }
    close_world(&world);
    return refused;
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    uint64_t fail_at = 1;
    while (ask_some(fail_at))
        fail_at++;
    CU_ASSERT(fail_at > 12);
}

/* ---- records */

static void both_ends_record_a_message_under_one_id(void) {
    static const char *const names[] = {"ExistKey", "PutEnd", "BatchGetReplicaList", "GetReplicaList"};
    struct world world;
    struct asker asker = {.ended = 0};
    open_world(&world, false);
    world.node.environment.recorder = &world.node.recorder;
    world.master.environment.recorder = &world.master.recorder;
    for (size_t i = 0; i < 4; i++) {
        ask(&asker, &world, names[i], i == 3 ? "none" : "k");
        rig_run(&world.rig);
    }
    MOON_CHECK_INT(world.master.record_count, 8);
    size_t at = 0;
    for (size_t i = 0; i < 8; i++) {
        const struct rig_record *there = &world.master.records[i], *here = &world.node.records[at++];
        while (here->record.kind == MOON_RECORD_STATE)
            here = &world.node.records[at++];
        CU_ASSERT(here->record.msg == there->record.msg && here->record.msg != 0);
        MOON_CHECK_INT(here->record.kind, i % 2 ? MOON_RECORD_RECV : MOON_RECORD_SEND);
        MOON_CHECK_INT(there->record.kind, i % 2 ? MOON_RECORD_SEND : MOON_RECORD_RECV);
        MOON_CHECK_TEXT(here->what, names[i / 2]);
        MOON_CHECK_TEXT(there->what, names[i / 2]);
        MOON_CHECK_TEXT(here->key, i / 2 == 3 ? "none" : "k");
        MOON_CHECK_TEXT(there->key, here->key);
        MOON_CHECK_TEXT(here->tenant, "t");
        MOON_CHECK_INT(here->record.op, 42);
        MOON_CHECK_INT(there->record.op, 0);
        MOON_CHECK_INT(here->record.has, there->record.has);
        MOON_CHECK_INT(here->record.code, i == 7 ? -704 : 0);
    }
    close_world(&world);
}

static void extents_of_answers_are_recorded(void) {
    static const char *const names[] = {"PutStart", "GetReplicaList", "BatchPutStart", "BatchGetReplicaList"};
    for (size_t i = 0; i < 4; i++) {
        struct world world;
        struct asker asker = {.ended = 0};
        char cause[RIG_TEXT_BYTES];
        bool lease = i % 2 == 1;
        open_world(&world, false);
        world.node.environment.recorder = &world.node.recorder;
        world.node.environment.now_ns = 7 * MOON_NS_PER_S;
        ask(&asker, &world, names[i], "k");
        world.node.environment.now_ns = 8 * MOON_NS_PER_S; /* it is sent now */
        rig_run(&world.rig);
        MOON_CHECK_INT(asker.call.sent_ns, 8 * MOON_NS_PER_S);
        MOON_CHECK_INT(world.node.record_count, i < 2 ? 4 : 6);
        snprintf(cause, sizeof cause, "msg %016llx", (unsigned long long)world.node.records[1].record.msg);
        for (size_t n = 2; n < world.node.record_count; n++) {
            const struct rig_record *one = &world.node.records[n];
            MOON_CHECK_INT(one->record.kind, MOON_RECORD_STATE);
            CU_ASSERT(!one->record.internal);
            MOON_CHECK_INT(one->record.op, 42);
            MOON_CHECK_TEXT(one->what, lease ? "lease" : "granted");
            MOON_CHECK_TEXT(one->key, n < 4 ? "k" : "last");
            MOON_CHECK_TEXT(one->cause, cause);
            MOON_CHECK_TEXT(one->segment, "10.0.0.7:15001");
            MOON_CHECK_INT(one->record.replica, n % 2 ? 3 : 1);
            MOON_CHECK_INT(one->record.extent.offset, n % 2 ? 12288 : 4096);
            MOON_CHECK_INT(one->record.extent.length, n % 2 ? 103 : 101);
            MOON_CHECK_INT((one->record.has & MOON_RECORD_HAS_LEASE) != 0, lease);
            MOON_CHECK_INT(one->record.lease_ns, lease ? 18 * MOON_NS_PER_S : 0);
        }
        close_world(&world);
    }
}

static void a_lease_beyond_all_clocks_never_ends(void) {
    struct rig_node node;
    struct rig rig;
    struct moon_arena arena;
    rig_init(&rig);
    rig_node_init(&node, &rig, 0);
    moon_arena_open(&arena, moon_memory_heap());
    const struct moon_wire_function *function = moon_wire_call_by_name(&protocol, "GetReplicaList")->function;
    struct moon_wire_value *arguments = moon_wire_zero(&arena, function->arguments);
    struct moon_wire_value *result = moon_wire_zero(&arena, function->result);
    static const uint64_t ttls[] = {UINT64_MAX, INT64_MAX / 1000000};
    for (size_t i = 0; i < 2; i++) {
        put_replicas(result, moon_bytes_of("k"), &arena);
        moon_wire_set_number(moon_wire_at(result->first, "lease_ttl_ms"), ttls[i]);
        moon_rpc_record_extents(
            &node.recorder,
            &(struct moon_rpc_message){.what = "GetReplicaList", .arguments = arguments, .result = result}, 1,
            MOON_NS_PER_S);
        CU_ASSERT(node.records[2 * i].record.lease_ns == MOON_NS_NEVER);
    }
    moon_arena_close(&arena);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"answers come back, with type texts and without", answers_come_back},
        {"each call at a time has a connection", each_call_at_a_time_has_a_connection},
        {"the connection that was idle last is taken", the_connection_that_was_idle_last_is_taken},
        {"done may ask again on the same connection", done_may_ask_again_on_the_same_connection},
        {"an answer before the request was let go is an answer", an_answer_before_the_request_was_let_go_is_an_answer},
        {"a connection that ends while idle leaves the pool", a_connection_that_ends_while_idle_leaves_the_pool},
        {"a master that is not there fails the call", a_master_that_is_not_there_fails_the_call},
        {"calls do not wait for ever", calls_do_not_wait_for_ever},
        {"an error answer fails the call and ends the connection",
         an_error_answer_fails_the_call_and_ends_the_connection},
        {"answers that are none fail the call and end the connection",
         answers_that_are_none_fail_the_call_and_end_the_connection},
        {"answers arrive in pieces of any size", answers_arrive_in_pieces_of_any_size},
        {"a long answer is read and its buffer goes", a_long_answer_is_read_and_its_buffer_goes},
        {"bytes that nobody asked for end the connection", bytes_that_nobody_asked_for_end_the_connection},
        {"a cancelled call hears nothing", a_cancelled_call_hears_nothing},
        {"a client forgets its calls at its end", a_client_forgets_its_calls_at_its_end},
        {"what cannot be asked is said at once", what_cannot_be_asked_is_said_at_once},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {"both ends record a message under one id", both_ends_record_a_message_under_one_id},
        {"extents of answers are recorded", extents_of_answers_are_recorded},
        {"a lease beyond all clocks never ends", a_lease_beyond_all_clocks_never_ends},
        {NULL, NULL},
    };
    if (moon_wire_protocol_open(&protocol, moon_wire_releases[0], moon_memory_heap()))
        return 1;
    return moon_unit_main("rpc client", cases, argc, argv);
}
