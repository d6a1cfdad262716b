/* SPDX-License-Identifier: Apache-2.0 */
/* A model of RDMA verbs: registered memory, queue pairs, one-sided reads and writes that take time (SIM-008). */
#include "sim/sim_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum {
    MTU_BYTES = 1024,
    BURST_MTUS_MAX = 8, /* packets that pass at one time; between two bursts others may change the memory */
    WORK_MAX = 4096,
    QP_NUM_MAX = (1 << 24) - 1,
    TIMEOUT_MAX = 31,
    RETRIES_MAX = 7,
};
#define TIMEOUT_UNIT_NS ((moon_ns)4096)

struct moon_sim_region {
    struct moon_sim_region *next;
    unsigned char *memory;
    uint64_t address;
    size_t length;
    uint32_t lkey, rkey;
    bool remote;
};

struct work {
    struct work *next;
    struct moon_verbs_work asked;
    uint32_t done_bytes;
};

enum state { STATE_INIT, STATE_CONNECTED, STATE_ERROR };

/* One work request of a queue pair is under way at a time: the first. */
struct moon_sim_queue_pair {
    struct moon_sim_queue_pair *next;
    struct moon_sim_node *node;
    uint32_t qp_num;
    enum state state;
    struct moon_verbs_path path;
    struct work *works, *works_last;
    uint32_t depth, work_count;
    uint32_t retries; /* so far, of the first request */
    struct moon_sim_event step;
};

struct moon_sim_completion {
    struct moon_sim_completion *next;
    uint32_t qp_num;
    uint64_t id;
    int status;
};

static struct moon_sim_node *node_of(struct moon_verbs *self) {
    return MOON_SIM_OWNER(self, struct moon_sim_node, verbs);
}

/* ---- finding */

static struct moon_sim_queue_pair *find_queue_pair(const struct moon_sim_node *node, uint32_t qp_num) {
    struct moon_sim_queue_pair *qp = node->verbs.queue_pairs;
    while (qp && qp->qp_num != qp_num)
        qp = qp->next;
    return qp;
}

static struct moon_sim_node *find_node(const struct moon_sim *sim, const uint8_t gid[MOON_GID_BYTES]) {
    struct moon_sim_node *node = sim->nodes;
    while (node && memcmp(node->verbs.verbs.gid, gid, MOON_GID_BYTES) != 0)
        node = node->next;
    return node;
}

/* Where `length` bytes from `address` on are, if a region with this key has them. NULL: a protection error. */
static unsigned char *translate(const struct moon_sim_node *node, bool remote, uint32_t key, uint64_t address,
                                uint32_t length) {
    const struct moon_sim_region *region = node->verbs.regions;
    while (region && (remote ? region->rkey : region->lkey) != key)
        region = region->next;
    if (!region || (remote && !region->remote) || address < region->address)
        return NULL;
    uint64_t offset = address - region->address;
    return offset <= region->length && region->length - offset >= length ? region->memory + offset : NULL;
}

/* ---- completions */

static void run_complete(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_node *node = MOON_SIM_OWNER(event, struct moon_sim_node, verbs.complete);
    struct moon_sim_verbs *verbs = &node->verbs;
    struct moon_sim_completion *first = verbs->completions;
    if (!first || !moon_sim_awake(node))
        return;
    struct moon_sim_completion completion = *first;
    verbs->completions = first->next;
    if (!verbs->completions)
        verbs->completions_last = NULL;
    moon_sim_free(sim, first, sizeof *first);
    struct moon_verbs_user *user = verbs->verbs.user;
    if (verbs->completions)
        moon_sim_event_set(sim, &verbs->complete, sim->now_ns);
    moon_sim_enter(node);
    if (user)
        user->completed(user, completion.qp_num, completion.id, completion.status);
    moon_sim_leave(node);
}

