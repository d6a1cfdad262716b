/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the engine: any bytes to its data port and to its handshake port, and as answers on a lane and to its own
 * question. */
#include "ref/transfer/net_internal.h"
#include "ref/wire/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REGION = 256, INPUT_BYTES_MAX = 1 << 14 };
static const uint64_t base_address = 0x1000;
static const char descriptor[] = "{\"protocol\":\"tcp\",\"tcp_data_port\":2,\"tcp_proto_version\":2}";

static void must(bool holds) {
    if (!holds)
        abort();
}

/* To one of the engine's ports, and then a good request on a connection of its own. */
static void speak_to_a_port(struct net *net, bool handshake, const uint8_t *bytes, size_t size) {
    static const uint8_t probe[] = {4, 0, 0, 0, 0, 0, 0, 0, 3, '{', '}', '\n'};
    static const uint8_t read[24] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x80};
    struct net_node *node = &net->nodes[0], *peer = &net->nodes[1];
    struct raw *raw = calloc(2, sizeof *raw);
    must(raw);
    const char *endpoint = handshake ? moon_transfer_endpoint(node->transfer) : net_data_endpoint(node);
    raw_dial(&raw[0], peer, endpoint);
    if (size > 0)
        raw_send(&raw[0], bytes, size);
    net_settle(net);
    raw_dial(&raw[1], peer, endpoint);
    raw_send(&raw[1], handshake ? probe : read, handshake ? sizeof probe : sizeof read);
    net_settle(net);
    must(raw[1].length == (handshake ? 30 : 9));
    raw_close(&raw[0]);
    raw_close(&raw[1]);
    net_settle(net);
    must(net_count(node, true) == 0);
    free(raw);
}

/* As the owner whose memory the engine reads or writes. */
static void answer_a_job(struct net *net, bool write, bool at_once, const uint8_t *bytes, size_t size) {
    struct net_node *node = &net->nodes[0], *peer = &net->nodes[1];
    struct raw *raw = calloc(2, sizeof *raw);
    struct net_job job;
    uint8_t *memory = malloc(REGION);
    must(raw && memory);
    memset(memory, 0, REGION);
    struct moon_piece pieces[] = {{memory, 10}, {memory + 10, 100}, {memory + 110, 146}};
    char frame[128] = {sizeof descriptor, 0, 0, 0, 0, 0, 0, 0, MOON_WIRE_HANDSHAKE_METADATA};
    memcpy(frame + 9, descriptor, sizeof descriptor - 1);
    raw_listen(&raw[0], peer, "10.0.0.2:1");
    raw_listen(&raw[1], peer, "10.0.0.2:2");
    must(net_submit(node, &job, "10.0.0.2:1", write, 0x5000, pieces, 3) == 0);
    net_settle(net);
    if (at_once)
        raw_send(&raw[0], bytes, size);
    else
        raw_send(&raw[0], frame, 8 + sizeof descriptor);
    net_settle(net);
    if (raw[1].stream)
        raw_send(&raw[1], bytes, size);
    net_settle(net);
    for (int most = 0; job.done_count == 0 && net_wait(net); most++)
        must(most < 1000);
    must(job.done_count == 1);
    must(!net_uses(node, memory, REGION));
    raw_close(&raw[0]);
    raw_close(&raw[1]);
    free(memory);
    free(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > INPUT_BYTES_MAX)
        return 0;
    struct moon_memory_failing counting;
    struct net *net = malloc(sizeof *net);
    uint8_t *region = malloc(REGION);
    must(net && region);
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    net_open(net, data[1]);
    struct net_node *node = net_add(net, "10.0.0.1", &counting.memory);
    net_add(net, "10.0.0.2", moon_memory_heap());
    net_start(node, 0);
    memset(region, 0, REGION);
    must(moon_transfer_register(node->transfer, region, base_address, REGION, true) == 0);
    switch (data[0] % 6) {
    case 0:
    case 1:
        speak_to_a_port(net, data[0] % 6, data + 2, size - 2);
        break;
    default:
        if (size > 2)
            answer_a_job(net, data[0] % 2, data[0] % 6 >= 4, data + 2, size - 2);
        break;
    }
    net_stop(node);
    must(counting.held_bytes == 0);
    net_close(net);
    free(net);
    free(region);
    return 0;
}
