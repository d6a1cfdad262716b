/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the server of remote calls: answers, order, pieces, broken frames, floods, refused memory, records. */
#include "ref/store/rpc_internal.h"
#include "ref/store/rpc_rig_internal.h"

#include "ref/base/unit.h"
#include "ref/wire/frame.h"

enum { BIG_BYTES = 1024 * 1024 };

static struct moon_wire_protocol protocol;
static char big[BIG_BYTES];

/* A service that knows little: ExistKey is true for keys that begin with y and -600 for an empty key, ServiceReady
 * answers BIG_BYTES, RemoveAll counts its calls, GetFsdir runs out of memory, Ping's arguments never please. */
struct stub {
    struct moon_rpc_service service;
    uint64_t calls;
};

static int stub_answer(struct moon_rpc_service *self, const struct moon_wire_call *call,
                       const struct moon_wire_value *arguments, struct moon_wire_value *result,
                       struct moon_arena *arena) {
    struct stub *stub = (struct stub *)self;
    const char *name = call->function->name;
    struct moon_bytes key = moon_wire_bytes(moon_wire_at(arguments, "key"));
    struct moon_wire_value *answer = NULL;
    stub->calls++;
    if (strcmp(name, "RemoveAll") == 0) {
        moon_wire_set_number(result, stub->calls);
        return 0;
    }
    if (strcmp(name, "Ping") == 0)
        return MOON_WIRE_RPC_INVALID_ARGUMENTS;
    if (strcmp(name, "GetFsdir") == 0)
        return MOON_ERR_MEMORY;
    if (strcmp(name, "ExistKey") == 0 && key.length == 0) {
        moon_wire_set_error(result, MOON_STORE_INVALID_PARAMS);
        return 0;
    }
    if (strcmp(name, "ExistKey") != 0 && strcmp(name, "ServiceReady") != 0)
        return MOON_WIRE_RPC_NOT_REGISTERED;
    answer = moon_wire_present(arena, result);
    if (!answer)
        return MOON_ERR_MEMORY;
    if (strcmp(name, "ExistKey") == 0)
        moon_wire_set_number(answer, key.data[0] == 'y');
    else
        moon_wire_set_bytes(answer, (struct moon_bytes){big, sizeof big});
    return 0;
}

/* ---- a server, and raw clients */

struct world {
    struct rig rig;
    struct rig_node node;
    struct stub stub;
    struct moon_rpc_server *server;
};

static const char address[] = "10.0.0.1:50051";

static int open_world(struct world *world, uint64_t fail_at) {
    struct moon_error error;
    rig_init(&world->rig);
    rig_node_init(&world->node, &world->rig, fail_at);
    world->stub = (struct stub){{stub_answer}, 0};
    return moon_rpc_server_open(&world->node.environment, &protocol, &world->stub.service, address, true,
                                &world->server, &error);
}

static void close_world(struct world *world) {
    moon_rpc_server_close(world->server);
    rig_close(&world->rig);
    MOON_CHECK_INT(world->node.memory.held_bytes, 0);
}

/* Appends a request. key NULL: the zero of its arguments. */
static void put_request(struct moon_text *out, uint32_t sequence, const char *name, const char *key) {
    const struct moon_wire_call *call = moon_wire_call_by_name(&protocol, name);
    struct moon_arena arena;
    struct moon_text body;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&body, moon_memory_heap());
    struct moon_wire_value *arguments = moon_wire_zero(&arena, call->function->arguments);
    if (key)
        moon_wire_set_bytes(moon_wire_at(arguments, "key"), moon_bytes_of(key));
    moon_wire_set_bytes(moon_wire_at(arguments, "tenant_id"), moon_bytes_of("default"));
    moon_wire_encode(arguments, true, true, &body);
    moon_wire_write_frame(&(struct moon_wire_frame){.direction = MOON_WIRE_REQUEST,
                                                    .sequence = sequence,
                                                    .function_id = call->id,
                                                    .body = (const uint8_t *)moon_text_value(&body),
                                                    .body_length = (uint32_t)body.length},
                          out);
    moon_text_close(&body);
    moon_arena_close(&arena);
}

