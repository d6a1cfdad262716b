/* SPDX-License-Identifier: Apache-2.0 */
/* Suite keys: one key, the keys of a prompt's chunks, and lifecycle group ids. */
#include "conformance/suites/keys.h"

#include "conformance/suites/hashes.h"
#include "conformance/suites/refusal.h"
#include "ref/key/chunks.h"
#include "ref/key/explain.h"

#include <inttypes.h>
#include <string.h>

#define NUMBER_MAX (INT64_C(1) << 53) /* integers up to here are exact for every JSON reader */

/* Everything that one function of the suite passes to the next. */
struct call {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const char *source;
    const struct moon_json *given;
    struct moon_error *error;
};

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
}

static int get_number(const struct call *call, const struct moon_json *object, const char *name, int64_t min,
                      int64_t *out) {
    return moon_json_get_int(call->source, object, name, false, min, NUMBER_MAX, out, call->error);
}

static int get_text(const struct call *call, const struct moon_json *object, const char *name,
                    struct moon_key_text *out) {
    return moon_json_get_string(call->source, object, name, false, &out->bytes, &out->length, call->error);
}

/* Reads the members T, P, Q, R of `object` that are there. */
static int read_ranks(const struct call *call, const struct moon_json *object, struct moon_pool_key *key) {
    int status = get_number(call, object, "tp_rank", 0, &key->tp_rank);
    if (!status)
        status = get_number(call, object, "pcp_rank", 0, &key->pcp_rank);
    if (!status)
        status = get_number(call, object, "dcp_rank", 0, &key->dcp_rank);
    return status ? status : get_number(call, object, "pp_rank", 0, &key->pp_rank);
}

/* Reads "metadata", whose members are the fields of the release's KeyMetadata. */
static int read_metadata(const struct call *call, struct moon_pool_key *key) {
    const char *names[9] = {"model_name", "tp_rank", "pcp_rank", "dcp_rank", "pp_rank"};
    size_t count = 5;
    if (call->profile->group_numbering != MOON_GROUP_NONE)
        names[count++] = "group_id";
    if (call->profile->cache_prefix)
        names[count++] = "cache_prefix";
    if (call->profile->store_namespace)
        names[count++] = "store_namespace";
    *key = (struct moon_pool_key){.model_name = moon_key_text("model")};
    struct moon_json *metadata = NULL;
    int status = moon_json_get(call->source, call->given, "metadata", false, MOON_JSON_OBJECT, &metadata, call->error);
    if (status || !metadata)
        return status;
    status = moon_json_closed(call->source, metadata, names, call->error);
    if (!status)
        status = get_text(call, metadata, "model_name", &key->model_name);
    if (!status)
        status = get_text(call, metadata, "cache_prefix", &key->cache_prefix);
    if (!status)
        status = get_text(call, metadata, "store_namespace", &key->store_namespace);
    if (!status)
        status = get_number(call, metadata, "group_id", 0, &key->group_id);
    return status ? status : read_ranks(call, metadata, key);
}

static int read_hash(const struct call *call, struct moon_key_text *hash) {
    return moon_json_get_string(call->source, call->given, "chunk_hash", true, &hash->bytes, &hash->length,
                                call->error);
}

/* Sets a text that `written` has collected, and empties it. */
static void set_text(const struct call *call, struct moon_json *answer, const char *name, struct moon_text *written) {
    moon_json_set(call->arena, answer, name,
                  written->failed ? NULL : moon_json_bytes(call->arena, moon_text_value(written), written->length));
    moon_text_clear(written);
}

/* ---- pool_key, mooncake_group_id ---- */

struct one_key {
    struct moon_pool_key key, overridden;
    struct moon_key_text hash;
};

static int read_pool_key(const struct call *call, struct one_key *one) {
    static const char *const old_names[] = {"op", "metadata", "chunk_hash", NULL};
    static const char *const names[] = {"op", "metadata", "chunk_hash", "override_ranks", NULL};
    static const char *const ranks[] = {"tp_rank", "pcp_rank", "dcp_rank", "pp_rank", NULL};
    struct moon_json *override = NULL;
    int status =
        moon_json_closed(call->source, call->given, call->profile->prefix_overrides ? names : old_names, call->error);
    if (!status)
        status = read_metadata(call, &one->key);
    if (!status)
        status = read_hash(call, &one->hash);
    if (!status)
        status =
            moon_json_get(call->source, call->given, "override_ranks", false, MOON_JSON_OBJECT, &override, call->error);
    one->overridden = one->key;
    if (status || !override)
        return status;
    status = moon_json_closed(call->source, override, ranks, call->error);
    return status ? status : read_ranks(call, override, &one->overridden);
}

