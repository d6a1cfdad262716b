/* SPDX-License-Identifier: Apache-2.0 */
/* Reading block hashes. */
#include "conformance/suites/hashes.h"

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
