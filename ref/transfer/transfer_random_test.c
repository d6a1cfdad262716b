/* SPDX-License-Identifier: Apache-2.0 */
/* Tests with engines on both sides: random jobs against a byte-exact model, breaks, refused memory, records. */
#include "ref/base/unit.h"
#include "ref/transfer/net_internal.h"

enum { NODES = 3, SLOTS = 24, PIECES = 6, ROUNDS = 60 };
static const uint64_t base_address = 0x100000000;

/* What a slot of a region may hold: what the model says; that, but perhaps later, after a write of version 1; or
 * anything, after a write that did not succeed. */
struct slot {
    bool taken, late, unknown;
};

struct task {
    struct net_job job; /* first member */
    struct net_node *node;
    struct moon_piece pieces[PIECES];
    uint8_t *memory;
    size_t length;
    int target, slot;
    uint64_t offset; /* of its first byte, in the region */
    bool open;
};

struct world {
    struct net net;
    uint8_t *regions[NODES], *model[NODES];
    size_t slot_bytes;
    struct slot slots[NODES][SLOTS];
    struct task tasks[16];
    int finished, failed;
    bool old; /* the second node speaks version 1 */
};

static void open_world(struct world *world, uint64_t seed, struct moon_memory *memory, size_t slot_bytes) {
    memset(world, 0, sizeof *world);
    net_open(&world->net, seed);
    world->slot_bytes = slot_bytes;
    world->old = seed % 4 == 0;
    for (int i = 0; i < NODES; i++) {
        char host[32];
        snprintf(host, sizeof host, "10.0.0.%d", i + 1);
        struct net_node *node = net_add(&world->net, host, memory);
        net_start(node, world->old && i == 1 ? 1 : 2);
        world->regions[i] = malloc(SLOTS * slot_bytes);
        world->model[i] = malloc(SLOTS * slot_bytes);
        assert(world->regions[i] && world->model[i]);
        moon_random_fill(&world->net.random, world->model[i], SLOTS * slot_bytes);
        memcpy(world->regions[i], world->model[i], SLOTS * slot_bytes);
        int status = moon_transfer_register(node->transfer, world->regions[i], base_address, SLOTS * slot_bytes, true);
        assert(status == 0);
        (void)status;
    }
}

static void close_world(struct world *world) {
    for (int i = 0; i < NODES; i++) {
        net_stop(&world->net.nodes[i]);
        for (size_t j = 0; j < sizeof world->tasks / sizeof *world->tasks; j++)
            if (world->tasks[j].open && world->tasks[j].node == &world->net.nodes[i])
                free(world->tasks[j].memory);
    }
    net_settle(&world->net);
    net_close(&world->net);
    for (int i = 0; i < NODES; i++) {
        free(world->regions[i]);
        free(world->model[i]);
    }
}

/* Every byte that is known is what the model says. */
static void check_regions(const struct world *world) {
    for (int i = 0; i < NODES; i++)
        for (int slot = 0; slot < SLOTS; slot++) {
            size_t at = (size_t)slot * world->slot_bytes;
            const struct slot *state = &world->slots[i][slot];
            if (!state->taken && !state->unknown &&
                memcmp(world->regions[i] + at, world->model[i] + at, world->slot_bytes) != 0)
                CU_FAIL("memory that is not what was written");
        }
}

static size_t random_length(struct moon_random *random, size_t most) {
    size_t length = (size_t)moon_random_below(random, (uint64_t)1 << moon_random_below(random, 20));
    return length < most ? length : most;
}

static void end_task(struct world *world, struct task *task) {
    struct slot *slot = &world->slots[task->target][task->slot];
    uint8_t *model = world->model[task->target] + task->offset;
    MOON_CHECK_INT(task->job.done_count, 1);
    CU_ASSERT(!net_uses(task->node, task->memory, task->length));
    if (task->job.code == 0 && task->job.job.write)
        memcpy(model, task->memory, task->length);
    else if (task->job.code == 0)
        CU_ASSERT(memcmp(model, task->memory, task->length) == 0);
    world->failed += task->job.code != 0;
    world->finished++;
    slot->late = task->job.job.write && world->old;
    slot->unknown = slot->unknown || (task->job.code != 0 && task->job.job.write);
    slot->taken = false;
    free(task->memory);
    task->open = false;
}

