/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a case of the suite segments from JSON: engine, storages, layers and requests. */
#include "conformance/suites/segments_case.h"

#include "conformance/suites/engine.h"
#include "ref/layout/ownership.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GROUP_LAYERS_MAX = 4096 };
#define NUMBER_MAX ((int64_t)MOON_TENSOR_NUMBER_MAX)

/* Everything that one function passes to the next. */
struct reader {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const char *source;
    const struct moon_json *given;
    struct moon_layout_model model;
    struct moon_segments_case *out;
    struct moon_error *error;
};

static int out_of_memory(const struct reader *r) {
    return moon_fail(r->error, MOON_ERR_MEMORY, NULL, "no memory to read the case");
}

static int get_number(const struct reader *r, const struct moon_json *object, const char *name, bool required,
                      int64_t min, int64_t max, uint64_t *out) {
    int64_t value = (int64_t)*out;
    int status = moon_json_get_int(r->source, object, name, required, min, max, &value, r->error);
    *out = (uint64_t)value;
    return status;
}

/* Reads an array of integers in min..max. Absent and not required: *out NULL and *count untouched. */
static int get_numbers(const struct reader *r, const struct moon_json *object, const char *name, bool required,
                       int64_t min, int64_t max, int64_t **out, size_t *count) {
    struct moon_json *array = NULL;
    *out = NULL;
    int status = moon_json_get(r->source, object, name, required, MOON_JSON_ARRAY, &array, r->error);
    if (status || !array)
        return status;
    *out = moon_arena_array(r->arena, array->count, sizeof **out);
    if (!*out)
        return out_of_memory(r);
    *count = 0;
    for (const struct moon_json *item = array->first; item; item = item->next) {
        if (item->type != MOON_JSON_INTEGER || !item->fits || item->integer < min || item->integer > max)
            return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, item, "an integer from %lld to %lld is needed",
                                  (long long)min, (long long)max);
        (*out)[(*count)++] = item->integer;
    }
    return MOON_OK;
}

static int get_array(const struct reader *r, const char *name, bool required, const struct moon_json **out,
                     size_t *count) {
    struct moon_json *array = NULL;
    int status = moon_json_get(r->source, r->given, name, required, MOON_JSON_ARRAY, &array, r->error);
    *out = array ? array->first : NULL;
    *count = array ? array->count : 0;
    return status;
}

/* ---- storages and layers ---- */

static int read_storages(struct reader *r) {
    static const char *const names[] = {"nbytes", NULL};
    const struct moon_json *item;
    struct moon_segments_case *out = r->out;
    int status = get_array(r, "storages", true, &item, &out->storage_count);
    if (status)
        return status;
    out->storage_bytes = moon_arena_array(r->arena, out->storage_count, sizeof *out->storage_bytes);
    if (!out->storage_bytes)
        return out_of_memory(r);
    for (size_t i = 0; item; i++, item = item->next) {
        status = moon_json_closed(r->source, item, names, r->error);
        if (!status)
            status = get_number(r, item, "nbytes", true, 1, NUMBER_MAX, &out->storage_bytes[i]);
        if (status)
            return status;
    }
    return MOON_OK;
}

static int read_shape(const struct reader *r, const struct moon_json *layer, struct moon_tensor *cache) {
    int64_t *shape, *strides;
    size_t dimensions = 0, stride_count = 0;
    int status = get_numbers(r, layer, "shape", true, 1, NUMBER_MAX, &shape, &dimensions);
    if (!status)
        status = get_numbers(r, layer, "strides", false, 0, NUMBER_MAX, &strides, &stride_count);
    if (status)
        return status;
    if (dimensions > MOON_TENSOR_DIMENSIONS_GIVEN_MAX || (strides && stride_count != dimensions))
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, layer,
                              "a cache has at most %d dimensions, and a stride for each",
                              MOON_TENSOR_DIMENSIONS_GIVEN_MAX);
    cache->dimensions = (unsigned)dimensions;
    uint64_t step = 1;
    for (size_t d = dimensions; d-- > 0;) {
        cache->shape[d] = (uint64_t)shape[d];
        cache->strides[d] = strides ? (uint64_t)strides[d] : step;
        if (__builtin_mul_overflow(step, cache->shape[d], &step))
            step = UINT64_MAX; /* no storage holds that: the check below says so */
    }
    return MOON_OK;
}

static int read_layer(const struct reader *r, const struct moon_json *layer, struct moon_tensor *cache,
                      const char **name) {
    static const char *const names[] = {"name", "storage", "byte_offset", "shape", "strides", "itemsize", NULL};
    uint64_t storage = 0;
    struct moon_error why;
    *cache = (struct moon_tensor){.item_bytes = 2}; /* bfloat16 */
    int status = moon_json_closed(r->source, layer, names, r->error);
    if (!status)
        status = moon_json_get_string(r->source, layer, "name", true, name, NULL, r->error);
    if (!status)
        status = get_number(r, layer, "storage", true, 0, (int64_t)r->out->storage_count - 1, &storage);
    if (!status)
        status = get_number(r, layer, "byte_offset", false, 0, NUMBER_MAX, &cache->offset_bytes);
    if (!status)
        status = get_number(r, layer, "itemsize", false, 1, NUMBER_MAX, &cache->item_bytes);
    if (!status)
        status = read_shape(r, layer, cache);
    if (status)
        return status;
    cache->storage = (size_t)storage;
    if (moon_tensor_check(cache, r->out->storage_bytes[storage], &why))
        return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, layer, "%s", why.message);
    return MOON_OK;
}

