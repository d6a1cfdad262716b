/* SPDX-License-Identifier: Apache-2.0 */
/* Working out a deployment from its description. */
#include "ref/config/compat_engine.h"

#include "ref/config/compat_hash.h"
#include "ref/config/extra_config.h"
#include "ref/config/python_repr.h"
#include "ref/hash/block_sizes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int fail_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a deployment");
}

/* Why the release does not start: the first reason stays. */
static int refuse(struct moon_compat_engine *engine, const char *requirement, const char *why) {
    if (engine->refusal)
        return 0;
    engine->refusal = why;
    engine->refused_by = requirement;
    return why ? 0 : MOON_ERR_MEMORY;
}

/* ---- configuration file ---- */

/* A passed-through value as text: a string's content, else as Python writes it. */
static const char *value_text(struct moon_arena *arena, const struct moon_json *value) {
    struct moon_text text;
    moon_text_open(&text, arena->memory);
    if (value->type == MOON_JSON_STRING)
        moon_text_bytes(&text, value->bytes, value->length);
    else
        moon_python_repr(value, &text);
    const char *out = text.failed ? NULL : moon_arena_copy(arena, moon_text_value(&text), text.length);
    moon_text_close(&text);
    return out;
}

static int take_config(struct moon_arena *arena, const struct moon_store_config *config,
                       struct moon_compat_engine *engine) {
    engine->config_told = true;
    engine->master = value_text(arena, config->master_server_address);
    engine->metadata_server = value_text(arena, config->metadata_server);
    engine->protocol = value_text(arena, config->protocol);
    engine->tenant = config->tenant_id ? value_text(arena, config->tenant_id) : "default";
    bool all = engine->master && engine->metadata_server && engine->protocol && engine->tenant;
    return all ? 0 : MOON_ERR_MEMORY;
}

static int load_config(struct moon_arena *arena, const struct moon_compat_input *input,
                       struct moon_compat_engine *engine, struct moon_error *error) {
    const struct moon_json *document = engine->description->mooncake;
    struct moon_store_config config;
    struct moon_exception raised = {0};
    int status;
    if (input->config)
        status = moon_store_config_read(arena, engine->profile, moon_compat_config_path(input->document), input->config,
                                        input->config_length, &document, &config, &raised, error);
    else if (document)
        status = moon_store_config_load(arena, engine->profile, document, &config, &raised);
    else
        return 0;
    if (status == MOON_ERR_REFUSED)
        return refuse(engine, "COMPAT-027",
                      moon_arena_format(arena, "the configuration file: %s: %s", raised.type, raised.message));
    return status ? status : take_config(arena, &config, engine);
}

/* ---- roles ---- */

/* COMPAT-021 */
static int resolve_roles(struct moon_compat_engine *engine) {
    const struct moon_json *extra = engine->description->extra;
    bool saves_decode = moon_extra_switch(extra, "save_decode_cache", false);
    engine->stores = !engine->description->consumer ||
                     (saves_decode && moon_extra_store_reads(engine->profile, "save_decode_cache"));
    engine->loads =
        moon_extra_switch(extra, "enable_lookup", true) || !moon_extra_store_reads(engine->profile, "enable_lookup");
    if (!engine->stores)
        engine->why_not_stores = saves_decode ? "it is a kv_consumer, and its release does not read save_decode_cache"
                                              : "it is a kv_consumer without save_decode_cache";
    if (!engine->loads)
        engine->why_not_loads =
            engine->stores ? "enable_lookup is false" : "it only lends memory: enable_lookup is false";
    if (!moon_extra_switch(extra, "load_async", true))
        return refuse(engine, "COMPAT-027", "load_async is false: the worker fails an assertion at its first step");
    return 0;
}

/* ---- names ---- */

static int resolve_names(struct moon_arena *arena, struct moon_compat_engine *engine) {
    engine->name = moon_model_name(engine->description->model);
    const struct moon_json *prefix = moon_json_member(engine->description->extra, "cache_prefix");
    if (!prefix || !engine->profile->cache_prefix)
        return 0;
    if (prefix->type == MOON_JSON_STRING) {
        engine->prefix = (struct moon_key_text){prefix->bytes, prefix->length};
        return 0;
    }
    const char *text = value_text(arena, prefix);
    if (!text)
        return MOON_ERR_MEMORY;
    engine->prefix = moon_key_text(text);
    return 0;
}

/* ---- block sizes and groups ---- */

