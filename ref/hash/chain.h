/* SPDX-License-Identifier: Apache-2.0 */
/* Block hash chains: append tokens, get the hashes of the blocks that became full; one chain, or a batch of them. */
#ifndef MOON_HASH_CHAIN_H
#define MOON_HASH_CHAIN_H

#include "ref/hash/cpu.h"
#include "ref/hash/extra.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_BLOCK_TOKENS_MAX = 1 << 20,
    MOON_LOOKAHEAD_TOKENS_MAX = 4096,
};

/* Scratch space for hashing with one algorithm: the writer of pre-images, a running digest, what the CPU can do. Shared
 * by any number of chains. Asks for an alignment of 64 bytes: let the compiler place it. Thread rule: one thread at a
 * time. */
struct moon_hasher {
    enum moon_hash_algorithm algorithm;
    struct moon_cpu cpu; /* what is used of the CPU; members may be set to false after open */
    struct moon_preimage preimage;
    struct moon_digest digest;
};
void moon_hasher_open(struct moon_hasher *hasher, enum moon_hash_algorithm algorithm, struct moon_memory *memory);
void moon_hasher_close(struct moon_hasher *hasher); /* idempotent */
/* Digest of one string, as NONE_HASH is made of its seed (HASH-010). `out` gets moon_hash_algorithm_bytes() bytes.
 *   tap  gets the pre-image too; NULL: nobody
 * Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED (HASH-042). */
int moon_hasher_string(struct moon_hasher *hasher, const struct moon_string *string, const struct moon_sink *tap,
                       uint8_t out[MOON_DIGEST_BYTES_MAX], struct moon_error *error);

/* What a chain is opened with. All of it is borrowed until the chain is closed, except none_hash, which is copied.
 *   block_tokens      1 to MOON_BLOCK_TOKENS_MAX
 *   lookahead_tokens  0 to MOON_LOOKAHEAD_TOKENS_MAX; 0 wherever a connector is configured (HASH-081)
 *   none_hash         parent of block 0: 16 or 32 bytes (HASH-012: 32 is possible with every algorithm)
 *   identity          NULL: nothing but tokens
 *   tap               gets the bytes of every pre-image, in pieces, `block` telling which; its write may be NULL */
struct moon_chain_tap {
    void (*write)(void *context, uint64_t block, const void *bytes, size_t length);
    void *context;
};
struct moon_chain_options {
    const struct moon_profile *profile;
    uint32_t block_tokens;
    uint32_t lookahead_tokens;
    const uint8_t *none_hash;
    size_t none_hash_bytes;
    const struct moon_identity *identity;
    struct moon_chain_tap tap;
};

/* One chain. Private, except: blocks, the number of hashes so far. */
struct moon_chain {
    struct moon_hasher *hasher;
    struct moon_memory *memory;
    struct moon_chain_options options;
    uint64_t blocks;
    uint8_t parent[MOON_DIGEST_BYTES_MAX];
    size_t parent_bytes; /* may differ from digest_bytes for NONE_HASH (HASH-012) */
    size_t digest_bytes;
    size_t scan;      /* position in the identity's items */
    int64_t *pending; /* tokens that are in no full block yet, and look-ahead; allocated at the first need */
    size_t pending_tokens;
};

/* Opens a chain; allocates nothing. Fields out of range are the caller's error (asserted). */
void moon_chain_open(struct moon_chain *chain, struct moon_hasher *hasher, const struct moon_chain_options *options,
                     struct moon_memory *memory);
void moon_chain_close(struct moon_chain *chain); /* idempotent */

/* Number of hashes that appending `tokens` would give. */
size_t moon_chain_blocks_after(const struct moon_chain *chain, size_t tokens);

/* Appends tokens as one update of the request: the prompt is one append, each later one is a step's output (this
 * matters for HASH-066, HASH-067). `tokens` are ids: any int64, though real ones are 0 to 2^31-1 and faster. `hashes`
 * has room for moon_chain_blocks_after(chain, count) digests, one behind the other; nothing is written beyond that.
 * (HASH-003, HASH-004, HASH-080, HASH-100)
 *
 * Allocates at most once in a chain's life (rest of a block), apart from scratch space that grows to the largest block.
 * Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED (HASH-042); after a failure the chain can only be closed. */
int moon_chain_append(struct moon_chain *chain, const int64_t *tokens, size_t count, uint8_t *hashes,
                      struct moon_error *error);

/* One append of a batch; members as the parameters of moon_chain_append. */
struct moon_chain_job {
    struct moon_chain *chain;
    const int64_t *tokens;
    size_t count;
    uint8_t *hashes;
};

/* Does many appends to different chains, with equal results as one by one, but faster for the SHA-256 algorithms where
 * the CPU can work on several messages at once. The chains may differ in everything, but share one hasher. No chain
 * appears twice. Returns as moon_chain_append; after a failure all chains of the batch can only be closed. */
int moon_chain_append_batch(struct moon_chain_job *jobs, size_t count, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
