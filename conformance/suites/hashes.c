/* SPDX-License-Identifier: Apache-2.0 */
/* Reading block hashes. */
#include "conformance/suites/hashes.h"

enum { NUMBERED_BYTES = 16 };

int moon_hashes_read(struct moon_arena *arena, const char *source, const struct moon_json *given, bool required,
                     struct moon_hashes *out, struct moon_error *error) {
    struct moon_json *list = NULL;
    int status = moon_json_get(source, given, "block_hashes", required, MOON_JSON_ARRAY, &list, error);
    if (status || !list)
        return status;
    size_t digits = list->first && list->first->type == MOON_JSON_STRING ? list->first->length : 0;
    uint8_t *bytes = moon_arena_array(arena, list->count, digits / 2);
    if (!bytes)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    *out = (struct moon_hashes){bytes, digits / 2, list->count};
    for (const struct moon_json *each = list->first; each; each = each->next)
        if (each->type != MOON_JSON_STRING || each->length != digits || digits == 0 ||
            moon_hex_decode(each->bytes, digits, bytes + each->index * (digits / 2)))
            return moon_json_fail(error, MOON_ERR_SCHEMA, source, each,
                                  "block hashes are texts of hex digits, all of one even length");
    return 0;
}

int moon_hashes_number(struct moon_arena *arena, int64_t count, struct moon_hashes *out, struct moon_error *error) {
    uint8_t *bytes = moon_arena_array(arena, (size_t)count, NUMBERED_BYTES);
    if (!bytes)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < 8; k++)
            bytes[i * NUMBERED_BYTES + NUMBERED_BYTES - 1 - k] = (uint8_t)((i + 1) >> (8 * k));
    *out = (struct moon_hashes){bytes, NUMBERED_BYTES, (size_t)count};
    return 0;
}
