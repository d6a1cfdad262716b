/* SPDX-License-Identifier: Apache-2.0 */
/* Values and keys of the adapter protocol's store calls. */
#ifndef MOON_DAEMON_STORE_VALUE_H
#define MOON_DAEMON_STORE_VALUE_H

#include "ref/base/bytes.h"
#include "ref/base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MOON_VALUE_HEX_BYTES_MAX  ((size_t)64 * 1024)         /* of a value that travels in the message */
#define MOON_VALUE_CALL_BYTES_MAX ((size_t)512 * 1024 * 1024) /* of all values, or all room, of one call */

/* DAEMON-020. A value: {"hex"}, {"file","offset","length"} (a relative name lies in `folder`; offset 0 and the rest of
 * the file when left out) or {"fill","bytes"}. Its bytes are made in `arena`. *left: how many bytes this call may still
 * have; what the value takes is subtracted. `source` names the message in errors. Returns 0, MOON_ERR_SCHEMA,
 * MOON_ERR_RANGE, MOON_ERR_LIMIT, MOON_ERR_IO (file) or MOON_ERR_MEMORY, with the member's place. */
int moon_store_value_read(struct moon_arena *arena, const char *source, const struct moon_json *value,
                          const char *folder, size_t *left, struct moon_piece *out, struct moon_error *error);

/* DAEMON-021. A key: text, or {"hex"}. Borrows the tree or the arena. Errors as above. */
int moon_store_key_read(struct moon_arena *arena, const char *source, const struct moon_json *key,
                        struct moon_bytes *out, struct moon_error *error);

/* XXH3-64 of the bytes of the pieces, in order, as 16 hex digits. */
void moon_store_digest(const struct moon_piece *pieces, size_t count, size_t length, char out[17]);

#ifdef __cplusplus
}
#endif
#endif
