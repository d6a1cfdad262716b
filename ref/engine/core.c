/* SPDX-License-Identifier: Apache-2.0 */
/* The core scheduler: requests come, end and go; queues; opening and closing. */
#include "ref/engine/core_internal.h"

#include <assert.h>
#include <string.h>

static const char *const status_names[] = {
    [MOON_REQUEST_WAITING] = "WAITING",
    [MOON_REQUEST_WAITING_FOR_REMOTE_KVS] = "WAITING_FOR_REMOTE_KVS",
    [MOON_REQUEST_RUNNING] = "RUNNING",
    [MOON_REQUEST_PREEMPTED] = "PREEMPTED",
    [MOON_REQUEST_FINISHED_LENGTH_CAPPED] = "FINISHED_LENGTH_CAPPED",
    [MOON_REQUEST_FINISHED_ABORTED] = "FINISHED_ABORTED",
    [MOON_REQUEST_FINISHED_ERROR] = "FINISHED_ERROR",
};

const char *moon_request_status_name(enum moon_request_status status) {
    return status_names[status];
}

bool moon_core_is_finished(const struct moon_core_request *request) {
    return request->status >= MOON_REQUEST_FINISHED_LENGTH_CAPPED;
}

/* ---- queues ---- */

void moon_core_append(struct moon_core_queue *queue, struct moon_core_request *request) {
    request->next = NULL;
    request->previous = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = request;
    queue->last = request;
}

void moon_core_prepend(struct moon_core_queue *queue, struct moon_core_request *request) {
    struct moon_core_queue front = {0};
    moon_core_append(&front, request);
    moon_core_splice(queue, &front);
}

void moon_core_take(struct moon_core_queue *queue, struct moon_core_request *request) {
    *(request->previous ? &request->previous->next : &queue->first) = request->next;
    *(request->next ? &request->next->previous : &queue->last) = request->previous;
    request->next = request->previous = NULL;
}

void moon_core_splice(struct moon_core_queue *queue, struct moon_core_queue *front) {
    if (!front->first)
        return;
    front->last->next = queue->first;
    *(queue->first ? &queue->first->previous : &queue->last) = front->last;
    queue->first = front->first;
}

/* The queue that a waiting request is in. */
static struct moon_core_queue *queue_of(struct moon_core *core, const struct moon_core_request *request) {
    for (const struct moon_core_request *each = core->first.first; each; each = each->next)
        if (each == request)
            return &core->first;
    return &core->second;
}

/* ---- ends ---- */

void moon_core_give_back(struct moon_core *core, struct moon_core_request *request) {
    moon_core_free(core, request);
    request->freed = true;
}

void moon_core_stop_running(struct moon_core *core, const struct moon_core_request *request) {
    size_t kept = 0;
    for (size_t i = 0; i < core->running_count; i++)
        if (core->running[i] != request)
            core->running[kept++] = core->running[i];
    core->running_count = kept;
}

void moon_core_finish(struct moon_core *core, struct moon_core_request *request, enum moon_request_status status) {
    bool delayed = false, has_blocks = false;
    if (request->status != MOON_REQUEST_RUNNING) {
        moon_core_take(queue_of(core, request), request);
        /* a load that runs writes into the blocks: its end gives them back */
        delayed = request->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS && !request->load_done;
    }
    request->status = status;
    request->prefilling = request->load_done = request->load_failed = false;
    for (size_t group = 0; group < core->options.model->group_count; group++)
        has_blocks = has_blocks || request->tables[group].count > 0;
    delayed = core->port->finished(core->port, &request->request, has_blocks) || delayed;
    core->finished[core->finished_count++] = request->request.slot;
    if (!delayed)
        moon_core_give_back(core, request);
}

void moon_core_abort(struct moon_core *core, uint32_t slot) {
    struct moon_core_request *request = slot < core->slot_capacity ? core->slots[slot] : NULL;
    if (!request || moon_core_is_finished(request))
        return;
    if (request->status == MOON_REQUEST_RUNNING)
        moon_core_stop_running(core, request);
    moon_core_finish(core, request, MOON_REQUEST_FINISHED_ABORTED);
}

const struct moon_core_request *moon_core_find(const struct moon_core *core, uint32_t slot) {
    return slot < core->slot_capacity ? core->slots[slot] : NULL;
}

bool moon_core_reset_prefix(struct moon_core *core) {
    return moon_block_pool_reset(&core->pool);
}

bool moon_core_reset_connector(struct moon_core *core) {
    return core->port->reset(core->port);
}

/* ---- requests ---- */

/* Gives `bytes` zeroed bytes, or NULL. */
static void *allocate(struct moon_memory *memory, size_t bytes) {
    void *piece = memory->resize(memory, NULL, 0, bytes);
    if (piece)
        memset(piece, 0, bytes);
    return piece;
}

static void release(struct moon_memory *memory, void *piece, size_t bytes) {
    if (piece)
        memory->resize(memory, piece, bytes, 0);
}

