/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in words: each part with its rule and the releases that have it. */
#ifndef MOON_KEY_EXPLAIN_H
#define MOON_KEY_EXPLAIN_H

#include "ref/key/parse.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends the key as `profile` writes it, then a line for each of its parts: name, text, rule, requirement. */
void moon_key_explain(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_key_text hash,
                      struct moon_text *out);
/* Appends what moon_key_parse found: the verdict, then each reading with its releases and parts, then what the hash can
 * be. */
void moon_key_explain_readings(const struct moon_key_readings *readings, struct moon_text *out);
/* Appends one reading's hash: "one digest of 32 bytes (SHA-256)", or both where it can be two things. */
void moon_key_explain_hash(const struct moon_key_reading *reading, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
