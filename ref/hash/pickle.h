/* SPDX-License-Identifier: Apache-2.0 */
/* Python pickle, protocol 5, of None, int, str, bytes and tuple: byte for byte what CPython's C pickler writes. */
#ifndef MOON_HASH_PICKLE_H
#define MOON_HASH_PICKLE_H

#include "ref/base/error.h"
#include "ref/hash/bigint.h"
#include "ref/hash/object.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_PICKLE_FRAME_BYTES = 64 * 1024
}; /* a frame is closed once it holds this much; values as large stand outside */

/* One entry of the table from object to memo number. */
struct moon_pickle_memo {
    uint64_t object; /* key of an object: identity or singleton */
    uint32_t index;  /* its memo number */
    uint32_t pickle; /* number of the pickle the entry belongs to; others are stale */
};

/* Writes one object at a time to a sink. Buffers one frame (its length stands before it), at most 128 KiB; larger
 * values pass through. Owns its buffer and table, which are kept from object to object, so that in the long run nothing
 * is allocated. Thread rule: one thread at a time. Private, except `failed`: memory refused since moon_pickle_begin;
 * later writes change nothing. */
struct moon_pickle {
    struct moon_memory *memory;
    struct moon_sink sink;
    uint8_t *frame; /* room for the frame's head, then its content */
    size_t frame_capacity;
    size_t frame_bytes; /* content so far */
    struct moon_pickle_memo *memo;
    uint32_t memo_capacity; /* a power of two, or 0 */
    uint32_t memo_used;
    uint32_t memo_next; /* memo number of the next object */
    uint32_t pickle;    /* number of this pickle, from 1 */
    bool failed;
};

void moon_pickle_open(struct moon_pickle *pickle, struct moon_memory *memory);
void moon_pickle_close(struct moon_pickle *pickle); /* idempotent */

/* Starts an object whose bytes go to `sink`. Whatever was not finished before is forgotten. (HASH-020) */
void moon_pickle_begin(struct moon_pickle *pickle, struct moon_sink sink);

void moon_pickle_none(struct moon_pickle *pickle);
void moon_pickle_int(struct moon_pickle *pickle, int64_t value);                    /* HASH-022 */
void moon_pickle_big(struct moon_pickle *pickle, const struct moon_bigint *value);  /* HASH-022 */
void moon_pickle_str(struct moon_pickle *pickle, const struct moon_string *string); /* HASH-023 to HASH-026, HASH-021 */
void moon_pickle_bytes(struct moon_pickle *pickle, const struct moon_string *bytes); /* the same */
/* A tuple of `count` items: begin, the items, end with the same count. Depth is not limited. (HASH-023) */
void moon_pickle_tuple_begin(struct moon_pickle *pickle, size_t count);
void moon_pickle_tuple_end(struct moon_pickle *pickle, size_t count);

/* Ends the object: the sink has then got all of it. Returns 0, or MOON_ERR_MEMORY (the sink got a part). */
int moon_pickle_finish(struct moon_pickle *pickle);

#ifdef __cplusplus
}
#endif
#endif
