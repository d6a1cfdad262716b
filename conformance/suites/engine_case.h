/* SPDX-License-Identifier: Apache-2.0 */
/* Members of `given` that the suites lookup-async and save-lcm share: an engine that is run step by step. */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_CASE_H
#define MOON_CONFORMANCE_SUITES_ENGINE_CASE_H

#include "conformance/suites/connector_case.h"

/* Names of the members, for a suite's closed list. */
#define MOON_ENGINE_CASE_MEMBERS                                                                                       \
    MOON_CONNECTOR_MEMBERS, "max_tokens_per_step", "behind_multi_connector", "stored_before", "exist_raises"

enum {
    MOON_ENGINE_CASE_TP_MAX = 64,
    MOON_ENGINE_CASE_BLOCKS_MAX = 1 << 16,
    MOON_ENGINE_CASE_LAYERS_MAX = 256,
    MOON_ENGINE_CASE_STEPS_MAX = 1 << 16,
    MOON_ENGINE_CASE_REQUESTS_MAX = 256,
    MOON_ENGINE_CASE_PROMPT_MAX = 1 << 16,
    MOON_ENGINE_CASE_OUTPUT_MAX = 1 << 12,
    MOON_ENGINE_CASE_MEMORY_MAX = 1 << 28, /* bytes of KV memory, over all ranks */
    MOON_ENGINE_CASE_RUNNING_MAX = 16,     /* requests that run together, as the recorded engines had it */
    MOON_ENGINE_CASE_HALF_BYTES = 8,       /* of K, or V, of a head and token */
};

/* An engine as read. Points into itself, the arena and the document.
 *   exist_raises  every existence call of a lookup raises */
struct moon_engine_case {
    struct moon_connector_case its;
    size_t block_count;
    int64_t step_tokens;
    uint64_t layers;
    bool behind_multi, exist_raises;
    const struct moon_json *stored_before; /* array of keys, or NULL */
};

/* Reads the members; besides the engine's, those that are left out are: 96 blocks, 256 tokens a step, nothing stored.
 * Returns as moon_connector_case_read; MOON_ERR_UNSUPPORTED also for an engine that is not run here (one group of full
 * attention, tensor parallelism alone, LBHNC or LBNHC, loads that are asynchronous); MOON_ERR_LIMIT for too much
 * memory. */
int moon_engine_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given, struct moon_engine_case *out, struct moon_error *error);

/* A prompt: token i is (start + step * i) mod `mod`. Reads the object `prompt` of `object`. Tokens live in the arena.
 * Returns 0, MOON_ERR_SCHEMA or MOON_ERR_RANGE with the place, or MOON_ERR_MEMORY. */
struct moon_engine_prompt {
    uint32_t *tokens;
    size_t count;
};
int moon_engine_prompt_read(struct moon_arena *arena, const char *source, const struct moon_json *object,
                            struct moon_engine_prompt *out, struct moon_error *error);

#endif
