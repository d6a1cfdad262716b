/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons that are seen before any key is compared: start, store, hashes, names, namespaces. */
#include "ref/config/compat_pair.h"

#include <string.h>

#define BOTH MOON_COMPAT_BOTH_WAYS

/* ---- start and store ---- */

static void find_start(struct pair *pair) {
    for (int side = 0; side < 2; side++) {
        const struct moon_compat_engine *engine = &pair->engines[side];
        if (!engine->refusal)
            continue;
        pair->same_store = false;
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_START, BOTH,
                  pair_text(pair, "%s does not start with vLLM %s: %s", pair_name(pair, side), engine->profile->version,
                            engine->refusal),
                  "correct this first; see also mooncheck lint");
        if (pair->last)
            pair->last->requirement = engine->refused_by;
    }
}

/* One member of mooncake_config.json that must be equal. */
static void find_member(struct pair *pair, enum moon_compat_subject subject, const char *member,
                        const char *const values[2], const char *consequence, const char *fix) {
    if (strcmp(values[0], values[1]) == 0)
        return;
    pair->same_store = false;
    pair_find(pair, MOON_COMPAT_BLOCKS, subject, BOTH,
              pair_text(pair, "%s differs: \"%.200s\" on %s, \"%.200s\" on %s; %s", member, values[0],
                        pair_name(pair, 0), values[1], pair_name(pair, 1), consequence),
              fix);
}

static bool is_loopback(const char *address) {
    static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]", "::1"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (strncmp(address, hosts[i], strlen(hosts[i])) == 0)
            return true;
    return false;
}

static void find_store(struct pair *pair) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    if (!a->config_told || !b->config_told) {
        bool one = (a->config_told || b->config_told) && !a->refusal && !b->refusal;
        if (!a->refusal && !b->refusal)
            pair_find(pair, one ? MOON_COMPAT_WARNS : MOON_COMPAT_NOTES, MOON_COMPAT_MASTER, BOTH,
                      "master, metadata server, protocol and tenant are not told on both sides and taken as equal",
                      "give the member \"mooncake\" in both descriptions");
        return;
    }
    const char *const masters[] = {a->master, b->master};
    find_member(pair, MOON_COMPAT_MASTER, "master_server_address", masters, "these are two stores",
                "write the same master_server_address, letter for letter, in both mooncake_config.json");
    if (strcmp(a->master, b->master) == 0 && is_loopback(a->master))
        pair_find(
            pair, MOON_COMPAT_WARNS, MOON_COMPAT_MASTER, BOTH,
            pair_text(pair, "\"%.200s\" names each machine's own master: one store only on one machine", a->master),
            "write the master's address as both machines reach it");
    const char *const servers[] = {a->metadata_server, b->metadata_server};
    find_member(pair, MOON_COMPAT_METADATA_SERVER, "metadata_server", servers,
                "lookups are answered, but a reader cannot open the owner's memory and every load fails",
                "use P2PHANDSHAKE, or the same metadata service, on both sides");
    const char *const protocols[] = {a->protocol, b->protocol};
    find_member(pair, MOON_COMPAT_PROTOCOL, "protocol", protocols,
                "lookups are answered, but the transports cannot read one another and every load fails",
                "use the same protocol on both sides and on standalone owners");
    bool differ = strcmp(a->tenant, b->tenant) != 0;
    const char *const tenants[] = {a->tenant, b->tenant};
    if (pair->descriptions[0].tenants)
        find_member(pair, MOON_COMPAT_TENANT, "the tenant", tenants, "tenants never see one another's objects",
                    "give both sides the same tenant_id (releases up to 0.27 are always \"default\")");
    else if (differ)
        pair_find(pair, MOON_COMPAT_WARNS, MOON_COMPAT_TENANT, BOTH,
                  pair_text(pair,
                            "tenants \"%.200s\" and \"%.200s\" are one: the master runs without enable_multi_tenants",
                            a->tenant, b->tenant),
                  "start the master with --enable_multi_tenants=true if they are to be apart");
}

/* ---- hashes ---- */

static void find_algorithm(struct pair *pair) {
    const struct moon_compat_description *a = &pair->descriptions[0], *b = &pair->descriptions[1];
    if (a->algorithm == b->algorithm)
        return;
    pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_HASH_ALGORITHM, BOTH,
              pair_text(pair, "hash algorithms differ: %s (%zu bytes) on %s, %s (%zu bytes) on %s",
                        moon_hash_algorithm_name(a->algorithm), moon_hash_algorithm_bytes(a->algorithm),
                        pair_name(pair, 0), moon_hash_algorithm_name(b->algorithm),
                        moon_hash_algorithm_bytes(b->algorithm), pair_name(pair, 1)),
              "set the same prefix_caching_hash_algo on both sides");
}

