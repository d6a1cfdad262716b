/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the data port: recorded requests, every cut and bad length, and memory that is taken back. */
#include "ref/base/unit.h"
#include "ref/transfer/net_internal.h"
#include "ref/wire/data.h"

/* mooncake-transfer-engine-non-cuda 0.3.13.post1 (fixtures/wire): run "plain", connection 5, and run "v1",
 * connection 5. The owner's memory began at these addresses. */
static const uint64_t plain_address = 139871263916032, v1_address = 140338945589248;
static const char plain_write[] = "050000000000000000000051367f0000810000000000000068656c6c6f";
static const char plain_write_answer[] = "000000005654434d";
static const char plain_read[] = "050000000000000000000051367f00008000000000000000";
static const char plain_read_answer[] = "000000005654434d68656c6c6f";
static const char v1_write[] = "050000000000000000000035a37f0000010000000000000068656c6c6f";
static const char v1_read[] = "050000000000000000000035a37f00000000000000000000";
static const char v1_read_answer[] = "68656c6c6f";
static const char refusal[] = "010000005654434d";

enum { MEMORY = 4096, BYTES = 1 << 15 };

struct scene {
    struct net net;
    struct net_node *owner, *peer;
    struct raw raw;
    uint8_t memory[2][MEMORY];
    uint8_t bytes[BYTES]; /* to send */
    size_t length;
    char data[MOON_ADDRESS_BYTES];
};

static struct scene *open_scene(uint64_t seed) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert(scene);
    net_open(&scene->net, seed);
    scene->owner = net_add(&scene->net, "10.0.0.1", moon_memory_heap());
    scene->peer = net_add(&scene->net, "10.0.0.2", moon_memory_heap());
    net_start(scene->owner, 0);
    MOON_CHECK_INT(moon_transfer_register(scene->owner->transfer, scene->memory[0], plain_address, MEMORY, true), 0);
    MOON_CHECK_INT(moon_transfer_register(scene->owner->transfer, scene->memory[1], v1_address, MEMORY, true), 0);
    snprintf(scene->data, sizeof scene->data, "%s", net_data_endpoint(scene->owner));
    raw_dial(&scene->raw, scene->peer, scene->data);
    return scene;
}

static void close_scene(struct scene *scene) {
    net_stop(scene->owner);
    net_settle(&scene->net);
    net_close(&scene->net);
    free(scene);
}

static void say_hex(struct scene *scene, const char *hex) {
    size_t length = strlen(hex) / 2;
    assert(scene->length + length <= BYTES);
    moon_hex_decode(hex, 2 * length, scene->bytes + scene->length);
    scene->length += length;
}

static void say_request(struct scene *scene, uint64_t address, uint64_t size, uint8_t opcode) {
    uint8_t header[MOON_WIRE_DATA_REQUEST_BYTES] = {0};
    for (int i = 0; i < 8; i++) {
        header[i] = (uint8_t)(size >> 8 * i);
        header[8 + i] = (uint8_t)(address >> 8 * i);
    }
    header[16] = opcode;
    memcpy(scene->bytes + scene->length, header, sizeof header);
    scene->length += sizeof header;
}

/* Sends what was said. */
static void send_all(struct scene *scene) {
    raw_send(&scene->raw, scene->bytes, scene->length);
    net_settle(&scene->net);
    scene->length = 0;
}

static void check_heard(struct scene *scene, const char *hex) {
    char heard[2 * BYTES + 1];
    for (size_t i = 0; i < scene->raw.length; i++)
        snprintf(heard + 2 * i, 3, "%02x", scene->raw.bytes[i]);
    heard[2 * scene->raw.length] = '\0';
    MOON_CHECK_TEXT(heard, hex);
    scene->raw.length = 0;
}

static void dial_again(struct scene *scene) {
    raw_close(&scene->raw);
    net_settle(&scene->net);
    MOON_CHECK_INT(net_count(scene->owner, true), 0);
    raw_dial(&scene->raw, scene->peer, scene->data);
    scene->length = 0;
}

static void answers_as_recorded(void) {
    struct scene *scene = open_scene(1);
    say_hex(scene, plain_write);
    send_all(scene);
    check_heard(scene, plain_write_answer);
    CU_ASSERT(memcmp(scene->memory[0], "hello", 5) == 0);
    say_hex(scene, plain_read);
    send_all(scene);
    check_heard(scene, plain_read_answer);
    say_hex(scene, v1_write);
    send_all(scene);
    check_heard(scene, "");
    CU_ASSERT(memcmp(scene->memory[1], "hello", 5) == 0);
    say_hex(scene, v1_read);
    send_all(scene);
    check_heard(scene, v1_read_answer);
    CU_ASSERT(scene->raw.open);
    CU_ASSERT(!net_wait(&scene->net)); /* an idle connection has no end */
    close_scene(scene);
}

