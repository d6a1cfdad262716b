/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reading of numbers from text: sizes, float(), int(), and white space. */
#include "ref/config/python_number.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    const char *text = moon_arena_copy(&arena, (const char *)data, size);
    struct moon_json value = {.type = MOON_JSON_STRING, .bytes = text, .length = size}, *number = NULL;
    struct moon_exception raised = {0};
    int status = moon_python_size(&arena, &value, &number, &raised);
    require(status == MOON_OK || (status == MOON_ERR_REFUSED && raised.type && raised.message));
    if (status == MOON_OK) { /* no text has a sign; a size read back as text is itself while doubles are exact */
        struct moon_json *again = NULL;
        require(number->type == MOON_JSON_INTEGER && moon_python_sign(number) >= 0);
        require(moon_python_size(&arena, number, &again, &raised) == MOON_OK && moon_json_equal(number, again));
        number->type = MOON_JSON_STRING;
        require(moon_python_size(&arena, number, &again, &raised) == MOON_OK && again->length == number->length);
    }
    double real = 0;
    int64_t whole = 0;
    int as_float = moon_python_float(&arena, text, size, &real), as_int = moon_python_int(text, size, &whole);
    require(as_int == MOON_ERR_SYNTAX || as_float == MOON_OK); /* what int() reads, float() reads */
    require(as_int != MOON_OK || real == (double)whole);
    const char *stripped = text;
    size_t length = size;
    moon_python_strip(&stripped, &length);
    require(stripped >= text && stripped + length <= text + size);
    moon_arena_close(&arena);
    return 0;
}
