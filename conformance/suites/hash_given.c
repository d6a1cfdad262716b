/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a case of the suite hash: every member checked, with its place in the error. */
#include "conformance/suites/hash.h"

#include "ref/base/bytes.h"
#include "ref/base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define POSITION_MAX (INT64_C(1) << 53) /* of a multimodal item, in tokens */
enum { EMBEDS_HIDDEN_MAX = 1 << 24 };

/* What every reader of a member needs. */
struct reading {
    const struct moon_suite_world *world;
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const char *source;
    const struct moon_json *given;
    struct moon_error *error;
};

static int no_memory(const struct reading *reading) {
    return moon_fail(reading->error, MOON_ERR_MEMORY, NULL, "no memory for the case");
}

/* A member that may be absent or null: then NULL. */
static struct moon_json *present(const struct moon_json *object, const char *name) {
    struct moon_json *member = moon_json_member(object, name);
    return moon_json_is(member, MOON_JSON_NULL) ? NULL : member;
}

static int require_type(const struct reading *reading, const struct moon_json *value, enum moon_json_type type,
                        const char *wanted) {
    if (moon_json_is(value, type))
        return 0;
    return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, value, "must be %s, not %s", wanted,
                          moon_json_type_name(value));
}

/* JSON text is always UTF-8 (surrogates included); what comes from a command line or the environment may not be. */
static bool is_utf8(const char *bytes, size_t length) {
    size_t used = 1;
    for (size_t at = 0; at < length && used > 0; at += used) {
        uint32_t code_point;
        used = moon_utf8_decode(bytes + at, length - at, &code_point);
    }
    return used > 0;
}

static int require_utf8(const struct reading *reading, const struct moon_json *value,
                        const struct moon_string *string) {
    if (is_utf8(string->bytes, string->length))
        return 0;
    return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, value, "is not UTF-8");
}

/* A string member as an object of its own, or NULL where it is absent or null. */
static int read_string(const struct reading *reading, const struct moon_json *object, const char *name,
                       struct moon_string **out) {
    const struct moon_json *value = present(object, name);
    *out = NULL;
    if (!value)
        return 0;
    int status = require_type(reading, value, MOON_JSON_STRING, "a string or null");
    if (status)
        return status;
    struct moon_string *string = moon_arena_alloc(reading->arena, sizeof *string);
    if (!string)
        return no_memory(reading);
    *string = (struct moon_string){.bytes = value->bytes, .length = value->length};
    *out = string;
    return require_utf8(reading, value, string);
}

/* ---- algorithm, seed, sizes ---- */

static int read_seed(const struct reading *reading, struct moon_hash_case *out) {
    struct moon_string *seed = NULL;
    if (moon_json_member(reading->given, "python_hash_seed")) {
        int status = read_string(reading, reading->given, "python_hash_seed", &seed);
        out->seed = seed;
        return status;
    }
    const char *value = reading->world->environment(reading->world->context, "PYTHONHASHSEED");
    out->seed_from_environment = true;
    if (!value)
        return 0;
    if (!is_utf8(value, strlen(value)))
        return moon_fail(reading->error, MOON_ERR_RANGE, "PYTHONHASHSEED", "is not UTF-8; no engine starts with it");
    seed = moon_arena_alloc(reading->arena, sizeof *seed);
    if (!seed)
        return no_memory(reading);
    *seed = (struct moon_string){.bytes = value, .length = strlen(value)};
    out->seed = seed;
    return 0;
}

static int read_sizes(const struct reading *reading, struct moon_hash_case *out) {
    int64_t block = 16, ahead = 0;
    int status = moon_json_get_int(reading->source, reading->given, "block_size", false, 1, MOON_BLOCK_TOKENS_MAX,
                                   &block, reading->error);
    if (status == 0)
        status = moon_json_get_int(reading->source, reading->given, "hash_lookahead_tokens", false, 0,
                                   MOON_LOOKAHEAD_TOKENS_MAX, &ahead, reading->error);
    if (status == 0 && ahead > 0 && !reading->profile->hash_lookahead)
        return moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source,
                              moon_json_member(reading->given, "hash_lookahead_tokens"), "%s has no look-ahead hashes",
                              reading->profile->name);
    out->block_tokens = (uint32_t)block;
    out->lookahead_tokens = (uint32_t)ahead;
    return status;
}

/* ---- tokens ---- */

static int new_tokens(const struct reading *reading, const struct moon_json *place, size_t count,
                      struct moon_hash_case *out, struct moon_hash_append *append) {
    if (count > MOON_HASH_CASE_TOKENS_MAX - out->tokens)
        return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, place, "a case has at most %d tokens",
                              MOON_HASH_CASE_TOKENS_MAX);
    append->tokens = moon_arena_array(reading->arena, count, sizeof *append->tokens);
    append->count = count;
    out->tokens += count;
    return append->tokens ? 0 : no_memory(reading);
}

