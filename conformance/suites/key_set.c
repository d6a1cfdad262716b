/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of keys: open addressing in an arena, at most three quarters full. */
#include "conformance/suites/key_set.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

struct moon_key_set_entry {
    struct moon_key_text key; /* bytes NULL: free */
    int64_t number;
};

void moon_key_set_open(struct moon_key_set *set, struct moon_arena *arena) {
    *set = (struct moon_key_set){.arena = arena};
}

/* The entry of a key, or the free one where it belongs. The set has room, so there is one. */
static struct moon_key_set_entry *place(const struct moon_key_set *set, struct moon_key_text key) {
    size_t at = (size_t)XXH3_64bits(key.bytes, key.length);
    for (size_t step = 0; step < set->room; step++) {
        struct moon_key_set_entry *entry = &set->entries[(at + step) & (set->room - 1)];
        if (!entry->key.bytes ||
            (entry->key.length == key.length && memcmp(entry->key.bytes, key.bytes, key.length) == 0))
            return entry;
    }
    assert(false);
    return NULL;
}

/* Twice the room; the old entries stay behind in the arena. */
static int grow(struct moon_key_set *set) {
    struct moon_key_set larger = *set;
    larger.room = set->room ? set->room * 2 : 64;
    larger.entries = moon_arena_array(set->arena, larger.room, sizeof *larger.entries);
    if (!larger.entries)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < set->room; i++)
        if (set->entries[i].key.bytes)
            *place(&larger, set->entries[i].key) = set->entries[i];
    *set = larger;
    return 0;
}

int moon_key_set_put(struct moon_key_set *set, struct moon_key_text key, int64_t number) {
    if (set->count >= set->room / 4 * 3 && grow(set))
        return MOON_ERR_MEMORY;
    struct moon_key_set_entry *entry = place(set, key);
    if (!entry->key.bytes) {
        const char *copy = moon_arena_copy(set->arena, key.bytes, key.length);
        if (!copy)
            return MOON_ERR_MEMORY;
        entry->key = (struct moon_key_text){copy, key.length};
        set->count++;
    }
    entry->number = number;
    return 0;
}

const int64_t *moon_key_set_find(const struct moon_key_set *set, struct moon_key_text key) {
    if (set->count == 0)
        return NULL;
    const struct moon_key_set_entry *entry = place(set, key);
    return entry->key.bytes ? &entry->number : NULL;
}

static int put(struct moon_key_set *set, const char *bytes, size_t length, int64_t number, struct moon_error *error) {
    if (moon_key_set_put(set, (struct moon_key_text){bytes, length}, number))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    return 0;
}

int moon_key_set_read_list(struct moon_key_set *set, const char *source, const struct moon_json *given,
                           const char *name, struct moon_error *error) {
    struct moon_json *list = NULL;
    int status = moon_json_get(source, given, name, false, MOON_JSON_ARRAY, &list, error);
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next)
        status = each->type == MOON_JSON_STRING
                     ? put(set, each->bytes, each->length, 1, error)
                     : moon_json_fail(error, MOON_ERR_SCHEMA, source, each, "a key is a text");
    return status;
}

int moon_key_set_read_numbers(struct moon_key_set *set, const char *source, const struct moon_json *given,
                              const char *name, struct moon_error *error) {
    struct moon_json *object = NULL;
    int status = moon_json_get(source, given, name, false, MOON_JSON_OBJECT, &object, error);
    for (const struct moon_json *each = object ? object->first : NULL; each && !status; each = each->next) {
        if (each->type != MOON_JSON_INTEGER)
            status = moon_json_fail(error, MOON_ERR_SCHEMA, source, each, "an answer of the store is an integer");
        else if (!each->fits)
            status = moon_json_fail(error, MOON_ERR_RANGE, source, each, "not a 64-bit number");
        else
            status = put(set, each->name, each->name_length, each->integer, error);
    }
    return status;
}
