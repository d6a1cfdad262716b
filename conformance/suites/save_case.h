/* SPDX-License-Identifier: Apache-2.0 */
/* A case of the suite save as it is read: an engine, requests, a store, and the steps of the core. */
#ifndef MOON_CONFORMANCE_SUITES_SAVE_CASE_H
#define MOON_CONFORMANCE_SUITES_SAVE_CASE_H

#include "conformance/suites/connector_case.h"
#include "conformance/suites/key_set.h"
#include "ref/connector/scheduler.h"

enum {
    MOON_SAVE_REQUESTS_MAX = 4096,
    MOON_SAVE_RANKS_MAX = 1024,
    MOON_SAVE_TOKENS_MAX = 1 << 24, /* of a request */
};

/* A request. Its number in the case is its slot. `hashes` are all that are given; how many of them count grows with
 * the known tokens. */
struct moon_save_request {
    const struct moon_json *place; /* its name is place->name */
    int64_t prompt_tokens;
    struct moon_hashes hashes;
};

/* A request of a step. blocks has one table a store group; NULL: none were added. */
struct moon_save_entry {
    const struct moon_json *place;
    uint32_t slot;
    bool resumed;
    int64_t prefill_tokens; /* of a new one; 0: the prompt */
    int64_t computed_tokens, scheduled_tokens;
    struct moon_block_table *blocks;
};

/* Tokens that a request has more after a step. */
struct moon_save_output {
    const struct moon_json *place;
    uint32_t slot;
    int64_t tokens;
};

struct moon_save_step {
    const struct moon_json *place;
    struct moon_save_entry *fresh, *cached;
    size_t fresh_count, cached_count;
    uint32_t *preempted, *finished;
    size_t preempted_count, finished_count;
    struct moon_save_output *outputs;
    size_t output_count;
    bool process_jobs;
    struct moon_step_boundary *boundaries; /* their tables are filled in when the step runs */
    size_t boundary_count;
};

/* Lives in the arena and borrows the document. It points into itself: read it where it stays. */
struct moon_save_case {
    const char *source;
    struct moon_connector_case its;
    struct moon_save_request *requests;
    size_t request_count;
    struct moon_key_set existing, put_results;
    struct moon_save_step *steps;
    size_t step_count;
};

/* Reads a case. Members that are left out are: no requests, no steps, nothing in the store, every put succeeds; of a
 * request all hashes (block i has the number i + 1), of a step nothing and process_jobs true, of an entry nothing
 * computed. Returns as moon_connector_case_read. */
int moon_save_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_save_case *out, struct moon_error *error);

#endif