/* Takes the answer at `*at` of what has come. Returns its err_code, -1 if there is none, and its value as JSON; not
 * with a name NULL. */
static int take_answer(const struct rig_raw *raw, size_t *at, const char *name, uint32_t *sequence,
                       struct moon_text *json) {
    struct moon_wire_frame frame;
    struct moon_error error;
    struct moon_arena arena;
    struct moon_wire_value *value = NULL;
    size_t used = 0, needed = 0;
    if (moon_wire_read_frame(MOON_WIRE_RESPONSE, raw->in.data + *at, raw->in.length - *at, MOON_RPC_FRAME_BYTES_MAX,
                             &frame, &used, &needed, &error) ||
        used == 0)
        return -1;
    *at += used;
    *sequence = frame.sequence;
    moon_text_clear(json);
    if (frame.error_code || !name)
        return frame.error_code;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_wire_decode(&arena, moon_wire_call_by_name(&protocol, name)->function->result, false,
                                    frame.body, frame.body_length, NULL, &value, &error),
                   0);
    moon_json_write(moon_wire_to_json(&arena, value), MOON_JSON_COMPACT, json);
    moon_arena_close(&arena);
    return 0;
}

/* A good call on a connection that is open must be answered. */
static void check_served(struct world *world, struct rig_raw *raw) {
    struct moon_text request, json;
    uint32_t sequence = 0;
    size_t at = 0;
    moon_text_open(&request, moon_memory_heap());
    moon_text_open(&json, moon_memory_heap());
    put_request(&request, 77, "ExistKey", "yes");
    moon_text_clear(&raw->in);
    rig_raw_send(raw, request.data, request.length);
    rig_run(&world->rig);
    MOON_CHECK_INT(take_answer(raw, &at, "ExistKey", &sequence, &json), 0);
    MOON_CHECK_INT(sequence, 77);
    MOON_CHECK_TEXT(moon_text_value(&json), "{\"ok\":true}");
    moon_text_close(&request);
    moon_text_close(&json);
}

/* ---- answers */

static size_t from_hex(const char *hex, uint8_t *bytes) {
    MOON_CHECK_INT(moon_hex_decode(hex, strlen(hex), bytes), 0);
    return strlen(hex) / 2;
}

static void check_hex(const struct moon_text *seen, const char *expected) {
    struct moon_text hex;
    moon_text_open(&hex, moon_memory_heap());
    moon_text_hex(&hex, moon_text_value(seen), seen->length);
    MOON_CHECK_TEXT(moon_text_value(&hex), expected);
    moon_text_close(&hex);
}

/* Recorded with mooncake-transfer-engine-non-cuda 0.3.13.post1: run tasks, connection 6 sequence 26 and connection 7
 * sequence 1, both sent by the recorder. */
static void refused_calls_are_answered_as_by_the_real_master(void) {
    static const char *const rows[][2] = {
        {"150000001a000000785634120000000000000000", "15000b001a000000280000000000000077facf9d04800c001f746865207270632"
                                                     "066756e6374696f6e206e6f742072656769737465726564"},
        {"1500000001000000095f3889070000000000000010111111026b31",
         "1500040001000000180000000000000077facf9d04800c000f696e76616c69642072706320617267"},
    };
    struct world world;
    struct rig_raw raw;
    uint8_t bytes[64];
    MOON_CHECK_INT(open_world(&world, 0), 0);
    rig_raw_open(&raw, &world.rig, address);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig_raw_send(&raw, bytes, from_hex(rows[i][0], bytes));
        rig_run(&world.rig);
        check_hex(&raw.in, rows[i][1]);
        moon_text_clear(&raw.in);
    }
    check_served(&world, &raw);
    rig_raw_close(&raw);
    close_world(&world);
}