/* ---- which layers are stored (SEG-011) ---- */

/* Sets *found if the group has a layer of that name. Names that are left out are g<group>.l<number>, in a uniform group
 * u<number>. */
static int find_in_group(const struct reader *r, const struct moon_json *group, const char *layer, bool *found) {
    bool uniform = moon_json_is_string(moon_json_member(group, "kind"), "uniform");
    struct moon_json *names = NULL;
    int64_t count = 1;
    int status = moon_json_get(r->source, group, "layer_names", false, MOON_JSON_ARRAY, &names, r->error);
    if (!status)
        status = moon_json_get_int(r->source, group, "num_layers", false, 1, GROUP_LAYERS_MAX, &count, r->error);
    if (status)
        return status;
    if (names && names->count && !uniform) {
        for (const struct moon_json *name = names->first; name; name = name->next)
            *found |= moon_json_is_string(name, layer);
        return MOON_OK;
    }
    if (uniform)
        count = (int64_t)moon_json_member(group, "inner")->count;
    for (int64_t n = 0; n < count && !*found; n++) {
        char name[64];
        if (uniform)
            snprintf(name, sizeof name, "u%" PRId64, n);
        else
            snprintf(name, sizeof name, "g%zu.l%" PRId64, group->index, n);
        *found = strcmp(name, layer) == 0;
    }
    return MOON_OK;
}

static bool group_flag(const struct moon_json *group, const char *name) {
    const struct moon_json *flag = moon_json_member(group, name);
    return !flag || flag->boolean;
}

static int is_stored(const struct reader *r, const char *layer, bool *stored) {
    const struct moon_json *groups = moon_json_member(r->given, "groups");
    *stored = !r->profile->store_namespace || !groups;
    for (const struct moon_json *group = groups ? groups->first : NULL; group && !*stored; group = group->next) {
        int status = MOON_OK;
        if (group_flag(group, "transferable") && group_flag(group, "prefix_cacheable"))
            status = find_in_group(r, group, layer, stored);
        if (status)
            return status;
    }
    return MOON_OK;
}

static int read_layers(struct reader *r) {
    const struct moon_json *layer;
    struct moon_segments_case *out = r->out;
    size_t count;
    int status = get_array(r, "layers", true, &layer, &count);
    if (status)
        return status;
    out->caches = moon_arena_array(r->arena, count, sizeof *out->caches);
    out->names = moon_arena_array(r->arena, count, sizeof *out->names);
    if (!out->caches || !out->names)
        return out_of_memory(r);
    for (; layer; layer = layer->next) {
        status = read_layer(r, layer, &out->caches[out->cache_count], &out->names[out->cache_count]);
        if (status)
            return status;
        bool stored;
        status = is_stored(r, out->names[out->cache_count], &stored);
        if (status)
            return status;
        out->cache_count += stored;
    }
    return MOON_OK;
}

/* ---- requests ---- */

static int read_chunks(const struct reader *r, const struct moon_json *object, struct moon_segment_request *request) {
    struct moon_json *array = NULL;
    int status = moon_json_get(r->source, object, "chunks", true, MOON_JSON_ARRAY, &array, r->error);
    if (status)
        return status;
    struct moon_token_range *chunks = moon_arena_array(r->arena, array->count, sizeof *chunks);
    if (!chunks)
        return out_of_memory(r);
    for (const struct moon_json *pair = array->first; pair; pair = pair->next) {
        const struct moon_json *start = moon_json_at(pair, 0), *end = moon_json_at(pair, 1);
        if (!moon_json_is(pair, MOON_JSON_ARRAY) || pair->count != 2 || !moon_json_is(start, MOON_JSON_INTEGER) ||
            !moon_json_is(end, MOON_JSON_INTEGER) || !end->fits || end->integer > NUMBER_MAX || !start->fits ||
            start->integer < 0 || start->integer > end->integer)
            return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, pair,
                                  "a chunk is [start, end] in tokens, 0 <= start <= end <= 2^53");
        chunks[request->chunk_count++] = (struct moon_token_range){(uint64_t)start->integer, (uint64_t)end->integer};
    }
    request->chunks = chunks;
    return MOON_OK;
}

/* The natural shard of each chunk: the rank's first. */
static int default_shards(const struct reader *r, struct moon_segment_request *request) {
    int64_t *shards = moon_arena_array(r->arena, request->chunk_count, sizeof *shards);
    if (!shards)
        return out_of_memory(r);
    for (size_t i = 0; r->out->sharded && i < request->chunk_count; i++)
        shards[i] = (int64_t)moon_shards_first(&r->out->shards);
    request->shard_ids = shards;
    request->shard_count = request->chunk_count;
    return MOON_OK;
}

