/* SPDX-License-Identifier: Apache-2.0 */
/* The exception that a release raises: filling it in. */
#include "ref/config/python_exception.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int moon_raise_text(struct moon_arena *arena, struct moon_exception *raised, const char *type,
                    const struct moon_text *message) {
    char *copy = message->failed ? NULL : moon_arena_copy(arena, moon_text_value(message), message->length);
    if (!copy)
        return MOON_ERR_MEMORY;
    raised->type = type;
    raised->message = copy;
    raised->length = message->length;
    return MOON_ERR_REFUSED;
}

int moon_raise(struct moon_arena *arena, struct moon_exception *raised, const char *type, const char *format, ...) {
    char line[MOON_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    char *copy = moon_arena_format(arena, "%s", line);
    if (!copy)
        return MOON_ERR_MEMORY;
    raised->type = type;
    raised->message = copy;
    raised->length = strlen(copy);
    return MOON_ERR_REFUSED;
}
