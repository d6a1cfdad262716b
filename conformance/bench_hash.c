/* SPDX-License-Identifier: Apache-2.0 */
/* Measures block hashing: one chain and a batch, beside libcrypto or xxHash alone and beside Python. */
#define OPENSSL_SUPPRESS_DEPRECATED /* the low-level calls are one of the candidates for the limit */
#include "conformance/bench_hash.h"

#include "ref/base/text.h"
#include "ref/hash/none_hash.h"

#include <openssl/evp.h>
#include <string.h>

/* A measurement and all that it works on. */
struct bench {
    const struct moon_bench_setting *setting;
    struct moon_memory *memory;
    struct moon_arena arena;
    struct moon_hasher hasher;
    struct moon_none_hash_value none_hash;
    struct moon_error *error;
    int64_t *tokens;
    uint8_t *hashes;
    size_t blocks;
    size_t digest_bytes;
    struct moon_text preimages; /* as they are */
    size_t *ends;
    uint8_t *padded;     /* with SHA-256 padding, for our own digest */
    size_t *padded_ends; /* in blocks of 64 bytes */
    EVP_MD *evp;
    EVP_MD_CTX *evp_context;
};

static void collect(void *context, uint64_t block, const void *bytes, size_t length) {
    struct bench *bench = context;
    moon_text_bytes(&bench->preimages, bytes, length);
    bench->ends[block] = bench->preimages.length;
}

static struct moon_chain_options chain_options(struct bench *bench, bool with_tap) {
    return (struct moon_chain_options){.profile = moon_profile_newest(),
                                       .block_tokens = bench->setting->block_tokens,
                                       .none_hash = bench->none_hash.bytes,
                                       .none_hash_bytes = bench->none_hash.length,
                                       .tap = {with_tap ? collect : NULL, bench}};
}

static int run_chain_with(struct bench *bench, bool with_tap) {
    struct moon_chain chain;
    const struct moon_chain_options options = chain_options(bench, with_tap);
    moon_chain_open(&chain, &bench->hasher, &options, bench->memory);
    int status = moon_chain_append(&chain, bench->tokens, bench->setting->tokens, bench->hashes, bench->error);
    moon_chain_close(&chain);
    return status;
}

static int run_chain(struct bench *bench) {
    return run_chain_with(bench, false);
}

static int run_batch(struct bench *bench) {
    struct moon_chain chains[MOON_BENCH_CHAINS];
    struct moon_chain_job jobs[MOON_BENCH_CHAINS];
    const struct moon_chain_options options = chain_options(bench, false);
    size_t share = bench->blocks / MOON_BENCH_CHAINS, given = 0;
    for (size_t i = 0; i < MOON_BENCH_CHAINS; i++) {
        size_t blocks = i + 1 < MOON_BENCH_CHAINS ? share : bench->blocks - given;
        moon_chain_open(&chains[i], &bench->hasher, &options, bench->memory);
        jobs[i] = (struct moon_chain_job){&chains[i], bench->tokens + given * options.block_tokens,
                                          blocks * options.block_tokens, bench->hashes + given * bench->digest_bytes};
        given += blocks;
    }
    int status = moon_chain_append_batch(jobs, MOON_BENCH_CHAINS, bench->error);
    for (size_t i = 0; i < MOON_BENCH_CHAINS; i++)
        moon_chain_close(&chains[i]);
    return status;
}

/* ---- digests alone ---- */

static int digest_xxhash(struct bench *bench) {
    const char *data = bench->preimages.data;
    for (size_t i = 0, start = 0; i < bench->blocks; start = bench->ends[i++])
        moon_xxh3_of(data + start, bench->ends[i] - start, bench->hashes + i * bench->digest_bytes);
    return 0;
}

static int digest_blocks(struct bench *bench) {
    for (size_t i = 0, start = 0; i < bench->blocks; start = bench->padded_ends[i++]) {
        struct moon_sha256 state;
        moon_sha256_start(&state);
        moon_sha256_blocks(&state, bench->padded + start * MOON_SHA256_BLOCK_BYTES, bench->padded_ends[i] - start,
                           bench->hasher.cpu.sha);
        moon_sha256_digest(&state, bench->hashes + i * bench->digest_bytes);
    }
    return 0;
}

/* All padded messages in two halves side by side, as if each half were one message: what the instructions can do. */
static int digest_pairs(struct bench *bench) {
    struct moon_sha256 a, b;
    size_t half = bench->padded_ends[bench->blocks - 1] / 2;
    moon_sha256_start(&a);
    moon_sha256_start(&b);
    moon_sha256_pair(&a, bench->padded, &b, bench->padded + half * MOON_SHA256_BLOCK_BYTES, half,
                     bench->hasher.cpu.sha);
    moon_sha256_digest(&a, bench->hashes);
    return 0;
}

static int digest_low_level(struct bench *bench) {
    const char *data = bench->preimages.data;
    for (size_t i = 0, start = 0; i < bench->blocks; start = bench->ends[i++]) {
        SHA256_CTX context;
        SHA256_Init(&context);
        SHA256_Update(&context, data + start, bench->ends[i] - start);
        SHA256_Final(bench->hashes + i * bench->digest_bytes, &context);
    }
    return 0;
}

static int digest_evp(struct bench *bench) {
    const char *data = bench->preimages.data;
    for (size_t i = 0, start = 0; i < bench->blocks; start = bench->ends[i++]) {
        EVP_DigestInit_ex2(bench->evp_context, NULL, NULL);
        EVP_DigestUpdate(bench->evp_context, data + start, bench->ends[i] - start);
        EVP_DigestFinal_ex(bench->evp_context, bench->hashes + i * bench->digest_bytes, NULL);
    }
    return 0;
}