static int read_request(const struct reader *r, const struct moon_json *object, struct moon_segments_ask *ask) {
    static const char *const names[] = {"group", "chunks", "block_ids", "shard_ids", NULL};
    struct moon_segment_request *request = &ask->request;
    int64_t *blocks, *shards;
    int status = moon_json_closed(r->source, object, names, r->error);
    if (!status)
        status = moon_json_get_int(r->source, object, "group", false, 0, (int64_t)r->model.group_count - 1, &ask->group,
                                   r->error);
    if (!status)
        status = read_chunks(r, object, request);
    if (!status)
        status = get_numbers(r, object, "block_ids", true, 0, NUMBER_MAX, &blocks, &request->block_count);
    if (!status)
        status = get_numbers(r, object, "shard_ids", false, INT64_MIN, INT64_MAX, &shards, &request->shard_count);
    if (status)
        return status;
    request->block_ids = (const uint64_t *)blocks; /* none is negative */
    request->shard_ids = shards;
    request->block_size_tokens = (uint64_t)r->model.groups[ask->group].block_tokens;
    request->hash_block_size_tokens = (uint64_t)r->model.hash_block_tokens;
    return shards ? MOON_OK : default_shards(r, request);
}

static int read_requests(struct reader *r) {
    const struct moon_json *object;
    struct moon_segments_case *out = r->out;
    int status = get_array(r, "requests", false, &object, &out->ask_count);
    if (status)
        return status;
    out->asks = moon_arena_array(r->arena, out->ask_count, sizeof *out->asks);
    if (!out->asks)
        return out_of_memory(r);
    for (size_t i = 0; object; i++, object = object->next) {
        status = read_request(r, object, &out->asks[i]);
        if (status)
            return status;
    }
    return MOON_OK;
}

static int read_single_blocks(struct reader *r) {
    int64_t *blocks;
    int status = get_numbers(r, r->given, "single_blocks", false, 0, NUMBER_MAX, &blocks, &r->out->single_count);
    if (!status && r->out->sharded && r->out->single_count)
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, moon_json_member(r->given, "single_blocks"),
                              "a TP-sharded layout lists no single blocks");
    r->out->single_blocks = (uint64_t *)blocks; /* none is negative */
    return status;
}

/* ---- the engine around it ---- */

static void select_layout(struct reader *r) {
    struct moon_segments_case *out = r->out;
    const struct moon_layout_model *model = &r->model;
    moon_store_select(r->profile, model, &out->selection);
    out->sharded = moon_store_sharded(&out->selection);
    out->block_size_tokens = (uint64_t)model->groups[0].block_tokens;
    out->shards = (struct moon_shards){.format = out->selection.space.format,
                                       .total_heads = (uint64_t)model->total_kv_heads,
                                       .store_tp = (uint64_t)out->selection.store_tp.size,
                                       .local_tp = (uint64_t)model->tp,
                                       .tp_rank = (uint64_t)moon_rank_at(model, out->rank).tp,
                                       .block_size_tokens = out->block_size_tokens};
}

int moon_segments_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                            const struct moon_json *given, struct moon_segments_case *out, struct moon_error *error) {
    static const char *const names[] = {MOON_ENGINE_MEMBERS, "rank",          "storages", "layers",
                                        "requests",          "single_blocks", NULL};
    *out = (struct moon_segments_case){.profile = profile};
    struct reader r = {
        .arena = arena, .profile = profile, .source = source, .given = given, .out = out, .error = error};
    struct moon_engine engine;
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = moon_engine_read(arena, profile, source, given, &engine, error);
    if (status)
        return status;
    r.model = engine.model;
    out->num_blocks = 64;
    status = get_number(&r, given, "num_gpu_blocks", false, 1, NUMBER_MAX, &out->num_blocks);
    if (!status)
        status = moon_json_get_int(source, given, "rank", false, 0, moon_world_size(&r.model) - 1, &out->rank, error);
    if (status)
        return status;
    select_layout(&r);
    status = read_storages(&r);
    if (!status)
        status = read_layers(&r);
    if (!status)
        status = read_requests(&r);
    return status ? status : read_single_blocks(&r);
}

int moon_segments_case_build(struct moon_arena *arena, const struct moon_segments_case *one,
                             struct moon_segments *segments, struct moon_error *error) {
    struct moon_rank_caches rank = {.profile = one->profile,
                                    .storage_bytes = one->storage_bytes,
                                    .storage_count = one->storage_count,
                                    .caches = one->caches,
                                    .cache_count = one->cache_count,
                                    .num_blocks = one->num_blocks,
                                    .block_size_tokens = one->block_size_tokens};
    return moon_segments_build(arena, &rank, one->sharded ? &one->shards : NULL, segments, error);
}
