/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an engine from `given`: topology, groups, options, and the block sizes that follow from them. */
#include "conformance/suites/engine.h"

#include "ref/config/python_repr.h"
#include "ref/hash/block_sizes.h"

#include <string.h>

#define TOKENS_MAX (INT64_C(1) << 40)

/* Everything that one function passes to the next. */
struct reading {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const char *source;
    const struct moon_json *given;
    struct moon_layout_model *model;
    struct moon_error *error;
};

static int out_of_memory(const struct reading *reading) {
    return moon_fail(reading->error, MOON_ERR_MEMORY, NULL, "out of memory");
}

static int get_size(const struct reading *reading, const struct moon_json *object, const char *name, int64_t max,
                    int64_t *out) {
    return moon_json_get_int(reading->source, object, name, false, 1, max, out, reading->error);
}

static int read_topology(const struct reading *reading) {
    static const char *const names[] = {"tp", "pp", "pcp", "dcp", NULL};
    struct moon_layout_model *model = reading->model;
    struct moon_json *topology = NULL;
    model->tp = model->pp = model->pcp = model->dcp = 1;
    int status =
        moon_json_get(reading->source, reading->given, "topology", false, MOON_JSON_OBJECT, &topology, reading->error);
    if (status || !topology)
        return status;
    status = moon_json_closed(reading->source, topology, names, reading->error);
    int64_t *const sizes[] = {&model->tp, &model->pp, &model->pcp, &model->dcp};
    for (size_t i = 0; !status && names[i]; i++)
        status = get_size(reading, topology, names[i], MOON_ENGINE_WORLD_MAX, sizes[i]);
    if (!status && model->tp * model->pp * model->pcp > MOON_ENGINE_WORLD_MAX)
        status = moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, topology, "more than %d workers",
                                MOON_ENGINE_WORLD_MAX);
    if (!status && model->tp % model->dcp != 0)
        status = moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, topology, "dcp does not divide tp");
    return status;
}

/* ---- groups ---- */

static const struct {
    const char *name;
    enum moon_spec_kind kind;
    bool window;
} kinds[] = {
    {"full", MOON_SPEC_FULL, false},
    {"full_with_window", MOON_SPEC_FULL, true},
    {"sliding_window", MOON_SPEC_SLIDING_WINDOW, true},
    {"mla", MOON_SPEC_MLA, false},
    {"sliding_window_mla", MOON_SPEC_SLIDING_WINDOW_MLA, true},
    {"mamba", MOON_SPEC_MAMBA, false},
    {"uniform", MOON_SPEC_UNIFORM, false},
    {"chunked_local", MOON_SPEC_CHUNKED_LOCAL, false},
};

static int read_mamba_mode(const struct reading *reading, const struct moon_json *object,
                           struct moon_layer_spec *spec) {
    const char *name = "align";
    int status = moon_json_get_string(reading->source, object, "mamba_cache_mode", false, &name, NULL, reading->error);
    if (status)
        return status;
    for (int mode = MOON_MAMBA_ALIGN; mode <= MOON_MAMBA_NONE; mode++)
        if (strcmp(name, moon_mamba_mode_name((enum moon_mamba_mode)mode)) == 0) {
            spec->mamba_mode = (enum moon_mamba_mode)mode;
            return 0;
        }
    return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source,
                          moon_json_member(object, "mamba_cache_mode"), "\"%.64s\" is none of align, all, none", name);
}

/* Reads what belongs to some kinds only, and makes equal what these kinds do not have: MLA has one head, a Mamba state
 * neither heads nor their size. */
static int read_spec_extras(const struct reading *reading, const struct moon_json *object,
                            struct moon_layer_spec *spec) {
    const struct moon_json *retained = moon_json_member(object, "extra_retained_tokens");
    bool is_window = moon_spec_is_window(spec), is_local = spec->kind == MOON_SPEC_CHUNKED_LOCAL;
    if (spec->kind == MOON_SPEC_MLA || spec->kind == MOON_SPEC_SLIDING_WINDOW_MLA || spec->kind == MOON_SPEC_MAMBA)
        spec->num_kv_heads = 1;
    if (spec->kind == MOON_SPEC_MAMBA) {
        spec->head_size = 1;
        return read_mamba_mode(reading, object, spec);
    }
    if (is_local)
        return moon_json_get_int(reading->source, object, "attention_chunk_size", true, 1, TOKENS_MAX,
                                 &spec->local_tokens, reading->error);
    if (retained && !(is_window && reading->profile->window_retains))
        return moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source, retained,
                              "only sliding windows have it, and those of vllm-0.28 and later");
    return moon_json_get_int(reading->source, object, "extra_retained_tokens", false, 0, TOKENS_MAX,
                             &spec->extra_retained_tokens, reading->error);
}

