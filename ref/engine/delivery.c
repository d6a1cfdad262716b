/* SPDX-License-Identifier: Apache-2.0 */
/* A connector that brings whole prompts from elsewhere, as a peer-to-peer transfer would: the scheduler role. */
#include "ref/engine/delivery.h"

static struct moon_delivery *delivery_of(struct moon_engine_port *port) {
    return (struct moon_delivery *)port;
}

static int match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *out, struct moon_error *error) {
    (void)error;
    int64_t missing = request->prompt_tokens - computed_tokens;
    *out = (struct moon_engine_match){0};
    if (moon_slot_table_get(&delivery_of(self)->wanted, request->slot) && missing > 0)
        *out = (struct moon_engine_match){.load_async = true, .tokens = missing};
    return 0;
}

static int reserve(struct moon_delivery *delivery) {
    size_t capacity = delivery->capacity > 0 ? 2 * delivery->capacity : 4;
    size_t old_bytes = delivery->capacity * sizeof *delivery->items, bytes = capacity * sizeof *delivery->items;
    if (delivery->next_count < delivery->capacity)
        return 0;
    /* Both arrays in one piece, so that there is one size to keep. */
    struct moon_delivery_item *items = delivery->memory->resize(delivery->memory, NULL, 0, 2 * bytes);
    if (!items)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < delivery->count; i++)
        items[i] = delivery->items[i];
    for (size_t i = 0; i < delivery->next_count; i++)
        items[capacity + i] = delivery->next[i];
    if (delivery->items)
        delivery->memory->resize(delivery->memory, delivery->items, 2 * old_bytes, 0);
    delivery->items = items;
    delivery->next = items + capacity;
    delivery->capacity = capacity;
    return 0;
}

static int allocated(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    struct moon_delivery *delivery = delivery_of(self);
    (void)tables;
    if (external_tokens == 0 || !moon_slot_table_get(&delivery->wanted, request->slot))
        return 0;
    if (reserve(delivery))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    delivery->next[delivery->next_count++] =
        (struct moon_delivery_item){request->slot, request->prompt_tokens - external_tokens};
    return moon_slot_table_set(&delivery->wanted, request->slot, 0);
}

static int step(struct moon_engine_port *self, const struct moon_step *what, struct moon_error *error) {
    struct moon_delivery *delivery = delivery_of(self);
    (void)what;
    (void)error;
    for (size_t i = 0; i < delivery->next_count; i++)
        delivery->items[i] = delivery->next[i];
    delivery->count = delivery->next_count;
    delivery->next_count = 0;
    return 0;
}

static bool finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    (void)has_blocks;
    moon_slot_table_set(&delivery_of(self)->wanted, request->slot, 0);
    return false;
}

static int report(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error) {
    (void)self;
    (void)child;
    (void)ranks;
    return moon_fail(error, MOON_ERR_RANGE, NULL, "a worker reports job %llu of a connector that saves nothing",
                     (unsigned long long)job);
}

static bool reset(struct moon_engine_port *self) {
    (void)self; /* it keeps nothing */
    return true;
}

void moon_delivery_open(struct moon_delivery *delivery, struct moon_memory *memory) {
    *delivery = (struct moon_delivery){.port = {match, allocated, step, finished, report, reset}, .memory = memory};
    moon_slot_table_open(&delivery->wanted, memory);
}

void moon_delivery_close(struct moon_delivery *delivery) {
    moon_slot_table_close(&delivery->wanted);
    if (delivery->items)
        delivery->memory->resize(delivery->memory, delivery->items, 2 * delivery->capacity * sizeof *delivery->items,
                                 0);
    delivery->items = delivery->next = NULL;
    delivery->capacity = 0;
}

int moon_delivery_want(struct moon_delivery *delivery, uint32_t slot) {
    return moon_slot_table_set(&delivery->wanted, slot, 1);
}
