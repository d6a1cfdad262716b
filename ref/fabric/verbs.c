/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs through libibverbs: ibv_post_send and ibv_poll_cq, not the extended completion queue, which the rxe provider of
 * rdma-core before 55 mishandles. */
#include "ref/fabric/verbs.h"

#include "ref/base/number.h"
#include "ref/fabric/tcp.h"
#include "ref/fabric/verbs_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

enum {
    WORK_MAX = 4096,  /* completions that there is room for (MC_MAX_CQE_PER_CTX) */
    BATCH = 64,       /* completions a turn */
    RECEIVE_WORK = 1, /* nothing is ever received; some devices want room for one */
};

/* The numbers of ref/base/verbs.h are those of the verbs. */
_Static_assert((int)MOON_VERBS_LOCAL_PROTECTION == (int)IBV_WC_LOC_PROT_ERR, "local protection");
_Static_assert((int)MOON_VERBS_FLUSHED == (int)IBV_WC_WR_FLUSH_ERR, "flushed");
_Static_assert((int)MOON_VERBS_REMOTE_ACCESS == (int)IBV_WC_REM_ACCESS_ERR, "remote access");
_Static_assert((int)MOON_VERBS_RETRIES_EXCEEDED == (int)IBV_WC_RETRY_EXC_ERR, "retries exceeded");
_Static_assert(sizeof(union ibv_gid) == MOON_GID_BYTES, "a GID has 16 bytes");

/* Rows are kept ordered by key (queue pair number, lkey). */
struct row {
    uint32_t key;
    void *object; /* struct ibv_qp, struct ibv_mr */
};

struct rows {
    struct row *rows;
    size_t count, capacity;
};

/* holders: handles that libuv still knows. */
struct moon_verbs_fabric {
    struct moon_verbs verbs; /* first member */
    struct moon_environment *environment;
    struct moon_memory *memory;
    void (*after)(void *context);
    void *context;
    uv_poll_t poll;
    uv_idle_t idle; /* runs while a batch was full */
    int holders;
    struct ibv_context *device;
    struct ibv_pd *domain;
    struct ibv_comp_channel *channel;
    struct ibv_cq *queue;
    uint8_t port;
    uint8_t gid_index, reads_max;
    struct rows pairs, regions;
};

static struct moon_verbs_fabric *fabric_of(struct moon_verbs *verbs) {
    return (struct moon_verbs_fabric *)verbs;
}

/* errno of a call that failed, never 0. */
static int reason(void) {
    return errno ? -errno : -EIO;
}

/* ---- rows */