/* How a side comes to its NONE_HASH, in words. */
static const char *root_text(struct pair *pair, int side) {
    const struct moon_compat_description *description = &pair->descriptions[side];
    if (moon_compat_root(description) == MOON_COMPAT_ROOT_SEED)
        return pair_text(pair, "PYTHONHASHSEED \"%.64s\"", description->seed->bytes);
    return "the fixed default of 0.29 and later";
}

static void find_root(struct pair *pair) {
    const struct moon_compat_description *a = &pair->descriptions[0], *b = &pair->descriptions[1];
    enum moon_compat_root roots[] = {moon_compat_root(a), moon_compat_root(b)};
    bool random = false;
    for (int side = 0; side < 2; side++) {
        if (roots[side] != MOON_COMPAT_ROOT_RANDOM)
            continue;
        bool old = pair->descriptions[side].profile->none_hash == MOON_NONE_HASH_RANDOM_BYTES;
        random = true;
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_NONE_HASH, BOTH,
                  pair_text(pair, "%s draws NONE_HASH at random in every process: PYTHONHASHSEED is not set, and %s",
                            pair_name(pair, side),
                            old ? "releases up to 0.28 have no fixed default"
                                : "the fixed default is for the SHA-256 algorithms only"),
                  old ? "set the same PYTHONHASHSEED (for example 0) on every process of both sides"
                      : "set the same PYTHONHASHSEED on every process of both sides, or use sha256");
    }
    bool equal = roots[0] == roots[1] && (roots[0] != MOON_COMPAT_ROOT_SEED || moon_json_equal(a->seed, b->seed));
    if (random || equal)
        return;
    const char *texts[] = {root_text(pair, 0), root_text(pair, 1)};
    if (texts[0] && texts[1])
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_NONE_HASH, BOTH,
                  pair_text(pair, "NONE_HASH differs: %s on %s, %s on %s; seeds are compared as text", texts[0],
                            pair_name(pair, 0), texts[1], pair_name(pair, 1)),
                  "set the same PYTHONHASHSEED, letter for letter, on every process of both sides");
}

static void find_hash_block(struct pair *pair) {
    const struct moon_layout_model *a = &pair->engines[0].model, *b = &pair->engines[1].model;
    if (!pair->comparable || pair->same_blocks)
        return;
    pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_HASH_BLOCK, BOTH,
              pair_text(pair,
                        "hash blocks differ: %lld tokens on %s, %lld on %s; hashes chain over them, so none is equal",
                        (long long)a->hash_block_tokens, pair_name(pair, 0), (long long)b->hash_block_tokens,
                        pair_name(pair, 1)),
              "use the same block size and context parallelism, or a prefix_match_unit that gives equal hash blocks");
}

/* ---- requests ---- */

static bool has_extra(const struct moon_compat_request *request) {
    return request->lora || request->salt || request->embeds || request->mm_count > 0;
}

/* A difference of requests blocks a direction that finds nothing, and limits one that finds less than of its own. */
static void find_by_hits(struct pair *pair, enum moon_compat_subject subject, const char *text, const char *fix) {
    unsigned blocked = 0, limited = 0;
    for (int way = 0; way < 2; way++) {
        const struct pair_direction *direction = &pair->directions[way];
        const size_t *found = direction->found[MOON_COMPAT_AS_GIVEN];
        size_t total = 0;
        bool fewer = false;
        for (size_t k = 0; found && k < direction->prompts; k++) {
            total += found[k];
            fewer |= found[k] < direction->own_hits[k];
        }
        if (total == 0)
            blocked |= direction->bit;
        else if (fewer) /* else the difference lies behind the last block */
            limited |= direction->bit;
    }
    if (blocked)
        pair_find(pair, MOON_COMPAT_BLOCKS, subject, blocked, text, fix);
    if (limited)
        pair_find(pair, MOON_COMPAT_LIMITS, subject, limited, text, fix);
}

static void find_extra_keys(struct pair *pair) {
    bool a = pair->engines[0].profile->extra_tagged, b = pair->engines[1].profile->extra_tagged;
    if (a == b)
        return;
    const char *text =
        pair_text(pair,
                  "%s tags extra keys (0.31 on), %s does not: requests with LoRA, multimodal items, cache "
                  "salt or prompt embeddings have other hashes from the first such block on",
                  pair_name(pair, a ? 0 : 1), pair_name(pair, a ? 1 : 0));
    static const char fix[] =
        "run releases up to 0.30 on both sides, or 0.31 and later on both; plain text shares anyway";
    if (!pair_judges(pair, MOON_COMPAT_AS_GIVEN))
        pair_find(pair, MOON_COMPAT_LIMITS, MOON_COMPAT_EXTRA_KEYS, BOTH, text, fix);
    else if (has_extra(&pair->requests[MOON_COMPAT_AS_GIVEN][0]) || has_extra(&pair->requests[MOON_COMPAT_AS_GIVEN][1]))
        find_by_hits(pair, MOON_COMPAT_EXTRA_KEYS, text, fix);
}