/* Ends the first work request. */
static void complete(struct moon_sim_queue_pair *qp, int status) {
    struct moon_sim *sim = qp->node->sim;
    struct moon_sim_verbs *verbs = &qp->node->verbs;
    struct work *work = qp->works;
    struct moon_sim_completion *completion = moon_sim_alloc(sim, sizeof *completion);
    if (completion) {
        *completion = (struct moon_sim_completion){.qp_num = qp->qp_num, .id = work->asked.id, .status = status};
        if (verbs->completions_last)
            verbs->completions_last->next = completion;
        else
            verbs->completions = completion;
        verbs->completions_last = completion;
        if (!moon_sim_event_waits(&verbs->complete))
            moon_sim_event_set(sim, &verbs->complete, sim->now_ns);
    }
    qp->works = work->next;
    if (!qp->works)
        qp->works_last = NULL;
    qp->work_count--;
    moon_sim_free(sim, work, sizeof *work);
}

static void drop_completions(struct moon_sim_node *node, const uint32_t *qp_num) {
    struct moon_sim_verbs *verbs = &node->verbs;
    struct moon_sim_completion **at = &verbs->completions;
    verbs->completions_last = NULL;
    while (*at) {
        struct moon_sim_completion *completion = *at;
        if (!qp_num || completion->qp_num == *qp_num) {
            *at = completion->next;
            moon_sim_free(node->sim, completion, sizeof *completion);
        } else {
            verbs->completions_last = completion;
            at = &completion->next;
        }
    }
}

/* ---- work */

static void step_after(struct moon_sim_queue_pair *qp, moon_ns least_ns, moon_ns most_ns) {
    struct moon_sim *sim = qp->node->sim;
    moon_ns delay_ns = moon_random_between(&qp->node->verbs.random, least_ns, most_ns);
    moon_sim_event_set(sim, &qp->step, sim->now_ns + delay_ns);
}

/* The first work request goes on its way. */
static void start(struct moon_sim_queue_pair *qp) {
    const struct moon_sim_settings *settings = &qp->node->sim->settings;
    qp->retries = 0;
    if (qp->works)
        step_after(qp, settings->delay_min_ns, settings->delay_max_ns);
}

static void fail(struct moon_sim_queue_pair *qp, int status) {
    qp->state = STATE_ERROR;
    complete(qp, status);
    while (qp->works)
        complete(qp, MOON_VERBS_FLUSHED);
}

/* The peer's queue pair, if it can be reached, and is connected to this one. */
static const struct moon_sim_queue_pair *reach(const struct moon_sim_queue_pair *qp) {
    const struct moon_sim_node *node = find_node(qp->node->sim, qp->path.peer.gid);
    const struct moon_sim_queue_pair *peer = node ? find_queue_pair(node, qp->path.peer.qp_num) : NULL;
    bool good = peer && peer->state == STATE_CONNECTED && peer->path.peer.qp_num == qp->qp_num &&
                peer->path.psn == qp->path.psn &&
                memcmp(peer->path.peer.gid, qp->node->verbs.verbs.gid, MOON_GID_BYTES) == 0;
    return good && !moon_sim_blocked(qp->node, node) ? peer : NULL;
}

/* Some packets' worth of bytes, as both memories are at this moment. */
static void move_burst(struct moon_sim_queue_pair *qp, struct work *work, unsigned char *local, unsigned char *remote) {
    uint64_t burst = (moon_random_below(&qp->node->verbs.random, BURST_MTUS_MAX) + 1) * qp->path.mtu_bytes;
    uint32_t left = work->asked.length - work->done_bytes, bytes = left < burst ? left : (uint32_t)burst;
    local += work->done_bytes;
    remote += work->done_bytes;
    memcpy(work->asked.write ? remote : local, work->asked.write ? local : remote, bytes);
    work->done_bytes += bytes;
}

static void try_again(struct moon_sim_queue_pair *qp) {
    moon_ns timeout_ns = TIMEOUT_UNIT_NS << qp->path.timeout;
    if (qp->retries++ == qp->path.retries)
        fail(qp, MOON_VERBS_RETRIES_EXCEEDED);
    else
        step_after(qp, timeout_ns, timeout_ns);
}

