/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the store client: a master that answers anything of the right type, in any order, or not at all. Each
 * operation ends once, with a result that can be, and everything is given back. */
#include "ref/store/client.h"

#include "ref/store/client_fake_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 400, TASKS = 4, ITEMS_MAX = 3, ROOM_BYTES = 24 };

static void must(bool holds) {
    if (!holds)
        abort();
}

/* ---- the input: a choice a byte; zeros when it is used up */

struct input {
    const uint8_t *data;
    size_t size;
};

static unsigned choose(struct input *input, unsigned below) {
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++ % below;
}

static uint64_t choose_number(struct input *input) {
    static const uint64_t numbers[] = {0, 1, 2, 3, 5, 7, 64, 10000, 0x100000000, 0x10000000a, INT64_MAX, UINT64_MAX};
    return numbers[choose(input, sizeof numbers / sizeof *numbers)];
}

static struct moon_bytes choose_text(struct input *input) {
    static const char *const texts[] = {"2.0.0", "10.0.0.2:1", "10.0.0.9:15000", "", "none", "k"};
    static const char zeros[MOON_ENDPOINT_BYTES];
    unsigned which = choose(input, 8);
    if (which < sizeof texts / sizeof *texts)
        return moon_bytes_of(texts[which]);
    return (struct moon_bytes){zeros, which == 6 ? 1 : sizeof zeros};
}

/* A value of that type. Types do not nest without end. */
static void fill(struct input *input, struct moon_arena *arena, struct moon_wire_value *value) {
    static const int codes[] = {-705, -704, -200, -1, 0, 1};
    unsigned count;
    switch (value->type->kind) {
    case MOON_WIRE_STRING:
        moon_wire_set_bytes(value, choose_text(input));
        break;
    case MOON_WIRE_BOOL:
        value->number = choose(input, 2);
        break;
    case MOON_WIRE_VECTOR:
        count = choose(input, 8) == 7 ? 65 : choose(input, 4);
        for (unsigned i = 0; i < count; i++)
            fill(input, arena, moon_wire_append(arena, value));
        break;
    case MOON_WIRE_EXPECTED:
        if (choose(input, 4) == 3)
            moon_wire_set_error(value, codes[choose(input, sizeof codes / sizeof *codes)]);
        else
            fill(input, arena, moon_wire_present(arena, value));
        break;
    case MOON_WIRE_VARIANT:
        count = choose(input, 8) == 7;
        fill(input, arena, moon_wire_choose(arena, value, value->type->members[count].name));
        break;
    case MOON_WIRE_STRUCT:
        for (struct moon_wire_value *part = value->first; part; part = part->next)
            fill(input, arena, part);
        break;
    default:
        value->number = choose_number(input);
    }
}

/* ---- the world */

struct task {
    struct moon_client_operation operation; /* first member */
    struct moon_client_item items[ITEMS_MAX];
    struct moon_piece pieces[ITEMS_MAX][2];
    char *room[ITEMS_MAX]; /* zeros; on the heap, so that a byte too many is seen */
    size_t room_bytes[ITEMS_MAX];
    bool running;
};

struct world {
    struct moon_recorder recorder; /* first member */
    struct moon_memory_failing memory;
    struct moon_environment environment;
    struct moon_client *client;
    struct task tasks[TASKS];
    size_t invoked, ended;
    bool ready, leaving;
};

static struct world world;

static void record(struct moon_recorder *self, const struct moon_record *its) {
    (void)self;
    world.invoked += its->kind == MOON_RECORD_INVOKE;
    world.ended += its->kind == MOON_RECORD_OK || its->kind == MOON_RECORD_FAIL || its->kind == MOON_RECORD_INFO;
    must(world.ended <= world.invoked);
}

static void end_task(struct task *task) {
    for (size_t i = 0; i < ITEMS_MAX; i++) {
        free(task->room[i]);
        task->room[i] = NULL;
    }
    task->running = false;
}

static void done(struct moon_client_operation *operation) {
    struct task *task = (struct task *)operation;
    must(task->running && operation->state == NULL);
    for (size_t i = 0; i < operation->item_count; i++) {
        int64_t result = task->items[i].result;
        must(operation->kind != MOON_CLIENT_PUT || result <= 0);
        must(operation->kind != MOON_CLIENT_EXIST || result <= 1);
        must(operation->kind != MOON_CLIENT_GET || (result != 0 && result <= ROOM_BYTES));
        for (size_t j = result > 0 ? (size_t)result : ROOM_BYTES; j < task->room_bytes[i]; j++)
            must(task->room[i][j] == 0); /* what is behind the object stays as it was */
    }
    world.ready |= operation->kind == MOON_CLIENT_SETUP && operation->result == 0;
    world.leaving &= operation->kind != MOON_CLIENT_UNMOUNT;
    end_task(task);
}

