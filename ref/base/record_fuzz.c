/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of both readers of records: what reads is written so that it reads the same again. */
#include "ref/base/record.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes `record` in both forms, reads both back, and compares what they write. */
static void check(const struct moon_record *record) {
    struct moon_text json, binary, again;
    struct moon_arena arena;
    struct moon_record from_json, from_binary;
    size_t used;
    moon_text_open(&json, moon_memory_heap());
    moon_text_open(&binary, moon_memory_heap());
    moon_text_open(&again, moon_memory_heap());
    moon_arena_open(&arena, moon_memory_heap());
    moon_record_write_json(record, &json);
    moon_record_write_binary(record, &binary);
    if (moon_record_read_json(&arena, json.data, json.length - 1, &from_json, NULL) != 0 ||
        moon_record_read_binary(binary.data, binary.length, &from_binary, &used, NULL) != 0 || used != binary.length)
        abort();
    moon_record_write_json(&from_binary, &again);
    if (again.length != json.length || memcmp(again.data, json.data, json.length) != 0)
        abort();
    moon_text_clear(&again);
    moon_record_write_binary(&from_json, &again);
    if (again.length != binary.length || memcmp(again.data, binary.data, binary.length) != 0)
        abort();
    moon_arena_close(&arena);
    moon_text_close(&json);
    moon_text_close(&binary);
    moon_text_close(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_arena arena;
    struct moon_record record;
    size_t used;
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_record_read_json(&arena, (const char *)data, size, &record, NULL) == 0)
        check(&record);
    if (moon_record_read_binary(data, size, &record, &used, NULL) == 0)
        check(&record);
    moon_arena_close(&arena);
    return 0;
}
