/* SPDX-License-Identifier: Apache-2.0 */
/* What the layout rules read of an engine: parallel sizes, KV cache groups, and the options of the store connector. */
#ifndef MOON_LAYOUT_MODEL_H
#define MOON_LAYOUT_MODEL_H

#include "ref/key/chunks.h"
#include "ref/key/namespace.h"
#include "ref/key/pool_key.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of KV cache specs, by the class that vLLM gives them. */
enum moon_spec_kind {
    MOON_SPEC_FULL,               /* exactly FullAttentionSpec, with or without a window */
    MOON_SPEC_SLIDING_WINDOW,     /* SlidingWindowSpec */
    MOON_SPEC_MLA,                /* MLAAttentionSpec, derived from full attention */
    MOON_SPEC_SLIDING_WINDOW_MLA, /* SlidingWindowMLASpec, derived from sliding window */
    MOON_SPEC_MAMBA,              /* MambaSpec */
    MOON_SPEC_UNIFORM,            /* UniformTypeKVCacheSpecs: several layer specs of one type in one group */
    MOON_SPEC_CHUNKED_LOCAL,      /* ChunkedLocalAttentionSpec */
};

/* Which states of a Mamba layer are kept: mamba_cache_mode. */
enum moon_mamba_mode {
    MOON_MAMBA_ALIGN, /* "align": at block boundaries; the only one that a store takes */
    MOON_MAMBA_ALL,   /* "all" */
    MOON_MAMBA_NONE,  /* "none" */
};
const char *moon_mamba_mode_name(enum moon_mamba_mode mode);

/* One layer spec; equal members mean equal specs. Members that a kind does not have are 0.
 *   window_tokens         sliding windows: 1 or more
 *   extra_retained_tokens sliding windows: kept behind the window (0.28 on)
 *   local_tokens          chunked local: length of the chunks that attend to themselves only, 1 or more */
struct moon_layer_spec {
    enum moon_spec_kind kind;
    int64_t num_kv_heads, head_size;
    int64_t window_tokens, extra_retained_tokens, local_tokens;
    enum moon_mamba_mode mamba_mode;
};

/* One KV cache group. Borrows `inner`.
 *   block_tokens  block size already multiplied by the context parallel sizes that the release counts
 *   inner         layer specs of a uniform group, in order
 *   number        among all groups of the engine, from 0; set by moon_store_groups
 *   is_eagle      the group of the drafter
 *   transferable, prefix_cacheable  false keeps the group out of the store (moon_store_groups) */
struct moon_layout_group {
    struct moon_layer_spec spec;
    const struct moon_layer_spec *inner;
    size_t inner_count;
    int64_t block_tokens;
    size_t number;
    bool is_eagle;
    bool transferable, prefix_cacheable;
};

enum moon_setting_type {
    MOON_SETTING_ABSENT,
    MOON_SETTING_NULL,
    MOON_SETTING_BOOL,
    MOON_SETTING_INTEGER,
    MOON_SETTING_REAL,
    MOON_SETTING_STRING,
    MOON_SETTING_ARRAY,
    MOON_SETTING_OBJECT,
};
/* A value of extra_config as the user typed it: its type matters as much as its content. Borrowed. */
struct moon_setting {
    enum moon_setting_type type;
    bool boolean;
    struct moon_key_text text; /* integer: its digits, of any length, perhaps with '-'; string: its content */
    const struct moon_setting *elements;
    size_t count; /* array */
};

/* One engine, as one release sees it. Borrows all pointers. */
struct moon_layout_model {
    int64_t tp, pp, pcp, dcp; /* parallel sizes, 1 or more; dcp divides tp */
    int64_t total_kv_heads;   /* of the whole model, 1 or more */
    bool use_mla;             /* what the model says of itself; read up to 0.26 */
    enum moon_kv_layout kv_layout;
    /* Store groups of the release, at least one; the index is the group's number in keys. */
    const struct moon_layout_group *groups;
    size_t group_count;
    /* Resolved block sizes: every group's block is a multiple of the hash block and divides the scheduler block. */
    int64_t scheduler_block_tokens, hash_block_tokens;
    bool speculative; /* EAGLE's block drop is on */
    /* Retention interval of the prefix cache; none means dense. */
    bool has_retention;
    int64_t retention_tokens;
    struct moon_key_text model_name, cache_prefix; /* as they stand in keys */
    /* Options of extra_config, read from 0.30 on. */
    struct moon_setting store_tp_size, enable_store_tp_lcm, prefill_tp_sizes, enable_cross_layers_blocks;
};

/* Copies to out[] (room for `count`) those of an engine's groups that the release stores, in order (KEY-004), from 0.33
 * on with windows as wide as a hit restores (HIT-024). Returns how many. */
size_t moon_store_groups(const struct moon_profile *profile, const struct moon_layout_group groups[], size_t count,
                         struct moon_layout_group out[]);
/* What stands for the group: of a uniform group the spec of its first layer. */
const struct moon_layer_spec *moon_layout_group_spec(const struct moon_layout_group *group);
bool moon_spec_is_full(const struct moon_layer_spec *spec);   /* full attention or MLA */
bool moon_spec_is_window(const struct moon_layer_spec *spec); /* sliding window, MLA or not */
/* True if two groups have equal specs, and so are one in hit search (HIT-001). */
bool moon_layout_groups_equal(const struct moon_layout_group *a, const struct moon_layout_group *b);
/* True if EAGLE's block drop is at work: it is on, or a group is the drafter's. */
bool moon_layout_eagle(const struct moon_layout_model *model);
/* True if the drafter's last block is dropped in this group: the group or one with equal specs is the drafter's, or no
 * group is and EAGLE's block drop is on (HIT-002). */
bool moon_layout_group_eagle(const struct moon_layout_model *model, size_t group);
/* The same for the masks of stored and asked chunks: up to 0.26 the flag of the group itself counts, not that of groups
 * with equal specs (HIT-003). */
bool moon_layout_group_drafts(const struct moon_profile *profile, const struct moon_layout_model *model, size_t group);

#ifdef __cplusplus
}
#endif
#endif
