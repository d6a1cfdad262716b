/* SPDX-License-Identifier: Apache-2.0 */
/* One writer of hashed objects for both serialisations, so that what is hashed is written down once. */
#include "ref/hash/preimage.h"

#include "ref/hash/cbor.h"

void moon_preimage_open(struct moon_preimage *preimage, enum moon_serialisation serialisation,
                        struct moon_memory *memory) {
    *preimage = (struct moon_preimage){.serialisation = serialisation};
    moon_pickle_open(&preimage->pickle, memory);
}

void moon_preimage_close(struct moon_preimage *preimage) {
    moon_pickle_close(&preimage->pickle);
}

void moon_preimage_begin(struct moon_preimage *preimage, struct moon_sink sink, struct moon_error *error) {
    preimage->sink = sink;
    preimage->status = 0;
    preimage->error = error;
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_begin(&preimage->pickle, sink);
}

void moon_preimage_none(struct moon_preimage *preimage) {
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_none(&preimage->pickle);
    else if (preimage->status == 0)
        moon_cbor_none(preimage->sink);
}

void moon_preimage_int(struct moon_preimage *preimage, int64_t value) {
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_int(&preimage->pickle, value);
    else if (preimage->status == 0)
        moon_cbor_int(preimage->sink, value);
}

void moon_preimage_str(struct moon_preimage *preimage, const struct moon_string *string) {
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_str(&preimage->pickle, string);
    else if (preimage->status == 0)
        preimage->status = moon_cbor_str(preimage->sink, string, preimage->error);
}

void moon_preimage_bytes(struct moon_preimage *preimage, const struct moon_string *bytes) {
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_bytes(&preimage->pickle, bytes);
    else if (preimage->status == 0)
        moon_cbor_bytes(preimage->sink, bytes);
}

void moon_preimage_tuple_begin(struct moon_preimage *preimage, size_t count) {
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_tuple_begin(&preimage->pickle, count);
    else if (preimage->status == 0)
        moon_cbor_tuple(preimage->sink, count);
}

void moon_preimage_tuple_end(struct moon_preimage *preimage, size_t count) {
    if (preimage->serialisation == MOON_PICKLE)
        moon_pickle_tuple_end(&preimage->pickle, count);
}

int moon_preimage_finish(struct moon_preimage *preimage) {
    if (preimage->serialisation == MOON_PICKLE && moon_pickle_finish(&preimage->pickle))
        preimage->status = moon_fail(preimage->error, MOON_ERR_MEMORY, NULL, "no memory for the pre-image of a hash");
    return preimage->status;
}
