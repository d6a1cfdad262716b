/* SPDX-License-Identifier: Apache-2.0 */
/* Everyday questions to the connector, made from a few numbers instead of JSON. */
#include "conformance/cli/plan_question.h"

#include "conformance/suites/engine.h"
#include "ref/layout/lookup.h"

#include <string.h>

enum { BLOCK_TOKENS = 16, HASH_BYTES = 16 };

/* What is being made, and of what. */
struct making {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const struct moon_plan_question *question;
    struct moon_json *given;
    int64_t block_tokens;
};

static void set_int(const struct making *making, struct moon_json *object, const char *name, int64_t value) {
    moon_json_set(making->arena, object, name, moon_json_int(making->arena, value));
}

static void set_text(const struct making *making, struct moon_json *object, const char *name, const char *value) {
    if (value)
        moon_json_set(making->arena, object, name, moon_json_string(making->arena, value));
}

/* ---- the engine ---- */

/* An option that is JSON itself, so that "4" in quotes can be told from 4. */
static int set_json(const struct making *making, struct moon_json *object, const char *option, const char *name,
                    const char *text, struct moon_error *error) {
    struct moon_json *value = NULL;
    if (!text)
        return 0;
    int status = moon_json_read(making->arena, option, text, strlen(text), MOON_JSON_STRICT, &value, error);
    if (status == 0)
        moon_json_set(making->arena, object, name, value);
    return status;
}

static int set_extra(const struct making *making, struct moon_error *error) {
    const struct moon_plan_question *question = making->question;
    struct moon_arena *arena = making->arena;
    struct moon_json *extra = moon_json_set(arena, making->given, "extra_config", moon_json_object(arena));
    set_text(making, extra, "cache_prefix", question->prefix);
    if (question->save_decode)
        moon_json_set(arena, extra, "save_decode_cache", moon_json_bool(arena, true));
    if (question->lcm)
        moon_json_set(arena, extra, "enable_store_tp_lcm", moon_json_bool(arena, true));
    int status = set_json(making, extra, "--store-tp-size", "store_tp_size", question->store_tp, error);
    if (status == 0)
        status = set_json(making, extra, "--prefill-tp-sizes", "prefill_tp_sizes", question->lcm, error);
    return status;
}

static int set_engine(const struct making *making, struct moon_error *error) {
    const struct moon_plan_question *question = making->question;
    struct moon_arena *arena = making->arena;
    struct moon_json *topology = moon_json_set(arena, making->given, "topology", moon_json_object(arena));
    set_int(making, topology, "tp", question->tp ? question->tp : 1);
    set_int(making, topology, "pp", question->pp ? question->pp : 1);
    if (question->kv_heads)
        set_int(making, making->given, "total_kv_heads", question->kv_heads);
    struct moon_json *groups = moon_json_set(arena, making->given, "groups", moon_json_array(arena));
    struct moon_json *group = moon_json_push(groups, moon_json_object(arena));
    set_text(making, group, "kind", "full");
    set_int(making, group, "block_size", making->block_tokens);
    set_text(making, making->given, "kv_role", question->role);
    set_text(making, making->given, "kv_cache_layout", question->layout);
    set_text(making, making->given, "model", question->model);
    return set_extra(making, error);
}

/* ---- the request ---- */

/* Hash i ends in the number i + 1, so that a person finds the block in a key. */
static void hash_at(int64_t index, uint8_t out[HASH_BYTES]) {
    memset(out, 0, HASH_BYTES);
    for (int i = 0; i < 8; i++)
        out[HASH_BYTES - 1 - i] = (uint8_t)((uint64_t)(index + 1) >> (8 * i));
}

static struct moon_json *hashes_of(const struct making *making, int64_t tokens) {
    struct moon_json *list = moon_json_array(making->arena);
    for (int64_t i = 0; i < tokens / making->block_tokens; i++) {
        uint8_t hash[HASH_BYTES];
        hash_at(i, hash);
        moon_json_push(list, moon_json_hex(making->arena, hash, HASH_BYTES));
    }
    return list;
}

/* Keys that a lookup of the stored tokens asks for: then it finds all of them. */
static int push_stored(const struct making *making, struct moon_json *list, struct moon_error *error) {
    struct moon_engine engine;
    struct moon_store_selection selection;
    struct moon_key_list keys;
    int64_t count = making->question->stored_tokens / making->block_tokens;
    uint8_t *bytes = moon_arena_array(making->arena, (size_t)count, HASH_BYTES);
    int status = moon_engine_read(making->arena, making->profile, "flags", making->given, &engine, error);
    if (status)
        return status;
    for (int64_t i = 0; bytes && i < count; i++)
        hash_at(i, bytes + i * HASH_BYTES);
    const struct moon_hashes hashes = {bytes, HASH_BYTES, bytes ? (size_t)count : 0};
    moon_key_list_open(&keys, making->arena->memory);
    moon_store_select(making->profile, &engine.model, &selection);
    moon_lookup_keys(making->profile, &engine.model, &selection, &hashes, count * making->block_tokens, &keys);
    struct moon_text key;
    moon_text_open(&key, making->arena->memory);
    for (size_t i = 0; i < keys.count; i++) {
        moon_text_clear(&key);
        moon_key_list_write(&keys, i, &key);
        moon_json_push(list, moon_json_bytes(making->arena, moon_text_value(&key), key.length));
    }
    bool failed = !bytes || keys.failed || key.failed;
    moon_text_close(&key);
    moon_key_list_close(&keys);
    return failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : 0;
}

