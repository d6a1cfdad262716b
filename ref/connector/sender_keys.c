/* SPDX-License-Identifier: Apache-2.0 */
/* Sender: the keys of a job, those of them that are missing, and the calls that ask for them and put them. */
#include "ref/connector/sender_internal.h"

#include "ref/layout/replication.h"

#include <assert.h>

/* ---- keys ---- */

static void forget_identities(struct moon_sender_keys *keys) {
    for (size_t i = 0; i < keys->identity_count; i++)
        keys->identities[i] = MOON_IDENTITY_NONE;
}

int moon_sender_keys_open(struct moon_sender_keys *keys, const struct moon_connector *connector,
                          const struct moon_rank *rank, const struct moon_segments *segments,
                          struct moon_memory *memory) {
    *keys = (struct moon_sender_keys){.connector = connector, .segments = segments, .memory = memory, .rank = *rank};
    keys->shards = moon_local_shards(connector->model, &connector->selection, rank->tp);
    moon_key_list_open(&keys->keys, memory);
    moon_arena_open(&keys->arena, memory);
    size_t count, bytes;
    if (__builtin_mul_overflow(connector->model->group_count, (size_t)keys->shards.count, &count) ||
        __builtin_mul_overflow(count, sizeof *keys->identities, &bytes))
        return MOON_ERR_MEMORY;
    keys->identities = memory->resize(memory, NULL, 0, bytes);
    keys->identity_count = keys->identities ? count : 0;
    forget_identities(keys);
    return keys->identities ? 0 : MOON_ERR_MEMORY;
}

void moon_sender_keys_close(struct moon_sender_keys *keys) {
    keys->memory->resize(keys->memory, keys->identities, keys->identity_count * sizeof *keys->identities, 0);
    keys->memory->resize(keys->memory, keys->puts, keys->capacity * sizeof *keys->puts, 0);
    moon_key_list_close(&keys->keys);
    moon_arena_close(&keys->arena);
}

void moon_sender_keys_clear(struct moon_sender_keys *keys) {
    if (keys->keys.failed) {
        moon_key_list_clear(&keys->keys); /* begins anew, so that it can be tried again */
        forget_identities(keys);
    }
    moon_key_list_clear_keys(&keys->keys);
    moon_arena_close(&keys->arena);
    keys->count = keys->stored_count = 0;
    keys->stored = NULL;
}

static int reserve_put(struct moon_sender_keys *keys) {
    struct moon_put *grown =
        moon_memory_grow(keys->memory, keys->puts, &keys->capacity, keys->count + 1, sizeof *grown, 64);
    if (grown)
        keys->puts = grown;
    return grown ? 0 : MOON_ERR_MEMORY;
}

/* True if two puts are shards of one chunk. */
static bool same_chunk(const struct moon_put *a, const struct moon_put *b) {
    return a->group == b->group && a->chunk.start_tokens == b->chunk.start_tokens &&
           a->chunk.end_tokens == b->chunk.end_tokens;
}

/* Number of the identity of a group and shard in the list. */
static uint32_t identity(struct moon_sender_keys *keys, size_t group, int64_t shard) {
    const struct moon_connector *connector = keys->connector;
    size_t place = group * (size_t)keys->shards.count + (size_t)(shard - keys->shards.first);
    assert(place < keys->identity_count);
    if (keys->identities[place] == MOON_IDENTITY_NONE) {
        const struct moon_pool_key key =
            moon_rank_key(connector->profile, connector->model, &connector->selection, &keys->rank, group, shard);
        keys->identities[place] = moon_key_list_identity(&keys->keys, connector->profile, &key);
    }
    return keys->identities[place];
}

int moon_sender_keys_add(struct moon_sender_keys *keys, const struct moon_job *job, const struct moon_put *put) {
    if (reserve_put(keys))
        return MOON_ERR_MEMORY;
    bool again = keys->count > 0 && same_chunk(&keys->puts[keys->count - 1], put);
    uint32_t hash =
        again ? keys->keys.pairs[keys->count - 1].hash : moon_key_list_hash(&keys->keys, &job->hashes, &put->chunk);
    uint32_t number = identity(keys, put->group, put->shard);
    if (!keys->keys.failed)
        moon_key_list_add(&keys->keys, number, hash);
    keys->puts[keys->count++] = *put;
    return keys->keys.failed ? MOON_ERR_MEMORY : 0;
}

