/* SPDX-License-Identifier: Apache-2.0 */
/* Status names and texts, and the one place where an error value is filled. */
#include "ref/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    enum moon_status status;
    const char *name;
    const char *text;
} statuses[] = {
    {MOON_OK, "MOON_OK", "success"},
    {MOON_ERR_MEMORY, "MOON_ERR_MEMORY", "out of memory"},
    {MOON_ERR_SYNTAX, "MOON_ERR_SYNTAX", "the input is not in the format that it claims"},
    {MOON_ERR_SCHEMA, "MOON_ERR_SCHEMA", "a member is unknown, missing or of the wrong type"},
    {MOON_ERR_RANGE, "MOON_ERR_RANGE", "a number is outside what its place allows"},
    {MOON_ERR_LIMIT, "MOON_ERR_LIMIT", "the input is larger or deeper than a limit"},
    {MOON_ERR_IO, "MOON_ERR_IO", "the operating system refused"},
    {MOON_ERR_UNSUPPORTED, "MOON_ERR_UNSUPPORTED", "this profile or build cannot do it"},
    {MOON_ERR_REFUSED, "MOON_ERR_REFUSED", "the release under description raises an exception"},
};

/* Drops a UTF-8 sequence that the end of a full buffer cut in two, so that the text stays printable. */
static void trim_cut_character(char *buffer, size_t length) {
    size_t lead = length - 1;
    while (length - lead < 4 && ((unsigned char)buffer[lead] & 0xC0) == 0x80)
        lead--;
    unsigned char first = (unsigned char)buffer[lead];
    size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (length - lead < wanted)
        buffer[lead] = '\0';
}

__attribute__((format(printf, 3, 0))) static void fill(char *buffer, size_t capacity, const char *format,
                                                       va_list arguments) {
    int wanted = vsnprintf(buffer, capacity, format, arguments);
    if (wanted >= 0 && (size_t)wanted >= capacity)
        trim_cut_character(buffer, capacity - 1);
}

static void copy(char *buffer, size_t capacity, const char *string) {
    size_t length = strlen(string);
    size_t kept = length < capacity ? length : capacity - 1;
    memcpy(buffer, string, kept);
    buffer[kept] = '\0';
    if (kept < length)
        trim_cut_character(buffer, kept);
}

int moon_fail(struct moon_error *error, enum moon_status status, const char *where, const char *format, ...) {
    if (!error)
        return status;
    /* Arguments may point into *error (a message that quotes the message below it), so it is built apart. */
    struct moon_error built = {.status = status};
    copy(built.where, sizeof built.where, where ? where : "");
    va_list arguments;
    va_start(arguments, format);
    fill(built.message, sizeof built.message, format, arguments);
    va_end(arguments);
    for (char *c = built.message; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    *error = built;
    return status;
}

int moon_no_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
}

int moon_refuse(struct moon_error *error, const char *type, const char *format, ...) {
    if (!error)
        return MOON_ERR_REFUSED;
    struct moon_error built = {.status = MOON_ERR_REFUSED};
    copy(built.type, sizeof built.type, type);
    va_list arguments;
    va_start(arguments, format);
    fill(built.message, sizeof built.message, format, arguments);
    va_end(arguments);
    *error = built;
    return MOON_ERR_REFUSED;
}

const char *moon_status_name(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if ((int)statuses[i].status == status)
            return statuses[i].name;
    return "unknown status";
}

const char *moon_status_text(int status) {
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if ((int)statuses[i].status == status)
            return statuses[i].text;
    return "unknown status";
}