static int set_stored(const struct making *making, struct moon_error *error) {
    struct moon_json *list =
        moon_json_set(making->arena, making->given, "existing_keys", moon_json_array(making->arena));
    return making->question->stored_tokens >= making->block_tokens ? push_stored(making, list, error) : 0;
}

/* Blocks first + 1 .. last of the one group. */
static struct moon_json *blocks(const struct making *making, int64_t first, int64_t last) {
    struct moon_json *tables = moon_json_array(making->arena),
                     *table = moon_json_push(tables, moon_json_array(making->arena));
    for (int64_t i = first; i < last; i++)
        moon_json_push(table, moon_json_int(making->arena, i + 1));
    return tables;
}

/* A step in which the request goes from `computed` to `computed + scheduled` tokens. */
static void push_step(const struct making *making, struct moon_json *steps, bool first, int64_t computed,
                      int64_t scheduled) {
    struct moon_arena *arena = making->arena;
    int64_t had = first ? 0 : moon_ceil_divide(computed, making->block_tokens),
            has = moon_ceil_divide(computed + scheduled, making->block_tokens);
    struct moon_json *step = moon_json_push(steps, moon_json_object(arena));
    struct moon_json *list = moon_json_set(arena, step, first ? "new" : "cached", moon_json_array(arena));
    struct moon_json *entry = moon_json_push(list, moon_json_object(arena));
    set_text(making, entry, "req", "r0");
    set_int(making, entry, "num_computed", computed);
    set_int(making, entry, "num_scheduled", scheduled);
    moon_json_set(arena, entry, first ? "block_ids" : "new_block_ids",
                  has > had ? blocks(making, had, has) : moon_json_null(arena));
    if (computed + scheduled < making->question->prompt_tokens)
        return;
    struct moon_json *output = moon_json_set(arena, step, "output_tokens", moon_json_object(arena));
    set_int(making, output, "r0", 1);
}

static int set_save(const struct making *making, struct moon_error *error) {
    const struct moon_plan_question *question = making->question;
    struct moon_arena *arena = making->arena;
    struct moon_json *requests = moon_json_set(arena, making->given, "requests", moon_json_object(arena));
    struct moon_json *request = moon_json_set(arena, requests, "r0", moon_json_object(arena));
    struct moon_json *steps = moon_json_set(arena, making->given, "steps", moon_json_array(arena));
    int64_t all = question->prompt_tokens + question->decode_tokens;
    int64_t at = question->delivered ? question->prompt_tokens - 1 : question->local_tokens;
    int64_t most = question->step_tokens ? question->step_tokens : question->prompt_tokens;
    set_int(making, request, "prompt_len", question->prompt_tokens);
    moon_json_set(arena, request, "block_hashes", hashes_of(making, all + 1)); /* the last step gives a token too */
    for (bool first = true; at < all; first = false) {
        int64_t left = question->prompt_tokens - at, scheduled = left < most ? left : most;
        if (left <= 0)
            scheduled = 1;
        push_step(making, steps, first, at, scheduled);
        at += scheduled;
    }
    return set_stored(making, error);
}

static int set_request(const struct making *making, struct moon_error *error) {
    const struct moon_plan_question *question = making->question;
    if (strcmp(question->ask, "save") == 0)
        return set_save(making, error);
    set_int(making, making->given, "num_tokens", question->prompt_tokens);
    set_int(making, making->given, "num_computed_tokens", question->local_tokens);
    moon_json_set(making->arena, making->given, "block_hashes", hashes_of(making, question->prompt_tokens));
    if (strcmp(question->ask, "lookup") == 0)
        return set_stored(making, error);
    set_int(making, making->given, "hit_tokens_in_store", question->stored_tokens);
    return 0;
}

int moon_plan_given(struct moon_arena *arena, const struct moon_profile *profile,
                    const struct moon_plan_question *question, struct moon_json **given, struct moon_error *error) {
    const struct making making = {
        .arena = arena,
        .profile = profile,
        .question = question,
        .given = moon_json_object(arena),
        .block_tokens = question->block_tokens ? question->block_tokens : BLOCK_TOKENS,
    };
    *given = making.given;
    int status = set_engine(&making, error);
    if (status == 0)
        status = set_request(&making, error);
    if (status == 0 && moon_json_broken(making.given))
        status = moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    return status;
}