/* Ranks that share out chunks although their bytes differ: they have keys of their own, as DCP ranks have (SAVE-015),
 * or states of their own. */
static void note_stripes(const struct moon_connector *connector) {
    const struct moon_layout_model *model = connector->model;
    for (size_t group = 0; connector->notes && group < model->group_count; group++) {
        bool shared_out = moon_replication_factor(connector->profile, model, group) > 1;
        if (shared_out && model->dcp > 1)
            moon_deviation_note(connector->notes, MOON_DEVIATION_STRIPED_UNDER_DCP);
        if (shared_out && model->groups[group].spec.kind == MOON_SPEC_MAMBA)
            moon_deviation_note(connector->notes, MOON_DEVIATION_MAMBA_SHARED_OUT);
    }
}

int moon_sender_keys_of_save(struct moon_sender_keys *keys, const struct moon_job *job, int64_t start_tokens,
                             struct moon_error *error) {
    const struct moon_connector *connector = keys->connector;
    const struct moon_save save = {.tokens = job->save_tokens,
                                   .hash_count = (int64_t)job->hashes.count,
                                   .prefill_end_tokens = job->prefill_end_tokens,
                                   .tables = job->tables->groups,
                                   .start_tokens = start_tokens,
                                   .tail_apart = true};
    struct moon_puts walk;
    struct moon_put put;
    moon_sender_keys_clear(keys);
    note_stripes(connector);
    int status =
        moon_puts_begin(&walk, connector->profile, connector->model, &connector->selection, &keys->rank, &save, error);
    while (!status && moon_puts_next(&walk, &put))
        status = moon_sender_keys_add(keys, job, &put);
    return status;
}

void moon_sender_keys_drop_present(struct moon_sender_keys *keys, const int64_t *values) {
    size_t kept = 0;
    for (size_t i = 0; i < keys->count; i++) {
        if (values[i] == 1)
            continue;
        keys->puts[kept] = keys->puts[i];
        keys->keys.pairs[kept++] = keys->keys.pairs[i];
    }
    keys->count = keys->keys.count = kept;
}

/* ---- calls ---- */

void moon_sender_keys_ask(const struct moon_sender_keys *keys, struct moon_store_call *call) {
    *call = (struct moon_store_call){.kind = MOON_CALL_EXIST, .keys = &keys->keys, .count = keys->count};
}

/* Blocks that are read. Up to 0.28 a missing one ends the job, and the null block is read like any other. */
static int list_blocks(struct moon_sender_keys *keys, uint64_t *blocks, struct moon_error *error) {
    for (size_t i = 0; i < keys->count; i++) {
        int64_t block = keys->puts[i].block;
        if (block == MOON_BLOCK_MISSING)
            return moon_refuse(error, "IndexError", "list index out of range");
        if (block == 0)
            moon_deviation_note(keys->connector->notes, MOON_DEVIATION_NULL_BLOCKS_PUT);
        blocks[i] = (uint64_t)block;
    }
    return 0;
}

/* Lifecycle group ids (KEY-013), in one text. */
static int list_groups(struct moon_sender_keys *keys, struct moon_key_text *groups) {
    const struct moon_connector *connector = keys->connector;
    struct moon_text text;
    moon_text_open(&text, keys->memory);
    for (size_t i = 0; i < keys->count; i++) {
        const struct moon_put *put = &keys->puts[i];
        const struct moon_pool_key key = moon_rank_key(connector->profile, connector->model, &connector->selection,
                                                       &keys->rank, put->group, put->shard);
        size_t before = text.length;
        moon_key_lifecycle_group(connector->profile, &key, moon_key_list_hash_text(&keys->keys, i), &text);
        groups[i].length = text.length - before;
    }
    const char *bytes = text.failed ? NULL : moon_arena_copy(&keys->arena, moon_text_value(&text), text.length);
    for (size_t i = 0, at = 0; bytes && i < keys->count; at += groups[i++].length)
        groups[i].bytes = bytes + at;
    moon_text_close(&text);
    return bytes ? 0 : MOON_ERR_MEMORY;
}

