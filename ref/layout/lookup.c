/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: namespaces and keys by release. */
#include "ref/layout/lookup.h"

#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Values of the middle counter: shards, T values, or TP ranks where DCP tells them apart. */
static int64_t count_middle(const struct moon_namespaces *walk) {
    const struct moon_layout_model *model = walk->model;
    if (moon_store_sharded(walk->selection))
        return walk->selection->space.store_tp;
    bool all_ranks = walk->profile->lookup_ranks >= MOON_LOOKUP_ALL_HEADS;
    if (all_ranks && model->dcp > 1)
        return model->tp;
    if (walk->profile->lookup_ranks == MOON_LOOKUP_ALL)
        return model->tp / moon_replication_factor(walk->profile, model, walk->group);
    return smaller(model->tp, moon_engine_heads(model));
}

void moon_namespaces_open(struct moon_namespaces *walk, const struct moon_profile *profile,
                          const struct moon_layout_model *model, const struct moon_store_selection *selection,
                          size_t group) {
    *walk = (struct moon_namespaces){.profile = profile, .model = model, .selection = selection, .group = group};
    walk->inner_end = model->pp;
    walk->middle_end = count_middle(walk);
    int64_t outer_end = profile->lookup_ranks >= MOON_LOOKUP_ALL_HEADS ? model->pcp : 1;
    walk->end = outer_end * walk->middle_end * walk->inner_end;
}

bool moon_namespaces_next(struct moon_namespaces *walk, struct moon_pool_key *key) {
    if (walk->next == walk->end)
        return false;
    int64_t at = walk->next++, t = at / walk->inner_end % walk->middle_end;
    bool by_rank = walk->profile->lookup_ranks >= MOON_LOOKUP_ALL_HEADS;
    *key = (struct moon_pool_key){
        .cache_prefix = walk->model->cache_prefix,
        .model_name = walk->model->model_name,
        .store_namespace = {walk->selection->text, walk->selection->text_length},
        .tp_rank = t,
        .pcp_rank = at / walk->inner_end / walk->middle_end,
        .dcp_rank = by_rank ? t % walk->model->dcp : 0,
        .pp_rank = at % walk->inner_end,
        .group_id = (int64_t)walk->group,
    };
    return true;
}

/* Everything a lookup needs at hand; one for the call. */
struct lookup {
    const struct moon_profile *profile;
    const struct moon_layout_model *model;
    const struct moon_store_selection *selection;
    const struct moon_hashes *hashes;
    int64_t tokens;
    struct moon_text *scratch;
    moon_key_receiver *receive;
    void *context;
};

/* Opens the walk through what is asked for in a group: its chunks, or every hash block. */
static void open_chunks(const struct lookup *lookup, size_t group, bool fine, struct moon_chunk_walk *walk) {
    const struct moon_layout_model *model = lookup->model;
    int64_t block = fine ? model->hash_block_tokens : model->groups[group].block_tokens;
    int64_t per = block / model->hash_block_tokens, hashes = (int64_t)lookup->hashes->count;
    int64_t chunks = smaller(lookup->tokens / block, hashes / per);
    struct moon_chunk_query query = {.block_size = block,
                                     .hash_block_size = model->hash_block_tokens,
                                     .token_len = chunks * block,
                                     .hash_count = hashes,
                                     .put_step = 1};
    int status = moon_chunk_walk_open(walk, lookup->profile, &query, NULL);
    assert(status == 0); /* whole chunks with all their hashes */
    (void)status;
}

static void ask_group(const struct lookup *lookup, size_t group, bool fine) {
    struct moon_chunk_walk walk;
    struct moon_chunk chunk;
    open_chunks(lookup, group, fine, &walk);
    while (moon_chunk_walk_next(&walk, &chunk)) {
        if (!fine && !moon_reach_asked(lookup->profile, lookup->model, group, chunk.id))
            continue;
        struct moon_namespaces spaces;
        struct moon_pool_key key;
        moon_namespaces_open(&spaces, lookup->profile, lookup->model, lookup->selection, group);
        while (moon_namespaces_next(&spaces, &key)) {
            moon_text_clear(lookup->scratch);
            moon_chunk_key(lookup->profile, &key, lookup->hashes, &chunk, lookup->scratch);
            if (lookup->scratch->failed)
                return;
            lookup->receive(lookup->context, (struct moon_key_text){lookup->scratch->data, lookup->scratch->length});
        }
    }
}

