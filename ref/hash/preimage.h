/* SPDX-License-Identifier: Apache-2.0 */
/* One writer of hashed objects for both serialisations, so that what is hashed is written down once. */
#ifndef MOON_HASH_PREIMAGE_H
#define MOON_HASH_PREIMAGE_H

#include "ref/hash/pickle.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_serialisation { MOON_PICKLE, MOON_CBOR };

/* Writes objects one after another. Owns the pickler's buffers. Thread rule: one thread at a time. */
struct moon_preimage {
    enum moon_serialisation serialisation;
    struct moon_sink sink;
    struct moon_pickle pickle;
    int status;               /* first failure since begin; the error of a refusal is in `error` */
    struct moon_error *error; /* given to begin; may be NULL */
};

void moon_preimage_open(struct moon_preimage *preimage, enum moon_serialisation serialisation,
                        struct moon_memory *memory);
void moon_preimage_close(struct moon_preimage *preimage); /* idempotent */

/* Starts an object whose bytes go to `sink`. A refusal of a later write fills `error`. */
void moon_preimage_begin(struct moon_preimage *preimage, struct moon_sink sink, struct moon_error *error);
/* As moon_pickle_... and moon_cbor_... After a failure they change nothing. */
void moon_preimage_none(struct moon_preimage *preimage);
void moon_preimage_int(struct moon_preimage *preimage, int64_t value);
void moon_preimage_str(struct moon_preimage *preimage, const struct moon_string *string);
void moon_preimage_bytes(struct moon_preimage *preimage, const struct moon_string *bytes);
void moon_preimage_tuple_begin(struct moon_preimage *preimage, size_t count);
void moon_preimage_tuple_end(struct moon_preimage *preimage, size_t count);
/* Ends the object. Returns 0, MOON_ERR_MEMORY, or MOON_ERR_REFUSED (HASH-042); `error` is filled. */
int moon_preimage_finish(struct moon_preimage *preimage);

#ifdef __cplusplus
}
#endif
#endif