static bool items_equal(const struct moon_compat_request *a, const struct moon_compat_request *b) {
    bool equal = a->mm_count == b->mm_count;
    for (size_t i = 0; equal && i < a->mm_count; i++)
        equal = moon_compat_strings_equal(a->mm[i].identifier, b->mm[i].identifier) &&
                a->mm[i].offset == b->mm[i].offset && a->mm[i].length == b->mm[i].length;
    return equal;
}

static void find_prompt(struct pair *pair) {
    const int64_t *a = pair->tokens[0], *b = pair->tokens[1];
    size_t i = 0;
    while (i < pair->token_count[0] && i < pair->token_count[1] && a[i] == b[i])
        i++;
    if (i < pair->token_count[0] || i < pair->token_count[1])
        find_by_hits(pair, MOON_COMPAT_REQUEST, pair_text(pair, "the prompts differ from token %zu on", i),
                     "nothing to change: only the common prefix can be shared");
    for (int way = 0; way < 2; way++) {
        const struct pair_direction *direction = &pair->directions[way];
        if (direction->prompts == 0)
            pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_REQUEST, direction->bit,
                      pair_text(pair, "the prompt is too short: %s finds only prompts of more than %lld tokens",
                                pair_name(pair, !way), (long long)direction->reader->model.scheduler_block_tokens),
                      "nothing to change: short prompts are not looked up");
    }
}

/* What differs between the two requests that are asked about. */
static void find_request(struct pair *pair) {
    const struct moon_compat_request *a = &pair->requests[MOON_COMPAT_AS_GIVEN][0];
    const struct moon_compat_request *b = &pair->requests[MOON_COMPAT_AS_GIVEN][1];
    bool tagged = pair->engines[0].profile->extra_tagged && pair->engines[1].profile->extra_tagged;
    if (!pair_judges(pair, MOON_COMPAT_AS_GIVEN))
        return;
    if (pair->comparable)
        find_prompt(pair);
    if (a->lora != b->lora || (a->lora && !moon_compat_strings_equal(a->lora_name, b->lora_name)))
        find_by_hits(pair, MOON_COMPAT_REQUEST, "the requests have different LoRA adapters",
                     "give the adapter the same name on both sides");
    else if (a->lora && tagged && !moon_compat_strings_equal(a->lora_path, b->lora_path))
        find_by_hits(pair, MOON_COMPAT_REQUEST,
                     "the LoRA adapter has another path on each side, and 0.31 and later hash it",
                     "serve the adapter from the same path on both sides");
    if (a->salt != b->salt || (a->salt && !moon_compat_strings_equal(a->cache_salt, b->cache_salt)))
        find_by_hits(pair, MOON_COMPAT_REQUEST, "the requests have different cache salts",
                     "send the same cache_salt, if they are to share");
    if (!items_equal(a, b))
        find_by_hits(pair, MOON_COMPAT_REQUEST, "the requests have different multimodal items",
                     "nothing to change: items are told apart by their identifiers and places");
    if (a->embeds != b->embeds)
        find_by_hits(pair, MOON_COMPAT_REQUEST, "one request has prompt embeddings, the other token ids",
                     "nothing to change: they are different prompts to the hash");
}

/* ---- names ---- */

static void find_names(struct pair *pair) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    bool field_a = a->profile->group_numbering != MOON_GROUP_NONE,
         field_b = b->profile->group_numbering != MOON_GROUP_NONE;
    if (pair->same_names)
        return; /* also where '@' makes two pairs of names one text (KEY-007) */
    if (!moon_compat_texts_equal(a->name, b->name))
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_MODEL, BOTH,
                  pair_text(pair, "keys hold \"%.*s\" on %s and \"%.*s\" on %s", (int)a->name.length, a->name.bytes,
                            pair_name(pair, 0), (int)b->name.length, b->name.bytes, pair_name(pair, 1)),
                  "if it is one model, start both sides with a name that ends alike after the last '/'");
    if (!moon_compat_texts_equal(a->prefix, b->prefix))
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_CACHE_PREFIX, BOTH,
                  pair_text(pair, "cache_prefix is \"%.*s\" on %s and \"%.*s\" on %s%s", (int)a->prefix.length,
                            a->prefix.length ? a->prefix.bytes : "", pair_name(pair, 0), (int)b->prefix.length,
                            b->prefix.length ? b->prefix.bytes : "", pair_name(pair, 1),
                            a->profile->cache_prefix && b->profile->cache_prefix
                                ? ""
                                : " (releases up to 0.23 do not read it)"),
                  "set the same cache_prefix in both extra configs, or none");
    if (field_a != field_b)
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_GROUP_FIELD, BOTH,
                  pair_text(pair, "keys of %s have no \"@group:\" field (0.21), those of %s have one",
                            pair_name(pair, field_a ? 1 : 0), pair_name(pair, field_a ? 0 : 1)),
                  "run 0.22 or later on both sides");
}