static void what_the_service_says_is_answered(void) {
    static const struct {
        const char *name, *key;
        int code;
        const char *json;
    } rows[] = {{"ExistKey", "yes", 0, "{\"ok\":true}"},
                {"ExistKey", "no", 0, "{\"ok\":false}"},
                {"ExistKey", "", 0, "{\"err\":-600}"},
                {"RemoveAll", NULL, 0, "4"},
                {"PutEnd", "k", MOON_WIRE_RPC_NOT_REGISTERED, ""},
                {"Ping", NULL, MOON_WIRE_RPC_INVALID_ARGUMENTS, ""},
                {"GetFsdir", NULL, -1, ""}};
    struct world world;
    struct rig_raw raw, other;
    struct moon_text request, json;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    MOON_CHECK_TEXT(moon_rpc_server_address(world.server), address);
    rig_raw_open(&raw, &world.rig, address);
    rig_raw_open(&other, &world.rig, address);
    moon_text_open(&json, moon_memory_heap());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t sequence = 0;
        size_t at = 0;
        moon_text_open(&request, moon_memory_heap());
        moon_text_clear(&raw.in);
        put_request(&request, (uint32_t)i, rows[i].name, rows[i].key);
        rig_raw_send(&raw, request.data, request.length);
        rig_run(&world.rig);
        MOON_CHECK_INT(take_answer(&raw, &at, rows[i].name, &sequence, &json), rows[i].code);
        MOON_CHECK_TEXT(moon_text_value(&json), rows[i].json);
        MOON_CHECK_INT(at, raw.in.length);
        moon_text_close(&request);
    }
    CU_ASSERT(raw.ended); /* out of memory: this connection only */
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 1);
    check_served(&world, &other);
    rig_raw_close(&raw);
    rig_raw_close(&other);
    moon_text_close(&json);
    close_world(&world);
}

static void pipelined_requests_are_answered_in_order(void) {
    enum { COUNT = 100 };
    static const size_t chunks[] = {1, 7, 4096, 0};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        struct world world;
        struct rig_raw raw;
        struct moon_text request, json;
        size_t at = 0;
        MOON_CHECK_INT(open_world(&world, 0), 0);
        world.rig.chunk = chunks[i];
        moon_text_open(&request, moon_memory_heap());
        moon_text_open(&json, moon_memory_heap());
        for (uint32_t n = 0; n < COUNT; n++)
            put_request(&request, 1000 + n, "ExistKey", n % 3 ? "yes" : "no");
        rig_raw_open(&raw, &world.rig, address);
        rig_raw_send(&raw, request.data, request.length);
        rig_run(&world.rig);
        for (uint32_t n = 0; n < COUNT; n++) {
            uint32_t sequence = 0;
            MOON_CHECK_INT(take_answer(&raw, &at, "ExistKey", &sequence, &json), 0);
            MOON_CHECK_INT(sequence, 1000 + n);
            MOON_CHECK_TEXT(moon_text_value(&json), n % 3 ? "{\"ok\":true}" : "{\"ok\":false}");
        }
        MOON_CHECK_INT(at, raw.in.length);
        rig_raw_close(&raw);
        moon_text_close(&request);
        moon_text_close(&json);
        close_world(&world);
    }
}

static void a_large_request_arrives_and_its_buffer_goes(void) {
    struct world world;
    struct rig_raw raw;
    struct moon_text request, json;
    uint32_t sequence = 0;
    size_t at = 0;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    moon_text_open(&request, moon_memory_heap());
    moon_text_open(&json, moon_memory_heap());
    char *key = calloc(1, 3000001);
    memset(key, 'y', 3000000);
    put_request(&request, 5, "ExistKey", key);
    rig_raw_open(&raw, &world.rig, address);
    rig_run(&world.rig);
    size_t held = world.node.memory.held_bytes;
    rig_raw_send(&raw, request.data, request.length);
    rig_run(&world.rig);
    MOON_CHECK_INT(take_answer(&raw, &at, "ExistKey", &sequence, &json), 0);
    MOON_CHECK_TEXT(moon_text_value(&json), "{\"ok\":true}");
    CU_ASSERT(world.node.memory.held_bytes < held + 8192);
    check_served(&world, &raw);
    free(key);
    rig_raw_close(&raw);
    moon_text_close(&request);
    moon_text_close(&json);
    close_world(&world);
}

/* ---- broken frames */

/* Sends the bytes on a connection of their own, ends it, and calls on another. */
static void throw_at(struct world *world, struct rig_raw *good, const uint8_t *bytes, size_t length) {
    struct rig_raw bad;
    rig_raw_open(&bad, &world->rig, address);
    rig_raw_send(&bad, bytes, length);
    rig_run(&world->rig);
    rig_raw_close(&bad);
    rig_run(&world->rig);
    check_served(world, good);
}

