/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of jobs over verbs, from one engine to another: devices joined in memory, handshakes over the network. */
#include "ref/base/unit.h"
#include "ref/transfer/net_internal.h"

enum { DEVICES = 2, MEMORIES = 4, WORK = 256, BYTES = 1 << 16 };
static const uint64_t base_address = 0x10000000;

struct memory {
    uint8_t *bytes;
    uint64_t address;
    size_t length;
    bool there;
};

struct work {
    uint32_t qp_num;
    struct moon_verbs_work work;
};

/* A device: keys are 1 and on, places in `memories`. A queue pair's peer is the device whose gid its path names. */
struct device {
    struct moon_verbs verbs; /* first member */
    struct memory memories[MEMORIES];
    struct work work[WORK];
    size_t work_count, pair_count, peer;
    bool refuses_memory, breaks;
};

static struct device devices[DEVICES];

static int on_register(struct moon_verbs *self, void *memory, uint64_t address, size_t length, bool remote,
                       uint32_t *lkey, uint32_t *rkey) {
    struct device *device = (struct device *)self;
    (void)remote;
    for (uint32_t i = 0; i < MEMORIES && !device->refuses_memory; i++)
        if (!device->memories[i].there) {
            device->memories[i] = (struct memory){memory, address, length, true};
            *lkey = *rkey = i + 1;
            return 0;
        }
    return -12;
}

static int on_deregister(struct moon_verbs *self, uint32_t lkey) {
    struct device *device = (struct device *)self;
    CU_ASSERT(device->memories[lkey - 1].there);
    device->memories[lkey - 1].there = false;
    return 0;
}

static int on_create(struct moon_verbs *self, uint32_t depth, uint32_t *qp_num) {
    (void)depth;
    *qp_num = (uint32_t)++((struct device *)self)->pair_count;
    return 0;
}

static int on_connect(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_path *path) {
    (void)qp_num;
    ((struct device *)self)->peer = path->peer.gid[15];
    return 0;
}

static void on_destroy(struct moon_verbs *self, uint32_t qp_num) {
    struct device *device = (struct device *)self;
    size_t kept = 0;
    for (size_t i = 0; i < device->work_count; i++)
        if (device->work[i].qp_num != qp_num)
            device->work[kept++] = device->work[i];
    device->work_count = kept;
}

static int on_post(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_work *work) {
    struct device *device = (struct device *)self;
    assert(device->work_count < WORK);
    device->work[device->work_count++] = (struct work){qp_num, *work};
    return 0;
}

static uint8_t *reach(const struct device *device, uint32_t key, uint64_t address, uint64_t length) {
    const struct memory *memory = &device->memories[key - 1];
    if (key == 0 || key > MEMORIES || !memory->there || address < memory->address ||
        address + length > memory->address + memory->length)
        return NULL;
    return memory->bytes + (address - memory->address);
}

/* Does the oldest work request. False: there is none. */
static bool do_work(struct device *device) {
    if (device->work_count == 0)
        return false;
    struct work one = device->work[0];
    memmove(device->work, device->work + 1, --device->work_count * sizeof one);
    uint8_t *local = reach(device, one.work.lkey, one.work.local, one.work.length);
    uint8_t *remote = reach(&devices[device->peer], one.work.rkey, one.work.remote, one.work.length);
    int status = MOON_VERBS_REMOTE_ACCESS;
    CU_ASSERT(local != NULL);
    if (local && remote && !device->breaks) {
        memcpy(one.work.write ? remote : local, one.work.write ? local : remote, one.work.length);
        status = MOON_VERBS_OK;
    }
    device->verbs.user->completed(device->verbs.user, one.qp_num, one.work.id, status);
    return true;
}

static struct net net;
static uint8_t regions[DEVICES][BYTES];

static void settle(void) {
    bool more = true;
    while (more) {
        net_settle(&net);
        more = false;
        for (int i = 0; i < DEVICES; i++)
            more = do_work(&devices[i]) || more;
        net_tick(&net);
    }
}

