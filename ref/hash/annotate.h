/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a pre-image back, element by element, for a person who looks for the byte that differs. */
#ifndef MOON_HASH_ANNOTATE_H
#define MOON_HASH_ANNOTATE_H

#include "ref/base/text.h"
#include "ref/hash/preimage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends one line an element: offset, bytes in hex (long contents are cut), meaning. Every byte belongs to one line.
 * Knows what moon_preimage_... can write, and no more of pickle and CBOR.
 * Returns 0, or MOON_ERR_SYNTAX after a last line "not well-formed" if the bytes are cut, contradict themselves or hold
 * more than one object. Memory failures are in out->failed. */
int moon_annotate(enum moon_serialisation serialisation, const void *bytes, size_t length, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