/* A read or write of random pieces in a slot that nobody uses. False: there is none. */
static bool begin_task(struct world *world, struct task *task) {
    struct moon_random *random = &world->net.random;
    int source = (int)moon_random_below(random, NODES), target = (int)moon_random_below(random, NODES);
    int slot = (int)moon_random_below(random, SLOTS);
    const struct slot *state = &world->slots[target][slot];
    if (state->taken || state->late || state->unknown)
        return false;
    *task = (struct task){.node = &world->net.nodes[source], .target = target, .slot = slot};
    size_t count = (size_t)moon_random_below(random, PIECES + 1), lengths[PIECES], used = 0;
    for (size_t i = 0; i < count; i++) {
        lengths[i] = moon_random_chance(random, 1, 8) ? 0 : random_length(random, world->slot_bytes - task->length);
        task->length += lengths[i];
    }
    task->memory = malloc(task->length + 1);
    assert(task->memory);
    moon_random_fill(random, task->memory, task->length);
    for (size_t i = 0; i < count; i++) {
        task->pieces[i] = (struct moon_piece){task->memory + used, lengths[i]};
        used += lengths[i];
    }
    task->offset = (uint64_t)slot * world->slot_bytes + moon_random_below(random, world->slot_bytes - task->length + 1);
    int status = net_submit(task->node, &task->job, moon_transfer_endpoint(world->net.nodes[target].transfer),
                            moon_random_chance(random, 1, 2), base_address + task->offset, task->pieces, count);
    if (status) {
        MOON_CHECK_INT(status, MOON_ERR_MEMORY);
        free(task->memory);
        return false;
    }
    task->open = world->slots[target][slot].taken = true;
    return true;
}

static void look_at_tasks(struct world *world) {
    for (size_t i = 0; i < sizeof world->tasks / sizeof *world->tasks; i++)
        if (world->tasks[i].open && world->tasks[i].job.done_count > 0)
            end_task(world, &world->tasks[i]);
}

/* Breaks a connection, or cancels a task. */
static void hurt(struct world *world) {
    struct moon_random *random = &world->net.random;
    struct task *task = &world->tasks[moon_random_below(random, 16)];
    const struct net_node *node = &world->net.nodes[moon_random_below(random, NODES)];
    struct net_stream *stream = net_find(node, false, (size_t)moon_random_below(random, 6));
    if (moon_random_chance(random, 1, 2)) {
        if (stream && !stream->connecting)
            net_break(stream);
    } else if (task->open && task->job.done_count == 0) {
        moon_transfer_cancel(task->node->transfer, &task->job.job);
        CU_ASSERT(!net_uses(task->node, task->memory, task->length));
        world->slots[task->target][task->slot].unknown |= task->job.job.write;
        world->slots[task->target][task->slot].taken = false;
        free(task->memory);
        task->open = false;
    }
}

static void run_tasks(struct world *world, int count, unsigned hurt_in) {
    for (int begun = 0, idle = 0; begun < count && idle < 10000; idle++) {
        struct task *task = &world->tasks[moon_random_below(&world->net.random, 16)];
        if (!task->open && moon_random_chance(&world->net.random, 1, 4))
            begun += begin_task(world, task);
        if (hurt_in && moon_random_chance(&world->net.random, 1, hurt_in))
            hurt(world);
        for (int i = 0; i < NODES; i++) {
            CU_ASSERT(net_count(&world->net.nodes[i], false) <= MOON_TRANSFER_LANES * (NODES - 1) + NODES);
        }
        for (int steps = (int)moon_random_below(&world->net.random, 20); steps > 0; steps--)
            net_step(&world->net);
        look_at_tasks(world);
    }
    net_settle(&world->net);
    look_at_tasks(world);
    for (size_t i = 0; i < 16; i++)
        CU_ASSERT(!world->tasks[i].open);
    check_regions(world);
}

static void random_jobs_agree_with_a_model(void) {
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct world world;
        open_world(&world, seed, moon_memory_heap(), seed % 2 ? 1 << 12 : 1 << 17);
        world.net.piece_bytes_max = seed % 3 ? 1 << 15 : 1 << 9;
        run_tasks(&world, ROUNDS, 0);
        MOON_CHECK_INT(world.failed, 0);
        CU_ASSERT(world.finished >= ROUNDS);
        close_world(&world);
    }
}

static void random_breaks_fail_jobs_once_and_others_not(void) {
    int failed = 0, finished = 0;
    for (uint64_t seed = 101; seed < 140; seed += 2) {
        struct world world;
        open_world(&world, seed, moon_memory_heap(), 1 << 14);
        world.net.piece_bytes_max = seed % 3 ? 1 << 13 : 1 << 9;
        run_tasks(&world, ROUNDS, 6);
        failed += world.failed;
        finished += world.finished;
        run_tasks(&world, 5, 0); /* all is well again, but for a first word to a lane that had just broken */
        close_world(&world);
    }
    CU_ASSERT(failed > 20);
    CU_ASSERT(finished - failed > 2 * failed);
}

