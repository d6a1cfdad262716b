/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzing the core scheduler: any sequence of requests, answers, aborts, loads, failures and job references. Every step
 * ends, no table holds the null block, and the pool's assertions hold. */
#include "ref/engine/core.h"

#include "ref/base/cursor.h"

#include <assert.h>

enum { SLOTS = 8, BLOCKS = 24, STEPS_MAX = 200 };

struct fuzz_port {
    struct moon_engine_port port; /* first member */
    struct moon_cursor *input;
};

static int match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *out, struct moon_error *error) {
    struct fuzz_port *port = (struct fuzz_port *)self;
    uint8_t choice = moon_cursor_u8(port->input);
    (void)error;
    *out = (struct moon_engine_match){.pending = choice % 4 == 1, .load_async = choice % 4 != 3};
    if (choice % 4 >= 2)
        out->tokens = (choice / 4) % (request->known_tokens - computed_tokens + 1);
    return 0;
}

static int allocated(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    (void)self;
    (void)request;
    (void)error;
    for (int64_t i = 0; i < external_tokens; i++)
        assert(tables[0].blocks[i / 4] != 0);
    return 0;
}

static int step(struct moon_engine_port *self, const struct moon_step *what, struct moon_error *error) {
    (void)self;
    (void)error;
    for (size_t i = 0; i < what->fresh_count; i++)
        assert(what->fresh[i].computed_tokens + what->fresh[i].scheduled_tokens <= what->fresh[i].prefill_tokens);
    return 0;
}

static bool finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    (void)request;
    return has_blocks && moon_cursor_u8(((struct fuzz_port *)self)->input) % 8 == 1;
}

static int report(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error) {
    (void)self;
    (void)child;
    (void)job;
    (void)ranks;
    (void)error;
    return 0;
}

static bool reset(struct moon_engine_port *self) {
    (void)self;
    return true;
}

/* No table holds the null block or one that there is not. */
static void check_blocks(const struct moon_core *core) {
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const struct moon_core_request *request = moon_core_find(core, slot);
        for (size_t group = 0; request && group < 2; group++)
            for (size_t i = 0; i < request->tables[group].count; i++)
                assert(request->tables[group].blocks[i] > 0 && request->tables[group].blocks[i] < BLOCKS);
    }
}

static void act(struct moon_core *core, struct moon_cursor *input, struct moon_error *error) {
    uint8_t choice = moon_cursor_u8(input);
    uint32_t slot = choice / 8 % SLOTS;
    if (choice % 8 < 3 && !moon_core_find(core, slot)) {
        uint32_t prompt[64];
        size_t length = 1 + moon_cursor_u8(input) % 64;
        for (size_t i = 0; i < length; i++)
            prompt[i] = (uint32_t)(choice % 2 * 1000 + i);
        const struct moon_core_new request = {
            .slot = slot, .prompt = prompt, .prompt_tokens = length, .max_tokens = 1 + moon_cursor_u8(input) % 32};
        moon_core_add(core, &request, error);
    } else if (choice % 8 == 3) {
        moon_core_abort(core, slot);
    } else if (choice % 8 == 4) {
        moon_core_reset_prefix(core);
    } else if (choice % 8 == 5) {
        moon_core_remove(core, slot);
    }
}

/* What workers tell: loads that end, well or not, and delayed requests that were sent. */
static void fill_results(const struct moon_core *core, struct fuzz_port *port, uint32_t received[SLOTS],
                         uint32_t sent[SLOTS], uint32_t failed[SLOTS], struct moon_core_results *results) {
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const struct moon_core_request *request = moon_core_find(core, slot);
        bool ended = request && request->status >= MOON_REQUEST_FINISHED_LENGTH_CAPPED;
        if (request && request->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS && !request->load_done &&
            moon_cursor_u8(port->input) % 2 == 0) {
            if (moon_cursor_u8(port->input) % 8 == 1)
                failed[results->failed_request_count++] = slot;
            received[results->received_count++] = slot;
        } else if (ended && !request->freed) {
            sent[results->sent_count++] = slot;
        }
    }
}

static void run(struct moon_core *core, struct fuzz_port *port) {
    struct moon_error error;
    struct moon_core_step planned;
    for (int i = 0; i < STEPS_MAX && !port->input->failed; i++) {
        int64_t tokens[SLOTS];
        uint32_t received[SLOTS], sent[SLOTS], failed[SLOTS];
        struct moon_core_results results = {
            .tokens = tokens, .received = received, .sent = sent, .failed_requests = failed};
        act(core, port->input, &error);
        if (moon_core_schedule(core, &planned, &error))
            return;
        check_blocks(core);
        results.token_count = planned.scheduled_count;
        for (size_t k = 0; k < planned.scheduled_count; k++) {
            const struct moon_core_request *request = moon_core_find(core, planned.scheduled[k].slot);
            tokens[k] = request->computed_tokens >= request->request.known_tokens ? 7 : -1;
        }
        fill_results(core, port, received, sent, failed, &results);
        if (moon_core_update(core, &results, &error))
            return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t none[32];
    struct moon_cursor input;
    struct moon_error error;
    struct moon_hasher hasher;
    struct moon_core *core;
    moon_cursor_open(&input, data, size);
    uint8_t shape = moon_cursor_u8(&input);
    const struct moon_layout_group groups[] = {{.spec = {.kind = MOON_SPEC_FULL}, .block_tokens = 4},
                                               {.spec = {.kind = MOON_SPEC_FULL}, .block_tokens = 8}};
    const struct moon_layout_model model = {.tp = 1,
                                            .pp = 1,
                                            .pcp = 1,
                                            .dcp = 1,
                                            .groups = groups,
                                            .group_count = 2,
                                            .scheduler_block_tokens = 8,
                                            .hash_block_tokens = 4};
    const struct moon_core_options options = {.profile = moon_profile_find(shape % 2 ? "0.33" : "0.30", NULL),
                                              .model = &model,
                                              .block_count = BLOCKS,
                                              .step_tokens = 1 + shape / 4,
                                              .running_max = 4,
                                              .recompute_failed = shape / 2 % 2,
                                              .hasher = &hasher,
                                              .none_hash = none,
                                              .none_hash_bytes = sizeof none};
    struct fuzz_port port = {.port = {match, allocated, step, finished, report, reset}, .input = &input};
    moon_hasher_open(&hasher, MOON_SHA256, moon_memory_heap());
    if (!moon_core_open(&core, &options, moon_memory_heap(), &error)) {
        moon_core_connect(core, &port.port);
        run(core, &port);
        moon_core_close(core);
    }
    moon_hasher_close(&hasher);
    return 0;
}
