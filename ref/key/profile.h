/* SPDX-License-Identifier: Apache-2.0 */
/* What each vLLM release does differently: one row of flags a release, read by hashing, keys, layouts and
 * configuration. */
#ifndef MOON_KEY_PROFILE_H
#define MOON_KEY_PROFILE_H

#include "ref/base/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text that ends the key of a chunk wider than the hash block */
enum moon_chunk_hash {
    MOON_CHUNK_HASH_ONLY,   /* 0.21: there is no such chunk */
    MOON_CHUNK_HASH_JOINED, /* 0.22, 0.23: all its hashes, one after another */
    MOON_CHUNK_HASH_LAST,   /* 0.24 on: the hash at its end */
};
enum moon_none_hash {
    MOON_NONE_HASH_RANDOM_BYTES, /* up to 0.28: 32 random bytes when no seed is set, for every algorithm */
    MOON_NONE_HASH_FIXED_SEED,   /* 0.29 on: fixed seed for SHA-256, random seed text for xxHash */
};
/* How a rank turns its tensors into byte ranges (rank-local layout) */
enum moon_segment_rule {
    MOON_SEGMENTS_PER_LAYER,   /* 0.21: first layer's page and split for all, no de-duplication */
    MOON_SEGMENTS_PER_STORAGE, /* 0.22 to 0.28: per storage, split where an axis lies outside the blocks */
    MOON_SEGMENTS_PER_REGION,  /* 0.29 on: per region, gapless blocks, de-duplicated by start address */
};
/* Bytes of a chunk of n tokens in each segment */
enum moon_chunk_size_rule {
    MOON_CHUNK_SIZE_DIVIDED, /* 0.21: block_len / block_size * n, unchecked */
    MOON_CHUNK_SIZE_BLOCKS,  /* 0.22 to 0.26: whole multiples of the block only */
    MOON_CHUNK_SIZE_ROUNDED, /* 0.27 on: multiples of the hash block, rounded up to whole blocks */
};
/* How many TP ranks hold the same bytes, and so share one T in the key */
enum moon_replication {
    MOON_REPLICATION_ENGINE,     /* 0.21 to 0.23: one value an engine, tp / kv_heads */
    MOON_REPLICATION_ENGINE_DCP, /* 0.24 to 0.26: the same, but 1 under decode context parallelism */
    MOON_REPLICATION_GROUP,      /* 0.27 on: per KV cache group, by its spec */
};
/* Namespaces that a lookup asks for */
enum moon_lookup_ranks {
    MOON_LOOKUP_TEXTUAL,   /* 0.21: T x pp, own pcp and dcp only, by replacing text in rank 0's keys */
    MOON_LOOKUP_TP_PP,     /* 0.22 to 0.24: T x pp, own pcp and dcp only */
    MOON_LOOKUP_ALL_HEADS, /* 0.25, 0.26: every pcp and dcp rank, T below min(tp, kv_heads) */
    MOON_LOOKUP_ALL,       /* 0.27 on: every pcp and dcp rank, T below tp / F of the group */
};
/* Number after "@group:" */
enum moon_group_numbering {
    MOON_GROUP_NONE,      /* 0.21: no such field */
    MOON_GROUP_ALL,       /* 0.22 to 0.28: position among all groups */
    MOON_GROUP_TRANSFER,  /* 0.29: among transferable groups */
    MOON_GROUP_CACHEABLE, /* 0.30 on: among transferable and prefix-cacheable groups */
};

/* Which chunks are worth storing (LAYOUT-025, LAYOUT-026) */
enum moon_store_mask {
    MOON_STORE_MASK_NONE,     /* 0.21: all, there is one group */
    MOON_STORE_MASK_TEMPLATE, /* 0.22, 0.23: per scheduler block, what a hit at its end loads */
    MOON_STORE_MASK_REACH,    /* 0.24 on: the engine's own rule of reachable blocks */
};
/* When hits below the scheduler block are searched (LAYOUT-024) */
enum moon_fine_grained {
    MOON_FINE_NEVER,     /* up to 0.26 */
    MOON_FINE_MAMBA,     /* 0.27, 0.28: a Mamba group wider than the hash block */
    MOON_FINE_MAMBA_DCP, /* 0.29 to 0.31: under DCP also one as wide */
    MOON_FINE_CORE,      /* 0.32 on: as the core decides over all groups */
};

