/* SPDX-License-Identifier: Apache-2.0 */
/* Suite segments: the buffers that a rank registers and lists for chunks and for single blocks. */
#include "conformance/suites/refusal.h"
#include "conformance/suites/segments_case.h"

#include <inttypes.h>

enum { BUFFERS_MAX = 1 << 22 }; /* of one answer: more than that is a mistake in the case */

/* Everything that one function of the suite passes to the next. */
struct call {
    struct moon_arena *arena;
    struct moon_segments_case one;
    struct moon_segments segments;
    struct moon_error *error;
};

static int out_of_memory(const struct call *call) {
    moon_fail(call->error, MOON_ERR_MEMORY, NULL, "no memory for the answer");
    return MOON_ERR_MEMORY;
}

/* ---- answer ---- */

static struct moon_json *buffer_json(struct moon_arena *arena, const struct moon_buffer *buffer) {
    struct moon_json *object = moon_json_object(arena);
    moon_json_set(arena, object, "tensor", moon_json_uint(arena, buffer->storage));
    moon_json_set(arena, object, "offset", moon_json_uint(arena, buffer->offset_bytes));
    moon_json_set(arena, object, "size", moon_json_uint(arena, buffer->size_bytes));
    return object;
}

static struct moon_json *buffers_json(struct moon_arena *arena, const struct moon_buffer *buffers, size_t count) {
    struct moon_json *array = moon_json_array(arena);
    for (size_t i = 0; i < count; i++)
        moon_json_push(array, buffer_json(arena, &buffers[i]));
    return array;
}

static void set_registered(const struct call *call, struct moon_json *answer) {
    struct moon_json *array = moon_json_set(call->arena, answer, "registered_buffers", moon_json_array(call->arena));
    for (size_t i = 0; i < call->segments.registered_count; i++) {
        size_t storage = call->segments.registered[i];
        struct moon_buffer whole = {storage, 0, call->one.storage_bytes[storage]};
        moon_json_push(array, buffer_json(call->arena, &whole));
    }
}

static const char *layout_class(const struct call *call) {
    if (!call->one.sharded)
        return "RankLocalStoreLayout";
    return call->one.shards.format == MOON_STORE_SHARDED_LBHNC ? "LBHNCStoreLayout" : "LBNHCStoreLayout";
}

/* Room for the buffers of `chunks` chunks. */
static int buffer_room(const struct call *call, size_t chunks, struct moon_buffer **room) {
    size_t count;
    if (__builtin_mul_overflow(chunks, call->segments.per_chunk, &count) || count > BUFFERS_MAX) {
        moon_fail(call->error, MOON_ERR_LIMIT, NULL, "the answer would list more than %d buffers", BUFFERS_MAX);
        return MOON_ERR_LIMIT;
    }
    *room = moon_arena_array(call->arena, count, sizeof **room);
    return *room ? MOON_OK : out_of_memory(call);
}

/* Lists one request. Returns as moon_segments_list; the arrays live in the arena. */
static int list(const struct call *call, const struct moon_segments_ask *ask, struct moon_buffer **buffers,
                uint64_t **blocks) {
    int status = buffer_room(call, ask->request.chunk_count, buffers);
    if (status)
        return status;
    *blocks = moon_arena_array(call->arena, ask->request.chunk_count, sizeof **blocks);
    if (!*blocks)
        return out_of_memory(call);
    return moon_segments_list(&call->segments, &ask->request, *buffers, *blocks, call->error);
}

static int push_result(const struct call *call, const struct moon_segments_ask *ask, struct moon_json *results) {
    struct moon_buffer *buffers = NULL;
    uint64_t *blocks = NULL;
    int status = list(call, ask, &buffers, &blocks);
    if (status == MOON_ERR_REFUSED) {
        moon_json_push(results, moon_refusal_answer(call->arena, call->error));
        return MOON_OK;
    }
    if (status)
        return status;
    struct moon_json *result = moon_json_push(results, moon_json_object(call->arena));
    struct moon_json *rows = moon_json_set(call->arena, result, "segments", moon_json_array(call->arena));
    struct moon_json *ids = moon_json_set(call->arena, result, "block_ids", moon_json_array(call->arena));
    for (size_t i = 0; i < ask->request.chunk_count; i++) {
        size_t first = i * call->segments.per_chunk;
        moon_json_push(rows, buffers_json(call->arena, &buffers[first], call->segments.per_chunk));
        moon_json_push(ids, moon_json_uint(call->arena, blocks[i]));
    }
    return MOON_OK;
}

