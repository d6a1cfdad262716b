/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that live in this process: their records, their calls. */
#include "conformance/worlds/inside.h"

#include "ref/base/fill.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- what is held back ---- */

enum held_kind { HELD_RECORD, HELD_STEP };

struct moon_inside_held {
    struct moon_inside_held *next;
    enum held_kind kind;
    size_t index;                  /* RECORD: in spare */
    struct moon_world_event event; /* STEP */
};

static bool is_held(const struct moon_inside_node *node) {
    return node->steps > 0 || node->held;
}

static struct moon_inside_held *hold(struct moon_inside_node *node, enum held_kind kind) {
    struct moon_memory *memory = node->inside->world.setting.memory;
    struct moon_inside_held *held = memory->resize(memory, NULL, 0, sizeof *held);
    node->inside->world.failed |= !held;
    if (!held)
        return NULL;
    *held = (struct moon_inside_held){.kind = kind};
    *node->held_tail = held;
    node->held_tail = &held->next;
    return held;
}

static void drop_first(struct moon_inside_node *node) {
    struct moon_memory *memory = node->inside->world.setting.memory;
    struct moon_inside_held *held = node->held;
    node->held = held->next;
    if (!node->held)
        node->held_tail = &node->held;
    memory->resize(memory, held, sizeof *held, 0);
}

/* ---- records ---- */

static void keep(struct moon_inside_node *node, const struct moon_record *record) {
    struct moon_record copy = *record;
    if (record->boot != node->boot)
        node->n = 0;
    node->boot = record->boot;
    copy.n = node->n++;
    moon_history_add(&node->inside->records, &copy);
}

/* Behind an event nothing needs to be held: the world tells of it before it goes on. */
static void step(struct moon_inside_node *node, const struct moon_world_event *event) {
    struct moon_world *world = &node->inside->world;
    node->steps += world->scenario->anchors[event->anchor].before;
    moon_world_tell(world, event);
}

static struct moon_inside_node *node_named(struct moon_inside *inside, struct moon_bytes name) {
    for (size_t i = 0; i < inside->world.scenario->node_count; i++)
        if (moon_bytes_equal(moon_bytes_of(inside->world.scenario->nodes[i].name), name))
            return &inside->nodes[i];
    return NULL;
}

static void take_record(struct moon_recorder *self, const struct moon_record *record) {
    struct moon_inside *inside = (struct moon_inside *)((char *)self - offsetof(struct moon_inside, recorder));
    struct moon_inside_node *node = node_named(inside, record->node);
    assert(node);
    bool holding = is_held(node) && record->kind != MOON_RECORD_FAULT; /* faults come from outside */
    struct moon_inside_held *held = holding ? hold(node, HELD_RECORD) : NULL;
    if (held) {
        held->index = inside->spare.count;
        moon_history_add(&inside->spare, record);
    } else if (!holding) {
        keep(node, record);
    }
    for (size_t i = 0; i < inside->world.scenario->anchor_count; i++) {
        if (!moon_world_reaches(&inside->world, i, node->index, record))
            continue;
        struct moon_world_event event = {.kind = MOON_WORLD_STEP, .anchor = i, .lease_left_ns = MOON_NS_NEVER};
        if (record->has & MOON_RECORD_HAS_LEASE)
            event.lease_left_ns = record->lease_ns - record->time_ns;
        held = holding ? hold(node, HELD_STEP) : NULL;
        if (held)
            held->event = event;
        else if (!holding)
            step(node, &event);
    }
}

/* Lets out what waits, up to the next anchor. */
static void replay(struct moon_inside_node *node) {
    struct moon_inside *inside = node->inside;
    while (node->held && node->steps == 0) {
        struct moon_inside_held *held = node->held;
        if (held->kind == HELD_RECORD) {
            struct moon_record record = inside->spare.records[held->index];
            record.time_ns = inside->now(inside);
            keep(node, &record);
        } else {
            step(node, &held->event);
        }
        drop_first(node);
    }
    inside->touched(inside, node->index);
}