static int answer_pool_key(const struct call *call, struct moon_text *text, struct moon_json *answer) {
    struct one_key one = {0};
    int status = read_pool_key(call, &one);
    if (status)
        return status;
    moon_key_build(call->profile, &one.key, one.hash, text);
    set_text(call, answer, "key", text);
    if (call->profile->prefix_overrides) {
        moon_key_prefix(call->profile, &one.overridden, text);
        set_text(call, answer, "prefix", text);
    }
    return 0;
}

static int explain_pool_key(const struct call *call, struct moon_text *out) {
    struct one_key one = {0};
    int status = read_pool_key(call, &one);
    if (!status)
        moon_key_explain(call->profile, &one.key, one.hash, out);
    return status;
}

static int read_group_id(const struct call *call, struct one_key *one) {
    static const char *const names[] = {"op", "metadata", "chunk_hash", NULL};
    if (!call->profile->mooncake_group_id)
        return moon_json_fail(call->error, MOON_ERR_UNSUPPORTED, call->source, call->given,
                              "%s has no lifecycle groups, they came with 0.28", call->profile->name);
    int status = moon_json_closed(call->source, call->given, names, call->error);
    if (!status)
        status = read_metadata(call, &one->key);
    return status ? status : read_hash(call, &one->hash);
}

static int answer_group_id(const struct call *call, struct moon_text *text, struct moon_json *answer) {
    struct one_key one = {0};
    int status = read_group_id(call, &one);
    if (status)
        return status;
    moon_key_lifecycle_group(call->profile, &one.key, one.hash, text);
    set_text(call, answer, "group_id", text);
    return 0;
}

static int explain_group_id(const struct call *call, struct moon_text *out) {
    struct one_key one = {0};
    int status = read_group_id(call, &one);
    if (status)
        return status;
    moon_key_lifecycle_group(call->profile, &one.key, one.hash, out);
    moon_text_string(out, "\n  deployment and hash without rank and group: a unit of lifetime, not a key (KEY-013)\n");
    return 0;
}

/* ---- chunk_keys ---- */

struct prompt {
    struct moon_pool_key key;
    struct moon_chunk_query query;
    struct moon_hashes hashes;
};

/* Reads "chunk_mask": null, or booleans. */
static int read_mask(const struct call *call, struct moon_chunk_query *query) {
    const struct moon_json *list = moon_json_member(call->given, "chunk_mask");
    if (!list || list->type == MOON_JSON_NULL)
        return 0;
    if (list->type != MOON_JSON_ARRAY)
        return moon_json_fail(call->error, MOON_ERR_SCHEMA, call->source, list,
                              "chunk_mask is null or a list of booleans");
    bool *mask = moon_arena_array(call->arena, list->count, sizeof *mask);
    if (!mask)
        return out_of_memory(call->error);
    query->mask = mask;
    query->mask_count = (int64_t)list->count;
    for (const struct moon_json *each = list->first; each; each = each->next) {
        if (each->type != MOON_JSON_BOOL)
            return moon_json_fail(call->error, MOON_ERR_SCHEMA, call->source, each, "chunk_mask holds booleans");
        mask[each->index] = each->boolean;
    }
    return 0;
}

static int read_prompt(const struct call *call, struct prompt *prompt) {
    static const char *const names[] = {"op",        "metadata",      "block_size", "hash_block_size",
                                        "token_len", "block_hashes",  "mask_num",   "chunk_mask",
                                        "put_step",  "put_step_rank", NULL};
    static const char *const old_names[] = {"op",        "metadata",     "block_size", "hash_block_size",
                                            "token_len", "block_hashes", "mask_num",   NULL};
    struct moon_chunk_query *query = &prompt->query;
    *query = (struct moon_chunk_query){.block_size = 16, .put_step = 1};
    int status =
        moon_json_closed(call->source, call->given, call->profile->chunk_mask ? names : old_names, call->error);
    if (!status)
        status = read_metadata(call, &prompt->key);
    if (!status)
        status = moon_hashes_read(call->arena, call->source, call->given, true, &prompt->hashes, call->error);
    if (!status)
        status = get_number(call, call->given, "block_size", 1, &query->block_size);
    query->hash_block_size = query->block_size;
    query->hash_count = (int64_t)prompt->hashes.count;
    if (!status)
        status = get_number(call, call->given, "hash_block_size", 1, &query->hash_block_size);
    if (!status && __builtin_mul_overflow(query->hash_block_size, query->hash_count, &query->token_len))
        status = moon_json_fail(call->error, MOON_ERR_RANGE, call->source, call->given, "token_len is out of range");
    if (!status)
        status = get_number(call, call->given, "token_len", 0, &query->token_len);
    if (!status)
        status = get_number(call, call->given, "mask_num", 0, &query->mask_num);
    if (!status)
        status = get_number(call, call->given, "put_step", 1, &query->put_step);
    if (!status)
        status = get_number(call, call->given, "put_step_rank", 0, &query->put_step_rank);
    return status ? status : read_mask(call, query);
}

