/* SPDX-License-Identifier: Apache-2.0 */
/* Extra keys: what besides its tokens makes a block's content, and so belongs into its hash. */
#ifndef MOON_HASH_EXTRA_H
#define MOON_HASH_EXTRA_H

#include "ref/hash/digest.h"
#include "ref/key/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An image, a sound, ... in the prompt. offset and length in tokens, 0 to 2^53. */
struct moon_mm_item {
    struct moon_string identifier;
    int64_t offset;
    int64_t length;
};

/* The prompt's embeddings: `rows` rows of row_bytes bytes, one a token, in the tensor's own type. */
struct moon_embeds {
    const uint8_t *bytes;
    size_t row_bytes;
    uint64_t rows;
};

/* What a request is besides its tokens. Borrowed by the chain, which must not outlive it. NULL and 0: not there.
 * mm: in the order of the request, which is sorted by offset. lora_name and lora_path come together. */
struct moon_identity {
    const struct moon_string *lora_name;
    const struct moon_string *lora_path;
    const struct moon_string *cache_salt;
    const struct moon_mm_item *mm;
    size_t mm_count;
    const struct moon_embeds *embeds;
};

/* The extra keys of one block. */
struct moon_extra {
    size_t count; /* keys; 0: None */
    bool salt;
    size_t mm_first, mm_end; /* of these, the items that overlap the block */
    uint64_t start, end;     /* the block's tokens, look-ahead included */
};

/* Where the scan of items begins when an append starts at token `start`: HASH-066, HASH-067 by profile. */
size_t moon_extra_resume(const struct moon_profile *profile, const struct moon_identity *identity, uint64_t start);

/* Finds the extra keys of the tokens [start, end) and moves *scan to where the next block goes on. (HASH-060, -064,
 * -065, -068) */
void moon_extra_find(const struct moon_identity *identity, uint64_t start, uint64_t end, size_t *scan,
                     struct moon_extra *extra);

/* With look-ahead: moves *scan back over the items that reach into the block after `block_end`. (HASH-080) */
void moon_extra_rewind(const struct moon_identity *identity, uint64_t block_end, size_t *scan);

/* Writes the keys as the profile shapes them: None, or a tuple. (HASH-061, HASH-062, HASH-069) */
void moon_extra_write(const struct moon_profile *profile, const struct moon_identity *identity,
                      const struct moon_extra *extra, struct moon_preimage *preimage);

/* Replaces the ids that an embedding stands for by 0, where the profile does so. (HASH-071)
 *   is_token_ids  one entry a token: false at embeddings; NULL changes nothing */
void moon_prompt_mask(const struct moon_profile *profile, int64_t *tokens, size_t count, const bool *is_token_ids);

#ifdef __cplusplus
}
#endif
#endif