/* ---- calls ---- */

struct moon_inside_call {
    struct moon_client_operation operation; /* first: what done() is told */
    struct moon_inside_call *next;
    struct moon_inside *inside;
    struct moon_world_call *call;
    struct moon_arena arena;
    struct moon_client_item *items;
    struct moon_piece *pieces;
    bool submitted;
};

static void free_call(struct moon_inside *inside, struct moon_inside_call *call) {
    struct moon_memory *memory = inside->world.setting.memory;
    moon_arena_close(&call->arena);
    memory->resize(memory, call, sizeof *call, 0);
}

static bool is_put(enum moon_scenario_do what) {
    return what == MOON_DO_PUT || what == MOON_DO_BATCH_PUT;
}
static bool is_get(enum moon_scenario_do what) {
    return what == MOON_DO_GET || what == MOON_DO_BATCH_GET;
}

static void done(struct moon_client_operation *operation) {
    struct moon_inside_call *call = (struct moon_inside_call *)operation;
    struct moon_inside *inside = call->inside;
    struct moon_world_call *asked = call->call;
    struct moon_inside_call **place = &inside->nodes[asked->node].calls;
    while (*place != call)
        place = &(*place)->next;
    *place = call->next;
    call->next = inside->ended;
    inside->ended = call;
    if (asked->key_count == 0)
        asked->results[0] = operation->result;
    for (size_t i = 0; i < asked->key_count; i++) {
        int64_t result = call->items[i].result;
        asked->results[i] = result;
        asked->digests[i] = 0;
        if (is_get(asked->what) && result >= 0)
            asked->digests[i] =
                XXH3_64bits(call->pieces[i].data, (size_t)result < asked->bytes ? (size_t)result : asked->bytes);
    }
    moon_world_tell(&inside->world, &(struct moon_world_event){.kind = MOON_WORLD_ENDED, .call = asked});
}

static bool fill_items(struct moon_inside_call *call) {
    const struct moon_world_call *asked = call->call;
    bool with_value = is_put(asked->what) || is_get(asked->what);
    call->items = moon_arena_array(&call->arena, asked->key_count, sizeof *call->items);
    call->pieces = moon_arena_array(&call->arena, asked->key_count, sizeof *call->pieces);
    for (size_t i = 0; i < asked->key_count && call->items && call->pieces; i++) {
        call->items[i].key = moon_bytes_of(asked->keys[i]);
        if (!with_value)
            continue;
        void *buffer = moon_arena_alloc(&call->arena, asked->bytes);
        if (!buffer)
            return false;
        if (is_put(asked->what))
            moon_fill(asked->fill + i, 0, buffer, asked->bytes);
        else
            memset(buffer, 0xC7, asked->bytes); /* what was not read shows */
        call->pieces[i] = (struct moon_piece){buffer, asked->bytes};
        call->items[i].pieces = &call->pieces[i];
        call->items[i].piece_count = 1;
    }
    return call->items && call->pieces;
}