static int read_token_list(const struct reading *reading, const struct moon_json *list, struct moon_hash_case *out,
                           struct moon_hash_append *append) {
    int status = new_tokens(reading, list, list->count, out, append);
    if (status)
        return status;
    for (const struct moon_json *token = list->first; token; token = token->next) {
        status = require_type(reading, token, MOON_JSON_INTEGER, "a token id");
        if (status)
            return status;
        if (!token->fits)
            return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, token,
                                  "a token id must fit 64 bits");
        append->tokens[token->index] = token->integer;
    }
    return 0;
}

/* {"start","step","mod","count"}: token i is (start + step * i) mod `mod`, as Python has it, never negative. */
static int read_token_rule(const struct reading *reading, const struct moon_json *rule, struct moon_hash_case *out,
                           struct moon_hash_append *append) {
    static const char *const names[] = {"start", "step", "mod", "count", NULL};
    int64_t start = 0, step = 0, mod = 0, count = 0;
    const char *source = reading->source;
    struct moon_error *error = reading->error;
    if (moon_json_closed(source, rule, names, error) ||
        moon_json_get_int(source, rule, "start", true, INT64_MIN, INT64_MAX, &start, error) ||
        moon_json_get_int(source, rule, "step", true, INT64_MIN, INT64_MAX, &step, error) ||
        moon_json_get_int(source, rule, "mod", true, 1, INT64_MAX, &mod, error) ||
        moon_json_get_int(source, rule, "count", true, 0, MOON_HASH_CASE_TOKENS_MAX, &count, error))
        return error->status;
    int status = new_tokens(reading, rule, (size_t)count, out, append);
    if (status)
        return status;
    __int128 token = (start % mod + mod) % (__int128)mod, stride = (step % mod + mod) % (__int128)mod;
    for (int64_t i = 0; i < count; i++) {
        append->tokens[i] = (int64_t)token;
        token = (token + stride) % mod;
    }
    return 0;
}

/* Prompt of token ids, of embeddings only, or none at all. (HASH-070, HASH-072) */
static int read_prompt(const struct reading *reading, struct moon_hash_case *out) {
    const struct moon_json *prompt = present(reading->given, "prompt_token_ids");
    const struct moon_embeds *embeds = out->identity.embeds;
    bool absent = !moon_json_member(reading->given, "prompt_token_ids");
    int status;
    if (!prompt) {
        if (!embeds && !absent)
            return moon_refuse(reading->error, "ValueError",
                               "Neither prompt_token_ids nor prompt_embeds were defined.");
        out->embeddings_only = embeds != NULL;
        return new_tokens(reading, reading->given, embeds ? (size_t)embeds->rows : 0, out, &out->appends[0]);
    }
    if (moon_json_is(prompt, MOON_JSON_OBJECT)) {
        status = read_token_rule(reading, prompt, out, &out->appends[0]);
    } else {
        status = require_type(reading, prompt, MOON_JSON_ARRAY, "a list of token ids, an object or null");
        if (status == 0)
            status = read_token_list(reading, prompt, out, &out->appends[0]);
    }
    if (status == 0 && embeds && embeds->rows != out->appends[0].count)
        return moon_refuse(
            reading->error, "ValueError",
            "Prompt token ids and prompt embeds had different lengths prompt_token_ids=%zu prompt_embeds=%llu",
            out->appends[0].count, (unsigned long long)embeds->rows);
    return status;
}

static int read_mask(const struct reading *reading, struct moon_hash_case *out) {
    const struct moon_json *mask = present(reading->given, "prompt_is_token_ids");
    struct moon_hash_append *prompt = &out->appends[0];
    if (!mask)
        return 0;
    int status = require_type(reading, mask, MOON_JSON_ARRAY, "a list of booleans or null");
    if (status)
        return status;
    if (mask->count != prompt->count)
        return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, mask,
                              "has %zu entries for a prompt of %zu tokens", mask->count, prompt->count);
    bool *is_token_ids = moon_arena_array(reading->arena, mask->count, sizeof *is_token_ids);
    if (!is_token_ids)
        return no_memory(reading);
    for (const struct moon_json *entry = mask->first; entry; entry = entry->next) {
        status = require_type(reading, entry, MOON_JSON_BOOL, "a boolean");
        if (status)
            return status;
        is_token_ids[entry->index] = entry->boolean;
        out->masked = out->masked || (!entry->boolean && reading->profile->embeds_mask);
    }
    moon_prompt_mask(reading->profile, prompt->tokens, prompt->count, is_token_ids);
    return 0;
}

