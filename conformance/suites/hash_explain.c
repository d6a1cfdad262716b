/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the answer of the suite hash: each part with its rule and release, pre-images byte by byte. */
#include "conformance/suites/hash.h"

#include "ref/hash/annotate.h"

enum { BLOCKS_SHOWN_MAX = 4, PREIMAGE_SHOWN_MAX = 64 * 1024 };

static void tell_algorithm(const struct moon_profile *profile, const struct moon_hash_case *one,
                           struct moon_text *out) {
    bool pickle = moon_hash_algorithm_serialisation(one->algorithm) == MOON_PICKLE;
    moon_text_format(out, "release    %s (measured: vLLM %s)\n", profile->name, profile->version);
    moon_text_format(out, "algorithm  %s: %s over %s, %zu bytes [HASH-001, all releases]\n",
                     moon_hash_algorithm_name(one->algorithm),
                     moon_hash_algorithm_is_sha256(one->algorithm) ? "SHA-256" : "XXH3-128",
                     pickle ? "Python pickle, protocol 5" : "canonical CBOR",
                     moon_hash_algorithm_bytes(one->algorithm));
    moon_text_format(out, "block      %u tokens, full blocks only [HASH-004, all releases]\n",
                     (unsigned)one->block_tokens);
    if (one->lookahead_tokens > 0)
        moon_text_format(
            out,
            "           each hash covers %u tokens after the block too [HASH-080, 0.33; HASH-081: never with a "
            "connector]\n",
            (unsigned)one->lookahead_tokens);
}

static const char *none_hash_rule(const struct moon_hash_case *one, const struct moon_none_hash_value *none,
                                  const struct moon_text *preimage) {
    if (one->seed)
        return "digest of PYTHONHASHSEED as text [HASH-010, HASH-011, all releases]";
    if (!none->random)
        return "PYTHONHASHSEED is not set: digest of the fixed text \"vllm-none-hash\" [HASH-013, 0.29 on]";
    if (preimage->length > 0)
        return "PYTHONHASHSEED is not set: digest of a random text, drawn once a process [HASH-014, 0.29 on]";
    return "PYTHONHASHSEED is not set: 32 random bytes, drawn once a process [HASH-012, up to 0.28]";
}

static void tell_none_hash(const struct moon_hash_case *one, const struct moon_hash_result *result,
                           struct moon_text *out) {
    const struct moon_none_hash_value *none = &result->none_hash;
    const struct moon_text *preimage = &result->none_hash_preimage;
    moon_text_string(out, "\nNONE_HASH  ");
    moon_text_hex(out, none->bytes, none->length);
    moon_text_format(out, "\n           %s%s\n", none_hash_rule(one, none, preimage),
                     one->seed_from_environment && one->seed ? ", taken from the environment" : "");
    if (none->random)
        moon_text_string(out,
                         "           another process gets another value: its hashes never meet these; set the same "
                         "PYTHONHASHSEED everywhere\n");
    if (preimage->length > 0)
        moon_annotate(moon_hash_algorithm_serialisation(one->algorithm), preimage->data, preimage->length, out);
}

static void tell_string(const char *what, const struct moon_string *string, struct moon_text *out) {
    moon_text_format(out, "           %s \"", what);
    moon_text_bytes(out, string->bytes, string->length);
    moon_text_char(out, '"');
}

static void tell_lora(const struct moon_profile *profile, const struct moon_identity *identity, struct moon_text *out) {
    tell_string("LoRA", identity->lora_name, out);
    if (profile->extra_tagged) {
        moon_text_string(out, ", path \"");
        moon_text_bytes(out, identity->lora_path->bytes, identity->lora_path->length);
        moon_text_string(out, "\": in every block, tagged, with its path [HASH-062, HASH-064, 0.31 on]\n");
    } else {
        moon_text_string(out, ": in every block, the bare name, path ignored [HASH-061, HASH-064, up to 0.30]\n");
    }
}

static void tell_salt(const struct moon_string *salt, struct moon_text *out) {
    tell_string("cache salt", salt, out);
    moon_text_string(out, salt->length > 0 ? ": in block 0 only; the chain carries it on [HASH-068, all releases]\n"
                                           : ": empty, so none [HASH-068, all releases]\n");
}

