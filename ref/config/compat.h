/* SPDX-License-Identifier: Apache-2.0 */
/* Do two deployments share their KV cache through the store: fully, partly or not, why, and what to change. */
#ifndef MOON_CONFIG_COMPAT_H
#define MOON_CONFIG_COMPAT_H

#include "ref/base/json.h"
#include "ref/key/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The answer in one word, best first (COMPAT-001, COMPAT-002). */
enum moon_compat_verdict { MOON_COMPAT_FULLY, MOON_COMPAT_PARTLY, MOON_COMPAT_NOT, MOON_COMPAT_DANGER };
const char *moon_compat_verdict_name(enum moon_compat_verdict verdict); /* "fully", "partly", "not", "danger" */

/* One direction: what the reader finds of what the writer stored. */
enum moon_compat_state { MOON_COMPAT_IDLE, MOON_COMPAT_NONE, MOON_COMPAT_SOME, MOON_COMPAT_ALL };
const char *moon_compat_state_name(enum moon_compat_state state); /* "idle", "not", "partly", "fully" */

/* What a finding does to the directions that it names. */
enum moon_compat_effect {
    MOON_COMPAT_ENDANGERS, /* equal keys, different bytes */
    MOON_COMPAT_BLOCKS,    /* alone enough that nothing is shared */
    MOON_COMPAT_LIMITS,    /* some blocks or kinds of requests are not shared */
    MOON_COMPAT_IDLES,     /* the direction does not happen, by role or option */
    MOON_COMPAT_WARNS,     /* may be wrong, cannot be known from the descriptions */
    MOON_COMPAT_NOTES,
};
const char *moon_compat_effect_name(enum moon_compat_effect effect); /* "danger", "not", "partly", "idle", ... */

/* What a finding is about, in the order in which reasons are looked for (COMPAT-003). */
enum moon_compat_subject {
    MOON_COMPAT_START,
    MOON_COMPAT_MASTER,
    MOON_COMPAT_METADATA_SERVER,
    MOON_COMPAT_PROTOCOL,
    MOON_COMPAT_TENANT,
    MOON_COMPAT_HASH_ALGORITHM,
    MOON_COMPAT_NONE_HASH,
    MOON_COMPAT_HASH_BLOCK,
    MOON_COMPAT_EXTRA_KEYS,
    MOON_COMPAT_REQUEST,
    MOON_COMPAT_MODEL,
    MOON_COMPAT_CACHE_PREFIX,
    MOON_COMPAT_GROUP_FIELD,
    MOON_COMPAT_CHUNK_HASH,
    MOON_COMPAT_NAMESPACE,
    MOON_COMPAT_GROUPS,
    MOON_COMPAT_RANKS,
    MOON_COMPAT_WINDOW,
    MOON_COMPAT_EXTRA_WINDOW,
    MOON_COMPAT_MAMBA,
    MOON_COMPAT_STORED,
    MOON_COMPAT_ROLE,
    MOON_COMPAT_BYTES,   /* of a rank: heads, layers, blocks */
    MOON_COMPAT_CONTENT, /* of the model: dtype, weights, quantisation, organisation */
    MOON_COMPAT_LORA,
    MOON_COMPAT_SEGMENTS,
    MOON_COMPAT_EXACTNESS,
    MOON_COMPAT_RESET,
    MOON_COMPAT_SUBJECT_COUNT
};
const char *moon_compat_subject_name(enum moon_compat_subject subject); /* "start", "master", ... */

enum { MOON_COMPAT_A_TO_B = 1, MOON_COMPAT_B_TO_A = 2, MOON_COMPAT_BOTH_WAYS = 3 };

/* Kinds of requests. MOON_COMPAT_AS_GIVEN alone, if a description names a request; else all before it. */
enum moon_compat_kind {
    MOON_COMPAT_TEXT,
    MOON_COMPAT_WITH_LORA,
    MOON_COMPAT_WITH_MM,
    MOON_COMPAT_WITH_SALT,
    MOON_COMPAT_WITH_EMBEDS,
    MOON_COMPAT_AS_GIVEN,
    MOON_COMPAT_KIND_COUNT
};
const char *moon_compat_kind_name(enum moon_compat_kind kind); /* "text", "lora", ... */