static void serves_an_unknown_opcode_as_a_read(void) {
    struct scene *scene = open_scene(2);
    memcpy(scene->memory[0], "hello", 5);
    say_request(scene, plain_address, 5, 5);
    send_all(scene);
    check_heard(scene, v1_read_answer);
    say_request(scene, plain_address, 5, 0x80 | 0x7f);
    send_all(scene);
    check_heard(scene, plain_read_answer);
    close_scene(scene);
}

/* A write, a read of it, a write of other bytes, a read of another region, over and over in one stream. */
static void serves_a_stream_of_requests_in_order(void) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct scene *scene = open_scene(seed);
        char expected[1 << 13] = "";
        size_t length = 0;
        scene->net.piece_bytes_max = seed % 2 ? 7 : 1000;
        scene->net.wire_bytes_max = seed % 3 ? 16 : 1 << 18;
        memcpy(scene->memory[1], "other", 5);
        for (int i = 0; i < 60; i++) {
            char payload[6];
            snprintf(payload, sizeof payload, "%05d", i);
            say_request(scene, plain_address + 10, 5, 0x81);
            memcpy(scene->bytes + scene->length, payload, 5);
            scene->length += 5;
            say_request(scene, plain_address + 10, 5, (uint8_t)(i % 2 ? 0x80 : 0));
            say_request(scene, v1_address, 5, 0);
            length += (size_t)snprintf(expected + length, sizeof expected - length,
                                       "000000005654434d%s%02x%02x%02x%02x%02x%s", i % 2 ? "000000005654434d" : "",
                                       payload[0], payload[1], payload[2], payload[3], payload[4], "6f74686572");
        }
        for (int i = 0; i < 100; i++) { /* many answers at a time */
            say_request(scene, v1_address, 1, 0);
            length += (size_t)snprintf(expected + length, sizeof expected - length, "6f");
        }
        send_all(scene);
        check_heard(scene, expected);
        close_scene(scene);
    }
}

/* Nothing is taken of a write while an answer from that memory has not left. */
static void a_read_is_not_torn_by_the_write_behind_it(void) {
    struct scene *scene = open_scene(7);
    memset(scene->memory[0], 'a', MEMORY);
    scene->net.wire_bytes_max = 64;
    scene->net.piece_bytes_max = 64;
    say_request(scene, plain_address, MEMORY, 0x80);
    say_request(scene, plain_address, MEMORY, 0x81);
    memset(scene->bytes + scene->length, 'b', MEMORY);
    scene->length += MEMORY;
    send_all(scene);
    MOON_CHECK_INT(scene->raw.length, MEMORY + 2 * MOON_WIRE_DATA_STATUS_BYTES);
    for (size_t i = 0; i < MEMORY; i++)
        if (scene->raw.bytes[MOON_WIRE_DATA_STATUS_BYTES + i] != 'a' || scene->memory[0][i] != 'b')
            CU_FAIL("a byte of another time");
    close_scene(scene);
}

static void refuses_what_lies_in_no_region(void) {
    static const struct {
        uint64_t offset, size;
    } rows[] = {
        {0, 0},          {MEMORY, 1},     {MEMORY - 1, 2}, {UINT64_MAX, 1},        {UINT64_MAX, 2},
        {0, MEMORY + 1}, {0, UINT64_MAX}, {1, UINT64_MAX}, {0, (uint64_t)1 << 63}, {UINT64_MAX / 2, 5},
    };
    struct scene *scene = open_scene(3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int opcode = 0; opcode < 4; opcode++) {
            bool newer = opcode >= 2, write = opcode % 2;
            dial_again(scene);
            say_hex(scene, plain_read); /* its answer still comes */
            say_request(scene, plain_address + rows[i].offset, rows[i].size, (uint8_t)(newer << 7 | write));
            send_all(scene);
            CU_ASSERT(scene->raw.ended);
            CU_ASSERT(scene->raw.end == MOON_STREAM_END_PEER);
            check_heard(scene, newer ? "000000005654434d0000000000010000005654434d" : "000000005654434d0000000000");
        }
    dial_again(scene);
    say_request(scene, plain_address + MEMORY - 5, 5, 0x80);
    send_all(scene);
    check_heard(scene, "000000005654434d0000000000");
    close_scene(scene);
}