static void open_all(struct moon_memory *memory) {
    struct moon_error error;
    net_open(&net, 5);
    memset(devices, 0, sizeof devices);
    for (int i = 0; i < DEVICES; i++) {
        struct device *device = &devices[i];
        struct moon_transfer_settings settings = moon_transfer_defaults();
        struct net_node *node = net_add(&net, i ? "10.7.0.2" : "10.7.0.1", memory);
        device->verbs = (struct moon_verbs){.name = "rxe0",
                                            .mtu_bytes = 1024,
                                            .work_max = WORK,
                                            .register_memory = on_register,
                                            .deregister_memory = on_deregister,
                                            .create = on_create,
                                            .connect = on_connect,
                                            .destroy = on_destroy,
                                            .post = on_post};
        device->verbs.gid[14] = 1;
        device->verbs.gid[15] = (uint8_t)i;
        settings.host = node->host;
        settings.verbs = &device->verbs;
        int status = moon_transfer_open(&node->environment, &settings, &node->transfer, &error);
        assert(status == 0);
        (void)status;
        memset(regions[i], i + 1, BYTES);
        MOON_CHECK_INT(
            moon_transfer_register(node->transfer, regions[i], base_address + ((uint64_t)i << 20), BYTES, true), 0);
    }
}

static void close_all(void) {
    for (int i = 0; i < DEVICES; i++)
        if (net.nodes[i].transfer)
            net_stop(&net.nodes[i]);
    net_settle(&net);
    net_close(&net);
    for (int i = 0; i < DEVICES; i++)
        for (int j = 0; j < MEMORIES; j++)
            CU_ASSERT(!devices[i].memories[j].there);
}

/* A job of the first node on the second's region. */
static int run(struct net_job *job, bool write, uint64_t offset, const struct moon_piece *pieces, size_t count) {
    int status = net_submit(&net.nodes[0], job, moon_transfer_endpoint(net.nodes[1].transfer), write,
                            base_address + (1 << 20) + offset, pieces, count);
    settle();
    return status;
}

static void moves_bytes_over_verbs(void) {
    struct net_job job;
    struct moon_piece pieces[] = {{regions[0], 1000}, {regions[0] + 5000, 1}, {regions[0] + 6000, 30000}};
    open_all(moon_memory_heap());
    MOON_CHECK_TEXT(moon_transfer_protocol(net.nodes[0].transfer), "rdma");
    MOON_CHECK_INT(run(&job, true, 10, pieces, 3), 0);
    MOON_CHECK_INT(job.done_count, 1);
    MOON_CHECK_INT(job.code, 0);
    for (size_t i = 0; i < BYTES; i++)
        CU_ASSERT(regions[1][i] == (i >= 10 && i < 31011 ? 1 : 2));
    MOON_CHECK_INT(run(&job, false, 31000, pieces, 1), 0);
    MOON_CHECK_INT(job.code, 0);
    CU_ASSERT(regions[0][10] == 1 && regions[0][11] == 2 && regions[0][999] == 2 && regions[0][1000] == 1);
    MOON_CHECK_INT(net_count(&net.nodes[0], false), 0); /* no data connection */
    close_all();
}

static void fails_and_asks_again(void) {
    struct net_job job;
    struct moon_piece piece = {regions[0], 1000};
    open_all(moon_memory_heap());
    devices[0].breaks = true;
    MOON_CHECK_INT(run(&job, false, 0, &piece, 1), 0);
    while (job.done_count == 0 && net_wait(&net))
        settle();
    MOON_CHECK_INT(job.code, MOON_STORE_TRANSFER_FAIL);
    devices[0].breaks = false;
    size_t streams = net.stream_count;
    MOON_CHECK_INT(run(&job, false, 0, &piece, 1), 0);
    CU_ASSERT(net.stream_count > streams);
    MOON_CHECK_INT(job.code, 0);
    MOON_CHECK_INT(run(&job, false, BYTES - 1, &piece, 1), 0); /* larger than the region */
    MOON_CHECK_INT(job.code, MOON_STORE_TRANSFER_FAIL);
    close_all();
}

