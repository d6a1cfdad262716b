/* SPDX-License-Identifier: Apache-2.0 */
/* Strings with an identity and the sink of bytes: what both serialisations of a hashed object share. */
#ifndef MOON_HASH_OBJECT_H
#define MOON_HASH_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Receives a serialised object in pieces, in order. The bytes are borrowed for the call. Both members are set. */
struct moon_sink {
    void (*write)(void *context, const void *bytes, size_t length);
    void *context;
};

/* A Python string or bytes object. Pickle writes an object that it has already written as a reference (HASH-024), so it
 * matters which strings are one object, not only which are equal. Borrowed by whoever is given it. */
struct moon_string {
    /* A string as WTF-8, where NULs are allowed (nothing terminates it), or the content of a bytes object. May be NULL
     * when length is 0. */
    const char *bytes;
    size_t length;
    /* 0: an object of its own, however often it is written. Else all strings with this number are one object; the owner
     * gives equal content to equal numbers. Numbers below MOON_IDENTITY_TAGS_END belong to the tags of extra keys. */
    uint32_t identity;
};

enum { MOON_IDENTITY_TAGS_END = 16 };

#ifdef __cplusplus
}
#endif
#endif
