/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a connector: its options as Python takes them, and what the release makes of engine and options. */
#include "conformance/suites/connector_case.h"

#include "ref/config/python_number.h"
#include "ref/config/python_repr.h"

#include <string.h>
#include <strings.h>

/* Truth of an option; absent: `otherwise`. */
static bool option(const struct moon_json *extra, const char *name, bool otherwise) {
    const struct moon_json *value = moon_json_member(extra, name);
    return value ? moon_python_truth(value) : otherwise;
}

/* str(value).strip().lower() == "true" */
static bool is_text_true(const struct moon_json *value) {
    if (moon_json_is(value, MOON_JSON_BOOL))
        return value->boolean;
    if (!moon_json_is(value, MOON_JSON_STRING))
        return false;
    const char *text = value->bytes;
    size_t length = value->length;
    moon_python_strip(&text, &length);
    return length == 4 && strncasecmp(text, "true", length) == 0;
}

void moon_connector_options_read(const char *kv_role, const struct moon_json *extra_config,
                                 struct moon_connector_options *out) {
    const struct moon_json *extra = extra_config;
    *out = (struct moon_connector_options){
        .role = strcmp(kv_role, "kv_producer") == 0   ? MOON_ROLE_PRODUCER
                : strcmp(kv_role, "kv_consumer") == 0 ? MOON_ROLE_CONSUMER
                                                      : MOON_ROLE_BOTH,
        .load_async = option(extra, "load_async", true),
        .lookup_async = option(extra, "lookup_async", false),
        .enable_lookup = option(extra, "enable_lookup", true),
        .save_decode_cache = option(extra, "save_decode_cache", false),
        .enable_group_semantics = is_text_true(moon_json_member(extra, "enable_group_semantics")),
        .discard_partial_chunks = option(extra, "discard_partial_chunks", true),
    };
}

int moon_connector_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                             const struct moon_json *given, struct moon_connector_case *out, struct moon_error *error) {
    *out = (struct moon_connector_case){0};
    int status = moon_engine_read(arena, profile, source, given, &out->engine, error);
    if (status)
        return status;
    moon_connector_options_read(out->engine.kv_role, moon_json_member(given, "extra_config"), &out->options);
    return moon_connector_open(&out->connector, profile, &out->engine.model, &out->options, error);
}
