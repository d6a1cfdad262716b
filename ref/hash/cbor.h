/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical CBOR of None, int, str, bytes and tuple: byte for byte what cbor2 writes with canonical=True. */
#ifndef MOON_HASH_CBOR_H
#define MOON_HASH_CBOR_H

#include "ref/base/error.h"
#include "ref/hash/bigint.h"
#include "ref/hash/object.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each function writes one object, or the head of one, to `sink`. They hold no state and allocate nothing. (HASH-040)
 */
void moon_cbor_none(struct moon_sink sink);
void moon_cbor_int(struct moon_sink sink, int64_t value);                     /* HASH-041 */
void moon_cbor_big(struct moon_sink sink, const struct moon_bigint *value);   /* HASH-041 */
void moon_cbor_bytes(struct moon_sink sink, const struct moon_string *bytes); /* identity does not matter */
/* The head of a tuple; its `count` items follow. */
void moon_cbor_tuple(struct moon_sink sink, size_t count);
/* Returns 0, or MOON_ERR_REFUSED (UnicodeEncodeError) for a string with a lone surrogate; then nothing is written.
 * (HASH-042) */
int moon_cbor_str(struct moon_sink sink, const struct moon_string *string, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