/* What the release refuses about groups and parallel sizes before it resolves block sizes. */
static const char *refuse_groups(const struct moon_compat_engine *engine, size_t stored) {
    const struct moon_compat_description *description = engine->description;
    bool several = description->group_count > 1;
    if (description->tp % description->dcp != 0)
        return "the decode context parallel size does not divide the tensor parallel size";
    if (engine->profile->group_numbering == MOON_GROUP_NONE && several)
        return "this release supports one KV cache group only";
    if (engine->profile->group_numbering == MOON_GROUP_ALL && several && description->dcp > 1)
        return "this release refuses decode context parallelism with several KV cache groups";
    if (stored == 0)
        return "ValueError: no KV cache group is transferable and prefix-cacheable";
    if (stored > 1 && description->pcp > 1)
        return "ValueError: prefill context parallelism with several KV cache groups";
    return NULL;
}

static int resolve_blocks(const struct moon_compat_engine *engine, struct moon_block_sizes *sizes,
                          struct moon_error *error) {
    const struct moon_compat_description *description = engine->description;
    struct moon_kv_group_size groups[MOON_COMPAT_GROUPS_MAX];
    for (size_t i = 0; i < description->group_count; i++) {
        const struct moon_compat_group *group = &description->groups[i];
        groups[i] = (struct moon_kv_group_size){.block_size = group->layout.block_tokens,
                                                .dcp_sharded = group->dcp_sharded,
                                                .prefix_cacheable = group->layout.prefix_cacheable};
    }
    const struct moon_block_sizes_input input = {.groups = groups,
                                                 .group_count = description->group_count,
                                                 .dcp = description->dcp,
                                                 .pcp = description->pcp,
                                                 .match_unit = description->match_unit,
                                                 .hashing = true};
    return moon_block_sizes_resolve(engine->profile, &input, sizes, error);
}

/* The groups as the layout rules take them: blocks over all ranks that share one. */
static size_t list_groups(const struct moon_compat_engine *engine, const struct moon_block_sizes *sizes,
                          struct moon_layout_group out[]) {
    const struct moon_compat_description *description = engine->description;
    struct moon_layout_group all[MOON_COMPAT_GROUPS_MAX];
    for (size_t i = 0; i < description->group_count; i++) {
        const struct moon_compat_group *group = &description->groups[i];
        all[i] = group->layout;
        if (description->group_count == 1)
            all[i].block_tokens = sizes->scheduler_block;
        else if (group->dcp_sharded)
            all[i].block_tokens *= description->dcp;
        if (moon_spec_is_window(&all[i].spec)) /* COMPAT-019 */
            all[i].spec.extra_retained_tokens = group->retained_tokens;
    }
    return moon_store_groups(engine->profile, all, description->group_count, out);
}

/* Retention of sliding windows and Mamba states (COMPAT-018). Returns false for an interval that is no number. */
static bool resolve_retention(const struct moon_compat_engine *engine, struct moon_layout_model *model) {
    const struct moon_compat_description *description = engine->description;
    const char *variable = moon_compat_variable(description, "VLLM_PREFIX_CACHE_RETENTION_INTERVAL");
    model->has_retention = description->retention == MOON_COMPAT_RETENTION_TOKENS;
    model->retention_tokens = description->retention_tokens;
    if (description->retention != MOON_COMPAT_RETENTION_DEFAULT)
        return true;
    model->has_retention = engine->profile->windows_sparse;
    if (!variable || !engine->profile->retention_variable)
        return true;
    char *end;
    model->has_retention = true;
    model->retention_tokens = strtol(variable, &end, 10);
    return *variable != '\0' && *end == '\0' && model->retention_tokens >= 0 &&
           model->retention_tokens <= MOON_COMPAT_TOKENS_MAX;
}

