/* SPDX-License-Identifier: Apache-2.0 */
/* A set of keys with a number each: what a store of a case holds, and what it answers. */
#ifndef MOON_CONFORMANCE_SUITES_KEY_SET_H
#define MOON_CONFORMANCE_SUITES_KEY_SET_H

#include "ref/base/json.h"
#include "ref/key/pool_key.h"

/* Lives in the arena, which is not given back before it is closed. Plain data. Nobody sees an order. */
struct moon_key_set {
    struct moon_arena *arena;
    struct moon_key_set_entry *entries; /* `room` of them, a power of two, or NULL */
    size_t count, room;
};

void moon_key_set_open(struct moon_key_set *set, struct moon_arena *arena);
/* Adds a key (copied), or changes the number of one that is there. Returns 0 or MOON_ERR_MEMORY. */
int moon_key_set_put(struct moon_key_set *set, struct moon_key_text key, int64_t number);
/* The number of a key, or NULL if it is not there. Valid until the next put. */
const int64_t *moon_key_set_find(const struct moon_key_set *set, struct moon_key_text key);

/* Adds member `name` of `given`: an array of keys, each with number 1. Left out: adds nothing. Returns 0,
 * MOON_ERR_SCHEMA with the place, or MOON_ERR_MEMORY. */
int moon_key_set_read_list(struct moon_key_set *set, const char *source, const struct moon_json *given,
                           const char *name, struct moon_error *error);
/* Adds member `name` of `given`: an object from keys to integers. Left out: adds nothing. Returns as above; numbers
 * beyond int64_t are MOON_ERR_RANGE. */
int moon_key_set_read_numbers(struct moon_key_set *set, const char *source, const struct moon_json *given,
                              const char *name, struct moon_error *error);

#endif