static void submit(struct input *input) {
    static const char *const keys[] = {"a", "b", "a", ""};
    size_t at = 0;
    while (at < TASKS && world.tasks[at].running)
        at++;
    if (at == TASKS)
        return;
    struct task *task = &world.tasks[at];
    *task = (struct task){.running = true};
    task->operation.kind = world.ready ? (enum moon_client_do)(1 + choose(input, 7)) : MOON_CLIENT_SETUP;
    task->operation.batched = choose(input, 2);
    task->operation.items = task->items;
    task->operation.item_count = task->operation.batched ? choose(input, ITEMS_MAX + 1) : 1;
    task->operation.done = done;
    for (size_t i = 0; i < ITEMS_MAX; i++) {
        size_t split = choose(input, ROOM_BYTES + 1), length = choose(input, 4) == 0 ? 5 : ROOM_BYTES;
        split = split < length ? split : length;
        task->room[i] = calloc(1, length);
        task->room_bytes[i] = length;
        task->pieces[i][0] = (struct moon_piece){task->room[i], split};
        task->pieces[i][1] = (struct moon_piece){task->room[i] + split, length - split};
        task->items[i] = (struct moon_client_item){
            .key = moon_bytes_of(keys[choose(input, 4)]), .pieces = task->pieces[i], .piece_count = 2};
    }
    int status = moon_client_submit(world.client, &task->operation);
    must(status == 0 || status == MOON_ERR_MEMORY || (status == MOON_ERR_RANGE && (world.leaving || !world.ready)));
    if (status)
        end_task(task);
    else
        world.leaving |= task->operation.kind == MOON_CLIENT_UNMOUNT;
}

static void answer(struct input *input) {
    size_t at = choose(input, (unsigned)fake.question_count);
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_wire_value *result = moon_wire_zero(&arena, fake.questions[at].function->function->result);
    fill(input, &arena, result);
    fake_end_question(at, world.environment.now_ns, true, 0, 0, result);
    moon_arena_close(&arena);
}

static void tick(void) {
    for (int i = 0; i < TASKS + 2 && moon_client_deadline(world.client) <= world.environment.now_ns; i++)
        moon_client_tick(world.client);
}

static void step(struct input *input) {
    static const int failures[] = {MOON_STORE_RPC_FAIL, MOON_STORE_RPC_TIMEOUT};
    unsigned which = choose(input, 8);
    if (which < 2)
        submit(input);
    else if (which == 2 && fake.question_count > 0)
        fake_end_question(0, world.environment.now_ns, choose(input, 2), failures[choose(input, 2)],
                          choose(input, 4) == 3 ? 11 : 0, NULL);
    else if (which < 5 && fake.question_count > 0)
        answer(input);
    else if (which < 7 && fake.job_count > 0)
        fake_end_job(choose(input, (unsigned)fake.job_count), choose(input, 4) ? 0 : MOON_STORE_TRANSFER_FAIL);
    else if (which == 7)
        world.environment.now_ns += choose(input, 256) * 10 * MOON_NS_PER_MS;
    world.memory.fail_at = choose(input, 8) == 7 ? world.memory.requests + 1 + choose(input, 16) : 0;
    tick();
}

/* All that is open ends without an answer. */
static void wind_up(void) {
    world.memory.fail_at = 0;
    for (int i = 0; i < STEPS_MAX && (fake.job_count > 0 || fake.question_count > 0); i++) {
        if (fake.job_count > 0)
            fake_end_job(0, MOON_STORE_TRANSFER_FAIL);
        else
            fake_end_question(0, world.environment.now_ns, true, MOON_STORE_RPC_TIMEOUT, 0, NULL);
        tick();
    }
    tick();
    for (size_t i = 0; i < TASKS; i++)
        must(!world.tasks[i].running);
    must(world.invoked == world.ended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct moon_wire_protocol protocols[4];
    static uint8_t segment[16];
    struct input input = {data, size};
    unsigned release = choose(&input, 4);
    if (!protocols[release].release)
        must(moon_wire_protocol_open(&protocols[release], moon_wire_releases[release], moon_memory_heap()) == 0);
    world = (struct world){.recorder.record = record};
    moon_memory_failing_init(&world.memory, moon_memory_heap(), 0);
    world.environment = (struct moon_environment){.memory = &world.memory.memory, .recorder = &world.recorder};
    moon_random_seed(&world.environment.random, 1);
    fake.transfer.environment = &world.environment;
    memset(fake.remote, 0xff, sizeof fake.remote);
    struct moon_client_settings settings = moon_client_defaults();
    settings.protocol = &protocols[release];
    settings.segment = segment;
    settings.segment_address = 0x2000000;
    settings.segment_bytes = choose(&input, 2) * sizeof segment;
    world.client = moon_client_open(&world.environment, &settings, &fake.transfer);
    for (int i = 0; i < STEPS_MAX && input.size > 0; i++)
        step(&input);
    if (size % 2)
        wind_up();
    moon_client_close(world.client);
    for (size_t i = 0; i < TASKS; i++)
        end_task(&world.tasks[i]);
    must(world.memory.held_bytes == 0 && fake.job_count == 0 && fake.question_count == 0 && fake.registered == 0);
    return 0;
}