static void frames_cut_or_with_false_bytes_harm_nobody(void) {
    static const char *const names[] = {"ExistKey", "ServiceReady", "PutStart", "BatchPutEnd", "MountSegment"};
    struct world world;
    struct rig_raw good;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    rig_raw_open(&good, &world.rig, address);
    for (int i = 0; i < 2; i++) /* both of its buffers are there then */
        check_served(&world, &good);
    size_t held = world.node.memory.held_bytes;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct moon_text request;
        moon_text_open(&request, moon_memory_heap());
        put_request(&request, 9, names[i], "yes");
        for (size_t cut = 0; cut <= request.length; cut++)
            throw_at(&world, &good, (const uint8_t *)request.data, cut);
        /* Every byte at 0, at its maximum and one off: lengths of the frame and of the texts inside are among them. */
        for (size_t at = 0; at < request.length; at++) {
            char was = request.data[at];
            const char instead[] = {0, (char)0xff, (char)(was + 1), (char)(was - 1)};
            for (size_t n = 0; n < sizeof instead; n++) {
                request.data[at] = instead[n];
                throw_at(&world, &good, (const uint8_t *)request.data, request.length);
            }
            request.data[at] = was;
        }
        /* Both lengths of the frame as a whole. */
        for (size_t at = 12; at <= 16; at += 4) {
            static const uint32_t lengths[] = {0, UINT32_MAX, MOON_RPC_FRAME_BYTES_MAX, MOON_RPC_FRAME_BYTES_MAX + 1};
            for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
                uint8_t frame[512];
                memcpy(frame, request.data, request.length);
                for (unsigned byte = 0; byte < 4; byte++)
                    frame[at + byte] = (uint8_t)(lengths[n] >> 8 * byte);
                throw_at(&world, &good, frame, request.length);
            }
        }
        moon_text_close(&request);
    }
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 1);
    MOON_CHECK_INT(world.node.memory.held_bytes, held);
    rig_raw_close(&good);
    close_world(&world);
}

static void a_false_length_costs_nothing(void) {
    uint8_t frame[20] = {MOON_WIRE_MAGIC, 0, 0, 0, 1, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 4};
    struct world world;
    struct rig_raw raws[50];
    MOON_CHECK_INT(open_world(&world, 0), 0);
    for (size_t i = 0; i < 50; i++) {
        rig_raw_open(&raws[i], &world.rig, address);
        rig_raw_send(&raws[i], frame, sizeof frame);
        rig_raw_send(&raws[i], big, 5000);
    }
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 50);
    CU_ASSERT(world.node.memory.held_bytes < (size_t)50 * 10000);
    for (size_t i = 0; i < 50; i++)
        rig_raw_close(&raws[i]);
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 0);
    close_world(&world);
}

static void what_was_asked_before_a_broken_frame_is_answered(void) {
    struct world world;
    struct rig_raw raw;
    struct moon_text request, json;
    uint32_t sequence = 0;
    size_t at = 0;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    moon_text_open(&request, moon_memory_heap());
    moon_text_open(&json, moon_memory_heap());
    put_request(&request, 1, "ExistKey", "yes");
    put_request(&request, 2, "ServiceReady", NULL);
    moon_text_string(&request, "GET / HTTP/1.1\r\n\r\n");
    put_request(&request, 3, "ExistKey", "yes");
    rig_raw_open(&raw, &world.rig, address);
    rig_raw_send(&raw, request.data, request.length);
    rig_run(&world.rig);
    MOON_CHECK_INT(take_answer(&raw, &at, "ExistKey", &sequence, &json), 0);
    MOON_CHECK_INT(take_answer(&raw, &at, "ServiceReady", &sequence, &json), 0);
    MOON_CHECK_INT(sequence, 2);
    MOON_CHECK_INT(raw.in.length, at);
    CU_ASSERT(raw.ended);
    MOON_CHECK_INT(world.stub.calls, 2);
    rig_raw_close(&raw);
    moon_text_close(&request);
    moon_text_close(&json);
    close_world(&world);
}