/* Reads the members of one spec that both groups and inner layers have. */
static int read_spec(const struct reading *reading, const struct moon_json *object, struct moon_layer_spec *spec) {
    const char *kind = "full";
    bool window = false, known = false;
    int status = moon_json_get_string(reading->source, object, "kind", false, &kind, NULL, reading->error);
    for (size_t i = 0; !status && !known && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i].name) == 0) {
            *spec = (struct moon_layer_spec){.kind = kinds[i].kind, .num_kv_heads = 1, .head_size = 8};
            window = kinds[i].window;
            known = true;
        }
    if (!status && !known)
        return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, moon_json_member(object, "kind"),
                              "\"%.64s\" is none of full, full_with_window, sliding_window, mla, sliding_window_mla, "
                              "mamba, uniform, chunked_local",
                              kind);
    if (!status)
        status = get_size(reading, object, "num_kv_heads", INT64_C(1) << 32, &spec->num_kv_heads);
    if (!status)
        status = get_size(reading, object, "head_size", INT64_C(1) << 32, &spec->head_size);
    if (!status)
        status = moon_json_get_int(reading->source, object, "sliding_window", window, 1, TOKENS_MAX,
                                   &spec->window_tokens, reading->error);
    return status ? status : read_spec_extras(reading, object, spec);
}

/* Reads "inner", the layer specs of a uniform group. */
static int read_inner(const struct reading *reading, const struct moon_json *object, struct moon_layout_group *group) {
    static const char *const names[] = {"kind", "num_kv_heads", "head_size", NULL};
    bool uniform = group->spec.kind == MOON_SPEC_UNIFORM;
    struct moon_json *list = NULL;
    int status = moon_json_get(reading->source, object, "inner", uniform, MOON_JSON_ARRAY, &list, reading->error);
    if (status || !list)
        return status;
    if (!uniform || list->count == 0)
        return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, list,
                              "inner holds the layers of a group of kind uniform, at least one");
    struct moon_layer_spec *inner = moon_arena_array(reading->arena, list->count, sizeof *inner);
    if (!inner)
        return out_of_memory(reading);
    group->inner = inner;
    group->inner_count = list->count;
    for (const struct moon_json *each = list->first; each && !status; each = each->next) {
        status = moon_json_closed(reading->source, each, names, reading->error);
        if (!status)
            status = read_spec(reading, each, &inner[each->index]);
        if (!status && inner[each->index].kind != MOON_SPEC_FULL && inner[each->index].kind != MOON_SPEC_MLA)
            status = moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source, each,
                                    "layers of a uniform group are full or mla here");
    }
    return status;
}

static int read_group(const struct reading *reading, const struct moon_json *object, struct moon_layout_group *group) {
    static const char *const names[] = {"kind",
                                        "block_size",
                                        "num_kv_heads",
                                        "head_size",
                                        "sliding_window",
                                        "extra_retained_tokens",
                                        "attention_chunk_size",
                                        "mamba_cache_mode",
                                        "is_eagle",
                                        "num_layers",
                                        "layer_names",
                                        "inner",
                                        "transferable",
                                        "prefix_cacheable",
                                        NULL};
    *group = (struct moon_layout_group){.block_tokens = 16, .transferable = true, .prefix_cacheable = true};
    int status = moon_json_closed(reading->source, object, names, reading->error);
    if (!status)
        status = read_spec(reading, object, &group->spec);
    if (!status)
        status = get_size(reading, object, "block_size", MOON_ENGINE_BLOCK_TOKENS_MAX, &group->block_tokens);
    bool *const flags[] = {&group->is_eagle, &group->transferable, &group->prefix_cacheable};
    static const char *const flag_names[] = {"is_eagle", "transferable", "prefix_cacheable"};
    for (size_t i = 0; !status && i < sizeof flags / sizeof flags[0]; i++)
        status = moon_json_get_bool(reading->source, object, flag_names[i], false, flags[i], reading->error);
    return status ? status : read_inner(reading, object, group);
}

/* True if the release takes a group for a Mamba state that is not kept at block boundaries. */
static bool is_unaligned(const struct moon_profile *profile, const struct moon_layout_group groups[], size_t group) {
    if (groups[group].spec.kind != MOON_SPEC_MAMBA)
        return false;
    return profile->mamba_by_block_size ? groups[group].block_tokens != groups[0].block_tokens
                                        : groups[group].spec.mamba_mode != MOON_MAMBA_ALIGN;
}

/* Multiplies context parallelism into the blocks, and resolves the sizes of scheduler and hashes. The first group has
 * the configured block size. */
