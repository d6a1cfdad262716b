/* SPDX-License-Identifier: Apache-2.0 */
/* Measures block hashing: one chain and a batch, beside libcrypto or xxHash alone and beside Python. */
#ifndef MOON_CONFORMANCE_BENCH_HASH_H
#define MOON_CONFORMANCE_BENCH_HASH_H

#include "conformance/bench_time.h"
#include "ref/hash/chain.h"

/* What is measured: `tokens` token ids (token i is i * 70217 mod 151936) in one chain, or spread over MOON_BENCH_CHAINS
 * chains. Each time is the median of `runs`. */
struct moon_bench_setting {
    enum moon_hash_algorithm algorithm;
    uint32_t block_tokens;
    size_t tokens;
    uint32_t runs;
};
enum {
    MOON_BENCH_CHAINS = 64,
    MOON_BENCH_TOKENS_MIN = MOON_BENCH_CHAINS * 256, /* a block for each chain */
    MOON_BENCH_TOKENS_MAX = 1 << 26,
};

/* Times in ns of CPU for all blocks. */
struct moon_bench_times {
    size_t blocks;
    uint64_t chain_ns, batch_ns; /* the work */
    /* Our digest alone, over the same pre-images, ready-made, in the same manner. */
    uint64_t chain_digest_ns, batch_digest_ns;
    /* The fastest call of libcrypto (SHA-256) or xxHash over the same pre-images, contiguous and ready-made, and which
     * call that was. */
    uint64_t limit_ns;
    const char *limit_name;
    uint8_t last[MOON_DIGEST_BYTES_MAX]; /* hash of the single chain's last block */
};

/* Measures one setting. Returns 0 or MOON_ERR_MEMORY. Takes the single thread that it is called on for a while. */
int moon_bench_hash(const struct moon_bench_setting *setting, struct moon_memory *memory, struct moon_bench_times *out,
                    struct moon_error *error);

#endif
