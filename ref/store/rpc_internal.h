/* SPDX-License-Identifier: Apache-2.0 */
/* What server and client of remote calls share: the buffer of arriving bytes, records, the keys of a call. */
#ifndef MOON_STORE_RPC_INTERNAL_H
#define MOON_STORE_RPC_INTERNAL_H

#include "ref/store/rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bytes that arrive (CALL-005) */

enum { MOON_RPC_INPUT_BYTES_FIRST = 4096 };

/* There is always room for at least one byte behind `filled`, so that a stream's room() needs no memory. */
struct moon_rpc_input {
    struct moon_memory *memory;
    uint8_t *data;
    size_t capacity, filled;
};
/* Returns 0 or MOON_ERR_MEMORY. */
int moon_rpc_input_open(struct moon_rpc_input *input, struct moon_memory *memory);
void moon_rpc_input_close(struct moon_rpc_input *input); /* idempotent; also of one that is all zero */
size_t moon_rpc_input_room(const struct moon_rpc_input *input, void **into);
/* Drops `used` bytes from the front. `needed`: length of the frame that is then at the front, as far as it is known;
 * the buffer doubles if it is full and the frame is longer, and is small again when nothing is left. Returns 0 or
 * MOON_ERR_MEMORY. */
int moon_rpc_input_consume(struct moon_rpc_input *input, size_t used, size_t needed);

/* ---- keys of a call's arguments: "key", "keys", "object_meta", "object_metas", whichever they have */

struct moon_rpc_keys {
    const struct moon_wire_value *at;
    size_t left;
};
struct moon_rpc_keys moon_rpc_keys_of(const struct moon_wire_value *arguments);
/* Takes the next one; false: there is none. */
bool moon_rpc_keys_next(struct moon_rpc_keys *keys, struct moon_bytes *key);

/* ---- records (CALL-030, CALL-031); only to be called with a recorder */

/* A frame that is sent or has been received.
 *   ordinal    of the frame in its direction on its stream
 *   arguments  of the call; NULL: not known
 *   result     of an answer; NULL: a request, or an error answer */
struct moon_rpc_message {
    const struct moon_stream *stream;
    enum moon_record_kind kind;
    uint64_t ordinal, op;
    const char *what;
    const struct moon_wire_value *arguments, *result;
};
/* Records it and returns its id. */
uint64_t moon_rpc_record(struct moon_recorder *recorder, const struct moon_rpc_message *message);
/* Records each extent in memory that `message`, an answer with the id `msg` to a request of sent_ns, tells of. */
void moon_rpc_record_extents(struct moon_recorder *recorder, const struct moon_rpc_message *message, uint64_t msg,
                             moon_ns sent_ns);

#ifdef __cplusplus
}
#endif
#endif