static int begin(struct moon_inside_node *node, struct moon_inside_call *call, struct moon_error *error) {
    static const enum moon_client_do kinds[] = {
        [MOON_DO_PUT] = MOON_CLIENT_PUT,       [MOON_DO_GET] = MOON_CLIENT_GET,
        [MOON_DO_EXIST] = MOON_CLIENT_EXIST,   [MOON_DO_SIZE] = MOON_CLIENT_SIZE,
        [MOON_DO_REMOVE] = MOON_CLIENT_REMOVE, [MOON_DO_REMOVE_ALL] = MOON_CLIENT_REMOVE_ALL,
        [MOON_DO_BATCH_PUT] = MOON_CLIENT_PUT, [MOON_DO_BATCH_GET] = MOON_CLIENT_GET,
        [MOON_DO_SETUP] = MOON_CLIENT_SETUP,
    };
    const struct moon_world_call *asked = call->call;
    call->operation = (struct moon_client_operation){
        .kind = kinds[asked->what],
        .batched = asked->what == MOON_DO_BATCH_PUT || asked->what == MOON_DO_BATCH_GET,
        .force = asked->force,
        .items = call->items,
        .item_count = asked->key_count,
        .done = done,
    };
    call->submitted = true;
    node->inside->enter(node->inside, node->index);
    int status = moon_client_submit(moon_client_node_client(node->instance), &call->operation);
    if (status != 0)
        return moon_fail(error, status, node->inside->world.scenario->nodes[node->index].name,
                         "the client does not take a %s: %s", moon_scenario_do_name(asked->what),
                         moon_status_text(status));
    node->inside->touched(node->inside, node->index);
    return 0;
}

int moon_inside_submit(struct moon_world *world, struct moon_world_call *asked, struct moon_error *error) {
    struct moon_inside *inside = (struct moon_inside *)world;
    struct moon_inside_node *node = &inside->nodes[asked->node];
    struct moon_memory *memory = world->setting.memory;
    struct moon_inside_call *call = memory->resize(memory, NULL, 0, sizeof *call), **place = &node->calls;
    assert(node->up);
    if (!call)
        return moon_no_memory(error);
    *call = (struct moon_inside_call){.inside = inside, .call = asked};
    moon_arena_open(&call->arena, memory);
    while (*place)
        place = &(*place)->next;
    *place = call;
    if (!fill_items(call))
        return moon_no_memory(error);
    return node->stopped || is_held(node) ? 0 : begin(node, call, error);
}

/* ---- holding and going on ---- */

static int go_on(struct moon_inside_node *node, struct moon_error *error) {
    int status = 0;
    replay(node);
    for (struct moon_inside_call *call = node->calls; call && status == 0 && !is_held(node); call = call->next)
        if (!call->submitted)
            status = begin(node, call, error);
    return status;
}

int moon_inside_go(struct moon_world *world, size_t anchor, struct moon_error *error) {
    const struct moon_anchor *at = &world->scenario->anchors[anchor];
    struct moon_inside_node *node = &((struct moon_inside *)world)->nodes[at->node];
    if (!at->before)
        return 0;
    assert(node->steps > 0);
    node->steps--;
    return node->steps > 0 || node->stopped ? 0 : go_on(node, error);
}

int moon_inside_go_on(struct moon_inside *inside, size_t index, struct moon_error *error) {
    struct moon_inside_node *node = &inside->nodes[index];
    node->stopped = false;
    return node->steps > 0 ? 0 : go_on(node, error);
}

/* Events of the node that were not told yet: its calls are lost, its anchors were not reached. */
static void forget_steps(struct moon_inside_node *node) {
    struct moon_world *world = &node->inside->world;
    size_t kept = world->event_first;
    for (size_t i = world->event_first; i < world->event_count; i++) {
        const struct moon_world_event *event = &world->events[i];
        if (event->kind == MOON_WORLD_STEP && world->scenario->anchors[event->anchor].node == node->index)
            world->reached[event->anchor] = false;
        else
            world->events[kept++] = *event;
    }
    world->event_count = kept;
    while (node->held) {
        if (node->held->kind == HELD_STEP)
            world->reached[node->held->event.anchor] = false;
        drop_first(node);
    }
    node->steps = 0;
}

void moon_inside_kill(struct moon_inside *inside, size_t index) {
    struct moon_inside_node *node = &inside->nodes[index];
    forget_steps(node);
    while (node->calls) {
        struct moon_inside_call *call = node->calls;
        node->calls = call->next;
        call->next = inside->lost; /* messages under way may still borrow its bytes */
        inside->lost = call;
        call->call->lost = true;
        moon_world_tell(&inside->world, &(struct moon_world_event){.kind = MOON_WORLD_ENDED, .call = call->call});
    }
    node->up = node->stopped = false;
    node->instance = NULL;
}

