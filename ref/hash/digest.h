/* SPDX-License-Identifier: Apache-2.0 */
/* The four hash algorithms, and the digest of a pre-image that arrives whole or in pieces. */
#ifndef MOON_HASH_DIGEST_H
#define MOON_HASH_DIGEST_H

#include "ref/hash/preimage.h"
#include "ref/hash/sha256.h"

#include <openssl/sha.h>
#define XXH_STATIC_LINKING_ONLY /* the state's size, so that it needs no heap */
#include <xxhash.h>

#ifdef __cplusplus
extern "C" {
#endif

enum moon_hash_algorithm { MOON_SHA256, MOON_SHA256_CBOR, MOON_XXHASH, MOON_XXHASH_CBOR, MOON_HASH_ALGORITHMS };
enum { MOON_DIGEST_BYTES_MAX = 32 };

/* "sha256", "sha256_cbor", "xxhash", "xxhash_cbor". (HASH-001) */
const char *moon_hash_algorithm_name(enum moon_hash_algorithm algorithm);
/* Returns 0, or MOON_ERR_REFUSED (ValueError) for any other name. (HASH-002) */
int moon_hash_algorithm_find(const char *name, enum moon_hash_algorithm *out, struct moon_error *error);
/* 32 or 16. (HASH-001) */
size_t moon_hash_algorithm_bytes(enum moon_hash_algorithm algorithm);
bool moon_hash_algorithm_is_sha256(enum moon_hash_algorithm algorithm);
enum moon_serialisation moon_hash_algorithm_serialisation(enum moon_hash_algorithm algorithm);

/* Digest of bytes that arrive in pieces. No heap. The type asks for an alignment of 64 bytes (XXH3): let the compiler
 * place it. Thread rule: one thread at a time. */
struct moon_digest {
    enum moon_hash_algorithm algorithm;
    SHA256_CTX sha256;
    XXH3_state_t xxh3;
};
void moon_digest_start(struct moon_digest *digest, enum moon_hash_algorithm algorithm);
void moon_digest_add(struct moon_digest *digest, const void *bytes, size_t length);
/* Writes moon_hash_algorithm_bytes() bytes. */
void moon_digest_end(struct moon_digest *digest, uint8_t out[MOON_DIGEST_BYTES_MAX]);

/* SHA-256 of `length` bytes in one go. */
void moon_sha256_of(const void *bytes, size_t length, uint8_t out[MOON_SHA256_BYTES]);
/* XXH3-128 (seed 0, canonical big endian) of `length` bytes in one go: 16 bytes. */
void moon_xxh3_of(const void *bytes, size_t length, uint8_t out[MOON_DIGEST_BYTES_MAX]);

#ifdef __cplusplus
}
#endif
#endif