static void refused_memory_leaks_nothing(void) {
    for (uint64_t fail_at = 1; fail_at < 400; fail_at += 1 + fail_at / 20) {
        struct world world;
        struct moon_memory_failing failing;
        moon_memory_failing_init(&failing, moon_memory_heap(), 0);
        open_world(&world, 7, &failing.memory, 1 << 12);
        failing.fail_at = failing.requests + fail_at;
        run_tasks(&world, 10, 0);
        failing.fail_at = 0;
        while (net_wait(&world.net)) {
        }
        look_at_tasks(&world);
        int failed = world.failed;
        run_tasks(&world, 10, 0);
        MOON_CHECK_INT(world.failed, failed);
        close_world(&world);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
}

static int open_one(struct moon_memory *memory, const void *context) {
    struct net net;
    struct moon_transfer_settings settings = moon_transfer_defaults();
    struct moon_transfer *transfer = NULL;
    struct moon_error error;
    (void)context;
    net_open(&net, 1);
    struct net_node *node = net_add(&net, "10.0.0.1", memory);
    int status = moon_transfer_open(&node->environment, &settings, &transfer, &error);
    moon_transfer_close(transfer);
    net_close(&net);
    return status;
}

static void opening_survives_refused_memory(void) {
    moon_unit_refuse_memory(open_one, NULL);
}

/* ---- records */

struct tape {
    struct moon_recorder recorder; /* first member */
    char text[1 << 14];
    size_t length;
    uint64_t sent[64], received[64];
    size_t sent_count, received_count, moved_count;
    struct moon_extent moved[64];
};

static void on_record(struct moon_recorder *self, const struct moon_record *record) {
    struct tape *tape = (struct tape *)self;
    tape->length += (size_t)snprintf(tape->text + tape->length, sizeof tape->text - tape->length, "%s %s%s\n",
                                     moon_record_kind_name(record->kind), record->what, record->internal ? "!" : "");
    if (record->kind == MOON_RECORD_SEND)
        tape->sent[tape->sent_count++] = record->msg;
    if (record->kind == MOON_RECORD_RECV)
        tape->received[tape->received_count++] = record->msg;
    if (record->kind == MOON_RECORD_TRANSFER) {
        MOON_CHECK_INT(record->op, 7);
        MOON_CHECK_INT(record->code, 0);
        tape->moved[tape->moved_count++] = record->extent;
    }
}

static void check_same_ids(const struct tape *from, const struct tape *to) {
    MOON_CHECK_INT(from->sent_count, to->received_count);
    for (size_t i = 0; i < from->sent_count; i++) {
        CU_ASSERT(from->sent[i] != 0);
        CU_ASSERT(from->sent[i] == to->received[i]);
        for (size_t j = 0; j < i; j++)
            CU_ASSERT(from->sent[i] != from->sent[j]);
    }
}

static void both_sides_record_the_same_messages(void) {
    static struct tape tapes[2];
    struct net net;
    struct net_job job;
    uint8_t region[64], memory[64] = {1, 2, 3};
    struct moon_piece pieces[] = {{memory, 3}, {memory + 3, 7}};
    net_open(&net, 3);
    for (int i = 0; i < 2; i++) {
        struct net_node *node = net_add(&net, i ? "10.0.0.2" : "10.0.0.1", moon_memory_heap());
        tapes[i] = (struct tape){.recorder = {on_record}};
        node->environment.recorder = &tapes[i].recorder;
        net_start(node, 0);
    }
    const char *owner = moon_transfer_endpoint(net.nodes[1].transfer);
    MOON_CHECK_INT(moon_transfer_register(net.nodes[1].transfer, region, base_address, sizeof region, true), 0);
    MOON_CHECK_INT(net_submit(&net.nodes[0], &job, owner, true, base_address, pieces, 1), 0);
    net_settle(&net);
    MOON_CHECK_INT(net_submit(&net.nodes[0], &job, owner, false, base_address, pieces, 1), 0);
    net_settle(&net);
    MOON_CHECK_INT(job.code, 0);
    MOON_CHECK_TEXT(tapes[0].text,
                    "send handshake-metadata\nrecv handshake-answer\nsend data-write\n"
                    "recv data-answer\ntransfer write\nsend data-read\nrecv data-answer\ntransfer read\n");
    MOON_CHECK_TEXT(tapes[1].text, "recv handshake-metadata\nsend handshake-answer\nrecv data-write\nsend data-answer\n"
                                   "recv data-read\nsend data-answer\n");
    MOON_CHECK_INT(tapes[0].moved[1].offset, base_address);
    MOON_CHECK_INT(tapes[0].moved[1].length, 3);
    CU_ASSERT(moon_bytes_equal(tapes[0].moved[1].segment, moon_bytes_of(owner)));
    /* a piece is a request, also on the own endpoint */
    MOON_CHECK_INT(net_submit(&net.nodes[0], &job, owner, false, base_address, pieces, 2), 0);
    net_settle(&net);
    MOON_CHECK_INT(net_submit(&net.nodes[1], &job, owner, false, base_address, pieces, 2), 0);
    net_settle(&net);
    MOON_CHECK_INT(tapes[0].moved_count, 4);
    MOON_CHECK_INT(tapes[1].moved_count, 2);
    CU_ASSERT(tapes[1].moved[1].offset == base_address + 3 && tapes[1].moved[1].length == 7);
    check_same_ids(&tapes[0], &tapes[1]);
    check_same_ids(&tapes[1], &tapes[0]);
    for (int i = 0; i < 2; i++)
        net_stop(&net.nodes[i]);
    net_close(&net);
}

/* 32 MiB and 33 bytes: three writes, the largest allowed first; one read. Four lanes at most for eight jobs. */
static void large_writes_are_cut_and_lanes_are_few(void) {
    static struct tape tape;
    enum { LARGE = (32 << 20) + 33, JOBS = 8 };
    struct net net;
    struct net_job jobs[JOBS];
    uint8_t *region = calloc(1, LARGE), *memory = malloc(LARGE);
    assert(region && memory);
    net_open(&net, 4);
    net.piece_bytes_max = 1 << 22;
    net.wire_bytes_max = 1 << 22;
    moon_random_fill(&net.random, memory, LARGE);
    net_start(net_add(&net, "10.0.0.1", moon_memory_heap()), 0);
    net_start(net_add(&net, "10.0.0.2", moon_memory_heap()), 0);
    tape = (struct tape){.recorder = {on_record}};
    net.nodes[0].environment.recorder = &tape.recorder;
    const char *owner = moon_transfer_endpoint(net.nodes[1].transfer);
    MOON_CHECK_INT(moon_transfer_register(net.nodes[1].transfer, region, base_address, LARGE, true), 0);
    struct moon_piece piece = {memory, LARGE};
    MOON_CHECK_INT(net_submit(&net.nodes[0], &jobs[0], owner, true, base_address, &piece, 1), 0);
    net_settle(&net);
    MOON_CHECK_INT(jobs[0].code, 0);
    CU_ASSERT(memcmp(region, memory, LARGE) == 0);
    uint64_t lengths[3] = {0};
    MOON_CHECK_INT(tape.moved_count, 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            if (tape.moved[i].offset == base_address + j * MOON_TRANSFER_TCP_WRITE_BYTES_MAX)
                lengths[j] = tape.moved[i].length;
    MOON_CHECK_INT(lengths[0], 16777200);
    MOON_CHECK_INT(lengths[1], 16777200);
    MOON_CHECK_INT(lengths[2], 65);
    MOON_CHECK_INT(net_submit(&net.nodes[0], &jobs[0], owner, false, base_address, &piece, 1), 0);
    net_settle(&net);
    MOON_CHECK_INT(tape.moved[3].length, LARGE);
    for (int i = 0; i < JOBS; i++)
        MOON_CHECK_INT(
            net_submit(&net.nodes[0], &jobs[i], owner, false, base_address, &(struct moon_piece){memory, 1 << 20}, 1),
            0);
    MOON_CHECK_INT(net_count(&net.nodes[0], false), MOON_TRANSFER_LANES);
    net_settle(&net);
    MOON_CHECK_INT(net_count(&net.nodes[0], false), MOON_TRANSFER_LANES);
    for (int i = 0; i < JOBS; i++)
        MOON_CHECK_INT(jobs[i].code, 0);
    net_stop(&net.nodes[0]);
    net_stop(&net.nodes[1]);
    net_close(&net);
    free(region);
    free(memory);
}

/* Many requests on a lane at a time, some with their headers not known to have left. */
static void small_pieces_go_out_behind_each_other(void) {
    enum { MANY = 500 };
    static uint8_t region[MANY], memory[MANY];
    static struct moon_piece pieces[MANY];
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct net net;
        struct net_job jobs[2];
        net_open(&net, seed);
        moon_random_fill(&net.random, memory, MANY);
        memset(region, 0, MANY);
        net_start(net_add(&net, "10.0.0.1", moon_memory_heap()), 0);
        net_start(net_add(&net, "10.0.0.2", moon_memory_heap()), 0);
        const char *owner = moon_transfer_endpoint(net.nodes[1].transfer);
        MOON_CHECK_INT(moon_transfer_register(net.nodes[1].transfer, region, base_address, MANY, true), 0);
        for (size_t i = 0; i < MANY; i++)
            pieces[i] = (struct moon_piece){memory + i, 1};
        MOON_CHECK_INT(net_submit(&net.nodes[0], &jobs[0], owner, true, base_address, pieces, MANY / 2), 0);
        MOON_CHECK_INT(
            net_submit(&net.nodes[0], &jobs[1], owner, true, base_address + MANY / 2, pieces + MANY / 2, MANY / 2), 0);
        net_settle(&net);
        MOON_CHECK_INT(jobs[0].code, 0);
        MOON_CHECK_INT(jobs[1].code, 0);
        CU_ASSERT(memcmp(region, memory, MANY) == 0);
        net_stop(&net.nodes[0]);
        net_stop(&net.nodes[1]);
        net_close(&net);
    }
}

/* A job under way on memory that its owner takes back ends with a failure; others go on. */
static void taking_memory_back_fails_the_jobs_on_it(void) {
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct net net;
        struct net_job jobs[2];
        static uint8_t regions[2][1 << 16], memory[1 << 16];
        struct moon_piece piece = {memory, sizeof memory};
        net_open(&net, seed);
        net.piece_bytes_max = 4096;
        net.wire_bytes_max = 4096;
        memset(regions, 0, sizeof regions);
        memset(memory, 1, sizeof memory);
        net_start(net_add(&net, "10.0.0.1", moon_memory_heap()), 0);
        net_start(net_add(&net, "10.0.0.2", moon_memory_heap()), 0);
        struct moon_transfer *owner = net.nodes[1].transfer;
        for (unsigned i = 0; i < 2; i++) {
            MOON_CHECK_INT(moon_transfer_register(owner, regions[i], base_address + (i << 20), sizeof regions[i], true),
                           0);
            MOON_CHECK_INT(net_submit(&net.nodes[0], &jobs[i], moon_transfer_endpoint(owner), seed % 2,
                                      base_address + (i << 20), &piece, 1),
                           0);
        }
        for (uint64_t step = 0; step < 30 + seed; step++)
            net_step(&net);
        MOON_CHECK_INT(moon_transfer_unregister(owner, base_address), 0);
        CU_ASSERT(!net_uses(&net.nodes[1], regions[0], sizeof regions[0]));
        uint8_t before[1 << 16];
        memcpy(before, regions[0], sizeof before);
        bool done = jobs[0].done_count;
        net_settle(&net);
        CU_ASSERT(memcmp(before, regions[0], sizeof before) == 0);
        MOON_CHECK_INT(jobs[0].done_count, 1);
        CU_ASSERT(done || jobs[0].code == MOON_STORE_TRANSFER_FAIL || before[sizeof before - 1] == seed % 2);
        MOON_CHECK_INT(jobs[1].code, 0);
        net_stop(&net.nodes[0]);
        net_stop(&net.nodes[1]);
        net_close(&net);
    }
}

int main(int argc, char *argv[]) {
    const struct moon_unit_case cases[] = {
        {"random jobs between engines move exactly the bytes of a model", random_jobs_agree_with_a_model},
        {"random breaks and cancels fail a job once and touch nothing else",
         random_breaks_fail_jobs_once_and_others_not},
        {"refused memory leaks nothing, and all is well when it is back", refused_memory_leaks_nothing},
        {"opening survives refused memory", opening_survives_refused_memory},
        {"both sides record the same messages", both_sides_record_the_same_messages},
        {"large writes are cut, reads are not, and there are four lanes", large_writes_are_cut_and_lanes_are_few},
        {"small pieces go out behind each other", small_pieces_go_out_behind_each_other},
        {"taking memory back fails the jobs on it", taking_memory_back_fails_the_jobs_on_it},
        {NULL, NULL},
    };
    return moon_unit_main("transfer between engines", cases, argc, argv);
}
