/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of kv-transfer-config: names, roles, and how a MultiConnector is put together. */
#include "ref/config/lint_internal.h"

#include "ref/base/suggest.h"

#include <string.h>

static void check_members(struct lint *lint, const struct lint_engine *engine, const struct moon_connector *connector) {
    const char *const *names = moon_kv_transfer_members(engine->profile);
    for (const struct moon_json *member = connector->config->first; member; member = member->next) {
        int i = 0;
        while (names[i] && strcmp(names[i], member->name) != 0)
            i++;
        if (!names[i])
            lint_find(lint, "LINT-071", engine->transfer.source, member, "%s takes no member \"%s\"%s%s",
                      engine->profile->name, member->name, lint_hint(lint, moon_suggest(member->name, names)),
                      moon_extra_option_find(connector->kind, member->name)
                          ? "; it belongs into kv_connector_extra_config"
                          : "");
    }
}

static void check_name(struct lint *lint, const char *source, const struct moon_connector *connector) {
    const char *const *names = moon_kv_connector_names();
    const struct moon_json *at = moon_json_member(connector->config, "kv_connector");
    if (!moon_json_is(at, MOON_JSON_STRING) || moon_json_member(connector->config, "kv_connector_module_path"))
        return;
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], connector->name) == 0)
            return;
    lint_find(lint, "LINT-073", source, at, "kv_connector is %s%s", lint_show(lint, at),
              lint_hint(lint, moon_suggest(connector->name, names)));
}

static void check_role(struct lint *lint, const char *source, const struct moon_connector *connector) {
    static const char *const names[] = {"kv_producer", "kv_consumer", "kv_both", NULL};
    const struct moon_json *at = moon_json_member(connector->config, "kv_role");
    if (connector->role != MOON_ROLE_NONE)
        return;
    if (at)
        lint_find(lint, "LINT-072", source, at, "kv_role is %s%s", lint_show(lint, at),
                  moon_json_is(at, MOON_JSON_STRING) ? lint_hint(lint, moon_suggest(at->bytes, names)) : "");
    else
        lint_find(lint, "LINT-072", source, connector->config, "kv_role is missing");
}

/* ---- MultiConnector ---- */

/* The role that guide G16 gives a child. */
static enum moon_kv_role child_role(const struct moon_connector *child) {
    bool prefiller = child->parent->role == MOON_ROLE_PRODUCER;
    if (prefiller && child->kind == MOON_CONNECTOR_STORE)
        return MOON_ROLE_BOTH;
    return prefiller ? MOON_ROLE_PRODUCER : MOON_ROLE_CONSUMER;
}

static void check_child(struct lint *lint, const char *source, const struct moon_connector *child) {
    const struct moon_json *at = moon_json_member(child->config, "kv_role");
    const char *what = child->kind == MOON_CONNECTOR_STORE ? "store" : "P2P";
    if ((child->kind != MOON_CONNECTOR_STORE && child->kind != MOON_CONNECTOR_P2P) || child->role == MOON_ROLE_NONE)
        return;
    if (child->parent->role == MOON_ROLE_PRODUCER || child->parent->role == MOON_ROLE_CONSUMER) {
        if (child->role != child_role(child))
            lint_find(lint, "LINT-075", source, at, "the %s child under %s is %s, not %s", what,
                      moon_kv_role_name(child->parent->role), moon_kv_role_name(child->role),
                      moon_kv_role_name(child_role(child)));
    } else if (child->parent->role == MOON_ROLE_BOTH && child->kind == MOON_CONNECTOR_P2P &&
               child->role != MOON_ROLE_BOTH) {
        lint_find(lint, "LINT-075", source, at, "the P2P child under kv_both is %s", moon_kv_role_name(child->role));
    }
}

/* Children of `parent` of a kind; *first gets the first one. */
static size_t count_children(const struct moon_connector *all, const struct moon_connector *parent,
                             enum moon_connector_kind kind, const struct moon_connector **first,
                             const struct moon_connector **second) {
    size_t count = 0;
    *first = *second = NULL;
    for (const struct moon_connector *at = all; at; at = at->next) {
        if (at->parent != parent || at->kind != kind)
            continue;
        if (++count == 1)
            *first = at;
        else if (count == 2)
            *second = at;
    }
    return count;
}