static int resolve_model(struct moon_arena *arena, struct moon_compat_engine *engine) {
    const struct moon_compat_description *description = engine->description;
    struct moon_layout_model *model = &engine->model;
    struct moon_block_sizes sizes;
    struct moon_error why;
    const char *refusal = refuse_groups(engine, list_groups(engine, &(struct moon_block_sizes){0}, engine->groups));
    if (refusal)
        return refuse(engine, "COMPAT-027", refusal);
    if (resolve_blocks(engine, &sizes, &why) != 0)
        return refuse(engine, "COMPAT-009", moon_arena_format(arena, "block sizes: %s", why.message));
    *model = (struct moon_layout_model){
        .tp = description->tp,
        .pp = description->pp,
        .pcp = description->pcp,
        .dcp = description->dcp,
        .total_kv_heads = description->heads,
        .use_mla = description->mla,
        .kv_layout = description->layout,
        .groups = engine->groups,
        .group_count = list_groups(engine, &sizes, engine->groups),
        .scheduler_block_tokens = sizes.scheduler_block,
        .hash_block_tokens = sizes.hash_block,
        .speculative = description->eagle && engine->profile->store_mask != MOON_STORE_MASK_NONE,
        .model_name = engine->name,
        .cache_prefix = engine->prefix,
    };
    for (size_t i = 0; i < model->group_count; i++)
        if (engine->groups[i].block_tokens % sizes.hash_block != 0)
            return refuse(engine, "COMPAT-009", "a stored group's block is no multiple of the hash block");
    if (sizes.scheduler_block > MOON_COMPAT_TOKENS_MAX)
        return refuse(engine, "COMPAT-009", "the scheduler block is above 1048576 tokens");
    if (!resolve_retention(engine, model))
        return refuse(engine, "COMPAT-018", "VLLM_PREFIX_CACHE_RETENTION_INTERVAL is no number from 0 to 1048576");
    engine->derived = true;
    return moon_extra_layout(arena, description->extra, model);
}

/* ---- the whole ---- */

static int make_head(struct moon_arena *arena, struct moon_compat_engine *engine) {
    struct moon_text text;
    const struct moon_pool_key key = {.cache_prefix = engine->prefix,
                                      .model_name = engine->name,
                                      .store_namespace = {engine->selection.text, engine->selection.text_length}};
    moon_text_open(&text, arena->memory);
    moon_key_prefix(engine->profile, &key, &text);
    const char *head = text.failed ? NULL : moon_arena_copy(arena, moon_text_value(&text), text.length);
    engine->head = (struct moon_key_text){head, text.length};
    moon_text_close(&text);
    return head ? 0 : MOON_ERR_MEMORY;
}

static int check_size(const struct moon_compat_engine *engine, struct moon_error *error) {
    const struct moon_compat_description *description = engine->description;
    /* Each size is at most MOON_COMPAT_SIZE_MAX, so the products fit. */
    if (description->tp * description->pp * description->pcp > MOON_COMPAT_RANKS_MAX)
        return moon_json_fail(error, MOON_ERR_LIMIT, description->source,
                              moon_json_member(description->document, "parallel"), "more than %d ranks",
                              MOON_COMPAT_RANKS_MAX);
    return 0;
}

int moon_compat_engine_open(struct moon_arena *arena, const struct moon_compat_description *description,
                            const struct moon_compat_input *input, struct moon_compat_engine *out,
                            struct moon_error *error) {
    *out = (struct moon_compat_engine){.description = description, .profile = description->profile};
    for (size_t i = 0; i < description->group_count; i++)
        if (description->groups[i].retained_tokens > out->retained_tokens)
            out->retained_tokens = description->groups[i].retained_tokens;
    int status = check_size(out, error);
    if (!status)
        status = load_config(arena, input, out, error);
    if (status == MOON_ERR_LIMIT)
        return status;
    if (!status && description->seed && !moon_compat_seed_starts(description->seed))
        status = refuse(out, "COMPAT-008", "CPython does not start with this PYTHONHASHSEED");
    if (!status)
        status = resolve_roles(out);
    if (!status)
        status = resolve_names(arena, out);
    if (!status)
        status = resolve_model(arena, out);
    if (!status && out->derived)
        moon_store_select(out->profile, &out->model, &out->selection);
    if (!status)
        status = make_head(arena, out);
    return status ? fail_memory(error) : 0;
}

/* ---- objects ---- */

static int64_t place_of(const struct moon_compat_engine *engine, size_t group, int64_t t, int64_t pcp, int64_t dcp,
                        int64_t pp) {
    const struct moon_layout_model *model = &engine->model;
    return ((((int64_t)group * engine->t_end + t) * model->pcp + pcp) * model->dcp + dcp) * model->pp + pp;
}

const struct moon_compat_identity *moon_compat_identity_find(const struct moon_compat_engine *engine, size_t group,
                                                             int64_t t, int64_t pcp, int64_t dcp, int64_t pp) {
    const struct moon_layout_model *model = &engine->model;
    if (group >= model->group_count || t >= engine->t_end || pcp >= model->pcp || dcp >= model->dcp || pp >= model->pp)
        return NULL;
    int32_t index = engine->places[place_of(engine, group, t, pcp, dcp, pp)];
    return index < 0 ? NULL : &engine->identities[index];
}

size_t moon_compat_chunks(const struct moon_compat_engine *engine, size_t group, int64_t tokens) {
    return (size_t)(tokens / engine->groups[group].block_tokens);
}

