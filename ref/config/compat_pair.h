/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of compat share among themselves: two deployments side by side. Nobody else includes it. */
#ifndef MOON_CONFIG_COMPAT_PAIR_H
#define MOON_CONFIG_COMPAT_PAIR_H

#include "ref/config/compat_engine.h"
#include "ref/config/compat_hash.h"
#include "ref/layout/lookup.h"
#include "ref/layout/reach.h"

/* Which chunks of the reader are answered, by group. */
struct pair_presence {
    bool *chunks[MOON_COMPAT_GROUPS_MAX];
};

/* One direction. Prompts are of (k + 1) scheduler blocks of the reader for k < prompts.
 *   answered  chunks whose keys the writer puts, names and hashes taken as equal
 *   own       the same with the reader as writer
 * The arrays ideal, own_hits and found tell how many scheduler blocks a prompt of k + 1 of them finds: from `answered`,
 * from `own`, and with real names and hashes, by kind of request. */
struct pair_direction {
    const struct moon_compat_engine *writer, *reader;
    unsigned bit;
    bool idle;
    size_t prompts;
    struct pair_presence answered, own;
    size_t *ideal, *own_hits, *found[MOON_COMPAT_KIND_COUNT];
};

/* Two deployments. Sides and directions: 0 is A, and A to B.
 *   comparable   both sides have numbers; else only what is written down is compared
 *   same_store   nothing keeps the two from one another's bytes: master, transport, tenant
 *   same_names   keys with equal numbers have equal text but for the hash
 *   same_blocks  equal hash blocks, so that chunk positions mean the same
 *   requests     what is hashed, by kind and side */
struct pair {
    struct moon_arena *arena;
    struct moon_error *error;
    int status; /* first failure; then nothing more is found */
    struct moon_compat_report *report;
    struct moon_compat_finding *last;
    struct moon_compat_description descriptions[2];
    struct moon_compat_engine engines[2];
    bool comparable, same_store, same_names, same_blocks;
    const int64_t *tokens[2];
    size_t token_count[2];
    struct moon_compat_request requests[MOON_COMPAT_KIND_COUNT][2];
    struct moon_hashes hashes[MOON_COMPAT_KIND_COUNT][2];
    struct pair_direction directions[2];
};

/* Adds a finding. `text` and `fix` are formatted or static; NULL text means that memory refused. */
void pair_find(struct pair *pair, enum moon_compat_effect effect, enum moon_compat_subject subject, unsigned directions,
               const char *text, const char *fix);
/* printf into the arena. */
const char *pair_text(struct pair *pair, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *pair_name(const struct pair *pair, int side);
bool pair_judges(const struct pair *pair, enum moon_compat_kind kind);

/* compat_meet.c: keys. Each sets pair->status when memory refuses or a limit is passed. */
/* Chooses the sample prompt and hashes it for each kind; needs comparable. */
void pair_sample(struct pair *pair);
/* Fills both directions. */
void pair_meet(struct pair *pair);
/* True if the key of a chunk of `reader` is that of a chunk of `writer`, but for names and ranks; *chunk gets its
 * number. */
bool pair_chunk_of(const struct moon_compat_engine *writer, const struct moon_compat_engine *reader, size_t group,
                   size_t reader_chunk, size_t *chunk);
/* True if the hash text of the reader's chunk is equal on both sides. */
bool pair_hash_equal(const struct pair *pair, enum moon_compat_kind kind, const struct pair_direction *direction,
                     size_t group, size_t reader_chunk);
/* Whole key of an identity and chunk of one side. */
const char *pair_key(struct pair *pair, int side, const struct moon_pool_key *identity, enum moon_compat_kind kind,
                     size_t chunk);

/* compat_reasons.c, compat_topology.c, compat_bytes.c: findings, in the order of subjects. */
void pair_reasons(struct pair *pair);  /* before keys: start to namespace; sets same_store */
void pair_topology(struct pair *pair); /* groups, ranks, what is stored, roles; needs pair_meet */
void pair_bytes(struct pair *pair);    /* equal keys with different bytes, and warnings about them; needs states */

#endif