/* Place of the first row whose key is not below. */
static size_t place(const struct rows *rows, uint32_t key) {
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rows->rows[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void *find(const struct rows *rows, uint32_t key) {
    size_t at = place(rows, key);
    return at < rows->count && rows->rows[at].key == key ? rows->rows[at].object : NULL;
}

/* Room for one more row. False: no memory. */
static bool reserve(struct moon_memory *memory, struct rows *rows) {
    if (rows->count < rows->capacity)
        return true;
    void *grown = moon_memory_grow(memory, rows->rows, &rows->capacity, rows->count + 1, sizeof *rows->rows, 16);
    rows->rows = grown ? grown : rows->rows;
    return grown != NULL;
}

static void add(struct rows *rows, uint32_t key, void *object) {
    size_t at = place(rows, key);
    memmove(&rows->rows[at + 1], &rows->rows[at], (rows->count - at) * sizeof *rows->rows);
    rows->rows[at] = (struct row){key, object};
    rows->count++;
}

static void *take(struct rows *rows, uint32_t key) {
    size_t at = place(rows, key);
    if (at == rows->count || rows->rows[at].key != key)
        return NULL;
    void *object = rows->rows[at].object;
    rows->count--;
    memmove(&rows->rows[at], &rows->rows[at + 1], (rows->count - at) * sizeof *rows->rows);
    return object;
}

/* ---- operations */

static int register_memory(struct moon_verbs *self, void *memory, uint64_t address, size_t length, bool remote,
                           uint32_t *lkey, uint32_t *rkey) {
    struct moon_verbs_fabric *fabric = fabric_of(self);
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE : 0);
    if (!reserve(fabric->memory, &fabric->regions))
        return -ENOMEM;
    struct ibv_mr *region = ibv_reg_mr_iova(fabric->domain, memory, length, address, access);
    if (!region)
        return reason();
    add(&fabric->regions, region->lkey, region);
    *lkey = region->lkey;
    *rkey = region->rkey;
    return 0;
}

static int deregister_memory(struct moon_verbs *self, uint32_t lkey) {
    struct ibv_mr *region = take(&fabric_of(self)->regions, lkey);
    return region ? -ibv_dereg_mr(region) : -ENOENT;
}

static int create(struct moon_verbs *self, uint32_t depth, uint32_t *qp_num) {
    struct moon_verbs_fabric *fabric = fabric_of(self);
    struct ibv_qp_init_attr wanted = {
        .send_cq = fabric->queue,
        .recv_cq = fabric->queue,
        .cap = {.max_send_wr = depth, .max_recv_wr = RECEIVE_WORK, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                     .port_num = fabric->port,
                                     .qp_access_flags =
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    if (!reserve(fabric->memory, &fabric->pairs))
        return -ENOMEM;
    struct ibv_qp *pair = ibv_create_qp(fabric->domain, &wanted);
    if (!pair)
        return reason();
    int status = ibv_modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (status) {
        ibv_destroy_qp(pair);
        return -status;
    }
    add(&fabric->pairs, pair->qp_num, pair);
    *qp_num = pair->qp_num;
    return 0;
}

/* 256 is IBV_MTU_256 (1), and so on to 4096. */
static enum ibv_mtu mtu_code(uint32_t bytes) {
    int code = IBV_MTU_256;
    while (code < IBV_MTU_4096 && bytes > 128u << code)
        code++;
    return (enum ibv_mtu)code;
}

static int connect_pair(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_path *path) {
    struct moon_verbs_fabric *fabric = fabric_of(self);
    struct ibv_qp *pair = find(&fabric->pairs, qp_num);
    uint8_t reads = (uint8_t)moon_smaller(path->reads, fabric->reads_max);
    struct ibv_qp_attr to_receive = {.qp_state = IBV_QPS_RTR,
                                     .path_mtu = mtu_code(path->mtu_bytes),
                                     .dest_qp_num = path->peer.qp_num,
                                     .rq_psn = path->psn,
                                     .max_dest_rd_atomic = reads,
                                     .min_rnr_timer = path->rnr_timer,
                                     .ah_attr = {.grh = {.sgid_index = fabric->gid_index, .hop_limit = path->hop_limit},
                                                 .dlid = path->peer.lid,
                                                 .is_global = 1,
                                                 .port_num = fabric->port}};
    struct ibv_qp_attr to_send = {.qp_state = IBV_QPS_RTS,
                                  .timeout = path->timeout,
                                  .retry_cnt = path->retries,
                                  .rnr_retry = path->rnr_retries,
                                  .sq_psn = path->psn,
                                  .max_rd_atomic = reads};
    if (!pair)
        return -ENOENT;
    memcpy(to_receive.ah_attr.grh.dgid.raw, path->peer.gid, MOON_GID_BYTES);
    int status = ibv_modify_qp(pair, &to_receive,
                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (!status)
        status = ibv_modify_qp(pair, &to_send,
                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                   IBV_QP_MAX_QP_RD_ATOMIC);
    return -status;
}

static void destroy(struct moon_verbs *self, uint32_t qp_num) {
    struct ibv_qp *pair = take(&fabric_of(self)->pairs, qp_num);
    if (pair)
        ibv_destroy_qp(pair);
}

static int post(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_work *work) {
    struct ibv_qp *pair = find(&fabric_of(self)->pairs, qp_num);
    struct ibv_sge piece = {.addr = work->local, .length = work->length, .lkey = work->lkey};
    struct ibv_send_wr request = {.wr_id = work->id,
                                  .sg_list = &piece,
                                  .num_sge = 1,
                                  .opcode = work->write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma = {.remote_addr = work->remote, .rkey = work->rkey}};
    struct ibv_send_wr *bad = NULL;
    return pair ? -ibv_post_send(pair, &request, &bad) : -ENOENT;
}

/* ---- completions */

static void poll_queue(struct moon_verbs_fabric *fabric) {
    struct ibv_wc completions[BATCH];
    int count = ibv_poll_cq(fabric->queue, BATCH, completions);
    moon_tcp_clocks(fabric->environment);
    for (int i = 0; i < count; i++)
        /* The device may still hold completions of a queue pair that was destroyed. */
        if (fabric->verbs.user && find(&fabric->pairs, completions[i].qp_num))
            fabric->verbs.user->completed(fabric->verbs.user, completions[i].qp_num, completions[i].wr_id,
                                          (int)completions[i].status);
    if (count < BATCH)
        uv_idle_stop(&fabric->idle);
    fabric->after(fabric->context);
}

static void on_idle(uv_idle_t *idle) {
    poll_queue(idle->data);
}

/* Once it is armed again, what is in the queue by then is ours to poll: all of it, a batch a turn. */
static void on_event(uv_poll_t *poll, int status, int events) {
    struct moon_verbs_fabric *fabric = poll->data;
    struct ibv_cq *queue = NULL;
    void *context = NULL;
    (void)status;
    (void)events;
    if (ibv_get_cq_event(fabric->channel, &queue, &context))
        return;
    ibv_ack_cq_events(queue, 1);
    ibv_req_notify_cq(queue, 0);
    uv_idle_start(&fabric->idle, on_idle);
    poll_queue(fabric);
}

/* ---- opening and closing */

static int refused(struct moon_error *error, const char *device, const char *what) {
    return moon_fail(error, MOON_ERR_IO, NULL, "%s of device %s: %s", what, device, strerrordesc_np(-reason()));
}

static int open_device(struct moon_verbs_fabric *fabric, const char *name, struct moon_error *error) {
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_device *found = NULL;
    for (int i = 0; list && i < count && !found; i++)
        if (!name || strcmp(ibv_get_device_name(list[i]), name) == 0)
            found = list[i];
    fabric->device = found ? ibv_open_device(found) : NULL;
    int status = MOON_OK;
    if (!found)
        status = moon_fail(error, MOON_ERR_RANGE, NULL, "no RDMA device%s%s on this machine (%d others)",
                           name ? " named " : "", name ? name : "", count);
    else if (!fabric->device)
        status = refused(error, ibv_get_device_name(found), "opening");
    else
        snprintf(fabric->verbs.name, sizeof fabric->verbs.name, "%s", ibv_get_device_name(found));
    if (list)
        ibv_free_device_list(list);
    return status;
}

static int choose_gid(struct moon_verbs_fabric *fabric, const char *host, struct moon_error *error) {
    struct moon_verbs_gid rows[MOON_VERBS_GIDS_MAX];
    uint8_t wanted[MOON_GID_BYTES];
    if (host && !moon_verbs_host_gid(host, wanted))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "\"%s\" is no numeric address", host);
    size_t count = moon_verbs_read_gids(fabric->device, fabric->port, rows);
    int chosen = moon_verbs_choose_gid(rows, count, host ? wanted : NULL);
    if (chosen < 0)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "device %s has no GID for %s", fabric->verbs.name,
                         host ? host : "any address");
    memcpy(fabric->verbs.gid, rows[chosen].gid, MOON_GID_BYTES);
    fabric->gid_index = (uint8_t)rows[chosen].index;
    return MOON_OK;
}

static int read_port(struct moon_verbs_fabric *fabric, const char *host, struct moon_error *error) {
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    const char *name = fabric->verbs.name;
    assert(fabric->device);
    if (ibv_query_device(fabric->device, &device) || ibv_query_port(fabric->device, fabric->port, &port))
        return refused(error, name, "reading the port");
    if (port.state != IBV_PORT_ACTIVE)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "port %u of device %s is %s, not active", fabric->port, name,
                         ibv_port_state_str(port.state));
    fabric->verbs.lid = port.lid;
    fabric->verbs.mtu_bytes = 128u << port.active_mtu;
    /* Twice the room: those of queue pairs that are destroyed lie there until they are polled. */
    fabric->verbs.work_max = (uint32_t)moon_larger(moon_smaller(WORK_MAX, device.max_cqe / 2), 1);
    fabric->reads_max = (uint8_t)moon_smaller(moon_smaller(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 255);
    return choose_gid(fabric, host, error);
}

static int open_queue(struct moon_verbs_fabric *fabric, struct moon_error *error) {
    fabric->domain = ibv_alloc_pd(fabric->device);
    fabric->channel = ibv_create_comp_channel(fabric->device);
    if (!fabric->domain || !fabric->channel)
        return refused(error, fabric->verbs.name, "a protection domain");
    fabric->queue = ibv_create_cq(fabric->device, (int)(2 * fabric->verbs.work_max), NULL, fabric->channel, 0);
    if (!fabric->queue)
        return refused(error, fabric->verbs.name, "a completion queue");
    int flags = fcntl(fabric->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(fabric->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0 || ibv_req_notify_cq(fabric->queue, 0))
        return refused(error, fabric->verbs.name, "completion events");
    return MOON_OK;
}

static void close_device(struct moon_verbs_fabric *fabric) {
    for (size_t i = 0; i < fabric->pairs.count; i++)
        ibv_destroy_qp(fabric->pairs.rows[i].object);
    for (size_t i = 0; i < fabric->regions.count; i++)
        ibv_dereg_mr(fabric->regions.rows[i].object);
    if (fabric->queue)
        ibv_destroy_cq(fabric->queue);
    if (fabric->channel)
        ibv_destroy_comp_channel(fabric->channel);
    if (fabric->domain)
        ibv_dealloc_pd(fabric->domain);
    if (fabric->device)
        ibv_close_device(fabric->device);
}

static void free_fabric(struct moon_verbs_fabric *fabric) {
    struct moon_memory *memory = fabric->memory;
    memory->resize(memory, fabric->pairs.rows, fabric->pairs.capacity * sizeof(struct row), 0);
    memory->resize(memory, fabric->regions.rows, fabric->regions.capacity * sizeof(struct row), 0);
    memory->resize(memory, fabric, sizeof *fabric, 0);
}

int moon_verbs_fabric_open(uv_loop_t *loop, struct moon_environment *environment,
                           const struct moon_verbs_settings *settings, void (*after)(void *context), void *context,
                           struct moon_verbs_fabric **fabric, struct moon_error *error) {
    struct moon_memory *memory = environment->memory;
    struct moon_verbs_fabric *made = memory->resize(memory, NULL, 0, sizeof *made);
    if (!made)
        return moon_no_memory(error);
    *made = (struct moon_verbs_fabric){.verbs = {.register_memory = register_memory,
                                                 .deregister_memory = deregister_memory,
                                                 .create = create,
                                                 .connect = connect_pair,
                                                 .destroy = destroy,
                                                 .post = post},
                                       .environment = environment,
                                       .memory = memory,
                                       .after = after,
                                       .context = context,
                                       .port = settings->port,
                                       .holders = 2};
    int status = open_device(made, settings->device, error);
    if (!status)
        status = read_port(made, settings->host, error);
    if (!status)
        status = open_queue(made, error);
    if (status) {
        close_device(made);
        free_fabric(made);
        return status;
    }
    uv_poll_init(loop, &made->poll, made->channel->fd);
    uv_idle_init(loop, &made->idle);
    made->poll.data = made->idle.data = made;
    uv_poll_start(&made->poll, UV_READABLE, on_event);
    *fabric = made;
    return MOON_OK;
}

struct moon_verbs *moon_verbs_fabric_verbs(struct moon_verbs_fabric *fabric) {
    return &fabric->verbs;
}

static void handle_closed(uv_handle_t *handle) {
    struct moon_verbs_fabric *fabric = handle->data;
    if (--fabric->holders == 0)
        free_fabric(fabric);
}

void moon_verbs_fabric_close(struct moon_verbs_fabric *fabric) {
    uv_poll_stop(&fabric->poll);
    close_device(fabric);
    uv_close((uv_handle_t *)&fabric->poll, handle_closed);
    uv_close((uv_handle_t *)&fabric->idle, handle_closed);
}
