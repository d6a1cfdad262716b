/* SPDX-License-Identifier: Apache-2.0 */
/* Text inside XML and HTML. */
#include "reports/markup.h"

#include "ref/base/utf8.h"

#include <string.h>

static const char *entity(uint32_t code_point) {
    switch (code_point) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static bool allowed(uint32_t code_point) {
    return code_point == '\t' || code_point == '\n' || (code_point >= 0x20 && code_point < 0xD800) ||
           (code_point >= 0xE000 && code_point != 0xFFFE && code_point != 0xFFFF);
}

void moon_markup_escape(struct moon_text *out, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length;) {
        uint32_t code_point = 0;
        size_t used = moon_utf8_decode(text + i, length - i, &code_point);
        if (used == 0 || !allowed(code_point))
            moon_text_string(out, "\xEF\xBF\xBD");
        else if (entity(code_point))
            moon_text_string(out, entity(code_point));
        else
            moon_text_bytes(out, text + i, used);
        i += used > 0 ? used : 1;
    }
}