static void check_pools(struct lint *lint, const struct lint_engine *engine, const struct moon_connector *parent) {
    size_t count = 0;
    if (!moon_extra_store_reads(engine->profile, "custom_mem_pool"))
        return;
    for (const struct moon_connector *at = engine->connectors; at; at = at->next) {
        const struct moon_json *pool = at->parent == parent ? moon_json_member(at->extra, "custom_mem_pool") : NULL;
        if (pool && pool->type != MOON_JSON_NULL && ++count == 2)
            lint_find(lint, "LINT-081", engine->transfer.source, pool, "a second child has custom_mem_pool");
    }
}

static void check_multi(struct lint *lint, const struct lint_engine *engine, const struct moon_connector *multi) {
    const char *source = engine->transfer.source;
    const struct moon_json *list = moon_json_member(multi->extra, "connectors");
    const struct moon_connector *store, *store2, *p2p, *p2p2;
    if (!moon_json_is(list, MOON_JSON_ARRAY) || list->count == 0) {
        lint_find(lint, "LINT-074", source, list ? list : multi->config, "MultiConnector without a list `connectors`");
        return;
    }
    if (multi->parent)
        lint_find(lint, "LINT-078", source, multi->config, "a MultiConnector is the child of another");
    if (count_children(engine->connectors, multi, MOON_CONNECTOR_STORE, &store, &store2) > 1)
        lint_find(lint, "LINT-077", source, store2->config, "a second MooncakeStoreConnector");
    if (count_children(engine->connectors, multi, MOON_CONNECTOR_P2P, &p2p, &p2p2) > 1)
        lint_find(lint, "LINT-077", source, p2p2->config, "a second MooncakeConnector");
    if (store && p2p && multi->role == MOON_ROLE_CONSUMER && store->child < p2p->child)
        lint_find(lint, "LINT-076", source, store->config, "MooncakeStoreConnector stands before MooncakeConnector");
    if (store && engine->kv_events)
        lint_find(lint, "LINT-083", source, store->config, "KV events are on and the store connector is a child");
    check_pools(lint, engine, multi);
}

static void check_policy(struct lint *lint, const char *source, const struct moon_connector *outer) {
    const struct moon_json *policy = moon_json_member(outer->config, "kv_load_failure_policy");
    if (moon_json_is_string(policy, "recompute"))
        lint_find(lint, "LINT-082", source, policy, "kv_load_failure_policy is recompute");
    else if (policy && !moon_json_is_string(policy, "fail"))
        lint_find(lint, "LINT-070", source, policy, "kv_load_failure_policy is %s; only fail and recompute exist",
                  lint_show(lint, policy));
}

void lint_kv_transfer(struct lint *lint, struct lint_engine *engine) {
    const char *source = engine->transfer.source;
    int status = moon_kv_transfer_read(lint->arena, engine->transfer.json, &engine->connectors);
    if (status) {
        lint->status = status;
        return;
    }
    engine->store = moon_kv_transfer_find(engine->connectors, MOON_CONNECTOR_STORE);
    engine->p2p = moon_kv_transfer_find(engine->connectors, MOON_CONNECTOR_P2P);
    check_policy(lint, source, engine->connectors);
    for (const struct moon_connector *at = engine->connectors; at; at = at->next) {
        if (at->refused)
            lint_find(lint, "LINT-070", source, at->refused_at, "%s", at->refused);
        if (at->config->type != MOON_JSON_OBJECT)
            continue;
        check_members(lint, engine, at);
        check_name(lint, source, at);
        check_role(lint, source, at);
        if (at->parent)
            check_child(lint, source, at);
        if (at->kind == MOON_CONNECTOR_MULTI)
            check_multi(lint, engine, at);
        lint_extra(lint, engine, at);
    }
}