/* Frames between the scheduler side and the worker of rank 0 (RPC requirements) */
enum moon_lookup_rpc {
    MOON_RPC_LIST,        /* 0.21, 0.22: aligned tokens, msgpack list of hex hashes */
    MOON_RPC_TAGGED_LIST, /* 0.23: the same after a tag; reset */
    MOON_RPC_BINARY,      /* 0.24 to 0.26: aligned tokens, hash length, hashes */
    MOON_RPC_RAW,         /* 0.27, 0.28: tokens are not aligned */
    MOON_RPC_TAILS,       /* 0.29 on: the reply tells tail boundaries */
};
/* A prompt that is stored as a whole: its last token must be computed */
enum moon_full_hit {
    MOON_FULL_HIT_LESS_ONE, /* 0.21: hit - 1 */
    MOON_FULL_HIT_ALIGNED,  /* 0.22 to 0.26: cut down to a scheduler block by arithmetic */
    MOON_FULL_HIT_SEARCHED, /* 0.27 on: searched again with a smaller limit */
};
/* States and partial tails that are put beside the normal save */
enum moon_boundary_rule {
    MOON_BOUNDARY_NONE,      /* up to 0.26 */
    MOON_BOUNDARY_TAIL,      /* 0.27, 0.28: tail batch, Mamba by position */
    MOON_BOUNDARY_HANDED,    /* 0.29 to 0.31: states handed off by the core; an unaligned one takes a tail along */
    MOON_BOUNDARY_TAIL_ONCE, /* 0.32 on: the tail of the other groups once a prompt */
};
/* How a failed load is told to the core */
enum moon_load_report {
    MOON_LOAD_LOGGED,            /* 0.21: not at all */
    MOON_LOAD_BLOCKS,            /* 0.22 to 0.30: block ids */
    MOON_LOAD_BLOCKS_OR_REQUEST, /* 0.31 on: with several groups the request */
};

