/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the JSON reader and writer: what is read, written and read again is the same, under both rules. */
#include "ref/base/json.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* What strict rules read, Python's rules read to the same value. What is read survives writing, copying and reading. */
static void check(const char *input, size_t size, enum moon_json_rules rules) {
    struct moon_arena arena;
    struct moon_json *value = NULL;
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    int rc = moon_json_read(&arena, "fuzz", input, size, rules, &value, &error);
    require((rc == 0) == (value != NULL) && rc == (int)error.status);
    for (int style = 0; value && style < 2; style++) {
        struct moon_text text;
        struct moon_json *again = NULL;
        moon_text_open(&text, moon_memory_heap());
        moon_json_write(moon_json_clone(&arena, value), style ? MOON_JSON_PRETTY : MOON_JSON_COMPACT, &text);
        require(moon_json_read(&arena, "again", text.data, text.length, rules, &again, &error) == 0);
        require(moon_json_equal(value, again) && moon_json_equal(again, value));
        moon_text_close(&text);
    }
    struct moon_json *as_python = NULL;
    if (value && rules == MOON_JSON_STRICT &&
        moon_json_read(&arena, "p", input, size, MOON_JSON_PYTHON, &as_python, &error))
        require(error.status == MOON_ERR_LIMIT); /* an integer of too many digits */
    require(!as_python || moon_json_equal(value, as_python));
    moon_arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check((const char *)data, size, MOON_JSON_STRICT);
    check((const char *)data, size, MOON_JSON_PYTHON);
    return 0;
}
