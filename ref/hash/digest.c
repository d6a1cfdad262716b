/* SPDX-License-Identifier: Apache-2.0 */
/* The four hash algorithms, and the digest of a pre-image that arrives whole or in pieces. */
/* The low-level calls need no heap, and cost half of what EVP does on messages as short as these. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "ref/hash/digest.h"

#include <string.h>

static const char *const names[MOON_HASH_ALGORITHMS] = {"sha256", "sha256_cbor", "xxhash", "xxhash_cbor"};

const char *moon_hash_algorithm_name(enum moon_hash_algorithm algorithm) {
    return names[algorithm];
}

int moon_hash_algorithm_find(const char *name, enum moon_hash_algorithm *out, struct moon_error *error) {
    for (int i = 0; i < MOON_HASH_ALGORITHMS; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (enum moon_hash_algorithm)i;
            return 0;
        }
    return moon_refuse(error, "ValueError", "Unsupported hash function: %s", name);
}

bool moon_hash_algorithm_is_sha256(enum moon_hash_algorithm algorithm) {
    return algorithm == MOON_SHA256 || algorithm == MOON_SHA256_CBOR;
}

size_t moon_hash_algorithm_bytes(enum moon_hash_algorithm algorithm) {
    return moon_hash_algorithm_is_sha256(algorithm) ? MOON_SHA256_BYTES : sizeof(XXH128_canonical_t);
}

enum moon_serialisation moon_hash_algorithm_serialisation(enum moon_hash_algorithm algorithm) {
    return algorithm == MOON_SHA256 || algorithm == MOON_XXHASH ? MOON_PICKLE : MOON_CBOR;
}

void moon_digest_start(struct moon_digest *digest, enum moon_hash_algorithm algorithm) {
    digest->algorithm = algorithm;
    if (moon_hash_algorithm_is_sha256(algorithm)) {
        SHA256_Init(&digest->sha256);
    } else {
        XXH3_INITSTATE(&digest->xxh3);
        XXH3_128bits_reset(&digest->xxh3);
    }
}

void moon_digest_add(struct moon_digest *digest, const void *bytes, size_t length) {
    if (moon_hash_algorithm_is_sha256(digest->algorithm))
        SHA256_Update(&digest->sha256, bytes, length);
    else
        XXH3_128bits_update(&digest->xxh3, bytes, length);
}

static void write_canonical(XXH128_hash_t hash, uint8_t out[MOON_DIGEST_BYTES_MAX]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, canonical.digest, sizeof canonical.digest);
}

void moon_digest_end(struct moon_digest *digest, uint8_t out[MOON_DIGEST_BYTES_MAX]) {
    if (moon_hash_algorithm_is_sha256(digest->algorithm))
        SHA256_Final(out, &digest->sha256);
    else
        write_canonical(XXH3_128bits_digest(&digest->xxh3), out);
}

void moon_sha256_of(const void *bytes, size_t length, uint8_t out[MOON_SHA256_BYTES]) {
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes, length);
    SHA256_Final(out, &context);
}

void moon_xxh3_of(const void *bytes, size_t length, uint8_t out[MOON_DIGEST_BYTES_MAX]) {
    write_canonical(XXH3_128bits(bytes, length), out);
}
