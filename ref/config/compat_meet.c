/* SPDX-License-Identifier: Apache-2.0 */
/* Where two deployments meet: the sample prompt, its hashes, what each side would find of the other's objects. */
#include "ref/config/compat_pair.h"

#include <string.h>

enum { SAMPLE_BLOCKS = 4, SAMPLE_TOKENS_MAX = 2 * MOON_COMPAT_TOKENS_MAX, TOKEN_FIRST = 1000, TOKEN_VALUES = 30000 };

static void *allocate(struct pair *pair, size_t count, size_t bytes) {
    void *out = moon_arena_array(pair->arena, count, bytes);
    if (!out && !pair->status)
        pair->status = moon_fail(pair->error, MOON_ERR_MEMORY, NULL, "no memory for a comparison");
    return out;
}

/* ---- the sample prompt ---- */

static int64_t common_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y != 0) { /* y falls to its remainder each time */
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b; /* both are at most MOON_COMPAT_TOKENS_MAX */
}

/* Longest distance over which a side's rules of sparse storing look. */
static int64_t reach_of(const struct moon_compat_engine *engine) {
    int64_t reach = engine->model.has_retention ? engine->model.retention_tokens : 0;
    for (size_t i = 0; i < engine->model.group_count; i++) {
        int64_t window = engine->groups[i].spec.window_tokens;
        reach = window > reach ? window : reach;
    }
    return reach;
}

/* Length of a prompt that shows every rule: some whole scheduler blocks of both sides behind the widest window, and one
 * token more. */
static size_t sample_length(struct pair *pair) {
    int64_t block = pair->engines[0].model.scheduler_block_tokens,
            other = pair->engines[1].model.scheduler_block_tokens;
    if (pair->same_blocks)
        block = common_multiple(block, other);
    else if (other > block)
        block = other;
    int64_t reach = reach_of(&pair->engines[0]), farther = reach_of(&pair->engines[1]);
    reach = farther > reach ? farther : reach;
    int64_t length = (moon_ceil_divide(reach, block) + SAMPLE_BLOCKS) * block;
    if (length > SAMPLE_TOKENS_MAX) {
        pair->status =
            moon_fail(pair->error, MOON_ERR_LIMIT, NULL,
                      "%s and %s have whole scheduler blocks together only every %lld tokens: too long to compare",
                      pair_name(pair, 0), pair_name(pair, 1), (long long)block);
        return 0;
    }
    return (size_t)length + 1;
}

static void choose_tokens(struct pair *pair) {
    const struct moon_compat_request *given = pair->requests[MOON_COMPAT_AS_GIVEN];
    for (int side = 0; side < 2; side++) {
        pair->tokens[side] = given[side].tokens;
        pair->token_count[side] = given[side].token_count;
    }
    if (pair->tokens[0] && pair->tokens[1])
        return;
    size_t count = sample_length(pair);
    int64_t *tokens = pair->status ? NULL : allocate(pair, count, sizeof *tokens);
    if (!tokens)
        return;
    for (size_t i = 0; i < count; i++)
        tokens[i] = TOKEN_FIRST + (int64_t)(i % TOKEN_VALUES);
    for (int side = 0; side < 2; side++)
        if (!pair->tokens[side]) {
            pair->tokens[side] = tokens;
            pair->token_count[side] = count;
        }
}

void pair_sample(struct pair *pair) {
    choose_tokens(pair);
    for (int kind = 0; kind < MOON_COMPAT_KIND_COUNT; kind++)
        for (int side = 0; side < 2 && pair_judges(pair, (enum moon_compat_kind)kind) && !pair->status; side++)
            pair->status =
                moon_compat_hashes(pair->arena, &pair->descriptions[side], side, &pair->requests[kind][side],
                                   pair->tokens[side], pair->token_count[side],
                                   pair->engines[side].model.hash_block_tokens, &pair->hashes[kind][side], pair->error);
    for (int side = 0; side < 2 && !pair->status; side++)
        pair->status =
            moon_compat_engine_save(pair->arena, &pair->engines[side], (int64_t)pair->token_count[side], pair->error);
}

/* ---- keys ---- */

