/* SPDX-License-Identifier: Apache-2.0 */
/* Reading keys: the fields from the end, then every split of what is left. */
#include "ref/key/parse.h"

#include "ref/key/field.h"

#include <assert.h>

/* What all readings of one key share: the fields, and the releases that write such fields and such a hash. */
struct fields {
    struct moon_key_text head; /* "[prefix@]model[namespace]" */
    struct moon_key_reading base;
    const struct moon_profile *wanted; /* NULL: any release */
};

static bool is_hex(struct moon_key_text text) {
    for (size_t i = 0; i < text.length; i++)
        if (!((text.bytes[i] >= '0' && text.bytes[i] <= '9') || (text.bytes[i] >= 'a' && text.bytes[i] <= 'f')))
            return false;
    return true;
}

/* Cuts "@" hash off the end. */
static int take_hash(struct fields *fields, struct moon_error *error) {
    struct moon_key_text *head = &fields->head, *hash = &fields->base.hash;
    size_t at = head->length;
    while (at > 0 && head->bytes[at - 1] != '@')
        at--;
    if (at == 0)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "no \"@\" in the key");
    *hash = (struct moon_key_text){head->bytes + at, head->length - at};
    head->length = at - 1;
    if (hash->length == 0 || hash->length % 32 != 0 || !is_hex(*hash))
        return moon_fail(
            error, MOON_ERR_SYNTAX, NULL,
            "after the last \"@\" (byte %zu) stand %zu bytes, which are no hash: 32 or 64 lower-case hex digits, "
            "in 0.22 and 0.23 a multiple",
            at, hash->length);
    fields->base.digests_of_16 = (int64_t)(hash->length / 32);
    fields->base.digests_of_32 = hash->length % 64 == 0 ? (int64_t)(hash->length / 64) : 0;
    return 0;
}

static int take_fields(struct fields *fields, bool *has_group, struct moon_error *error) {
    struct moon_pool_key *key = &fields->base.key;
    *has_group = moon_key_take_number(&fields->head, "@group:", &key->group_id);
    const struct {
        const char *label;
        int64_t *value;
    } rest[] = {
        {"@pp_rank:", &key->pp_rank}, {"@dcp", &key->dcp_rank}, {"@pcp", &key->pcp_rank}, {"@tp_rank:", &key->tp_rank}};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        if (!moon_key_take_number(&fields->head, rest[i].label, rest[i].value))
            return moon_fail(error, MOON_ERR_SYNTAX, NULL, "no \"%s\" with a decimal number before byte %zu",
                             rest[i].label, fields->head.length);
    return 0;
}

/* Whether a release writes such fields and such a hash at all; `has_group` false is the form of 0.21. */
static bool writes(const struct moon_profile *profile, bool has_group, size_t hash_length) {
    return (profile->group_numbering != MOON_GROUP_NONE) == has_group &&
           (profile->chunk_hash == MOON_CHUNK_HASH_JOINED || hash_length <= 64);
}

/* Narrows base.oldest..newest to the releases that write such a key. */
static int find_releases(struct fields *fields, bool has_group, struct moon_error *error) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count; i++) {
        if ((fields->wanted && fields->wanted != &all[i]) || !writes(&all[i], has_group, fields->base.hash.length))
            continue;
        if (!fields->base.oldest)
            fields->base.oldest = &all[i];
        fields->base.newest = &all[i];
    }
    if (fields->base.oldest)
        return 0;
    if (fields->wanted && (fields->wanted->group_numbering != MOON_GROUP_NONE) != has_group)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "%s writes keys %s \"@group:\" field", fields->wanted->name,
                         has_group ? "without a" : "with a");
    return moon_fail(error, MOON_ERR_SYNTAX, NULL,
                     "hashes of %zu hex digits are written by 0.22 and 0.23 only, in keys with a \"@group:\" field",
                     fields->base.hash.length);
}

/* One way to split the head: "[prefix@]model[namespace]". Positions of '@' and '/' are found once, not for every split.
 */
struct split {
    size_t prefix_length, model_at, model_end;
    bool uncut, plain;
};

/* Adds one split, if one of the releases can make it. */
static void add_reading(struct moon_key_readings *readings, const struct fields *fields, struct split split) {
    struct moon_key_reading reading = fields->base;
    struct moon_key_text head = fields->head;
    bool prefixed = split.model_at > 0, spaced = split.model_end < head.length;
    reading.key.cache_prefix = (struct moon_key_text){head.bytes, split.prefix_length};
    reading.key.model_name = (struct moon_key_text){head.bytes + split.model_at, split.model_end - split.model_at};
    reading.key.store_namespace = (struct moon_key_text){head.bytes + split.model_end, head.length - split.model_end};
    reading.uncut = split.uncut;
    reading.plain = split.plain;
    /* Both options came with a release and stayed, so a reading narrows from the oldest side. */
    while ((prefixed && !reading.oldest->cache_prefix) || (spaced && !reading.oldest->store_namespace))
        if (reading.oldest++ == reading.newest)
            return;
    if (reading.oldest->chunk_hash != MOON_CHUNK_HASH_JOINED && reading.digests_of_32)
        reading.digests_of_16 = 0;
    if (spaced)
        moon_store_namespace_read(reading.key.store_namespace, &reading.space);
    readings->total++;
    readings->possible += !reading.uncut;
    if (readings->count < MOON_KEY_READINGS_MAX)
        readings->list[readings->count++] = reading;
}

/* Offset after the last `c` in [0, length), 0 if there is none. */
static size_t after_last(const char *bytes, size_t length, char c) {
    while (length > 0 && bytes[length - 1] != c)
        length--;
    return length;
}

/* All splits whose namespace begins at `model_end`, of which those with an uncut model name or the others. */
static void add_splits(struct moon_key_readings *readings, const struct fields *fields, size_t model_end, bool uncut) {
    const char *bytes = fields->head.bytes;
    size_t after_slash = after_last(bytes, model_end, '/'), after_at = after_last(bytes, model_end, '@');
    bool seen_at = false;
    for (size_t i = 0; i <= model_end; i++) {
        /* i 0 is the split without a prefix; any other ends the prefix at the '@' before i. The prefix is never empty.
         */
        if (i != 0 && bytes[i - 1] != '@')
            continue;
        struct split split = {i ? i - 1 : 0, i, model_end, after_slash > i, false};
        split.plain = !split.uncut && after_at <= i && !seen_at;
        if (i != 1 && split.uncut == uncut)
            add_reading(readings, fields, split);
        seen_at |= i != 0;
    }
}

int moon_key_parse(const struct moon_profile *profile, struct moon_key_text text, struct moon_key_readings *readings,
                   struct moon_error *error) {
    struct fields fields = {.head = text, .wanted = profile};
    bool has_group = false;
    *readings = (struct moon_key_readings){0};
    int status = take_hash(&fields, error);
    if (status == 0)
        status = take_fields(&fields, &has_group, error);
    if (status == 0)
        status = find_releases(&fields, has_group, error);
    if (status != 0)
        return status;
    struct moon_store_namespace space;
    size_t space_length = moon_store_namespace_read(fields.head, &space);
    for (int uncut = 0; uncut < 2; uncut++) {
        if (space_length)
            add_splits(readings, &fields, fields.head.length - space_length, uncut);
        add_splits(readings, &fields, fields.head.length, uncut);
    }
    assert(readings->total > 0); /* the whole head as the model's name is always one */
    return 0;
}
