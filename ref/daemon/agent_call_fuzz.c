/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of store calls: any arguments give an operation whose pieces are there, or an error. First byte: which call.
 */
#include "ref/daemon/agent_call.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory that refuses large pieces: values may ask for hundreds of megabytes. */
static void *small_resize(struct moon_memory *self, void *old, size_t old_bytes, size_t new_bytes) {
    (void)self;
    return new_bytes > 1 << 20 ? NULL : moon_memory_heap()->resize(moon_memory_heap(), old, old_bytes, new_bytes);
}

/* Touches all pieces, as a transfer would. */
static void read_pieces(struct moon_client_operation *operation) {
    volatile unsigned char seen = 0;
    for (size_t i = 0; i < operation->item_count; i++) {
        struct moon_client_item *item = &operation->items[i];
        for (size_t j = 0; j < item->piece_count; j++)
            if (item->pieces[j].length > 0)
                seen = ((const unsigned char *)item->pieces[j].data)[item->pieces[j].length - 1];
        item->result = i % 2 ? -1 : 0;
    }
    (void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_memory memory = {small_resize};
    struct moon_arena arena;
    struct moon_json *args;
    struct moon_error error;
    struct moon_client_operation operation = {.result = 0};
    bool want_hex;
    size_t calls = 0;
    while (moon_agent_call_names[calls])
        calls++;
    const struct moon_agent_call *call = size > 0 ? moon_agent_call_find(moon_agent_call_names[data[0] % calls]) : NULL;
    if (!call)
        return 0;
    moon_arena_open(&arena, &memory);
    if (moon_json_read(&arena, "f", (const char *)data + 1, size - 1, MOON_JSON_STRICT, &args, &error) == 0 &&
        moon_agent_call_read(call, &arena, "f", args, "/nonexistent", &operation, &want_hex, &error) == 0) {
        read_pieces(&operation);
        if (!moon_agent_call_result(call, &arena, &operation, want_hex))
            abort();
    }
    moon_arena_close(&arena);
    return 0;
}
