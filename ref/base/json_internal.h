/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the JSON part share among themselves. Nobody else includes it. */
#ifndef MOON_BASE_JSON_INTERNAL_H
#define MOON_BASE_JSON_INTERNAL_H

#include "ref/base/json.h"

#include <locale.h>

/* The "C" locale, for strtod_l. glibc has it ready: nothing is allocated, nothing need be freed. */
locale_t moon_json_c_locale(void);

/* The member of `object` called `name`, or NULL. */
struct moon_json *moon_json_names_find(const struct moon_json *object, const char *name, size_t length);
/* Appends `child` to `parent`, an array, or an object in which child->name is new. */
void moon_json_append(struct moon_json *parent, struct moon_json *child);

/* Sets type, bytes, length, integer, fits and real of a number whose text is well-formed. `text` may go on behind
 * `length` with anything that does not continue the number. */
void moon_json_number_set(struct moon_json *value, const char *text, size_t length, locale_t c_locale);

/* Text that lives in a buffer of fixed size: what does not fit is dropped and `failed` says so. */
struct moon_json_small_text {
    struct moon_memory memory; /* first member */
    struct moon_text text;
    char buffer[512];
};
void moon_json_small_text_open(struct moon_json_small_text *small);

/* "source:line:column $.path" into `where`; parts that are not known (source NULL, line 0, value NULL) are left out. */
void moon_json_place(char where[MOON_ERROR_WHERE_BYTES], const char *source, uint32_t line, uint32_t column,
                     const struct moon_json *value);

#endif
