/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of struct_pack bodies: any bytes give a value or an error, and a value comes back from its bytes and its JSON.
 */
#include "ref/wire/release.h"
#include "ref/wire/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_value(struct moon_arena *arena, const struct moon_wire_value *value, bool arguments,
                        const struct moon_wire_head *head, const uint8_t *body, size_t length) {
    struct moon_text out, again;
    struct moon_wire_value *read = NULL, *built = NULL;
    struct moon_json *json = moon_wire_to_json(arena, value);
    moon_text_open(&out, moon_memory_heap());
    moon_text_open(&again, moon_memory_heap());
    moon_wire_encode(value, arguments, head->text != NULL, &out);
    /* Longer length fields than needed are read, and not written. */
    must(out.length <= length && (out.length < length || memcmp(moon_text_value(&out), body, length) == 0));
    must(moon_wire_decode(arena, value->type, arguments, moon_text_value(&out), out.length, NULL, &read, NULL) == 0);
    must(moon_json_equal(json, moon_wire_to_json(arena, read)));
    must(moon_wire_from_json(arena, value->type, json, &built, NULL) == 0);
    moon_wire_encode(built, arguments, head->text != NULL, &again);
    must(again.length == out.length && (again.length == 0 || memcmp(again.data, out.data, again.length) == 0));
    moon_text_close(&again);
    moon_text_close(&out);
}

/* First byte: release and form; second: call; the rest is the body, behind its true hash if the form says so. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct moon_wire_protocol protocols[4];
    static bool opened;
    struct moon_text body;
    struct moon_arena arena;
    struct moon_wire_value *value = NULL;
    struct moon_wire_head head = {0};
    struct moon_error error;
    for (size_t i = 0; !opened && i < 4; i++)
        must(moon_wire_protocol_open(&protocols[i], moon_wire_releases[i], moon_memory_heap()) == 0);
    opened = true;
    if (size < 2)
        return 0;
    bool arguments = data[0] & 4, true_hash = data[0] & 8, with_meta = data[0] & 16;
    const struct moon_wire_protocol *protocol = &protocols[data[0] & 3];
    const struct moon_wire_call *call = &protocol->calls[data[1] % protocol->count];
    const struct moon_wire_type *type = arguments ? call->function->arguments : call->function->result;
    uint32_t hash = (arguments ? call->arguments_hash : call->result_hash) | with_meta;
    moon_text_open(&body, moon_memory_heap());
    for (unsigned i = 0; true_hash && i < 4; i++)
        moon_text_char(&body, (char)(hash >> 8 * i & 0xff));
    moon_text_bytes(&body, data + 2, size - 2);
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_wire_decode(&arena, type, arguments, moon_text_value(&body), body.length, &head, &value, &error) == 0)
        check_value(&arena, value, arguments, &head, (const uint8_t *)body.data, body.length);
    must(arena.used_bytes <= 4096 + 4096 * body.length);
    moon_arena_close(&arena);
    moon_text_close(&body);
    return 0;
}
