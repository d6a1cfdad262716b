/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of kv_connector_extra_config: unknown keys, values of the wrong kind, options that contradict each other. */
#include "ref/config/lint_internal.h"

#include "ref/config/python_number.h"
#include "ref/config/python_repr.h"

#include <string.h>
#include <strings.h>

/* Everything that a check of one connector needs. */
struct scope {
    struct lint *lint;
    const struct lint_engine *engine;
    const struct moon_connector *connector;
    const char *source;
};

static const struct moon_json *member(const struct scope *scope, const char *name) {
    return moon_json_member(scope->connector->extra, name);
}

/* ---- keys and kinds of values ---- */

static void check_switch(const struct scope *scope, enum moon_extra_option_type type, const struct moon_json *value) {
    struct lint *lint = scope->lint;
    const char *text = value->type == MOON_JSON_STRING ? value->bytes : NULL;
    bool on = type == MOON_EXTRA_SPELT ? text && strcasecmp(text, "true") == 0 : moon_python_truth(value);
    bool off_word = text && lint_reads_as_off(text);
    if (value->type == MOON_JSON_BOOL || value->type == MOON_JSON_NULL)
        return;
    if (on && off_word)
        lint_find(lint, "LINT-042", scope->source, value, "%s %s switches it on", value->name, lint_show(lint, value));
    else if (type == MOON_EXTRA_SWITCH || !(on || off_word))
        lint_find(lint, "LINT-043", scope->source, value, "%s %s counts as %s", value->name, lint_show(lint, value),
                  on ? "true" : "false");
}

static void check_key(const struct scope *scope, const struct moon_json *value) {
    struct lint *lint = scope->lint;
    const struct moon_profile *profile = scope->engine->profile;
    const struct moon_extra_option *key = moon_extra_option_find(scope->connector->kind, value->name);
    if (!key) {
        bool store_option = scope->connector->kind == MOON_CONNECTOR_MULTI &&
                            moon_extra_option_find(MOON_CONNECTOR_STORE, value->name) != NULL;
        if (store_option)
            lint_find(lint, "LINT-079", scope->source, value, "%s stands beside \"connectors\"", value->name);
        else
            lint_find(lint, "LINT-040", scope->source, value, "%s does not read \"%s\"%s", scope->connector->name,
                      value->name, lint_hint(lint, moon_extra_suggest(scope->connector->kind, value->name)));
        return;
    }
    if (!moon_extra_read_by(key, profile)) {
        if (key->since > profile->minor)
            lint_find(lint, "LINT-041", scope->source, value, "%s does not read %s: it came with 0.%d", profile->name,
                      key->name, key->since);
        else
            lint_find(lint, "LINT-041", scope->source, value, "%s does not read %s", profile->name, key->name);
        return;
    }
    if (key->type != MOON_EXTRA_VALUE)
        check_switch(scope, key->type, value);
}

/* ---- single options ---- */

static void check_preferred_segment(const struct scope *scope) {
    struct lint *lint = scope->lint;
    const struct moon_json *value = member(scope, "preferred_segment");
    if (!value || value->type == MOON_JSON_NULL || !scope->engine->profile->config_mode)
        return;
    const char *text = value->type == MOON_JSON_STRING ? value->bytes : "";
    size_t length = strlen(text);
    moon_python_strip(&text, &length);
    if (length == 0)
        lint_find(lint, "LINT-045", scope->source, value, "preferred_segment is %s", lint_show(lint, value));
    else if (!lint_is_host_port(text, length))
        lint_find(lint, "LINT-046", scope->source, value, "preferred_segment is %s", lint_show(lint, value));
}

static void check_rpc_port(const struct scope *scope) {
    struct lint *lint = scope->lint;
    const struct moon_json *value = member(scope, "lookup_rpc_port");
    if (!value)
        return;
    bool number = value->type == MOON_JSON_INTEGER && value->length <= 10;
    bool word =
        value->type == MOON_JSON_STRING && value->length > 0 && value->length <= 32 && !strchr(value->bytes, '/');
    if (!number && !word)
        lint_find(lint, "LINT-047", scope->source, value, "lookup_rpc_port is %s", lint_show(lint, value));
}

static void check_prefix(const struct scope *scope) {
    struct lint *lint = scope->lint;
    const struct moon_json *value = member(scope, "cache_prefix");
    if (!value)
        return;
    if (value->type != MOON_JSON_STRING)
        lint_find(lint, "LINT-049", scope->source, value, "cache_prefix is %s", lint_show(lint, value));
    else if (memchr(value->bytes, '@', value->length))
        lint_find(lint, "LINT-048", scope->source, value, "cache_prefix is %s", lint_show(lint, value));
}

