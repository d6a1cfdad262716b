/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes lint with any file, and checks that it never misses what the release refuses. */
#include "ref/config/lint.h"
#include "ref/config/store_config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

/* Findings LINT-001 to LINT-007 say that the release refuses a mooncake_config.json. */
static bool says_refused(const struct moon_lint_report *report) {
    for (const struct moon_lint_finding *at = report->first; at; at = at->next)
        if (strcmp(at->rule->id, "LINT-008") < 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_arena arena;
    struct moon_lint_report report;
    struct moon_text text;
    const struct moon_profile *profile = moon_profile_find("vllm-0.33", NULL);
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_lint_input input = {"fuzz", moon_arena_copy(&arena, (const char *)data, size), size};
    int status = moon_lint(&arena, profile, &input, 1, &report, NULL);
    require(status == MOON_OK || status == MOON_ERR_LIMIT);
    if (status == MOON_OK) {
        moon_text_open(&text, moon_memory_heap());
        moon_lint_write(&report, &text);
        require(!text.failed && moon_lint_json(&arena, &report));
        moon_text_close(&text);
        struct moon_store_config config;
        struct moon_exception raised;
        const struct moon_json *document = NULL;
        int loads =
            moon_store_config_read(&arena, profile, "fuzz", input.bytes, size, &document, &config, &raised, NULL);
        bool other = moon_json_member(document, "engines") || moon_json_member(document, "owners") ||
                     moon_json_member(document, "master") || moon_json_member(document, "tenant_quota_policy") ||
                     moon_json_member(document, "kv_connector") || moon_json_member(document, "kv_role") ||
                     moon_json_member(document, "kv_connector_extra_config");
        if (document && !other) /* it was linted as a mooncake_config.json */
            require((loads == MOON_ERR_REFUSED) == says_refused(&report));
    }
    moon_arena_close(&arena);
    return 0;
}
