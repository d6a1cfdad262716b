/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup: its keys, the store's answers, the hit and its tail boundaries. */
#include "ref/connector/lookup_worker.h"

#include "ref/layout/lookup.h"
#include "ref/layout/replication.h"

#include <assert.h>
#include <string.h>

void moon_lookup_open(struct moon_lookup *lookup, const struct moon_connector *connector, struct moon_memory *memory) {
    *lookup = (struct moon_lookup){.connector = connector};
    moon_key_list_open(&lookup->keys, memory);
}

void moon_lookup_close(struct moon_lookup *lookup) {
    struct moon_memory *memory = lookup->keys.memory;
    memory->resize(memory, lookup->present, lookup->present_capacity, 0);
    moon_key_list_close(&lookup->keys);
    moon_lookup_open(lookup, lookup->connector, memory);
}

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a lookup");
}

/* Room for the presence of every group and hash, and behind it one byte for each chunk that is asked for. */
static int reserve(struct moon_lookup *lookup, struct moon_error *error) {
    struct moon_memory *memory = lookup->keys.memory;
    size_t count = lookup->hashes.count, groups = lookup->connector->model->group_count, wanted;
    if (__builtin_mul_overflow(count, groups, &wanted) ||
        __builtin_add_overflow(wanted, lookup->keys.hash_count, &wanted))
        return out_of_memory(error);
    if (wanted <= lookup->present_capacity)
        return 0;
    uint8_t *present = memory->resize(memory, lookup->present, lookup->present_capacity, wanted);
    if (!present)
        return out_of_memory(error);
    lookup->present = present;
    lookup->present_capacity = wanted;
    return 0;
}

/* Length up to which the store is asked (LOOKUP-010). */
static int64_t aligned_length(const struct moon_connector *connector, int64_t tokens) {
    if (connector->profile->lookup_rpc < MOON_RPC_RAW)
        return tokens;
    return tokens / connector->alignment_tokens * connector->alignment_tokens;
}

/* From 0.24 to 0.26 the caller has aligned the length, and the masks want it so (LOOKUP-011). */
static int check_aligned(const struct moon_lookup *lookup, struct moon_error *error) {
    int64_t block = lookup->connector->model->scheduler_block_tokens;
    bool masked = lookup->connector->profile->lookup_masked && lookup->connector->profile->lookup_rpc < MOON_RPC_RAW;
    if (!masked || lookup->limit_tokens % block == 0)
        return 0;
    return moon_refuse(error, "AssertionError", "aligned_token_len (%lld) must be a multiple of lcm_block_size (%lld)",
                       (long long)lookup->limit_tokens, (long long)block);
}

static bool names_label(const struct moon_layout_model *model, const char *label) {
    return memmem(model->model_name.bytes, model->model_name.length, label, strlen(label)) != NULL;
}

/* Notes which of the namespaces asked for are wrong. */
static void note_namespaces(const struct moon_connector *connector) {
    const struct moon_profile *profile = connector->profile;
    const struct moon_layout_model *model = connector->model;
    if (!connector->notes)
        return;
    if (profile->lookup_ranks < MOON_LOOKUP_ALL_HEADS && (model->pcp > 1 || model->dcp > 1))
        moon_deviation_note(connector->notes, MOON_DEVIATION_OWN_CONTEXT_RANKS);
    int64_t heads = moon_engine_heads(model), written = model->tp / moon_replication_factor(profile, model, 0);
    bool short_of_heads = profile->lookup_ranks < MOON_LOOKUP_ALL && (heads < model->tp ? heads : model->tp) != written;
    if (short_of_heads && model->dcp == 1)
        moon_deviation_note(connector->notes, MOON_DEVIATION_HEADS_NOT_ASKED);
    if (profile->lookup_edits_text && (names_label(model, "@tp_rank:0") || names_label(model, "@pp_rank:0")))
        moon_deviation_note(connector->notes, MOON_DEVIATION_LOOKUP_EDITS_TEXT);
}

