/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a step: sampled tokens, failed loads, finished transfers and jobs. */
#include "ref/engine/core_internal.h"

/* The request of a slot that workers report, or NULL. */
static struct moon_core_request *reported(const struct moon_core *core, uint32_t slot) {
    return slot < core->slot_capacity ? core->slots[slot] : NULL;
}

/* ---- sampled tokens ---- */

static int append_token(struct moon_core *core, struct moon_core_request *request, int64_t token,
                        struct moon_error *error) {
    struct moon_request *its = &request->request;
    if (token < 0 || token > INT32_MAX)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "%lld is no token", (long long)token);
    request->tokens[its->known_tokens] = (uint32_t)token;
    int status = moon_chain_append(&request->chain, &token, 1,
                                   request->hashes + its->hashes.count * its->hashes.hash_bytes, error);
    if (status)
        return status;
    its->known_tokens++;
    its->hashes.count = (size_t)request->chain.blocks;
    if (its->known_tokens - its->prompt_tokens < request->max_tokens)
        return 0;
    moon_core_stop_running(core, request);
    moon_core_finish(core, request, MOON_REQUEST_FINISHED_LENGTH_CAPPED);
    return 0;
}

static int take_tokens(struct moon_core *core, const struct moon_core_results *results, struct moon_error *error) {
    int status = 0;
    if (results->token_count != core->scheduled_count)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "%zu tokens for a step of %zu requests", results->token_count,
                         core->scheduled_count);
    for (size_t i = 0; i < core->scheduled_count && !status; i++) {
        struct moon_core_request *request = core->slots[core->scheduled[i].slot];
        if (results->tokens[i] != -1 && request && request->status == MOON_REQUEST_RUNNING)
            status = append_token(core, request, results->tokens[i], error);
    }
    return status;
}

/* ---- failed loads ---- */

static bool listed(const struct moon_core_results *results, int64_t block) {
    for (size_t i = 0; i < results->failed_block_count; i++)
        if (results->failed_blocks[i] == (uint64_t)block)
            return true;
    return false;
}

/* Cuts the computed tokens of a loading request at the first block that failed. */
static void cut_at_failed_block(const struct moon_core *core, struct moon_core_request *request,
                                const struct moon_core_results *results) {
    int64_t block_tokens = core->options.model->groups[0].block_tokens;
    const struct moon_block_table *table = &request->tables[0];
    for (size_t i = 0; i < table->count && (int64_t)i * block_tokens < request->computed_tokens; i++)
        if (listed(results, table->blocks[i])) {
            request->computed_tokens = (int64_t)i * block_tokens;
            request->load_failed = true;
        }
}

/* Notes which loads failed (ENGINE-013). */
static int note_failures(struct moon_core *core, const struct moon_core_results *results, struct moon_error *error) {
    if (results->failed_block_count > 0 && core->options.model->group_count > 1)
        return moon_refuse(
            error, "RuntimeError",
            "A KV connector reported block-level load failures (invalid_block_ids) which is not supported "
            "for models with multiple KV cache groups. Connectors must report failed requests via "
            "KVConnectorTransferResults.failed_recving instead.");
    for (size_t i = 0; i < results->failed_request_count; i++) {
        struct moon_core_request *request = reported(core, results->failed_requests[i]);
        if (!request || request->status != MOON_REQUEST_WAITING_FOR_REMOTE_KVS)
            continue;
        request->load_failed = true;
        if (core->options.recompute_failed)
            request->computed_tokens = 0;
    }
    for (size_t i = 0; i < core->slot_capacity && results->failed_block_count > 0; i++)
        if (core->slots[i] && core->slots[i]->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS)
            cut_at_failed_block(core, core->slots[i], results);
    return 0;
}

/* Ends requests whose load failed, if that is the policy. */
static void end_failed(struct moon_core *core) {
    for (size_t i = 0; i < core->slot_capacity && !core->options.recompute_failed; i++)
        if (core->slots[i] && core->slots[i]->load_failed &&
            core->slots[i]->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS)
            moon_core_finish(core, core->slots[i], MOON_REQUEST_FINISHED_ERROR);
}

/* ---- transfers ---- */

/* Gives the blocks of a request that has ended back. A release asserts that it still has it. */
static int end_transfer(struct moon_core *core, struct moon_core_request *request, struct moon_error *error) {
    if (!request || !moon_core_is_finished(request) || request->freed)
        return moon_refuse(error, "AssertionError", "%s", "");
    moon_core_give_back(core, request);
    return 0;
}

static int take_transfers(struct moon_core *core, const struct moon_core_results *results, struct moon_error *error) {
    int status = 0;
    for (size_t i = 0; i < results->received_count && !status; i++) {
        struct moon_core_request *request = reported(core, results->received[i]);
        if (request && request->status == MOON_REQUEST_WAITING_FOR_REMOTE_KVS)
            request->load_done = true;
        else
            status = end_transfer(core, request, error);
    }
    for (size_t i = 0; i < results->sent_count && !status; i++)
        status = end_transfer(core, reported(core, results->sent[i]), error);
    return status;
}

int moon_core_update(struct moon_core *core, const struct moon_core_results *results, struct moon_error *error) {
    int status = note_failures(core, results, error);
    if (!status)
        status = take_tokens(core, results, error);
    if (status)
        return status;
    end_failed(core);
    for (size_t i = 0; i < results->report_count && !status; i++)
        status = core->port->report(core->port, results->reports[i].child, results->reports[i].job,
                                    results->reports[i].ranks, error);
    return status ? status : take_transfers(core, results, error);
}
