/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons in what is stored and asked for: groups, ranks, sparse storing, roles. */
#include "ref/config/compat_pair.h"

#include <string.h>

static const char *sizes_text(struct pair *pair, const struct moon_compat_engine *engine) {
    const struct moon_layout_model *model = &engine->model;
    return pair_text(pair, "%s: TP %lld, PP %lld, PCP %lld, DCP %lld, %lld KV heads",
                     pair_name(pair, engine == &pair->engines[1]), (long long)model->tp, (long long)model->pp,
                     (long long)model->pcp, (long long)model->dcp, (long long)model->total_kv_heads);
}

static const char *reader_name(const struct pair *pair, const struct pair_direction *direction) {
    return pair_name(pair, direction->reader == &pair->engines[1]);
}

static const char *writer_name(const struct pair *pair, const struct pair_direction *direction) {
    return pair_name(pair, direction->writer == &pair->engines[1]);
}

static bool find_groups(struct pair *pair, const struct pair_direction *direction) {
    size_t asked = direction->reader->model.group_count, stored = direction->writer->model.group_count;
    if (asked <= stored)
        return false;
    bool renumbered = direction->reader->profile->group_numbering != direction->writer->profile->group_numbering;
    pair_find(pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_GROUPS, direction->bit,
              pair_text(pair, "%s asks for %zu KV cache groups, %s stores %zu; a hit needs all%s",
                        reader_name(pair, direction), asked, writer_name(pair, direction), stored,
                        renumbered ? " (the releases count groups differently)" : ""),
              "run the same model with the same groups on both sides, and releases that number groups alike");
    return true;
}

/* A rank's object that the reader asks for under a name that no rank of the writer uses. */
static bool find_ranks(struct pair *pair, const struct pair_direction *direction) {
    const struct moon_compat_engine *reader = direction->reader;
    for (size_t group = 0; group < reader->model.group_count && group < direction->writer->model.group_count; group++) {
        struct moon_namespaces walk;
        struct moon_pool_key key;
        moon_namespaces_open(&walk, reader->profile, &reader->model, &reader->selection, group);
        while (moon_namespaces_next(&walk, &key)) {
            if (moon_compat_identity_find(direction->writer, group, key.tp_rank, key.pcp_rank, key.dcp_rank,
                                          key.pp_rank))
                continue;
            const char *sizes[] = {sizes_text(pair, &pair->engines[0]), sizes_text(pair, &pair->engines[1])};
            if (sizes[0] && sizes[1])
                pair_find(
                    pair, MOON_COMPAT_BLOCKS, MOON_COMPAT_RANKS, direction->bit,
                    pair_text(pair,
                              "%s asks for \"@tp_rank:%lld@pcp%lld@dcp%lld@pp_rank:%lld\" of group %zu, which no rank "
                              "of %s stores (%s; %s)",
                              reader_name(pair, direction), (long long)key.tp_rank, (long long)key.pcp_rank,
                              (long long)key.dcp_rank, (long long)key.pp_rank, group, writer_name(pair, direction),
                              sizes[0], sizes[1]),
                    "use equal parallel sizes; or, from 0.30 on with one full attention group, the same "
                    "store_tp_size on both sides");
            return true;
        }
    }
    return false;
}

/* ---- what is stored ---- */

/* A chunk that the reader would find of its own, but not of the writer: why. */
static enum moon_compat_subject classify(const struct pair_direction *direction, size_t group, size_t chunk) {
    const struct moon_compat_engine *reader = direction->reader, *writer = direction->writer;
    size_t at;
    if (!pair_chunk_of(writer, reader, group, chunk, &at)) {
        bool joined = reader->profile->chunk_hash == MOON_CHUNK_HASH_JOINED ||
                      writer->profile->chunk_hash == MOON_CHUNK_HASH_JOINED;
        bool same_block = reader->groups[group].block_tokens == writer->groups[group].block_tokens;
        if (!same_block)
            return MOON_COMPAT_GROUPS;
        bool styles = joined && reader->profile->chunk_hash != writer->profile->chunk_hash;
        return styles ? MOON_COMPAT_CHUNK_HASH : MOON_COMPAT_STORED;
    }
    enum moon_spec_kind kind = writer->groups[group].spec.kind;
    if (kind == MOON_SPEC_MAMBA)
        return MOON_COMPAT_MAMBA;
    if (kind != MOON_SPEC_SLIDING_WINDOW && kind != MOON_SPEC_SLIDING_WINDOW_MLA)
        return MOON_COMPAT_STORED;
    bool widened =
        reader->profile->window_extra_tokens && !writer->profile->window_extra_tokens && reader->retained_tokens > 0;
    return widened ? MOON_COMPAT_EXTRA_WINDOW : MOON_COMPAT_WINDOW;
}