static int read_appends(const struct reading *reading, struct moon_hash_case *out) {
    const struct moon_json *appends = present(reading->given, "append_token_ids");
    int status = appends ? require_type(reading, appends, MOON_JSON_ARRAY, "a list of lists of token ids") : 0;
    if (status)
        return status;
    out->append_count = 1 + (appends ? appends->count : 0);
    out->appends = moon_arena_array(reading->arena, out->append_count, sizeof *out->appends);
    if (!out->appends)
        return no_memory(reading);
    for (const struct moon_json *list = appends ? appends->first : NULL; list; list = list->next) {
        status = require_type(reading, list, MOON_JSON_ARRAY, "a list of token ids");
        if (status == 0)
            status = read_token_list(reading, list, out, &out->appends[1 + list->index]);
        if (status)
            return status;
    }
    return 0;
}

/* ---- identity ---- */

/* The strings of the request while their identities can still be changed. */
struct strings {
    struct moon_string *lora_name, *lora_path, *cache_salt;
    struct moon_mm_item *items;
    size_t item_count;
};

static int read_lora(const struct reading *reading, struct strings *strings) {
    static const char *const names[] = {"name", "path", NULL};
    const struct moon_json *lora = present(reading->given, "lora");
    if (!lora)
        return 0;
    int status = moon_json_closed(reading->source, lora, names, reading->error);
    if (status == 0)
        status = read_string(reading, lora, "name", &strings->lora_name);
    if (status == 0)
        status = read_string(reading, lora, "path", &strings->lora_path);
    if (status == 0 && (!strings->lora_name || !strings->lora_path))
        return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, lora,
                              "needs both \"name\" and \"path\" as strings");
    if (status == 0 && strings->lora_path->length == 0)
        return moon_refuse(reading->error, "AssertionError", "lora_path cannot be empty"); /* HASH-073 */
    return status;
}

static int read_mm_item(const struct reading *reading, const struct moon_json *feature, struct moon_mm_item *item) {
    static const char *const names[] = {"identifier", "offset", "length", NULL};
    const char *source = reading->source;
    struct moon_error *error = reading->error;
    if (moon_json_closed(source, feature, names, error) ||
        moon_json_get_string(source, feature, "identifier", true, &item->identifier.bytes, &item->identifier.length,
                             error) ||
        moon_json_get_int(source, feature, "offset", true, 0, POSITION_MAX, &item->offset, error) ||
        moon_json_get_int(source, feature, "length", true, 0, POSITION_MAX, &item->length, error))
        return error->status;
    return require_utf8(reading, feature, &item->identifier);
}

static int read_mm(const struct reading *reading, struct strings *strings) {
    const struct moon_json *features = present(reading->given, "mm_features");
    if (!features)
        return 0;
    int status = require_type(reading, features, MOON_JSON_ARRAY, "a list of items");
    if (status)
        return status;
    struct moon_mm_item *items = moon_arena_array(reading->arena, features->count, sizeof *items);
    if (!items)
        return no_memory(reading);
    for (const struct moon_json *feature = features->first; feature; feature = feature->next) {
        struct moon_mm_item *item = &items[feature->index];
        status = read_mm_item(reading, feature, item);
        if (status)
            return status;
        if (feature->index > 0 && item->offset < item[-1].offset)
            return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, feature,
                                  "items must be sorted by offset; %lld comes after %lld", (long long)item->offset,
                                  (long long)item[-1].offset);
    }
    strings->items = items;
    strings->item_count = features->count;
    return 0;
}

/* Bytes of one element of a tensor type; 0 for a type that no release was measured with. */
static size_t dtype_bytes(const char *dtype) {
    if (strcmp(dtype, "float32") == 0)
        return 4;
    return strcmp(dtype, "float16") == 0 || strcmp(dtype, "bfloat16") == 0 ? 2 : 0;
}

static int decode_rows(const struct reading *reading, const struct moon_json *data, struct moon_embeds *embeds) {
    size_t bytes = (size_t)embeds->rows * embeds->row_bytes; /* 22 + 24 + 2 bits at most */
    if (data->length != 2 * bytes)
        return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, data,
                              "has %zu hex digits, %llu rows of %zu bytes need %zu", data->length,
                              (unsigned long long)embeds->rows, embeds->row_bytes, 2 * bytes);
    uint8_t *rows = moon_arena_alloc(reading->arena, bytes);
    if (!rows)
        return no_memory(reading);
    if (moon_hex_decode(data->bytes, data->length, rows))
        return moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, data, "is not hexadecimal");
    embeds->bytes = rows;
    return 0;
}

