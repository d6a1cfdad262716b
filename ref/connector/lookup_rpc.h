/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of the lookup channel, by release: requests of the scheduler side, replies of the worker of rank 0. */
#ifndef MOON_CONNECTOR_LOOKUP_RPC_H
#define MOON_CONNECTOR_LOOKUP_RPC_H

#include "ref/connector/lookup_worker.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_RPC_FRAMES_MAX = 4 };

/* Bytes of one frame. Borrowed. */
struct moon_rpc_frame {
    const uint8_t *bytes;
    size_t length;
};

/* A request to be sent. Its frames point into itself, so it is not copied; and at the hashes, which stay borrowed.
 * Memory: the hashes as hex, up to 0.23 only. */
struct moon_rpc_message {
    struct moon_rpc_frame frames[MOON_RPC_FRAMES_MAX];
    size_t count;
    uint8_t tokens[4], hash_bytes[2];
    struct moon_text list;
};
void moon_rpc_message_open(struct moon_rpc_message *message, struct moon_memory *memory);
void moon_rpc_message_close(struct moon_rpc_message *message); /* idempotent */

/* The request for a lookup (RPC-001 to RPC-003). num_tokens: 0 to 2^32 - 1.
 * Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED (OverflowError) for a number that does not fit. */
int moon_rpc_encode_lookup(const struct moon_profile *profile, int64_t num_tokens, const struct moon_hashes *hashes,
                           struct moon_rpc_message *message, struct moon_error *error);
/* The request for a reset (RPC-002). Only for a profile with reset_removes_keys. */
void moon_rpc_encode_reset(struct moon_rpc_message *message);

enum moon_rpc_kind { MOON_RPC_LOOKUP, MOON_RPC_RESET, MOON_RPC_UNKNOWN };

/* A request as the server reads it. hashes borrow from the frames or, up to 0.23, from `room`. A lookup's hash may be
 * 1 to 65535 bytes long. */
struct moon_rpc_request {
    enum moon_rpc_kind kind;
    int64_t num_tokens;
    struct moon_hashes hashes;
    struct moon_text room; /* at most half of the frame */
};
void moon_rpc_request_open(struct moon_rpc_request *request, struct moon_memory *memory);
void moon_rpc_request_close(struct moon_rpc_request *request); /* idempotent */

/* Reads any frames (RPC-001 to RPC-004). Returns 0, or fills error with frame and byte:
 *   MOON_ERR_SYNTAX  a frame is missing; up to 0.23 the hashes are no msgpack, or bytes follow it
 *   MOON_ERR_SCHEMA  up to 0.23: the hashes are no array of hex strings
 *   MOON_ERR_LIMIT   a release reads it: more than 2^53 tokens, a hash beyond 65535 bytes; up to 0.23 a map, hashes of
 *                    several lengths or without a byte
 *   MOON_ERR_MEMORY */
int moon_rpc_decode_request(const struct moon_profile *profile, const struct moon_rpc_frame *frames, size_t count,
                            struct moon_rpc_request *request, struct moon_error *error);

/* Appends the reply to a lookup (RPC-005, RPC-006). A group whose boundary is 0 is left out.
 * Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED (OverflowError) for a number that does not fit in 32 bits. */
int moon_rpc_encode_reply(const struct moon_profile *profile, const struct moon_lookup_result *result,
                          struct moon_text *out, struct moon_error *error);
/* Appends the reply to a reset or to an unknown request. */
void moon_rpc_encode_status(bool good, struct moon_text *out);

/* Reads any reply to a lookup (RPC-005 to RPC-007). A group that is not told gets boundary 0.
 * Returns 0, or
 *   MOON_ERR_REFUSED  from 0.29: ValueError, the length is none of a reply
 *   MOON_ERR_RANGE    up to 0.28: the integer is beyond 63 bits
 *   MOON_ERR_SYNTAX   strict, up to 0.28: the reply is not 4 bytes long
 *   MOON_ERR_LIMIT    a group is MOON_STORE_GROUPS_MAX or more */
int moon_rpc_decode_reply(const struct moon_connector *connector, const void *bytes, size_t length,
                          struct moon_lookup_result *result, struct moon_error *error);
/* True if the reply to a reset says that it succeeded (RPC-008). */
bool moon_rpc_decode_status(const void *bytes, size_t length);

#ifdef __cplusplus
}
#endif
#endif
