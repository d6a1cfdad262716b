/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a request: what the pool still has of its prompt, whether it fits, and giving all back. */
#include "ref/engine/core_internal.h"

#include "ref/base/number.h"

#include <assert.h>

/* Hash of block `index` of a group: that of the hash block at its end. */
static const uint8_t *block_hash(const struct moon_core *core, const struct moon_core_request *request, size_t group,
                                 int64_t index) {
    const struct moon_layout_model *model = core->options.model;
    int64_t hash = (index + 1) * (model->groups[group].block_tokens / model->hash_block_tokens) - 1;
    assert(hash >= 0 && (uint64_t)hash < request->request.hashes.count);
    return request->request.hashes.bytes + (size_t)hash * request->request.hashes.hash_bytes;
}

/* Blocks of a group among the first `tokens` tokens that are full and hashed. */
static int64_t hashed_blocks(const struct moon_core *core, const struct moon_core_request *request, size_t group,
                             int64_t tokens) {
    const struct moon_layout_model *model = core->options.model;
    return moon_smaller(tokens, (int64_t)request->request.hashes.count * model->hash_block_tokens) /
           model->groups[group].block_tokens;
}

int64_t moon_core_local_prefix(struct moon_core *core, struct moon_core_request *request) {
    const struct moon_layout_model *model = core->options.model;
    size_t hash_bytes = request->request.hashes.hash_bytes;
    int64_t prefix = request->request.known_tokens - 1;
    for (size_t group = 0; group < model->group_count; group++) {
        int64_t run = 0, limit = hashed_blocks(core, request, group, prefix);
        assert(limit == 0 ||
               request->tables[group].count == 0); /* a prompt of one token may come back with its block */
        for (; run < limit; run++) {
            int64_t block = moon_block_pool_find(&core->pool, group, block_hash(core, request, group, run), hash_bytes);
            if (block == 0)
                break;
            request->blocks[group][run] = block;
        }
        prefix = moon_smaller(prefix, run * model->groups[group].block_tokens);
    }
    return prefix / model->scheduler_block_tokens * model->scheduler_block_tokens;
}

/* Free blocks that it takes to hold `tokens` tokens, of which the first `local` are found in the pool: found blocks
 * that nobody holds are free ones too. */
static int64_t needed(const struct moon_core *core, const struct moon_core_request *request, int64_t local,
                      int64_t tokens) {
    const struct moon_layout_model *model = core->options.model;
    int64_t sum = 0;
    for (size_t group = 0; group < model->group_count; group++) {
        int64_t found = local / model->groups[group].block_tokens;
        int64_t held = moon_larger((int64_t)request->tables[group].count, found);
        sum += moon_larger(moon_ceil_divide(tokens, model->groups[group].block_tokens) - held, 0);
        for (int64_t i = 0; i < found; i++)
            sum += moon_block_pool_is_free(&core->pool, request->blocks[group][i]);
    }
    return sum;
}

int64_t moon_core_lacking(const struct moon_core *core, const struct moon_core_request *request) {
    return needed(core, request, 0, request->request.known_tokens);
}

/* Takes blocks until the tables cover `tokens` tokens. */
static void extend(struct moon_core *core, struct moon_core_request *request, int64_t tokens) {
    const struct moon_layout_model *model = core->options.model;
    for (size_t group = 0; group < model->group_count; group++) {
        struct moon_block_table *table = &request->tables[group];
        int64_t wanted = moon_ceil_divide(tokens, model->groups[group].block_tokens);
        while ((int64_t)table->count < wanted) {
            int64_t block = moon_block_pool_take(&core->pool);
            assert(block != 0); /* `needed` has counted */
            request->blocks[group][table->count++] = block;
        }
    }
}

bool moon_core_allocate(struct moon_core *core, struct moon_core_request *request,
                        const struct moon_core_demand *demand) {
    const struct moon_layout_model *model = core->options.model;
    int64_t available = (int64_t)core->pool.free_count;
    int64_t before = request->computed_tokens + demand->local + demand->external;
    int64_t after = before + demand->computed_now;
    if (demand->whole && needed(core, request, demand->local, request->request.known_tokens) > available)
        return false;
    if (needed(core, request, demand->local, after) > available - demand->reserved)
        return false;
    for (size_t group = 0; demand->local > 0 && group < model->group_count; group++) {
        struct moon_block_table *table = &request->tables[group];
        table->count = request->cached[group] = (size_t)(demand->local / model->groups[group].block_tokens);
        moon_block_pool_hold(&core->pool, table->blocks, table->count);
    }
    if (demand->external > 0) /* in all groups before the rest: the order of blocks is seen from outside */
        extend(core, request, before);
    extend(core, request, after);
    if (demand->hashed)
        moon_core_cache(core, request, after);
    return true;
}

void moon_core_cache(struct moon_core *core, struct moon_core_request *request, int64_t tokens) {
    const struct moon_layout_model *model = core->options.model;
    int64_t whole = moon_smaller(tokens, request->request.known_tokens) / model->scheduler_block_tokens *
                    model->scheduler_block_tokens;
    for (size_t group = 0; group < model->group_count; group++) {
        size_t end = (size_t)hashed_blocks(core, request, group, whole);
        for (size_t i = request->cached[group]; i < end; i++)
            moon_block_pool_cache(&core->pool, request->tables[group].blocks[i], group,
                                  block_hash(core, request, group, (int64_t)i), request->request.hashes.hash_bytes);
        if (end > request->cached[group])
            request->cached[group] = end;
    }
}

void moon_core_free(struct moon_core *core, struct moon_core_request *request) {
    for (size_t group = 0; group < core->options.model->group_count; group++) {
        struct moon_block_table *table = &request->tables[group];
        int64_t *blocks = request->blocks[group];
        for (size_t i = 0; i < table->count / 2; i++) { /* the last is given back first */
            int64_t other = blocks[table->count - 1 - i];
            blocks[table->count - 1 - i] = blocks[i];
            blocks[i] = other;
        }
        moon_block_pool_release(&core->pool, blocks, table->count);
        table->count = request->cached[group] = 0;
    }
}