static void run_step(struct moon_sim *sim, struct moon_sim_event *event) {
    struct moon_sim_queue_pair *qp = MOON_SIM_OWNER(event, struct moon_sim_queue_pair, step);
    const struct moon_sim_queue_pair *peer = reach(qp);
    struct work *work = qp->works;
    const struct moon_verbs_work *asked = &work->asked;
    if (!peer) {
        try_again(qp);
        return;
    }
    qp->retries = 0;
    unsigned char *local = translate(qp->node, false, asked->lkey, asked->local, asked->length);
    unsigned char *remote = translate(peer->node, true, asked->rkey, asked->remote, asked->length);
    if (!local) {
        fail(qp, MOON_VERBS_LOCAL_PROTECTION);
    } else if (!remote) {
        fail(qp, MOON_VERBS_REMOTE_ACCESS);
    } else if (work->done_bytes < asked->length) {
        move_burst(qp, work, local, remote);
        bool last = work->done_bytes == asked->length;
        step_after(qp, last ? sim->settings.delay_min_ns : 0, last ? sim->settings.delay_max_ns : MTU_BYTES);
    } else {
        complete(qp, MOON_VERBS_OK);
        start(qp);
    }
}

/* ---- operations */

static uint32_t draw_key(struct moon_sim_node *node) {
    const struct moon_sim_region *region;
    uint32_t key;
    do {
        key = (uint32_t)moon_random_u64(&node->verbs.random);
        region = node->verbs.regions;
        while (region && region->lkey != key && region->rkey != key)
            region = region->next;
    } while (key == 0 || region);
    return key;
}

static int register_memory(struct moon_verbs *self, void *memory, uint64_t address, size_t length, bool remote,
                           uint32_t *lkey, uint32_t *rkey) {
    struct moon_sim_node *node = node_of(self);
    if (length == 0)
        return -EINVAL;
    struct moon_sim_region *region = moon_sim_alloc(node->sim, sizeof *region);
    if (!region)
        return -ENOMEM;
    region->memory = memory;
    region->address = address;
    region->length = length;
    region->remote = remote;
    region->lkey = draw_key(node);
    region->next = node->verbs.regions;
    node->verbs.regions = region;
    region->rkey = draw_key(node);
    *lkey = region->lkey;
    *rkey = region->rkey;
    return 0;
}

static int deregister_memory(struct moon_verbs *self, uint32_t lkey) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_region **at = &node->verbs.regions;
    while (*at && (*at)->lkey != lkey)
        at = &(*at)->next;
    struct moon_sim_region *region = *at;
    if (!region)
        return -EINVAL;
    *at = region->next;
    moon_sim_free(node->sim, region, sizeof *region);
    return 0;
}

static int create(struct moon_verbs *self, uint32_t depth, uint32_t *qp_num) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_queue_pair *qp = moon_sim_alloc(node->sim, sizeof *qp);
    if (!qp)
        return -ENOMEM;
    do
        qp->qp_num = (uint32_t)moon_random_below(&node->verbs.random, QP_NUM_MAX) + 1;
    while (find_queue_pair(node, qp->qp_num));
    qp->node = node;
    qp->depth = depth;
    qp->step.run = run_step;
    qp->next = node->verbs.queue_pairs;
    node->verbs.queue_pairs = qp;
    *qp_num = qp->qp_num;
    return 0;
}

static bool is_good(const struct moon_verbs_path *path) {
    uint32_t mtu = path->mtu_bytes;
    return mtu >= 256 && mtu <= MTU_BYTES && (mtu & (mtu - 1)) == 0 && path->timeout > 0 &&
           path->timeout <= TIMEOUT_MAX && path->retries <= RETRIES_MAX;
}

static int connect_to(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_path *path) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_queue_pair *qp = find_queue_pair(node, qp_num);
    if (!qp || qp->state != STATE_INIT || !is_good(path))
        return -EINVAL;
    if (!find_node(node->sim, path->peer.gid))
        return -EHOSTUNREACH;
    qp->path = *path;
    qp->state = STATE_CONNECTED;
    return 0;
}