static int resolve_blocks(const struct reading *reading, struct moon_layout_group groups[], size_t count) {
    struct moon_kv_group_size sizes[MOON_ENGINE_GROUPS_MAX];
    struct moon_layout_model *model = reading->model;
    int64_t match_unit = 0;
    int status = get_size(reading, reading->given, "prefix_match_unit", MOON_ENGINE_BLOCK_TOKENS_MAX, &match_unit);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++)
        sizes[i] = (struct moon_kv_group_size){.block_size = groups[i].block_tokens,
                                               .dcp_sharded = groups[i].spec.kind != MOON_SPEC_MAMBA,
                                               .mamba_not_aligned = is_unaligned(reading->profile, groups, i),
                                               .prefix_cacheable = groups[i].prefix_cacheable};
    const struct moon_block_sizes_input input = {.groups = sizes,
                                                 .group_count = count,
                                                 .dcp = model->dcp,
                                                 .pcp = model->pcp,
                                                 .match_unit = match_unit,
                                                 .hashing = true};
    struct moon_block_sizes blocks;
    struct moon_error why;
    status = moon_block_sizes_resolve(reading->profile, &input, &blocks, &why);
    if (status == MOON_ERR_RANGE)
        return moon_json_fail(reading->error, status, reading->source, moon_json_member(reading->given, "groups"), "%s",
                              why.message);
    if (status && reading->error)
        *reading->error = why;
    if (status)
        return status;
    model->scheduler_block_tokens = blocks.scheduler_block;
    model->hash_block_tokens = blocks.hash_block;
    for (size_t i = 0; i < count; i++)
        groups[i].block_tokens = count == 1             ? blocks.scheduler_block
                                 : sizes[i].dcp_sharded ? groups[i].block_tokens * model->dcp
                                                        : groups[i].block_tokens;
    return 0;
}

static int check_groups(const struct reading *reading, const struct moon_json *list) {
    const struct moon_layout_model *model = reading->model;
    if (reading->profile->group_numbering == MOON_GROUP_NONE && list && list->count > 1)
        return moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source, list, "%s has one KV cache group",
                              reading->profile->name);
    if (model->group_count == 0)
        return moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source, list,
                              "no group is left for the store, which the release refuses");
    if (model->group_count > 1 && (model->pcp > 1 || (model->dcp > 1 && !reading->profile->groups_dcp)))
        return moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source, list,
                              "%s refuses several KV cache groups with this context parallelism",
                              reading->profile->name);
    for (size_t i = 0; i < model->group_count; i++) /* HASH-095 */
        if (model->groups[i].block_tokens % model->hash_block_tokens != 0)
            return moon_refuse(reading->error, "AssertionError", "block_size must be divisible by hash_block_size");
    return 0;
}

static int read_groups(const struct reading *reading) {
    struct moon_layout_group groups[MOON_ENGINE_GROUPS_MAX];
    struct moon_json *list = NULL;
    int status =
        moon_json_get(reading->source, reading->given, "groups", false, MOON_JSON_ARRAY, &list, reading->error);
    size_t count = list ? list->count : 1;
    if (!status && (count < 1 || count > MOON_ENGINE_GROUPS_MAX))
        status = moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, list, "1 to %d groups are needed",
                                MOON_ENGINE_GROUPS_MAX);
    groups[0] = (struct moon_layout_group){.spec = {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 8},
                                           .block_tokens = 16,
                                           .transferable = true,
                                           .prefix_cacheable = true};
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next)
        status = read_group(reading, each, &groups[each->index]);
    if (!status)
        status = resolve_blocks(reading, groups, count);
    if (status)
        return status;
    struct moon_layout_group *kept = moon_arena_array(reading->arena, count, sizeof *kept);
    if (!kept)
        return out_of_memory(reading);
    reading->model->groups = kept;
    reading->model->group_count = moon_store_groups(reading->profile, groups, count, kept);
    return check_groups(reading, list);
}

/* ---- options ---- */

static void read_scalar(const struct moon_json *value, struct moon_setting *setting) {
    static const enum moon_setting_type types[] = {
        [MOON_JSON_NULL] = MOON_SETTING_NULL,       [MOON_JSON_BOOL] = MOON_SETTING_BOOL,
        [MOON_JSON_INTEGER] = MOON_SETTING_INTEGER, [MOON_JSON_REAL] = MOON_SETTING_REAL,
        [MOON_JSON_STRING] = MOON_SETTING_STRING,   [MOON_JSON_ARRAY] = MOON_SETTING_ARRAY,
        [MOON_JSON_OBJECT] = MOON_SETTING_OBJECT,
    };
    *setting = (struct moon_setting){
        .type = types[value->type], .boolean = value->boolean, .text = {value->bytes, value->length}};
}

