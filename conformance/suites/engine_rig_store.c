/* SPDX-License-Identifier: Apache-2.0 */
/* The rig's store: a dictionary of bytes, and what an object must hold by its key. */
#include "conformance/suites/engine_rig_internal.h"
#include "ref/engine/token.h"

#include <assert.h>
#include <string.h>

enum { NOT_FOUND = -704, WRONG_SIZE = -600 };

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
}

/* ---- what a key means ---- */

static int add_identity(struct moon_rig *rig, const struct rig_rank *rank, int64_t shard) {
    const struct moon_connector *connector = &rig->its->its.connector;
    const struct moon_layout_model *model = connector->model;
    const struct moon_pool_key key =
        moon_rank_key(connector->profile, model, &connector->selection, &rank->rank, 0, shard);
    struct rig_identity *identity = &rig->identity_list[rig->identities.count];
    *identity = (struct rig_identity){rank->kv.shape.first_head, rank->kv.shape.heads};
    if (moon_store_sharded(&connector->selection)) {
        identity->heads = (uint64_t)(model->total_kv_heads / connector->selection.space.store_tp);
        identity->first_head = (uint64_t)shard * identity->heads;
    }
    moon_text_clear(&rig->key);
    moon_key_prefix(connector->profile, &key, &rig->key);
    const struct moon_key_text text = {moon_text_value(&rig->key), rig->key.length};
    if (rig->key.failed)
        return MOON_ERR_MEMORY;
    if (moon_key_set_find(&rig->identities, text)) /* ranks that hold the same bytes share it */
        return 0;
    return moon_key_set_put(&rig->identities, text, identity - rig->identity_list);
}

/* Heads of an object by its key, or NULL for a key of somebody else. */
static const struct rig_identity *identity_of(const struct moon_rig *rig, struct moon_key_text key, size_t *hash_at) {
    *hash_at = key.length;
    while (*hash_at > 0 && key.bytes[*hash_at - 1] != '@')
        --*hash_at;
    if (*hash_at == 0)
        return NULL;
    const int64_t *number = moon_key_set_find(&rig->identities, (struct moon_key_text){key.bytes, *hash_at - 1});
    return number ? &rig->identity_list[*number] : NULL;
}

/* The prefixes of the tokens of a block by its hash, or NULL if no request has it. */
static const uint64_t *tokens_of(const struct moon_rig *rig, const char *hex, size_t length) {
    uint8_t hash[MOON_DIGEST_BYTES_MAX];
    int64_t block_tokens = rig->its->its.engine.model.hash_block_tokens;
    if (length > 2 * sizeof hash || moon_hex_decode(hex, length, hash))
        return NULL;
    for (uint32_t slot = 0; slot < MOON_ENGINE_CASE_REQUESTS_MAX; slot++) {
        const struct moon_core_request *request = moon_core_find(rig->core, slot);
        const struct moon_hashes *hashes = request ? &request->request.hashes : NULL;
        for (size_t i = 0; hashes && i < hashes->count; i++)
            if (hashes->hash_bytes * 2 == length &&
                memcmp(hashes->bytes + i * hashes->hash_bytes, hash, hashes->hash_bytes) == 0)
                return rig->requests[slot].prefixes + (int64_t)i * block_tokens;
    }
    return NULL;
}

static size_t object_bytes(const struct moon_rig *rig, const struct rig_identity *identity) {
    const struct moon_kv_shape *shape = &rig->ranks[0].kv.shape;
    return (size_t)(shape->layers * identity->heads * shape->block_tokens) * 2 * shape->half_bytes;
}

/* What the object of a key holds: for each layer, head by head or token by token. */
static void fill_object(const struct moon_rig *rig, const struct rig_identity *identity, const uint64_t *prefixes,
                        uint8_t *out) {
    const struct moon_kv_shape *shape = &rig->ranks[0].kv.shape;
    uint64_t outer = shape->token_outer ? shape->block_tokens : identity->heads;
    uint64_t inner = shape->token_outer ? identity->heads : shape->block_tokens;
    for (uint64_t layer = 0; layer < shape->layers; layer++)
        for (uint64_t i = 0; i < outer * inner; i++) {
            uint64_t head = identity->first_head + (shape->token_outer ? i % inner : i / inner);
            uint64_t token = shape->token_outer ? i / inner : i % inner;
            moon_token_cell(prefixes[token], layer, head, shape->half_bytes, out);
            out += 2 * shape->half_bytes;
        }
}

/* The bytes that a key promises, in the arena; *found false: nobody knows. */
static int promised(struct moon_rig *rig, struct moon_key_text key, struct rig_object *out, bool *found,
                    struct moon_error *error) {
    size_t hash_at;
    const struct rig_identity *identity = identity_of(rig, key, &hash_at);
    const uint64_t *prefixes = identity ? tokens_of(rig, key.bytes + hash_at, key.length - hash_at) : NULL;
    *found = prefixes != NULL;
    if (!*found)
        return 0;
    out->size = object_bytes(rig, identity);
    out->bytes = moon_arena_alloc(rig->arena, out->size);
    if (!out->bytes)
        return out_of_memory(error);
    fill_object(rig, identity, prefixes, out->bytes);
    return 0;
}

/* ---- the dictionary ---- */