struct moon_chunk moon_compat_chunk(const struct moon_compat_engine *engine, size_t group, size_t chunk) {
    int64_t block = engine->groups[group].block_tokens, per = block / engine->model.hash_block_tokens;
    const struct moon_chunk_query query = {.block_size = block,
                                           .hash_block_size = engine->model.hash_block_tokens,
                                           .token_len = ((int64_t)chunk + 1) * block,
                                           .hash_count = ((int64_t)chunk + 1) * per,
                                           .mask_num = (int64_t)chunk * block,
                                           .put_step = 1};
    struct moon_chunk_walk walk;
    struct moon_chunk out;
    int status = moon_chunk_walk_open(&walk, engine->profile, &query, NULL);
    assert(status == 0); /* one whole chunk with all its hashes */
    (void)status;
    bool found = moon_chunk_walk_next(&walk, &out);
    assert(found);
    (void)found;
    return out;
}

/* True if every layer of the group keeps one latent state for all heads. */
static bool is_mla(const struct moon_layout_group *group) {
    enum moon_spec_kind kind = group->spec.kind;
    bool mla = kind == MOON_SPEC_MLA || kind == MOON_SPEC_SLIDING_WINDOW_MLA;
    if (kind != MOON_SPEC_UNIFORM)
        return mla;
    for (size_t i = 0; i < group->inner_count; i++)
        if (group->inner[i].kind != MOON_SPEC_MLA && group->inner[i].kind != MOON_SPEC_SLIDING_WINDOW_MLA)
            return false;
    return true;
}

/* What of the model a rank's object of a group holds. */
static struct moon_compat_part part_of(const struct moon_compat_engine *engine, const struct moon_rank *rank,
                                       size_t group, int64_t shard) {
    const struct moon_layout_model *model = &engine->model;
    struct moon_compat_part part = {
        .stage = rank->pp, .part = rank->tp, .parts = model->tp, .pcp_rank = rank->pcp, .dcp_rank = rank->dcp};
    int64_t heads = model->total_kv_heads;
    if (moon_store_sharded(&engine->selection)) {
        part.part = shard;
        part.parts = engine->selection.space.store_tp;
    } else if (is_mla(&engine->groups[group])) {
        part.part = 0;
        part.parts = 1;
    } else if (engine->groups[group].spec.kind != MOON_SPEC_MAMBA && model->tp > heads && model->tp % heads == 0) {
        part.part = rank->tp / (model->tp / heads);
        part.parts = heads;
    }
    return part;
}

static bool parts_equal(const struct moon_compat_part *a, const struct moon_compat_part *b) {
    return a->stage == b->stage && a->part == b->part && a->parts == b->parts && a->pcp_rank == b->pcp_rank &&
           a->dcp_rank == b->dcp_rank;
}

static int add_identity(struct moon_arena *arena, struct moon_compat_engine *engine, const struct moon_rank *rank,
                        size_t group, int64_t shard) {
    const struct moon_pool_key key =
        moon_rank_key(engine->profile, &engine->model, &engine->selection, rank, group, shard);
    struct moon_compat_part part = part_of(engine, rank, group, shard);
    int32_t *place = &engine->places[place_of(engine, group, key.tp_rank, key.pcp_rank, key.dcp_rank, key.pp_rank)];
    if (*place >= 0) {
        struct moon_compat_identity *known = &engine->identities[*place];
        known->clash |= !parts_equal(&known->part, &part);
        return 0;
    }
    bool *written = moon_arena_alloc(arena, moon_compat_chunks(engine, group, engine->saved_tokens));
    if (!written)
        return MOON_ERR_MEMORY;
    *place = (int32_t)engine->identity_count;
    engine->identities[engine->identity_count++] = (struct moon_compat_identity){
        group, key.tp_rank, key.pcp_rank, key.dcp_rank, key.pp_rank, part, false, written};
    return 0;
}

static struct moon_compat_identity *own_identity(const struct moon_compat_engine *engine, const struct moon_rank *rank,
                                                 size_t group, int64_t shard) {
    const struct moon_pool_key key =
        moon_rank_key(engine->profile, &engine->model, &engine->selection, rank, group, shard);
    int64_t place = place_of(engine, group, key.tp_rank, key.pcp_rank, key.dcp_rank, key.pp_rank);
    return &engine->identities[engine->places[place]];
}

/* Marks what one rank puts: the walk of the release, and Mamba states that the core hands off at the prompt's last
 * scheduler block (COMPAT-020). */