static void does_not_wait_for_ever_with_a_refusal(void) {
    struct scene *scene = open_scene(4);
    scene->raw.hold = true;
    scene->net.wire_bytes_max = 4;
    scene->net.piece_bytes_max = 4;
    say_request(scene, plain_address, 0, 0x80);
    send_all(scene);
    CU_ASSERT(!scene->raw.ended);
    MOON_CHECK_INT(moon_transfer_deadline(scene->owner->transfer) - scene->owner->environment.now_ns,
                   30 * MOON_NS_PER_S);
    CU_ASSERT(net_wait(&scene->net));
    MOON_CHECK_INT(net_count(scene->owner, true), 0);
    scene->raw.hold = false;
    if (scene->raw.stream)
        scene->peer->streams.resume(&scene->peer->streams, scene->raw.stream);
    net_settle(&scene->net);
    CU_ASSERT(scene->raw.ended);
    CU_ASSERT(scene->raw.length < MOON_WIRE_DATA_STATUS_BYTES); /* the rest had not left */
    scene->raw.length = 0;
    /* one that is given back in time */
    dial_again(scene);
    say_request(scene, plain_address, 0, 0x80);
    send_all(scene);
    check_heard(scene, refusal);
    close_scene(scene);
}

/* Whatever stands after the cut: the connection ends without an answer, no byte beyond the cut is changed. */
static void a_cut_at_any_byte_costs_nothing(void) {
    struct scene *scene = open_scene(5);
    size_t whole = MOON_WIRE_DATA_REQUEST_BYTES + 100;
    for (size_t length = 0; length < whole; length++) {
        memset(scene->memory[0], 0, MEMORY);
        dial_again(scene);
        say_request(scene, plain_address + 7, 100, 0x81);
        memset(scene->bytes + scene->length, 'x', 100);
        scene->length = length;
        if (length > 0)
            send_all(scene);
        net_settle(&scene->net);
        check_heard(scene, "");
        raw_close(&scene->raw);
        net_settle(&scene->net);
        MOON_CHECK_INT(net_count(scene->owner, true), 0);
        size_t written = length > MOON_WIRE_DATA_REQUEST_BYTES ? length - MOON_WIRE_DATA_REQUEST_BYTES : 0;
        for (size_t i = 0; i < 200; i++)
            if (scene->memory[0][i] != (i >= 7 && i < 7 + written ? 'x' : 0))
                CU_FAIL("a byte that nobody has written, or one too few");
    }
    close_scene(scene);
}

static void memory_that_is_taken_back_is_left_alone(void) {
    struct scene *scene = open_scene(6);
    struct moon_transfer *transfer = scene->owner->transfer;
    struct raw reader, other;
    /* a write that is not whole, a read whose answer has not left, a connection on the other region */
    say_request(scene, plain_address, 100, 0x81);
    scene->length += 50;
    send_all(scene);
    raw_dial(&reader, scene->peer, scene->data);
    reader.hold = true;
    scene->net.wire_bytes_max = 1;
    scene->net.piece_bytes_max = 16;
    say_request(scene, plain_address, MEMORY, 0x80);
    raw_send(&reader, scene->bytes, scene->length);
    net_settle(&scene->net);
    raw_dial(&other, scene->peer, scene->data);
    net_settle(&scene->net);
    MOON_CHECK_INT(net_count(scene->owner, true), 3);
    CU_ASSERT(net_uses(scene->owner, scene->memory[0], MEMORY));
    MOON_CHECK_INT(moon_transfer_unregister(transfer, plain_address + 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_transfer_unregister(transfer, 5), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_transfer_unregister(transfer, plain_address), 0);
    CU_ASSERT(!net_uses(scene->owner, scene->memory[0], MEMORY));
    MOON_CHECK_INT(net_count(scene->owner, true), 1);
    net_settle(&scene->net);
    CU_ASSERT(scene->raw.ended);
    CU_ASSERT(other.open);
    raw_close(&other);
    dial_again(scene);
    scene->net.wire_bytes_max = 1000;
    say_hex(scene, plain_read);
    send_all(scene);
    check_heard(scene, refusal);
    raw_close(&reader);
    close_scene(scene);
}

int main(int argc, char *argv[]) {
    const struct moon_unit_case cases[] = {
        {"recorded requests are answered as recorded, and the connection stays", answers_as_recorded},
        {"an unknown opcode is served as a read", serves_an_unknown_opcode_as_a_read},
        {"requests behind each other are served in order, reads before later writes",
         serves_a_stream_of_requests_in_order},
        {"a read is not torn by the write behind it", a_read_is_not_torn_by_the_write_behind_it},
        {"size 0 and ranges outside of every region are refused, after the answers ahead",
         refuses_what_lies_in_no_region},
        {"a refusal that nobody fetches ends after 30 s", does_not_wait_for_ever_with_a_refusal},
        {"a write cut at any byte changes what came and nothing else", a_cut_at_any_byte_costs_nothing},
        {"memory that is taken back is touched by no connection", memory_that_is_taken_back_is_left_alone},
        {NULL, NULL},
    };
    return moon_unit_main("transfer data port", cases, argc, argv);
}