static int add_object(struct moon_rig *rig, struct moon_key_text key, const struct rig_object *object) {
    size_t count = rig->keys.count;
    assert(rig->objects);
    if (count == rig->object_capacity) {
        size_t capacity = 2 * count;
        struct rig_object *grown = moon_arena_array(rig->arena, capacity, sizeof *grown);
        if (!grown)
            return MOON_ERR_MEMORY;
        for (size_t i = 0; i < count; i++)
            grown[i] = rig->objects[i];
        rig->objects = grown;
        rig->object_capacity = capacity;
    }
    rig->objects[count] = *object;
    return moon_key_set_put(&rig->keys, key, (int64_t)count);
}

static struct rig_object *find(const struct moon_rig *rig, struct moon_key_text key) {
    const int64_t *number = moon_key_set_find(&rig->keys, key);
    return number ? &rig->objects[*number] : NULL;
}

/* Bytes of the buffers of key `index`. */
static size_t buffer_bytes(const struct moon_store_call *call, size_t index) {
    size_t sum = 0;
    for (size_t i = 0; i < call->buffers_per_key; i++)
        sum += (size_t)call->buffers[index * call->buffers_per_key + i].size_bytes;
    return sum;
}

/* A put keeps what is there already. The bytes are compared with what the key promises. */
static int put(struct moon_rig *rig, struct rig_rank *rank, const struct moon_store_call *call, size_t index,
               struct moon_key_text key, struct moon_error *error) {
    const struct moon_buffer *buffers = call->buffers + index * call->buffers_per_key;
    struct rig_object object = {.size = buffer_bytes(call, index)}, right = {0};
    bool known;
    rig->values[index] = 0;
    if (find(rig, key))
        return 0;
    object.bytes = moon_arena_alloc(rig->arena, object.size);
    if (!object.bytes)
        return out_of_memory(error);
    int status = promised(rig, key, &right, &known, error);
    if (status)
        return status;
    if (!moon_kv_memory_gather(&rank->kv, buffers, call->buffers_per_key, object.bytes) || !known ||
        object.size != right.size)
        rig->wrong_bytes += object.size;
    else
        for (size_t i = 0; i < object.size; i++)
            rig->wrong_bytes += object.bytes[i] != right.bytes[i];
    return add_object(rig, key, &object) ? out_of_memory(error) : 0;
}

static int get(struct moon_rig *rig, struct rig_rank *rank, const struct moon_store_call *call, size_t index,
               struct moon_key_text key, struct moon_error *error) {
    struct rig_object *object = find(rig, key);
    const struct moon_buffer *buffers = call->buffers + index * call->buffers_per_key;
    bool known = object != NULL;
    int status = object && !object->bytes ? promised(rig, key, object, &known, error) : 0;
    if (!known)
        rig->values[index] = NOT_FOUND;
    else if (!status && (object->size != buffer_bytes(call, index) ||
                         !moon_kv_memory_scatter(&rank->kv, buffers, call->buffers_per_key, object->bytes)))
        rig->values[index] = WRONG_SIZE;
    else if (!status)
        rig->values[index] = (int64_t)object->size;
    return status;
}

int moon_rig_store_call(struct moon_rig *rig, struct rig_rank *rank, const struct moon_store_call *call,
                        struct moon_error *error) {
    int status = 0;
    if (call->count > rig->value_capacity) {
        rig->values = moon_arena_array(rig->arena, call->count, sizeof *rig->values);
        rig->value_capacity = rig->values ? call->count : 0;
        if (!rig->values)
            return out_of_memory(error);
    }
    for (size_t i = 0; i < call->count && !status; i++) {
        moon_text_clear(&rig->key);
        moon_key_list_write(call->keys, call->first + i, &rig->key);
        const struct moon_key_text key = {moon_text_value(&rig->key), rig->key.length};
        if (rig->key.failed)
            status = out_of_memory(error);
        else if (call->kind == MOON_CALL_PUT)
            status = put(rig, rank, call, i, key, error);
        else if (call->kind == MOON_CALL_GET)
            status = get(rig, rank, call, i, key, error);
        else
            rig->values[i] = find(rig, key) != NULL;
    }
    return status;
}

int moon_rig_store_open(struct moon_rig *rig, struct moon_error *error) {
    const struct moon_connector *connector = &rig->its->its.connector;
    const struct moon_json *stored = rig->its->stored_before;
    const struct rig_object there = {0};
    int status = 0;
    size_t shards = 0;
    moon_key_set_open(&rig->identities, rig->arena);
    moon_key_set_open(&rig->keys, rig->arena);
    for (size_t i = 0; i < rig->rank_count; i++)
        shards += (size_t)moon_local_shards(connector->model, &connector->selection, rig->ranks[i].rank.tp).count;
    rig->identity_list = moon_arena_array(rig->arena, shards + 1, sizeof *rig->identity_list);
    rig->object_capacity = 64;
    rig->objects = moon_arena_array(rig->arena, rig->object_capacity, sizeof *rig->objects);
    if (!rig->identity_list || !rig->objects)
        return out_of_memory(error);
    for (size_t i = 0; i < rig->rank_count && !status; i++) {
        struct moon_shard_range range =
            moon_local_shards(connector->model, &connector->selection, rig->ranks[i].rank.tp);
        for (int64_t shard = range.first; shard < range.first + range.count && !status; shard++)
            status = add_identity(rig, &rig->ranks[i], shard);
    }
    for (const struct moon_json *each = stored ? stored->first : NULL; each && !status; each = each->next) {
        const struct moon_key_text key = {each->bytes, each->length};
        if (!find(rig, key))
            status = add_object(rig, key, &there);
    }
    return status ? out_of_memory(error) : 0;
}

size_t moon_rig_stored_keys(const struct moon_rig *rig) {
    return rig->keys.count;
}