static void a_call_that_needs_too_much_memory_ends_its_connection(void) {
    enum { KEYS = 4000000 };
    const struct moon_wire_call *call = moon_wire_call_by_name(&protocol, "BatchExistKey");
    struct world world;
    struct rig_raw raw, good;
    struct moon_text request;
    uint8_t body[9] = {0, 0, 0, 0, 2 << 3, KEYS & 0xff, KEYS >> 8 & 0xff, KEYS >> 16, 0};
    MOON_CHECK_INT(open_world(&world, 0), 0);
    for (unsigned i = 0; i < 4; i++)
        body[i] = (uint8_t)((call->arguments_hash | 1) >> 8 * i);
    char *keys = calloc(KEYS + 1, 4); /* each of length 0, then the tenant */
    moon_text_open(&request, moon_memory_heap());
    moon_text_bytes(&request, body, sizeof body);
    moon_text_bytes(&request, keys, (KEYS + 1) * 4);
    struct moon_text frame;
    moon_text_open(&frame, moon_memory_heap());
    moon_wire_write_frame(&(struct moon_wire_frame){.direction = MOON_WIRE_REQUEST,
                                                    .function_id = call->id,
                                                    .body = (const uint8_t *)request.data,
                                                    .body_length = (uint32_t)request.length},
                          &frame);
    rig_raw_open(&raw, &world.rig, address);
    rig_raw_open(&good, &world.rig, address);
    rig_raw_send(&raw, frame.data, frame.length);
    rig_run(&world.rig);
    CU_ASSERT(raw.ended);
    MOON_CHECK_INT(world.stub.calls, 0);
    check_served(&world, &good);
    free(keys);
    moon_text_close(&request);
    moon_text_close(&frame);
    rig_raw_close(&raw);
    rig_raw_close(&good);
    close_world(&world);
}

/* ---- floods */

/* chunk: how much of the requests arrives at once. */
static void flood(size_t chunk) {
    enum { COUNT = 24 };
    struct world world;
    struct rig_raw raw, good;
    struct moon_text request, json;
    uint32_t sequence = 0;
    size_t at = 0;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    moon_text_open(&request, moon_memory_heap());
    moon_text_open(&json, moon_memory_heap());
    for (uint32_t n = 0; n < COUNT; n++)
        put_request(&request, n, "ServiceReady", NULL);
    for (uint32_t n = 0; n < 3000; n++)
        put_request(&request, COUNT + n, "ExistKey", "yes");
    rig_raw_open(&raw, &world.rig, address);
    rig_raw_open(&good, &world.rig, address);
    world.rig.chunk = chunk;
    raw.deaf = true;
    rig_raw_send(&raw, request.data, request.length);
    rig_run(&world.rig);
    CU_ASSERT(world.stub.calls >= 4 && world.stub.calls <= 8);
    CU_ASSERT(world.node.memory.held_bytes < (size_t)4 * MOON_RPC_UNSENT_BYTES_MAX);
    world.rig.chunk = 0;
    check_served(&world, &good);
    rig_raw_listen_again(&raw);
    rig_run(&world.rig);
    for (uint32_t n = 0; n < COUNT + 3000; n++) {
        int code = take_answer(&raw, &at, n < COUNT ? NULL : "ExistKey", &sequence, &json);
        if (code || sequence != n) {
            MOON_CHECK_INT(code, 0);
            MOON_CHECK_INT(sequence, n);
            break;
        }
    }
    MOON_CHECK_INT(at, raw.in.length);
    rig_raw_close(&raw);
    rig_raw_close(&good);
    moon_text_close(&request);
    moon_text_close(&json);
    close_world(&world);
}

static void who_does_not_read_is_not_asked_for_more(void) {
    flood(0);
    flood(MOON_WIRE_REQUEST_HEADER_BYTES); /* a request each time, so that answers wait behind one that is being sent */
}