static int read_embeds(const struct reading *reading, struct moon_identity *identity) {
    static const char *const names[] = {"dtype", "num_tokens", "hidden_size", "data_hex", NULL};
    const struct moon_json *object = present(reading->given, "prompt_embeds");
    if (!object)
        return 0;
    const char *source = reading->source, *dtype = NULL;
    struct moon_error *error = reading->error;
    struct moon_json *data = NULL;
    int64_t rows = 0, hidden = 0;
    if (moon_json_closed(source, object, names, error) ||
        moon_json_get_string(source, object, "dtype", true, &dtype, NULL, error) ||
        moon_json_get_int(source, object, "num_tokens", true, 0, MOON_HASH_CASE_TOKENS_MAX, &rows, error) ||
        moon_json_get_int(source, object, "hidden_size", true, 1, EMBEDS_HIDDEN_MAX, &hidden, error) ||
        moon_json_get(source, object, "data_hex", true, MOON_JSON_STRING, &data, error))
        return error->status;
    if (dtype_bytes(dtype) == 0)
        return moon_json_fail(error, MOON_ERR_RANGE, source, moon_json_member(object, "dtype"),
                              "must be float32, float16 or bfloat16");
    struct moon_embeds *embeds = moon_arena_alloc(reading->arena, sizeof *embeds);
    if (!embeds)
        return no_memory(reading);
    embeds->rows = (uint64_t)rows;
    embeds->row_bytes = (size_t)hidden * dtype_bytes(dtype);
    identity->embeds = embeds;
    return decode_rows(reading, data, embeds);
}

/* A string that may turn out to be the same object as another one. */
struct candidate {
    struct moon_string *string;
};

static int compare_strings(const void *a, const void *b) {
    const struct moon_string *left = ((const struct candidate *)a)->string,
                             *right = ((const struct candidate *)b)->string;
    return moon_bytes_compare((struct moon_bytes){left->bytes, left->length},
                              (struct moon_bytes){right->bytes, right->length});
}

/* share_equal_strings: equal strings become one object. (HASH-024) */
static int share_strings(const struct reading *reading, const struct strings *strings) {
    struct moon_string *const single[] = {strings->lora_name, strings->lora_path, strings->cache_salt};
    struct candidate *all = moon_arena_array(reading->arena, strings->item_count + 3, sizeof *all);
    uint32_t number = MOON_IDENTITY_TAGS_END;
    size_t count = 0;
    if (!all)
        return no_memory(reading);
    for (size_t i = 0; i < 3; i++)
        if (single[i])
            all[count++].string = single[i];
    for (size_t i = 0; i < strings->item_count; i++)
        all[count++].string = &strings->items[i].identifier;
    qsort(all, count, sizeof *all, compare_strings);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && compare_strings(&all[i - 1], &all[i]) != 0)
            number++;
        all[i].string->identity = number;
    }
    return 0;
}

static int read_identity(const struct reading *reading, struct moon_identity *identity) {
    struct strings strings = {.item_count = 0};
    bool share = false;
    int status = read_lora(reading, &strings);
    if (status == 0)
        status = read_string(reading, reading->given, "cache_salt", &strings.cache_salt);
    if (status == 0)
        status = read_mm(reading, &strings);
    if (status == 0)
        status = read_embeds(reading, identity);
    if (status == 0)
        status =
            moon_json_get_bool(reading->source, reading->given, "share_equal_strings", false, &share, reading->error);
    if (status == 0 && share)
        status = share_strings(reading, &strings);
    identity->lora_name = strings.lora_name;
    identity->lora_path = strings.lora_path;
    identity->cache_salt = strings.cache_salt;
    identity->mm = strings.items;
    identity->mm_count = strings.item_count;
    return status;
}

int moon_hash_case_read(const struct moon_suite_world *world, struct moon_arena *arena,
                        const struct moon_profile *profile, const char *source, const struct moon_json *given,
                        struct moon_hash_case *out, struct moon_error *error) {
    static const char *const names[] = {"algo",
                                        "python_hash_seed",
                                        "block_size",
                                        "prompt_token_ids",
                                        "append_token_ids",
                                        "lora",
                                        "cache_salt",
                                        "mm_features",
                                        "prompt_embeds",
                                        "prompt_is_token_ids",
                                        "hash_lookahead_tokens",
                                        "share_equal_strings",
                                        NULL};
    const struct reading reading = {world, arena, profile, source, given, error};
    const char *algorithm = "sha256";
    *out = (struct moon_hash_case){.block_tokens = 0};
    int status = moon_json_closed(source, given, names, error);
    if (status == 0)
        status = moon_json_get_string(source, given, "algo", false, &algorithm, NULL, error);
    if (status == 0)
        status = read_sizes(&reading, out);
    if (status == 0)
        status = read_seed(&reading, out);
    if (status == 0)
        status = read_identity(&reading, &out->identity);
    if (status == 0)
        status = read_appends(&reading, out);
    if (status == 0)
        status = read_prompt(&reading, out);
    if (status == 0)
        status = read_mask(&reading, out);
    if (status == 0)
        status = moon_hash_algorithm_find(algorithm, &out->algorithm, error);
    return status;
}
