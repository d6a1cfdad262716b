/* SPDX-License-Identifier: Apache-2.0 */
/* The growing byte string, and hex. */
#include "ref/base/text.h"

#include "ref/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_CAPACITY_MIN = 64 };

void moon_text_open(struct moon_text *text, struct moon_memory *memory) {
    *text = (struct moon_text){.memory = memory};
}

void moon_text_close(struct moon_text *text) {
    if (text->data)
        text->memory->resize(text->memory, text->data, text->capacity, 0);
    moon_text_open(text, text->memory);
}

void moon_text_clear(struct moon_text *text) {
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

/* Room for `more` bytes and the NUL behind the present end. Returns where they go, or NULL, with `failed` set. */
static char *grow(struct moon_text *text, size_t more) {
    if (text->failed)
        return NULL;
    size_t wanted;
    if (__builtin_add_overflow(text->length, more, &wanted) || __builtin_add_overflow(wanted, 1, &wanted)) {
        text->failed = true;
        return NULL;
    }
    if (wanted > text->capacity) {
        size_t capacity = text->capacity ? text->capacity : TEXT_CAPACITY_MIN;
        while (capacity < wanted)
            if (__builtin_mul_overflow(capacity, 2, &capacity))
                capacity = wanted;
        char *data = text->memory->resize(text->memory, text->data, text->capacity, capacity);
        if (!data) {
            text->failed = true;
            return NULL;
        }
        text->data = data;
        text->capacity = capacity;
    }
    return text->data + text->length;
}

static void end_at(struct moon_text *text, size_t length) {
    text->length = length;
    text->data[length] = '\0';
}

void moon_text_bytes(struct moon_text *text, const void *bytes, size_t length) {
    char *end = grow(text, length);
    if (!end)
        return;
    if (length > 0)
        memcpy(end, bytes, length);
    end_at(text, text->length + length);
}

void moon_text_string(struct moon_text *text, const char *string) {
    moon_text_bytes(text, string, strlen(string));
}

void moon_text_char(struct moon_text *text, char c) {
    moon_text_bytes(text, &c, 1);
}

void moon_text_repeat(struct moon_text *text, char c, size_t count) {
    char *end = grow(text, count);
    if (!end)
        return;
    memset(end, c, count);
    end_at(text, text->length + count);
}

void moon_text_format(struct moon_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *end = length < 0 ? NULL : grow(text, (size_t)length);
    if (end) {
        vsnprintf(end, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    } else {
        text->failed = true;
    }
    va_end(again);
    va_end(arguments);
}

void moon_text_hex(struct moon_text *text, const void *bytes, size_t length) {
    static const char digits[] = "0123456789abcdef";
    size_t twice;
    char *end = __builtin_mul_overflow(length, 2, &twice) ? NULL : grow(text, twice);
    if (!end) {
        text->failed = true;
        return;
    }
    const uint8_t *from = bytes;
    for (size_t i = 0; i < length; i++) {
        end[2 * i] = digits[from[i] >> 4];
        end[2 * i + 1] = digits[from[i] & 15];
    }
    end_at(text, text->length + twice);
}

const char *moon_text_value(const struct moon_text *text) {
    return text->data ? text->data : "";
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int moon_hex_decode(const char *hex, size_t length, uint8_t *out) {
    if (length % 2 != 0)
        return MOON_ERR_SYNTAX;
    for (size_t i = 0; i < length; i += 2) {
        int high = digit_value(hex[i]), low = digit_value(hex[i + 1]);
        if (high < 0 || low < 0)
            return MOON_ERR_SYNTAX;
        out[i / 2] = (uint8_t)(high << 4 | low);
    }
    return MOON_OK;
}