/* How much memory the parts of a request take. */
struct sizes {
    size_t tokens, hash_bytes, groups;
};
static struct sizes sizes_of(const struct moon_core *core, const struct moon_core_request *request) {
    size_t tokens = (size_t)(request->request.prompt_tokens + request->max_tokens);
    return (struct sizes){tokens,
                          tokens / (size_t)core->options.model->hash_block_tokens *
                                  moon_hash_algorithm_bytes(core->options.hasher->algorithm) +
                              1,
                          core->options.model->group_count};
}

static size_t table_bytes(const struct moon_core *core, size_t tokens, size_t group) {
    size_t block_tokens = (size_t)core->options.model->groups[group].block_tokens;
    return (tokens + block_tokens - 1) / block_tokens * sizeof(int64_t);
}

static void discard(struct moon_core *core, struct moon_core_request *request) {
    struct moon_memory *memory = core->memory;
    const struct sizes sizes = sizes_of(core, request);
    moon_chain_close(&request->chain);
    for (size_t group = 0; request->blocks && group < sizes.groups; group++)
        release(memory, request->blocks[group], table_bytes(core, sizes.tokens, group));
    release(memory, request->blocks, sizes.groups * sizeof *request->blocks);
    release(memory, request->tables, sizes.groups * sizeof *request->tables);
    release(memory, request->cached, sizes.groups * sizeof *request->cached);
    release(memory, request->tokens, sizes.tokens * sizeof *request->tokens);
    release(memory, request->hashes, sizes.hash_bytes);
    release(memory, request, sizeof *request);
}

static bool allocate_parts(struct moon_core *core, struct moon_core_request *request) {
    struct moon_memory *memory = core->memory;
    const struct sizes sizes = sizes_of(core, request);
    request->blocks = allocate(memory, sizes.groups * sizeof *request->blocks);
    request->tables = allocate(memory, sizes.groups * sizeof *request->tables);
    request->cached = allocate(memory, sizes.groups * sizeof *request->cached);
    request->tokens = allocate(memory, sizes.tokens * sizeof *request->tokens);
    request->hashes = allocate(memory, sizes.hash_bytes);
    if (!request->blocks || !request->tables || !request->cached || !request->tokens || !request->hashes)
        return false;
    for (size_t group = 0; group < sizes.groups; group++) {
        request->blocks[group] = allocate(memory, table_bytes(core, sizes.tokens, group));
        request->tables[group].blocks = request->blocks[group];
        if (!request->blocks[group])
            return false;
    }
    return true;
}

/* Hashes the prompt. In pieces: without multimodal items their size changes nothing. */
static int hash_prompt(struct moon_core_request *request, struct moon_error *error) {
    enum { PIECE = 256 };
    int64_t piece[PIECE];
    size_t total = (size_t)request->request.prompt_tokens;
    int status = 0;
    for (size_t at = 0; at < total && !status; at += PIECE) {
        size_t count = total - at < PIECE ? total - at : PIECE;
        for (size_t i = 0; i < count; i++)
            piece[i] = request->tokens[at + i];
        status =
            moon_chain_append(&request->chain, piece, count,
                              request->hashes + (size_t)request->chain.blocks * request->chain.digest_bytes, error);
    }
    return status;
}

static int fill(struct moon_core *core, struct moon_core_request *request, const struct moon_core_new *from,
                struct moon_error *error) {
    const struct moon_chain_options options = {
        .profile = core->options.profile,
        .block_tokens = (uint32_t)core->options.model->hash_block_tokens,
        .none_hash = core->options.none_hash,
        .none_hash_bytes = core->options.none_hash_bytes,
        .identity = from->identity,
    };
    moon_chain_open(&request->chain, core->options.hasher, &options, core->memory);
    if (!allocate_parts(core, request))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    memcpy(request->tokens, from->prompt, from->prompt_tokens * sizeof *request->tokens);
    int status = hash_prompt(request, error);
    request->request.known_tokens = request->request.prompt_tokens;
    request->request.token_ids = request->tokens;
    request->request.hashes =
        (struct moon_hashes){request->hashes, request->chain.digest_bytes, (size_t)request->chain.blocks};
    return status;
}

/* Room for a request in the table, and in the list of those that ended, which names each at most once. */
static bool grow_slots(struct moon_core *core, size_t slots) {
    void *finished = moon_memory_grow_zeroed(core->memory, core->finished, &core->finished_capacity, slots,
                                             sizeof *core->finished, 16);
    if (!finished)
        return false;
    core->finished = finished;
    void *table =
        moon_memory_grow_zeroed(core->memory, core->slots, &core->slot_capacity, slots, sizeof *core->slots, 16);
    if (table)
        core->slots = table;
    return table != NULL;
}

