/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: reading a case. */
#include "conformance/suites/load_case.h"

#include "conformance/suites/hashes.h"
#include "ref/config/environment.h"
#include "ref/config/store_config.h"

#include <inttypes.h>
#include <string.h>

enum { BYTES_PER_TOKEN = 64, CONTENT_BYTES = 8, BLOCKS_MAX = 1 << 30, HASHES_MADE_MAX = 1 << 20 };
#define NUMBER_MAX (INT64_C(1) << 53)

/* Everything that one function passes to the next. */
struct reader {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const char *source;
    const struct moon_json *given;
    struct moon_load_case *out;
    struct moon_key_set *layers; /* names of the engine's layers so far */
    struct moon_error *error;
};

static int out_of_memory(const struct reader *r) {
    return moon_fail(r->error, MOON_ERR_MEMORY, NULL, "out of memory");
}

static const struct moon_json *member(const struct reader *r, const char *name) {
    return moon_json_member(r->given, name);
}

/* ---- groups, as the engine has them ---- */

static bool flag(const struct moon_json *group, const char *name) {
    const struct moon_json *value = moon_json_member(group, name);
    return !value || value->boolean;
}

/* True if the release stores a group of the engine. `group` is NULL for the one group of an engine that names none. */
static bool is_stored(const struct reader *r, const struct moon_json *group) {
    const struct moon_layout_group asked = {.transferable = flag(group, "transferable"),
                                            .prefix_cacheable = flag(group, "prefix_cacheable")};
    struct moon_layout_group kept;
    return moon_store_groups(r->profile, &asked, 1, &kept) == 1;
}

static const struct moon_json *first_group(const struct reader *r) {
    const struct moon_json *groups = member(r, "groups");
    return groups ? groups->first : NULL;
}

/* Number of layers of a group. */
static int64_t count_layers(const struct moon_json *group) {
    const struct moon_json *names = moon_json_member(group, "layer_names"), *inner = moon_json_member(group, "inner"),
                           *count = moon_json_member(group, "num_layers");
    if (inner)
        return (int64_t)inner->count;
    if (names && names->count)
        return (int64_t)names->count;
    return count && count->fits ? count->integer : 1;
}

/* Names a layer, which no other of the engine may be called. */
static int name_layer(const struct reader *r, const struct moon_json *group, int64_t layer, const char **out) {
    const struct moon_json *names = moon_json_member(group, "layer_names");
    const char *name;
    if (moon_json_member(group, "inner"))
        name = moon_arena_format(r->arena, "u%" PRId64, layer);
    else if (names && names->count)
        name = moon_json_at(names, (size_t)layer)->bytes;
    else
        name = moon_arena_format(r->arena, "g%zu.l%" PRId64, group ? group->index : 0, layer);
    if (name && moon_key_set_find(r->layers, moon_key_text(name)))
        return moon_json_fail(r->error, MOON_ERR_UNSUPPORTED, r->source, group, "two layers are called \"%.64s\"",
                              name);
    *out = name;
    return name && !moon_key_set_put(r->layers, moon_key_text(name), 1) ? 0 : out_of_memory(r);
}

static int check_layers(const struct reader *r, const struct moon_json *group, size_t *total) {
    static const char *const name = "layer_names";
    int64_t count = 1;
    struct moon_json *names = NULL;
    int status = moon_json_get(r->source, group, name, false, MOON_JSON_ARRAY, &names, r->error);
    if (!status)
        status = moon_json_get_int(r->source, group, "num_layers", false, 1, MOON_LOAD_LAYERS_MAX, &count, r->error);
    for (const struct moon_json *each = names ? names->first : NULL; each && !status; each = each->next)
        if (each->type != MOON_JSON_STRING)
            status = moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, each, "the name of a layer is a text");
    *total += (size_t)count_layers(group);
    if (!status && *total > MOON_LOAD_LAYERS_MAX)
        status =
            moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, group, "more than %d layers", MOON_LOAD_LAYERS_MAX);
    return status;
}

/* ---- caches ---- */

