/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the suite hash: reading a case, computing it, explaining it, drawing new ones. */
#ifndef MOON_CONFORMANCE_SUITES_HASH_H
#define MOON_CONFORMANCE_SUITES_HASH_H

#include "conformance/suites/suite.h"
#include "ref/hash/none_hash.h"

enum { MOON_HASH_CASE_TOKENS_MAX = 1 << 22 }; /* prompt and appended tokens of one case */

/* Tokens appended in one go. */
struct moon_hash_append {
    int64_t *tokens;
    size_t count;
};

/* A case, read and checked. Everything lives in the arena it was read into. */
struct moon_hash_case {
    enum moon_hash_algorithm algorithm;
    const struct moon_string *seed; /* PYTHONHASHSEED; NULL: not set */
    bool seed_from_environment;
    uint32_t block_tokens;
    uint32_t lookahead_tokens;
    struct moon_hash_append *appends; /* the prompt first */
    size_t append_count;              /* 1 at least */
    size_t tokens;                    /* of all appends */
    bool embeddings_only;
    bool masked; /* some token ids of a mixed prompt were replaced by 0 */
    struct moon_identity identity;
};

/* Reads `given`. Returns 0; MOON_ERR_SCHEMA, MOON_ERR_RANGE or MOON_ERR_UNSUPPORTED with the place; MOON_ERR_MEMORY;
 * MOON_ERR_REFUSED for what the release itself would raise (HASH-002, HASH-072, HASH-073). */
int moon_hash_case_read(const struct moon_suite_world *world, struct moon_arena *arena,
                        const struct moon_profile *profile, const char *source, const struct moon_json *given,
                        struct moon_hash_case *out, struct moon_error *error);

/* What a case gives. Lives in the arena. */
struct moon_hash_result {
    struct moon_none_hash_value none_hash;
    struct moon_text none_hash_preimage; /* empty when NONE_HASH was drawn whole */
    size_t digest_bytes;
    size_t blocks;
    uint8_t *hashes;            /* blocks digests */
    size_t *block_counts;       /* after each append */
    struct moon_text preimages; /* one behind the other */
    size_t *preimage_ends;      /* by block */
    bool preimages_left_out;    /* they would be more than MOON_HASH_PREIMAGES_BYTES_MAX */
};
enum { MOON_HASH_PREIMAGES_BYTES_MAX = 1 << 20 };

/* Computes a case. Returns 0, MOON_ERR_MEMORY, MOON_ERR_IO (no entropy) or MOON_ERR_REFUSED (HASH-042). The result is
 * to be closed in any case. */
int moon_hash_case_compute(const struct moon_suite_world *world, struct moon_arena *arena,
                           const struct moon_profile *profile, const struct moon_hash_case *one,
                           struct moon_hash_result *out, struct moon_error *error);
void moon_hash_result_close(struct moon_hash_result *result);

/* As moon_suite.explain and moon_suite.draw (hash_explain.c, hash_draw.c). */
int moon_hash_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error);
int moon_hash_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                   struct moon_json **given);

#endif
