/* SPDX-License-Identifier: Apache-2.0 */
/* Member "block_hashes" of a case: the chained hashes of a prompt, as hex texts. */
#ifndef MOON_CONFORMANCE_SUITES_HASHES_H
#define MOON_CONFORMANCE_SUITES_HASHES_H

#include "ref/base/json.h"
#include "ref/key/chunks.h"

/* Reads the hashes, all of one length. Left out and not required: *out stays as it is. The bytes live in the arena.
 * Returns 0, MOON_ERR_SCHEMA with the place, or MOON_ERR_MEMORY. */
int moon_hashes_read(struct moon_arena *arena, const char *source, const struct moon_json *given, bool required,
                     struct moon_hashes *out, struct moon_error *error);

/* Hashes for a prompt that names none: hash i is the number i + 1 in 16 bytes, big endian. Returns 0 or
 * MOON_ERR_MEMORY.
 */
int moon_hashes_number(struct moon_arena *arena, int64_t count, struct moon_hashes *out, struct moon_error *error);

#endif
