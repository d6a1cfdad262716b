/* SPDX-License-Identifier: Apache-2.0 */
/* A captured Mooncake stream in words: frame by frame, with the names of functions and fields. */
#ifndef MOON_CONFORMANCE_WIRE_DECODE_H
#define MOON_CONFORMANCE_WIRE_DECODE_H

#include "ref/base/text.h"
#include "ref/wire/release.h"

/* What the bytes at the front of a stream are taken for. */
enum moon_wire_kind_of_frame {
    MOON_WIRE_ANY, /* guessed, for each frame */
    MOON_WIRE_RPC_REQUEST,
    MOON_WIRE_RPC_RESPONSE,
    MOON_WIRE_HANDSHAKE,
    MOON_WIRE_DATA_REQUEST,
    MOON_WIRE_DATA_ANSWER,
};

/* Turns a file's content into bytes: hex digits and white space only are hex, all else is taken as it is. Replaces the
 * content of `text`. Returns 0, or MOON_ERR_SYNTAX (no byte at all, an odd number of digits) or MOON_ERR_MEMORY. */
int moon_wire_unhex(struct moon_text *text, struct moon_error *error);

/* Appends the stream in words. `release` NULL tries all, newest first. Errors inside of a frame are told in the words,
 * and the next frame follows; when the start of the next frame cannot be found, the words say so and end. *faults
 * counts both. Returns 0; MOON_ERR_SYNTAX when the first bytes are no frame at all; MOON_ERR_MEMORY. */
int moon_wire_decode_stream(const void *stream, size_t length, enum moon_wire_kind_of_frame kind,
                            const struct moon_wire_release *release, struct moon_text *words, size_t *faults,
                            struct moon_error *error);

#endif