int moon_lookup_begin(struct moon_lookup *lookup, int64_t num_tokens, const struct moon_hashes *hashes,
                      const struct moon_store_call **call, struct moon_error *error) {
    const struct moon_connector *connector = lookup->connector;
    assert(num_tokens >= 0 && num_tokens <= MOON_HIT_TOKENS_MAX);
    *call = NULL;
    moon_key_list_clear(&lookup->keys);
    lookup->result = (struct moon_lookup_result){0};
    lookup->hashes = *hashes;
    lookup->num_tokens = num_tokens;
    lookup->limit_tokens = aligned_length(connector, num_tokens);
    lookup->asking = false;
    if (connector->capacity_only || hashes->count == 0 || lookup->limit_tokens == 0)
        return 0;
    int status = check_aligned(lookup, error);
    if (status)
        return status;
    moon_lookup_keys(connector->profile, connector->model, &connector->selection, hashes, lookup->limit_tokens,
                     &lookup->keys);
    if (lookup->keys.failed)
        return out_of_memory(error);
    status = reserve(lookup, error);
    if (status || lookup->keys.count == 0)
        return status;
    note_namespaces(connector);
    lookup->call =
        (struct moon_store_call){.kind = MOON_CALL_EXIST, .keys = &lookup->keys, .count = lookup->keys.count};
    lookup->asking = true;
    *call = &lookup->call;
    return 0;
}

/* A chunk is present if the store has its key in every namespace (LOOKUP-012). */
static void take_answers(struct moon_lookup *lookup, const int64_t *values) {
    const struct moon_layout_model *model = lookup->connector->model;
    int64_t hash_count = (int64_t)lookup->hashes.count;
    size_t positions = lookup->hashes.count * model->group_count;
    uint8_t *chunks = lookup->present + positions;
    struct moon_asked asked;
    struct moon_chunk chunk;
    memset(lookup->present, 0, positions);
    memset(chunks, 1, lookup->keys.hash_count);
    for (size_t i = 0; i < lookup->keys.count; i++)
        if (values[i] != 1)
            chunks[lookup->keys.pairs[i].hash] = 0;
    size_t group = 0, next = 0;
    moon_asked_open(&asked, lookup->connector->profile, model, lookup->limit_tokens, hash_count);
    while (moon_asked_next(&asked, &group, &chunk))
        lookup->present[(int64_t)group * hash_count + chunk.first_hash + chunk.hash_count - 1] = chunks[next++];
    assert(next == lookup->keys.hash_count);
}

/* The last token must be computed: a hit of the whole prompt is searched again without it (LOOKUP-014). */
static int search(const struct moon_lookup *lookup, const struct moon_presence *presence, int64_t *hit,
                  struct moon_error *error) {
    const struct moon_connector *connector = lookup->connector;
    int status = moon_hit_search(connector, presence, lookup->limit_tokens, hit, error);
    if (status || connector->profile->full_hit != MOON_FULL_HIT_SEARCHED || *hit < lookup->num_tokens)
        return status;
    int64_t usable = aligned_length(connector, lookup->num_tokens - 1);
    *hit = 0;
    return usable > 0 ? moon_hit_search(connector, presence, usable, hit, error) : 0;
}

int moon_lookup_answer(struct moon_lookup *lookup, const int64_t *values, size_t count, struct moon_error *error) {
    const struct moon_connector *connector = lookup->connector;
    assert(lookup->asking);
    if (count != lookup->keys.count)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "%zu answers for %zu keys", count, lookup->keys.count);
    lookup->asking = false;
    take_answers(lookup, values);
    const struct moon_presence presence = {lookup->present, (int64_t)lookup->hashes.count};
    struct moon_lookup_result *result = &lookup->result;
    int64_t hit = 0;
    int status = search(lookup, &presence, &hit, error);
    if (!status && hit > 0 && connector->profile->lookup_rpc >= MOON_RPC_TAILS) {
        status = moon_tail_boundaries(connector, &presence, hit, result->tail_boundaries, error);
        result->boundary_count = status ? 0 : connector->model->group_count;
    }
    result->hit_tokens = status ? 0 : hit;
    return status;
}

void moon_lookup_raised(struct moon_lookup *lookup) {
    lookup->asking = false;
    lookup->result = (struct moon_lookup_result){0};
}