static void mark_puts(struct moon_compat_engine *engine, const struct moon_rank *rank, const struct moon_save *save) {
    struct moon_puts puts;
    struct moon_put put;
    int status = moon_puts_open(&puts, engine->profile, &engine->model, &engine->selection, rank, save, NULL);
    assert(status == 0); /* the tables are long enough */
    (void)status;
    while (moon_puts_next(&puts, &put))
        own_identity(engine, rank, put.group, put.shard)->written[put.chunk.id] = true;
    for (size_t group = 0; group < engine->model.group_count; group++)
        if (engine->groups[group].spec.kind == MOON_SPEC_MAMBA && !engine->profile->mamba_by_position)
            own_identity(engine, rank, group, 0)->written[moon_compat_chunks(engine, group, engine->saved_tokens) - 1] =
                true;
}

static int allocate_identities(struct moon_arena *arena, struct moon_compat_engine *engine, struct moon_error *error) {
    const struct moon_layout_model *model = &engine->model;
    engine->t_end = moon_store_sharded(&engine->selection) ? engine->selection.space.store_tp : model->tp;
    int64_t shards = moon_local_shards(model, &engine->selection, 0).count;
    int64_t places = place_of(engine, model->group_count, 0, 0, 0, 0);
    int64_t identities = moon_world_size(model) * shards * (int64_t)model->group_count;
    int64_t chunks = 1; /* of the group with the smallest block */
    for (size_t i = 0; i < model->group_count; i++) {
        int64_t own = engine->saved_tokens / engine->groups[i].block_tokens;
        chunks = own > chunks ? own : chunks;
    }
    if (places > MOON_COMPAT_IDENTITIES_MAX || identities > MOON_COMPAT_OBJECTS_MAX / chunks)
        return moon_json_fail(error, MOON_ERR_LIMIT, engine->description->source, engine->description->document,
                              "too many ranks and blocks to compare: %lld names of objects, %lld blocks",
                              (long long)identities, (long long)chunks);
    engine->places = moon_arena_array(arena, (size_t)places, sizeof *engine->places);
    engine->identities = moon_arena_array(arena, (size_t)identities, sizeof *engine->identities);
    if (!engine->places || !engine->identities)
        return fail_memory(error);
    memset(engine->places, -1, (size_t)places * sizeof *engine->places);
    return 0;
}

/* One block table for all groups: block k + 1 for chunk k. */
static int make_tables(struct moon_arena *arena, const struct moon_compat_engine *engine,
                       struct moon_block_table **out) {
    size_t most = 0, groups = engine->model.group_count;
    for (size_t i = 0; i < groups; i++) {
        size_t own = moon_compat_chunks(engine, i, engine->saved_tokens);
        most = own > most ? own : most;
    }
    int64_t *blocks = moon_arena_array(arena, most, sizeof *blocks);
    *out = moon_arena_array(arena, groups, sizeof **out);
    if (!blocks || !*out)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < most; i++)
        blocks[i] = (int64_t)i + 1;
    for (size_t i = 0; i < groups; i++)
        (*out)[i] = (struct moon_block_table){blocks, most};
    return 0;
}

int moon_compat_engine_save(struct moon_arena *arena, struct moon_compat_engine *engine, int64_t prompt_tokens,
                            struct moon_error *error) {
    const struct moon_layout_model *model = &engine->model;
    int64_t block = model->scheduler_block_tokens;
    engine->saved_tokens = prompt_tokens > 0 ? (prompt_tokens - 1) / block * block : 0;
    int status = allocate_identities(arena, engine, error);
    if (status)
        return status;
    struct moon_save save = {.tokens = engine->saved_tokens,
                             .hash_count = engine->saved_tokens / model->hash_block_tokens,
                             .prefill_end_tokens = engine->saved_tokens + 1};
    struct moon_block_table *tables = NULL;
    status = make_tables(arena, engine, &tables);
    save.tables = tables;
    int64_t world = moon_world_size(model);
    for (int64_t rank = 0; rank < world && !status; rank++) {
        const struct moon_rank at = moon_rank_at(model, rank);
        const struct moon_shard_range shards = moon_local_shards(model, &engine->selection, at.tp);
        for (size_t group = 0; group < model->group_count; group++)
            for (int64_t i = 0; i < shards.count && !status; i++)
                status = add_identity(arena, engine, &at, group, shards.first + i);
        if (!status && engine->saved_tokens > 0)
            mark_puts(engine, &at, &save);
    }
    return status ? fail_memory(error) : 0;
}
