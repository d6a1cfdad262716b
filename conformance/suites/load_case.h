/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load in parts: reading a case, running it on every rank, explaining, and drawing cases. */
#ifndef MOON_CONFORMANCE_SUITES_LOAD_CASE_H
#define MOON_CONFORMANCE_SUITES_LOAD_CASE_H

#include "conformance/suites/connector_case.h"
#include "conformance/suites/key_set.h"
#include "conformance/suites/suite.h"
#include "ref/connector/receiver.h"
#include "ref/connector/scheduler.h"

enum {
    MOON_LOAD_RANKS_MAX = 1024,
    MOON_LOAD_LAYERS_MAX = 1 << 16,  /* of all groups */
    MOON_LOAD_BUFFERS_MAX = 1 << 22, /* that one case reads into, over all ranks */
};

/* A case as read. It points into itself: read it where it stays. Borrows from arena and document.
 *   caches       one a layer that the release registers, in order; cache i is alone in storage i
 *   tensors      name of each storage
 *   caches of a TP-sharded layout have the dimensions that it wants
 *   groups_of_engine  groups, stored or not;  tables  block table of each store group
 *   stored       hash texts of the keys that the store has;  results  what gets of a key answer
 *   raises_on_call    number of the GET on each rank that raises, or -1 */
struct moon_load_case {
    struct moon_connector_case connector;
    int64_t num_blocks, num_tokens, computed_tokens;
    struct moon_hashes hashes;
    struct moon_tensor *caches;
    uint64_t *storage_bytes;
    const char **tensors;
    size_t cache_count, storage_count;
    size_t groups_of_engine;
    struct moon_block_table *tables;
    bool offload, tier_log;
    struct moon_staging staging;
    struct moon_key_set stored, results;
    int64_t raises_on_call;
};

/* Reads `given`. What is left out besides the engine's members: caches of 64 bytes a token (8 a head and token of a
 * TP-sharded layout), a prompt of one block
 * and a token that is all stored, no prefix of the engine's own, blocks 1, 2, 3, ..., no offloading, gets that read
 * everything. Errors as moon_connector_case_read. */
int moon_load_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_load_case *out, struct moon_error *error);

/* Who looks on while a case runs. Any member but context may be NULL.
 *   matched  what the scheduler side answered to the core
 *   begins   a rank takes its job
 *   called   a rank made a call: results, one a key, or NULL if it raised
 *   ended    a rank has run all it had; its reports wait to be taken */
struct moon_load_watch {
    void *context;
    void (*matched)(void *context, const struct moon_match *match);
    void (*begins)(void *context, const struct moon_rank *rank, const struct moon_segments *segments,
                   const struct moon_job *job);
    void (*called)(void *context, const struct moon_store_call *call, const int64_t *results);
    void (*ended)(void *context, const struct moon_rank *rank, struct moon_receiver *receiver);
};
/* Looks the request up, allocates, plans the load and runs it on rank after rank. Returns 0, MOON_ERR_REFUSED with what
 * the release raises, MOON_ERR_RANGE, MOON_ERR_LIMIT or MOON_ERR_MEMORY. */
int moon_load_run(struct moon_arena *arena, const char *source, const struct moon_json *given,
                  struct moon_load_case *its, const struct moon_load_watch *watch, struct moon_error *error);

/* The load in words (conformance/suites/load_explain.c) and new cases (conformance/suites/load_draw.c); as moon_suite.
 */
int moon_load_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error);
int moon_load_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given);

#endif