static void check_mem_pool(const struct scope *scope) {
    struct lint *lint = scope->lint;
    const struct moon_json *value = member(scope, "custom_mem_pool");
    const char *text = moon_json_is(value, MOON_JSON_STRING) ? value->bytes : "";
    if (!moon_python_truth(value) || strcasecmp(text, "NVLINK") == 0 || strcasecmp(text, "BAREX") == 0)
        return;
    if (moon_extra_store_reads(scope->engine->profile, "custom_mem_pool"))
        lint_find(lint, "LINT-064", scope->source, value, "custom_mem_pool is %s", lint_show(lint, value));
}

/* ---- what the store saves and loads ---- */

static void check_roles(const struct scope *scope) {
    struct lint *lint = scope->lint;
    const struct moon_connector *store = scope->connector;
    const struct moon_json *extra = store->extra, *decode = member(scope, "save_decode_cache"),
                           *lookup = member(scope, "enable_lookup"), *async = member(scope, "lookup_async");
    const struct moon_profile *profile = scope->engine->profile;
    bool saves_decode =
        moon_extra_switch(extra, "save_decode_cache", false) && moon_extra_store_reads(profile, "save_decode_cache");
    bool looks_up =
        moon_extra_switch(extra, "enable_lookup", true) || !moon_extra_store_reads(profile, "enable_lookup");
    bool prefiller = store->role == MOON_ROLE_PRODUCER || (store->parent && store->parent->role == MOON_ROLE_PRODUCER);
    if (saves_decode && prefiller)
        lint_find(lint, "LINT-060", scope->source, decode, "save_decode_cache on an engine that only prefills");
    if (store->role == MOON_ROLE_CONSUMER && !saves_decode && looks_up)
        lint_find(lint, "LINT-061", scope->source, store->config,
                  "the store connector is kv_consumer without save_decode_cache");
    if (store->role == MOON_ROLE_CONSUMER && !saves_decode && !looks_up)
        lint_find(lint, "LINT-062", scope->source, lookup, "kv_consumer, enable_lookup off, save_decode_cache off");
    if (!looks_up && moon_python_truth(async))
        lint_find(lint, "LINT-063", scope->source, async, "lookup_async is on and enable_lookup is off");
    if (store->role == MOON_ROLE_PRODUCER && looks_up)
        lint_find(lint, "LINT-080", scope->source, store->config, "the store connector is kv_producer with lookups on");
    const struct moon_json *load_async = member(scope, "load_async");
    if (load_async && !moon_python_truth(load_async))
        lint_find(lint, "LINT-044", scope->source, load_async, "load_async is %s", lint_show(lint, load_async));
}

/* ---- sharing across TP sizes, what the options alone tell ---- */

static void check_store_tp(const struct scope *scope) {
    struct lint *lint = scope->lint;
    const struct moon_json *size = member(scope, "store_tp_size"), *lcm = member(scope, "enable_store_tp_lcm"),
                           *list = member(scope, "prefill_tp_sizes");
    if (!scope->engine->profile->store_namespace)
        return;
    bool on = lcm && lcm->type == MOON_JSON_BOOL && lcm->boolean;
    if (lcm && lcm->type != MOON_JSON_BOOL && lcm->type != MOON_JSON_NULL)
        lint_find(lint, "LINT-050", scope->source, lcm, "enable_store_tp_lcm %s is ignored", lint_show(lint, lcm));
    if (list && !on)
        lint_find(lint, "LINT-051", scope->source, list, "prefill_tp_sizes %s has no effect", lint_show(lint, list));
    if (on && size && size->type != MOON_JSON_NULL)
        lint_find(lint, "LINT-054", scope->source, size, "store_tp_size %s is ignored", lint_show(lint, size));
    struct moon_layout_model model = {.tp = 1};
    struct moon_store_tp store_tp;
    if (moon_extra_layout(lint->arena, scope->connector->extra, &model)) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    moon_store_tp_resolve(&model, &store_tp);
    if (store_tp.known || store_tp.source == MOON_STORE_TP_NOT_REQUESTED)
        return;
    const struct moon_json *at = on ? (list ? list : lcm) : size;
    lint_find(lint, on ? "LINT-052" : "LINT-053", scope->source, at, "%s: %s", lint_show(lint, at),
              moon_store_tp_source_text(store_tp.source));
}

void lint_extra(struct lint *lint, const struct lint_engine *engine, const struct moon_connector *connector) {
    struct scope scope = {lint, engine, connector, engine->transfer.source};
    if (connector->kind == MOON_CONNECTOR_OTHER)
        return;
    for (const struct moon_json *value = connector->extra ? connector->extra->first : NULL; value; value = value->next)
        check_key(&scope, value);
    check_mem_pool(&scope);
    if (connector->kind != MOON_CONNECTOR_STORE)
        return;
    check_preferred_segment(&scope);
    check_rpc_port(&scope);
    check_prefix(&scope);
    check_roles(&scope);
    check_store_tp(&scope);
}