static void tell_mm(const struct moon_profile *profile, const struct moon_hash_case *one, struct moon_text *out) {
    const struct moon_identity *identity = &one->identity;
    for (size_t i = 0; i < identity->mm_count; i++) {
        tell_string("item", &identity->mm[i].identifier, out);
        moon_text_format(out, " at token %lld, %lld long\n", (long long)identity->mm[i].offset,
                         (long long)identity->mm[i].length);
    }
    moon_text_string(out,
                     "           items are in every block that they overlap, with offset - block start [HASH-065, all "
                     "releases]\n");
    if (one->append_count > 1)
        moon_text_string(out, profile->mm_resume_overlapping
                                  ? "           appends look for items from the block on [HASH-066, 0.31 on]\n"
                                  : "           appends look at the last item only [HASH-067, up to 0.30]\n");
    if (moon_hash_algorithm_serialisation(one->algorithm) == MOON_PICKLE)
        moon_text_string(out, "           an identifier twice in one block: the pickle depends on object identity "
                              "[HASH-024, HASH-025, HASH-028]\n");
}

static void tell_identity(const struct moon_profile *profile, const struct moon_hash_case *one, struct moon_text *out) {
    const struct moon_identity *identity = &one->identity;
    moon_text_string(
        out, "\nextra keys order: LoRA, items, salt, embeddings; None if there is none [HASH-060, all releases]\n");
    if (identity->lora_name)
        tell_lora(profile, identity, out);
    if (identity->mm_count > 0)
        tell_mm(profile, one, out);
    if (identity->cache_salt)
        tell_salt(identity->cache_salt, out);
    if (identity->embeds)
        moon_text_format(out,
                         "           embeddings, %llu rows of %zu bytes: SHA-256 of the block's rows, in every block "
                         "[HASH-069, all releases]\n",
                         (unsigned long long)identity->embeds->rows, identity->embeds->row_bytes);
    if (one->embeddings_only)
        moon_text_string(out, "           prompt of embeddings: its token ids count as 0 [HASH-070, all releases]\n");
    if (one->masked)
        moon_text_string(out,
                         "           embedding positions of the mixed prompt count as token 0 [HASH-071, 0.29 on]\n");
}

static void tell_block(const struct moon_hash_case *one, const struct moon_hash_result *result, size_t block,
                       struct moon_text *out) {
    size_t start = block > 0 ? result->preimage_ends[block - 1] : 0, length = result->preimage_ends[block] - start;
    moon_text_format(out, "\nblock %zu    ", block);
    moon_text_hex(out, result->hashes + block * result->digest_bytes, result->digest_bytes);
    moon_text_format(out, "\n           tokens %zu to %zu; parent is %s [HASH-003, all releases]\n",
                     block * one->block_tokens, (block + 1) * one->block_tokens - 1,
                     block == 0 ? "NONE_HASH" : "the hash of the block before");
    if (length <= PREIMAGE_SHOWN_MAX)
        moon_annotate(moon_hash_algorithm_serialisation(one->algorithm), result->preimages.data + start, length, out);
    else
        moon_text_format(out, "           pre-image of %zu bytes is not shown\n", length);
}

static void tell_blocks(const struct moon_hash_case *one, const struct moon_hash_result *result,
                        struct moon_text *out) {
    size_t shown = result->blocks < BLOCKS_SHOWN_MAX ? result->blocks : BLOCKS_SHOWN_MAX;
    moon_text_format(out, "\n%zu tokens, %zu full blocks\n", one->tokens, result->blocks);
    for (size_t i = 0; i < shown && !result->preimages_left_out; i++)
        tell_block(one, result, i, out);
    if (result->preimages_left_out)
        moon_text_string(out, "The pre-images are more than 1 MiB and are not shown.\n");
    else if (shown < result->blocks)
        moon_text_format(out, "\n%zu more blocks go on in the same way.\n", result->blocks - shown);
}

int moon_hash_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error) {
    struct moon_hash_case one;
    struct moon_hash_result result;
    struct moon_error why = {.status = MOON_OK};
    int status = moon_hash_case_read(world, arena, profile, source, given, &one, &why);
    if (status == 0) {
        status = moon_hash_case_compute(world, arena, profile, &one, &result, &why);
        if (status == 0) {
            tell_algorithm(profile, &one, out);
            tell_none_hash(&one, &result, out);
            tell_identity(profile, &one, out);
            tell_blocks(&one, &result, out);
        }
        moon_hash_result_close(&result);
    }
    if (status == MOON_ERR_REFUSED)
        moon_text_format(out, "vLLM %s raises %s: %s\n", profile->version, why.type, why.message);
    else if (status) {
        if (error)
            *error = why;
        return status;
    }
    return out->failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for the explanation") : 0;
}
