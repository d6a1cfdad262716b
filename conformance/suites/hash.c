/* SPDX-License-Identifier: Apache-2.0 */
/* The suite hash: the block hash chain of one request. */
#include "conformance/suites/hash.h"

#include "conformance/suites/refusal.h"

enum { HASHES_LISTED_MAX = 64 };

/* ---- computing ---- */

static void collect_string(void *context, const void *bytes, size_t length) {
    moon_text_bytes(context, bytes, length);
}

/* Collects the pre-images of a chain while they are few. */
static void collect_block(void *context, uint64_t block, const void *bytes, size_t length) {
    struct moon_hash_result *result = context;
    if (result->preimages_left_out)
        return;
    if (length > MOON_HASH_PREIMAGES_BYTES_MAX - result->preimages.length) {
        result->preimages_left_out = true;
        return;
    }
    moon_text_bytes(&result->preimages, bytes, length);
    result->preimage_ends[block] = result->preimages.length;
}

static size_t count_blocks(const struct moon_hash_case *one) {
    return one->tokens < one->lookahead_tokens ? 0 : (one->tokens - one->lookahead_tokens) / one->block_tokens;
}

static int append_all(struct moon_chain *chain, const struct moon_hash_case *one, struct moon_hash_result *out,
                      struct moon_error *error) {
    for (size_t i = 0; i < one->append_count; i++) {
        const struct moon_hash_append *append = &one->appends[i];
        uint8_t *hashes = out->hashes + chain->blocks * out->digest_bytes;
        int status = moon_chain_append(chain, append->tokens, append->count, hashes, error);
        if (status)
            return status;
        out->block_counts[i] = (size_t)chain->blocks;
    }
    return 0;
}

static int compute_chain(struct moon_hasher *hasher, struct moon_arena *arena, const struct moon_profile *profile,
                         const struct moon_hash_case *one, struct moon_hash_result *out, struct moon_error *error) {
    const struct moon_chain_options options = {.profile = profile,
                                               .block_tokens = one->block_tokens,
                                               .lookahead_tokens = one->lookahead_tokens,
                                               .none_hash = out->none_hash.bytes,
                                               .none_hash_bytes = out->none_hash.length,
                                               .identity = &one->identity,
                                               .tap = {collect_block, out}};
    struct moon_chain chain;
    out->blocks = count_blocks(one);
    out->digest_bytes = moon_hash_algorithm_bytes(one->algorithm);
    out->hashes = moon_arena_array(arena, out->blocks, out->digest_bytes);
    out->preimage_ends = moon_arena_array(arena, out->blocks, sizeof *out->preimage_ends);
    out->block_counts = moon_arena_array(arena, one->append_count, sizeof *out->block_counts);
    if (!out->hashes || !out->preimage_ends || !out->block_counts)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for %zu hashes", out->blocks);
    moon_chain_open(&chain, hasher, &options, arena->memory);
    int status = append_all(&chain, one, out, error);
    moon_chain_close(&chain);
    return status;
}

int moon_hash_case_compute(const struct moon_suite_world *world, struct moon_arena *arena,
                           const struct moon_profile *profile, const struct moon_hash_case *one,
                           struct moon_hash_result *out, struct moon_error *error) {
    const struct moon_entropy entropy = {world->entropy, world->context};
    struct moon_hasher hasher;
    *out = (struct moon_hash_result){.blocks = 0};
    moon_text_open(&out->none_hash_preimage, arena->memory);
    moon_text_open(&out->preimages, arena->memory);
    moon_hasher_open(&hasher, one->algorithm, arena->memory);
    const struct moon_sink tap = {collect_string, &out->none_hash_preimage};
    int status = moon_none_hash(&hasher, profile, one->seed, &entropy, &tap, &out->none_hash, error);
    if (status == 0)
        status = compute_chain(&hasher, arena, profile, one, out, error);
    if (status == 0 && (out->preimages.failed || out->none_hash_preimage.failed))
        status = moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for the pre-images");
    moon_hasher_close(&hasher);
    return status;
}

void moon_hash_result_close(struct moon_hash_result *result) {
    moon_text_close(&result->none_hash_preimage);
    moon_text_close(&result->preimages);
}