/* One dense cache. A TP-sharded layout wants local heads and tokens apart, in the order of its format. */
static int make_cache(const struct reader *r, uint64_t block_tokens, uint64_t page_bytes, struct moon_tensor *cache) {
    const struct moon_layout_model *model = &r->out->connector.engine.model;
    const struct moon_store_selection *selection = &r->out->connector.connector.selection;
    uint64_t blocks = (uint64_t)r->out->num_blocks;
    if (!moon_store_sharded(selection)) {
        page_bytes = page_bytes ? page_bytes : block_tokens * BYTES_PER_TOKEN;
        *cache = (struct moon_tensor){
            .dimensions = 2, .shape = {blocks, page_bytes}, .strides = {page_bytes, 1}, .item_bytes = 1};
        return 0;
    }
    uint64_t heads = (uint64_t)(model->total_kv_heads / model->tp), cells = heads * block_tokens;
    uint64_t content = page_bytes ? page_bytes / cells : CONTENT_BYTES;
    if (page_bytes && content * cells != page_bytes)
        return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, member(r, "page_bytes"),
                              "no multiple of %" PRIu64 " heads of %" PRIu64 " tokens", heads, block_tokens);
    bool head_outside = selection->space.format == MOON_STORE_SHARDED_LBHNC;
    *cache = (struct moon_tensor){
        .dimensions = 4,
        .shape = {blocks, heads, block_tokens, content},
        .strides = {cells * content, head_outside ? block_tokens * content : content,
                    head_outside ? content : heads * content, 1},
        .item_bytes = 1,
    };
    return 0;
}

/* The caches of a group's layers. From 0.30 on those of groups that are not stored are not registered (SEG-011). */
static int make_caches(const struct reader *r, const struct moon_json *group, uint64_t page_bytes) {
    struct moon_load_case *out = r->out;
    const struct moon_json *block = moon_json_member(group, "block_size");
    bool registered = !r->profile->store_namespace || is_stored(r, group);
    for (int64_t layer = 0; layer < count_layers(group); layer++) {
        struct moon_tensor cache = {0};
        int status = make_cache(r, block ? (uint64_t)block->integer : 16, page_bytes, &cache);
        if (status)
            return status;
        cache.storage = out->storage_count;
        status = name_layer(r, group, layer, &out->tensors[cache.storage]);
        if (status)
            return status;
        if (__builtin_mul_overflow(cache.shape[0], cache.strides[0], &out->storage_bytes[cache.storage]) ||
            out->storage_bytes[cache.storage] > (uint64_t)NUMBER_MAX)
            return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, member(r, "page_bytes"),
                                  "a cache of more than 2^53 bytes");
        out->storage_count++;
        if (registered)
            out->caches[out->cache_count++] = cache;
    }
    return 0;
}

static int read_caches(const struct reader *r) {
    struct moon_load_case *out = r->out;
    int64_t page_bytes = 0;
    size_t layers = 0;
    out->num_blocks = 64;
    int status = moon_json_get_int(r->source, r->given, "page_bytes", false, 1, NUMBER_MAX, &page_bytes, r->error);
    if (!status)
        status =
            moon_json_get_int(r->source, r->given, "num_gpu_blocks", false, 1, BLOCKS_MAX, &out->num_blocks, r->error);
    const struct moon_json *group = first_group(r);
    for (size_t i = 0; i < out->groups_of_engine && !status; i++, group = group ? group->next : NULL)
        status = check_layers(r, group, &layers);
    if (status)
        return status;
    out->caches = moon_arena_array(r->arena, layers, sizeof *out->caches);
    out->storage_bytes = moon_arena_array(r->arena, layers, sizeof *out->storage_bytes);
    out->tensors = moon_arena_array(r->arena, layers, sizeof *out->tensors);
    if (!out->caches || !out->storage_bytes || !out->tensors)
        return out_of_memory(r);
    group = first_group(r);
    for (size_t i = 0; i < out->groups_of_engine && !status; i++, group = group ? group->next : NULL)
        status = make_caches(r, group, (uint64_t)page_bytes);
    return status;
}

/* ---- the request ---- */