static void takes_memory_back(void) {
    struct moon_transfer *owner = NULL;
    static uint8_t more[16];
    open_all(moon_memory_heap());
    owner = net.nodes[1].transfer;
    MOON_CHECK_INT(moon_transfer_register(owner, more, base_address + (1 << 20), 16, true), MOON_ERR_RANGE);
    CU_ASSERT(!devices[1].memories[1].there);
    devices[1].refuses_memory = true;
    MOON_CHECK_INT(moon_transfer_register(owner, more, 0x5000, 16, true), MOON_ERR_IO);
    MOON_CHECK_INT(moon_transfer_unregister(owner, base_address + (1 << 20)), 0);
    CU_ASSERT(!devices[1].memories[0].there);
    close_all();
}

static void cancels_and_closes_under_way(void) {
    struct net_job job;
    struct moon_piece piece = {regions[0], 1000};
    open_all(moon_memory_heap());
    const char *owner = moon_transfer_endpoint(net.nodes[1].transfer);
    for (int round = 0; round < 2; round++) {
        MOON_CHECK_INT(net_submit(&net.nodes[0], &job, owner, false, base_address + (1 << 20), &piece, 1), 0);
        for (int most = 0; devices[0].work_count == 0 && most < 10000; most++)
            net_step(&net);
        MOON_CHECK_INT(devices[0].work_count, 1);
        if (round == 0)
            moon_transfer_cancel(net.nodes[0].transfer, &job.job);
        else
            net_stop(&net.nodes[0]);
        MOON_CHECK_INT(devices[0].work_count, 0);
        settle();
        MOON_CHECK_INT(job.done_count, 0);
    }
    close_all();
}

/* An engine without a device does not reach one with it, nor does it answer what only that understands. */
static void tcp_does_not_reach_verbs(void) {
    static const char nonsense[] = "\x04\0\0\0\0\0\0\0\0{]\n";
    struct net_job job;
    struct raw raw;
    uint8_t memory[4];
    struct moon_piece piece = {memory, 4};
    open_all(moon_memory_heap());
    struct net_node *node = net_add(&net, "10.7.0.3", moon_memory_heap());
    net_start(node, 0);
    MOON_CHECK_INT(
        net_submit(node, &job, moon_transfer_endpoint(net.nodes[1].transfer), false, base_address, &piece, 1), 0);
    settle();
    MOON_CHECK_INT(job.code, MOON_STORE_TRANSFER_FAIL);
    raw_dial(&raw, node, moon_transfer_endpoint(net.nodes[1].transfer));
    raw_send(&raw, nonsense, sizeof nonsense - 1);
    settle();
    CU_ASSERT(raw.ended && raw.length == 0);
    net_stop(node);
    close_all();
}

static void survives_refused_memory(void) {
    struct moon_piece piece = {regions[0], 1000};
    for (uint64_t fail_at = 1, refused = 1; refused && fail_at < 500; fail_at++) {
        struct moon_memory_failing failing;
        struct net_job job;
        moon_memory_failing_init(&failing, moon_memory_heap(), 0);
        open_all(&failing.memory);
        failing.fail_at = failing.requests + fail_at;
        int status = run(&job, true, 0, &piece, 1);
        while (!status && job.done_count == 0 && net_wait(&net))
            settle();
        MOON_CHECK_INT(job.done_count, status == 0);
        refused = failing.requests >= failing.fail_at;
        CU_ASSERT(refused || job.code == 0);
        failing.fail_at = 0;
        MOON_CHECK_INT(run(&job, true, 0, &piece, 1), 0);
        MOON_CHECK_INT(job.code, 0);
        close_all();
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
}

int main(int argc, char *argv[]) {
    const struct moon_unit_case cases[] = {
        {"a write and a read go over verbs, piece behind piece", moves_bytes_over_verbs},
        {"a job that failed makes the next one ask again", fails_and_asks_again},
        {"memory goes to the device and comes back from it", takes_memory_back},
        {"cancelled and closed jobs leave no work behind", cancels_and_closes_under_way},
        {"an engine without a device does not reach one with it", tcp_does_not_reach_verbs},
        {"refused memory leaks nothing", survives_refused_memory},
        {NULL, NULL},
    };
    return moon_unit_main("transfer over verbs", cases, argc, argv);
}
