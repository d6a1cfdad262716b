/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups: namespaces and keys by release. */
#include "ref/layout/lookup.h"

#include "ref/base/number.h"
#include "ref/layout/reach.h"
#include "ref/layout/replication.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

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
    return moon_smaller(model->tp, moon_engine_heads(model));
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
    int64_t at = walk->next++, pp = at % walk->inner_end, outer = at / walk->inner_end;
    if (walk->profile->lookup_pp_first) {
        pp = at / (walk->end / walk->inner_end);
        outer = at % (walk->end / walk->inner_end);
    }
    int64_t t = outer % walk->middle_end;
    bool by_rank = walk->profile->lookup_ranks >= MOON_LOOKUP_ALL_HEADS;
    *key = (struct moon_pool_key){
        .cache_prefix = walk->model->cache_prefix,
        .model_name = walk->model->model_name,
        .store_namespace = {walk->selection->text, walk->selection->text_length},
        .tp_rank = t,
        .pcp_rank = outer / walk->middle_end,
        .dcp_rank = by_rank ? t % walk->model->dcp : 0,
        .pp_rank = pp,
        .group_id = (int64_t)walk->group,
    };
    return true;
}

void moon_asked_open(struct moon_asked *asked, const struct moon_profile *profile,
                     const struct moon_layout_model *model, int64_t tokens, int64_t hash_count) {
    *asked = (struct moon_asked){.profile = profile,
                                 .model = model,
                                 .tokens = tokens,
                                 .hash_count = hash_count,
                                 .fine = moon_fine_grained(profile, model)};
}

static void open_chunks(struct moon_asked *asked) {
    const struct moon_layout_model *model = asked->model;
    int64_t block = asked->fine ? model->hash_block_tokens : model->groups[asked->next_group].block_tokens;
    struct moon_chunk_query query = {.block_size = block,
                                     .hash_block_size = model->hash_block_tokens,
                                     .token_len = asked->tokens,
                                     .hash_count = asked->hash_count,
                                     .put_step = 1};
    if (asked->profile->chunk_end_hash)
        query.token_len =
            moon_smaller(asked->tokens / block, asked->hash_count / (block / model->hash_block_tokens)) * block;
    int status = moon_chunk_walk_open(&asked->chunks, asked->profile, &query, NULL);
    assert(status == 0); /* whole chunks with all their hashes */
    (void)status;
    asked->open = true;
}

bool moon_asked_next(struct moon_asked *asked, size_t *group, struct moon_chunk *chunk) {
    for (; asked->next_group < asked->model->group_count; asked->next_group++, asked->open = false) {
        if (!asked->open)
            open_chunks(asked);
        while (moon_chunk_walk_next(&asked->chunks, chunk)) {
            if (!asked->fine && !moon_reach_asked(asked->profile, asked->model, asked->next_group, chunk->id))
                continue;
            *group = asked->next_group;
            return true;
        }
    }
    return false;
}

/* ---- keys ---- */

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

/* 0.21: the texts of rank 0 with T and pp replaced, pp outermost. */
static void add_edited(const struct moon_profile *profile, const struct moon_layout_model *model,
                       const struct moon_store_selection *selection, struct moon_key_list *list) {
    struct moon_rank zero = moon_rank_at(model, 0);
    struct moon_pool_key own = moon_rank_key(profile, model, selection, &zero, 0, 0);
    int64_t ts = moon_smaller(model->tp, moon_engine_heads(model));
    struct moon_text text, edited;
    moon_text_open(&text, list->memory);
    moon_text_open(&edited, list->memory);
    moon_key_prefix(profile, &own, &text);
    for (int64_t i = 0; i < model->pp * ts && !text.failed; i++) {
        moon_text_clear(&edited);
        append_replaced(&edited, &text, i % ts, i / ts);
        moon_key_list_identity_text(list, (struct moon_key_text){moon_text_value(&edited), edited.length});
    }
    list->failed |= text.failed || edited.failed;
    moon_text_close(&edited);
    moon_text_close(&text);
}

static void add_namespaces(const struct moon_profile *profile, const struct moon_layout_model *model,
                           const struct moon_store_selection *selection, size_t group, struct moon_key_list *list) {
    struct moon_namespaces walk;
    struct moon_pool_key key;
    moon_namespaces_open(&walk, profile, model, selection, group);
    while (moon_namespaces_next(&walk, &key) && !list->failed)
        moon_key_list_identity(list, profile, &key);
}

void moon_lookup_keys(const struct moon_profile *profile, const struct moon_layout_model *model,
                      const struct moon_store_selection *selection, const struct moon_hashes *hashes, int64_t tokens,
                      struct moon_key_list *list) {
    struct moon_asked asked;
    struct moon_chunk chunk;
    size_t group = 0, opened = 0;
    uint32_t first = 0, count = 0;
    moon_asked_open(&asked, profile, model, tokens, (int64_t)hashes->count);
    while (moon_asked_next(&asked, &group, &chunk) && !list->failed) {
        for (; opened <= group; opened++) {
            first = (uint32_t)list->identity_count;
            if (profile->lookup_edits_text)
                add_edited(profile, model, selection, list);
            else
                add_namespaces(profile, model, selection, opened, list);
            count = (uint32_t)list->identity_count - first;
        }
        uint32_t hash = moon_key_list_hash(list, hashes, &chunk);
        if (!profile->lookup_pp_first)
            moon_key_list_add_run(list, first, count, hash);
    }
    for (uint32_t i = 0; profile->lookup_pp_first && i < count; i++)
        for (uint32_t hash = 0; hash < list->hash_count; hash++)
            moon_key_list_add(list, i, hash);
}