/* One release. Static data, never freed. Sources: SPEC.md, "Profiles". Extend by adding fields, one meaning each. */
struct moon_profile {
    const char *name;    /* "vllm-0.27": how vectors and --profile name it */
    const char *version; /* "0.27.1": the release that was measured */
    const char *preset;  /* family it belongs to: vllm-0.21, -0.22, -0.24, -0.30 or -0.33 */
    int minor;           /* 27 */
    /* hashing */
    enum moon_none_hash none_hash;
    bool extra_tagged;          /* 0.31: extra keys are tagged tuples, LoRA path is part */
    bool mm_resume_overlapping; /* 0.31: resuming starts at the first overlapping item, else at the last item */
    bool embeds_mask;           /* 0.29: embedding positions of a mixed prompt hash as token 0 */
    bool hash_lookahead;        /* 0.33: look-ahead tokens exist in core (never with a connector) */
    /* block sizes */
    bool pcp_multiplies_block;    /* up to 0.25: the scheduler block is multiplied by pcp as well */
    bool groups_context_parallel; /* 0.26: several groups with DCP allowed by core */
    bool groups_dcp;              /* 0.29: several groups with DCP allowed by the connector */
    bool match_unit;              /* 0.26: override is called prefix_match_unit, before: hash_block_size */
    bool match_unit_checked;      /* 0.32: with one group the override must equal the block */
    bool uncacheable_left_out;    /* 0.29: groups that are not prefix-cacheable do not enter the gcd */
    bool mamba_by_block_size;     /* up to 0.27: a Mamba block that is not the configured one is not "aligned" */
    bool dcp_by_spec;             /* 0.31: a single group may be kept from sharing blocks over DCP ranks by its spec */
    /* keys */
    enum moon_group_numbering group_numbering;
    enum moon_chunk_hash chunk_hash;
    bool chunk_end_hash;    /* 0.27: a chunk cut by token_len is keyed by the hash at its own end */
    bool prefix_overrides;  /* 0.25: the text before the hash can be built for other ranks */
    bool chunk_mask;        /* 0.25: mask, put_step and put_step_rank when chunks are listed */
    bool cache_prefix;      /* 0.24 */
    bool store_namespace;   /* 0.30: also store_tp_size and enable_store_tp_lcm */
    bool mooncake_group_id; /* 0.28 */
    /* layouts */
    enum moon_replication replication;
    enum moon_lookup_ranks lookup_ranks;
    bool stripe_absolute; /* 0.25: owner by chunk id and group; before: by position in the list of missing chunks */
    enum moon_store_mask store_mask;
    enum moon_fine_grained fine_grained;
    bool mamba_by_position;    /* up to 0.28: Mamba states are saved like blocks; after: handed off at boundaries */
    bool eagle_boundaries;     /* 0.32: with EAGLE two replay boundaries, before: one */
    bool null_blocks_skipped;  /* 0.29: chunks without a block are left out of a save, before: IndexError */
    bool fine_windows_refused; /* up to 0.29: fine-grained lookups refuse a sliding window of wider blocks */
    bool lookup_masked;        /* 0.24: only reachable chunks of a sliding window are asked for */
    bool lookup_pp_first;      /* 0.21: namespaces are the outer loop of a lookup, pp first, chunks the inner one */
    bool lookup_edits_text;    /* deviation connector.9.16 (0.21): made by replacing text in rank 0's keys */
    bool pp_rank_without_pcp;  /* deviation connector.2.1 (all): the pipeline rank in keys leaves PCP out */
    bool template_drops_eagle; /* deviation connector.4.3 (0.22, 0.23): with EAGLE the template stores nothing */
    bool windows_sparse;      /* 0.29: without a setting a window keeps what the end of the prompt needs; before: all */
    bool window_retains;      /* 0.28: a sliding window's spec has extra_retained_tokens */
    bool window_extra_tokens; /* 0.33: a sliding window is wider by the spec's extra_retained_tokens */
    enum moon_segment_rule segment_rule;
    enum moon_chunk_size_rule chunk_size_rule;
    bool single_block_segments;    /* 0.27: buffers of one whole block can be asked for */
    bool buffers_registered_first; /* 0.30: all buffers registered before segments are built */
    /* connector: what both sides do */
    enum moon_lookup_rpc lookup_rpc;
    enum moon_full_hit full_hit;
    enum moon_boundary_rule boundary_rule;
    enum moon_load_report load_report;
    bool option_lookup_async;  /* 0.24 */
    bool option_enable_lookup; /* 0.27: and the capacity-only consumer */
    bool option_save_decode;   /* 0.29: save_decode_cache */
    bool option_discard;       /* 0.21: discard_partial_chunks */
    bool coordinator;          /* 0.22: joint hit search; before: leading run of chunks */
    bool eagle_by_spec;        /* 0.27: masks take the drafter's flag of groups with equal specs, before: their own */
    bool full_length_kept;     /* 0.26: hit search keeps the length found in full attention, before: aligns to it */
    bool mamba_peeks;          /* 0.22 to 0.26: EAGLE lets a Mamba group look a block beyond the hit */
    bool peeks_to_hashes;      /* 0.32: EAGLE looks beyond the length of the lookup, as far as there are hashes */
    bool mamba_mode_asserted;  /* 0.29: the scheduler side wants Mamba groups in mode align */
    bool mamba_mode_checked;   /* 0.30: a Mamba group in another mode than align is refused */
    bool capacity_unchecked;   /* 0.33: also by the scheduler side, a capacity-only consumer takes any group */
    /* connector: scheduler side */
    bool preempted_reset; /* 0.22: a preempted request keeps an empty tracker; before: it is dropped */
    bool resumed_by_core; /* 0.25: the core says which cached requests are resumed; before: a remembered preemption */
    bool blockless_steps_count; /* 0.29: a running step without new blocks counts and may save */
    bool load_alone;            /* 0.22: a job never saves and loads */
    bool lost_load_ignored;     /* 0.30: a load spec that was not taken makes no job */
    bool tables_of_step;      /* 0.29: jobs read the block tables of the step; before: the tracker's own, which grows */
    bool tail_at_finish;      /* 0.30: tails queued when a request finishes */
    bool job_references;      /* 0.28: jobs hold blocks, finishing never delays the free */
    bool references_distinct; /* 0.29: a job holds each block once, and neither null blocks nor Mamba's by position */
    bool references_needed;   /* 0.32: a job without a normal save holds the blocks of its boundary puts alone */
    bool decode_advances;     /* up to 0.28: a decode step with new blocks advances the tracked length */
    /* connector: worker */
    bool queue_hooks;            /* 0.29: loads and saves are queued by calls of their own; before: in get_finished */
    bool resume_offset;          /* 0.25: a save resumes where the last one of the request ended; before: at token 0 */
    bool retired_by_job;         /* 0.28: live jobs are known by job id; before: by request */
    bool raised_jobs_end;        /* 0.23: a save job that raises has ended like any other; before: it counts for ever */
    bool batches_split;          /* 0.22: staging budget */
    bool block_errors_asked;     /* 0.22: get_block_ids_with_load_errors is there to ask */
    bool request_errors_asked;   /* 0.31: failed requests are there to ask */
    bool tier_log;               /* 0.22: VLLM_MOONCAKE_STORE_TIER_LOG is read */
    bool cut_load_extended;      /* 0.21: a load that ends one token before its save reads the whole last block */
    bool failed_batch_ends_load; /* deviation connector.9.19 */
    bool empty_load_raises;      /* deviation connector.9.20 */
    bool short_reads_pass;       /* deviation connector.9.45: a get is judged by its sign alone */
    bool reply_unchecked;        /* up to 0.28, deviation connector.9.55: a lookup reply of any length is one integer */
    bool malformed_stops_server; /* deviation connector.9.54: a request that cannot be read, or a hit that cannot be
                                    written, ends the lookup server */
    bool raised_stops_server;    /* 0.22, deviation connector.9.54: so does what a lookup raises beside its call */
    bool events_before_put;      /* up to 0.28, deviation connector.6.9: events do not wait for the put's result */
    bool events_of_all_workers;  /* up to 0.29, deviation connector.6.9: an event counts when every worker tells it */
    bool event_parent_of_chain;  /* 0.29: parent of an event is the hash before it; before: the last block put */
    bool event_block_of_engine;  /* up to 0.22: events tell the engine's block size, without context parallelism */
    bool event_hash_by_number;   /* up to 0.22: a chunk is told by the request's hash of its number */
    bool event_ids_of_start;     /* up to 0.28: token ids of events end with the step in which the request started */
    bool event_group;            /* 0.23: events name the group */
    bool store_closed;           /* 0.24: closing a worker closes its store */
    bool close_waits;            /* 0.30: closing waits for the queues */
    /* the engine around the connector */
    bool holders_first;     /* 0.31: waiting requests that hold blocks go first; before: all that were skipped */
    bool tables_of_growing; /* 0.29 alone: tables are told of requests that got blocks in the step, before: of none */
    bool losers_see_blocks; /* 0.26: under MultiConnector children that load nothing are told of blocks too */
    /* configuration */
    bool config_mode;        /* 0.22: mode, enable_offload, range checks, preferred segment, requester host name */
    bool config_tenant;      /* 0.28 */
    bool negative_segment;   /* deviation connector.9.49 (0.22 on): embedded mode refuses 0 only */
    bool device_by_gpu;      /* 0.22, 0.23: a list in device_name is indexed by GPU, and no element may be empty */
    bool retention_variable; /* 0.24 to 0.29: VLLM_PREFIX_CACHE_RETENTION_INTERVAL is read */
    bool reset_removes_keys; /* 0.23: a reset of the prefix cache removes every key of the tenant */
    bool transfer_trimmed;   /* 0.33: kv-transfer-config is without kv_buffer_size, kv_rank, kv_parallel_size, kv_ip */
};

/* All releases, oldest first; *count gets their number. */
const struct moon_profile *moon_profiles(size_t *count);
/* The newest: what commands describe unless they are told another. */
const struct moon_profile *moon_profile_newest(void);

/* Finds "vllm-0.27", "0.27", "0.27.1" or "vllm-0.27.1" (the patch release must be the measured one, else the error says
 * which is known). Returns NULL and fills error (MOON_ERR_UNSUPPORTED, with the known names) otherwise. */
const struct moon_profile *moon_profile_find(const char *name, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