/* True if no chunk of a group can have one key on both sides: the side that joins hashes has several in a chunk. */
static bool styles_part(const struct moon_compat_engine *a, const struct moon_compat_engine *b, size_t group) {
    bool joined = a->profile->chunk_hash == MOON_CHUNK_HASH_JOINED;
    const struct moon_compat_engine *joins = joined ? a : b;
    return joined != (b->profile->chunk_hash == MOON_CHUNK_HASH_JOINED) &&
           joins->groups[group].block_tokens > joins->model.hash_block_tokens;
}

static void find_chunk_hash(struct pair *pair) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    for (size_t i = 0; pair->same_blocks && i < a->model.group_count && i < b->model.group_count; i++)
        if (styles_part(a, b, i)) {
            pair_find(
                pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_CHUNK_HASH, BOTH,
                "blocks wider than the hash block are keyed by all their hashes joined in 0.22 and 0.23, by the last "
                "one from 0.24 on",
                "run 0.24 or later on both sides");
            return;
        }
}

/* ---- namespaces ---- */

/* A side's namespace in words, with the reason of a refusal. */
static const char *space_text(struct pair *pair, int side) {
    const struct moon_store_selection *selection = &pair->engines[side].selection;
    if (selection->space.format == MOON_STORE_PLAIN)
        return pair_text(pair, "%s has none (store_tp_size not asked for%s)", pair_name(pair, side),
                         pair->engines[side].profile->store_namespace ? "" : ", its release has none");
    if (selection->space.format != MOON_STORE_ISOLATED)
        return pair_text(pair, "%s has \"%s\"", pair_name(pair, side), selection->text);
    const char *why = selection->refusal == MOON_REFUSAL_STORE_TP_UNKNOWN
                          ? moon_store_tp_source_text(selection->store_tp.source)
                          : moon_store_refusal_text(selection->refusal);
    return pair_text(pair, "%s is isolated in \"%s\": %s", pair_name(pair, side), selection->text, why);
}

static const char *space_fix(struct pair *pair) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    const struct moon_store_namespace *spaces[] = {&a->selection.space, &b->selection.space};
    if (!a->profile->store_namespace || !b->profile->store_namespace)
        return "run 0.30 or later on both sides, or leave store_tp_size and enable_store_tp_lcm out on the newer one";
    if (spaces[0]->format == MOON_STORE_ISOLATED || spaces[1]->format == MOON_STORE_ISOLATED)
        return "meet the condition that is named (one full attention group, PCP and DCP 1, LBHNC or LBNHC, heads a "
               "multiple "
               "of store_tp_size, store_tp_size a multiple of the TP size), or leave store_tp_size out on both sides";
    if (spaces[0]->format == MOON_STORE_PLAIN || spaces[1]->format == MOON_STORE_PLAIN)
        return "set the same store_tp_size (or enable_store_tp_lcm with the same prefill_tp_sizes) on both sides";
    if (spaces[0]->pp != spaces[1]->pp)
        return "use the same pipeline parallel size on both sides";
    if (spaces[0]->format != spaces[1]->format)
        return "let both sides use the same KV cache layout, LBHNC if possible, and heads that shard alike";
    return pair_text(
        pair, "set the same store_tp_size on both sides: a multiple of %lld and of %lld that divides the KV heads",
        (long long)a->model.tp, (long long)b->model.tp);
}

static void find_namespace(struct pair *pair) {
    const struct moon_store_selection *a = &pair->engines[0].selection, *b = &pair->engines[1].selection;
    if (!pair->comparable || strcmp(a->text, b->text) == 0)
        return;
    const char *texts[] = {space_text(pair, 0), space_text(pair, 1)}, *fix = space_fix(pair);
    if (texts[0] && texts[1] && fix)
        pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_NAMESPACE, BOTH,
                  pair_text(pair, "store namespaces differ: %s; %s", texts[0], texts[1]), fix);
}

void pair_reasons(struct pair *pair) {
    pair->same_store = true;
    find_start(pair);
    find_store(pair);
    find_algorithm(pair);
    find_root(pair);
    find_hash_block(pair);
    find_extra_keys(pair);
    find_request(pair);
    find_names(pair);
    find_chunk_hash(pair);
    find_namespace(pair);
}
