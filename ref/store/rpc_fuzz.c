/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of remote calls: any bytes in any pieces into a master, and any answers into a client. */
#include "ref/base/cursor.h"
#include "ref/store/master_node.h"
#include "ref/store/rpc_rig_internal.h"
#include "ref/wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PEERS = 3, STEPS_MAX = 200, BODY_BYTES_MAX = 256, CALLS = 4 };

static const char address[] = "10.0.0.1:50051";
static struct moon_wire_protocol protocol;
static struct rig rig;
static struct rig_node node;
static struct rig_raw raws[PEERS], listener;

static void must(bool holds) {
    if (!holds)
        abort();
}

/* Bytes that are sent live until the end. */
static struct moon_arena sent_bytes;

static void send_copy(struct rig_raw *raw, const void *bytes, size_t length) {
    if (raw->stream && length > 0 && ((struct rig_stream *)raw->stream)->piece_count < MOON_STREAM_PIECES_MAX)
        rig_raw_send(raw, moon_arena_copy(&sent_bytes, bytes, length), length);
}

/* A frame whose head is right and whose value is what the input has. */
static void send_frame(struct rig_raw *raw, struct moon_cursor *input, enum moon_wire_direction direction,
                       uint32_t sequence, const struct moon_wire_call *call) {
    uint8_t body[BODY_BYTES_MAX + 5];
    uint32_t hash = direction == MOON_WIRE_REQUEST ? call->arguments_hash : call->result_hash;
    size_t head = hash ? 5 : 0, wanted = moon_cursor_u8(input), left = moon_cursor_left(input);
    size_t length = wanted < left ? wanted : left;
    struct moon_text out;
    for (unsigned i = 0; i < 4; i++)
        body[i] = (uint8_t)((hash | 1) >> 8 * i);
    body[4] = length > 0 ? moon_cursor_u8(input) & 8 : 0;
    length -= length > 0;
    if (length > 0)
        memcpy(body + head, moon_cursor_bytes(input, length), length);
    moon_text_open(&out, moon_memory_heap());
    moon_wire_write_frame(&(struct moon_wire_frame){.direction = direction,
                                                    .sequence = sequence,
                                                    .function_id = call->id,
                                                    .body = body,
                                                    .body_length = (uint32_t)(head + length)},
                          &out);
    send_copy(raw, out.data, out.length);
    moon_text_close(&out);
}

static const struct moon_wire_call *pick_call(struct moon_cursor *input) {
    return &protocol.calls[moon_cursor_u8(input) % protocol.count];
}

static void send_raw(struct rig_raw *raw, struct moon_cursor *input) {
    size_t wanted = moon_cursor_u8(input), left = moon_cursor_left(input);
    size_t length = wanted < left ? wanted : left;
    send_copy(raw, moon_cursor_bytes(input, length), length);
}

/* ---- a master */

static void fuzz_master(struct moon_cursor *input) {
    struct moon_master_node_settings settings = {
        .master = moon_master_defaults(), .protocol = &protocol, .with_text = true, .endpoint = address};
    struct moon_error error;
    void *instance = moon_master_program.boot(&settings, &node.environment, &error);
    must(instance != NULL);
    for (int i = 0; i < STEPS_MAX && moon_cursor_left(input) > 0; i++) {
        uint8_t step = moon_cursor_u8(input);
        struct rig_raw *raw = &raws[step % PEERS];
        switch (step / PEERS % 6) {
        case 0:
            rig_raw_close(raw);
            rig_raw_open(raw, &rig, address);
            raw->deaf = step & 128;
            break;
        case 1:
            send_raw(raw, input);
            break;
        case 2:
            rig_raw_listen_again(raw);
            break;
        case 3:
            node.environment.now_ns += (moon_ns)moon_cursor_u8(input) * MOON_NS_PER_S;
            moon_master_program.tick(instance);
            must(moon_master_program.deadline(instance) > node.environment.now_ns);
            break;
        default:
            if (raw->stream)
                send_frame(raw, input, MOON_WIRE_REQUEST, (uint32_t)i, pick_call(input));
        }
        rig_run(&rig);
    }
    for (size_t i = 0; i < PEERS; i++)
        rig_raw_close(&raws[i]);
    moon_master_program.halt(instance);
}