/* Reads one option with its type; of a list also the elements. */
static int read_setting(const struct reading *reading, const struct moon_json *extra, const char *name,
                        struct moon_setting *setting) {
    const struct moon_json *value = moon_json_member(extra, name);
    *setting = (struct moon_setting){.type = MOON_SETTING_ABSENT};
    if (!value)
        return 0;
    read_scalar(value, setting);
    if (value->type != MOON_JSON_ARRAY)
        return 0;
    struct moon_setting *elements = moon_arena_array(reading->arena, value->count, sizeof *elements);
    if (!elements)
        return out_of_memory(reading);
    for (const struct moon_json *each = value->first; each; each = each->next)
        read_scalar(each, &elements[each->index]);
    setting->elements = elements;
    setting->count = value->count;
    return 0;
}

/* str(extra_config["cache_prefix"]) (KEY-009). */
static int read_prefix(const struct reading *reading, const struct moon_json *extra) {
    const struct moon_json *value = moon_json_member(extra, "cache_prefix");
    if (!value)
        return 0;
    if (value->type == MOON_JSON_STRING) {
        reading->model->cache_prefix = (struct moon_key_text){value->bytes, value->length};
        return 0;
    }
    struct moon_text text;
    moon_text_open(&text, reading->arena->memory);
    moon_python_repr(value, &text);
    const char *copy = text.failed ? NULL : moon_arena_copy(reading->arena, moon_text_value(&text), text.length);
    if (copy)
        reading->model->cache_prefix = (struct moon_key_text){copy, text.length};
    moon_text_close(&text);
    return copy ? 0 : out_of_memory(reading);
}

static int read_options(const struct reading *reading) {
    struct moon_layout_model *model = reading->model;
    struct moon_json *extra = NULL;
    int status =
        moon_json_get(reading->source, reading->given, "extra_config", false, MOON_JSON_OBJECT, &extra, reading->error);
    if (!status)
        status = read_setting(reading, extra, "store_tp_size", &model->store_tp_size);
    if (!status)
        status = read_setting(reading, extra, "enable_store_tp_lcm", &model->enable_store_tp_lcm);
    if (!status)
        status = read_setting(reading, extra, "prefill_tp_sizes", &model->prefill_tp_sizes);
    if (!status)
        status = read_setting(reading, extra, "enable_cross_layers_blocks", &model->enable_cross_layers_blocks);
    return status ? status : read_prefix(reading, extra);
}

/* ---- the rest ---- */

static int read_retention(const struct reading *reading) {
    const struct moon_json *value = moon_json_member(reading->given, "retention_interval");
    reading->model->has_retention = value && value->type != MOON_JSON_NULL;
    if (!reading->model->has_retention)
        return 0;
    return moon_json_get_int(reading->source, reading->given, "retention_interval", true, 0, TOKENS_MAX,
                             &reading->model->retention_tokens, reading->error);
}

static int read_names(const struct reading *reading, struct moon_engine *out) {
    struct moon_key_text path = moon_key_text("model");
    const char *layout = "LBHNC";
    out->kv_role = "kv_both";
    int status = moon_json_get_string(reading->source, reading->given, "model", false, &path.bytes, &path.length,
                                      reading->error);
    if (!status)
        status = moon_json_get_string(reading->source, reading->given, "kv_cache_layout", false, &layout, NULL,
                                      reading->error);
    if (!status)
        status = moon_json_get_string(reading->source, reading->given, "kv_role", false, &out->kv_role, NULL,
                                      reading->error);
    if (status)
        return status;
    reading->model->model_name = moon_model_name(path);
    struct moon_error unknown;
    if (moon_kv_layout_find(layout, &reading->model->kv_layout, &unknown))
        return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source,
                              moon_json_member(reading->given, "kv_cache_layout"), "%s", unknown.message);
    if (strcmp(out->kv_role, "kv_both") != 0 && strcmp(out->kv_role, "kv_producer") != 0 &&
        strcmp(out->kv_role, "kv_consumer") != 0)
        return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source,
                              moon_json_member(reading->given, "kv_role"),
                              "\"%.64s\" is none of kv_both, kv_producer, kv_consumer", out->kv_role);
    return 0;
}

int moon_engine_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                     const struct moon_json *given, struct moon_engine *out, struct moon_error *error) {
    *out = (struct moon_engine){.model = {.total_kv_heads = 8}};
    struct moon_layout_model *model = &out->model;
    const struct reading reading = {arena, profile, source, given, model, error};
    int status = read_topology(&reading);
    if (!status)
        status = get_size(&reading, given, "total_kv_heads", INT64_C(1) << 32, &model->total_kv_heads);
    if (!status)
        status = moon_json_get_bool(source, given, "use_mla", false, &model->use_mla, error);
    if (!status)
        status = moon_json_get_bool(source, given, "speculative", false, &model->speculative, error);
    if (!status)
        status = read_retention(&reading);
    if (!status)
        status = read_names(&reading, out);
    if (!status)
        status = read_options(&reading);
    return status ? status : read_groups(&reading);
}