bool pair_chunk_of(const struct moon_compat_engine *writer, const struct moon_compat_engine *reader, size_t group,
                   size_t reader_chunk, size_t *chunk) {
    if (group >= writer->model.group_count)
        return false;
    const struct moon_chunk asked = moon_compat_chunk(reader, group, reader_chunk);
    int64_t per = writer->groups[group].block_tokens / writer->model.hash_block_tokens;
    int64_t end = asked.first_hash + asked.hash_count;
    *chunk = (size_t)(end / per) - 1;
    if (end % per != 0 || *chunk >= moon_compat_chunks(writer, group, writer->saved_tokens))
        return false;
    const struct moon_chunk own = moon_compat_chunk(writer, group, *chunk);
    return own.first_hash == asked.first_hash; /* they end together */
}

bool pair_hash_equal(const struct pair *pair, enum moon_compat_kind kind, const struct pair_direction *direction,
                     size_t group, size_t reader_chunk) {
    const struct moon_hashes *hashes = pair->hashes[kind];
    if (hashes[0].hash_bytes != hashes[1].hash_bytes)
        return false;
    const struct moon_chunk chunk = moon_compat_chunk(direction->reader, group, reader_chunk);
    size_t from = (size_t)chunk.first_hash * hashes[0].hash_bytes;
    return memcmp(hashes[0].bytes + from, hashes[1].bytes + from, (size_t)chunk.hash_count * hashes[0].hash_bytes) == 0;
}

const char *pair_key(struct pair *pair, int side, const struct moon_pool_key *identity, enum moon_compat_kind kind,
                     size_t chunk) {
    const struct moon_compat_engine *engine = &pair->engines[side];
    const struct moon_chunk at = moon_compat_chunk(engine, (size_t)identity->group_id, chunk);
    struct moon_text text;
    moon_text_open(&text, pair->arena->memory);
    moon_chunk_key(engine->profile, identity, &pair->hashes[kind][side], &at, &text);
    const char *out = text.failed ? NULL : moon_arena_copy(pair->arena, moon_text_value(&text), text.length);
    if (!out && !pair->status)
        pair->status = moon_fail(pair->error, MOON_ERR_MEMORY, NULL, "no memory for a key");
    moon_text_close(&text);
    return out;
}

/* True if every namespace that the reader lists has the writer's chunk. */
static bool all_written(const struct pair_direction *direction, const struct moon_compat_engine *writer, size_t group,
                        size_t writer_chunk) {
    const struct moon_compat_engine *reader = direction->reader;
    struct moon_namespaces walk;
    struct moon_pool_key key;
    moon_namespaces_open(&walk, reader->profile, &reader->model, &reader->selection, group);
    while (moon_namespaces_next(&walk, &key)) {
        const struct moon_compat_identity *identity =
            moon_compat_identity_find(writer, group, key.tp_rank, key.pcp_rank, key.dcp_rank, key.pp_rank);
        if (!identity || !identity->written[writer_chunk])
            return false;
    }
    return true;
}

/* Which chunks of the reader's sample `writer` answers. */
static void find_presence(struct pair *pair, const struct pair_direction *direction,
                          const struct moon_compat_engine *writer, struct pair_presence *out) {
    const struct moon_compat_engine *reader = direction->reader;
    int64_t tokens = (int64_t)direction->prompts * reader->model.scheduler_block_tokens;
    bool fine = moon_fine_grained(reader->profile, &reader->model);
    for (size_t group = 0; group < reader->model.group_count && !pair->status; group++) {
        size_t count = moon_compat_chunks(reader, group, tokens);
        bool *chunks = out->chunks[group] = allocate(pair, count, sizeof *chunks);
        for (size_t i = 0; chunks && i < count && !pair->status; i++) {
            size_t at;
            chunks[i] = (fine || moon_reach_asked(reader->profile, &reader->model, group, (int64_t)i)) &&
                        pair_chunk_of(writer, reader, group, i, &at) && all_written(direction, writer, group, at);
        }
    }
}

/* ---- hit search ---- */

/* Clears in loadable[] the lengths (k + 1 scheduler blocks) that a group cannot load. A hit needs of full attention all
 * chunks, of a sliding window the last ones, of Mamba the state at its end; with EAGLE one chunk more, which it drops.
 */
