/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a record as one table, which both of its forms follow. Nobody else includes it. */
#ifndef MOON_BASE_RECORD_INTERNAL_H
#define MOON_BASE_RECORD_INTERNAL_H

#include "ref/base/record.h"

enum moon_record_form {
    MOON_RECORD_FORM_U64,
    MOON_RECORD_FORM_U32,
    MOON_RECORD_FORM_I64,
    MOON_RECORD_FORM_HEX,    /* u64; in JSON 16 hex digits */
    MOON_RECORD_FORM_BYTES,  /* struct moon_bytes */
    MOON_RECORD_FORM_NAME,   /* C string */
    MOON_RECORD_FORM_EXTENT, /* struct moon_extent */
    MOON_RECORD_FORM_KIND,   /* enum moon_record_kind; in JSON its name */
    MOON_RECORD_FORM_SOURCE, /* bool; in JSON "internal" or "observed" */
};

/* Values of `flag` beside the MOON_RECORD_HAS_ bits. */
enum {
    MOON_RECORD_ALWAYS = 0,
    MOON_RECORD_NOT_ZERO = 1 << 30, /* JSON leaves it out when it is 0 */
};

struct moon_record_member {
    const char *name; /* in JSON */
    unsigned flag;
    enum moon_record_form form;
    size_t at; /* offset in struct moon_record */
};

enum { MOON_RECORD_MEMBERS = 23, MOON_RECORD_HAS_ALL = 2 * MOON_RECORD_HAS_SHARDS - 1 };
/* Real UTF-8: no surrogates. A name must be; other bytes that are not have another form in JSON. */
bool moon_record_is_utf8(struct moon_bytes bytes);

extern const struct moon_record_member moon_record_members[MOON_RECORD_MEMBERS];

#endif