int moon_core_add(struct moon_core *core, const struct moon_core_new *from, struct moon_error *error) {
    if (from->slot >= MOON_REQUEST_SLOTS_MAX || moon_core_find(core, from->slot))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "slot %u is not free", from->slot);
    if (from->prompt_tokens < 1 || from->max_tokens < 1 || from->prompt_tokens > MOON_CORE_TOKENS_MAX ||
        from->max_tokens > MOON_CORE_TOKENS_MAX - (int64_t)from->prompt_tokens)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "a request has 1 to %d tokens, prompt and output",
                         MOON_CORE_TOKENS_MAX);
    if (!grow_slots(core, (size_t)from->slot + 1))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    struct moon_core_request *request = allocate(core->memory, sizeof *request);
    if (!request)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    request->request.slot = from->slot;
    request->request.prompt_tokens = (int64_t)from->prompt_tokens;
    request->max_tokens = from->max_tokens;
    int status = fill(core, request, from, error);
    if (status) {
        discard(core, request);
        return status;
    }
    core->slots[from->slot] = request;
    moon_core_append(&core->second, request);
    return 0;
}

bool moon_core_remove(struct moon_core *core, uint32_t slot) {
    struct moon_core_request *request = slot < core->slot_capacity ? core->slots[slot] : NULL;
    if (!request || !request->told || !request->freed)
        return false;
    core->slots[slot] = NULL;
    discard(core, request);
    return true;
}

/* ---- the engine ---- */

static void hold_blocks(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    struct moon_core *core = (struct moon_core *)((char *)self - offsetof(struct moon_core, blocks));
    moon_block_pool_hold(&core->pool, blocks, count);
}

static void release_blocks(struct moon_block_port *self, const int64_t *blocks, size_t count) {
    struct moon_core *core = (struct moon_core *)((char *)self - offsetof(struct moon_core, blocks));
    moon_block_pool_release(&core->pool, blocks, count);
}

static bool is_full_attention(const struct moon_layout_group *group) {
    return group->spec.kind == MOON_SPEC_FULL || group->spec.kind == MOON_SPEC_MLA ||
           group->spec.kind == MOON_SPEC_UNIFORM;
}

static bool allocate_step(struct moon_core *core) {
    struct moon_memory *memory = core->memory;
    size_t running = core->options.running_max;
    core->running = allocate(memory, running * sizeof *core->running);
    core->preempted = allocate(memory, running * sizeof *core->preempted);
    core->scheduled = allocate(memory, running * sizeof *core->scheduled);
    core->fresh = allocate(memory, running * sizeof *core->fresh);
    core->resumed = allocate(memory, running * sizeof *core->resumed);
    core->cached = allocate(memory, running * sizeof *core->cached);
    core->added = allocate(memory, running * core->options.model->group_count * sizeof *core->added);
    return core->running && core->preempted && core->scheduled && core->fresh && core->resumed && core->cached &&
           core->added;
}

int moon_core_open(struct moon_core **out, const struct moon_core_options *options, struct moon_memory *memory,
                   struct moon_error *error) {
    assert(options->step_tokens >= 1 && options->step_tokens <= MOON_CORE_STEP_TOKENS_MAX);
    assert(options->running_max >= 1 && options->running_max <= MOON_CORE_RUNNING_MAX);
    *out = NULL;
    for (size_t group = 0; group < options->model->group_count; group++)
        if (!is_full_attention(&options->model->groups[group]))
            return moon_fail(error, MOON_ERR_UNSUPPORTED, NULL,
                             "KV cache group %zu is not of full attention, which this engine does not run", group);
    struct moon_core *core = allocate(memory, sizeof *core);
    if (!core)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    core->memory = memory;
    core->options = *options;
    core->blocks = (struct moon_block_port){hold_blocks, release_blocks};
    if (moon_block_pool_open(&core->pool, options->block_count, memory) || !allocate_step(core)) {
        moon_core_close(core);
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    }
    *out = core;
    return 0;
}

void moon_core_close(struct moon_core *core) {
    if (!core)
        return;
    struct moon_memory *memory = core->memory;
    size_t running = core->options.running_max;
    for (size_t i = 0; i < core->slot_capacity; i++)
        if (core->slots[i])
            discard(core, core->slots[i]);
    release(memory, core->slots, core->slot_capacity * sizeof *core->slots);
    release(memory, core->finished, core->finished_capacity * sizeof *core->finished);
    release(memory, core->running, running * sizeof *core->running);
    release(memory, core->preempted, running * sizeof *core->preempted);
    release(memory, core->scheduled, running * sizeof *core->scheduled);
    release(memory, core->fresh, running * sizeof *core->fresh);
    release(memory, core->resumed, running * sizeof *core->resumed);
    release(memory, core->cached, running * sizeof *core->cached);
    release(memory, core->added, running * core->options.model->group_count * sizeof *core->added);
    moon_block_pool_close(&core->pool);
    release(memory, core, sizeof *core);
}

struct moon_block_port *moon_core_blocks(struct moon_core *core) {
    return &core->blocks;
}

void moon_core_connect(struct moon_core *core, struct moon_engine_port *port) {
    core->port = port;
}
