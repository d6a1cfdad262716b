/* SPDX-License-Identifier: Apache-2.0 */
/* The exception that a release raises, with its whole message. */
#ifndef MOON_CONFIG_PYTHON_EXCEPTION_H
#define MOON_CONFIG_PYTHON_EXCEPTION_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* struct moon_error cuts messages and holds no NUL; a Python message may quote any text, so it gets a value of its own.
 *   type     Python class, static text ("ValueError"); NULL: nothing was raised
 *   message  `length` bytes of WTF-8, NUL-terminated, owned by the arena given to the function that raised
 *   member   member whose value was refused, static text ("global_segment_size"); NULL when it is about none */
struct moon_exception {
    const char *type;
    const char *message;
    size_t length;
    const char *member;
};

/* Fills `raised` with the class and a printf-style message. Returns MOON_ERR_REFUSED, or MOON_ERR_MEMORY. */
int moon_raise(struct moon_arena *arena, struct moon_exception *raised, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with a message that is already written. */
int moon_raise_text(struct moon_arena *arena, struct moon_exception *raised, const char *type,
                    const struct moon_text *message);

#ifdef __cplusplus
}
#endif
#endif
