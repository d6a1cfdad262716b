/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing the sample prompt with the release's own rules. */
#include "ref/config/compat_hash.h"

#include "ref/hash/none_hash.h"

#include <string.h>

enum { EMBEDS_ROW_BYTES = 8 };

enum moon_compat_root moon_compat_root(const struct moon_compat_description *description) {
    if (description->seed)
        return MOON_COMPAT_ROOT_SEED;
    bool fixed = description->profile->none_hash == MOON_NONE_HASH_FIXED_SEED &&
                 moon_hash_algorithm_is_sha256(description->algorithm);
    return fixed ? MOON_COMPAT_ROOT_FIXED : MOON_COMPAT_ROOT_RANDOM;
}

bool moon_compat_seed_starts(const struct moon_json *seed) {
    if (seed->length == 0 || strcmp(seed->bytes, "random") == 0)
        return true;
    uint64_t value = 0;
    for (size_t i = 0; i < seed->length; i++) {
        if (seed->bytes[i] < '0' || seed->bytes[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(seed->bytes[i] - '0');
        if (value > UINT32_MAX)
            return false;
    }
    return true;
}

/* Stands for the random bytes of a process: any two sides differ, runs of the tool do not. */
static int fill_by_side(void *context, void *bytes, size_t length) {
    const int *side = context;
    memset(bytes, 0xA0 + *side, length);
    return 0;
}

static int find_root(struct moon_hasher *hasher, const struct moon_compat_description *description, int side,
                     struct moon_none_hash_value *out, struct moon_error *error) {
    const struct moon_entropy entropy = {fill_by_side, &side};
    const struct moon_json *given = description->seed;
    struct moon_string seed = {.bytes = given ? given->bytes : NULL, .length = given ? given->length : 0};
    return moon_none_hash(hasher, description->profile, given ? &seed : NULL, &entropy, NULL, out, error);
}

/* The request's identity in the hasher's form. `rows` stand for its embeddings: each row differs from the others. */
static int make_identity(struct moon_arena *arena, const struct moon_compat_request *request, size_t rows,
                         struct moon_identity *identity, struct moon_embeds *embeds) {
    *identity = (struct moon_identity){
        .lora_name = request->lora ? &request->lora_name : NULL,
        .lora_path = request->lora ? &request->lora_path : NULL,
        .cache_salt = request->salt ? &request->cache_salt : NULL,
        .mm_count = request->mm_count,
    };
    struct moon_mm_item *items = moon_arena_array(arena, request->mm_count, sizeof *items);
    if (!items)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < request->mm_count; i++)
        items[i] = (struct moon_mm_item){
            .identifier = request->mm[i].identifier, .offset = request->mm[i].offset, .length = request->mm[i].length};
    identity->mm = items;
    if (!request->embeds)
        return 0;
    uint8_t *bytes = moon_arena_array(arena, rows, EMBEDS_ROW_BYTES);
    if (!bytes)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < 4; k++)
            bytes[i * EMBEDS_ROW_BYTES + k] = (uint8_t)(i >> (8 * k));
    *embeds = (struct moon_embeds){.bytes = bytes, .row_bytes = EMBEDS_ROW_BYTES, .rows = rows};
    identity->embeds = embeds;
    return 0;
}

static int hash_all(struct moon_arena *arena, struct moon_hasher *hasher,
                    const struct moon_compat_description *description, const struct moon_identity *identity,
                    const struct moon_none_hash_value *root, const int64_t *tokens, size_t count, int64_t block_tokens,
                    struct moon_hashes *out, struct moon_error *error) {
    const struct moon_chain_options options = {
        .profile = description->profile,
        .block_tokens = (uint32_t)block_tokens,
        .none_hash = root->bytes,
        .none_hash_bytes = root->length,
        .identity = identity,
    };
    struct moon_chain chain;
    moon_chain_open(&chain, hasher, &options, arena->memory);
    size_t bytes = moon_hash_algorithm_bytes(description->algorithm);
    size_t blocks = moon_chain_blocks_after(&chain, count);
    uint8_t *hashes = moon_arena_array(arena, blocks, bytes);
    int status = hashes ? moon_chain_append(&chain, tokens, count, hashes, error) : MOON_ERR_MEMORY;
    moon_chain_close(&chain);
    *out = (struct moon_hashes){.bytes = hashes, .hash_bytes = bytes, .count = blocks};
    return status;
}

int moon_compat_hashes(struct moon_arena *arena, const struct moon_compat_description *description, int side,
                       const struct moon_compat_request *request, const int64_t *tokens, size_t count,
                       int64_t block_tokens, struct moon_hashes *out, struct moon_error *error) {
    struct moon_hasher hasher;
    struct moon_identity identity;
    struct moon_embeds embeds;
    struct moon_none_hash_value root;
    moon_hasher_open(&hasher, description->algorithm, arena->memory);
    int status = find_root(&hasher, description, side, &root, error);
    if (status == 0)
        status = make_identity(arena, request, count, &identity, &embeds);
    if (status == 0)
        status = hash_all(arena, &hasher, description, &identity, &root, tokens, count, block_tokens, out, error);
    moon_hasher_close(&hasher);
    return status == MOON_ERR_MEMORY ? moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for block hashes") : status;
}
