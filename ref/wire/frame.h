/* SPDX-License-Identifier: Apache-2.0 */
/* coro_rpc frames: the fixed headers around requests and responses, read from the front of a byte stream. */
#ifndef MOON_WIRE_FRAME_H
#define MOON_WIRE_FRAME_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_WIRE_MAGIC = 21, /* first byte of every frame */
    MOON_WIRE_REQUEST_HEADER_BYTES = 20,
    MOON_WIRE_RESPONSE_HEADER_BYTES = 16,
    MOON_WIRE_FRAME_BYTES_MAX = 64 * 1024 * 1024, /* body and attachment that the tools accept */
};

/* err_code of a response (WIRE-006). */
enum moon_wire_rpc_error {
    MOON_WIRE_RPC_OK = 0,
    MOON_WIRE_RPC_INVALID_ARGUMENTS = 4,
    MOON_WIRE_RPC_NOT_REGISTERED = 11,
    MOON_WIRE_RPC_EXTENDED = 255, /* the body has a u16 code before the text */
};
/* Name of an err_code ("invalid_rpc_arguments"), "unknown" for a number that is none. */
const char *moon_wire_rpc_error_name(unsigned code);

enum moon_wire_direction { MOON_WIRE_REQUEST, MOON_WIRE_RESPONSE };

/* A frame. `function_id` is of requests, `error_code` of responses. body and attachment borrow the stream. */
struct moon_wire_frame {
    enum moon_wire_direction direction;
    uint32_t sequence;
    uint32_t function_id;
    uint8_t error_code;
    const uint8_t *body, *attachment;
    uint32_t body_length, attachment_length;
};

/* Reads the frame at the front of a stream of which `length` bytes have arrived. Whole: fills *frame, *used is its
 * length in bytes, the next frame starts there (frames may be pipelined). Not yet whole: *used is 0 and *needed tells
 * how long the stream must be at least before another call makes sense; *frame is untouched.
 * body and attachment together may have `limit_bytes` at most; a longer frame is refused as soon as its header is
 * there. Returns 0; MOON_ERR_SYNTAX (magic, version, serialisation or message type is another) or MOON_ERR_LIMIT: the
 * stream is lost then, a server closes the connection. Allocates nothing. */
int moon_wire_read_frame(enum moon_wire_direction direction, const void *stream, size_t length, size_t limit_bytes,
                         struct moon_wire_frame *frame, size_t *used, size_t *needed, struct moon_error *error);

/* Appends a frame. Fails only through out->failed. */
void moon_wire_write_frame(const struct moon_wire_frame *frame, struct moon_text *out);

/* The body of a response with an error code: a number and a text (WIRE-007). */
struct moon_wire_failure {
    unsigned code;
    const uint8_t *message; /* borrowed */
    size_t length;
};
/* Reads it; errors as moon_wire_decode. */
int moon_wire_read_failure(struct moon_arena *arena, const struct moon_wire_frame *frame,
                           struct moon_wire_failure *failure, struct moon_error *error);
/* Appends a whole response frame for call `sequence` with `code` (below 255) and `message`. */
void moon_wire_write_failure(uint32_t sequence, uint8_t code, const char *message, bool with_text,
                             struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