static int read_table(const struct reader *r, const struct moon_json *list, int64_t block_tokens,
                      struct moon_block_table *out) {
    size_t count = list ? list->count : (size_t)moon_ceil_divide(r->out->num_tokens, block_tokens);
    if (!list && (int64_t)count >= r->out->num_blocks)
        return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, r->given,
                              "num_gpu_blocks: a prompt of %zu blocks does not fit into %" PRId64, count,
                              r->out->num_blocks);
    int64_t *blocks = moon_arena_array(r->arena, count, sizeof *blocks);
    if (!blocks)
        return out_of_memory(r);
    for (size_t i = 0; !list && i < count; i++)
        blocks[i] = (int64_t)i + 1;
    for (const struct moon_json *each = list ? list->first : NULL; each; each = each->next) {
        if (each->type != MOON_JSON_INTEGER || !each->fits || each->integer < 0 || each->integer >= r->out->num_blocks)
            return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, each, "no block of the %" PRId64 " there are",
                                  r->out->num_blocks);
        blocks[each->index] = each->integer;
    }
    *out = (struct moon_block_table){blocks, count};
    return 0;
}

static int read_tables(const struct reader *r) {
    struct moon_load_case *out = r->out;
    const struct moon_layout_model *model = &out->connector.engine.model;
    struct moon_json *lists = NULL;
    int status = moon_json_get(r->source, r->given, "block_ids", false, MOON_JSON_ARRAY, &lists, r->error);
    if (status)
        return status;
    if (lists && lists->count != out->groups_of_engine)
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, lists, "%zu block tables for %zu groups",
                              lists->count, out->groups_of_engine);
    out->tables = moon_arena_array(r->arena, model->group_count, sizeof *out->tables);
    if (!out->tables)
        return out_of_memory(r);
    const struct moon_json *group = first_group(r), *list = lists ? lists->first : NULL;
    size_t kept = 0;
    for (size_t i = 0; i < out->groups_of_engine && !status; i++) {
        if (list && list->type != MOON_JSON_ARRAY)
            return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, list, "a block table is a list");
        if (is_stored(r, group)) {
            status = read_table(r, list, model->groups[kept].block_tokens, &out->tables[kept]);
            kept++;
        }
        group = group ? group->next : NULL;
        list = list ? list->next : NULL;
    }
    return status;
}

/* What the store has: the hash texts of the first hashes. */
static int read_stored(const struct reader *r) {
    struct moon_load_case *out = r->out;
    const struct moon_hashes *hashes = &out->hashes;
    int64_t hit = out->num_tokens;
    int status = moon_json_get_int(r->source, r->given, "hit_tokens_in_store", false, 0, NUMBER_MAX, &hit, r->error);
    struct moon_text hex;
    moon_text_open(&hex, r->arena->memory);
    for (size_t i = 0; i < hashes->count && (int64_t)i < hit / out->connector.engine.model.hash_block_tokens; i++) {
        moon_text_clear(&hex);
        moon_text_hex(&hex, hashes->bytes + i * hashes->hash_bytes, hashes->hash_bytes);
        if (!status && (hex.failed || moon_key_set_put(&out->stored, (struct moon_key_text){hex.data, hex.length}, 1)))
            status = out_of_memory(r);
    }
    moon_text_close(&hex);
    return status;
}

static int read_hashes(const struct reader *r) {
    struct moon_load_case *out = r->out;
    int64_t needed = out->num_tokens / out->connector.engine.model.hash_block_tokens;
    int status = moon_hashes_read(r->arena, r->source, r->given, false, &out->hashes, r->error);
    if (!status && !out->hashes.bytes && needed > HASHES_MADE_MAX)
        status = moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, member(r, "num_tokens"),
                                "more than %d hashes are not made up", HASHES_MADE_MAX);
    if (!status && !out->hashes.bytes && moon_hashes_number(r->arena, needed, &out->hashes, r->error))
        status = out_of_memory(r);
    if (status)
        return status;
    if (needed > (int64_t)out->hashes.count)
        return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, member(r, "block_hashes"),
                              "a prompt of %" PRId64 " tokens has %" PRId64 " hashes", out->num_tokens, needed);
    out->hashes.count = (size_t)needed;
    return 0;
}

static int read_request(const struct reader *r) {
    struct moon_load_case *out = r->out;
    out->num_tokens = out->connector.engine.model.scheduler_block_tokens + 1;
    int status = moon_json_get_int(r->source, r->given, "num_tokens", false, 1, MOON_CONNECTOR_TOKENS_MAX,
                                   &out->num_tokens, r->error);
    if (!status)
        status = moon_json_get_int(r->source, r->given, "num_computed_tokens", false, 0, out->num_tokens,
                                   &out->computed_tokens, r->error);
    if (!status)
        status = read_hashes(r);
    if (!status)
        status = read_stored(r);
    return status ? status : read_tables(r);
}