static void ten_thousand_connections_leave_no_trace(void) {
    enum { COUNT = 10000 };
    struct world world;
    struct rig_raw good, *raws = calloc(COUNT, sizeof(struct rig_raw));
    MOON_CHECK_INT(open_world(&world, 0), 0);
    rig_raw_open(&good, &world.rig, address);
    for (int i = 0; i < 2; i++) /* both of its buffers are there then */
        check_served(&world, &good);
    size_t held = world.node.memory.held_bytes;
    for (size_t i = 0; i < COUNT; i++)
        rig_raw_open(&raws[i], &world.rig, address);
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), COUNT + 1);
    check_served(&world, &good);
    for (size_t i = 0; i < COUNT; i++)
        rig_raw_close(&raws[i]);
    rig_run(&world.rig);
    MOON_CHECK_INT(moon_rpc_server_connections(world.server), 1);
    MOON_CHECK_INT(world.node.memory.held_bytes, held);
    free(raws);
    rig_raw_close(&good);
    close_world(&world);
}

/* ---- its own end, and refusals */

static void an_address_in_use_is_refused(void) {
    struct world world;
    struct moon_rpc_server *second = NULL;
    struct moon_error error;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    MOON_CHECK_INT(
        moon_rpc_server_open(&world.node.environment, &protocol, &world.stub.service, address, true, &second, &error),
        MOON_ERR_IO);
    CU_ASSERT_PTR_NULL(second);
    MOON_CHECK_TEXT(error.where, address);
    moon_rpc_server_close(second);
    close_world(&world);
}

static void a_server_closes_what_is_open(void) {
    struct world world;
    struct rig_raw raw, late;
    MOON_CHECK_INT(open_world(&world, 0), 0);
    rig_raw_open(&raw, &world.rig, address);
    rig_run(&world.rig);
    struct rig_stream *listener = rig_listener(&world.rig, address);
    listener->ended = true; /* the fabric loses it: what is open goes on */
    rig_queue(listener);
    rig_run(&world.rig);
    check_served(&world, &raw);
    rig_raw_open(&late, &world.rig, address);
    rig_run(&world.rig);
    MOON_CHECK_INT(late.end, MOON_STREAM_END_REFUSED);
    close_world(&world);
    CU_ASSERT(raw.ended);
    rig_raw_close(&raw);
    rig_raw_close(&late);
}

/* Three connections; on two of them calls of every kind. Whoever is refused memory loses his connection, or, where his
 * buffer should become small again, nothing. Returns whether anything was refused. */
static bool serve_some(uint64_t fail_at) {
    struct world world;
    struct rig_raw raws[3];
    struct moon_text request;
    int status = open_world(&world, fail_at);
    world.node.environment.recorder = &world.node.recorder;
    moon_text_open(&request, moon_memory_heap());
    put_request(&request, 1, "ExistKey", "yes");
    put_request(&request, 1, "ServiceReady", NULL);
    put_request(&request, 2, "PutStart", "k");
    put_request(&request, 3, "ExistKey", big + 1);
    for (size_t i = 0; i < 3; i++) {
        rig_raw_open(&raws[i], &world.rig, address);
        if (i > 0)
            rig_raw_send(&raws[i], request.data, request.length);
        rig_run(&world.rig);
    }
    MOON_CHECK_INT(status, fail_at == 1 ? MOON_ERR_MEMORY : MOON_OK);
    MOON_CHECK_INT(raws[0].ended, fail_at > 0 && fail_at < 4);
    for (size_t i = 0; i < 3; i++)
        rig_raw_close(&raws[i]);
    moon_text_close(&request);
    bool refused = fail_at > 0 && world.node.memory.requests >= fail_at;
    close_world(&world);
    return refused;
}

static void refused_memory_ends_one_connection_and_leaks_nothing(void) {
    uint64_t fail_at = 1;
    memset(big, 'b', sizeof big - 1);
    while (serve_some(fail_at))
        fail_at++;
    CU_ASSERT(fail_at > 40);
    memset(big, 0, sizeof big);
}

