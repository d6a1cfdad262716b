/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of the RDMA engine: devices that are joined in memory, and handshakes that a test carries by hand. */
#ifndef MOON_TRANSFER_RDMA_RIG_INTERNAL_H
#define MOON_TRANSFER_RDMA_RIG_INTERNAL_H

#include "ref/base/unit.h"
#include "ref/transfer/rdma_internal.h"

#include <errno.h>

enum { SCENE_NODES = 3, SCENE_PAIRS = 2048, SCENE_WORK = 2048, SCENE_REGIONS = 8, SCENE_BYTES = 1 << 21 };

struct scene_pair {
    uint32_t number;
    bool created, connected, broken;
    struct moon_verbs_path path;
};

struct scene_work {
    uint32_t number;
    struct moon_verbs_work work;
    bool gone; /* its queue pair was destroyed */
};

struct scene_mr {
    uint8_t *memory;
    uint64_t address, length;
    uint32_t key;
    bool remote;
};

/* A device. create_fails, connect_error, post_error: what the next call answers. */
struct scene_device {
    struct moon_verbs verbs;
    struct scene_pair pairs[SCENE_PAIRS];
    size_t pair_count;
    struct scene_work work[SCENE_WORK]; /* posted, in order */
    size_t work_count, work_done;
    struct scene_mr regions[SCENE_REGIONS];
    size_t region_count;
    uint32_t next_number;
    int create_error, connect_error, post_error;
};

/* A question that was asked and not answered yet. */
struct moon_handshake_exchange {
    bool open;
    char endpoint[MOON_ENDPOINT_BYTES], json[4096];
    size_t length;
};

struct scene_node {
    struct moon_environment environment;
    struct moon_regions regions;
    struct scene_device device;
    struct moon_rdma *rdma;
    struct moon_handshake_question *question; /* the last one */
    struct moon_handshake_exchange exchange;
    size_t asked;
    uint8_t bytes[SCENE_BYTES];
};

static struct scene_node scene[SCENE_NODES];

/* ---- devices */

static struct scene_pair *scene_pair(struct scene_device *device, uint32_t number) {
    for (size_t i = 0; i < device->pair_count; i++)
        if (device->pairs[i].number == number && device->pairs[i].created)
            return &device->pairs[i];
    return NULL;
}

static int scene_register(struct moon_verbs *self, void *memory, uint64_t address, size_t length, bool remote,
                          uint32_t *lkey, uint32_t *rkey) {
    struct scene_device *device = (struct scene_device *)self;
    uint32_t key = 700 + (uint32_t)device->region_count;
    device->regions[device->region_count++] = (struct scene_mr){memory, address, length, key, remote};
    *lkey = *rkey = key;
    return 0;
}

static int scene_create(struct moon_verbs *self, uint32_t depth, uint32_t *qp_num) {
    struct scene_device *device = (struct scene_device *)self;
    (void)depth;
    if (device->create_error)
        return device->create_error;
    struct scene_pair *pair = &device->pairs[device->pair_count++];
    *pair = (struct scene_pair){.number = device->next_number, .created = true};
    *qp_num = device->next_number++;
    return 0;
}

static int scene_connect(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_path *path) {
    static const uint8_t none[MOON_GID_BYTES];
    struct scene_device *device = (struct scene_device *)self;
    struct scene_pair *pair = scene_pair(device, qp_num);
    if (device->connect_error)
        return device->connect_error;
    if (!pair || pair->connected)
        return -EINVAL;
    if (memcmp(path->peer.gid, none, sizeof none) == 0)
        return -ENETUNREACH;
    pair->connected = true;
    pair->path = *path;
    return 0;
}

static void scene_destroy(struct moon_verbs *self, uint32_t qp_num) {
    struct scene_device *device = (struct scene_device *)self;
    scene_pair(device, qp_num)->created = false;
    for (size_t i = device->work_done; i < device->work_count; i++)
        if (device->work[i].number == qp_num)
            device->work[i].gone = true;
}

static int scene_post(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_work *work) {
    struct scene_device *device = (struct scene_device *)self;
    struct scene_pair *pair = scene_pair(device, qp_num);
    if (device->post_error)
        return device->post_error;
    if (!pair || !pair->connected || pair->broken)
        return -EINVAL;
    device->work[device->work_count++] = (struct scene_work){qp_num, *work, false};
    return 0;
}

static struct scene_device *scene_device_of(const uint8_t gid[MOON_GID_BYTES]) {
    for (size_t i = 0; i < SCENE_NODES; i++)
        if (memcmp(scene[i].device.verbs.gid, gid, MOON_GID_BYTES) == 0)
            return &scene[i].device;
    return NULL;
}

static uint8_t *scene_reach(struct scene_device *device, uint32_t key, uint64_t address, uint64_t length, bool remote) {
    for (size_t i = 0; i < device->region_count; i++) {
        const struct scene_mr *one = &device->regions[i];
        if (one->key == key && address >= one->address && length <= one->length &&
            address - one->address <= one->length - length && (one->remote || !remote))
            return one->memory + (address - one->address);
    }
    return NULL;
}

/* Does one work request: moves the bytes, or says why not. */
static int scene_move(struct scene_device *device, const struct scene_work *one, struct scene_pair *pair) {
    struct scene_device *peer = scene_device_of(pair->path.peer.gid);
    struct scene_pair *other = peer ? scene_pair(peer, pair->path.peer.qp_num) : NULL;
    if (pair->broken)
        return MOON_VERBS_FLUSHED;
    if (!other || !other->connected || other->path.peer.qp_num != one->number)
        return MOON_VERBS_RETRIES_EXCEEDED;
    uint8_t *local = scene_reach(device, one->work.lkey, one->work.local, one->work.length, false);
    uint8_t *remote = scene_reach(peer, one->work.rkey, one->work.remote, one->work.length, true);
    if (!local)
        return MOON_VERBS_LOCAL_PROTECTION;
    if (!remote)
        return MOON_VERBS_REMOTE_ACCESS;
    memcpy(one->work.write ? remote : local, one->work.write ? local : remote, one->work.length);
    return MOON_VERBS_OK;
}