static const char *stored_text(struct pair *pair, const struct pair_direction *direction, size_t group,
                               enum moon_compat_subject subject) {
    const char *writer = writer_name(pair, direction), *reader = reader_name(pair, direction);
    switch (subject) {
    case MOON_COMPAT_GROUPS:
        return pair_text(pair, "blocks of group %zu are %lld tokens on %s and %lld on %s", group,
                         (long long)direction->writer->groups[group].block_tokens, writer,
                         (long long)direction->reader->groups[group].block_tokens, reader);
    case MOON_COMPAT_MAMBA:
        return pair_text(
            pair,
            "%s stores Mamba states of group %zu more sparsely than %s would (0.29 and later only where the core "
            "hands them off): shorter prefixes have no state",
            writer, group, reader);
    case MOON_COMPAT_WINDOW:
        return pair_text(
            pair,
            "%s stores the sliding window of group %zu more sparsely than %s asks (from 0.29 on by default only "
            "what the end of the prompt needs)",
            writer, group, reader);
    case MOON_COMPAT_EXTRA_WINDOW:
        return pair_text(
            pair, "%s (0.33) asks in group %zu for the window and %lld retained tokens, %s stores the window only",
            reader, group, (long long)direction->reader->retained_tokens, writer);
    default:
        return pair_text(
            pair, "%s leaves chunks of group %zu unwritten that %s asks for (saved to token %lld, striped by TP %lld)",
            writer, group, reader, (long long)direction->writer->saved_tokens, (long long)direction->writer->model.tp);
    }
}

static const char *stored_fix(enum moon_compat_subject subject) {
    switch (subject) {
    case MOON_COMPAT_GROUPS:
        return "use the same block sizes on both sides";
    case MOON_COMPAT_MAMBA:
        return "run releases on both sides that store Mamba states alike";
    case MOON_COMPAT_WINDOW:
        return "set the same prefix_cache_retention_interval (0.24 to 0.28: VLLM_PREFIX_CACHE_RETENTION_INTERVAL) on "
               "both "
               "sides; an interval that is given keeps prefixes of that grain";
    case MOON_COMPAT_EXTRA_WINDOW:
        return "run 0.33 on both sides, or neither";
    default:
        return "run the same release on both sides";
    }
}

/* First chunk of a group that the reader has of its own and not of the writer; false if there is none. */
static bool first_unanswered(const struct pair_direction *direction, size_t group, size_t *chunk) {
    const struct moon_compat_engine *reader = direction->reader;
    size_t count =
        moon_compat_chunks(reader, group, (int64_t)direction->prompts * reader->model.scheduler_block_tokens);
    for (*chunk = 0; *chunk < count; ++*chunk)
        if (direction->own.chunks[group][*chunk] && !direction->answered.chunks[group][*chunk])
            return true;
    return false;
}

/* Differences of what is stored, where groups and ranks are alike. */
static void find_stored(struct pair *pair, const struct pair_direction *direction) {
    size_t total = 0, own = 0;
    bool fewer = false;
    for (size_t k = 0; k < direction->prompts; k++) {
        total += direction->ideal[k];
        own += direction->own_hits[k];
        fewer |= direction->ideal[k] < direction->own_hits[k];
    }
    enum moon_compat_effect effect = total == 0 ? MOON_COMPAT_BLOCKS : MOON_COMPAT_LIMITS;
    if (own == 0 && total == 0 && direction->prompts > 0)
        pair_find(pair, effect, MOON_COMPAT_STORED, direction->bit,
                  pair_text(pair, "%s finds nothing even of what it stores itself", reader_name(pair, direction)),
                  "see what the release stores of such groups: 0.22 and 0.23 store nothing of mixed groups with EAGLE");
    if (own > 0 && direction->own_hits[direction->prompts - 1] + 1 < direction->prompts)
        pair_find(pair, MOON_COMPAT_WARNS, MOON_COMPAT_STORED, direction->bit,
                  pair_text(pair, "even of what it stores itself %s finds %zu of %zu blocks",
                            reader_name(pair, direction), direction->own_hits[direction->prompts - 1],
                            direction->prompts),
                  "0.22 and 0.23 leave keys unwritten under DCP with fewer KV heads than ranks: run 0.24 or later");
    bool told[MOON_COMPAT_SUBJECT_COUNT] = {[MOON_COMPAT_CHUNK_HASH] = true}; /* found before */
    for (size_t group = 0; group < direction->reader->model.group_count && fewer; group++) {
        size_t chunk;
        if (!first_unanswered(direction, group, &chunk))
            continue;
        enum moon_compat_subject subject = classify(direction, group, chunk);
        if (!told[subject])
            pair_find(pair, effect, subject, direction->bit, stored_text(pair, direction, group, subject),
                      stored_fix(subject));
        told[subject] = true;
    }
}

static void find_role(struct pair *pair, const struct pair_direction *direction) {
    const struct moon_compat_engine *writer = direction->writer, *reader = direction->reader;
    if (!writer->stores)
        pair_find(pair, MOON_COMPAT_IDLES, MOON_COMPAT_ROLE, direction->bit,
                  pair_text(pair, "%s stores nothing: %s", writer_name(pair, direction), writer->why_not_stores),
                  "meant so for a decoder; else kv_both, or save_decode_cache (0.29 on) to add what it decodes");
    if (!reader->loads)
        pair_find(pair, MOON_COMPAT_IDLES, MOON_COMPAT_ROLE, direction->bit,
                  pair_text(pair, "%s never looks up: %s", reader_name(pair, direction), reader->why_not_loads),
                  "leave enable_lookup out");
}

void pair_topology(struct pair *pair) {
    bool same_space = strcmp(pair->engines[0].selection.text, pair->engines[1].selection.text) == 0;
    for (int way = 0; way < 2; way++) {
        const struct pair_direction *direction = &pair->directions[way];
        bool groups = pair->comparable && find_groups(pair, direction);
        bool ranks = pair->comparable && same_space && find_ranks(pair, direction);
        if (pair->same_blocks && same_space && !groups && !ranks)
            find_stored(pair, direction);
    }
    for (int way = 0; way < 2; way++)
        find_role(pair, &pair->directions[way]);
}