/* One finding. Texts live in the arena or are static; `fix` and `report` may be NULL.
 *   directions   MOON_COMPAT_A_TO_B, MOON_COMPAT_B_TO_A or both
 *   requirement  id in SPEC.md    guide  "G14", or "" where the guide says nothing    report  public issue it resembles
 */
struct moon_compat_finding {
    enum moon_compat_effect effect;
    enum moon_compat_subject subject;
    unsigned directions;
    const char *text, *fix;
    const char *requirement, *guide, *report;
    struct moon_compat_finding *next;
};

/* How many tokens a reader finds of a prompt of prompt_tokens + 1 tokens. */
struct moon_compat_hit {
    int64_t prompt_tokens, found_tokens, own_tokens;
};

/* One direction.
 *   kinds        state by kind of request; only those with a bit in `judged` of the report
 *   prompts      prefixes of the sample that were looked up, of the first judged kind; short_prompts of them find fewer
 *                tokens than the reader would find of its own: first_short is the shortest of these
 *   longest      the longest prefix
 *   missing_key  first key that the reader asks for and the writer does not store; NULL if there is none */
struct moon_compat_direction {
    enum moon_compat_state state;
    enum moon_compat_state kinds[MOON_COMPAT_KIND_COUNT];
    size_t prompts, short_prompts;
    struct moon_compat_hit longest, first_short;
    const char *missing_key;
};

/* What one side resolved to. Texts live in the arena; derived false: the release refuses, numbers are 0, texts empty.
 */
struct moon_compat_summary {
    const char *name, *release, *key_prefix, *store_namespace;
    bool derived, stores, loads, random_hashes;
    int64_t scheduler_block_tokens, hash_block_tokens;
};

struct moon_compat_report {
    enum moon_compat_verdict verdict;
    const struct moon_compat_finding *first; /* first reason; NULL when the verdict is fully */
    struct moon_compat_finding *findings;    /* endangering ones first, then in the order of subjects */
    unsigned judged;                         /* bit by moon_compat_kind */
    struct moon_compat_summary sides[2];
    struct moon_compat_direction directions[2]; /* A to B, B to A */
    const char *same_key;                       /* a key with different bytes on the two sides, or NULL */
};

/* One description.
 *   source    names it in errors
 *   document  the object, read with MOON_JSON_STRICT
 *   config    bytes of the file that moon_compat_config_path named, config_length of them; NULL when it named none
 *   release   judged as this release instead of the description's; NULL keeps it */
struct moon_compat_input {
    const char *source;
    const struct moon_json *document;
    const char *config;
    size_t config_length;
    const char *release;
};

/* The path that the member "mooncake" gives, to be read by the caller relative to the description's folder; NULL when
 * it holds the configuration itself or is absent. */
const char *moon_compat_config_path(const struct moon_json *document);

/* Compares two descriptions (A, B). The report lives in `arena` and borrows both documents.
 * Returns 0; MOON_ERR_SCHEMA, MOON_ERR_RANGE or MOON_ERR_UNSUPPORTED with the place in a description (COMPAT-027);
 * MOON_ERR_SYNTAX for a configuration file that is no JSON at all is not among them: that is a finding, as the release
 * does not start; MOON_ERR_LIMIT when the deployments are too large to enumerate; MOON_ERR_MEMORY. */
int moon_compat_compare(struct moon_arena *arena, const struct moon_compat_input inputs[2],
                        struct moon_compat_report **out, struct moon_error *error);

/* For people, and for programs. Fails only through out->failed, or a broken tree. */
void moon_compat_write(const struct moon_compat_report *report, struct moon_text *out);
struct moon_json *moon_compat_json(struct moon_arena *arena, const struct moon_compat_report *report);

#ifdef __cplusplus
}
#endif
#endif