/* The oldest work request of the node ends; false: there is none. */
static bool scene_complete(struct scene_node *node) {
    struct scene_device *device = &node->device;
    while (device->work_done < device->work_count) {
        struct scene_work one = device->work[device->work_done++];
        struct scene_pair *pair = scene_pair(device, one.number);
        if (one.gone || !pair)
            continue;
        int status = scene_move(device, &one, pair);
        pair->broken = pair->broken || status;
        device->verbs.user->completed(device->verbs.user, one.number, one.work.id, status);
        return true;
    }
    return false;
}

/* ---- handshakes: what ref/transfer/handshake.c would do, by hand */

int moon_handshake_ask(struct moon_handshake_client *client, struct moon_handshake_question *question,
                       const char *endpoint, enum moon_wire_handshake_type type, const char *json, size_t length) {
    struct scene_node *node = (struct scene_node *)client;
    CU_ASSERT(!node->exchange.open && length < sizeof node->exchange.json);
    MOON_CHECK_INT(type, MOON_WIRE_HANDSHAKE_CONNECTION);
    void *one = node->environment.memory->resize(node->environment.memory, NULL, 0, 1);
    if (!one)
        return MOON_ERR_MEMORY;
    node->environment.memory->resize(node->environment.memory, one, 1, 0);
    node->question = question;
    node->asked++;
    node->exchange = (struct moon_handshake_exchange){.open = true, .length = length};
    snprintf(node->exchange.endpoint, sizeof node->exchange.endpoint, "%s", endpoint);
    memcpy(node->exchange.json, json, length);
    return MOON_OK;
}

void moon_handshake_cancel(struct moon_handshake_client *client, struct moon_handshake_question *question) {
    struct scene_node *node = (struct scene_node *)client;
    CU_ASSERT(node->exchange.open && node->question == question);
    node->exchange.open = false;
}

/* Answers the open question of the node; json NULL: there is no answer. */
static void scene_say(struct scene_node *node, const char *json) {
    CU_ASSERT(node->exchange.open);
    node->exchange.open = false;
    node->question->done(node->question, json, json ? strlen(json) : 0);
}

/* Asks the node; returns its line in `out`. */
static bool scene_ask(struct scene_node *node, const char *json, size_t length, struct moon_text *out) {
    const struct moon_wire_handshake question = {.json = json, .length = length};
    return moon_rdma_answer(node->rdma, &question, out);
}

/* Carries the open question of the node to the one that it was asked of, and the answer back. */
static void scene_carry(struct scene_node *node) {
    struct moon_text out;
    struct scene_node *owner = NULL;
    for (size_t i = 0; i < SCENE_NODES; i++)
        if (scene[i].rdma && strcmp(scene[i].rdma->name, node->exchange.endpoint) == 0)
            owner = &scene[i];
    moon_text_open(&out, moon_memory_heap());
    bool answered = owner && scene_ask(owner, node->exchange.json, node->exchange.length, &out);
    scene_say(node, answered ? moon_text_value(&out) : NULL);
    moon_text_close(&out);
}

/* ---- nodes */

static void scene_boot(struct scene_node *node, struct moon_memory *memory, const char *name, uint8_t number) {
    struct moon_verbs *verbs = &node->device.verbs;
    memset(node, 0, offsetof(struct scene_node, bytes));
    node->environment = (struct moon_environment){.memory = memory, .now_ns = 1000};
    *verbs = (struct moon_verbs){.name = "rxe0",
                                 .gid = {[10] = 0xff, [11] = 0xff, 10, 7, 0, number},
                                 .mtu_bytes = 1024,
                                 .work_max = 1024,
                                 .register_memory = scene_register,
                                 .create = scene_create,
                                 .connect = scene_connect,
                                 .destroy = scene_destroy,
                                 .post = scene_post};
    node->device.next_number = 17;
    moon_regions_open(&node->regions, moon_memory_heap());
    const struct moon_rdma_settings settings = {name, verbs, (struct moon_handshake_client *)node, &node->regions,
                                                30 * MOON_NS_PER_S};
    node->rdma = moon_rdma_open(&node->environment, &settings);
}

/* Registers part of the node's bytes, announced at `address`. */
static void scene_offer(struct scene_node *node, size_t offset, size_t length, uint64_t address, bool remote) {
    struct moon_region region = {address, node->bytes + offset, length, remote, 0, 0};
    node->device.verbs.register_memory(&node->device.verbs, region.memory, address, length, remote, &region.lkey,
                                       &region.rkey);
    MOON_CHECK_INT(moon_regions_add(&node->regions, &region), MOON_OK);
}

static void scene_halt(struct scene_node *node) {
    moon_rdma_close(node->rdma);
    node->rdma = NULL;
    moon_regions_close(&node->regions);
    for (size_t i = 0; i < node->device.pair_count; i++)
        CU_ASSERT(!node->device.pairs[i].created);
}

/* Lets the node do what is due, until `time_ns` from its start. */
static void scene_tick(struct scene_node *node, moon_ns time_ns) {
    node->environment.now_ns = time_ns;
    moon_rdma_tick(node->rdma);
}

#endif