static int set_single_blocks(const struct call *call, struct moon_json *answer) {
    if (!call->one.profile->single_block_segments || call->one.single_count == 0)
        return MOON_OK;
    struct moon_buffer *buffers = NULL;
    int status = buffer_room(call, 1, &buffers);
    if (status)
        return status;
    struct moon_json *rows = moon_json_set(call->arena, answer, "single_blocks", moon_json_array(call->arena));
    for (size_t i = 0; i < call->one.single_count; i++) {
        status = moon_segments_whole_block(&call->segments, call->one.single_blocks[i], buffers, call->error);
        if (status)
            return status;
        moon_json_push(rows, buffers_json(call->arena, buffers, call->segments.per_chunk));
    }
    return MOON_OK;
}

static int set_results(const struct call *call, struct moon_json *answer) {
    if (call->one.profile->store_namespace)
        moon_json_set(call->arena, answer, "layout", moon_json_string(call->arena, layout_class(call)));
    struct moon_json *results = moon_json_set(call->arena, answer, "results", moon_json_array(call->arena));
    for (size_t i = 0; i < call->one.ask_count; i++) {
        int status = push_result(call, &call->one.asks[i], results);
        if (status)
            return status;
    }
    return set_single_blocks(call, answer);
}

static int read_and_build(struct call *call, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given) {
    int status = moon_segments_case_read(call->arena, profile, source, given, &call->one, call->error);
    return status ? status : moon_segments_case_build(call->arena, &call->one, &call->segments, call->error);
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    (void)world;
    struct moon_error why = {0};
    struct call call = {.arena = arena, .error = &why};
    int status = read_and_build(&call, profile, source, given);
    *result = status == MOON_ERR_REFUSED ? moon_refusal_answer(arena, &why) : moon_json_object(arena);
    if (!status || status == MOON_ERR_REFUSED)
        set_registered(&call, *result);
    if (!status)
        status = set_results(&call, *result);
    else if (status == MOON_ERR_REFUSED)
        status = MOON_OK;
    if (!status && moon_json_broken(*result))
        status = out_of_memory(&call);
    if (status && error)
        *error = why;
    return status;
}

/* ---- explain ---- */

static const char *rule_text(const struct call *call) {
    if (call->one.sharded)
        return "0.30 on: the local heads of each shard (SEG-021 to SEG-023)";
    switch (call->one.profile->segment_rule) {
    case MOON_SEGMENTS_PER_LAYER:
        return "0.21: page and split of the first cache, applied to every layer (SEG-002)";
    case MOON_SEGMENTS_PER_STORAGE:
        return "0.22 to 0.28: pages of each storage, split where an axis lies outside the blocks (SEG-005)";
    case MOON_SEGMENTS_PER_REGION:
        break;
    }
    return "0.29 on: regions, each start taken once (SEG-008)";
}

static const char *size_text(const struct call *call) {
    if (call->one.sharded)
        return "chunks are exactly one block (SEG-024)";
    switch (call->one.profile->chunk_size_rule) {
    case MOON_CHUNK_SIZE_DIVIDED:
        return "0.21: size = block length // block size * tokens (SEG-014)";
    case MOON_CHUNK_SIZE_BLOCKS:
        return "0.22 to 0.26: whole multiples of the block (SEG-015)";
    case MOON_CHUNK_SIZE_ROUNDED:
        break;
    }
    return "0.27 on: multiples of the hash block, rounded up to whole blocks (SEG-016)";
}

static void explain_registration(const struct call *call, struct moon_text *out) {
    moon_text_format(out, "registered, each storage once and in full (SEG-001):\n");
    for (size_t i = 0; i < call->segments.registered_count; i++) {
        size_t storage = call->segments.registered[i];
        moon_text_format(out, "  storage %zu, %" PRIu64 " bytes\n", storage, call->one.storage_bytes[storage]);
    }
}

