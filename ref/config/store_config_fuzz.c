/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the loading of mooncake_config.json by every release. */
#include "ref/config/store_config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load(const struct moon_profile *profile, const char *bytes, size_t size) {
    struct moon_arena arena;
    struct moon_store_config config;
    struct moon_exception raised;
    struct moon_error error = {0};
    const struct moon_json *document = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_store_config_read(&arena, profile, "fuzz", bytes, size, &document, &config, &raised, &error);
    bool good = (status == MOON_OK && document && !raised.type && moon_store_config_json(&arena, &config)) ||
                (status == MOON_ERR_REFUSED && raised.type && raised.message) || status == MOON_ERR_LIMIT;
    if (!good)
        abort();
    moon_arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const releases[] = {"vllm-0.21", "vllm-0.27", "vllm-0.33"};
    for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++)
        load(moon_profile_find(releases[i], NULL), (const char *)data, size);
    return 0;
}
