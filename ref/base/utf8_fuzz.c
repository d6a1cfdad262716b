/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of UTF-8: what decodes encodes to the same bytes; and of text: escapes written for any bytes read back. */
#include "ref/base/json.h"
#include "ref/base/utf8.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *bytes = (const char *)data;
    for (size_t at = 0; at < size;) {
        uint32_t code_point;
        char encoded[MOON_UTF8_BYTES_MAX];
        size_t used = moon_utf8_decode(bytes + at, size - at, &code_point);
        if (used > size - at)
            abort();
        if (used > 0 && (moon_utf8_encode(code_point, encoded) != used || memcmp(encoded, bytes + at, used) != 0))
            abort();
        at += used ? used : 1;
    }
    struct moon_arena arena;
    struct moon_text text;
    struct moon_json *again = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(moon_json_bytes(&arena, bytes, size), MOON_JSON_COMPACT, &text);
    if (moon_json_read(&arena, NULL, text.data, text.length, MOON_JSON_STRICT, &again, NULL) != 0)
        abort();
    moon_arena_close(&arena);
    moon_text_close(&text);
    return 0;
}