/* Reads the case and begins the walk through its chunks. */
static int open_prompt(const struct call *call, struct prompt *prompt, struct moon_chunk_walk *walk) {
    *prompt = (struct prompt){0};
    int status = read_prompt(call, prompt);
    return status ? status : moon_chunk_walk_open(walk, call->profile, &prompt->query, call->error);
}

static int answer_chunk_keys(const struct call *call, struct moon_text *text, struct moon_json *answer) {
    struct prompt prompt;
    struct moon_chunk_walk walk;
    struct moon_chunk chunk;
    int status = open_prompt(call, &prompt, &walk);
    if (status)
        return status;
    struct moon_json *chunks = moon_json_set(call->arena, answer, "chunks", moon_json_array(call->arena));
    while (moon_chunk_walk_next(&walk, &chunk) && !text->failed) {
        moon_text_clear(text);
        moon_chunk_key(call->profile, &prompt.key, &prompt.hashes, &chunk, text);
        struct moon_json *row = moon_json_push(chunks, moon_json_array(call->arena));
        moon_json_push(row, moon_json_int(call->arena, chunk.start_tokens));
        moon_json_push(row, moon_json_int(call->arena, chunk.end_tokens));
        moon_json_push(row, text->failed ? NULL : moon_json_bytes(call->arena, text->data, text->length));
    }
    return 0;
}

/* Rule that names the key of a chunk. */
static const char *chunk_rule(const struct call *call, const struct moon_chunk_query *query,
                              const struct moon_chunk *chunk) {
    if (chunk->end_tokens - chunk->start_tokens < query->block_size)
        return call->profile->chunk_end_hash ? "cut short: hash at its own end (KEY-017)"
                                             : "cut short, keyed as the whole chunk (KEY-018)";
    return chunk->hash_count > 1 ? "its hashes joined (KEY-016)" : "hash at its end (KEY-015)";
}

static int explain_chunk_keys(const struct call *call, struct moon_text *out) {
    struct prompt prompt;
    struct moon_chunk_walk walk;
    struct moon_chunk chunk;
    int status = open_prompt(call, &prompt, &walk);
    if (status)
        return status;
    moon_text_format(out, "chunks of %" PRId64 " tokens from chunk %" PRId64 " on (KEY-014)\n", prompt.query.block_size,
                     walk.first);
    while (moon_chunk_walk_next(&walk, &chunk)) {
        moon_text_format(out, "chunk %" PRId64 ", tokens %" PRId64 " to %" PRId64 ": %s\n  ", chunk.id,
                         chunk.start_tokens, chunk.end_tokens, chunk_rule(call, &prompt.query, &chunk));
        moon_chunk_key(call->profile, &prompt.key, &prompt.hashes, &chunk, out);
        moon_text_char(out, '\n');
    }
    return 0;
}

/* ---- the suite ---- */

static const struct operation {
    const char *name;
    int (*answer)(const struct call *call, struct moon_text *text, struct moon_json *answer);
    int (*explain)(const struct call *call, struct moon_text *out);
} operations[] = {
    {"pool_key", answer_pool_key, explain_pool_key},
    {"chunk_keys", answer_chunk_keys, explain_chunk_keys},
    {"mooncake_group_id", answer_group_id, explain_group_id},
};

static int find_operation(const struct call *call, const struct operation **out) {
    const char *op = "pool_key";
    int status = moon_json_get_string(call->source, call->given, "op", false, &op, NULL, call->error);
    for (size_t i = 0; !status && i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(op, operations[i].name) == 0) {
            *out = &operations[i];
            return 0;
        }
    return status ? status
                  : moon_json_fail(call->error, MOON_ERR_SCHEMA, call->source, moon_json_member(call->given, "op"),
                                   "\"%.64s\" is none of pool_key, chunk_keys, mooncake_group_id", op);
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    (void)world; /* keys depend on nothing outside the case */
    struct moon_error failure;
    struct call call = {arena, profile, source, given, &failure};
    const struct operation *operation = operations;
    struct moon_json *built = moon_json_object(arena);
    struct moon_text text;
    moon_text_open(&text, arena->memory);
    int status = find_operation(&call, &operation);
    if (!status)
        status = operation->answer(&call, &text, built);
    moon_text_close(&text);
    return moon_suite_end(arena, status, built, &failure, result, error);
}

static int explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    (void)world; /* as in answer */
    struct moon_error failure;
    struct call call = {arena, profile, source, given, &failure};
    const struct operation *operation = operations;
    int status = find_operation(&call, &operation);
    if (!status)
        status = operation->explain(&call, out);
    if (status == MOON_ERR_REFUSED) {
        moon_text_format(out, "%s raises %s %s\n", profile->name, failure.type, failure.message);
        status = 0;
    }
    if (!status && out->failed)
        status = out_of_memory(&failure);
    if (status && error)
        *error = failure;
    return status;
}

const struct moon_suite moon_suite_keys = {"keys", answer, explain, moon_keys_draw, NULL};
