/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting labels and decimal numbers off the end of a key. */
#include "ref/key/field.h"

#include <string.h>

bool moon_key_take_label(struct moon_key_text *text, const char *label) {
    size_t length = strlen(label);
    if (text->length < length || memcmp(text->bytes + text->length - length, label, length) != 0)
        return false;
    text->length -= length;
    return true;
}

bool moon_key_take_number(struct moon_key_text *text, const char *label, int64_t *value) {
    struct moon_key_text rest = *text;
    while (rest.length > 0 && rest.bytes[rest.length - 1] >= '0' && rest.bytes[rest.length - 1] <= '9')
        rest.length--;
    const char *digits = rest.bytes + rest.length;
    size_t count = text->length - rest.length;
    if (count == 0 || (count > 1 && digits[0] == '0') || !moon_key_take_label(&rest, label))
        return false;
    int64_t number = 0;
    for (size_t i = 0; i < count; i++)
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digits[i] - '0', &number))
            return false;
    *text = rest;
    *value = number;
    return true;
}
