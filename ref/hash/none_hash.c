/* SPDX-License-Identifier: Apache-2.0 */
/* NONE_HASH, the parent of a chain's first block, by release, algorithm and PYTHONHASHSEED. */
#include "ref/hash/none_hash.h"

enum { RANDOM_BYTES = 32 };

static int draw(const struct moon_entropy *entropy, uint8_t out[RANDOM_BYTES], struct moon_error *error) {
    if (entropy->fill(entropy->context, out, RANDOM_BYTES))
        return moon_fail(error, MOON_ERR_IO, NULL, "no random bytes for NONE_HASH");
    return 0;
}

/* The seed text that a release makes up: 64 hex digits. */
static int draw_text(const struct moon_entropy *entropy, char out[2 * RANDOM_BYTES], struct moon_error *error) {
    static const char digits[] = "0123456789abcdef";
    uint8_t random[RANDOM_BYTES];
    int status = draw(entropy, random, error);
    for (size_t i = 0; status == 0 && i < RANDOM_BYTES; i++) {
        out[2 * i] = digits[random[i] >> 4];
        out[2 * i + 1] = digits[random[i] & 15];
    }
    return status;
}

int moon_none_hash(struct moon_hasher *hasher, const struct moon_profile *profile, const struct moon_string *seed,
                   const struct moon_entropy *entropy, const struct moon_sink *tap, struct moon_none_hash_value *out,
                   struct moon_error *error) {
    static const struct moon_string fixed = {.bytes = "vllm-none-hash", .length = 14};
    char text[2 * RANDOM_BYTES];
    struct moon_string drawn = {.bytes = text, .length = sizeof text};
    *out = (struct moon_none_hash_value){.length = moon_hash_algorithm_bytes(hasher->algorithm)};
    if (!seed && profile->none_hash == MOON_NONE_HASH_RANDOM_BYTES) {
        out->random = true;
        out->length = RANDOM_BYTES;
        return draw(entropy, out->bytes, error);
    }
    if (!seed && moon_hash_algorithm_is_sha256(hasher->algorithm)) {
        seed = &fixed;
    } else if (!seed) {
        int status = draw_text(entropy, text, error);
        if (status)
            return status;
        out->random = true;
        seed = &drawn;
    }
    return moon_hasher_string(hasher, seed, tap, out->bytes, error);
}
