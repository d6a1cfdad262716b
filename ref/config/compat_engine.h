/* SPDX-License-Identifier: Apache-2.0 */
/* A described deployment worked out: whether it starts, its block sizes, store layout, roles, and who holds which
 * object. */
#ifndef MOON_CONFIG_COMPAT_ENGINE_H
#define MOON_CONFIG_COMPAT_ENGINE_H

#include "ref/config/compat_description.h"
#include "ref/layout/puts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_COMPAT_RANKS_MAX = 4096,        /* workers of one deployment */
    MOON_COMPAT_OBJECTS_MAX = 1 << 22,   /* identities times chunks of one deployment */
    MOON_COMPAT_IDENTITIES_MAX = 1 << 22 /* places of an identity: groups times T, P, Q, R */
};

/* What an object holds of the model, apart from what is the same for all of a deployment.
 *   stage of pp   layers
 *   part of parts heads, or the Mamba state; parts 1: everything
 *   pcp, dcp ranks, of the sizes of the deployment: tokens */
struct moon_compat_part {
    int64_t stage, part, parts, pcp_rank, dcp_rank;
};

/* A name under which ranks of a deployment store: everything in a key but model and hash. */
struct moon_compat_identity {
    size_t group;
    int64_t t, pcp, dcp, pp;
    struct moon_compat_part part;
    bool clash;    /* another rank of the same deployment writes other bytes under it (LAYOUT-017) */
    bool *written; /* by chunk of the group: a save of the sample prompt puts it */
};

/* A deployment. Built by moon_compat_engine_open; borrows the description.
 *   refusal      why the release does not start, one line; NULL: it starts
 *   refused_by   requirement of that reason
 *   config       what the release loaded; only with config_told and without an exception
 *   derived      the numbers below are known; false: only names can be compared
 *   prefix       what cache_prefix puts before the model's name; empty for none
 *   head         text of a key before its rank fields, with its group field if there is one: equal heads and equal
 *                numbers are equal keys */
struct moon_compat_engine {
    const struct moon_compat_description *description;
    const struct moon_profile *profile;
    const char *refusal, *refused_by;
    bool config_told;
    const char *master, *metadata_server, *protocol, *tenant;
    bool stores, loads;
    const char *why_not_stores, *why_not_loads;
    struct moon_key_text prefix, name;
    bool derived;
    struct moon_layout_group groups[MOON_COMPAT_GROUPS_MAX];
    int64_t retained_tokens; /* largest extra_retained_tokens of its groups */
    struct moon_layout_model model;
    struct moon_store_selection selection;
    struct moon_key_text head;
    struct moon_compat_identity *identities;
    size_t identity_count;
    int32_t *places; /* index into identities by group, T, P, Q, R; -1 for none */
    int64_t t_end;
    int64_t saved_tokens; /* of the sample prompt */
};

/* Works out everything but the objects. Returns 0, MOON_ERR_LIMIT (too many ranks) or MOON_ERR_MEMORY. */
int moon_compat_engine_open(struct moon_arena *arena, const struct moon_compat_description *description,
                            const struct moon_compat_input *input, struct moon_compat_engine *out,
                            struct moon_error *error);

/* Fills identities: what a save of a prompt of prompt_tokens puts, on every rank. Call it once, when derived.
 * Returns 0, MOON_ERR_LIMIT or MOON_ERR_MEMORY. */
int moon_compat_engine_save(struct moon_arena *arena, struct moon_compat_engine *engine, int64_t prompt_tokens,
                            struct moon_error *error);

/* The identity with these fields, or NULL. Fields of another deployment may be out of range. */
const struct moon_compat_identity *moon_compat_identity_find(const struct moon_compat_engine *engine, size_t group,
                                                             int64_t t, int64_t pcp, int64_t dcp, int64_t pp);
/* Chunks of a group in `tokens` tokens. */
size_t moon_compat_chunks(const struct moon_compat_engine *engine, size_t group, int64_t tokens);
/* First hash and number of hashes that key a chunk of a group. */
struct moon_chunk moon_compat_chunk(const struct moon_compat_engine *engine, size_t group, size_t chunk);

#ifdef __cplusplus
}
#endif
#endif
