/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of keys as pairs of numbers. */
#include "ref/key/key_list.h"

#include <assert.h>

void moon_key_list_open(struct moon_key_list *list, struct moon_memory *memory) {
    *list = (struct moon_key_list){.memory = memory};
    moon_text_open(&list->text, memory);
}

void moon_key_list_close(struct moon_key_list *list) {
    struct moon_memory *memory = list->memory;
    memory->resize(memory, list->identities, list->identity_capacity * sizeof *list->identities, 0);
    memory->resize(memory, list->hashes, list->hash_capacity * sizeof *list->hashes, 0);
    memory->resize(memory, list->pairs, list->capacity * sizeof *list->pairs, 0);
    moon_text_close(&list->text);
    moon_key_list_open(list, memory);
}

void moon_key_list_clear(struct moon_key_list *list) {
    if (list->failed)
        moon_key_list_close(list);
    moon_text_clear(&list->text);
    list->identity_count = list->hash_count = list->count = 0;
}

void moon_key_list_clear_keys(struct moon_key_list *list) {
    list->hash_count = list->count = 0;
    if (list->identity_count == 0 || list->failed)
        return;
    const struct moon_key_span *last = &list->identities[list->identity_count - 1];
    list->text.length = last->offset + last->length;
    list->text.data[list->text.length] = '\0';
}

/* Room for `wanted` more elements of `bytes` bytes; false, and the list failed, when memory refuses. */
static bool reserve(struct moon_key_list *list, void **array, size_t count, size_t *capacity, size_t bytes,
                    size_t wanted) {
    if (list->failed || list->text.failed || wanted > UINT32_MAX - count) {
        list->failed = true;
        return false;
    }
    if (wanted <= *capacity - count)
        return true;
    void *grown = moon_memory_grow(list->memory, *array, capacity, count + wanted, bytes, 16);
    list->failed = !grown;
    if (grown)
        *array = grown;
    return grown != NULL;
}

static bool reserve_identity(struct moon_key_list *list) {
    void *array = list->identities;
    bool room = reserve(list, &array, list->identity_count, &list->identity_capacity, sizeof *list->identities, 1);
    list->identities = array;
    return room;
}

/* Ends the identity whose text begins at `offset`. */
static uint32_t end_identity(struct moon_key_list *list, size_t offset) {
    moon_text_char(&list->text, '@');
    list->failed |= list->text.failed;
    list->identities[list->identity_count] = (struct moon_key_span){offset, list->text.length - offset};
    return (uint32_t)list->identity_count++;
}

uint32_t moon_key_list_identity(struct moon_key_list *list, const struct moon_profile *profile,
                                const struct moon_pool_key *key) {
    if (!reserve_identity(list))
        return 0;
    size_t offset = list->text.length;
    moon_key_prefix(profile, key, &list->text);
    return end_identity(list, offset);
}

uint32_t moon_key_list_identity_text(struct moon_key_list *list, struct moon_key_text text) {
    if (!reserve_identity(list))
        return 0;
    size_t offset = list->text.length;
    moon_text_bytes(&list->text, text.bytes, text.length);
    return end_identity(list, offset);
}

uint32_t moon_key_list_hash(struct moon_key_list *list, const struct moon_hashes *hashes,
                            const struct moon_chunk *chunk) {
    void *array = list->hashes;
    bool room = reserve(list, &array, list->hash_count, &list->hash_capacity, sizeof *list->hashes, 1);
    list->hashes = array;
    if (!room)
        return 0;
    assert(chunk->first_hash >= 0 && (size_t)(chunk->first_hash + chunk->hash_count) <= hashes->count);
    size_t offset = list->text.length;
    moon_text_hex(&list->text, hashes->bytes + (size_t)chunk->first_hash * hashes->hash_bytes,
                  (size_t)chunk->hash_count * hashes->hash_bytes);
    list->failed |= list->text.failed;
    list->hashes[list->hash_count] = (struct moon_key_span){offset, list->text.length - offset};
    return (uint32_t)list->hash_count++;
}

void moon_key_list_add(struct moon_key_list *list, uint32_t identity, uint32_t hash) {
    moon_key_list_add_run(list, identity, 1, hash);
}

void moon_key_list_add_run(struct moon_key_list *list, uint32_t identity, uint32_t count, uint32_t hash) {
    void *array = list->pairs;
    bool room = reserve(list, &array, list->count, &list->capacity, sizeof *list->pairs, count);
    list->pairs = array;
    if (!room || count == 0)
        return;
    assert(count <= list->identity_count && identity <= list->identity_count - count && hash < list->hash_count);
    struct moon_key_pair *pair = list->pairs + list->count;
    for (uint32_t i = 0; i < count; i++)
        pair[i] = (struct moon_key_pair){identity + i, hash};
    list->count += count;
}

size_t moon_key_list_length(const struct moon_key_list *list, size_t index) {
    assert(index < list->count);
    return list->identities[list->pairs[index].identity].length + list->hashes[list->pairs[index].hash].length;
}

void moon_key_list_write(const struct moon_key_list *list, size_t index, struct moon_text *out) {
    assert(index < list->count);
    const struct moon_key_span *identity = &list->identities[list->pairs[index].identity];
    moon_text_bytes(out, list->text.data + identity->offset, identity->length);
    struct moon_key_text hash = moon_key_list_hash_text(list, index);
    moon_text_bytes(out, hash.bytes, hash.length);
}

struct moon_key_text moon_key_list_hash_text(const struct moon_key_list *list, size_t index) {
    assert(index < list->count);
    const struct moon_key_span *hash = &list->hashes[list->pairs[index].hash];
    return (struct moon_key_text){list->text.data + hash->offset, hash->length};
}