/* ---- a client */

static struct moon_rpc_call calls[CALLS];
static bool asked[CALLS];

static void done(struct moon_rpc_call *call, int status, unsigned rpc_error, const struct moon_wire_value *result) {
    must(asked[call - calls] && (status == 0) == (result != NULL) && (status != 0 || rpc_error == 0));
    asked[call - calls] = false;
}

static void ask(struct moon_rpc_client *client, const struct moon_wire_call *function, size_t i) {
    struct moon_arena arena;
    if (asked[i])
        return;
    moon_arena_open(&arena, moon_memory_heap());
    calls[i] = (struct moon_rpc_call){.done = done};
    asked[i] = true;
    must(moon_rpc_client_ask(client, &calls[i], function->function->name,
                             function->arguments_hash ? moon_wire_zero(&arena, function->function->arguments) : NULL) ==
         0);
    moon_arena_close(&arena);
}

static void fuzz_client(struct moon_cursor *input) {
    struct moon_rpc_client_settings settings = {
        .endpoint = address, .connect_timeout_ns = 40 * MOON_NS_PER_S, .timeout_ns = 60 * MOON_NS_PER_S};
    struct moon_rpc_client *client = moon_rpc_client_open(&node.environment, &protocol, &settings);
    must(client != NULL);
    rig_raw_listen(&listener, &rig, address);
    node.environment.recorder = &node.recorder;
    for (int i = 0; i < STEPS_MAX && moon_cursor_left(input) > 0; i++) {
        uint8_t step = moon_cursor_u8(input);
        struct rig_raw *raw = &raws[step % PEERS];
        size_t call = step / 64;
        switch (step / PEERS % 6) {
        case 0:
            rig_raw_close(raw);
            rig_raw_init(raw, &rig);
            listener.accepts = raw;
            ask(client, pick_call(input), call);
            break;
        case 1:
            send_raw(raw, input);
            break;
        case 2:
            moon_rpc_client_cancel(client, &calls[call]);
            asked[call] = false;
            break;
        case 3:
            node.environment.now_ns += (moon_ns)moon_cursor_u8(input) * MOON_NS_PER_S;
            moon_rpc_client_tick(client);
            must(moon_rpc_client_deadline(client) > node.environment.now_ns);
            break;
        case 4:
            ask(client, pick_call(input), call);
            break;
        default:
            if (raw->stream)
                send_frame(raw, input, MOON_WIRE_RESPONSE, moon_cursor_u8(input), pick_call(input));
        }
        rig_run(&rig);
        for (size_t one = 0; one < CALLS; one++)
            must(asked[one] == (calls[one].state != NULL));
    }
    moon_rpc_client_close(client);
    for (size_t i = 0; i < PEERS; i++)
        rig_raw_close(&raws[i]);
    rig_raw_close(&listener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_cursor input;
    if (protocol.count == 0)
        moon_wire_protocol_open(&protocol, moon_wire_releases[0], moon_memory_heap());
    moon_cursor_open(&input, data, size);
    rig_init(&rig);
    rig_node_init(&node, &rig, 0);
    memset(calls, 0, sizeof calls);
    memset(asked, 0, sizeof asked);
    for (size_t i = 0; i < PEERS; i++)
        rig_raw_init(&raws[i], &rig);
    moon_arena_open(&sent_bytes, moon_memory_heap());
    uint8_t kind = moon_cursor_u8(&input);
    rig.chunk = kind >> 1;
    if (kind & 1)
        fuzz_client(&input);
    else
        fuzz_master(&input);
    rig_close(&rig);
    moon_arena_close(&sent_bytes);
    must(node.memory.held_bytes == 0);
    return 0;
}