static void free_queue_pair(struct moon_sim *sim, struct moon_sim_queue_pair *qp) {
    while (qp->works) {
        struct work *work = qp->works;
        qp->works = work->next;
        moon_sim_free(sim, work, sizeof *work);
    }
    moon_sim_event_cancel(sim, &qp->step);
    moon_sim_free(sim, qp, sizeof *qp);
}

static void destroy(struct moon_verbs *self, uint32_t qp_num) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_queue_pair **at = &node->verbs.queue_pairs;
    while (*at && (*at)->qp_num != qp_num)
        at = &(*at)->next;
    struct moon_sim_queue_pair *qp = *at;
    assert(qp && "no such queue pair");
    *at = qp->next;
    drop_completions(node, &qp_num);
    free_queue_pair(node->sim, qp);
}

static int post(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_work *asked) {
    struct moon_sim_node *node = node_of(self);
    struct moon_sim_queue_pair *qp = find_queue_pair(node, qp_num);
    if (!qp || qp->state != STATE_CONNECTED || asked->length == 0)
        return -EINVAL;
    struct work *work = qp->work_count < qp->depth ? moon_sim_alloc(node->sim, sizeof *work) : NULL;
    if (!work)
        return -ENOMEM;
    work->asked = *asked;
    qp->work_count++;
    if (qp->works_last)
        qp->works_last->next = work;
    else
        qp->works = work;
    qp->works_last = work;
    if (qp->works == work)
        start(qp);
    return 0;
}

/* ---- of the node */

/* IPv4 hosts have the address that maps them into IPv6; others one of their number. */
static void set_gid(struct moon_sim_node *node) {
    uint8_t *gid = node->verbs.verbs.gid;
    unsigned a, b, c, d, number = 1;
    for (const struct moon_sim_node *other = node->sim->nodes; other; other = other->next)
        number++;
    if (sscanf(node->host.data, "%3u.%3u.%3u.%3u", &a, &b, &c, &d) == 4) {
        const uint8_t mapped[MOON_GID_BYTES] = {[10] = 0xff, 0xff, (uint8_t)a, (uint8_t)b, (uint8_t)c, (uint8_t)d};
        memcpy(gid, mapped, sizeof mapped);
    } else {
        const uint8_t local[MOON_GID_BYTES] = {0xfe, 0x80, [14] = (uint8_t)(number >> 8), (uint8_t)number};
        memcpy(gid, local, sizeof local);
    }
}

void moon_sim_verbs_open(struct moon_sim_node *node) {
    struct moon_sim_verbs *verbs = &node->verbs;
    struct moon_random random = moon_random_split(&node->sim->root, "verbs");
    verbs->random = moon_random_split(&random, node->name.data);
    verbs->complete.run = run_complete;
    verbs->verbs = (struct moon_verbs){
        .name = "sim0",
        .mtu_bytes = MTU_BYTES,
        .work_max = WORK_MAX,
        .register_memory = register_memory,
        .deregister_memory = deregister_memory,
        .create = create,
        .connect = connect_to,
        .destroy = destroy,
        .post = post,
    };
    set_gid(node);
}

void moon_sim_verbs_reset(struct moon_sim_node *node) {
    struct moon_sim_verbs *verbs = &node->verbs;
    while (verbs->queue_pairs) {
        struct moon_sim_queue_pair *qp = verbs->queue_pairs;
        verbs->queue_pairs = qp->next;
        free_queue_pair(node->sim, qp);
    }
    while (verbs->regions) {
        struct moon_sim_region *region = verbs->regions;
        verbs->regions = region->next;
        moon_sim_free(node->sim, region, sizeof *region);
    }
    drop_completions(node, NULL);
    moon_sim_event_cancel(node->sim, &verbs->complete);
    verbs->verbs.user = NULL;
}

void moon_sim_verbs_go_on(struct moon_sim_node *node) {
    if (node->verbs.completions && !moon_sim_event_waits(&node->verbs.complete))
        moon_sim_event_set(node->sim, &node->verbs.complete, node->sim->now_ns);
}