/* What a buffer of a TP-sharded object begins with; `in_layer_bytes` counts from the layer's first byte in the object.
 */
static void explain_cell(const struct call *call, size_t layer, uint64_t shard, uint64_t in_layer_bytes,
                         struct moon_text *out) {
    const struct moon_tensor *cache = &call->one.caches[layer];
    uint64_t content_bytes = cache->shape[3] * cache->item_bytes;
    struct moon_cell cell = moon_shards_cell(&call->one.shards, content_bytes, shard, in_layer_bytes);
    moon_text_format(out, " (%s from head %" PRIu64 ", token %" PRIu64 ")", call->one.names[layer], cell.head,
                     cell.token);
}

static void explain_chunk(const struct call *call, const struct moon_segment_request *request, size_t chunk,
                          uint64_t block, const struct moon_buffer *buffers, struct moon_text *out) {
    const struct moon_token_range *range = &request->chunks[chunk];
    uint64_t shard = call->one.sharded ? (uint64_t)request->shard_ids[chunk] : 0, object_bytes = 0, layer_bytes = 0;
    moon_text_format(out, "  tokens %" PRIu64 " to %" PRIu64 ": entry %" PRIu64 " of the block table is block %" PRIu64,
                     range->start_tokens, range->end_tokens, range->start_tokens / request->block_size_tokens, block);
    if (call->one.sharded)
        moon_text_format(out, ", store shard %" PRIu64, shard);
    moon_text_char(out, '\n');
    for (size_t k = 0; k < call->segments.per_chunk; k++) {
        size_t per_layer = call->one.sharded ? call->segments.per_chunk / call->one.cache_count : 1;
        if (k % per_layer == 0)
            layer_bytes = object_bytes;
        moon_text_format(out, "    object byte %" PRIu64 ": storage %zu, %" PRIu64 " + %" PRIu64, object_bytes,
                         buffers[k].storage, buffers[k].offset_bytes, buffers[k].size_bytes);
        if (call->one.sharded)
            explain_cell(call, k / per_layer, shard, object_bytes - layer_bytes, out);
        uint64_t over_bytes = moon_buffer_overrun_bytes(&call->segments, &buffers[k]);
        if (over_bytes)
            moon_text_format(out, " !! the last %" PRIu64 " bytes lie behind the storage's end (SEG-018, SEG-019)",
                             over_bytes);
        moon_text_char(out, '\n');
        object_bytes += buffers[k].size_bytes;
    }
}

static int explain_request(const struct call *call, size_t number, struct moon_text *out) {
    const struct moon_segments_ask *ask = &call->one.asks[number];
    struct moon_buffer *buffers = NULL;
    uint64_t *blocks = NULL;
    moon_text_format(out, "request %zu, group %" PRId64 ", %s:\n", number, ask->group, size_text(call));
    int status = list(call, ask, &buffers, &blocks);
    if (status == MOON_ERR_REFUSED) {
        moon_text_format(out, "  raises %s \"%s\"\n", call->error->type, call->error->message);
        return MOON_OK;
    }
    for (size_t i = 0; !status && i < ask->request.chunk_count; i++)
        explain_chunk(call, &ask->request, i, blocks[i], &buffers[i * call->segments.per_chunk], out);
    return status;
}

static int explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    (void)world;
    struct moon_error why = {0};
    struct call call = {.arena = arena, .error = &why};
    int status = read_and_build(&call, profile, source, given);
    if (!status || status == MOON_ERR_REFUSED)
        explain_registration(&call, out);
    if (status == MOON_ERR_REFUSED) {
        moon_text_format(out, "registration raises %s \"%s\"\n", why.type, why.message);
        return MOON_OK;
    }
    if (!status)
        moon_text_format(out, "segments a chunk: %zu; %s\n", call.segments.per_chunk, rule_text(&call));
    for (size_t i = 0; !status && i < call.one.ask_count; i++)
        status = explain_request(&call, i, out);
    if (status && error)
        *error = why;
    return status;
}

static const char *const optional[] = {NULL};

const struct moon_suite moon_suite_segments = {
    .name = "segments",
    .answer = answer,
    .explain = explain,
    .draw = moon_segments_draw,
    .optional = optional,
};