/* ---- preparation ---- */

static bool allocate(struct bench *bench) {
    size_t blocks = bench->blocks;
    bench->tokens = moon_arena_array(&bench->arena, bench->setting->tokens, sizeof *bench->tokens);
    bench->hashes = moon_arena_array(&bench->arena, blocks, MOON_DIGEST_BYTES_MAX);
    bench->ends = moon_arena_array(&bench->arena, blocks, sizeof *bench->ends);
    bench->padded_ends = moon_arena_array(&bench->arena, blocks, sizeof *bench->padded_ends);
    return bench->tokens && bench->hashes && bench->ends && bench->padded_ends;
}

static bool pad_preimages(struct bench *bench) {
    bench->padded = moon_arena_alloc(&bench->arena, bench->preimages.length + bench->blocks * 128);
    size_t padded = 0;
    for (size_t i = 0, start = 0; bench->padded && i < bench->blocks; start = bench->ends[i++]) {
        uint8_t *message = bench->padded + padded * MOON_SHA256_BLOCK_BYTES;
        memcpy(message, bench->preimages.data + start, bench->ends[i] - start);
        padded += moon_sha256_pad(message, bench->ends[i] - start);
        bench->padded_ends[i] = padded;
    }
    return bench->padded != NULL;
}

static int prepare(struct bench *bench) {
    static const struct moon_string seed = {.bytes = "0", .length = 1};
    bench->blocks = bench->setting->tokens / bench->setting->block_tokens;
    bench->digest_bytes = moon_hash_algorithm_bytes(bench->setting->algorithm);
    bench->none_hash.length = bench->digest_bytes;
    if (!allocate(bench))
        return moon_fail(bench->error, MOON_ERR_MEMORY, NULL, "no memory for %zu tokens", bench->setting->tokens);
    for (size_t i = 0; i < bench->setting->tokens; i++)
        bench->tokens[i] = (int64_t)(i * 70217 % 151936);
    int status = moon_hasher_string(&bench->hasher, &seed, NULL, bench->none_hash.bytes, bench->error);
    if (status == 0)
        status = run_chain_with(bench, true);
    if (status == 0 && (bench->preimages.failed || !pad_preimages(bench) || !bench->evp_context ||
                        EVP_DigestInit_ex2(bench->evp_context, bench->evp, NULL) != 1))
        status = moon_fail(bench->error, MOON_ERR_MEMORY, NULL, "no memory for the pre-images");
    return status;
}

/* ---- measuring ---- */

/* Median time of `work`. */
static int measure(struct bench *bench, int (*work)(struct bench *), uint64_t *ns) {
    uint64_t times[MOON_BENCH_RUNS_MAX] = {0};
    uint32_t runs = bench->setting->runs;
    for (uint32_t i = 0; i < runs; i++) {
        uint64_t before = moon_bench_now_ns();
        int status = work(bench);
        if (status)
            return status;
        times[i] = moon_bench_now_ns() - before;
    }
    *ns = moon_bench_spread_of(times, runs).median_ns;
    return 0;
}

static int measure_sha256(struct bench *bench, struct moon_bench_times *out) {
    uint64_t evp_ns;
    int status = measure(bench, digest_blocks, &out->chain_digest_ns);
    if (status == 0)
        status = measure(bench, digest_pairs, &out->batch_digest_ns);
    if (status == 0)
        status = measure(bench, digest_low_level, &out->limit_ns);
    if (status == 0)
        status = measure(bench, digest_evp, &evp_ns);
    out->limit_name = "SHA256_Init/Update/Final";
    if (status == 0 && evp_ns < out->limit_ns) {
        out->limit_ns = evp_ns;
        out->limit_name = "EVP_Digest..., one context";
    }
    return status;
}

static int measure_xxhash(struct bench *bench, struct moon_bench_times *out) {
    int status = measure(bench, digest_xxhash, &out->limit_ns);
    out->chain_digest_ns = out->batch_digest_ns = out->limit_ns;
    out->limit_name = "XXH3_128bits";
    return status;
}

int moon_bench_hash(const struct moon_bench_setting *setting, struct moon_memory *memory, struct moon_bench_times *out,
                    struct moon_error *error) {
    static struct bench bench; /* large, and aligned for XXH3 */
    bench = (struct bench){.setting = setting, .memory = memory, .error = error};
    moon_arena_open(&bench.arena, memory);
    moon_text_open(&bench.preimages, memory);
    moon_hasher_open(&bench.hasher, setting->algorithm, memory);
    bench.evp = EVP_MD_fetch(NULL, "SHA256", NULL);
    bench.evp_context = EVP_MD_CTX_new();
    int status = prepare(&bench);
    if (status == 0)
        status = measure(&bench, run_batch, &out->batch_ns);
    if (status == 0)
        status = measure(&bench, run_chain, &out->chain_ns);
    if (status == 0)
        memcpy(out->last, bench.hashes + (bench.blocks - 1) * bench.digest_bytes, bench.digest_bytes);
    out->blocks = bench.blocks;
    if (status == 0)
        status = moon_hash_algorithm_is_sha256(setting->algorithm) ? measure_sha256(&bench, out)
                                                                   : measure_xxhash(&bench, out);
    EVP_MD_CTX_free(bench.evp_context);
    EVP_MD_free(bench.evp);
    moon_hasher_close(&bench.hasher);
    moon_text_close(&bench.preimages);
    moon_arena_close(&bench.arena);
    return status;
}
