/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the RDMA handshake: any bytes as a descriptor, and as questions to an owner whose device takes anything. */
#include "ref/transfer/rdma_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Nothing is asked by an owner that has no jobs. */
int moon_handshake_ask(struct moon_handshake_client *client, struct moon_handshake_question *question,
                       const char *endpoint, enum moon_wire_handshake_type type, const char *json, size_t length) {
    (void)client, (void)question, (void)endpoint, (void)type, (void)json, (void)length;
    abort();
}

void moon_handshake_cancel(struct moon_handshake_client *client, struct moon_handshake_question *question) {
    (void)client, (void)question;
    abort();
}

static size_t pairs;

static int create(struct moon_verbs *self, uint32_t depth, uint32_t *qp_num) {
    static uint32_t number = 16;
    (void)self, (void)depth;
    pairs++;
    *qp_num = ++number & 0xffffff;
    return 0;
}

static int connect(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_path *path) {
    (void)self, (void)qp_num;
    return path->peer.gid[0] == 0xee ? -EINVAL : 0;
}

static void destroy(struct moon_verbs *self, uint32_t qp_num) {
    (void)self, (void)qp_num;
    pairs--;
}

static void read_and_write(struct moon_arena *arena, const char *json, size_t length) {
    struct moon_rdma_descriptor descriptor, again;
    struct moon_text out;
    size_t device;
    uint32_t rkey;
    if (moon_rdma_read_descriptor(arena, json, length, &descriptor, NULL))
        return;
    if (moon_rdma_reach(&descriptor, 4096, 1, &device, &rkey))
        assert(device < descriptor.device_count);
    moon_text_open(&out, moon_memory_heap());
    moon_rdma_write_descriptor(arena, &descriptor, &out);
    if (!out.failed) /* a location that the matrix names twice cannot be written */
        assert(moon_rdma_read_descriptor(arena, out.data, out.length, &again, NULL) == 0);
    moon_text_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_environment environment = {.memory = moon_memory_heap()};
    struct moon_verbs verbs = {
        .name = "rxe0", .mtu_bytes = 1024, .work_max = 4, .create = create, .connect = connect, .destroy = destroy};
    struct moon_regions regions;
    struct moon_arena arena;
    struct moon_text out;
    moon_regions_open(&regions, environment.memory);
    moon_arena_open(&arena, environment.memory);
    moon_text_open(&out, environment.memory);
    read_and_write(&arena, (const char *)data, size);
    const struct moon_rdma_settings settings = {"10.7.0.1:16745", &verbs, NULL, &regions, MOON_NS_PER_S};
    struct moon_rdma *rdma = moon_rdma_open(&environment, &settings);
    /* Questions are lines, so that one input holds several to the same owner. */
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t length = end ? (size_t)(end - data) - at : size - at;
        const struct moon_wire_handshake question = {.json = (const char *)data + at, .length = length};
        moon_text_clear(&out);
        if (moon_rdma_answer(rdma, &question, &out))
            assert(out.length > 0 && out.data[out.length - 1] == '\n');
        at += length + 1;
    }
    moon_rdma_tick(rdma);
    moon_rdma_close(rdma);
    assert(pairs == 0);
    moon_text_close(&out);
    moon_arena_close(&arena);
    moon_regions_close(&regions);
    return 0;
}