static void free_list(struct moon_inside *inside, struct moon_inside_call **list) {
    while (*list) {
        struct moon_inside_call *call = *list;
        *list = call->next;
        free_call(inside, call);
    }
}

int moon_inside_advance(struct moon_inside *inside, bool (*further)(struct moon_world *world),
                        struct moon_world_event *event, struct moon_error *error) {
    struct moon_world *world = &inside->world;
    free_list(inside, &inside->ended);
    while (!moon_world_take(world, event)) {
        bool more = further(world);
        if (world->failed)
            return moon_no_memory(error);
        if (!more) {
            *event = (struct moon_world_event){.kind = MOON_WORLD_QUIET};
            return 0;
        }
    }
    return 0;
}

/* ---- the world ---- */

static void open_node(struct moon_inside *inside, size_t index) {
    const struct moon_scenario *scenario = inside->world.scenario;
    struct moon_inside_node *node = &inside->nodes[index];
    *node = (struct moon_inside_node){
        .inside = inside,
        .index = index,
        .program = index == 0 ? &moon_master_program : &moon_client_program,
        .settings = index == 0 ? (const void *)&node->master : &node->client,
    };
    node->held_tail = &node->held;
    snprintf(node->host, sizeof node->host, "10.0.0.%zu", index + 1);
    snprintf(node->endpoint, sizeof node->endpoint, "10.0.0.%zu:%d", index + 1, index == 0 ? 50051 : 12345);
    if (index == 0) {
        node->master = (struct moon_master_node_settings){
            .master = scenario->master, .protocol = &inside->protocol, .endpoint = node->endpoint};
        return;
    }
    node->client = (struct moon_client_node_settings){moon_client_defaults(), moon_transfer_defaults()};
    node->client.client.hostname = node->endpoint;
    node->client.client.master_endpoint = inside->nodes[0].endpoint;
    node->client.client.protocol = &inside->protocol;
    node->client.client.segment_bytes = scenario->nodes[index].memory_bytes;
    node->client.client.segment_address = (uint64_t)index << 36;
    node->client.transfer.host = node->host;
    node->client.transfer.release = scenario->release;
}

int moon_inside_open(struct moon_inside *inside, const struct moon_world_kind *kind,
                     const struct moon_world_setting *setting, const struct moon_scenario *scenario,
                     struct moon_error *error) {
    int status = moon_world_open(&inside->world, kind, setting, scenario, error);
    moon_history_open(&inside->records, setting->memory);
    moon_history_open(&inside->spare, setting->memory);
    inside->recorder.record = take_record;
    if (status == 0 && moon_wire_protocol_open(&inside->protocol, scenario->release, setting->memory) != 0)
        status = moon_no_memory(error);
    for (size_t i = 0; i < scenario->node_count; i++)
        open_node(inside, i);
    return status;
}

void moon_inside_close(struct moon_inside *inside) {
    for (size_t i = 0; i < inside->world.scenario->node_count; i++) {
        while (inside->nodes[i].held)
            drop_first(&inside->nodes[i]);
        free_list(inside, &inside->nodes[i].calls);
    }
    free_list(inside, &inside->ended);
    free_list(inside, &inside->lost);
    moon_history_close(&inside->records);
    moon_history_close(&inside->spare);
    moon_world_close(&inside->world);
}

int moon_inside_history(struct moon_world *world, struct moon_history *history, struct moon_error *error) {
    const struct moon_inside *inside = (const struct moon_inside *)world;
    for (size_t i = 0; i < inside->records.count; i++)
        moon_history_add(history, &inside->records.records[i]);
    if (inside->records.failed || inside->spare.failed || history->failed || world->failed)
        return moon_no_memory(error);
    return moon_history_merge(history, error);
}