/* ---- the store and its configuration ---- */

static int raise(const struct reader *r, int status, const struct moon_exception *raised) {
    return status == MOON_ERR_REFUSED ? moon_refuse(r->error, raised->type, "%s", raised->message)
           : status                   ? out_of_memory(r)
                                      : 0;
}

static const char *variable(void *context, const char *name) {
    const struct moon_json *value = moon_json_member(context, name);
    return value ? value->bytes : NULL;
}

/* Staging memory by the environment of the case. A budget beyond 64 bits is as good as none. */
static int read_staging(const struct reader *r, const struct moon_environment *environment) {
    struct moon_exception raised = {0};
    struct moon_json *usable = NULL;
    r->out->staging.raw_bytes = MOON_DISK_STAGING_BYTES;
    int status = moon_disk_staging_usable(r->arena, environment, &usable, &raised);
    if (status)
        return raise(r, status, &raised);
    r->out->staging.usable_bytes = usable->fits ? (uint64_t)usable->integer : UINT64_MAX;
    return 0;
}

static int read_environment(const struct reader *r) {
    struct moon_json *env = NULL;
    int status = moon_json_get(r->source, r->given, "env", false, MOON_JSON_OBJECT, &env, r->error);
    for (const struct moon_json *one = env ? env->first : NULL; one && !status; one = one->next)
        if (one->type != MOON_JSON_STRING || memchr(one->bytes, '\0', one->length))
            status = moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, one, "a text without NUL is needed, not %s",
                                    moon_json_type_name(one));
    if (status)
        return status;
    r->out->tier_log = moon_tier_log_on(variable(env, "VLLM_MOONCAKE_STORE_TIER_LOG"));
    return r->out->offload ? read_staging(r, &(struct moon_environment){variable, env}) : 0;
}

static int read_store(const struct reader *r) {
    struct moon_load_case *out = r->out;
    struct moon_json *document = NULL;
    struct moon_store_config config = {0};
    struct moon_exception raised = {0};
    int status = moon_json_get(r->source, r->given, "store_config", false, MOON_JSON_OBJECT, &document, r->error);
    if (!status && document)
        status = raise(r, moon_store_config_load(r->arena, r->profile, document, &config, &raised), &raised);
    out->offload = !status && config.enable_offload && config.enable_offload->boolean;
    if (!status)
        status = read_environment(r);
    if (!status)
        status = moon_key_set_read_numbers(&out->results, r->source, r->given, "get_results", r->error);
    const struct moon_json *raises = member(r, "get_raises_on_call");
    out->raises_on_call = -1;
    if (!status && raises && raises->type != MOON_JSON_NULL)
        status = moon_json_get_int(r->source, r->given, "get_raises_on_call", true, 0, NUMBER_MAX, &out->raises_on_call,
                                   r->error);
    return status;
}

int moon_load_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_load_case *out, struct moon_error *error) {
    static const char *const names[] = {
        MOON_CONNECTOR_MEMBERS, "page_bytes", "num_tokens",   "hit_tokens_in_store", "num_computed_tokens",
        "store_config",         "env",        "block_hashes", "block_ids",           "get_results",
        "get_raises_on_call",   NULL};
    struct moon_key_set layers;
    const struct reader r = {arena, profile, source, given, out, &layers, error};
    *out = (struct moon_load_case){0};
    moon_key_set_open(&layers, arena);
    moon_key_set_open(&out->stored, arena);
    moon_key_set_open(&out->results, arena);
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = moon_connector_case_read(arena, profile, source, given, &out->connector, error);
    if (status)
        return status;
    const struct moon_json *groups = moon_json_member(given, "groups");
    out->groups_of_engine = groups ? groups->count : 1;
    if (moon_world_size(&out->connector.engine.model) > MOON_LOAD_RANKS_MAX)
        return moon_json_fail(error, MOON_ERR_LIMIT, source, moon_json_member(given, "topology"), "more than %d ranks",
                              MOON_LOAD_RANKS_MAX);
    status = read_caches(&r);
    if (!status)
        status = read_request(&r);
    return status ? status : read_store(&r);
}
