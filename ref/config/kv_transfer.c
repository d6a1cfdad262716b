/* SPDX-License-Identifier: Apache-2.0 */
/* kv-transfer-config: reading connectors level by level. */
#include "ref/config/kv_transfer.h"

#include <string.h>

const char *const *moon_kv_transfer_members(const struct moon_profile *profile) {
    /* The first four were there in 0.30 and are gone in 0.33; the releases in between were not looked at and pass. */
    static const char *const names[] = {"kv_buffer_size",
                                        "kv_rank",
                                        "kv_parallel_size",
                                        "kv_ip",
                                        "kv_connector",
                                        "engine_id",
                                        "kv_buffer_device",
                                        "kv_role",
                                        "kv_port",
                                        "kv_connector_extra_config",
                                        "kv_connector_module_path",
                                        "enable_permute_local_kv",
                                        "kv_load_failure_policy",
                                        NULL};
    enum { TRIMMED = 4 };
    return profile->transfer_trimmed ? names + TRIMMED : names;
}

const char *const *moon_kv_connector_names(void) {
    static const char *const names[] = {"MooncakeStoreConnector",
                                        "MooncakeConnector",
                                        "MultiConnector",
                                        "NixlConnector",
                                        "NixlPullConnector",
                                        "NixlPushConnector",
                                        "LMCacheConnectorV1",
                                        "LMCacheMPConnector",
                                        "OffloadingConnector",
                                        "SimpleCPUOffloadConnector",
                                        "ExampleConnector",
                                        "ExampleHiddenStatesConnector",
                                        "DecodeBenchConnector",
                                        "FlexKVConnectorV1",
                                        "HF3FSKVConnector",
                                        "HiSparseConnector",
                                        "MoRIIOConnector",
                                        "P2pNcclConnector",
                                        NULL};
    return names;
}

const char *moon_kv_role_name(enum moon_kv_role role) {
    static const char *const names[] = {"no role", "kv_producer", "kv_consumer", "kv_both"};
    return names[role];
}

static enum moon_kv_role role_of(const struct moon_json *value) {
    for (enum moon_kv_role role = MOON_ROLE_PRODUCER; role <= MOON_ROLE_BOTH; role++)
        if (moon_json_is_string(value, moon_kv_role_name(role)))
            return role;
    return MOON_ROLE_NONE;
}

static enum moon_connector_kind kind_of(const char *name) {
    if (strcmp(name, "MooncakeStoreConnector") == 0)
        return MOON_CONNECTOR_STORE;
    if (strcmp(name, "MooncakeConnector") == 0)
        return MOON_CONNECTOR_P2P;
    return strcmp(name, "MultiConnector") == 0 ? MOON_CONNECTOR_MULTI : MOON_CONNECTOR_OTHER;
}

static bool missing_or_null(const struct moon_json *value) {
    return !value || value->type == MOON_JSON_NULL;
}

static void refuse(struct moon_connector *connector, const struct moon_json *at, const char *why) {
    if (!connector->refused) {
        connector->refused = why;
        connector->refused_at = at;
    }
}

static void read_connector(const struct moon_json *config, struct moon_connector *out) {
    out->config = config;
    out->name = "";
    out->kind = MOON_CONNECTOR_OTHER;
    if (config->type != MOON_JSON_OBJECT) {
        refuse(out, config, "a kv-transfer-config is an object");
        return;
    }
    const struct moon_json *name = moon_json_member(config, "kv_connector"),
                           *role = moon_json_member(config, "kv_role");
    const struct moon_json *extra = moon_json_member(config, "kv_connector_extra_config");
    if (moon_json_is(name, MOON_JSON_STRING))
        out->name = name->bytes;
    else if (!missing_or_null(name))
        refuse(out, name, "kv_connector must be a text");
    else
        refuse(out, config, "kv_connector is missing");
    out->kind = kind_of(out->name);
    out->role = role_of(role);
    if (moon_json_is(extra, MOON_JSON_OBJECT))
        out->extra = extra;
    else if (extra)
        refuse(out, extra, "kv_connector_extra_config must be an object");
}

/* Appends the children of `parent` behind *last. */
static int read_children(struct moon_arena *arena, struct moon_connector *parent, struct moon_connector **last,
                         size_t *count) {
    const struct moon_json *list = moon_json_member(parent->extra, "connectors");
    if (!moon_json_is(list, MOON_JSON_ARRAY) || list->count == 0)
        return MOON_OK;
    for (const struct moon_json *child = list->first; child; child = child->next) {
        if (++*count > MOON_CONNECTORS_MAX)
            return MOON_ERR_LIMIT;
        struct moon_connector *connector = moon_arena_alloc(arena, sizeof *connector);
        if (!connector)
            return MOON_ERR_MEMORY;
        read_connector(child, connector);
        connector->parent = parent;
        connector->child = child->index;
        (*last)->next = connector;
        *last = connector;
    }
    return MOON_OK;
}

int moon_kv_transfer_read(struct moon_arena *arena, const struct moon_json *config, struct moon_connector **first) {
    struct moon_connector *outer = moon_arena_alloc(arena, sizeof *outer), *last = outer;
    if (!outer)
        return MOON_ERR_MEMORY;
    size_t count = 1;
    int status = MOON_OK;
    read_connector(config, outer);
    for (struct moon_connector *at = outer; at && !status; at = at->next)
        if (at->kind == MOON_CONNECTOR_MULTI)
            status = read_children(arena, at, &last, &count);
    *first = outer;
    return status;
}

const struct moon_connector *moon_kv_transfer_find(const struct moon_connector *first, enum moon_connector_kind kind) {
    const struct moon_connector *at = first;
    while (at && at->kind != kind)
        at = at->next;
    return at;
}