static void refused_memory_leaves_the_others_served(void) {
    /* The server and two connections stand; the third connection and each of its calls find no memory. */
    for (uint64_t refuse = 1; refuse < 12; refuse++) {
        struct world world;
        struct rig_raw good, bad;
        struct moon_text request;
        MOON_CHECK_INT(open_world(&world, 0), 0);
        rig_raw_open(&good, &world.rig, address);
        check_served(&world, &good);
        moon_text_open(&request, moon_memory_heap());
        put_request(&request, 1, "ServiceReady", NULL);
        world.node.memory.fail_at = world.node.memory.requests + refuse;
        rig_raw_open(&bad, &world.rig, address);
        rig_raw_send(&bad, request.data, request.length);
        rig_run(&world.rig);
        world.node.memory.fail_at = 0;
        check_served(&world, &good);
        rig_raw_close(&bad);
        rig_raw_close(&good);
        moon_text_close(&request);
        close_world(&world);
    }
}

/* ---- records */

static void messages_are_recorded_under_their_addresses(void) {
    struct world world;
    struct rig_raw raw;
    struct moon_text request;
    uint8_t unknown[20];
    MOON_CHECK_INT(open_world(&world, 0), 0);
    world.node.environment.recorder = &world.node.recorder;
    moon_text_open(&request, moon_memory_heap());
    put_request(&request, 1, "ExistKey", "yes");
    put_request(&request, 2, "ExistKey", "");
    put_request(&request, 3, "RemoveAll", NULL);
    rig_raw_open(&raw, &world.rig, address);
    rig_raw_send(&raw, request.data, request.length);
    rig_raw_send(&raw, unknown, from_hex("150000001a000000785634120000000000000000", unknown));
    rig_run(&world.rig);
    MOON_CHECK_INT(world.node.record_count, 8);
    for (size_t i = 0; i < 8; i++) {
        const struct moon_record *one = &world.node.records[i].record;
        bool sent = i % 2 == 1;
        MOON_CHECK_INT(one->kind, sent ? MOON_RECORD_SEND : MOON_RECORD_RECV);
        MOON_CHECK_TEXT(one->what, i < 4 ? "ExistKey" : i < 6 ? "RemoveAll" : "unknown");
        CU_ASSERT(one->msg == moon_message_id(sent ? raw.stream->peer : raw.stream->local,
                                              sent ? raw.stream->local : raw.stream->peer, i / 2));
        MOON_CHECK_INT((one->has & MOON_RECORD_HAS_KEY) != 0, i < 4);
        MOON_CHECK_INT((one->has & MOON_RECORD_HAS_CODE) != 0, i == 3);
        CU_ASSERT(!one->internal && one->op == 0);
    }
    MOON_CHECK_TEXT(world.node.records[0].key, "yes");
    MOON_CHECK_TEXT(world.node.records[1].tenant, "default");
    MOON_CHECK_INT(world.node.records[3].record.code, -600);
    rig_raw_close(&raw);
    moon_text_close(&request);
    close_world(&world);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"refused calls are answered as by the real master", refused_calls_are_answered_as_by_the_real_master},
        {"what the service says is answered", what_the_service_says_is_answered},
        {"pipelined requests are answered in order, in pieces of any size", pipelined_requests_are_answered_in_order},
        {"a large request arrives and its buffer goes", a_large_request_arrives_and_its_buffer_goes},
        {"frames cut or with false bytes harm nobody", frames_cut_or_with_false_bytes_harm_nobody},
        {"a false length costs nothing", a_false_length_costs_nothing},
        {"what was asked before a broken frame is answered", what_was_asked_before_a_broken_frame_is_answered},
        {"a call that needs too much memory ends its connection",
         a_call_that_needs_too_much_memory_ends_its_connection},
        {"who does not read is not asked for more", who_does_not_read_is_not_asked_for_more},
        {"ten thousand connections leave no trace", ten_thousand_connections_leave_no_trace},
        {"an address in use is refused", an_address_in_use_is_refused},
        {"a server closes what is open", a_server_closes_what_is_open},
        {"refused memory ends one connection and leaks nothing", refused_memory_ends_one_connection_and_leaks_nothing},
        {"refused memory leaves the others served", refused_memory_leaves_the_others_served},
        {"messages are recorded under their addresses", messages_are_recorded_under_their_addresses},
        {NULL, NULL},
    };
    if (moon_wire_protocol_open(&protocol, moon_wire_releases[0], moon_memory_heap()))
        return 1;
    return moon_unit_main("rpc server", cases, argc, argv);
}