/* Buffers of chunks in one array, as the layout has them: one request for each run of keys of one group. */
static int list_chunks(struct moon_sender_keys *keys, const struct moon_job *job, uint64_t *blocks,
                       struct moon_buffer *buffers, struct moon_error *error) {
    struct moon_token_range *ranges = moon_arena_array(&keys->arena, keys->count, sizeof *ranges);
    int64_t *shards = moon_arena_array(&keys->arena, keys->count, sizeof *shards);
    if (!ranges || !shards)
        return MOON_ERR_MEMORY;
    int status = 0;
    for (size_t first = 0, end = 0; !status && first < keys->count; first = end) {
        size_t group = keys->puts[first].group;
        for (; end < keys->count && keys->puts[end].group == group; end++) {
            const struct moon_put *put = &keys->puts[end];
            ranges[end] = (struct moon_token_range){(uint64_t)put->chunk.start_tokens, (uint64_t)put->chunk.end_tokens};
            shards[end] = put->shard;
        }
        const struct moon_layout_model *model = keys->connector->model;
        const struct moon_block_table *table = &job->tables->groups[group];
        const struct moon_segment_request request = {
            .block_size_tokens = (uint64_t)model->groups[group].block_tokens,
            .hash_block_size_tokens = (uint64_t)model->hash_block_tokens,
            .chunks = ranges + first,
            .chunk_count = end - first,
            .block_ids = (const uint64_t *)table->blocks, /* the same type but for the sign, and none is negative */
            .block_count = table->count,
            .shard_ids = shards + first,
            .shard_count = end - first};
        status = moon_segments_list(keys->segments, &request, buffers + first * keys->segments->per_chunk,
                                    blocks + first, error);
    }
    return status;
}

/* Buffers of all keys: whole blocks of boundary puts, else chunks. */
static int list_buffers(struct moon_sender_keys *keys, const struct moon_job *job, bool boundary, uint64_t *blocks,
                        struct moon_buffer **out, struct moon_error *error) {
    size_t per_chunk = keys->segments->per_chunk, count;
    bool fits = !__builtin_mul_overflow(keys->count, per_chunk, &count);
    struct moon_buffer *buffers = *out = fits ? moon_arena_array(&keys->arena, count, sizeof *buffers) : NULL;
    if (!buffers)
        return MOON_ERR_MEMORY;
    if (!boundary)
        return list_chunks(keys, job, blocks, buffers, error);
    int status = 0;
    for (size_t i = 0; i < keys->count && !status; i++)
        status = moon_segments_whole_block(keys->segments, blocks[i], buffers + i * per_chunk, error);
    return status;
}

int moon_sender_keys_put(struct moon_sender_keys *keys, const struct moon_job *job, bool boundary,
                         struct moon_store_call *call, struct moon_error *error) {
    const struct moon_connector_options *options = &keys->connector->options;
    uint64_t *blocks = moon_arena_array(&keys->arena, keys->count, sizeof *blocks);
    struct moon_buffer *buffers = NULL;
    struct moon_key_text *groups = NULL;
    int status = blocks ? list_blocks(keys, blocks, error) : MOON_ERR_MEMORY;
    if (!status && keys->segments)
        status = list_buffers(keys, job, boundary, blocks, &buffers, error);
    if (!status && options->enable_group_semantics) {
        groups = moon_arena_array(&keys->arena, keys->count, sizeof *groups);
        status = groups ? list_groups(keys, groups) : MOON_ERR_MEMORY;
    }
    if (!status && options->kv_events && !boundary) {
        keys->stored = moon_arena_array(&keys->arena, keys->count, sizeof *keys->stored);
        status = keys->stored ? 0 : MOON_ERR_MEMORY;
    }
    *call = (struct moon_store_call){.kind = MOON_CALL_PUT,
                                     .keys = &keys->keys,
                                     .count = keys->count,
                                     .blocks = blocks,
                                     .buffers = buffers,
                                     .buffers_per_key = buffers ? keys->segments->per_chunk : 0,
                                     .groups = groups};
    return status;
}

void moon_sender_keys_note_stored(struct moon_sender_keys *keys, const int64_t *values) {
    for (size_t i = 0; keys->stored && i < keys->count; i++) {
        const struct moon_put *put = &keys->puts[i];
        if (i == 0 || !same_chunk(&keys->puts[i - 1], put))
            keys->stored[keys->stored_count++] = (struct moon_stored_block){.group = put->group, .chunk = put->chunk};
        keys->stored[keys->stored_count - 1].failed |= values && values[i] < 0;
    }
}
