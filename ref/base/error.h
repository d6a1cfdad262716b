/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and the error value that carries a place and one sentence to the person who reads it. */
#ifndef MOON_BASE_ERROR_H
#define MOON_BASE_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Results of functions of ref/. 0 is success, every failure is negative. Names and texts: moon_status_name, _text. */
enum moon_status {
    MOON_OK = 0,
    MOON_ERR_MEMORY = -1,      /* the injected memory refused */
    MOON_ERR_SYNTAX = -2,      /* input is not in the format that it claims */
    MOON_ERR_SCHEMA = -3,      /* well-formed, but a member is unknown, missing or of the wrong type */
    MOON_ERR_RANGE = -4,       /* a number is outside what its place allows */
    MOON_ERR_LIMIT = -5,       /* input is larger or deeper than a named limit */
    MOON_ERR_IO = -6,          /* the operating system refused */
    MOON_ERR_UNSUPPORTED = -7, /* understood, but this profile or build cannot do it */
    MOON_ERR_REFUSED = -8,     /* what the release under description would raise (Python exception); see its class */
};

enum { MOON_ERROR_WHERE_BYTES = 256, MOON_ERROR_CLASS_BYTES = 32, MOON_ERROR_MESSAGE_BYTES = 1024 };

/* Filled by the function that fails; untouched by one that succeeds. Plain data, no ownership, copy freely. */
struct moon_error {
    enum moon_status status;
    /* Place in words: "file.json:12:7 $.cases[3].given"; empty when there is none. */
    char where[MOON_ERROR_WHERE_BYTES];
    /* With MOON_ERR_REFUSED: Python class of the exception the release raises ("ValueError"); else empty. */
    char type[MOON_ERROR_CLASS_BYTES];
    /* One line: control characters become spaces, but what a release raises stays verbatim. UTF-8 (WTF-8 where it
     * quotes a lone surrogate), cut at the buffer's end. */
    char message[MOON_ERROR_MESSAGE_BYTES];
};

/* Fills `error` (may be NULL) and returns `status`, so that a failing branch is one line:
 *   return moon_fail(error, MOON_ERR_RANGE, where, "block size %d is not positive", n);
 * `where` may be NULL. Thread rule: none, touches only its arguments. */
int moon_fail(struct moon_error *error, enum moon_status status, const char *where, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The commonest failure: MOON_ERR_MEMORY, "out of memory", no place. */
int moon_no_memory(struct moon_error *error);

/* The same as moon_fail for what a release raises, verbatim: status MOON_ERR_REFUSED and the Python class `type`. */
int moon_refuse(struct moon_error *error, const char *type, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Name as in the source ("MOON_ERR_MEMORY") and a sentence; "unknown status" for a number that is none. */
const char *moon_status_name(int status);
const char *moon_status_text(int status);

#ifdef __cplusplus
}
#endif
#endif