static void limit_by_group(const struct moon_compat_engine *reader, size_t group, const bool *present, size_t prompts,
                           bool *loadable) {
    const struct moon_layout_group *its = &reader->groups[group];
    enum moon_spec_kind kind = its->spec.kind;
    int64_t block = its->block_tokens;
    size_t per = (size_t)(reader->model.scheduler_block_tokens / block), count = prompts * per;
    bool drop = kind != MOON_SPEC_MAMBA && moon_layout_group_eagle(&reader->model, group);
    bool slides = kind == MOON_SPEC_SLIDING_WINDOW || kind == MOON_SPEC_SLIDING_WINDOW_MLA;
    size_t need = count; /* chunks that must be there before the end */
    if (kind == MOON_SPEC_MAMBA)
        need = 1;
    else if (slides)
        need = (size_t)moon_ceil_divide(its->spec.window_tokens - 1, block) + drop;
    need = need > 0 ? need : 1;
    size_t run = 0, at = 0;
    for (size_t k = 0; k < prompts; k++) {
        size_t end = (k + 1) * per + drop;
        for (; at < end && at < count; at++)
            run = present[at] ? run + 1 : 0;
        loadable[k] &= end <= count && run >= (need < end ? need : end);
    }
}

/* For each prompt length the longest loadable one that it covers. */
static size_t *search_hits(struct pair *pair, const struct pair_direction *direction,
                           const struct pair_presence *presence) {
    const struct moon_compat_engine *reader = direction->reader;
    size_t prompts = direction->prompts;
    bool *loadable = allocate(pair, prompts, sizeof *loadable), drop = false;
    size_t *hits = allocate(pair, prompts, sizeof *hits);
    if (!loadable || !hits)
        return NULL;
    for (size_t k = 0; k < prompts; k++)
        loadable[k] = true;
    for (size_t group = 0; group < reader->model.group_count; group++) {
        limit_by_group(reader, group, presence->chunks[group], prompts, loadable);
        drop |= reader->groups[group].spec.kind != MOON_SPEC_MAMBA && moon_layout_group_eagle(&reader->model, group);
    }
    size_t best = 0;
    for (size_t k = 0; k < prompts; k++) { /* a dropped chunk must lie inside the prompt */
        if (!drop && loadable[k])
            best = k + 1;
        else if (drop && k > 0 && loadable[k - 1])
            best = k;
        hits[k] = best;
    }
    return hits;
}

/* The answered chunks whose key has the same text on both sides. */
static void find_equal(struct pair *pair, const struct pair_direction *direction, enum moon_compat_kind kind,
                       struct pair_presence *out) {
    const struct moon_compat_engine *reader = direction->reader;
    int64_t tokens = (int64_t)direction->prompts * reader->model.scheduler_block_tokens;
    for (size_t group = 0; group < reader->model.group_count && !pair->status; group++) {
        size_t count = moon_compat_chunks(reader, group, tokens);
        bool *chunks = out->chunks[group] = allocate(pair, count, sizeof *chunks);
        for (size_t i = 0; chunks && i < count && !pair->status; i++)
            chunks[i] = direction->answered.chunks[group][i] && pair->same_names &&
                        pair_hash_equal(pair, kind, direction, group, i);
    }
}

static void find_direction(struct pair *pair, struct pair_direction *direction) {
    const struct moon_compat_engine *reader = direction->reader;
    size_t tokens = pair->token_count[reader == &pair->engines[1]];
    direction->prompts = tokens == 0 ? 0 : (tokens - 1) / (size_t)reader->model.scheduler_block_tokens;
    find_presence(pair, direction, direction->writer, &direction->answered);
    find_presence(pair, direction, reader, &direction->own);
    if (!pair->status)
        direction->ideal = search_hits(pair, direction, &direction->answered);
    if (!pair->status)
        direction->own_hits = search_hits(pair, direction, &direction->own);
    for (int kind = 0; kind < MOON_COMPAT_KIND_COUNT && !pair->status; kind++) {
        if (!pair_judges(pair, (enum moon_compat_kind)kind))
            continue;
        struct pair_presence equal;
        find_equal(pair, direction, (enum moon_compat_kind)kind, &equal);
        if (!pair->status)
            direction->found[kind] = search_hits(pair, direction, &equal);
    }
}

void pair_meet(struct pair *pair) {
    for (int way = 0; way < 2 && !pair->status; way++)
        find_direction(pair, &pair->directions[way]);
}