/* ---- the answer ---- */

static struct moon_json *hash_at(struct moon_arena *arena, const struct moon_hash_result *result, size_t block) {
    return moon_json_hex(arena, result->hashes + block * result->digest_bytes, result->digest_bytes);
}

/* Long chains are told by samples and one digest over all hashes. */
static void answer_samples(struct moon_arena *arena, const struct moon_hash_result *result, struct moon_json *answer) {
    const size_t at[] = {0, 1, result->blocks / 2, result->blocks - 1};
    uint8_t digest[MOON_SHA256_BYTES];
    struct moon_json *samples = moon_json_object(arena);
    moon_json_set(arena, answer, "block_hash_count", moon_json_uint(arena, result->blocks));
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        char *name = moon_arena_format(arena, "%zu", at[i]);
        if (name)
            moon_json_set(arena, samples, name, hash_at(arena, result, at[i]));
        else
            samples = NULL;
    }
    moon_json_set(arena, answer, "block_hashes_sampled", samples);
    moon_sha256_of(result->hashes, result->blocks * result->digest_bytes, digest);
    moon_json_set(arena, answer, "block_hashes_sha256", moon_json_hex(arena, digest, sizeof digest));
}

static void answer_hashes(struct moon_arena *arena, const struct moon_hash_result *result, struct moon_json *answer) {
    struct moon_json *hashes = moon_json_array(arena);
    for (size_t i = 0; i < result->blocks; i++)
        moon_json_push(hashes, hash_at(arena, result, i));
    moon_json_set(arena, answer, "block_hashes", hashes);
}

static void answer_preimages(struct moon_arena *arena, const struct moon_hash_result *result,
                             struct moon_json *answer) {
    struct moon_json *preimages = moon_json_array(arena);
    size_t start = 0;
    for (size_t i = 0; i < result->blocks; i++) {
        size_t end = result->preimage_ends[i];
        moon_json_push(preimages, moon_json_hex(arena, result->preimages.data + start, end - start));
        start = end;
    }
    moon_json_set(arena, answer, "preimages", preimages);
}

static struct moon_json *build_answer(struct moon_arena *arena, const struct moon_hash_case *one,
                                      const struct moon_hash_result *result) {
    const struct moon_none_hash_value *none = &result->none_hash;
    struct moon_json *answer = moon_json_object(arena), *counts = moon_json_array(arena);
    moon_json_set(arena, answer, "random", moon_json_bool(arena, none->random));
    moon_json_set(arena, answer, "none_hash_len", moon_json_uint(arena, none->length));
    moon_json_set(arena, answer, "none_hash", moon_json_hex(arena, none->bytes, none->length));
    if (result->none_hash_preimage.length > 0)
        moon_json_set(arena, answer, "none_hash_preimage",
                      moon_json_hex(arena, result->none_hash_preimage.data, result->none_hash_preimage.length));
    if (result->blocks > HASHES_LISTED_MAX)
        answer_samples(arena, result, answer);
    else
        answer_hashes(arena, result, answer);
    for (size_t i = 0; i < one->append_count; i++)
        moon_json_push(counts, moon_json_uint(arena, result->block_counts[i]));
    moon_json_set(arena, answer, "block_counts", counts);
    if (!result->preimages_left_out)
        answer_preimages(arena, result, answer);
    return answer;
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    struct moon_hash_case one;
    struct moon_hash_result computed;
    struct moon_error why = {0};
    struct moon_json *built = NULL;
    int status = moon_hash_case_read(world, arena, profile, source, given, &one, &why);
    if (status == 0) {
        status = moon_hash_case_compute(world, arena, profile, &one, &computed, &why);
        if (status == 0)
            built = build_answer(arena, &one, &computed);
        moon_hash_result_close(&computed);
    }
    return moon_suite_end(arena, status, built, &why, result, error);
}

static const char *const optional[] = {"preimages", "none_hash_preimage", NULL};

const struct moon_suite moon_suite_hash = {
    .name = "hash", .answer = answer, .explain = moon_hash_explain, .draw = moon_hash_draw, .optional = optional};
