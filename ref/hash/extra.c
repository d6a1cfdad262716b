/* SPDX-License-Identifier: Apache-2.0 */
/* Extra keys: what besides its tokens makes a block's content, and so belongs into its hash. */
#include "ref/hash/extra.h"

enum { TAG_LORA = 1, TAG_MM, TAG_CACHE_SALT, TAG_PROMPT_EMBEDS };

static uint64_t mm_start(const struct moon_mm_item *item) {
    return (uint64_t)item->offset;
}

static uint64_t mm_end(const struct moon_mm_item *item) {
    return (uint64_t)item->offset + (uint64_t)item->length;
}

size_t moon_extra_resume(const struct moon_profile *profile, const struct moon_identity *identity, uint64_t start) {
    if (start == 0 || identity->mm_count == 0)
        return 0;
    if (!profile->mm_resume_overlapping)
        return identity->mm_count - 1;
    if (mm_end(&identity->mm[identity->mm_count - 1]) <= start)
        return 0;
    size_t low = 0,
           high = identity->mm_count; /* first item that ends after start; releases assume that ends are sorted too */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (mm_end(&identity->mm[middle]) < start + 1)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool mm_passed(const struct moon_mm_item *item, uint64_t start) {
    return start >= mm_end(item);
}

/* The order of the tests is that of the releases: an item that ends inside the block lets the scan go on, the first one
 * that does not ends it. */
static size_t find_mm(const struct moon_identity *identity, uint64_t start, uint64_t end, size_t *scan,
                      struct moon_extra *extra) {
    size_t found = 0, at = *scan;
    extra->mm_first = extra->mm_end = at;
    if (identity->mm_count == 0 || mm_end(&identity->mm[identity->mm_count - 1]) <= start)
        return 0;
    while (at < identity->mm_count && end > mm_start(&identity->mm[at])) {
        if (!mm_passed(&identity->mm[at], start)) {
            found++;
            extra->mm_end = at + 1;
            if (end < mm_end(&identity->mm[at]))
                break;
        }
        at++;
    }
    *scan = at;
    return found;
}

void moon_extra_find(const struct moon_identity *identity, uint64_t start, uint64_t end, size_t *scan,
                     struct moon_extra *extra) {
    extra->start = start;
    extra->end = end;
    extra->salt = start == 0 && identity->cache_salt && identity->cache_salt->length > 0;
    extra->count = find_mm(identity, start, end, scan, extra);
    extra->count += (size_t)(identity->lora_name != NULL) + extra->salt + (identity->embeds != NULL);
}

void moon_extra_rewind(const struct moon_identity *identity, uint64_t block_end, size_t *scan) {
    while (*scan > 0 && mm_end(&identity->mm[*scan - 1]) > block_end)
        (*scan)--;
}

static void write_tag(struct moon_preimage *preimage, uint32_t identity, const char *text, size_t length) {
    moon_preimage_str(preimage, &(struct moon_string){.bytes = text, .length = length, .identity = identity});
}

static void write_lora(bool tagged, const struct moon_identity *identity, struct moon_preimage *preimage) {
    if (!tagged) {
        moon_preimage_str(preimage, identity->lora_name);
        return;
    }
    moon_preimage_tuple_begin(preimage, 3);
    write_tag(preimage, TAG_LORA, "lora", 4);
    moon_preimage_str(preimage, identity->lora_name);
    moon_preimage_str(preimage, identity->lora_path);
    moon_preimage_tuple_end(preimage, 3);
}

static void write_mm(bool tagged, const struct moon_mm_item *item, uint64_t start, struct moon_preimage *preimage) {
    size_t count = tagged ? 3 : 2;
    moon_preimage_tuple_begin(preimage, count);
    if (tagged)
        write_tag(preimage, TAG_MM, "mm", 2);
    moon_preimage_str(preimage, &item->identifier);
    moon_preimage_int(preimage, item->offset - (int64_t)start);
    moon_preimage_tuple_end(preimage, count);
}

static void write_salt(bool tagged, const struct moon_string *salt, struct moon_preimage *preimage) {
    if (tagged) {
        moon_preimage_tuple_begin(preimage, 2);
        write_tag(preimage, TAG_CACHE_SALT, "cache_salt", 10);
    }
    moon_preimage_str(preimage, salt);
    if (tagged)
        moon_preimage_tuple_end(preimage, 2);
}

/* Rows beyond the tensor's end are absent, so a block behind it has the digest of nothing. */
static void write_embeds(bool tagged, const struct moon_embeds *embeds, const struct moon_extra *extra,
                         struct moon_preimage *preimage) {
    uint8_t digest[MOON_SHA256_BYTES];
    uint64_t end = extra->end < embeds->rows ? extra->end : embeds->rows;
    uint64_t start = extra->start < end ? extra->start : end;
    moon_sha256_of(embeds->bytes + start * embeds->row_bytes, (size_t)(end - start) * embeds->row_bytes, digest);
    if (tagged) {
        moon_preimage_tuple_begin(preimage, 2);
        write_tag(preimage, TAG_PROMPT_EMBEDS, "prompt_embeds", 13);
    }
    moon_preimage_bytes(preimage, &(struct moon_string){.bytes = (const char *)digest, .length = sizeof digest});
    if (tagged)
        moon_preimage_tuple_end(preimage, 2);
}

void moon_extra_write(const struct moon_profile *profile, const struct moon_identity *identity,
                      const struct moon_extra *extra, struct moon_preimage *preimage) {
    bool tagged = profile->extra_tagged;
    if (extra->count == 0) {
        moon_preimage_none(preimage);
        return;
    }
    moon_preimage_tuple_begin(preimage, extra->count);
    if (identity->lora_name)
        write_lora(tagged, identity, preimage);
    for (size_t i = extra->mm_first; i < extra->mm_end; i++)
        if (!mm_passed(&identity->mm[i], extra->start))
            write_mm(tagged, &identity->mm[i], extra->start, preimage);
    if (extra->salt)
        write_salt(tagged, identity->cache_salt, preimage);
    if (identity->embeds)
        write_embeds(tagged, identity->embeds, extra, preimage);
    moon_preimage_tuple_end(preimage, extra->count);
}

void moon_prompt_mask(const struct moon_profile *profile, int64_t *tokens, size_t count, const bool *is_token_ids) {
    if (!profile->embeds_mask || !is_token_ids)
        return;
    for (size_t i = 0; i < count; i++)
        if (!is_token_ids[i])
            tokens[i] = 0;
}
