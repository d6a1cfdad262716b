/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the readers of vectors, known failures, results and adapter messages: any JSON is either taken or refused in
 * words. */
#include "conformance/schema.h"
#include "reports/result.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct moon_arena *arena, const char *schema_name, const char *definition,
                  const struct moon_json *document) {
    struct moon_schema schema;
    struct moon_error error = {0};
    if (moon_schema_open(&schema, arena, schema_name, &error) != 0)
        abort();
    int status = moon_schema_check(&schema, definition, "fuzz", document, &error);
    assert(status == 0 || (status == MOON_ERR_SCHEMA && error.message[0] && error.where[0]));
    moon_schema_close(&schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const suites[] = {"hash", "keys", "layout", "segments", "config"};
    struct moon_arena arena;
    struct moon_error error = {0};
    struct moon_json *document = NULL;
    struct moon_result result;
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_json_read(&arena, "fuzz", (const char *)data, size, MOON_JSON_STRICT, &document, &error) == 0) {
        check(&arena, "vectors", NULL, document);
        check(&arena, "known", NULL, document);
        check(&arena, "results", NULL, document);
        check(&arena, "protocol", "start_answer", document);
        check(&arena, "protocol", "case_answer", document);
        for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
            check(&arena, suites[i], "given", document);
            check(&arena, suites[i], "expect", document);
        }
        int status = moon_result_read(&arena, "fuzz", document, &result, &error);
        assert(status == 0 || error.message[0]);
    }
    moon_arena_close(&arena);
    return 0;
}
