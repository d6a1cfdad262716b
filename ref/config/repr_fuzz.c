/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes repr(): any JSON document, and any bytes as one text. */
#include "ref/config/python_repr.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One line of printable text, whatever went in; control characters would show that an escape is missing. */
static void require_printable(const struct moon_text *text) {
    for (size_t i = 0; i < text->length; i++)
        if ((uint8_t)text->data[i] < ' ' || text->data[i] == 0x7F)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_arena arena;
    struct moon_text text;
    struct moon_json *document = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    if (moon_json_read(&arena, "fuzz", (const char *)data, size, MOON_JSON_PYTHON, &document, NULL) == MOON_OK) {
        moon_python_repr(document, &text);
        require_printable(&text);
        moon_python_truth(document);
    }
    moon_text_clear(&text);
    struct moon_json value = {.type = MOON_JSON_STRING, .bytes = (const char *)data, .length = size};
    moon_python_repr(&value, &text);
    require_printable(&text);
    moon_text_close(&text);
    moon_arena_close(&arena);
    return 0;
}