/* One field of rank 0 and the number that takes its place. */
struct replacement {
    const char *label;
    int64_t number;
    const char *at; /* of the label in the text, or its end */
};

static void find_label(struct replacement *replacement, const struct moon_text *text) {
    size_t length = strlen(replacement->label);
    const char *at = memmem(text->data, text->length, replacement->label, length);
    while (at && at[length] != '0') /* the text ends with a NUL, so at[length] can be read */
        at = memmem(at + 1, (size_t)(text->data + text->length - at - 1), replacement->label, length);
    replacement->at = at ? at : text->data + text->length;
}

/* Appends `text` with the first "@tp_rank:0" and the first "@pp_rank:0" replaced (LAYOUT-021). Neither text can overlap
 * the other, and no replacement makes a new one, so both are found in the text as it was. */
static void append_replaced(struct moon_text *out, const struct moon_text *text, int64_t t, int64_t pp) {
    struct replacement first = {"@tp_rank:", t, NULL}, second = {"@pp_rank:", pp, NULL};
    find_label(&first, text);
    find_label(&second, text);
    if (second.at < first.at) {
        struct replacement swap = first;
        first = second;
        second = swap;
    }
    const char *from = text->data, *end = text->data + text->length;
    const struct replacement *both[] = {&first, &second};
    for (int i = 0; i < 2 && both[i]->at != end; i++) {
        moon_text_bytes(out, from, (size_t)(both[i]->at - from));
        moon_text_format(out, "%s%" PRId64, both[i]->label, both[i]->number);
        from = both[i]->at + strlen(both[i]->label) + 1;
    }
    moon_text_bytes(out, from, (size_t)(end - from));
}

/* 0.21: keys of rank 0 with T and pp replaced in their text, pp outermost. */
static void ask_by_text(const struct lookup *lookup, struct moon_text *own_key) {
    struct moon_rank zero = moon_rank_at(lookup->model, 0);
    struct moon_pool_key own = moon_rank_key(lookup->profile, lookup->model, lookup->selection, &zero, 0, 0);
    int64_t ts = smaller(lookup->model->tp, moon_engine_heads(lookup->model));
    for (int64_t i = 0; i < lookup->model->pp * ts; i++) {
        struct moon_chunk_walk walk;
        struct moon_chunk chunk;
        open_chunks(lookup, 0, false, &walk);
        while (moon_chunk_walk_next(&walk, &chunk)) {
            moon_text_clear(own_key);
            moon_text_clear(lookup->scratch);
            moon_chunk_key(lookup->profile, &own, lookup->hashes, &chunk, own_key);
            lookup->scratch->failed |= own_key->failed;
            if (!own_key->failed)
                append_replaced(lookup->scratch, own_key, i % ts, i / ts);
            if (lookup->scratch->failed)
                return;
            lookup->receive(lookup->context, (struct moon_key_text){lookup->scratch->data, lookup->scratch->length});
        }
    }
}

int moon_lookup_keys(const struct moon_profile *profile, const struct moon_layout_model *model,
                     const struct moon_store_selection *selection, const struct moon_hashes *hashes,
                     int64_t aligned_tokens, struct moon_text *scratch, moon_key_receiver *receive, void *context,
                     struct moon_error *error) {
    const struct lookup lookup = {profile, model, selection, hashes, aligned_tokens, scratch, receive, context};
    bool fine = moon_fine_grained(profile, model);
    if (fine && moon_fine_refused(profile, model))
        return moon_refuse(error, "AssertionError",
                           "SlidingWindowManager does not support fine-grained (partial) cache hits");
    if (profile->lookup_ranks == MOON_LOOKUP_TEXTUAL) {
        struct moon_text own_key;
        moon_text_open(&own_key, scratch->memory);
        ask_by_text(&lookup, &own_key);
        moon_text_close(&own_key);
    } else {
        for (size_t group = 0; group < model->group_count && !scratch->failed; group++)
            ask_group(&lookup, group, fine);
    }
    return scratch->failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a key") : 0;
}
