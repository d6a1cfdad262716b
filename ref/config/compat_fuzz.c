/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of compat: descriptions as JSON text, or pairs drawn from the bytes; every answer is consistent with its
 * reasons. */
#include "ref/config/compat.h"

#include <assert.h>

#include "ref/config/compat_cases.inc"

/* Compares, and writes whatever comes out. Reasons are checked by the comparison's own assertions. */
static void compare(struct moon_arena *arena, const struct moon_text texts[2]) {
    struct moon_compat_input inputs[2];
    struct moon_compat_report *report = NULL;
    struct moon_error error = {0};
    for (int side = 0; side < 2; side++) {
        struct moon_json *document = NULL;
        if (moon_json_read(arena, "fuzz", moon_text_value(&texts[side]), texts[side].length, MOON_JSON_STRICT,
                           &document, &error) != 0)
            return;
        inputs[side] = (struct moon_compat_input){.source = "fuzz", .document = document};
        if (moon_compat_config_path(document)) { /* the file that it names holds the description itself */
            inputs[side].config = moon_text_value(&texts[side]);
            inputs[side].config_length = texts[side].length;
        }
    }
    if (moon_compat_compare(arena, inputs, &report, &error) != 0) {
        assert(error.message[0] != '\0');
        return;
    }
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_compat_write(report, &out);
    moon_json_write(moon_compat_json(arena, report), MOON_JSON_PRETTY, &out);
    assert(!out.failed);
    moon_text_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_text texts[2];
    struct moon_arena arena;
    struct moon_cursor bytes;
    moon_arena_open(&arena, moon_memory_heap());
    for (int side = 0; side < 2; side++)
        moon_text_open(&texts[side], moon_memory_heap());
    moon_cursor_open(&bytes, data, size);
    if (size > 0 && data[0] == '{') { /* one text on both sides */
        moon_text_bytes(&texts[0], data, size);
        moon_text_bytes(&texts[1], data, size);
    } else {
        draw_cases(&bytes, &texts[0], &texts[1]);
    }
    compare(&arena, texts);
    for (int side = 0; side < 2; side++)
        moon_text_close(&texts[side]);
    moon_arena_close(&arena);
    return 0;
}
